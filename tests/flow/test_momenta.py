"""Momentum the whole way: generated listing pages, a real history, the words that readers see."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.flows.momenta import Momenta, is_complete, topic_momenta
from digestd.headline import headline
from digestd.model.digest import Trend
from digestd.model.snapshot import Coverage, Stretch
from digestd.momentum import trend_of
from digestd.store import SqlStore, open_store
from tests.followers import at
from tests.listings import STATED, listing, read_in, spread, two_months, weekly_counts

NOW = at("2026-09-30T06:00")  # a Wednesday
TODAY = NOW.date()
#: as tests/listings.py has the source say it: 9 after 8 is the only whole number that fits
STATED_WORDS = "9 papers in four weeks, after 8"


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    """An empty history."""
    opened = open_store(tmp_path / "history.sqlite")
    yield opened
    opened.close()


def momenta_of(store: SqlStore, *, now: datetime = NOW, name: str = "Reef Sound") -> Momenta:
    """Return the momentum of a topic of the history."""
    topic = store.history.find_topic(name)
    assert topic is not None
    return topic_momenta(store.history, topic, now)


def look(store: SqlStore, days: Sequence[date], *, now: datetime = NOW, total: int = 5000) -> Momenta:
    """Read one page with papers of these dates and return the topic's momentum."""
    read_in(store, listing("Reef Sound", days, total=total), now=now)
    return momenta_of(store, now=now)


@pytest.mark.parametrize(
    ("current", "previous", "text", "short"),
    [
        (7, 2, "7 papers in four weeks, after 2", "7 after 2"),
        (54, 22, "54 papers in four weeks, up\u00a0145%", "+145%"),
        (36, 41, "Steady: 36 papers in four weeks, after 41", "steady"),
        (0, 3, "No papers in four weeks, after 3", "0 after 3"),
        (44, 22, "44 papers in four weeks, double the four before", "+100%"),
        (20, 45, "Cooling: 20 papers in four weeks, down\u00a056%", "−56%"),
        (12, 4, "12 papers in four weeks, after 4", "12 after 4"),
    ],
)
def test_counts_of_whole_coverage_are_printed(
    store: SqlStore, current: int, previous: int, text: str, short: str
) -> None:
    """Where a page shows all of the eight weeks, the headline is made of what was counted."""
    momenta = look(store, two_months(TODAY, current, previous))
    assert (current, previous, True) == (momenta.counted.current, momenta.counted.previous, momenta.counted.complete)
    words = headline(momenta.chosen)
    assert (text, short, "counted") == (words.text, words.short, momenta.chosen.source)


def test_no_new_papers_is_quiet_in_a_digest(store: SqlStore) -> None:
    """A digest without new papers of a topic says so first, then the counts, then when the last one came."""
    momenta = look(store, two_months(TODAY, 0, 3))
    words = headline(momenta.chosen, 0, store.history.last_published("reef-sound"))
    assert "No new papers, quiet" == words.text
    assert "No papers in four weeks, after 3. The last one came on Sep 2." == words.note


def test_the_window_is_28_days_and_its_edges_are_sharp(store: SqlStore) -> None:
    """A paper of 27 days ago counts now, one of 28 days ago before, one of 56 days ago not at all."""
    edges = [TODAY - timedelta(days=age) for age in (0, 27, 28, 55, 56, 80)]
    momenta = look(store, edges)
    assert (2, 2) == (momenta.counted.current, momenta.counted.previous)


def test_unfinished_week_is_marked(store: SqlStore) -> None:
    """The weeks are Monday weeks, twelve of them, the last one that of today and unfinished."""
    days = [*two_months(TODAY, 54, 22), TODAY - timedelta(days=90)]
    momenta = look(store, days)
    mondays = [date(2026, 7, 13) + timedelta(weeks=week) for week in range(12)]
    assert date(2026, 7, 13) == momenta.counted.weekly_from
    assert weekly_counts(days, mondays) == list(momenta.counted.weekly)
    assert momenta.counted.partial


