"""XML out: the only place where feeds touch lxml, and the text that may go into them. Floor 1.

Entry points: ``clean_line`` and ``clean_text`` for text, ``web_url`` for links, ``child`` and ``document`` for markup,
``read_xml`` to read our own documents back.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import format_datetime
from urllib.parse import quote, urlsplit, urlunsplit

from lxml import etree

from digestd.errors import RenderError

#: An element of a document; other modules name its type without lxml.
Element = etree._Element

ATOM = "http://www.w3.org/2005/Atom"
DC = "http://purl.org/dc/elements/1.1/"
CONTENT = "http://purl.org/rss/1.0/modules/content/"
HISTORY = "http://purl.org/syndication/history/1.0"

# C0 but tab, line feed and return; DEL and C1 (legal in XML 1.0, discouraged there, and HTML reads them as other
# characters); lone surrogates; every code point that Unicode keeps for no character at all.
_FORBIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff\ufdd0-\ufdef"
    + "".join(f"{chr(plane * 0x10000 + 0xFFFE)}{chr(plane * 0x10000 + 0xFFFF)}" for plane in range(17))
    + "]"
)
# No-break spaces are not folded: they hold "up 145%" together.
_WHITE = re.compile("[ \t\n]+")
_NEWLINES = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_HOST = re.compile(r"(?:[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
# The start tag of a fragment repeats the namespaces that the document's root declares already.
_DECLARATIONS = re.compile(rb"""\s+xmlns(?::\w+)?=(?:"[^"]*"|'[^']*')""")


def clean_text(text: str) -> str:
    """Return the text without the characters that no feed may hold, line ends as line feeds.

    Source: XML 1.0 2.2 (Char, and the note on discouraged characters), 2.11 (line ends).
    """
    # Nearly all text is printable but for line feeds, and nothing forbidden is: this look is much faster than a search.
    if text.replace("\n", "").isprintable():
        return text
    return _FORBIDDEN.sub("", _NEWLINES.sub("\n", text))


def clean_line(text: str) -> str:
    """Return the text as ``clean_text`` does, on one line: white space folded, none at the ends."""
    if text.isprintable() and "  " not in text:
        return text.strip()
    return _WHITE.sub(" ", clean_text(text)).strip()


def web_url(url: str | None) -> str | None:
    """Return an absolute http or https address in ASCII, or None if it is none that a reader may be sent to.

    Addresses with a user name are refused: ``https://bank.example@evil.example/`` reads as another host.

    Source: RFC 3986 2.1, 3.2.1.
    """
    if url is None:
        return None
    try:
        parts = urlsplit(clean_line(url))
        host = parts.netloc if parts.netloc.isascii() else parts.netloc.encode("idna").decode("ascii")
    except ValueError:  # a bad port or bracket; UnicodeError of idna is one too
        return None
    if parts.scheme.lower() not in {"http", "https"} or not _HOST.fullmatch(host):
        return None
    path, query, fragment = (_quote(part) for part in (parts.path, parts.query, parts.fragment))
    return urlunsplit((parts.scheme.lower(), host, path, query, fragment))


def _quote(part: str) -> str:
    return quote(re.sub("%(?![0-9A-Fa-f]{2})", "%25", part), safe="/%:=&?~+!$,;'()*@")


def rfc822(moment: datetime) -> str:
    """Return ``Tue, 29 Sep 2026 00:00:00 +0000``, in English whatever the locale.

    Source: RSS 2.0 (RFC 822 dates, four-digit years).
    """
    return format_datetime(moment.astimezone(UTC))


def rfc3339(moment: datetime) -> str:
    """Return ``2026-09-29T00:00:00Z``.

    Source: RFC 3339 5.6; RFC 4287 3.3.
    """
    return moment.astimezone(UTC).replace(microsecond=0, tzinfo=None).isoformat() + "Z"


def child(parent: Element, tag: str, text: str | None = None, attributes: Mapping[str, str] | None = None) -> Element:
    """Add an element; text and attribute values lose what XML may not hold."""
    element = etree.SubElement(parent, tag, {name: clean_line(value) for name, value in (attributes or {}).items()})
    if text is not None:
        element.text = clean_text(text)
    return element


def root(tag: str, namespaces: dict[str | None, str], attributes: Mapping[str, str] | None = None) -> Element:
    """Return a new root element that declares these namespaces."""
    attrib = dict(attributes or {})
    return etree.Element(tag, attrib, nsmap=namespaces)  # type: ignore[arg-type]  # the stubs know no default namespace


def fragment(element: Element) -> bytes:
    """Return one entry in bytes, to be kept and put into any document that declares the namespaces."""
    etree.indent(element, space=" ")
    whole: bytes = etree.tostring(element, encoding="utf-8", with_tail=False)
    start, mark, rest = whole.partition(b">")
    return _DECLARATIONS.sub(b"", start) + mark + rest


def document(top: Element, *, into: str = "", fragments: Iterable[bytes] = ()) -> bytes:
    """Return a whole document in UTF-8: the elements under ``top``, then the fragments at the end of ``into``.

    Args:
        top: root element, with at least one element below ``into``.
        into: tag of the element that the fragments belong to, as it is written; "" if there are no fragments.
        fragments: entries in bytes, in order, may be empty.
    """
    etree.indent(top, space=" ")
    whole: bytes = etree.tostring(top, encoding="utf-8", xml_declaration=True)
    if not into:
        return whole + b"\n"
    head, mark, tail = whole.rpartition(f"</{into}>".encode())
    return b"".join([head.rstrip(), b"\n", *(piece + b"\n" for piece in fragments), mark, tail, b"\n"])


def read_xml(body: bytes, *, template: str) -> Element:
    """Return the root of one of our own documents.

    Raises:
        RenderError: the document is not well-formed.
    """
    parser = etree.XMLParser(resolve_entities=False, no_network=True)
    try:
        return etree.fromstring(body, parser)
    except etree.XMLSyntaxError as error:
        raise RenderError(f"not well-formed: {error.msg}", template=template) from error
