"""Outbox to channel. Floor 4. Entry point: :func:`deliver`.

Claim, build, hand over, settle; each step on the disk before the next can have an effect (RELIABILITY 3.1). What was claimed
by a process that is gone is freed first: rows before the final dot are ready again, rows at it are uncertain.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache

from digestd.addresses import channel_name
from digestd.errors import NoRoomError, RenderError
from digestd.faults import crash_point
from digestd.flows.commits import GroupCommit
from digestd.log_context import about
from digestd.model.delivery import (
    Claimed,
    Deferred,
    DeliveryState,
    Message,
    Outcome,
    Refused,
    Reply,
    Sent,
    Uncertain,
)
from digestd.ports import Channel, Clock, Store
from digestd.render.outgoing import build_message, unpack_content
from digestd.retry import Breaker, after_answer, after_fault, next_attempt

log = logging.getLogger(__name__)

#: longer than the longest that one hand-over can take, so that a lease never ends under a living worker
LEASE = timedelta(minutes=20)

#: how long an uncertain row waits before it is sent a second time: greylisting and slow relays are over by then
RESEND_AFTER = timedelta(minutes=15)


#: relays close a connection now and then; so many faults and no answer between them mean that it is down
FAULTS_IN_A_ROW = 3

#: attempts that a bug in a channel may end before the row waits for a person
MOST_BUGS = 3

#: bodies kept unpacked: rows that are due together share a few
_unpacked = lru_cache(maxsize=32)(unpack_content)

_UNBUILT = "the mail cannot be built from what the outbox keeps"


@dataclass(frozen=True, slots=True)
class DeliverOptions:
    """How deliveries are made."""

    owner: str  #: who claims: boot id, process and start, never the same twice
    workers: int = 10
    on_uncertain: str = "resend"  #: resend (once) or hold
    draw: Callable[[], float] = field(default=lambda: 0.5)  #: randomness of the waiting times, in [0, 1)
    can_record: Callable[[], bool] = field(default=lambda: True)  #: whether the disk has room for what becomes of mails


@dataclass(slots=True)
class Delivered:
    """What a run of delivering did."""

    states: Counter[DeliveryState] = field(default_factory=Counter)
    reaped: int = 0
    resent: int = 0
    paused: str = ""  #: why nothing more is sent until a person has mended it
    relay_down: str = ""  #: why the relay was left alone
    retry_at: datetime | None = None  #: when to come again after the relay failed


class _Run:
    """One run: what its workers share."""

    def __init__(
        self, commits: GroupCommit, store: Store, channel: Channel, clock: Clock, options: DeliverOptions
    ) -> None:
        self.commits, self.outbox, self.channel, self.clock, self.options = (
            commits,
            store.outbox,
            channel,
            clock,
            options,
        )
        self.done = Delivered()
        self.breaker, self.faults = Breaker(), 0
        self.stop = asyncio.Event()
        self.queue: deque[Claimed] = deque()
        self.left: int | None = None  #: rows that may still be claimed; None: all
        self.at_dot: set[asyncio.Task[None]] = set()  #: workers whose message may be taken any moment
        self._is_dry, self._claiming = False, asyncio.Lock()
        self._was_answered, self._last_fault = False, ""

    async def prepare(self) -> None:
        """Free what was left behind, and see to what is uncertain."""
        now, outbox = self.clock.now(), self.outbox
        self.done.reaped = len(await self.commits.write(lambda: outbox.reap(now=now, owners=[self.options.owner])))
        if self.options.on_uncertain == "resend":
            older = now - RESEND_AFTER
            resent = await self.commits.write(lambda: outbox.resend_uncertain(now=now, older_than=older))
            self.done.resent = len(resent)

    async def work(self) -> None:
        """Send one row after the other until none is due or the run is stopped."""
        while not self.stop.is_set():
            if self.queue:
                claimed = self.queue.popleft()
                with about(subscription=claimed.envelope.scope):
                    await self._one(claimed)
            elif self._is_dry:
                return
            else:
                async with self._claiming:  # one worker claims for all
                    if not self.queue and not self._is_dry and not self.stop.is_set():
                        await self._claim()

    async def _claim(self) -> None:
        limit = self.options.workers * 2
        limit = limit if self.left is None else min(limit, self.left)
        if limit and not await asyncio.to_thread(self.options.can_record):
            raise NoRoomError("mail is held: expected room on the disk for what becomes of it, found none")
        crash_point("claim.before")
        batch = await self.commits.write(lambda: self._claimed(limit)) if limit else ()
        crash_point("claim.done")
        self._is_dry = not batch
        self.left = None if self.left is None else self.left - len(batch)

    def _claimed(self, limit: int) -> Sequence[Claimed]:
        now = self.clock.now()
        batch = self.outbox.claim(self.options.owner, now=now, lease_until=now + LEASE, limit=limit)
        crash_point("claim.open")
        self.queue.extend(batch)  # here, so that they are given back even if nobody waits for them any more
        return batch

    async def _one(self, claimed: Claimed) -> None:
        key, owner = claimed.delivery.key, self.options.owner
        message = _message(claimed)
        if message is None:
            await self._poison(claimed, _UNBUILT)
            return
        sha256 = hashlib.sha256(message.body).hexdigest()
        task = asyncio.current_task()
        assert task is not None

        async def before_dot() -> bool:
            crash_point("dot.before")
            is_ours = await self.commits.write(
                lambda: self.outbox.mark_dot(key, owner, now=self.clock.now(), sha256=sha256)
            )
            crash_point("dot.done")
            if is_ours:
                self.at_dot.add(task)
            return is_ours

        try:
            outcome = await self.channel.send(message, before_dot=before_dot)
        except Exception as error:  # a bug must not stop the other mails, nor send this one twice
            log.exception("channel failed: id=%s", key)
            why = f"the channel failed: {type(error).__name__}"
            outcome = Uncertain(why) if task in self.at_dot else Deferred(why)
            if isinstance(outcome, Deferred) and claimed.delivery.attempts >= MOST_BUGS:
                await self._poison(claimed, why)
                return
        finally:
            self.at_dot.discard(task)
        crash_point("result.read")
        await self._settle(claimed, outcome)

    async def _poison(self, claimed: Claimed, why: str) -> None:
        """Take a row out of the way that no attempt can ever send."""
        key, outbox, owner = claimed.delivery.key, self.outbox, self.options.owner

        def write() -> None:
            now = self.clock.now()
            state = outbox.settle(key, owner, Deferred(why, relay_fault=True), now=now, next_at=now)
            if state is DeliveryState.READY:
                outbox.set_state(key, DeliveryState.POISON, why=why, now=now)

        await self.commits.write(write)
        self.done.states[DeliveryState.POISON] += 1
        log.error("delivery poison: %s id=%s key=%s", why, key, claimed.delivery.digest_key)

    async def _settle(self, claimed: Claimed, outcome: Outcome) -> None:
        now, row = self.clock.now(), claimed.delivery
        next_at = self._next_at(claimed, outcome, now)

        def write() -> DeliveryState:
            state = self.outbox.settle(row.key, self.options.owner, outcome, now=now, next_at=next_at)
            crash_point("result.open")
            self.done.states[state] += 1
            return state

        state = await self.commits.write(write)
        crash_point("result.done")
        log.info("delivery %s id=%s key=%s attempt=%s", state, row.key, row.digest_key, row.attempts)
        if channel_name(row.recipient) is not None:
            return  # what a channel of the settings answers says nothing about the relay
        match outcome:
            case Deferred(relay_fault=True, pause=pause, why=why):
                self._relay_failed(why, now, pause=pause)
            case Sent() | Refused() | Uncertain() | Deferred(reply=Reply()):
                self.breaker, self.faults, self._was_answered = after_answer(), 0, True
            case _:
                pass

    def _relay_failed(self, why: str, now: datetime, *, pause: bool) -> None:
        self.faults += 1
        self.breaker = after_fault(self.breaker, now, self.options.draw())
        self.done.paused = why if pause else self.done.paused
        self._last_fault = why
        if pause or self.faults >= FAULTS_IN_A_ROW:
            self.done.relay_down, self.done.retry_at = why, self.breaker.open_until
            self.stop.set()

    def _next_at(self, claimed: Claimed, outcome: Outcome, now: datetime) -> datetime | None:
        if not isinstance(outcome, Deferred):
            return None
        row = claimed.delivery
        if outcome.relay_fault:
            return after_fault(self.breaker, now, self.options.draw()).open_until
        again = next_attempt(row.attempts, row.created_at or now, now, self.options.draw())
        if again is None or outcome.wait_s is None:
            return again
        return max(again, now + timedelta(seconds=outcome.wait_s))

    def conclude(self) -> Delivered:
        """Return what the run did; where nothing but faults was seen, however few, the relay is down."""
        if self._last_fault and not self._was_answered:
            self.done.relay_down, self.done.retry_at = self._last_fault, self.breaker.open_until
        return self.done

    async def give_back(self) -> None:
        """Make ready again what was claimed and never begun."""
        left = Deferred(self.done.relay_down or "the run was stopped", relay_fault=True)

        def write() -> None:
            now = self.clock.now()
            while self.queue:
                key = self.queue.popleft().delivery.key
                self.outbox.settle(key, self.options.owner, left, now=now, next_at=self.done.retry_at or now)

        if self.queue:
            await self.commits.write(write)


async def deliver(store: Store, channel: Channel, clock: Clock, options: DeliverOptions, *, most: int = 0) -> Delivered:
    """Hand over everything that is due, and return what became of it.

    Args:
        store: its outbox is used from one thread only, that of the group commit.
        channel: where mail goes; it stays open.
        clock: the time.
        options: how.
        most: rows at most, 0 for all that is due.

    A fault of the relay ends the run early; what was claimed and not sent is ready again. A cancelled run begins nothing
    more, gives up what cannot have been taken yet, waits for the answers to what can, and settles all of it; one that is
    cancelled again does not wait.
    """
    commits = GroupCommit(store)
    run = _Run(commits, store, channel, clock, options)
    run.left = most or None
    try:
        await run.prepare()
        workers = [asyncio.create_task(run.work()) for _ in range(options.workers)]
        try:
            await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)  # leaves them alone when it is cancelled
        finally:
            run.stop.set()
            errors = await _let_finish(run, workers)
            await run.give_back()
        for error in errors:
            raise error
    finally:
        await commits.close()
    return run.conclude()


async def _let_finish(run: _Run, workers: Sequence[asyncio.Task[None]]) -> list[BaseException]:
    """Wait for all workers and return their errors; those that are not at the final dot are told to give up first."""
    # a channel turns a cancelled hand-over into an outcome, so every worker still settles what it holds
    for worker in workers:
        if worker not in run.at_dot:
            worker.cancel()
    while pending := {worker for worker in workers if not worker.done()}:
        try:
            await asyncio.wait(pending)
        except asyncio.CancelledError:
            for worker in pending:
                worker.cancel()
    return [error for worker in workers if not worker.cancelled() and (error := worker.exception()) is not None]


def _message(claimed: Claimed) -> Message | None:
    envelope = claimed.envelope
    try:
        return build_message(
            envelope.fields,
            _unpacked(claimed.content),
            sender=envelope.sender,
            recipient=envelope.recipient,
            smtputf8=envelope.smtputf8,
        )
    except (RenderError, ValueError, KeyError, TypeError, OSError) as error:
        log.debug("mail not built: %s id=%s", error, claimed.delivery.key)
        return None
