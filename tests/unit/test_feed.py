"""Feeds: permanent ids, right elements, honest dates, archives that stay as they are."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from functools import lru_cache
from html.parser import HTMLParser

import feedparser
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree

from digestd.errors import ConfigError, RenderError
from digestd.model.digest import Digest, DigestPaper, Headline, Momentum, RevisedPaper, Section, TaggedPaper, Trend
from digestd.model.feed import (
    Feed,
    FeedDigest,
    FeedEntry,
    FeedFormat,
    FeedListing,
    FeedPaper,
    FeedPlace,
    FeedRevision,
    FeedSite,
    FeedUrls,
)
from digestd.model.paper import Revision
from digestd.model.snapshot import Kind
from digestd.model.topic import Topic
from digestd.render.feed import (
    FORMATS,
    atom_bytes,
    check_feed,
    digest_feed,
    json_bytes,
    revisions_feed,
    rss_bytes,
    split_archive,
    split_feed,
    tag_uri,
    topic_feed,
)
from digestd.render.feed_rss import rss_item
from digestd.render.feed_xml import rfc822, rfc3339, web_url
from digestd.render.opml import opml_bytes
from tests.builders import NOW, make_feed, make_feed_paper, make_paper

TOPIC = Topic("reef-sound", "Reef Sound", gloss="Sound: what a hydrophone hears")
SITE = FeedSite(name="Reef Papers", authority="reef.example")
PLACE = FeedPlace(
    home="https://papers.reef.example/t/reef-sound",
    urls=FeedUrls(
        rss="https://papers.reef.example/t/reef-sound.rss",
        atom="https://papers.reef.example/t/reef-sound.atom",
        json="https://papers.reef.example/t/reef-sound.json",
    ),
)
NOWHERE = FeedPlace()
ATOM = "{http://www.w3.org/2005/Atom}"
DC_CREATOR = "{http://purl.org/dc/elements/1.1/}creator"
ENCODED = "{http://purl.org/rss/1.0/modules/content/}encoded"
ALLOWED = {"p", "br", "a", "em", "h3", "ul", "li"}


def make_topic_feed(*papers: FeedPaper, place: FeedPlace = PLACE, headline: str = "") -> Feed:
    """Return the feed of these papers; the topic itself last changed long ago."""
    return topic_feed(
        TOPIC, papers, headline=headline, site=SITE, place=place, changed_at=datetime(2026, 9, 1, tzinfo=UTC)
    )


def rss_channel(feed: Feed) -> etree._Element:
    """Return the channel of the feed, read back."""
    channel = etree.fromstring(rss_bytes(feed)).find("channel")
    assert channel is not None
    return channel


def render_all(feed: Feed) -> dict[FeedFormat, bytes]:
    """Return the feed in all formats, each checked."""
    bodies = {kind: writer.document(feed, writer.entry) for kind, writer in FORMATS.items()}
    for kind, body in bodies.items():
        check_feed(body, kind)
    return bodies


class Outline(HTMLParser):
    """Collects elements, links and text of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.hrefs: list[str] = []
        self.texts: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.hrefs += [value or "" for name, value in attrs if name == "href"]

    def handle_data(self, data: str) -> None:
        """Note text."""
        self.texts.append(data)


# ids


def test_tag_uri_names_authority_date_and_path() -> None:
    """An id is a tag: URI whose parts are escaped, so that any slug makes a valid one."""
    assert tag_uri(SITE, "topic", "reef-sound") == "tag:reef.example,2026:topic/reef-sound"
    assert (
        tag_uri(replace(SITE, since="2026-09"), "topic", "a b/ü?") == "tag:reef.example,2026-09:topic/a%20b/%C3%BC%3F"
    )
    assert tag_uri(replace(SITE, authority="ana@reef.example"), "x") == "tag:ana@reef.example,2026:x"


@pytest.mark.parametrize(
    ("authority", "since"),
    [
        ("", "2026"),
        ("Reef.example", "2026"),
        ("reef.example/x", "2026"),
        ("reef..example", "2026"),
        ("reef.example", "26"),
        ("reef.example", "2026-13"),
        ("reef.example", ""),
    ],
)
def test_tag_uri_refuses_what_is_no_authority(authority: str, since: str) -> None:
    """A bad setting is reported at once, not baked into ids that can never be changed."""
    with pytest.raises(ConfigError, match="feed authority"):
        tag_uri(FeedSite(name="x", authority=authority, since=since), "topic")


