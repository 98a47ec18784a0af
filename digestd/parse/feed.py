"""RSS, Atom and RDF feeds: bytes to Page. Floor 1, pure.

Entry point: :func:`parse_feed`. RSS 0.9x, 1.0 (RDF) and 2.0, Atom 0.3 and 1.0, and the dialects of arXiv, bioRxiv and
the publishers::

    <rss version="2.0"><channel><title>Reef Acoustics</title><ttl>60</ttl>
      <item><title>Snapping Shrimp as Clocks</title><link>https://papers.example/p/101</link>
        <guid isPermaLink="false">p101</guid><pubDate>Tue, 20 Oct 2026 00:00:00 -0400</pubDate>
        <dc:creator>Ana Lima, Bo Chen</dc:creator><description>A short abstract.</description></item>
    </channel></rss>

The text is made well-formed first (feed_xml), then read by feedparser, given nothing but bytes in memory: it would open
or fetch what looks like a path or an address. Its sanitiser is off, for nothing here leaves as markup.
"""

from __future__ import annotations

import html
import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import feedparser
from lxml import etree

from digestd.errors import ErrorPageError, ParseError
from digestd.model.paper import Paper
from digestd.model.snapshot import EMPTY_FEED, Document, Order, Page
from digestd.model.topic import Vocabulary
from digestd.parse.charset import decode_body, one_line
from digestd.parse.detect import detect_format
from digestd.parse.feed_dates import read_date
from digestd.parse.feed_item import FeedContext, read_item
from digestd.parse.feed_markup import text_lines
from digestd.parse.feed_xml import MAX_BYTES, FeedTree, field_name, find_root, read_tree
from digestd.parse.links import absolute_link, normalise_url

MAX_WARNINGS = 50
#: a source that asks not to be read for longer has made a mistake
MAX_TTL = timedelta(days=31)

_BASE = "{http://www.w3.org/XML/1998/namespace}base"
#: what feedparser is given of an item: its text constructs, tags and dates; the rest is read from the elements
_TEXT_FIELDS = frozenset(
    (
        *("title", "description", "summary", "content", "content:encoded", "dc:description", "category", "dc:subject"),
        *("pubdate", "published", "updated", "issued", "modified", "created", "dc:date", "dcterms:issued"),
    )
)
_PERIODS = {"hourly": 3600, "daily": 86400, "weekly": 604800, "monthly": 2592000, "yearly": 31536000}
#: days, not strftime: its names follow the locale
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_ERROR_ID = re.compile(r"/api/errors(?:#|$)")
_ERROR_TITLE = re.compile(
    r"(?i)(?:error|\d{3} .{0,40}error|internal server error|bad gateway|service unavailable|access denied|forbidden|"
    r"not found|too many requests|rate limit exceeded|bridge returned error.*|.{1,60} bridge .{0,20}error.*)[.!]?"
)


def parse_feed(document: Document, vocabulary: Vocabulary) -> Page:  # noqa: ARG001 - the signature of all parsers
    """Return the page that a feed shows.

    A feed has a title, not a topic, and its order says nothing. A feed without items is a page with the reason why it
    is quiet; one cut in the middle is its whole items, marked as incomplete; an item that can't be read is left out
    with a warning.

    Args:
        document: bytes as fetched; its origin is the base of relative links, its fetched_at bounds dates.
        vocabulary: not used, feeds have no tag lines.

    Raises:
        ParseError: it is no feed, or was cut before the end of its first item.
        ErrorPageError: it is an error message in the form of a feed (arXiv's API answers so).
    """
    decoded = decode_body(document.body[:MAX_BYTES], document.media_type)
    warnings = list(decoded.warnings)
    was_cut = len(document.body) > MAX_BYTES
    if was_cut:
        warnings.append(f"only the first {MAX_BYTES:,} of {len(document.body):,} bytes were read")
    if find_root(decoded.text) is None:
        detect_format(document)  # says which error page it is, if it is one
    tree = read_tree(decoded.text, document.origin, was_cut=was_cut)
    warnings.extend(tree.warnings)
    head = _head_texts(tree)
    entries = _read_entries(tree, warnings)
    context = _context(tree, entries, head, document)
    papers = _read_papers(tree, entries, context, warnings)
    _refuse_error(tree, papers, document.origin)
    if tree.items and not papers:
        found = f"expected papers, found {len(tree.items)} items without title or text"
        raise ParseError(found, origin=document.origin)
    if len(warnings) > MAX_WARNINGS:
        warnings[MAX_WARNINGS:] = [f"{len(warnings) - MAX_WARNINGS} more warnings"]
    made = read_date(_first(head, "lastbuilddate", "updated", "dc:date", "pubdate"), document.fetched_at)
    return Page(
        topic=None,
        papers=papers,
        order=Order.FEED,
        title=" ".join(text_lines(_first(head, "title") or "")) or None,
        origin=document.origin,
        observed_at=made.at,
        incomplete=tree.incomplete,
        quiet_reason=None if tree.items else _quiet_reason(tree, document.fetched_at),
        ttl_s=_ttl(head),
        format="feed",
        warnings=tuple(one_line(warning) for warning in warnings),
    )


