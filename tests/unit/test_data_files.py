"""Real pages beside the checkout: each is read to the papers it holds, or refused with a clear error."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from digestd.errors import ErrorPageError, ParseError, UnknownFormatError
from digestd.model.snapshot import Document, Page
from digestd.parse import parse_document
from digestd.parse.feed_arxiv import undress_abstract, undress_title
from tests.shared import shared_path

SEEN = datetime(2026, 11, 30, tzinfo=UTC)

#: papers counted by hand (entries, items, notes of the file), by folder and name
COUNTS = {
    "biorxiv_rdf_miniflux.xml": 1,
    "arxiv_rss_new/zotero-arxiv-daily_arxiv_rss_example.xml": 7,
    "arxiv_rss_old/physbiblio_hep-ex_2018.rdf": 3,
    "cn_chat_arxiv_empty/cs.LG_empty_channel.xml": 0,
    "lookalikes/acm_like.rdf": 1,
    "lookalikes/dblp_like.rss": 1,
    "lookalikes/ieee_like.rss": 2,
    "lookalikes/medrxiv_like.rdf": 1,
    "lookalikes/plos_like.atom": 1,
    "lookalikes/springer_like.rss": 2,
    "lookalikes/hf_daily_papers.json": 1,
    "lookalikes/openalex_works.json": 1,  # the second work has no title
    "semanticscholar/test_empty_paginated_results_0.json": 0,
    "semanticscholar/test_get_paper_0.json": 1,
    "semanticscholar/test_search_paper_match_title_0.json": 1,
    "zotero/feed.atom": 1,
    "zotero/feed.rss": 3,
    "zotero/feedArticleMetadata.rss": 1,
    "zotero/feedCDATA.rss": 2,
    "zotero/feedDetailed.rss": 3,
    "zotero/feedMedia.xml": 1,
    "zotero/feedModified.rss": 4,
    "zotero/feedRichText.rss": 3,
    "zotero/feedWindows1252.rss": 1,
}
#: arXiv's API: how many entries each answer holds
API_COUNTS = {
    "id_0000.0000_s0_m100": 0, "id_0808.05394_1707.08567_s0_m100": 1, "id_0808.05394_s0_m100": 0,
    "id_1605.08386_s0_m100": 1, "id_1707.08567_s0_m100": 1, "id_2104.12255v1_s0_m100": 1,
    "id_astro-ph_0601001_s0_m100": 1, "id_quant-ph_0201082v1_s0_m100": 1, "q_testing_s0_m100": 100,
    "q_testing_s0_m10": 10, "q_testing_s0_m15": 15, "q_testing_s10_m10": 10, "q_testing_s20_m10": 10,
    "q_testing_s30_m10": 10, "q_testing_s40_m10": 10, "q_testing_s50_m10": 10, "q_testing_s5_m10": 10,
    "q_testing_s5_m15": 15, "q_testing_s9_m15": 15,
}  # fmt: skip
ERRORS = {
    "arxiv_api/arxivpy_id_abc_s0_m100_b79c8dcf6bc3.xml": ErrorPageError,
    "lookalikes/scholar_alert_new_articles.eml": UnknownFormatError,
    "semanticscholar/test_bad_query_parameters_0.json": ErrorPageError,
    "semanticscholar/test_not_found_0.json": ErrorPageError,
    "semanticscholar/test_not_found_1.json": ErrorPageError,
}


def _read(path: Path) -> Page:
    return parse_document(Document(path.read_bytes(), name=path.name, fetched_at=SEEN))


@pytest.mark.parametrize("name", COUNTS)
def test_papers_of_file(name: str) -> None:
    """Each real feed gives the papers that it holds, whole."""
    page = _read(shared_path("data", name))
    assert (COUNTS[name], False) == (len(page.papers), page.incomplete)


@pytest.mark.parametrize("name", API_COUNTS)
def test_papers_of_api_answer(name: str) -> None:
    """Each answer of arXiv's API gives its entries, each with number, version and authors."""
    (path,) = shared_path("data", "arxiv_api").glob(f"arxivpy_{name}_*.xml")
    page = _read(path)
    assert API_COUNTS[name] == len(page.papers)
    for paper in page.papers:
        assert "arxiv" == paper.ids[0].scheme
        assert paper.version is not None
        assert paper.authors or paper.group
        assert paper.published
        assert paper.categories


@pytest.mark.parametrize("name", ERRORS)
def test_error_of_file(name: str) -> None:
    """Each error message in disguise, and each foreign format, is refused as what it is."""
    with pytest.raises(ParseError) as caught:
        _read(shared_path("data", name))
    assert ERRORS[name] is type(caught.value)


def test_every_file_is_read_or_refused() -> None:
    """No real file raises anything but a ParseError."""
    for path in sorted(shared_path("data").rglob("*")):
        if path.is_file():
            try:
                _read(path)
            except ParseError:
                continue


def test_dress_of_real_titles() -> None:
    """1,500 real titles and abstracts lose arXiv's dress, and nothing else."""
    path = shared_path("data", "arxiv_rss_old", "old_style_items_1500.jsonl")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    titles = [undress_title(row["title"]) for row in rows]
    abstracts = [undress_abstract(row["abstract"]) for row in rows]
    assert [] == [dress.text for dress in titles if "arXiv:" in dress.text]
    assert [] == [dress.text for dress in abstracts if "Announce Type:" in dress.text]
    assert 332 == sum(dress.announce == "replace" for dress in titles)
    numbers = [title.number or abstract.number for title, abstract in zip(titles, abstracts, strict=True)]
    assert all(number is None or row["link"].endswith(number) for number, row in zip(numbers, rows, strict=True))
