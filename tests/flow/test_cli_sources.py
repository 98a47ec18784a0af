"""The same papers by several ways in are the same papers; no file, however odd, ends in a traceback; status in words."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pytest

from tests.command import Desk, make_desk
from tests.feeds import rss
from tests.shared import REASON, shared_path

SEEDS = Path(__file__).resolve().parents[2] / "seeds"
NOW = "2026-10-01T06:00:00Z"
TOPIC = "LLM Agent Training"


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Desk]:
    """A folder with settings and a history of its own."""
    yield from make_desk(tmp_path / "desk", capsys)


def arxiv_like(papers: list[dict[str, Any]], first: int) -> str:
    """Return these papers as arXiv would announce them, with numbers of their own."""
    items = [
        f"<title>{escape(paper['title_raw'])}</title><link>https://arxiv.org/abs/2609.{number}</link>"
        f"<guid isPermaLink='false'>oai:arXiv.org:2609.{number}v1</guid>"
        f"<dc:creator>{escape(', '.join(paper['authors']))}</dc:creator>"
        f"<category>{escape((paper['categories'] or ['cs.AI'])[0])}</category>"
        f"<pubDate>{paper['date']}T00:00:00Z</pubDate><arxiv:announce_type>new</arxiv:announce_type>"
        f"<description>arXiv:2609.{number}v1 Announce Type: new \nAbstract: {escape(paper['abstract_raw'] or '')}</description>"
        for number, paper in enumerate(papers, start=first)
    ]
    return rss(*items)


def write_ways_in(desk: Desk, pages: list[Path]) -> list[Path]:
    """Write each page as text, as a JSON snapshot and as a feed, and return the files."""
    files = []
    for number, path in enumerate(pages):
        snapshot = desk("parse", path, "--json", "--now", NOW).one
        files.append(desk.put(f"in/{number}.txt", path.read_bytes()))
        files.append(desk.put(f"in/{number}.json", json.dumps(snapshot)))
        files.append(desk.put(f"in/{number}.xml", arxiv_like(snapshot["papers"], 90_000 + 100 * number)))
    return files


def tell_in_order(desk: Desk, files: list[Path], history: str) -> tuple[Counter[str], list[dict[str, Any]]]:
    """Ingest the files in this order; return how often each title was told, and the topic's papers afterwards."""
    told: Counter[str] = Counter()
    db = str(desk.folder / history)
    for file in files:
        run = desk("ingest", file, "--topic", TOPIC, "--json", "--now", NOW, "--db", db)
        assert 0 == run.status, run.err
        told.update(title for one in run.objects for kind in ("new", "newly_tagged") for title in one[kind])
    rows: list[dict[str, Any]] = desk("papers", "--topic", TOPIC, "--json", "--now", NOW, "--db", db).one
    return told, rows


def hold_ninety(desk: Desk, pages: list[Path], seed: int) -> None:
    """Hold that the pages' ninety papers are ninety, by whatever ways and in whatever order they come."""
    files = write_ways_in(desk, pages)
    random.Random(seed).shuffle(files)
    told, rows = tell_in_order(desk, files, f"{seed}.sqlite")
    assert 90 == len(rows) == len({row["public_id"] for row in rows})
    assert {1} >= set(told.values())
    assert 90 == sum("arxiv" in row["ids"] for row in rows)


@pytest.mark.parametrize("seed", range(4))
def test_same_papers_by_every_way_in(desk: Desk, seed: int) -> None:
    """Three sample pages, the same papers as JSON and as a feed, in any order: 90 papers, each told at most once."""
    hold_ninety(desk, sorted(SEEDS.glob("*.txt")), seed)


@pytest.mark.parametrize("seed", range(4))
def test_same_real_papers_by_every_way_in(desk: Desk, seed: int) -> None:
    """Three real pages, the same papers as JSON and as a feed, in any order: 90 papers, each told at most once."""
    hold_ninety(desk, sorted(shared_path("seeds").glob("*.txt")), seed)


def public_files() -> list[str]:
    """Return all public files by their path, or one name that is skipped."""
    try:
        root = shared_path("data")
    except pytest.skip.Exception:
        return ["none"]
    return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


