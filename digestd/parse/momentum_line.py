"""The head of a topic page that says how the topic moves. Floor 1, pure.

    54 papers in the last four weeks, up 145% on the four weeks before. 0.5% of all new papers.
    Jul 13Week of Sep 28

Entry points: :func:`read_momentum` for the sentence, :func:`read_chart` for the line below it. Only what is printed is
taken over; a wording that is not understood gives None for its part, never a guess.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date, timedelta

from digestd.model.snapshot import StatedMomentum
from digestd.parse.fields import make_date, month_number, read_number

_NUMBER = r"\d{1,3}(?:[,.\u2019' ]\d{3}){1,4}|\d{1,12}"
_COUNT = re.compile(
    rf"\b({_NUMBER}|no|one) (?:new )?papers? (?:in|over|during) the (?:last|past) (?:four weeks|4 weeks|28 days)",
    re.IGNORECASE,
)
_PERCENT = re.compile(rf"\b(up|down)(?: by)? ({_NUMBER}) ?%|(?<![\w.])([+\u2212-])({_NUMBER}) ?%", re.IGNORECASE)
_PREVIOUS = re.compile(rf"\b(?:up|down) from ({_NUMBER}|none|no papers|zero|one)\b(?! ?%)", re.IGNORECASE)
_UNCHANGED = re.compile(r"\b(?:unchanged|no change|flat|level|steady|the same)\b", re.IGNORECASE)
_SHARE = re.compile(
    r"((?:under|below|less than|fewer than|<) ?)?(?<![\d.,])(\d{1,3}(?:[.,]\d{1,4})?) ?% of all (?:new )?papers",
    re.IGNORECASE,
)
_CHART = re.compile(r"([A-Za-z]{3,9})\.? (\d{1,2}) ?(?:[\u2013-] ?)?Week of ([A-Za-z]{3,9})\.? (\d{1,2})")
_WORDS = {"none": 0, "no": 0, "no papers": 0, "zero": 0, "one": 1}


@dataclass(frozen=True, slots=True)
class ChartLine:
    """First and last week of a chart as printed: (month, day), no year."""

    first: tuple[int, int]
    last: tuple[int, int]


def read_momentum(sentence: str) -> StatedMomentum | None:
    """Return what the sentence states, None if it names no number of papers.

    Args:
        sentence: folded, one line; chart dates are added by the caller.

    Source: seeds/000 line 9 for "up"; the other wordings ("up from none", "down 12%", "unchanged", "Under 0.1%") are variants.
    """
    found = _COUNT.search(sentence) if len(sentence) <= 1_000 else None
    count = _count(found[1]) if found else None
    if found is None or count is None:
        return None
    rest = sentence[found.end() :]
    share = _SHARE.search(rest)
    change_percent, previous = _read_change(rest[: share.start()] if share else rest)
    return StatedMomentum(
        papers_last_four_weeks=count,
        change_percent=change_percent,
        previous_papers=previous,
        share_percent=float(share[2].replace(",", ".")) if share else None,
        share_below=bool(share and share[1]),
        sentence=sentence,
    )


def _count(text: str) -> int | None:
    word = _WORDS.get(text.lower())
    return read_number(text) if word is None else word


def _read_change(text: str) -> tuple[int | None, int | None]:
    """Return (signed percent, previous count), each None where it is not printed."""
    if found := _PREVIOUS.search(text):
        return None, _count(found[1])
    if found := _PERCENT.search(text):
        percent = read_number(found[2] or found[4])
        falls = (found[1] or "").lower() == "down" or found[3] in ("-", "\u2212")
        return (-percent if falls else percent) if percent is not None else None, None
    return (0 if _UNCHANGED.search(text) else None), None


def read_chart(line: str) -> ChartLine | None:
    """Return the weeks of "Jul 13Week of Sep 28", None if the line is no such thing."""
    found = _CHART.fullmatch(line) if len(line) <= 60 else None
    if found is None:
        return None
    first, last = month_number(found[1]), month_number(found[3])
    if first is None or last is None:
        return None
    return ChartLine((first, int(found[2])), (last, int(found[4])))


def date_chart(chart: ChartLine, *, fetched_on: date | None, newest: date | None) -> tuple[date | None, date | None]:
    """Return the Mondays of the chart's first and last week; None for what can't be one.

    The year is not printed. It is the one next to the day of fetching; without that, or if it gives no Monday, the week is
    the first one that does not end before the newest paper (a page deep in the listing has old papers only).

    Args:
        chart: as printed.
        fetched_on: day of fetching, None if unknown.
        newest: newest published date of the page, None if it has none.

    Source: truth notes, "Chart" and "As-of date".
    """
    last = _nearest(chart.last, fetched_on) if fetched_on else None
    if (last is None or last.weekday() != 0) and newest:
        last = _first_after(chart.last, newest - timedelta(days=6)) if newest.toordinal() > 6 else None
    if last is None or last.weekday() != 0:
        return None, None
    first = make_date(last.year, *chart.first)
    if first is None or first > last:
        first = make_date(last.year - 1, *chart.first)
    return (first if first is not None and first.weekday() == 0 else None), last


def _nearest(day: tuple[int, int], to: date) -> date | None:
    dates = [found for year in (to.year - 1, to.year, to.year + 1) if (found := make_date(year, *day))]
    return min(dates, key=lambda found: abs((found - to).days), default=None)


def _first_after(day: tuple[int, int], start: date) -> date | None:
    dates = [found for year in (start.year, start.year + 1) if (found := make_date(year, *day))]
    return next((found for found in dates if found >= start), None)
