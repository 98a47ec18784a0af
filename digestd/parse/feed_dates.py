"""Dates as feeds spell them. Floor 1, pure.

Entry point: :func:`read_date`.

``Tue, 20 Oct 2026 00:00:00 -0400`` | ``MON, 19 OCT 2026 09:17:10 -0400`` | ``2026-10-20T14:00:00.123456+00:00`` |
``2026-10-20`` | ``20 Oct 2026`` | ``0000-00-00`` and ``Wed, 99 Foo 99999`` are none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone

#: east of Greenwich it is tomorrow already, and clocks go wrong by hours; two days ahead is no slip of a zone any more
FAR_AHEAD = timedelta(hours=48)
#: before the first scientific journal a date is a placeholder
FIRST_YEAR = 1665

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_CLOCK = r"(?P<hour>\d{1,2}):(?P<minute>\d{2})(?::(?P<second>\d{2})(?:[.,]\d{1,9})?)?"
_ISO = re.compile(
    rf"(?P<year>\d{{4}})-(?P<month>\d{{1,2}})-(?P<day>\d{{1,2}})"
    rf"(?:[T ]\s*{_CLOCK}\s*(?P<zone>Z|UTC|GMT|[+-]\d{{2}}:?\d{{2}})?)?",
    re.ASCII | re.IGNORECASE,
)
_MAIL = re.compile(
    rf"(?:[a-z]{{3,9}}\.?,?\s+)?(?P<day>\d{{1,2}})[\s-]+(?P<name>[a-z]{{3}})[a-z]*\.?,?[\s-]+(?P<year>\d{{4}}|\d{{2}})"
    rf"(?:,?\s+{_CLOCK}\s*(?P<zone>[+-]\d{{4}}|[+-]\d{{2}}:\d{{2}}|[a-z]{{1,5}})?)?",
    re.ASCII | re.IGNORECASE,
)
#: RFC 5322 4.3, and the names that feeds use beside them; a name that means nothing is read as UTC
_ZONES = {"est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7, "mdt": -6, "pst": -8, "pdt": -7, "cet": 1, "cest": 2}
_ZONES |= {"bst": 1, "eet": 2, "eest": 3, "jst": 9, "et": -5}


@dataclass(frozen=True, slots=True)
class FeedDate:
    """When a paper was published, as far as a feed says so."""

    day: date | None = None  #: UTC
    at: datetime | None = None  #: UTC; None where the feed gives a day only
    fault: str = ""  #: why there is none: "no date", "impossible date '0000-00-00'"; "" if there is one


def read_date(text: str | None, seen_at: datetime | None, *, fallback: datetime | None = None) -> FeedDate:
    """Return the date that a text spells.

    Args:
        text: as the feed has it, None where it has none.
        seen_at: when the document was fetched; a date more than FAR_AHEAD after it is none. None takes every year.
        fallback: what another reader made of the text; taken where this one does not know the spelling.

    Source: RFC 3339 5.6 (Atom, Dublin Core), RFC 822 5.1 and RFC 5322 4.3 (RSS).
    """
    if text is None or not text.strip():
        return FeedDate(fault="no date")
    spelt = " ".join(text.split())[:80]
    match = _ISO.fullmatch(spelt) or _MAIL.fullmatch(spelt)
    if match is None:
        if fallback is None or re.fullmatch(r"[\s0:./TZ+-]*", spelt):
            return FeedDate(fault=f"impossible date {spelt[:40]!r}")
        return _within(FeedDate(fallback.date(), fallback), seen_at, spelt)
    try:
        found = _build(match)
    except (ValueError, OverflowError):
        return FeedDate(fault=f"impossible date {spelt[:40]!r}")
    return _within(found, seen_at, spelt)


def _build(match: re.Match[str]) -> FeedDate:
    """Return the date of the parts; ValueError where they make none."""
    parts = match.groupdict()
    year = int(parts["year"])
    if len(parts["year"]) == 2:  # RFC 5322 4.3: two digits up to 49 are this century's
        year += 2000 if year < 50 else 1900
    month = _MONTHS.index(parts["name"].lower()) + 1 if parts.get("name") else int(parts["month"])
    day = date(year, month, int(parts["day"]))
    if parts["hour"] is None:
        return FeedDate(day)
    hour, minute, second = int(parts["hour"]), int(parts["minute"]), min(int(parts["second"] or 0), 59)
    extra = timedelta(days=1) if (hour, minute) == (24, 0) else timedelta(0)
    local = datetime(year, month, day.day, hour % 24 if extra else hour, minute, second, tzinfo=_zone(parts["zone"]))
    at = (local + extra).astimezone(UTC)
    return FeedDate(at.date(), at)


def _zone(name: str | None) -> timezone:
    if name and name[0] in "+-":
        offset = timedelta(hours=int(name[1:3]), minutes=int(name[-2:]))
        return timezone(-offset if name[0] == "-" else offset)
    return timezone(timedelta(hours=_ZONES.get((name or "").lower(), 0)))


def _within(found: FeedDate, seen_at: datetime | None, spelt: str) -> FeedDate:
    """Return the date if a paper can have it, else none with the reason."""
    if found.day is None or found.day.year < FIRST_YEAR:
        return FeedDate(fault=f"impossible date {spelt[:40]!r}")
    if seen_at is not None:
        at = found.at or datetime(found.day.year, found.day.month, found.day.day, tzinfo=UTC)
        if at > seen_at + FAR_AHEAD:
            return FeedDate(fault=f"date in the far future {spelt[:40]!r}")
    return found
