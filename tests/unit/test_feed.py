"""Feeds become pages: each shape, each wound, each attack."""

from __future__ import annotations

import string
from datetime import UTC, date, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.errors import ErrorPageError, ParseError
from digestd.model.paper import Paper
from digestd.model.snapshot import Order, Page
from digestd.model.topic import Vocabulary
from digestd.parse.feed import parse_feed
from tests.builders import make_document
from tests.feeds import API_ERROR, SEEN, SHAPES, atom, rdf, rss

FEED_URL = "https://kelp.example/feeds/k.xml"


def _page(body: str | bytes, *, origin: str | None = FEED_URL, **fields: object) -> Page:
    return parse_feed(make_document(body, origin=origin, fetched_at=SEEN, **fields), Vocabulary())


def _paper(body: str | bytes, *, origin: str | None = FEED_URL) -> Paper:
    (paper,) = _page(body, origin=origin).papers
    return paper


def _ids(paper: Paper) -> list[str]:
    return [str(paper_id) for paper_id in paper.ids]


def test_parse_feed_of_arxiv_today() -> None:
    """Announce types, versions and the bare abstract are read; a replacement's date is not the paper's."""
    page = _page(SHAPES["arxiv new"])
    assert (None, "Kelp Weekly", Order.FEED, 3600) == (page.topic, page.title, page.order, page.ttl_s)
    assert datetime(2026, 10, 21, 4, 0, 2, tzinfo=UTC) == page.observed_at
    assert ["new", "cross", "replace", "replace-cross"] == [paper.announce for paper in page.papers]
    assert [1, 2, 3, 4] == [paper.version for paper in page.papers]
    assert [["arxiv:2610.80001"], ["arxiv:2610.80002"]] == [_ids(paper) for paper in page.papers[:2]]
    first = page.papers[0]
    assert ("Fronds sway, 1 of them.", ("Ida Moss", "Tor Vik")) == (first.abstract, first.authors)
    assert ("Kelp Paper 1: O(n²) Fronds", "Kelp Paper 1: $O(n^2)$ Fronds") == (first.title, first.title_raw)
    assert ("eess.AS", "cs.SD") == first.categories
    assert [date(2026, 10, 20), date(2026, 10, 20), None, None] == [paper.published for paper in page.papers]
    assert () == page.warnings


def test_parse_feed_of_arxiv_before_2024() -> None:
    """The bracket behind titles is taken off and read; authors are out of their links."""
    first, second, third = _page(SHAPES["arxiv old"]).papers
    assert ("Fronds at Rest", "new", ("cs.SD",), 1) == (first.title, first.announce, first.categories, first.version)
    assert (("Ida Moss", "Tor Vik"), "TIDE Collaboration") == (first.authors, first.group)
    assert "We rest, for 2<n<4 fronds." == (first.abstract or "").replace(" < ", "<")
    assert ("Do Fronds Rest?", "replace", 4) == (second.title, second.announce, second.version)
    assert ["arxiv:hep-th/9901001"] == _ids(second)
    assert ("Fronds and Foam", "cross", ("math.AP",)) == (third.title, third.announce, third.categories)


def test_parse_feed_of_arxiv_api() -> None:
    """The API's own fields are read: primary category first, DOI, places, withdrawal; other classes are left out."""
    paper = _paper(SHAPES["arxiv api"], origin="https://export.arxiv.org/api/query?x")
    assert ("Fronds on Request", "We fetch fronds.") == (paper.title, paper.abstract)
    assert (["arxiv:2610.80007", "doi:10.5555/kelp.7"], 2) == (_ids(paper), paper.version)
    assert ("cs.SD", "eess.AS") == paper.categories
    assert (("Ida Moss", "Tor Vik"), ("Tide Lab",)) == (paper.authors, paper.affiliations)
    assert ("https://arxiv.org/abs/2610.80007v2", "https://arxiv.org/pdf/2610.80007v2") == paper.links
    assert datetime(2026, 10, 18, 10, tzinfo=UTC) == paper.published_at
    assert paper.withdrawn


