"""What page templates print: order and words of the index, charts, cards, snippets, weeks."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.headline import headline
from digestd.model.digest import Momentum
from digestd.model.pages import ListedPaper, TopicSummary, Week, WeekCount
from digestd.model.paper import PaperId
from digestd.model.snapshot import Kind
from digestd.model.topic import Topic
from digestd.momentum import binomial_p
from digestd.render import web_view
from tests.builders import make_known


def summary(name: str, current: int | None, previous: int | None, **fields: object) -> TopicSummary:
    """Return a topic with these counts."""
    given: dict[str, object] = {"current": current, "previous": previous, "source": "counted"}
    if current is not None and previous:
        given["change_percent"] = round(100 * (current - previous) / previous)
        given["p_value"] = binomial_p(current, previous)
    momentum = Momentum(**given | fields)  # type: ignore[arg-type]  # any field of Momentum
    return TopicSummary(Topic(name.lower(), name), momentum, headline(momentum))


def test_index_has_look_order_and_words() -> None:
    """Rising by size, then Steady, Cooling, Few papers, New topics; what is few, new or unknown gets no percent."""
    groups = web_view.index_groups(
        [
            summary("Few", 7, 2),
            summary("Falls", 30, 60),
            summary("Same", 36, 41),
            summary("Up", 40, 20),
            summary("Upmost", 54, 22),
            summary("Young", 47, 23, weeks=6),
            summary("Burst", 54, 3),
            summary("Unknown", None, None),
        ]
    )
    assert [
        ("Rising", ["Upmost", "Up"]), ("Steady", ["Same"]), ("Cooling", ["Falls"]), ("Few papers", ["Burst", "Few"]),
        ("New topics", ["Young"]),         ("No figures yet", ["Unknown"]),
    ] == [(group.name, [row.name for row in group.rows]) for group in groups]  # fmt: skip
    rows = {row.name: (row.current, row.previous, row.change, row.share, row.css) for g in groups for row in g.rows}
    assert ("54", "22", "+145%", "–", "up") == rows["Upmost"]
    assert ("30", "60", "−50%", "–", "muted") == rows["Falls"]
    assert ("7", "2", "–", "–", "muted") == rows["Few"]
    assert ("–", "–", "–", "–", "muted") == rows["Unknown"]


def test_index_share_as_the_source_states_it() -> None:
    """A share is printed as stated, small ones with their sign."""
    below = summary("B", 54, 22, share_percent=0.1, share_below=True)
    rows = web_view.index_groups([summary("A", 54, 22, share_percent=0.5), below])[0].rows
    assert ["0.5%", "<0.1%"] == [row.share for row in rows]


SERIES = (3, 5, 4, 6, 4, 7, 5, 6, 13, 18, 16, 7)


def test_chart_marks_the_last_four_weeks_and_the_unfinished_one() -> None:
    """Eight grey bars, three red ones, a hollow one; the sums are the headline's, under the groups that they are of."""
    momentum = Momentum(current=54, previous=22, weekly=SERIES, weekly_from=date(2026, 7, 13), partial=True)
    chart = web_view.chart(momentum)
    assert chart is not None
    assert [""] * 8 + ["h"] * 3 + ["so"] == [bar.css for bar in chart.bars]
    assert ["22 papers", "54 papers"] == [span.text for span in chart.spans]
    assert ["Jul 13", "Aug 10", "Sep 7", "Sep 28"] == [tick[1] for tick in chart.ticks]
    assert list(SERIES) == [count for _, count in chart.rows]


def test_chart_prints_no_sums_that_are_not_the_headlines() -> None:
    """Where the weeks do not add up to the four-week number, that number wins and no sums are printed."""
    chart = web_view.chart(Momentum(current=58, previous=22, weekly=SERIES, weekly_from=date(2026, 7, 13)))
    assert chart is not None
    assert () == chart.spans


def test_no_chart_without_weeks() -> None:
    """Weeks are never invented."""
    assert web_view.chart(Momentum()) is None
    assert web_view.chart(Momentum(weekly=SERIES)) is None


@pytest.mark.parametrize(
    ("weeks", "ticks"),
    [
        (1, ["Sep 28"]),
        (3, ["Sep 28"]),
        (4, ["Sep 7", "Sep 28"]),
        (6, ["Aug 24", "Sep 28"]),
        (7, ["Aug 17", "Sep 7", "Sep 28"]),
        (11, ["Jul 20", "Aug 10", "Sep 7", "Sep 28"]),
    ],
)
def test_chart_of_a_young_history_stands_on_the_right(weeks: int, ticks: list[str]) -> None:
    """Fewer weeks stand where they would among twelve, so that the last four are the last four; the rest stays blank."""
    first = date(2026, 9, 28) - timedelta(weeks=weeks - 1)
    young = web_view.chart(Momentum(weekly=SERIES[-weeks:], weekly_from=first, partial=True))
    grown = web_view.chart(Momentum(weekly=SERIES, weekly_from=date(2026, 7, 13), partial=True))
    assert young is not None
    assert grown is not None
    assert [(bar.x, bar.css) for bar in grown.bars[-weeks:]] == [(bar.x, bar.css) for bar in young.bars]
    assert grown.rows[-weeks:] == young.rows
    assert ticks == [tick[1] for tick in young.ticks]


