"""Works as the OpenAlex API hands them out. Floor 1, pure. Entry point: :func:`parse_openalex`.

    {"meta": {"count": 1}, "results": [{"id": "https://openalex.org/W99", "doi": "https://doi.org/10.5555/reef.4",
     "title": "Sound <i>in situ</i>", "publication_date": "2026-10-19", "authorships": [{"author": {"display_name":
     "Noor Haddad"}, "institutions": [{"display_name": "Reef Lab"}]}], "abstract_inverted_index": {"We": [0]}}]}

Abstracts come as an index from word to places and are put together again; titles may hold HTML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime

from digestd.errors import ParseError
from digestd.model.paper import Paper, PaperId
from digestd.model.snapshot import Document, Page
from digestd.model.topic import Vocabulary
from digestd.parse.apipage import api_page, read_text, read_title, with_ids
from digestd.parse.fields import split_affiliations
from digestd.parse.jsontext import date_of, dig, kind_of, links_of, list_of, read_json, refuse_error, text_of, texts_of
from digestd.parse.links import doi_of

_WORK = re.compile(r"(?:^|/)(W\d{1,15})$", re.IGNORECASE | re.ASCII)
#: an abstract of more words is a whole text, or a trap
_MAX_WORDS = 20_000
_LONE_MARK = re.compile(r" (?=[.,;:!?)](?: |$))")


def parse_openalex(document: Document, vocabulary: Vocabulary) -> Page:  # noqa: ARG001  # the signature of all parsers
    """Return the page of a list of works, or of a single one.

    Raises:
        ParseError: it is no such answer, or none of its works can be read.
        ErrorPageError: the API answered with an error.
    """
    read = read_json(document)
    refuse_error(read.value, document.origin)
    results = dig(read.value, "results")
    if isinstance(results, list):
        values = results
    elif isinstance(read.value, dict) and "authorships" in read.value:
        values = [read.value]
    else:
        raise ParseError(f"expected works of OpenAlex, found {kind_of(read.value)}", origin=document.origin)
    return api_page(document, values, _read_work, format_name="openalex", warnings=read.warnings)


def _read_work(value: object, seen_at: datetime | None) -> Paper:
    """Return one work."""
    title = read_title(dig(value, "title") or dig(value, "display_name"))
    abstract = read_text(rebuild_abstract(dig(value, "abstract_inverted_index")))
    work = _WORK.search(text_of(dig(value, "id")) or "")
    doi = doi_of(text_of(dig(value, "doi")) or text_of(dig(value, "ids", "doi")) or "")
    authorships = list_of(dig(value, "authorships"))
    locations = [dig(value, "primary_location"), *list_of(dig(value, "locations"))[:10]]
    paper = Paper(
        title=title.readable,
        title_raw=title.raw,
        published=date_of(dig(value, "publication_date"), seen_at),
        abstract=abstract.readable if abstract else None,
        abstract_raw=abstract.raw if abstract else None,
        authors=tuple(_author_names(authorships)),
        affiliations=texts_of(place for one in authorships for place in _places(one)),
        topics=texts_of(dig(topic, "display_name") for topic in list_of(dig(value, "topics"))),
        links=links_of(
            [
                dig(locations[0], "landing_page_url"),
                f"https://doi.org/{doi}" if doi else None,
                *(dig(location, "landing_page_url") for location in locations),
                *(dig(location, "pdf_url") for location in locations),
                dig(value, "id"),
            ]
        ),
        withdrawn=dig(value, "is_retracted") is True,
    )
    return with_ids(paper, doi=doi, own=PaperId("openalex", work[1].upper()) if work else None)


def rebuild_abstract(index: object) -> str | None:
    """Return the abstract whose words an index places; None if there is none.

    Args:
        index: word to the list of its places, counted from 0; places may be missing or given twice.
    """
    if not isinstance(index, dict):
        return None
    placed = [
        (place, word)
        for word, places in index.items()
        for place in list_of(places)
        if isinstance(place, int) and not isinstance(place, bool)
    ]
    if not placed or len(placed) > _MAX_WORDS:
        return None
    return _LONE_MARK.sub("", " ".join(word for _, word in sorted(placed)))


def _author_names(authorships: Sequence[object]) -> Iterator[str]:
    """Yield the authors' names; two of one name are two people."""
    for one in authorships:
        name = text_of(dig(one, "author", "display_name")) or text_of(dig(one, "raw_author_name"))
        if name:
            yield name


def _places(authorship: object) -> tuple[str, ...]:
    """Return where one author works: the institutions known to the catalogue, else the lines as printed."""
    known = texts_of(dig(one, "display_name") for one in list_of(dig(authorship, "institutions")))
    printed = texts_of(list_of(dig(authorship, "raw_affiliation_strings")))
    return known or split_affiliations(" · ".join(printed))[0]
