"""A delivery's mail, built of what the outbox keeps: the same bytes each time. Floor 1.

Entry points: :func:`pack_content`, :func:`unpack_content`, :func:`build_mail`. Bodies are kept once for all readers of a
digest; a row keeps only what is personal.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from dataclasses import asdict, fields
from datetime import datetime
from typing import Any

from digestd.errors import RenderError
from digestd.model.delivery import Message
from digestd.render.mime import MailHeaders, Skeleton, finish

#: makes the signature headers of a mail, lines with CRLF, to stand before all others
Sign = Callable[[bytes], bytes]

_HEADERS = tuple(field.name for field in fields(MailHeaders))


def pack_content(skeleton: Skeleton) -> bytes:
    """Return encoded bodies as one run of bytes, packed."""
    parts = {
        name: value.decode("ascii") if isinstance(value, bytes) else value for name, value in asdict(skeleton).items()
    }
    return zlib.compress(json.dumps(parts, sort_keys=True).encode("ascii"), 6)


def unpack_content(content: bytes) -> Skeleton:
    """Return the bodies that :func:`pack_content` packed.

    Raises:
        RenderError: these are not such bytes.
    """
    try:
        parts: dict[str, str] = json.loads(zlib.decompress(content))
    except (zlib.error, ValueError) as error:
        raise RenderError(
            f"content of a mail: expected packed bodies, found other bytes: {error}", template="outbox"
        ) from error
    return Skeleton(
        subject=parts["subject"],
        language=parts["language"],
        boundary=parts["boundary"],
        text=parts["text"].encode("ascii"),
        html=parts["html"].encode("ascii"),
        tail=parts["tail"].encode("ascii"),
    )


def personal_fields(
    headers: MailHeaders, values: dict[str, str], *, skeleton: Skeleton | None = None, sign: Sign | None = None
) -> str:
    """Return a row's personal part as JSON text.

    Args:
        headers: of the mail.
        values: placeholder to the reader's value.
        skeleton: the bodies, needed to sign.
        sign: makes the signature headers; they are kept here, because a retry must be the same mail and a signature has a
            time in it. None: the relay signs, or nobody does.
    """
    given = {name: value for name in _HEADERS if (value := getattr(headers, name)) is not None}
    given["date"] = headers.date.isoformat()
    record: dict[str, Any] = {"headers": given, "values": values}
    if sign is not None and skeleton is not None:
        record["signatures"] = sign(finish(skeleton, headers, values)).decode("ascii")
    return json.dumps(record, sort_keys=True, ensure_ascii=True)


def build_mail(fields: str, skeleton: Skeleton) -> bytes:
    """Return the mail of one row, CRLF lines of at most 998 octets.

    Raises:
        RenderError: a header does not hold what was meant.
    """
    return _build(fields, skeleton)[1]


def _build(fields: str, skeleton: Skeleton) -> tuple[MailHeaders, bytes]:
    """Return the headers that :func:`personal_fields` wrote, and the whole mail."""
    record: dict[str, Any] = json.loads(fields)
    given = record["headers"]
    given["date"] = datetime.fromisoformat(given["date"])
    headers = MailHeaders(**given)
    return headers, record.get("signatures", "").encode("ascii") + finish(skeleton, headers, record["values"])


def build_message(fields: str, skeleton: Skeleton, *, sender: str, recipient: str, smtputf8: bool = False) -> Message:
    """Return the message of one row, ready for a channel."""
    headers, body = _build(fields, skeleton)
    return Message(
        recipient=recipient,
        sender=sender,
        message_id=headers.message_id,
        body=body,
        smtputf8=smtputf8,
    )
