from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.errors import DigestdError, ErrorPageError, ParseError
from digestd.model.paper import Paper, PaperId
from digestd.model.snapshot import Order, StatedMomentum
from digestd.model.topic import Vocabulary
from digestd.parse.jsonpage import parse_snapshot
from tests.builders import make_document

DATA = Path(__file__).parents[1] / "data" / "json"
NO_LABELS = Vocabulary()


def snapshot(papers: object = None, **fields: object) -> bytes:
    """Return a snapshot with these papers and fields, as bytes."""
    whole = {"schema": "digestd.snapshot/1", "topic": "Reef Sound", "papers": [{"title": "Echo Caves"}]} | fields
    if papers is not None:
        whole["papers"] = papers
    return json.dumps(whole).encode()


def test_parse_snapshot_reads_every_field() -> None:
    """Each field of the schema lands in its place, ids and instants in the spelling by which they are compared."""
    page = parse_snapshot(make_document((DATA / "snapshot.json").read_bytes()), NO_LABELS)
    assert ("Reef Sound", "RS: Reef Sound", "https://papers.example/reef") == (page.topic, page.gloss, page.origin)
    assert (Order.LISTING, 354, False) == (page.order, page.total_papers, page.incomplete)
    assert datetime(2026, 9, 30, 6, 0, tzinfo=UTC) == page.observed_at
    sentence = "54 papers in the last four weeks, up 145% on the four weeks before. 0.5% of all new papers."
    expected = StatedMomentum(54, 145, None, 0.5, False, date(2026, 7, 13), date(2026, 9, 28), sentence)
    assert expected == page.momentum
    first = Paper(
        title="Tide Tables for Models",
        published=date(2026, 9, 29),
        categories=("cs.SD", "eess.AS"),
        abstract="We read the tide.",
        authors=("Lea Fontaine", "Yun-Seo Baek"),
        authors_more=2,
        affiliations=("Lagoon Institute",),
        topics=("Reef Sound", "Tides"),
        topics_more=1,
        links=("https://papers.example/p/1",),
        ids=(
            PaperId("arxiv", "2609.12345"),
            PaperId("doi", "10.5555/tide.1"),
            PaperId("url", "papers.example/p/1"),
        ),
        version=2,
    )
    assert (first, Paper(title="Nothing but a Title")) == page.papers
    assert () == page.warnings


