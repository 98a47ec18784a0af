"""The lines above the papers, in whole or in paragraphs of their own."""

from __future__ import annotations

from datetime import date

from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.model.snapshot import StatedMomentum
from digestd.parse.listing_head import Head, date_momentum, read_head
from digestd.parse.momentum_line import ChartLine

SENTENCE = "9 papers in the last four weeks, down 10% on the four weeks before."


def _read(*lines: str, tags: tuple[str, ...] = ()) -> Head:
    return read_head([(text, number) for number, text in enumerate(lines, 1)], tags)


def test_read_head_joins_lines_that_were_split() -> None:
    """Chart, share and total may each be two paragraphs."""
    head = _read(
        "Kelp",
        "Momentum",
        SENTENCE,
        "Under 0.1% of all new papers.",
        "Aug 3",
        "Week of Oct 19",
        "Latest papers",
        "1,260",
    )

    assert head.momentum == StatedMomentum(
        9, -10, None, 0.1, share_below=True, sentence=f"{SENTENCE} Under 0.1% of all new papers."
    )
    assert (ChartLine((8, 3), (10, 19)), 1260, "Kelp") == (head.chart, head.total, head.topic)


def test_read_head_joins_several_glosses() -> None:
    """Each abbreviation that is spelled out is part of the gloss; a description is not."""
    head = _read("Kelp", "AUV: Autonomous Vehicle", "All about kelp", "ROV: Remote Vehicle", "Follow this topic")
    assert "AUV: Autonomous Vehicle; ROV: Remote Vehicle" == head.gloss


def test_read_head_warns_of_a_momentum_it_cannot_read() -> None:
    """A sentence of another wording gives no momentum, and is named."""
    head = _read("Kelp", "Momentum", "Rising like the tide", "Latest papers 3")

    assert head.momentum is None
    assert ("line 3: momentum left out, found 'Rising like the tide'",) == head.warnings


def test_read_head_gives_no_count_for_what_is_none() -> None:
    """A total that is no number is None."""
    assert _read("Kelp", "Latest papers").total is None
    assert _read("Kelp", "Latest papers", "many").total is None
    assert 1 == _read("Kelp", "Latest paper 1").total


def test_read_head_finds_no_topic_in_the_tail_of_another_page() -> None:
    """Lines without a mark are no head, unless the papers are tagged with the first one."""
    assert _read("the end of an abstract.", "Ana Lima").topic is None
    assert "Kelp" == _read("Kelp", tags=("Reefs Kelp+1",)).topic
    assert _read("Momentum", SENTENCE).topic is None
    assert Head(warnings=("line 1: no topic found above the papers",)) == _read()


def test_date_momentum_dates_a_chart_and_leaves_the_rest() -> None:
    """The Mondays are filled in, and a head without chart or momentum stays as it is."""
    stated = StatedMomentum(9)
    chart = ChartLine((8, 3), (10, 19))
    dated = StatedMomentum(9, chart_from=date(2026, 8, 3), chart_to=date(2026, 10, 19))

    assert (dated, ()) == date_momentum(Head(momentum=stated, chart=chart), fetched_on=date(2026, 10, 20), newest=None)
    assert (stated, ()) == date_momentum(Head(momentum=stated), fetched_on=None, newest=None)
    assert (None, ()) == date_momentum(Head(chart=chart), fetched_on=None, newest=None)


@given(
    st.lists(
        st.text(min_size=1, max_size=40)
        | st.sampled_from(["Momentum", SENTENCE, "Week of Oct 19", "Latest papers", "Aug 3"])
    )
)
@settings(max_examples=300)
def test_read_head_survives_any_lines(lines: list[str]) -> None:
    """No lines in any order raise."""
    head = _read(*lines)
    assert head.total is None or head.total >= 0
