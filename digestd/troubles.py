"""When the operator is told of a trouble: once, again after a day, and when it is over. Floor 1: pure.

Entry point: :func:`after_look`. Mails are bounded, whatever flaps: what comes while none may go waits for the next one, and
what came and went meanwhile is not told at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from digestd.model.trouble import KnownTrouble, Trouble

#: how long a trouble lasts until its operator is reminded of it
REMIND_AFTER = timedelta(days=1)
#: between two mails to the operator; what happens meanwhile goes into the next
BETWEEN_MAILS = timedelta(minutes=15)
#: mails to the operator in a day, at most
MOST_MAILS = 24


@dataclass(frozen=True, slots=True)
class Look:
    """What one look at the troubles comes to."""

    kept: tuple[KnownTrouble, ...] = ()  #: as they are to be stored, in place of what was
    begun: tuple[KnownTrouble, ...] = ()  #: to be told for the first time
    lasting: tuple[KnownTrouble, ...] = ()  #: to be told again
    mended: tuple[KnownTrouble, ...] = ()  #: to be told as over

    @property
    def mailed(self) -> tuple[tuple[KnownTrouble, ...], tuple[KnownTrouble, ...], tuple[KnownTrouble, ...]]:
        """What a mail tells: begun, lasting and mended ones; that mail does not go out is told when it does again."""
        begun, lasting = ([one for one in part if not one.trouble.is_mail] for part in (self.begun, self.lasting))
        return tuple(begun), tuple(lasting), self.mended

    @property
    def needs_mail(self) -> bool:
        """Whether there is anything to mail."""
        return any(self.mailed)


def may_mail(mails: Sequence[datetime], now: datetime) -> bool:
    """Return whether a mail may go to the operator now.

    Args:
        mails: when the mails of the last day went, in any order.
        now: the present.
    """
    return len(mails) < MOST_MAILS and all(at + BETWEEN_MAILS <= now for at in mails)


def after_look(
    known: Sequence[KnownTrouble],
    found: Sequence[Trouble],
    *,
    is_sure: Callable[[str], bool],
    now: datetime,
    may_tell: bool,
) -> Look:
    """Return what is told now and what is kept.

    Args:
        known: as they were kept after the look before, one of a name.
        found: what is not well now, one of a name.
        is_sure: whether a trouble of this name, not being found, is over; False where nobody could look yet.
        now: the present.
        may_tell: whether a mail may go now; without, what would be mailed waits.
    """
    standing = {one.name: one for one in found}
    begun, lasting, mended, kept = (list[KnownTrouble]() for _ in range(4))
    before = {one.trouble.name: one for one in known}
    for name, trouble in standing.items():
        one = before.get(name)
        one = KnownTrouble(trouble, now) if one is None else replace(one, trouble=trouble, mended_at=None)
        told_by_log = trouble.is_mail
        if (may_tell or told_by_log) and _is_due(one, now):
            (lasting if one.told_at else begun).append(one)
            one = replace(one, told_at=now)
        kept.append(one)
    for name, one in before.items():
        if name in standing:
            continue
        if not is_sure(name) and one.mended_at is None:
            kept.append(one)
        elif one.told_at is None:
            continue  # nobody was told that it began
        elif may_tell:
            mended.append(replace(one, mended_at=one.mended_at or now))
        else:
            kept.append(replace(one, mended_at=one.mended_at or now))
    return Look(tuple(kept), tuple(begun), tuple(lasting), tuple(mended))


def _is_due(one: KnownTrouble, now: datetime) -> bool:
    return one.told_at is None or one.told_at + REMIND_AFTER <= now