@pytest.mark.parametrize(
    ("shape", "title", "abstract", "authors", "identity"),
    [
        (
            "biorxiv",
            "Holding fast",
            "Holdfasts hold.",
            ("I. Moss", "L. E. van der Zee"),
            "doi:10.1101/2026.10.19.123456",
        ),
        ("mdpi", "Blades in Light", "Blades [...]", ("Ida Moss", "Tor Vik"), "doi:10.5555/kelps9010012"),
        ("acm", "Scheduling Fronds", "We schedule.", ("Ida Moss",), "doi:10.5555/11.22"),
        (
            "plos",
            "Gut feeling: Laminaria at CO₂ peaks",
            "Kelp has guts too.",
            ("Ida Moss", "Tor Vik", "Ken Arai"),
            "doi:10.5555/okj.0000012",
        ),
        ("ieee", "Beams Through Kelp", "We form beams.", ("Ida Moss", "Tor Vik"), None),
        ("springer", "A note on quiet kelp", "Quiet kelp is quiet.", (), "doi:10.5555/s999-026-0001-1"),
        ("dblp", "How Many Fronds Are Enough?", None, ("Ida Moss", "Tor Vik"), "doi:10.5555/skl.4"),
    ],
)
def test_parse_feed_of_publishers(
    shape: str, title: str, abstract: str | None, authors: tuple[str, ...], identity: str | None
) -> None:
    """Each publisher's dress is taken off: citation, heading, by-line, authors in the title."""
    paper = _paper(SHAPES[shape])
    assert (title, abstract, authors) == (paper.title, paper.abstract, paper.authors)
    assert identity is None or identity in _ids(paper)


def test_parse_feed_names_the_group_apart() -> None:
    """A group among the authors is the paper's group."""
    assert "Shelf Group" == _paper(SHAPES["biorxiv"]).group


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("R&amp;amp;D in Kelp", "R&D in Kelp"),
        ("<![CDATA[R&D in <i>Kelp</i>]]>", "R&D in Kelp"),
        ("R&D &nbsp; in &eacute;t&eacute;", "R&D in été"),
        ("Is p &lt; 0.05 &gt; q?", "Is p < 0.05 > q?"),
        ("Sense &lt;x&gt; of <b>kelp</b>", "Sense <x> of kelp"),
        ("Kelp\n  at\tNight\nBcc: all@kelp.example", "Kelp at Night Bcc: all@kelp.example"),
        ("Kelp&#x202e;&#0;&#27; &#146;s", "Kelp ’s"),
        ("&lt;script&gt;alert(1)&lt;/script&gt;Kelp", "Kelp"),
    ],
)
def test_parse_feed_title_is_text(title: str, expected: str) -> None:
    """Entities are read once, markup goes, "less than" stays, all on one line."""
    assert expected == _paper(rss(f"<title>{title}</title>")).title


def test_parse_feed_title_declared_as_text() -> None:
    """What Atom declares to be text means itself."""
    assert "The &amp; sign" == _paper(atom('<title type="text">The &amp;amp; sign</title>')).title
    assert "The & sign" == _paper(atom('<title type="html">The &amp;amp; sign</title>')).title
    xhtml = '<title type="xhtml"><div xmlns="http://www.w3.org/1999/xhtml">The <em>big</em> &amp; sign</div></title>'
    assert "The big & sign" == _paper(atom(xhtml)).title