@given(
    title=st.text(min_size=1),
    links=st.lists(st.sampled_from(["https://a.example/1", "http://b.example/2"])),
    v=st.integers(1, 9),
)
@settings(max_examples=50)
def test_entry_id_survives_every_change_of_the_paper(title: str, links: list[str], v: int) -> None:
    """A new title, link, version or address of the service never makes an entry unread again."""
    changed = make_feed_paper(paper=make_paper(title, links=tuple(links), version=v), url=next(iter(links), None))
    feed = make_topic_feed(changed, place=NOWHERE)
    assert [entry.id for entry in feed.entries] == ["tag:reef.example,2026:topic/reef-sound/paper/7f3a"]
    assert feed.id == make_topic_feed(make_feed_paper()).id


def test_entry_ids_of_two_topics_differ() -> None:
    """A reader that keeps one entry an id for all feeds shows a paper in both of its topics."""
    other = topic_feed(
        Topic("night", "Night"), [make_feed_paper()], headline="", site=SITE, place=PLACE, changed_at=NOW
    )
    assert other.entries[0].id != make_topic_feed(make_feed_paper()).entries[0].id


# RSS


def test_rss_holds_every_element_of_feed_and_item() -> None:
    """An RSS feed says what it is, where it is, and of each paper what a reader shows."""
    paper = make_paper("Loud <Reefs> & Quiet", authors=("Ana Lima", "Bo Chen", "Cy Diaz", "Di Ek"), authors_more=12)
    paper = replace(paper, topics=("Night Ecology", "Reef Sound"), categories=("q-bio.PE", "cs.SD"))
    told = make_feed_paper(
        paper=paper,
        url="https://papers.reef.example/p/7f3a",
        summary="Noise at p < 0.05 & more.",
        people="Ana Lima, Bo Chen, Cy Diaz +13",
        affiliations="Institute of Tides",
        headline="54 papers in four weeks, up 145%",
    )
    channel = rss_channel(make_topic_feed(told, headline="31 papers in four weeks, after 28"))
    assert channel.findtext("title") == "Reef Sound"
    assert channel.findtext("link") == "https://papers.reef.example/t/reef-sound"
    assert channel.findtext("description") == (
        "31 papers in four weeks, after 28. Papers in Reef Sound (Sound: what a hydrophone hears), each once."
    )
    assert channel.findtext("language") == "en"
    assert channel.findtext("lastBuildDate") == "Wed, 30 Sep 2026 05:00:00 +0000"
    assert channel.findtext("ttl") == "60"
    assert [dict(link.attrib) for link in channel.iterfind(f"{ATOM}link")] == [
        {"rel": "self", "href": "https://papers.reef.example/t/reef-sound.rss", "type": "application/rss+xml"}
    ]
    item = channel.find("item")
    assert item is not None
    assert item.findtext("title") == "Loud <Reefs> & Quiet"
    assert item.findtext("link") == "https://papers.reef.example/p/7f3a"
    assert item.findtext("guid[@isPermaLink='false']") == "tag:reef.example,2026:topic/reef-sound/paper/7f3a"
    assert item.findtext("pubDate") == "Tue, 29 Sep 2026 00:00:00 +0000"
    assert item.findtext(DC_CREATOR) == "Ana Lima, Bo Chen, Cy Diaz and 13 more"
    assert [category.text for category in item.iterfind("category")] == ["Reef Sound", "Night Ecology"]
    assert item.findtext("description") == "Noise at p &lt; 0.05 &amp; more."
    assert item.findtext(ENCODED) == (
        "<p>Noise at p &lt; 0.05 &amp; more.</p>\n"
        "<p>Ana Lima, Bo Chen, Cy Diaz +13<br>Institute of Tides</p>\n"
        '<p>q-bio.PE. New in <a href="https://papers.reef.example/t/reef-sound">Reef Sound</a>: '
        "54 papers in four weeks, up 145%.</p>"
    )


@pytest.mark.parametrize(
    ("place", "link"),
    [
        (PLACE, "https://papers.reef.example/t/reef-sound"),
        (FeedPlace(listing="https://listing.example/reef?p=1"), "https://listing.example/reef?p=1"),
        (NOWHERE, "tag:reef.example,2026:topic/reef-sound"),
        (FeedPlace(home="javascript:alert(1)"), "tag:reef.example,2026:topic/reef-sound"),
    ],
)
def test_rss_channel_link_claims_no_page_that_is_not_there(place: FeedPlace, link: str) -> None:
    """The link that RSS demands is our page, else the source's, else the feed's own name."""
    assert rss_channel(make_topic_feed(make_feed_paper(), place=place)).findtext("link") == link