@given(st.lists(st.integers(0, 10_000), min_size=1, max_size=12), st.booleans())
@settings(max_examples=100)
def test_bars_stand_on_the_baseline_inside_the_picture(series: list[int], partial: bool) -> None:
    """Every bar ends on the baseline and none leaves the picture; more papers are never a lower bar."""
    chart = web_view.chart(Momentum(weekly=tuple(series), weekly_from=date(2026, 7, 13), partial=partial))
    assert chart is not None
    for bar in chart.bars:
        assert chart.base == bar.y + bar.height
        assert 20 <= bar.y
        assert 0 < float(bar.width.rstrip("%")) <= 100 - float(bar.x.rstrip("%")) + 0.01
    heights = sorted((bar.value, bar.height) for bar in chart.bars if bar.css != "so")
    assert sorted(height for _, height in heights) == [height for _, height in heights]


def test_days_are_grouped_and_named() -> None:
    """Papers of one day stand under one date; another year is named."""
    papers = [
        ListedPaper(make_known(1, published=date(2026, 1, 2))), ListedPaper(make_known(2, published=date(2026, 1, 2))),
        ListedPaper(make_known(3, published=date(2025, 12, 31))),
    ]  # fmt: skip
    groups = web_view.day_groups(papers)
    assert [("Jan 2", "Fri", 2), ("Dec 31, 2025", "Wed", 1)] == [(g.day, g.weekday, len(g.papers)) for g in groups]


def test_card_says_why_an_older_paper_is_here() -> None:
    """A paper tagged late is marked; labels of the page itself are left out, others lead to its list filtered."""
    known = make_known(1, topics=("Reef Sound", "Kelp & Co"), categories=("cs.SD",))
    card = web_view.paper_card(
        ListedPaper(known, Kind.NEWLY_TAGGED), own=("Reef Sound",), page="/t/reef-sound", now_in="Reef Sound"
    )
    assert "Now in Reef Sound" == card.mark
    assert (("Kelp & Co", "/t/reef-sound?tag=Kelp+%26+Co"),) == card.labels


def test_source_is_an_address_of_the_web() -> None:
    """A paper's own link is http or https, or none."""
    assert "" == web_view.source_url(make_known(1, links=("javascript:alert(1)",)))
    known = replace(make_known(1), ids=(PaperId("arxiv", "2609.00001"),))
    assert "https://arxiv.org/abs/2609.00001" == web_view.source_url(known)


def test_snippet_marks_hits() -> None:
    """What stands between the two signs is a hit; broken signs lose no text."""

    def parts(text: str) -> tuple[tuple[str, bool], ...]:
        return web_view.paper_card(ListedPaper(make_known(), snippet=text)).snippet

    assert (("a ", False), ("b", True), (" c", False)) == parts("a \x02b\x03 c")
    assert (("b", True), (" c ", False), ("d", True)) == parts("\x02b\x03 c \x02d\x03")
    assert (("a", False), ("b", True)) == parts("a\x02b")


@given(st.text(alphabet="ab\x02\x03 ", min_size=1))
@settings(max_examples=200)
def test_snippet_loses_no_text(text: str) -> None:
    """All letters of a snippet are shown, in their order."""
    shown = web_view.paper_card(ListedPaper(make_known(), snippet=text)).snippet
    assert text.replace("\x02", "").replace("\x03", "") == "".join(part for part, _ in shown).replace("\x03", "")


def test_weeks_name_six_topics() -> None:
    """A week names its six largest topics, each with its papers up to the week's Sunday, and how many others there are."""
    counts = tuple(WeekCount(f"T{number}", f"t{number}", 20 - number) for number in range(8))
    ((month, rows),) = web_view.week_months([Week(date(2026, 9, 21), counts), Week(date(2026, 9, 14), counts[:1])])
    assert "September 2026" == month
    assert ("Sep 21–27", 6, "2 other topics") == (rows[0].days, len(rows[0].topics), rows[0].others)
    assert (("T0", "/t/t0?before=2026-09-20", "20"),) == rows[1].topics
    assert "" == rows[1].others


def test_index_calls_noise_steady_and_prints_no_percent_of_it() -> None:
    """41 papers after 47 is within counting noise: the index says steady, and neither a rise nor a fall."""
    (group,) = web_view.index_groups([summary("Reef", 41, 47)])
    assert ("Steady", "steady", "muted") == (group.name, group.rows[0].change, group.rows[0].css)
