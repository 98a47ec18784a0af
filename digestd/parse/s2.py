"""Papers as the Semantic Scholar graph API hands them out. Floor 1, pure. Entry point: :func:`parse_s2`.

Searches ``{"total": 2, "data": [...]}``, bulk searches (with ``token``), recommendations ``{"recommendedPapers": [...]}``,
batches (a list with null for what was not found), citations (``citingPaper`` in each) and single papers:

    {"paperId": "<40 hex digits>", "title": "Echo Caves", "externalIds": {"ArXiv": "2610.90120", "DOI": null},
     "publicationDate": "2026-10-20", "authors": [{"authorId": "1", "name": "Lea Fontaine"}], "abstract": null}

Only the fields asked for are there, and any of them may be null.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime

from digestd.errors import ParseError
from digestd.model.paper import Paper, PaperId
from digestd.model.snapshot import Document, Page
from digestd.model.topic import Vocabulary
from digestd.parse.apipage import Text, api_page, read_text, read_title, with_ids
from digestd.parse.jsontext import (
    date_of,
    dig,
    kind_of,
    links_of,
    list_of,
    names_of,
    read_json,
    refuse_error,
    text_of,
    texts_of,
)
from digestd.parse.links import doi_of

_LISTS = ("data", "recommendedPapers", "papers")
#: what a crawler found before the title of a file
_FILE_MARK = re.compile(r"^\[(?:PDF|HTML|BOOK|CITATION)\]\s+", re.IGNORECASE)


def parse_s2(document: Document, vocabulary: Vocabulary) -> Page:  # noqa: ARG001  # the signature of all parsers
    """Return the page of an answer of the API; an empty search is an empty page.

    Raises:
        ParseError: it is no such answer, or none of its papers can be read.
        ErrorPageError: the API answered with an error.
    """
    read = read_json(document)
    refuse_error(read.value, document.origin)
    values = _papers_of(read.value)
    if values is None:
        found = f"expected papers of Semantic Scholar, found {kind_of(read.value)}"
        raise ParseError(found, origin=document.origin)
    return api_page(document, values, _read_paper, format_name="s2", warnings=read.warnings)


def _papers_of(value: object) -> Sequence[object] | None:
    """Return the values of the papers, may be empty; None if the answer is none of the API's shapes."""
    if isinstance(value, list):
        return value
    if not isinstance(value, dict):
        return None
    if "paperId" in value:
        return [value]
    for key in _LISTS:
        if isinstance(value.get(key), list):
            return list_of(value[key])
    # an empty search leaves its "data" out
    return [] if value.get("total") == 0 else None


def _read_paper(value: object, seen_at: datetime | None) -> Paper:
    """Return one paper."""
    inner = dig(value, "citingPaper") or dig(value, "citedPaper") or value
    title = read_title(dig(inner, "title"))
    unmarked = _FILE_MARK.sub("", title.readable) or title.readable
    abstract: Text | None = read_text(dig(inner, "abstract"))
    own = text_of(dig(inner, "paperId"))
    arxiv = text_of(dig(inner, "externalIds", "ArXiv"))
    doi = doi_of(text_of(dig(inner, "externalIds", "DOI")) or "")
    authors = list_of(dig(inner, "authors"))
    paper = Paper(
        title=unmarked,
        title_raw=title.raw,
        published=date_of(dig(inner, "publicationDate"), seen_at),
        categories=texts_of(list_of(dig(inner, "fieldsOfStudy"))),
        abstract=abstract.readable if abstract else None,
        abstract_raw=abstract.raw if abstract else None,
        authors=names_of(dig(one, "name") for one in authors),
        affiliations=texts_of(place for one in authors for place in list_of(dig(one, "affiliations"))),
        links=links_of(
            [
                f"https://arxiv.org/abs/{arxiv}" if arxiv else None,
                f"https://doi.org/{doi}" if doi else None,
                dig(inner, "url"),
                dig(inner, "openAccessPdf", "url"),
            ]
        ),
    )
    return with_ids(paper, arxiv=arxiv, doi=doi, own=PaperId("s2", own.lower()) if own else None)