def test_links_left_out_where_nothing_is_known() -> None:
    """A service without an address writes valid feeds without links."""
    bodies = render_all(make_topic_feed(make_feed_paper(), place=NOWHERE))
    assert b"<link>http" not in bodies[FeedFormat.RSS]
    assert b"<link" not in bodies[FeedFormat.ATOM]
    assert b"url" not in bodies[FeedFormat.JSON]


def test_entry_url_falls_back_to_the_papers_own_link() -> None:
    """Without a page of ours the title leads to the paper itself, by its first usable link."""
    paper = make_paper(links=("ftp://a.example/1", "https://b.example/2", "https://c.example/3"))
    assert make_topic_feed(make_feed_paper(paper=paper)).entries[0].url == "https://b.example/2"


# Atom, JSON Feed


def atom_faults(body: bytes) -> list[str]:
    """Return which rules of RFC 4287 the document breaks: an own short reading of sections 3 and 4.1."""
    top = etree.fromstring(body)
    faults = [] if top.tag == f"{ATOM}feed" else ["root is no feed"]
    once = {
        "id": 1,
        "title": 1,
        "updated": 1,
        "generator": 0,
        "subtitle": 0,
        "published": 0,
        "summary": 0,
        "content": 0,
    }
    known = {*once, "author", "category", "link", "entry"}
    for element in (top, *top.iterfind(f"{ATOM}entry")):
        names = [child.tag.removeprefix(ATOM) for child in element if child.tag.startswith(ATOM)]
        faults += [f"unknown {name}" for name in names if name not in known]
        faults += [
            f"{name} x {names.count(name)}" for name, least in once.items() if not least <= names.count(name) <= 1
        ]
        faults += [
            f"no name in {author.tag}"
            for author in element.iterfind(f"{ATOM}author")
            if not author.findtext(f"{ATOM}name")
        ]
        faults += ["no term" for category in element.iterfind(f"{ATOM}category") if not category.get("term")]
        faults += ["no href" for link in element.iterfind(f"{ATOM}link") if not link.get("href")]
        rels = [(link.get("rel"), link.get("type")) for link in element.iterfind(f"{ATOM}link")]
        faults += [f"link {rel} twice" for rel in set(rels) if rels.count(rel) > 1]
        texts = [element.find(f"{ATOM}{name}") for name in ("title", "subtitle", "summary", "content")]
        faults += [
            f"type {text.get('type')}"
            for text in texts
            if text is not None and text.get("type") not in {"text", "html"}
        ]
        faults += ["entry without alternate and content"] if "content" not in names and element is not top else []
        for name in ("updated", "published"):
            text = element.findtext(f"{ATOM}{name}")
            faults += [f"date {text}"] if text is not None and not text.endswith("Z") else []
    faults += [] if top.find(f"{ATOM}author") is not None else ["feed without author"]
    return faults


def test_atom_keeps_the_rules_of_rfc_4287() -> None:
    """An Atom feed has all that the standard demands, with and without addresses, with and without papers."""
    papers = [make_feed_paper(public_id="1"), make_feed_paper(public_id="2", summary="", paper=make_paper(authors=()))]
    for feed in (
        make_topic_feed(*papers),
        make_topic_feed(*papers, place=NOWHERE),
        make_topic_feed(),
        make_feed(subtitle=""),
    ):
        assert atom_faults(atom_bytes(feed)) == []


def test_atom_entry_tells_published_and_updated_apart() -> None:
    """An entry was published when the paper was, and updated when it was seen or revised."""
    revised = make_feed_paper(revised_at=datetime(2026, 10, 2, 9, 30, tzinfo=UTC))
    entry = etree.fromstring(atom_bytes(make_topic_feed(revised))).find(f"{ATOM}entry")
    assert entry is not None
    assert entry.findtext(f"{ATOM}published") == "2026-09-29T00:00:00Z"
    assert entry.findtext(f"{ATOM}updated") == "2026-10-02T09:30:00Z"