def test_weeks_that_were_shown_in_part_are_left_out(store: SqlStore) -> None:
    """A week whose first days no page has shown would be a low bar, and everything after it a rise."""
    days = [*two_months(TODAY, 54, 22)[:-1], TODAY - timedelta(days=58)]  # Aug 3, a Monday
    momenta = look(store, days)
    assert momenta.counted.complete
    assert date(2026, 8, 10) == momenta.counted.weekly_from
    assert 8 == len(momenta.counted.weekly)


def test_hole_in_the_coverage_leaves_the_word_to_the_source(store: SqlStore) -> None:
    """Two pages that do not meet within the eight weeks make no count; the source's figure is printed as its own."""
    read_in(store, listing("Reef Sound", spread(TODAY - timedelta(days=40), 20)), now=NOW - timedelta(days=39))
    momenta = look(store, spread(TODAY, 15, oldest=20))
    assert not momenta.counted.complete
    assert "the listing is known from Sep 11 only" == momenta.incomplete
    assert ((), None) == (momenta.counted.weekly, momenta.counted.weekly_from)
    assert (STATED_WORDS, "stated") == (headline(momenta.chosen).text, momenta.chosen.source)


def test_young_topic_says_how_long_it_has_been(store: SqlStore) -> None:
    """A listing that is known to its end, its first paper three weeks old, is a new topic with all its papers counted."""
    days = spread(TODAY, 9, oldest=15)  # the oldest on Sep 15, in the third calendar week
    momenta = look(store, days, total=9)
    assert (True, 3) == (momenta.counted.complete, momenta.counted.weeks)
    assert "New topic: 9 papers in three weeks" == headline(momenta.chosen).text


def test_young_topic_that_is_not_known_to_its_end_is_not_counted(store: SqlStore) -> None:
    """The same page of a longer listing proves nothing of the weeks below it."""
    momenta = look(store, spread(TODAY, 9, oldest=15), total=40)
    assert (False, None, "stated") == (momenta.counted.complete, momenta.counted.weeks, momenta.chosen.source)


def test_old_topic_with_few_papers_is_not_new(store: SqlStore) -> None:
    """A listing known to its end whose first paper is a year old has few papers, and is no new topic."""
    momenta = look(store, [TODAY, TODAY - timedelta(days=10), TODAY - timedelta(days=365)], total=3)
    assert "2 papers in four weeks, after none" == headline(momenta.chosen).text


def test_papers_that_totals_prove_missing_make_no_count(store: SqlStore) -> None:
    """A listing that grew by more than it showed has papers that nobody saw; they may belong to these weeks."""
    days = two_months(TODAY - timedelta(days=2), 54, 22)
    look(store, days, total=1000, now=NOW - timedelta(days=2))
    momenta = look(store, [TODAY, *days], total=1003)
    assert "2 papers of the listing were never shown" == momenta.incomplete
    assert (False, 2) == (momenta.counted.complete, momenta.missing)


def test_count_is_as_of_the_last_look(store: SqlStore) -> None:
    """Days after the last look count for nothing; after a week without a look the count is no longer complete."""
    days = two_months(TODAY, 54, 22)
    look(store, days)
    later = momenta_of(store, now=NOW + timedelta(days=6))
    assert (TODAY, 54, True, True) == (later.as_of, later.counted.current, later.counted.complete, later.fresh)
    stale = momenta_of(store, now=NOW + timedelta(days=8))
    assert (TODAY, 54, False, False) == (stale.as_of, stale.counted.current, stale.counted.complete, stale.fresh)
    assert "the listing was last seen on Sep 30" == stale.incomplete


RSS = """<rss version="2.0"><channel><title>Reef Feed</title><link>https://reef.example/</link><description>x</description>
{items}</channel></rss>"""
ITEM = "<item><title>{title}</title><link>https://reef.example/{number}</link>{date}</item>"


