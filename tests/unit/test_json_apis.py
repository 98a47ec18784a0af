"""The parsers of web APIs: hf, s2, openalex, openreview, crossref, and what they share."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.errors import ErrorPageError, ParseError
from digestd.model.paper import Paper, PaperId
from digestd.model.snapshot import Document, Order, Page
from digestd.model.topic import Vocabulary
from digestd.parse import parse_document
from digestd.parse.crossref import parse_crossref
from digestd.parse.hf import parse_hf
from digestd.parse.openalex import parse_openalex, rebuild_abstract
from digestd.parse.openreview import parse_openreview
from digestd.parse.s2 import parse_s2
from tests.builders import make_document
from tests.shared import shared_path

DATA = Path(__file__).parents[1] / "data" / "json"
SEEN_AT = datetime(2026, 10, 25, 6, 0, tzinfo=UTC)
NO_LABELS = Vocabulary()
Parse = Callable[[Document, Vocabulary], Page]
PARSERS: list[Parse] = [parse_hf, parse_s2, parse_openalex, parse_openreview, parse_crossref]


def read(parse: Parse, body: bytes | str | list[Any] | dict[str, Any]) -> Page:
    """Return the page of a body, or of a value as JSON."""
    raw = body if isinstance(body, bytes | str) else json.dumps(body)
    return parse(make_document(raw, fetched_at=SEEN_AT, origin="https://api.example/x"), NO_LABELS)


def own(name: str, parse: Parse) -> Page:
    """Return the page of a fixture of our own."""
    return read(parse, (DATA / name).read_bytes())


def test_parse_hf_reads_daily_papers() -> None:
    """A daily list gives arXiv papers by their own publication instant, hidden authors and script links left out."""
    page = own("hf_daily.json", parse_hf)
    first = Paper(
        title="Tide Clocks: Keeping Time with α-Waves",
        title_raw="Tide Clocks: Keeping Time with $\\alpha$-Waves",
        published=date(2026, 10, 19),
        published_at=datetime(2026, 10, 19, 17, 59, 59, tzinfo=UTC),
        abstract="We let buoys keep time. Drift falls by 40%.",
        abstract_raw="We let buoys keep time. Drift falls by 40\\%.",
        authors=("Ines Kolar", "Tomás Vidal"),
        affiliations=("Lagoon Institute",),
        topics=("buoys", "clock drift"),
        links=("https://arxiv.org/abs/2610.41207", "https://code.example/tide-clocks"),
        ids=(PaperId("arxiv", "2610.41207"),),
    )
    assert (first, Paper(title="Harbour Notes", title_raw="Harbour Notes")) == page.papers
    assert (None, Order.FEED, "hf", "https://api.example/x") == (page.topic, page.order, page.format, page.origin)
    assert ("papers left out: 1 of 3 (paper 2: expected a title, found null)",) == page.warnings


def test_parse_s2_reads_a_search() -> None:
    """A search gives papers by all their ids, without the mark of a file; a year alone is no date; null is absent."""
    page = own("s2_search.json", parse_s2)
    number = "0f0e0d0c0b0a09080706050403020100ffeeddcc"
    first = Paper(
        title="Counting Herring by Ear",
        title_raw="[PDF] Counting Herring by Ear",
        published=date(2026, 9, 28),
        categories=("Computer Science", "Biology"),
        abstract="Herring are loud.",
        abstract_raw="Herring are loud.",
        authors=("Mira Holt", "Mira Holt"),
        affiliations=("Harbour Labs",),
        links=(
            "https://arxiv.org/abs/2609.30111",
            "https://doi.org/10.48550/arxiv.2609.30111",
            f"https://www.semanticscholar.org/paper/{number}",
            "https://papers.example/herring.pdf",
        ),
        ids=(PaperId("arxiv", "2609.30111"), PaperId("doi", "10.48550/arxiv.2609.30111"), PaperId("s2", number)),
    )
    second = Paper(title="A Year Is Not a Date", title_raw="A Year Is Not a Date", ids=(PaperId("s2", "1" * 40),))
    assert (first, second) == page.papers
    assert (None, Order.FEED, None, "s2") == (page.topic, page.order, page.total_papers, page.format)
    assert ("papers left out: 1 of 3 (paper 3: expected a title, found null)",) == page.warnings


def test_parse_s2_reads_every_shape_of_answer() -> None:
    """Recommendations, batches with null, citations, single papers and empty searches are all answers."""
    paper = {"paperId": "a", "title": "Eels"}
    assert ["Listening for Eels", "Eels, Again"] == [one.title for one in own("s2_recommended.json", parse_s2).papers]
    assert ["Eels"] == [one.title for one in read(parse_s2, paper).papers]
    assert ["Eels"] == [one.title for one in read(parse_s2, {"token": "x", "data": [paper]}).papers]
    assert ["Eels"] == [one.title for one in read(parse_s2, {"data": [{"citingPaper": paper}]}).papers]
    batch = read(parse_s2, [None, paper])
    assert (["Eels"], ("papers not found by the source: 1 of 2",)) == (
        [one.title for one in batch.papers],
        batch.warnings,
    )
    assert () == read(parse_s2, {"total": 0, "offset": 0}).papers


def test_parse_openalex_reads_works() -> None:
    """A list of works gives titles without HTML, abstracts put together, institutions, and ids of all locations."""
    page = own("openalex_works.json", parse_openalex)
    first = Paper(
        title="Quiet Propellers in situ: CO₂ & noise where x < y",
        title_raw="Quiet Propellers <i>in situ</i>: CO<sub>2</sub> &amp; noise where x < y",
        published=date(2026, 10, 12),
        abstract="Propellers hum; we hum.",
        abstract_raw="Propellers hum; we hum.",
        authors=("Noor Haddad", "Piotr Zielak"),
        affiliations=("Reef University", "Harbour Labs", "Lagoon Institute, Gdynia"),
        topics=("Underwater Acoustics",),
        links=(
            "https://journal.example/a/7",
            "https://doi.org/10.5555/harbour.7.3",
            "http://arxiv.org/abs/2610.05005v2",
            "https://journal.example/a/7.pdf",
            "https://openalex.org/W4400000077",
        ),
        ids=(PaperId("doi", "10.5555/harbour.7.3"), PaperId("openalex", "W4400000077"), PaperId("arxiv", "2610.05005")),
    )
    second = Paper(
        title="Taken Back",
        title_raw="Taken Back",
        links=("https://openalex.org/W4400000078",),
        ids=(PaperId("openalex", "W4400000078"),),
        withdrawn=True,
    )
    assert (first, second) == page.papers
    assert 1 == len(page.warnings)
    work = {"authorships": [{"author": None}, {"raw_author_name": "N. Haddad"}], "title": "Alone"}
    single = read(parse_openalex, work)
    assert [("Alone", ("N. Haddad",))] == [(paper.title, paper.authors) for paper in single.papers]


def test_rebuild_abstract_of_odd_indexes() -> None:
    """Holes are closed, words of one place stand side by side, and what is no index gives nothing."""
    assert "a b" == rebuild_abstract({"b": [900], "a": [3]})
    assert "Yes (no) way!" == rebuild_abstract({"Yes": [0], "(no": [1], ")": [2], "way": [3], "!": [4]})
    odd: list[object] = [None, [], {}, {"a": 1}, {"a": [True, "x"]}]
    assert [None] * 5 == [rebuild_abstract(one) for one in odd]
    assert rebuild_abstract({"a": list(range(20_001))}) is None


def test_parse_openreview_reads_notes() -> None:
    """Submissions of both versions of the API are read, replies are not, and a withdrawn one says so."""
    page = own("openreview_notes.json", parse_openreview)
    first = Paper(
        title="Sparse Sonar for Small Boats",
        title_raw="Sparse Sonar for Small Boats",
        published=date(2026, 10, 2),
        published_at=datetime(2026, 10, 2, 0, 0, tzinfo=UTC),
        abstract="We use ℓ₁ penalties. Boats stay quiet.",
        abstract_raw="We use $\\ell_1$ penalties. Boats stay quiet.",
        authors=("Maren Oduya", "Tomás Vidal"),
        topics=("sonar", "sparsity"),
        links=("https://openreview.net/forum?id=kQ7xTide01", "https://openreview.net/pdf/0a1b2c.pdf"),
        ids=(PaperId("openreview", "kQ7xTide01"),),
    )
    second = Paper(
        title="Old Spelling",
        title_raw="Old Spelling",
        published=date(2026, 10, 1),
        published_at=datetime(2026, 10, 1, 0, 0, tzinfo=UTC),
        links=("https://openreview.net/forum?id=zz9",),
        ids=(PaperId("openreview", "zz9"),),
        withdrawn=True,
    )
    assert (first, second) == page.papers
    assert () == page.warnings


def test_parse_crossref_reads_works() -> None:
    """Names are put together, groups kept apart, JATS taken out, and only a whole date is a date."""
    page = own("crossref_works.json", parse_crossref)
    first = Paper(
        title="Mud & Memory",
        title_raw="Mud &amp; Memory",
        published=date(2026, 10, 2),
        categories=("Acoustics",),
        abstract="Mud remembers. So do we.",
        authors=("Ruth Cole", "Edward Li Jr."),
        group="Deep Sea Consortium",
        affiliations=("Lagoon Institute",),
        links=("https://doi.org/10.5555/lagoon.12",),
        ids=(PaperId("doi", "10.5555/lagoon.12"),),
    )
    second = Paper(
        title="Only a Year",
        title_raw="Only a Year",
        authors=("Okafor",),
        links=("https://doi.org/10.5555/lagoon.13",),
        ids=(PaperId("doi", "10.5555/lagoon.13"),),
    )
    assert (first, second) == (replace(page.papers[0], abstract_raw=None), page.papers[1])
    work = json.loads((DATA / "crossref_works.json").read_text())["message"]["items"][0]
    single = read(parse_crossref, {"status": "ok", "message-type": "work", "message": work})
    assert page.papers[:1] == single.papers


@pytest.mark.parametrize(
    ("name", "format_name"),
    [
        ("hf_daily.json", "hf"),
        ("s2_search.json", "s2"),
        ("s2_recommended.json", "s2"),
        ("openalex_works.json", "openalex"),
        ("openreview_notes.json", "openreview"),
        ("crossref_works.json", "crossref"),
        ("snapshot.json", "snapshot"),
    ],
)
def test_parse_document_sends_each_answer_to_its_parser(name: str, format_name: str) -> None:
    """JSON is told by what it holds, without a name or a media type."""
    assert format_name == parse_document(make_document((DATA / name).read_bytes())).format


@pytest.mark.parametrize(
    ("parse", "value"),
    [
        (parse_hf, {"error": "Internal Error"}),
        (parse_s2, {"error": "Internal Error"}),
        (parse_s2, {"message": "Internal Error", "code": "429"}),
        (parse_openalex, {"error": "Bad", "message": "Internal Error"}),
        (parse_openreview, {"name": "RateLimitError", "message": "Internal Error", "status": 429}),
        (parse_openreview, {"errors": [{"message": "Internal Error"}]}),
        (parse_crossref, {"status": "failed", "message-type": "x", "message": [{"message": "Internal Error"}]}),
        (parse_crossref, {"status": "error", "message": "Internal Error"}),
    ],
)
def test_parse_api_error_is_no_page(parse: Parse, value: dict[str, Any]) -> None:
    """An API's error is told as an error with what it said, never as an empty or changed page."""
    with pytest.raises(ErrorPageError, match="Internal Error" if "Bad" not in str(value) else "Bad"):
        read(parse, value)


