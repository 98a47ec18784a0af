"""The egress guard: no connection is tried to an address that is not public or opened by name."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Iterable, Sequence

import httpcore2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.watch.guard import (
    DENIED,
    MAX_TRIED,
    GuardedBackend,
    RefusedAddressError,
    UnknownNameError,
    odd_host,
    refusal,
    resolve,
)

PUBLIC = "93.184.215.14"
PUBLIC_6 = "2606:2800:21f:cb07:6820:80da:af6b:8b2c"

REFUSED_ADDRESSES = [
    *("127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "172.16.0.1", "172.31.255.255"),
    *("192.168.0.1", "192.168.255.255", "169.254.169.254", "169.254.170.2", "169.254.0.1", "100.64.0.1"),
    *("100.100.100.200", "100.127.255.255", "192.0.0.8", "192.0.0.170", "192.0.0.192", "168.63.129.16", "192.0.2.1"),
    *("198.51.100.7", "203.0.113.9", "192.88.99.1", "198.18.0.1", "198.19.255.255", "224.0.0.1", "239.255.255.250"),
    *("240.0.0.1", "255.255.255.255", "::", "::1", "::127.0.0.1", "::a9fe:a9fe", "::ffff:127.0.0.1"),
    *("::ffff:169.254.169.254", "::ffff:7f00:1", "::ffff:0:127.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe"),
    *("64:ff9b:1::7f00:1", "64:ff9b:1:ffff::1", "100::1", "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:10::1"),
    *("2001:20::1", "2001:db8::1", "2002:7f00:1::", "2002:a9fe:a9fe::1", "3fff::1", "5f00::1", "fc00::1"),
    *("fd00:ec2::254", "fd12:3456:789a::1", "fe80::1", "fe80::1%eth0", "fe80::a9fe:a9fe", "fec0::1", "ff02::1", "ff0e::1"),
    *("4000::1", "::2", "not an address", ""),
]  # fmt: skip

ODD_HOSTS = [
    *(
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "017700000001",
        "127.0.0.01",
    ),
    *(
        "0",
        "0x0",
        "1.2.3.4.5",
        "256.1.1.1",
        "127.0.0.1.",
        "127.0.0x1",
        "169.254.0xa9fe",
        "2852039166",
        "0251.0376.0251.0376",
    ),
    *(
        "exa mple.org",
        "fe80::1%25eth0",
        "a%00b",
        "a\tb",
        "a/b",
        "a\\b",
        "a@b",
        "a#b",
        "a?b",
        "",
        "0x",
        "foo.0x7f",
        "foo.1",
    ),
]


class Connector(httpcore2.AsyncNetworkBackend):
    """Takes down who shall be connected to; addresses in ``dead`` do not answer."""

    def __init__(self, dead: Iterable[str] = ()) -> None:
        self.asked: list[tuple[str, int]] = []
        self.shares: list[float | None] = []
        self._dead = frozenset(dead)

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  # the signature is httpcore2's
        local_address: str | None = None,  # noqa: ARG002  # the signature is httpcore2's
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,  # noqa: ARG002  # the signature is httpcore2's
    ) -> httpcore2.AsyncNetworkStream:
        """Note the address."""
        self.asked.append((host, port))
        self.shares.append(timeout)
        if host in self._dead:
            raise httpcore2.ConnectError("no answer")
        return httpcore2.AsyncMockStream([])


class Names:
    """A name server that gives one answer after the other, the last one for ever."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self._answers = list(answers)
        self.asked = 0

    async def __call__(self, host: str, port: int) -> Sequence[str]:  # noqa: ARG002  # a resolver's signature
        """Return the next answer."""
        self.asked += 1
        return self._answers[min(self.asked, len(self._answers)) - 1]


async def echo(host: str, port: int) -> Sequence[str]:
    """Resolve a literal to itself."""
    return (host,)


