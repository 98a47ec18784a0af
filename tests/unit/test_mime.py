"""What a finished mail promises: the headers that were meant and no other, the same bytes each time."""

from __future__ import annotations

import email
import os
import re
from dataclasses import replace
from datetime import UTC, datetime
from email import charset, policy
from email.message import EmailMessage
from email.utils import getaddresses

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from digestd.errors import RenderError
from digestd.model.delivery import MailParts, Picture
from digestd.render.header_guard import check_head, clean_header, encode_text, header_line, mailbox
from digestd.render.mime import (
    MailHeaders,
    boundary,
    build_message,
    clean_text,
    finish,
    is_placeholder,
    message_id,
    placeholder,
    quoted_printable,
    skeleton_of,
)

#: 2,000 hostile examples in the normal run; ``DIGESTD_SOAK=1`` makes it 20,000.
EXAMPLES = 20_000 if os.environ.get("DIGESTD_SOAK") else 2_000

PARTS = MailParts(subject="Reef Sound up 145%, 7 new papers", text="Größe – ok\n", html="<p>Größe – ok</p>\n")
HEADERS = MailHeaders(
    sender="digest@digest.example.org",
    recipient="ada@example.org",
    date=datetime(2026, 9, 30, 6, 0, tzinfo=UTC),
    message_id="<abc@digest.example.org>",
    key="weekly|2026-09-30",
    sender_name="Reef Papers Weekly",
    reply_to="editor@example.org",
    list_id="weekly.digest.example.org",
    list_name="Reef Papers Weekly",
    unsubscribe_url="https://digest.example.org/u/k7Qx",
    unsubscribe_mailto="unsubscribe+k7Qx@digest.example.org",
    archived_at="https://digest.example.org/d/2026-09-30",
    feedback_id="weekly:digest:main:digestd01",
    references="<root@digest.example.org>",
)
BARE = MailHeaders(
    sender="d@x.example",
    recipient="a@x.example",
    date=datetime(2026, 9, 30, 6, 0, tzinfo=UTC),
    message_id="<1@x.example>",
    key="k",
)
ALL_NAMES = [
    "From", "Reply-To", "To", "Subject", "Date", "Message-ID", "References", "In-Reply-To", "List-Id",
    "List-Unsubscribe", "List-Unsubscribe-Post", "Archived-At", "Auto-Submitted", "Precedence",
    "X-Auto-Response-Suppress", "Feedback-ID", "MIME-Version", "Content-Language", "Content-Type",
]  # fmt: skip
PICTURE = Picture("weeks-1@digestd", b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 2, "reef-sound.png")


def parse(raw: bytes) -> EmailMessage:
    """Return a mail as the standard library's newest parser reads it."""
    message = email.message_from_bytes(raw, policy=policy.default)
    assert isinstance(message, EmailMessage)
    return message


def content(part: object) -> str:
    """Return the text of a part with its line ends as LF."""
    assert isinstance(part, EmailMessage)
    return str(part.get_content()).replace("\r\n", "\n")


def names_on_wire(raw: bytes) -> list[str]:
    """Return the names of all header lines, continuation lines left out."""
    head = raw.split(b"\r\n\r\n", 1)[0]
    return [line.split(b":")[0].decode() for line in head.split(b"\r\n") if line[:1] not in b" \t"]


def test_build_message_all_headers_in_order() -> None:
    """A service with a web address sends each header that bulk mail needs, once."""
    message = parse(build_message(PARTS, HEADERS))
    assert message.keys() == ALL_NAMES
    assert message["From"] == "Reef Papers Weekly <digest@digest.example.org>"
    assert message["To"] == "ada@example.org"
    assert message["Date"] == "Wed, 30 Sep 2026 06:00:00 +0000"
    assert message["List-Id"] == '"Reef Papers Weekly" <weekly.digest.example.org>'
    assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    assert message["Archived-At"] == "<https://digest.example.org/d/2026-09-30>"
    assert message["References"] == message["In-Reply-To"] == "<root@digest.example.org>"
    assert message["Auto-Submitted"] == "auto-generated"


def test_build_message_without_web_address() -> None:
    """Headers that need a web address are left out where there is none, one-click above all."""
    assert parse(build_message(PARTS, BARE)).keys() == [
        "From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "Precedence", "X-Auto-Response-Suppress",
        "MIME-Version", "Content-Language", "Content-Type",
    ]  # fmt: skip
    by_mail = parse(build_message(PARTS, replace(BARE, unsubscribe_mailto="stop+k@x.example")))
    assert by_mail["List-Unsubscribe"] == "<mailto:stop+k@x.example?subject=unsubscribe>"
    assert "List-Unsubscribe-Post" not in by_mail


