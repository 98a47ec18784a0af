"""Mail that comes back: what it says about which of our mails. Floor 1, pure.

Entry point: :func:`read_report`.

Who it is about is said by the signed token in the address that it came to (tokens.py), and by nothing else: reports are
easily forged, and name addresses as the last host knew them. A report only says why. The token is handed on to be proved; a
report without one is nothing to act on.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from email import message_from_bytes, message_from_string
from email.message import Message
from enum import StrEnum

from flufl.bounce import all_failures

from digestd.tokens import read_bounce_address

#: bytes that are read: reports stand first, behind them there is only the returned mail
MOST_BYTES = 256 * 1024

#: parts and blocks that are looked at
_MOST_PARTS = 50
_MOST_TEXT = 20_000
_MOST_SAID = 200

#: there is no such mailbox or domain, or it was closed for good; one is enough
#: Source: RFC 3463 3.2 and 3.3, RFC 7505
GONE = frozenset({"5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10", "5.2.1"})

_UNSUBSCRIBE = "unsubscribe+"
_STATUS = re.compile(r"(?<![\d.])([245]\.\d{1,3}\.\d{1,3})(?![\d.]|\w)")
#: what servers write that give no status, or one that says nothing (5.0.0)
_NO_MAILBOX = re.compile(
    r"user unknown|unknown user|no such (?:user|recipient|mailbox|address)|no mailbox here|(?:user|mailbox|account|recipient)"
    r" (?:does not|doesn't) exist|(?:user|recipient|mailbox) not found|unrouteable address|account (?:is )?disabled",
    re.IGNORECASE,
)
_TYPES_OF_STATUS = frozenset({"message/delivery-status", "message/global-delivery-status"})
_TYPES_OF_ORIGINAL = frozenset({"message/rfc822", "message/global", "text/rfc822-headers", "message/global-headers"})
#: kinds of feedback that say nothing against a mail, or speak of our signatures (RFC 5965 7.3, RFC 6591)
_NO_COMPLAINT = frozenset({"", "not-spam", "auth-failure", "dmarc"})
_DELIVERED_TO = ("Delivered-To", "X-Original-To", "Envelope-To", "X-Envelope-To", "To", "Cc")
_AUTO_HEADERS = ("X-Autoreply", "X-Autorespond", "X-Autoresponder", "X-Vacation")


class ReportKind(StrEnum):
    """What a mail says about one of ours."""

    HARD = "hard"  #: the address does not exist, or no longer
    SOFT = "soft"  #: not delivered this time
    DELAYED = "delayed"  #: not delivered yet: nothing to do
    COMPLAINT = "complaint"  #: the reader called it spam
    UNSUBSCRIBE = "unsubscribe"  #: the reader wants no more
    AUTO_REPLY = "auto_reply"  #: a vacation note and the like: nothing to do


@dataclass(frozen=True, slots=True)
class BounceReport:
    """What a mail that came back says."""

    kind: ReportKind
    token: str | None = (
        None  #: to be proved: for an unsubscription with that purpose, else as a bounce; None: do not act
    )
    status: str = ""  #: "5.1.1" (RFC 3463); "" if it has none
    diagnostic: str = ""  #: what the last host said, printable, shortened
    message_id: str = ""  #: of our mail, with angle brackets; "" if it was not returned
    envelope_id: str = ""  #: ENVID of our mail (RFC 3461 4.4)
    recipient: str = ""  #: the address as the report names it: for people, not to act on
    policy: bool = False  #: refused for what we are (5.7.x), which says nothing about the reader


def read_report(message: bytes, addressed_to: Sequence[str] = ()) -> BounceReport | None:
    """Return what a mail says about one of ours, None if it is no report at all.

    Never raises, whatever the mail holds.

    Args:
        message: as it came in; what is behind the first 256 KiB is not read.
        addressed_to: envelope recipients; if there are none, those that the mail's own header names. Reading them there is
            safe, because the token in the address is signed.

    Source: RFC 3464 (delivery reports), RFC 6533 (the same beyond ASCII), RFC 5965 (complaints), RFC 3834 (automatic replies).
    """
    try:
        return _read(message_from_bytes(message[:MOST_BYTES]), addressed_to)
    except Exception:
        # email and flufl.bounce know no bound to what hostile mail makes them raise; such a mail is no report
        return None


def _read(mail: Message, addressed_to: Sequence[str]) -> BounceReport | None:
    addresses = tuple(addressed_to) or tuple(_own_addresses(mail))
    token = next((found for address in addresses if (found := read_bounce_address(address))), None)
    parts = list(_parts(mail))
    complaint = next((part for part in parts if part.get_content_type() == "message/feedback-report"), None)
    if complaint is not None:
        return _read_complaint(complaint, parts, token)
    blocks = [block for part in parts if part.get_content_type() in _TYPES_OF_STATUS for block in _blocks(part)]
    if blocks:
        return _read_status(blocks, parts, token)
    if _is_automatic_reply(mail):
        return _read_prose(mail, parts, token) or BounceReport(ReportKind.AUTO_REPLY, token)
    if any(_local_part(address).startswith(_UNSUBSCRIBE) for address in addresses):
        return BounceReport(ReportKind.UNSUBSCRIBE, token)
    return _read_prose(mail, parts, token)


# -- delivery reports


def _read_status(blocks: Sequence[Message], parts: Sequence[Message], token: str | None) -> BounceReport | None:
    """Return what the worst recipient of a delivery report says; we send to one at a time, so there is one in most."""
    reports = [found for block in blocks if (found := _read_block(block)) is not None]
    if not reports:
        return None
    order = (ReportKind.HARD, ReportKind.SOFT, ReportKind.DELAYED)
    kind, status, said, recipient = min(reports, key=lambda report: order.index(report[0]))
    envelope_id = next((value for block in blocks if (value := _field(block, "Original-Envelope-Id"))), "")
    return BounceReport(
        kind, token, status, said, _original_id(parts), envelope_id, recipient, policy=status.startswith("5.7.")
    )


def _read_block(block: Message) -> tuple[ReportKind, str, str, str] | None:
    """Return (kind, status, words, address) of one recipient; None for one who got it, and for the report's own block."""
    action = _field(block, "Action").casefold()
    said = re.sub(r"^[\w-]+\s*;\s*", "", _field(block, "Diagnostic-Code"))
    status = _status_of(_field(block, "Status"), said)
    recipient = _field(block, "Original-Recipient") or _field(block, "Final-Recipient")
    recipient = recipient.rpartition(";")[2].strip().strip("<>")
    if action.startswith("delayed"):
        return ReportKind.DELAYED, status, said, recipient
    if not action.startswith(("fail", "error")):  # "error" is what OpenSMTPD writes
        return None
    return _kind_of(status, said), status, said, recipient


