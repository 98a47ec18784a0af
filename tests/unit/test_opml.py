"""Lists of feeds: what is read of them, what is refused, and that a list comes back as it came."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.errors import ParseError
from digestd.model.opml import ListedFeed, Outline, Outlines
from digestd.outlines import feeds_of, flat_list, merge, nest, without
from digestd.parse.opml import MAX_BYTES, MAX_DEPTH, MAX_FEEDS, parse_opml
from digestd.render.opml_tree import outlines_bytes

REEF = Outline("Reef News", "https://reef.example/feed", "https://reef.example/")
KELP = Outline("Kelp & Co", "https://kelp.example/rss?a=1&b=2")
TIDES = Outline("Tides", "http://tides.example:8080/atom.xml")
LIST = Outlines(
    "My feeds",
    (REEF, Outline("Biology", children=(KELP, Outline("Deep", children=(TIDES,)), Outline("Empty")))),
)

TEXT = """<?xml version="1.0" encoding="UTF-8"?>
<opml version="2.0"><head><title>My feeds</title></head><body>
<outline type="rss" text="Reef News" xmlUrl="https://reef.example/feed" htmlUrl="https://reef.example/"/>
<outline text="Biology">
  <outline type="rss" text="x" title="Kelp &amp; Co" xmlUrl="https://kelp.example/rss?a=1&amp;b=2"/>
  <outline text="Deep"><outline text="Tides" xmlUrl="http://tides.example:8080/atom.xml"/></outline>
  <outline text="Empty"/>