def test_build_message_bodies_read_back() -> None:
    """Text comes first, HTML last, both quoted-printable in ASCII."""
    raw = build_message(PARTS, HEADERS)
    message = parse(raw)
    assert raw.isascii()
    assert [part.get_content_type() for part in message.walk()] == ["multipart/alternative", "text/plain", "text/html"]
    text, html = message.iter_parts()
    assert text["Content-Transfer-Encoding"] == html["Content-Transfer-Encoding"] == "quoted-printable"
    assert content(text) == "Größe – ok\n"
    assert content(html) == "<p>Größe – ok</p>\n"


def test_build_message_pictures_are_related_to_the_html() -> None:
    """Pictures stand beside the HTML under their content id, byte for byte."""
    message = parse(build_message(replace(PARTS, pictures=(PICTURE,)), HEADERS))
    kinds = ["multipart/alternative", "text/plain", "multipart/related", "text/html", "image/png"]
    assert [part.get_content_type() for part in message.walk()] == kinds
    picture = list(message.walk())[-1]
    assert picture["Content-ID"] == "<weeks-1@digestd>"
    assert picture.get_payload(decode=True) == PICTURE.png
    assert picture.get_filename() == "reef-sound.png"


def test_build_message_picture_names_are_harmless() -> None:
    """A picture's name cannot end its header."""
    raw = build_message(replace(PARTS, pictures=(replace(PICTURE, name='a"\r\nX: ü.png'),)), HEADERS)
    assert b'filename="a---X---.png"' in raw


def test_build_message_is_the_same_each_time() -> None:
    """A retry sends the very same bytes; another key gives other boundaries only."""
    parts = replace(PARTS, pictures=(PICTURE,))
    assert build_message(parts, HEADERS) == build_message(parts, HEADERS)
    other = build_message(parts, replace(HEADERS, key="another"))
    assert re.sub(rb"=_[0-9a-f]{32}", b"", other) == re.sub(rb"=_[0-9a-f]{32}", b"", build_message(parts, HEADERS))
    assert other != build_message(parts, HEADERS)


@pytest.mark.parametrize("length", [40, 75, 76, 77, 200, 900])
def test_build_message_unsubscribe_link_is_never_torn(length: int) -> None:
    """A one-click link of any length up to 900 stands bare on one line, as the receivers read it."""
    url = "https://digest.example.org/u/".ljust(length, "A")
    raw = build_message(PARTS, replace(HEADERS, unsubscribe_url=url))
    assert f"<{url}>".encode() in raw
    assert parse(raw)["List-Unsubscribe"].startswith(f"<{url}>")
    assert max(map(len, raw.split(b"\r\n"))) <= 998


def test_build_message_too_long_a_link_is_refused() -> None:
    """A link that no line can hold is an error, not a torn line."""
    with pytest.raises(RenderError, match="998"):
        build_message(PARTS, replace(HEADERS, unsubscribe_url="https://x.example/" + "A" * 1_000))


@pytest.mark.parametrize("field", ["unsubscribe_url", "archived_at", "list_id", "message_id", "references"])
@pytest.mark.parametrize("value", ["https://x.example/>, <https://evil.example/", "a b", "a\r\nBcc: e@e.example", "ü"])
def test_build_message_refuses_links_that_could_end_early(field: str, value: str) -> None:
    """A link or id in angle brackets holds no bracket, blank or line break, and only ASCII."""
    with pytest.raises(RenderError, match="header"):
        build_message(PARTS, replace(HEADERS, **{field: value}))  # type: ignore[arg-type]  # each of these is a text


@pytest.mark.parametrize(
    "address",
    [
        "ada", "a@x.example, b@y.example", "a@x.example\r\nBcc: b@y.example", "alice@x.example)bob@evil.example",
        '"a b"@x.example', "<a@x.example>", "a@bücher.example", "a@", "@x.example", "a@x y",
        "a\x00@x.example", "a@x.example b@y.example", "Ada <a@x.example>", "a(b)@x.example", "a@x.example\n",
    ],
)  # fmt: skip
@pytest.mark.parametrize("field", ["recipient", "sender", "reply_to", "unsubscribe_mailto"])
def test_build_message_refuses_all_but_plain_addresses(field: str, address: str) -> None:
    """The address on the wire is the stored one, or there is no mail."""
    with pytest.raises(RenderError, match="plain ASCII address"):
        build_message(PARTS, replace(HEADERS, **{field: address}))  # type: ignore[arg-type]  # all of them are texts


