"""Watched URLs against real servers on loopback: each misbehaviour has its outcome, and refused addresses see no connection.

All names resolve to a public address, and an injected connector leads that address to a server on loopback: so loopback
itself stays refused, as it is in the field.
"""

from __future__ import annotations

import asyncio
import gzip
import ipaddress
import resource
import ssl
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import httpcore2
import pytest
import trustme
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from digestd.model.source import FailKind, FetchOutcome, FetchState, OutcomeKind, SourceSpec
from digestd.watch import SOURCES
from digestd.watch.client import WebClient
from digestd.watch.guard import GuardedBackend
from digestd.watch.http import fetch, walk_pages

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

NOW = datetime(2026, 9, 30, 6, 0, tzinfo=UTC)
PUBLIC = "93.184.215.14"
URL = "http://papers.example/reef.xml"
NO_TRUST = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # loading the system's certificates takes longer than most tests
FEED = b"<rss version='2.0'><channel><title>Reef Sound</title></channel></rss>"
SPEC = SourceSpec(
    "reef", URL, max_bytes=100_000, deadline_s=5.0, connect_s=1.0, header_s=1.0, read_s=1.0, min_interval_s=0
)
HASTY = replace(SPEC, deadline_s=1.0, connect_s=0.2, header_s=0.2, read_s=0.4)
NAMES = {
    "papers.example": [PUBLIC],
    "reef.example": [PUBLIC],
    "inside.example": ["169.254.169.254"],
    "home.example": [PUBLIC, "127.0.0.1"],
}

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Route(httpcore2.AsyncNetworkBackend):
    """Leads the public address to a port on loopback and takes down every address asked for."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.asked: list[tuple[str, int]] = []
        self._network = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  # the signature is httpcore2's
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to loopback only."""
        self.asked.append((host, port))
        assert host == PUBLIC
        return await self._network.connect_tcp("127.0.0.1", self.port, timeout, local_address, socket_options)


async def names(host: str, port: int) -> Sequence[str]:
    """Resolve our names; an address is itself."""
    return NAMES.get(host, [host])


@asynccontextmanager
async def web(
    port: int, *, trust: ssl.SSLContext | None = None, gap_s: float = 0.0
) -> AsyncIterator[tuple[WebClient, Route]]:
    """Open a client whose public address is this port on loopback."""
    route = Route(port)
    backend = GuardedBackend(resolver=names, connector=route)
    contact = "https://digestd.example/about"
    async with WebClient(
        contact_url=contact, host_gap_s=gap_s, ssl_context=trust or NO_TRUST, backend=backend
    ) as client:
        yield client, route


