"""The grammar that our Atom feeds are held against takes what RFC 4287 allows and nothing else."""

from __future__ import annotations

import pytest

from tests.schema import check_atom

ENTRY = (
    "<entry><id>tag:reef.example,2026:1</id><title>Echo</title><updated>2026-09-30T06:00:00Z</updated>"
    '<link href="https://reef.example/1"/></entry>'
)


def feed(inside: str = ENTRY, *, head: str = "", id_: str = "<id>tag:reef.example,2026:a</id>") -> bytes:
    """Return a feed as bytes."""
    return (
        f'<feed xmlns="http://www.w3.org/2005/Atom">{id_}<title>Reef</title><updated>2026-09-30T06:00:00Z</updated>'
        f"<author><name>Ida Moss</name></author>{head}{inside}</feed>"
    ).encode()


@pytest.mark.parametrize(
    "body",
    [
        feed(""),
        feed(),
        feed(ENTRY.replace("Z</updated>", "+02:00</updated>")),
        feed(
            head='<link rel="self" href="https://reef.example/a.atom" type="application/atom+xml"/><rights>None</rights>'
        ),
        feed(head='<x:mark xmlns:x="https://x.example/" a="1"><x:b/>text</x:mark>'),
        feed(ENTRY.replace("</entry>", '<content type="html">&lt;p&gt;x&lt;/p&gt;</content></entry>')),
        feed(ENTRY.replace("</entry>", '<content type="image/png" src="https://reef.example/1.png"/></entry>')),
    ],
)
def test_atom_is_taken(body: bytes) -> None:
    """What the standard allows passes."""
    check_atom(body)


@pytest.mark.parametrize(
    "body",
    [
        feed(id_=""),
        feed(id_="<id>tag:a,2026:1</id><id>tag:a,2026:2</id>"),
        feed(ENTRY.replace("06:00:00Z", "06:00:00")),
        feed(ENTRY.replace("2026-09-30T06:00:00Z", "yesterday")),
        feed(ENTRY.replace("<title>Echo</title>", "")),
        feed(ENTRY.replace("<title>", '<title type="markdown">')),
        feed(ENTRY.replace(' href="https://reef.example/1"', "")),
        feed(ENTRY.replace('<link href="https://reef.example/1"/>', "")),
        feed(ENTRY.replace("</entry>", '<link href="https://reef.example/2"/></entry>')),
        feed(ENTRY.replace("</entry>", "<subtitle>x</subtitle></entry>")),
        feed(head="<unknown/>"),
        feed(head="<author><email>x@y.example</email></author>"),
        feed(head="<category/>"),
        feed(head='<link rel="self" href="https://reef.example/" type="atom"/>'),
        feed(ENTRY + ENTRY),
        feed().replace(b"<author><name>Ida Moss</name></author>", b""),
        feed().replace(b"2005/Atom", b"2005/Atoms"),
    ],
)
def test_what_is_no_atom_is_refused(body: bytes) -> None:
    """Each rule of the standard, broken once, is found."""
    with pytest.raises(AssertionError):
        check_atom(body)
