"""What the flows ask of the outside: Protocols only. Floor 2. The docstrings are the contract that every adapter keeps.

All calls of the store are synchronous and belong to one thread a store; see CONVENTIONS "Sync and async".
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import date, datetime
from typing import Protocol

from digestd.diff import SourceView
from digestd.model.audit import (
    AcceptedRow,
    Check,
    Cursor,
    DatabaseState,
    Doubt,
    LateDot,
    Passing,
    ScheduleSpan,
    SeenWhere,
    Telling,
    ToldStretch,
)
from digestd.model.delivery import (
    Attempt,
    Claimed,
    Delivery,
    DeliveryState,
    DigestRecord,
    Envelope,
    HttpAnswer,
    Message,
    Outcome,
    Suppression,
)
from digestd.model.forms import PendingFollow
from digestd.model.opml import Outlines
from digestd.model.pages import FeedMarks, ListedPaper, ListPlace, PaperSight, SearchWish, SeenRevision
from digestd.model.paper import KnownPaper, Revision
from digestd.model.slices import KnownFeed
from digestd.model.snapshot import (
    Coverage,
    Kind,
    Known,
    LedgerRow,
    Page,
    SnapshotDiff,
    SnapshotMeta,
    StatedMomentum,
)
from digestd.model.source import FetchOutcome, FetchState, FileFate, FileMark, Poll, SourceSpec
from digestd.model.subscription import Reader, SlotRecord, Subscription
from digestd.model.topic import Topic, Vocabulary
from digestd.model.trouble import KnownTrouble, Sign, Tally
from digestd.model.turn import TrendState, Turn


class Clock(Protocol):
    """The only way to the time of day."""

    def now(self) -> datetime:
        """Return the present instant, UTC, with a zone."""


class Source(Protocol):
    """Where documents come from."""

    @property
    def spec(self) -> SourceSpec:
        """What the operator configured."""

    @property
    def waiting(self) -> int:
        """How many things the last look saw that are not complete yet; they are read at a later one."""

    @property
    def in_batches(self) -> bool:
        """Whether one look may leave some for the next: once all outcomes are settled, ask again until nothing comes."""

    async def collect(self, state: FetchState | None, *, now: datetime, draw: float) -> tuple[FetchOutcome, ...]:
        """Ask once and return what came of it, oldest first; empty if there is nothing to read.

        Nothing that the world does is raised. The caller keeps ``outcome.state`` only after the document was recorded.
        """

    def walk(
        self, first: FetchOutcome, *, now: datetime, reaches_known: Callable[[FetchOutcome], Awaitable[bool]]
    ) -> AsyncGenerator[FetchOutcome, None]:
        """Yield the listing's further pages until one of them, or the first, reaches what is known; at most one that failed."""

    def retry(self, *, now: datetime) -> Iterator[FetchOutcome]:
        """Yield what was put aside because it could not be read, oldest first, as ``collect`` does; to be settled too."""

    def settle(self, outcome: FetchOutcome, problem: str | None, *, now: datetime) -> None:
        """Take note that the outcome's document was recorded (problem None) or why it was not; a second call does nothing.

        Raises:
            FetchError: a file could not be put away; it stays and will come again, which changes nothing.
        """


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

    def is_seen_since(self, slug: str, digest: str, since: datetime) -> bool:
        """Return whether it is known that a topic's newest listing page was still the same at an instant or later.

        The digest is of the content or of the bytes. True too where this is not the newest page, or no listing page at all:
        then its coming again says nothing.
        """

    def see_again(self, slug: str, fetched_at: datetime) -> None:
        """Note that a topic's newest listing page was the same at a later instant: a quiet week is not an unseen one."""

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

    def revisions(self, after: int, upto: int) -> Sequence[tuple[int, KnownPaper, Revision]]:
        """Return (position, paper, revision) of all real changes of papers at positions (after, upto], in ledger order."""

    def rows_of(self, paper: int) -> Sequence[LedgerRow]:
        """Return all sightings of one paper, in ledger order, also if it is asked for by the key of one merged into it."""

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


