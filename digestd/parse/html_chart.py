"""The numbers behind a page's drawn chart, where the page gives them away. Floor 1, pure. Entry point: :func:`weekly_of`.

    <svg aria-label="Papers a week, Jul 13 to Sep 28: 3, 4, 2, 6, 5, 7, 9, 8, 12, 11, 14, 17">

A chart is read only if the whole page has one reading of it: twelve whole numbers, the same ones wherever they stand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lxml import etree

from digestd.parse.fields import read_number
from digestd.parse.html_tree import tag_of, text_content

WEEKS = 12

_RUN = re.compile(r"(?<![\d.,-])\d{1,6}(?:\s{0,3}[,;|\s]\s{0,3}\d{1,6}){11}(?![\d.,;|]*\d)", re.ASCII)
_BAR = re.compile(
    r"(?:[Ww]eek (?:of|from) .{3,20}?|[A-Z][a-z]{2,8}\.? \d{1,2}(?:, \d{4})?)\s*[:–—-]\s*(\d[\d,]{0,8})(?: papers?)?\.?"
)
_CHART_DATA = ("data-weekly", "data-weeks", "data-values", "data-counts", "data-series", "data-points", "data-chart")
_BAR_DATA = ("data-count", "data-value", "data-papers")
_MAX_TEXT = 400


def weekly_of(root: etree._Element) -> tuple[int, ...]:
    """Return the papers of each of the chart's twelve weeks, oldest first; empty if they are not there beyond doubt."""
    found = set(_readings(root))
    return found.pop() if len(found) == 1 else ()


def is_week_table(element: etree._Element) -> bool:
    """Whether an element is a table of the chart's weeks."""
    return tag_of(element) == "table" and any(True for _ in _table(element))


def _readings(root: etree._Element) -> Iterator[tuple[int, ...]]:
    """Yield every reading of a chart on the page."""
    for element in root.iter("*"):
        tag = tag_of(element)
        for text in _texts(element, tag):
            runs = _RUN.findall(text) if len(text) <= _MAX_TEXT else []
            if len(runs) == 1:
                yield tuple(int(number) for number in re.findall(r"\d+", runs[0]))
        if tag in ("svg", "ol", "ul", "figure", "g") or element.get("role") == "img":
            yield from _bars(element)
        elif tag == "table":
            yield from _table(element)


def _texts(element: etree._Element, tag: str) -> Iterator[str]:
    """Yield the texts in which a page may tell the numbers of a chart."""
    for key in _CHART_DATA:
        yield element.get(key) or ""
    if tag in ("svg", "img", "canvas", "figure", "g") or element.get("role") == "img":
        yield element.get("aria-label") or ""
    if tag in ("title", "desc") and any(tag_of(one) == "svg" for one in element.iterancestors()):
        yield text_content(element)


def _bars(chart: etree._Element) -> Iterator[tuple[int, ...]]:
    """Yield the reading of a chart whose bars, and nothing else, each tell their number."""
    numbers: list[int] = []
    for place, bar in enumerate(chart.iterdescendants()):
        if place > 200:
            return
        number = _bar_number(bar)
        if number is not None:
            numbers.append(number)
    if len(numbers) == WEEKS:
        yield tuple(numbers)


def _bar_number(bar: etree._Element) -> int | None:
    """Return the number that one bar of a chart tells; None if it tells none."""
    for key in _BAR_DATA:
        if (number := read_number(bar.get(key) or "")) is not None:
            return number
    told = text_content(bar) if tag_of(bar) == "title" else bar.get("aria-label") or ""
    found = _BAR.fullmatch(told) if len(told) <= 80 else None
    return read_number(found[1]) if found else None


def _table(table: etree._Element) -> Iterator[tuple[int, ...]]:
    """Yield the reading of a table of weeks: twelve rows that each begin with a week and end with a number."""
    numbers: list[int] = []
    for place, row in enumerate(table.iter("tr")):
        if place > 40:
            return
        cells = [text_content(cell) for cell in row if tag_of(cell) in ("td", "th")]
        number = read_number(cells[-1]) if len(cells) == 2 else None
        if number is not None and re.search(r"\d", cells[0]):
            numbers.append(number)
    if len(numbers) == WEEKS:
        yield tuple(numbers)
