"""Which dates of a listing have been seen without a hole."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.coverage import Extension, extend, is_covered, may_show_newest, top_stretch
from digestd.model.snapshot import Coverage, Gap, Page, StatedMomentum, Stretch
from tests.builders import NOW, make_page, make_paper

LATER = NOW + timedelta(days=1)


def day(number: int) -> date:
    """Return a day of September 2026, counted on beyond it."""
    return date(2026, 8, 31) + timedelta(days=number)


def page(*days: int, **fields: object) -> Page:
    """Return a page with one paper for each day, in this order."""
    papers = [make_paper(f"Kelp Note {place}", published=day(n)) for place, n in enumerate(days)]
    return make_page(papers, **fields)  # type: ignore[arg-type]  # fields of Page


def stretch(since: int, until: int, key: int = 1, **fields: object) -> Stretch:
    """Return a stored stretch."""
    given: dict[str, object] = {"seen_at": NOW} | fields
    return Stretch(day(since), day(until), key, **given)  # type: ignore[arg-type]  # fields of Stretch


def grow(
    stretches: Sequence[Stretch], page: Page, *shared: int, unseen: int | None = None, at: datetime = LATER
) -> Extension:
    """Return the stretches after a page, all of whose papers are unseen unless told."""
    count = len(page.papers) if unseen is None else unseen
    return extend(stretches, page, shared=frozenset(shared), unseen=count, fetched_at=at)


def test_a_page_is_a_stretch_from_its_oldest_to_its_newest_paper() -> None:
    """The first page of all covers what it shows."""
    found = grow((), page(20, 18, 11, total_papers=40))
    assert Extension((Stretch(day(11), day(20), total=40, seen_at=LATER),), 0) == found


def test_a_page_without_dates_covers_nothing() -> None:
    """What can't be placed leaves the stretches as they are."""
    bare = make_page([make_paper(published=None)])
    assert Extension((stretch(11, 20),), None) == grow((stretch(11, 20),), bare)
    assert Extension((), None) == grow((), make_page())


def test_papers_without_a_date_count_for_nothing() -> None:
    """The others still span a stretch."""
    some = make_page(
        [make_paper("A", published=day(20)), make_paper("B", published=None), make_paper("C", published=day(11))]
    )
    assert (day(11), day(20)) == (grow((), some).stretches[0].since, grow((), some).stretches[0].until)


@pytest.mark.parametrize(
    ("days", "expected"),
    [
        ((20, 19, 11), (11, 20)),
        ((-400, 20, 19, 11), (11, 20)),
        ((20, 19, 400, 11), (11, 20)),
        ((20, -4000, 19, 11), (11, 20)),
        ((20, 19, 11, 300), (11, 20)),
        ((20, 20, 20), (20, 20)),
        ((20, 20, 20, 40, 30), (20, 20)),
        ((11, 20), (20, 20)),
    ],
)
def test_a_date_out_of_order_does_not_stretch_the_coverage(days: tuple[int, ...], expected: tuple[int, int]) -> None:
    """One mistyped year, or one old paper pinned on top, is no proof that years were seen."""
    found = grow((), page(*days)).stretches[0]
    assert (day(expected[0]), day(expected[1])) == (found.since, found.until)


def test_a_shared_paper_joins_two_stretches() -> None:
    """A page that reaches down to a known paper leaves no hole."""
    found = grow((stretch(11, 20),), page(25, 22, 20), 1, unseen=2)
    assert ((Stretch(day(11), day(25), 1, seen_at=LATER),), 0, ()) == (found.stretches, found.page, found.merged)


def test_a_page_may_join_many() -> None:
    """The oldest key takes over, the others are named as ended."""
    stretches = (stretch(25, 30, key=7), stretch(11, 20, key=3), stretch(1, 5, key=9))
    found = grow(stretches, page(26, 21, 19), 7, 3, unseen=1)
    assert ((Stretch(day(11), day(30), 3, seen_at=LATER), stretch(1, 5, key=9)), ((7, 3),)) == (
        found.stretches,
        found.merged,
    )


def test_nothing_shared_is_kept_apart() -> None:
    """A possible gap is named, newest stretch first, and the page's own is found again."""
    found = grow((stretch(11, 20),), page(30, 25))
    assert (day(25), 1, 0) == (found.stretches[0].since, found.stretches[1].key, found.page)
    older = grow((stretch(11, 20),), page(5, 2))
    assert (1, day(2), 1) == (older.stretches[0].key, older.stretches[1].since, older.page)


def test_days_that_touch_are_not_enough() -> None:
    """Two pages of one busy day may have papers between them."""
    assert 2 == len(grow((stretch(11, 20),), page(25, 20)).stretches)


def test_growth_explained_exactly_joins() -> None:
    """If the listing grew by just the papers that the page shows above the old top, nothing lies between."""
    old = stretch(11, 20, total=40)
    assert (Stretch(day(11), day(25), 1, total=42, seen_at=LATER),) == grow(
        (old,), page(25, 21, total_papers=42)
    ).stretches


