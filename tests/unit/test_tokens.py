"""Tokens: genuine ones are read, nothing else is; addresses that carry them keep the limits of mail."""

from __future__ import annotations

import string
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from digestd.errors import ConfigError
from digestd.tokens import (
    MOST_ADDRESS,
    MOST_LOCAL,
    Purpose,
    Token,
    bounce_address,
    make_token,
    read_bounce_address,
    read_token,
    tagged_address,
)

NOW = datetime(2026, 10, 5, 7, 30, tzinfo=UTC)
SECRET = bytes(range(32))
SECRETS = {"1": SECRET, "2": SECRET[::-1]}
TOKEN = make_token(SECRET, Purpose.UNSUBSCRIBE, "a1b2c3d4e5f6")

NAMES = st.text(string.ascii_lowercase + string.digits + "_", min_size=1, max_size=32)
SCOPES = st.just("") | NAMES
PURPOSES = st.sampled_from(Purpose)
EXPIRIES = st.none() | st.integers(1, 10**11).map(lambda seconds: NOW + timedelta(seconds=seconds))


@given(st.sampled_from(sorted(SECRETS)), PURPOSES, NAMES, SCOPES, EXPIRIES)
@settings(max_examples=1000, deadline=None)
def test_genuine_token_is_read(
    key: str, purpose: Purpose, subject: str, scope: str, expires_at: datetime | None
) -> None:
    """A token says what was put into it, for its purpose, whichever of the believed keys signed it."""
    token = make_token(SECRETS[key], purpose, subject, scope=scope, key_id=key, expires_at=expires_at)
    assert Token(purpose, subject, scope, key, expires_at) == read_token(SECRETS, token, purpose, NOW)
    assert read_token(SECRETS, token.upper(), purpose, NOW) == read_token(SECRETS, token, purpose, NOW)
    assert all(read_token(SECRETS, token, other, NOW) is None for other in Purpose if other is not purpose)
    assert set(token) <= set(string.ascii_lowercase + string.digits + "_-")


def test_token_is_written_the_same_for_ever() -> None:
    """The links of old mails stay good: how a token is signed never changes."""
    assert "1a1b2c3d4e5f6" == TOKEN[:13]
    assert 39 == len(TOKEN)
    # by hand: base32(hmac_sha256(secret, "digestd token 1\nunsubscribe\n1\na1b2c3d4e5f6\n\n")[:16]), small, without "="
    assert TAG == TOKEN[13:]


TAG = "qp266ljer3hxlibzvoosdp7vsu"


def test_link_to_unsubscribe_keeps_its_header_on_one_line() -> None:
    """An address of the web with a token has at most 70 characters, so that no header line is folded inside of it."""
    assert len(f"https://digest.example.org/u/{TOKEN}") <= 70


def alterations(token: str, char: str) -> Iterator[str]:
    """Yield a token cut, with a sign left out, doubled, replaced or put in, and its ends swapped, at each place."""
    for at in range(len(token)):
        yield token[:at]
        yield token[:at] + token[at + 1 :]
        yield token[: at + 1] + token[at:]
        yield token[:at] + char + token[at + 1 :]
        yield token[:at] + char + token[at:]
        if at:
            yield token[at:] + token[:at]


@given(st.characters() | st.sampled_from("abcdefghijklmnopqrstuvwxyz234567-_=."), PURPOSES, NAMES, SCOPES, EXPIRIES)
@settings(max_examples=100, deadline=None)
def test_altered_token_is_refused(
    char: str, purpose: Purpose, subject: str, scope: str, expires_at: datetime | None
) -> None:
    """A token that is cut, flipped, stretched or mixed is no token, and nothing is raised; more than 20,000 are tried."""
    token = make_token(SECRET, purpose, subject, scope=scope, expires_at=expires_at)
    for altered in alterations(token, char):
        if altered != token and (altered.lower() != token or not altered.isascii()):
            assert read_token(SECRETS, altered, purpose, NOW) is None, altered


