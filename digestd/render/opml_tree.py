"""A list of feeds with its folders as OPML. Floor 1. Entry point: ``outlines_bytes``.

Source: OPML 2.0 (opml.org/spec2.opml), subscription lists.
"""

from __future__ import annotations

from collections.abc import Sequence

from digestd.model.opml import Outline, Outlines
from digestd.render.feed_xml import Element, child, clean_line, document, root


def outlines_bytes(outlines: Outlines) -> bytes:
    """Return a list as OPML 2.0 in UTF-8: addresses as they came, folders as outlines of their own."""
    top = root("opml", {}, {"version": "2.0"})
    head = child(top, "head")
    child(head, "title", clean_line(outlines.title))
    _add(child(top, "body"), outlines.entries)
    return document(top)


def _add(parent: Element, entries: Sequence[Outline]) -> None:
    for entry in entries:
        named = {"text": entry.title, "title": entry.title}
        if entry.url:
            home = {"htmlUrl": entry.home} if entry.home else {}
            child(parent, "outline", None, {"type": "rss", **named, "xmlUrl": entry.url, **home})
        else:
            _add(child(parent, "outline", None, named), entry.children)
