"""Digests materialised: slots, items, outbox rows and cursors on the disk, over groups of readers who want the same."""

from __future__ import annotations

import shutil
import time
from datetime import UTC, datetime
from pathlib import Path

from bench.corpus import make_paper, page_text
from bench.measure import Measure, Part

READERS = 6000
TOPICS = 20
PAPERS = 20
FOLLOWED = datetime(2026, 9, 27, 6, tzinfo=UTC)
SLOT = datetime(2026, 9, 28, 7, 30, tzinfo=UTC)


def prepare(folder: Path) -> None:
    """Let readers follow two of twenty topics each, with forty papers to tell."""
    from digestd.flows.ingest import IngestOptions, ingest_document
    from digestd.model.snapshot import Document
    from digestd.model.subscription import First
    from digestd.store import open_store
    from tests.followers import let_follow

    store = open_store(folder / "history.sqlite")
    for topic in range(TOPICS):
        page = page_text(topic, [make_paper(topic * PAPERS + number) for number in range(PAPERS)])
        options = IngestOptions(now=FOLLOWED, topic=f"Topic {topic:02d}")
        ingest_document(store, Document(page.encode()), options)
    with store.transaction():
        for number in range(READERS):
            topics = (f"Topic {number % TOPICS:02d}", f"Topic {(number + 1) % TOPICS:02d}")
            let_follow(store, f"r{number}@example.org", *topics, now=FOLLOWED, first=First("latest", latest=PAPERS))
    store.close()


def materialise(folder: Path) -> float:
    """Return digests made a second, in a fresh copy."""
    from digestd.flows.digest import dry_runs, make_due
    from digestd.store import open_store
    from tests.followers import make_kitchen

    copy = folder / "run.sqlite"
    for end in ("", "-wal", "-shm"):
        copy.with_name(copy.name + end).unlink(missing_ok=True)
    shutil.copy(folder / "history.sqlite", copy)
    store = open_store(copy)
    kitchen = make_kitchen(store)
    # a daemon has its modules loaded and its templates compiled long before the slot; its digests it has not
    dry_runs(kitchen, list(store.subscriptions.subscriptions())[:1], now=SLOT)
    begin = time.perf_counter()
    made = make_due(kitchen, now=SLOT)
    seconds = time.perf_counter() - begin
    items = store.engine.query("SELECT COUNT(*) AS items FROM told_item")[0]["items"]
    assert len(made) == READERS, f"{len(made)} digests"
    assert items == READERS * 2 * PAPERS, f"{items} items"
    store.close()
    return READERS / seconds


def render_each(folder: Path) -> float:
    """Return digests rendered a second where each reader's is rendered alone, nothing written."""
    from digestd.flows.digest import dry_runs
    from digestd.store import open_store
    from tests.followers import make_kitchen

    store = open_store(folder / "history.sqlite")
    kitchen = make_kitchen(store)
    chosen = list(store.subscriptions.subscriptions())[:60]
    begin = time.perf_counter()
    for subscription in chosen:
        (served,) = dry_runs(kitchen, [subscription], now=SLOT)
        assert served.made is not None
        assert kitchen.maker(SLOT).mail(served.made)
    seconds = time.perf_counter() - begin
    store.close()
    return len(chosen) / seconds


PART = Part(
    prepare,
    (
        Measure("make digests of 40 papers", "digests/s", materialise, 5000.0, "50,000 in 10 s", 1.0),
        Measure("make digests of 40 papers", "digests/s", materialise, render_each, "each rendered alone", 20.0),
    ),
)
