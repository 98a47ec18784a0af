from __future__ import annotations

from contextlib import suppress
from datetime import UTC, date, datetime

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from digestd.errors import ConfigError, ParseError
from digestd.model.paper import Paper, PaperId
from digestd.model.snapshot import Order, Page, StatedMomentum
from digestd.model.topic import Vocabulary
from digestd.parse.rules import PageRules, load_rules, parse_with_rules
from tests.builders import make_document

ORIGIN = "https://lab.example/pubs/"
SEEN_AT = datetime(2026, 10, 22, 6, 0, tzinfo=UTC)

RULES = """
order = "feed"
item = "div.pub"
title = ".t"
link = ".t a@href"
date = "@data-day"
date_format = "%d.%m.%Y"
abstract = ".abs p"
authors = ".who"
author_separator = "/"
affiliations = ".where li"
labels = ".tags a"
category = ".cat"
topic = "h1"
total = ".count"
momentum = ".pulse"
"""

PAGE = """<html><head><title>Lagoon Lab: Papers</title></head><body><h1>Lagoon  Lab</h1>
<p class="count">All 1,204 papers</p>
<p class="pulse">12 papers in the last four weeks, down 20% on the four weeks before.</p>
<div class="pub" data-day="19.10.2026"><p class="t"><a href="tides?id=1">Tides in $\\alpha$ Bays</a></p>
<div class="abs"><p>Bays have tides.</p><p>So does <i>the sea</i>.</p></div>
<p class="who">Ana Lima / Bo Chen +2</p><ul class="where"><li>1Lagoon Institute</li><li>Harbour Labs, Inc.</li></ul>
<p class="tags"><a>Tides</a><a>Bays+1</a></p><b class="cat">cs.CE</b></div>
<div class="pub" data-day="soon"><p class="t"><a href="https://arxiv.org/abs/2610.11111">Second</a></p></div>
<div class="pub"><p>an advertisement</p></div>
</body></html>"""


def read(rules: str = RULES, body: str | bytes = PAGE) -> Page:
    """Return the page that these rules find."""
    document = make_document(body, origin=ORIGIN, fetched_at=SEEN_AT)
    return parse_with_rules(document, load_rules(rules), Vocabulary())


def test_parse_with_rules_reads_every_field() -> None:
    """Each rule gives its field; an item without a title is left out with a warning and a count."""
    sentence = "12 papers in the last four weeks, down 20% on the four weeks before."
    first = Paper(
        title="Tides in α Bays",
        title_raw="Tides in $\\alpha$ Bays",
        published=date(2026, 10, 19),
        categories=("cs.CE",),
        abstract="Bays have tides. So does the sea.",
        abstract_raw="Bays have tides. So does the sea.",
        authors=("Ana Lima", "Bo Chen"),
        authors_more=2,
        affiliations=("Lagoon Institute", "Harbour Labs, Inc."),
        topics=("Tides", "Bays"),
        topics_more=1,
        links=("https://lab.example/pubs/tides?id=1",),
    )
    second = Paper(
        title="Second",
        title_raw="Second",
        links=("https://arxiv.org/abs/2610.11111",),
        ids=(PaperId("arxiv", "2610.11111"),),
        warnings=("date: found 'soon', left out",),
    )
    expected = Page(
        topic="Lagoon Lab",
        papers=(first, second),
        order=Order.FEED,
        title="Lagoon Lab: Papers",
        origin=ORIGIN,
        momentum=StatedMomentum(12, -20, sentence=sentence),
        total_papers=1204,
        format="rules",
        warnings=("papers left out: 1 of 3 have no title (item 3, line 9)",),
    )
    assert expected == read()


def test_parse_with_rules_needs_only_items_and_titles() -> None:
    """With two rules a page is an ordered listing without a topic, incomplete where an item could not be read."""
    page = read('item = ".pub"\ntitle = ".t"')
    assert (None, Order.LISTING, True, None) == (page.topic, page.order, page.incomplete, page.momentum)
    assert ["Tides in α Bays", "Second"] == [paper.title for paper in page.papers]


@pytest.mark.parametrize(
    ("markup", "rule", "authors"),
    [
        ("<i>Ana Lima</i> <i>Bo Chen,</i>", ".who i", ("Ana Lima", "Bo Chen")),
        ("<i>Ana Lima</i><i>;</i>", ".who i", ("Ana Lima",)),
        ("Ana Lima, Bo Chen and Wei Lim", ".who", ("Ana Lima", "Bo Chen", "Wei Lim")),
        ("<i title='Ana Lima'>A</i><i>B</i>", ".who i@title", ("Ana Lima",)),
    ],
)
def test_parse_with_rules_authors_in_one_or_many_elements(markup: str, rule: str, authors: tuple[str, ...]) -> None:
    """Elements are one name each; a single element is cut at its commas."""
    body = f'<div class="p"><b>Tides</b><p class="who">{markup}</p></div>'
    assert authors == read(f'item = ".p"\ntitle = "b"\nauthors = "{rule}"', body).papers[0].authors


