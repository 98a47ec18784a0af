"""Mail header lines that text from outside cannot break out of, and the check that proves it. Floor 1.

Titles, topic names and display names reach headers. ``clean_header`` takes out what could end a line or begin an
encoded word; ``header_line`` writes one header, ASCII only, folded at spaces that stand there already, so that an
address or URL is never torn; ``check_head`` reads the finished block again and compares it with what was meant.

The standard library's generator is not used for writing: on Python 3.11.7 and 3.12.1 it decodes an encoded word
that it is handed as text and writes the line break inside it as a line break, which adds headers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from email.charset import SHORTEST, Charset
from email.header import Header
from email.utils import getaddresses
from functools import lru_cache

from digestd.errors import RenderError

TEMPLATE = "message headers"  #: what RenderError names; headers have no template file
MAX_LINE = 998  #: octets without CRLF. Source: RFC 5322 2.1.1
_WIDTH = 76

#: C0, DEL, C1, line separators, zero-width and bidi marks, byte order mark, specials, surrogates.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u2028\u2029\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\ufff0-\uffff"
    "\ud800-\udfff]+"
)
#: as the standard library has it, whatever other libraries make of its table for the whole process
_UTF8 = Charset("utf-8")
_UTF8.header_encoding = SHORTEST
_ENDS_ANGLES = re.compile(r"[<>\s]")
_ATOMS = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~ -]*")
#: dot-atom "@" dot-atom or address literal; no quoted local parts, no comments. Source: RFC 5322 3.4.1
_ADDRESS = re.compile(
    r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64}@(?:[A-Za-z0-9](?:[A-Za-z0-9.-]{0,252})|\[[0-9A-Fa-f:.]+\])"
)
#: what may stand before the "@" of an address that needs SMTPUTF8, beside what may in others. Source: RFC 6532 3.2
_BEYOND_ASCII = re.compile("[\u00a1-\U0010ffff]")
#: a header as every parser reads it: a name, a colon, the rest of the line, and the lines that begin with a blank and hold
#: more than blanks. Source: RFC 5322 2.2, 2.2.3
_FIELD = re.compile(r"([!-9;-~]+):((?: [^\r\n]*)?\r\n(?:[ \t][^\r\n]*[^ \t\r\n][^\r\n]*\r\n)*)")


def clean_header(text: str, limit: int) -> str:
    """Return text as one line that no mail program can take for structure.

    Args:
        text: from anywhere.
        limit: characters at most; longer text is cut.
    """
    line = " ".join(_UNSAFE.sub(" ", text).split())
    while "=?" in line or "?=" in line:  # what breaking one makes may be another: "=?="
        line = line.replace("=?", "= ?").replace("?=", "? =")
    return line[:limit].strip()


def encode_text(text: str, name: str) -> str:
    """Return cleaned text for a header: as it stands if it is ASCII, else as encoded words of 75 characters at most.

    Args:
        text: as ``clean_header`` gives it.
        name: of the header, whose length counts on the first line.

    Source: RFC 2047 2.
    """
    if text.isascii():
        return text
    return Header(text, _UTF8, maxlinelen=75, header_name=name).encode(linesep="\n").replace("\n ", " ")


def check_address(address: str) -> str:
    """Return a plain address; RenderError if it is not one, or if it would need SMTPUTF8.

    Source: RFC 5322 3.4.1 (dot-atom form only).
    """
    if not _ADDRESS.fullmatch(address):
        message = f"expected a plain ASCII address like ada@example.org, found {ascii(address)[:120]}"
        raise RenderError(message, template=TEMPLATE)
    return address


def recipient_address(address: str) -> str:
    """Return a reader's address; one that needs SMTPUTF8 stands in the header as it is.

    Raises:
        RenderError: it is no plain address even so.

    Source: RFC 6532 3.2.
    """
    local, at, domain = address.rpartition("@")
    plain = _BEYOND_ASCII.sub("x", _UNSAFE.sub(" ", local))
    check_address(f"{plain}{at}{domain}")
    return address


def in_angles(value: str, header: str) -> str:
    """Return ``<value>``; RenderError if a blank or an angle bracket in it would end it early."""
    if not value or _ENDS_ANGLES.search(value):
        raise RenderError(
            f"header {header}: expected one address or link, found {ascii(value)[:120]}", template=TEMPLATE
        )
    return f"<{value}>"


@lru_cache(maxsize=1024)
def mailbox(name: str, address: str, header: str) -> str:
    """Return ``Name <address>`` with the name quoted or encoded as it needs; the bare address for no name."""
    checked = recipient_address(address) if header == "To" else check_address(address)
    shown = clean_header(name, 60)
    if not shown:
        return checked
    if not shown.isascii():
        return f"{encode_text(shown, header)} <{checked}>"
    if _ATOMS.fullmatch(shown):
        return f"{shown} <{checked}>"
    escaped = shown.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}" <{checked}>'


@lru_cache(maxsize=1024)  # the mails of a digest share most of theirs
def header_line(name: str, value: str, *, utf8: bool = False) -> bytes:
    """Return one header with its line end, folded before spaces that are there already, never inside a token.

    Args:
        name: of the header.
        value: ASCII, one line, not empty.
        utf8: whether it may hold an address beyond ASCII after all.

    Raises:
        RenderError: the value holds control characters or anything beyond ASCII, or a token longer than a line.

    Source: RFC 5322 2.2.3 (folding), 2.1.1 (998 octets).
    """
    if not value or not (value.isascii() or utf8) or not value.isprintable():
        raise RenderError(f"header {name}: expected one line of ASCII, found {ascii(value)[:120]}", template=TEMPLATE)
    lines = [f"{name}:"]
    for token in value.split(" "):
        bare = len(lines) == 1 and lines[0] == f"{name}:"  # the first token stays on the line of the name
        if not bare and len(lines[-1]) + 1 + len(token) > _WIDTH and token:
            lines.append("")
        lines[-1] += f" {token}"
    longest = max(len(line.encode()) for line in lines)
    if longest > MAX_LINE:
        raise RenderError(f"header {name}: expected lines up to {MAX_LINE} octets, found {longest}", template=TEMPLATE)
    return ("\r\n".join(lines) + "\r\n").encode()


def check_head(
    head: bytes, names: Sequence[str], addresses: Mapping[str, Sequence[str]], *, utf8: bool = False
) -> None:
    """Return if a finished header block holds exactly these headers and addresses.

    Args:
        head: the block with all line ends, without the empty line.
        names: of all headers, in order.
        addresses: header name to the addresses that it must hold.
        utf8: whether an address is beyond ASCII.

    Raises:
        RenderError: a header or an address more, less or other than meant, or a bare line break.
    """
    rest = head.replace(b"\r\n", b"")
    if b"\r" in rest or b"\n" in rest or not (rest.isascii() or utf8):
        raise RenderError("a header holds a bare line break or a byte beyond ASCII", template=TEMPLATE)
    found = _FIELD.findall(head.decode())
    if [name for name, _ in found] != list(names) or "".join(f"{name}:{body}" for name, body in found) != head.decode():
        raise RenderError(f"expected the headers {list(names)}, found {[name for name, _ in found]}", template=TEMPLATE)
    values = dict(found)
    for name, wanted in addresses.items():
        shown = _addresses(values[name])
        if shown != tuple(wanted):
            raise RenderError(f"header {name}: expected {list(wanted)}, found {list(shown)}", template=TEMPLATE)


@lru_cache(maxsize=1024)
def _addresses(value: str) -> tuple[str, ...]:
    """Return the addresses that a mail program reads in a header."""
    return tuple(address for _, address in getaddresses([value.replace("\r\n", "").strip()]))