@pytest.mark.parametrize("field", ["sender", "reply_to", "unsubscribe_mailto"])
def test_build_message_refuses_addresses_of_ours_beyond_ascii(field: str) -> None:
    """What all readers get must pass relays that know no SMTPUTF8."""
    with pytest.raises(RenderError, match="plain ASCII address"):
        build_message(PARTS, replace(HEADERS, **{field: "jürgen@example.org"}))  # type: ignore[arg-type]  # as above


def test_build_message_writes_a_reader_beyond_ascii_as_it_is() -> None:
    """An address that needs SMTPUTF8 stands in To as it is, and nothing else beyond ASCII stands in the headers."""
    head = build_message(PARTS, replace(HEADERS, recipient="jürgen@example.org")).split(b"\r\n\r\n")[0]
    (line,) = [line for line in head.split(b"\r\n") if not line.isascii()]
    assert "To: jürgen@example.org" == line.decode()


def test_build_message_names_the_reader() -> None:
    """A reader's name with comma and accents is one name of one address."""
    raw = build_message(PARTS, replace(HEADERS, recipient="luz@example.org", recipient_name="Pérez, Luz"))
    (address,) = email.message_from_bytes(raw, policy=policy.default)["To"].addresses
    assert ("Pérez, Luz", "luz@example.org") == (address.display_name, address.addr_spec)


@pytest.mark.parametrize("field", ["recipient", "sender", "unsubscribe_mailto"])
def test_build_message_refuses_an_empty_address(field: str) -> None:
    """An address that was never set is an error, not an empty header."""
    with pytest.raises(RenderError, match="plain ASCII address"):
        build_message(PARTS, replace(HEADERS, **{field: ""}))  # type: ignore[arg-type]  # all of them are texts


LITERAL = pytest.param(
    "a@[192.0.2.1]",
    marks=pytest.mark.skipif(
        getaddresses(["a@[192.0.2.1]"]) != [("", "a@[192.0.2.1]")],
        reason="this Python reads no address literals (3.11.2 does not, 3.11.7 does): such a mail is refused",
    ),
)


@pytest.mark.parametrize(
    "address", ["reader+papers@example.org", "BOSS@example.org", "l@xn--bcher-kva.example", LITERAL]
)
def test_build_message_takes_ordinary_addresses(address: str) -> None:
    """Plus signs, capitals, A-labels and address literals pass as they are."""
    assert f"\r\nTo: {address}\r\n".encode() in build_message(PARTS, replace(HEADERS, recipient=address))


_ATOMS = st.sampled_from([
    "\r", "\n", "\r\n", " ", "\t", "\x00", "\x85", "\u2028", "=?utf-8?q?", "=?utf-8?b?", "?=", "=0D=0A", "Bcc: e@e",
    "=?utf-8?q?a=0D=0ABcc:_e@e?=", "=?iso-8859-1?q?=0A?=", "<", ">", '"', "\\", ",", ":", ";", "(", ")", "@", "é",
    "\ud800", "\u202e", "a" * 40, "b ", "=?", "?", "=", "=\u200b?utf-8?q?=0AX:1?=", "= ?utf-8?q?=0A?=", "紙" * 30,
    "~~0123456789abcdef01234567~~",
])  # fmt: skip
HOSTILE = st.lists(_ATOMS, max_size=12).map("".join) | st.text(max_size=120)