def _head_texts(tree: FeedTree) -> dict[str, list[str]]:
    """Return what the feed says of itself, by field."""
    head: dict[str, list[str]] = {}
    for child in tree.head:
        name = field_name(child)
        if name and name not in ("item", "entry"):
            href = child.get("href") if name in ("link", "atom:link") and child.get("rel") != "hub" else None
            head.setdefault(name, []).append(href or "".join(child.itertext()))
    return head


def _first(head: Mapping[str, Sequence[str]], *names: str) -> str | None:
    return next((text for name in names for text in head.get(name, ()) if text.strip()), None)


def _context(
    tree: FeedTree, entries: Sequence[Mapping[str, Any]], head: Mapping[str, Sequence[str]], document: Document
) -> FeedContext:
    """Return what items take from their feed."""
    origin = absolute_link(document.origin or "")
    site = next(
        (found for link in (*head.get("link", ()), *head.get("atom:link", ())) if (found := absolute_link(link))), None
    )
    where = normalise_url(origin or site or "")
    guids: Counter[str] = Counter()
    titles: dict[str, str] = {}
    for item, entry in zip(tree.items, entries, strict=True):
        guid = next((one_line("".join(child.itertext())) for child in item if field_name(child) in ("guid", "id")), "")
        title = str(entry.get("title", ""))
        if titles.setdefault(guid, title) != title:
            guids[guid] += 1
    return FeedContext(
        dialect=tree.dialect,
        bases=(tree.head.get(_BASE), tree.root.get(_BASE), origin, site),
        host=urlsplit(f"//{where}").hostname or "" if where else "",
        seen_at=document.fetched_at,
        shared_guids=frozenset(guids),
        is_dblp=(_first(head, "title") or "").strip().lower().startswith("dblp"),
    )


def _read_entries(tree: FeedTree, warnings: list[str]) -> list[Mapping[str, Any]]:
    """Return feedparser's reading of each item; an empty one for an item that it can't read."""
    together = _parse_items(tree, tree.items)
    if together is not None:
        return together
    entries: list[Mapping[str, Any]] = []
    for number, item in enumerate(tree.items, start=1):
        alone = _parse_items(tree, (item,))
        if alone is None:
            warnings.append(f"item {number}: left out, it can't be read")
        entries.append(alone[0] if alone else {})
    return entries


def _parse_items(tree: FeedTree, items: Sequence[Any]) -> list[Mapping[str, Any]] | None:
    """Return feedparser's entries of these items, one each; None if it made more, fewer, or an exception of them."""
    if not items:
        return []
    try:
        parsed = feedparser.parse(
            io.BytesIO(_plain_feed(tree, items)),
            response_headers={"content-type": "application/xml; charset=utf-8"},
            sanitize_html=False,
            resolve_relative_uris=False,
        )
        entries: list[Mapping[str, Any]] = [dict(entry) for entry in parsed["entries"]]
    except Exception:  # whatever makes feedparser raise in one item, the others are read
        return None
    return entries if len(entries) == len(items) else None


