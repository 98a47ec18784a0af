"""Signatures verify, by the verifier of another project, and break when what readers see is changed."""

from __future__ import annotations

import base64
from functools import cache

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.errors import ConfigError
from digestd.send.dkim import DkimKey, KeyKind, check_key, is_published, sign_message

dkim = pytest.importorskip("dkim", reason="the extra dkim is not installed")
pytest.importorskip("nacl", reason="the extra dkim is not installed")

MAIL = (
    b"From: Reef Digest <digest@example.org>\r\nTo: ana@example.net\r\nSubject: Reefs: 3 new\r\n"
    b"Date: Mon, 05 Oct 2026 07:30:00 +0200\r\nMessage-ID: <1@example.org>\r\n"
    b"List-Unsubscribe: <https://example.org/u/x>\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n"
    b"MIME-Version: 1.0\r\nContent-Type: text/plain\r\n\r\nThree papers.\r\n.\r\n\r\n"
)


@cache
def rsa(bits: int = 2048) -> RSAPrivateKey:
    """Return a key; making one takes time."""
    return generate_private_key(65537, bits)


@cache
def ed25519() -> Ed25519PrivateKey:
    """Return a key."""
    return Ed25519PrivateKey.generate()


def pem(key: RSAPrivateKey | Ed25519PrivateKey, form: PrivateFormat = PrivateFormat.PKCS8) -> bytes:
    """Return a key as a file holds it."""
    return key.private_bytes(Encoding.PEM, form, NoEncryption())


def rsa_key(private: bytes | None = None) -> DkimKey:
    """Return an RSA key of ours."""
    return DkimKey("example.org", "r1", KeyKind.RSA, private or pem(rsa()))


def ed_key(private: bytes | None = None) -> DkimKey:
    """Return an Ed25519 key of ours."""
    return DkimKey("example.org", "e1", KeyKind.ED25519, private or pem(ed25519()))


def txt(name: bytes, timeout: float = 5) -> bytes:
    """Answer as DNS would."""
    if name == b"r1._domainkey.example.org.":
        der = rsa().public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
        return b"v=DKIM1; k=rsa; p=" + base64.b64encode(der)
    assert name == b"e1._domainkey.example.org."
    raw = ed25519().public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return b"v=DKIM1; k=ed25519; p=" + base64.b64encode(raw)


def verdicts(mail: bytes) -> list[bool]:
    """Return whether each signature of a mail verifies, from the top."""
    count = mail.split(b"\r\n\r\n", 1)[0].lower().count(b"dkim-signature:")
    return [bool(_verified(mail, n)) for n in range(count)]


def _verified(mail: bytes, number: int) -> bool:
    try:
        return bool(dkim.DKIM(mail).verify(idx=number, dnsfunc=txt))
    except dkim.DKIMException:
        return False


def test_both_signatures_verify_and_rsa_is_first() -> None:
    """Two signatures stand before the very bytes of the mail, RSA on top whatever the order of the keys."""
    signed = sign_message(MAIL, [ed_key(), rsa_key()])
    assert signed.endswith(MAIL)
    assert [True, True] == verdicts(signed)
    head = signed.removesuffix(MAIL)
    assert head.index(b"a=rsa-sha256") < head.index(b"a=ed25519-sha256")
    assert 2 == head.count(b"c=relaxed/relaxed")
    assert all(len(line) <= 78 for line in head.split(b"\r\n"))
    assert head.count(b"\n") == head.count(b"\r\n")


@pytest.mark.parametrize("name", [b"From", b"To", b"Subject", b"Date", b"List-Unsubscribe", b"List-Unsubscribe-Post"])
def test_second_header_breaks_the_signature(name: bytes) -> None:
    """Nobody can add another of the headers that readers and their programs go by."""
    signed = sign_message(MAIL, [rsa_key(), ed_key()])
    assert [False, False] == verdicts(name + b": <https://evil.example>\r\n" + signed)
    assert [False, False] == verdicts(signed.replace(b"\r\n\r\n", b"\r\n" + name + b": x\r\n\r\n", 1))