@given(subject=HOSTILE, name=HOSTILE, topic=HOSTILE, url_length=st.integers(30, 900))
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
def test_build_message_hostile_text_adds_no_header(subject: str, name: str, topic: str, url_length: int) -> None:
    """Whatever titles, names and topics hold, the header set, the addresses and the links are those that were meant."""
    url = "https://digest.example.org/u/".ljust(url_length, "a")
    headers = replace(HEADERS, sender_name=name, list_name=topic, unsubscribe_url=url)
    raw = build_message(MailParts(subject, topic, f"<p>{len(topic)}</p>"), headers)
    head = raw.split(b"\r\n\r\n", 1)[0]
    assert names_on_wire(raw) == ALL_NAMES
    assert head.isascii()
    assert re.search(rb"\r(?!\n)|(?<!\r)\n|\x00", head) is None
    message = parse(raw)
    assert message.keys() == ALL_NAMES
    assert [address.addr_spec for address in message["From"].addresses] == [HEADERS.sender]
    assert [address.addr_spec for address in message["To"].addresses] == [HEADERS.recipient]
    assert [address.addr_spec for address in message["Reply-To"].addresses] == [HEADERS.reply_to]
    assert f"<{url}>".encode() in head
    assert str(message["Subject"]).split() == (clean_header(subject, 200) or "(no subject)").split()
    assert max(map(len, raw.split(b"\r\n"))) <= 998


def test_clean_header_breaks_what_mail_programs_decode() -> None:
    """Line ends become blanks, marks of encoded words are broken, long text is cut."""
    assert clean_header("a\r\nBcc: b", 200) == "a Bcc: b"
    assert clean_header("=?utf-8?q?x?=", 200) == "= ?utf-8?q?x? ="
    assert clean_header("=\u200b?=\u200b?", 200) == "= ? = ?"
    assert "=?" not in clean_header("=?=?=?=", 200)
    assert clean_header("  folded \t white\u2028space ", 200) == "folded white space"
    assert clean_header("abc def", 4) == "abc"


def test_encode_text_words_are_short_and_read_back() -> None:
    """Encoded words are at most 75 characters and never cut a character."""
    text = "Größe und 紙" * 12
    encoded = encode_text(text, "Subject")
    assert all(len(word) <= 75 for word in encoded.split(" "))
    parsed = email.message_from_bytes(header_line("Subject", encoded), policy=policy.default)
    assert parsed["Subject"] == text


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("", "a@x.example"),
        ("Reef Papers", "Reef Papers <a@x.example>"),
        ("Reef, Kelp", '"Reef, Kelp" <a@x.example>'),
        ('The "Reef" \\ Kelp', '"The \\"Reef\\" \\\\ Kelp" <a@x.example>'),
        ("Größe", "=?utf-8?b?R3LDtsOfZQ==?= <a@x.example>"),
    ],
)
def test_mailbox(name: str, expected: str) -> None:
    """A display name is bare, quoted or encoded as it needs."""
    assert mailbox(name, "a@x.example", "From") == expected


def test_headers_are_the_same_whatever_other_libraries_do() -> None:
    """A library may change for the whole process how the standard library encodes; a retry must be the same bytes."""
    before = encode_text("Größe", "From")
    known = dict(charset.CHARSETS)
    try:
        charset.add_charset("utf-8", charset.QP, charset.QP, "utf-8")
        assert before == encode_text("Größe", "From") == "=?utf-8?b?R3LDtsOfZQ==?="
    finally:
        charset.CHARSETS.clear()
        charset.CHARSETS.update(known)


def test_header_line_folds_at_blanks_only() -> None:
    """Long values go on at the next line before a blank, the first token stays beside the name."""
    line = header_line("X-Long", " ".join(["a" * 40] * 3))
    assert line == b"X-Long: " + b"a" * 40 + b"\r\n " + b"a" * 40 + b"\r\n " + b"a" * 40 + b"\r\n"
    assert header_line("X-Long", "a" * 200) == b"X-Long: " + b"a" * 200 + b"\r\n"


@pytest.mark.parametrize("value", ["", "a\nb", "a\rb", "ü", "a\x00b", "a\tb"])
def test_header_line_refuses_anything_but_a_line(value: str) -> None:
    """What is no printable ASCII line is no header."""
    with pytest.raises(RenderError, match="header X"):
        header_line("X", value)


@pytest.mark.parametrize(
    ("head", "found"),
    [
        (b"From: a@x.example\r\nBcc: b@x.example\r\n", "expected the headers"),
        (b"From: a@x.example, b@x.example\r\n", "header From"),
        (b"From: b@x.example\r\n", "header From"),
        (b"From: a@x.example\n", "bare line break"),
        (b"From: a@x.example\r\nno header\r\n", "expected the headers"),
        ("From: a@x.example ü\r\n".encode(), "beyond ASCII"),
    ],
)
def test_check_head_finds_what_was_not_meant(head: bytes, found: str) -> None:
    """Reading back finds headers, addresses and line breaks that should not be there."""
    check_head(b"From: A <a@x.example>\r\n", ["From"], {"From": ["a@x.example"]})
    with pytest.raises(RenderError, match=found):
        check_head(head, ["From"] if b"no header" not in head else ["From", "X"], {"From": ["a@x.example"]})


