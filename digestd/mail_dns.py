"""What the DNS must say for mail to arrive: SPF, DKIM, DMARC and a name for the address that sends. Floor 1: pure.

Entry point: :func:`judge_domain`. It asks by a function that it is given, and stops at the first question that nobody answers:
being offline is no fault of a domain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

#: (name, kind of record) -> records; () for none, None where nobody could be asked
LookUp = Callable[[str, str], Sequence[str] | None]

#: Source: RFC 2606 2 and 3, RFC 6761 6
_RESERVED = re.compile(r"(?:.*\.)?(?:test|example|invalid|localhost|example\.(?:com|net|org))")


class Offline(Exception):  # noqa: N818 # no error: it is how a look ends where there is no network
    """Nobody could be asked."""


@dataclass(frozen=True, slots=True)
class Found:
    """One thing that keeps mail from arriving."""

    problem: str
    mend: str


def is_reserved(domain: str) -> bool:
    """Return whether a domain is one of those that are nobody's, and of which the DNS knows nothing."""
    return _RESERVED.fullmatch(domain.casefold().rstrip(".")) is not None


def judge_domain(domain: str, host: str, keys: Mapping[str, Callable[[str], bool]], look_up: LookUp) -> list[Found]:
    """Return what is wrong with the records of a sender.

    Args:
        domain: of the From address.
        host: name of the relay that sends; "" where it is not known.
        keys: names of our own DKIM keys (selectors), each with what says whether a record verifies what the key signs;
            empty where the relay signs.
        look_up: asks the DNS.

    Raises:
        Offline: nobody could be asked.
    """

    def ask(name: str, kind: str) -> Sequence[str]:
        found = look_up(name, kind)
        if found is None:
            raise Offline(name)
        return found

    if not any(ask(domain, kind) for kind in ("TXT", "MX", "A", "AAAA", "NS")):
        mend = "set mail.from_address to an address of a domain of yours, or ask another resolver"
        return [Found(f"{domain}: the DNS that was asked knows nothing of it", mend), *_ptr(host, ask)]
    return [*_spf(domain, ask), *_dkim(domain, keys, ask), *_dmarc(domain, ask), *_ptr(host, ask)]


Ask = Callable[[str, str], Sequence[str]]


def _spf(domain: str, ask: Ask) -> Iterator[Found]:
    """Yield what is wrong with who may send (RFC 7208 3.2, 4.5)."""
    records = [text for text in ask(domain, "TXT") if re.match(r"v=spf1(\s|$)", text, re.IGNORECASE)]
    if len(records) != 1:
        count = "no SPF record" if not records else f"{len(records)} SPF records, of which receivers believe none"
        yield Found(
            f"{domain}: {count}", f'publish one TXT record at {domain}: "v=spf1 mx -all", with what sends your mail'
        )
    elif re.search(r"(?:^|\s)\+?all\b", records[0], re.IGNORECASE):
        yield Found(f"{domain}: SPF lets everybody send", "end the SPF record with -all or ~all")


def _dkim(domain: str, keys: Mapping[str, Callable[[str], bool]], ask: Ask) -> Iterator[Found]:
    """Yield what is wrong with the keys that we sign with (RFC 6376 3.6.1)."""
    for selector, verifies in keys.items():
        name = f"{selector}._domainkey.{domain}"
        records = ask(name, "TXT")
        if not records:
            yield Found(
                f"{name}: no DKIM key", f'publish the public key as a TXT record at {name}: "v=DKIM1; k=rsa; p=..."'
            )
        elif not any(re.search(r"(?:^|;)\s*p\s*=\s*[A-Za-z0-9+/]", text) for text in records):
            yield Found(
                f"{name}: a DKIM record without a key, which says that the key was withdrawn", "publish the key again"
            )
        elif not any(verifies(text) for text in records):
            yield Found(f"{name}: not the key that signs", "publish the public half of the key in the settings")


def _dmarc(domain: str, ask: Ask) -> Iterator[Found]:
    """Yield what is wrong with the policy (RFC 7489 6.6.3: the domain's own record, else that of a domain above)."""
    labels = domain.split(".")
    for level in range(max(1, len(labels) - 1)):
        name = f"_dmarc.{'.'.join(labels[level:])}"
        records = [text for text in ask(name, "TXT") if re.match(r"v=DMARC1\s*(;|$)", text)]
        if not records:
            continue
        if len(records) > 1:
            yield Found(f"{name}: {len(records)} DMARC records, of which receivers believe none", "keep one of them")
        elif not re.search(r";\s*p\s*=\s*(none|quarantine|reject)\b", records[0], re.IGNORECASE):
            yield Found(f"{name}: a DMARC record without a policy", "say p=none, p=quarantine or p=reject in it")
        return
    yield Found(
        f"{domain}: no DMARC record", f'publish a TXT record at _dmarc.{domain}: "v=DMARC1; p=none; rua=mailto:..."'
    )


def _ptr(host: str, ask: Ask) -> Iterator[Found]:
    """Yield addresses of the host that have no name which leads back to them: large receivers refuse these."""
    if not host or is_reserved(host) or "." not in host or re.fullmatch(r"[0-9.]+", host):
        return
    addresses = [*ask(host, "A"), *ask(host, "AAAA")]
    if not addresses:
        yield Found(f"relay {host}: no such name", "set mail.host to the name of your relay")
    for address in addresses:
        names = ask(address, "PTR")
        if not any(address in (*ask(name, "A"), *ask(name, "AAAA")) for name in names):
            known = f"its names {', '.join(names)} do not lead back to it" if names else "it has no name (PTR)"
            yield Found(f"relay {host} at {address}: {known}", "have who gave you the address set its reverse name")
