"""Listing pages of invented papers with dates and counts as a test wants them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import date, datetime, timedelta

from digestd.flows.ingest import IngestOptions, ingest_document
from digestd.model.snapshot import Document, SnapshotRecord
from digestd.store import SqlStore

#: what the page states where a test does not care
STATED = "9 papers in the last four weeks, up 12% on the four weeks before. 0.1% of all new papers."


def listing(topic: str, days: Iterable[date], *, total: int = 5000, stated: str = STATED) -> str:
    """Return a listing page with one paper for each date, newest first; the same dates give the same papers."""
    blocks = [
        topic,
        "Follow this topic Ask about this topic",
        "Momentum",
        stated,
        "Jul 13Week of Sep 28",
        f"Latest papers {total}",
    ]
    seen: dict[date, int] = {}
    for day in sorted(days, reverse=True):
        seen[day] = number = seen.get(day, 0) + 1
        blocks += [
            f"{day:%b} {day.day}, {day.year}cs.SD",
            f"{_word(day, number)} Observed in {topic}",
            f"We look at {_word(day, number).lower()} for a season. The outcome differs from what was assumed.",
            f"Ana {_word(day, number)}, Bo Ek +2",
            "Harbour University",
            topic,
        ]
    return "\n\n".join(blocks) + "\n"


def _word(day: date, number: int) -> str:
    """Return a word of its own for each paper: titles that differ in a digit only would be too much alike."""
    left, letters = day.toordinal() * 1000 + number, ""
    while left:
        left, rest = divmod(left, 40)
        letters += "BDFGKLMNPR"[rest // 4] + "aeiu"[rest % 4]
    return letters.capitalize()


def spread(last: date, count: int, *, oldest: int = 27, newest: int = 0) -> list[date]:
    """Return so many dates, evenly over the days that lie ``newest`` to ``oldest`` days before ``last``."""
    return [last - timedelta(days=newest + place * (oldest - newest) // max(count - 1, 1)) for place in range(count)]


def two_months(last: date, current: int, previous: int) -> list[date]:
    """Return dates of the last 28 days, of the 28 days before, and one older, so that the eight weeks are covered."""
    return [
        *spread(last, current),
        *spread(last, previous, oldest=55, newest=28),
        last - timedelta(days=70),
    ]


def read_in(store: SqlStore, page: str, *, now: datetime, topic: str | None = None) -> SnapshotRecord:
    """Read a page into the history."""
    return ingest_document(store, Document(page.encode(), fetched_at=now), IngestOptions(now=now, topic=topic))


def weekly_counts(days: Sequence[date], mondays: Sequence[date]) -> list[int]:
    """Return how many of the dates lie in each week."""
    return [sum(monday <= day < monday + timedelta(days=7) for day in days) for monday in mondays]
