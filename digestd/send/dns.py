"""What the DNS says of a name. Floor 3. Entry point: :func:`look_up`.

The library comes with the extra dkim: the standard library can ask for addresses only, and mail needs TXT and PTR.
"""

from __future__ import annotations

from collections.abc import Sequence

#: seconds that an answer may take, all tries together
_WAIT_S = 5.0


def look_up(name: str, kind: str) -> Sequence[str] | None:
    """Return the records of a name, the strings of each joined.

    Args:
        name: "_dmarc.example.org"; an address in digits for the kind PTR.
        kind: TXT, A, AAAA or PTR.

    Returns:
        () where there is none; None where nobody answers, or the library is not there.
    """
    try:
        import dns.exception
        import dns.resolver
        import dns.reversename
    except ImportError:
        return None
    try:
        wanted = dns.reversename.from_address(name) if kind == "PTR" else name
        answer = dns.resolver.resolve(wanted, kind, lifetime=_WAIT_S, search=False)
    except (dns.resolver.NXDOMAIN, dns.resolver.NoAnswer):
        return ()
    except (dns.exception.DNSException, OSError):
        return None
    if kind == "TXT":
        return [b"".join(record.strings).decode("utf-8", "replace") for record in answer]
    return [record.to_text().rstrip(".") for record in answer]