def test_parse_feed_without_title() -> None:
    """A paper without a title goes by its first words; one without any text is left out, its neighbours stay."""
    page = _page(
        rss("<description>Only words.</description>", "<link>https://kelp.example/1</link>", "<title>A</title>")
    )
    assert ["Only words.", "A"] == [paper.title for paper in page.papers]
    assert "item 2: left out, it has neither title nor text" in page.warnings


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("https://kelp.example/1", "https://kelp.example/1"),
        ("/1", "https://kelp.example/1"),
        ("1", "https://kelp.example/feeds/1"),
        ("javascript:alert(1)", None),
        ("data:text/html,x", None),
    ],
)
def test_parse_feed_link(link: str, expected: str | None) -> None:
    """A link is absolute and of the web, or not there."""
    found = _paper(rss(f"<title>A</title><link>{link}</link>")).links
    assert ((expected,) if expected else ()) == found


def test_parse_feed_links_in_content() -> None:
    """Links in the text follow the paper's own, resolved against the innermost base; scripts are dropped."""
    entry = (
        '<title>A</title><link href="tides"/><content type="html">&lt;a href="one.html"&gt;x&lt;/a&gt; '
        '&lt;img src="/t.png"&gt; &lt;a href="javascript:x()"&gt;y&lt;/a&gt;</content>'
    )
    feed = atom(entry, attributes='xml:base="https://lagoon.example/notes/"').replace(
        "<entry>", '<entry xml:base="2026/10/">'
    )
    expected = tuple(
        f"https://lagoon.example/{path}" for path in ("notes/2026/10/tides", "notes/2026/10/one.html", "t.png")
    )
    assert expected == _paper(feed).links


def test_parse_feed_link_without_origin() -> None:
    """Where nobody knows the feed's address, its own link is the base."""
    assert ("https://kelp.example/1",) == _paper(rss("<title>A</title><link>/1</link>"), origin=None).links


def test_parse_feed_guid() -> None:
    """A guid is an id within its feed's host, the same under http and https; a fragment is part of it."""
    ids = [
        _ids(
            _paper(
                rss(f"<title>A</title><guid isPermaLink='false'>{guid}</guid>"), origin=f"{scheme}://www.kelp.example/f"
            )
        )
        for scheme in ("http", "https")
        for guid in ("k1", f"{scheme}://kelp.example/?p=1", f"{scheme}://kelp.example/all#k1")
    ]
    expected = [
        ["guid:kelp.example:k1"],
        ["guid:kelp.example:kelp.example?p=1"],
        ["guid:kelp.example:kelp.example/all#k1"],
    ]
    assert expected * 2 == ids


def test_parse_feed_guid_of_several() -> None:
    """A guid that several papers have is the name of none."""
    page = _page(rss(*(f"<title>Kelp {name}</title><guid>x1</guid>" for name in "ab")))
    assert [(), ()] == [paper.ids for paper in page.papers]


def test_parse_feed_same_item_twice() -> None:
    """The same item twice is one paper, and is told."""
    page = _page(rss("<title>A</title>", "<title>A</title>"))
    assert 1 == len(page.papers)
    assert "item 2: the same as one before" in page.warnings


@pytest.mark.parametrize(
    ("days", "reason"), [("Wednesday", "skip day: Wednesday"), ("Saturday", "empty feed"), ("", "empty feed")]
)
def test_parse_feed_that_is_empty(days: str, reason: str) -> None:
    """An empty feed is a page, and says why it is quiet."""
    head = f"<skipDays><day>{days}</day></skipDays>" if days else ""
    page = _page(rss(head=head))
    assert ((), reason, False) == (page.papers, page.quiet_reason, page.incomplete)


@pytest.mark.parametrize(
    ("head", "ttl_s"),
    [
        ("<ttl>60</ttl>", 3600),
        ("<ttl>0</ttl>", None),
        ("<ttl>-5</ttl>", None),
        ("<ttl>9999999</ttl>", 31 * 86400),
        ("<sy:updatePeriod>daily</sy:updatePeriod><sy:updateFrequency>2</sy:updateFrequency>", 43200),
        ("<sy:updatePeriod>now</sy:updatePeriod>", None),
    ],
)
def test_parse_feed_ttl(head: str, ttl_s: int | None) -> None:
    """How long a feed asks to be left alone, bounded."""
    assert ttl_s == _page(rss("<title>A</title>", head=head)).ttl_s