def feed(*dates: str) -> str:
    """Return a feed with one paper for each date; "" is a paper without one."""
    items = [
        ITEM.format(
            title=f"{word} of the Northern Shelf", number=number, date=f"<pubDate>{when}</pubDate>" if when else ""
        )
        for number, (word, when) in enumerate(zip(("Silence", "Murmurs", "Echoes"), dates, strict=False))
    ]
    return RSS.format(items="".join(items))


def test_topic_of_feeds_has_no_figures(store: SqlStore) -> None:
    """A feed says nothing about what it left out: no number is made of it."""
    read_in(store, feed("Tue, 29 Sep 2026 06:00:00 GMT", "Mon, 28 Sep 2026 06:00:00 GMT"), now=NOW, topic="Shelf Noise")
    momenta = momenta_of(store, name="Shelf Noise")
    assert (2, False) == (momenta.counted.current, momenta.counted.complete)
    assert "no page of a listing has been read" == momenta.incomplete
    assert Trend.UNKNOWN == trend_of(momenta.chosen)
    assert "No figures for this topic" == headline(momenta.chosen).text


def test_paper_without_a_date_makes_the_count_a_lower_bound(store: SqlStore) -> None:
    """A paper that came in these weeks and has no date cannot be put into one of them."""
    look(store, two_months(TODAY, 54, 22), now=NOW - timedelta(days=1))
    read_in(store, feed("", "Mon, 28 Sep 2026 06:00:00 GMT"), now=NOW, topic="Reef Sound")
    momenta = momenta_of(store)
    assert (False, "1 paper without a date was seen in these weeks") == (
        momenta.counted.complete,
        momenta.incomplete,
    )


def test_papers_of_a_feed_count_too(store: SqlStore) -> None:
    """A paper of the topic counts in its week, whoever named it; a later one than the last look does not."""
    look(store, two_months(TODAY, 54, 22), now=NOW)
    read_in(
        store,
        feed("Tue, 29 Sep 2026 06:00:00 GMT", "Fri, 02 Oct 2026 06:00:00 GMT"),
        now=NOW + timedelta(days=3),
        topic="Reef Sound",
    )
    assert 55 == momenta_of(store, now=NOW + timedelta(days=3)).counted.current


def test_listing_that_is_late_does_not_cool(store: SqlStore) -> None:
    """A fall that goes away when the days not listed yet are left out is the listing's lateness, not the topic's."""
    # three papers a day for ten weeks, and none of the last six days: 66 after 84 (p 0.17) would be steady anyway,
    # six a day make 132 after 168, p 0.04
    last = TODAY - timedelta(days=6)
    days = [last - timedelta(days=age) for age in range(70) for _ in range(6)]
    momenta = look(store, days)
    counted = momenta.counted
    assert (132, 168) == (counted.current, counted.previous)
    assert counted.p_value is not None
    assert counted.p_value < 0.1
    assert 1.0 == counted.late_p_value
    assert "Steady: 132 papers in four weeks, after 168" == headline(momenta.chosen).text


def test_true_fall_of_a_late_listing_is_one(store: SqlStore) -> None:
    """A fall that the listed days show as well is printed."""
    last = TODAY - timedelta(days=3)
    days = [*spread(last, 20, oldest=24), *spread(last, 60, oldest=52, newest=25), TODAY - timedelta(days=80)]
    momenta = look(store, days)
    assert "Cooling: 20 papers in four weeks, down\u00a067%" == headline(momenta.chosen).text


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("54 papers in the last four weeks, up 145% on the four weeks before. 0.5% of all new papers.", ""),
        (
            "90 papers in the last four weeks, up 145% on the four weeks before. 0.5% of all new papers.",
            "the source states 90 in the last four weeks, 54 were counted",
        ),
        (
            "20 papers in the last four weeks, up 145% on the four weeks before. 0.5% of all new papers.",
            "the source states 20 in the last four weeks, 54 were counted",
        ),
    ],
)
def test_source_that_counts_otherwise_is_told(store: SqlStore, sentence: str, expected: str) -> None:
    """What the source states and what was counted are kept apart, and held against each other."""
    read_in(store, listing("Reef Sound", two_months(TODAY, 54, 22), stated=sentence), now=NOW)
    assert expected == momenta_of(store).disagreement