class Subscriptions(Protocol):
    """Readers, subscriptions, slots, and what each reader was told. Write calls join the open transaction."""

    def put_reader(self, reader: Reader, *, now: datetime) -> Reader:
        """Add a reader, or give the one with this canonical address the new name; return it with its key."""

    def find_reader(self, address: str) -> Reader | None:
        """Return the reader with this address, case folded; None if there is none."""

    def put(self, subscription: Subscription, *, now: datetime) -> Subscription:
        """Add a subscription (key None), or write the fields of a known one; return it as it stands.

        A new one gets its key, and a public id if it has none yet; a reader without a key is added too. Public id and
        ``created_at`` are never changed. NotFoundError for an unknown subscription or topic. Read what is to be changed in
        the same transaction: a stale one would take back how far it was told (``advance`` writes nothing else).
        """

    def advance(self, subscriptions: Sequence[Subscription]) -> None:
        """Write how far known subscriptions were told: told_upto, high_water_at, next_due_at, welcomed; nothing else."""

    def subscription(self, key: int) -> Subscription:
        """Return one subscription; NotFoundError if there is none."""

    def read(self, keys: Sequence[int]) -> Mapping[int, Subscription]:
        """Return subscriptions by key; those that are not there are left out."""

    def find_public(self, public_id: str) -> Subscription | None:
        """Return the subscription with this public id; None if there is none."""

    def subscriptions(self, *, reader: int | None = None, active_only: bool = False) -> Sequence[Subscription]:
        """Return subscriptions in the order in which they were made, those of one reader or all."""

    def due(self, now: datetime, *, after: int = 0, limit: int = 500) -> Sequence[Subscription]:
        """Return active subscriptions with ``next_due_at <= now`` and a key larger than ``after``, by key, at most so many."""

    def waiting(self, head: int, *, after: int = 0, limit: int = 500) -> Sequence[Subscription]:
        """Return active subscriptions told at each snapshot whose ``told_upto`` is below the ledger's head, as above."""

    def next_due_at(self) -> datetime | None:
        """Return the earliest ``next_due_at`` of all active subscriptions; None if there is none."""

    def record_slots(self, key: int, slots: Sequence[SlotRecord]) -> None:
        """Write what became of slots, all or none; a label that the subscription has already is an AlreadyExistsError."""

    def record_all_slots(self, slots: Sequence[tuple[int, SlotRecord]]) -> None:
        """Write slots of many subscriptions, each with its subscription's key, as ``record_slots`` does, all or none."""

    def slots(self, key: int) -> Sequence[SlotRecord]:
        """Return all slots of a subscription in the order of their labels."""

    def record_digest(self, record: DigestRecord) -> None:
        """Write a digest, its items and what it passed over, all or nothing.

        A digest key twice is an AlreadyExistsError, and so is a paper told a second time to one subscription (sections new,
        rest, tagged, tagged_rest), or the same revision told twice. Papers that became one are one paper; a digest read
        again names the one that was kept.
        """

    def record_digests(self, records: Sequence[DigestRecord]) -> None:
        """Write many digests as ``record_digest`` does, all or none; the way for a slot of many readers.

        Digests that hold the very same tuple of items or of what was passed over are written much faster.
        """

    def digest(self, digest_key: str) -> DigestRecord:
        """Return a digest with its items in their order, what it passed over by position; NotFoundError if there is none."""

    def digests(self, key: int | None = None, *, limit: int = 100) -> Sequence[DigestRecord]:
        """Return the newest digests, of one subscription or of all, newest first, without their items."""

    def told(self, key: int, papers: Sequence[int]) -> frozenset[int]:
        """Return which of the papers a subscription was told, itself or as another that became one with it."""

    def told_of(self, keys: Sequence[int], papers: Sequence[int]) -> Mapping[int, frozenset[int]]:
        """Return which of the papers the reader of each of some subscriptions was told, by it or an earlier one."""

    def papers_told(self, key: int) -> frozenset[int]:
        """Return all papers that a subscription was told; of those that became one, the one that was kept."""


