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
as paragraphs of another format. The head is read by ``listing_head.py``.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta

from digestd.errors import ParseError
from digestd.model.paper import Paper
from digestd.model.snapshot import Document, Order, Page
from digestd.model.topic import Vocabulary
from digestd.parse.authorship import is_institution, likeness, place_authors
from digestd.parse.charset import decode_body, one_line
from digestd.parse.fields import (
    MAX_DATE_LINE,
    DateLine,
    read_date_line,
    split_affiliations,
    split_authors,
    split_more,
)
from digestd.parse.labels import LabelCut, LabelIndex, cut_with, ends_in_half_label, index_labels
from digestd.parse.latex import join_fragments, to_unicode
from digestd.parse.listing_head import Head, date_momentum, read_head

#: a date may lie this far after the fetching: time zones, and clocks that are a little off
_FUTURE_DAYS = 2
#: kept out of a page's warnings beyond this, so that a hostile page can't fill the log
_MAX_WARNINGS = 200

_HALF_DATE = re.compile(r"[A-Z][a-z]{0,8}\.?(?: \d{0,2}(?:,(?: \d{0,4})?)?)?|\d{1,4}(?:-\d{0,2}(?:-\d?)?)?")
_SMALL_WORDS = frozenset(
    (  # noqa: SIM905  # reads as a list
        "for with of in and to the via on from a an by using as at under vs vs. without beyond through & or"
    ).split()
)


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One line of the grammar."""

    text: str  #: not empty
    line: int  #: 1-based line of the document
    links: tuple[str, ...] = ()  #: absolute links inside it; those of the title line become the paper's
    labels: tuple[str, ...] = ()  #: labels that stand each on its own, instead of cutting the tag line


@dataclass(frozen=True, slots=True)
class _Block:
    """The lines of one paper."""

    date_line: DateLine
    line: int  #: 1-based line of the date
    lines: Sequence[Paragraph]  #: below the date


@dataclass(frozen=True, slots=True)
class _Context:
    """What all blocks of a page are read with."""

    own: str | None  #: the page's topic
    index: LabelIndex  #: labels known
    latest: date | None  #: dates after this one are not believed


@dataclass(frozen=True, slots=True)
class _Read:
    """What a block gave."""

    paper: Paper | None
    warnings: tuple[str, ...] = ()
    cut: bool = False  #: its end is missing


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
    context = _Context(head.topic, index_labels(vocabulary, own=head.topic), latest)
    reads = [_read_block(block, context) for block in blocks[:-1]]
    reads.append(_read_last(blocks[-1], context, cut=cut))
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


def _split_blocks(paragraphs: Sequence[Paragraph]) -> tuple[Sequence[Paragraph], list[_Block]]:
    """Return the head's paragraphs and the blocks, each from its date line to the next one."""
    starts = [
        (place, found)
        for place, paragraph in enumerate(paragraphs)
        if len(paragraph.text) <= MAX_DATE_LINE
        and (found := read_date_line(paragraph.text)) is not None
        and not paragraph.labels
    ]
    blocks: list[_Block] = []
    waiting: DateLine | None = None  # a date whose category stands in a paragraph of its own
    for number, (place, found) in enumerate(starts):
        end = starts[number + 1][0] if number + 1 < len(starts) else len(paragraphs)
        if waiting is not None and not found.printed:
            found = replace(waiting, categories=found.categories)
        waiting = (
            found if end == place + 1 and found.printed and not found.categories and end < len(paragraphs) else None
        )
        if waiting is None:
            blocks.append(_Block(found, paragraphs[place].line, paragraphs[place + 1 : end]))
    return (paragraphs[: starts[0][0]] if starts else paragraphs), blocks


def _read_block(block: _Block, context: _Context) -> _Read:
    """Read a block that ends where another one begins."""
    lines = block.lines
    if len(lines) < 2:
        return _Read(None, (f"line {block.line}: paper skipped, expected title and labels, found {len(lines)} lines",))
    end = _end_of_paper(lines, context)
    if end == len(lines) - 1:
        return _read_paper(block, end, context)
    extra = f"line {lines[end + 1].line}: {len(lines) - end - 1} lines skipped below the labels"
    read = _read_paper(block, end, context)
    return replace(read, warnings=(*read.warnings, extra))


def _read_last(block: _Block, context: _Context, *, cut: bool | None) -> _Read:
    """Read the page's last block: whole if the source or its looks prove it, else it was cut and is left out."""
    lines = block.lines
    missing = _Read(None, (f"line {block.line}: paper skipped, the page ends inside it",), cut=True)
    if len(lines) < 2:
        return missing
    if cut is False:
        return _read_block(block, context)
    end = _end_of_paper(lines, context)
    if not _is_whole(lines, end, context):
        return missing
    read = _read_paper(block, end, context)
    if end == len(lines) - 1:
        return read
    tail = lines[end + 1]
    half_date = end + 2 == len(lines) and _HALF_DATE.fullmatch(tail.text) is not None
    what = "the page ends inside a date" if half_date else f"{len(lines) - end - 1} lines skipped below the labels"
    return replace(read, warnings=(*read.warnings, f"line {tail.line}: {what}"), cut=half_date)