def _plain_feed(tree: FeedTree, items: Sequence[Any]) -> bytes:
    """Return a feed with the text fields of the items and nothing else, markup inside them escaped."""
    root = etree.Element(tree.root.tag, nsmap=tree.root.nsmap)
    if tree.root.get("version"):
        root.set("version", tree.root.get("version"))
    parent = root if tree.dialect != "rss" else etree.SubElement(root, "channel")
    for item in items:
        plain = etree.SubElement(parent, item.tag)
        for child in item:
            if field_name(child) not in _TEXT_FIELDS:
                continue
            copy = etree.SubElement(plain, child.tag)
            for name in ("type", "mode", "term"):
                if child.get(name):
                    copy.set(name, child.get(name))
            copy.text = child.text
            if len(child):
                copy.set("type", "html")
                if copy.get("mode"):
                    del copy.attrib["mode"]
                inner = (etree.tostring(part, encoding="unicode") for part in child)
                copy.text = html.escape(child.text or "", quote=False) + "".join(inner)
    found: bytes = etree.tostring(root, encoding="utf-8", xml_declaration=True)
    return found


def _read_papers(
    tree: FeedTree, entries: Sequence[Mapping[str, Any]], context: FeedContext, warnings: list[str]
) -> tuple[Paper, ...]:
    """Return the papers of all items that can be read, in the feed's order; the same item twice is one paper."""
    papers: dict[Paper, None] = {}
    for number, (item, entry) in enumerate(zip(tree.items, entries, strict=True), start=1):
        try:
            paper = read_item(item, entry, context)
        except (ValueError, TypeError, OverflowError, LookupError, AttributeError, RecursionError) as error:
            warnings.append(f"item {number}: left out, {type(error).__name__}: {str(error)[:100]}")
            continue
        if paper is None:
            warnings.append(f"item {number}: left out, it has neither title nor text")
            continue
        if paper in papers:
            warnings.append(f"item {number}: the same as one before")
        warnings.extend(f"item {number}: {warning}" for warning in paper.warnings)
        papers[paper] = None
    return tuple(papers)


def _refuse_error(tree: FeedTree, papers: Sequence[Paper], origin: str | None) -> None:
    """Raise ErrorPageError if the feed is an error message."""
    for item in tree.items[:3]:
        guid = next(("".join(child.itertext()) for child in item if field_name(child) in ("id", "guid", "link")), "")
        if _ERROR_ID.search(guid):
            said = papers[0].abstract or papers[0].title if papers else guid
            raise ErrorPageError(f"expected papers, found an API error: {one_line(said)[:200]}", origin=origin)
    if len(papers) == 1 and _ERROR_TITLE.fullmatch(papers[0].title) and not papers[0].authors:
        said = f"{papers[0].title}: {papers[0].abstract or ''}".rstrip(": ")
        raise ErrorPageError(f"expected papers, found an error message: {said[:200]}", origin=origin)


def _quiet_reason(tree: FeedTree, fetched_at: datetime | None) -> str:
    """Return why a feed is empty, as far as it says so.

    Source: RSS 2.0, skipDays: days of GMT on which readers need not come.
    """
    skipped = {
        one_line("".join(day.itertext())).capitalize()
        for child in tree.head
        if field_name(child) == "skipdays"
        for day in child
    }
    weekday = _WEEKDAYS[fetched_at.weekday()] if fetched_at else ""
    return f"skip day: {weekday}" if weekday in skipped else EMPTY_FEED


def _ttl(head: Mapping[str, Sequence[str]]) -> int | None:
    """Return for how many seconds the feed asks not to be read again; None if it does not ask.

    Source: RSS 2.0 (ttl, in minutes); RSS 1.0 syndication module (updatePeriod, updateFrequency).
    """
    minutes = (_first(head, "ttl") or "").strip()
    if re.fullmatch(r"[0-9]{1,9}", minutes):
        seconds = int(minutes) * 60
    else:
        period = _PERIODS.get((_first(head, "sy:updateperiod") or "").strip().lower(), 0)
        times = (_first(head, "sy:updatefrequency") or "1").strip()
        seconds = period // max(int(times), 1) if re.fullmatch(r"[0-9]{1,6}", times) else period
    return min(seconds, int(MAX_TTL.total_seconds())) or None
