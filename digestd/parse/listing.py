r"""Text listings of a topic: bytes to Page. Floor 1, pure.

    Reef Sound Sensing                              the topic
    ROV: Remotely Operated Vehicle                  its gloss, may be missing
    Follow this topic Ask about this topic
    Momentum                                        this and the next two lines may be missing
    14 papers in the last four weeks, up 40% on the four weeks before. 0.1% of all new papers.
    Aug 3Week of Oct 19
    Latest papers 128

    Oct 19, 2026cs.RO                               a block: date and category
    Drift and Listen                                title
    Propellers are loud. We let gliders drift for   abstract, torn at inline maths
    \sim
    6 weeks.
    Owusu Mensah, Lea Fontaine, Yun-Seo Baek +1     names
    Harbour Labs, Inc. · Tidewater University +1    institutions, may be missing
    Underwater Robotics Reef Sound Sensing+1        labels, the page's own topic among them

Entry points: :func:`parse_listing` for documents; :func:`parse_paragraphs` for parsers (HTML) that have the same blocks
as paragraphs of another format. ``listing_head.py`` reads the head,
``listing_block.py`` the papers.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from digestd.errors import ParseError
from digestd.model.paper import Paper
from digestd.model.snapshot import Document, Order, Page
from digestd.model.topic import Vocabulary
from digestd.parse.charset import decode_body, one_line
from digestd.parse.fields import MAX_DATE_LINE, DateLine, read_date_line
from digestd.parse.labels import ends_in_half_label, index_labels
from digestd.parse.listing_block import Block, BlockRead, Context, Paragraph, read_block, read_last
from digestd.parse.listing_head import Head, date_momentum, read_head

__all__ = ["Paragraph", "parse_listing", "parse_paragraphs"]

#: a date may lie this far after the fetching: time zones, and clocks that are a little off
_FUTURE_DAYS = 2
#: kept out of a page's warnings beyond this, so that a hostile page can't fill the log
_MAX_WARNINGS = 200


def parse_listing(document: Document, vocabulary: Vocabulary) -> Page:
    """Return the page that a text listing shows.

    Args:
        document: any bytes; line ends, byte order marks, no-break blanks, empty lines are no matter.
        vocabulary: labels known so far, by which tag lines are cut; may be empty.

    Raises:
        ParseError: there is neither a head that can be recognised nor a block that can be read.
    """
    body = _whole_characters(document.body)
    cut = True if len(body) < len(document.body) else None
    decoded = decode_body(body, document.media_type)
    page = parse_paragraphs(_split_paragraphs(decoded.text), document, vocabulary, cut=cut)
    return replace(page, warnings=(*decoded.warnings, *page.warnings)) if decoded.warnings else page


def parse_paragraphs(
    paragraphs: Sequence[Paragraph],
    document: Document,
    vocabulary: Vocabulary,
    *,
    format_name: str = "listing",
    cut: bool | None = None,
) -> Page:
    """Return the page that these paragraphs show, head first, then blocks.

    Args:
        paragraphs: in document order, folded, none empty.
        document: for origin and fetching time.
        vocabulary: labels known so far; the page's own topic counts as known.
        format_name: what the page is called by.
        cut: True if the source proves that its end is missing, False if it proves that nothing is missing (``</html>``
            is there), None if it says nothing: then the last block must be whole by its looks.

    Raises:
        ParseError: there is neither a head that can be recognised nor a block that can be read.
    """
    above, blocks = _split_blocks(paragraphs)
    head = read_head(
        [(paragraph.text, paragraph.line) for paragraph in above], [b.lines[-1].text for b in blocks if b.lines]
    )
    if not blocks:
        return _page_without_papers(head, document, format_name, cut=bool(cut))
    fetched_on = document.fetched_at.date() if document.fetched_at else None
    latest = fetched_on + timedelta(days=_FUTURE_DAYS) if fetched_on and fetched_on.year < 9999 else None
    context = Context(head.topic, index_labels(vocabulary, own=head.topic), latest)
    reads = [read_block(block, context) for block in blocks[:-1]]
    reads.append(read_last(blocks[-1], context, cut=cut))
    papers = tuple(read.paper for read in reads if read.paper is not None)
    if not papers:
        why = next((read.warnings[0] for read in reads if read.warnings), "no block")
        raise ParseError(
            f"none of {len(blocks)} papers could be read: {why}", origin=document.origin, line=blocks[0].line
        )
    newest = max((paper.published for paper in papers if paper.published), default=None)
    momentum, chart_warnings = date_momentum(head, fetched_on=fetched_on, newest=newest)
    warnings = [*head.warnings, *chart_warnings, *(text for read in reads for text in read.warnings)]
    half = _ends_half(reads, papers, context) if cut is None and reads[-1].paper is not None else ""
    if half:
        warnings.append(f"line {blocks[-1].lines[-1].line}: {half}")
    return Page(
        topic=head.topic,
        papers=papers,
        order=Order.LISTING,
        gloss=head.gloss,
        origin=document.origin,
        momentum=momentum,
        total_papers=head.total,
        incomplete=bool(cut) or bool(half) or reads[-1].cut,
        format=format_name,
        warnings=_bounded(warnings),
    )


def _whole_characters(body: bytes) -> bytes:
    """Return the bytes without the beginning of a character whose end is missing: proof that the page was cut."""
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return body[: len(body) & ~1]
    # the last three bytes may begin a character of UTF-8 that wants one to three more
    for size in (1, 2, 3):
        byte = body[-size] if len(body) >= size else 0
        if byte & 0xC0 != 0x80:
            return body[:-size] if byte >= 0xC2 and size < (2 if byte < 0xE0 else 3 if byte < 0xF0 else 4) else body
    return body


def _bounded(warnings: Sequence[str]) -> tuple[str, ...]:
    """Return the warnings, the many of a hostile page as a count."""
    if len(warnings) <= _MAX_WARNINGS:
        return tuple(warnings)
    return (*warnings[:_MAX_WARNINGS], f"{len(warnings) - _MAX_WARNINGS} more warnings")


def _page_without_papers(head: Head, document: Document, format_name: str, *, cut: bool) -> Page:
    """Return the page of a topic that has no papers yet; refuse what is no listing or was cut in its head."""
    if head.topic is None or not head.recognised:
        raise ParseError(
            "expected a line like 'Jun 6, 2026cs.AI' or a head with 'Latest papers', found neither",
            origin=document.origin,
        )
    if cut or head.total != 0:
        found = "no count" if head.total is None else f"a count of {head.total}"
        raise ParseError(
            f"expected papers below the head, found none and {found}: cut in its head", origin=document.origin
        )
    fetched_on = document.fetched_at.date() if document.fetched_at else None
    momentum, warnings = date_momentum(head, fetched_on=fetched_on, newest=None)
    return Page(
        topic=head.topic,
        papers=(),
        gloss=head.gloss,
        origin=document.origin,
        momentum=momentum,
        total_papers=0,
        format=format_name,
        warnings=_bounded([*head.warnings, *warnings]),
    )


def _split_paragraphs(text: str) -> list[Paragraph]:
    """Return the lines that hold something, folded, with their numbers."""
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return [
        Paragraph(line, number)
        for number, raw in enumerate(text.split("\n"), 1)
        # tabs, no-break blanks, controls and marks that show nothing are not printable
        if (line := raw.strip() if raw.isprintable() and "  " not in raw else one_line(raw))
    ]


def _split_blocks(paragraphs: Sequence[Paragraph]) -> tuple[Sequence[Paragraph], list[Block]]:
    """Return the head's paragraphs and the blocks, each from its date line to the next one."""
    starts = [
        (place, found)
        for place, paragraph in enumerate(paragraphs)
        if len(paragraph.text) <= MAX_DATE_LINE
        and (found := read_date_line(paragraph.text)) is not None
        and not paragraph.labels
    ]
    blocks: list[Block] = []
    waiting: DateLine | None = None  # a date whose category stands in a paragraph of its own
    for number, (place, found) in enumerate(starts):
        end = starts[number + 1][0] if number + 1 < len(starts) else len(paragraphs)
        if waiting is not None and not found.printed:
            found = replace(waiting, categories=found.categories)
        waiting = (
            found if end == place + 1 and found.printed and not found.categories and end < len(paragraphs) else None
        )
        if waiting is None:
            blocks.append(Block(found, paragraphs[place].line, paragraphs[place + 1 : end]))
    return (paragraphs[: starts[0][0]] if starts else paragraphs), blocks


def _ends_half(reads: Sequence[BlockRead], papers: Sequence[Paper], context: Context) -> str:
    """Return why the last tag line seems to be cut, "" if it does not.

    The paper is taken all the same: behind its own topic only labels can be missing, and what is left of them is not cut.
    """
    run = papers[-1].topics_unparsed
    if run is None or reads[-1].paper is None or papers[-1].topics_more:
        return ""
    if ends_in_half_label(run, context.index):
        return "the page ends inside a label"
    others = papers[:-1]
    if others and all(paper.topics for paper in others):
        return "the last labels are unknown and may be cut, all others are known"
    return ""
