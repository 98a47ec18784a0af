"""The tree of a listing page to the paragraphs of a text listing. Floor 1, pure. Entry point: :func:`paragraphs_of`.

What a browser shows on one line becomes one paragraph, and rows of names, places or labels, each in an element of its
own, become one paragraph too, joined as the text listing joins them:

    <ul class="authors"><li>Maren Oduya</li><li>Tomás Vidal</li><li>+2</li></ul>    Maren Oduya, Tomás Vidal +2
    <div class="tags"><a>Reef Sound</a><a>Sonar</a></div>                           Reef SoundSonar, labels kept apart
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date

from lxml import etree

from digestd.parse.charset import one_line
from digestd.parse.fields import read_date_line, read_month_day, read_number, split_authors
from digestd.parse.html_chart import is_week_table
from digestd.parse.html_tree import is_ignored, line_of, links_within, tag_of, text_content
from digestd.parse.jsontext import date_of
from digestd.parse.links import absolute_link
from digestd.parse.listing import Paragraph

_BLOCKS = frozenset(
    "html body address article aside blockquote center dd details div dl dt fieldset figcaption figure footer form h1 h2 h3 "  # noqa: SIM905  # a list of names
    "h4 h5 h6 header hgroup hr li main menu ol p pre search section summary table tbody td tfoot th thead tr ul br".split()
)
_HEADINGS = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_KINDS = {
    "authors": frozenset({"author", "authors", "byline", "creators", "creator", "people"}),
    "affiliations": frozenset({"affiliation", "affiliations", "affil", "institution", "institutions", "orgs"}),
    "labels": frozenset(
        {"tag", "tags", "label", "labels", "topics", "keyword", "keywords", "chips", "badges", "pills"}
    ),
}
#: field names that a table's head or a definition list prints before the field
_FIELD_NAME = re.compile(
    r"^(?:(?P<authors>authors?|by)|(?P<affiliations>affiliations?|institutions?)|(?P<labels>topics?|tags?|labels?|keywords?)"
    r"|abstract|summary|title|date|published|submitted|category|subjects?|links?)\s*:?$",
    re.IGNORECASE,
)
_FIELD_PREFIX = re.compile(
    r"^(?:authors?|affiliations?|institutions?|topics|tags|labels|keywords|abstract)\s?: ", re.IGNORECASE
)
#: words of links and buttons beside a paper; they are no part of it
_ACTION = re.compile(
    r"^(?:(?:view|open|read|download|get|show|full)\s)?(?:pdf|html|abs|abstract page|arxiv|arxiv page|doi|code|github|paper"
    r"|project(?: page)?|save|share|cite|bibtex|bookmark|link|more|details|slides|video|demo|[\[\]·|/, ])+$",
    re.IGNORECASE,
)
_MORE = re.compile(r"^\+\s?(\d[\d,.]*)(?:\s+more)?$|^(\d[\d,.]*)\s+more$", re.IGNORECASE)
_SEPARATORS = re.compile(r"^[\s,;·•|/]*$")
_CHART_END = re.compile(r"^(?:Week of )?([A-Z][a-z]{2,8}\.? \d{1,2})$")
_LATEST = re.compile(r"^latest papers\b", re.IGNORECASE)
_MAX_ROW = 80  #: elements in a row of names or labels; more are a list of papers
_MAX_PIECE = 160  #: characters of one label
_MAX_ADDRESS = 500  #: characters of one institution, which may be printed with its whole address


@dataclass(frozen=True, slots=True)
class _Block:
    """A paragraph before it is known what it is."""

    paragraph: Paragraph
    heading: bool = False
    row: tuple[str, ...] = ()  #: the pieces of a row, "+N" not among them
    more: str = ""  #: "+2" of a row
    kind: str = ""  #: authors, affiliations, labels; "" if the mark-up doesn't say


def paragraphs_of(root: etree._Element, bases: tuple[str, ...]) -> list[Paragraph]:
    """Return the page's paragraphs in the order of the text listing's grammar: may be empty.

    Args:
        root: of the page's tree.
        bases: addresses to resolve links against, innermost first.
    """
    blocks = _glue(list(_Walk(bases).run(root)))
    return [_settle(block, kind) for block, kind in _kinds(_dates_first(_without_actions(blocks)))]


class _Walk:
    """One walk through a tree; collects the text of the line that is being read."""

    def __init__(self, bases: tuple[str, ...]) -> None:
        self.bases = bases
        self.text: list[str] = []
        self.links: dict[str, None] = {}
        self.open_links: list[str | None] = []
        self.pieces: list[str] = []
        self.line = 1
        self.heading = False
        self.field = ""  #: kind that a <dt> announced for the <dd> after it
        self.in_papers = False

    def run(self, root: etree._Element) -> Iterator[_Block]:
        """Yield the blocks of the tree in document order."""
        walker = etree.iterwalk(root, events=("start", "end"))
        whole: etree._Element | None = None  # the element that was taken as a whole; its end event still comes
        for event, element in walker:
            if event == "start":
                self.line = line_of(element)
                if tag_of(element) in _BLOCKS:
                    yield from self.flush()
                ignored = is_ignored(element) or is_week_table(element)
                row = None if ignored else _read_row(element, self.bases, self.field)
                if row is not None:
                    yield row
                if row is not None or ignored:
                    yield from self._chart_ends(element)
                    whole = element
                    walker.skip_subtree()
                    continue
                day = _day_of(element) if self.in_papers else None
                if day is not None:
                    self._add(f"{day:%b} {day.day}, {day.year}")
                    whole = element
                    walker.skip_subtree()
                    continue
                self._open(element)
            else:
                if element is whole:
                    whole = None
                else:
                    yield from self._close(element)
                if element is not root and element.tail:
                    self._add(element.tail)
        yield from self.flush()

    def _open(self, element: etree._Element) -> None:
        tag = tag_of(element)
        if tag == "a":
            self.open_links.append(absolute_link(element.get("href") or "", *self.bases))
        if tag in _HEADINGS:
            self.heading = True
        if _kind_of(element) == "labels" and tag not in _BLOCKS and len(element) == 0 and element.text:
            self.pieces.append(one_line(element.text))
        if element.text:
            self._add(element.text)

    def _close(self, element: etree._Element) -> Iterator[_Block]:
        tag = tag_of(element)
        if tag in _BLOCKS:
            found = list(self.flush())
            if tag in ("dt", "th") and len(found) == 1 and (name := _FIELD_NAME.match(found[0].paragraph.text)):
                self.field = name.lastgroup or "" if tag == "dt" else ""
                found = []
            elif tag in ("dd", "td"):
                found = [replace(one, kind=one.kind or self.field) for one in found]
                self.field = ""
            yield from found
        if tag == "a" and self.open_links:
            self.open_links.pop()

    def _add(self, text: str) -> None:
        self.text.append(text)
        if text.strip():
            self.links.update((link, None) for link in self.open_links if link)

    def flush(self) -> Iterator[_Block]:
        """Yield the line that was read up to here, if there is any, and begin the next."""
        text = one_line("".join(self.text).strip())
        if text:
            self.in_papers = self.in_papers or bool(_LATEST.match(text))
            spelt = "".join(text.split())
            pieces = tuple(self.pieces) if spelt and "".join("".join(self.pieces).split()) == spelt else ()
            paragraph = Paragraph(text, self.line, links=tuple(self.links))
            names = tuple(piece for piece in pieces if not _MORE.match(piece))
            more = next((piece for piece in pieces if _MORE.match(piece)), "")
            yield _Block(paragraph, self.heading, row=names, more=more, kind="labels" if names else "")
        self.text, self.links, self.pieces, self.heading = [], {}, [], False

    def _chart_ends(self, element: etree._Element) -> Iterator[_Block]:
        """Yield the first and last week that are printed within a drawn chart."""
        if tag_of(element) != "svg":
            return
        ends = [text for one in element.iter("text") if _CHART_END.match(text := text_content(one))]
        if len(ends) == 2:
            yield _Block(Paragraph(f"{ends[0]}{ends[1]}", self.line))


def _day_of(element: etree._Element) -> date | None:
    """Return the day of a ``<time datetime>`` whose printed text is none that the grammar reads."""
    if tag_of(element) != "time":
        return None
    day = date_of(element.get("datetime"))
    printed = text_content(element)
    return day if day is not None and (not printed or read_date_line(printed) is None) else None


def _kind_of(element: etree._Element) -> str:
    """Return what an element's names say that it holds; "" if they say nothing."""
    if tag_of(element) in _HEADINGS:
        return ""
    names = [element.get(key) or "" for key in ("class", "itemprop", "data-field", "aria-label", "id")]
    words = {word.lower() for name in names for word in _WORDS.findall(name[:200])}
    return next((kind for kind, known in _KINDS.items() if words & known), "")


