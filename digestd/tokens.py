"""Signed tokens in links and in addresses of mail, without anything stored. Floor 1, pure.

Entry points: :func:`make_token`, :func:`read_token`, :func:`tagged_address`, :func:`bounce_address`,
:func:`read_bounce_address`.

A token: one sign naming the key, the subject, optionally a scope and an expiry, and 128 bits of HMAC-SHA256:
``1a1b2c3d4e5`` + ``k7q3zd5m2x4f6h7j2k3l4m5n6p``. It is written in small letters and digits (Base32), because relays exist
that fold the case of addresses; large letters are read as small ones, and nothing else is forgiven. For that reason the
signature is not made by itsdangerous: its Base64 is lost with its case, and its readers accept several spellings of one
signature, since they compare what is decoded.

The purpose is signed and not carried: a token of one purpose is none of another.
"""

from __future__ import annotations

import hmac
import re
from base64 import b32encode
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from digestd.errors import ConfigError

#: octets of an address before the @-sign
#: Source: RFC 5321 4.5.3.1.1
MOST_LOCAL = 64

#: octets of an address; its path has two angle brackets more
#: Source: RFC 5321 4.5.3.1.3
MOST_ADDRESS = 254

#: half of the hash, the least that RFC 2104 5 recommends
_TAG_BYTES = 16
_TAG_CHARS = 26
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_LEAST_SECRET = 16

_NAME = re.compile(r"[a-z0-9_]{1,32}")
_TOKEN = re.compile(
    rf"(?P<key>[a-z0-9])(?P<subject>[a-z0-9_]{{1,32}})"
    rf"(?:-(?P<scope>[a-z0-9_]{{0,32}})(?:-(?P<until>[0-9a-z]{{1,8}}))?)?[a-z2-7]{{{_TAG_CHARS}}}"
)
_IN_ADDRESS = re.compile(rf"\+(?P<token>[A-Za-z0-9_-]+[A-Za-z2-7]{{{_TAG_CHARS}}})(?:=[^@]*)?@[^@]+")
#: what is safe before the @-sign of a second address: no sign of routes ("%", "!"), nothing beyond ASCII
_PLAIN_ADDRESS = re.compile(r"[A-Za-z0-9._+-]+@[A-Za-z0-9.-]+")


class Purpose(StrEnum):
    """What a token lets its bearer do."""

    CONFIRM = "confirm"
    UNSUBSCRIBE = "unsubscribe"
    PREFERENCES = "preferences"
    FEED = "feed"
    BOUNCE = "bounce"


@dataclass(frozen=True, slots=True)
class Token:
    """What a genuine token says."""

    purpose: Purpose
    subject: str  #: public id
    scope: str = ""
    key_id: str = "1"
    expires_at: datetime | None = None  #: None: never


def make_token(
    secret: bytes,
    purpose: str,
    subject: str,
    *,
    scope: str = "",
    key_id: str = "1",
    expires_at: datetime | None = None,
) -> str:
    """Return a token; of a subject of 12 characters without scope and expiry it has 39.

    Args:
        secret: at least 16 random bytes.
        purpose: what the bearer may do, one of :class:`Purpose`.
        subject: public id in small letters, digits and underscores, at most 32.
        scope: what it is limited to, in the same letters; "" for no limit.
        key_id: one small letter or digit: which of the keys signed it, so that keys can be changed.
        expires_at: from when on it is refused, in whole seconds; None: never.

    Raises:
        ValueError: an argument is not as told; a bug of the caller.
    """
    if len(secret) < _LEAST_SECRET or len(key_id) != 1 or key_id not in _DIGITS:
        raise ValueError(f"expected {_LEAST_SECRET} bytes and a key id of one sign, found {len(secret)} and '{key_id}'")
    if not _NAME.fullmatch(subject) or (scope and not _NAME.fullmatch(scope)):
        raise ValueError(f"expected small letters, digits and underscores, found '{subject}' and '{scope}'")
    until = "" if expires_at is None else _base36(int(expires_at.timestamp()))
    return _write(secret, Purpose(purpose), (key_id, subject, scope, until))


