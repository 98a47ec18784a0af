"""A rendered digest and its headers as the bytes of a mail, the same bytes each time. Floor 1; entry: ``build_message``.

A message is alternative(text, related(HTML, pictures)), both texts quoted-printable, set by hand: a relay may recode
8bit lines and break signatures. Boundary, date and message id are given, so that a retry sends the very same mail.

For many readers of one digest the bodies are encoded once, with placeholders where each reader's own links go:
``skeleton_of`` once, then ``finish`` for each reader. ``build_message`` is both in one call.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import html
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import lru_cache

from digestd.model.delivery import MailParts, Picture
from digestd.render.header_guard import (
    check_address,
    check_head,
    clean_header,
    encode_text,
    header_line,
    in_angles,
    mailbox,
)

SUBJECT_LIMIT = 200
_PLACEHOLDER = re.compile(r"~~[0-9a-f]{24}~~")
_PLACEHOLDER_BYTES = re.compile(rb"=\r\n(~~[0-9a-f]{24}~~)=\r\n")
_NEVER_IN_TEXT = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufffe\uffff\ud800-\udfff]")


_PLAIN = "text/plain; charset=utf-8"


@dataclass(frozen=True, slots=True)
class MailHeaders:
    """What the headers of one message say; what is None is left out."""

    sender: str  #: address
    recipient: str  #: address
    date: datetime  #: instant of the slot, never the time of sending
    message_id: str  #: with angle brackets
    key: str  #: what the boundaries are made of: the same for the same content
    sender_name: str = ""  #: the digest's name
    reply_to: str | None = None  #: address
    list_id: str | None = None  #: "weekly.digest.example.org", without angle brackets
    list_name: str = ""
    unsubscribe_url: str | None = None  #: answers one-click POST
    unsubscribe_mailto: str | None = None  #: "unsubscribe+TOKEN@example.org"
    archived_at: str | None = None  #: web copy
    feedback_id: str | None = None  #: "topic:kind:stream:sender"
    references: str | None = None  #: message id of a thread's root, with angle brackets
    recipient_name: str = ""  #: the reader's, as the reader wrote it


@dataclass(frozen=True, slots=True)
class Skeleton:
    """A message without headers: bodies encoded, placeholders on lines of their own."""

    subject: str
    language: str
    boundary: str  #: of the outer multipart; "" for a mail of plain text alone
    text: bytes  #: up to where the HTML begins, boundaries and part headers included
    html: bytes
    tail: bytes  #: pictures and closing boundaries


def message_id(instance: str, kind: str, key: str, subscriber: str, domain: str) -> str:
    """Return the Message-ID of a delivery: always the same for the same delivery, no address in it.

    Args:
        instance: UUID of this installation's history.
        kind: of the delivery, "digest".
        key: of the digest, "sched7|2026-03-08T08:00".
        subscriber: id of the reader.
        domain: right-hand side, one of ours.

    Source: RFC 5322 3.6.4.
    """
    name = "|".join((instance, kind, key, subscriber))
    code = base64.b32encode(hashlib.sha256(name.encode()).digest()).decode()[:32].lower()
    return f"<{code}@{domain}>"


def boundary(key: str) -> str:
    """Return a multipart boundary made of a key.

    It begins with "=_", which neither quoted-printable nor base64 can hold, so that no body can hold it either.

    Source: RFC 2045 6.7 (the advice on "=_").
    """
    return "=_" + hashlib.sha256(key.encode()).hexdigest()[:32]


@lru_cache(maxsize=1024)  # asked for again for each reader of a digest
def placeholder(name: str, key: str) -> str:
    """Return 28 ASCII characters that stand for one reader's value until ``finish``.

    Args:
        name: of the value, "unsubscribe".
        key: something that no text from outside can know, so that no title can hold the same characters.
    """
    return f"~~{hashlib.sha256(f'{key}|{name}'.encode()).hexdigest()[:24]}~~"


def is_placeholder(text: str) -> bool:
    """Return whether a text is one placeholder and nothing else."""
    return _PLACEHOLDER.fullmatch(text) is not None


def clean_text(text: str) -> str:
    """Return a body without control characters, bidi overrides and lone surrogates; its lines end in LF."""
    return _NEVER_IN_TEXT.sub("", text.replace("\r\n", "\n").replace("\r", "\n").replace("\t", " "))


def quoted_printable(text: str) -> bytes:
    """Return text as quoted-printable lines ending in CRLF, placeholders unbroken on lines of their own.

    Lines that begin with "From " or are a single dot are written so that mailboxes and relays leave them alone.

    Source: RFC 2045 6.7.
    """
    lines = clean_text(text).rstrip("\n").replace("\n", "\r\n").encode()
    parts = []
    for piece in re.split(rb"(~~[0-9a-f]{24}~~)", lines):
        is_code = len(piece) == 28 and piece.startswith(b"~~")
        parts.append(b"=\r\n" + piece + b"=\r\n" if is_code else _qp(piece))
    encoded = b"".join(parts)
    if b"From " in encoded:
        encoded = re.sub(rb"^From ", b"=46rom ", encoded, flags=re.MULTILINE)
    return encoded + b"\r\n"


def skeleton_of(parts: MailParts, key: str) -> Skeleton:
    """Return the encoded bodies of a digest, ready for each reader's values.

    Args:
        parts: the rendered digest; one without HTML becomes a mail of plain text alone.
        key: what the boundaries are made of.
    """
    if not parts.html:
        return Skeleton(
            subject=clean_header(parts.subject, SUBJECT_LIMIT),
            language=parts.language,
            boundary="",
            text=quoted_printable(parts.text),
            html=b"",
            tail=b"",
        )
    outer, inner = boundary(f"{key}|alternative"), boundary(f"{key}|related")
    text = (
        f"--{outer}\r\n".encode() + _text_head("plain") + quoted_printable(parts.text) + f"\r\n--{outer}\r\n".encode()
    )
    tail = f"\r\n--{outer}--\r\n".encode()
    if parts.pictures:
        text += header_line("Content-Type", f'multipart/related; boundary="{inner}"; type="text/html"')
        text += f"\r\n--{inner}\r\n".encode()
        pictures = b"".join(f"\r\n--{inner}\r\n".encode() + _picture(picture) for picture in parts.pictures)
        tail = pictures + f"\r\n--{inner}--\r\n".encode() + tail
    return Skeleton(
        subject=clean_header(parts.subject, SUBJECT_LIMIT),
        language=parts.language,
        boundary=outer,
        text=text + _text_head("html"),
        html=quoted_printable(parts.html),
        tail=tail,
    )


def finish(skeleton: Skeleton, headers: MailHeaders, values: Mapping[str, str]) -> bytes:
    """Return the message of one reader.

    Args:
        skeleton: of the digest.
        headers: of this message.
        values: placeholder to the reader's value, plain text, not yet escaped.

    Returns:
        CRLF lines of at most 998 octets, not dot-stuffed.

    Raises:
        RenderError: a header does not hold what was meant.
    """
    head = _head(skeleton, headers)
    if not values:
        return b"".join((head, skeleton.text, skeleton.html, skeleton.tail))
    plain = {code.encode(): _soft(value) for code, value in values.items()}
    marked = {code.encode(): _soft(html.escape(value)) for code, value in values.items()}
    return b"".join((head, _splice(skeleton.text, plain), _splice(skeleton.html, marked), skeleton.tail))


def build_message(parts: MailParts, headers: MailHeaders) -> bytes:
    """Return a rendered digest as a mail: the same bytes for the same input.

    Args:
        parts: the rendered digest.
        headers: of this message.

    Returns:
        CRLF lines of at most 998 octets, not dot-stuffed.

    Raises:
        RenderError: a header does not hold what was meant (RELIABILITY R14).
    """
    return finish(skeleton_of(parts, headers.key), headers, {})


def _head(skeleton: Skeleton, headers: MailHeaders) -> bytes:
    """Return the header block with its empty line, read back and compared."""
    fields = _fields(skeleton, headers)
    utf8 = not headers.recipient.isascii()
    head = b"".join(header_line(name, value, utf8=utf8 and name == "To") for name, value in fields)
    addresses = {"From": [headers.sender], "To": [headers.recipient]}
    if headers.reply_to is not None:
        addresses["Reply-To"] = [headers.reply_to]
    check_head(head, [name for name, _ in fields], addresses, utf8=utf8)
    return head + b"\r\n"


def _fields(skeleton: Skeleton, headers: MailHeaders) -> list[tuple[str, str]]:
    """Return all headers in order; the sources are in the lines."""
    leave = []
    if headers.unsubscribe_url is not None:
        leave.append(in_angles(headers.unsubscribe_url, "List-Unsubscribe"))
    if headers.unsubscribe_mailto is not None:
        leave.append(f"<mailto:{check_address(headers.unsubscribe_mailto)}?subject=unsubscribe>")
    list_name = clean_header(headers.list_name, 60).replace("\\", "").replace('"', "'")
    list_id = headers.list_id and in_angles(headers.list_id, "List-Id")
    if list_id and list_name:  # a phrase has no room for encoded words of its own here: ASCII names only
        list_id = f'"{list_name}" {list_id}' if list_name.isascii() else list_id
    thread = headers.references and in_angles(headers.references.removeprefix("<").removesuffix(">"), "References")
    optional: list[tuple[str, str | None]] = [
        ("From", mailbox(headers.sender_name, headers.sender, "From")),
        ("Reply-To", headers.reply_to and check_address(headers.reply_to)),
        ("To", mailbox(headers.recipient_name, headers.recipient, "To")),  # exactly one address: RFC 5322 3.6.3
        ("Subject", encode_text(skeleton.subject or "(no subject)", "Subject")),
        ("Date", format_datetime(headers.date.astimezone(UTC))),
        ("Message-ID", in_angles(headers.message_id.removeprefix("<").removesuffix(">"), "Message-ID")),
        ("References", thread),
        ("In-Reply-To", thread),
        ("List-Id", list_id),  # RFC 2919 2
        ("List-Unsubscribe", ", ".join(leave) or None),  # RFC 2369 3.2, RFC 8058 3.1
        ("List-Unsubscribe-Post", None if headers.unsubscribe_url is None else "List-Unsubscribe=One-Click"),
        ("Archived-At", headers.archived_at and in_angles(headers.archived_at, "Archived-At")),  # RFC 5064 2
        ("Auto-Submitted", "auto-generated"),  # RFC 3834 5
        ("Precedence", "bulk"),
        ("X-Auto-Response-Suppress", "All"),  # MS-OXCMAIL: no out-of-office replies
        ("Feedback-ID", headers.feedback_id),
        ("MIME-Version", "1.0"),
        ("Content-Language", skeleton.language),  # RFC 3282
        ("Content-Type", f'multipart/alternative; boundary="{skeleton.boundary}"' if skeleton.boundary else _PLAIN),
        ("Content-Transfer-Encoding", None if skeleton.boundary else "quoted-printable"),
    ]
    return [(name, value) for name, value in optional if value]


def _text_head(subtype: str) -> bytes:
    """Return the headers of a text part with the empty line."""
    kind = header_line("Content-Type", f"text/{subtype}; charset=utf-8")
    return kind + header_line("Content-Transfer-Encoding", "quoted-printable") + b"\r\n"


def _picture(picture: Picture) -> bytes:
    """Return a picture as a part, without boundaries."""
    lines = base64.encodebytes(picture.png).replace(b"\n", b"\r\n")
    name = re.sub(r"[^A-Za-z0-9._-]", "-", picture.name) or "picture.png"
    head = (
        header_line("Content-Type", f'image/png; name="{name}"')
        + header_line("Content-Transfer-Encoding", "base64")
        + header_line("Content-Disposition", f'inline; filename="{name}"')
        + header_line("Content-ID", f"<{picture.cid}>")
    )
    return head + b"\r\n" + lines


def _soft(value: str) -> bytes:
    """Return a reader's value in quoted-printable between soft line breaks."""
    return b"=\r\n" + _qp(clean_text(value).replace("\n", " ").encode()) + b"=\r\n"


def _qp(data: bytes) -> bytes:
    """Return CRLF text in quoted-printable; binascii breaks lines by a bare LF where the text has no line end."""
    encoded = binascii.b2a_qp(data)
    return encoded if b"\n" in data else encoded.replace(b"=\n", b"=\r\n")


def _splice(body: bytes, values: Mapping[bytes, bytes]) -> bytes:
    """Return an encoded body with the known placeholders replaced; others stay as they are."""
    return _PLACEHOLDER_BYTES.sub(lambda found: values.get(found[1], found[0]), body)