class Outbox(Protocol):
    """Deliveries (RELIABILITY 3.1). Write calls join the open transaction."""

    def put_content(self, content: bytes, *, now: datetime) -> str:
        """Keep content that several deliveries share, once, and return its hash."""

    def enqueue(self, envelopes: Sequence[Envelope], *, now: datetime) -> Sequence[int]:
        """Add rows that are ready, all or none, and return their keys in the order of the envelopes.

        (kind, digest_key, reader) twice is an AlreadyExistsError, an unknown reader or content a NotFoundError. A row whose
        reader is suppressed for its scope is added as suppressed, so that it is accounted for. Rows of kind ``confirm`` pass
        a suppression whose reason is ``unsubscribed``: somebody who left must be able to come back.
        """

    def claim(self, owner: str, *, now: datetime, lease_until: datetime, limit: int) -> Sequence[Claimed]:
        """Give rows to one owner, oldest due first; no row is ever given to two owners at a time.

        Eligible is a row that is ready, due (``next_at <= now``) and not suppressed. Its attempts grow by one, its phase is
        ``env``. Suppressed ones are settled as suppressed on the way, those whose content is damaged as poison. An owner's
        name is one worker's for its whole life, and no other's ever.
        """

    def mark_dot(self, key: int, owner: str, *, now: datetime, sha256: str) -> bool:
        """Record that the final "." is about to be written, and return whether the row is still this owner's to send.

        False, and nothing recorded, if it is claimed by another, or settled, or marked already in this claim; if its reader
        was suppressed meanwhile it is settled as suppressed. The hash is that of the bytes as sent; a later attempt with
        other bytes is counted in the row (``other_bytes``).
        """

    def settle(
        self, key: int, owner: str, outcome: Outcome, *, now: datetime, next_at: datetime | None
    ) -> DeliveryState:
        """Record what became of a claimed row, in the row and in the log of attempts, and return its state.

        Sent: accepted. Refused: failed, and the reader suppressed where the outcome says so. Deferred: ready at ``next_at``,
        failed ("expired") where that is None; a relay's fault gives the attempt back. Uncertain: uncertain. Fenced: as
        ``mark_dot`` left it, ready if it is still claimed in phase env. A row that this owner does not hold is left as it is.
        """

    def reap(self, *, now: datetime, owners: Sequence[str]) -> Sequence[int]:
        """Free the rows of owners that are gone (not among ``owners``), or whose lease is over; return the keys freed.

        Phase env: ready again. Phase dot: uncertain. A row reaped in phase env three times in a row is poison: a row that
        was settled in between did not end its worker.
        """

    def resend_uncertain(self, *, now: datetime, older_than: datetime) -> Sequence[int]:
        """Make uncertain rows ready that were settled before ``older_than`` and never sent again; return their keys.

        Each once in its life; one that a person made ready was sent again too.
        """

    def delivery(self, key: int) -> Delivery:
        """Return one row; NotFoundError if there is none."""

    def deliveries(
        self, *, state: DeliveryState | None = None, digest_key: str | None = None, limit: int = 100
    ) -> Sequence[Delivery]:
        """Return rows, newest first."""

    def attempts(self, key: int) -> Sequence[Attempt]:
        """Return the log of what moved a row, oldest first; claims and mere looks are not in it."""

    def forget_mails(self, before: datetime, *, limit: int) -> int:
        """Forget what mails are built of that were taken, or stopped, before an instant; return how many."""

    def mails_before(self, before: datetime) -> int:
        """Return how many mails ``forget_mails`` would forget."""

    def forget_contents(self) -> int:
        """Forget content that no delivery needs any more, and return how much of it there was."""

    def content_of(self, key: int) -> Claimed:
        """Return all that it takes to build a row's mail again, without claiming it; StoreError if it is damaged."""

    def set_state(
        self, key: int, state: DeliveryState, *, why: str, now: datetime, next_at: datetime | None = None
    ) -> None:
        """Settle a row by a person's hand, and log it.

        StoreError for a row that is claimed, for one that was accepted (it was told, and would be told twice), and for the
        state claimed.
        """

    def counts(self) -> Mapping[DeliveryState, int]:
        """Return how many rows are in each state, all states named."""

    def next_at(self) -> datetime | None:
        """Return when the next ready row is due; None if none is ready."""

    def suppress(self, suppression: Suppression) -> None:
        """Stop all mail of this scope to an address; a second one of the same scope changes nothing."""

    def lift(self, address: str, scope: str, *, now: datetime) -> bool:
        """End a suppression, after a fresh confirmation only; return whether there was one."""

    def suppressions(self, address: str | None = None) -> Sequence[Suppression]:
        """Return suppressions that stand, of one address (case folded) or all, oldest first."""

    def add_bounce(
        self, address: str, kind: str, *, at: datetime, evidence: str = "", digest_key: str | None = None
    ) -> bool:
        """Record that a mail came back, or a complaint; return whether the address is suppressed for all mail now.

        Kinds: ``hard`` (suppressed at once as bounced), ``complaint`` (at once as complained), ``soft``: suppressed when the
        last five digests that came back did so within 30 days, with none between them that stayed accepted; a digest that
        comes back twice counts once, and nothing from before a suppression was lifted counts. Believe only what is signed.
        """


