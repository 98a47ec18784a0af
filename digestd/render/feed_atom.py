"""Atom 1.0 out. Floor 1. Entry points: ``atom_bytes``, ``atom_entry``, ``check_atom``.

Source: RFC 4287; RFC 5005 4 for archive documents; WebSub 4 for the hub.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from digestd.errors import RenderError
from digestd.model.feed import Feed, FeedEntry
from digestd.render.feed_people import author_names
from digestd.render.feed_xml import (
    ATOM,
    HISTORY,
    Element,
    child,
    clean_line,
    document,
    fragment,
    read_xml,
    rfc3339,
    root,
    web_url,
)

TEMPLATE = "feed/atom"
MEDIA_TYPE = "application/atom+xml"
_NAMESPACES: dict[str | None, str] = {None: ATOM, "fh": HISTORY}
_XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"


def atom_entry(entry: FeedEntry) -> bytes:
    """Return the ``entry`` element of one entry; the same bytes in every document, so they can be kept."""
    element = root(_tag("entry"), _NAMESPACES)
    child(element, _tag("id"), entry.id)
    child(element, _tag("title"), clean_line(entry.title), {"type": "text"})
    child(element, _tag("published"), rfc3339(entry.published))
    child(element, _tag("updated"), rfc3339(entry.updated))
    for name in author_names(entry):
        child(child(element, _tag("author")), _tag("name"), name)
    _link(element, "alternate", entry.url, "text/html")
    for category in filter(None, map(clean_line, entry.categories)):
        child(element, _tag("category"), None, {"term": category})
    if entry.summary:
        child(element, _tag("summary"), clean_line(entry.summary), {"type": "text"})
    child(element, _tag("content"), entry.content_html, {"type": "html"})
    return fragment(element)


def atom_bytes(feed: Feed, entry_bytes: Callable[[FeedEntry], bytes] = atom_entry) -> bytes:
    """Return the feed as an Atom document in UTF-8.

    The feed's author is the service, so that entries without known authors are valid (RFC 4287 4.1.1).

    Args:
        feed: the feed, entries in the order to be written.
        entry_bytes: gives an entry's element; ``atom_entry`` or something that keeps its results.
    """
    top = root(_tag("feed"), _NAMESPACES, {_XML_LANG: feed.site.language})
    child(top, _tag("id"), feed.id)
    child(top, _tag("title"), clean_line(feed.title), {"type": "text"})
    about = clean_line(" ".join(filter(None, (feed.note, feed.subtitle))))
    if about:
        child(top, _tag("subtitle"), about, {"type": "text"})
    child(top, _tag("updated"), rfc3339(feed.updated))
    child(child(top, _tag("author")), _tag("name"), clean_line(feed.site.name) or "digestd")
    child(top, _tag("generator"), "digestd")
    _link(top, "self", feed.place.urls.atom, MEDIA_TYPE)
    _link(top, "alternate", feed.place.home or feed.place.listing, "text/html")
    _link(top, "hub", feed.site.hub, None)
    _link(top, "current", feed.current.atom, MEDIA_TYPE)
    _link(top, "prev-archive", feed.older.atom, MEDIA_TYPE)
    _link(top, "next-archive", feed.newer.atom, MEDIA_TYPE)
    if feed.archive:
        child(top, f"{{{HISTORY}}}archive")
    return document(top, into="feed", fragments=map(entry_bytes, feed.entries))


def _tag(name: str) -> str:
    return f"{{{ATOM}}}{name}"


def _link(parent: Element, rel: str, address: str | None, media_type: str | None) -> None:
    url = web_url(address)
    if url is not None:
        kind = {"type": media_type} if media_type else {}
        child(parent, _tag("link"), None, {"rel": rel, "href": url, **kind})


def check_atom(body: bytes) -> None:
    """Read an Atom document back as a feed reader would.

    Raises:
        RenderError: it is not well-formed, or lacks what RFC 4287 4.1.1 and 4.1.2 demand.
    """
    top = read_xml(body, template=TEMPLATE)
    if top.tag != _tag("feed"):
        raise RenderError(f"expected an Atom feed, found '{top.tag}'", template=TEMPLATE)
    entries = top.findall(_tag("entry"))
    for element in (top, *entries):
        for name in ("id", "title", "updated"):
            _one(element, name)
        _dates(element)
        _links_of(element)
    if top.find(f"{_tag('author')}/{_tag('name')}") is None:
        raise RenderError("expected an author of the feed, found none", template=TEMPLATE)
    ids = [_one(entry, "id") for entry in entries]
    if len(set(ids)) != len(ids):
        raise RenderError("expected every entry id once, found one twice", template=TEMPLATE)
    for entry in entries:
        _one(entry, "content")


def _one(parent: Element, name: str) -> str:
    found = parent.findall(_tag(name))
    text = found[0].text if len(found) == 1 else None
    if not text:
        raise RenderError(f"expected one {name} with text, found {len(found)}", template=TEMPLATE)
    return str(text)


def _dates(parent: Element) -> None:
    for name in ("published", "updated"):
        text = parent.findtext(_tag(name))
        try:
            right = text is None or rfc3339(datetime.fromisoformat(text)) == text
        except ValueError:
            right = False
        if not right:
            raise RenderError(f"expected an RFC 3339 instant in UTC, found '{text}'", template=TEMPLATE)


def _links_of(parent: Element) -> None:
    seen: set[tuple[str | None, str | None]] = set()
    for link in parent.iterfind(_tag("link")):
        rel, href = link.get("rel"), link.get("href")
        if href is None or web_url(href) != href:
            raise RenderError(f"expected an absolute http link, found '{href}'", template=TEMPLATE)
        if (rel, link.get("type")) in seen:
            raise RenderError(f"expected one link '{rel}', found two", template=TEMPLATE)
        seen.add((rel, link.get("type")))
