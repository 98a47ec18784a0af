"""A feed's text to a well-formed tree with whole items. Floor 1, pure.

Entry points: :func:`find_root` (is this a feed at all?) and :func:`read_tree`.

Feeds come with junk before the declaration, bare ampersands, HTML's entities, undeclared prefixes, control characters,
and cut in the middle. All of that is mended here, once, so that the readers behind see XML and nothing else. Document
types are never read: whatever entities one declares are left out with it.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from lxml import etree

from digestd.errors import ParseError
from digestd.parse.feed_markup import read_entity

#: a feed of 2,000 papers with abstracts has 4 MB
MAX_BYTES = 5_000_000
#: arXiv's feeds hold 2,000 at most
MAX_ITEMS = 10_000
#: feeds use a dozen; thousands cost every reader the square of their number
MAX_PREFIXES = 300

_ROOT = re.compile(r"<(?P<name>(?:[A-Za-z_][\w.-]{0,20}:)?(?P<local>rss|feed|RDF))(?=[\s/>])")
_ITEM_END = re.compile(r"</(?:[A-Za-z_][\w.-]{0,20}:)?(?:item|entry)\s*>")
_ITEM_START = re.compile(r"<(?:[A-Za-z_][\w.-]{0,20}:)?(?:item|entry)(?=[\s/>])")
_DRESS = re.compile(r"<!--|<!\[CDATA\[")
_ILLEGAL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
_AMPERSAND = re.compile(r"&(?:(#[0-9]{1,8}|#[xX][0-9a-fA-F]{1,7}|[A-Za-z][A-Za-z0-9]{1,31});)?", re.ASCII)
_NO_TAG = re.compile(r"<(?![A-Za-z_/!?])|\]\]>")
_PREFIX = re.compile(r"</?([A-Za-z_][\w.-]{0,20}):[A-Za-z_]")
_DECLARED = re.compile(r"xmlns:([A-Za-z_][\w.-]{0,20})\s*=")
_XML_ENTITIES = frozenset(("amp", "lt", "gt", "quot", "apos"))
#: names by which fields are known here, whatever prefix the feed gives them
NAMESPACES = {
    "dc": "http://purl.org/dc/elements/1.1/",
    "dcterms": "http://purl.org/dc/terms/",
    "content": "http://purl.org/rss/1.0/modules/content/",
    "sy": "http://purl.org/rss/1.0/modules/syndication/",
    "prism": "http://prismstandard.org/namespaces/basic/2.0/",
    "arxiv": "http://arxiv.org/schemas/atom",
    "atom": "http://www.w3.org/2005/Atom",
    "media": "http://search.yahoo.com/mrss/",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "feedburner": "http://rssnamespace.org/feedburner/ext/1.0",
}
_FAMILIES = (
    ("purl.org/dc/elements", "dc"),
    ("purl.org/dc/terms", "dcterms"),
    ("rss/1.0/modules/content", "content"),
    ("rss/1.0/modules/syndication", "sy"),
    ("prism", "prism"),
    ("arxiv.org/schemas", "arxiv"),
    ("search.yahoo.com/mrss", "media"),
    ("22-rdf-syntax-ns", "rdf"),
    ("feedburner", "feedburner"),
    ("itunes", "itunes"),
    ("a9.com/-/spec/opensearch", "opensearch"),
)
_PLAIN = (
    "http://www.w3.org/2005/atom",
    "http://purl.org/rss/1.0",
    "http://purl.org/atom/ns",
    "http://my.netscape.com/rdf",
)


@dataclass(frozen=True, slots=True)
class FeedTree:
    """A feed as elements of lxml."""

    root: Any
    head: Any  #: channel or feed: where the feed says what it is
    items: tuple[Any, ...]  #: in the feed's order, may be empty
    dialect: str  #: rss, rdf or feed (Atom)
    incomplete: bool = False  #: items that it should hold are missing
    warnings: tuple[str, ...] = ()


def find_root(text: str) -> re.Match[str] | None:
    """Return where the root of a feed starts; None if the text is none.

    Declarations, comments, document types and junk may stand before it, but no other element.
    """
    at = text.find("<")
    while 0 <= at < len(text):
        if text.startswith("<!--", at):
            end = text.find("-->", at)
            at = text.find("<", end) if end >= 0 else -1
        elif text.startswith("<?", at):
            end = text.find("?>", at)
            at = text.find("<", end) if end >= 0 else -1
        elif text[at : at + 9].upper() == "<!DOCTYPE":
            at = _after_doctype(text, at)
        elif root := _ROOT.match(text, at):
            return root
        elif re.match(r"<[A-Za-z/!]", text[at : at + 2]):
            return None
        else:
            at = text.find("<", at + 1)
    return None


def _after_doctype(text: str, at: int) -> int:
    """Return where the first tag after a document type starts, -1 if none does."""
    end, subset = text.find(">", at), text.find("[", at)
    if 0 <= subset < end:
        close = re.compile(r"\]\s{0,100}>").search(text, subset)
        end = close.end() if close else -1
    return text.find("<", end) if end >= 0 else -1


def read_tree(text: str, origin: str | None, *, was_cut: bool = False) -> FeedTree:
    """Return the tree of a feed's text.

    Args:
        text: the document, decoded.
        origin: where it came from, for messages and as the base of relative links.
        was_cut: whether bytes of the document are missing already.

    Raises:
        ParseError: it is no feed, or was cut before its first whole item.
    """
    root = find_root(text)
    if root is None:
        raise ParseError("expected a feed (rss, feed, rdf:RDF), found no such element", origin=origin)
    warnings: list[str] = []
    if re.search(r"(?i)<!ENTITY", text[: root.start()]):
        warnings.append("document type with entities left out")
    body, cut = _whole_items(text[root.start() :], root["name"], root["local"])
    cut = cut or was_cut
    if len(set(_DECLARED.findall(body))) > MAX_PREFIXES:
        raise ParseError(f"expected at most {MAX_PREFIXES} namespace prefixes, found more", origin=origin)
    mended, item_count, ended = _mend(body, warnings)
    cut = cut or not ended
    if cut and not item_count:
        raise ParseError("feed was cut before the end of its first item", origin=origin)
    parser = etree.XMLParser(
        recover=True, resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, remove_comments=True,
        remove_pis=True, encoding="utf-8",
    )  # fmt: skip
    try:
        element = etree.fromstring(mended.encode("utf-8"), parser)
    except (etree.LxmlError, ValueError) as error:
        raise ParseError(f"expected XML, found {str(error)[:200]}", origin=origin) from error
    if element is None:
        raise ParseError("expected XML, found nothing that can be read", origin=origin)
    if len(parser.error_log) and not cut:
        fault = parser.error_log[0]
        line = fault.line + text.count("\n", 0, root.start())
        warnings.append(f"not well-formed, line {line}: {' '.join(fault.message.split())[:120]}")
    return _as_tree(element, root["local"], item_count, cut, warnings)


def _as_tree(element: Any, dialect: str, item_count: int, cut: bool, warnings: list[str]) -> FeedTree:
    """Gather the items of a tree, and say whether all are there."""
    items = [child for child in element.iter() if _is_item(child) and not any(map(_is_item, child.iterancestors()))]
    if cut:
        warnings.append(f"feed was cut: {len(items)} whole papers stand before the cut")
    elif len(items) < item_count:
        cut = True
        warnings.append(f"only {len(items)} of {item_count} papers could be read")
    if len(items) > MAX_ITEMS:
        warnings.append(f"only the first {MAX_ITEMS} of {len(items)} papers were read")
        cut = True
        for item in items[MAX_ITEMS:]:
            item.getparent().remove(item)
        items = items[:MAX_ITEMS]
    channel = next((child for child in element.iter() if local_name(child) == "channel"), None)
    head = element if dialect == "feed" or channel is None else channel
    return FeedTree(element, head, tuple(items), dialect.lower(), cut, tuple(warnings))


def _is_item(element: Any) -> bool:
    return local_name(element) in ("item", "entry") and ":" not in field_name(element)


def _whole_items(text: str, name: str, local: str) -> tuple[str, bool]:
    """Return the text up to the root's end, or, where that is missing, up to the end of the last whole item, closed."""
    end = text.rfind(f"</{name}")
    if end >= 0 and ">" in text[end : end + len(name) + 20]:
        return text[: text.index(">", end) + 1], False
    start = text.find(">")
    if start > 0 and text[start - 1] == "/" and "<" not in text[1:start]:
        return text[: start + 1], False
    whole = 0
    for match in _ITEM_END.finditer(text):
        whole = match.end()
    close = f"</channel></{name}>" if local == "rss" else f"</{name}>"
    return text[:whole] + close, True