@asynccontextmanager
async def raw_server(serve: Serve, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Run a server that answers as ``serve`` does; yields its port."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await reader.readuntil(b"\r\n\r\n")
            await serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client has had enough, as it should
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def plain(body: bytes, *headers: str, status: str = "200 OK") -> Serve:
    """Return a server of one answer with its length."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers, "", ""]
        writer.write("\r\n".join(lines).encode("latin-1") + body)
        await writer.drain()

    return serve


async def ask(serve: Serve, spec: SourceSpec = SPEC) -> FetchOutcome:
    """Return the outcome of one fetch from a raw server."""
    async with raw_server(serve) as port, web(port) as (client, _):
        return await fetch(spec, None, client, now=NOW)


async def ask_server(
    server: HTTPServer, spec: SourceSpec = SPEC, state: FetchState | None = None, *, now: datetime = NOW
) -> tuple[FetchOutcome, Route]:
    """Return the outcome of one fetch from the scripted server, and who was connected to."""
    async with web(server.port) as (client, route):
        return await fetch(spec, state, client, now=now), route


@pytest.fixture(scope="module")
def running_server() -> Iterator[HTTPServer]:
    """Run a scripted server on loopback; stopping one takes half a second, so all tests share it."""
    with HTTPServer("127.0.0.1", 0) as running:
        yield running


@pytest.fixture
def server(running_server: HTTPServer) -> HTTPServer:
    """Return the scripted server without a script."""
    running_server.clear()
    return running_server


def requests(server: HTTPServer) -> list[Request]:
    """Return the requests that arrived, in order."""
    return [request for request, _ in server.log]


async def test_fetch_document_arrives_as_sent(server: HTTPServer) -> None:
    """A 200 is a document with its origin, time and the media type as the server said it, a wrong charset too."""
    body = "é".encode("latin-1")
    server.expect_request("/reef.xml").respond_with_data(body, content_type="text/xml; charset=utf-8")
    found, _ = await ask_server(server)
    assert found.document is not None
    assert (body, URL, NOW) == (found.document.body, found.document.origin, found.document.fetched_at)
    assert ("text/xml; charset=utf-8", "reef.xml") == (found.document.media_type, found.document.name)
    assert (OutcomeKind.OK, "", 200, None) == (found.kind, found.why, found.status, found.fail)


async def test_fetch_says_who_asks_and_for_no_packing(server: HTTPServer) -> None:
    """Requests carry an honest name with an address, ask for no content coding, and send no cookie back."""
    answer = Response(FEED, headers={"Set-Cookie": "id=1; Path=/"})
    server.expect_request("/reef.xml").respond_with_response(answer)
    async with web(server.port) as (client, _):
        for _ in range(2):
            await fetch(SPEC, None, client, now=NOW)
    for request in requests(server):
        assert request.headers["User-Agent"].startswith("digestd/")
        assert "(+https://digestd.example/about)" in request.headers["User-Agent"]
        assert ("identity", None) == (request.headers["Accept-Encoding"], request.headers.get("Cookie"))
        assert "papers.example" == request.headers["Host"]


async def test_fetch_not_modified_after_validators(server: HTTPServer) -> None:
    """Both validators go back byte by byte as they came, and a 304 is no document and no failure."""
    etag, modified = 'W/"caf\xe9"', "Tue, 29 Sep 2026 01:02:03 GMT"

    def answer(request: Request) -> Response:
        if request.headers.get("If-None-Match") == etag and request.headers.get("If-Modified-Since") == modified:
            return Response(status=304)
        return Response(FEED, headers={"ETag": etag, "Last-Modified": modified})

    server.expect_request("/reef.xml").respond_with_handler(answer)
    first, _ = await ask_server(server)
    second, _ = await ask_server(server, state=first.state)
    assert [OutcomeKind.OK, OutcomeKind.NOT_MODIFIED] == [first.kind, second.kind]
    assert (None, etag) == (second.document, second.state.etag)


async def test_fetch_permanent_redirect_chain_is_remembered(server: HTTPServer) -> None:
    """A chain of 301 and 308 is followed, and after three equal answers the end of it is asked directly."""
    server.expect_request("/reef.xml").respond_with_data(status=301, headers={"Location": "/moved.xml"})
    server.expect_request("/moved.xml").respond_with_data(
        status=308, headers={"Location": "http://reef.example/home.xml"}
    )
    server.expect_request("/home.xml").respond_with_data(FEED)
    state: FetchState | None = None
    moves: list[str | None] = []
    for _ in range(4):
        found, _ = await ask_server(server, state=state)
        assert (OutcomeKind.OK, "http://reef.example/home.xml") == (found.kind, found.url)
        state = found.state
        moves.append(found.moved_to)
    assert [None, None, "http://reef.example/home.xml", None] == moves
    assert ["/reef.xml", "/moved.xml", "/home.xml"] * 3 + ["/home.xml"] == [r.path for r in requests(server)]


async def test_fetch_validators_go_only_where_they_came_from(server: HTTPServer) -> None:
    """Behind a redirect the validators are sent to the URL that gave them, not to the one that redirects."""
    server.expect_request("/reef.xml").respond_with_data(status=302, headers={"Location": "/now.xml"})
    server.expect_request("/now.xml").respond_with_data(FEED, headers={"ETag": '"1"'})
    first, _ = await ask_server(server)
    await ask_server(server, state=first.state)
    sent = [request.headers.get("If-None-Match") for request in requests(server)]
    assert [None, None, None, '"1"'] == sent


async def test_fetch_redirect_loop_is_found(server: HTTPServer) -> None:
    """A circle of redirects ends at its first repeat."""
    server.expect_request("/reef.xml").respond_with_data(status=301, headers={"Location": "/b"})
    server.expect_request("/b").respond_with_data(status=302, headers={"Location": URL + "#top"})
    found, _ = await ask_server(server)
    assert (OutcomeKind.FAILED, FailKind.REDIRECT_LOOP) == (found.kind, found.fail)
    assert 2 == len(server.log)


async def test_fetch_endless_redirects_are_counted(server: HTTPServer) -> None:
    """Redirects to ever new places end after three."""

    def onward(request: Request) -> Response:
        return Response(status=302, headers={"Location": f"/{len(server.log)}"})

    server.expect_request("/reef.xml").respond_with_handler(onward)
    for step in range(6):
        server.expect_request(f"/{step}").respond_with_handler(onward)
    found, _ = await ask_server(server)
    assert (FailKind.REDIRECTS, 4) == (found.fail, len(server.log))


@pytest.mark.parametrize("location", [None, "", "http://[", "http://[::1", "//", "http://"])
async def test_fetch_redirect_to_nowhere_is_a_failure(location: str | None) -> None:
    """A redirect without a usable target is an outcome, never an exception."""
    headers = [] if location is None else [f"Location: {location}"]
    found = await ask(plain(b"", *headers, status="301 Moved Permanently"))
    assert found.fail in {FailKind.REDIRECTS, FailKind.ADDRESS, FailKind.REDIRECT_LOOP}
    assert found.why


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1/",
        "http://127.0.0.1:80/admin",
        "http://169.254.169.254/latest/meta-data/",
        "http://inside.example/",
        "http://home.example/",
        "http://[::1]/",
        "http://[::ffff:127.0.0.1]/",
        "http://[64:ff9b::7f00:1]/",
        "http://2130706433/",
        "http://0x7f.1/",
        "http://127.1/",
        "http://0177.0.0.1/",
        "http://①②⑦.⓪.⓪.①/",
        "//10.0.0.1/",
        "http://user:secret@10.0.0.1/",
        "http://reef.example:8080/",
        "http://reef.example:22/",
        "file:///etc/passwd",
        "gopher://reef.example/",
        "ftp://reef.example/",
        "javascript:alert(1)",
    ],
)
async def test_fetch_redirect_inside_is_refused_before_any_connection(location: str) -> None:
    """A redirect to an address, port or scheme off the public web is refused, and nothing is connected for it."""
    serve = plain(b"", "Location: " + location.encode().decode("latin-1"), status="302 Found")
    async with raw_server(serve) as port, web(port) as (client, route):
        found = await fetch(SPEC, None, client, now=NOW)
    assert (OutcomeKind.REFUSED, FailKind.ADDRESS) == (found.kind, found.fail)
    assert [(PUBLIC, 80)] == route.asked
    assert "secret" not in found.why


@pytest.mark.parametrize(
    "location",
    [
        "http://127.0.0.1/",
        "http://localhost.example@10.0.0.1/",
        "http://inside.example/",
        "file:///etc/passwd",
        "x",
        "",
    ],
)
async def test_fetch_configured_address_is_guarded_too(location: str) -> None:
    """The source's own URL gets no other treatment than a redirect."""
    async with web(1) as (client, route):
        found = await fetch(replace(SPEC, location=location), None, client, now=NOW)
    assert (OutcomeKind.REFUSED, []) == (found.kind, route.asked)


@pytest.mark.parametrize(
    "location", ["http://[", "http://me:secret@[::1", "http://papers.example:99999/", "http://papers.example:0/"]
)
async def test_fetch_unusable_url_is_refused_in_words(location: str) -> None:
    """A URL that cannot be read is an outcome without its password, never an exception."""
    async with web(1) as (client, route):
        found = await fetch(replace(SPEC, location=location), None, client, now=NOW)
    assert (OutcomeKind.REFUSED, [], False) == (found.kind, route.asked, "secret" in found.why + found.url)


async def test_fetch_repeated_list_headers_are_one_list() -> None:
    """Two lines of Cache-Control count together, two ETags do not."""
    found = await ask(plain(FEED, "Cache-Control: public", "Cache-Control: max-age=7200", 'ETag: "1"', 'ETag: "2"'))
    assert (NOW + timedelta(hours=2), '"1"') == (found.state.next_try_at, found.state.etag)


async def test_fetch_connection_that_takes_too_long_is_a_timeout() -> None:
    """A connection that is never made ends with the time to connect."""

    class Never(Route):
        """Connects never."""

        async def connect_tcp(self, *args: object, **kwargs: object) -> httpcore2.AsyncNetworkStream:  # noqa: ARG002  # any call
            """Say that the time is over."""
            raise httpcore2.ConnectTimeout

    backend = GuardedBackend(resolver=names, connector=Never(1))
    async with WebClient(contact_url="https://digestd.example/", ssl_context=NO_TRUST, backend=backend) as client:
        found = await fetch(SPEC, None, client, now=NOW)
    assert (FailKind.TIMEOUT, f"{URL}: no connection in time") == (found.fail, found.why)


async def test_fetch_stored_redirect_is_guarded_too() -> None:
    """A URL that was remembered is checked at each fetch like any other."""
    state = FetchState(location=URL, url="http://inside.example/feed")
    async with web(1) as (client, route):
        found = await fetch(SPEC, state, client, now=NOW)
    assert (OutcomeKind.REFUSED, []) == (found.kind, route.asked)


async def test_fetch_gone_is_asked_once(server: HTTPServer) -> None:
    """After 410 no request is sent any more."""
    server.expect_request("/reef.xml").respond_with_data(status=410)
    first, _ = await ask_server(server)
    again, route = await ask_server(server, state=first.state)
    assert [OutcomeKind.GONE] * 2 == [first.kind, again.kind]
    assert (1, []) == (len(server.log), route.asked)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("value", ["5400", "Wed, 30 Sep 2026 07:30:00 GMT"])
async def test_fetch_busy_server_names_the_next_try(status: int, value: str) -> None:
    """Retry-After in seconds and as a date both give the instant of the next try."""
    headers = [f"Retry-After: {value}", "Date: Wed, 30 Sep 2026 06:00:00 GMT"]
    found = await ask(plain(b"later", *headers, status=f"{status} Busy"))
    assert (OutcomeKind.FAILED, FailKind.BUSY) == (found.kind, found.fail)
    assert NOW + timedelta(minutes=90) == found.state.next_try_at


async def test_fetch_error_then_good(server: HTTPServer) -> None:
    """A server error backs off, keeps the validators, and is forgotten with the next good answer."""
    server.expect_ordered_request("/reef.xml").respond_with_data(FEED, headers={"ETag": '"1"'})
    server.expect_ordered_request("/reef.xml").respond_with_data(status=500)
    server.expect_ordered_request("/reef.xml").respond_with_data(FEED, headers={"ETag": '"2"'})
    state, kinds, fails = None, [], []
    for _ in range(3):
        found, _ = await ask_server(server, state=state)
        state = found.state
        kinds.append(found.kind)
        fails.append(state.fail_count)
    assert ([OutcomeKind.OK, OutcomeKind.FAILED, OutcomeKind.OK], [0, 1, 0]) == (kinds, fails)
    assert '"1"' == requests(server)[2].headers["If-None-Match"]


async def dribble_headers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send one header byte now and then, for ever."""
    writer.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    for _ in range(1000):
        writer.write(b"a")
        await writer.drain()
        await asyncio.sleep(0.02)


async def dribble_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send one body byte now and then, never silent for long."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    for _ in range(1000):
        writer.write(b"a")
        await writer.drain()
        await asyncio.sleep(0.02)


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Say nothing until the client goes."""
    await reader.read()


async def silent_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Fall silent within the body."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
    await reader.read()


async def endless_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send chunks as fast as they are taken, without an end."""
    writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(100_000):
        writer.write(b"1000\r\n" + bytes(4096) + b"\r\n")
        await writer.drain()


async def cut_body(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Promise more than is sent."""
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n<rss>")


async def endless_header(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Send a header of 300 kB."""
    writer.write(b"HTTP/1.1 200 OK\r\nX-Long: " + b"a" * 300_000 + b"\r\n\r\n")
    await writer.drain()


async def no_http(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Speak something else."""
    writer.write(b"220 mail.example ESMTP\r\n")


async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Close without a word."""


@pytest.mark.parametrize(
    ("serve", "fail", "words"),
    [
        (dribble_headers, FailKind.TIMEOUT, "headers"),
        (silent, FailKind.TIMEOUT, ""),
        (dribble_body, FailKind.TIMEOUT, "took longer than 1 s in all"),
        (silent_body, FailKind.TIMEOUT, "fell silent"),
        (endless_body, FailKind.TOO_BIG, "more than 100,000"),
        (plain(bytes(100_001)), FailKind.TOO_BIG, "100,001 bytes"),
        (cut_body, FailKind.PROTOCOL, "HTTP"),
        (endless_header, FailKind.PROTOCOL, "HTTP"),
        (no_http, FailKind.PROTOCOL, "HTTP"),
        (hang_up, FailKind.PROTOCOL, "disconnected"),
        (plain(b""), FailKind.EMPTY, "empty"),
    ],
)
@pytest.mark.timeout(10)
async def test_fetch_misbehaviour_is_a_failure_of_its_kind(serve: Serve, fail: FailKind, words: str) -> None:
    """Each way to misbehave ends soon, with its kind, words for people, and nothing to read."""
    began = asyncio.get_running_loop().time()
    found = await ask(serve, HASTY if fail is FailKind.TIMEOUT else SPEC)
    assert (OutcomeKind.FAILED, fail, None) == (found.kind, found.fail, found.document)
    assert words in found.why
    assert asyncio.get_running_loop().time() - began < 3


async def test_fetch_deadline_counts_all_redirects() -> None:
    """Hops that are each in time are too slow together."""
    hops = iter(range(10))

    async def slow_redirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0.3)
        await plain(b"", f"Location: /{next(hops)}", status="302 Found")(reader, writer)

    found = await ask(slow_redirect, replace(SPEC, deadline_s=0.8))
    assert (FailKind.TIMEOUT, True) == (found.fail, next(hops) == 2)


async def test_fetch_refused_connection_is_a_failure() -> None:
    """A port where nobody listens is a failed connection."""
    async with raw_server(hang_up) as port:
        pass
    async with web(port) as (client, _):
        found = await fetch(SPEC, None, client, now=NOW)
    assert FailKind.CONNECT is found.fail


async def test_fetch_unknown_name_is_a_failure() -> None:
    """A name without addresses is told apart from a refused one."""

    async def nobody(host: str, port: int) -> Sequence[str]:
        return ()

    backend = GuardedBackend(resolver=nobody, connector=Route(1))
    async with WebClient(contact_url="https://digestd.example/", backend=backend) as client:
        found = await fetch(SPEC, None, client, now=NOW)
    assert (OutcomeKind.FAILED, FailKind.NAME) == (found.kind, found.fail)


ZEROS = bytes(50_000_000)
BOMB = gzip.compress(ZEROS, mtime=0)


@pytest.mark.parametrize(
    ("body", "coding", "fail"),
    [
        (BOMB, "gzip", FailKind.TOO_BIG),
        (BOMB, "x-gzip", FailKind.TOO_BIG),
        (BOMB, None, FailKind.TOO_BIG),
        (zstd.compress(ZEROS), "zstd", FailKind.TOO_BIG),
        (zstd.compress(ZEROS), None, FailKind.TOO_BIG),
        (gzip.compress(BOMB, mtime=0), "gzip, gzip", FailKind.ENCODING),
        (b"\xcf\xff\xff\x7f", "br", FailKind.ENCODING),
        (b"x\x9c", "deflate", FailKind.ENCODING),
        (FEED, "gzip", FailKind.ENCODING),
        (BOMB[:50], "gzip", FailKind.ENCODING),
        (b"", "gzip", FailKind.EMPTY),
    ],
)
async def test_fetch_bombs_cost_what_the_cap_costs(body: bytes, coding: str | None, fail: FailKind) -> None:
    """A packed body of any coding is refused or unpacked no further than the cap, in bounded memory."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = await ask(plain(body, *([f"Content-Encoding: {coding}"] if coding else [])))
    assert (OutcomeKind.FAILED, fail) == (found.kind, found.fail)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30_000


@pytest.mark.parametrize(
    ("body", "coding"),
    [
        (gzip.compress(FEED, mtime=0), "GZIP"),
        (zstd.compress(FEED), "zstd"),
        (gzip.compress(FEED, mtime=0), None),
        (FEED, "identity"),
    ],
)
async def test_fetch_packed_body_is_unpacked(body: bytes, coding: str | None) -> None:
    """A server that packs although we asked it not to, and a packed file, both give the plain document."""
    found = await ask(plain(body, *([f"Content-Encoding: {coding}"] if coding else [])))
    assert found.document is not None
    assert FEED == found.document.body


WIRE = st.lists(
    st.sampled_from(
        [
            *(b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 301 x\r\n", b"HTTP/1.1 304 x\r\n", b"HTTP/1.1 101 x\r\n", b"HTTP/1.0 200\r\n"),
            *(b"HTTP/1.1 100 Continue\r\n\r\n", b"Content-Length: 5\r\n", b"Content-Length: -1\r\n", b"Content-Length: x\r\n"),
            *(b"Transfer-Encoding: chunked\r\n", b"Content-Encoding: gzip\r\n", b"Location: \xff//\r\n", b"Location: /a\r\n"),
            *(b"Location: http://\xe9.example:x/\r\n", b"Location: //@:/?#\r\n", b"Location: https://papers.example:/\r\n"),
            *(b"ETag: \xff\r\n", b"Retry-After: \xff\r\n", b"\r\n", b"\r\n\r\n", b"5\r\nhello\r\n0\r\n\r\n", b"hello", b"\x00"),
            *(gzip.compress(b"hello", mtime=0), b"\x1f\x8b\x08", b"\x28\xb5\x2f\xfd"),
        ]
    )
    | st.binary(max_size=20),
    max_size=12,
)  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(WIRE)
def test_fetch_any_bytes_are_an_outcome(wire: list[bytes]) -> None:
    """Whatever a server sends, a fetch ends with an outcome: a document, or a failure with words."""

    async def once() -> FetchOutcome:
        backend = GuardedBackend(resolver=names, connector=httpcore2.AsyncMockBackend([b"".join(wire)]))
        contact = "https://digestd.example/"
        async with WebClient(contact_url=contact, host_gap_s=0, ssl_context=NO_TRUST, backend=backend) as client:
            return await fetch(SPEC, None, client, now=NOW)

    found = asyncio.run(once())
    assert (found.document is not None) == (found.kind is OutcomeKind.OK) == (not found.why)
    assert (found.document is None) == (found.fail is not None)


def tls_context(authority: trustme.CA, name: str, *, expired: bool = False) -> ssl.SSLContext:
    """Return a server's context with a certificate for a name."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    until = datetime(2020, 1, 1, tzinfo=UTC) if expired else None
    authority.issue_cert(name, not_before=datetime(2019, 1, 1, tzinfo=UTC), not_after=until).configure_cert(context)
    return context


async def test_fetch_tls_certificate_is_verified_against_the_name() -> None:
    """A good certificate for the name is accepted although the connection went to an address."""
    authority = trustme.CA()
    trust = ssl.create_default_context()
    authority.configure_trust(trust)
    spec = replace(SPEC, location="https://papers.example/reef.xml")
    tls = tls_context(authority, "papers.example")
    async with raw_server(plain(FEED), tls=tls) as port, web(port, trust=trust) as (client, route):
        found = await fetch(spec, None, client, now=NOW)
    assert (OutcomeKind.OK, [(PUBLIC, 443)]) == (found.kind, route.asked)


@pytest.mark.parametrize("fault", ["unknown authority", "other name", "expired"])
async def test_fetch_bad_certificate_is_a_failure(fault: str) -> None:
    """A certificate of an unknown authority, for another name, or out of date is never accepted."""
    authority = trustme.CA()
    trust = ssl.create_default_context()
    if fault != "unknown authority":
        authority.configure_trust(trust)
    tls = tls_context(
        authority, "reef.example" if fault == "other name" else "papers.example", expired=fault == "expired"
    )
    spec = replace(SPEC, location="https://papers.example/reef.xml")
    async with raw_server(plain(FEED), tls=tls) as port, web(port, trust=trust) as (client, _):
        found = await fetch(spec, None, client, now=NOW)
    assert (OutcomeKind.FAILED, FailKind.TLS, None) == (found.kind, found.fail, found.document)
    assert "not to be trusted" in found.why


async def test_fetch_redirect_down_from_tls_is_refused() -> None:
    """What was asked over TLS is not answered without it."""
    authority = trustme.CA()
    trust = ssl.create_default_context()
    authority.configure_trust(trust)
    spec = replace(SPEC, location="https://papers.example/reef.xml")
    serve = plain(b"", "Location: http://papers.example/reef.xml", status="301 Moved Permanently")
    async with (
        raw_server(serve, tls=tls_context(authority, "papers.example")) as port,
        web(port, trust=trust) as (client, _),
    ):
        found = await fetch(spec, None, client, now=NOW)
    assert OutcomeKind.REFUSED is found.kind


async def test_fetch_password_stays_out_of_words_and_other_hosts(server: HTTPServer) -> None:
    """User and password of a source's URL go to its own host, not to where it redirects, nor into a document."""
    server.expect_request("/reef.xml").respond_with_data(
        status=302, headers={"Location": "http://reef.example/other.xml"}
    )
    server.expect_request("/other.xml").respond_with_data(FEED)
    found, _ = await ask_server(server, replace(SPEC, location="http://me:secret@papers.example/reef.xml"))
    authorizations = ["Authorization" in request.headers for request in requests(server)]
    assert [True, False] == authorizations
    assert found.document is not None
    assert "secret" not in f"{found.url} {found.document.origin} {found.why}"


async def test_fetch_one_request_a_host_at_a_time() -> None:
    """Requests to one host wait for each other and keep their distance; another host is asked meanwhile."""
    running: dict[str, int] = {"now": 0, "most": 0}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        running["now"] += 1
        running["most"] = max(running["most"], running["now"])
        await asyncio.sleep(0.02)
        running["now"] -= 1
        await plain(FEED)(reader, writer)

    loop = asyncio.get_running_loop()
    async with raw_server(serve) as port, web(port, gap_s=0.05) as (client, _):
        began = loop.time()
        await asyncio.gather(*(fetch(SPEC, None, client, now=NOW) for _ in range(3)))
        assert (1, True) == (running["most"], loop.time() - began >= 0.1)
    other = replace(SPEC, location="http://reef.example/")
    async with raw_server(serve) as port, web(port) as (client, _):
        await asyncio.gather(*(fetch(spec, None, client, now=NOW) for spec in (SPEC, other)))
    assert 2 == running["most"]


async def test_fetch_waiting_for_a_host_is_not_counted_as_its_time() -> None:
    """A source that waits for its turn keeps its whole deadline."""
    spec = replace(SPEC, deadline_s=0.5)
    async with raw_server(plain(FEED)) as port, web(port, gap_s=0.3) as (client, _):
        found = await asyncio.gather(*(fetch(spec, None, client, now=NOW) for _ in range(3)))
    assert {OutcomeKind.OK} == {outcome.kind for outcome in found}


async def test_fetch_own_port_is_allowed(server: HTTPServer) -> None:
    """A port that the source's own URL names is asked, and a redirect may go there as well."""
    server.expect_request("/reef.xml").respond_with_data(status=302, headers={"Location": "/b.xml"})
    server.expect_request("/b.xml").respond_with_data(FEED)
    found, route = await ask_server(server, replace(SPEC, location="http://papers.example:8080/reef.xml"))
    assert (OutcomeKind.OK, {(PUBLIC, 8080)}) == (found.kind, set(route.asked))


async def test_fetch_opened_network_reaches_loopback(server: HTTPServer) -> None:
    """An address that the operator opened by name is fetched with the system's own resolver and network."""
    server.expect_request("/reef.xml").respond_with_data(FEED)
    allow = (ipaddress.ip_network("127.0.0.1/32"),)
    spec = replace(SPEC, location=server.url_for("/reef.xml").replace("localhost", "127.0.0.1"))
    async with WebClient(contact_url="https://digestd.example/", allow_networks=allow) as client:
        found = await SOURCES["http"](spec, client).collect(None, now=NOW, draw=0.0)
    assert [OutcomeKind.OK] == [outcome.kind for outcome in found]


PAGES: Mapping[str, bytes] = {"2": b"page two", "3": b"page three", "4": b"page four"}


async def walk(
    server: HTTPServer, known: bytes, *, max_pages: int = 5, pages: Mapping[str, bytes] = PAGES
) -> list[bytes]:
    """Return the bodies of the further pages that are walked until ``known`` is shown."""

    def answer(request: Request) -> Response:
        page = request.args.get("page", "1")
        return Response(pages.get(page, b"page one")) if page != "9" else Response(status=500)

    server.expect_request("/list").respond_with_handler(answer)
    spec = replace(
        SPEC,
        location="http://papers.example/list",
        page_url="http://papers.example/list?page={page}",
        max_pages=max_pages,
    )

    async def reaches_known(outcome: FetchOutcome) -> bool:
        return outcome.document is not None and known in outcome.document.body

    async with web(server.port) as (client, _):
        first = await fetch(spec, None, client, now=NOW)
        walked = [o async for o in walk_pages(spec, first, client, now=NOW, reaches_known=reaches_known)]
    return [outcome.document.body if outcome.document else outcome.why.encode() for outcome in walked]


@pytest.mark.parametrize(
    ("known", "max_pages", "expected"),
    [
        (b"one", 5, []),
        (b"two", 5, [b"page two"]),
        (b"three", 5, [b"page two", b"page three"]),
        (b"nothing", 3, [b"page two", b"page three"]),
        (b"nothing", 9, [b"page two", b"page three", b"page four"]),
    ],
)
async def test_walk_pages_until_known(server: HTTPServer, known: bytes, max_pages: int, expected: list[bytes]) -> None:
    """Pages are walked until one reaches what is known, up to the limit, and not into pages that repeat."""
    assert expected == await walk(server, known, max_pages=max_pages)


async def test_walk_pages_ends_with_a_failure(server: HTTPServer) -> None:
    """A page that fails is told and ends the walk."""
    many = {str(page): f"page {page}".encode() for page in range(2, 9)}
    found = await walk(server, b"nothing", max_pages=20, pages=many)
    assert (8, True) == (len(found), b"500" in found[-1])


async def test_walk_pages_without_a_template_is_nothing(server: HTTPServer) -> None:
    """A source without further pages is not asked for any."""
    server.expect_request("/reef.xml").respond_with_data(FEED)

    async def never(outcome: FetchOutcome) -> bool:
        return False

    async with web(server.port) as (client, _):
        first = await fetch(SPEC, None, client, now=NOW)
        walked = [o async for o in walk_pages(SPEC, first, client, now=NOW, reaches_known=never)]
    assert ([], 1) == (walked, len(server.log))
