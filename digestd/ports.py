"""What the flows ask of the outside: Protocols only. Floor 2. The docstrings are the contract that every adapter keeps.

All calls of the store are synchronous and belong to one thread a store; see CONVENTIONS "Sync and async".
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import date, datetime
from typing import Protocol

from digestd.diff import SourceView
from digestd.model.delivery import Message, Outcome
from digestd.model.paper import KnownPaper
from digestd.model.snapshot import (
    Coverage,
    Document,
    Kind,
    Known,
    LedgerRow,
    Page,
    SnapshotDiff,
    SnapshotMeta,
    StatedMomentum,
)
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


class History(Protocol):
    """Papers, topics and the ledger. Read calls see committed state; write calls join the open transaction."""

    def vocabulary(self) -> Vocabulary:
        """Return all labels and topic names known, with how often each was seen."""

    def topics(self) -> Sequence[Topic]:
        """Return all topics, by name."""

    def topic(self, slug: str) -> Topic:
        """Return one topic; NotFoundError if there is none."""

    def find_topic(self, name: str) -> Topic | None:
        """Return the topic with this name or slug, case, signs and white space folded; None if there is none."""

    def put_topic(self, topic: Topic, *, now: datetime) -> None:
        """Add the topic, or give a known one the new name; a gloss or rule that is None leaves what stands."""

    def known(
        self, slug: str, page: Page, source: str, also: Sequence[tuple[int, str, str]]
    ) -> tuple[Known, SourceView]:
        """Return what matters for a page of this topic, and what its source showed before.

        All known papers that share any id or title print with one of the page, or its first author and about its date; the
        state of the topic itself; the states of the other topics in ``also`` (index of a paper, slug, label or rule).
        """

    def has_snapshot(self, slug: str, digest: str, source: str) -> bool:
        """Return whether this content was recorded from this source for this topic before."""

    def find_raw(self, raw_digest: str) -> Sequence[tuple[str, str | None]]:
        """Return (topic slug, origin) of the snapshots made of exactly these bytes."""

    def record(self, meta: SnapshotMeta, page: Page, diff: SnapshotDiff) -> int:
        """Write one snapshot, all or nothing, and return the ledger head afterwards.

        Positions are given in commit order and only grow. A (topic, paper) pair has one sighting for ever: recording a
        second one is an AlreadyExistsError, not a silent skip.
        """

    def unparsed(self) -> Sequence[tuple[int, str, str]]:
        """Return (paper key, name of its page's topic, tag line) of all papers whose tag line could not be cut."""

    def set_labels(self, key: int, labels: Sequence[str], topics: Sequence[Topic], *, seen_at: datetime) -> None:
        """Give a paper labels that were read late; it is sighted in the topics they name, as it was in its own."""

    def labelled(self, name: str) -> Sequence[KnownPaper]:
        """Return the papers with a label of this name, case, signs and white space folded."""

    def all_papers(self) -> Iterator[KnownPaper]:
        """Yield every paper, in the order in which they became known; their names are left out."""

    def add_baseline(self, slug: str, keys: Sequence[int], *, seen_at: datetime) -> None:
        """Sight papers as a topic's baseline; those sighted there already are passed over."""

    def head(self) -> int:
        """Return the ledger's newest position, 0 if it is empty."""

    def sightings(self, slug: str, after: int, upto: int) -> Sequence[LedgerRow]:
        """Return the sightings of a topic at positions (after, upto], in ledger order."""

    def papers(
        self, slug: str, *, limit: int | None = None, kinds: Sequence[Kind] = tuple(Kind)
    ) -> Sequence[LedgerRow]:
        """Return the papers of a topic, newest effective_at first, those of one instant as their page had them."""

    def search(self, words: str, *, limit: int) -> Sequence[KnownPaper]:
        """Return the papers whose title, abstract or authors hold all the words, best first."""

    def coverage(self, slug: str) -> Coverage:
        """Return what of the topic's listing has been seen."""

    def stated(self, slug: str) -> StatedMomentum | None:
        """Return the momentum that the topic's newest snapshot states; None if none ever did."""

    def weekly(self, slug: str, since: date, until: date) -> Sequence[tuple[date, int]]:
        """Return (Monday, counted papers) for each week that begins in [since, until), zeros included, oldest first."""

    def count(self, slug: str, since: date, until: date) -> int:
        """Return the counted papers published in [since, until)."""

    def last_published(self, slug: str) -> date | None:
        """Return the date of the topic's newest counted paper; None if no paper has a date."""


class Store(Protocol):
    """A history file with everything in it."""

    @property
    def history(self) -> History:
        """Papers, topics and the ledger."""

    def transaction(self) -> AbstractContextManager[None]:
        """Open a write transaction: committed at the end, rolled back by any exception; nests as a savepoint."""

    def close(self) -> None:
        """Give back all connections; a second call does nothing."""


class Channel(Protocol):
    """A way to hand over messages."""

    async def send(self, message: Message, *, before_dot: Callable[[], Awaitable[bool]]) -> Outcome:
        """Hand over one message to one recipient and say what became of it.

        ``before_dot`` is awaited after everything but the final step is done, and before anything that the other side
        could accept is written; it records that the outcome is about to become uncertain. If it returns False, the message
        must not be handed over: the outcome is Fenced, and whatever was begun is given up. It is called at most once.

        Nothing but bugs is raised: whatever the other side or the network does is an outcome. A message whose fate is
        unknown is Uncertain only if ``before_dot`` returned True; before that it is Deferred. A cancelled call counts like a
        lost connection. The bytes of the message go out as they are.
        """

    async def close(self) -> None:
        """Give back all connections; a second call does nothing."""
