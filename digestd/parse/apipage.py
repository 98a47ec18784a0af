"""What the parsers of web APIs share: papers read one by one, a bad one left out, the rest a page. Floor 1, pure.

Entry points: :func:`api_page`, :func:`read_text`. An API's answer is a stranger's: whatever field is missing, null or of
another type is taken for absent; only a paper without a title is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from digestd.errors import ParseError
from digestd.model.paper import Paper, PaperId
from digestd.model.snapshot import Document, Order, Page
from digestd.parse.jsontext import kind_of, text_of
from digestd.parse.latex import to_unicode
from digestd.parse.links import arxiv_number, ids_of_doi, ids_of_link
from digestd.parse.markup import plain_text

_MAX_NAMED = 10
#: longer ones are a dump of something else
_MAX_TITLE = 2_000


@dataclass(frozen=True, slots=True)
class Text:
    """One field, readable and as the source has it."""

    readable: str
    raw: str


def read_text(value: object) -> Text | None:
    """Return a title or an abstract without mark-up and with its LaTeX readable; None if it is no text or empty."""
    raw = text_of(value)
    if raw is None:
        return None
    plain = plain_text(raw)
    found = " ".join(to_unicode(plain).split()) or plain
    return Text(found, raw) if found else None


def read_title(value: object) -> Text:
    """Return a paper's title.

    Raises:
        ParseError: there is none; api_page leaves such a paper out.
    """
    found = read_text(value)
    if found is None:
        raise ParseError(f"expected a title, found {kind_of(value) if value is None else 'none that can be read'}")
    if len(found.readable) <= _MAX_TITLE:
        return found
    return Text(found.readable[:_MAX_TITLE].rstrip(), found.raw[:_MAX_TITLE].rstrip())


def api_page(
    document: Document,
    values: Sequence[object],
    read_paper: Callable[[object, datetime | None], Paper],
    *,
    format_name: str,
    warnings: Iterable[str] = (),
) -> Page:
    """Return the page of an API's answer: unordered, of no topic.

    Args:
        document: where the values come from.
        values: one of each paper, in the answer's order; null ones are passed over (not found by the API).
        read_paper: gives the paper of a value as seen at an instant; ParseError says why it can't.
        format_name: key of PARSERS.
        warnings: what was found before.

    Raises:
        ParseError: there are values and none can be read.
    """
    papers: list[Paper] = []
    skipped: list[str] = []
    missing = 0
    for number, value in enumerate(values, start=1):
        if value is None:
            missing += 1
            continue
        try:
            papers.append(read_paper(value, document.fetched_at))
        except ParseError as error:
            skipped.append(f"paper {number}: {error.message}")
    if skipped and not papers:
        raise ParseError(f"expected papers, found none that can be read: {skipped[0]}", origin=document.origin)
    notes = [*warnings]
    if missing:
        notes.append(f"papers not found by the source: {missing} of {len(values)}")
    if skipped:
        notes.append(f"papers left out: {len(skipped)} of {len(values)} ({'; '.join(skipped[:_MAX_NAMED])})")
    return Page(
        topic=None,
        papers=tuple(papers),
        order=Order.FEED,
        origin=document.origin,
        format=format_name,
        warnings=tuple(notes),
    )


def with_ids(paper: Paper, *, arxiv: str | None = None, doi: str | None = None, own: PaperId | None = None) -> Paper:
    """Return the paper with the ids that its fields and its links name, none twice.

    Args:
        paper: its links are read, and its ids kept first.
        arxiv: an arXiv number in any dress; gives the version too.
        doi: a DOI without a resolver's address.
        own: the source's own id.
    """
    number, version = arxiv_number(arxiv) if arxiv else (None, None)
    ids = [*paper.ids, *([PaperId("arxiv", number)] if number else []), *(ids_of_doi(doi) if doi else ())]
    if own is not None:
        ids.append(own)
    for link in paper.links:
        ids.extend(ids_of_link(link))
    return replace(paper, ids=tuple(dict.fromkeys(ids)), version=paper.version or version)
