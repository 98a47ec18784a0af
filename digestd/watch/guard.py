"""The egress guard: which addresses we connect to. Floor 3; entry point is `GuardedBackend`, below HTTP and redirects.

A name is resolved once, every address is checked, and the connection goes to a checked address, not to the name: what a
name server says a moment later no longer matters. Host header and TLS keep the name.

Python's `is_global` alone is no guard: on 3.11 it is true for 64:ff9b::7f00:1, 2002:7f00:1:: and 192.0.0.192.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

import httpcore2

from digestd.errors import FetchError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
#: Host and port to addresses, in the order to try; may raise OSError.
Resolver = Callable[[str, int], Awaitable[Sequence[str]]]

#: So many addresses of a name are tried, each with its share of the time.
MAX_TRIED = 4

#: Source: IANA special-purpose address registries, with what clouds keep for themselves.
DENIED: tuple[tuple[Network, str], ...] = tuple(
    (ipaddress.ip_network(net), why)
    for net, why in (
        ("0.0.0.0/8", "this host"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "shared by carriers, cloud metadata"),
        ("127.0.0.0/8", "loopback"),
        ("168.63.129.16/32", "cloud metadata"),
        ("169.254.0.0/16", "link-local, cloud metadata"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "protocol assignments, cloud metadata"),
        ("192.0.2.0/24", "documentation"),
        ("192.88.99.0/24", "6to4 relays"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "benchmarks"),
        ("198.51.100.0/24", "documentation"),
        ("203.0.113.0/24", "documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
        ("::/128", "this host"),
        ("::1/128", "loopback"),
        ("::/96", "IPv4 in old IPv6 form"),
        ("64:ff9b::/96", "IPv4 behind a translator"),
        ("64:ff9b:1::/48", "IPv4 behind a local translator"),
        ("100::/64", "discarded"),
        ("2001::/32", "IPv4 in a Teredo tunnel"),
        ("2001::/23", "protocol assignments"),
        ("2001:db8::/32", "documentation"),
        ("2002::/16", "IPv4 in a 6to4 tunnel"),
        ("3fff::/20", "documentation"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "site-local"),
        ("ff00::/8", "multicast"),
    )
)
#: What a source is let into by "allow_private": networks of an organisation or this machine, never a cloud's metadata.
PRIVATE: tuple[Network, ...] = tuple(
    ipaddress.ip_network(net)
    for net in ("10.0.0.0/8", "127.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "::1/128", "fc00::/7")
)
#: This machine.
LOOPBACK: tuple[Network, ...] = tuple(ipaddress.ip_network(net) for net in ("127.0.0.0/8", "::1/128"))
_GLOBAL_V6 = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")


class RefusedAddressError(FetchError):
    """An address that we do not connect to; raised before any connection is tried."""


class UnknownNameError(FetchError):
    """A host name that has no address."""


def refusal(text: str, allow_networks: Sequence[Network] = ()) -> str | None:
    """Return why an address is refused, in words; None if we may connect to it.

    Args:
        text: an address as a resolver gives it; a zone behind "%" is left out.
        allow_networks: networks that the operator opened by name.
    """
    try:
        address: Address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return "not an address"
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return refusal(str(address.ipv4_mapped), allow_networks)
        if address in _NAT64 and _is_in(address, allow_networks):
            # opening the translator opens the IPv4 internet behind it, not the private nets
            return refusal(str(IPv4Address(int(address) & 0xFFFFFFFF)), allow_networks)
    if _is_in(address, allow_networks):
        return None
    why = next((why for net, why in DENIED if address in net), None)
    if why is None and isinstance(address, IPv6Address) and address not in _GLOBAL_V6:
        why = "not assigned to the internet"
    if why is None and not address.is_global:
        why = "not on the public internet"
    return why


def odd_host(host: str) -> str | None:
    """Return why a host is no proper spelling of a name or address; None if it is.

    "127.1", "2130706433", "0x7f.0.0.1" and "0177.0.0.1" are addresses to the C library and names to everyone else. A
    host whose last label is a number must be a plain dotted quad.

    Source: WHATWG URL, "ends in a number checker".
    """
    if not host or any(ord(char) <= 32 or ord(char) == 127 or char in "%/\\@#?" for char in host):
        return "not a host name"
    if ":" in host:
        return None  # an IPv6 literal, checked as an address
    last = host.rstrip(".").rpartition(".")[2].lower()
    if not last.isdigit() and not (last.startswith("0x") and all(c in "0123456789abcdef" for c in last[2:])):
        return None
    try:
        IPv4Address(host)
    except ValueError:
        return "an address in an unusual spelling"
    return None


async def resolve(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host as the system gives them."""
    infos = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return tuple(str(sockaddr[0]) for *_, sockaddr in infos)


class GuardedBackend(httpcore2.AsyncNetworkBackend):
    """Connects to checked addresses only.

    Args:
        allow_networks: networks that the operator opened by name.
        resolver: gives the addresses of a host.
        connector: opens connections to addresses.
    """

    def __init__(
        self,
        *,
        allow_networks: Sequence[Network] = (),
        resolver: Resolver = resolve,
        connector: httpcore2.AsyncNetworkBackend | None = None,
    ) -> None:
        self._allow = tuple(allow_networks)
        self._resolver = resolver
        self._connector = connector or httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  # the signature is httpcore2's
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Return a connection to a checked address of the host.

        Raises:
            RefusedAddressError: the spelling of the host or any of its addresses is refused.
            UnknownNameError: there is no address.
            httpcore2.ConnectError: none of the addresses answered.
            httpcore2.ConnectTimeout: the time was over.
        """
        addresses = await self._checked(host, port, limit_s=timeout)
        tried = addresses[:MAX_TRIED]
        share = None if timeout is None else timeout / len(tried)
        failure: Exception | None = None
        for address in tried:
            try:
                return await self._connector.connect_tcp(address, port, share, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure or httpcore2.ConnectError(f"{host} has no address")

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ARG002, ASYNC109  # the signature is httpcore2's
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,  # noqa: ARG002  # the signature is httpcore2's
    ) -> httpcore2.AsyncNetworkStream:
        """Refuse: nothing on the web lives in a socket file."""
        raise RefusedAddressError(f"{path} is refused: a socket file")

    async def sleep(self, seconds: float) -> None:
        """Sleep, for httpcore2's own retries."""
        await asyncio.sleep(seconds)

    async def _checked(self, host: str, port: int, *, limit_s: float | None) -> tuple[str, ...]:
        """Return the addresses of a host, all checked; one bad address refuses the host."""
        odd = odd_host(host)
        if odd:
            raise RefusedAddressError(f"{host!r} is refused: {odd}")
        try:
            async with asyncio.timeout(limit_s):
                found = await self._resolver(host, port)
        except TimeoutError as error:
            raise httpcore2.ConnectTimeout(f"looking up {host} took too long") from error
        except (OSError, UnicodeError) as error:
            raise UnknownNameError(f"the name {host} cannot be looked up: {error}") from error
        addresses = tuple(dict.fromkeys(found))
        if not addresses:
            raise UnknownNameError(f"the name {host} has no address")
        for address in addresses:
            why = refusal(address, self._allow)
            if why:
                named = "" if address == host else f" of {host}"
                raise RefusedAddressError(f"the address {address}{named} is refused: {why}")
        return addresses


def _is_in(address: Address, networks: Sequence[Network]) -> bool:
    return any(address in net for net in networks)
