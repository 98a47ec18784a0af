"""Listing pages as HTML: html.py with html_tree.py, html_blocks.py and html_chart.py."""

from __future__ import annotations

import html
import json
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.errors import ErrorPageError, ParseError
from digestd.model.paper import Paper, PaperId
from digestd.model.snapshot import Order, Page, StatedMomentum
from digestd.model.topic import Vocabulary
from digestd.parse.html import parse_html
from digestd.parse.labels import load_vocabulary
from digestd.parse.listing import parse_listing
from tests.builders import make_document
from tests.shared import shared_path

DATA = Path(__file__).parents[1] / "data" / "html"
ORIGIN = "https://papers.example/topics/reef"
SEEN_AT = datetime(2026, 10, 22, 6, 0, tzinfo=UTC)
NO_LABELS = Vocabulary()
STYLES = ["article", "divs", "table", "definitions"]


def read(body: str | bytes, **fields: object) -> Page:
    """Return the page of an HTML document."""
    return parse_html(make_document(body, **{"fetched_at": SEEN_AT, **fields}), NO_LABELS)


def own(name: str, **fields: object) -> Page:
    """Return the page of a fixture of our own."""
    return read((DATA / f"{name}.html").read_bytes(), **fields)


def listing(blocks: str, head: str = "<h1>Reef Sound Sensing</h1><h2>Latest papers 9</h2>") -> str:
    """Return a page with these blocks."""
    return f"<html><head><title>Reef</title></head><body>{head}{blocks}</body></html>"


def card(
    title: str = "Echo Caves", *, date_html: str = "<p>Oct 19, 2026cs.SD</p>", row: str = "<p>Ana Lima, Bo Chen</p>"
) -> str:
    """Return a paper's mark-up with everything ordinary but what is named."""
    labels = '<ul class="tags"><li>Reef Sound Sensing</li></ul>'
    return f"<article>{date_html}<h3>{title}</h3><p>We listen to caves.</p>{row}{labels}</article>"


def test_parse_html_reads_semantic_markup() -> None:
    """Articles with headings, times and lists give links, dates, labels and the chart's numbers; scripts give nothing."""
    page = own("article", origin=ORIGIN)
    sentence = "14 papers in the last four weeks, up 40% on the four weeks before. 0.1% of all new papers."
    weekly = (1, 0, 2, 3, 1, 2, 3, 4, 2, 5, 4, 3)
    momentum = StatedMomentum(14, 40, None, 0.1, False, date(2026, 8, 3), date(2026, 10, 19), sentence, weekly)
    papers = (
        Paper(
            title="Drift & Listen",
            title_raw="Drift & Listen",
            published=date(2026, 10, 19),
            categories=("cs.RO",),
            abstract="Propellers are loud. We let gliders drift for ~6 weeks and lose 3% of them.",
            abstract_raw="Propellers are loud. We let gliders drift for \\sim6 weeks and lose 3\\% of them.",
            authors=("Owusu Mensah", "Lea Fontaine", "Yun-Seo Baek"),
            authors_more=1,
            affiliations=("Harbour Labs, Inc.", "Tidewater University"),
            topics=("Underwater Robotics", "Reef Sound Sensing"),
            topics_more=1,
            links=("https://papers.example/p/drift-and-listen?utm_source=page", "https://arxiv.org/abs/2610.17001v2"),
            ids=(PaperId("arxiv", "2610.17001"),),
        ),
        Paper(
            title="Fish Choruses as Weak Labels",
            title_raw="Fish Choruses as Weak Labels",
            published=date(2026, 10, 18),
            categories=("eess.AS",),
            abstract="Fish sing at dusk.",
            abstract_raw="Fish sing at dusk.",
            authors=("Chiara de Rossi",),
            topics=("Reef Sound Sensing",),
            links=("https://doi.org/10.5555/CHORUS.8",),
            ids=(PaperId("doi", "10.5555/chorus.8"),),
        ),
    )
    assert papers == page.papers
    expected = Page(
        topic="Reef Sound Sensing",
        papers=papers,
        order=Order.LISTING,
        gloss="ROV: Remotely Operated Vehicle",
        title="Reef Sound Sensing | Papers Example",
        origin=ORIGIN,
        momentum=momentum,
        total_papers=128,
        format="html",
    )
    assert expected == page