def test_json_feed_holds_its_members() -> None:
    """A JSON feed carries the content twice, as HTML and as text, and leaves out what is not known."""
    feed = json.loads(json_bytes(make_topic_feed(make_feed_paper(affiliations="Institute of Tides"))))
    assert feed.pop("items") == [
        {
            "id": "tag:reef.example,2026:topic/reef-sound/paper/7f3a",
            "title": "Quiet Reefs at Night",
            "summary": "Reefs are quieter at night than at noon.",
            "content_html": "<p>Reefs are quieter at night than at noon.</p>\n<p>Ana Lima<br>Institute of Tides</p>\n"
            '<p>q-bio.PE. New in <a href="https://papers.reef.example/t/reef-sound">Reef Sound</a>.</p>',
            "content_text": "Reefs are quieter at night than at noon.\n\nAna Lima\nInstitute of Tides\n\n"
            "q-bio.PE. New in Reef Sound.",
            "date_published": "2026-09-29T00:00:00Z",
            "date_modified": "2026-09-30T05:00:00Z",
            "authors": [{"name": "Ana Lima"}],
            "tags": ["Reef Sound"],
        }
    ]
    assert feed == {
        "version": "https://jsonfeed.org/version/1.1",
        "title": "Reef Sound",
        "home_page_url": "https://papers.reef.example/t/reef-sound",
        "feed_url": "https://papers.reef.example/t/reef-sound.json",
        "description": "Papers in Reef Sound (Sound: what a hydrophone hears), each once.",
        "authors": [{"name": "Reef Papers"}],
        "language": "en",
    }


def test_hub_named_in_every_format() -> None:
    """A WebSub hub is announced where each format has a place for it."""
    bodies = render_all(make_feed(site=replace(SITE, hub="https://hub.example/")))
    assert all(b"https://hub.example/" in body for body in bodies.values())


def test_long_author_list_is_cut_and_counted() -> None:
    """Ten names are written; the others are counted together with those that the source left out, the group is kept."""
    paper = make_paper(authors=[f"A{number}" for number in range(40)], authors_more=60, group="Tide Consortium")
    authors = json.loads(json_bytes(make_topic_feed(make_feed_paper(paper=paper))))["items"][0]["authors"]
    assert [author["name"] for author in authors] == [*(f"A{n}" for n in range(10)), "and 90 more", "Tide Consortium"]


# what entries say


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Kind.NEW, "q-bio.PE. New in Reef Sound."),
        (Kind.NEWLY_TAGGED, "q-bio.PE. Now in Reef Sound."),
        (Kind.BASELINE, "q-bio.PE. In Reef Sound."),
    ],
)
def test_topic_line_says_how_the_paper_came(kind: Kind, words: str) -> None:
    """Only a new paper is called new."""
    entry = make_topic_feed(make_feed_paper(kind=kind)).entries[0]
    assert entry.content_text.rpartition("\n\n")[2] == words


def test_entry_never_changes_with_the_topics_momentum() -> None:
    """The present momentum is said of the feed; an old entry keeps what was true when its paper was told."""
    before = make_topic_feed(make_feed_paper(), headline="Steady: 36 papers in four weeks, after 41")
    after = make_topic_feed(make_feed_paper(), headline="54 papers in four weeks, up 145%")
    assert before.entries == after.entries
    assert before.note != after.note


def test_withdrawn_paper_says_so_first() -> None:
    """A reader learns that a paper was withdrawn before reading what it said."""
    entry = make_topic_feed(make_feed_paper(paper=make_paper(withdrawn=True))).entries[0]
    assert entry.content_html.startswith("<p>This paper was withdrawn.</p>")


def make_told(title: str, **fields: object) -> DigestPaper:
    """Return a paper of a digest."""
    given: dict[str, object] = {"key": 1, "kind": Kind.NEW, "effective_at": NOW, "url": "https://r.example/p/1"}
    return DigestPaper(paper=make_paper(title), **given | fields)  # type: ignore[arg-type]  # any field of DigestPaper


def make_digest() -> Digest:
    """Return a digest with something of everything."""
    shown = (
        make_told("Loud: A <Study>", summary="Loud & clear.", also_in=("Night Ecology",)),
        make_told("No Link", url=None),
    )
    rising = Section(
        TOPIC,
        Headline(Trend.UP, "54 papers in four weeks, up 145%", "+145%", "0.5% of all new papers"),
        Momentum(weekly=(3, 5, 4, 6, 4, 7, 5, 6, 13, 18, 16, 7)),
        papers=shown,
        rest=(make_told("Drift: B"), make_told("Foam")),
        hidden=3,
        coverage_line="nothing seen between Jun 6 and Sep 11",
        url="https://r.example/t/reef-sound",
    )
    quiet = Section(
        Topic("foam", "Foam"),
        Headline(Trend.QUIET, "No new papers, quiet", "quiet", "The last one came on Sep 14."),
    )
    late = TaggedPaper(TOPIC, make_told("Old Waves", summary="Waves of old."))
    gone = RevisedPaper(make_told("Gone"), Revision(1, ()), "Withdrawn by its authors")
    changed = RevisedPaper(make_told("Changed"), Revision(1, ()), "New abstract")
    return Digest(
        "Reef Weekly",
        since=date(2026, 9, 23),
        until=date(2026, 9, 29),
        sections=(rising, quiet),
        tagged=(late,),
        revised=(changed,),
        withdrawn=(gone,),
    )