@pytest.mark.parametrize(
    ("old", "new"), [(b"Three", b"Four"), (b"3 new", b"4 new"), (b"/u/x", b"/u/y"), (b"One-Click", b"Two")]
)
def test_changed_mail_breaks_the_signature(old: bytes, new: bytes) -> None:
    """What is changed on the way does not verify."""
    assert [False] == verdicts(sign_message(MAIL, [rsa_key()]).replace(old, new, 1))


def test_unused_header_cannot_be_added() -> None:
    """A mail without List-Unsubscribe cannot be given one."""
    bare = b"From: digest@example.org\r\nSubject: Confirm\r\n\r\nx\r\n"
    signed = sign_message(bare, [rsa_key()])
    assert [True] == verdicts(signed)
    assert [False] == verdicts(b"List-Unsubscribe: <https://evil.example>\r\n" + signed)


def test_no_keys_no_change() -> None:
    """Without keys the mail stays as it is."""
    assert MAIL == sign_message(MAIL, [])


@pytest.mark.parametrize("form", [PrivateFormat.PKCS8, PrivateFormat.TraditionalOpenSSL])
def test_rsa_file_forms(form: PrivateFormat) -> None:
    """Both usual forms of a key file are read."""
    assert [True] == verdicts(sign_message(MAIL, [rsa_key(pem(rsa(), form))]))


def test_ed25519_as_bare_base64() -> None:
    """The short form of a key is read too."""
    raw = ed25519().private_bytes(Encoding.Raw, PrivateFormat.Raw, NoEncryption())
    assert [True] == verdicts(sign_message(MAIL, [ed_key(base64.b64encode(raw) + b"\n")]))


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (rsa_key(b"nothing"), "dkim: key r1: expected an RSA key in PEM, found something else"),
        (rsa_key(b"-----BEGIN K-----\n!!!\n-----END K-----"), "dkim: key r1: expected an RSA key in PEM"),
        (rsa_key(pem(ed25519())), "dkim: key r1: expected an RSA key in PEM"),
        (ed_key(b"AAAA"), "dkim: key e1: expected an Ed25519 key of 32 octets, found 3"),
        (ed_key(b"!!"), "dkim: key e1: expected base64 or PEM, found something else"),
        (DkimKey("example.org\r\nX: y", "r1", KeyKind.RSA, b""), "dkim: expected a name of DNS"),
        (DkimKey("example.org", "a b", KeyKind.RSA, b""), "dkim: expected a name of DNS, found 'a b'"),
    ],
)
def test_unusable_key_is_named(key: DkimKey, message: str) -> None:
    """A key that cannot be used is found when it is checked, and its text is not shown."""
    with pytest.raises(ConfigError, match=message):
        check_key(key)


def test_short_key_is_refused() -> None:
    """Keys that receivers take for broken are not used."""
    with pytest.raises(ConfigError, match="dkim: key r1: expected at least 2048 bits, found 1024"):
        check_key(rsa_key(pem(rsa(1024))))


def test_key_is_not_shown() -> None:
    """A key does not stand in logs."""
    assert "PRIVATE" not in repr(rsa_key())
    check_key(rsa_key())


@given(st.text(st.characters(codec="ascii", exclude_characters="\r\n"), max_size=200), st.binary(max_size=300))
@settings(max_examples=25, deadline=None)
def test_any_mail_verifies(subject: str, text: bytes) -> None:
    """Whatever stands in subject and text, what we sign verifies."""
    clean = text.replace(b"\r", b"").replace(b"\n", b"\r\n")
    mail = b"From: digest@example.org\r\nSubject: " + subject.encode() + b"\r\n\r\n" + clean + b"\r\n"
    assert [True, True] == verdicts(sign_message(mail, [rsa_key(), ed_key()]))


def test_published_key_is_told_from_another() -> None:
    """A record is ours if it verifies what we sign; another key's, one of another kind, and nonsense are not."""
    rsa_record, ed_record = (txt(b"%s._domainkey.example.org." % name).decode() for name in (b"r1", b"e1"))
    other = rsa_key(pem(generate_private_key(65537, 2048)))
    assert [True, True] == [is_published(rsa_key(), rsa_record), is_published(ed_key(), ed_record)]
    wrong = [(other, rsa_record), (rsa_key(), ed_record), (ed_key(), "v=DKIM1; p=x"), (rsa_key(), "v=DKIM1; p=")]
    assert [False] * 4 == [is_published(key, record) for key, record in wrong]
