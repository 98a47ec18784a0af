"""An HTTP server in the daemon's loop that slow clients cannot hold. Floor 5. Entry point: :class:`WebServer`.

uvicorn waits for ever for the rest of a request and takes bodies of any size; both are bounded here: a connection has a
few seconds to say what it wants, and a few connections more than are useful are turned away at once.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol


@dataclass(frozen=True, slots=True)
class ServerLimits:
    """What a client may take."""

    request_s: float = 10  #: until a request's head is there, counted from the connection or the answer before
    idle_s: float = 5  #: between two requests of a connection
    answer_s: float = 60  #: until an answer was made and taken; a client that does not read holds a connection, too
    connections: int = 800  #: at the same time; more are answered with 503
    head_bytes: int = 16 * 1024


def _protocol(limits: ServerLimits) -> type[H11Protocol]:
    class BoundedProtocol(H11Protocol):
        """Closes a connection whose request does not come, or whose answer is not taken, in time."""

        _deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
            super().connection_made(transport)
            self._arm(limits.request_s)

        def connection_lost(self, exc: Exception | None) -> None:
            self._disarm()
            super().connection_lost(exc)

        def data_received(self, data: bytes) -> None:
            before = self.cycle
            super().data_received(data)
            if self.cycle is not None and self.cycle is not before:
                self._arm(limits.answer_s)

        def on_response_complete(self) -> None:
            super().on_response_complete()  # may begin with a request that waited behind the one answered
            self._arm(limits.request_s if self.cycle.response_complete else limits.answer_s)

        def _arm(self, seconds: float) -> None:
            self._disarm()
            self._deadline = self.loop.call_later(seconds, self._expire)

        def _disarm(self) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

        def _expire(self) -> None:
            self._deadline = None
            self.transport.abort()  # one that is closing, too: it would wait for ever for a client that does not read

    return BoundedProtocol


class _Quiet(uvicorn.Server):
    """A server that leaves signals to the daemon, and sleeps while nobody asks: uvicorn wakes ten times a second."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ending = asyncio.Event()

    async def main_loop(self) -> None:
        """Wake once a second, for the date of the answers, until the end."""
        while not await self.on_tick(0):
            with suppress(TimeoutError):
                await asyncio.wait_for(self.ending.wait(), 1)

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


class WebServer:
    """Serves an application until it is stopped."""

    def __init__(self, app: ASGIApp, sockets: list[socket.socket], limits: ServerLimits | None = None) -> None:
        limits = limits or ServerLimits()
        settings: dict[str, Any] = {
            "lifespan": "off",
            "log_config": None,
            "access_log": False,
            "server_header": False,
            "date_header": True,
            "proxy_headers": False,
            "ws": "none",
            "http": _protocol(limits),
            "timeout_keep_alive": limits.idle_s,
            "limit_concurrency": limits.connections,
            "h11_max_incomplete_event_size": limits.head_bytes,
            "timeout_graceful_shutdown": 5,
        }
        self._server = _Quiet(uvicorn.Config(app, **settings))
        self._sockets = sockets

    @property
    def address(self) -> str:
        """Where the pages are: "http://127.0.0.1:8080/"."""
        host, port = self._sockets[0].getsockname()[:2]
        return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"

    async def serve(self) -> None:
        """Serve until :meth:`stop` is called."""
        await self._server.serve(sockets=self._sockets)

    def stop(self) -> None:
        """Answer what is under way and end; a second call does nothing."""
        self._server.should_exit = True
        self._server.ending.set()


def take_over(number: int) -> socket.socket:
    """Return a listening socket that the service manager opened, by the number of its file.

    Raises:
        OSError: there is no such file, or it is no socket.
    """
    # the file stays open when this one is closed: a reload or a second server can take it over again
    listener = socket.socket(fileno=os.dup(number))
    if listener.family not in (socket.AF_INET, socket.AF_INET6):
        listener.close()
        raise OSError("expected a socket of an internet address from the service manager")
    listener.setblocking(False)
    return listener


def listen(host: str, port: int) -> socket.socket:
    """Return a listening socket; port 0 takes a free one.

    Raises:
        OSError: the address is taken or not of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(1024)
    except OSError:
        listener.close()
        raise
    listener.setblocking(False)
    return listener