def test_parse_html_reads_anonymous_markup() -> None:
    """Nothing but div and span gives the same: rows by their class names, the address by the browser's own note."""
    page = own("divs")
    assert ("Reef Sound Sensing", "ROV: Remotely Operated Vehicle", 12) == (page.topic, page.gloss, page.total_papers)
    sentence = "7 papers in the last four weeks, up from none on the four weeks before. Under 0.1% of all new papers."
    weekly = (0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 1, 3)
    momentum = StatedMomentum(7, None, 0, 0.1, True, date(2026, 8, 3), date(2026, 10, 19), sentence, weekly)
    assert momentum == page.momentum
    first = Paper(
        title="Squeezed Hydrophones",
        title_raw="Squeezed Hydrophones",
        published=date(2026, 10, 20),
        categories=("cs.SD",),
        abstract="Quiet needs less noise. We squeeze it.",
        abstract_raw="Quiet needs less noise. We squeeze it.",
        authors=("Wei Lim", "Dina Farouk", "Ren Ito"),
        authors_more=4,
        affiliations=("Lagoon Institute", "Harbour Labs"),
        topics=("Reef Sound Sensing", "Quantum Sonar"),
        topics_more=2,
        links=("https://papers.example/p/7", "https://arxiv.org/pdf/2610.18002", "https://code.example/squeezed"),
        ids=(PaperId("arxiv", "2610.18002"),),
    )
    second = Paper(
        title="How Many Hydrophones Are Enough?",
        title_raw="How Many Hydrophones Are Enough?",
        published=date(2026, 10, 2),
        categories=("physics.ao-ph",),
        abstract="Twelve.",
        abstract_raw="Twelve.",
        authors=("Jo Park", "Ruth Cole"),
        topics=("Reef Sound Sensing",),
        links=("https://papers.example/p/8",),
    )
    assert (first, second) == page.papers


def test_parse_html_reads_tables() -> None:
    """A table with a paper a row gives papers, and a table with a week a row gives the chart, never papers."""
    page = own("table")
    assert (40, (1, 2, 0, 3, 2, 2, 3, 2, 2, 1, 1, 1)) == (page.total_papers, page.momentum and page.momentum.weekly)
    first = Paper(
        title="Forgetting Ships",
        title_raw="Forgetting Ships",
        published=date(2026, 10, 21),
        categories=("cs.LG",),
        abstract="Ships pass.",
        abstract_raw="Ships pass.",
        authors=("Paola D'Angelo", "Jörg Núñez-Ortiz"),
        topics=("Reef Sound Sensing", "Continual Learning"),
        links=("https://papers.example/p/21",),
    )
    second = Paper(
        title="Remembering Ships",
        title_raw="Remembering Ships",
        published=date(2026, 10, 11),
        categories=("cs.LG",),
        abstract="Ships return.",
        abstract_raw="Ships return.",
        authors=("Siobhan Kerr",),
        topics=("Reef Sound Sensing",),
        links=("https://papers.example/p/22",),
    )
    assert (first, second) == page.papers
    assert () == page.warnings


def test_parse_html_reads_definition_lists() -> None:
    """Names of fields are no fields, and a heading before its date is still the title."""
    page = own("definitions")
    first = Paper(
        title="Mud and Memory",
        title_raw="Mud and Memory",
        published=date(2026, 10, 21),
        abstract="Mud remembers.",
        abstract_raw="Mud remembers.",
        authors=("Ana Lima", "Bo Chen"),
        affiliations=("Lagoon Institute",),
        topics=("Reef Sound Sensing", "Sediment"),
        links=("https://papers.example/p/31",),
    )
    second = Paper(
        title="Sand and Silence",
        title_raw="Sand and Silence",
        published=date(2026, 10, 20),
        abstract="Sand is silent.",
        abstract_raw="Sand is silent.",
        authors=("Ren Ito",),
        topics=("Reef Sound Sensing",),
        links=("https://papers.example/p/32",),
    )
    assert (first, second) == page.papers
    assert (3, None, False) == (page.total_papers, page.momentum, page.incomplete)


