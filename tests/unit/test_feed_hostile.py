"""Feeds stay well-formed and harmless whatever stands in a field, and the text comes through."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from urllib.parse import urlsplit

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from digestd.model.feed import Feed, FeedEntry, FeedFormat, FeedListing, FeedPaper, FeedPlace, FeedSite, FeedUrls
from digestd.model.paper import Paper
from digestd.model.topic import Topic
from digestd.render.feed import FORMATS, check_feed, topic_feed
from digestd.render.opml import opml_bytes
from tests.builders import NOW, make_feed_paper, make_paper
from tests.schema import check_atom

#: All C0 and C1 controls, DEL, non-characters of three planes, lone surrogates.
CONTROLS = [chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))]
BROKEN = [*CONTROLS, "\ufffe", "\uffff", "\U0001fffe", "\U0010ffff", "\ufdd0", "\ufdef", "\ud800", "\udbff", "\udfff"]
#: What may stay but has broken writers before: ends of CDATA, markup, references, right-to-left controls.
NASTY = [
    "]]>",
    "<![CDATA[",
    "<!--",
    "-->",
    "</item></channel>",
    "</entry></feed>",
    "&amp;",
    "&#0;",
    "&#x1d;",
    "&nosuch;",
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'",
    "\u202e",
    "\u2066",
    "\u200f",
    "\u2028",
    "\u2029",
    "\x85",
    "\\",
    "\\u0000",
    "𝒪(n²)",
    "\U0001f980",
]


def in_paper(**fields: object) -> FeedPaper:
    """Return a feed paper whose paper has these fields."""
    return make_feed_paper(paper=make_paper(**fields))  # type: ignore[arg-type]  # any field of Paper


def feed_of(paper: FeedPaper | None = None, *, topic: Topic | None = None, **fields: object) -> Feed:
    """Return a feed of one paper, some of its own fields replaced."""
    feed = topic_feed(
        topic or Topic("reef-sound", "Reef Sound"),
        [paper or make_feed_paper()],
        headline="54 papers in four weeks",
        site=FeedSite(name="Reef Papers", authority="reef.example"),
        place=FeedPlace(),
        changed_at=NOW,
    )
    return replace(feed, **fields)  # type: ignore[arg-type]  # any field of Feed


#: One way for outside text to get into a feed each.
FIELDS: dict[str, Callable[[str], Feed]] = {
    "title": lambda text: feed_of(in_paper(title=text)),
    "author": lambda text: feed_of(in_paper(authors=("Ana", text))),
    "group": lambda text: feed_of(in_paper(group=text)),
    "category": lambda text: feed_of(in_paper(categories=(text,))),
    "label": lambda text: feed_of(in_paper(topics=(text,))),
    "link": lambda text: feed_of(in_paper(links=(text, "https://r.example/" + text))),
    "url": lambda text: feed_of(make_feed_paper(url="https://r.example/" + text)),
    "summary": lambda text: feed_of(make_feed_paper(summary=text)),
    "people": lambda text: feed_of(make_feed_paper(people=text)),
    "affiliations": lambda text: feed_of(make_feed_paper(affiliations=text)),
    "headline": lambda text: feed_of(make_feed_paper(headline=text)),
    "public_id": lambda text: feed_of(make_feed_paper(public_id=text)),
    "topic": lambda text: feed_of(topic=Topic("reef-sound", text)),
    "slug": lambda text: feed_of(topic=Topic(text, "Reef Sound")),
    "gloss": lambda text: feed_of(topic=Topic("reef-sound", "Reef Sound", gloss=text)),
    "note": lambda text: feed_of(note=text),
    "place": lambda text: feed_of(
        place=FeedPlace(home="https://r.example/" + text, urls=FeedUrls(text, "https://r.example/" + text, text))
    ),
    "site": lambda text: feed_of(site=FeedSite(name=text, authority="reef.example", hub="https://r.example/" + text)),
}


class Markup(HTMLParser):
    """Collects what a browser would see of an entry's content."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.tags.add(tag)
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        """Note text."""
        self.text += data


def assert_harmless(feed: Feed) -> None:
    """Write the feed in all formats, read each back, and look at the content as a browser would."""
    for kind, writer in FORMATS.items():
        body = writer.document(feed, writer.entry)
        check_feed(body, kind)
        if kind is FeedFormat.ATOM:
            check_atom(body)
        assert len(read_titles(body, kind)) == len(feed.entries)
    for html in read_contents(feed):
        seen = Markup(html)
        assert seen.tags <= {"p", "br", "a", "em", "h3", "ul", "li"}
        assert all(
            name == "href" and urlsplit(value or "").scheme in {"http", "https"} for name, value in seen.attributes
        )


