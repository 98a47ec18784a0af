"""What makes two pages the same content."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.model.paper import PaperId
from digestd.model.snapshot import Order, StatedMomentum
from digestd.page_hash import page_hash
from tests.builders import NOW, make_page, make_paper

PAPER = make_paper("Quiet Reefs", topics=("Reef Sound", "Sonar"), abstract="Reefs are quiet.", title_raw="Quiet Reefs")
PAGE = make_page(
    [PAPER, make_paper("Loud Reefs")], total_papers=40, momentum=StatedMomentum(14, 40, sentence="14 papers.")
)


@pytest.mark.parametrize(
    "same",
    [
        replace(PAGE, origin="https://reef.example/2"),
        replace(PAGE, observed_at=NOW),
        replace(PAGE, warnings=("line 3: repaired",)),
        replace(PAGE, format="html"),
        replace(PAGE, ttl_s=60),
        replace(PAGE, papers=(replace(PAPER, topics=(), topics_unparsed="Reef Sound Sonar"), PAGE.papers[1])),
        replace(PAGE, papers=(replace(PAPER, warnings=("repaired",)), PAGE.papers[1])),
    ],
)
def test_how_a_page_came_and_how_far_it_was_cut_does_not_count(same: object) -> None:
    """The same page by another way, or read with more labels known, is unchanged."""
    assert page_hash(PAGE) == page_hash(same)  # type: ignore[arg-type]  # a Page


@pytest.mark.parametrize(
    "field",
    [
        {"title_raw": "Quiet  Reefs?"},
        {"published": date(2026, 9, 21)},
        {"published_at": datetime(2026, 9, 20, 3, tzinfo=UTC)},
        {"categories": ("cs.SD",)},
        {"abstract": "Reefs are loud."},
        {"abstract_raw": "Reefs are {quiet}."},
        {"authors": ("Bo Stern",)},
        {"authors_more": 1},
        {"group": "The Reef Group"},
        {"affiliations": ("Reef Lab",)},
        {"affiliations_more": 1},
        {"topics": ("Reef Sound",)},
        {"topics_more": 1},
        {"links": ("https://reef.example/1",)},
        {"ids": (PaperId("doi", "10.1/a"),)},
        {"version": 2},
        {"announce": "replace"},
        {"withdrawn": True},
    ],
)
def test_all_that_a_paper_says_counts(field: dict[str, object]) -> None:
    """A change anywhere in a paper is looked at."""
    other = replace(PAGE, papers=(replace(PAPER, **field), PAGE.papers[1]))  # type: ignore[arg-type]  # fields of Paper
    assert page_hash(PAGE) != page_hash(other)


@pytest.mark.parametrize(
    "field",
    [
        {"topic": "Kelp"},
        {"total_papers": 41},
        {"incomplete": True},
        {"momentum": None},
        {"momentum": StatedMomentum(15, 40, sentence="15 papers.")},
        {"momentum": StatedMomentum(14, 40, sentence="14 papers.", chart_to=date(2026, 9, 28))},
        {"order": Order.FEED},
        {"papers": PAGE.papers[:1]},
        {"papers": ()},
    ],
)
def test_all_that_a_page_says_counts(field: dict[str, object]) -> None:
    """Totals and momentum move while the papers stand still."""
    assert page_hash(PAGE) != page_hash(replace(PAGE, **field))  # type: ignore[arg-type]  # fields of Page


def test_a_feeds_own_title_stands_for_a_topic() -> None:
    """Two feeds of the same papers under two titles are two."""
    feed = replace(PAGE, topic=None, order=Order.FEED, title="Reef feed")
    assert page_hash(feed) != page_hash(replace(feed, title="Kelp feed"))


@given(st.permutations([make_paper(f"Kelp Note {number}") for number in range(4)]))
@settings(max_examples=30, deadline=None)
def test_order_counts_in_listings_only(papers: list[object]) -> None:
    """A listing's order says what is newest; a feed shuffles."""
    straight = make_page([make_paper(f"Kelp Note {number}") for number in range(4)])
    turned = replace(straight, papers=tuple(papers))  # type: ignore[arg-type]  # papers
    assert (straight.papers == turned.papers) is (page_hash(straight) == page_hash(turned))
    assert page_hash(replace(straight, order=Order.FEED)) == page_hash(replace(turned, order=Order.FEED))


def test_lone_surrogates_are_hashed_too() -> None:
    """JSON may carry half a character; that is no reason to stop."""
    assert 64 == len(page_hash(make_page([make_paper("Quiet \ud800 Reefs")])))
