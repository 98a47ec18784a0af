"""Feeds and topic pages into histories of several sizes: first run, the same bytes again, one new paper in each document.

Entry points: :data:`PART` (1,000 and 100,000 papers) and ``bench.ingest_full`` (those, 10,000 and 1,000,000, and the peer).
Every run works on a copy of its history. The limits: papers as raw upserts into one table (first), a hash of each document
(unchanged), cutting feeds into hashed slices or hashing pages (one new paper in each).
"""

from __future__ import annotations

import hashlib
import shutil
import sqlite3
import time
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

from bench.corpus import NEWEST, PER_PAGE, make_paper, page_text, write_feeds, write_pages
from bench.measure import Measure, Part, Run

FEEDS, ENTRIES, PAGES = 4, 100, 15
PAPERS = {"feeds": FEEDS * ENTRIES, "pages": PAGES * PER_PAGE}
NOW = NEWEST + timedelta(days=2)
PHASES = ("first", "unchanged", "news")


def write_documents(folder: Path) -> None:
    """Write the feeds and pages, and the same with one new paper each."""
    write_feeds(folder / "feeds", feeds=FEEDS, entries=ENTRIES)
    write_feeds(folder / "feeds-news", feeds=FEEDS, entries=ENTRIES, fresh=1)
    write_pages(folder / "pages", pages=PAGES)
    (folder / "pages-news").mkdir(exist_ok=True)
    for number in range(PAGES):
        kept = [make_paper(50_000_000 + number * PER_PAGE + place) for place in range(PER_PAGE)]
        kept = sorted(kept, key=lambda paper: paper.published_at, reverse=True)[:-1]
        text = page_text(number, [make_paper(60_000_000 + number), *kept])
        (folder / "pages-news" / f"page-{number:05d}.txt").write_text(text, encoding="utf-8")


def prepare(sizes: Sequence[int], folder: Path) -> None:
    """Write documents and histories; beside each empty-handed history one that has read the documents."""
    from bench.history import make_history

    write_documents(folder)
    for size in sizes:
        make_history(folder / f"{size}.sqlite", size)
        for kind in PAPERS:
            read = folder / f"{size}-{kind}.sqlite"
            shutil.copy(folder / f"{size}.sqlite", read)
            ingest(read, folder / kind)