def _mend(text: str, warnings: list[str]) -> tuple[str, int, bool]:
    """Return the text with everything escaped that XML does not take, how many items it holds, whether it ends whole.

    A comment or a CDATA section that never ends has swallowed what followed, items too.
    """
    counts: Counter[str] = Counter()
    pieces: list[str] = []
    prefixes: set[str] = set()
    item_count = 0
    ended = True
    at = 0
    while at < len(text):
        match = _DRESS.search(text, at)
        plain = text[at : match.start() if match else len(text)]
        item_count += sum(1 for _ in _ITEM_START.finditer(plain))
        prefixes.update(_PREFIX.findall(plain))
        pieces.append(_mend_plain(plain, counts))
        if match is None:
            break
        closing = "-->" if match[0] == "<!--" else "]]>"
        end = text.find(closing, match.end())
        if end < 0:
            end, ended = len(text), False
        if closing == "]]>":
            pieces.append(f"<![CDATA[{_drop_illegal(text[match.end() : end], counts)}]]>")
        at = end + 3
    mended = "".join(pieces)
    warnings.extend(f"{count} {what}" for what, count in counts.items())
    return _declare_prefixes(mended, prefixes, warnings), item_count, ended


def _drop_illegal(text: str, counts: Counter[str]) -> str:
    cleaned, count = _ILLEGAL.subn("", text)
    if count:
        counts["characters that XML does not take left out"] += count
    return cleaned


