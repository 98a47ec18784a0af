"""A file of JSON snapshots, one a line, taken apart into documents. Floor 1, pure.

Entry point: :func:`documents_of`, which the flows call before ``parse_document``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from digestd.model.snapshot import Document

_SUFFIXES = (".jsonl", ".ndjson", ".jsonlines")
_MEDIA_TYPES = ("application/jsonl", "application/x-ndjson", "application/x-jsonlines", "application/json-lines")
_BOM = b"\xef\xbb\xbf"


def documents_of(document: Document) -> Iterator[Document]:
    """Yield the documents that one file holds.

    Args:
        document: as fetched.

    Yields:
        Of a ``*.jsonl`` file one document a line, in order, blank lines passed over; their origin is the file's with
        the line's number, ``pages.jsonl#L3``. Any other document as it is.

    Source: https://jsonlines.org (UTF-8, lines end with LF or CRLF).
    """
    if not is_lines(document):
        yield document
        return
    start = document.origin or document.name or "lines"
    # not splitlines(): a line of JSON may hold U+0085 and its kin within a text
    for number, line in enumerate(document.body.removeprefix(_BOM).split(b"\n"), start=1):
        if line.strip():
            yield replace(document, body=line.strip(), origin=f"{start}#L{number}", name=_line_name(document, number))


def is_lines(document: Document) -> bool:
    """Whether the document says that it holds one JSON value a line."""
    name = (document.name or document.origin or "").partition("#")[0].partition("?")[0].lower()
    media_type = (document.media_type or "").partition(";")[0].strip().lower()
    return name.endswith(_SUFFIXES) or media_type in _MEDIA_TYPES


def _line_name(document: Document, number: int) -> str:
    """Return a name for the line's document that no longer says that it holds several."""
    return f"{document.name or 'lines'}.{number}.json"
