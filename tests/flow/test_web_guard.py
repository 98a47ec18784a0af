"""What holds for every request: headers, methods, sizes, origins, bugs of ours, and slow clients on real sockets."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from digestd.errors import StoreBusyError
from digestd.web import guard as guard_module
from digestd.web import read
from digestd.web.app import create_app
from digestd.web.guard import POLICY, Guard, Limiter, Rate
from digestd.web.server import ServerLimits, WebServer, listen
from tests.site import BASE, House, make_house


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """Yield an empty house."""
    found = make_house(tmp_path)
    yield found
    found.store.close()


@pytest.mark.parametrize("address", ["/", "/nix", "/favicon.ico", "/" + "x" * 3000, "/healthz"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS", "PUT", "DELETE", "TRACE", "PATCH"])
def test_every_answer_has_the_policy(house: House, method: str, address: str) -> None:
    """Nothing may load, run or frame, whatever was asked and whatever came of it; no method but three is understood."""
    answer = house.client.request(method, address)
    assert POLICY == answer.headers["content-security-policy"]
    assert ("nosniff", "DENY", "no-referrer") == tuple(
        answer.headers[name] for name in ("x-content-type-options", "x-frame-options", "referrer-policy")
    )
    assert answer.status_code < 500
    if method not in {"GET", "HEAD"}:
        assert answer.status_code in {404, 405, 414}


@pytest.mark.parametrize(
    ("headers", "allowed"),
    [
        ({}, True),  # a program, which sends no cookie that could be abused
        ({"Origin": BASE}, True),
        ({"Origin": BASE + ":443"}, True),
        ({"Origin": "https://evil.example"}, False),
        ({"Origin": "https://digest.example.org.evil.example"}, False),
        ({"Origin": "http://digest.example.org"}, False),
        ({"Origin": "null", "Sec-Fetch-Site": "cross-site"}, False),
        ({"Origin": "null", "Sec-Fetch-Site": "same-origin"}, True),
        ({"Sec-Fetch-Site": "cross-site"}, False),
        ({"Sec-Fetch-Site": "same-site"}, False),
        ({"Origin": "https://["}, False),
    ],
)
def test_forms_come_from_our_pages_only(headers: dict[str, str], allowed: bool) -> None:
    """A POST that another site's page sends is refused before anything looks at it."""

    async def act(request: Request) -> Response:
        del request
        return PlainTextResponse("acted")

    app = Guard(Starlette(routes=[Route("/x", act, methods=["POST"])]), base_url=BASE)
    answer = TestClient(app, base_url=BASE).post("/x", headers=headers)
    assert (200 if allowed else 403) == answer.status_code


def test_one_click_from_a_mail_program_passes() -> None:
    """Unsubscribing by RFC 8058 comes from another site's server or page, and passes."""

    async def act(request: Request) -> Response:
        del request
        return PlainTextResponse("left")

    app = Guard(Starlette(routes=[Route("/unsubscribe/x", act, methods=["POST"])]), base_url=BASE)
    answer = TestClient(app, base_url=BASE).post("/unsubscribe/x", headers={"Sec-Fetch-Site": "cross-site"})
    assert 200 == answer.status_code


@pytest.mark.parametrize("length", ["99999", "-1", "1e3", "٣", ""])
def test_large_and_strange_lengths_are_refused(house: House, length: str) -> None:
    """A body that says it is too large, or not how large, is not read."""
    headers = {"Content-Length": length} if length.isascii() else {}
    if not headers:
        return
    assert 413 == house.client.post("/follow", content=b"", headers=headers).status_code


def test_body_without_length_is_counted(house: House) -> None:
    """A body in pieces is cut off once it has more than a form can have."""

    def pieces() -> Iterator[bytes]:
        for _ in range(40):
            yield b"a" * 1024

    answer = house.client.post(
        "/follow", content=pieces(), headers={"Content-Type": "application/x-www-form-urlencoded", "Origin": BASE}
    )
    assert 413 == answer.status_code
    assert "Too large" in answer.text


