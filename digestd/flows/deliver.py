"""Outbox to channel. Floor 4. Entry point: :func:`deliver`.

Claim, build, hand over, settle; each step on the disk before the next can have an effect (RELIABILITY 3.1). What was claimed
by a process that is gone is freed first: rows before the final dot are ready again, rows at it are uncertain.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from digestd.errors import RenderError
from digestd.flows.commits import GroupCommit
from digestd.model.delivery import (
    Claimed,
    Deferred,
    DeliveryState,
    Message,
    Outcome,
    Refused,
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

_UNBUILT = "the mail cannot be built from what the outbox keeps"


@dataclass(frozen=True, slots=True)
class DeliverOptions:
    """How deliveries are made."""

    owner: str  #: who claims: boot id, process and start, never the same twice
    workers: int = 10
    on_uncertain: str = "resend"  #: resend (once) or hold
    draw: Callable[[], float] = field(default=lambda: 0.5)  #: randomness of the waiting times, in [0, 1)


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

    def __init__(self, store: Store, channel: Channel, clock: Clock, options: DeliverOptions) -> None:
        self.store, self.channel, self.clock, self.options = store, channel, clock, options
        self.done = Delivered()
        self.breaker, self.faults = Breaker(), 0
        self.stop = asyncio.Event()

    async def work(self, commits: GroupCommit, queue: asyncio.Queue[Claimed]) -> None:
        while not self.stop.is_set():
            try:
                claimed = queue.get_nowait()
            except asyncio.QueueEmpty:
                return
            await self._one(commits, claimed)

    async def _one(self, commits: GroupCommit, claimed: Claimed) -> None:
        key, outbox, owner = claimed.delivery.key, self.store.outbox, self.options.owner
        message = _message(claimed)
        if message is None:
            await commits.write(lambda: self._poison(key))
            self.done.states[DeliveryState.POISON] += 1
            log.error("delivery poison: %s id=%s key=%s", _UNBUILT, key, claimed.delivery.digest_key)
            return
        sha256 = hashlib.sha256(message.body).hexdigest()

        async def before_dot() -> bool:
            return await commits.write(lambda: outbox.mark_dot(key, owner, now=self.clock.now(), sha256=sha256))

        outcome = await self.channel.send(message, before_dot=before_dot)
        await self._settle(commits, claimed, outcome)

    def _poison(self, key: int) -> None:
        """Take a row out of the way that no attempt can ever send."""
        now, outbox = self.clock.now(), self.store.outbox
        outbox.settle(key, self.options.owner, Deferred(_UNBUILT, relay_fault=True), now=now, next_at=now)
        outbox.set_state(key, DeliveryState.POISON, why=_UNBUILT, now=now)

    async def _settle(self, commits: GroupCommit, claimed: Claimed, outcome: Outcome) -> None:
        now, row = self.clock.now(), claimed.delivery
        next_at = self._next_at(claimed, outcome, now)
        state = await commits.write(
            lambda: self.store.outbox.settle(row.key, self.options.owner, outcome, now=now, next_at=next_at)
        )
        self.done.states[state] += 1
        log.info("delivery %s id=%s key=%s attempt=%s", state, row.key, row.digest_key, row.attempts)
        match outcome:
            case Deferred(relay_fault=True, pause=pause, why=why):
                self.faults += 1
                self.breaker = after_fault(self.breaker, now, self.options.draw())
                self.done.paused = why if pause else self.done.paused
                if pause or self.faults >= FAULTS_IN_A_ROW:
                    self.done.relay_down, self.done.retry_at = why, self.breaker.open_until
                    self.stop.set()
            case Sent() | Refused() | Uncertain():
                self.breaker, self.faults = after_answer(), 0
            case _:
                pass

    def _next_at(self, claimed: Claimed, outcome: Outcome, now: datetime) -> datetime | None:
        if not isinstance(outcome, Deferred):
            return None
        row = claimed.delivery
        if outcome.relay_fault:
            return after_fault(self.breaker, now, self.options.draw()).open_until
        return next_attempt(row.attempts, row.created_at or now, now, self.options.draw())


async def deliver(store: Store, channel: Channel, clock: Clock, options: DeliverOptions, *, most: int = 0) -> Delivered:
    """Hand over everything that is due, and return what became of it.

    Args:
        store: its outbox is used from one thread only, that of the group commit.
        channel: where mail goes.
        clock: the time.
        options: how.
        most: rows at most, 0 for all that is due.

    A fault of the relay ends the run early; what was claimed and not sent is ready again. A cancelled run settles what it has
    in hand first.
    """
    commits = GroupCommit(store)
    run = _Run(store, channel, clock, options)
    try:
        await _prepare(run, commits)
        claimed_total = 0
        while not run.stop.is_set():
            limit = options.workers * 2 if not most else min(options.workers * 2, most - claimed_total)
            batch = await _claim(run, commits, limit) if limit > 0 else ()
            claimed_total += len(batch)
            if not batch:
                break
            await _work_off(run, commits, batch)
    finally:
        await commits.close()
    return run.done


async def _prepare(run: _Run, commits: GroupCommit) -> None:
    now, outbox = run.clock.now(), run.store.outbox
    run.done.reaped = len(await commits.write(lambda: outbox.reap(now=now, owners=[run.options.owner])))
    if run.options.on_uncertain == "resend":
        resent = await commits.write(lambda: outbox.resend_uncertain(now=now, older_than=now - RESEND_AFTER))
        run.done.resent = len(resent)


async def _claim(run: _Run, commits: GroupCommit, limit: int) -> Sequence[Claimed]:
    now = run.clock.now()
    return await commits.write(
        lambda: run.store.outbox.claim(run.options.owner, now=now, lease_until=now + LEASE, limit=limit)
    )


async def _work_off(run: _Run, commits: GroupCommit, batch: Sequence[Claimed]) -> None:
    """Let the workers send a batch; what they leave when the relay fails is given back."""
    queue: asyncio.Queue[Claimed] = asyncio.Queue()
    for claimed in batch:
        queue.put_nowait(claimed)
    workers = [asyncio.create_task(run.work(commits, queue)) for _ in range(min(run.options.workers, len(batch)))]
    try:
        await asyncio.gather(*workers)
    finally:
        # a channel turns a cancelled hand-over into an outcome, so every worker still settles what it holds
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        while not queue.empty():
            claimed = queue.get_nowait()
            left = Deferred(run.done.relay_down or "the run was stopped", relay_fault=True)
            now = run.clock.now()
            await commits.write(
                lambda claimed=claimed, left=left, now=now: run.store.outbox.settle(  # type: ignore[misc]  # bound now
                    claimed.delivery.key, run.options.owner, left, now=now, next_at=run.done.retry_at or now
                )
            )


def _message(claimed: Claimed) -> Message | None:
    envelope = claimed.envelope
    try:
        return build_message(
            envelope.fields,
            unpack_content(claimed.content),
            sender=envelope.sender,
            recipient=envelope.recipient,
            smtputf8=envelope.smtputf8,
        )
    except (RenderError, ValueError, KeyError, TypeError, OSError) as error:
        log.debug("mail not built: %s id=%s", error, claimed.delivery.key)
        return None