@pytest.mark.parametrize(
    ("total", "unseen", "days", "hours"),
    [
        (43, 2, (25, 21), 24),
        (41, 2, (25, 21), 24),
        (None, 2, (25, 21), 24),
        (42, 1, (25, 21), 24),
        (42, 2, (25, 19), 24),
        (42, 2, (9, 8), 24),
        (42, 2, (25, 21), -24),
    ],
)
def test_growth_not_explained_exactly_keeps_the_gap(
    total: int | None, unseen: int, days: tuple[int, ...], hours: int
) -> None:
    """More or less growth, seen papers, a page that reaches below the top, a deeper or an older page prove nothing."""
    old = stretch(11, 20, total=40)
    found = grow((old,), page(*days, total_papers=total), unseen=unseen, at=NOW + timedelta(hours=hours))
    assert 2 == len(found.stretches)


def test_growth_never_joins_a_deep_page_by_coincidence() -> None:
    """A page that says the last weeks had papers and shows none of them is not the first of its listing."""
    old = stretch(11, 20, total=40, seen_at=datetime(2026, 10, 1, tzinfo=UTC))
    says = StatedMomentum(12, chart_to=date(2026, 12, 28))
    deep = page(25, 21, total_papers=42, momentum=says)
    assert 2 == len(grow((old,), deep, at=datetime(2027, 1, 1, tzinfo=UTC)).stretches)


@pytest.mark.parametrize(
    ("momentum", "newest", "observed", "expected"),
    [
        (None, day(1), day(300), True),
        (StatedMomentum(0), day(1), day(300), True),
        (StatedMomentum(5), day(1), None, True),
        (StatedMomentum(5), day(1), day(43), True),
        (StatedMomentum(5), day(1), day(44), False),
        (StatedMomentum(5, chart_to=day(20)), day(1), day(300), True),
    ],
)
def test_a_page_may_be_the_first_unless_it_contradicts_itself(
    momentum: StatedMomentum | None, newest: date, observed: date | None, expected: bool
) -> None:
    """Four weeks and two of slack: charts end in a week, and listings name papers late."""
    assert expected is may_show_newest(make_page(momentum=momentum), newest, observed)


def test_the_later_page_gives_total_and_time() -> None:
    """An older page that is read later does not take the total back."""
    old = stretch(11, 20, total=50, seen_at=LATER)
    found = grow((old,), page(20, 9, total_papers=40), 1, at=NOW).stretches[0]
    assert (50, LATER, day(9)) == (found.total, found.seen_at, found.since)


def test_a_page_without_a_total_keeps_the_known_one() -> None:
    """A page whose head was cut off says nothing about the total."""
    assert 40 == grow((stretch(11, 20, total=40),), page(22, 20), 1).stretches[0].total


def test_a_cut_page_is_open_below_until_something_reaches_lower() -> None:
    """What follows below a cut belongs to the page that should have shown it."""
    cut = grow((), page(20, 18, incomplete=True)).stretches[0]
    assert cut.open_below
    kept = Stretch(cut.since, cut.until, 1, seen_at=NOW, open_below=True)
    assert grow((kept,), page(22, 20), 1).stretches[0].open_below
    assert not grow((kept,), page(20, 18, 11), 1).stretches[0].open_below
    assert not grow((kept,), page(20, 18), 1).stretches[0].open_below


def test_edge_days_are_not_covered() -> None:
    """They were shown in part."""
    found = [number for number in range(8, 24) if is_covered((stretch(10, 14), stretch(18, 22)), day(number))]
    assert [11, 12, 13, 19, 20, 21] == found


def test_the_top_is_the_stretch_with_the_newest_date() -> None:
    """However the stretches are ordered."""
    assert stretch(18, 22, 2) == top_stretch((stretch(10, 14), stretch(18, 22, 2)))
    assert None is top_stretch(())


def test_gaps_lie_between_stretches() -> None:
    """Each hole has the last day seen below it and the first day seen above it."""
    stretches = (stretch(25, 30), stretch(11, 20), stretch(1, 5))
    assert (Gap(day(20), day(25)), Gap(day(5), day(11))) == Coverage(stretches).gaps
    assert () == Coverage(stretches[:1]).gaps


@given(st.lists(st.integers(-50, 50), min_size=1, max_size=30))
@settings(max_examples=200, deadline=None)
def test_a_stretch_spans_dates_of_its_page(days: list[int]) -> None:
    """Never more than the page shows; all of it where the page keeps its order."""
    found = grow((), page(*days)).stretches[0]
    assert day(min(days)) <= found.since <= found.until <= day(max(days))
    ordered = grow((), page(*sorted(days, reverse=True))).stretches[0]
    assert (day(min(days)), day(max(days))) == (ordered.since, ordered.until)


@given(st.permutations([(20, 14), (14, 9), (9, 3), (30, 25)]))
@settings(max_examples=24, deadline=None)
def test_the_order_of_pages_does_not_decide_what_is_covered(windows: list[tuple[int, int]]) -> None:
    """Overlapping pages join to one stretch in any order, others stay apart."""
    stretches: tuple[Stretch, ...] = ()
    holders: dict[int, set[int]] = {}
    for number, (until, since) in enumerate(windows, start=1):
        shared = {key for key, held in holders.items() if held & {until, since}}
        found = grow(stretches, page(until, since), *shared)
        key = found.stretches[found.page or 0].key or number
        holders[key] = {until, since}.union(*(holders.pop(old) for old in shared))
        stretches = tuple(
            Stretch(one.since, one.until, one.key or number, seen_at=one.seen_at) for one in found.stretches
        )
    assert [(day(25), day(30)), (day(3), day(20))] == [(one.since, one.until) for one in stretches]