#: files that are no page of papers, and what is said of them; of all others, what is read in them
NOT_READ = {
    "SOURCES.md": "found neither",
    "arxiv_api/arxivpy_id_abc_s0_m100_b79c8dcf6bc3.xml": "an API error: incorrect id format",
    "arxiv_docs/atom_specifications.md": "found neither",
    "arxiv_docs/rss.md": "found neither",
    "arxiv_docs/rss_specifications.md": "found neither",
    "arxiv_rss_old/old_style_items_1500.jsonl": "JSON of another kind",
    "lookalikes/scholar_alert_new_articles.eml": "a mail message",
    "semanticscholar/PaperWithNullValues.json": "expected a title, found null",
    "semanticscholar/test_bad_query_parameters_0.json": "an API error: Unrecognized",
    "semanticscholar/test_not_found_0.json": "an API error: Paper with id 0 not found",
    "semanticscholar/test_not_found_1.json": "an API error: Author with id 0 not found",
}
#: valid answers without a paper
EMPTY = frozenset(
    {
        "arxiv_api/arxivpy_id_0000.0000_s0_m100_8b51d9633a68.xml",
        "arxiv_api/arxivpy_id_0808.05394_s0_m100_7b0c7d0a7cdd.xml",
        "cn_chat_arxiv_empty/cs.LG_empty_channel.xml",
        "semanticscholar/test_empty_paginated_results_0.json",
    }
)


@pytest.mark.parametrize("name", public_files())
def test_ingest_any_public_file_ends_with_papers_or_an_error(desk: Desk, name: str) -> None:
    """Every public file ends with papers or with a clear error, as the table says, never with a traceback."""
    if name == "none":
        pytest.skip(REASON)
    run = desk("ingest", shared_path("data", name), "--json", "--now", NOW)
    errors = [one["error"] for one in run.objects if one["error"]]
    papers = sum(len(one["baseline"]) + len(one["backfill"]) for one in run.objects)
    assert (name in NOT_READ, name in NOT_READ) == (bool(errors), run.status == 1)
    assert all(NOT_READ[name] in error and Path(name).name in error for error in errors)
    assert (name in NOT_READ or name in EMPTY) == (papers == 0)


def test_status_without_sources_says_how_to_name_one(desk: Desk) -> None:
    """Where no source is named, status says so and still has its keys."""
    answer = desk("status")
    assert (0, True) == (answer.status, "[[sources]]" in answer.err)
    assert {"sources": [], "topics": []}.items() <= desk("status", "--json").one.items()


def test_status_in_words(desk: Desk) -> None:
    """A person sees what is wrong, since when and why, and what is known of each topic."""
    desk.configure(
        'folders.done = "keep"\n[[sources]]\nkind = "folder"\nname = "inbox"\npath = "in"\n'
        '[[sources]]\nkind = "folder"\nname = "lost"\npath = "nowhere"\n'
    )
    page = sorted(SEEDS.glob("*.txt"))[0]
    path = desk.put("in/page.txt", page.read_bytes())
    os.utime(path, (0, 0))
    assert 1 == desk("collect", "--now", NOW).status
    lines = desk("status", "--now", NOW).out.splitlines()
    rows = [line.split() for line in lines]
    assert ["inbox", "ok", "2026-10-01", "06:00", "now"] in rows
    assert ["!", "lost", "broken", "never"] in [row[:4] for row in rows]
    assert any(line.startswith("    since 2026-10-01 06:00: ") for line in lines)
    assert "nowhere cannot be read: No such file or directory" in " ".join(" ".join(lines).split())
    assert [] == [line for line in lines if len(line) > 80 and len(line.split()) > 1]
    assert any(line.startswith(f"  {TOPIC}: complete since") for line in lines)


def test_collect_in_words(desk: Desk) -> None:
    """A person sees per source what is new; without sources, how to name one."""
    assert "[[sources]]" in desk("collect").err
    desk.configure('[[sources]]\nkind = "folder"\nname = "inbox"\npath = "in"\n')
    path = desk.put("in/page.txt", sorted(SEEDS.glob("*.txt"))[0].read_bytes())
    os.utime(path, (0, 0))
    assert f"inbox: {TOPIC}: 30 baseline" in desk("collect", "--now", NOW).out
