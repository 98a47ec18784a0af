"""Addresses: what is taken, what is refused and how that is said, and that nothing is rewritten on the way to the wire."""

from __future__ import annotations

import json
import string
import unicodedata
from collections.abc import Iterator
from email.headerregistry import Address
from email.utils import getaddresses

import pytest
from aiosmtplib.email import parse_address, quote_address
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.addresses import MOST_LOCAL, MOST_TEXT, clean_name, parse_reader, parse_recipients
from digestd.errors import ConfigError
from digestd.model.subscription import Reader
from tests.shared import shared_path


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("mia@kelp.example", Reader("mia@kelp.example", "mia@kelp.example")),
        ("  mia@kelp.example\t", Reader("mia@kelp.example", "mia@kelp.example")),
        ("<mia@kelp.example>", Reader("mia@kelp.example", "mia@kelp.example")),
        ("mia+reefs@kelp.example", Reader("mia+reefs@kelp.example", "mia+reefs@kelp.example")),
        ("MIA@Kelp.EXAMPLE", Reader("MIA@kelp.example", "MIA@kelp.example")),
        ("Postmaster@kelp.example", Reader("Postmaster@kelp.example", "Postmaster@kelp.example")),
        ("o'hara=x#1@kelp.example", Reader("o'hara=x#1@kelp.example", "o'hara=x#1@kelp.example")),
        ("Mia Tang <mia@kelp.example>", Reader("mia@kelp.example", "mia@kelp.example", "Mia Tang")),
        ("Zoë Šírová<zoe@kelp.example>", Reader("zoe@kelp.example", "zoe@kelp.example", "Zoë Šírová")),
        ('"Tang, Mia" <mia@kelp.example>', Reader("mia@kelp.example", "mia@kelp.example", "Tang, Mia")),
        (r'"M. \"Reef\" Tang" <mia@kelp.example>', Reader("mia@kelp.example", "mia@kelp.example", 'M. "Reef" Tang')),
        ('"Mia <m@t.example>" <mia@kelp.example>', Reader("mia@kelp.example", "mia@kelp.example", "Mia <m@t.example>")),
        ("mia@tång.example", Reader("mia@tång.example", "mia@xn--tng-ula.example")),
        ("mia@TÅNG.example", Reader("mia@tång.example", "mia@xn--tng-ula.example")),
        ("mia@xn--tng-ula.example", Reader("mia@tång.example", "mia@xn--tng-ula.example")),
        ("zoë@kelp.example", Reader("zoë@kelp.example", "zoë@kelp.example", smtputf8=True)),
        ("zoe\u0308@kelp.example", Reader("zoë@kelp.example", "zoë@kelp.example", smtputf8=True)),
    ],
)
def test_reader_is_read(text: str, expected: Reader) -> None:
    """An address keeps what stands before the @-sign, its domain is folded, and a name in quotes may hold any sign."""
    assert expected == parse_reader(text)


@pytest.mark.parametrize("text", ["mia@localhost", "mia@reef.localhost", "mia@mail.local", "mia@mail.test", "mia@mail"])
def test_local_host_is_taken_where_asked_for(text: str) -> None:
    """Hosts that are only known near by are refused, unless the operator says that they will do."""
    assert Reader(text, text) == parse_reader(text, allow_local=True)
    with pytest.raises(ConfigError):
        parse_reader(text)


