"""What a page states of its topic's momentum, and nothing guessed."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.model.snapshot import StatedMomentum
from digestd.parse.momentum_line import ChartLine, date_chart, read_chart, read_momentum

_FOUR = "in the last four weeks"
_BEFORE = "on the four weeks before"


def _stated(sentence: str, count: int, **fields: object) -> StatedMomentum:
    return StatedMomentum(count, sentence=sentence, **fields)  # type: ignore[arg-type]  # any field of it


@pytest.mark.parametrize(
    ("sentence", "count", "fields"),
    [
        (
            f"14 papers {_FOUR}, up 40% {_BEFORE}. 0.1% of all new papers.",
            14,
            {"change_percent": 40, "share_percent": 0.1},
        ),
        (
            f"41 papers {_FOUR}, down 12% {_BEFORE}. 0.4% of all new papers.",
            41,
            {"change_percent": -12, "share_percent": 0.4},
        ),
        (f"7 papers {_FOUR}, up from none {_BEFORE}.", 7, {"previous_papers": 0}),
        (f"7 papers {_FOUR}, up from 22 {_BEFORE}.", 7, {"previous_papers": 22}),
        (f"3 papers {_FOUR}, down from 1,204 {_BEFORE}.", 3, {"previous_papers": 1204}),
        (
            f"18 papers {_FOUR}, unchanged {_BEFORE}. 0.2% of all new papers.",
            18,
            {"change_percent": 0, "share_percent": 0.2},
        ),
        (f"1 paper {_FOUR}. Under 0.1% of all new papers.", 1, {"share_percent": 0.1, "share_below": True}),
        (
            f"1 paper {_FOUR}, down 50%. <0.1% of all new papers",
            1,
            {"change_percent": -50, "share_percent": 0.1, "share_below": True},
        ),
        (
            f"1,204 papers {_FOUR}, up 1,145% {_BEFORE}. 12.5% of all new papers.",
            1204,
            {"change_percent": 1145, "share_percent": 12.5},
        ),
        (f"No papers {_FOUR}, down 100% {_BEFORE}.", 0, {"change_percent": -100}),
        ("9 papers in the past 28 days (+12%)", 9, {"change_percent": 12}),
        ("9 papers in the last 4 weeks, \u221212%", 9, {"change_percent": -12}),
        (f"9 papers {_FOUR}, twice the four before.", 9, {}),
        (f"9 papers {_FOUR}, up 12.5% {_BEFORE}.", 9, {}),
        (f"9 papers {_FOUR}. 0.5% of all new papers.", 9, {"share_percent": 0.5}),
    ],
)
def test_read_momentum_takes_what_is_printed(sentence: str, count: int, fields: dict[str, object]) -> None:
    """Count, signed change, previous count and share as printed; what is not printed is None."""
    assert _stated(sentence, count, **fields) == read_momentum(sentence)


@pytest.mark.parametrize(
    "sentence", ["", "Momentum", "up 145% on the four weeks before", "papers in the last four weeks", "x" * 5000]
)
def test_read_momentum_needs_a_count(sentence: str) -> None:
    """A sentence without a number of papers states nothing."""
    assert read_momentum(sentence) is None


@given(st.text(max_size=200))
@settings(max_examples=200)
def test_read_momentum_survives_any_text(text: str) -> None:
    """Whatever follows the count, nothing raises and the count stands."""
    found = read_momentum(f"14 papers {_FOUR}{text}")
    assert found is None or found.papers_last_four_weeks == 14


@pytest.mark.parametrize(
    ("line", "chart"),
    [
        ("Aug 3Week of Oct 19", ChartLine((8, 3), (10, 19))),
        ("Aug 3 Week of Oct 19", ChartLine((8, 3), (10, 19))),
        ("August 3Week of October 19", ChartLine((8, 3), (10, 19))),
        ("Foo 3Week of Oct 19", None),
        ("Aug 3", None),
        ("Aug 3Week of Oct 19, 2026", None),
    ],
)
def test_read_chart_reads_two_weeks(line: str, chart: ChartLine | None) -> None:
    """Both ends of the chart, without a year."""
    assert chart == read_chart(line)


_CHART = ChartLine((8, 3), (10, 19))


@pytest.mark.parametrize(
    ("fetched_on", "newest"),
    [
        (date(2026, 10, 21), date(2026, 10, 20)),
        (date(2026, 10, 21), None),
        (None, date(2026, 10, 20)),  # the newest paper lies in the chart's last week
        (None, date(2026, 10, 25)),
        (None, date(2026, 3, 1)),  # a page deep in the listing
        (date(2028, 10, 21), date(2026, 10, 20)),  # an old file fetched late: Oct 19, 2028 is a Thursday
    ],
)
def test_date_chart_finds_the_year(fetched_on: date | None, newest: date | None) -> None:
    """The year comes from the day of fetching, else from the newest paper."""
    assert (date(2026, 8, 3), date(2026, 10, 19)) == date_chart(_CHART, fetched_on=fetched_on, newest=newest)


def test_date_chart_crosses_new_year() -> None:
    """A chart that begins in autumn and ends in winter spans two years."""
    chart = ChartLine((10, 26), (1, 11))
    assert (date(2026, 10, 26), date(2027, 1, 11)) == date_chart(chart, fetched_on=date(2027, 1, 12), newest=None)


@pytest.mark.parametrize(
    ("chart", "fetched_on", "newest"),
    [
        (_CHART, None, None),
        (ChartLine((8, 3), (10, 20)), date(2026, 10, 21), date(2026, 10, 20)),
        (ChartLine((8, 3), (2, 30)), date(2026, 10, 21), date(2026, 10, 20)),
        (_CHART, None, date.max),
        (_CHART, None, date.min),
    ],
)
def test_date_chart_drops_what_is_no_monday(chart: ChartLine, fetched_on: date | None, newest: date | None) -> None:
    """A week that begins on no Monday, or whose year can't be known, is no date."""
    first, last = date_chart(chart, fetched_on=fetched_on, newest=newest)
    assert last is None or last.weekday() == 0
    assert first is None or last is not None


def test_date_chart_keeps_the_end_without_the_beginning() -> None:
    """A first week that is no Monday is left out, the last one stays."""
    chart = ChartLine((8, 4), (10, 19))
    assert (None, date(2026, 10, 19)) == date_chart(chart, fetched_on=date(2026, 10, 21), newest=None)
