"""Real pages, read by hand: every field of every paper is right. Skipped where the pages are not beside the checkout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from digestd.model.paper import Paper
from digestd.model.snapshot import Page
from digestd.model.topic import Vocabulary
from digestd.parse.labels import load_vocabulary
from digestd.parse.listing import parse_listing
from tests.builders import make_document
from tests.shared import shared_path

PAGES = ("000_a3d9d309e03795fe", "001_9be04561b74ea5eb", "002_0950ec912c1729e2")
LABELS = Path(__file__).resolve().parents[2] / "config" / "labels.txt"


def _truth(name: str) -> dict[str, Any]:
    truth: dict[str, Any] = json.loads(shared_path("truth", f"{name}.json").read_text(encoding="utf-8"))
    return truth


def _parse(name: str, vocabulary: Vocabulary) -> Page:
    return parse_listing(make_document(shared_path("seeds", f"{name}.txt").read_bytes()), vocabulary)


def _expected(truth: dict[str, Any]) -> dict[str, Any]:
    """Return a paper's true fields under our names."""
    kept = ("title", "authors", "authors_more", "affiliations", "affiliations_more", "topics", "topics_more")
    return {key: truth[key] for key in kept} | {
        "title": truth["title_unicode"],
        "title_raw": truth["title"],
        "published": truth["date"],
        "categories": [truth["category"]],
        "abstract": truth["abstract_unicode"],
        "abstract_raw": truth["abstract"],
    }


def _actual(paper: Paper) -> dict[str, Any]:
    return {
        "title": paper.title,
        "title_raw": paper.title_raw,
        "published": str(paper.published),
        "categories": list(paper.categories),
        "abstract": paper.abstract,
        "abstract_raw": paper.abstract_raw,
        "authors": list(paper.authors),
        "authors_more": paper.authors_more,
        "affiliations": list(paper.affiliations),
        "affiliations_more": paper.affiliations_more,
        "topics": list(paper.topics),
        "topics_more": paper.topics_more,
    }


def _tight(text: str) -> str:
    """Return a text without white space: blanks at the seams of a torn abstract cannot be known from the page."""
    return "".join(text.split())


@pytest.mark.parametrize("name", PAGES)
def test_every_paper_of_a_real_page_is_right(name: str) -> None:
    """All papers equal the truth in every field; blanks at the seams of torn abstracts are no difference."""
    truth = _truth(name)
    page = _parse(name, load_vocabulary(LABELS.read_text(encoding="utf-8")))

    assert len(truth["papers"]) == len(page.papers)
    for true, paper in zip(truth["papers"], page.papers, strict=True):
        expected, actual = _expected(true), _actual(paper)
        if any("both right" in note for note in true["notes"]):
            expected["abstract"], actual["abstract"] = _tight(expected["abstract"]), _tight(actual["abstract"])
        expected["abstract_raw"], actual["abstract_raw"] = (
            _tight(expected["abstract_raw"]),
            _tight(actual["abstract_raw"]),
        )
        assert expected == actual
        assert (None, ()) == (paper.topics_unparsed, paper.warnings)


@pytest.mark.parametrize("name", PAGES)
def test_the_head_of_a_real_page_is_right(name: str) -> None:
    """Topic, gloss, momentum, chart weeks and total are those of the page, which is complete and needs no warning."""
    truth = _truth(name)
    stated = truth["momentum"]
    page = _parse(name, Vocabulary())
    momentum = page.momentum

    assert (truth["topic"], truth["expansion"], truth["total_papers"]) == (page.topic, page.gloss, page.total_papers)
    assert (False, ()) == (page.incomplete, page.warnings)
    assert momentum is not None
    assert stated["papers_last_four_weeks"] == momentum.papers_last_four_weeks
    assert (stated["change_percent"], stated["share_percent"]) == (momentum.change_percent, momentum.share_percent)
    assert (stated["chart_from_iso"], stated["chart_to_iso"]) == (str(momentum.chart_from), str(momentum.chart_to))
    assert stated["sentence"] == momentum.sentence


@pytest.mark.parametrize("name", PAGES)
def test_tag_lines_of_a_real_page_stay_whole_without_vocabulary(name: str) -> None:
    """Without known labels each line is one run, as printed, and no label is invented."""
    truth = _truth(name)
    page = _parse(name, Vocabulary())

    for true, paper in zip(truth["papers"], page.papers, strict=True):
        more = f"+{true['topics_more']}" if true["topics_more"] else ""
        assert (true["topics_raw"].removesuffix(more), true["topics_more"]) == (
            paper.topics_unparsed,
            paper.topics_more,
        )
        assert paper.topics == ()
