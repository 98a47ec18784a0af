"""Small wordings that mail, feeds and pages share: dates, counts, people, places, labels, short titles. Floor 1.

Each function cuts by the rules of look/DESIGN.md §9; titles are never cut, so there is none for them but ``short_title``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, timedelta

from digestd.model.digest import Section
from digestd.model.paper import Paper

NBSP = "\u00a0"
MINUS = "\u2212"
DASH = "\u2013"
ELLIPSIS = "\u2026"
DOT = " \u00b7 "

_NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_AFFILIATION_LIMIT = 60
_INSTITUTION = re.compile(
    r"universit|institut|academ|college|laborator|\blabs?\b|polytechni|hochschule|école|\beth\b|\bmit\b|hospital"
    r"|foundation|\binc\b|\bltd\b|\bcorp\b|\bgmbh\b|national cent|research cent",
    re.IGNORECASE,
)
_WHOLE = re.compile(r"universit|polytechni|hochschule|\beth\b|\bmit\b", re.IGNORECASE)


def number_word(number: int) -> str:
    """Return "no", "one" to "nine" in words, larger numbers in figures."""
    return _NUMBERS[number] if 0 <= number < len(_NUMBERS) else f"{number:,}"


def count_noun(number: int, one: str = "paper", many: str | None = None) -> str:
    """Return "1 paper", "1,204 papers", "no papers"."""
    noun = one if number == 1 else (many or f"{one}s")
    return f"{number:,} {noun}" if number else f"no {noun}"


def join_words(words: Sequence[str]) -> str:
    """Return "a", "a and b", "a, b and c"; "" for none."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} and {words[-1]}"


def cut_at_word(text: str, limit: int) -> str:
    """Return the text, or as many of its words as fit the limit with an ellipsis; a single longer word is broken."""
    if len(text) <= limit:
        return text
    head = text[: limit - 1]
    if not text[limit - 1].isspace() and " " in head.strip():
        head = head[: head.rindex(" ")]
    return head.rstrip(" ,;:.([{\u2013\u2014-") + ELLIPSIS


def day(when: date, *, beside: date | None = None) -> str:
    """Return "Sep 29", with the year where it is not that of ``beside``."""
    text = f"{_MONTHS[when.month - 1]} {when.day}"
    return text if beside is None or beside.year == when.year else f"{text}, {when.year}"


def full_day(when: date) -> str:
    """Return "Sep 29, 2026"."""
    return f"{day(when)}, {when.year}"


def weekday_day(when: date) -> str:
    """Return "Tue, Sep 29"."""
    return f"{_WEEKDAYS[when.weekday()]}, {day(when)}"


def date_range(since: date, until: date, *, year: bool = True) -> str:
    """Return "Sep 23-29, 2026" with an en dash, spaced between months: "Jun 28 - Jul 4, 2026".

    Args:
        since: first day.
        until: last day, the first one or later.
        year: whether to print the year; two different years are always printed.
    """
    if since.year != until.year:
        return f"{full_day(since)} {DASH} {full_day(until)}"
    tail = f", {until.year}" if year else ""
    if since == until:
        return day(until) + tail
    if since.month == until.month:
        return f"{day(since)}{DASH}{until.day}{tail}"
    return f"{day(since)} {DASH} {day(until)}{tail}"


def week_range(first_monday: date, weeks: int) -> str:
    """Return the Mondays of the first and the last week of a chart: "Jul 13 to Sep 28"."""
    last = first_monday + timedelta(weeks=max(weeks - 1, 0))
    both = first_monday.year != last.year
    return f"{full_day(first_monday)} to {full_day(last)}" if both else f"{day(first_monday)} to {day(last)}"


def with_more(text: str, more: int) -> str:
    """Return the text with "+13" behind a no-break space; untouched for none."""
    if more <= 0:
        return text
    return f"{text}{NBSP}+{more:,}" if text else f"+{more:,}"


