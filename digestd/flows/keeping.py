"""What a restored history must not do by itself. Floor 4. Entry point: :func:`hold_deliveries`."""

from __future__ import annotations

from datetime import datetime

from digestd.model.delivery import DeliveryState
from digestd.ports import Store

#: deliveries looked at together
_PAGE = 500

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