</outline></body></opml>"""


def read(text: str | bytes) -> Outlines:
    """Return what is read of a document."""
    return parse_opml(text.encode() if isinstance(text, str) else text).outlines


def body(inside: str) -> str:
    """Return a list with this in its body."""
    return f'<opml version="1.0"><body>{inside}</body></opml>'


def test_list_is_read_with_its_folders() -> None:
    """Feeds and folders keep order and nesting; the title goes before the text; a folder without feeds stays."""
    assert LIST == read(TEXT)


def test_list_comes_back_as_it_came() -> None:
    """What is written is read again as the same list."""
    assert LIST == read(outlines_bytes(LIST))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "iso-8859-1"])
def test_encodings(encoding: str) -> None:
    """A list is read in the encoding it has; old programs write Latin-1."""
    text = body('<outline text="Café des Récifs" xmlUrl="https://reef.example/feed"/>')
    declared = f'<?xml version="1.0" encoding="{encoding.removesuffix("-sig")}"?>{text}'
    assert ["Café des Récifs"] == [entry.title for entry in read(declared.encode(encoding)).entries]


def test_attributes_in_any_case_and_bare_ampersands() -> None:
    """What real programs write is read: names in other cases, ampersands that nobody escaped, blanks around addresses."""
    text = body('<outline TEXT="Kelp & Co" XMLURL=" HTTPS://kelp.example/rss?a=1&b=2 " htmlurl="ftp://kelp.example/"/>')
    assert (Outline("Kelp & Co", "https://kelp.example/rss?a=1&b=2"),) == read(text).entries


def test_feed_without_a_title_is_named_by_its_address() -> None:
    """There is always something to call a feed."""
    text = body('<outline xmlUrl="https://reef.example/feed"/>')
    assert (Outline("https://reef.example/feed", "https://reef.example/feed"),) == read(text).entries


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        " java\tscript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "feed:reef",
        "//reef.example/feed",
        "https://",
        "https:///feed",
        "https://bank.example@evil.example/feed",
        "https://reef.example:99999/feed",
        "https://[::1/feed",
        "https://reef.example/a b",
        "https://reef.example/&quot;onload=",
        "https://reef.example/" + "a" * 2000,
    ],
)
def test_addresses_that_are_none_of_the_web_are_left_out(address: str) -> None:
    """An address that is no plain http or https address follows nothing, and that is said; the others stay."""
    text = body(f'<outline text="Odd" xmlUrl="{address}"/><outline text="Reef" xmlUrl="https://reef.example/"/>')
    found = parse_opml(text.encode())
    assert ["Reef"] == [entry.title for entry in found.outlines.entries]
    assert 1 == len(found.skipped)
    assert found.skipped[0].startswith("Odd: ")


def test_page_of_a_feed_is_a_web_address_or_none() -> None:
    """A link that is not of the web is no page of a feed."""
    text = body('<outline text="Reef" xmlUrl="https://reef.example/feed" htmlUrl="javascript:alert(1)"/>')
    assert [None] == [entry.home for entry in read(text).entries]


BOMB = (
    '<?xml version="1.0"?><!DOCTYPE opml [<!ENTITY a "aaaaaaaaaa">'
    + "".join(f'<!ENTITY {b} "{f"&{a};" * 10}">' for a, b in zip("abcdefgh", "bcdefghi", strict=True))
    + ']><opml><body><outline text="&i;" xmlUrl="https://reef.example/"/></body></opml>'
)
OUTSIDE = '<!DOCTYPE opml [<!ENTITY x SYSTEM "file:///etc/passwd">]><opml><body><outline text="&x;"/></body></opml>'


@pytest.mark.parametrize("text", [BOMB, OUTSIDE, '<!doctype opml SYSTEM "https://evil.example/x.dtd"><opml/>'])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_document_types_are_refused(text: str, encoding: str) -> None:
    """A list that declares entities, or has others declare them, is not read at all, whatever it is encoded in."""
    with pytest.raises(ParseError, match="without a document type"):
        read(text.encode(encoding))


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 200, 5_000, 200_000])
def test_deep_nesting_is_refused(depth: int) -> None:
    """Folders in folders end somewhere, before any stack does."""
    with pytest.raises(ParseError):
        read(body('<outline text="a">' * depth + "</outline>" * depth))


def test_deepest_list_is_read_and_written() -> None:
    """At the limit a list still comes back as it came."""
    text = body(
        '<outline text="a">' * (MAX_DEPTH - 1) + '<outline xmlUrl="https://reef.example/"/>' + "</outline>" * 19
    )
    assert read(text) == read(outlines_bytes(read(text)))
    assert 1 == len(feeds_of(read(text)))


def test_endless_lists_are_refused() -> None:
    """More outlines or bytes than any list has are not read."""
    with pytest.raises(ParseError, match="at most 5,000 outlines"):
        read(body("<outline/>" * (MAX_FEEDS + 1)))
    with pytest.raises(ParseError, match="bytes"):
        read(b" " * (MAX_BYTES + 1))


@pytest.mark.parametrize("text", ["", "no markup", "<rss version='2.0'/>", "<opml><body>", "{}", "\x00\xff"])
def test_what_is_no_list_is_refused(text: str) -> None:
    """A document that is no OPML is named as such."""
    with pytest.raises(ParseError):
        read(text)


@given(st.binary(max_size=300) | st.text(max_size=300).map(str.encode))
@settings(max_examples=150, deadline=None)
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    """No bytes make anything but a list or a ParseError."""
    for document in (data, b"<opml><body><outline text='" + data + b"' xmlUrl='https://reef.example/" + data + b"'/>"):
        try:
            parse_opml(document)
        except ParseError:
            continue


TITLES = st.text(min_size=1, max_size=12).map(lambda text: read(body_of(text)).entries[0].title).filter(bool)
URLS = st.integers(0, 6).map(lambda number: f"https://reef.example/{number}?a=1&b={number}")
FEEDS = st.builds(Outline, TITLES, URLS, st.none() | URLS)


def body_of(title: str) -> bytes:
    """Return a list with one folder of this title, as it would be written."""
    return outlines_bytes(Outlines("", (Outline(title),)))


def folders(inner: st.SearchStrategy[Outline]) -> st.SearchStrategy[Outline]:
    """Return folders of such entries."""
    return st.builds(
        lambda title, children: Outline(title, children=tuple(children)), TITLES, st.lists(inner, max_size=3)
    )


LISTS = st.builds(
    lambda title, entries: nest(flat_list(Outlines(title, tuple(entries)))),
    TITLES,
    st.lists(st.recursive(FEEDS, folders, max_leaves=6), max_size=4),
)


@given(LISTS)
@settings(max_examples=60, deadline=None)
def test_any_list_comes_back_as_it_came(outlines: Outlines) -> None:
    """Titles, addresses, pages and folders survive being written and read, whatever characters a title has."""
    assert outlines == read(outlines_bytes(outlines))


@given(LISTS, LISTS)
@settings(max_examples=60, deadline=None)
def test_merging_loses_nothing_and_doubles_nothing(one: Outlines, other: Outlines) -> None:
    """Both lists' feeds are in the merged one, in their folders; a list merged into itself is itself."""
    both = merge(one, other)
    places = {(feed.folder, feed.url) for feed in (*flat_list(one), *flat_list(other))}
    assert places == {(feed.folder, feed.url) for feed in flat_list(both)}
    assert len(places) == len(flat_list(both))
    assert one == merge(one, one)
    assert both == merge(both, other)


def test_feed_in_two_folders_is_one_feed() -> None:
    """An address that stands twice is asked once, and stands twice when the list is given back."""
    text = body(
        '<outline text="A"><outline text="Reef" xmlUrl="https://reef.example/"/></outline>'
        '<outline text="B"><outline text="Reef" xmlUrl="https://reef.example/"/></outline>'
    )
    assert 1 == len(feeds_of(read(text)))
    assert read(text) == read(outlines_bytes(read(text)))


def test_feed_is_removed_everywhere() -> None:
    """A feed that is taken away is gone from all folders, which stay."""
    left = without(LIST, lambda feed: feed.url == TIDES.url)
    assert ["https://reef.example/feed", "https://kelp.example/rss?a=1&b=2"] == [feed.url for feed in feeds_of(left)]
    assert ListedFeed(("Biology", "Deep"), "Deep") in flat_list(left)


def test_outlines_below_a_feed_stand_beside_it() -> None:
    """A feed is no folder; what a program put below it is not lost."""
    text = body(
        '<outline text="Reef" xmlUrl="https://reef.example/"><outline text="Kelp" xmlUrl="https://kelp.example/"/></outline>'
    )
    assert ["Reef", "Kelp"] == [entry.title for entry in read(text).entries]
