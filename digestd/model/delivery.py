"""A rendered digest for one address and the outbox row that carries it. Floor 0."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Picture:
    """An inline picture of a mail."""

    cid: str  #: content id without angle brackets, stable for the same content
    png: bytes
    name: str  #: file name


@dataclass(frozen=True, slots=True)
class MailParts:
    """A digest rendered for mail, before headers."""

    subject: str
    text: str
    html: str
    preheader: str = ""
    pictures: tuple[Picture, ...] = ()
    language: str = "en"


@dataclass(frozen=True, slots=True)
class Message:
    """A finished mail for one address."""

    recipient: str  #: envelope address
    sender: str  #: envelope address
    message_id: str  #: with angle brackets
    body: bytes  #: CRLF lines of at most 998 octets, not dot-stuffed