def read_token(secrets: Mapping[str, bytes], token: str, purpose: str, now: datetime) -> Token | None:
    """Return what a token says, None if it is not genuine, is for another purpose, or has expired.

    Args:
        secrets: key id to secret, of all keys that are still believed.
        token: any text.
        purpose: what the bearer wants to do, one of :class:`Purpose`.
        now: the present instant.
    """
    if not token.isascii():  # str.lower makes "k" of the Kelvin sign
        return None
    token = token.lower()
    found = _TOKEN.fullmatch(token)
    secret = secrets.get(found["key"]) if found else None
    if found is None or secret is None:
        return None
    key_id, subject, scope, until = found["key"], found["subject"], found["scope"] or "", found["until"] or ""
    # the whole text is compared, not the signature alone: there is one spelling of a token
    expected = _write(secret, Purpose(purpose), (key_id, subject, scope, until))
    if not hmac.compare_digest(expected.encode(), token.encode()):
        return None
    expires_at = datetime.fromtimestamp(int(until, 36), UTC) if until else None
    if expires_at is not None and now >= expires_at:
        return None
    return Token(Purpose(purpose), subject, scope, key_id, expires_at)


def tagged_address(base: str, token: str) -> str:
    """Return an address that carries a token: "unsubscribe@example.org" gives "unsubscribe+TOKEN@example.org".

    Raises:
        ConfigError: the base is no address, or too long to carry a token.
    """
    local, at, domain = base.rpartition("@")
    tagged = f"{local}+{token}@{domain}"
    if not local or not at or not domain or not _fits(tagged):
        raise ConfigError(
            f"address for replies: expected one with at most {MOST_LOCAL - len(token) - 1} octets before the @-sign, "
            f"found '{base}'"
        )
    return tagged


def bounce_address(base: str, token: str, recipient: str) -> str:
    """Return the envelope sender of one mail: "bounce+TOKEN=user=example.net@digest.example.org".

    The token alone says whose mail came back; the recipient stands there for people who read logs. It is left out where
    the address would become too long, or where it has signs that some relays take for routes.

    Args:
        base: "bounce@digest.example.org".
        token: of the purpose ``BOUNCE``.
        recipient: envelope address of the reader.

    Raises:
        ConfigError: as :func:`tagged_address`.

    Source: RFC 5321 4.5.3.1.1; VERP as qmail and Mailman write it.
    """
    address = tagged_address(base, token)
    if _PLAIN_ADDRESS.fullmatch(recipient) is None:
        return address
    local, _, domain = address.rpartition("@")
    full = f"{local}={recipient.replace('@', '=')}@{domain}"
    return full if _fits(full) else address


def read_bounce_address(address: str) -> str | None:
    """Return the token that an address carries, still to be proved, None if it carries none.

    Args:
        address: any text; may stand in angle brackets.
    """
    found = _IN_ADDRESS.search(address) if len(address) <= 4 * MOST_ADDRESS and address.isascii() else None
    return found["token"].lower() if found else None


def _fits(address: str) -> bool:
    local = address.rpartition("@")[0]
    return len(local.encode()) <= MOST_LOCAL and len(address.encode()) <= MOST_ADDRESS


def _write(secret: bytes, purpose: Purpose, parts: tuple[str, str, str, str]) -> str:
    """Return the token of (key id, subject, scope, expiry in base 36); none of them has a line feed."""
    key_id, subject, scope, until = parts
    limits = f"-{scope}-{until}" if until else f"-{scope}" if scope else ""
    tag = hmac.digest(secret, "\n".join(("digestd token 1", purpose, *parts)).encode(), "sha256")
    return f"{key_id}{subject}{limits}{b32encode(tag[:_TAG_BYTES]).decode().rstrip('=').lower()}"


def _base36(number: int) -> str:
    digits = ""
    while number > 0:
        number, last = divmod(number, 36)
        digits = _DIGITS[last] + digits
    return digits or "0"
