"""Lines and replies of SMTP and LMTP over one connection. Floor 3; entry: ``Wire``.

The wire reads strictly: what is not a reply of three digits ends the connection, since nobody could say to which command
the next line belongs. It never raises anything of the network: a connection that ended is a ``WireFault``.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable
from typing import cast

from digestd.model.delivery import Reply
from digestd.retry import Fault

_LINE = re.compile(rb"([2-5][0-9]{2})(?:([ -])(.*))?", re.DOTALL)
_LINE_LIMIT = 4096  # octets; RFC 5321 4.5.3.1.5 allows 512, some servers tell stories
_REPLY_LIMIT = 65536
_TEXT_LIMIT = 400


class WireFault(Exception):  # noqa: N818 - it is the outcome of a connection, not an error of the program
    """A connection gave no readable reply.

    Args:
        fault: what was seen in its place.
    """

    def __init__(self, fault: Fault) -> None:
        super().__init__(str(fault))
        self.fault = fault


class Wire(asyncio.Protocol):
    """One connection, owned by one worker at a time."""

    def __init__(self) -> None:
        self._transport: asyncio.Transport | None = None
        self._buffer = bytearray()
        self._lines: list[bytes] = []  # of a reply that is not complete
        self._code = 0  # of these lines
        self._size = 0
        self._replies: deque[tuple[Reply, tuple[str, ...]]] = deque()
        self.heard: tuple[str, ...] = ()  #: the lines of the reply that was read last
        self._waiter: asyncio.Future[None] | None = None
        self._paused = False
        self._fault: Fault | None = None

    @classmethod
    def take_over(cls, transport: asyncio.Transport) -> Wire:
        """Return a wire that owns a connection which another protocol has set up."""
        wire = cls()
        wire.connection_made(transport)
        transport.set_protocol(wire)
        if transport.is_closing():
            wire._end(Fault.LOST)
        return wire

    @property
    def is_silent(self) -> bool:
        """Whether the connection stands and nothing came that was not asked for."""
        return self._fault is None and not self._replies and not self._buffer and not self._lines

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the connection."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Cut what came into replies."""
        if self._fault is not None:
            return
        self._buffer += data
        while self._fault is None and (end := self._buffer.find(b"\n")) >= 0:
            line = bytes(self._buffer[:end]).rstrip(b"\r")
            del self._buffer[: end + 1]
            self._take_line(line)
        if len(self._buffer) > _LINE_LIMIT:
            self._end(Fault.GARBAGE)

    def eof_received(self) -> None:
        """End: a server that has closed its side has nothing more to say."""
        self._end(Fault.LOST)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        """End."""
        self._end(Fault.LOST)

    def pause_writing(self) -> None:
        """Hold the body back: the server does not keep up."""
        self._paused = True

    def resume_writing(self) -> None:
        """Let the body flow."""
        self._paused = False
        self._wake()

    def write(self, data: bytes) -> None:
        """Write; on a connection that ended, nothing."""
        if self._fault is None and self._transport is not None:
            self._transport.write(data)

    async def reply(self, timeout_s: float) -> Reply:
        """Return the next reply.

        Raises:
            WireFault: there was none in time, or none that can be read; the connection is closed.
        """
        await self._until(lambda: bool(self._replies), timeout_s)
        reply, self.heard = self._replies.popleft()
        return reply

    async def drained(self, timeout_s: float) -> None:
        """Wait until the server has taken most of what was written.

        Raises:
            WireFault: it did not in time; the connection is closed.
        """
        self.check()
        if self._paused:
            await self._until(lambda: not self._paused or bool(self._replies), timeout_s)

    def take_reply(self) -> Reply | None:
        """Return a reply that is there already, None if there is none."""
        return self._replies.popleft()[0] if self._replies else None

    def check(self) -> None:
        """Raise the WireFault of a connection that ended without a last word."""
        if self._fault is not None and not self._replies:
            raise WireFault(self._fault)

    def abort(self) -> None:
        """Cut the connection: what is not yet written never is."""
        self._end(Fault.LOST)

    def close(self) -> None:
        """Close the connection once everything is written; answers are not wanted any more."""
        if self._transport is not None:
            self._transport.close()
        if self._fault is None:
            self._fault = Fault.LOST
        self._wake()

    def _take_line(self, line: bytes) -> None:
        match = _LINE.fullmatch(line)
        code = int(match[1]) if match else 0
        self._size += len(line)
        if match is None or len(line) > _LINE_LIMIT or self._size > _REPLY_LIMIT or self._code not in (0, code):
            self._end(Fault.GARBAGE)
            return
        self._lines.append(match[3] or b"")
        self._code = code
        if match[2] == b"-":
            return
        lines = tuple(part.decode("utf-8", "replace") for part in self._lines)
        self._replies.append((Reply(code, printable(" ".join(lines))), lines))
        self._lines, self._code, self._size = [], 0, 0
        self._wake()

    async def _until(self, holds: Callable[[], bool], timeout_s: float) -> None:
        """Wait until something holds; what held before the connection ended still counts."""
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + timeout_s
        while not holds():
            if self._fault is not None:
                raise WireFault(self._fault)
            self._waiter = loop.create_future()
            alarm = loop.call_at(ends_at, self._end, Fault.TIMEOUT)
            try:
                await self._waiter
            finally:
                alarm.cancel()
                self._waiter = None

    def _end(self, fault: Fault) -> None:
        if self._fault is None:
            self._fault = fault
        if self._transport is not None:
            self._transport.abort()
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def printable(text: str) -> str:
    """Return the text of a reply on one line, shortened, without what could hurt a terminal or a log."""
    return "".join(char if char.isprintable() else " " for char in text[:_TEXT_LIMIT]).strip()
