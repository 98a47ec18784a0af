"""Documents from URLs. Floor 3; entry points are `fetch` and `walk_pages`. Decides nothing: `digestd.polling` does.

One fetch is a conditional GET with its redirects followed by hand. A body is counted raw and decoded, and never decoded
by the HTTP library, whose smallest step may be a gigabyte. Every failure is an outcome with words for people.
"""

from __future__ import annotations

import asyncio
import hashlib
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import datetime

import httpcore2
import httpx2

from digestd.errors import FetchError
from digestd.model.snapshot import Document
from digestd.model.source import FailKind, FetchOutcome, FetchState, OutcomeKind, SourceSpec
from digestd.polling import Hop, Reply, current_state, is_redirect, page_urls, redirect_problem, settle
from digestd.watch.client import WebClient
from digestd.watch.decompress import CODINGS, DamagedError, Inflater, TooBigError, sniff, unpack
from digestd.watch.guard import RefusedAddressError, UnknownNameError

#: Repeated lines of these headers are one list; of all others the first line counts.
_LISTS = frozenset({"cache-control", "content-encoding"})
_DEFAULT_PORTS = {"http": 80, "https": 443}


class _FailedError(FetchError):
    """A fetch that failed, on its way to become an outcome."""

    def __init__(self, fail: FailKind, why: str) -> None:
        super().__init__(why)
        self.fail = fail


@dataclass(frozen=True, slots=True)
class _Answer:
    """One HTTP answer; the body was read only if the status is 200."""

    status: int
    headers: dict[str, str]
    body: bytes


class HttpSource:
    """A watched URL as a source.

    Args:
        spec: the source.
        client: shared by all URLs of the process.
    """

    in_batches = False
    waiting = 0

    def __init__(self, spec: SourceSpec, client: WebClient) -> None:
        self.spec = spec
        self._client = client

    async def collect(self, state: FetchState | None, *, now: datetime, draw: float) -> tuple[FetchOutcome, ...]:
        """Return the outcome of one fetch."""
        return (await fetch(self.spec, state, self._client, now=now, draw=draw),)

    def walk(
        self, first: FetchOutcome, *, now: datetime, reaches_known: Callable[[FetchOutcome], Awaitable[bool]]
    ) -> AsyncGenerator[FetchOutcome, None]:
        """Yield the outcomes of the listing's further pages until one reaches what is known."""
        return walk_pages(self.spec, first, self._client, now=now, reaches_known=reaches_known)

    def retry(self, *, now: datetime) -> Iterator[FetchOutcome]:  # noqa: ARG002  # the contract's signature
        """Yield nothing: what could not be read is asked for again."""
        return iter(())

    def settle(self, outcome: FetchOutcome, problem: str | None, *, now: datetime) -> None:
        """Do nothing: what came of a URL stands in its state."""


async def fetch(
    spec: SourceSpec, state: FetchState | None, client: WebClient, *, now: datetime, draw: float = 0.0
) -> FetchOutcome:
    """Ask a source once and return what came of it; never raises for anything the network does.

    Args:
        spec: the source.
        state: what was kept of it; None or that of another location: asked for the first time.
        client: shared by all fetches.
        now: UTC.
        draw: number in [0, 1), spreads the next try.

    Returns:
        An outcome; its document is set only for OK. Whether it is due is the caller's question (`polling.is_due`).
    """
    kept = current_state(spec, state)
    if kept.gone:
        return FetchOutcome(OutcomeKind.GONE, kept, spec.location, fail=FailKind.GONE, why=kept.last_error or "gone")
    reply, body = await _exchange(spec, kept, client)
    outcome = settle(spec, kept, reply, now=now, draw=draw)
    shown = _shown(outcome.url)
    if outcome.kind is not OutcomeKind.OK:
        return replace(outcome, url=shown)
    document = Document(
        body=body,
        origin=shown,
        media_type=reply.headers.get("content-type"),
        fetched_at=now,
        name=httpx2.URL(outcome.url).path.rpartition("/")[2] or None,
    )
    return replace(outcome, url=shown, document=document)


async def walk_pages(
    spec: SourceSpec,
    first: FetchOutcome,
    client: WebClient,
    *,
    now: datetime,
    reaches_known: Callable[[FetchOutcome], Awaitable[bool]],
) -> AsyncGenerator[FetchOutcome, None]:
    """Yield the outcomes of a listing's further pages until one reaches what is known.

    Args:
        spec: the source; without a `page_url` there are no further pages.
        first: outcome of page 1, not yielded again.
        client: shared by all fetches.
        now: UTC.
        reaches_known: whether a page shows a paper that the history has, or is the listing's end; asked of `first` and of
            each page after it was yielded.

    Yields:
        OK outcomes, and at most one that is not, the last. Nothing more after `max_pages`, or when a server that knows no
        pages sends one again; then the coverage has a gap and says so.
    """
    if first.document is None or await reaches_known(first):
        return
    seen = {_print(first)}
    for url in page_urls(spec):
        outcome = await fetch(replace(spec, location=url), None, client, now=now)
        if outcome.document is not None and _print(outcome) in seen:
            return
        seen.add(_print(outcome))
        yield outcome
        if outcome.document is None or await reaches_known(outcome):
            return