@given(st.text(max_size=80))
@settings(max_examples=1000, deadline=None)
def test_any_text_is_read_without_raising(text: str) -> None:
    """Whatever stands in a link is answered, never a failure."""
    assert read_token(SECRETS, text, Purpose.FEED, NOW) is None


@pytest.mark.parametrize(
    "text", ["", "1", TOKEN + "\n", " " + TOKEN, TOKEN + "=", TOKEN[:-1] + "\u212a", "é" * 39, "\ud800" + TOKEN]
)
def test_odd_text_is_no_token(text: str) -> None:
    """Texts beyond ASCII, blanks and padding are refused quietly."""
    assert read_token(SECRETS, text, Purpose.UNSUBSCRIBE, NOW) is None


@given(NAMES, NAMES, NAMES, NAMES)
@settings(max_examples=500, deadline=None)
def test_parts_of_two_tokens_make_no_third(one: str, two: str, scope: str, other: str) -> None:
    """The signature of a token is good for its own subject, scope and expiry only."""
    first = make_token(SECRET, Purpose.FEED, one, scope=scope)
    second = make_token(SECRET, Purpose.FEED, two, scope=other)
    mixed = second[:-26] + first[-26:]
    assume(mixed != second)
    assert read_token(SECRETS, mixed, Purpose.FEED, NOW) is None


def test_letter_of_another_alphabet_is_not_folded() -> None:
    """The Kelvin sign is no "k", although its small letter is one."""
    token = make_token(SECRET, Purpose.FEED, "kelp")
    assert read_token(SECRETS, token.replace("k", "K"), Purpose.FEED, NOW) is not None
    assert read_token(SECRETS, token.replace("k", "\u212a"), Purpose.FEED, NOW) is None


def test_token_without_scope_does_not_read_as_one_with_an_empty_scope() -> None:
    """There is one spelling of a token."""
    assert read_token(SECRETS, TOKEN[:-26] + "-" + TOKEN[-26:], Purpose.UNSUBSCRIBE, NOW) is None


def test_subject_that_runs_into_the_scope_is_another_token() -> None:
    """What belongs to the subject and what to the scope is signed too."""
    one = make_token(SECRET, Purpose.FEED, "ab", scope="c")
    two = make_token(SECRET, Purpose.FEED, "a", scope="bc")
    assert one[-26:] != two[-26:]


def test_token_of_another_history_is_refused() -> None:
    """A token that another installation signed is none of ours."""
    foreign = make_token(b"x" * 32, Purpose.CONFIRM, "a1b2c3")
    assert read_token(SECRETS, foreign, Purpose.CONFIRM, NOW) is None


def test_token_of_a_key_no_longer_believed_is_refused() -> None:
    """When a key is taken away, its tokens end."""
    assert read_token({"2": SECRET}, TOKEN, Purpose.UNSUBSCRIBE, NOW) is None
    assert read_token({}, TOKEN, Purpose.UNSUBSCRIBE, NOW) is None


@pytest.mark.parametrize(("offset_s", "good"), [(-1, True), (0, False), (1, False), (10**8, False)])
def test_token_ends_when_it_expires(offset_s: int, *, good: bool) -> None:
    """A token is good until the second in which it expires."""
    token = make_token(SECRET, Purpose.CONFIRM, "a1b2c3", expires_at=NOW)
    found = read_token(SECRETS, token, Purpose.CONFIRM, NOW + timedelta(seconds=offset_s))
    assert good is (found is not None)


@pytest.mark.parametrize("subject", ["", "A1", "a-b", "a.b", "a b", "é", "a\n", "x" * 33])
def test_subject_that_cannot_be_carried_is_a_bug(subject: str) -> None:
    """A public id that a token cannot carry is found when the token is made, not when the reader clicks."""
    with pytest.raises(ValueError, match="small letters"):
        make_token(SECRET, Purpose.FEED, subject)
    if subject:
        with pytest.raises(ValueError, match="small letters"):
            make_token(SECRET, Purpose.FEED, "a1", scope=subject)


