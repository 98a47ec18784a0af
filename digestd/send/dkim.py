"""DKIM signatures for those whose relay does not sign. Floor 3; entry: ``sign_message``. Needs the extra ``dkim``.

Sign once, when the bytes of a message are made, and store them signed: a signature has a time in it, and a retry sends the
same bytes. RSA comes first, because large providers do not verify Ed25519; the second signature stands for those that do.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from digestd.errors import ConfigError

#: what a signature covers where it is there; List-Unsubscribe and its Post must be (RFC 8058 4)
_SIGNED = (
    "From",
    "To",
    "Subject",
    "Date",
    "Message-ID",
    "Reply-To",
    "In-Reply-To",
    "References",
    "MIME-Version",
    "Content-Type",
    "Content-Transfer-Encoding",
    "Content-Language",
    "List-Id",
    "List-Unsubscribe",
    "List-Unsubscribe-Post",
    "List-Help",
    "List-Owner",
    "List-Archive",
    "List-Post",
    "Archived-At",
    "Auto-Submitted",
    "Feedback-ID",
)
#: signed once more than they occur, so that nobody can add one that readers would see instead (RFC 6376 5.4.2)
_OVERSIGNED = ("From", "To", "Subject", "Date", "List-Unsubscribe", "List-Unsubscribe-Post")
_LEAST_RSA_BITS = 2048  # RFC 8301 3.2 asks for 1024 at least and recommends this
#: what stands before the 32 octets of a key in the usual file form (RFC 8410 7)
_ED25519_HEAD = bytes.fromhex("302e020100300506032b657004220420")


class KeyKind(StrEnum):
    """Algorithm of a signature."""

    RSA = "rsa-sha256"
    ED25519 = "ed25519-sha256"


@dataclass(frozen=True, slots=True)
class DkimKey:
    """A key and where its public half stands: ``SELECTOR._domainkey.DOMAIN``."""

    domain: str
    selector: str
    kind: KeyKind
    private: bytes = field(repr=False)  #: PEM (PKCS #1 or #8), or the 32 octets of an Ed25519 key in base64


def sign_message(body: bytes, keys: Sequence[DkimKey]) -> bytes:
    """Return the bytes of a mail with one signature for each key before them, RSA first.

    Args:
        body: headers and text with CRLF line ends; the very bytes that are sent.
        keys: may be empty, then the mail stays as it is.

    Raises:
        ConfigError: the extra is not installed, a key cannot be read or is too short, or a domain or selector has
            characters that DNS names do not have.
    """
    order = list(KeyKind)
    signatures = [_signature(body, key) for key in sorted(keys, key=lambda key: order.index(key.kind))]
    return b"".join(signatures) + body


def check_key(key: DkimKey) -> None:
    """Raise the ConfigError that signing with this key would raise."""
    _signature(b"From: a@example.org\r\n\r\n", key)


def is_published(key: DkimKey, record: str) -> bool:
    """Return whether a record of the DNS lets receivers verify what a key signs, found by doing both.

    Raises:
        ConfigError: the key cannot sign.
    """
    mail = sign_message(b"From: a@example.org\r\n\r\n", [key])
    import dkim  # type: ignore[import-untyped]  # the package has no types

    try:
        return bool(dkim.DKIM(mail).verify(dnsfunc=lambda *_, **__: record.encode()))
    except (dkim.DKIMException, ValueError):
        return False


def _signature(body: bytes, key: DkimKey) -> bytes:
    # Here and not above: the extra need not be there for those who do not sign.
    try:
        import dkim
    except ImportError as error:
        raise ConfigError("dkim: expected the package dkimpy (extra 'dkim'), found none") from error
    for name in (key.domain, key.selector):
        if not re.fullmatch(r"[A-Za-z0-9_](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?", name):
            raise ConfigError(f"dkim: expected a name of DNS, found '{name}'")
    signer = dkim.DKIM(body, signature_algorithm=key.kind.value.encode())
    try:
        line = signer.sign(
            key.selector.encode(),
            key.domain.encode(),
            _private_key(key),
            canonicalize=(b"relaxed", b"relaxed"),
            include_headers=_headers_to_sign(signer.headers),
        )
    except dkim.DKIMException as error:
        raise ConfigError(f"dkim: key {key.selector}: {error}") from error
    return bytes(line)


def _headers_to_sign(headers: Sequence[tuple[bytes, bytes]]) -> list[bytes]:
    """Return the names to sign, each as often as it occurs, some once more."""
    found = [name.strip().lower() for name, _ in headers]
    names = [name.lower().encode() for name in _SIGNED]
    return [name for name in names for _ in range(found.count(name))] + [name.lower().encode() for name in _OVERSIGNED]


def _private_key(key: DkimKey) -> bytes:
    """Return the key in the form that the library wants: PEM for RSA, base64 of 32 octets for Ed25519."""
    if key.kind is KeyKind.RSA:
        _check_rsa(key)
        return key.private
    text = re.sub(rb"-----[A-Z ]+-----|\s", b"", key.private)
    try:
        octets = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ConfigError(f"dkim: key {key.selector}: expected base64 or PEM, found something else") from error
    octets = octets.removeprefix(_ED25519_HEAD)
    if len(octets) != 32:
        raise ConfigError(f"dkim: key {key.selector}: expected an Ed25519 key of 32 octets, found {len(octets)}")
    return base64.b64encode(octets)


def _check_rsa(key: DkimKey) -> None:
    from dkim.crypto import UnparsableKeyError, parse_pem_private_key  # type: ignore[import-untyped]  # as above

    try:
        bits = parse_pem_private_key(key.private)["modulus"].bit_length()
    except (UnparsableKeyError, ValueError) as error:  # its words go over many lines
        raise ConfigError(f"dkim: key {key.selector}: expected an RSA key in PEM, found something else") from error
    if bits < _LEAST_RSA_BITS:
        raise ConfigError(f"dkim: key {key.selector}: expected at least {_LEAST_RSA_BITS} bits, found {bits}")