def people(paper: Paper, limit: int = 3) -> str:
    """Return the first authors and how many more there are, the source's own +N included; "" if none are known.

    A collaboration without named authors stands for itself; beside named ones it comes last and is not cut.
    """
    if not paper.authors:
        return with_more(paper.group or "", paper.authors_more)
    line = with_more(", ".join(paper.authors[:limit]), paper.authors_more + max(0, len(paper.authors) - limit))
    return f"{line}, {paper.group}" if paper.group else line


def affiliation(text: str, limit: int = _AFFILIATION_LIMIT) -> str:
    """Return the institution of an affiliation: no leading "The", no department chain, cut at a word only if too long.

    Of parts between commas the last one that names a university is kept, else the last one that names another kind
    of institution, else the first; an affiliation that fits and has no chain stays whole.
    """
    text = text.strip().removeprefix("The ")
    if len(text) <= limit and text.count(",") < 2:
        return text
    parts = [part.strip().removeprefix("The ") for part in text.split(",") if part.strip()]
    named = [part for part in parts if _WHOLE.search(part)] or [part for part in parts if _INSTITUTION.search(part)]
    return cut_at_word(named[-1] if named else (parts or [text])[0], limit)


def affiliations(paper: Paper, limit: int = 1) -> str:
    """Return the first institutions and how many more there are (mail one, pages two); "" if none are known."""
    seen = list(dict.fromkeys(affiliation(text) for text in paper.affiliations))
    repeated = len(paper.affiliations) - len(seen)
    more = paper.affiliations_more + max(0, len(paper.affiliations) - limit - repeated)
    return with_more(", ".join(seen[:limit]), more) if seen else ""


def labels(
    paper: Paper, own: Sequence[str] = (), *, limit: int = 2, width: int | None = None
) -> tuple[tuple[str, ...], int]:
    """Return the labels to print and how many more there are.

    Args:
        paper: whose labels, the source's own +N included in the count.
        own: names left out: the topic itself and those of the "Also in" line.
        limit: labels at most; mail two, pages five.
        width: characters at most for "category, label, label" with three between each; the first label always stays.
    """
    folded = {name.casefold() for name in own}
    shown = [label for label in paper.topics if label.casefold() not in folded]
    kept: list[str] = []
    used = len(paper.categories[0]) if paper.categories else 0
    for label in shown[:limit]:
        used += len(label) + (len(DOT) if used else 0)
        if kept and width is not None and used > width:
            break
        kept.append(label)
    return tuple(kept), len(shown) - len(kept) + paper.topics_more


def label_line(paper: Paper, own: Sequence[str] = (), *, limit: int = 2, width: int | None = 46) -> str:
    """Return "cs.AI · LLM Tool Use · RL for Tool Use +1"; "" if neither category nor label is known."""
    kept, more = labels(paper, own, limit=limit, width=width)
    words = [*paper.categories[:1], *kept]
    return with_more(DOT.join(words), more) if words else ""


def short_title(title: str, limit: int = 60) -> str:
    """Return the short name before the colon, else the title, cut at a word if it is longer than the limit."""
    name, colon, rest = title.partition(": ")
    return cut_at_word(name if colon and rest.strip() and name.strip() else title, limit)


def new_papers(number: int, topics: int) -> str:
    """Return "20 new papers in 3 topics", "1 new paper in 1 topic", "No new papers in 3 topics"."""
    counted = f"{number:,} new {'paper' if number == 1 else 'papers'}" if number else "No new papers"
    return f"{counted} in {topics:,} {'topic' if topics == 1 else 'topics'}"


def section_counts(section: Section) -> str:
    """Return what became of a topic's new papers: "17 new, 12 shown", "5 new, 2 of them above"; "" for a quiet topic.

    Papers told before under another topic and those that the reader's filters hide are named, never silently left out.
    """
    parts: list[str] = []
    if section.new:
        parts.append(f"{section.new:,} new")
        if section.above:
            parts.append("all of them above" if section.above == section.new else f"{section.above:,} of them above")
        if section.told_before:
            parts.append(f"{section.told_before:,} told before under another topic")
        if section.rest:
            parts.append(f"{len(section.papers):,} shown")
    if section.hidden:
        parts.append(f"{section.hidden:,} hidden by your filters")
    return ", ".join(parts)