def test_bug_of_ours_is_a_page_and_a_line_in_the_log(
    house: House, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A bug shows nothing of itself to the visitor, has the policy, and is in the log."""

    def broken(*args: object, **given: object) -> None:
        raise ZeroDivisionError("secret detail")

    monkeypatch.setattr(read, "topic_page", broken)
    with caplog.at_level(logging.ERROR):
        answer = house.client.get("/t/x")
    assert (500, POLICY) == (answer.status_code, answer.headers["content-security-policy"])
    assert "Something is broken here" in answer.text
    assert "secret detail" not in answer.text
    assert "secret detail" in caplog.text


def test_busy_history_is_503(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where another process holds the history, visitors are asked to come again."""

    def busy(*args: object, **given: object) -> None:
        raise StoreBusyError("history x: held")

    monkeypatch.setattr(read, "topic_page", busy)
    answer = house.client.get("/t/x")
    assert (503, "60") == (answer.status_code, answer.headers["retry-after"])


def test_searches_are_limited_by_network(tmp_path: Path) -> None:
    """One network may search so often a minute; then it is told to wait, while plain pages go on."""
    house = make_house(tmp_path)
    client = TestClient(create_app(replace(house.services, reading=Limiter(Rate(2, 60)))))
    assert [200, 200, 429] == [client.get("/search?q=x").status_code for _ in range(3)]
    assert 200 == client.get("/").status_code
    house.store.close()


# -- on real sockets


@asynccontextmanager
async def served(house: House, limits: ServerLimits) -> AsyncIterator[int]:
    """Yield the port at which a house is served."""
    listener = listen("127.0.0.1", 0)
    port = int(listener.getsockname()[1])
    server = WebServer(house.app, [listener], limits)
    task = asyncio.create_task(server.serve())
    try:
        yield port
    finally:
        server.stop()
        await asyncio.wait_for(task, 20)
        listener.close()


async def ask(port: int, raw: bytes) -> bytes:
    """Return all that the server says to these bytes until it closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(raw)
        await writer.drain()
        return await asyncio.wait_for(reader.read(), 30)
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


GOOD = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


async def test_slow_clients_are_closed_and_others_served(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of clients that say nothing, or a little, or no end of it, are closed; a good request is answered meanwhile."""
    monkeypatch.setattr(guard_module, "BODY_S", 1.0)
    starts = (
        b"",
        b"GET / HT",
        b"GET / HTTP/1.1\r\nHost: x\r\nX-A: ",
        b"POST /follow HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 900\r\n\r\na=",
        b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /he",
    )
    async with served(house, ServerLimits(request_s=1.5, idle_s=1, connections=800)) as port:
        slow = [await asyncio.open_connection("127.0.0.1", port) for _ in range(500)]
        for number, (_, writer) in enumerate(slow):
            writer.write(starts[number % len(starts)])
        answers = [await ask(port, GOOD) for _ in range(20)]
        assert all(answer.startswith(b"HTTP/1.1 200") for answer in answers)
        ended = await asyncio.wait_for(
            asyncio.gather(*(reader.read() for reader, _ in slow), return_exceptions=True), 30
        )
        assert len(slow) == len(ended)
        slow_forms = [end for number, end in enumerate(ended) if number % len(starts) == 3]
        assert all(isinstance(end, bytes) and b" 408 " in end.splitlines()[0] for end in slow_forms)
        for _, writer in slow:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
        assert (await ask(port, GOOD)).startswith(b"HTTP/1.1 200")


async def test_dripping_client_is_closed(house: House) -> None:
    """A client that sends a head letter by letter gains no time by that."""
    async with served(house, ServerLimits(request_s=1.0)) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        closed = asyncio.create_task(reader.read())
        with suppress(OSError):
            for _ in range(300):
                writer.write(b"X")
                await writer.drain()
                done, _pending = await asyncio.wait([closed], timeout=0.05)
                if done:
                    break
        assert closed.done()
        with suppress(OSError):
            await closed
        writer.close()


async def test_client_that_does_not_read_is_closed(house: House) -> None:
    """A client that asks for much and takes nothing of it holds a connection for a moment only, closing or not."""
    house.services.shelf.put({"big/rss.xml": bytes(64_000_000)}, now=house.clock.now())
    async with served(house, ServerLimits(request_s=1.0, answer_s=1.0, idle_s=0.5, connections=2)) as port:
        for end in (b"", b"Connection: close\r\n"):
            with socket.create_connection(("127.0.0.1", port)) as client:
                client.sendall(
                    b"GET /feeds/big/rss.xml HTTP/1.1\r\nHost: x\r\nAccept-Encoding: identity\r\n" + end + b"\r\n"
                )
                # the first bytes have come: the server is at work on the rest
                assert b"HTTP/1.1 200" == await asyncio.to_thread(client.recv, 12, socket.MSG_PEEK)
                answer = await ask(port, GOOD)
                assert b" 503 " in answer.split(b"\r\n", 1)[0]
                until = asyncio.get_running_loop().time() + 20
                while not answer.startswith(b"HTTP/1.1 200") and asyncio.get_running_loop().time() < until:
                    answer = await ask(port, GOOD)  # 503 while the other one has its connection
                assert answer.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "raw",
    [
        b"GET / HTTP/1.1\r\nHost: x\r\nX: " + b"a" * 100_000 + b"\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 50,
        b"GET / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\n",
        b"GET http://evil.example/ HTTP/1.1\r\nHost: x\r\n\r\nxxxx\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GET /%ff%fe/..%2f..%2fetc/passwd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade, close\r\n\r\n",
    ],
)
async def test_nonsense_ends_a_connection_and_nothing_else(house: House, raw: bytes) -> None:
    """What is no request of ours is answered or closed; the server goes on."""
    async with served(house, ServerLimits(request_s=1.0, idle_s=1)) as port:
        with suppress(OSError):
            answer = await ask(port, raw)
            assert b" 500 " not in answer.split(b"\r\n", 1)[0]
        assert (await ask(port, GOOD)).startswith(b"HTTP/1.1 200")


async def test_too_many_connections_are_turned_away(house: House) -> None:
    """More connections than the limit are answered 503 at once, and the rest are served when there is room again."""
    async with served(house, ServerLimits(request_s=5, connections=5)) as port:
        held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(6)]
        assert b" 503 " in (await ask(port, GOOD)).split(b"\r\n", 1)[0]
        for _, writer in held:
            writer.close()
            await writer.wait_closed()
        for _ in range(50):  # until the server has seen that they are gone
            answer = await ask(port, GOOD)
            if answer.startswith(b"HTTP/1.1 200"):
                break
        assert answer.startswith(b"HTTP/1.1 200")


def test_taken_port_is_an_error() -> None:
    """A port that another program has cannot be listened on."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(OSError, match="in use"):
            listen("127.0.0.1", other.getsockname()[1])