def _end_of_paper(lines: Sequence[Paragraph], context: _Context) -> int:
    """Return the index of the tag line: nearly always the last one.

    A footer, half a date line, or a second paper whose date line can't be read may stand below it.
    """
    own, last = context.own, len(lines) - 1
    last_is_tags = own is None or bool(lines[last].labels) or _names_topic(lines[last].text, own)
    for place in range(2, last):
        line = lines[place]
        if not line.labels and (own is None or own not in line.text):
            continue
        if last_is_tags and not line.labels and last - place < 3:
            continue  # an institution may be named like the topic
        if line.labels or (_is_tag_line(line.text, context) and _has_names(lines, place)):
            return place
    return last


def _is_whole(lines: Sequence[Paragraph], end: int, context: _Context) -> bool:
    """Return whether a block that nothing follows has its labels: a cut abstract or row of names must never pass for them."""
    tags = lines[end]
    if tags.labels:
        return True
    if context.own is not None and not _names_topic(tags.text, context.own):
        return False
    if _is_cut(tags.text, context):
        return end >= 2
    return context.own is not None and _is_tag_line(tags.text, context) and _has_names(lines, end)


def _has_names(lines: Sequence[Paragraph], tags: int) -> bool:
    """Return whether a row of names stands above the tag line."""
    return place_authors([line.text for line in lines[1:tags]]).authors is not None


def _names_topic(line: str, own: str) -> bool:
    """Return whether a line holds the topic as whole words."""
    row, _ = split_more(line)
    return own in row and f" {own} " in f" {row} "


def _is_cut(line: str, context: _Context) -> bool:
    return cut_with(line, context.index).unparsed is None


def _is_tag_line(line: str, context: _Context) -> bool:
    """Return whether a line with the page's topic in it is a row of labels: known ones, or capitals without sentences."""
    if context.own is None or not _names_topic(line, context.own):
        return False
    if _is_cut(line, context):
        return True
    row, _ = split_more(line)
    if len(row) > 600 or " · " in row or ", " in row or ". " in row or row[-1] in ".,;:!?":
        return False
    words = f" {row} ".replace(f" {context.own} ", " ").split()
    capitals = sum(not word[0].islower() for word in words if word not in _SMALL_WORDS)
    small = sum(word[0].islower() for word in words if word not in _SMALL_WORDS)
    return capitals >= 4 * small


def _is_label_row(line: str, context: _Context) -> bool:
    """Return whether the last line of a whole block holds labels; if not, the block has none."""
    if context.own is None or _names_topic(line, context.own):
        return True
    row, more = split_more(line)
    if (more and line[len(row)] == "+") or _is_cut(line, context):
        return True
    return not (
        " · " in row or row[-1] in ".?!" or len(row) > 600 or (", " in row and likeness(row)) or is_institution(row)
    )


def _read_paper(block: _Block, end: int, context: _Context) -> _Read:
    """Return the paper of a block whose tag line is known."""
    lines, warnings = block.lines, []
    title = lines[0]
    tags = lines[end]
    has_labels = bool(tags.labels) or _is_label_row(tags.text, context)
    middle = [line.text for line in lines[1 : end if has_labels else end + 1]]
    placed = place_authors(middle)
    cut = _read_labels(tags, context) if has_labels else LabelCut(())
    if not has_labels:
        warnings.append(f"line {tags.line}: no labels found")
    authors, authors_more = split_authors(middle[placed.authors]) if placed.authors is not None else ((), 0)
    if not authors:
        warnings.append(f"line {title.line}: no authors found")
    affiliations, affiliations_more = (
        split_affiliations(middle[placed.affiliations]) if placed.affiliations is not None else ((), 0)
    )
    fragments = middle[: placed.abstract_end]
    abstract_raw = (fragments[0] if len(fragments) == 1 else join_fragments(fragments)) or None
    published = block.date_line.published
    if published is None:
        warnings.append(f"line {block.line}: date left out, found {block.date_line.printed or 'none'!r}")
    elif context.latest is not None and published > context.latest:
        warnings.append(f"line {block.line}: date left out, {published.isoformat()} is in the future")
        published = None
    paper = Paper(
        title=_readable(title.text),
        title_raw=title.text,
        published=published,
        categories=block.date_line.categories,
        abstract=_readable(abstract_raw) if abstract_raw else None,
        abstract_raw=abstract_raw,
        authors=authors,
        authors_more=authors_more,
        affiliations=affiliations,
        affiliations_more=affiliations_more,
        topics=cut.labels,
        topics_more=cut.more,
        topics_unparsed=cut.unparsed,
        links=_web_links(title.links) if title.links else (),
        warnings=tuple(warnings),
    )
    return _Read(paper, tuple(warnings))


def _web_links(links: Sequence[str]) -> tuple[str, ...]:
    return tuple(link for link in links if link.startswith(("http://", "https://")))


def _readable(raw: str) -> str:
    """Return one line of readable text; the source itself where nothing would be left."""
    text = to_unicode(raw)
    return text if text is raw else (" ".join(text.split()) or raw)


def _read_labels(tags: Paragraph, context: _Context) -> LabelCut:
    if tags.labels:
        _, more = split_more(tags.text)
        return LabelCut(tags.labels, more)
    return cut_with(tags.text, context.index)


def _ends_half(reads: Sequence[_Read], papers: Sequence[Paper], context: _Context) -> str:
    """Return why the last tag line seems to be cut, "" if it does not.

    Source: a page cut inside its last line is a page, but for labels that no other line has.
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
