"""The lines above the papers of a listing: topic, gloss, momentum, total. Floor 1, pure.

Entry points: :func:`read_head`, :func:`date_momentum`. The lines are known by what they say, not by their place, because
each of them may be missing, and a paragraph of another format may hold half of one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

from digestd.model.snapshot import StatedMomentum
from digestd.parse.fields import read_month_day, read_number
from digestd.parse.momentum_line import ChartLine, date_chart, read_chart, read_momentum

#: a head of more lines is none: the page was cut at its front, or is something else
_MAX_LINES = 60
_MAX_TOPIC = 200

_TOTAL = re.compile(r"Latest papers? ?[:(]? ?([\d.,\u2019' ]{1,20})\)?", re.IGNORECASE)
_TOTAL_WORD = re.compile(r"Latest papers?:?", re.IGNORECASE)
_NO_PAPERS = re.compile(r"No papers(?: yet| found)?\.?", re.IGNORECASE)
_GLOSS = re.compile(r"[^\s:]{1,30}(?: [^\s:]{1,30}){0,3}: \S.*")
_BUTTONS = ("follow this topic", "ask about this topic", "following this topic", "unfollow this topic")


@dataclass(frozen=True, slots=True)
class Head:
    """What stands above the papers."""

    topic: str | None = None
    gloss: str | None = None
    momentum: StatedMomentum | None = None  #: chart not yet dated
    chart: ChartLine | None = None
    chart_line: int | None = None  #: 1-based line of the chart
    total: int | None = None
    recognised: bool = False  #: whether a line was there that only such heads have
    warnings: tuple[str, ...] = ()


def read_head(lines: Sequence[tuple[str, int]], tag_lines: Sequence[str]) -> Head:
    """Return what the lines above the first paper say.

    Args:
        lines: (folded text, 1-based line) in order, may be empty.
        tag_lines: last lines of the papers below: a first line that none of them holds is no topic, unless the head has
            other lines that only heads have.
    """
    lines = lines[:_MAX_LINES]
    marked = {place: kind for place, (text, _) in enumerate(lines) if (kind := _kind(text))}
    first = min(marked, default=len(lines))
    topic = lines[0][0] if lines and first > 0 and len(lines[0][0]) <= _MAX_TOPIC else None
    if topic and not marked and not any(f" {topic} " in f" {row.split('+')[0]} " for row in tag_lines):
        topic = None
    gloss = "; ".join(text for text, _ in lines[1:first] if _GLOSS.fullmatch(text) and len(text) <= _MAX_TOPIC) or None
    head = Head(topic=topic, gloss=gloss if topic else None, recognised=bool(marked))
    warnings: list[str] = []
    if topic is None:
        warnings.append("line 1: no topic found above the papers")
    head = _read_momentum(head, lines, marked, warnings)
    return replace(head, total=_read_total(lines, marked), warnings=tuple(warnings))


def _kind(text: str) -> str:
    """Return what a line of a head is, "" for topic, gloss and lines that are not known."""
    lowered = text.lower()
    if lowered.startswith(_BUTTONS):
        return "buttons"
    if lowered == "momentum":
        return "momentum"
    if len(text) <= 1_000 and read_momentum(text):
        return "sentence"
    if read_chart(text) or lowered.startswith("week of "):
        return "chart"
    if len(text) <= 60 and (_TOTAL.fullmatch(text) or _TOTAL_WORD.fullmatch(text)):
        return "total"
    return "none" if _NO_PAPERS.fullmatch(text) else ""


def _read_momentum(head: Head, lines: Sequence[tuple[str, int]], marked: dict[int, str], warnings: list[str]) -> Head:
    """Return the head with sentence and chart."""
    kinds = {kind: place for place, kind in reversed(marked.items())}
    if (place := kinds.get("chart")) is not None:
        text, number = lines[place]
        chart = read_chart(text)
        if chart is None and place and read_month_day(lines[place - 1][0]):
            chart = read_chart(f"{lines[place - 1][0]} {text}")  # the two ends in paragraphs of their own
        head = replace(head, chart=chart, chart_line=number)
    place = kinds.get("sentence")
    if place is not None:
        # the sentence about the share may be a paragraph of its own
        following = lines[place + 1][0] if place + 1 < len(lines) else ""
        text = f"{lines[place][0]} {following}" if "of all" in following else lines[place][0]
        return replace(head, momentum=read_momentum(text))
    if (place := kinds.get("momentum")) is not None and place + 1 < len(lines) and place + 1 not in marked:
        warnings.append(f"line {lines[place + 1][1]}: momentum left out, found {lines[place + 1][0][:80]!r}")
    return head


def _read_total(lines: Sequence[tuple[str, int]], marked: dict[int, str]) -> int | None:
    """Return the number of papers that the listing says it has."""
    for place, kind in marked.items():
        text = lines[place][0]
        if kind == "none":
            return 0
        if kind == "total":
            found = _TOTAL.fullmatch(text)
            if found:
                return read_number(found[1].strip(" .,"))
            return read_number(lines[place + 1][0]) if place + 1 < len(lines) else None
    return None


def date_momentum(
    head: Head, *, fetched_on: date | None, newest: date | None
) -> tuple[StatedMomentum | None, tuple[str, ...]]:
    """Return the stated momentum with the Mondays of its chart, and warnings.

    Args:
        head: as read.
        fetched_on: day of fetching, None if unknown.
        newest: newest published date of the page, None if it has none.
    """
    if head.momentum is None or head.chart is None:
        return head.momentum, ()
    first, last = date_chart(head.chart, fetched_on=fetched_on, newest=newest)
    momentum = replace(head.momentum, chart_from=first, chart_to=last)
    if first is None or last is None:
        return momentum, (f"line {head.chart_line}: chart weeks left out, expected Mondays of a known year",)
    return momentum, ()
