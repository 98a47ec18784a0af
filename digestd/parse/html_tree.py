"""HTML bytes to a tree that is safe to walk, and the questions asked of its elements. Floor 1, pure.

Entry points: :func:`read_tree`, :func:`text_content`, :func:`base_of`. The only module that gives HTML to lxml. Trees from
libxml2 are never deeper than 256, so that walking them needs no guard; scripts are not run, nothing is fetched.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import cast

from lxml import etree

from digestd.errors import ParseError
from digestd.model.snapshot import Document
from digestd.parse.charset import decode_body, one_line
from digestd.parse.links import absolute_link

#: a listing of a hundred papers has 400 kB; the fetcher refuses more than this too
MAX_BYTES = 5_000_000

_IGNORED = frozenset(
    "script style template noscript nav head iframe object embed canvas video audio select option textarea input button "  # noqa: SIM905  # a list of names
    "dialog svg annotation".split()
)
_HIDDEN_CLASS = re.compile(r"(?:^|\s)(?:sr-only|visually-hidden|screen-reader-text|d-none|hidden)(?:\s|$)")
_HIDDEN_STYLE = re.compile(r"display\s*:\s*none|visibility\s*:\s*hidden", re.IGNORECASE)
_SAVED_FROM = re.compile(r"<!--\s*saved from url=\(\d{1,5}\)(\S{1,2000})\s*-->")


def read_tree(document: Document) -> tuple[etree._Element, str]:
    """Return the root of the document's tree, and its text as decoded.

    Raises:
        ParseError: it is too large, or holds no element at all.
    """
    if len(document.body) > MAX_BYTES:
        found = f"expected at most {MAX_BYTES:,} bytes of HTML, found {len(document.body):,}"
        raise ParseError(found, origin=document.origin)
    text = decode_body(document.body, document.media_type).text
    # comments go, the one that names the page's address was read from the text
    parser = etree.HTMLParser(
        huge_tree=False, no_network=True, recover=True, remove_comments=True, remove_pis=True, encoding="utf-8"
    )
    try:
        root = etree.fromstring(text.encode("utf-8", "replace"), parser)
    except etree.LxmlError as error:  # pragma: no cover  # recovery leaves nothing to raise; other versions may
        raise ParseError(f"expected HTML, found {one_line(str(error))[:120]}", origin=document.origin) from error
    if root is None:
        raise ParseError("expected HTML, found no element", origin=document.origin)
    return root, text


def base_of(root: etree._Element, text: str, origin: str | None) -> tuple[str, ...]:
    """Return the addresses against which the page's links are resolved, innermost first; empty if none is known.

    ``<base>`` goes first; then where the document came from, if that is a web address; then the address that a browser
    wrote into the file when it was saved, and the page's own canonical link.
    """
    found = _attributes(root, "base", "href")
    if origin and origin.lower().startswith(("http://", "https://")):
        found.append(origin)
    saved = _SAVED_FROM.search(text, 0, 4096)
    if saved:
        found.append(saved[1])
    found.extend(_attributes(root, "link", "href", ("rel", "canonical")))
    found.extend(_attributes(root, "meta", "content", ("property", "og:url")))
    return tuple(one for one in found if one.strip())


def _attributes(root: etree._Element, tag: str, key: str, where: tuple[str, str] | None = None) -> list[str]:
    """Return the value that the first such element has, none if there is no such element."""
    fitting = (one for one in root.iter(tag) if one.get(key) and (where is None or one.get(where[0]) == where[1]))
    return [one.get(key) or "" for one in fitting][:1]


def page_title(root: etree._Element) -> str:
    """Return the page's title or first heading; empty if it has none."""
    for tag in ("title", "h1"):
        for element in root.iter(tag):
            found = text_content(element)
            if found:
                return found[:120]
    return ""


def text_content(element: etree._Element) -> str:
    """Return the text within an element, on one line."""
    return one_line("".join(str(piece) for piece in element.itertext()).strip())


def line_of(element: etree._Element) -> int:
    """Return the line on which an element begins, 1 where the parser lost it."""
    return cast("int | None", element.sourceline) or 1


def tag_of(element: etree._Element) -> str:
    """Return the tag's name; empty for comments and the like, whose tag is a function."""
    return element.tag if isinstance(element.tag, str) else ""


def is_ignored(element: etree._Element) -> bool:
    """Whether an element is no part of what a reader reads: scripts, navigation, what is hidden."""
    tag = tag_of(element)
    if not tag or tag in _IGNORED:
        return True
    if tag == "footer":  # the page's, not a paper's
        return not any(tag_of(one) in ("article", "li", "section", "td") for one in element.iterancestors())
    if element.get("hidden") is not None or element.get("aria-hidden") == "true":
        return True
    return bool(
        _HIDDEN_CLASS.search(element.get("class") or "")
        or (element.get("style") and _HIDDEN_STYLE.search(element.get("style") or ""))
    )


def links_within(element: etree._Element, bases: tuple[str, ...]) -> Iterator[str]:
    """Yield the absolute links of an element, its own first, and those of the link that it stands in last."""
    anchors = [*element.iter("a"), *element.iterancestors("a")]
    for anchor in anchors:
        link = absolute_link(anchor.get("href") or "", *bases)
        if link:
            yield link
