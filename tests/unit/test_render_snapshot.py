from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.model.paper import Paper, PaperId
from digestd.model.snapshot import Order, Page, StatedMomentum
from digestd.model.topic import Vocabulary
from digestd.parse.charset import one_line
from digestd.parse.jsonpage import parse_snapshot
from digestd.render.snapshot import page_json
from tests.builders import make_document, make_page, make_paper

PAGE_KEYS = ["schema", "topic", "gloss", "origin", "order", "observed_at", "momentum", "total_papers", "papers"]
MOMENTUM_KEYS = [
    "papers_last_four_weeks",
    "change_percent",
    "previous_papers",
    "share_percent",
    "share_below",
    "chart_from",
    "chart_to",
    "sentence",
]
PAPER_KEYS = [
    "title",
    "title_raw",
    "date",
    "published_at",
    "categories",
    "abstract",
    "abstract_raw",
    "authors",
    "authors_more",
    "group",
    "affiliations",
    "affiliations_more",
    "topics",
    "topics_more",
    "topics_unparsed",
    "links",
    "ids",
    "version",
    "announce",
    "warnings",
]

lines = st.text(max_size=30).map(lambda text: one_line(text).strip())
words = lines.filter(bool)
texts = st.lists(words, max_size=3).map(tuple)
days = st.dates(min_value=date(1800, 1, 1), max_value=date(2999, 1, 1))
instants = st.datetimes(min_value=datetime(1800, 1, 1), max_value=datetime(2999, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001  # hypothesis wants bounds without a zone
counts = st.integers(min_value=0, max_value=2**53)
links = st.lists(st.integers(0, 99).map(lambda n: f"https://papers.example/p/{n}?a=b"), max_size=2, unique=True).map(
    tuple
)
ids = st.lists(
    st.integers(0, 9999).map(lambda n: PaperId("arxiv", f"2609.1{n:04}"))
    | st.integers(0, 9).map(lambda n: PaperId("doi", f"10.5555/x.{n}"))
    | st.integers(0, 9).map(lambda n: PaperId("url", f"papers.example/p/{n}"))
    | words.map(lambda text: PaperId("guid", text)),
    max_size=4,
    unique=True,
).map(lambda found: tuple(sorted(found)))

papers = st.builds(
    Paper,
    title=words,
    title_raw=lines,
    published=st.none() | days,
    published_at=st.none() | instants,
    categories=texts,
    abstract=st.none() | words,
    abstract_raw=st.none() | words,
    authors=texts,
    authors_more=counts,
    group=st.none() | words,
    affiliations=texts,
    affiliations_more=counts,
    topics=texts,
    topics_more=counts,
    topics_unparsed=st.none() | words,
    links=links,
    ids=ids,
    version=st.none() | st.integers(1, 99),
    announce=st.sampled_from([None, "new", "cross", "replace", "replace-cross"]),
    warnings=texts,
)
momenta = st.builds(
    StatedMomentum,
    papers_last_four_weeks=counts,
    change_percent=st.none() | st.integers(-(2**53), 2**53),
    previous_papers=st.none() | counts,
    share_percent=st.none() | st.floats(0, 100),
    share_below=st.booleans(),
    chart_from=st.none() | days,
    chart_to=st.none() | days,
    sentence=lines,
)
pages = st.builds(
    Page,
    topic=words,
    papers=st.lists(papers, max_size=3).map(tuple),
    order=st.sampled_from(Order),
    gloss=st.none() | words,
    origin=st.none() | words,
    observed_at=st.none() | instants,
    momentum=st.none() | momenta,
    total_papers=st.none() | counts,
    format=st.just("snapshot"),
)


@settings(max_examples=200)
@given(pages)
def test_page_json_reads_back_as_the_same_page(page: Page) -> None:
    """What is printed as JSON is read back as the same page, field for field."""
    spelt = tuple(replace(paper, title_raw=paper.title_raw or paper.title) for paper in page.papers)
    found = parse_snapshot(make_document(json.dumps(page_json(page))), Vocabulary())
    assert replace(page, papers=spelt) == replace(found, warnings=())


def test_page_json_has_exactly_the_keys_of_the_schema() -> None:
    """The object has the schema's keys in the schema's order, whether or not the page has the fields."""
    page = make_page([make_paper()], momentum=StatedMomentum(3))
    found = page_json(page)
    assert PAGE_KEYS == list(found)
    assert isinstance(found["momentum"], dict)
    assert MOMENTUM_KEYS == list(found["momentum"])
    assert isinstance(found["papers"], list)
    assert PAPER_KEYS == list(found["papers"][0])
    assert "digestd.snapshot/1" == found["schema"]


def test_page_json_of_a_page_without_momentum_says_null() -> None:
    """A page that states no momentum gives null, never zeros."""
    assert page_json(make_page())["momentum"] is None


def test_page_json_spells_instants_dates_and_ids() -> None:
    """Instants are UTC with a Z, dates are plain, ids are text by scheme and a list where a scheme has several."""
    paper = make_paper(
        published=date(2026, 9, 20),
        published_at=datetime(2026, 9, 20, 17, 59, 59, tzinfo=UTC),
        ids=[PaperId("arxiv", "2609.12345"), PaperId("url", "a.example/1"), PaperId("url", "b.example/1")],
    )
    found = page_json(make_page([paper], observed_at=datetime(2026, 9, 30, 6, tzinfo=UTC)))
    assert "2026-09-30T06:00:00Z" == found["observed_at"]
    assert isinstance(found["papers"], list)
    first = found["papers"][0]
    assert ("2026-09-20", "2026-09-20T17:59:59Z") == (first["date"], first["published_at"])
    assert {"arxiv": "2609.12345", "url": ["a.example/1", "b.example/1"]} == first["ids"]
    assert first["title"] == first["title_raw"]
