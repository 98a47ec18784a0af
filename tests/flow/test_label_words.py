"""Only labels that listings print cut tag lines; keywords of feeds and services are labels of their papers and no more."""

from __future__ import annotations

from pathlib import Path

import pytest

from digestd.flows.ingest import IngestOptions, record_page
from digestd.model.paper import Paper
from digestd.model.snapshot import Document, Order
from digestd.store import SqlStore, open_store
from tests.builders import NOW, make_page, make_paper


@pytest.fixture
def store(tmp_path: Path) -> SqlStore:
    """An empty history."""
    return open_store(tmp_path / "history.sqlite")


def record(store: SqlStore, *papers: Paper, order: Order, number: int) -> None:
    """Record a page of these papers."""
    record_page(
        store,
        make_page(papers, order=order, topic="Tides"),
        Document(b""),
        IngestOptions(now=NOW),
        raw_digest=f"{number}",
    )


def test_keywords_of_a_feed_cut_no_tag_line(store: SqlStore) -> None:
    """They are found as the paper's labels, and the vocabulary does not hold them."""
    record(store, make_paper("A", topics=("Kelp", "sound of")), order=Order.FEED, number=1)
    assert {"Tides"} == set(store.history.vocabulary().counts)
    assert ["A"] == [known.paper.title for known in store.history.labelled("Sound of")]


@pytest.mark.parametrize("orders", [(Order.FEED, Order.LISTING), (Order.LISTING, Order.FEED)])
def test_a_label_that_a_listing_prints_too_counts(store: SqlStore, orders: tuple[Order, Order]) -> None:
    """Whichever came first; what only the feed says of the same paper still does not count."""
    for number, order in enumerate(orders):
        labels = ("Kelp",) if order is Order.LISTING else ("Kelp", "sound of")
        record(store, make_paper("A", topics=labels), order=order, number=number)
    assert {"Tides": 1, "Kelp": 1} == dict(store.history.vocabulary().counts)
