"""Connections to one relay, each owned by one hand-over at a time, within what the relay is asked to bear. Floor 3.

Entry: ``Pool.hand_over``. A connection goes back to the pool only in a known state; after a timeout, a cancelled call or an
unreadable reply it is gone. Courtesies (QUIT) run beside the work, so that nobody waits for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from digestd.model.delivery import Deferred, Message, Outcome
from digestd.retry import Fault
from digestd.send.envelope import unsendable
from digestd.send.settings import Limits
from digestd.send.smtp_session import Session

OpenSession = Callable[[], Awaitable[Session | Deferred]]


@dataclass(slots=True)
class _Domain:
    """Hand-overs to one domain, running and waiting."""

    gate: asyncio.Semaphore
    users: int = 0


class Pool:
    """Connections to one relay; made when they are needed, closed when they idle.

    Args:
        open_session: makes a connection, or says why there is none.
        limits: what the relay is asked to bear.
    """

    def __init__(self, open_session: OpenSession, limits: Limits) -> None:
        self._open_session = open_session
        self._limits = limits
        self._gate = asyncio.Semaphore(limits.connections)
        self._idle: dict[Session, asyncio.TimerHandle] = {}  # the one used last is last
        self._domains: dict[str, _Domain] = {}
        self._next_turn = 0.0
        self._farewells: set[asyncio.Task[None]] = set()
        self._is_closed = False

    async def hand_over(self, message: Message, before_dot: Callable[[], Awaitable[bool]]) -> Outcome:
        """Hand over one message when a connection and the limits allow; as ``Channel.send``."""
        refused = unsendable(message)
        if refused is not None:
            return refused
        try:
            # The domain's gate comes first: who waits there must not keep a connection from the others.
            async with self._domain(message.recipient), self._gate:
                await self._turn()
                return await self._over_a_session(message, before_dot)
        except asyncio.CancelledError:
            # Before a session has begun: from then on it answers for itself.
            return Deferred(str(Fault.CANCELLED), relay_fault=True)

    async def close(self) -> None:
        """Take leave on all connections; those at work follow when they are done."""
        self._is_closed = True
        for session in tuple(self._idle):
            self._retire(session)
        while self._farewells:
            await asyncio.wait(tuple(self._farewells))

    async def _over_a_session(self, message: Message, before_dot: Callable[[], Awaitable[bool]]) -> Outcome:
        reused = await self._idle_session()
        is_reused = reused is not None
        session = reused or await self._open_session()
        while True:
            if isinstance(session, Deferred):
                return session
            try:
                outcome = await session.hand_over(message, before_dot)
            finally:
                self._give_back(session)
            if not (is_reused and session.was_stale):
                return outcome
            # The server had closed an idle connection and we could not know it: that says nothing of the relay.
            is_reused = False
            session = await self._open_session()

    async def _idle_session(self) -> Session | None:
        """Return a connection that is ready, the one used last, so that the others may idle out."""
        while self._idle:
            session, alarm = self._idle.popitem()
            alarm.cancel()
            try:
                if await session.refresh():
                    return session
            except BaseException:
                session.abort()
                raise
            session.abort()
        return None

    def _give_back(self, session: Session) -> None:
        if not session.is_usable:
            session.abort()
        elif self._is_closed or session.handed_over >= self._limits.per_connection:
            self._bid_farewell(session)
        else:
            loop = asyncio.get_running_loop()
            self._idle[session] = loop.call_later(self._limits.idle_s, self._retire, session)

    def _retire(self, session: Session) -> None:
        self._idle.pop(session).cancel()
        self._bid_farewell(session)

    def _bid_farewell(self, session: Session) -> None:
        task = asyncio.get_running_loop().create_task(session.bye())
        self._farewells.add(task)  # the loop itself keeps only a weak reference
        task.add_done_callback(self._farewells.discard)

    async def _turn(self) -> None:
        """Wait until the relay may be given another message; turns are spread evenly over the minute."""
        if self._limits.per_minute is None:
            return
        now = asyncio.get_running_loop().time()
        turn = max(now, self._next_turn)
        self._next_turn = turn + 60 / self._limits.per_minute
        if turn > now:
            await asyncio.sleep(turn - now)

    @asynccontextmanager
    async def _domain(self, recipient: str) -> AsyncIterator[None]:
        """Wait until the recipient's domain may be given another message."""
        if self._limits.per_domain is None:
            yield
            return
        name = recipient.rpartition("@")[2].lower()
        domain = self._domains.setdefault(name, _Domain(asyncio.Semaphore(self._limits.per_domain)))
        domain.users += 1
        try:
            async with domain.gate:
                yield
        finally:
            domain.users -= 1
            if not domain.users:  # readers' domains are many; only those in use are kept
                del self._domains[name]