class Sources(Protocol):
    """Watched sources between polls. Write calls join the open transaction."""

    def state(self, name: str) -> FetchState | None:
        """Return what is kept of a source; None if it was never polled."""

    def put_state(self, name: str, state: FetchState, *, now: datetime) -> None:
        """Keep the state of a source in place of what was kept before."""

    def add_poll(self, name: str, poll: Poll) -> None:
        """Add a poll; of those that brought a page and of those that did not, some fifty latest ones each are kept."""

    def polls(self, name: str) -> Sequence[Poll]:
        """Return the polls kept of a source, in the order in which they were added."""

    def put_file(self, name: str, mark: FileMark, fate: FileFate, *, now: datetime) -> None:
        """Keep what became of a file, in place of what was kept of the same one; what was new once stays done."""

    def fates(self, name: str, marks: Sequence[FileMark]) -> Mapping[tuple[int, int, int], FileFate]:
        """Return what became of files, by version; those that nothing is kept of are left out."""

    def fates_of_hash(self, name: str, sha256: str) -> frozenset[FileFate]:
        """Return what became of all files with these bytes; empty if there was none."""

    def files_kept(self, name: str) -> tuple[int, datetime | None]:
        """Return of how many files it is kept what became of them, and since when; None if of none."""


class Turns(Protocol):
    """When topics started to rise or to cool. Write calls join the open transaction."""

    def trend(self, slug: str) -> TrendState | None:
        """Return what was announced last of a topic; None if it was never looked at."""

    def trends(self) -> Mapping[str, TrendState]:
        """Return what was announced last of topics, by slug; those never looked at are left out."""

    def put_trend(self, state: TrendState) -> None:
        """Keep what is announced of a topic now; NotFoundError for an unknown one."""

    def add_turn(self, turn: Turn) -> None:
        """Add a turn; AlreadyExistsError if the topic has one of this number, NotFoundError for an unknown topic."""

    def turns(self, slug: str | None = None, *, limit: int = 100) -> Sequence[Turn]:
        """Return the newest turns, of one topic or of all, newest first, as they were then."""


