"""Feeds cut without a parser: what is cut is what a parser finds, and what is in doubt is not cut."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.errors import ParseError
from digestd.model.snapshot import Document
from digestd.model.topic import Vocabulary
from digestd.parse.feed import parse_feed
from digestd.parse.slices import CutFeed, cut_feed, guid_hash
from tests.feeds import SEEN, SHAPES, atom, rdf, rss
from tests.shared import shared_path

PLAIN = "<title>Fronds {0}</title><link>https://kelp.example/{0}</link><guid>g{0}</guid><pubDate>2026-10-20</pubDate>"
PLAIN += "<dc:creator>Ida Moss</dc:creator><description>Fronds sway.</description>"


def cut(text: str) -> CutFeed:
    """Return the pieces of a feed that must be cut."""
    found = cut_feed(text.encode())
    assert found is not None
    return found


@pytest.mark.parametrize("make", [rss, rdf])
def test_cut_feed_into_its_items(make: Callable[..., str]) -> None:
    """Head, items and tail are the feed, but for the blanks between items; each item has a hash of its own."""
    text = make(PLAIN.format(1), PLAIN.format(2))
    found = cut(text)
    assert text.encode() == found.with_items((0, 1))
    assert 2 == len(set(found.hashes))
    assert [b"Fronds 1", b"Fronds 2"] == [item[item.index(b"Fronds") :][:8] for item in found.items]


def test_cut_feed_head_hash() -> None:
    """When a feed was made does not change its head, what it calls itself and where it lives do."""
    one = rss(PLAIN.format(1), head="<lastBuildDate>Tue, 20 Oct 2026 04:00:00 GMT</lastBuildDate>")
    other = one.replace("04:00:00", "05:00:00")
    assert cut(one).head_hash == cut(other).head_hash
    assert cut(one).head_hash != cut(one.replace("Kelp Weekly", "Kelp Daily")).head_hash
    assert cut(one).head_hash != cut(one.replace("</rss>", "</rss><!x>")).head_hash


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Reef Sound\n\nLatest papers 3",
        rss(),
        rss(PLAIN.format(1), PLAIN.format(1)),
        rss(PLAIN.format(1) + "<!-- said -->"),
        rss(PLAIN.format(1) + "<?php ?>"),
        rss(PLAIN.format(1) + "<item><title>x</title></item>"),
        rss(PLAIN.format(1) + "<content:encoded><![CDATA[</item>]]></content:encoded>"),
        rss(PLAIN.format(1) + "<content:encoded><![CDATA[<item>]]></content:encoded>"),
        rss(PLAIN.format(1) + "<x:y xmlns:x='urn:x'/>"),
        rss(PLAIN.format(1) + "<entry/>"),
        rss(PLAIN.format(1)).replace("</item>", "</item> and <item/>"),
        rss(PLAIN.format(1)).replace("</item>", "</item >text<item>x</item>"),
        rss(PLAIN.format(1)).replace("</item>", "<![CDATA[</item><item>]]></item>"),
        rss(PLAIN.format(1)).replace("</item>", ""),
        rss(PLAIN.format(1)).replace("<item>", "<item/>"),
        rss(PLAIN.format(1)) + "\x1b",
    ],
)
def test_cut_feed_in_doubt(text: str) -> None:
    """Comments, sections over an end, items in items, twins, prefixes declared within, no items: to be read whole."""
    assert None is cut_feed(text.encode())


def test_cut_feed_of_no_text() -> None:
    """Bytes that are no UTF-8 may mean anything."""
    assert None is cut_feed(rss(PLAIN.format(1)).encode() + b"\xff")


def test_guid_hash() -> None:
    """The id as it stands, blanks around it aside; none where there is none."""
    assert guid_hash(b"<item><guid a='b'> p1 </guid></item>") == guid_hash(b"<entry><id>p1</id></entry>")
    assert guid_hash(b"<item><guid>p1</guid></item>") != guid_hash(b"<item><guid>p2</guid></item>")
    assert None is guid_hash(b"<item><title>p1</title></item>")


def hold_equal(body: bytes) -> bool:
    """Hold the papers of each item read alone against the feed read whole; return whether the feed was cut."""
    found = cut_feed(body)
    if found is None:
        return False
    whole = Document(body, origin="https://kelp.example/feed", fetched_at=SEEN)
    page = parse_feed(whole, Vocabulary())
    if page.warnings or any(paper.warnings for paper in page.papers) or len(page.papers) != len(found.items):
        return False  # the flow reads such a feed whole
    alone = [
        parse_feed(replace(whole, body=found.with_items((place,))), Vocabulary()) for place in range(len(found.items))
    ]
    assert list(page.papers) == [paper for one in alone for paper in one.papers]
    assert {replace(page, papers=())} == {replace(one, papers=()) for one in alone}
    return True


def test_items_alone_read_as_in_their_feed() -> None:
    """In feeds of all shapes an item means the same beside others and alone."""
    assert {True} == {
        hold_equal(SHAPES[shape].encode()) for shape in ("arxiv new", "plos", "springer", "biorxiv", "acm")
    }
    for text in SHAPES.values():
        hold_equal(text.encode())


def test_items_of_real_feeds_alone_read_as_in_their_feed() -> None:
    """The same for feeds as servers sent them, as far as they can be cut."""
    files = [
        path for path in sorted(shared_path("data").rglob("*")) if path.is_file() and path.stat().st_size < 200_000
    ]
    cut_at_all = 0
    for body in (path.read_bytes() for path in files):
        with suppress(ParseError):
            cut_at_all += hold_equal(body)
    assert cut_at_all


_PIECES = (
    "<item>|</item>|<entry>|</entry>|<![CDATA[|]]>|<!--|-->|<title>Kelp</title>| |x|&amp;|<description>|</description>"
)
pieces = st.sampled_from(
    [*_PIECES.split("|"), "<items>", "</item >", "<item a='>'>", "</channel>", "<link>/p</link>", "é", "<x:item>"]
)


@given(st.lists(pieces, max_size=14).map("".join), st.sampled_from([rss, atom]))
@settings(max_examples=600, deadline=None)
def test_any_pieces_alone_read_as_in_their_feed(text: str, make: Callable[..., str]) -> None:
    """Whatever stands in a feed: what is cut, and read without a fault, means the same alone."""
    body = make(PLAIN.format(1), "MARK", PLAIN.format(2)).replace("MARK", text)
    with suppress(ParseError):
        hold_equal(body.encode())