@pytest.mark.parametrize("parse", PARSERS)
def test_parse_api_other_json_is_refused(parse: Parse) -> None:
    """JSON that is no answer of the API, or whose papers all lack a title, is a parse error that says what was found."""
    for value in ("7", '"text"', "{}", "null", "", "[" * 90_000):
        with pytest.raises(ParseError, match=r"expected .*, found"):
            read(parse, value)
    shapes: dict[str, Any] = {"data": [{}], "results": [{}], "notes": [{}], "status": "ok", "message": {"items": [{}]}}
    with pytest.raises(ParseError, match="none that can be read: paper 1: expected a title, found null"):
        read(parse, [{}] if parse in (parse_hf, parse_s2) else shapes)


@pytest.mark.parametrize("parse", PARSERS)
def test_parse_api_dates_far_ahead_are_unknown(parse: Parse) -> None:
    """A date years ahead never stands on top of all others: it is unknown, and the paper stays."""
    far, ms = "2031-05-06", 1935878400000
    one = {
        "title": "Far",
        "publicationDate": far,
        "publication_date": far,
        "publishedAt": f"{far}T00:00:00Z",
        "cdate": ms,
    }
    note = one | {"id": "a", "content": {"title": "Far"}, "paper": {"title": "Far"}}
    work = {"title": ["Far"], "issued": {"date-parts": [[2031, 5, 6]]}, "posted": {"date-parts": [[2026, 13, 1]]}}
    shapes = {"data": [one], "results": [one], "notes": [note], "status": "ok", "message": {"items": [work]}}
    page = read(parse, [note] if parse is parse_hf else shapes)
    assert [("Far", None, None)] == [(paper.title, paper.published, paper.published_at) for paper in page.papers]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12) | st.just("2026-10-01"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
KEYS = [
    "paper",
    "paperId",
    "id",
    "title",
    "abstract",
    "summary",
    "authors",
    "publishedAt",
    "publicationDate",
    "externalIds",
    "url",
    "doi",
    "DOI",
    "authorships",
    "abstract_inverted_index",
    "primary_location",
    "locations",
    "topics",
    "content",
    "cdate",
    "forum",
    "replyto",
    "author",
    "issued",
    "abstract",
    "affiliation",
    "openAccessPdf",
    "ids",
    "display_name",
    "fieldsOfStudy",
]


@settings(max_examples=60, deadline=None)
@given(
    papers=st.lists(st.dictionaries(st.sampled_from(KEYS), JSON, max_size=6) | JSON, max_size=3),
    titled=st.booleans(),
    wrap=st.sampled_from(["", "data", "results", "notes", "message", "recommendedPapers"]),
)
def test_parse_api_of_any_values_raises_only_parse_errors(papers: list[Any], titled: bool, wrap: str) -> None:
    """Whatever stands where a field is expected, there is a page or a ParseError."""
    if titled:
        papers = [{**one, "title": "Eels"} if isinstance(one, dict) else one for one in papers]
    value: Any = {wrap: {"items": papers} if wrap == "message" else papers} if wrap else papers
    for parse in PARSERS:
        with suppress(ParseError):
            read(parse, value)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=120))
