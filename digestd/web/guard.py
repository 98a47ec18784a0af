"""What holds for every request and every answer, errors too. Floor 5. Entry points: :class:`Guard`, :class:`Limiter`.

GET never changes anything, so nothing here lets a method through that the routes do not know; forms of other sites are
refused by their Origin; bodies are small and must come in time; every answer says that nothing but our own style may load.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: nothing may load but our own style sheet, nothing may run, no other site may frame a page or take a form's data
POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)

_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "interest-cohort=()",
}
#: as ASGI has them, so that no answer encodes them anew
_RAW_HEADERS = tuple((name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in _HEADERS.items())

#: a form has a few addresses, topics and rules in it
MAX_BODY = 32 * 1024
MAX_PATH = 2048
#: for the whole of a body, however often a little of it comes
BODY_S = 10.0

#: after a body that was not read to its end no other request can come
_CLOSE = {"Connection": "close"}


class Guard:
    """Wraps the application."""

    def __init__(self, app: ASGIApp, *, base_url: str | None, one_click: str = "/unsubscribe/") -> None:
        self._app = app
        self._origin = _origin(base_url) if base_url else None
        self._one_click = one_click

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        problem = self._problem(scope, headers)
        if problem is not None:
            status, text = problem
            await PlainTextResponse(text, status_code=status)(scope, receive, _with_headers(send))
            return
        await self._app(scope, _bounded(receive), _with_headers(send))

    def _problem(self, scope: Scope, headers: Headers) -> tuple[int, str] | None:
        if len(scope.get("raw_path") or b"") + len(scope.get("query_string") or b"") > MAX_PATH:
            return 414, "the address is too long"
        if scope["method"] not in {"GET", "HEAD", "POST"}:
            return 405, "only GET, HEAD and POST are understood"
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length) > MAX_BODY:
            return 413, "the form is too large"
        if scope["method"] == "POST" and not self._may_post(scope, headers):
            return 403, "this form was sent from another site"
        return None

    def _may_post(self, scope: Scope, headers: Headers) -> bool:
        """Whether a POST comes from a page of ours; RFC 8058's comes from a mail program, without an origin or cookie."""
        origin = headers.get("origin")
        if origin is None or origin == "null":
            site = headers.get("sec-fetch-site")
            return site in {None, "same-origin", "none"} or str(scope["path"]).startswith(self._one_click)
        return _origin(origin) in {self._origin, _host_origin(scope, headers)}


def _bounded(receive: Receive) -> Receive:
    """Return a receive that ends a body which is too large or too slow, by an error that the application answers."""
    size = 0
    whole = False
    end: float | None = None

    async def bounded() -> Message:
        nonlocal size, whole, end
        if whole:
            return await receive()  # only the news that the client has gone, however long it takes
        now = asyncio.get_running_loop().time()
        end = now + BODY_S if end is None else end
        try:
            message = await asyncio.wait_for(receive(), max(0.0, end - now))
        except TimeoutError:
            raise HTTPException(408, headers=_CLOSE) from None
        size += len(message.get("body", b""))
        if size > MAX_BODY:
            raise HTTPException(413, headers=_CLOSE)
        whole = message["type"] != "http.request" or not message.get("more_body", False)
        return message

    return bounded


def _with_headers(send: Send) -> Send:
    async def with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = list(message.get("headers", ()))
            names = {name.lower() for name, _ in given}
            message["headers"] = given + [pair for pair in _RAW_HEADERS if pair[0] not in names]
        await send(message)

    return with_headers


def _origin(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    usual = {"http": 80, "https": 443}.get(parts.scheme)
    return f"{parts.scheme}://{(parts.hostname or '').lower()}" + (f":{port}" if port not in (None, usual) else "")


def _host_origin(scope: Scope, headers: Headers) -> str | None:
    host = headers.get("host", "")
    return _origin(f"{scope.get('scheme', 'http')}://{host}") if host else None


@dataclass(frozen=True, slots=True)
class Rate:
    """So many times in so many seconds."""

    times: int
    seconds: float


class Limiter:
    """Counts by key in a sliding window; forgets the oldest keys before it takes much memory."""

    def __init__(self, rate: Rate, *, most_keys: int = 50_000) -> None:
        self._rate, self._most = rate, most_keys
        self._hits: OrderedDict[str, list[float]] = OrderedDict()

    def allow(self, key: str, now: float) -> bool:
        """Return whether one more is allowed now, and count it if so."""
        hits = [hit for hit in self._hits.pop(key, ()) if hit > now - self._rate.seconds]
        allowed = len(hits) < self._rate.times
        if allowed:
            hits.append(now)
        self._hits[key] = hits
        while len(self._hits) > self._most:
            self._hits.popitem(last=False)
        return allowed


def client_net(scope: Scope, proxies: Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network]) -> str:
    """Return the network of a client: /24 of IPv4, /64 of IPv6.

    ``X-Forwarded-For`` is believed only as far as it was written by configured proxies, read from its end.
    """
    client = scope.get("client")
    chain = [str(client[0])] if client else []
    forwarded = Headers(scope=scope).get("x-forwarded-for", "")
    chain = [*(part.strip() for part in forwarded.split(",") if part.strip()), *chain]
    address = "unknown"
    for text in reversed(chain):
        try:
            found = ipaddress.ip_address(text)
        except ValueError:
            break
        mapped = getattr(found, "ipv4_mapped", None)
        found = mapped or found
        address = str(ipaddress.ip_network(f"{found}/{24 if found.version == 4 else 64}", strict=False))
        if not any(found in net for net in proxies):
            break
    return address
