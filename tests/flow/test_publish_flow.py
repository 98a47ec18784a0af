"""Feeds of a real history: whole, bounded, and written only where something changed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from io import BytesIO
from pathlib import Path

import feedparser
import pytest

from digestd.flows.ingest import IngestOptions, ingest_document
from digestd.flows.publish import Publisher, PublishOptions
from digestd.model.feed import FeedSite
from digestd.store import SqlStore, open_store
from tests.builders import NOW, make_document
from tests.schema import check_atom

SEEDS = Path(__file__).resolve().parents[2] / "seeds"
OPTIONS = PublishOptions(FeedSite("Reef Papers", "digest.example.org"), base_url="https://digest.example.org")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    """A history that has read the sample pages, the newest last."""
    opened = open_store(tmp_path / "history.sqlite")
    for page, days in (("6", -7), ("8", -7), ("1", 0)):
        body = (SEEDS / f"llm-agent-training.page-{page}.txt").read_bytes()
        at = NOW + timedelta(days=days)
        ingest_document(opened, make_document(body, fetched_at=at), IngestOptions(now=at))
    yield opened
    opened.close()


class Folder:
    """Takes what is published, as the disk does."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def __call__(self, files: Mapping[str, bytes]) -> list[str]:
        """Take files and return the names of those that changed."""
        written = [name for name, body in files.items() if self.files.get(name) != body]
        self.files |= files
        return written


def test_feeds_of_a_history_are_read_by_feed_readers(store: SqlStore) -> None:
    """Every RSS and Atom document is read without complaint, and the topic's feed has its thirty new papers."""
    folder = Folder()
    Publisher().publish(store, OPTIONS, folder, now=NOW)
    read = {name: feedparser.parse(BytesIO(body)) for name, body in folder.files.items() if name.endswith(".xml")}
    assert [] == [name for name, feed in read.items() if feed.bozo]
    for name in read:
        if name.endswith("atom.xml"):
            check_atom(folder.files[name])
    assert 30 == len(read["llm-agent-training/rss.xml"].entries)
    assert {"all/rss.xml", "momentum/atom.xml", "llm-agent-training/atom.xml"} <= set(read)


def test_nothing_is_written_where_nothing_changed(store: SqlStore) -> None:
    """A second publish, by the same or by another publisher, writes no file; new papers write only what shows them."""
    folder, publisher = Folder(), Publisher()
    publisher.publish(store, OPTIONS, folder, now=NOW)
    assert () == publisher.publish(store, OPTIONS, folder, now=NOW + timedelta(hours=1)).written
    assert () == Publisher().publish(store, OPTIONS, folder, now=NOW + timedelta(hours=1)).written