def _status_of(stated: str, said: str) -> str:
    """Return the status code; what the last host said is told before one that says nothing ("5.0.0")."""
    found, inner = _STATUS.search(stated), _STATUS.search(said)
    code = found[1] if found else ""
    if inner is not None and (not code or code.endswith(".0.0")):
        return inner[1]
    return code


def _kind_of(status: str, said: str) -> ReportKind:
    """Return hard or soft of a delivery that failed: hard only where there is no doubt, since one is the end of all mail."""
    if status in GONE:
        return ReportKind.HARD
    vague = status == "" or status in {"5.0.0", "5.1.0", "5.2.0"}
    return ReportKind.HARD if vague and _NO_MAILBOX.search(said) else ReportKind.SOFT


def _blocks(part: Message) -> Iterator[Message]:
    """Yield the blocks of fields of a delivery report; the first is about the report itself."""
    for block in list(part.get_payload())[:_MOST_PARTS]:
        if isinstance(block, Message):
            yield block
            # the library takes a report beyond ASCII for a mail: further blocks stand as the text of the first
            rest = block.get_payload()
            if isinstance(rest, str) and rest.strip():
                yield from (message_from_string(text) for text in rest.split("\n\n")[:_MOST_PARTS])


def _read_prose(mail: Message, parts: Sequence[Message], token: str | None) -> BounceReport | None:
    """Return what a report in some server's own words says; None if it is none.

    Reports have no envelope sender (RFC 5321 4.5.5): a person's answer that quotes one is none.
    """
    if _field(mail, "Return-Path").strip("<> ").casefold().partition("@")[0] not in {"", "mailer-daemon", "#"}:
        return None
    temporary, permanent = all_failures(mail)
    if not temporary and not permanent:
        return None
    recipient = _clean(sorted(permanent or temporary)[0].decode("ascii", "replace"))
    text = _text(mail)
    said = _sentence(text)
    status = _status_of("", text)
    kind = _kind_of(status, text) if permanent else ReportKind.DELAYED
    return BounceReport(
        kind, token, status, said, _original_id(parts), recipient=recipient, policy=status.startswith("5.7.")
    )