@pytest.mark.parametrize(
    ("title", "error"),
    [
        ("503 Service Unavailable", ErrorPageError),
        ("Just a moment...", ErrorPageError),
        ("Sign in to Papers Example", ErrorPageError),
        ("Page not found", ErrorPageError),
        ("Our Harbour", ParseError),
    ],
)
def test_parse_html_without_a_listing_says_what_it_is(title: str, error: type[ParseError]) -> None:
    """A page that is no listing is an error that names its title; error pages are told from other pages."""
    with pytest.raises(ParseError, match="expected a topic listing, found a page titled") as caught:
        read(f"<html><head><title>{title}</title></head><body><h1>{title}</h1><p>Come back later.</p></body></html>")
    assert error is type(caught.value)
    assert title in str(caught.value)


@pytest.mark.parametrize("body", ["", "   ", "<!-- -->", "plain words", "\0\0\0", "<div>" * 100_000, "<!--" * 100_000])
def test_parse_html_of_next_to_nothing_is_an_error(body: str) -> None:
    """Empty documents, bare text and nests without end are parse errors."""
    with pytest.raises(ParseError):
        read(body)


def test_parse_html_too_large_is_an_error() -> None:
    """More than five million bytes are refused before anything is read."""
    with pytest.raises(ParseError, match="at most 5,000,000 bytes of HTML, found 5,000,001"):
        read(b" " * 5_000_001)


@pytest.mark.parametrize("name", STYLES)
def test_parse_html_cut_anywhere_gives_whole_papers_and_says_so(name: str) -> None:
    """A page cut at any place gives papers as the whole page has them, or an error; missing papers are admitted."""
    body = (DATA / f"{name}.html").read_bytes()
    whole = read(body, origin=ORIGIN)
    end = body.rindex(b"</body>")
    for size in range(0, len(body), 7):
        try:
            page = read(body[:size], origin=ORIGIN)
        except ParseError:
            continue
        assert whole.papers[: len(page.papers)] == page.papers, size
        assert page.incomplete or size >= end or len(page.papers) == len(whole.papers), size


@pytest.mark.parametrize(
    "date_html",
    [
        '<p><time datetime="2026-10-19">3 days ago</time> cs.SD</p>',
        '<p><time datetime="2026-10-19T17:59:59Z"></time><span>cs.SD</span></p>',
        "<div><span>Oct 19, 2026</span><span>cs.SD</span></div>",
        "<div><div>Oct 19, 2026</div><div>cs.SD</div></div>",
        "<div>Oct&nbsp;19, 2026<br>cs.SD</div>",
        "<p>19 Oct 2026 · cs.SD</p>",
    ],
)
def test_parse_html_dates_in_any_dress(date_html: str) -> None:
    """However the date and the category stand in the mark-up, they are read, by the machine's date where there is one."""
    page = read(listing(card(date_html=date_html) + card("Second")))
    assert [("Echo Caves", date(2026, 10, 19), ("cs.SD",))] == [
        (paper.title, paper.published, paper.categories) for paper in page.papers[:1]
    ]


@pytest.mark.parametrize(
    ("row", "authors", "more"),
    [
        ("<p>Ana Lima, Bo Chen</p>", ("Ana Lima", "Bo Chen"), 0),
        ("<p>Authors: Ana Lima, Bo Chen +3</p>", ("Ana Lima", "Bo Chen"), 3),
        ("<ul><li>Ana Lima</li><li>Bo Chen</li><li>+3</li></ul>", ("Ana Lima", "Bo Chen"), 3),
        ('<div id="authors"><a>Ana Lima</a><a>Bo Chen</a> <span>+1,012 more</span></div>', ("Ana Lima", "Bo Chen"), 1012),
        ('<div class="paperAuthors"><div><span>Ana Lima</span>, <span>Bo Chen</span></div></div>', ("Ana Lima", "Bo Chen"), 0),
        ('<p itemprop="author"><span>Ana Lima</span> and <span>Bo Chen</span></p>', ("Ana Lima", "Bo Chen"), 0),
        ("<p><a>Ana Lima</a> <a>Bo Chen</a></p>", ("Ana Lima", "Bo Chen"), 0),
        ('<div class="authors"><ul><li>Ana Lima</li><li>Bo Chen</li></ul></div>', ("Ana Lima", "Bo Chen"), 0),
    ],
)  # fmt: skip
def test_parse_html_author_rows_in_any_dress(row: str, authors: tuple[str, ...], more: int) -> None:
    """However a row of names stands in the mark-up, the people are the same."""
    page = read(listing(card(row=row)))
    assert (authors, more) == (page.papers[0].authors, page.papers[0].authors_more)
    assert ("Reef Sound Sensing",) == page.papers[0].topics