@pytest.mark.parametrize(
    ("body", "named"),
    [
        (snapshot(schema="digestd.snapshot/2"), "schema: expected digestd.snapshot/1, found the text 'digestd.snapshot/2'"),
        (b'{"topic": "X", "papers": []}', "schema: expected digestd.snapshot/1, found no such key"),
        (b'{"schema": "digestd.snapshot/1", "papers": []}', "topic: expected a text that is not empty, found no such key"),
        (snapshot(topic=" "), "topic: expected a text that is not empty, found the text ' '"),
        (snapshot(topic=None), "topic: expected a text that is not empty, found null"),
        (b'{"schema": "digestd.snapshot/1", "topic": "X"}', "papers: expected a list of papers, found no such key"),
        (snapshot(papers={}), "papers: expected a list of papers, found an object"),
        (snapshot(["x"]), "papers[0]: expected an object, found the text 'x'"),
        (snapshot([{"title": "A"}, {}]), "papers[1].title: expected a text that is not empty, found no such key"),
        (snapshot([{"title": 7}]), "papers[0].title: expected text or null, found the number 7"),
        (snapshot([{"title": "A", "authors": "Ana"}]), "papers[0].authors: expected a list of texts, found the text 'Ana'"),
        (snapshot([{"title": "A", "date": 2026}]), "papers[0].date: expected text or null, found the number 2026"),
        (snapshot([{"title": "A", "version": 0}]), "papers[0].version: expected a whole number of at least 1, found the"),
        (snapshot([{"title": "A", "version": True}]), "papers[0].version: expected a whole number of at least 1, found true"),
        (snapshot([{"title": "A", "announce": "old"}]), "papers[0].announce: expected one of new, cross, repl"),
        (snapshot([{"title": "A", "ids": []}]), "papers[0].ids: expected an object of ids, found a list"),
        (snapshot([{"title": "A", "ids": {"doi": 1}}]), "papers[0].ids.doi: expected text or null, found the number 1"),
        (snapshot(order="random"), "order: expected one of listing, feed, found the text 'random'"),
        (snapshot(order=[]), "order: expected one of listing, feed, found a list"),
        (snapshot(total_papers="12"), "total_papers: expected a whole number of at least 0, found the text '12'"),
        (snapshot(momentum=[]), "momentum: expected an object or null, found a list"),
        (snapshot(momentum={}), "momentum.papers_last_four_weeks: expected a whole number of at least 0, found no such key"),
        (
            snapshot(momentum={"papers_last_four_weeks": 1, "share_percent": 101}),
            "momentum.share_percent: expected a number from 0 to 100 or null, found the number 101",
        ),
        (
            snapshot(momentum={"papers_last_four_weeks": 1, "share_below": 1}),
            "momentum.share_below: expected true or false, found the number 1",
        ),
        (snapshot(momentum={"papers_last_four_weeks": float("nan")}), "found NaN"),
        (b" " * 20_000_001, "expected at most 20,000,000 bytes of JSON, found 20,000,001"),
        (b"[]", "expected an object of schema digestd.snapshot/1, found a list"),
        (b"", "expected JSON, found an empty document"),
        (b'{"schema": \n nope}', "line 2: expected JSON, found at column 2: expecting value"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"a":' * 100_000, "nested too deeply"),
    ],
)  # fmt: skip
def test_parse_snapshot_off_the_schema_names_the_key(body: bytes, named: str) -> None:
    """What does not keep the schema is a parse error that says where, what was expected and what was found."""
    with pytest.raises(ParseError) as caught:
        parse_snapshot(make_document(body), NO_LABELS)
    assert named in str(caught.value)


def test_parse_snapshot_of_an_api_error_says_what_the_api_said() -> None:
    """An error message served as JSON is told as such, not as a missing key."""
    with pytest.raises(ErrorPageError, match="API error: Too many requests"):
        parse_snapshot(make_document('{"message": "Too many requests"}'), NO_LABELS)


@pytest.mark.parametrize(
    ("value", "named"), [("NaN", "NaN"), ("-Infinity", "-Infinity"), ("9" * 5000, "5,000 digits"), ("1e999", "1e999")]
)
def test_parse_snapshot_with_a_value_no_field_holds_leaves_out_that_paper_alone(value: str, named: str) -> None:
    """A paper with NaN, Infinity or a number of thousands of digits is left out, counted, and the page is incomplete."""
    body = snapshot([{"title": "A"}, {"title": "B", "version": 77}]).replace(b"77", value.encode())
    page = parse_snapshot(make_document(body), NO_LABELS)
    assert ["A"] == [paper.title for paper in page.papers]
    assert page.incomplete
    assert 1 == len(page.warnings)
    assert page.warnings[0].startswith("papers left out: 1 of 2 (papers[1] holds ")
    assert named in page.warnings[0]


def test_parse_snapshot_with_only_unreadable_papers_is_an_error() -> None:
    """A page of which no paper can be read is no empty page."""
    body = snapshot([{"title": "B", "version": 77}]).replace(b"77", b"NaN")
    with pytest.raises(ParseError, match=r"none that can be read: papers\[0\] holds NaN"):
        parse_snapshot(make_document(body), NO_LABELS)


def test_parse_snapshot_unknown_keys_are_left_out_with_a_warning() -> None:
    """Keys that the schema does not have are named once each object and otherwise ignored, whatever they hold."""
    body = snapshot([{"title": "A", "score": 77}], extra=1).replace(b"77", b"NaN")
    page = parse_snapshot(make_document(body), NO_LABELS)
    assert ["A"] == [paper.title for paper in page.papers]
    assert ("unknown keys left out: extra", "unknown keys left out: papers[0].score") == page.warnings


def test_parse_snapshot_many_warnings_are_counted() -> None:
    """An exporter that is wrong in every paper does not fill the log."""
    page = parse_snapshot(make_document(snapshot([{"title": "A", "score": 1}] * 450)), NO_LABELS)
    assert (450, 201, "250 more warnings") == (len(page.papers), len(page.warnings), page.warnings[-1])


def test_parse_snapshot_duplicate_keys_are_warned_of() -> None:
    """Of a key given twice the last value counts, and the page says so."""
    body = b'{"schema": "digestd.snapshot/1", "topic": "A", "topic": "B", "papers": []}'
    page = parse_snapshot(make_document(body), NO_LABELS)
    assert "B" == page.topic
    assert ("key 'topic' given more than once, the last one counts",) == page.warnings


def test_parse_snapshot_many_repairs_are_counted() -> None:
    """Of the repairs to a document the first twenty are told, the rest are counted."""
    papers = ", ".join(f'{{"title": "A", "x{number}": 1, "x{number}": 2}}' for number in range(25))
    body = f'{{"schema": "digestd.snapshot/1", "topic": "A", "papers": [{papers}]}}'
    page = parse_snapshot(make_document(body), NO_LABELS)
    assert (45 + 1, "5 more warnings of this kind") == (len(page.warnings), page.warnings[20])


def test_parse_snapshot_lone_surrogates_are_replaced() -> None:
    """Half a surrogate pair would break the database and the mail later, so it never gets past the parser."""
    body = snapshot([{"title": "HALF PAIR \\"}]).replace(b"HALF", b"\\ud83d x").replace(b"PAIR", b"\\ud83d\\ude00")
    page = parse_snapshot(make_document(body), NO_LABELS)
    assert "� x 😀 \\" == page.papers[0].title
    assert ("1 lone surrogates replaced by U+FFFD",) == page.warnings


def test_parse_snapshot_with_a_byte_order_mark_is_read() -> None:
    """A byte order mark, of UTF-8 or UTF-16, is no part of the text."""
    for body in (b"\xef\xbb\xbf" + snapshot(), snapshot().decode().encode("utf-16")):
        assert "Reef Sound" == parse_snapshot(make_document(body), NO_LABELS).topic


def test_parse_snapshot_dates_that_are_none_are_unknown_with_a_warning() -> None:
    """Impossible dates, dates of the far future and instants without a zone are unknown, and the paper stays."""
    papers = [
        {"title": "A", "date": "2026-02-30"},
        {"title": "B", "date": "2031-01-01"},
        {"title": "C", "published_at": "2026-09-01T10:00:00"},
        {"title": "C", "published_at": "this morning"},
        {"title": "D", "date": "2026-09-30", "published_at": "2026-09-30T01:00:00-05:00"},
    ]
    page = parse_snapshot(make_document(snapshot(papers), fetched_at=datetime(2026, 9, 30, tzinfo=UTC)), NO_LABELS)
    assert [None, None, None, None, date(2026, 9, 30)] == [paper.published for paper in page.papers]
    assert [None, None, None, None, datetime(2026, 9, 30, 6, tzinfo=UTC)] == [
        paper.published_at for paper in page.papers
    ]
    assert 4 == len(page.warnings)
    assert "papers[1].date: expected a date like 2026-10-19, found '2031-01-01'; left out" == page.warnings[1]


def test_parse_snapshot_links_that_are_none_are_left_out() -> None:
    """Only web addresses pass as links, and ids only in their scheme's spelling."""
    papers = [{"title": "A", "links": ["javascript:alert(1)", "https://a.example/"], "ids": {"arxiv": "x", "B B": "1"}}]
    page = parse_snapshot(make_document(snapshot(papers)), NO_LABELS)
    assert (("https://a.example/",), ()) == (page.papers[0].links, page.papers[0].ids)
    assert 3 == len(page.warnings)


def test_parse_snapshot_of_a_feed_may_have_no_topic() -> None:
    """What digestd prints of a feed, which names no topic, can be read back."""
    page = parse_snapshot(make_document(snapshot(order="feed", topic=None)), NO_LABELS)
    assert (None, Order.FEED) == (page.topic, page.order)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)
FIELDS = ("title", "date", "authors", "ids", "links", "version", "published_at", "topics", "authors_more", "announce")


@settings(max_examples=300)
@given(
    st.lists(st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=6), max_size=3),
    st.dictionaries(
        st.sampled_from(["topic", "order", "momentum", "total_papers", "observed_at", "x"]), JSON, max_size=3
    ),
)
def test_parse_snapshot_of_any_values_raises_only_parse_errors(papers: Any, fields: dict[str, object]) -> None:
    """Whatever stands where a field is expected, there is a page or a ParseError."""
    with suppress(ParseError):
        parse_snapshot(make_document(snapshot(papers, **fields)), NO_LABELS)


@settings(max_examples=300)
@given(st.binary(max_size=200) | st.text(alphabet='{}[]",:\\ud8dc0123456789eE.-NaInfity', max_size=80).map(str.encode))
def test_parse_snapshot_of_any_bytes_raises_only_parse_errors(body: bytes) -> None:
    """Whatever the bytes are, the only error is ParseError."""
    with pytest.raises(DigestdError) as caught:
        parse_snapshot(make_document(body), NO_LABELS)
    assert isinstance(caught.value, ParseError)
