"""Listing pages of a topic, saved or fetched as HTML. Floor 1, pure. Entry point: :func:`parse_html`.

The lines that a browser shows are those of the text listing, so they go through its grammar (``listing.py``); what only
HTML has is added: links, labels that stand apart, ``<time datetime>``, the numbers behind the chart.

    <h1>Reef Sound</h1> <h2>Latest papers <span>128</span></h2>
    <article><p><time datetime="2026-09-21">Sep 21, 2026</time><span>cs.SD</span></p><h3><a href="/p/1">Echo Caves</a></h3>
      <p>We listen to caves.</p><p>Lea Fontaine, Yun-Seo Baek +2</p><ul><li>Reef Sound</li><li>Sonar</li></ul></article>
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from enum import Enum

from digestd.errors import ErrorPageError, ParseError
from digestd.model.snapshot import Document, Page
from digestd.model.topic import Vocabulary
from digestd.parse.apipage import with_ids
from digestd.parse.fields import read_date_line
from digestd.parse.html_blocks import paragraphs_of
from digestd.parse.html_chart import weekly_of
from digestd.parse.html_tree import base_of, page_title, read_tree
from digestd.parse.listing import Paragraph, parse_paragraphs

_ERROR_TITLE = re.compile(
    r"\b(?:[45]\d\d|errors?|not found|forbidden|denied|unavailable|maintenance|moved|too many requests|rate limit|captcha"
    r"|just a moment|are you a robot|attention required|sign in|log ?in|gone|time-?out|unauthorized|oops)\b",
    re.IGNORECASE,
)
_END = re.compile(r"</(?:body|html)\s*>", re.IGNORECASE)
_START = re.compile(r"<(?:body|html)[\s>]", re.IGNORECASE)
_CONTAINER = re.compile(r"<(/?)(article|section|main|div|ul|ol|dl|table|span|a|h[1-6])(?=[\s>/])", re.IGNORECASE)
_SCRIPT = re.compile(r"<script\b.*?(?:</script\s*>|\Z)", re.IGNORECASE | re.DOTALL)


def parse_html(document: Document, vocabulary: Vocabulary) -> Page:
    """Return the page that an HTML listing shows.

    Args:
        document: at most 5 MB; its origin is where relative links start, unless the page says so itself.
        vocabulary: labels known so far, for pages whose labels don't stand apart.

    Raises:
        ErrorPageError: there is no listing, and the page's title says that it is an error, a login or a check for robots.
        ParseError: there is no listing in it; says the page's title.
    """
    root, text = read_tree(document)
    bases = base_of(root, text, document.origin)
    weekly = weekly_of(root)
    title = page_title(root)
    ending = _read_ending(text)
    cut = {_Ending.CLOSED: False, _Ending.CUT: True}.get(ending)
    paragraphs: Sequence[Paragraph] = paragraphs_of(root, bases)
    whole = _without_last_block(paragraphs) if cut else paragraphs
    try:
        page = parse_paragraphs(whole, document, vocabulary, format_name="html", cut=cut)
    except ParseError as error:
        raise _no_listing(title, len(paragraphs), document, error) from error
    momentum = replace(page.momentum, weekly=weekly) if page.momentum and weekly else page.momentum
    papers = tuple(with_ids(paper) for paper in page.papers)
    incomplete = page.incomplete or ending is _Ending.OPEN
    return replace(page, papers=papers, momentum=momentum, title=title or None, incomplete=incomplete)


class _Ending(Enum):
    """What the end of a document proves."""

    CLOSED = "closed"
    OPEN = "open"  #: the document's own end is missing, but all within it is closed: may be whole, may be cut between papers
    CUT = "cut"  #: it ends within a tag or an element that must be closed
    UNKNOWN = "unknown"  #: a piece of mark-up without a document around it


def _read_ending(text: str) -> _Ending:
    """Return what the end of a document proves.

    ``</body>`` and ``</html>`` may be left out by right, the ends of what is counted here may not.

    Source: HTML Living Standard 13.1.2.4 (optional tags).
    """
    tail = text[-4096:]
    if _END.search(tail):
        return _Ending.CLOSED
    if tail.rfind("<") > tail.rfind(">"):
        return _Ending.CUT
    still_open = Counter[str]()
    for slash, tag in _CONTAINER.findall(_SCRIPT.sub("", text)):
        still_open[tag.lower()] += -1 if slash else 1
    if any(count > 0 for count in still_open.values()):
        return _Ending.CUT
    return _Ending.OPEN if _START.search(text) else _Ending.UNKNOWN


def _without_last_block(paragraphs: Sequence[Paragraph]) -> Sequence[Paragraph]:
    """Return the paragraphs of a cut page without those below its last date: half a label looks like a whole one."""
    dates = (place for place in reversed(range(len(paragraphs))) if read_date_line(paragraphs[place].text))
    last = next(dates, None)
    return paragraphs if last is None else paragraphs[: last + 1]


def _no_listing(title: str, paragraphs: int, document: Document, error: ParseError) -> ParseError:
    """Return the error of a page that holds no listing."""
    called = f"a page titled {title!r}" if title else "a page without a title"
    found = f"expected a topic listing, found {called} with {paragraphs} paragraphs ({error.message})"
    kind = ErrorPageError if _ERROR_TITLE.search(title) else ParseError
    return kind(found, origin=document.origin)
