"""RSS 2.0 out. Floor 1. Entry points: ``rss_bytes``, ``rss_item``, ``check_rss``.

Text of ``title`` is plain, text of ``description`` is HTML by the rules of RSS, so there it is escaped as HTML first.

Source: RSS 2.0 and the RSS Best Practices Profile (rssboard.org), RFC 5005 4 and appendix B, WebSub 4.
"""

from __future__ import annotations

from collections.abc import Callable
from email.utils import parsedate_to_datetime
from html import escape

from digestd.errors import RenderError
from digestd.model.feed import Feed, FeedEntry
from digestd.render.feed_people import creator
from digestd.render.feed_xml import (
    ATOM,
    CONTENT,
    DC,
    HISTORY,
    Element,
    child,
    clean_line,
    document,
    fragment,
    read_xml,
    rfc822,
    root,
    web_url,
)

TEMPLATE = "feed/rss"
MEDIA_TYPE = "application/rss+xml"
_NAMESPACES: dict[str | None, str] = {"atom": ATOM, "content": CONTENT, "dc": DC, "fh": HISTORY}
_DOCS = "https://www.rssboard.org/rss-specification"


def rss_item(entry: FeedEntry) -> bytes:
    """Return the ``item`` element of one entry; the same bytes in every document, so they can be kept."""
    item = root("item", _NAMESPACES)
    child(item, "title", clean_line(entry.title))
    url = web_url(entry.url)
    if url is not None:
        child(item, "link", url)
    child(item, "guid", entry.id, {"isPermaLink": "false"})
    child(item, "pubDate", rfc822(entry.published))
    people = creator(entry)
    if people:
        child(item, f"{{{DC}}}creator", people)
    for category in filter(None, map(clean_line, entry.categories)):
        child(item, "category", category)
    if entry.summary:
        child(item, "description", escape(clean_line(entry.summary), quote=False))
    child(item, f"{{{CONTENT}}}encoded", entry.content_html)
    return fragment(item)


def rss_bytes(feed: Feed, entry_bytes: Callable[[FeedEntry], bytes] = rss_item) -> bytes:
    """Return the feed as an RSS 2.0 document in UTF-8.

    RSS demands a ``link`` of the channel. It is the feed's page, else the source's listing, else the feed's own
    ``tag:`` URI: a registered scheme, as RSS asks for, which names the feed and claims no page that is not there.

    Args:
        feed: the feed, entries in the order to be written.
        entry_bytes: gives an entry's ``item``; ``rss_item`` or something that keeps its results.
    """
    top = root("rss", _NAMESPACES, {"version": "2.0"})
    channel = child(top, "channel")
    title = clean_line(feed.title)
    about = clean_line(" ".join(filter(None, (feed.note, feed.subtitle))))
    child(channel, "title", title)
    child(channel, "link", web_url(feed.place.home) or web_url(feed.place.listing) or feed.id)
    child(channel, "description", escape(about or title, quote=False))
    child(channel, "language", feed.site.language)
    child(channel, "lastBuildDate", rfc822(feed.updated))
    child(channel, "ttl", str(feed.site.ttl_minutes))
    child(channel, "generator", "digestd")
    child(channel, "docs", _DOCS)
    _links(channel, feed)
    if feed.archive:
        child(channel, f"{{{HISTORY}}}archive")
    return document(top, into="channel", fragments=map(entry_bytes, feed.entries))


def _links(channel: Element, feed: Feed) -> None:
    links = {
        "self": feed.place.urls.rss,
        "hub": feed.site.hub,
        "current": feed.current.rss,
        "prev-archive": feed.older.rss,
        "next-archive": feed.newer.rss,
    }
    for rel, address in links.items():
        url = web_url(address)
        if url is not None:
            kind = {} if rel == "hub" else {"type": MEDIA_TYPE}
            child(channel, f"{{{ATOM}}}link", None, {"rel": rel, "href": url, **kind})


def check_rss(body: bytes) -> None:
    """Read an RSS document back as a feed reader would.

    Raises:
        RenderError: it is not well-formed, or breaks a rule of RSS 2.0 or of its Best Practices Profile.
    """
    top = read_xml(body, template=TEMPLATE)
    channel = top.find("channel")
    if top.tag != "rss" or top.get("version") != "2.0" or channel is None:
        raise RenderError(f"expected rss version 2.0 with a channel, found '{top.tag}'", template=TEMPLATE)
    for name in ("title", "link", "description", "lastBuildDate"):
        _one(channel, name)
    _date(channel.findtext("lastBuildDate") or "")
    seen: set[str] = set()
    for item in channel.iterfind("item"):
        guid = _one(item, "guid")
        if guid in seen or item.find("guid[@isPermaLink='false']") is None:
            raise RenderError(f"expected a permanent guid used once, found '{guid}'", template=TEMPLATE)
        seen.add(guid)
        _one(item, "title")
        _date(_one(item, "pubDate"))
        link = item.findtext("link")
        if link is not None and web_url(link) != link:
            raise RenderError(f"item {guid}: expected an absolute http link, found '{link}'", template=TEMPLATE)


def _one(parent: Element, name: str) -> str:
    found = parent.findall(name)
    text = found[0].text if len(found) == 1 else None
    if not text:
        raise RenderError(f"{parent.tag}: expected one {name} with text, found {len(found)}", template=TEMPLATE)
    return str(text)


def _date(text: str) -> None:
    """Refuse a date that does not read back to itself: a wrong weekday does not."""
    try:
        same = rfc822(parsedate_to_datetime(text)) == text
    except ValueError:
        same = False
    if not same:
        raise RenderError(f"expected an RFC 822 date in UTC, found '{text}'", template=TEMPLATE)
