"""What a history keeps for a time only, and what a restored one must not do by itself. Floor 4.

Entry points: :func:`tidy`, :func:`hold_deliveries`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from digestd.flows.confirm import forget_stale
from digestd.model.delivery import DeliveryState
from digestd.ports import Store

#: deliveries looked at together
_PAGE = 500

#: a file is written anew where this much of it holds nothing
_LEAST_SLACK, _SLACK_SHARE = 100_000_000, 0.25

RESTORED = "held: restored from a backup, and perhaps sent since it was made"
ADOPTED = "held: taken over from another machine, and perhaps sent there"


def hold_deliveries(store: Store, *, now: datetime, why: str = RESTORED) -> int:
    """Take every delivery that would still be sent out of the way, and return how many there were.

    A backup does not know what was sent after it was made: each of these may have reached its reader already, and would
    reach it twice. A person makes those ready again that did not.

    Args:
        store: of a history that nobody else works on.
        now: when.
        why: in words, for those who look at the outbox.
    """
    held = 0
    with store.transaction():
        store.outbox.reap(now=now, owners=())
        for state in (DeliveryState.READY, DeliveryState.UNCERTAIN):
            while rows := store.outbox.deliveries(state=state, limit=_PAGE):
                for row in rows:
                    store.outbox.set_state(row.key, DeliveryState.FAILED, why=why, now=now)
                held += len(rows)
    return held


@dataclass(frozen=True, slots=True)
class Tidied:
    """What was forgotten."""

    mails: int = 0  #: deliveries whose mail cannot be built again
    contents: int = 0  #: bodies that nobody needs
    wishes: int = 0  #: to follow, that nobody confirmed in time


def tidy(store: Store, *, now: datetime, mail_for: timedelta) -> Tidied:
    """Forget what is kept for a time only, and return what that was.

    Papers, names, the ledger, what was told to whom, slots and the fate of every delivery are never forgotten: by them it is
    known that something was told (RELIABILITY R11).

    Args:
        store: the history.
        now: the present.
        mail_for: how long the text of mails is kept that were taken or stopped.
    """
    wishes = forget_stale(store, now=now)
    mails = contents = 0
    while forgotten := _forget_mails(store, now - mail_for):
        mails += forgotten
    if mails:
        with store.transaction():
            contents = store.outbox.forget_contents()
    return Tidied(mails, contents, wishes)


def _forget_mails(store: Store, before: datetime) -> int:
    if not store.outbox.mails_before(before):  # most looks find nothing, and need not wait for a writer
        return 0
    with store.transaction():
        return store.outbox.forget_mails(before, limit=_PAGE)


def is_worth_compacting(size: int, empty: int) -> bool:
    """Return whether so much of a file holds nothing that it should be written anew."""
    return empty >= _LEAST_SLACK and empty >= size * _SLACK_SHARE
