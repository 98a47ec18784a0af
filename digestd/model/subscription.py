"""Readers, what they follow, and when they are told. Floor 0."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, time
from enum import StrEnum


@dataclass(frozen=True, slots=True)
class Daily:
    """Every day at a local time."""

    at: time = time(7, 30)


@dataclass(frozen=True, slots=True)
class Weekly:
    """Some days of the week at a local time."""

    days: tuple[int, ...] = (0,)  #: 0 is Monday; sorted, not empty, no day twice
    at: time = time(7, 30)


@dataclass(frozen=True, slots=True)
class Monthly:
    """A day of the month at a local time; in a shorter month its last day."""

    day: int = 1  #: 1 to 31
    at: time = time(7, 30)


@dataclass(frozen=True, slots=True)
class Cron:
    """A cron expression of five fields, as Debian's cron reads it."""

    expression: str


@dataclass(frozen=True, slots=True)
class EachSnapshot:
    """As soon as a snapshot has news."""


Schedule = Daily | Weekly | Monthly | Cron | EachSnapshot


@dataclass(frozen=True, slots=True)
class Slot:
    """One time at which a subscription is due."""

    label: str  #: local date and time in the schedule's zone: "2026-11-01T01:30"; unique in a subscription
    due_at: datetime  #: UTC; of a label that comes twice the first, of one that never comes the end of the gap


@dataclass(frozen=True, slots=True)
class FilterRule:
    """One rule of a filter."""

    field: str  #: words, author, institution, category or label
    value: str  #: a word or phrase, a name, "cs.CL" or "cs."


@dataclass(frozen=True, slots=True)
class Filter:
    """Which papers a reader wants to see.

    A paper is hidden if any rule of ``exclude`` fits it, or if there are rules in ``include`` and none of them fits.
    """

    include: tuple[FilterRule, ...] = ()
    exclude: tuple[FilterRule, ...] = ()


@dataclass(frozen=True, slots=True)
class First:
    """What a reader's first digest holds."""

    kind: str = "latest"  #: none, latest or since
    latest: int = 10
    since: date | None = None


@dataclass(frozen=True, slots=True)
class Preferences:
    """How a reader wants to be told."""

    format: str = "html"  #: html (with a text part) or text
    budget: int | None = None  #: papers in a digest; None: as the operator has set it
    all_quiet: bool = False  #: a short mail when there is nothing new
    first: First = field(default_factory=First)
    filter: Filter = field(default_factory=Filter)
    alert: bool = False  #: a mail when a followed topic starts to rise or to cool


@dataclass(frozen=True, slots=True)
class Reader:
    """An address that digests go to."""

    address: str  #: as it was written, domain in lower case and readable
    envelope: str  #: for SMTP: domain in A-labels
    name: str = ""  #: displayed name, may be empty
    smtputf8: bool = False  #: the local part needs SMTPUTF8 (RFC 6531)
    key: int | None = None  #: the history's own number; None: not stored yet

    @property
    def canonical(self) -> str:
        """The form by which addresses are compared: all case folded, because nobody is told apart by it in practice."""
        return self.address.casefold()


class SubscriptionState(StrEnum):
    """Whether a subscription is served."""

    PENDING = "pending"  #: waits for the reader's confirmation
    ACTIVE = "active"
    ENDED = "ended"  #: unsubscribed, or withdrawn by the operator


@dataclass(frozen=True, slots=True)
class Subscription:
    """A reader's followed topics, schedule and preferences, and how far in the ledger it was told."""

    reader: Reader
    topics: tuple[str, ...]  #: slugs in the reader's order, not empty
    schedule: Schedule = field(default_factory=Weekly)
    zone: str = "UTC"  #: IANA name
    preferences: Preferences = field(default_factory=Preferences)
    key: int | None = None  #: the history's own number; None: not stored yet
    public_id: str = ""  #: short random name for keys and addresses
    state: SubscriptionState = SubscriptionState.ACTIVE
    told_upto: int = 0  #: ledger position
    high_water_at: datetime | None = None  #: instant of the newest slot that was served or passed over
    next_due_at: datetime | None = None  #: None: never by the clock (each snapshot, ended)
    paused_until: date | None = None  #: first day, in its zone, on which it is served again
    declared: bool = False  #: stands in the configuration file
    welcomed: bool = False  #: the first digest was made, or not wanted
    created_at: datetime | None = None
    followed_from: tuple[tuple[str, int], ...] = ()  #: (slug, ledger position after which its news is told)

    def followed_after(self, slug: str) -> int:
        """Return the ledger position after which a topic's news is told to this reader."""
        return dict(self.followed_from).get(slug, 0)


@dataclass(frozen=True, slots=True)
class SlotRecord:
    """What became of a slot."""

    label: str
    due_at: datetime
    digest_key: str | None = None  #: the digest that it made; None: nothing to tell
    coalesced_into: str | None = None  #: label of the slot whose digest covers it too