def _read_row(element: etree._Element, bases: tuple[str, ...], announced: str) -> _Block | None:
    """Return a row of names, places or labels that an element holds; None if it holds something else."""
    tag = tag_of(element)
    kind = _kind_of(element) or (announced if tag in ("dd", "ul", "ol") else "")
    if len(element) == 0 or tag in ("a", "html", "body", *_HEADINGS):
        return None
    if not kind and tag not in ("ul", "ol") and not _is_link_row(element):
        return None
    holder = element
    while len(holder) == 1 and not (holder.text or "").strip() and len(holder[0]) > 1:
        holder = holder[0]
    if sum(1 for _ in zip(element.iter(), range(3 * _MAX_ROW), strict=False)) >= 3 * _MAX_ROW:
        return None
    pieces = [text_content(child) for child in holder if not is_ignored(child)]
    longest = _MAX_ADDRESS if kind in ("authors", "affiliations") else _MAX_PIECE
    if not 0 < len(pieces) <= _MAX_ROW or any(len(piece) > longest for piece in pieces):
        return None
    if any(tag_of(one) in (*_HEADINGS, "time", "p", "article", "table") for one in element.iterdescendants()):
        return None
    between = [holder.text or "", *(child.tail or "" for child in holder)]
    plain = text_content(element)
    links = tuple(dict.fromkeys(links_within(element, bases)))
    line = line_of(element)
    if not plain or any(read_date_line(piece) for piece in pieces if piece):
        return None
    if not all(_SEPARATORS.match(one) for one in between):
        return _printed_row(plain, line, links, kind) if kind in ("authors", "affiliations") else None
    pieces = [piece for piece in pieces if kind == "labels" or not _ACTION.match(piece)] or pieces
    if len(pieces) == 1 and not kind and tag not in ("ul", "ol"):
        return _Block(Paragraph(pieces[0], line, links=links))
    names = tuple(piece.strip(" ,;·") for piece in pieces if piece.strip(" ,;·") and not _MORE.match(piece))
    more = next((piece for piece in pieces if _MORE.match(piece)), "")
    return _Block(Paragraph(plain, line, links=links), row=names, more=more, kind=kind) if names else None