class Troubles(Protocol):
    """What the operator is told, and what was counted. Write calls join the open transaction."""

    def known(self) -> Sequence[KnownTrouble]:
        """Return the troubles that are kept, oldest first."""

    def keep(self, troubles: Sequence[KnownTrouble]) -> None:
        """Keep these in place of what was kept."""

    def signs(self) -> Mapping[str, Sign]:
        """Return when each thing went well last, by its name."""

    def put_sign(self, name: str, *, at: datetime, value: int = 0) -> None:
        """Keep that something went well, in place of the time before."""

    def mails(self, prefix: str, *, since: datetime) -> Sequence[datetime]:
        """Return when deliveries were made whose digest key is a prefix and their instant, since an instant, oldest first."""

    def policy_refusals(self, *, since: datetime, most: int) -> tuple[int, int]:
        """Return how many of the latest hand-overs, since an instant, were refused for what we are, and of how many."""

    def tally(self, before: Tally) -> Tally:
        """Return a tally with what was added to the history since; with an empty one, of all that there is."""


class FeedList(Protocol):
    """Feeds that were imported from a list, in its order and folders. Write calls join the open transaction."""

    def read(self) -> Outlines:
        """Return the list, as it was imported."""

    def write(self, outlines: Outlines, *, now: datetime) -> None:
        """Keep a list in place of what was kept before; feeds that stay keep when they came, and their topic."""

    def topics(self) -> Mapping[str, str]:
        """Return the topic of each feed by its address: the title under which it came first, and for ever."""


class Accounts(Protocol):
    """What holds the history, the digests and the outbox against each other. Nothing here writes."""

    def reading(self) -> AbstractContextManager[None]:
        """Open a read transaction: all calls in it see one state, and no writer waits for it; never inside another."""

    def database(self) -> DatabaseState:
        """Return what the database says of itself."""

    def checks(self, *, now: datetime, most: int) -> Sequence[Check]:
        """Return the rules that rows can be held against one by one, each with its first ``most`` findings."""

    def cursors(self, *, after: int, limit: int) -> Sequence[Cursor]:
        """Return active subscriptions with a key larger than ``after``, by key, at most so many."""

    def spans(self, *, after: int, limit: int) -> Sequence[ScheduleSpan]:
        """Return stretches of time with one schedule, of all subscriptions, with a key larger than ``after``, by key."""

    def slot_labels(self, subscription: int, since: datetime, until: datetime) -> frozenset[str]:
        """Return the labels of a subscription's slots by the clock that were due in (since, until]."""

    def stretches(self, keys: Sequence[int]) -> Mapping[int, Sequence[ToldStretch]]:
        """Return, by subscription, what its digests account for, oldest first."""

    def news_of(self, slug: str) -> tuple[Sequence[int], Sequence[int]]:
        """Return the positions of a topic's sightings that readers are told (new, newly tagged), growing, and their papers.

        Doubles of an earlier sighting are left out.
        """

    def changes(self) -> Mapping[int, Sequence[int]]:
        """Return the positions of revisions that readers are told, by paper; without papers that were two once.

        Of these it is not known any more which of the two was changed, and so who had to be told.
        """

    def late_dots(self) -> Sequence[LateDot]:
        """Return the attempts that came to the final "." while a suppression stood that covers them."""

    def doubt(self) -> Doubt:
        """Return what became of deliveries whose fate was unknown once."""

    def oldest_ready(self) -> datetime | None:
        """Return when the ready row that is longest due was due; None if none is ready."""

    def accepted(self, most: int) -> Sequence[int]:
        """Return keys of accepted rows with a hash, at most so many, spread over all of them."""

    def rows(self, *, after: int, limit: int) -> Sequence[AcceptedRow]:
        """Return the outbox rows with a key larger than ``after``, by key, at most so many."""

    def find_papers(self, names: Sequence[str]) -> Sequence[int]:
        """Return the keys of the papers with one of these names ("arxiv:2609.01234") or public ids; merged ones as kept."""

    def seen_where(self, paper: int) -> Sequence[SeenWhere]:
        """Return which snapshots made a paper's sightings, in ledger order."""

    def tellings(self, subscription: int, paper: int) -> Sequence[Telling]:
        """Return when a subscription was told a paper and its changes, oldest first."""

    def passings(self, subscription: int, positions: Sequence[int]) -> Sequence[Passing]:
        """Return where a subscription's digests passed these ledger rows over, in ledger order."""

    def digest_of_mail(self, reader: int, message_id: str) -> str | None:
        """Return the key of the digest that a reader was sent under this Message-ID; None if there is none."""

    def has_bounce(self, address: str, kind: str, digest_key: str) -> bool:
        """Return whether this kind of report of this digest was recorded before."""


