"""Dates, numbers, names and institutions of a block."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.parse.archives import is_category
from digestd.parse.fields import (
    DateLine,
    read_date_line,
    read_month_day,
    read_number,
    split_affiliations,
    split_authors,
    split_more,
)

_DAY = date(2026, 6, 6)


@pytest.mark.parametrize(
    ("line", "categories"),
    [
        ("Jun 6, 2026cs.AI", ("cs.AI",)),
        ("Jun 6, 2026quant-ph", ("quant-ph",)),
        ("Jun 6, 2026hep-th", ("hep-th",)),
        ("Jun 6, 2026cond-mat.mtrl-sci", ("cond-mat.mtrl-sci",)),
        ("Jun 6, 2026astro-ph.CO", ("astro-ph.CO",)),
        ("Jun 6, 2026math.AG", ("math.AG",)),
        ("Jun 6, 2026econ.EM", ("econ.EM",)),
        ("Jun 6, 2026q-bio.NC", ("q-bio.NC",)),
        ("Jun 6, 2026physics.ao-ph", ("physics.ao-ph",)),
        ("Jun 6, 2026", ()),
        ("June 6, 2026cs.AI", ("cs.AI",)),
        ("Jun 06, 2026 cs.AI cs.LG", ("cs.AI", "cs.LG")),
        ("Jun 6, 2026 · cs.AI", ("cs.AI",)),
        ("JUN 6, 2026cs.AI", ("cs.AI",)),
        ("6 Jun 2026cs.AI", ("cs.AI",)),
        ("2026-06-06cs.AI", ("cs.AI",)),
        ("Jun 6, 2026Robotics", ("Robotics",)),
    ],
)
def test_read_date_line_reads_every_shape(line: str, categories: tuple[str, ...]) -> None:
    """Date and category come apart whether glued, spaced or alone."""
    found = read_date_line(line)

    assert found is not None
    assert (_DAY, categories) == (found.published, found.categories)


@pytest.mark.parametrize(
    "line", ["Feb 30, 2026cs.AI", "Jan 0, 2026", "Sep 31, 2026cs.AI", "Jun 6, 0000cs.AI", "0000-00-00"]
)
def test_read_date_line_keeps_impossible_dates_as_lines(line: str) -> None:
    """A day that no calendar has begins a block and gives no date."""
    found = read_date_line(line)

    assert found is not None
    assert found.published is None
    assert line.startswith(found.printed)


def test_read_date_line_takes_a_category_alone() -> None:
    """A paper without a date begins at its category."""
    assert DateLine(None, ("hep-th",), "") == read_date_line("hep-th")


@pytest.mark.parametrize(
    "line",
    [
        "",
        "Jul 13Week of Sep 28",
        "May 5, 2024: A Day at the Reef",
        "May the tide be with you, 2026",
        "Jun 6, 2026 A Title Begins Here",
        "Jun 6, 20261cs.AI",
        "Marching 6, 2026cs.AI",
        "2 Fast Robots",
        "cs",
        "Jun 6, 2026cs.AI " + "x" * 100,
    ],
)
def test_read_date_line_refuses_other_lines(line: str) -> None:
    """Chart lines, titles and sentences begin no block."""
    assert read_date_line(line) is None


@given(st.dates(min_value=date(1000, 1, 1)))
@settings(max_examples=200)
def test_read_date_line_reads_every_day(day: date) -> None:
    """Every day of the calendar is read back, from short and full month names."""
    for name in ("%b", "%B"):
        found = read_date_line(f"{day.strftime(name)} {day.day}, {day.year}cs.LG")
        assert DateLine(day, ("cs.LG",), f"{day.strftime(name)} {day.day}, {day.year}") == found


@given(st.text(max_size=100))
@settings(max_examples=300)
def test_fields_survive_any_text(text: str) -> None:
    """No text makes a field's reader raise."""
    read_date_line(text)
    read_number(text)
    read_month_day(text)
    split_authors(text)
    split_affiliations(text)


