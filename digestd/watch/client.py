"""The HTTP client that all watched URLs share. Floor 3; entry point is `WebClient`: connections, guard, one queue a host."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import httpcore2
import httpx2

from digestd import __version__
from digestd.model.source import SourceSpec
from digestd.watch.guard import GuardedBackend, Network

_ACCEPT = "application/atom+xml, application/rss+xml, application/json, text/html;q=0.9, text/plain;q=0.8, */*;q=0.5"
_MAX_LANES = 256


@dataclass(slots=True)
class _Lane:
    """The queue before one host."""

    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    free_at: float = 0.0  #: when the next request may start, loop time


class GuardedTransport(httpx2.AsyncBaseTransport):
    """Carries requests over a connection pool whose network is the guard; knows no proxy and no environment.

    Exceptions of httpcore2 pass through as they are.
    """

    def __init__(self, backend: httpcore2.AsyncNetworkBackend, ssl_context: ssl.SSLContext) -> None:
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=ssl_context, max_connections=64, keepalive_expiry=5.0, network_backend=backend
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send one request and return its response with the body unread."""
        answer = await self._pool.handle_async_request(
            httpcore2.Request(
                method=request.method,
                url=httpcore2.URL(
                    scheme=request.url.raw_scheme,
                    host=request.url.raw_host,
                    port=request.url.port,
                    target=request.url.raw_path,
                ),
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        return httpx2.Response(
            answer.status, headers=answer.headers, stream=_Body(answer), extensions=answer.extensions
        )

    async def aclose(self) -> None:
        """Close all connections."""
        await self._pool.aclose()


class _Body(httpx2.AsyncByteStream):
    """The body of an answer as it arrives."""

    def __init__(self, answer: httpcore2.Response) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async with aclosing(self._answer.aiter_stream()) as chunks:
            async for chunk in chunks:
                yield chunk

    async def aclose(self) -> None:
        await self._answer.aclose()


class WebClient:
    """What all fetches of a process share: connections, the guard, and one queue a host.

    Args:
        contact_url: where a server's operator can read who asks.
        allow_networks: networks that the operator opened by name.
        host_gap_s: time between two requests to one host.
        ssl_context: trusted certificates; None: the system's.
        backend: network to use instead of a guard with the system's resolver.
    """

    def __init__(
        self,
        *,
        contact_url: str,
        allow_networks: Sequence[Network] = (),
        host_gap_s: float = 1.0,
        ssl_context: ssl.SSLContext | None = None,
        backend: httpcore2.AsyncNetworkBackend | None = None,
    ) -> None:
        transport = GuardedTransport(
            backend or GuardedBackend(allow_networks=allow_networks),
            ssl_context or httpx2.create_ssl_context(trust_env=False),
        )
        headers = {
            "User-Agent": f"digestd/{__version__} (+{contact_url})",
            "Accept": _ACCEPT,
            "Accept-Encoding": "identity",
        }
        self._http = httpx2.AsyncClient(transport=transport, headers=headers, trust_env=False, follow_redirects=False)
        self._host_gap_s = host_gap_s
        self._lanes: dict[str, _Lane] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    @asynccontextmanager
    async def turn(self, host: str) -> AsyncIterator[None]:
        """Wait for a host to be free and hold it: one request at a time, with a gap between them."""
        loop = asyncio.get_running_loop()
        if len(self._lanes) > _MAX_LANES:
            self._lanes = {k: v for k, v in self._lanes.items() if v.lock.locked() or v.free_at > loop.time()}
        lane = self._lanes.setdefault(host, _Lane())
        async with lane.lock:
            await asyncio.sleep(max(0.0, lane.free_at - loop.time()))
            try:
                yield
            finally:
                lane.free_at = loop.time() + self._host_gap_s

    async def send(self, request_url: httpx2.URL, headers: Mapping[str, str], spec: SourceSpec) -> httpx2.Response:
        """Send a GET and return the response with the body unread; cookies are neither kept nor sent."""
        self._http.cookies.clear()
        request = self._http.build_request(
            "GET",
            request_url,
            headers=[(name.encode("ascii"), value.encode("latin-1")) for name, value in headers.items()],
            timeout=httpx2.Timeout(connect=spec.connect_s, read=spec.read_s, write=spec.header_s, pool=spec.connect_s),
        )
        return await self._http.send(request, stream=True)