def make_digest_feed() -> Feed:
    """Return a feed of one digest."""
    told = FeedDigest(
        "k7Qx/2026-09-30",
        make_digest(),
        subject="Reef Sound up 145%, 4 new papers",
        period="Sep 23–29",
        preheader="Loud, No Link and 2 more.",
        made_at=NOW,
        url="https://r.example/d/2026-09-30",
    )
    return digest_feed("Reef Weekly", [told], feed_key="k7Qx", site=SITE, place=NOWHERE, changed_at=NOW)


def test_digest_entry_tells_the_whole_digest() -> None:
    """A digest's entry has every section, what is left out with counts, late and changed papers, and the end."""
    entry = make_digest_feed().entries[0]
    assert entry.id == "tag:reef.example,2026:digest/k7Qx/2026-09-30"
    assert entry.title == "Sep 23–29: Reef Sound up 145%, 4 new papers"
    assert entry.summary == "Loud, No Link and 2 more."
    assert entry.categories == ("Reef Sound",)
    assert entry.content_html.split("\n") == [
        '<h3><a href="https://r.example/t/reef-sound">Reef Sound</a></h3>',
        "<p>▂▃▂▃ ▂▃▃▃ ▅▇▆▃ 54 papers in four weeks, up 145%. 4 new, 2 shown, 3 hidden by your filters.<br>"
        "Nothing seen between Jun 6 and Sep 11.</p>",
        "<ul>",
        '<li><a href="https://r.example/p/1">Loud: A &lt;Study&gt;</a><br>Loud &amp; clear. '
        "<em>Also in Night Ecology.</em></li>",
        "<li>No Link</li>",
        "</ul>",
        '<p><a href="https://r.example/t/reef-sound">2 more online</a>: Drift, Foam.</p>',
        "<h3>Foam</h3>",
        "<p>No new papers, quiet. The last one came on Sep 14.</p>",
        "<h3>Older papers newly tagged</h3>",
        "<ul>",
        '<li><a href="https://r.example/p/1">Old Waves</a><br>Waves of old. <em>Now in Reef Sound.</em></li>',
        "</ul>",
        "<h3>Revised papers</h3>",
        "<ul>",
        '<li><a href="https://r.example/p/1">Changed</a><br>New abstract</li>',
        "</ul>",
        "<h3>Withdrawn papers</h3>",
        "<ul>",
        '<li><a href="https://r.example/p/1">Gone</a><br>Withdrawn by its authors</li>',
        "</ul>",
        "<p>That is all for Sep 23–29.</p>",
    ]


def test_digest_entry_names_six_of_the_rest_and_counts_the_others() -> None:
    """However many papers are over the budget, a digest names six and says how many are not named."""
    rest = tuple(make_told(f"Paper {number}") for number in range(8))
    section = Section(TOPIC, Headline(Trend.UNKNOWN, "8 new papers", ""), rest=rest)
    day = date(2026, 9, 29)
    told = FeedDigest("a/1", Digest("W", day, day, (section,), catch_up="after your pause"), "S", "Sep 29", "", NOW)
    text = digest_feed("W", [told], feed_key="a", site=SITE, place=NOWHERE, changed_at=NOW).entries[0].content_text
    assert text.startswith("After your pause.\n\nReef Sound\n\n8 new papers. 8 new, 0 shown.\n\n")
    assert "8 more: Paper 0, Paper 1, Paper 2, Paper 3, Paper 4, Paper 5, and 2 others." in text


def test_digest_text_is_a_list_of_papers() -> None:
    """The text form of a digest reads without markup."""
    assert "- Loud: A <Study>\n  Loud & clear. Also in Night Ecology." in make_digest_feed().entries[0].content_text


def test_revision_has_an_entry_of_its_own() -> None:
    """A reader of the revisions feed sees every change; the paper's own entry stays the one it was."""
    paper = make_feed_paper()
    revisions = [
        FeedRevision(paper, 4, NOW, "The abstract changed."),
        FeedRevision(paper, 9, NOW + timedelta(days=1), "Withdrawn by its authors.", withdrawn=True),
    ]
    feed = revisions_feed(TOPIC, revisions, site=SITE, place=PLACE, changed_at=NOW - timedelta(days=9))
    assert [(entry.id, entry.title) for entry in feed.entries] == [
        ("tag:reef.example,2026:topic/reef-sound/paper/7f3a/revision/4", "Revised: Quiet Reefs at Night"),
        ("tag:reef.example,2026:topic/reef-sound/paper/7f3a/revision/9", "Withdrawn: Quiet Reefs at Night"),
    ]
    assert feed.updated == NOW + timedelta(days=1)
    assert feed.entries[0].content_text == (
        "The abstract changed.\n\nReefs are quieter at night than at noon.\n\nAna Lima\n\nIn Reef Sound."
    )
    assert feed.entries[1].content_text == "Withdrawn by its authors.\n\nIn Reef Sound."