class FeedsRead(Protocol):
    """Feeds as they were read the last time. Write calls join the open transaction."""

    def find(self, place: str) -> KnownFeed | None:
        """Return what is kept of a feed; None if it has to be read whole."""

    def put(self, place: str, feed: KnownFeed | None) -> None:
        """Keep a feed in place of what was kept before; None forgets it."""

    def records(self, papers: Sequence[int]) -> Mapping[int, int]:
        """Return key -> hash of the record as it stands now; papers merged into others are left out."""

    def bearers(self, names: Sequence[str]) -> Mapping[str, int]:
        """Return name -> key of the paper that bears it; names that nobody bears are left out."""


class Pages(Protocol):
    """What pages and feeds ask of the history. Nothing here writes."""

    def topic_papers(
        self, slug: str, *, label: str | None = None, after: ListPlace | None = None, limit: int
    ) -> Sequence[ListedPaper]:
        """Return a topic's papers, newest first, those of one instant as their page had them; those after a place only."""

    def place(self, slug: str, public_id: str) -> ListPlace | None:
        """Return where a paper stands in a topic's list; None if it is not in it."""

    def labels(self, slug: str, *, limit: int) -> Sequence[tuple[str, int]]:
        """Return the labels of a topic's papers, its own name left out, and how many papers have each, most first."""

    def label_papers(self, slug: str, label: str) -> int:
        """Return how many of a topic's papers have a label."""

    def paper(self, public_id: str) -> KnownPaper | None:
        """Return the paper of this public id, or the one that it was merged into; None if there is none."""

    def papers(self, keys: Sequence[int]) -> Mapping[int, KnownPaper]:
        """Return papers by the keys asked for; one that was merged is returned as the one that was kept."""

    def sights(self, key: int) -> Sequence[PaperSight]:
        """Return where a paper was first seen, in ledger order."""

    def changes(self, key: int) -> Sequence[tuple[datetime, Revision]]:
        """Return the real changes of a paper and when each was seen, newest first."""

    def topic_changes(self, slug: str, *, limit: int) -> Sequence[SeenRevision]:
        """Return the newest real changes of a topic's papers after they were sighted in it, newest first."""

    def latest(self, slugs: Sequence[str] | None, *, limit: int) -> Sequence[LedgerRow]:
        """Return the newest sightings that followers are told, in some topics or all, newest first."""

    def search(self, wish: SearchWish, *, limit: int) -> Sequence[ListedPaper]:
        """Return the papers that fit, best first, each with a piece of its abstract; [] where nothing is asked for."""

    def weeks(self, since: date, until: date) -> Sequence[tuple[date, str, str, int]]:
        """Return (Monday, slug, topic, counted papers) of the weeks that begin in [since, until), newest first, most first."""

    def marks(self) -> FeedMarks:
        """Return how far the history has come, to be asked again what changed since."""

    def changed_topics(self, since: FeedMarks) -> frozenset[str]:
        """Return the slugs of topics with a snapshot, a sighting, or a paper whose record changed, after the marks."""