async def _exchange(spec: SourceSpec, state: FetchState, client: WebClient) -> tuple[Reply, bytes]:
    """Return how a fetch with its redirects ended, and the body."""
    url = state.url or spec.location
    seen: list[str] = []
    hops: list[Hop] = []
    left_s = spec.deadline_s
    loop = asyncio.get_running_loop()
    headers: dict[str, str] = {}
    try:
        while True:
            target = _parse_url(spec, url)
            seen.append(url)
            headers = _conditions(state, url)
            async with client.turn(target.host):
                began = loop.time()
                answer = await _ask(spec, client, target, headers, left_s=left_s)
                left_s -= loop.time() - began
            if not is_redirect(answer.status):
                break
            url = _next_url(target, answer, seen)
            hops.append(Hop(answer.status, url))
    except _FailedError as error:
        return Reply(url, hops=tuple(hops), fail=error.fail, why=str(error)), b""
    reply = Reply(
        url,
        answer.status,
        answer.headers,
        hops=tuple(hops),
        asked_conditionally=bool(headers),
        empty=not answer.body,
    )
    return reply, answer.body


async def _ask(
    spec: SourceSpec, client: WebClient, url: httpx2.URL, headers: dict[str, str], *, left_s: float
) -> _Answer:
    """Return the answer to one GET; any failure is a _FailedError."""
    shown = _shown(str(url))
    try:
        async with asyncio.timeout(left_s) as whole:
            try:
                async with asyncio.timeout(spec.connect_s + spec.header_s):
                    response = await client.send(url, headers, spec)
            except TimeoutError as error:
                if whole.expired():
                    raise
                raise _FailedError(FailKind.TIMEOUT, f"{shown} did not finish its headers in time") from error
            try:
                folded = _fold(response)
                body = await _read_body(spec, response, folded) if response.status_code == 200 else b""
                return _Answer(response.status_code, folded, body)
            finally:
                await response.aclose()
    except _FailedError:
        raise
    except TimeoutError as error:
        raise _FailedError(FailKind.TIMEOUT, f"{shown} took longer than {spec.deadline_s:g} s in all") from error
    except (FetchError, httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.ProtocolError) as error:
        raise _translate(error, shown) from error
    except (httpx2.HTTPError, httpx2.InvalidURL, httpcore2.UnsupportedProtocol, OSError) as error:
        raise _translate(error, shown) from error


async def _read_body(spec: SourceSpec, response: httpx2.Response, headers: dict[str, str]) -> bytes:
    """Return the decoded body, read in bounded steps.

    Raises:
        TooBigError: it is larger than the cap, as sent or decoded.
        DamagedError: it has a coding that we do not decode, or one that is damaged or cut.
    """
    codings = [part.strip().lower() for part in headers.get("content-encoding", "").split(",")]
    codings = [part for part in codings if part not in {"", "identity"}]
    if len(codings) > 1 or any(part not in CODINGS for part in codings):
        raise DamagedError(f"the body is packed as {', '.join(codings)!r} although we asked for none")
    cap = spec.max_bytes
    declared = headers.get("content-length", "")
    if declared.isdigit() and int(declared[:18]) > cap:
        raise TooBigError(f"the body has {int(declared[:18]):,} bytes, more than {cap:,}")
    inflater = Inflater(CODINGS[codings[0]], limit=cap) if codings else None
    raw = bytearray()
    count = 0
    async with aclosing(response.aiter_raw()) as chunks:
        async for chunk in chunks:
            count += len(chunk)
            if count > cap:
                raise TooBigError(f"the body has more than {cap:,} bytes")
            if inflater is not None:
                inflater.feed(chunk)
            else:
                raw += chunk
    if inflater is not None:
        return inflater.finish() if count else b""
    body = bytes(raw)
    packed = sniff(body)
    # a file that is stored packed ("feed.xml.gz") arrives without a content coding
    return unpack(body, packed, limit=cap) if packed else body


def _parse_url(spec: SourceSpec, url: str) -> httpx2.URL:
    """Return the URL if it is http or https on a usual port, or on one that the source's own URLs name."""
    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise _FailedError(FailKind.ADDRESS, f"{_shown(url)!r} is no usable URL: {error}") from error
    if parsed.scheme not in _DEFAULT_PORTS or not parsed.host:
        raise _FailedError(FailKind.ADDRESS, f"{_shown(url)} is refused: only http and https are fetched")
    port = _DEFAULT_PORTS[parsed.scheme] if parsed.port is None else parsed.port
    if not 0 < port < 65536:  # the C library takes the remainder, and another port than the one checked is asked
        raise _FailedError(FailKind.ADDRESS, f"{_shown(url)} is refused: there is no port {port}")
    if port not in {80, 443, *_own_ports(spec)}:
        raise _FailedError(FailKind.ADDRESS, f"{_shown(url)} is refused: port {port} is not in the source's own URL")
    return parsed