def tricks() -> Iterator[str]:
    """Yield texts that lenient readers rewrite, split or pass on as commands."""
    plain = "mia@kelp.example"
    yield from [
        "",
        " ",
        "\t",
        "mia",
        "@",
        "mia@",
        "@kelp.example",
        "<>",
        '""',
        '"" <>',
        "Mia <>",
        "<mia>",
        "mia@@kelp.example",
    ]
    yield from [
        f"{plain}{sep}eve@evil.example"
        for sep in (",", ", ", ";", "; ", " ", "  ", "\t", ">,<", "|", ")", "(", "\\", "/@")
    ]
    yield from [f"Mia <{plain}>{sep}<eve@evil.example>" for sep in (",", ", ", ";", " ", "")]
    yield from [
        f"Tang, Mia <{plain}>",
        f"a@b <{plain}>",
        f"Mia: {plain};",
        f"undisclosed: <{plain}>",
        f"Mia (x) <{plain}>",
    ]
    yield from ["alice@x)bob@evil.example", "alice(bob)@kelp.example", "mia@kelp.example(c)", "(c)mia@kelp.example"]
    yield from [
        "mia@kelp.example>",
        "<mia@kelp.example",
        "<<mia@kelp.example>>",
        "mia<@kelp.example",
        "<mia@kelp.example> x",
    ]
    yield from [
        '"mia"@kelp.example',
        '"m ia"@kelp.example',
        '"m\\"ia"@kelp.example',
        '"a@b"@kelp.example',
        '""@kelp.example',
    ]
    yield from [
        "m\\ia@kelp.example",
        '"a\r\nb"@kelp.example',
        '"Mia"Tang" <mia@kelp.example>',
        '"Mia <mia@kelp.example>',
    ]
    yield from [
        "-oQ@kelp.example",
        "-oQ/tmp@kelp.example",
        "-X/tmp/log@kelp.example",
        "-bs",
        "-f",
        "--help@kelp.example",
    ]
    yield from [
        "@a.example:mia@kelp.example",
        "<@a.example,@b.example:mia@kelp.example>",
        "mia%kelp.example@evil.example",
    ]
    yield from [
        "evil.example!mia@kelp.example",
        "a!b!mia@kelp.example",
        "mia@kelp.example@evil.example",
        "mailto:mia@kelp.example",
    ]
    yield from [
        "smtp:mia@kelp.example",
        "mia@[127.0.0.1]",
        "mia@[IPv6:::1]",
        "mia@127.0.0.1",
        "mia@1.2.3.4",
        "mia@[kelp.example]",
    ]
    yield from [
        ".mia@kelp.example",
        "mia.@kelp.example",
        "m..ia@kelp.example",
        "mia@.kelp.example",
        "mia@kelp..example",
    ]
    yield from ["mia@kelp.example.", "mia@-kelp.example", "mia@kelp-.example", "mia@kelp_.example", "mia@ke lp.example"]
    yield from [
        "mia @kelp.example",
        "mia@ kelp.example",
        "m ia@kelp.example",
        "mia@kelp.example x",
        "x mia@kelp.example",
    ]
    yield from [
        "mia@kelp.invalid",
        "mia@kelp.onion",
        "mia@kelp.arpa",
        "mia@kelp",
        "mia@localhost",
        "mia@kelp.1",
        "mia@kelp.test",
    ]
    yield from [
        "mia@kelp.example/x",
        "mia@kelp.example?bcc=eve@evil.example",
        "mia@kelp.example#x",
        "mia@kelp.example:25",
    ]
    yield from ["a" * (MOST_LOCAL + 1) + "@kelp.example", "ü" * 33 + "@kelp.example", "mia@" + "k" * 64 + ".example"]
    yield from [
        "mia@" + "k." * 130 + "example",
        "a" * 60 + "@" + ("k" * 60 + ".") * 4 + "example",
        "m" * (MOST_TEXT + 1),
    ]
    yield from ["mia\uff20kelp.example", "mia\ufe6bkelp.example", "\uff20mia@kelp.example", "m\uff0cia@kelp.example"]
    yield from [
        "mia@xn--a.example",
        "mia@xn--.example",
        "mia@kelp\u2024example",
        "mia@\u212ae\u2100.example",
        "mia@\u200b.example",
    ]
    yield from [
        "mia@k\u0338elp.example<",
        "=?utf-8?q?mia?=@kelp.example,",
        "mia@=?utf-8?q?kelp?=.example",
        "mia@kelp.example\x85",
    ]
    unseen = [
        *map(chr, range(0x20)),
        *map(chr, range(0x7F, 0xA0)),
        "\xad",
        "\u200b",
        "\u200e",
        "\u2028",
        "\u2029",
        "\u202e",
    ]
    unseen += ["\u2066", "\ufeff", "\ud800", "\udfff", "\U000e0001", "\ufffe"]
    for sign in unseen:
        yield f"m{sign}ia@kelp.example"
        yield f"mia@ke{sign}lp.example"
    for sign in ["\r", "\n", "\r\n", "\0", "\x0b", "\x0c", "\x85", "\u2028"]:
        yield f"{plain}{sign}"
        yield f"{sign}{plain}"
        yield f"{plain}{sign}RCPT TO:<eve@evil.example>"
        yield f"Mia{sign}Bcc: eve@evil.example <{plain}>"
        yield f'"Mia{sign}Bcc: eve" <{plain}>'


