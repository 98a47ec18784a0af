"""One fetched document of a watched source into the history. Floor 4. Entry point: :class:`DocumentReader`.

A document may hold several pages (``*.jsonl``); a page of a listing may be followed down its further pages until one shows
what is known. What was fetched in one walk is recorded in one transaction, so that a walk is in the history as a whole or
not at all.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from hashlib import sha256
from typing import Protocol, TypeVar

from digestd.errors import AlreadyExistsError, DigestdError, NotFoundError, ParseError, StoreError, UnknownFormatError
from digestd.flows.ingest import (
    IngestOptions,
    Intake,
    Parse,
    find_page_topic,
    read_page,
    record_page,
    see_again,
)
from digestd.flows.relabel import merged_vocabulary
from digestd.flows.sieve import ReadWholeError
from digestd.model.snapshot import Document, Order, Page, SnapshotRecord
from digestd.model.source import FetchOutcome, OutcomeKind, Poll
from digestd.page_hash import batch_hash
from digestd.parse import parse_document
from digestd.parse.jsonl import documents_of
from digestd.ports import Source, Store
from digestd.walk import adds_nothing, join_pages, reaches_end, reaches_known

log = logging.getLogger(__name__)

T = TypeVar("T")


class Call(Protocol):
    """Runs a function in a thread: the one that the history belongs to, or the one in which documents are parsed."""

    def __call__(self, work: Callable[[], T], /) -> Awaitable[T]:
        """Return what the function returned, or raise what it raised."""


#: answers by which a listing says that it has no further page
_PAST_THE_END = frozenset({404, 410})


@dataclass(frozen=True, slots=True)
class Watched:
    """A source, and how its documents are read."""

    source: Source
    options: IngestOptions
    parse: Parse = parse_document
    reading: str = ""  #: what else decides how bytes are read (format, rules): another text reads the same bytes anew


@dataclass(frozen=True, slots=True)
class Collected:
    """What came of one document, or of asking for one."""

    source: str  #: name of the source
    origin: str  #: URL or file
    result: SnapshotRecord | DigestdError | None  #: None: the server says that nothing changed


@dataclass(frozen=True, slots=True)
class Reading:
    """What came of one fetched document."""

    results: tuple[Collected, ...]
    poll: Poll
    problem: str | None = None  #: why it was not read, or not all of it
    walk_open: bool = False


@dataclass(slots=True)
class _Walk:
    """Pages of a listing as they come."""

    pages: list[Page]
    documents: list[Document]
    broke: str | None = None  #: why a further page could not be had
    parts: list[str] = field(default_factory=list)


class DocumentReader:
    """Reads and records the documents of one source.

    Args:
        store: the history; only used inside ``call``.
        call: runs a function in the store's thread.
        parse: runs a function in the thread for parsing, so that a long document holds up nobody else's history.
        watched: the source.
        now: UTC.
    """

    def __init__(self, store: Store, call: Call, parse: Call, watched: Watched, *, now: datetime) -> None:
        self._store = store
        self._call = call
        self._parse = parse
        self._watched = watched
        self._options = replace(watched.options, now=now)
        self._now = now

    @property
    def _name(self) -> str:
        return self._watched.source.spec.name

    async def read(self, outcome: FetchOutcome, polls: Sequence[Poll], *, walk_open: bool) -> Reading:
        """Read and record what a fetch brought.

        Args:
            outcome: with a document.
            polls: of the source, oldest first; a document that one of them read is not read again.
            walk_open: whether the walk before broke off.

        Raises:
            StoreError: the history cannot be written now; nothing is said against the document.
        """
        assert outcome.document is not None
        documents = list(documents_of(outcome.document))
        if len(documents) == 1:
            return await self._read_one(outcome, documents[0], polls, walk_open=walk_open)
        readings = [await self._guarded(document, self._record_alone(document, polls)) for document in documents]
        problems = [reading.problem for reading in readings if reading.problem]
        if not readings:
            return self._failed(outcome.document, ParseError("expected JSON lines, found none", origin=outcome.url))
        return Reading(
            results=tuple(result for reading in readings for result in reading.results),
            poll=_joined_poll([reading.poll for reading in readings]),
            problem=problems[0] if problems else None,
        )

    async def _read_one(
        self, outcome: FetchOutcome, document: Document, polls: Sequence[Poll], *, walk_open: bool
    ) -> Reading:
        if self._watched.source.spec.page_url is None:
            return await self._guarded(document, self._record_alone(document, polls))
        return await self._guarded(document, self._record_walk(outcome, document, polls, walk_open=walk_open))

    async def _guarded(self, document: Document, reading: Awaitable[Reading]) -> Reading:
        """Return the reading, or one that says why there is none; a bug in a parser costs its document, not the run."""
        try:
            return await reading
        except (AlreadyExistsError, NotFoundError) as error:
            return self._failed(document, error)
        except StoreError:
            raise
        except DigestdError as error:
            return self._failed(document, error)
        except Exception as error:
            log.exception('document failed origin="%s"', document.origin)
            return self._failed(
                document, ParseError(f"could not be read: {type(error).__name__}", origin=document.origin)
            )

    def _failed(self, document: Document, error: DigestdError) -> Reading:
        why = str(error)
        unknown = isinstance(error, UnknownFormatError)
        poll = Poll(self._now, OutcomeKind.OK, why=why, unreadable=True, unknown_format=unknown)
        return Reading((Collected(self._name, document.origin or "", error),), poll, problem=why)

    # -- one document

    async def _record_alone(self, document: Document, polls: Sequence[Poll]) -> Reading:
        body = self._body_hash(document)
        again = await self._call(lambda: self._unchanged(document, body, polls))
        if again is not None:
            return again
        intake = Intake(self._store, document, self._options, self._watched.parse, self._watched.reading)
        while True:
            await self._call(intake.look_up)
            page = await self._parse(intake.read)
            try:
                return await self._call(partial(self._record_page, intake, page, document, body))
            except ReadWholeError:
                intake.read_whole()

    async def _read_page(self, document: Document) -> Page:
        """Return a page of a listing."""
        vocabulary = await self._call(
            lambda: merged_vocabulary(self._options.vocabulary, self._store.history.vocabulary())
        )
        return await self._parse(lambda: read_page(document, vocabulary, self._options, self._watched.parse))

    def _body_hash(self, document: Document) -> str:
        how = f"{self._options.topic}|{self._options.order}|{self._watched.reading}"
        return sha256(sha256(document.body).digest() + how.encode("utf-8", "replace")).hexdigest()

    def _unchanged(self, document: Document, body: str, polls: Sequence[Poll]) -> Reading | None:
        """Return what a poll found in the same bytes; None if none of those kept read them."""
        before = next((poll for poll in reversed(polls) if poll.body == body and not poll.unreadable), None)
        topic = self._store.history.find_topic(before.topic) if before is not None and before.topic else None
        if before is None or topic is None:
            return None
        raw = before.raw or sha256(document.body).hexdigest()
        see_again(self._store, topic.slug, raw, document.fetched_at or self._now)
        coverage = self._store.history.coverage(topic.slug)
        record = SnapshotRecord(
            snapshot="",
            topic=topic.slug,
            topic_name=topic.name,
            position=self._store.history.head(),
            unchanged=True,
            coverage=coverage,
        )
        gaps = coverage.gaps if before.gaps else ()
        poll = replace(before, at=self._now, outcome=OutcomeKind.OK, why="", gaps=gaps)
        return self._reading([record], document, poll)

    def _record_page(self, intake: Intake, page: Page, document: Document, body: str) -> Reading:
        raw = sha256(document.body).hexdigest()
        record = intake.record(page, raw)
        poll = replace(self._poll(page, [record]), batch=intake.batch(page), body=body, raw=raw)
        return self._reading([record], document, poll)

    def _record_pages(self, pages: Sequence[Page], documents: Sequence[Document], body: str) -> Reading:
        """Record the pages of a walk in one transaction."""
        digests = [sha256(document.body).hexdigest() for document in documents]
        raw = digests[0] if len(digests) == 1 else sha256("".join(digests).encode()).hexdigest()
        first, document = pages[0], documents[0]
        with self._store.transaction():
            records = [record_page(self._store, page, document, self._options, raw) for page in join_pages(pages)]
        poll = replace(self._poll(first, records), batch=batch_hash(first), body=body, raw=raw)
        return self._reading(records, document, poll)

    def _poll(self, page: Page, records: Sequence[SnapshotRecord]) -> Poll:
        """Return what a page that was recorded says of its source."""
        return Poll(
            at=self._now,
            outcome=OutcomeKind.OK,
            papers=len(page.papers) + page.unread,
            issued=page.observed_at.date() if page.observed_at is not None else None,
            quiet_reason=page.quiet_reason,
            gaps=records[-1].coverage.gaps if page.order is Order.LISTING else (),
            topic=records[0].topic,
            ttl_s=page.ttl_s,
        )

    def _reading(self, records: Sequence[SnapshotRecord], document: Document, poll: Poll) -> Reading:
        return Reading(tuple(Collected(self._name, document.origin or "", record) for record in records), poll)

    # -- a listing and its further pages

    async def _record_walk(
        self, outcome: FetchOutcome, document: Document, polls: Sequence[Poll], *, walk_open: bool
    ) -> Reading:
        body = self._body_hash(document)
        again = None if walk_open else await self._call(lambda: self._unchanged(document, body, polls))
        if again is not None:
            return again
        first = await self._read_page(document)
        walk = _Walk([first], [document])
        if first.order is Order.LISTING and first.papers:
            await self._walk(walk, outcome, walk_open=walk_open)
        below = await self._call(lambda: self._has_listing(first, document))
        reading = await self._call(lambda: self._record_pages(walk.pages, walk.documents, body))
        if walk.broke is None:
            return reading
        log.warning('walk broke off pages=%d why="%s"', len(walk.pages), walk.broke)
        return replace(reading, poll=replace(reading.poll, why=walk.broke, body=None, raw=None), walk_open=below)

    async def _walk(self, walk: _Walk, outcome: FetchOutcome, *, walk_open: bool) -> None:
        """Add the further pages until one reaches what is known, or one cannot be had."""

        async def may_end(_: FetchOutcome) -> bool:
            return await self._call(lambda: self._may_end(walk, below_top=walk_open))

        further = self._watched.source.walk(outcome, now=self._now, reaches_known=may_end)
        async with aclosing(further) as outcomes:
            async for one in outcomes:
                if one.document is None:
                    walk.broke = None if one.status in _PAST_THE_END else one.why
                    return
                document = one.document
                try:
                    page = await self._read_page(document)
                except ParseError as error:
                    walk.broke = str(error)
                    return
                if not page.papers:
                    return
                walk.pages.append(page)
                walk.documents.append(document)

    def _may_end(self, walk: _Walk, *, below_top: bool) -> bool:
        *before, page = walk.pages
        if reaches_end(walk.pages) or (before and adds_nothing(before, page)):
            return True
        history = self._store.history
        topic = find_page_topic(history, page, walk.documents[0], self._options)
        if topic is None:
            return False
        known, _ = history.known(topic.slug, page, "", ())
        return reaches_known(page, known, below_top=below_top)

    def _has_listing(self, page: Page, document: Document) -> bool:
        """Whether pages of the listing were seen before, so that a walk that broke off leaves something out."""
        topic = find_page_topic(self._store.history, page, document, self._options)
        return topic is not None and bool(self._store.history.coverage(topic.slug).stretches)


def _joined_poll(polls: Sequence[Poll]) -> Poll:
    """Return the polls of one file's documents as one: unreadable if one is, else with all papers."""
    bad = [poll for poll in polls if poll.unreadable]
    if bad:
        return bad[0]
    batches: Iterator[str] = (poll.batch for poll in polls if poll.batch is not None)
    return replace(
        polls[-1],
        papers=sum(poll.papers or 0 for poll in polls),
        batch=sha256("|".join(sorted(batches)).encode()).hexdigest(),
        body=None,
    )
