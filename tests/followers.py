"""A history with readers, for tests of flows: pages of invented papers, a kitchen, a channel that keeps what it is given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage

from digestd.addresses import parse_reader
from digestd.flows.deliver import DeliverOptions
from digestd.flows.digest import Kitchen
from digestd.flows.ingest import IngestOptions, ingest_document
from digestd.flows.make_digest import MailIdentity
from digestd.flows.subscribe import Followed, Wish, follow
from digestd.model.delivery import Fenced, Message, Outcome, Reply, Sent
from digestd.model.digest import DigestOptions
from digestd.model.snapshot import Document, SnapshotRecord
from digestd.model.subscription import Filter, First, Preferences
from digestd.model.topic import Vocabulary
from digestd.schedule import parse_schedule
from digestd.store import SqlStore
from digestd.templating import build_environment

LABELS = Vocabulary({"Reef Sound": 5, "Kelp Forests": 5, "Tide Gauges": 5, "Slow Robots": 5})


def at(text: str) -> datetime:
    """Return an instant: "2026-10-05T07:30" is UTC unless it says otherwise."""
    found = datetime.fromisoformat(text)
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def page(topic: str, *papers: tuple[str, ...], total: int | None = None) -> str:
    """Return a topic page; a paper is (date, title) or (date, title, further labels), newest first."""
    blocks = [
        topic,
        "Follow this topic Ask about this topic",
        "Momentum",
        "9 papers in the last four weeks, up 12% on the four weeks before. 0.1% of all new papers.",
        "Jul 13Week of Sep 28",
        f"Latest papers {total or len(papers)}",
    ]
    for day, title, *labels in papers:
        printed = date.fromisoformat(day)
        blocks += [
            f"{printed:%b} {printed.day}, {printed.year}cs.SD",
            title,
            f"We look at {title.lower()} for a season. The outcome differs from what was assumed before.",
            "Ana Lima, Bo Ek +2",
            "Harbour University",
            " ".join([topic, *labels]),
        ]
    return "\n\n".join(blocks) + "\n"


def ingest(store: SqlStore, text: str, *, now: datetime) -> SnapshotRecord:
    """Read a page into the history."""
    return ingest_document(store, Document(text.encode(), fetched_at=now), IngestOptions(now=now, vocabulary=LABELS))


def start(store: SqlStore, topic: str, *, now: datetime, papers: int = 3) -> None:
    """Give a topic its first page, so that what comes after it is news."""
    first = [(f"2026-09-{20 - number:02d}", f"{topic} Note {number}") for number in range(papers)]
    ingest(store, page(topic, *first), now=now)


def add(store: SqlStore, topic: str, *papers: tuple[str, ...], now: datetime) -> None:
    """Read a page of new papers above the first page's newest one."""
    ingest(store, page(topic, *papers, ("2026-09-20", f"{topic} Note 0")), now=now)


def make_kitchen(store: SqlStore, *, base_url: str | None = "https://digest.example.org") -> Kitchen:
    """Return a kitchen over a store."""
    identity = MailIdentity(
        name="Reef Papers", sender="digest@digest.example.org", sender_name="Reef Papers", base_url=base_url
    )
    return Kitchen(store, identity, DigestOptions(), build_environment())


def let_follow(
    store: SqlStore,
    address: str,
    *topics: str,
    now: datetime,
    schedule: str = "daily 07:30",
    zone: str = "UTC",
    first: First | None = None,
    hide: Filter | None = None,
    form: str = "html",
    all_quiet: bool = False,
    budget: int | None = None,
) -> Followed:
    """Let a reader follow topics; without a welcome digest unless one is named."""
    preferences = Preferences(
        format=form, budget=budget, all_quiet=all_quiet, first=first or First("none"), filter=hide or Filter()
    )
    wish = Wish(parse_reader(address, allow_local=True), topics, parse_schedule(schedule), zone, preferences)
    return follow(store, wish, LABELS, now=now)


@dataclass
class KeepingChannel:
    """A channel that keeps what it is given, unless it is told another outcome."""

    outcome: Callable[[Message], Outcome | None] = field(default=lambda _: None)
    at_dot: Callable[[Message], Awaitable[Outcome | None]] | None = None  #: awaited once a message may be taken
    kept: list[Message] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)  #: recipients, in the order of their hand-over

    async def send(self, message: Message, *, before_dot: Callable[[], Awaitable[bool]]) -> Outcome:
        """Keep a message."""
        self.seen.append(message.recipient)
        told = self.outcome(message)
        if told is not None:
            return told
        if not await before_dot():
            return Fenced()
        if self.at_dot is not None and (found := await self.at_dot(message)) is not None:
            return found
        self.kept.append(message)
        return Sent(Reply(250, "2.0.0 kept"))

    async def close(self) -> None:
        """Do nothing."""

    def mails(self) -> list[EmailMessage]:
        """Return what was kept, read by the standard library."""
        return [read_mail(message.body) for message in self.kept]


@dataclass
class Clock:
    """A clock that stands where it is put."""

    instant: datetime

    def now(self) -> datetime:
        """Return the instant."""
        return self.instant


def options(owner: str = "test", **given: object) -> DeliverOptions:
    """Return options of a run."""
    return DeliverOptions(owner=owner, **given)  # type: ignore[arg-type]  # any field of DeliverOptions


def read_mail(body: bytes) -> EmailMessage:
    """Return a mail as the standard library reads it."""
    read = message_from_bytes(body, policy=policy.default)
    assert isinstance(read, EmailMessage)
    return read


def text_of(mail: EmailMessage) -> str:
    """Return the text part of a mail."""
    part = mail.get_body(("plain",))
    assert part is not None
    return str(part.get_content()).replace("\r\n", "\n")
