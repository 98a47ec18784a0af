"""Which format is a document? Floor 1, pure.

Entry point: :func:`detect_format`. What a document holds decides; its name and media type only break ties, for servers
send feeds as text/html and error pages as anything. Formats: ``feed``, ``html``, ``listing`` (text), ``snapshot``, and
the JSON of services: ``hf``, ``s2``, ``openalex``, ``openreview``, ``crossref``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import urlsplit

from digestd.errors import ErrorPageError, ParseError, UnknownFormatError
from digestd.model.snapshot import Document
from digestd.parse.charset import decode_body, one_line
from digestd.parse.jsontext import dig, list_of, read_json, refuse_error

#: enough of a document to tell what it is
_HEAD = 65_536
_MAGIC = (
    (b"%PDF", "a PDF"), (b"PK\x03\x04", "a ZIP archive"), (b"\x89PNG", "a picture"), (b"GIF8", "a picture"),
    (b"\xff\xd8\xff", "a picture"), (b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"), (b"BZh", "bzip2"),
    (b"\xfd7zXZ", "xz"), (b"SQLite format 3", "a database"), (b"\x7fELF", "a program"), (b"{\\rtf", "RTF"),
    (b"%!PS", "PostScript"),
)  # fmt: skip
_UTF16_OR_32 = (b"\xff\xfe", b"\xfe\xff", b"\x00\x00\xfe\xff")
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1a\x1c-\x1f\x7f]")
_ROOT = re.compile(r"<(?:[A-Za-z_][\w.-]{0,20}:)?(?P<local>[A-Za-z][\w.-]{0,40})(?=[\s/>])")
_FEED_ROOTS = frozenset(("rss", "feed", "RDF"))
_HTML = re.compile(
    r"<(?:!doctype\s+html|html|head|body|meta|title|main|article|section|header|nav|div|p|h[1-6]|table|ul|ol|script|style|"
    r"link|span|a|center|form|br|hr|font)\b",
    re.IGNORECASE,
)
_TITLE = re.compile(r"<title\b[^<>]{0,200}>([^<]{1,300})", re.IGNORECASE)
#: titles that no listing has; everything less plain is left to the parser of listings
_ERROR_TITLE = re.compile(
    r"(?i)(?:error\s*)?(?:4\d\d|5\d\d)\b.{0,60}|just a moment\W*|attention required.*|access (?:to this page )?(?:has been )?"
    r"denied.*|service (?:temporarily )?unavailable.*|bad gateway.*|gateway time-?out.*|internal server error.*|"
    r"(?:page )?not found\W*|forbidden\W*|too many requests.*|error\W*|(?:down for|under|site) maintenance.*|"
    r"(?:request|connection) (?:timed out|timeout).*|are you (?:a robot|human)\W*|checking your browser.*"
)
_LISTING_SIGNS = re.compile(r"Latest papers|papers in the last four weeks|Follow this topic")
_ERROR_TEXT = re.compile(
    r"(?i)(?:error(?: code)?\W{1,3}.{0,200}|(?:http\S* )?(?:4\d\d|5\d\d) [a-z].{0,100}|.{0,40}rate exceeded.{0,40}|"
    r"rate limit.{0,100}|too many requests.{0,100}|access denied.{0,200}|(?:service unavailable|bad gateway|forbidden).{0,100}|"
    r"internal server error.{0,100}|not found\W*|(?:upstream|no healthy) .{0,100}|unauthorized.{0,100})"
)
_MAIL_HEADER = re.compile(
    r"(?:From|Received|Return-Path|Delivered-To|Message-ID|MIME-Version|Subject|Date|To): ", re.IGNORECASE
)
_ERROR_ROOTS = re.compile(r"(?i)error|errors|fault|exception|errorresponse|response")


def detect_format(document: Document) -> str:
    """Return a key of PARSERS.

    Args:
        document: bytes as fetched, decompressed.

    Raises:
        UnknownFormatError: it looks like none of them: nothing, a picture, a PDF, a mail, other XML or JSON.
        ErrorPageError: it is an error message served as a document: an HTML page of a server or a guard against robots
            that shows no listing, a JSON or XML error, a line of text.
    """
    body, origin = document.body, document.origin
    if not body.strip(b" \t\r\n\x00\xef\xbb\xbf"):
        raise UnknownFormatError("expected a page, found an empty document", origin=origin)
    for magic, what in _MAGIC:
        if body.startswith(magic):
            raise UnknownFormatError(f"expected a page, found {what}", origin=origin)
    text = decode_body(body[:_HEAD], document.media_type).text.lstrip("\ufeff \t\r\n\x00")
    if text[:1] in ("{", "["):
        found = _detect_json(document, text)
        if found:
            return found
    root = _first_element(text)
    if root in _FEED_ROOTS:
        return "feed"
    _refuse_binary(body, text, origin)
    if _MAIL_HEADER.match(text) and re.search(r"(?im)^(?:MIME-Version|Message-ID|Received):", text[:8192]):
        raise UnknownFormatError("expected a page, found a mail message", origin=origin)
    if _looks_like_html(document, text, root):
        _refuse_error_page(text, origin)
        return "html"
    if text.startswith("<") and root is not None:
        kind = ErrorPageError if _ERROR_ROOTS.fullmatch(root) else UnknownFormatError
        raise kind(f"expected a feed or a page, found XML with the root {root!r}", origin=origin)
    return _detect_text(text, origin, whole=len(body) <= _HEAD)


def _first_element(text: str) -> str | None:
    """Return the local name of the first element, whatever declarations, comments and junk stand before it."""
    at = text.find("<")
    while 0 <= at < len(text):
        closing = next((end for start, end in (("<!--", "-->"), ("<?", "?>")) if text.startswith(start, at)), None)
        if closing:
            end = text.find(closing, at)
        elif text[at : at + 2] == "<!":
            end = text.find(">", at)
            subset = text.find("[", at)
            if 0 <= subset < end:
                match = re.compile(r"\]\s{0,100}>").search(text, subset)
                end = match.end() - 1 if match else -1
        elif match := _ROOT.match(text, at):
            return match["local"]
        else:
            end = at
        at = text.find("<", end + 1) if end >= 0 else -1
    return None


def _refuse_binary(body: bytes, text: str, origin: str | None) -> None:
    """Raise UnknownFormatError if it is no text: one character in fifty is a control."""
    head = text[:4096]
    controls = len(_CONTROL.findall(head))
    if controls > 2 and controls * 50 > len(head):
        what = "UTF-16 that is none" if body.startswith(_UTF16_OR_32) else "binary data"
        raise UnknownFormatError(f"expected a page, found {what}", origin=origin)


def _looks_like_html(document: Document, text: str, root: str | None) -> bool:
    """Whether it is HTML: its first element is one of HTML's, or it says so and holds one."""
    if re.search(r"(?i)<!doctype\s+html|<html\b", text[:2048]):
        return True
    if text.startswith("<"):
        return root is not None and bool(_HTML.match(f"<{root}>"))
    claimed = f"{document.media_type or ''} {document.name or ''}".lower()
    return bool(re.search(r"text/html|xhtml|\.x?html?\b", claimed)) and bool(_HTML.search(text))


