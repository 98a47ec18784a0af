"""Works as the Crossref API hands them out. Floor 1, pure. Entry point: :func:`parse_crossref`.

    {"status": "ok", "message-type": "work-list", "message": {"items": [{"DOI": "10.5555/reef.4", "title": ["Reefs"],
     "author": [{"given": "Noor", "family": "Haddad"}], "issued": {"date-parts": [[2026, 10, 19]]}}]}}

A date may be a year alone, which is no date; abstracts are JATS.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime

from digestd.errors import ErrorPageError, ParseError
from digestd.model.paper import Paper
from digestd.model.snapshot import Document, Page
from digestd.model.topic import Vocabulary
from digestd.parse.apipage import api_page, read_text, read_title, with_ids
from digestd.parse.charset import one_line
from digestd.parse.jsontext import dig, is_plausible, kind_of, links_of, list_of, read_json, text_of, texts_of
from digestd.parse.links import doi_of

#: first day on which the work could be read, as far as its deposit says
_DATES = ("posted", "published-online", "published", "issued", "published-print")


def parse_crossref(document: Document, vocabulary: Vocabulary) -> Page:  # noqa: ARG001  # the signature of all parsers
    """Return the page of a list of works, or of a single one.

    Raises:
        ParseError: it is no such answer, or none of its works can be read.
        ErrorPageError: the API answered with an error.
    """
    read = read_json(document)
    message = dig(read.value, "message")
    status = dig(read.value, "status")
    if status in ("failed", "error"):
        first = message[0] if isinstance(message, list) and message else message
        found = text_of(first) or text_of(dig(first, "message")) or f"status {one_line(str(status))}"
        raise ErrorPageError(f"expected works of Crossref, found an API error: {found[:200]}", origin=document.origin)
    items = dig(message, "items")
    if isinstance(items, list):
        values = items
    elif isinstance(message, dict) and "DOI" in message:
        values = [message]
    else:
        raise ParseError(f"expected works of Crossref, found {kind_of(read.value)}", origin=document.origin)
    return api_page(document, values, _read_work, format_name="crossref", warnings=read.warnings)


def _read_work(value: object, seen_at: datetime | None) -> Paper:
    """Return one work."""
    title = read_title(next(iter(list_of(dig(value, "title"))), None))
    abstract = read_text(dig(value, "abstract"))
    doi = doi_of(text_of(dig(value, "DOI")) or "")
    people = list_of(dig(value, "author"))
    groups = texts_of(dig(one, "name") for one in people if text_of(dig(one, "family")) is None)
    paper = Paper(
        title=title.readable,
        title_raw=title.raw,
        published=next((found for key in _DATES if (found := _date_of(dig(value, key), seen_at))), None),
        categories=texts_of(list_of(dig(value, "subject"))),
        abstract=abstract.readable if abstract else None,
        abstract_raw=abstract.raw if abstract else None,
        authors=tuple(_names(people)),
        group=groups[0] if groups else None,
        affiliations=texts_of(dig(place, "name") for one in people for place in list_of(dig(one, "affiliation"))),
        links=links_of(
            [dig(value, "resource", "primary", "URL"), f"https://doi.org/{doi}" if doi else dig(value, "URL")]
        ),
    )
    return with_ids(paper, doi=doi)


def _names(people: Sequence[object]) -> Iterator[str]:
    """Yield the people's names as they are spoken; two of one name are two people."""
    for one in people:
        family = text_of(dig(one, "family"))
        if family:
            yield " ".join(filter(None, [text_of(dig(one, "given")), family, text_of(dig(one, "suffix"))]))


def _date_of(value: object, seen_at: datetime | None) -> date | None:
    """Return a whole date of ``date-parts``; None for a year or a month alone."""
    parts = list_of(next(iter(list_of(dig(value, "date-parts"))), None))
    whole = [part for part in parts if isinstance(part, int)]
    if len(parts) != 3 or len(whole) != 3:
        return None
    try:
        found = date(*whole)
    except (ValueError, OverflowError):
        return None
    return found if is_plausible(found, seen_at) else None
