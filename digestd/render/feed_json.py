"""JSON Feed 1.1 out. Floor 1. Entry points: ``json_bytes``, ``json_item``, ``check_json``.

Source: jsonfeed.org/version/1.1.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from datetime import datetime

from digestd.errors import RenderError
from digestd.model.feed import Feed, FeedEntry
from digestd.render.feed_people import author_names
from digestd.render.feed_xml import clean_line, clean_text, rfc3339, web_url

TEMPLATE = "feed/json"
MEDIA_TYPE = "application/feed+json"
VERSION = "https://jsonfeed.org/version/1.1"


def json_item(entry: FeedEntry) -> bytes:
    """Return the JSON object of one entry; the same bytes in every document, so they can be kept."""
    return _dump(
        {
            "id": entry.id,
            "url": web_url(entry.url),
            "title": clean_line(entry.title),
            "summary": clean_line(entry.summary),
            "content_html": clean_text(entry.content_html),
            "content_text": clean_text(entry.content_text),
            "date_published": rfc3339(entry.published),
            "date_modified": rfc3339(entry.updated),
            "authors": _people(author_names(entry)),
            "tags": [tag for tag in map(clean_line, entry.categories) if tag],
        }
    )


def json_bytes(feed: Feed, entry_bytes: Callable[[FeedEntry], bytes] = json_item) -> bytes:
    """Return the feed as a JSON Feed document in UTF-8.

    Args:
        feed: the feed, entries in the order to be written.
        entry_bytes: gives an entry's object; ``json_item`` or something that keeps its results.
    """
    hub = web_url(feed.site.hub)
    head = _dump(
        {
            "version": VERSION,
            "title": clean_line(feed.title),
            "home_page_url": web_url(feed.place.home) or web_url(feed.place.listing),
            "feed_url": web_url(feed.place.urls.json),
            "description": clean_line(" ".join(filter(None, (feed.note, feed.subtitle)))),
            "next_url": web_url(feed.older.json),
            "authors": _people([clean_line(feed.site.name)]),
            "language": feed.site.language,
            "hubs": [{"type": "WebSub", "url": hub}] if hub else [],
        }
    )
    items = b",\n".join(map(entry_bytes, feed.entries))
    return head.removesuffix(b"\n}") + b',\n "items": [\n' + items + b"\n]\n}\n"


def _people(names: Iterable[str]) -> list[dict[str, str]]:
    return [{"name": name} for name in names if name]


def _dump(fields: dict[str, object]) -> bytes:
    """Return an object without the members that say nothing."""
    kept = {name: value for name, value in fields.items() if value}
    return json.dumps(kept, ensure_ascii=False, indent=1, allow_nan=False).encode()


def check_json(body: bytes) -> None:
    """Read a JSON Feed document back as a feed reader would.

    Raises:
        RenderError: it is not JSON, or lacks what JSON Feed 1.1 demands.
    """
    try:
        top = json.loads(body)
    except ValueError as error:
        raise RenderError(f"not JSON: {error}", template=TEMPLATE) from error
    if not isinstance(top, dict) or top.get("version") != VERSION or not top.get("title"):
        raise RenderError("expected version, title and items of JSON Feed 1.1", template=TEMPLATE)
    items = top.get("items")
    if not isinstance(items, list):
        raise RenderError("expected a list of items, found none", template=TEMPLATE)
    for name in ("home_page_url", "feed_url", "next_url"):
        _check_url(top.get(name))
    seen: set[str] = set()
    for item in items:
        _check_item(item)
        if item["id"] in seen:
            raise RenderError(f"expected every id once, found '{item['id']}' twice", template=TEMPLATE)
        seen.add(item["id"])


def _check_item(item: object) -> None:
    if not isinstance(item, dict) or not isinstance(item.get("id"), str) or not item["id"]:
        raise RenderError("expected an item with an id", template=TEMPLATE)
    if not (item.get("content_html") or item.get("content_text")):
        raise RenderError(f"item {item['id']}: expected content, found none", template=TEMPLATE)
    _check_url(item.get("url"))
    for name in ("date_published", "date_modified"):
        try:
            right = rfc3339(datetime.fromisoformat(item[name])) == item[name]
        except (KeyError, TypeError, ValueError):
            right = False
        if not right:
            raise RenderError(f"item {item['id']}: expected an RFC 3339 instant as {name}", template=TEMPLATE)


def _check_url(url: object) -> None:
    if url is not None and (not isinstance(url, str) or web_url(url) != url):
        raise RenderError(f"expected an absolute http address, found '{url}'", template=TEMPLATE)
