"""A rendered digest for one address and the outbox row that carries it. Floor 0."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum


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
    smtputf8: bool = False  #: the relay must offer SMTPUTF8
    envelope_id: str = ""  #: ENVID where the relay offers DSN (RFC 3461 4.4)


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What a web server answered to a message."""

    status: int
    wait_s: float | None = None  #: seconds for which it asks to be left alone (Retry-After)


class DeliveryState(StrEnum):
    """Where an outbox row stands (RELIABILITY 3.1)."""

    READY = "ready"  #: due at next_at
    CLAIMED = "claimed"  #: a worker has it
    ACCEPTED = "accepted"  #: the relay took it
    FAILED = "failed"  #: refused for good, or too old
    SUPPRESSED = "suppressed"  #: the reader left before it was sent
    UNCERTAIN = "uncertain"  #: no readable final reply: it may have been taken
    POISON = "poison"  #: cannot be made into a mail, or crashed a worker three times


class Phase(StrEnum):
    """How far a claimed row has come."""

    ENVELOPE = "env"  #: nothing that can be accepted has been written
    DOT = "dot"  #: the final "." may have been written


@dataclass(frozen=True, slots=True)
class Reply:
    """What a relay answered."""

    code: int  #: three digits, -1 where there was no readable one
    text: str = ""  #: printable, shortened

    @property
    def enhanced(self) -> str:
        """The enhanced status code ("5.1.1"), "" if there is none (RFC 3463)."""
        head = self.text.split(" ", 1)[0]
        parts = head.split(".")
        return head if len(parts) == 3 and all(part.isdigit() for part in parts) else ""


@dataclass(frozen=True, slots=True)
class Sent:
    """The relay took the message."""

    reply: Reply


@dataclass(frozen=True, slots=True)
class Deferred:
    """Known unsent; to be tried again."""

    why: str
    reply: Reply | None = None
    relay_fault: bool = False  #: the relay, not this message: the attempt does not count
    pause: bool = False  #: nothing can be sent until a person has mended it (login, TLS)
    wait_s: float | None = None  #: seconds for which the other side asks to be left alone


@dataclass(frozen=True, slots=True)
class Refused:
    """Known unsent, for good."""

    reply: Reply
    suppress: bool = False  #: the address does not exist: nothing more is sent to it
    policy: bool = False  #: refused for what we are (5.7.x), which says nothing about the reader


@dataclass(frozen=True, slots=True)
class Uncertain:
    """The final "." may have been written and no readable reply came."""

    why: str


@dataclass(frozen=True, slots=True)
class Fenced:
    """The row was no longer ours, or the reader had left, just before the final "."; nothing was sent."""


Outcome = Sent | Deferred | Refused | Uncertain | Fenced


@dataclass(frozen=True, slots=True)
class Delivery:
    """An outbox row."""

    key: int
    kind: str  #: digest, confirm, alert, ...
    digest_key: str  #: "7|2026-10-05T07:30": subscription and slot
    reader: int  #: key of the reader
    recipient: str  #: envelope address
    message_id: str
    state: DeliveryState
    attempts: int = 0
    next_at: datetime | None = None
    phase: Phase | None = None  #: only of claimed rows
    created_at: datetime | None = None
    settled_at: datetime | None = None
    reply: Reply | None = None
    why: str = ""  #: last reason, in words
    flagged: bool = False  #: was uncertain once: may have been taken twice
    owner: str | None = None  #: who holds it, or held it last
    sha256: str | None = None  #: of the bytes of the last attempt that came to the final "."
    other_bytes: int = 0  #: how often an attempt had other bytes than the one before, which must not be


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt to hand over a row, or what else moved it; the log that is kept of each row."""

    number: int  #: attempts of the row so far, this one included
    outcome: str  #: sent, deferred, refused, uncertain, fenced, suppressed, reaped, or the state set by a person's hand
    ended_at: datetime
    owner: str | None = None  #: None: a person
    dot_at: datetime | None = None  #: when the final "." was about to be written; None: it did not come to that
    reply: Reply | None = None
    why: str = ""
    sha256: str | None = None  #: of the bytes as sent; None: it did not come to the final "."


@dataclass(frozen=True, slots=True)
class ToldItem:
    """A paper, or a revision of one, that a digest tells its reader."""

    paper: int  #: key
    topic: str | None  #: slug under which it is told; None for revisions
    section: str  #: new, rest, tagged, tagged_rest, revised or withdrawn
    position: int  #: of the ledger row that is told


@dataclass(frozen=True, slots=True)
class DigestRecord:
    """A digest that was made for one subscription."""

    key: str  #: "a1b2c3|2026-10-05T07:30": subscription and slot, unique for ever
    subscription: int
    after: int  #: ledger stretch (after, upto]
    upto: int
    since: str  #: first day of the news
    until: str  #: last day of the news
    subject: str
    made_at: datetime
    items: tuple[ToldItem, ...] = ()
    passed_over: tuple[tuple[int, str], ...] = ()  #: (ledger position, why it is not told: hidden, told before, ...)
    mailed: bool = True  #: False: nothing was left to tell, the record accounts for what was passed over


@dataclass(frozen=True, slots=True)
class Envelope:
    """What one outbox row is made of; the mail is built of it each time in the same way."""

    kind: str
    digest_key: str
    reader: int
    recipient: str  #: envelope address
    sender: str  #: envelope address, with its bounce token
    message_id: str
    fields: str  #: JSON of what is personal: headers and the values that are put into the content
    content: str  #: hash of the shared content
    next_at: datetime
    smtputf8: bool = False
    scope: str = "all"  #: what a suppression must name to stop it: the subscription's public id, or all


@dataclass(frozen=True, slots=True)
class Claimed:
    """An outbox row that a worker holds, with all that it takes to build its mail."""

    delivery: Delivery
    envelope: Envelope
    content: bytes  #: the shared content


@dataclass(frozen=True, slots=True)
class Suppression:
    """Why nothing is sent to an address."""

    address: str  #: canonical form
    scope: str  #: all, or the public id of one subscription
    reason: str  #: unsubscribed, bounced, complained, operator
    at: datetime
    evidence: str = ""  #: what it rests on, in words
    lifted_at: datetime | None = None