def test_parse_html_hidden_parts_are_not_read() -> None:
    """What a reader does not see is no part of the listing: hidden elements, templates, navigation, the page's footer."""
    noise = "<p {}>Oct 20, 2026cs.AI</p><p {}>Not a Paper</p>"
    hidden = "".join(
        noise.format(key, key) for key in ("hidden", 'style="display: none"', 'class="sr-only"', 'aria-hidden="true"')
    )
    wrapped = "".join(f"<{tag}>{noise.format('', '')}</{tag}>" for tag in ("nav", "template", "noscript", "footer"))
    page = read(listing(hidden + card() + wrapped))
    assert ["Echo Caves"] == [paper.title for paper in page.papers]


def test_parse_html_card_that_is_one_link_gives_the_link_to_the_title() -> None:
    """A link around the whole card is the paper's link; links that are no web addresses are none."""
    page = read(listing(f'<a href="/p/1">{card()}</a>' + card('<a href="javascript:x()">Second</a>')), origin=ORIGIN)
    assert [("https://papers.example/p/1",), ()] == [paper.links for paper in page.papers]


@pytest.mark.parametrize(
    ("body", "media_type"),
    [
        (listing(card("Zoë Núñez’s Reef")).encode(), "text/html"),
        (listing(card("Zoë Núñez’s Reef")).encode("cp1252"), "text/html; charset=iso-8859-1"),
        (listing(card("Zoë Núñez’s Reef")).replace("<head>", '<head><meta charset="windows-1252">').encode("cp1252"), None),
        (listing(card("Zoë Núñez’s Reef")).encode("utf-16"), None),
        (listing(card("Zoë Núñez&rsquo;s Reef")).encode("utf-8-sig"), None),
    ],
)  # fmt: skip
def test_parse_html_in_any_encoding(body: bytes, media_type: str | None) -> None:
    """Accents are right whatever the page was saved as."""
    assert "Zoë Núñez’s Reef" == read(body, media_type=media_type).papers[0].title


MOMENTUM = (
    "<h2>Momentum</h2><p>5 papers in the last four weeks, up 25% on the four weeks before. 0.1% of all new papers.</p>"
)
HEAD = "<h1>Reef Sound Sensing</h1>" + MOMENTUM + "{}<h2>Latest papers 9</h2>"
TWELVE = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)


@pytest.mark.parametrize(
    ("chart", "weekly"),
    [
        ('<div data-counts="1,2,3,4,5,6,7,8,9,10,11,12"></div>', TWELVE),
        ('<svg><title>1 2 3 4 5 6 7 8 9 10 11 12</title></svg>', TWELVE),
        ('<div role="img" aria-label="Weekly: 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12."></div>', TWELVE),
        ("<svg>" + "".join(f"<rect><title>Week of Aug {n}: {n} papers</title></rect>" for n in TWELVE) + "</svg>", TWELVE),
        ("<svg>" + "".join(f'<rect data-count="{n}"/>' for n in TWELVE) + "</svg>", TWELVE),
        ("<table>" + "".join(f"<tr><td>Aug {n}, 2026</td><td>{n}</td></tr>" for n in TWELVE) + "</table>", TWELVE),
        # doubt: eleven, thirteen, fractions, two different readings, no chart
        ('<div data-counts="1,2,3,4,5,6,7,8,9,10,11"></div>', ()),
        ('<div data-counts="1,2,3,4,5,6,7,8,9,10,11,12,13"></div>', ()),
        ('<div data-counts="1.5,2,3,4,5,6,7,8,9,10,11,12"></div>', ()),
        ('<div data-counts="1,2,3,4,5,6,7,8,9,10,11,12"></div><div data-counts="2,2,3,4,5,6,7,8,9,10,11,12"></div>', ()),
        ("<svg>" + "<rect data-count='1'/>" * 300 + "</svg>", ()),
        ("<table>" + "<tr><td>Aug 3</td><td>1</td></tr>" * 50 + "</table>", ()),
        ("", ()),
    ],
)  # fmt: skip
def test_parse_html_chart_numbers_only_where_they_are_beyond_doubt(chart: str, weekly: tuple[int, ...]) -> None:
    """The chart's weeks are read where the page gives twelve whole numbers in one reading, and never guessed."""
    page = read(listing(card(), HEAD.format(chart)))
    assert page.momentum is not None
    assert (5, weekly) == (page.momentum.papers_last_four_weeks, page.momentum.weekly)
    assert ["Echo Caves"] == [paper.title for paper in page.papers]


