"""A list of feeds for other feed readers. Floor 1. Entry point: ``opml_bytes``.

Source: OPML 2.0 (opml.org/spec2.opml), subscription lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from digestd.model.feed import FeedListing
from digestd.render.feed_xml import child, clean_line, document, rfc822, root, web_url


def opml_bytes(title: str, feeds: Sequence[FeedListing], *, changed_at: datetime | None = None) -> bytes:
    """Return the list as OPML 2.0 in UTF-8; feeds without a usable address are left out, for a reader can't follow them.

    Args:
        title: name of the list.
        feeds: in the order in which they are to be listed, may be empty.
        changed_at: when the list last changed, None: not said.
    """
    top = root("opml", {}, {"version": "2.0"})
    head = child(top, "head")
    child(head, "title", clean_line(title))
    if changed_at is not None:
        child(head, "dateModified", rfc822(changed_at))
    body = child(top, "body")
    for feed in feeds:
        url = web_url(feed.url)
        if url is None:
            continue
        home = web_url(feed.home)
        more = {"htmlUrl": home} if home else {}
        if feed.description:
            more["description"] = feed.description
        child(body, "outline", None, {"type": "rss", "text": feed.title, "title": feed.title, "xmlUrl": url, **more})
    return document(top)