def test_parse_api_of_any_bytes_raises_only_parse_errors(body: bytes) -> None:
    """Whatever the bytes are, the only error is ParseError."""
    for parse in PARSERS:
        with pytest.raises(ParseError):
            read(parse, body)


#: (file, parser, papers, first title, its date, its ids, its authors); read off the files by eye
REAL: list[tuple[str, Parse, int, str, date | None, set[str], int]] = [
    ("lookalikes/hf_daily_papers.json", parse_hf, 1, "Echo Caves", date(2026, 10, 20), {"arxiv:2610.90120"}, 2),
    (
        "lookalikes/openalex_works.json",
        parse_openalex,
        1,
        "Sound Budgets of an Atoll: in situ CO₂ & noise",
        date(2026, 10, 19),
        {"doi:10.5555/reef.4.12", "openalex:W9990000001"},
        2,
    ),
    (
        "lookalikes/openreview_v2_notes.json",
        parse_openreview,
        2,
        "Sparse Listening for Long Recordings",
        date(2025, 10, 21),
        {"openreview:Ab12Cd34"},
        2,
    ),
    (
        "small_public_fixtures/ai-papers-digest_hf_daily_papers.json",
        parse_hf,
        2,
        "Scaling Laws for Neural Language Models",
        date(2026, 3, 26),
        {"arxiv:2603.18718"},
        2,
    ),
    (
        "small_public_fixtures/frontier_openalex.json",
        parse_openalex,
        2,
        "A Study of Frontier Models",
        date(2026, 2, 10),
        {"doi:10.1234/example.1", "openalex:W1"},
        2,
    ),
    (
        "small_public_fixtures/frontier_semantic_scholar.json",
        parse_s2,
        2,
        "A Study of Frontier Models",
        date(2026, 2, 10),
        {"doi:10.1234/example.1", "s2:s2-1"},
        1,
    ),
    (
        "small_public_fixtures/vgi-scholar_crossref.json",
        parse_crossref,
        2,
        "Retrieval-Augmented Generation for Knowledge-Intensive NLP Tasks",
        date(2020, 5, 22),
        {"doi:10.1234/rag"},
        2,
    ),
    (
        "small_public_fixtures/vgi-scholar_openalex.json",
        parse_openalex,
        2,
        "Retrieval-Augmented Generation for Knowledge-Intensive NLP Tasks",
        date(2020, 5, 22),
        {"doi:10.1234/rag", "openalex:W1"},
        2,
    ),
    (
        "semanticscholar/test_get_paper_0.json",
        parse_s2,
        1,
        "Computing Machinery and Intelligence",
        None,
        {"s2:2d5673caa9e6af3a7b82a43f19ee920992db07ad"},
        0,
    ),
    (
        "semanticscholar/test_search_paper_match_title_0.json",
        parse_s2,
        1,
        "Mining association rules between sets of items in large databases",
        None,
        {"s2:6fe8c5bf8dddaadf10c765133d38dfef5714347f"},
        0,
    ),
]