def ingest(history: Path, documents: Path) -> float:
    """Read all documents of a folder into a history and return the seconds that took."""
    from digestd.flows.ingest import IngestOptions, ingest_document
    from digestd.model.snapshot import Document
    from digestd.store import open_store

    store = open_store(history)
    options = IngestOptions(now=NOW)
    found = [
        Document(path.read_bytes(), origin=f"https://papers.example.org/{path.name}", fetched_at=_fetched_at(documents))
        for path in sorted(documents.iterdir())
    ]
    begin = time.perf_counter()
    for document in found:
        ingest_document(store, document, options)
    seconds = time.perf_counter() - begin
    store.engine.query("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()
    return seconds


def _fetched_at(documents: Path) -> datetime:
    return NOW if documents.name.endswith("-news") else NOW - timedelta(days=1)


def ours(kind: str, phase: str, size: int, folder: Path) -> float:
    """Return papers looked at a second of one run over all documents of a kind."""
    scratch = folder / "scratch.sqlite"
    for name in (scratch, *folder.glob("scratch.sqlite-*")):
        name.unlink(missing_ok=True)
    shutil.copy(folder / (f"{size}.sqlite" if phase == "first" else f"{size}-{kind}.sqlite"), scratch)
    return PAPERS[kind] / ingest(scratch, folder / (f"{kind}-news" if phase == "news" else kind))


def bodies(folder: Path) -> list[bytes]:
    """Return the documents of a folder."""
    return [path.read_bytes() for path in sorted(folder.iterdir())]


def limit_first(kind: str, folder: Path) -> float:
    """Return papers a second as upserts of their text into one table, in one transaction."""
    conn = sqlite3.connect(folder / f"limit-{kind}.sqlite", isolation_level=None)
    conn.execute("PRAGMA journal_mode=WAL")
    conn.execute("PRAGMA synchronous=FULL")
    conn.execute("DROP TABLE IF EXISTS paper")
    conn.execute(
        "CREATE TABLE paper (id INTEGER PRIMARY KEY, name TEXT UNIQUE, title TEXT, abstract TEXT, authors TEXT)"
    )
    papers = [make_paper(place) for place in range(10_000)]
    rows = [(paper.url, paper.title, paper.abstract, ", ".join(paper.authors)) for paper in papers]
    begin = time.perf_counter()
    conn.execute("BEGIN IMMEDIATE")
    conn.executemany(
        """INSERT INTO paper (name, title, abstract, authors) VALUES (?, ?, ?, ?)
        ON CONFLICT (name) DO UPDATE SET title = excluded.title, abstract = excluded.abstract, authors = excluded.authors""",
        rows,
    )
    conn.execute("COMMIT")
    seconds = time.perf_counter() - begin
    conn.close()
    return len(rows) / seconds


def limit_unchanged(kind: str, folder: Path) -> float:
    """Return papers a second in documents that are hashed as a whole."""
    found = bodies(folder / kind)
    begin = time.perf_counter()
    for _ in range(20):
        for body in found:
            hashlib.blake2b(body, digest_size=16).digest()
    return 20 * PAPERS[kind] / (time.perf_counter() - begin)


def limit_news(kind: str, folder: Path) -> float:
    """Return papers a second in feeds that are cut into hashed items; pages have no cheap cut and are parsed."""
    found = bodies(folder / f"{kind}-news")
    begin = time.perf_counter()
    if kind == "pages":
        from digestd.model.snapshot import Document
        from digestd.parse import parse_document

        for body in found:
            parse_document(Document(body))
        return PAPERS[kind] / (time.perf_counter() - begin)
    for _ in range(20):
        for body in found:
            _cut_and_hash(body)
    return 20 * PAPERS[kind] / (time.perf_counter() - begin)


def _cut_and_hash(body: bytes) -> list[bytes]:
    name = b"item" if b"<item>" in body else b"entry"
    hashes, at = [], 0
    while (start := body.find(b"<" + name, at)) >= 0:
        at = body.index(b"</" + name, start)
        hashes.append(hashlib.blake2b(body[start:at], digest_size=8).digest())
    return hashes


#: phase -> (words, limit, its name, ratio to reach for feeds and for pages)
LIMITS: dict[str, tuple[str, Callable[[str, Path], float], dict[str, str], dict[str, float]]] = {
    "first": ("first run", limit_first, dict.fromkeys(PAPERS, "raw upsert"), {"feeds": 0.04, "pages": 0.2}),
    "unchanged": ("same bytes", limit_unchanged, dict.fromkeys(PAPERS, "blake2b"), dict.fromkeys(PAPERS, 0.5)),
    "news": (
        "one new each",
        limit_news,
        {"feeds": "cut and hash", "pages": "parse alone"},
        {"feeds": 0.35, "pages": 0.35},
    ),
}


def measures(sizes: Sequence[int]) -> tuple[Measure, ...]:
    """Return the measures of both kinds and all phases at these sizes of the history."""
    return tuple(
        Measure(
            f"{kind}, {LIMITS[phase][0]}, {size:,} known",
            "papers/s",
            partial(ours, kind, phase, size),
            _limit(phase, kind),
            LIMITS[phase][2][kind],
            LIMITS[phase][3][kind],
        )
        for kind in PAPERS
        for phase in PHASES
        for size in (sizes if phase != "unchanged" else sizes[-1:])
    )


def _limit(phase: str, kind: str) -> Run:
    return partial(LIMITS[phase][1], kind)


SIZES = (1_000, 100_000)
PART = Part(partial(prepare, SIZES), measures(SIZES))