@pytest.mark.parametrize("feed", [make_topic_feed(make_feed_paper()), make_digest_feed()], ids=["topic", "digest"])
def test_content_uses_only_what_readers_keep(feed: Feed) -> None:
    """Entries are paragraphs, links and lists: no class, style, table or picture."""
    outline = Outline(feed.entries[0].content_html)
    assert outline.tags <= ALLOWED
    assert outline.attributes <= {"href"}


# dates and bytes


def test_last_build_date_is_the_newest_change() -> None:
    """The date of a feed is that of its newest change: of a paper, or of the topic if that came later."""
    late = datetime(2026, 10, 5, tzinfo=UTC)
    paper = make_feed_paper()
    assert make_topic_feed(paper).updated == paper.seen_at
    assert topic_feed(TOPIC, [paper], headline="", site=SITE, place=PLACE, changed_at=late).updated == late
    assert make_topic_feed().updated == datetime(2026, 9, 1, tzinfo=UTC)


def test_same_feed_same_bytes_in_any_zone() -> None:
    """The same feed gives the same bytes, so that its ETag stays; a zone is only another way to write an instant."""
    tokyo = timezone(timedelta(hours=9))
    moved = make_feed_paper(effective_at=datetime(2026, 9, 29, 9, tzinfo=tokyo))
    assert render_all(make_topic_feed(make_feed_paper())) == render_all(make_topic_feed(moved))


def test_dates_are_english_utc_with_four_digit_years() -> None:
    """Dates are written as the formats ask, fractions of a second left out."""
    moment = datetime(2026, 1, 4, 23, 30, 0, 123456, tzinfo=timezone(timedelta(hours=-3)))
    assert rfc822(moment) == "Mon, 05 Jan 2026 02:30:00 +0000"
    assert rfc3339(moment) == "2026-01-05T02:30:00Z"


def test_kept_entries_give_the_same_document() -> None:
    """Entries rendered once and kept make the same document as fresh ones, and are not rendered again."""
    papers = [make_feed_paper(public_id=str(number)) for number in range(5)]
    feed = make_topic_feed(*papers)
    keep = lru_cache(maxsize=100)(rss_item)
    first = rss_bytes(feed, keep)
    assert first == rss_bytes(feed, keep) == rss_bytes(feed)
    assert keep.cache_info().misses == 5


def test_feedparser_finds_nothing_wrong() -> None:
    """The reference parser reads RSS and Atom without complaint and finds the same papers."""
    feed = make_topic_feed(make_feed_paper(public_id="1"), make_feed_paper("Cats & <Dogs>", public_id="2"))
    for body in (rss_bytes(feed), atom_bytes(feed)):
        read = feedparser.parse(body)
        assert not read.bozo
        assert [entry.id for entry in read.entries] == [entry.id for entry in feed.entries]
        assert read.entries[0].title == "Quiet Reefs at Night"
        assert read.feed.updated_parsed[:5] == (2026, 9, 30, 5, 0)


# archives


def make_entries(count: int) -> tuple[FeedEntry, ...]:
    """Return entries, oldest first."""
    start = datetime(2026, 1, 1, tzinfo=UTC)
    days = [start + timedelta(days=number) for number in range(count)]
    return tuple(FeedEntry(f"tag:r.example,2026:{n}", f"P{n}", day, day, "<p>x</p>", "x") for n, day in enumerate(days))


@given(count=st.integers(0, 60), more=st.integers(0, 30), size=st.integers(1, 9))
@settings(max_examples=100)
def test_archive_pages_never_change_and_lose_nothing(count: int, more: int, size: int) -> None:
    """Every entry is in one document, the polled one is bounded, and full pages stay as they are when entries come."""
    entries = make_entries(count + more)
    current, pages = split_archive(entries[:count], size)
    later, later_pages = split_archive(entries, size)
    whole = [*(entry for page in later_pages for entry in reversed(page)), *reversed(later)]
    assert whole == list(entries)
    assert later_pages[: len(pages)] == pages
    assert all(len(page) == size for page in later_pages)
    assert min(len(entries), size) <= len(later) < 2 * size
    assert list(reversed(current)) == list(entries[len(pages) * size : count])