def _printed_row(plain: str, line: int, links: tuple[str, ...], kind: str) -> _Block:
    """Return a row whose separators are printed, as the text listing would print it."""
    paragraph = Paragraph(plain, line, links=links)
    names, more = split_authors(plain) if kind == "authors" else ((), 0)
    return _Block(paragraph, row=names, more=f"+{more}" if more else "", kind=kind)


def _is_link_row(element: etree._Element) -> bool:
    """Whether a line of the page is made of several links and nothing else."""
    return tag_of(element) in _BLOCKS and len(element) > 1 and all(tag_of(child) == "a" for child in element)


def _glue(blocks: Sequence[_Block]) -> list[_Block]:
    """Return the blocks with those lines whole again that the grammar has on one line and the page had on two."""
    glued: list[_Block] = []
    for block in blocks:
        text = block.paragraph.text
        before = glued[-1].paragraph.text if glued else ""
        if (
            (_LATEST.fullmatch(before) and read_number(text) is not None)
            or (_is_bare_date(before) and _is_category(text))
            or (read_month_day(before) and (found := _CHART_END.match(text)) and found[0] != found[1])
        ):
            joined = f"{before} {text}" if _LATEST.match(before) else f"{before}{text}"
            glued[-1] = replace(glued[-1], paragraph=replace(glued[-1].paragraph, text=joined))
        else:
            # never of a title: a paper may be called "Labels: A Survey"
            is_title = block.heading or (bool(glued) and read_date_line(before) is not None)
            prefix = None if is_title else _FIELD_PREFIX.match(text)
            rest = text[prefix.end() :] if prefix else text
            glued.append(replace(block, paragraph=replace(block.paragraph, text=rest)))
    return glued


