"""What an audit finds, and what is known of one paper and one reader. Floor 0."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from digestd.model.delivery import DeliveryState
from digestd.model.subscription import Schedule


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is not as it must be."""

    code: str  #: which rule: "A3"
    thing: str  #: "subscription a1b2c3 topic reef-sound position 17"
    found: str
    expected: str

    def __str__(self) -> str:
        return f"{self.code} {self.thing}: expected {self.expected}, found {self.found}"


@dataclass(frozen=True, slots=True)
class Check:
    """One rule held against everything that it is about."""

    code: str
    what: str  #: the rule in words
    looked_at: int  #: things
    findings: tuple[Finding, ...] = ()  #: the first ones, see ``total``
    total: int = 0  #: findings in all, those beyond the first ones too


@dataclass(frozen=True, slots=True)
class Doubt:
    """The ledger of deliveries whose fate was unknown once."""

    opened: int = 0  #: rows that may have been taken without our knowing; as many duplicates are possible
    resent: int = 0  #: of these, sent a second time
    held: int = 0  #: of these, still unknown
    resolved: int = 0  #: of these, settled since


@dataclass(frozen=True, slots=True)
class Kept:
    """What a relay or a sink kept, held against the outbox."""

    mails: int = 0  #: with a Message-ID
    unnamed: int = 0  #: without one: not counted
    doubled: int = 0  #: Message-IDs kept more than once


@dataclass(frozen=True, slots=True)
class AuditReport:
    """What an audit found."""

    checks: tuple[Check, ...]
    notes: tuple[str, ...] = ()  #: worth knowing, no fault
    doubt: Doubt = Doubt()
    kept: Kept | None = None  #: None: nothing was given to compare with

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings, by rule."""
        return tuple(finding for check in self.checks for finding in check.findings)

    @property
    def clean(self) -> bool:
        """Whether there are no findings."""
        return not any(check.total for check in self.checks)


@dataclass(frozen=True, slots=True)
class DatabaseState:
    """What a database says of itself."""

    faults: tuple[tuple[str, str, str], ...] = ()  #: (what, found, expected)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Cursor:
    """How far an active subscription was told, and of which topics."""

    key: int
    public_id: str
    told_upto: int
    followed: tuple[tuple[str, int], ...]  #: (slug, ledger position after which its news is told)


@dataclass(frozen=True, slots=True)
class ScheduleSpan:
    """A stretch of time in which a subscription kept one schedule, as far as it was served."""

    key: int
    public_id: str
    subscription: int
    schedule: Schedule
    zone: str
    since: datetime  #: slots after it
    until: datetime  #: and up to it
    slots: int  #: on record in it
    seconds: int  #: sum of their due times, in seconds since 1970


@dataclass(frozen=True, slots=True)
class ToldStretch:
    """What one digest accounts for."""

    digest_key: str
    after: int  #: ledger stretch (after, upto]
    upto: int
    positions: frozenset[int] = frozenset()  #: told or passed over
    papers: frozenset[int] = frozenset()  #: told, as the ledger names them now


@dataclass(frozen=True, slots=True)
class AcceptedRow:
    """A delivery as far as a reconciliation needs it."""

    key: int
    message_id: str
    state: DeliveryState
    flagged: bool  #: was uncertain once
    at_dot: bool = False  #: is being handed over right now


@dataclass(frozen=True, slots=True)
class LateDot:
    """A final "." written while a suppression stood."""

    key: int
    dot_at: datetime
    suppressed_at: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class Telling:
    """That a subscription was told a paper, or a change of it."""

    digest_key: str
    made_at: datetime
    section: str
    topic: str | None  #: slug
    position: int


@dataclass(frozen=True, slots=True)
class Passing:
    """That a subscription's digest passed a sighting over."""

    digest_key: str
    made_at: datetime
    position: int
    why: str


@dataclass(frozen=True, slots=True)
class SeenWhere:
    """Which snapshot made a ledger row."""

    position: int
    source: str | None  #: None: no snapshot made it
    origin: str | None
    page_topic: str | None  #: slug of the page's own topic
