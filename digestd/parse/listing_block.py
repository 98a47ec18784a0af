"""One block of a listing: the lines of a paper, from its date line to the next one. Floor 1, pure.

Entry points: :func:`read_block` for a block that another one follows, :func:`read_last` for the last one of a page, which a
cut may have shortened: a cut abstract or row of names must never pass for labels.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date

from digestd.model.paper import Paper
from digestd.parse.authorship import is_institution, likeness, place_authors
from digestd.parse.fields import DateLine, split_affiliations, split_authors, split_more
from digestd.parse.labels import LabelCut, LabelIndex, cut_with
from digestd.parse.latex import join_fragments, to_unicode

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
class Block:
    """The lines of one paper."""

    date_line: DateLine
    line: int  #: 1-based line of the date
    lines: Sequence[Paragraph]  #: below the date


@dataclass(frozen=True, slots=True)
class Context:
    """What all blocks of a page are read with."""

    own: str | None  #: the page's topic
    index: LabelIndex  #: labels known
    latest: date | None  #: dates after this one are not believed


@dataclass(frozen=True, slots=True)
class BlockRead:
    """What a block gave."""

    paper: Paper | None
    warnings: tuple[str, ...] = ()
    cut: bool = False  #: its end is missing


def read_block(block: Block, context: Context) -> BlockRead:
    """Read a block that ends where another one begins."""
    lines = block.lines
    if len(lines) < 2:
        return BlockRead(
            None, (f"line {block.line}: paper skipped, expected title and labels, found {len(lines)} lines",)
        )
    end = _end_of_paper(lines, context)
    if end == len(lines) - 1:
        return _read_paper(block, end, context)
    extra = f"line {lines[end + 1].line}: {len(lines) - end - 1} lines skipped below the labels"
    read = _read_paper(block, end, context)
    return replace(read, warnings=(*read.warnings, extra))


def read_last(block: Block, context: Context, *, cut: bool | None) -> BlockRead:
    """Read the page's last block: whole if the source or its looks prove it, else it was cut and is left out."""
    lines = block.lines
    missing = BlockRead(None, (f"line {block.line}: paper skipped, the page ends inside it",), cut=True)
    if len(lines) < 2:
        return missing
    if cut is False:
        return read_block(block, context)
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


def _end_of_paper(lines: Sequence[Paragraph], context: Context) -> int:
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


def _is_whole(lines: Sequence[Paragraph], end: int, context: Context) -> bool:
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


def _is_cut(line: str, context: Context) -> bool:
    return cut_with(line, context.index).unparsed is None


def _is_tag_line(line: str, context: Context) -> bool:
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


def _is_label_row(line: str, context: Context) -> bool:
    """Return whether the last line of a whole block holds labels; if not, the block has none."""
    if context.own is None or _names_topic(line, context.own):
        return True
    row, more = split_more(line)
    if (more and line[len(row)] == "+") or _is_cut(line, context):
        return True
    return not (
        " · " in row or row[-1] in ".?!" or len(row) > 600 or (", " in row and likeness(row)) or is_institution(row)
    )


def _read_paper(block: Block, end: int, context: Context) -> BlockRead:
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
    return BlockRead(paper, tuple(warnings))


def _web_links(links: Sequence[str]) -> tuple[str, ...]:
    return tuple(link for link in links if link.startswith(("http://", "https://")))


def _readable(raw: str) -> str:
    """Return one line of readable text; the source itself where nothing would be left."""
    text = to_unicode(raw)
    if text is raw or (text.isprintable() and "  " not in text and text.strip() == text):
        return text or raw
    return " ".join(text.split()) or raw


def _read_labels(tags: Paragraph, context: Context) -> LabelCut:
    if tags.labels:
        _, more = split_more(tags.text)
        return LabelCut(tags.labels, more)
    return cut_with(tags.text, context.index)
