"""The raw items of a feed, cut without parsing it. Floor 1, pure.

Entry point: :func:`cut_feed`. An item that a source showed before, byte for byte, in a feed whose other bytes are the same,
means what it meant before; only the others need a parser. The cut is by plain search for ``<item`` and ``</item`` (``entry``
in Atom), so whatever could make that differ from what an XML parser sees is no feed to be cut: comments, processing
instructions, sections that reach over an item's end, items in items, declarations of prefixes within items, bytes that are no
UTF-8. ``None`` always means "read it whole".
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from hashlib import blake2b

from digestd.parse.feed_xml import MAX_BYTES, MAX_ITEMS

_FIRST = re.compile(rb"<(item|entry)(?=[\s>])")
_ANY = re.compile(rb"<(?:[A-Za-z_][\w.-]{0,20}:)?(?:item|entry)(?=[\s/>])")
_TAGS = {b"item": (b"<item", b"</item"), b"entry": (b"<entry", b"</entry")}
_BLANK = b" \t\r\n"
#: when the feed was made says nothing of its items, and changes with every fetch
_MADE = re.compile(rb"<(lastBuildDate|pubDate|updated|dc:date)>[^<>&]{0,60}</\1>")
#: what names an item, as it stands: two items that share it are told apart by their titles, on the page as a whole
_GUID = re.compile(rb"<(guid|id)(?=[\s>])[^<>]{0,200}>(.{0,2000}?)</\1", re.DOTALL)


def bytes_hash(data: bytes) -> int:
    """Return 63 bits of a hash."""
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "big") >> 1


@dataclass(frozen=True, slots=True)
class CutFeed:
    """A feed in pieces: head, items, tail; blanks between items are left out."""

    head: bytes
    items: tuple[bytes, ...]
    hashes: tuple[int, ...]  #: of the items
    tail: bytes

    @property
    def head_hash(self) -> int:
        """Hash of everything outside of the items, but for when the feed was made."""
        return bytes_hash(_MADE.sub(rb"<\1>", self.head) + b"\0" + self.tail)

    def with_items(self, places: Collection[int]) -> bytes:
        """Return the same feed with only some of its items, in its order."""
        kept = (item for place, item in enumerate(self.items) if place in places)
        return b"".join((self.head, b"\n".join(kept), self.tail))


def cut_feed(body: bytes) -> CutFeed | None:
    """Return the pieces of a feed, or None if it has no items, or has to be read as a whole."""
    first = _FIRST.search(body)
    if first is None or len(body) > MAX_BYTES or not _is_plain(body):
        return None
    start, end = _TAGS[first[1]]
    items: list[bytes] = []
    at = stop = first.start()
    while body.startswith(start, at):
        close = body.find(end, at)
        stop = body.find(b">", close) + 1
        if close < 0 or stop == 0 or body[close + len(end) : stop - 1].strip(_BLANK):
            return None
        item = body[at:stop]
        if not _is_whole(item, start):
            return None
        items.append(item)
        at = stop
        while body[at : at + 1] and body[at] in _BLANK:
            at += 1
    head, tail = body[: first.start()], body[stop:]
    hashes = tuple(map(bytes_hash, items))
    outside = head + tail
    if len(items) > MAX_ITEMS or len(set(hashes)) < len(items):
        return None
    # the only elements of such a name stand in the one run of items; RSS 1.0 lists them before, as <items>
    if _ANY.search(outside) or b"CDATA" in outside or body.count(b"xmlns") != outside.count(b"xmlns"):
        return None
    other = _TAGS[b"entry" if first[1] == b"item" else b"item"][0]
    return None if other in tail or any(other in item for item in items) else CutFeed(head, tuple(items), hashes, tail)


def guid_hash(item: bytes) -> int | None:
    """Return a hash of the id that an item gives itself; None if it gives none."""
    found = _GUID.search(item)
    return bytes_hash(b"guid:" + found[2].strip()) if found else None


def _is_plain(body: bytes) -> bool:
    """Whether nothing in the bytes makes their meaning depend on what stands far away."""
    if b"<!--" in body or b"\x1b" in body or b"\0" in body:
        return False
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _is_whole(item: bytes, start: bytes) -> bool:
    """Whether an item is one element from its first byte to its last."""
    sections = item.count(b"<![CDATA[")
    return (
        item[len(start) : len(start) + 1] in (b">", b" ", b"\t", b"\r", b"\n")
        and item.count(start) == 1
        and b"<?" not in item
        and sections == item.count(b"]]>") == item.count(b"<!")
    )
