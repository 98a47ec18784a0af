"""Bytes become text, and only the wrong bytes are changed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.parse.charset import decode_body, one_line, unmangle

POLISH = "Żółw, Zoë Núñez – 珊瑚"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_decode_body_of_unicode(encoding: str) -> None:
    """Unicode is read with and without a byte order mark."""
    text = f"<?xml version='1.0'?><rss>{POLISH}</rss>"
    assert text == decode_body(text.encode(encoding)).text


def test_decode_body_with_stray_bytes() -> None:
    """Stray windows-1252 bytes are repaired alone; all other letters stay."""
    body = "Żółw".encode() + b"\x92s edge \x96 " + "Zoë".encode()
    found = decode_body(body, "text/xml; charset=utf-8")
    assert "Żółw’s edge – Zoë" == found.text
    assert ("2 stray bytes in utf-8 read as windows-1252",) == found.warnings


@pytest.mark.parametrize(
    ("text", "encoding", "media_type"),
    [
        ('<?xml version="1.0" encoding="windows-1252"?><a>spørsmål – ’</a>', "cp1252", None),
        ('<?xml version="1.0" encoding="iso-8859-1"?><a>spørsmål – ’</a>', "cp1252", None),
        ('<?xml version="1.0" encoding="iso-8859-2"?><a>Żółw</a>', "iso8859-2", "text/xml; charset=ISO-8859-1"),
        ("<a>Żółw</a>", "iso8859-2", 'text/xml; charset="ISO-8859-2"'),
        ('<html><meta charset="shift_jis">珊瑚</html>', "shift_jis", "text/html"),
        ("<a>珊瑚</a>", "iso2022_jp", "text/xml; charset=iso-2022-jp"),
    ],
)
def test_decode_body_as_declared(text: str, encoding: str, media_type: str | None) -> None:
    """What is no UTF-8 is read as declared, Latin-1 as windows-1252, the document's own word before a server's default."""
    assert text == decode_body(text.encode(encoding), media_type).text


def test_decode_body_declared_wrongly() -> None:
    """Valid UTF-8 is UTF-8 whatever is declared, and the lie is told."""
    body = f'<?xml version="1.0" encoding="windows-1250"?><a>{POLISH}</a>'.encode()
    found = decode_body(body)
    assert POLISH in found.text
    assert ("declared as cp1250, found utf-8",) == found.warnings


def test_decode_body_with_unknown_label() -> None:
    """A label that names no encoding is no claim."""
    assert "Zoë" == decode_body("Zoë".encode("cp1252"), "text/xml; charset=kelp-8").text


def test_decode_body_handler_is_for_reading() -> None:
    """Writing with the handler for stray bytes fails as writing does."""
    with pytest.raises(UnicodeEncodeError):
        "Ł".encode("ascii", "digestd-cp1252")


def test_decode_body_of_dangerous_codecs() -> None:
    """A codec that computes is no encoding of a document."""
    assert "a\xff" == decode_body(b"a\xff", "text/xml; charset=unicode_escape").text.replace("ÿ", "\xff")


@given(
    st.binary(max_size=200),
    st.sampled_from([None, "text/xml; charset=utf-16", "text/xml; charset=gbk", "x; charset=zip"]),
)
@settings(max_examples=300, deadline=None)
def test_decode_body_never_raises(body: bytes, media_type: str | None) -> None:
    """Any bytes have a text."""
    assert isinstance(decode_body(body, media_type).text, str)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  a \n\t b  ", "a b"),
        ("a\x00b\x1bc\x85d\u2028e", "abc d e"),
        ("a\ud800b\u202ec\u2066d\ufeff", "abcd"),
        ("title\r\nBcc: x@y.example", "title Bcc: x@y.example"),
        ("क्‍ष", "क्‍ष"),
        ("", ""),
    ],
)
def test_one_line(text: str, expected: str) -> None:
    """White space is one blank; what can't be seen or would turn the text goes; joiners of scripts stay."""
    assert expected == one_line(text)


@given(st.text(max_size=50))
@settings(max_examples=200, deadline=None)
def test_one_line_is_stable(text: str) -> None:
    """Folding twice is folding once, and the result can be encoded."""
    once = one_line(text)
    assert once == one_line(once)
    once.encode("utf-8")


def test_unmangle() -> None:
    """Text read in the wrong code page once is put right; right text stays."""
    assert "Dirk Wübben" == unmangle("Dirk WÃ¼bben")
    for text in ("Ângela", "Łukasz", "Â", "plain", "Â£Ł", "Ã¼ and Ã"):
        assert text == unmangle(text)
