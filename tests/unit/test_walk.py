"""Walks down a listing: pages are joined only where nothing can lie between them, and a walk ends where it should."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.coverage import extend
from digestd.model.paper import KnownPaper, Paper
from digestd.model.snapshot import Known, Page, Stretch, TopicState
from digestd.walk import adds_nothing, join_pages, reaches_end, reaches_known
from tests.builders import NOW, make_known, make_page, make_paper

NEWEST = date(2026, 9, 28)


def listing(*numbers: int) -> list[Paper]:
    """Return papers of a listing by their number from the top, one a day."""
    return [make_paper(f"Tide Note {n}", published=NEWEST - timedelta(days=n)) for n in numbers]


def page(*numbers: int, **fields: object) -> Page:
    """Return a page of these papers."""
    return make_page(listing(*numbers), **fields)  # type: ignore[arg-type]  # any field of Page


def titles(pages: Sequence[Page]) -> list[list[str]]:
    """Return the numbers of the papers on each page."""
    return [[paper.title.removeprefix("Tide Note ") for paper in page.papers] for page in pages]


@pytest.mark.parametrize(
    ("pages", "expected"),
    [
        ([], []),
        ([page(0, 1, total_papers=9)], [["0", "1"]]),
        ([page(0, 1, total_papers=9), page(2, 3, total_papers=9)], [["0", "1", "2", "3"]]),
        ([page(0, 1), page(2, 3)], [["0", "1", "2", "3"]]),
        # one came in above: the last of page 1 is the first of page 2
        ([page(1, 2, total_papers=9), page(2, 3, total_papers=10)], [["1", "2", "3"]]),
        # one went away above: the first of page 2 slipped onto page 1 and was not seen
        ([page(0, 1, total_papers=9), page(3, 4, total_papers=8)], [["0", "1"], ["3", "4"]]),
        # two came and two went, or one of page 1 is missing: what lies between is unknown
        ([page(0, 1, total_papers=9), page(3, 4, total_papers=10)], [["0", "1"], ["3", "4"]]),
        ([page(0, 1, incomplete=True), page(2, 3)], [["0", "1"], ["2", "3"]]),
        ([page(0, 1), page(2, 3, topic="Kelp")], [["0", "1"], ["2", "3"]]),
        (
            [page(0, 1, total_papers=9), page(3, total_papers=8), page(4, total_papers=8), page(6, total_papers=7)],
            [["0", "1"], ["3", "4"], ["6"]],
        ),
    ],
)
def test_join_pages_joins_what_follows_without_a_hole(pages: list[Page], expected: list[list[str]]) -> None:
    """A shared paper or a total that stood still prove that nothing lies between two pages; else they stay apart."""
    assert expected == titles(join_pages(pages))


def test_join_pages_keeps_what_the_first_page_says() -> None:
    """Topic and momentum are page 1's; the total is the latest, and only the last page's cut counts."""
    first = page(0, 1, total_papers=5, gloss="Sound: of reefs", warnings=("line 3",))
    joined = join_pages([first, page(1, 2, total_papers=6, incomplete=True, warnings=("line 9",))])[0]
    assert ("Sound: of reefs", 6, True, ("line 3", "line 9")) == (
        joined.gloss,
        joined.total_papers,
        joined.incomplete,
        joined.warnings,
    )


def test_join_pages_keeps_papers_that_only_look_alike() -> None:
    """Two editorials without authors on two pages are two papers until identity says otherwise."""
    one = make_paper("Editorial", published=NEWEST, authors=())
    other = make_paper("Editorial", published=NEWEST - timedelta(days=300), authors=())
    assert (one, other) == join_pages([make_page([one]), make_page([other])])[0].papers


@st.composite
def walks(draw: st.DrawFn) -> tuple[list[Page], list[int], int]:
    """Return pages of a walk over a listing that changes meanwhile, the numbers that stood in it throughout, page size."""
    size = draw(st.integers(1, 4))
    shown = list(range(100, 100 + draw(st.integers(size, 14))))
    stayed, fresh, pages = set(shown), 99, []
    for place in range(draw(st.integers(1, 4))):
        for change in draw(st.lists(st.sampled_from(["add", "remove"]), max_size=2)) if place else []:
            if change == "add":
                shown.insert(0, fresh)
                fresh -= 1
            elif len(shown) > 1:
                gone = shown.pop(draw(st.integers(0, len(shown) - 1)))
                stayed.discard(gone)
        part = shown[place * size : (place + 1) * size]
        if part:
            pages.append(page(*part, total_papers=len(shown)))
    return pages, sorted(stayed), size


@given(walks())
@settings(max_examples=200)
def test_join_pages_loses_no_paper(walk: tuple[list[Page], list[int], int]) -> None:
    """Every paper that a page showed is on a joined page, in the order in which it was met, once."""
    pages, _, _ = walk
    shown = [number for one in titles(pages) for number in one]
    assert list(dict.fromkeys(shown)) == list(dict.fromkeys(n for one in titles(join_pages(pages)) for n in one))


@given(walks())
@settings(max_examples=300)
def test_join_pages_claims_no_stretch_with_a_hole(walk: tuple[list[Page], list[int], int]) -> None:
    """A joined page shows every paper that stood between its first and its last while the walk went on."""
    pages, stayed, _ = walk
    for joined in join_pages(pages):
        numbers = {int(number) for number in titles([joined])[0]}
        assert [] == [n for n in stayed if min(numbers) < n < max(numbers) and n not in numbers]


def test_joined_pages_are_one_stretch_of_coverage() -> None:
    """What a walk joined is recorded as one stretch, from the newest to the oldest paper of all its pages."""
    joined = join_pages([page(0, 1, total_papers=9), page(2, 3, total_papers=9), page(4, 5, total_papers=9)])
    found = extend((), joined[0], shared=frozenset(), unseen=6, fetched_at=NOW)
    assert [(NEWEST - timedelta(days=5), NEWEST)] == [(s.since, s.until) for s in found.stretches]


def known(papers: Sequence[KnownPaper], listed: dict[int, int], *stretches: Stretch) -> Known:
    """Return what the history knows of a topic."""
    state = TopicState("reef-sound", started=True, stretches=stretches, stretch_of=tuple(listed.items()))
    return Known(topic=state, papers=tuple(papers))


TOP = Stretch(NEWEST - timedelta(days=3), NEWEST, key=2)
LOWER = Stretch(NEWEST - timedelta(days=20), NEWEST - timedelta(days=10), key=1)


def test_reaches_known_by_a_paper_of_the_listing() -> None:
    """A walk may end when a page shows what a page of the listing showed before, under whatever spelling."""
    papers = [make_known(7, "Tide Note 1", published=NEWEST - timedelta(days=1))]
    assert reaches_known(page(0, 1), known(papers, {7: 2}, TOP))
    assert not reaches_known(page(5, 6), known(papers, {7: 2}, TOP))


def test_reaches_known_not_by_a_paper_from_elsewhere() -> None:
    """A paper that only a feed or another topic showed says nothing of the listing."""
    papers = [make_known(7, "Tide Note 1", published=NEWEST - timedelta(days=1))]
    assert not reaches_known(page(0, 1), known(papers, {}, TOP))


def test_reaches_known_below_a_walk_that_broke_off() -> None:
    """After a walk that broke off its own papers do not count as known: what lies below them is wanted."""
    papers = [
        make_known(7, "Tide Note 1", published=NEWEST - timedelta(days=1)),
        make_known(8, "Tide Note 12", published=NEWEST - timedelta(days=12)),
    ]
    state = known(papers, {7: 2, 8: 1}, TOP, LOWER)
    assert not reaches_known(page(0, 1), state, below_top=True)
    assert reaches_known(page(11, 12), state, below_top=True)


def test_walk_ends_where_the_listing_ends() -> None:
    """A walk ends with all papers of the total shown, or with a page that shows nothing new."""
    pages = [page(0, 1, total_papers=4), page(2, 3, total_papers=4)]
    assert (False, True) == (reaches_end(pages[:1]), reaches_end(pages))
    assert not reaches_end([page(0, 1)])
    assert adds_nothing(pages, replace(pages[0], papers=pages[0].papers[:1]))
    assert not adds_nothing(pages, page(3, 4))
