"""What a document is, by what it holds."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.errors import ErrorPageError, ParseError, UnknownFormatError
from digestd.parse import PARSERS
from digestd.parse.detect import detect_format
from tests.builders import make_document
from tests.feeds import SHAPES, rss

LISTING = "Kelp Sound\n\nMomentum\n\n5 papers in the last four weeks.\n\nLatest papers 12\n"


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        *((feed, "feed") for feed in SHAPES.values()),
        ("\ufeff\n<!-- <html> --><?pi?><rss/>", "feed"),
        ("Warning: kelp in line 3\n" + rss(), "feed"),
        ("<!DOCTYPE rss [<!ENTITY a 'b'>]><rss/>", "feed"),
        (rss().encode("utf-16"), "feed"),
        (LISTING, "listing"),
        (LISTING.encode("utf-16"), "listing"),
        ("\ufeff" + LISTING.replace("\n", "\r\n"), "listing"),
        ("[1] Moss, Kelp, 2026", "listing"),
        (f"<!doctype html><html><body><pre>{LISTING}</pre></body></html>", "html"),
        (f"<?xml version='1.0'?><!DOCTYPE html><html><body>{LISTING}</body></html>", "html"),
        (f"<html><title>404 papers on kelp</title><p>{LISTING}</html>", "html"),
        ('{"schema": "digestd.snapshot/1", "topic": "Kelp", "papers": []}', "snapshot"),
        ('{"schema": "digestd.snapshot/1", "topic": "Kelp", "pap', "snapshot"),
        ('[{"paper": {"id": "2610.80001", "title": "Kelp"}}]', "hf"),
        ('{"total": 1, "offset": 0, "data": [{"paperId": "a1", "title": "Kelp"}]}', "s2"),
        ('[null, {"paperId": "a1", "title": "Kelp"}]', "s2"),
        ('{"total": 0, "offset": 0}', "s2"),
        ('{"meta": {"count": 0}, "results": []}', "openalex"),
        ('{"results": [{"id": "https://openalex.org/W1", "title": "Kelp"}]}', "openalex"),
        ('{"id": "https://openalex.org/W1", "title": "Kelp"}', "openalex"),
        ('[{"id": "https://openalex.org/W1", "title": "Kelp"}]', "openalex"),
        ('{"notes": [], "count": 0}', "openreview"),
        ('{"status": "ok", "message-type": "work-list", "message": {"items": []}}', "crossref"),
    ],
)
def test_detect_format(body: str | bytes, expected: str) -> None:
    """Content decides, whatever marks, junk and encodings stand around it."""
    assert expected == detect_format(make_document(body))


def test_detect_format_by_content_not_by_claim() -> None:
    """A feed served as a web page is a feed; a name and a media type break ties only."""
    claims = {"media_type": "text/html; charset=utf-8", "name": "kelp.html"}
    assert "feed" == detect_format(make_document(rss(), **claims))
    assert "listing" == detect_format(make_document(LISTING, **claims))
    assert "hf" == detect_format(make_document("[]", origin="https://huggingface.co/api/daily_papers"))


@pytest.mark.parametrize(
    "body",
    [
        "",
        " \n\x00",
        b"%PDF-1.7 kelp",
        b"\x1f\x8b\x08\x00kelp",
        b"\x89PNG\r\n",
        bytes(range(256)) * 4,
        "<opml><body/></opml>",
        '{"a": 1}',
        "[]",
        "From: a@kelp.example\nMIME-Version: 1.0\n\n<html></html>",
    ],
)
def test_detect_format_of_none(body: str | bytes) -> None:
    """Nothing, pictures, other XML and JSON, mails are of no known format."""
    with pytest.raises(UnknownFormatError):
        detect_format(make_document(body))


@pytest.mark.parametrize(
    "body",
    [
        "<html><head><title>503 Service Unavailable</title></head></html>",
        "<!DOCTYPE html><title>Just a moment...</title>",
        "<HTML><TITLE>Error</TITLE>",
        "502 Bad Gateway",
        "error code: 1015",
        "<Error><Code>AccessDenied</Code></Error>",
        '{"error": "Paper with id 0 not found"}',
        '{"message": "Too Many Requests"}',
    ],
)
def test_detect_format_of_an_error(body: str) -> None:
    """An error message served as a document is known as one."""
    with pytest.raises(ErrorPageError):
        detect_format(make_document(body))


def test_detect_format_of_broken_json() -> None:
    """What says that it is JSON and is none is an error of its own."""
    with pytest.raises(ParseError):
        detect_format(make_document('{"papers": [', name="kelp.json"))
    with pytest.raises(UnknownFormatError):
        detect_format(make_document("[]", origin="https://[kelp/"))


@given(st.binary(max_size=200), st.sampled_from([b"", b"<", b"{", b"<rss>", b"\xff\xfe", b"<!--", b"<!DOCTYPE x ["]))
@settings(max_examples=300, deadline=None)
def test_detect_format_of_anything(body: bytes, start: bytes) -> None:
    """Any bytes have a known format or are refused with a ParseError."""
    try:
        assert detect_format(make_document(start + body)) in PARSERS
    except ParseError:
        return