def archive_urls(number: int) -> FeedUrls:
    """Return where the archive document with this number is."""
    return FeedUrls(rss=f"https://r.example/{number}.rss", json=f"https://r.example/{number}.json")


def archive_links(feed: Feed) -> dict[str | None, str | None]:
    """Return the links of the RSS channel by their relation."""
    return {link.get("rel"): link.get("href") for link in rss_channel(feed).iterfind(f"{ATOM}link")}


def test_split_feed_links_its_documents() -> None:
    """The polled feed leads to the newest archive, archives to their neighbours and back to the feed."""
    feed = make_feed(make_entries(9), place=PLACE, note="Up.")
    current, archives = split_feed(feed, 2, archive_urls)
    assert [len(archive.entries) for archive in archives] == [2, 2, 2]
    assert archive_links(current) == {"self": PLACE.urls.rss, "prev-archive": "https://r.example/2.rss"}
    assert archive_links(archives[1]) == {
        "self": "https://r.example/1.rss",
        "current": PLACE.urls.rss,
        "prev-archive": "https://r.example/0.rss",
        "next-archive": "https://r.example/2.rss",
    }
    assert "prev-archive" not in archive_links(archives[0])
    assert "next-archive" not in archive_links(archives[2])
    assert json.loads(json_bytes(current))["next_url"] == "https://r.example/2.json"
    assert "next_url" not in json.loads(json_bytes(archives[0]))
    assert archives[0].updated == datetime(2026, 1, 2, tzinfo=UTC)
    history = "{http://purl.org/syndication/history/1.0}archive"
    assert [rss_channel(one).find(history) is not None for one in (current, *archives)] == [False, True, True, True]
    assert etree.fromstring(atom_bytes(archives[0])).find(history) is not None
    for document in (current, *archives):
        render_all(document)


def test_archive_documents_keep_their_bytes() -> None:
    """An archive document that has neighbours is never written again, whatever the topic does."""
    _, before = split_feed(make_feed(make_entries(9), note="Up."), 2, archive_urls)
    _, after = split_feed(make_feed(make_entries(40), note="Down.", updated=NOW + timedelta(days=9)), 2, archive_urls)
    assert [rss_bytes(one) for one in before[:-1]] == [rss_bytes(one) for one in after[: len(before) - 1]]
    assert before[-1].entries == after[len(before) - 1].entries


def test_split_feed_without_archives_says_nothing_of_them() -> None:
    """A short feed is one document."""
    current, archives = split_feed(make_feed(make_entries(3)), 2, lambda _: FeedUrls())
    assert archives == ()
    assert current.older == FeedUrls()
    assert [entry.title for entry in current.entries] == ["P2", "P1", "P0"]


# reading back


@pytest.mark.parametrize(
    ("kind", "old", "new"),
    [
        (FeedFormat.RSS, b"</channel>", b""),
        (FeedFormat.RSS, b'version="2.0"', b'version="0.91"'),
        (FeedFormat.RSS, b"<title>Reef Sound</title>", b""),
        (FeedFormat.RSS, b"<title>Quiet Reefs at Night</title>", b"<title/>"),
        (FeedFormat.RSS, b"Tue, 29 Sep", b"Mon, 29 Sep"),
        (FeedFormat.RSS, b"Tue, 29 Sep", b"soon"),
        (FeedFormat.RSS, b"Wed, 30 Sep 2026 05:00:00 +0000", b"2026-09-30"),
        (FeedFormat.RSS, b'isPermaLink="false"', b""),
        (FeedFormat.RSS, b"/paper/2", b"/paper/1"),
        (FeedFormat.RSS, b"<guid", b"<link>/p/1</link><guid"),
        (FeedFormat.ATOM, b"</feed>", b""),
        (FeedFormat.ATOM, b"2005/Atom", b"2004/Atom"),
        (FeedFormat.ATOM, b"<updated>2026-09-30T05:00:00Z</updated>", b""),
        (FeedFormat.ATOM, b"2026-09-29T00:00:00Z", b"2026-09-29 00:00"),
        (FeedFormat.ATOM, b"2026-09-29T00:00:00Z", b"yesterday"),
        (FeedFormat.ATOM, b"/paper/2", b"/paper/1"),
        (FeedFormat.ATOM, b"<name>Reef Papers</name>", b""),
        (FeedFormat.ATOM, b'href="https://papers.reef.example/t/reef-sound"', b'href="reef-sound"'),
        (
            FeedFormat.ATOM,
            b"<generator>",
            b'<link rel="self" href="https://r.example/" type="application/atom+xml"/><generator>',
        ),
        (FeedFormat.ATOM, b'type="text">Quiet Reefs at Night', b'type="text">'),
        (FeedFormat.ATOM, b"<author>\n  <name>Reef Papers</name>\n </author>", b""),
        (FeedFormat.JSON, b'"items"', b'"entries"'),
        (FeedFormat.JSON, b"]\n}\n", b"]"),
        (FeedFormat.JSON, b"version/1.1", b"version/1"),
        (FeedFormat.JSON, b"/paper/2", b"/paper/1"),
        (FeedFormat.JSON, b'"content_', b'"text_'),
        (FeedFormat.JSON, b'"id"', b'"guid"'),
        (FeedFormat.JSON, b"2026-09-29T00:00:00Z", b"2026-09-29"),
        (FeedFormat.JSON, b'"date_published"', b'"date"'),
        (FeedFormat.JSON, b"https://papers.reef.example/t/reef-sound.json", b"reef-sound.json"),
    ],
)
def test_check_feed_finds_what_is_broken(kind: FeedFormat, old: bytes, new: bytes) -> None:
    """A document that breaks a rule of its format never takes the place of the old one."""
    body = render_all(make_topic_feed(make_feed_paper(public_id="1"), make_feed_paper(public_id="2")))[kind]
    assert old in body
    with pytest.raises(RenderError, match=f"feed/{kind}"):
        check_feed(body.replace(old, new), kind)