def test_quoted_printable_keeps_lines_safe() -> None:
    """Lines of one dot, lines that begin with "From " and blanks at the end survive mailboxes and relays."""
    raw = quoted_printable(".\nFrom here\n-- \n")
    assert raw == b"=2E\r\n=46rom here\r\n--=20\r\n"


@given(st.text(max_size=400))
@settings(max_examples=300, deadline=None)
def test_quoted_printable_reads_back(text: str) -> None:
    """Any text comes back as it was, control characters and bidi overrides aside, in lines of at most 76."""
    raw = quoted_printable(text)
    message = email.message_from_bytes(
        b"Content-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\n" + raw
    )
    payload = message.get_payload(decode=True)
    assert isinstance(payload, bytes)
    assert payload.decode().replace("\r\n", "\n") == clean_text(text).rstrip("\n") + "\n"
    assert max(map(len, raw.split(b"\r\n"))) <= 78
    assert b"\n" not in raw.replace(b"\r\n", b"")


def test_clean_text_drops_what_turns_text_around() -> None:
    """Control characters, bidi overrides and half surrogates go; joiners of real names stay."""
    assert clean_text("a\r\nb\rc\x00\x1b[2J\u202ed\ud800\u200d\te") == "a\nb\nc[2Jd\u200d e"


def test_message_id_is_stable_and_tells_nothing() -> None:
    """The same delivery has the same id, any other another one; no address is in it."""
    one = message_id("uuid", "digest", "sched7|2026-03-08T08:00", "42", "digest.example.org")
    assert one == message_id("uuid", "digest", "sched7|2026-03-08T08:00", "42", "digest.example.org")
    assert re.fullmatch(r"<[a-z2-7]{32}@digest\.example\.org>", one)
    others = {
        message_id("other", "digest", "sched7|2026-03-08T08:00", "42", "digest.example.org"),
        message_id("uuid", "confirm", "sched7|2026-03-08T08:00", "42", "digest.example.org"),
        message_id("uuid", "digest", "sched7|2026-03-15T08:00", "42", "digest.example.org"),
        message_id("uuid", "digest", "sched7|2026-03-08T08:00", "43", "digest.example.org"),
    }
    assert len(others | {one}) == 5


def test_boundary_is_stable_and_cannot_be_in_a_body() -> None:
    """A boundary comes from its key and begins with what no encoded body can hold."""
    assert boundary("a") == boundary("a") != boundary("b")
    assert boundary("a").startswith("=_")
    assert boundary(f"{HEADERS.key}|alternative").encode() not in quoted_printable(
        boundary(f"{HEADERS.key}|alternative")
    )


def test_finish_puts_each_readers_values_in() -> None:
    """One skeleton serves all readers: values of any length, escaped in HTML only, equal to a mail built for one."""
    link, address = placeholder("unsubscribe", "secret"), placeholder("address", "secret")
    assert is_placeholder(link)
    parts = replace(
        PARTS,
        text=f"For {address}, leave:\n{link}\n",
        html=f'<p>For {address}: <a href="{link}">leave</a> ' + "x" * 200 + "</p>\n",
    )
    skeleton = skeleton_of(parts, HEADERS.key)
    for url in ("https://x.example/u", "https://x.example/u?a=1&b=" + "9" * 300):
        message = parse(finish(skeleton, HEADERS, {link: url, address: "o'neil&co@x.example"}))
        text, html = message.iter_parts()
        assert content(text) == f"For o'neil&co@x.example, leave:\n{url}\n"
        assert f'href="{url.replace("&", "&amp;")}"' in content(html)
        assert "For o&#x27;neil&amp;co@x.example:" in content(html)


def test_finish_leaves_unknown_placeholders_alone() -> None:
    """A title that looks like a placeholder is printed as it is."""
    title = "~~0123456789abcdef01234567~~"
    message = parse(build_message(replace(PARTS, text=f"{title}\n"), HEADERS))
    assert content(next(message.iter_parts())) == f"{title}\n"
    other = parse(finish(skeleton_of(replace(PARTS, text=f"{title}\n"), "k"), HEADERS, {placeholder("a", "k"): "b"}))
    assert content(next(other.iter_parts())) == f"{title}\n"
