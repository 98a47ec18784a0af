"""Envelope commands and what can be known before the first of them. Floor 3; entry: ``misfit``, ``mail_command``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from digestd.model.delivery import Message, Refused, Reply

#: an address that can stand between angle brackets as it is, without quoting (RFC 5321 4.1.2, RFC 6531 3.3)
_ADDRESS = re.compile(
    r"[^\x00-\x20\x7f-\xa0<>()\[\]\\,;:@\"]{1,64}@(?:[^\x00-\x20\x7f-\xa0<>()\[\]\\,;:@\"]+|\[[0-9A-Za-z.:]+\])"
)
_PATH_LIMIT = 254  # octets; RFC 5321 4.5.3.1.3, less the angle brackets
_ENVID_LIMIT = 100  # RFC 3461 4.4


@dataclass(frozen=True, slots=True)
class Offers:
    """What a server said it can do."""

    pipelining: bool = False
    dsn: bool = False
    smtputf8: bool = False
    eight_bit: bool = False
    sized: bool = False
    size_limit: int = 0  #: octets; 0: none told


def read_offers(extensions: dict[str, str]) -> Offers:
    """Return the offers of a server.

    Args:
        extensions: parameters by keyword in lower case.
    """
    size = extensions.get("size", "").strip()
    return Offers(
        pipelining="pipelining" in extensions,
        dsn="dsn" in extensions,
        smtputf8="smtputf8" in extensions,
        eight_bit="8bitmime" in extensions,
        sized="size" in extensions,
        size_limit=int(size) if re.fullmatch(r"[0-9]{1,18}", size) else 0,
    )


def unsendable(message: Message) -> Refused | None:
    """Return why no channel could ever hand over this message; None if one can.

    Addresses are never rewritten: one that cannot be written as it is stored is refused. So is a body with anything but
    CRLF at the ends of its lines, for what follows such a line may be read as a command of its own.
    """
    if not _is_address(message.recipient):
        return Refused(Reply(501, "5.1.3 not sent: the address cannot be written in an envelope"))
    if message.sender and not _is_address(message.sender):
        return Refused(Reply(501, "5.1.7 not sent: the sender's address cannot be written in an envelope"))
    breaks = message.body.count(b"\r\n")
    if breaks != message.body.count(b"\n") or breaks != message.body.count(b"\r") or b"\0" in message.body:
        return Refused(Reply(554, "5.6.0 not sent: the message has bare line ends or NUL"))
    return None


def misfit(message: Message, offers: Offers) -> Refused | None:
    """Return why this server could not take a message; None if it could."""
    if needs_utf8(message) and not offers.smtputf8:
        return Refused(Reply(553, "5.6.7 not sent: the relay does not take addresses in this script"))
    if 0 < offers.size_limit < len(message.body):
        text = f"5.3.4 not sent: the message has {len(message.body)} octets, the relay takes {offers.size_limit}"
        return Refused(Reply(552, text))
    return None


def needs_utf8(message: Message) -> bool:
    """Return whether the relay must know addresses beyond ASCII (RFC 6531)."""
    return message.smtputf8 or not (message.sender + message.recipient).isascii()


def mail_command(message: Message, offers: Offers) -> bytes:
    """Return the MAIL command with what the server offers of SIZE, DSN, SMTPUTF8 and 8BITMIME."""
    parts = [f"MAIL FROM:<{message.sender}>"]
    if offers.sized:
        parts.append(f"SIZE={len(message.body)}")
    if needs_utf8(message):
        parts.append("SMTPUTF8")
    if offers.eight_bit and not message.body.isascii():
        parts.append("BODY=8BITMIME")
    if offers.dsn:
        parts.append("RET=HDRS")
        envelope_id = xtext(message.envelope_id)
        if 0 < len(envelope_id) <= _ENVID_LIMIT:
            parts.append(f"ENVID={envelope_id}")
    return " ".join(parts).encode() + b"\r\n"


def rcpt_command(message: Message, offers: Offers) -> bytes:
    """Return the RCPT command, with a wish to hear of failure and delay if the server offers DSN."""
    command = f"RCPT TO:<{message.recipient}>"
    if offers.dsn:
        command += " NOTIFY=FAILURE,DELAY"
        if message.recipient.isascii():  # other scripts have a form of their own (RFC 6533), which few servers read
            command += f" ORCPT=rfc822;{xtext(message.recipient)}"
    return command.encode() + b"\r\n"


def xtext(text: str) -> str:
    """Return text as the parameters of DSN want it.

    Source: RFC 3461 4.
    """
    return "".join(
        chr(octet) if 33 <= octet <= 126 and octet not in b"+=" else f"+{octet:02X}" for octet in text.encode()
    )


def stuffed(body: bytes) -> bytes:
    """Return a body as it goes over the wire, without the final ".": dots doubled at the beginnings of lines.

    Source: RFC 5321 4.5.2.
    """
    if b"\n." in body:
        body = body.replace(b"\r\n.", b"\r\n..")
    if body.startswith(b"."):
        body = b"." + body
    return body if body.endswith(b"\r\n") else body + b"\r\n"


def _is_address(text: str) -> bool:
    try:
        octets = text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return len(octets) <= _PATH_LIMIT and _ADDRESS.fullmatch(text) is not None
