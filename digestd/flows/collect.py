"""Watched sources into the history. Floor 4. Entry points: :func:`collect` and :func:`retry`.

Each source that is due is asked, what it brings is read and recorded, and only then is kept that it was asked: a crash at
any point repeats a step that changes nothing the second time. What fails at one source never stops its neighbours.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeVar

from digestd.errors import DigestdError, FetchError, StoreError
from digestd.faults import crash_point
from digestd.flows.ingest import see_again
from digestd.flows.read_source import Collected, DocumentReader, Reading, Watched
from digestd.log_context import about
from digestd.model.snapshot import SnapshotRecord
from digestd.model.source import FetchOutcome, FetchState, FileFate, FileMark, OutcomeKind, Poll
from digestd.polling import current_state, is_due, reject_document, respect_ttl
from digestd.ports import Store

log = logging.getLogger(__name__)

T = TypeVar("T")
Fate = tuple[FileMark, FileFate]
Report = Callable[[Collected], None]

#: sources asked at a time; their documents, and no others, are in memory
AT_A_TIME = 16


@dataclass(frozen=True, slots=True)
class CollectOptions:
    """How a run of collecting goes."""

    now: datetime
    draw: Callable[[], float]  #: randomness of the waiting times, in [0, 1)
    ignore_due: bool = False  #: ask all sources, whether they are due or not
    report: Report = lambda _: None  #: told of each document as it comes


async def collect(store: Store, watched: Sequence[Watched], options: CollectOptions) -> int:
    """Ask each source that is due, record what is new, and return how many documents or sources failed."""
    with _thread("collect") as pool, _thread("parse") as parsing:
        run = _Run(store, options, pool, parsing)
        room = asyncio.Semaphore(AT_A_TIME)

        async def one(source: Watched) -> None:
            async with room:
                await run.guard(source, run.collect)

        async with asyncio.TaskGroup() as tasks:
            for source in watched:
                tasks.create_task(one(source))
        return run.failed


async def retry(store: Store, watched: Sequence[Watched], options: CollectOptions) -> int:
    """Read again what sources put aside because it could not be read; return how many still cannot."""
    with _thread("collect") as pool, _thread("parse") as parsing:
        run = _Run(store, options, pool, parsing)
        for source in watched:
            await run.guard(source, run.retry)
        return run.failed


def _fate(outcome: FetchOutcome, reading: Reading) -> Fate | None:
    """Return a file and what becomes of it; None where the document is none."""
    if outcome.file is None:
        return None
    if reading.problem is not None:
        return outcome.file, FileFate.QUARANTINED
    news = any(isinstance(one.result, SnapshotRecord) and not one.result.unchanged for one in reading.results)
    return outcome.file, FileFate.DONE if news else FileFate.DUPLICATE


@contextmanager
def _thread(name: str) -> Iterator[ThreadPoolExecutor]:
    """Give one thread: of two the one writes, as SQLite has one writer, and the other parses; the loop waits for neither."""
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix=name) as pool:
        yield pool


class _Run:
    """One run over all sources."""

    def __init__(
        self, store: Store, options: CollectOptions, pool: ThreadPoolExecutor, parsing: ThreadPoolExecutor
    ) -> None:
        self._store = store
        self._options = options
        self._now = options.now
        self._pool = pool
        self._parsing = parsing
        self.failed = 0

    async def guard(self, watched: Watched, work: Callable[[Watched], Awaitable[None]]) -> None:
        """Do one source's work; whatever goes wrong with it is logged and counted here."""
        name = watched.source.spec.name
        with about(source=name):
            try:
                await work(watched)
            except DigestdError as error:
                self._tell(Collected(name, watched.source.spec.location, error))
            except Exception as error:
                log.exception("source failed")
                problem = FetchError(f"{name}: {type(error).__name__}: {error}")
                self._tell(Collected(name, watched.source.spec.location, problem))

    async def collect(self, watched: Watched) -> None:
        """Ask one source, if it is due, until there is nothing more to read."""
        source = watched.source
        stored = await self._call(lambda: self._store.sources.state(source.spec.name))
        state = current_state(source.spec, stored)
        if not (self._options.ignore_due or is_due(state, self._now)):
            return
        while True:
            outcomes = await source.collect(state, now=self._now, draw=self._options.draw())
            stuck = False
            for outcome in outcomes:
                state, settled = await self._take(watched, state, outcome)
                stuck = stuck or not settled
            if not outcomes:
                await self._look_in_vain(watched, state)
            # a batch without a document is the last one, for only documents fill it
            if stuck or not source.in_batches or not any(outcome.document for outcome in outcomes):
                return

    async def retry(self, watched: Watched) -> None:
        """Read again what one source put aside."""
        source = watched.source
        stored = await self._call(lambda: self._store.sources.state(source.spec.name))
        state = current_state(source.spec, stored)
        for outcome in source.retry(now=self._now):
            await self._take(watched, state, replace(outcome, state=state))

    # -- one outcome

    async def _take(self, watched: Watched, state: FetchState, outcome: FetchOutcome) -> tuple[FetchState, bool]:
        """Record what an outcome brings; return the state kept afterwards, and whether the document was put away.

        Raises:
            StoreError: the history cannot be written: nothing is kept, and the document will come again.
        """
        name = watched.source.spec.name
        if outcome.document is None:
            return await self._take_none(watched, outcome)
        polls = await self._call(lambda: self._store.sources.polls(name))
        reader = DocumentReader(self._store, self._call, self._parse, watched, now=self._now)
        try:
            reading = await reader.read(outcome, polls, walk_open=state.walk_open)
        except StoreError:
            await self._hold_back(watched, state)
            raise
        crash_point("collect.recorded")
        kept = self._state_after(watched, state, outcome, reading)
        await self._call(lambda: self._keep(name, kept, reading.poll, _fate(outcome, reading)))
        crash_point("collect.kept")
        for one in reading.results:
            self._tell(one)
        settled = self._settle(watched, outcome, reading.problem)
        crash_point("collect.settled")
        return kept, settled

    async def _take_none(self, watched: Watched, outcome: FetchOutcome) -> tuple[FetchState, bool]:
        """Keep what a fetch without a document says."""
        name, state = watched.source.spec.name, outcome.state
        polls = await self._call(lambda: self._store.sources.polls(name))
        if outcome.kind is OutcomeKind.NOT_MODIFIED:
            page = next((poll for poll in reversed(polls) if poll.papers is not None), None)
            state = respect_ttl(state, page.ttl_s if page else None, now=self._now)
            await self._call(lambda: self._see_again(page))
        fate = (outcome.file, FileFate.QUARANTINED) if outcome.file is not None else None
        await self._call(lambda: self._keep(name, state, Poll(self._now, outcome.kind, why=outcome.why), fate))
        failed = outcome.kind is not OutcomeKind.NOT_MODIFIED
        self._tell(Collected(name, outcome.url, FetchError(outcome.why) if failed else None))
        return state, self._settle(watched, outcome, outcome.why if failed else None)

    def _see_again(self, page: Poll | None) -> None:
        """Note that a listing still is what it was, where the server says so."""
        if page is not None and page.raw is not None and self._store.history.find_topic(page.topic or "") is not None:
            see_again(self._store, page.topic or "", page.raw, self._now)

    def _settle(self, watched: Watched, outcome: FetchOutcome, problem: str | None) -> bool:
        """Have a document put away and return whether that worked; if not, it comes again, which changes nothing."""
        try:
            watched.source.settle(outcome, problem, now=self._now)
        except FetchError as error:
            self._tell(Collected(watched.source.spec.name, outcome.url, error))
            return False
        return True

    async def _look_in_vain(self, watched: Watched, state: FetchState) -> None:
        """Keep that a folder was looked into; a poll only where it could not be read before, or each look would be one."""
        name = watched.source.spec.name
        good = replace(
            state, fail_count=0, failing_since=None, last_error=None, last_ok_at=self._now, last_try_at=self._now
        )
        poll = Poll(self._now, OutcomeKind.NOT_MODIFIED) if state.failing_since is not None else None
        await self._call(lambda: self._keep(name, good, poll))

    def _state_after(self, watched: Watched, before: FetchState, outcome: FetchOutcome, reading: Reading) -> FetchState:
        if watched.source.in_batches:
            return outcome.state  # one bad file says nothing of the next
        if reading.problem is not None:
            draw = self._options.draw()
            return reject_document(watched.source.spec, before, outcome, reading.problem, now=self._now, draw=draw)
        state = respect_ttl(outcome.state, reading.poll.ttl_s, now=self._now)
        if not reading.walk_open:
            return replace(state, walk_open=False)
        # without validators the listing is sent again, so that the walk can begin
        return replace(state, walk_open=True, validated_url=None, etag=None, last_modified=None)

    async def _hold_back(self, watched: Watched, state: FetchState) -> None:
        """Try to keep at least that a server was asked, so that a history on a full disk does not ask it each minute."""
        spec = watched.source.spec
        if not watched.source.in_batches:
            held = replace(state, next_try_at=self._now + timedelta(seconds=spec.min_interval_s))
            try:
                await self._call(lambda: self._keep(spec.name, held, None))
            except StoreError:
                return

    def _keep(self, name: str, state: FetchState, poll: Poll | None, fate: Fate | None = None) -> None:
        with self._store.transaction():
            self._store.sources.put_state(name, state, now=self._now)
            if poll is not None:
                self._store.sources.add_poll(name, poll)
            if fate is not None:
                self._store.sources.put_file(name, *fate, now=self._now)

    def _tell(self, collected: Collected) -> None:
        if isinstance(collected.result, DigestdError):
            self.failed += 1
            log.warning('source failed why="%s"', collected.result)
        self._options.report(collected)

    async def _call(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._pool, copy_context().run, work)

    async def _parse(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._parsing, copy_context().run, work)