def _own_ports(spec: SourceSpec) -> Iterator[int]:
    for url in (spec.location, (spec.page_url or "").replace("{page}", "1")):
        try:
            port = httpx2.URL(url).port
        except httpx2.InvalidURL:
            continue
        if port is not None:
            yield port


def _next_url(target: httpx2.URL, answer: _Answer, seen: Sequence[str]) -> str:
    """Return where a redirect leads, if it may be followed."""
    shown = _shown(str(target))
    location = answer.headers.get("location", "").strip()
    if not location:
        raise _FailedError(FailKind.REDIRECTS, f"{shown} answered {answer.status} without saying where to")
    try:
        there = target.join(location).copy_with(fragment=None)
    except (httpx2.InvalidURL, ValueError) as error:
        raise _FailedError(FailKind.ADDRESS, f"{shown} redirects to something that is no usable URL") from error
    match redirect_problem(seen, str(there), from_scheme=target.scheme, to_scheme=there.scheme):
        case None:
            return str(there)
        case FailKind.ADDRESS:
            raise _FailedError(
                FailKind.ADDRESS,
                f"{shown} redirects to {_shown(str(there))}, which is refused: "
                f"{target.scheme} may not lead to {there.scheme or 'nothing'}",
            )
        case FailKind.REDIRECT_LOOP:
            raise _FailedError(FailKind.REDIRECT_LOOP, f"{shown} redirects in a circle")
        case kind:
            raise _FailedError(kind, f"{_shown(seen[0])} redirects more than {len(seen) - 1} times")


def _conditions(state: FetchState, url: str) -> dict[str, str]:
    """Return the conditional headers for a URL: only where the validators came from that URL."""
    if state.validated_url != url:
        return {}
    pairs = {"If-None-Match": state.etag, "If-Modified-Since": state.last_modified}
    return {name: value for name, value in pairs.items() if value is not None}


def _fold(response: httpx2.Response) -> dict[str, str]:
    """Return the headers by lower-case name, as Latin-1 text, so that opaque bytes come back as they were."""
    folded: dict[str, str] = {}
    for raw_name, raw_value in response.headers.raw:
        name, value = raw_name.decode("latin-1").lower(), raw_value.decode("latin-1")
        if name not in folded:
            folded[name] = value
        elif name in _LISTS:
            folded[name] += f", {value}"
    return folded


def _translate(error: Exception, shown: str) -> _FailedError:
    """Return a foreign or inner error as a failure with words."""
    match error:
        case RefusedAddressError():
            return _FailedError(FailKind.ADDRESS, f"{shown}: {error}")
        case UnknownNameError():
            return _FailedError(FailKind.NAME, f"{shown}: {error}")
        case TooBigError():
            return _FailedError(FailKind.TOO_BIG, f"{shown}: {error}")
        case DamagedError():
            return _FailedError(FailKind.ENCODING, f"{shown}: {error}")
        case httpcore2.ConnectTimeout():
            return _FailedError(FailKind.TIMEOUT, f"{shown}: no connection in time")
        case httpcore2.TimeoutException():
            return _FailedError(FailKind.TIMEOUT, f"{shown} fell silent")
        case httpcore2.ProtocolError():
            return _FailedError(FailKind.PROTOCOL, f"{shown} does not speak HTTP properly: {error}")
        case httpx2.InvalidURL() | httpcore2.UnsupportedProtocol():
            return _FailedError(FailKind.ADDRESS, f"{shown} is no usable URL: {error}")
    tls = _tls_cause(error)
    if tls is not None:
        reason = getattr(tls, "verify_message", None) or tls.reason or str(tls)
        return _FailedError(FailKind.TLS, f"{shown}: the TLS connection is not to be trusted: {reason}")
    return _FailedError(FailKind.CONNECT, f"{shown}: the connection failed: {error or type(error).__name__}")


def _tls_cause(error: BaseException | None) -> ssl.SSLError | None:
    """Return the TLS error behind an error; None if there is none."""
    while error is not None:
        if isinstance(error, ssl.SSLError):
            return error
        error = error.__cause__ or error.__context__
    return None


def _print(outcome: FetchOutcome) -> str:
    return hashlib.sha256(outcome.document.body if outcome.document else b"").hexdigest()


def _shown(url: str) -> str:
    """Return a URL as it may stand in a log or a document: without user and password."""
    try:
        parsed = httpx2.URL(url)
        return str(parsed.copy_with(username="", password="")) if parsed.userinfo else url
    except httpx2.InvalidURL:
        return url.rpartition("@")[2] if "@" in url else url
