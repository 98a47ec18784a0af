"""What the flows ask of the outside: Protocols only. Floor 2. The docstrings are the contract that every adapter keeps.

All calls of the store are synchronous and belong to one thread a store; see CONVENTIONS "Sync and async".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import date, datetime
from typing import Protocol

from digestd.model.paper import KnownPaper, Paper
from digestd.model.snapshot import Coverage, Document, Kind, Known, Page, SnapshotDiff, StatedMomentum
from digestd.model.topic import Topic, Vocabulary


class Clock(Protocol):
    """The only way to the time of day."""

    def now(self) -> datetime:
        """Return the present instant, UTC, with a zone."""


class Source(Protocol):
    """Where documents come from."""

    name: str

    def poll(self) -> Iterator[Document]:
        """Yield documents that were not handed out before, oldest first; FetchError if the source can't be read."""


class LedgerRow(Protocol):
    """One sighting as it stands in the ledger."""

    position: int
    kind: Kind
    topic: str
    known: KnownPaper


class History(Protocol):
    """Papers, topics and the ledger. Read calls see committed state; write calls join the open transaction."""

    def vocabulary(self) -> Vocabulary:
        """Return all labels and topic names known, with how often each was seen."""

    def topics(self) -> Sequence[Topic]:
        """Return all topics, by name."""

    def topic(self, slug: str) -> Topic:
        """Return one topic; NotFoundError if there is none."""

    def find_topic(self, name: str) -> Topic | None:
        """Return the topic with this name or slug, case and white space folded; None if there is none."""

    def put_topic(self, topic: Topic) -> None:
        """Add the topic, or give a known one the new name, gloss and rule."""

    def known(self, slug: str, papers: Sequence[Paper], source: str) -> Known:
        """Return what matters for a page of this topic.

        All known papers that share any id or title print with one of ``papers``; the state of the topic itself; the
        states of the other topics that labels or match rules of ``papers`` name. ``source`` is the origin of the
        page, by which an unordered source's first fetch is told.
        """

    def unchanged(self, slug: str, digest: str, source: str) -> bool:
        """Return whether this content was the latest recorded from this source for this topic."""

    def record(
        self,
        slug: str,
        page: Page,
        diff: SnapshotDiff,
        *,
        digest: str,
        source: str,
        fetched_at: datetime,
        now: datetime,
    ) -> int:
        """Write one snapshot, all or nothing, and return the ledger head afterwards.

        Positions are given in commit order and only grow. A (topic, paper) pair has one sighting for ever: recording a
        second one is a StoreError, not a silent skip. The same content again writes nothing.
        """

    def head(self) -> int:
        """Return the ledger's newest position, 0 if it is empty."""

    def sightings(self, slug: str, after: int, upto: int) -> Sequence[LedgerRow]:
        """Return the sightings of a topic at positions (after, upto], in ledger order."""

    def papers(self, slug: str, *, limit: int | None = None) -> Sequence[LedgerRow]:
        """Return the papers of a topic, newest effective_at first."""

    def coverage(self, slug: str) -> Coverage:
        """Return what of the topic's listing has been seen."""

    def stated(self, slug: str) -> StatedMomentum | None:
        """Return the momentum that the topic's newest snapshot states; None if none ever did."""

    def weekly(self, slug: str, since: date, until: date) -> Sequence[tuple[date, int]]:
        """Return (Monday, counted papers) for each week that begins in [since, until), zeros included, oldest first."""


class Store(Protocol):
    """A history file with everything in it."""

    history: History

    def transaction(self) -> AbstractContextManager[None]:
        """Open a write transaction: committed at the end, rolled back by any exception; nests as a savepoint."""

    def close(self) -> None:
        """Give back all connections; a second call does nothing."""


class Channel(Protocol):
    """A way to hand over a message."""

    async def send(self, message: Iterable[bytes]) -> None:
        """Hand it over or raise; see the outbox for what each outcome means."""