def test_four_calendar_weeks_are_no_disagreement(store: SqlStore) -> None:
    """Nobody says how a source cuts its four weeks: a figure that one of the usual ways gives is not held against it."""
    days = two_months(TODAY, 54, 22)
    whole_weeks = sum(date(2026, 8, 31) <= day < date(2026, 9, 28) for day in days)
    assert 54 != whole_weeks
    said = f"{whole_weeks} papers in the last four weeks, up 9% on the four weeks before. 0.1% of all new papers."
    read_in(store, listing("Reef Sound", days, stated=said), now=NOW)
    assert "" == momenta_of(store).disagreement


def test_stated_and_counted_are_kept_apart(store: SqlStore) -> None:
    """Counted figures never touch the source's, which stay as printed."""
    momenta = look(store, two_months(TODAY, 54, 22))
    assert momenta.stated is not None
    assert (9, 12, 54, 145) == (
        momenta.stated.current,
        momenta.stated.change_percent,
        momenta.counted.current,
        momenta.counted.change_percent,
    )
    assert STATED.startswith("9 papers")


@pytest.mark.parametrize(
    ("stretch", "missing", "expected"),
    [
        (Stretch(date(2026, 8, 1), TODAY, seen_at=NOW), 0, True),
        (Stretch(date(2026, 8, 5), TODAY, seen_at=NOW), 0, True),
        (Stretch(date(2026, 8, 6), TODAY, seen_at=NOW), 0, False),  # its lower edge was shown in part
        (Stretch(date(2026, 8, 1), TODAY, seen_at=NOW), 1, False),
        (Stretch(date(2026, 8, 1), TODAY, seen_at=NOW, open_below=True), 0, False),
        (Stretch(date(2026, 8, 1), TODAY, seen_at=NOW - timedelta(days=7)), 0, True),
        (Stretch(date(2026, 8, 1), TODAY, seen_at=NOW - timedelta(days=7, seconds=1)), 0, False),
        (Stretch(date(2026, 8, 1), TODAY), 0, False),
    ],
)
def test_complete(stretch: Stretch, missing: int, *, expected: bool) -> None:
    """Complete are eight weeks inside one stretch that was seen within a week, with nothing missing."""
    coverage = Coverage((stretch,), known=80, total=900, missing=missing)
    assert expected is is_complete(coverage, date(2026, 8, 6), NOW)


def test_nothing_is_complete_without_a_listing() -> None:
    """Where no listing was read, nothing is."""
    assert not is_complete(Coverage(), date(2026, 8, 6), NOW)


@given(ages=st.lists(st.integers(0, 100), max_size=60), seen=st.integers(0, 9))
@settings(max_examples=12, deadline=None)
def test_counted_figures_are_those_of_the_dates(
    tmp_path_factory: pytest.TempPathFactory, ages: list[int], seen: int
) -> None:
    """Whatever the dates, what is counted is what a person would count on the page, and nothing is shown in part."""
    store = open_store(tmp_path_factory.mktemp("any") / "history.sqlite")
    try:
        days = [TODAY - timedelta(days=age) for age in [*ages, 101]]
        momenta = look(store, days, now=NOW)
        later = momenta_of(store, now=NOW + timedelta(days=seen))
        counted = momenta.counted
        assert sum(age < 28 for age in ages) == counted.current
        assert sum(28 <= age < 56 for age in ages) == counted.previous
        assert counted.complete
        assert (seen <= 7) is later.counted.complete
        if counted.weekly:
            assert counted.weekly_from is not None
            mondays = [counted.weekly_from + timedelta(weeks=week) for week in range(len(counted.weekly))]
            assert weekly_counts(days, mondays) == list(counted.weekly)
    finally:
        store.close()