@pytest.mark.parametrize(("name", "parse", "papers", "title", "day", "ids", "authors"), REAL)
def test_parse_api_real_answers(
    name: str, parse: Parse, papers: int, title: str, day: date | None, ids: set[str], authors: int
) -> None:
    """Answers recorded by others are read as a person reads them."""
    page = parse(make_document(shared_path("data", name).read_bytes()), NO_LABELS)
    first = page.papers[0]
    assert (papers, title, day) == (len(page.papers), first.title, first.published)
    assert ids == {str(one) for one in first.ids}
    assert authors == len(first.authors)


@pytest.mark.parametrize(
    ("name", "papers"),
    [
        ("test_search_paper_0.json", 100),
        ("test_get_recommended_papers_0.json", 100),
        ("test_search_paper_bulk_retrieval_0.json", 1000),
        ("test_search_paper_publication_date_or_year_0.json", 77),
        ("test_empty_paginated_results_0.json", 0),
    ],
)
def test_parse_s2_real_lists_lose_no_paper(name: str, papers: int) -> None:
    """Every paper of a recorded list is there."""
    body = shared_path("data", "semanticscholar", name).read_bytes()
    raw = json.loads(body)
    listed = raw.get("data", raw.get("recommendedPapers", []))
    assert min(papers, len(listed)) == len(parse_s2(make_document(body), NO_LABELS).papers)


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("test_bad_query_parameters_0.json", "Unrecognized or unsupported fields"),
        ("test_not_found_0.json", "Paper with id 0 not found"),
        ("PaperWithNullValues.json", "expected a title, found null"),
    ],
)
def test_parse_s2_real_errors(name: str, error: str) -> None:
    """Recorded errors are errors, with what they said."""
    with pytest.raises(ParseError, match=error):
        parse_s2(make_document(shared_path("data", "semanticscholar", name).read_bytes()), NO_LABELS)
