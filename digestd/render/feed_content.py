"""What a feed entry says, in the few elements that every reader keeps: p br a em h3 ul li. Floor 1.

Content is built of blocks of plain text and written twice, as HTML and as text; text becomes markup in one place only,
so it is escaped once. Entry points: ``paper_content``, ``revision_content``, ``digest_content``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape

from digestd.model.digest import Digest, DigestPaper, RevisedPaper, Section, Trend
from digestd.model.feed import FeedPaper, FeedRevision
from digestd.model.snapshot import Kind
from digestd.model.topic import Topic
from digestd.phrases import section_counts, short_title
from digestd.render.feed_xml import clean_line, web_url
from digestd.render.spark import unicode_bars

_ARRIVAL = {Kind.NEW: "New in ", Kind.NEWLY_TAGGED: "Now in "}
#: Short titles named after "5 more online".
_REST_NAMED = 6


@dataclass(frozen=True, slots=True)
class Content:
    """The same content twice."""

    html: str
    text: str


@dataclass(frozen=True, slots=True)
class _Span:
    text: str
    href: str | None = None
    em: bool = False


_Line = tuple[_Span, ...]


@dataclass(frozen=True, slots=True)
class _Block:
    tag: str  #: p, h3 or ul
    items: tuple[tuple[_Line, ...], ...]  #: of p and h3 one item


def paper_content(paper: FeedPaper, topic: Topic, topic_url: str | None) -> Content:
    """Return summary, people and affiliations, category and topic line of a paper; parts that are empty are left out."""
    return _write([*_about(paper), _paragraph((_topic_line(paper, topic, topic_url),))])


def revision_content(revision: FeedRevision, topic: Topic, topic_url: str | None) -> Content:
    """Return what changed, then the paper as it is now."""
    about = [] if revision.withdrawn else _about(revision.paper)
    where = (_Span("In "), _Span(topic.name, topic_url), _Span("."))
    return _write([_paragraph(((_Span(revision.line),),)), *about, _paragraph((where,))])


def digest_content(digest: Digest, period: str) -> Content:
    """Return all sections of a digest, then the older, revised and withdrawn papers, and the end."""
    blocks = [block for section in digest.sections for block in _section(section)]
    if digest.catch_up:
        blocks.insert(0, _paragraph(((_Span(_sentence(digest.catch_up)),),)))
    if digest.tagged:
        now_in = [_listed(tagged.paper, f"Now in {tagged.topic.name}.") for tagged in digest.tagged]
        blocks += [_heading("Older papers newly tagged"), _Block("ul", tuple(now_in))]
    blocks += _changed("Revised papers", digest.revised) + _changed("Withdrawn papers", digest.withdrawn)
    return _write([*blocks, _paragraph(((_Span(f"That is all for {period}."),),))])


def _about(paper: FeedPaper) -> list[_Block]:
    lines = tuple((_Span(text),) for text in (paper.people, paper.affiliations) if text)
    blocks = [_paragraph(((_Span("This paper was withdrawn."),),))] if paper.paper.withdrawn else []
    if paper.summary:
        blocks.append(_paragraph(((_Span(paper.summary),),)))
    return [*blocks, _paragraph(lines)] if lines else blocks


def _topic_line(paper: FeedPaper, topic: Topic, topic_url: str | None) -> _Line:
    category = f"{paper.paper.categories[0]}. " if paper.paper.categories else ""
    end = f": {paper.headline.rstrip('.')}." if paper.headline else "."
    return _Span(category + _ARRIVAL.get(paper.kind, "In ")), _Span(topic.name, topic_url), _Span(end)


def _section(section: Section) -> list[_Block]:
    lines: list[_Line] = [(_Span(" ".join(filter(None, [unicode_bars(section.momentum.weekly), _counts(section)]))),)]
    if section.coverage_line:
        lines.append((_Span(_sentence(section.coverage_line)),))
    blocks = [_heading(section.topic.name, section.url), _paragraph(tuple(lines))]
    if section.papers:
        also = (_also_in(paper) for paper in section.papers)
        listed = (_listed(paper, note) for paper, note in zip(section.papers, also, strict=True))
        blocks.append(_Block("ul", tuple(listed)))
    if section.rest:
        names = ", ".join(short_title(paper.paper.title) for paper in section.rest[:_REST_NAMED])
        more = f", and {len(section.rest) - _REST_NAMED} others" if len(section.rest) > _REST_NAMED else ""
        link = _Span(f"{len(section.rest)} more online" if section.url else f"{len(section.rest)} more", section.url)
        blocks.append(_paragraph(((link, _Span(f": {names}{more}.")),)))
    return blocks


def _counts(section: Section) -> str:
    """Return the headline and what it means here: "54 papers in four weeks, up 145%. 17 new, 12 shown."."""
    # The note of a quiet topic says when the last paper came; other notes are for charts and tables.
    note = section.headline.note if section.headline.trend is Trend.QUIET else ""
    return " ".join(map(_sentence, filter(None, (section.headline.text, section_counts(section), note))))


def _changed(heading: str, revised: Iterable[RevisedPaper]) -> list[_Block]:
    items = tuple(((_Span(one.paper.paper.title, one.paper.url),), (_Span(one.line),)) for one in revised)
    return [_heading(heading), _Block("ul", items)] if items else []


def _listed(paper: DigestPaper, note: str) -> tuple[_Line, ...]:
    said = tuple(_Span(text, em=em) for text, em in ((paper.summary, False), (note, True)) if text)
    spaced = said[:1] + tuple(span for extra in said[1:] for span in (_Span(" "), extra))
    title = (_Span(paper.paper.title, paper.url),)
    return (title, spaced) if spaced else (title,)


def _also_in(paper: DigestPaper) -> str:
    return f"Also in {', '.join(paper.also_in)}." if paper.also_in else ""


def _sentence(text: str) -> str:
    """Return the text with a capital at its start and a full stop at its end."""
    return text[:1].upper() + text[1:].rstrip(".") + "." if text else ""


def _heading(text: str, href: str | None = None) -> _Block:
    return _Block("h3", (((_Span(text, href),),),))


def _paragraph(lines: tuple[_Line, ...]) -> _Block:
    return _Block("p", (lines,))


def _write(blocks: Iterable[_Block]) -> Content:
    kept = tuple(blocks)
    return Content(html="\n".join(map(_block_html, kept)), text="\n\n".join(map(_block_text, kept)))


def _block_html(block: _Block) -> str:
    items = ["<br>".join("".join(map(_span_html, line)).strip() for line in item) for item in block.items]
    if block.tag == "ul":
        return "<ul>\n" + "".join(f"<li>{item}</li>\n" for item in items) + "</ul>"
    return f"<{block.tag}>{items[0]}</{block.tag}>"


def _block_text(block: _Block) -> str:
    items = ["\n".join("".join(map(_span_text, line)).strip() for line in item) for item in block.items]
    if block.tag == "ul":
        return "\n".join("- " + item.replace("\n", "\n  ") for item in items)
    return items[0]


def _span_html(span: _Span) -> str:
    text = escape(_span_text(span), quote=False)
    href = web_url(span.href)
    if href is not None:
        return f'<a href="{escape(href)}">{text}</a>'
    return f"<em>{text}</em>" if span.em else text


def _span_text(span: _Span) -> str:
    """Return the text on one line; a space at an end stays, for it parts two spans."""
    before = " " if span.text.startswith(" ") else ""
    after = " " if span.text.endswith(" ") else ""
    text = clean_line(span.text)
    return before + text + after if text else before