def test_enough_tricks_are_tried() -> None:
    """The table of tricks has at least 300 of them."""
    assert len(set(tricks())) >= 300


@pytest.mark.parametrize("text", list(dict.fromkeys(tricks())), ids=ascii)
def test_trick_is_refused_in_words(text: str) -> None:
    """A text that is not one plain address is refused; the message says where, what was found, what was expected."""
    with pytest.raises(ConfigError) as caught:
        parse_reader(text, line=7)
    message = str(caught.value)
    assert message.startswith("line 7: expected one address like 'ana@example.org', found '")
    assert message.isprintable()
    assert len(message) < 500


def test_error_without_a_line_names_the_address() -> None:
    """Where there is no file, the message names the thing that is wrong."""
    with pytest.raises(ConfigError, match=r"^address: expected one address like 'ana@example.org', found 'mia' \("):
        parse_reader("mia")


def assert_nothing_rewrites(reader: Reader) -> None:
    """Assert that neither the libraries of mail nor we ourselves read another address from what is stored."""
    assert reader == parse_reader(reader.envelope, allow_local=True) or reader.name
    assert reader.envelope == parse_address(reader.envelope)
    assert f"<{reader.envelope}>" == quote_address(reader.envelope)
    assert [("", reader.envelope)] == getaddresses([reader.envelope])
    local, _, domain = reader.envelope.rpartition("@")
    header = Address(reader.name, username=local, domain=domain)
    assert (local, domain) == (header.username, header.domain)
    assert reader.envelope == header.addr_spec
    assert not set(reader.envelope) & set('\r\n\0 <>,;:"()[]\\')
    assert domain.isascii()
    assert domain == domain.lower()
    assert reader.smtputf8 is not local.isascii()
    assert reader.name.isprintable() or not reader.name.isascii()
    assert not set(reader.name) & set("\r\n\0\u202e\u2028")


SIGNS = string.ascii_letters[:6] + "@@..+-_'<>,;:\"\\()[] \t\r\n\0=?!%#üé日＠\u0301\u202e\u200b"


@given(
    st.text(SIGNS, max_size=30) | st.builds("{}@{}".format, st.text(SIGNS, max_size=12), st.text(SIGNS, max_size=12))
)
@settings(max_examples=3000, deadline=None)
def test_wire_address_is_the_stored_one(text: str) -> None:
    """Whatever is accepted goes to the wire as it is stored: no library on the way reads another address from it."""
    try:
        reader = parse_reader(text, allow_local=True)
    except ConfigError:
        return
    assert_nothing_rewrites(reader)


LOCAL = st.text(string.ascii_letters + string.digits + "+_=~'#$&*/?^`{|}", min_size=1, max_size=20)
NAME = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