WRAP = st.sampled_from(
    [
        "<p>{}</p>",
        "<div>{}</div>",
        "<span>{}</span>",
        "<li>{}</li>",
        "<td>{}",
        "<a href=x>{}</a>",
        "{}",
        "<{}",
        "<ul>{}",
    ]
)
WORD = st.sampled_from(
    ["Oct 19, 2026cs.SD", "Latest papers 3", "+2", "Ana Lima, Bo Chen", "A title", "&#0;", "\ud800", "\x0b", "--", "é"]
)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(WRAP, WORD), max_size=14), st.binary(max_size=30))
def test_parse_html_of_any_markup_raises_only_parse_errors(pieces: list[tuple[str, str]], tail: bytes) -> None:
    """Whatever the mark-up, there is a page or a ParseError, and no paper without a title."""
    body = "".join(wrap.format(word) for wrap, word in pieces).encode("utf-8", "surrogatepass")
    with suppress(ParseError):
        assert all(paper.title for paper in read(body + tail).papers)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(STYLES), st.integers(0, 4000), st.binary(max_size=6), st.integers(0, 40))
def test_parse_html_of_damaged_pages_raises_only_parse_errors(name: str, place: int, junk: bytes, gone: int) -> None:
    """A page with bytes torn out or put in gives a page or a ParseError."""
    body = (DATA / f"{name}.html").read_bytes()
    place %= len(body)
    with suppress(ParseError):
        read(body[:place] + junk + body[place + gone :])


@pytest.mark.parametrize("name", ["llm-agent-training.page-1.txt", "llm-agent-training.page-6.txt"])
def test_parse_html_of_a_text_listing_in_paragraphs_is_the_same_page(name: str) -> None:
    """A text listing with each line in an element of its own gives the papers of the text."""
    root = Path(__file__).parents[2]
    text = (root / "seeds" / name).read_text()
    vocabulary = load_vocabulary((root / "config" / "labels.txt").read_text())
    lines = "".join(f"<p>{html.escape(line)}</p>\n" for line in text.splitlines() if line.strip())
    expected = parse_listing(make_document(text, fetched_at=SEEN_AT), vocabulary)
    page = parse_html(make_document(f"<html><body>{lines}</body></html>", fetched_at=SEEN_AT), vocabulary)
    assert 30 == len(page.papers)
    assert expected.papers == tuple(replace(paper, ids=()) for paper in page.papers)
    assert (expected.topic, expected.momentum, expected.total_papers) == (page.topic, page.momentum, page.total_papers)


def test_parse_html_institutions_with_whole_addresses_stay_apart() -> None:
    """An institution of more than a line is one of the row's, not the end of it."""
    places = ("Key Laboratory of Patient Listening, " * 6 + "Lagoon University", "Harbour Labs")
    row = "".join(f"<span>{place}</span>" for place in places)
    page = read(listing(card(row=f'<p>Ana Lima, Bo Chen</p><div class="institutions">{row}<span>+2</span></div>')))
    assert (places, 2) == (page.papers[0].affiliations, page.papers[0].affiliations_more)


def _real_card(paper: dict[str, Any]) -> str:
    """Return a paper of the truth in mark-up of our own."""

    def row(tag: str, key: str) -> str:
        more = [f"+{paper[f'{key}_more']}"] if paper.get(f"{key}_more") else []
        return "".join(f"<{tag}>{html.escape(piece)}</{tag}>" for piece in [*paper[key], *more])

    abstract = "".join(f"<p>{html.escape(piece)}</p>" for piece in paper["abstract_fragments"])
    places = f'<div class="institutions">{row("span", "affiliations")}</div>' if paper["affiliation_line"] else ""
    return (
        f'<article><time datetime="{paper["date"]}">lately</time><span>{paper["category"]}</span>'
        f'<h3><a href="/p/{paper["n"]}">{html.escape(paper["title"])}</a></h3>{abstract}'
        f'<div class="authors">{row("span", "authors")}</div>{places}<ul>{row("li", "topics")}</ul></article>'
    )


