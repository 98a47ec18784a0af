"""The contract of the list of imported feeds, on each engine."""

from __future__ import annotations

import pytest

from digestd.errors import NotFoundError
from digestd.model.opml import Outline, Outlines
from digestd.store import SqlStore
from tests.builders import NOW

REEF = Outline("Reef News", "https://reef.example/feed", "https://reef.example/")
KELP = Outline("Kelp & Co", "https://kelp.example/rss")
LIST = Outlines("Mine", (Outline("Biology", children=(KELP, Outline("Empty"))), REEF, Outline("Sea", children=(KELP,))))


def test_nothing_was_imported(store: SqlStore) -> None:
    """A new history has an empty list."""
    assert Outlines() == store.feed_list.read()


def test_list_is_kept_as_it_came(store: SqlStore) -> None:
    """Title, order, folders, empty ones too, and a feed in two of them: all of it comes back; a later list replaces it."""
    for outlines in (LIST, Outlines("", (REEF,)), LIST, Outlines()):
        store.feed_list.write(outlines, now=NOW)
        assert outlines == store.feed_list.read()


def test_feeds_that_stay_keep_when_they_came(store: SqlStore) -> None:
    """Importing again is no new beginning for feeds that were there."""
    store.feed_list.write(Outlines("", (REEF,)), now=NOW)
    store.feed_list.write(Outlines("", (KELP, REEF)), now=NOW.replace(year=2027))
    rows = store.engine.query("SELECT url, added_at FROM listed_feed WHERE url <> '' ORDER BY place")
    assert [(KELP.url, "2027"), (REEF.url, "2026")] == [(row["url"], row["added_at"][:4]) for row in rows]


def test_list_is_written_whole_or_not_at_all(store: SqlStore) -> None:
    """An error around the writing takes it back."""

    def empty_and_fail() -> None:
        with store.transaction():
            store.feed_list.write(Outlines(), now=NOW)
            store.history.topic("nowhere")

    store.feed_list.write(LIST, now=NOW)
    with pytest.raises(NotFoundError):
        empty_and_fail()
    assert LIST == store.feed_list.read()


def test_new_title_is_no_new_topic(store: SqlStore) -> None:
    """A feed that is called otherwise, or is moved to another folder, goes on in the topic that its readers follow."""
    store.feed_list.write(Outlines("", (REEF,)), now=NOW)
    renamed = Outline("Noise of Reefs", REEF.url)
    store.feed_list.write(Outlines("", (Outline("Sea", children=(renamed,)), KELP)), now=NOW)
    assert {REEF.url: "Reef News", KELP.url: "Kelp & Co"} == store.feed_list.topics()
    assert (Outline("Sea", children=(renamed,)), KELP) == store.feed_list.read().entries