@pytest.mark.parametrize(
    "body",
    [
        API_ERROR,
        rss("<title>502 Server Error</title><description>Try later</description>"),
        "<!DOCTYPE html><html><head><title>Down for maintenance</title></head><body>Back soon</body></html>",
        '{"error": "rate limit"}',
        "502 Bad Gateway",
    ],
)
def test_parse_feed_of_an_error(body: str) -> None:
    """An error message is never a paper and never an empty feed."""
    with pytest.raises(ErrorPageError):
        _page(body)


@pytest.mark.parametrize(
    "body", ["", "kelp", "<opml/>", "<html><body><p>Kelp</p></body></html>", "<rss><channel><item><ti"]
)
def test_parse_feed_of_no_feed(body: str) -> None:
    """What is no feed, or was cut before its first paper ends, is refused."""
    with pytest.raises(ParseError):
        _page(body)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("step", range(2, 100, 2))
def test_parse_feed_that_was_cut(shape: str, step: int) -> None:
    """A feed cut anywhere gives its whole papers and says that it is not complete, or is refused."""
    whole = _page(SHAPES[shape])
    body = SHAPES[shape].encode()
    try:
        page = _page(body[: len(body) * step // 100])
    except ParseError:
        return
    assert page.incomplete
    assert page.papers
    assert page.papers == whole.papers[: len(page.papers)]


def test_parse_feed_not_well_formed() -> None:
    """Bare ampersands, undeclared prefixes and junk around the feed cost a warning, no paper."""
    feed = rss(
        '<title>A & B &foo; <</title><link>https://kelp.example/?a=1&b=2</link><x:y>1</x:y><z q:r="1"/>',
        "<title>C</title>",
    )
    page = _page("Notice: kelp\n\n" + feed + "<!-- cached --><script>x</script>")
    assert ["A & B &foo; <", "C"] == [paper.title for paper in page.papers]
    assert ("https://kelp.example/?a=1&b=2",) == page.papers[0].links
    assert not page.incomplete
    assert page.warnings


def test_parse_feed_that_swallows_items() -> None:
    """Where a comment or a nest swallows papers, the page says that it is not complete."""
    for trap in ("<!-- ", "<![CDATA[", "<b>" * 400):
        page = _page(rss("<title>A</title>", f"<title>B</title>{trap}", "<title>C</title>"))
        assert page.incomplete, trap
        assert "A" == page.papers[0].title


def test_parse_feed_in_other_encodings() -> None:
    """UTF-16, a mark, a declared code page and stray bytes all give the same letters."""
    feed = rss("<title>Żółw’s edge – Zoë</title>")
    utf16 = feed.replace("UTF-8", "UTF-16").encode("utf-16")
    stray = feed.encode().replace("’".encode(), b"\x92").replace("–".encode(), b"\x96")
    for body in (feed.encode("utf-8-sig"), utf16, stray):
        assert "Żółw’s edge – Zoë" == _paper(body).title


@pytest.mark.parametrize(
    "doctype",
    [
        '<!DOCTYPE r [<!ENTITY a "kelp"><!ENTITY b "&a;&a;&a;&a;">]>',
        '<!DOCTYPE r [<!ENTITY b SYSTEM "file:///etc/hostname">]>',
        '<!DOCTYPE r SYSTEM "http://kelp.invalid/x.dtd" [<!ENTITY % p SYSTEM "http://kelp.invalid/p"> %p;]>',
    ],
)
def test_parse_feed_with_entities(doctype: str) -> None:
    """Entities of a document type are never read, neither expanded nor fetched."""
    feed = rss("<title>Kelp &b;</title>").replace("<rss", f"{doctype}<rss")
    page = _page(feed)
    assert "Kelp &b;" == page.papers[0].title
    assert "document type with entities left out" in page.warnings


def test_parse_feed_never_opens_a_path() -> None:
    """Bytes that look like a path or an address are bytes."""
    for body in (b"/etc/hostname", b"http://kelp.invalid/feed", b"file:///etc/hostname"):
        with pytest.raises(ParseError):
            _page(body)


def test_parse_feed_of_older_dialects() -> None:
    """RSS 0.91 and Atom 0.3 are read as well."""
    old = "<rss version='0.91'><channel><title>K</title><item><title>A</title><link>https://kelp.example/1</link></item></channel></rss>"
    assert "A" == _paper(old).title
    older = (
        "<feed version='0.3' xmlns='http://purl.org/atom/ns#'><title>K</title><entry><title mode='escaped' type='text/html'>"
        "A &amp;amp; B</title><link rel='alternate' href='https://kelp.example/1'/><issued>2026-10-01T00:00:00Z</issued></entry></feed>"
    )
    assert ("A & B", date(2026, 10, 1)) == (_paper(older).title, _paper(older).published)


@given(st.binary(max_size=300))
@settings(max_examples=150, deadline=None)
def test_parse_feed_of_any_bytes(body: bytes) -> None:
    """Any bytes give a page or a ParseError."""
    for whole in (body, b"<rss><channel><item><title>" + body + b"</title></item></channel></rss>"):
        try:
            _page(whole)
        except ParseError:
            continue


_WOUNDS = (
    "\x00",
    "\ud800",
    "<",
    ">",
    "&",
    "]]>",
    "<![CDATA[",
    "<!--",
    "-->",
    "</item>",
    "<item>",
    "99999",
    "&#xD800;",
    '"',
    "%",
)


@given(
    st.sampled_from(sorted(SHAPES)),
    st.lists(st.tuples(st.integers(0, 10**6), st.sampled_from(_WOUNDS)), min_size=1, max_size=6),
)
@settings(max_examples=250, deadline=None)
def test_parse_feed_of_wounded_feeds(shape: str, wounds: list[tuple[int, str]]) -> None:
    """A feed with anything written anywhere in it gives clean papers or a ParseError."""
    text = SHAPES[shape]
    for at, wound in wounds:
        at %= len(text)
        text = text[:at] + wound + text[at + len(wound) :]
    try:
        page = _page(text.encode("utf-8", "surrogatepass"))
    except ParseError:
        return
    for paper in page.papers:
        assert paper.title
        for field in (paper.title, paper.abstract or "", *paper.authors, paper.group or "", *paper.categories):
            field.encode("utf-8")
            assert field == " ".join(field.split())
            assert not set(field) & set("\x00\x1b\u202e")
        assert all(link.startswith(("http://", "https://")) for link in paper.links)


@given(st.text(alphabet=string.printable, max_size=80), st.text(alphabet=string.printable, max_size=20))
@settings(max_examples=100, deadline=None)
def test_parse_feed_of_escaped_text(title: str, guid: str) -> None:
    """An rdf or rss item with any escaped text in it is one paper, or none where the text is blank."""
    from xml.sax.saxutils import escape

    fields = f"<title>{escape(title)}</title><description>Kelp.</description><guid>{escape(guid)}</guid>"
    for feed in (rss(fields), rdf(fields)):
        assert 1 == len(_page(feed).papers)


def test_parse_feed_that_is_too_large() -> None:
    """Of a feed over the limit the whole papers before it are read, and the page says that it is not complete."""
    page = _page(rss(*(f"<title>Kelp {at}</title><description>{'k' * 9000}</description>" for at in range(600))))
    assert page.incomplete
    assert 500 < len(page.papers) < 600
    assert page.warnings[0].startswith("only the first 5,000,000 of ")


def test_parse_feed_with_too_many_items() -> None:
    """More papers than any feed has are not read, and that is told."""
    page = _page("<rss><channel>" + "<item><title>K</title></item>" * 10_001 + "</channel></rss>")
    assert page.incomplete
    assert "only the first 10000 of 10001 papers were read" in page.warnings


def test_parse_feed_with_too_many_prefixes() -> None:
    """Thousands of namespaces are refused before they cost time."""
    spaces = " ".join(f'xmlns:k{at}="urn:k{at}"' for at in range(400))
    with pytest.raises(ParseError, match="namespace prefixes"):
        _page(f"<rss {spaces}><channel><item><title>K</title></item></channel></rss>")


def test_parse_feed_with_papers_of_no_text() -> None:
    """Items without title and text are no papers; a feed of nothing else is refused."""
    with pytest.raises(ParseError, match="1 items without title or text"):
        _page(rss("<link>https://kelp.example/1</link>"))


def test_parse_feed_of_nested_items() -> None:
    """An item within an item is part of it: the readers agree on how many there are."""
    page = _page(rss("<title>A</title><item><title>B</title></item>", "<title>C</title>"))
    assert ["A", "C"] == [paper.title for paper in page.papers]


def test_parse_feed_atom_links() -> None:
    """A DOI link names the paper; related links follow its own; empty ones and replies are nothing."""
    entry = (
        '<title>A</title><link href=" "/><link rel="related" title="doi" href="https://doi.org/10.5555/K1"/>'
        '<link rel="replies" href="https://kelp.example/talk"/><id>https://kelp.example/e/1</id>'
    )
    paper = _paper(atom(entry))
    assert ("https://kelp.example/e/1", "https://doi.org/10.5555/K1") == paper.links
    assert ["doi:10.5555/k1", "guid:kelp.example:kelp.example/e/1"] == _ids(paper)


def test_parse_feed_date_that_only_feedparser_reads() -> None:
    """Spellings of other lands are left to feedparser; what it makes of nonsense is no date."""
    assert date(2026, 10, 20) == _paper(rss("<title>A</title><pubDate>Tue Oct 20 10:00:00 2026</pubDate>")).published
    assert _paper(rss("<title>A</title><pubDate>sometime</pubDate>")).published is None


def test_parse_feed_item_that_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    """An item that a reader chokes on is left out with a warning; its neighbours are read."""

    def choke(item: object, entry: dict[str, str], context: object) -> Paper:
        if entry["title"] == "B":
            raise ValueError("kelp")
        return Paper(entry["title"])

    monkeypatch.setattr("digestd.parse.feed.read_item", choke)
    page = _page(rss("<title>A</title>", "<title>B</title>", "<title>C</title>"))
    assert ["A", "C"] == [paper.title for paper in page.papers]
    assert ("item 2: left out, ValueError: kelp",) == page.warnings


def test_parse_feed_markup_in_old_atom() -> None:
    """Markup written without escaping in a field that says it is escaped is read as markup."""
    feed = atom('<title mode="escaped" type="text/html">The <em>big</em> kelp</title>')
    assert "The big kelp" == _paper(feed).title


def test_parse_feed_title_with_another_bracket() -> None:
    """A bracket that only looks like arXiv's stays in the title."""
    assert "Kelp (arXiv:unknown)" == _paper(rss("<title>Kelp (arXiv:unknown)</title>")).title


def test_parse_feed_dblp_title_without_authors() -> None:
    """A title of dblp that has no venue stays whole."""
    feed = rss("<title>Kelp: a survey of fronds</title>").replace("Kelp Weekly", "dblp: kelp")
    assert "Kelp: a survey of fronds" == _paper(feed).title


def test_parse_feed_with_a_title_cut_at_a_blank() -> None:
    """A title that is cut for its length does not end in a blank."""
    paper = _paper(rss(f"<title>{'k' * 999} {'p' * 50}</title>"))
    assert ("k" * 999, "k" * 999) == (paper.title, paper.title_raw)