def _is_bare_date(text: str) -> bool:
    found = read_date_line(text)
    return found is not None and bool(found.printed) and not found.categories


def _is_category(text: str) -> bool:
    found = read_date_line(text)
    return found is not None and not found.printed


def _is_date(block: _Block) -> bool:
    found = read_date_line(block.paragraph.text)
    return found is not None and bool(found.printed)


def _without_actions(blocks: Sequence[_Block]) -> list[_Block]:
    """Return the blocks without those that are only links to act on ("PDF", "Code"); their links go to the title.

    The title is the paragraph after the block's date.
    """
    kept: list[_Block] = []
    title: int | None = None
    for block in blocks:
        text = block.paragraph.text
        # a paper may be called "Code": what stands in the title's place is the title
        below_title = title is not None and title < len(kept)
        if title is not None and below_title and len(text) <= 60 and block.kind != "labels" and _ACTION.match(text):
            paragraph = kept[title].paragraph
            links = tuple(dict.fromkeys([*paragraph.links, *block.paragraph.links]))
            kept[title] = replace(kept[title], paragraph=replace(paragraph, links=links))
            continue
        if _is_date(block):
            # a heading right before the date is the title
            title = len(kept) - 1 if kept and kept[-1].heading and title is not None else len(kept) + 1
        kept.append(block)
    return kept


def _dates_first(blocks: Sequence[_Block]) -> list[_Block]:
    """Return the blocks with each paper's date before its title, as the text listing has it.

    Where the first paper's heading stands right before its date, all papers' headings do.
    """
    start = next((place for place, one in enumerate(blocks) if _LATEST.match(one.paragraph.text)), -1) + 1
    ordered = list(blocks)
    dates = [place for place in range(start, len(ordered)) if _is_date(ordered[place])]
    below = [place for place in dates if place > start and ordered[place - 1].heading]
    # without "Latest papers" above, one heading above one date may be the page's own
    if not below or below[0] != dates[0] or (start == 0 and len(below) == 1):
        return ordered
    for place in below:
        ordered[place - 1], ordered[place] = ordered[place], ordered[place - 1]
    return ordered


def _kinds(blocks: Sequence[_Block]) -> Iterator[tuple[_Block, str]]:
    """Yield each block with its kind; rows whose mark-up says nothing are told by their place before the next date.

    The last row of a paper holds its labels, the one or two before it authors and affiliations.
    """
    rows_after = 0
    kinds: list[str] = []
    for block in reversed(blocks):
        if _is_date(block):
            rows_after = 0
        kind = block.kind
        if not kind and block.row:
            kind = ("labels", "affiliations", "authors")[min(rows_after, 2)]
        if block.row or kind:
            rows_after += 1
        kinds.append(kind)
    # two rows are authors and labels
    for place, (block, kind) in enumerate(zip(blocks, reversed(kinds), strict=True)):
        following = blocks[place - 1] if place else None
        lone = kind == "affiliations" and not block.kind and not (following and (following.row or following.kind))
        yield block, "authors" if lone else kind


def _settle(block: _Block, kind: str) -> Paragraph:
    """Return the paragraph as the text listing would print it, labels kept apart."""
    if not block.row:
        return block.paragraph
    number = _MORE.match(block.more)
    count = (number[1] or number[2]) if number else ""
    match kind:
        case "authors":
            text = f"{', '.join(block.row)} +{count}" if count else ", ".join(block.row)
            return replace(block.paragraph, text=text)
        case "affiliations":
            text = f"{' · '.join(block.row)} +{count}" if count else " · ".join(block.row)
            return replace(block.paragraph, text=text)
        case _:
            text = f"{' '.join(block.row)}+{count}" if count else " ".join(block.row)
            return replace(block.paragraph, text=text, labels=block.row)