def read_titles(body: bytes, kind: FeedFormat) -> list[str]:
    """Return the titles of all entries, as a reader gets them."""
    if kind is FeedFormat.JSON:
        return [item["title"] for item in json.loads(body)["items"]]
    path = "channel/item/title" if kind is FeedFormat.RSS else "{*}entry/{*}title"
    return [title.text or "" for title in etree.fromstring(body).iterfind(path)]


def read_contents(feed: Feed) -> list[str]:
    """Return the content of the first entry from each format."""
    bodies = {kind: writer.document(feed, writer.entry) for kind, writer in FORMATS.items()}
    rss = etree.fromstring(bodies[FeedFormat.RSS]).findtext("channel/item/{*}encoded")
    atom = etree.fromstring(bodies[FeedFormat.ATOM]).findtext("{*}entry/{*}content")
    return [rss or "", atom or "", json.loads(bodies[FeedFormat.JSON])["items"][0]["content_html"]]


@pytest.mark.parametrize("field", FIELDS)
def test_no_character_breaks_a_feed(field: str) -> None:
    """Every control character, lone surrogate and non-character, in every field, leaves all three formats well-formed."""
    for text in [*BROKEN, *NASTY]:
        assert_harmless(FIELDS[field](f"a{text}b"))


@pytest.mark.parametrize("field", FIELDS)
@given(text=st.text(st.characters(exclude_categories=()), min_size=1))
@settings(max_examples=25, deadline=None)
def test_no_text_breaks_a_feed(field: str, text: str) -> None:
    """Any text at all, lone surrogates included, leaves all three formats well-formed and harmless."""
    assert_harmless(FIELDS[field]("x" + text))


def kept(text: str) -> str:
    """Return what of a line must come through, said another way than the code says it: one character at a time."""
    folded = "".join(
        " " if c in "\t\n\r\f\v\x85\u2028\u2029" else c for c in text if c not in BROKEN or c in "\t\n\r\f\v\x85"
    )
    plain = "".join(c for c in folded if ord(c) & 0xFFFE != 0xFFFE and not 0xD800 <= ord(c) < 0xE000)
    return " ".join(filter(None, "".join(c for c in plain if not 0xFDD0 <= ord(c) <= 0xFDEF).split(" "))).strip()


@given(text=st.lists(st.sampled_from([*NASTY, *BROKEN]) | st.text(max_size=5), max_size=8).map("".join))
@settings(max_examples=150, deadline=None)
def test_text_comes_through(text: str) -> None:
    """A reader gets title and summary letter for letter, but for what no feed may hold; markup stays text."""
    feed = feed_of(make_feed_paper(paper=make_paper("x" + text), summary="x" + text))
    expected = kept("x" + text)
    for kind, writer in FORMATS.items():
        assert read_titles(writer.document(feed, writer.entry), kind) == [expected]
    for html in read_contents(feed):
        assert Markup(html.partition("</p>")[0]).text == expected


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "JaVaScRiPt:alert(1)", " javascript:alert(1)", "data:text/html,x"]
)
def test_no_script_behind_a_link(url: str) -> None:
    """An address that is no web address is left out wherever it stands."""
    place = FeedPlace(home=url, listing=url, urls=FeedUrls(url, url, url))
    feed = feed_of(in_paper(links=(url,)), place=place, older=FeedUrls(url, url, url))
    for writer in FORMATS.values():
        assert b"alert" not in writer.document(feed, writer.entry)
        assert b"data:" not in writer.document(feed, writer.entry)


def test_hostile_entry_content_is_still_well_formed() -> None:
    """Markup from elsewhere that is no HTML at all can spoil its own entry, never the document."""
    entry = FeedEntry("tag:r.example,2026:1", "T", NOW, NOW, "</content>]]>\x00<p", "\ud800x")
    for kind, writer in FORMATS.items():
        check_feed(writer.document(feed_of(entries=(entry,)), writer.entry), kind)


def test_opml_survives_every_character() -> None:
    """A list of feeds is well-formed whatever a topic is called."""
    names = [f"a{text}b" for text in [*BROKEN, *NASTY]]
    top = etree.fromstring(
        opml_bytes("x".join(names), [FeedListing(name, "https://r.example/", None, name) for name in names])
    )
    assert [outline.get("text") for outline in top.iterfind("body/outline")] == [kept(name) for name in names]


def test_paper_without_anything_is_an_entry() -> None:
    """A paper of which only the title is known still makes a valid entry."""
    assert_harmless(feed_of(make_feed_paper(paper=Paper("T"), summary="", people="")))
