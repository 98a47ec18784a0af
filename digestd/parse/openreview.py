"""Submissions as the OpenReview API hands them out. Floor 1, pure. Entry point: :func:`parse_openreview`.

    {"notes": [{"id": "Ab12", "forum": "Ab12", "cdate": 1761004800000, "content": {"title": {"value": "Sparse Listening"},
     "authors": {"value": ["Maren Oduya"]}, "venue": {"value": "Reef 2026 Poster"}, "pdf": {"value": "/pdf/ab12.pdf"}}}]}

Version 2 wraps each value of ``content`` in an object, version 1 does not; both are read. Instants are milliseconds.
"""

from __future__ import annotations

from datetime import datetime

from digestd.errors import ParseError
from digestd.model.paper import Paper, PaperId
from digestd.model.snapshot import Document, Page
from digestd.model.topic import Vocabulary
from digestd.parse.apipage import api_page, read_text, read_title, with_ids
from digestd.parse.jsontext import (
    dig,
    instant_of,
    kind_of,
    links_of,
    list_of,
    names_of,
    read_json,
    refuse_error,
    text_of,
    texts_of,
)

_SITE = "https://openreview.net/"
#: made public, made public by its authors, made
_DATES = ("pdate", "odate", "cdate", "tcdate")


def parse_openreview(document: Document, vocabulary: Vocabulary) -> Page:  # noqa: ARG001  # the signature of all parsers
    """Return the page of a list of notes; replies (reviews, comments) are passed over.

    Raises:
        ParseError: it is no such answer, or none of its notes can be read.
        ErrorPageError: the API answered with an error.
    """
    read = read_json(document)
    refuse_error(read.value, document.origin)
    notes = dig(read.value, "notes")
    if not isinstance(notes, list):
        raise ParseError(f"expected notes of OpenReview, found {kind_of(read.value)}", origin=document.origin)
    papers = [note for note in notes if not _is_reply(note)]
    return api_page(document, papers, _read_note, format_name="openreview", warnings=read.warnings)


def _is_reply(note: object) -> bool:
    """Whether a note answers another one, so that it is no submission."""
    forum = dig(note, "forum")
    return dig(note, "replyto") is not None or (forum is not None and forum != dig(note, "id"))


def _content(note: object, key: str) -> object:
    """Return a value of the note's content, in either version of the API."""
    found = dig(note, "content", key)
    return found.get("value") if isinstance(found, dict) else found


def _read_note(note: object, seen_at: datetime | None) -> Paper:
    """Return one submission."""
    title = read_title(_content(note, "title"))
    abstract = read_text(_content(note, "abstract"))
    own = text_of(dig(note, "forum")) or text_of(dig(note, "id"))
    published_at = next((found for key in _DATES if (found := instant_of(dig(note, key), seen_at))), None)
    standing = f"{text_of(_content(note, 'venue'))} {text_of(_content(note, 'venueid'))}".lower()
    paper = Paper(
        title=title.readable,
        title_raw=title.raw,
        published=published_at.date() if published_at else None,
        published_at=published_at,
        abstract=abstract.readable if abstract else None,
        abstract_raw=abstract.raw if abstract else None,
        authors=names_of(list_of(_content(note, "authors"))),
        topics=texts_of(list_of(_content(note, "keywords"))),
        links=links_of([f"forum?id={own}" if own else None, _content(note, "pdf"), _content(note, "html")], _SITE),
        withdrawn="withdrawn" in standing,
    )
    return with_ids(paper, own=PaperId("openreview", own) if own else None)
