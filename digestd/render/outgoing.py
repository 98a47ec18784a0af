"""A delivery's mail, built of what the outbox keeps: the same bytes each time. Floor 1.

Entry points: :func:`pack_content`, :func:`unpack_content`, :func:`build_mail`. Bodies are kept once for all readers of a
digest; a row keeps only what is personal.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, fields
from datetime import datetime
from typing import Any

from digestd.model.delivery import Message
from digestd.render.mime import MailHeaders, Skeleton, finish

_HEADERS = tuple(field.name for field in fields(MailHeaders))


def pack_content(skeleton: Skeleton) -> bytes:
    """Return encoded bodies as one run of bytes, packed."""
    parts = {
        name: value.decode("ascii") if isinstance(value, bytes) else value for name, value in asdict(skeleton).items()
    }
    return zlib.compress(json.dumps(parts, sort_keys=True).encode("ascii"), 6)


def unpack_content(content: bytes) -> Skeleton:
    """Return the bodies that :func:`pack_content` packed."""
    parts: dict[str, str] = json.loads(zlib.decompress(content))
    return Skeleton(
        subject=parts["subject"],
        language=parts["language"],
        boundary=parts["boundary"],
        text=parts["text"].encode("ascii"),
        html=parts["html"].encode("ascii"),
        tail=parts["tail"].encode("ascii"),
    )


def personal_fields(headers: MailHeaders, values: dict[str, str]) -> str:
    """Return a row's personal part as JSON text."""
    given = {name: value for name in _HEADERS if (value := getattr(headers, name)) is not None}
    given["date"] = headers.date.isoformat()
    return json.dumps({"headers": given, "values": values}, sort_keys=True, ensure_ascii=True)


def build_mail(fields: str, skeleton: Skeleton) -> bytes:
    """Return the mail of one row, CRLF lines of at most 998 octets.

    Raises:
        RenderError: a header does not hold what was meant.
    """
    headers, values = _personal(fields)
    return finish(skeleton, headers, values)


def _personal(fields: str) -> tuple[MailHeaders, dict[str, str]]:
    """Return what :func:`personal_fields` wrote."""
    record: dict[str, Any] = json.loads(fields)
    headers = record["headers"]
    headers["date"] = datetime.fromisoformat(headers["date"])
    return MailHeaders(**headers), record["values"]


def build_message(fields: str, skeleton: Skeleton, *, sender: str, recipient: str, smtputf8: bool = False) -> Message:
    """Return the message of one row, ready for a channel."""
    headers, values = _personal(fields)
    return Message(
        recipient=recipient,
        sender=sender,
        message_id=headers.message_id,
        body=finish(skeleton, headers, values),
        smtputf8=smtputf8,
    )
