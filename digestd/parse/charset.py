"""Bytes to text that can be trusted to be text. Floor 1, pure.

Entry points: :func:`decode_body` for a document, :func:`one_line` for what a reader or a mail header is shown.

A declaration is a claim, and often a wrong one: bytes that are valid UTF-8 are UTF-8 whatever is declared, and a few
stray bytes in UTF-8 are repaired one by one, never by reading the whole document in another code page.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass

#: where an encoding can be declared within a document
_HEAD = 1024
_XML_DECLARATION = re.compile(rb"<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9._:-]{2,40})[\"']")
_META = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([A-Za-z0-9._:-]{2,40})", re.IGNORECASE)
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([A-Za-z0-9._:-]{2,40})", re.IGNORECASE)
#: longest first: the mark of UTF-16 begins that of UTF-32
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
#: code pages that documents come in; Python's codecs hold far more, and some of them compute (idna, unicode_escape)
_CODE_PAGES = re.compile(
    r"iso8859-\d{1,2}|cp(?:125\d|437|850|852|866|874|932|949|950)|koi8-[rut]|mac-roman|ascii|utf-(?:8|16|32)(?:-[lb]e)?|"
    r"shift_jis\w*|euc_\w+|gb2312|gbk|gb18030|hz|big5\w*|iso2022_\w+|johab|tis-620|ptcp154"
)
_CONTROL = re.compile(r"[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f]")
#: surrogates, marks that turn the direction of text, invisible joins that carry no meaning, non-characters
_UNSEEN = re.compile(
    r"[\ud800-\udfff\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ufffe\uffff]"
)
_TIDY = re.compile(r"(?:[!-~\u00a1-\u00ac\u00ae-\u024f]+(?: [!-~\u00a1-\u00ac\u00ae-\u024f]+)*)?")

_MANGLED = re.compile(r"[\u00c2-\u00c5\u00c9][\u0080-\u00bf\u2013-\u2122]")


@dataclass(frozen=True, slots=True)
class Decoded:
    """A document's text."""

    text: str  #: without a byte order mark
    encoding: str  #: the one that was right
    warnings: tuple[str, ...] = ()  #: what was declared wrongly or repaired


def one_line(text: str) -> str:
    """Return the text on one line: white space folded; controls, lone surrogates and direction marks left out."""
    if _TIDY.fullmatch(text):
        return text
    # line separators and such are white space to split(), so fold before the controls go
    return " ".join(_UNSEEN.sub("", _CONTROL.sub("", " ".join(text.split()))).split())


def unmangle(text: str) -> str:
    """Return text that was UTF-8, read as Latin-1 and written again ("WÃ¼bben"), as it was; any other as it is."""
    if not _MANGLED.search(text):
        return text
    for name in ("cp1252", "latin-1"):
        try:
            return text.encode(name).decode("utf-8")
        except UnicodeError:
            continue
    return text


def decode_body(body: bytes, media_type: str | None = None) -> Decoded:
    """Return the text of a document's bytes; every sequence of bytes has one.

    The order of trust: byte order mark; what UTF-16 without a mark looks like; valid UTF-8; the charset of the media
    type, unless it is Latin-1, which servers add unasked; the document's own declaration. What is left is UTF-8 with
    stray windows-1252 bytes, repaired one by one.

    Args:
        body: bytes as fetched.
        media_type: "text/xml; charset=..." as the server said, None if it did not.

    Source: RFC 7303 3.2 (byte order mark, charset, declaration); WHATWG Encoding 4.2 (Latin-1 labels mean windows-1252).
    """
    for mark, name in _MARKS:
        if body.startswith(mark):
            return _decode_as(body[len(mark) :], name, ())
    unmarked = _unmarked_utf16(body)
    if unmarked:
        return _decode_as(body, unmarked, ())
    claims = _claims(body, media_type)
    foreign = tuple(name for name in claims if name != "utf-8")
    if b"\x1b" in body and any(name.startswith("iso2022") for name in foreign):
        return _decode_as(body, next(name for name in foreign if name.startswith("iso2022")), ())
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        pass
    else:
        lied = not body.isascii() and foreign and "utf-8" not in claims
        return Decoded(text, "utf-8", (f"declared as {foreign[0]}, found utf-8",) if lied else ())
    for name in foreign:
        try:
            return Decoded(body.decode(name), name)
        except (UnicodeDecodeError, LookupError):
            continue
    if foreign and "utf-8" not in claims:
        return _decode_as(body, foreign[0], ())
    return _decode_stray(body)


def _claims(body: bytes, media_type: str | None) -> tuple[str, ...]:
    """Return the encodings that are declared and can be, most trusted first; Latin-1 is read as windows-1252."""
    found = [_CHARSET.search(media_type or "")]
    labels = [match[1] for match in found if match]
    for pattern in (_XML_DECLARATION, _META):
        within = pattern.search(body, 0, _HEAD)
        if within:
            labels.append(within[1].decode("ascii"))
    names: list[str] = []
    for label in labels:
        try:
            name = codecs.lookup(label).name
        except LookupError:
            continue
        if _CODE_PAGES.fullmatch(name):
            names.append("cp1252" if name in ("iso8859-1", "ascii") else name)
    if len(names) > 1 and names[0] == "cp1252":
        names.append(names.pop(0))
    # UTF-16 would have been seen by its mark or its zeros: where it is only declared, the declaration is wrong
    return tuple(dict.fromkeys(name for name in names if not name.startswith(("utf-16", "utf-32"))))


def _unmarked_utf16(body: bytes) -> str | None:
    """Return the UTF-16 that a document without a mark is in, by the zeros in its first characters; None if in none."""
    head = body[:64]
    if len(head) < 4 or head.count(0) < len(head) // 3:
        return None
    even, odd = head[0::2].count(0), head[1::2].count(0)
    if odd > 3 * even:
        return "utf-16-le"
    return "utf-16-be" if even > 3 * odd else None


def _decode_as(body: bytes, name: str, warnings: tuple[str, ...]) -> Decoded:
    """Decode, what is no text in it replaced and counted."""
    try:
        return Decoded(body.decode(name), name, warnings)
    except UnicodeDecodeError:
        text = body.decode(name, "replace")
    return Decoded(text, name, (*warnings, f"{text.count(chr(0xFFFD))} characters are no {name}, replaced by U+FFFD"))


def _decode_stray(body: bytes) -> Decoded:
    """Decode UTF-8, each byte that is none read as windows-1252."""
    text = body.decode("utf-8", "digestd-cp1252")
    strays = body.decode("utf-8", "replace").count(chr(0xFFFD))
    return Decoded(text, "utf-8", (f"{strays} stray bytes in utf-8 read as windows-1252",))


def _read_as_cp1252(error: UnicodeError) -> tuple[str, int]:
    """Give a codec the text for bytes it can't read."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("cp1252", "replace"), error.end


codecs.register_error("digestd-cp1252", _read_as_cp1252)