def _mend_plain(text: str, counts: Counter[str]) -> str:
    """Escape what stands outside of CDATA: bare ampersands and angle brackets, HTML's entities, illegal references."""

    def reference(match: re.Match[str]) -> str:
        name = match[1]
        if name in _XML_ENTITIES:
            return match[0]
        if name is None:
            counts["bare ampersands"] += 1
            return "&amp;"
        found = read_entity(match[0])
        if found == match[0]:
            counts["unknown entities"] += 1
            return f"&amp;{name};"
        if found == "\ufffd" and name.startswith("#"):  # "&#0;", "&#xD800;": no character at all
            found = ""
        return html.escape(_ILLEGAL.sub("", found), quote=True)

    cleaned = _AMPERSAND.sub(reference, _drop_illegal(text, counts))
    return _NO_TAG.sub(lambda match: "&lt;" if match[0] == "<" else "]]&gt;", cleaned)


def _declare_prefixes(text: str, prefixes: set[str], warnings: list[str]) -> str:
    """Return the text with each prefix declared that its tags use."""
    declared = set(_DECLARED.findall(text)) | {"xml"}
    missing = sorted(prefixes - declared)[:50]
    if not missing:
        return text
    warnings.append(f"prefix {', '.join(missing[:5])} is not declared")
    names = "".join(f' xmlns:{name}="{NAMESPACES.get(name.lower(), f"urn:undeclared:{name}")}"' for name in missing)
    start = re.match(r"<[^\s/>]+", text)
    at = start.end() if start else 0
    return text[:at] + names + text[at:]


def local_name(element: Any) -> str:
    """Return the name without its namespace, lower case; "" for what is no element."""
    tag = element.tag
    if not isinstance(tag, str):
        return ""
    return tag.rpartition("}")[2].rpartition(":")[2].lower()


def field_name(element: Any) -> str:
    """Return the name of a field: "title", "dc:creator", "arxiv:announce_type"; lower case."""
    tag = element.tag
    if not isinstance(tag, str):
        return ""
    uri, _, local = tag.rpartition("}")
    lowered = uri.strip("{").lower()
    if not lowered:
        return local.lower()
    if lowered.startswith(_PLAIN) and not lowered.startswith("http://purl.org/rss/1.0/modules"):
        return local.lower()
    family = next((name for part, name in _FAMILIES if part in lowered), None)
    return f"{family or element.prefix or 'other'}:{local.lower()}"