def _refuse_error_page(text: str, origin: str | None) -> None:
    """Raise ErrorPageError for a page whose title says that it is an error, unless it shows a listing all the same."""
    title = _TITLE.search(text)
    said = one_line(title[1]) if title else ""
    if said and _ERROR_TITLE.fullmatch(said) and not _LISTING_SIGNS.search(text):
        raise ErrorPageError(f"expected a page, found an error page: {said[:200]}", origin=origin)


def _detect_text(text: str, origin: str | None, *, whole: bool) -> str:
    """Return "listing" for text; what is a listing and what is not, its parser knows best."""
    said = one_line(text)
    if whole and len(said) < 400 and not _LISTING_SIGNS.search(text) and _ERROR_TEXT.fullmatch(said):
        raise ErrorPageError(f"expected a page, found an error message: {said[:200]}", origin=origin)
    return "listing"


def _detect_json(document: Document, text: str) -> str | None:
    """Return the format of a JSON document; None if the text is no JSON after all ("[1] Tides, 2026").

    Raises:
        ErrorPageError: it is an API's error message.
        UnknownFormatError: it is JSON of some other kind.
        ParseError: it says that it is JSON, and can't be read.
    """
    try:
        value = read_json(document).value
    except ParseError:
        if re.search(r'"schema"\s*:\s*"digestd\.snapshot/', text[:4096]):
            return "snapshot"  # its parser says what is wrong with it
        claimed = f"{document.media_type or ''} {document.name or ''}".lower()
        if "json" in claimed or re.match(r"[\[{]\s*[\"{\[]", text):
            raise
        return None
    found = _kind_of_list(value, document) if isinstance(value, list) else _kind_of_object(value)
    if found:
        return found
    refuse_error(value, document.origin)
    keys = ", ".join(list(value)[:5]) if isinstance(value, dict) else type(value).__name__
    raise UnknownFormatError(
        f"expected papers, found JSON of another kind: {one_line(keys)[:200]}", origin=document.origin
    )


def _kind_of_object(value: object) -> str | None:
    """Return the format of an object by the keys that only this service has."""
    if not isinstance(value, dict):
        return None
    schema = value.get("schema")
    if isinstance(schema, str) and schema.startswith("digestd.snapshot/"):
        return "snapshot"
    if isinstance(value.get("notes"), list):
        return "openreview"
    if "message-type" in value or isinstance(dig(value, "message", "items"), list) or dig(value, "message", "DOI"):
        return "crossref"
    results = value.get("results")
    if isinstance(results, list) and (isinstance(value.get("meta"), dict) or _has_work(results)):
        return "openalex"
    if _has_work([value]):
        return "openalex"
    for key in ("data", "recommendedPapers", "papers"):
        if any(isinstance(dig(one, "paperId"), str) for one in list_of(value.get(key))):
            return "s2"
    is_page = isinstance(value.get("total"), int) and ("offset" in value or "token" in value)
    return "s2" if isinstance(value.get("paperId"), str) or is_page or value.get("recommendedPapers") == [] else None


def _has_work(values: Sequence[object]) -> bool:
    """Whether one of the values is a work of OpenAlex."""
    return any(
        isinstance(identity := dig(one, "id"), str)
        and "openalex.org/" in identity
        and (dig(one, "authorships") is not None or dig(one, "title") is not None)
        for one in values
    )


def _kind_of_list(values: Sequence[object], document: Document) -> str | None:
    """Return the format of a list by its members; an empty one is known by where it came from only."""
    if any(isinstance(dig(one, "paper"), dict) for one in values):
        return "hf"
    if any(isinstance(dig(one, "paperId"), str) for one in values):
        return "s2"
    if _has_work(values):
        return "openalex"
    try:
        host = urlsplit(document.origin or "").hostname or ""
    except ValueError:
        host = ""
    return "hf" if not values and host.endswith(("huggingface.co", "hf.co")) else None
