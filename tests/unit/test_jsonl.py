from __future__ import annotations

from datetime import UTC, datetime

from digestd.model.snapshot import Document
from digestd.parse.jsonl import documents_of
from tests.builders import make_document


def test_documents_of_gives_a_document_a_line_with_its_number() -> None:
    """Each line that is not blank becomes a document that says from which line it is and when it was fetched."""
    fetched_at = datetime(2026, 9, 30, tzinfo=UTC)
    body = b'\xef\xbb\xbf{"a": 1}\r\n\r\n  \n{"b": "\xc2\x85"}\n{"c": 3}'
    found = list(
        documents_of(make_document(body, origin="drop/pages.jsonl", name="pages.jsonl", fetched_at=fetched_at))
    )
    assert [
        Document(b'{"a": 1}', "drop/pages.jsonl#L1", None, fetched_at, "pages.jsonl.1.json"),
        Document(b'{"b": "\xc2\x85"}', "drop/pages.jsonl#L4", None, fetched_at, "pages.jsonl.4.json"),
        Document(b'{"c": 3}', "drop/pages.jsonl#L5", None, fetched_at, "pages.jsonl.5.json"),
    ] == found


def test_documents_of_reads_the_media_type_and_the_address() -> None:
    """A file says that it holds lines by its name, its address or its media type."""
    body = b'{"a": 1}\n{"b": 2}'
    for document in (
        make_document(body, media_type="application/x-ndjson; charset=utf-8"),
        make_document(body, origin="https://papers.example/out/All.JSONL?page=1"),
        make_document(body, name="all.ndjson"),
    ):
        assert [b'{"a": 1}', b'{"b": 2}'] == [one.body for one in documents_of(document)]


def test_documents_of_yields_other_documents_as_they_are() -> None:
    """A document that holds one page is handed on untouched."""
    document = make_document(b"{}\n{}", name="page.json", origin="https://papers.example/x.json")
    assert [document] == list(documents_of(document))


def test_documents_of_a_line_is_not_split_again() -> None:
    """A line's own document holds one page, so that splitting it again gives it back."""
    (line,) = documents_of(make_document(b'{"a": 1}', name="pages.jsonl"))
    assert "pages.jsonl#L1" == line.origin
    assert [line] == list(documents_of(line))