@pytest.mark.parametrize("name", ["000_a3d9d309e03795fe", "001_9be04561b74ea5eb", "002_0950ec912c1729e2"])
def test_parse_html_of_real_papers_in_elements_of_their_own(name: str) -> None:
    """Where rows and labels stand apart, all fields of real papers are right without any known label."""
    truth = json.loads(shared_path("truth", f"{name}.json").read_text())
    page = read(listing("".join(_real_card(paper) for paper in truth["papers"])), origin=ORIGIN)
    for expected, paper in zip(truth["papers"], page.papers, strict=True):
        assert expected["title_unicode"] == paper.title
        assert expected["date"] == str(paper.published)
        assert "".join(expected["abstract_unicode"].split()) == "".join((paper.abstract or "").split())
        for key in ("authors", "affiliations", "topics"):
            assert expected[key] == list(getattr(paper, key)), paper.title
            assert (expected[f"{key}_more"] or 0) == getattr(paper, f"{key}_more"), paper.title


def test_parse_html_of_a_paper_called_like_a_link_keeps_its_title() -> None:
    """A word that names a link elsewhere is a title where the title stands."""
    plain = card("Third").replace("<h3>Third</h3>", "<div>Tags: Third</div>")
    page = read(listing(card("Code") + card("Labels: A Survey") + plain))
    assert ["Code", "Labels: A Survey", "Tags: Third"] == [paper.title for paper in page.papers]


def test_parse_html_headings_above_dates_are_titles_only_if_papers_have_them() -> None:
    """One heading above one date is the page's own, several are the papers' titles."""
    first, second = (
        card(title, date_html="").replace("</h3>", "</h3><p>Oct 19, 2026cs.SD</p>") for title in ("One", "Two")
    )
    titles_first = read(listing(first + second, "<h1>Reef Sound Sensing</h1>"))
    assert ("Reef Sound Sensing", ["One", "Two"]) == (
        titles_first.topic,
        [paper.title for paper in titles_first.papers],
    )
    page = read(listing(card("One"), "<h1>Reef Sound Sensing</h1>"))
    assert ("Reef Sound Sensing", ["One"]) == (page.topic, [paper.title for paper in page.papers])


def test_parse_html_list_of_other_things_is_no_row() -> None:
    """A list of hundreds of pieces is no row of names, and an untitled page is called by its heading."""
    crowd = "".join(f"<li><b>Reader {number}</b></li>" for number in range(300))
    long = f"<ul><li>{'We thank the harbour. ' * 20}</li></ul>"
    page = read(
        f"<title> </title><h1>Reef Sound Sensing</h1><ul>{crowd}</ul>{long}<h2>Latest papers 9</h2>{card()}</body>"
    )
    assert ("Reef Sound Sensing", ["Echo Caves"]) == (page.title, [paper.title for paper in page.papers])


def test_parse_html_of_links_to_act_on_is_no_part_of_the_paper() -> None:
    """Links to the file or the code go to the paper, their words don't; a title with such a link stays the title."""
    acts = '<p><a href="/p/1.pdf">PDF</a> | <a href="https://arxiv.org/abs/2610.17001">arXiv</a></p>'
    paper = (
        card()
        .replace("</ul>", "</ul>" + acts)
        .replace("<h3>Echo Caves</h3>", '<p><a href="/p/1">Echo Caves</a> <a href="/x">HTML</a></p>')
    )
    page = read(listing(paper), origin=ORIGIN)
    assert ["Echo Caves"] == [one.title for one in page.papers]
    links = ("p/1", "x", "p/1.pdf")
    expected = (*(f"https://papers.example/{link}" for link in links), "https://arxiv.org/abs/2610.17001")
    assert (expected, (PaperId("arxiv", "2610.17001"),)) == (page.papers[0].links, page.papers[0].ids)


def test_parse_html_without_its_own_end_is_incomplete() -> None:
    """A document that was opened and never closed may lack papers, even where nothing within it is open."""
    whole = listing(card() + card("Second"))
    assert [(2, False), (2, True)] == [
        (len(page.papers), page.incomplete) for page in (read(whole), read(whole.replace("</body></html>", "")))
    ]


def test_parse_html_is_the_same_for_line_ends_and_blanks() -> None:
    """White space between elements is no content."""
    body = (DATA / "article.html").read_text()
    crlf = read(body.replace("\n", "\r\n").replace("<p>", "<p>\t "), origin=ORIGIN)
    assert read(body, origin=ORIGIN) == crlf
