"""Topic pages to papers, without the history."""

from __future__ import annotations

import time
from pathlib import Path

from bench.corpus import PER_PAGE, SEEDS, write_pages
from bench.measure import Measure, Part

PAGES = 300


def prepare(folder: Path) -> None:
    """Write the pages."""
    write_pages(folder, pages=PAGES)


def parse(folder: Path) -> float:
    """Return papers parsed a second of processor time."""
    from digestd.model.snapshot import Document
    from digestd.model.topic import Vocabulary
    from digestd.parse import parse_document

    labels = (SEEDS.parent / "config" / "labels.txt").read_text(encoding="utf-8").split("\n")
    vocabulary = Vocabulary(dict.fromkeys(filter(None, labels), 1))
    bodies = [path.read_bytes() for path in sorted(folder.glob("*.txt"))]
    begin = time.process_time()
    papers = sum(len(parse_document(Document(body), vocabulary).papers) for body in bodies)
    seconds = time.process_time() - begin
    assert papers == PAGES * PER_PAGE, f"expected {PAGES * PER_PAGE} papers, found {papers}"
    return papers / seconds


PART = Part(prepare, (Measure("parse topic pages", "papers/s", parse, 20_000.0, "fixed", 1.0),))