def _text(mail: Message) -> str:
    """Return the prose of a report without the mail that it returns."""
    for part in _parts(mail):
        if part.get_content_type() == "text/plain":
            raw = part.get_payload(decode=True)
            text = raw.decode("utf-8", "replace")[:_MOST_TEXT] if isinstance(raw, bytes) else ""
            # a line of dashes, or one that speaks of a copy, begins the returned mail
            return re.split(
                r"^-{3,}.*$|^.*\b(?:copy of|original) (?:the |your )?message\b.*$", text, flags=re.MULTILINE
            )[0]
    return ""


def _sentence(text: str) -> str:
    """Return the paragraph of a report that speaks of the failure."""
    paragraphs = [_clean(paragraph) for paragraph in re.split(r"\n\s*\n", text.replace("\r", ""))]
    telling = [one for one in paragraphs if _STATUS.search(one) or _NO_MAILBOX.search(one)]
    return next(iter(telling or [one for one in paragraphs if one]), "")


# -- complaints


def _read_complaint(part: Message, parts: Sequence[Message], token: str | None) -> BounceReport | None:
    """Return what a feedback report says; it comes to an address of its own, so our token stands in what it returns."""
    fields = next((block for block in part.get_payload() if isinstance(block, Message)), Message())
    kind = _field(fields, "Feedback-Type").casefold()
    if kind in _NO_COMPLAINT:
        return None
    senders = [_field(fields, "Original-Mail-From")]
    senders += [_field(original, "Return-Path") for original in _originals(parts)]
    token = token or next((found for sender in senders if (found := read_bounce_address(sender))), None)
    return BounceReport(
        ReportKind.COMPLAINT,
        token,
        diagnostic=kind,
        message_id=_original_id(parts),
        envelope_id=_field(fields, "Original-Envelope-Id"),
        recipient=_field(fields, "Original-Rcpt-To").strip("<>"),
    )


# -- parts, fields, words


def _is_automatic_reply(mail: Message) -> bool:
    submitted = _field(mail, "Auto-Submitted").casefold()
    if submitted.startswith("auto-replied"):
        return True
    if any(_field(mail, name) for name in _AUTO_HEADERS):
        return True
    return _field(mail, "Precedence").casefold() in {"auto_reply", "auto-reply"}


def _own_addresses(mail: Message) -> Iterator[str]:
    for name in _DELIVERED_TO:
        for value in (mail.get_all(name) or [])[:_MOST_PARTS]:
            yield from str(value)[:_MOST_TEXT].split(",")[:_MOST_PARTS]


def _local_part(address: str) -> str:
    return address.rpartition("<")[2].strip().partition("@")[0].casefold()


def _parts(mail: Message) -> Iterator[Message]:
    """Yield a mail's parts from the front, as many as a report has; returned mails are not entered."""
    waiting, seen = [mail], 0
    while waiting and seen < _MOST_PARTS:
        part = waiting.pop(0)
        seen += 1
        yield part
        payload = part.get_payload()
        if part.get_content_maintype() == "multipart" and isinstance(payload, list):
            waiting += [one for one in payload[:_MOST_PARTS] if isinstance(one, Message)]


def _originals(parts: Sequence[Message]) -> Iterator[Message]:
    """Yield the headers of the returned mail."""
    for part in parts:
        if part.get_content_type() in _TYPES_OF_ORIGINAL:
            payload = part.get_payload()
            if isinstance(payload, list):
                yield from (one for one in payload[:1] if isinstance(one, Message))
            else:
                raw = part.get_payload(decode=True)
                yield message_from_bytes(raw if isinstance(raw, bytes) else b"")


def _original_id(parts: Sequence[Message]) -> str:
    return next((found for original in _originals(parts) if (found := _field(original, "Message-ID"))), "")


def _field(block: Message, name: str) -> str:
    return _clean(str(block.get(name, "")))


def _clean(text: str) -> str:
    """Return a text on one line, printable, shortened."""
    kept = (" " if unicodedata.category(char)[0] in "CZ" else char for char in text[:_MOST_TEXT])
    words = " ".join("".join(kept).split())
    return words if len(words) <= _MOST_SAID else f"{words[: _MOST_SAID - 1]}\u2026"
