"""A mail as what other channels carry: subject, texts, links. Floor 3; entry: ``read_digest``.

The outbox keeps one form of a message, the mail. What else is sent is read from it, so that every attempt sends the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTP

from digestd.model.delivery import Message


@dataclass(frozen=True, slots=True)
class PlainDigest:
    """What a mail says."""

    key: str  #: message id without angle brackets: the same in every attempt, of no other message
    subject: str
    text: str
    html: str  #: "" if the mail has none
    date: str  #: as in the mail; "" if it has none
    unsubscribe: str  #: address of the page that ends it; "" if there is none


def read_digest(message: Message) -> PlainDigest:
    """Return what a mail says."""
    mail = message_from_bytes(message.body, policy=SMTP)
    links = [link.strip().strip("<>") for link in str(mail.get("List-Unsubscribe", "")).split(",")]
    return PlainDigest(
        key=message.message_id.strip("<>"),
        subject=str(mail.get("Subject", "")),
        text=_part(mail, "plain"),
        html=_part(mail, "html"),
        date=str(mail.get("Date", "")),
        unsubscribe=next((link for link in links if link.startswith("http")), ""),
    )


def _part(mail: EmailMessage, kind: str) -> str:
    part = mail.get_body(preferencelist=(kind,))
    return str(part.get_content()).replace("\r\n", "\n") if part is not None else ""