@pytest.mark.parametrize(
    ("secret", "key_id"), [(b"", "1"), (b"short", "1"), (SECRET, ""), (SECRET, "12"), (SECRET, "-"), (SECRET, "A")]
)
def test_key_that_is_none_is_a_bug(secret: bytes, key_id: str) -> None:
    """No token is signed with an empty or short secret, or with a key that cannot be named."""
    with pytest.raises(ValueError, match="key id"):
        make_token(secret, Purpose.FEED, "a1", key_id=key_id)


def test_purpose_that_is_none_is_a_bug() -> None:
    """A purpose that nobody reads is found when the token is made."""
    with pytest.raises(ValueError, match="is not a valid Purpose"):
        make_token(SECRET, "subscribe", "a1")


# -- addresses


def test_bounce_address_names_token_and_recipient() -> None:
    """The envelope sender holds the token, and for people who read logs the recipient."""
    expected = f"b+{TOKEN}=mia=kelp.example@reef.example"
    assert expected == bounce_address("b@reef.example", TOKEN, "mia@kelp.example")
    assert TOKEN == read_bounce_address(expected)


@pytest.mark.parametrize(
    "recipient",
    [
        "a.very.long.name@some.long.host.example",
        "zoë@kelp.example",
        "a%b@kelp.example",
        "a!b@kelp.example",
        "a'b@kelp.example",
    ],
)
def test_recipient_that_does_not_fit_is_left_out(recipient: str) -> None:
    """Where the recipient would make the address too long or strange, the token stands alone."""
    assert f"bounce+{TOKEN}@reef.example" == bounce_address("bounce@reef.example", TOKEN, recipient)


LOCALS = st.text(string.ascii_letters + string.digits + ".+_=-%!'é", min_size=1, max_size=64)


@given(
    NAMES.filter(lambda name: len(name) <= 12),
    LOCALS,
    st.sampled_from(["bounce@reef.example", "me+digest@reef.example", "b@x.example"]),
)
@settings(max_examples=1000, deadline=None)
def test_bounce_address_keeps_the_limits_and_reads_back(subject: str, local: str, base: str) -> None:
    """Each envelope sender is one that SMTP takes, in ASCII, and gives its token back, also with its case folded."""
    token = make_token(SECRET, Purpose.BOUNCE, subject)
    address = bounce_address(base, token, f"{local}@kelp.example")
    before, _, domain = address.rpartition("@")
    assert len(before) <= MOST_LOCAL
    assert len(address) <= MOST_ADDRESS
    assert address.isascii()
    assert base.rpartition("@")[2] == domain
    assert token == read_bounce_address(address)
    assert token == read_bounce_address(f"<{address.upper()}>")


def test_tagged_address_carries_the_token() -> None:
    """The address to leave by mail carries its token."""
    assert f"unsubscribe+{TOKEN}@reef.example" == tagged_address("unsubscribe@reef.example", TOKEN)


@pytest.mark.parametrize(
    "base", ["", "bounce", "@reef.example", "bounce@", "a" * 25 + "@reef.example", "b@" + "r" * 250]
)
def test_base_that_cannot_carry_a_token_is_refused(base: str) -> None:
    """An address of the settings that is too long for a token is named, before any mail is lost by it."""
    with pytest.raises(
        ConfigError, match=r"^address for replies: expected one with at most 24 octets before the @-sign"
    ):
        tagged_address(base, TOKEN)


@pytest.mark.parametrize(
    "address",
    [
        "",
        "bounce@reef.example",
        "bounce+abc@reef.example",
        f"bounce{TOKEN}@reef.example",
        f"bounce+{TOKEN}",
        f"b+{TOKEN}é@x.example",
        "+" * 5000,
    ],
)
def test_address_without_a_token_has_none(address: str) -> None:
    """An address that carries no token is read as such."""
    assert read_bounce_address(address) is None


@given(st.text(max_size=200))
@settings(max_examples=500, deadline=None)
def test_any_address_is_read_without_raising(text: str) -> None:
    """Whatever stands in an envelope is answered."""
    assert read_bounce_address(text) is None or "+" in text