@pytest.mark.parametrize(
    ("printed", "expected", "instant"),
    [
        ("2026-10-19", date(2026, 10, 19), None),
        ("2026-10-19T08:00:00Z", date(2026, 10, 19), datetime(2026, 10, 19, 8, 0, tzinfo=UTC)),
        ("Oct 19, 2026", date(2026, 10, 19), None),
        ("19 October 2026", date(2026, 10, 19), None),
        ("2031-01-01", None, None),
        ("2026-02-30", None, None),
        ("", None, None),
    ],
)
def test_parse_with_rules_dates(printed: str, expected: date | None, instant: datetime | None) -> None:
    """Dates are read as ISO or as listings print them; what is none, or far ahead, is unknown."""
    body = f"<div class=p><b>Tides</b><i>{printed}</i></div>"
    paper = read('item = ".p"\ntitle = "b"\ndate = "i"', body).papers[0]
    assert (expected, instant) == (paper.published, paper.published_at)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ('item = ".p"\ntitel = "b"', "found unknown key 'titel', the nearest known one is title"),
        ('item = ".p"\nzzz = "b"', "found unknown key 'zzz', known ones are item, title, link"),
        ('item = ".p"', "expected key title, found only item"),
        ("", "expected key item, found only none"),
        ('item = ".p"\ntitle = 7', "title: expected a text that is not empty, found 7"),
        ('item = " "\ntitle = "b"', "item: expected a text that is not empty, found ' '"),
        ('item = ".p"\ntitle = "b["', "title: expected a CSS selector, found 'b['"),
        ('item = ".p"\ntitle = "b::nope"', "title: expected a CSS selector, found 'b::nope'"),
        ('item = ".p@id"\ntitle = "b"', "item: expected a selector of elements, found '.p@id'"),
        ('item = ".p"\ntitle = "b"\norder = "down"', "order: expected one of listing, feed, found 'down'"),
        ("item = .p", "expected TOML, found Invalid value"),
        ("[rules]\nitem = 1", "found unknown key 'rules'"),
    ],
)
def test_load_rules_names_what_is_wrong(text: str, error: str) -> None:
    """A rule file that can't be used is a configuration error that names the key, and the nearest known one."""
    with pytest.raises(ConfigError) as caught:
        load_rules(text)
    assert f"page rules: {error}" in str(caught.value)


def test_load_rules_gives_rules_as_written() -> None:
    """What the file does not name is left at its default."""
    assert PageRules(item=".p", title="b") == load_rules('\ufeffitem = ".p"\r\ntitle = "b"\r\n')


@pytest.mark.parametrize(
    ("rules", "error"),
    [
        ('item = ".none"\ntitle = "b"', "expected papers at item '.none', found none on the page titled 'Lagoon Lab: Papers'"),
        ('item = ".pub"\ntitle = "h6"', "expected a title at 'h6', found none in 3 items on the page titled 'Lagoon Lab"),
    ],
)  # fmt: skip
def test_parse_with_rules_that_find_nothing_is_an_error(rules: str, error: str) -> None:
    """A page that changed its mark-up is an error that names the rule, never an empty page."""
    with pytest.raises(ParseError) as caught:
        read(rules)
    assert error in str(caught.value)


@settings(max_examples=150, deadline=None)
@given(st.integers(0, len(PAGE)), st.binary(max_size=8), st.integers(0, 60))
def test_parse_with_rules_of_damaged_pages_raises_only_parse_errors(place: int, junk: bytes, gone: int) -> None:
    """A page with bytes torn out or put in gives a page or a ParseError, and no paper without a title."""
    body = PAGE.encode()
    with suppress(ParseError):
        assert all(paper.title for paper in read(body=body[:place] + junk + body[place + gone :]).papers)


@settings(max_examples=200, deadline=None)
@example("a|*")
@given(st.text(alphabet="abi.#>+~ *[]=@:()\"'|,^$1-", max_size=12))
def test_load_rules_of_any_selector_is_rules_or_a_configuration_error(selector: str) -> None:
    """Whatever stands where a selector is expected, it can be used or is refused by name."""
    quoted = selector.replace("\\", "").replace('"', '\\"')
    with suppress(ConfigError, ParseError):
        read(f'item = "div"\ntitle = "{quoted}"')
