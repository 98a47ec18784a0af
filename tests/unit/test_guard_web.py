"""The guard of the web: rates, networks of clients, origins."""

from __future__ import annotations

import asyncio
import ipaddress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.types import Message, Receive, Scope, Send

from digestd.web.guard import Guard, Limiter, Rate, client_net

PROXIES = [ipaddress.ip_network("10.0.0.0/8"), ipaddress.ip_network("fd00::/8")]


def scope(client: str | None, forwarded: str = "") -> dict[str, object]:
    """Return a request's scope with this client and header."""
    headers = [(b"x-forwarded-for", forwarded.encode())] if forwarded else []
    return {"type": "http", "client": (client, 1) if client else None, "headers": headers}


def test_limiter_allows_so_many_in_a_window() -> None:
    """Three a minute are three in any minute, for each key on its own."""
    limiter = Limiter(Rate(3, 60))
    assert [True, True, True, False] == [limiter.allow("a", at) for at in (0, 10, 20, 59)]
    assert limiter.allow("b", 59)
    assert [True, False, True] == [limiter.allow("a", at) for at in (60.5, 61, 71)]


@given(st.lists(st.tuples(st.sampled_from("abc"), st.floats(0, 100)), max_size=60))
@settings(max_examples=100)
def test_limiter_never_allows_more_than_its_rate(calls: list[tuple[str, float]]) -> None:
    """Whatever comes when, no window of a key has more than the rate allows."""
    limiter = Limiter(Rate(2, 10))
    passed: dict[str, list[float]] = {}
    for key, at in sorted(calls, key=lambda call: call[1]):
        if limiter.allow(key, at):
            passed.setdefault(key, []).append(at)
    for times in passed.values():
        assert all(later - earlier >= 10 for earlier, later in zip(times, times[2:], strict=False))


def test_limiter_forgets_the_longest_unheard_key() -> None:
    """A flood of keys takes no more memory than was granted."""
    limiter = Limiter(Rate(1, 1000), most_keys=2)
    for number, key in enumerate("abc"):
        assert limiter.allow(key, number)
    assert [False, False] == [limiter.allow(key, 4) for key in "cb"]
    assert limiter.allow("a", 5)


@pytest.mark.parametrize(
    ("client", "forwarded", "net"),
    [
        ("192.0.2.77", "", "192.0.2.0/24"),
        ("2001:db8:1:2:3::4", "", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.77", "", "192.0.2.0/24"),
        (None, "", "unknown"),
        ("192.0.2.77", "198.51.100.1", "192.0.2.0/24"),  # a client that is no proxy says what it likes
        ("10.1.1.1", "198.51.100.1", "198.51.100.0/24"),
        ("10.1.1.1", "203.0.113.5, 198.51.100.1", "198.51.100.0/24"),  # what stands before it was said by the client
        ("10.1.1.1", "203.0.113.5, 10.2.2.2", "203.0.113.0/24"),
        ("10.1.1.1", "rubbish", "10.1.1.0/24"),
        ("10.1.1.1", "203.0.113.5, rubbish", "10.1.1.0/24"),
        ("fd00::1", "2001:db8:9::1", "2001:db8:9::/64"),
    ],
)
def test_client_net(client: str | None, forwarded: str, net: str) -> None:
    """A client's network is taken from a header only as far as configured proxies wrote it."""
    assert net == client_net(scope(client, forwarded), PROXIES)


def test_guard_leaves_an_answer_its_own_header() -> None:
    """What an answer says itself stays, in whatever case, and is not said twice; all else is added."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        headers = [(b"content-type", b"text/plain"), (b"Referrer-Policy", b"same-origin")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def receive() -> Message:
        return {"type": "http.request", "body": b"", "more_body": False}

    request: Scope = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "raw_path": b"/",
        "query_string": b"",
        "headers": [],
    }
    asyncio.run(Guard(app, base_url=None)(request, receive, send))
    names = [name.lower() for name, _ in sent[0]["headers"]]
    assert [(b"content-type", b"text/plain"), (b"Referrer-Policy", b"same-origin")] == sent[0]["headers"][:2]
    assert (1, 1) == (names.count(b"referrer-policy"), names.count(b"content-security-policy"))