@pytest.mark.parametrize("address", REFUSED_ADDRESSES)
async def test_connect_refused_address_reaches_no_connector(address: str) -> None:
    """A name that resolves to any address off the public internet is refused before anything is connected."""
    connector = Connector()
    backend = GuardedBackend(resolver=Names([address]), connector=connector)
    with pytest.raises(RefusedAddressError, match="refused"):
        await backend.connect_tcp("papers.example", 443)
    assert [] == connector.asked


@pytest.mark.parametrize("host", ODD_HOSTS)
async def test_connect_odd_host_is_not_even_looked_up(host: str) -> None:
    """A host in a spelling that only the C library takes for an address is refused before it is looked up."""
    names, connector = Names([PUBLIC]), Connector()
    with pytest.raises(RefusedAddressError):
        await GuardedBackend(resolver=names, connector=connector).connect_tcp(host, 80)
    assert (0, []) == (names.asked, connector.asked)


@pytest.mark.parametrize("good", [PUBLIC, PUBLIC_6])
@pytest.mark.parametrize("bad", ["127.0.0.1", "::1", "169.254.169.254", "10.1.2.3", "::ffff:10.0.0.1"])
async def test_connect_one_bad_address_refuses_the_name(good: str, bad: str) -> None:
    """A name with a public and a refused address is refused, in either order."""
    for answer in ([good, bad], [bad, good]):
        connector = Connector()
        with pytest.raises(RefusedAddressError):
            await GuardedBackend(resolver=Names(answer), connector=connector).connect_tcp("papers.example", 80)
        assert [] == connector.asked


@pytest.mark.parametrize("second", REFUSED_ADDRESSES[:20])
async def test_connect_rebinding_name_is_asked_once(second: str) -> None:
    """The checked address is the connected one: the second answer of a rebinding server is never asked for."""
    names, connector = Names([PUBLIC], [second]), Connector()
    await GuardedBackend(resolver=names, connector=connector).connect_tcp("rebind.example", 80)
    assert (1, [(PUBLIC, 80)]) == (names.asked, connector.asked)


@pytest.mark.parametrize("second", REFUSED_ADDRESSES[:20])
async def test_connect_rebound_name_is_refused_the_next_time(second: str) -> None:
    """Each new connection checks anew: a name that was fine a moment ago is refused when it moves inside."""
    names, connector = Names([PUBLIC], [second]), Connector()
    backend = GuardedBackend(resolver=names, connector=connector)
    await backend.connect_tcp("rebind.example", 80)
    with pytest.raises(RefusedAddressError):
        await backend.connect_tcp("rebind.example", 80)
    assert [(PUBLIC, 80)] == connector.asked


async def test_connect_dead_address_gives_way_to_the_next() -> None:
    """The second address is tried when the first does not answer, each with its share of the time."""
    connector = Connector(dead=[PUBLIC_6])
    backend = GuardedBackend(resolver=Names([PUBLIC_6, PUBLIC, PUBLIC]), connector=connector)
    await backend.connect_tcp("papers.example", 443, timeout=3.0)
    assert ([(PUBLIC_6, 443), (PUBLIC, 443)], [1.5, 1.5]) == (connector.asked, connector.shares)


async def test_connect_many_dead_addresses_are_not_all_tried() -> None:
    """A name with a hundred dead addresses costs a few attempts."""
    many = [f"93.184.215.{i}" for i in range(100)]
    connector = Connector(dead=many)
    with pytest.raises(httpcore2.ConnectError, match="no answer"):
        await GuardedBackend(resolver=Names(many), connector=connector).connect_tcp("papers.example", 80)
    assert MAX_TRIED == len(connector.asked)