@given(NAME, LOCAL, st.sampled_from(["kelp.example", "Tång.example", "a.b-c.EXAMPLE", "日本.example"]))
@settings(max_examples=1500, deadline=None)
def test_quoted_name_never_changes_the_address(name: str, local: str, domain: str) -> None:
    """A displayed name in quotes holds any sign, and the address behind it stays what it is."""
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')
    if any(unicodedata.category(char) in {"Cc", "Zl", "Zp"} and char != "\t" for char in name):
        with pytest.raises(ConfigError, match="control character"):  # the only thing that a name must not have
            parse_reader(f'"{quoted}" <{local}@{domain}>')
        return
    reader = parse_reader(f'"{quoted}" <{local}@{domain}>')
    assert f"{local}@{domain}".lower() == reader.address.lower()
    assert local == reader.address.partition("@")[0]
    assert_nothing_rewrites(reader)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("  Mia \t Tang ", "Mia Tang"),
        ("Mia\r\nBcc: eve", "Mia Bcc: eve"),
        ("\u202eaiM\u202c", "aiM"),
        ("Mi\x00a\x1b[0m", "Mia[0m"),
        ("نام\u200cها", "نام\u200cها"),
        ("Zoe\u0308", "Zoë"),
        ("x" * 200, "x" * 100),
    ],
)
def test_name_is_cleaned(name: str, expected: str) -> None:
    """A displayed name is one line without unseen signs; the joiners that scripts need stay."""
    assert expected == clean_name(name)


def test_recipients_of_a_file() -> None:
    """A file gives a reader a line, passes over comments, and names each bad line by its number."""
    text = "\ufeff# readers\r\nmia@kelp.example\r\n\r\n  # gone\n  Zoë <zoe@kelp.example>\nbad@@kelp.example\nMIA@kelp.example"
    readers, problems = parse_recipients(text)
    assert [
        Reader("mia@kelp.example", "mia@kelp.example"),
        Reader("zoe@kelp.example", "zoe@kelp.example", "Zoë"),
    ] == readers
    assert [
        "line 6: expected one address like 'ana@example.org', found 'bad@@kelp.example' (more than one @-sign)",
        "line 7: expected each address once, found 'MIA@kelp.example' on line 2 too",
    ] == problems


def test_strange_line_ends_do_not_move_line_numbers() -> None:
    """Signs that only some programs take for line ends neither part a line nor shift the numbers of those behind it."""
    readers, problems = parse_recipients("mia@kelp.example\x0beve@evil.example\nx\n")
    assert [] == readers
    assert ["line 1", "line 2"] == [problem.partition(":")[0] for problem in problems]


def test_recipients_of_local_hosts() -> None:
    """A file of readers on this machine is read where that is allowed."""
    assert ([Reader("mia@localhost", "mia@localhost")], []) == parse_recipients("mia@localhost", allow_local=True)


@given(st.lists(st.text(SIGNS, max_size=20), max_size=8))
@settings(max_examples=300, deadline=None)
def test_each_line_is_accounted_for(lines: list[str]) -> None:
    """No line of a file is lost without a word: it is a reader, a problem, a comment, or empty."""
    text = "\n".join(line.replace("\n", " ").replace("\r", " ") for line in lines)
    readers, problems = parse_recipients(text)
    told = [line for line in text.split("\n") if line.strip(" \t") and not line.strip(" \t").startswith("#")]
    assert len(told) == len(readers) + len(problems)


def test_case_of_plus_idn_and_commas() -> None:
    """The recipients of the case with plus signs, foreign domains and a comma in a name are read as it expects."""
    folder = shared_path("cases", "open", "14-recipients-plus-idn-and-commas")
    check = json.loads((folder / "case.json").read_text(encoding="utf-8"))["check"]
    readers, problems = parse_recipients((folder / "recipients.txt").read_text(encoding="utf-8"))
    assert [*check["envelope"], *check["needs_smtputf8"]] == [reader.envelope for reader in readers]
    assert check["needs_smtputf8"] == [reader.address for reader in readers if reader.smtputf8]
    assert check["display_name"] == {reader.address: reader.name for reader in readers if reader.name}
    assert [f"line {check['refused']['line']}"] == [problem.partition(":")[0] for problem in problems]