@pytest.mark.parametrize(
    ("text", "known"), [("cs.AI", True), ("cs", False), ("stat.ML", True), ("math-ph", True), ("foo.AI", False)]
)
def test_is_category_knows_archives(text: str, *, known: bool) -> None:
    """Archives of today with a class, and those that have none."""
    assert known == is_category(text)


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("354", 354),
        ("12,480", 12480),
        ("1 204", 1204),
        ("1.204.000", 1204000),
        ("1,20", None),
        ("", None),
        ("9" * 5000, None),
    ],
)
def test_read_number_takes_thousands_separators(text: str, number: int | None) -> None:
    """Separators stand before groups of three, anything else is no count."""
    assert number == read_number(text)


@pytest.mark.parametrize(
    ("text", "day"), [("Sep 28", (9, 28)), ("September 3", (9, 3)), ("Foo 3", None), ("Sep", None)]
)
def test_read_month_day_reads_dates_without_year(text: str, day: tuple[int, int] | None) -> None:
    """Weeks of a chart have a month and a day."""
    assert day == read_month_day(text)


@pytest.mark.parametrize(
    ("text", "row", "more"),
    [
        ("Ana Lima +4", "Ana Lima", 4),
        ("Ana Lima +1,012", "Ana Lima", 1012),
        ("Reef Robots+1", "Reef Robots", 1),
        ("C++", "C++", 0),
        ("Kelp + Reef", "Kelp + Reef", 0),
        ("Reef+", "Reef+", 0),
        ("", "", 0),
    ],
)
def test_split_more_takes_the_printed_count(text: str, row: str, more: int) -> None:
    """Only a number at the very end is a count."""
    assert (row, more) == split_more(text)


@pytest.mark.parametrize(
    ("row", "names", "more"),
    [
        ("Ana Lima, Bo Berg, Cy Dar +10", ("Ana Lima", "Bo Berg", "Cy Dar"), 10),
        ("Ana Lima", ("Ana Lima",), 0),
        ("Sam Reed, Jr., Ana Lima", ("Sam Reed, Jr.", "Ana Lima"), 0),
        ("Ana Lima and Bo Berg", ("Ana Lima", "Bo Berg"), 0),
        ("Ana Lima, Bo Berg, and Cy Dar", ("Ana Lima", "Bo Berg", "Cy Dar"), 0),
        ("Lima, Ana; Berg, Bo", ("Lima, Ana", "Berg, Bo"), 0),
        ("Ana Lima, et al.", ("Ana Lima",), 0),
        ("", (), 0),
    ],
)
def test_split_authors_keeps_names_as_displayed(row: str, names: tuple[str, ...], more: int) -> None:
    """Names come apart at commas and stay as they are written."""
    assert (names, more) == split_authors(row)


@pytest.mark.parametrize(
    ("row", "names", "more"),
    [
        (
            "1Lagoon Institute · 2Harbour Labs, Inc. · †Equal contribution.",
            ("Lagoon Institute", "Harbour Labs, Inc."),
            0,
        ),
        ("Lagoon Institute · 2O2 Acoustics.", ("Lagoon Institute", "O2 Acoustics"), 0),
        ("1Lagoon Institute", ("Lagoon Institute",), 0),
        ("4Reefs · Tidewater , Oslo", ("4Reefs", "Tidewater, Oslo"), 0),
        ("1st Harbour Hospital · Oslo · 3M", ("1st Harbour Hospital", "Oslo", "3M"), 0),
        ("Lagoon Institute · †Corresponding author. · et al. +3", ("Lagoon Institute",), 3),
        ("Oslo · Work done during internship at Harbour Labs", ("Oslo",), 0),
        ("Oslo · ana@example.org", ("Oslo",), 0),
        (
            "Kerr Statistics Ltd. · Tide GmbH & Co. · Univ. of A.B.",
            ("Kerr Statistics Ltd.", "Tide GmbH & Co.", "Univ. of A.B."),
            0,
        ),
        ("‡Oslo University", ("Oslo University",), 0),
        ("School of Tides, Oslo 117417", ("School of Tides, Oslo 117417",), 0),
        ("", (), 0),
    ],
)
def test_split_affiliations_cleans_marks_only(row: str, names: tuple[str, ...], more: int) -> None:
    """Footnote numbers that equal the place, footnotes and a final full stop go; names stay."""
    assert (names, more) == split_affiliations(row)