async def test_connect_unknown_name_is_told_apart() -> None:
    """A name that is unknown, empty or not encodable is an unknown name, not a refused address."""

    async def unknown(host: str, port: int) -> Sequence[str]:
        raise socket.gaierror(-2, "Name or service not known")

    for resolver in (unknown, Names([])):
        with pytest.raises(UnknownNameError):
            await GuardedBackend(resolver=resolver, connector=Connector()).connect_tcp("nowhere.example", 80)
    with pytest.raises(UnknownNameError):
        await GuardedBackend(connector=Connector()).connect_tcp("a" * 64 + ".example", 80)


async def test_connect_slow_name_server_is_a_timeout() -> None:
    """A name server that never answers ends with the connect time."""

    async def silent(host: str, port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        return ()

    with pytest.raises(httpcore2.ConnectTimeout):
        await GuardedBackend(resolver=silent, connector=Connector()).connect_tcp("slow.example", 80, timeout=0.01)


async def test_connect_unix_socket_is_refused() -> None:
    """No URL reaches a socket file."""
    with pytest.raises(RefusedAddressError):
        await GuardedBackend().connect_unix_socket("/run/some.sock")


async def test_resolve_gives_loopback_for_a_literal() -> None:
    """The system's resolver gives plain addresses."""
    assert ("127.0.0.1",) == tuple(await resolve("127.0.0.1", 80))


def test_refusal_allowed_network_opens_only_itself() -> None:
    """A network opened by name lets its addresses through, in mapped form too, and none beside it."""
    allow = [ipaddress.ip_network(text) for text in ("10.1.0.0/16", "fd00:1::/32", "127.0.0.1")]
    opened = ["10.1.2.3", "::ffff:10.1.2.3", "fd00:1::5", "127.0.0.1"]
    closed = ["10.2.0.1", "127.0.0.2", "fd00:2::1", "::127.0.0.1", "169.254.169.254"]
    assert [None] * 4 == [refusal(address, allow) for address in opened]
    assert all(refusal(address, allow) for address in closed)


def test_refusal_opened_translator_keeps_private_nets_shut() -> None:
    """Opening NAT64 reaches public IPv4 addresses behind it and no others."""
    allow = [ipaddress.ip_network("64:ff9b::/96")]
    assert None is refusal("64:ff9b::" + "5db8:d70e", allow)
    assert "loopback" == refusal("64:ff9b::7f00:1", allow)


@settings(max_examples=200)
@given(st.ip_addresses(v=4))
def test_refusal_v4_everything_let_through_is_global(address: ipaddress.IPv4Address) -> None:
    """Whatever IPv4 address is let through is public unicast by Python's own list too, in mapped form alike."""
    why = refusal(str(address))
    assert why == refusal(f"::ffff:{address}")
    assert why is not None or (address.is_global and not address.is_multicast and not address.is_private)


@settings(max_examples=200)
@given(st.ip_addresses(v=6) | st.sampled_from([net for net, _ in DENIED if net.version == 6]).map(lambda n: n[0]))
def test_refusal_v6_everything_let_through_is_global(address: ipaddress.IPv6Address) -> None:
    """Whatever IPv6 address is let through is in 2000::/3 and in no network that is kept shut."""
    if refusal(str(address)) is None and address.ipv4_mapped is None:
        assert address in ipaddress.ip_network("2000::/3")
        assert not any(address in net for net, _ in DENIED)


@settings(max_examples=100)
@given(st.sampled_from([net for net, _ in DENIED]), st.randoms(use_true_random=False))
def test_refusal_every_address_of_a_denied_network(net: ipaddress.IPv4Network, random: object) -> None:
    """First, last and any address between of each denied network is refused."""
    for index in (0, -1, net.num_addresses // 3):
        assert refusal(str(net[index])) is not None


@pytest.mark.parametrize(
    "host", ["papers.example", "xn--bcher-kva.example", "a_b.example", "localhost", "1.2.3.4", "1and1.example", "::1"]
)
def test_odd_host_ordinary_names_are_fine(host: str) -> None:
    """Ordinary names and literals are no odd spelling, whatever their addresses are."""
    assert None is odd_host(host)