class Confirmations(Protocol):
    """Wishes to follow that wait until their reader confirms them, and the mails that strangers caused by them.

    Write calls join the open transaction.
    """

    def add(self, pending: PendingFollow, mark: str) -> PendingFollow:
        """Keep a wish of a stored reader and count its mail at ``created_at`` by a mark; return it with its public id.

        The mark stands for the address and outlives it: a keyed hash, never the address itself.
        """

    def find(self, public_id: str) -> PendingFollow | None:
        """Return the wish of this public id, expired or not; None if there is none, or no longer."""

    def settle(self, public_id: str, *, now: datetime) -> bool:
        """Note that a wish was confirmed and return whether this was the first time; later calls change nothing."""

    def mails_to(self, mark: str, *, since: datetime) -> Sequence[datetime]:
        """Return when mails were made for a mark after an instant, oldest first."""

    def mails(self, *, since: datetime) -> int:
        """Return how many mails were made after an instant, whatever their mark."""

    def forget(self, *, now: datetime, counted_before: datetime) -> int:
        """Delete expired wishes, and readers known by them alone with their deliveries; return how many wishes.

        A wish whose mail a worker holds just now stays for the next time. Counts of mails made at ``counted_before`` or
        earlier go too. A second call does nothing.
        """


class Store(Protocol):
    """A history file with everything in it."""

    @property
    def history(self) -> History:
        """Papers, topics and the ledger."""

    @property
    def subscriptions(self) -> Subscriptions:
        """Readers, subscriptions, slots and digests."""

    @property
    def outbox(self) -> Outbox:
        """Deliveries."""

    @property
    def accounts(self) -> Accounts:
        """What holds all of it against each other."""

    @property
    def pages(self) -> Pages:
        """What pages and feeds ask of the history."""

    @property
    def confirmations(self) -> Confirmations:
        """Wishes that wait for their confirmation."""

    @property
    def sources(self) -> Sources:
        """Watched sources."""

    @property
    def turns(self) -> Turns:
        """When topics started to rise or to cool."""

    @property
    def troubles(self) -> Troubles:
        """What the operator is told, and what was counted."""

    @property
    def feed_list(self) -> FeedList:
        """Feeds that were imported from a list."""

    @property
    def feeds_read(self) -> FeedsRead:
        """Feeds as they were read the last time."""

    def transaction(self) -> AbstractContextManager[None]:
        """Open a write transaction: committed at the end, rolled back by any exception; nests as a savepoint."""

    def secret(self, name: str) -> bytes:
        """Return 32 random bytes of this history, made when first asked for and the same for ever after."""

    def home(self) -> str | None:
        """Return the mark of the machine that this history works on; None if it never worked on one that has a mark."""

    def slack(self) -> tuple[int, int]:
        """Return the bytes of the history's file, and how many of them hold nothing."""

    def compact(self) -> None:
        """Write the file anew without what holds nothing; nobody else writes meanwhile."""

    def put_home(self, mark: str) -> None:
        """Keep the mark of the machine that this history works on from now on."""

    def close(self) -> None:
        """Give back all connections; a second call does nothing."""


class Mailbox(Protocol):
    """A folder of mails that came back, open for reading."""

    def waiting(self, most: int) -> Iterator[tuple[str, bytes]]:
        """Yield (name, first ``most`` bytes) of the mails that nobody has seen; looking at them marks nothing.

        Raises:
            MailboxError: the mailbox cannot be read just now.
        """

    def mark_seen(self, name: str) -> None:
        """Mark a mail as seen, so that the next look passes it over; it stays in the mailbox.

        Raises:
            MailboxError: it could not be marked just now.
        """


class WebPost(Protocol):
    """A way to hand a body to a web server."""

    async def post(self, url: str, headers: Mapping[str, str], body: AsyncIterator[bytes]) -> HttpAnswer:
        """Send a body whose length stands in the headers, and return the answer; redirects are not followed.

        The parts of the body are asked for one after the other, the next when the one before is written. What the iterator
        raises passes through.

        Raises:
            FetchError: there was no connection or no readable answer; whether the body had been written, the iterator knows.
        """

    async def aclose(self) -> None:
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