@pytest.mark.parametrize("body", [b"", b"[]", b"\xff\xfe"])
@pytest.mark.parametrize("kind", list(FeedFormat))
def test_check_feed_refuses_other_bytes(kind: FeedFormat, body: bytes) -> None:
    """Bytes that are no feed are refused with one error, whatever they are."""
    with pytest.raises(RenderError):
        check_feed(body, kind)


def test_feed_urls_are_one_a_format() -> None:
    """Each format's address is its own."""
    assert [PLACE.urls.get(kind) for kind in FeedFormat] == [PLACE.urls.rss, PLACE.urls.atom, PLACE.urls.json]


# links, OPML


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://r.example/a?b=1&c=2#d", "https://r.example/a?b=1&c=2#d"),
        ("HTTP://r.example", "http://r.example"),
        ("https://r.example:8443/ü x%20y%zz", "https://r.example:8443/%C3%BC%20x%20y%25zz"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://[2001:db8::1]/x", "https://[2001:db8::1]/x"),
        ("https://r.example/a\x00b\nc", "https://r.example/ab%20c"),
        ('https://r.example/"><script>', "https://r.example/%22%3E%3Cscript%3E"),
        ("javascript:alert(1)", None),
        ("java\nscript:alert(1)", None),
        ("data:text/html,x", None),
        ("//r.example/a", None),
        ("/a", None),
        ("", None),
        (None, None),
        ("https://", None),
        ("https://[::1", None),
        ("https://bank.example@evil.example/", None),
        ("https://good.example\\@evil.example/", None),
        ("https://r.example:port/", None),
        ("https://" + "ü" * 70 + ".example/", None),
    ],
)
def test_web_url_lets_only_absolute_web_addresses_through(url: str | None, expected: str | None) -> None:
    """No link of a feed runs a script, leads elsewhere than it seems, or needs a base."""
    assert web_url(url) == expected


def test_opml_lists_feeds_that_can_be_followed() -> None:
    """Another reader can take over all feeds at once; a feed without an address is left out."""
    feeds = [
        FeedListing('Reef & "Sound"', "https://r.example/1.rss", "https://r.example/1", "What reefs sound like"),
        FeedListing("Bare", "https://r.example/2.rss"),
        FeedListing("Lost", "javascript:1"),
    ]
    top = etree.fromstring(opml_bytes("Reef Papers", feeds, changed_at=NOW))
    assert (top.tag, top.get("version"), top.findtext("head/title")) == ("opml", "2.0", "Reef Papers")
    assert top.findtext("head/dateModified") == "Wed, 30 Sep 2026 06:00:00 +0000"
    assert [dict(outline.attrib) for outline in top.iterfind("body/outline")] == [
        {
            "type": "rss",
            "text": 'Reef & "Sound"',
            "title": 'Reef & "Sound"',
            "xmlUrl": "https://r.example/1.rss",
            "htmlUrl": "https://r.example/1",
            "description": "What reefs sound like",
        },
        {"type": "rss", "text": "Bare", "title": "Bare", "xmlUrl": "https://r.example/2.rss"},
    ]


def test_opml_of_nothing_is_a_valid_list() -> None:
    """A service without feeds exports an empty list."""
    assert etree.fromstring(opml_bytes("Reef Papers", [])).find("body") is not None
