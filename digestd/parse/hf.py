r"""Daily papers as the Hugging Face API lists them. Floor 1, pure. Entry point: :func:`parse_hf`.

    [{"paper": {"id": "2610.90120", "title": "Echo Caves", "summary": "We listen\nto caves.",
                "authors": [{"name": "Lea Fontaine", "hidden": false}], "publishedAt": "2026-10-20T17:59:59.000Z"}}]

``id`` is the arXiv number; ``publishedAt`` of the paper is the day of its first version, that of the list's entry is not.
"""

from __future__ import annotations

from datetime import datetime

from digestd.errors import ParseError
from digestd.model.paper import Paper
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
from digestd.parse.links import arxiv_number


def parse_hf(document: Document, vocabulary: Vocabulary) -> Page:  # noqa: ARG001  # the signature of all parsers
    """Return the page of a list of daily papers.

    Raises:
        ParseError: it is no list of them, or none can be read.
        ErrorPageError: the API answered with an error.
    """
    read = read_json(document)
    refuse_error(read.value, document.origin)
    if not isinstance(read.value, list):
        raise ParseError(f"expected a list of daily papers, found {kind_of(read.value)}", origin=document.origin)
    return api_page(document, read.value, _read_paper, format_name="hf", warnings=read.warnings)


def _read_paper(value: object, seen_at: datetime | None) -> Paper:
    """Return the paper of one entry."""
    inner = dig(value, "paper")
    title = read_title(dig(inner, "title") or dig(value, "title"))
    abstract = read_text(dig(inner, "summary") or dig(value, "summary"))
    number = text_of(dig(inner, "id"))
    published_at = instant_of(dig(inner, "publishedAt"), seen_at) or instant_of(dig(value, "publishedAt"), seen_at)
    shown = [one for one in list_of(dig(inner, "authors")) if dig(one, "hidden") is not True]
    page = f"https://arxiv.org/abs/{number}" if number and arxiv_number(number)[0] else None
    paper = Paper(
        title=title.readable,
        title_raw=title.raw,
        published=published_at.date() if published_at else None,
        published_at=published_at,
        abstract=abstract.readable if abstract else None,
        abstract_raw=abstract.raw if abstract else None,
        authors=names_of(dig(one, "name") for one in shown),
        affiliations=texts_of([dig(inner, "organization", "fullname") or dig(inner, "organization", "name")]),
        topics=texts_of(list_of(dig(inner, "ai_keywords"))),
        links=links_of([page, dig(inner, "projectPage"), dig(inner, "githubRepo")]),
    )
    return with_ids(paper, arxiv=number)
