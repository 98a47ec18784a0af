"""A list of feeds, as feed readers write it, to outlines. Floor 1, pure. Entry point: :func:`parse_opml`.

    <opml version="2.0"><head><title>My feeds</title></head><body>
    <outline text="Biology"><outline type="rss" text="Reef News" xmlUrl="https://reef.example/feed" htmlUrl="https://reef.example/"/>
    </outline></body></opml>

Read by lxml, which is here anyway: libraries for such lists give their feeds flat, with folders as tags, and could not give
the list back as it came. A list is a stranger's file: its document type is never read, and only addresses of the web count.

Source: OPML 2.0 (opml.org/spec2.opml), subscription lists.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlsplit

from lxml import etree

from digestd.errors import ParseError
from digestd.model.opml import Outline, Outlines, ReadOutlines
from digestd.outlines import flat_list, nest
from digestd.parse.charset import decode_body, one_line
from digestd.render.feed_xml import clean_line

#: a list of 5,000 feeds has 1.5 MB
MAX_BYTES = 5_000_000
MAX_FEEDS = 5_000
#: folders in folders; readers write one or two
MAX_DEPTH = 20
_MAX_URL = 2_000
_MAX_TITLE = 500

_DECLARATION = re.compile(r"\s*<\?xml[^>]{0,200}\?>")
_DOCTYPE = re.compile(r"<!\s*(?:DOCTYPE|ENTITY)", re.IGNORECASE)
_BARE_AMPERSAND = re.compile(r"&(?!(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#x[0-9a-fA-F]{1,6});)")
_ILLEGAL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_WEB = re.compile(r"https?://", re.IGNORECASE)
_NOT_IN_URLS = re.compile(r"[\x00-\x20\x7f-\xa0\u2028\u2029<>\"{}|\\^`]")


def parse_opml(body: bytes, *, origin: str | None = None) -> ReadOutlines:
    """Return the list of a document.

    Args:
        body: the document as it was read.
        origin: where it came from, for messages.

    Returns:
        Feeds and folders in their order and nesting. Folders of one name in one place are one; an address that is none of
        the web is left out, with a note; outlines below a feed stand beside it.

    Raises:
        ParseError: it is no OPML, declares a document type, or is larger or deeper than any list is.
    """
    if len(body) > MAX_BYTES:
        raise ParseError(f"expected at most {MAX_BYTES:,} bytes, found {len(body):,}", origin=origin)
    root = _root(body, origin)
    skipped: list[str] = []
    entries = _entries(root, skipped, origin)
    head = next((child for child in root if _name(child) == "head"), None)
    title = next((child for child in head if _name(child) == "title"), None) if head is not None else None
    read = Outlines(_line((title.text if title is not None else "") or ""), entries)
    return ReadOutlines(nest(flat_list(read)), tuple(skipped))


def _root(body: bytes, origin: str | None) -> Any:
    text = decode_body(body, None).text
    if _DOCTYPE.search(text):
        # no reader writes one; what it could declare are entities that grow without end
        raise ParseError("expected OPML without a document type, found one", origin=origin)
    text = _BARE_AMPERSAND.sub("&amp;", _ILLEGAL.sub("", _DECLARATION.sub("", text, count=1)))
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_comments=True, remove_pis=True,
        encoding="utf-8",
    )  # fmt: skip
    try:
        root = etree.fromstring(text.encode(), parser)
    except (etree.LxmlError, ValueError) as error:
        raise ParseError(f"expected OPML, found {str(error)[:200]}", origin=origin) from error
    if _name(root) != "opml":
        raise ParseError(f"expected the element opml, found {_name(root)[:40] or 'none'}", origin=origin)
    return root


def _entries(root: Any, skipped: list[str], origin: str | None) -> tuple[Outline, ...]:
    """Return what is in the body, read without recursion: a list may be nested deeper than Python's stack."""
    count = 0
    #: (element, outlines read in it so far); a folder is closed when its children are done
    result: list[Outline] = []
    stack: list[tuple[Any, list[Outline], int]] = [(child, result, 0) for child in root if _name(child) == "body"]
    folders: list[tuple[str, list[Outline], list[Outline], int]] = []
    while stack:
        element, into, depth = stack.pop()
        inside: list[tuple[Any, list[Outline], int]] = []
        for child in element:
            if _name(child) != "outline":
                continue
            count += 1
            if count > MAX_FEEDS:
                raise ParseError(f"expected at most {MAX_FEEDS:,} outlines, found more", origin=origin)
            if depth >= MAX_DEPTH:
                raise ParseError(f"expected at most {MAX_DEPTH} folders in one another, found more", origin=origin)
            feed = _feed(child, skipped)
            if feed is not None:
                into.append(feed)
                inside.append((child, into, depth + 1))
            elif _attribute(child, "xmlurl") is None:
                inner: list[Outline] = []
                folders.append((_title(child), inner, into, len(into)))
                into.append(Outline(_title(child)))
                inside.append((child, inner, depth + 1))
        stack += reversed(inside)
    for title, inner, into, place in reversed(folders):
        into[place] = Outline(title, children=tuple(inner))
    return tuple(result)


def _feed(element: Any, skipped: list[str]) -> Outline | None:
    """Return the feed of an outline; None for a folder, or where its address is none of the web."""
    given = _attribute(element, "xmlurl")
    if given is None:
        return None
    url = _web_address(given)
    if url is None:
        skipped.append(f"{_title(element) or 'a feed without a title'}: {one_line(given)[:80]!r} is no web address")
        return None
    home = _attribute(element, "htmlurl")
    return Outline(_title(element) or url, url, _web_address(home) if home is not None else None)


def _web_address(text: str) -> str | None:
    """Return an http or https address as it stands, its scheme in lower case; None for everything else."""
    url = text.strip()
    if not _WEB.match(url) or len(url) > _MAX_URL or _NOT_IN_URLS.search(url) or clean_line(url) != url:
        return None
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 # a bad port is found only when it is asked for
    except ValueError:
        return None
    if not parts.hostname or "@" in parts.netloc:  # a user name makes one host look like another
        return None
    scheme, colon, rest = url.partition(":")
    return f"{scheme.lower()}{colon}{rest}"


def _title(element: Any) -> str:
    """Return what an outline is called: its title, else its text."""
    return _line(_attribute(element, "title") or _attribute(element, "text") or "")


def _line(text: str) -> str:
    return clean_line(clean_line(one_line(text))[:_MAX_TITLE])


def _attribute(element: Any, name: str) -> str | None:
    """Return an attribute whatever the case of its name; None where it is missing or blank."""
    for key, value in element.attrib.items():
        if isinstance(key, str) and key.lower() == name:
            return str(value) if value.strip() else None
    return None


def _name(element: Any) -> str:
    tag = element.tag
    return tag.rpartition("}")[2].lower() if isinstance(tag, str) else ""
