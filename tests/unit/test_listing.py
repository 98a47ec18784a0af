"""Text listings: every paper with the right fields, or a reason why not."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.errors import ParseError
from digestd.model.paper import Paper
from digestd.model.snapshot import Order, Page, StatedMomentum
from digestd.model.topic import Vocabulary
from digestd.parse.listing import Paragraph, parse_listing, parse_paragraphs
from tests.builders import make_document

TOPIC = "Kelp Forest Mapping"
HEAD = (
    TOPIC,
    "AUV: Autonomous Underwater Vehicle",
    "Follow this topic Ask about this topic",
    "Momentum",
    "26 papers in the last four weeks, up 30% on the four weeks before. 0.3% of all new papers.",
    "Aug 3Week of Oct 19",
    "Latest papers 1,260",
)
TORN = (
    "Oct 20, 2026cs.RO",
    "FrondNet: Counting Stipes -- From the Air",
    "Canopies hide what they shade. Our drone counts stipes within",
    "{\\sim}",
    "2.5\\%",
    ", and it does so in \\textbf{every} tide (down to",
    "-3",
    ") of Kelp Forest Mapping. Data is at https://example.org/fronds.",
    "Ines Calder, Jo van Riet, Mats Ødegård +1,004",
    "1Fjord Institute · 2Low Tide Labs, Inc. · †Equal contribution. +2",
    "Aerial Survey Kelp Forest Mapping Counting+3",
)
NO_AFFILIATIONS = (
    "Oct 19, 2026quant-ph",
    "Brine Clocks",
    "We keep time with salt. It drifts by 3 s a year.",
    "Ugo Marsh, Lin Wei, Sana Okafor +38",
    "Kelp Forest Mapping",
)
NAMELIKE_AFFILIATION = (
    "Oct 18, 2026cond-mat.soft",
    "On Holdfasts",
    "Rocks hold.",
    "Petra Vold",
    "Strand Lab, Nordic Sea Group",
    "Kelp Forest Mapping Soft Matter",
)
NO_ABSTRACT = (
    "Oct 17, 2026math.AG",
    "Varieties of Algae",
    "Karl Brunn, Eva Stern",
    "Marine College",
    "Kelp Forest Mapping",
)
BLOCKS = (TORN, NO_AFFILIATIONS, NAMELIKE_AFFILIATION, NO_ABSTRACT)
LABELS = Vocabulary({"Aerial Survey": 3, "Counting": 2, "Soft Matter": 1, "Kelp Forest Mapping": 9})

PAPERS = (
    Paper(
        title="FrondNet: Counting Stipes – From the Air",
        title_raw="FrondNet: Counting Stipes -- From the Air",
        published=date(2026, 10, 20),
        categories=("cs.RO",),
        abstract="Canopies hide what they shade. Our drone counts stipes within ~2.5%, and it does so in every tide "
        "(down to -3) of Kelp Forest Mapping. Data is at https://example.org/fronds.",
        abstract_raw="Canopies hide what they shade. Our drone counts stipes within {\\sim}2.5\\%, and it does so in "
        "\\textbf{every} tide (down to -3) of Kelp Forest Mapping. Data is at https://example.org/fronds.",
        authors=("Ines Calder", "Jo van Riet", "Mats Ødegård"),
        authors_more=1004,
        affiliations=("Fjord Institute", "Low Tide Labs, Inc."),
        affiliations_more=2,
        topics=("Aerial Survey", "Kelp Forest Mapping", "Counting"),
        topics_more=3,
    ),
    Paper(
        title="Brine Clocks",
        title_raw="Brine Clocks",
        published=date(2026, 10, 19),
        categories=("quant-ph",),
        abstract="We keep time with salt. It drifts by 3 s a year.",
        abstract_raw="We keep time with salt. It drifts by 3 s a year.",
        authors=("Ugo Marsh", "Lin Wei", "Sana Okafor"),
        authors_more=38,
        topics=("Kelp Forest Mapping",),
    ),
    Paper(
        title="On Holdfasts",
        title_raw="On Holdfasts",
        published=date(2026, 10, 18),
        categories=("cond-mat.soft",),
        abstract="Rocks hold.",
        abstract_raw="Rocks hold.",
        authors=("Petra Vold",),
        affiliations=("Strand Lab, Nordic Sea Group",),
        topics=("Kelp Forest Mapping", "Soft Matter"),
    ),
    Paper(
        title="Varieties of Algae",
        title_raw="Varieties of Algae",
        published=date(2026, 10, 17),
        categories=("math.AG",),
        authors=("Karl Brunn", "Eva Stern"),
        affiliations=("Marine College",),
        topics=("Kelp Forest Mapping",),
    ),
)


def _text(*blocks: Sequence[str], head: Sequence[str] = HEAD) -> str:
    """Return a listing of these blocks as it is served."""
    return "\n\n".join([*head, *(line for block in blocks for line in block)])


def _parse(body: str | bytes, vocabulary: Vocabulary = LABELS, **fields: object) -> Page:
    return parse_listing(make_document(body, **fields), vocabulary)


FULL = _text(*BLOCKS)


def test_parse_listing_reads_the_whole_page() -> None:
    """Every field of head and papers is what the page shows."""
    sentence = HEAD[4]
    expected = Page(
        topic=TOPIC,
        papers=PAPERS,
        order=Order.LISTING,
        gloss="AUV: Autonomous Underwater Vehicle",
        origin="kelp.txt",
        momentum=StatedMomentum(
            26, 30, None, 0.3, chart_from=date(2026, 8, 3), chart_to=date(2026, 10, 19), sentence=sentence
        ),
        total_papers=1260,
        format="listing",
    )
    assert expected == _parse(FULL, origin="kelp.txt")


@pytest.mark.parametrize(
    "body",
    [
        FULL.encode() + b"\n",
        FULL.replace("\n", "\r\n").encode(),
        FULL.replace("\n", "\r").encode(),
        b"\xef\xbb\xbf" + FULL.encode(),
        FULL.encode("utf-16"),
        b"\xfe\xff" + FULL.encode("utf-16-be"),
        FULL.replace("\n\n", "\n").encode(),
        ("\n\n" + FULL.replace("\n\n", "\n \n\t\n\n") + "\n\n").encode(),
        FULL.replace("Kelp Forest", "Kelp\u00a0Forest").replace(", ", ",\u2009").encode(),
        FULL.replace("Jo van Riet", "Jo  van\tRiet").replace("Brine", "\u200bBrine").encode(),
    ],
    ids=["newline", "crlf", "cr", "bom", "utf16", "utf16be", "dense", "airy", "blanks", "tabs"],
)
def test_parse_listing_does_not_mind_how_it_was_saved(body: bytes) -> None:
    """Line ends, marks and blanks change no field."""
    page = _parse(body)

    assert page.papers == PAPERS
    assert (page.topic, page.total_papers, page.incomplete) == (TOPIC, 1260, False)
    assert page.momentum == _parse(FULL).momentum


def test_parse_listing_repairs_stray_bytes() -> None:
    """A byte of another code page is repaired alone, and the page says so."""
    page = _parse(FULL.encode().replace(b"Rocks hold.", b"Rocks \x96 hold."))

    assert page.papers[2].abstract == "Rocks – hold."
    assert page.papers[0].authors == PAPERS[0].authors
    assert "windows-1252" in page.warnings[0]


def test_parse_listing_without_vocabulary_leaves_tag_lines_whole() -> None:
    """Without known labels only lines that are the topic itself are cut."""
    page = _parse(FULL, Vocabulary())

    expected = [
        ((), "Aerial Survey Kelp Forest Mapping Counting", 3),
        ((TOPIC,), None, 0),
        ((), "Kelp Forest Mapping Soft Matter", 0),
        ((TOPIC,), None, 0),
    ]
    assert expected == [(paper.topics, paper.topics_unparsed, paper.topics_more) for paper in page.papers]
    assert not page.incomplete


@pytest.mark.parametrize("left_out", [1, 2, 3, 4, 5])
def test_parse_listing_reads_heads_with_lines_missing(left_out: int) -> None:
    """Each line between topic and total may be missing."""
    page = _parse(_text(*BLOCKS, head=[line for place, line in enumerate(HEAD) if place != left_out]))

    assert page.papers == PAPERS
    assert (TOPIC, 1260) == (page.topic, page.total_papers)
    assert (page.gloss is None) == (left_out == 1)
    assert (page.momentum is None) == (left_out == 4)
    assert page.momentum is None or (page.momentum.chart_to is None) == (left_out == 5)


def test_parse_listing_reads_a_topic_alone() -> None:
    """A first line that the papers are tagged with is the topic, any other is not."""
    assert TOPIC == _parse(_text(*BLOCKS, head=[TOPIC])).topic
    page = _parse(_text(*BLOCKS, head=["Some Other Page"]))
    assert page.topic is None
    assert page.papers[:3] == _parse(FULL).papers[:3]
    assert "no topic" in page.warnings[0]


def test_parse_listing_reads_an_empty_topic() -> None:
    """A topic without papers is a page, with its momentum."""
    head = [*HEAD[:4], "No papers in the last four weeks.", "Latest papers 0"]
    page = _parse(_text(head=head))

    assert (TOPIC, (), 0, False) == (page.topic, page.papers, page.total_papers, page.incomplete)
    assert page.momentum == StatedMomentum(0, sentence="No papers in the last four weeks.")
    assert 0 == _parse(_text(head=[TOPIC, "Follow this topic", "No papers yet"])).total_papers


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"\n\n",
        b"\x00" * 50,
        b"Hello, world",
        b"\xff\xfe",
        _text().encode(),
        TOPIC.encode(),
        b"Latest papers 0",
        b"\xff\xff\xfe",
    ],
)
def test_parse_listing_refuses_what_is_none(body: bytes) -> None:
    """Neither a head nor a block, or a head cut before its papers, is a parse error."""
    with pytest.raises(ParseError) as caught:
        _parse(body, origin="x.txt")
    assert caught.value.origin == "x.txt"


def test_parse_listing_skips_an_unreadable_block() -> None:
    """A block without lines is skipped, named by its line, and its neighbours stand."""
    page = _parse(_text(TORN, ("Oct 19, 2026cs.LG", "Lonely Title"), NO_AFFILIATIONS))

    assert page.papers == PAPERS[:2]
    assert page.warnings == ("line 37: paper skipped, expected title and labels, found 1 lines",)
    assert not page.incomplete


def test_parse_listing_refuses_a_page_of_unreadable_blocks() -> None:
    """If no block can be read the error names the first one's line."""
    with pytest.raises(ParseError, match="none of 2 papers") as caught:
        _parse(_text(("Oct 19, 2026cs.LG", "Lonely Title"), ("Oct 18, 2026cs.LG",)))
    assert caught.value.line == 15


def test_parse_listing_keeps_papers_whose_date_is_missing() -> None:
    """A category alone begins a paper without a date."""
    page = _parse(_text(TORN, ("hep-th", *NO_AFFILIATIONS[1:]), NAMELIKE_AFFILIATION))

    assert [paper.title for paper in page.papers] == [paper.title for paper in PAPERS[:3]]
    assert (None, ("hep-th",)) == (page.papers[1].published, page.papers[1].categories)
    assert page.papers[1].warnings == ("line 37: date left out, found 'none'",)


def test_parse_listing_takes_no_second_paper_into_the_first() -> None:
    """A paper whose date line can't be read is skipped with a warning; the one above keeps its own fields."""
    page = _parse(_text(NO_AFFILIATIONS, ("Someday", *TORN[1:]), NAMELIKE_AFFILIATION))

    assert replace(page.papers[0], warnings=()) == PAPERS[1]
    assert page.papers[1:] == (PAPERS[2],)
    assert any(warning.startswith("line 25: ") and "skipped" in warning for warning in page.warnings)


@pytest.mark.parametrize(
    ("printed", "published", "warned"),
    [
        ("Oct 23, 2026", date(2026, 10, 23), False),
        ("Oct 24, 2026", None, True),
        ("Feb 30, 2026", None, True),
        ("Oct 21, 1926", date(1926, 10, 21), False),
    ],
)
def test_parse_listing_leaves_out_impossible_dates(printed: str, published: date | None, *, warned: bool) -> None:
    """Days no calendar has, and days more than two days after fetching, are None with a warning; the paper stays."""
    fetched_at = datetime(2026, 10, 21, 8, tzinfo=UTC)
    page = _parse(_text((f"{printed}cs.LG", *NO_AFFILIATIONS[1:])), fetched_at=fetched_at)

    assert published == page.papers[0].published
    assert warned == bool(page.papers[0].warnings)


def test_parse_listing_dates_the_chart_by_the_day_of_fetching() -> None:
    """The chart's year comes from fetched_at, and a week that is no Monday is left out with a warning."""
    fetched_at = datetime(2026, 10, 21, 8, tzinfo=UTC)
    old = ("Oct 20, 2024cs.LG", *NO_AFFILIATIONS[1:])
    page = _parse(_text(old), fetched_at=fetched_at)
    odd = _parse(_text(old, head=[*HEAD[:5], "Aug 4Week of Oct 20", *HEAD[6:]]), fetched_at=fetched_at)

    assert page.momentum is not None
    assert (date(2026, 8, 3), date(2026, 10, 19)) == (page.momentum.chart_from, page.momentum.chart_to)
    assert odd.momentum is not None
    assert odd.momentum.chart_to is None
    assert "line 11: chart weeks left out" in odd.warnings[0]


def test_parse_listing_ignores_a_footer() -> None:
    """Lines below the last labels are no part of the paper, and no sign of a cut."""
    page = _parse(FULL + "\n\nNext page\n\nAbout us")

    assert [paper.title for paper in page.papers] == [paper.title for paper in PAPERS]
    assert page.papers[-1].authors == PAPERS[-1].authors
    assert not page.incomplete
    assert "2 lines skipped below the labels" in page.warnings[0]


def test_parse_listing_cut_in_an_abstract_keeps_the_whole_papers() -> None:
    """The papers before the cut are taken, the cut one is not, and the page says that it is incomplete."""
    body = FULL[: FULL.index("Rocks ho") + 8]
    page = _parse(body)

    assert page.papers == PAPERS[:2]
    assert page.incomplete
    assert page.warnings == ("line 47: paper skipped, the page ends inside it",)


def test_parse_listing_cut_in_a_label_marks_the_page() -> None:
    """A last tag line that ends in half a label is taken as a run, and the page is incomplete."""
    page = _parse(FULL[: FULL.index("Soft Matter") + 6])

    assert "Kelp Forest Mapping Soft M" == page.papers[-1].topics_unparsed
    assert replace(page.papers[-1], topics_unparsed=None) == replace(PAPERS[2], topics=())
    assert page.incomplete
    assert "inside a label" in page.warnings[-1]


def test_parse_listing_with_one_unknown_last_label_marks_the_page() -> None:
    """If all other tag lines are explained and the last is not, it may be cut."""
    page = _parse(FULL.replace("Kelp Forest Mapping Soft Matter", "Kelp Forest Mapping").rstrip() + " Tides")

    assert page.incomplete
    assert "unknown" in page.warnings[-1]


def _fields(paper: Paper) -> Paper:
    """Return a paper without its labels, which a cut within the last line may shorten."""
    return replace(paper, topics=(), topics_more=0, topics_unparsed=None, warnings=())


@pytest.mark.parametrize("vocabulary", [LABELS, Vocabulary()], ids=["labels", "none"])
def test_parse_listing_cut_at_any_byte_gives_a_prefix(vocabulary: Vocabulary) -> None:
    """Cut anywhere, a page is refused or gives its first papers with the right fields; only a last tag line may be short."""
    body = FULL.encode()
    whole = parse_listing(make_document(body), vocabulary)
    for size in range(len(body)):
        try:
            page = parse_listing(make_document(body[:size]), vocabulary)
        except ParseError:
            continue
        count = len(page.papers)
        assert whole.papers[: count - 1] == page.papers[:-1], size
        assert _fields(whole.papers[count - 1]) == _fields(page.papers[-1]), size
        assert (whole.topic, whole.total_papers, whole.momentum) == (page.topic, page.total_papers, page.momentum), size
        ends_in_tags = body[:size].split(b"\n")[-1].startswith(tuple(block[-1][:19].encode() for block in BLOCKS)) or (
            body[:size].endswith(b"\n") or b"Survey Kelp Forest Mapping" in body[:size].split(b"\n")[-1]
        )
        assert page.incomplete or ends_in_tags, size


_CHUNKS = [
    *HEAD,
    *(line for block in BLOCKS for line in block),
    "",
    "\r",
    "Oct 2",
    "Feb 31, 2026cs.AI",
    "+3",
    " · ",
    "x" * 300,
]


@given(st.lists(st.sampled_from(_CHUNKS), max_size=40), st.sampled_from(["\n", "\n\n", "\r\n"]))
@settings(max_examples=300)
def test_parse_listing_survives_lines_in_any_order(lines: list[str], end: str) -> None:
    """Lines of a listing in any order give a page or a parse error, and every paper has a title."""
    try:
        page = _parse(end.join(lines))
    except ParseError:
        return
    assert all(paper.title for paper in page.papers)


@given(st.binary(max_size=400), st.integers(0, len(FULL)))
@settings(max_examples=300)
def test_parse_listing_survives_any_bytes(noise: bytes, place: int) -> None:
    """Whatever bytes stand in a page, it is read or refused with a parse error."""
    body = FULL.encode()
    for document in (noise, body[:place] + noise + body[place:]):
        try:
            page = _parse(document, fetched_at=datetime(2026, 10, 21, tzinfo=UTC))
        except ParseError:
            continue
        assert page.format == "listing"


@pytest.mark.parametrize(
    "hostile",
    [
        "Oct 20, 2026cs.AI\n" * 200_000,
        _text(TORN) + "\nx" * 500_000,
        _text((*TORN[:2], "a, " * 700_000, *TORN[8:])),
        _text((*TORN[:-1], "Kelp Forest Mapping " * 100_000)),
        "\n" * 3_000_000,
        _text((*TORN[:8], "A +" * 300_000, *TORN[9:])),
        _text(*[(*NO_AFFILIATIONS[:-1], "Kelp Forest Mapping " * 150)] * 300),
    ],
    ids=["dates", "lines", "commas", "labels", "empty", "plus", "rows"],
)
def test_parse_listing_is_linear_on_hostile_pages(hostile: str) -> None:
    """No page of a few megabytes keeps the parser busy."""
    start = time.process_time()
    try:
        page = _parse(hostile)
    except ParseError:
        pass
    else:
        assert len(page.warnings) <= 201
    assert time.process_time() - start < 20


def test_parse_paragraphs_takes_links_and_labels_of_other_formats() -> None:
    """Links of the title line and labels that stand alone are taken over, and a closed source proves the last paper whole."""
    lines = [Paragraph(text, number) for number, text in enumerate([*HEAD, *NO_AFFILIATIONS[:-1]], 1)]
    lines[8] = replace(lines[8], links=("https://example.org/abs/1", "mailto:x@example.org"))
    tags = Paragraph("Kelp Forest Mapping Odd Label +2", 12, labels=("Kelp Forest Mapping", "Odd Label"))

    page = parse_paragraphs([*lines, tags], make_document(""), Vocabulary(), format_name="html", cut=False)

    expected = replace(
        PAPERS[1], links=("https://example.org/abs/1",), topics=("Kelp Forest Mapping", "Odd Label"), topics_more=2
    )
    assert page.papers == (expected,)
    assert (False, "html") == (page.incomplete, page.format)


def test_parse_paragraphs_takes_category_from_a_paragraph_of_its_own() -> None:
    """Date and category may stand apart."""
    lines = [*HEAD, "Oct 19, 2026", "quant-ph", *NO_AFFILIATIONS[1:]]
    page = parse_paragraphs([Paragraph(text, 1) for text in lines], make_document(""), LABELS)

    assert page.papers == (PAPERS[1],)


def test_parse_paragraphs_believes_a_source_that_was_cut() -> None:
    """A source known to be cut gives an incomplete page, even if its last paper looks whole."""
    lines = [Paragraph(text, 1) for text in [*HEAD, *NO_AFFILIATIONS]]
    assert parse_paragraphs(lines, make_document(""), LABELS, cut=True).incomplete


def test_parse_paragraphs_judges_a_whole_last_paper_like_the_others() -> None:
    """Where nothing can be missing, a last paper without labels is taken, with warnings."""
    lines = [Paragraph(text, 9) for text in [*HEAD, *NO_AFFILIATIONS[:-1]]]
    page = parse_paragraphs(lines, make_document(""), LABELS, cut=False)

    assert page.papers[0].authors == PAPERS[1].authors
    assert page.papers[0].topics == ()
    assert page.warnings == ("line 9: no labels found",)


def test_parse_paragraphs_takes_labels_as_proof_of_a_whole_paper() -> None:
    """Labels that stand alone are the end of a paper, whatever the source says of its own end."""
    lines = [Paragraph(text, 1) for text in [*HEAD, *NO_AFFILIATIONS[:-1]]]
    tags = Paragraph("Odd Label", 12, labels=("Odd Label",))

    page = parse_paragraphs([*lines, tags], make_document(""), LABELS)

    assert (("Odd Label",), False) == (page.papers[0].topics, page.incomplete)


def test_parse_listing_takes_no_institution_for_labels() -> None:
    """An institution named like the topic stays one."""
    page = _parse(
        _text((*NO_ABSTRACT[:3], "Kelp Forest Mapping", "Kelp Forest Mapping Soft Matter"), NO_AFFILIATIONS),
        Vocabulary(),
    )

    assert ("Kelp Forest Mapping",) == page.papers[0].affiliations
    assert "Kelp Forest Mapping Soft Matter" == page.papers[0].topics_unparsed


def test_parse_listing_counts_warnings_beyond_two_hundred() -> None:
    """A page full of faults does not fill the log."""
    page = _parse(_text(NO_AFFILIATIONS, *[("Oct 19, 2026cs.LG", "Lonely Title")] * 250, NAMELIKE_AFFILIATION))

    assert 2 == len(page.papers)
    assert (201, "50 more warnings") == (len(page.warnings), page.warnings[-1])


@pytest.mark.parametrize(
    "cut",
    [
        ("Oct 16, 2026cs.RO", "Tidal Names", "We sort", "Deep Reef", "by Kelp Forest Mapping and other means that"),
        ("Oct 16, 2026cs.RO", "Tidal Names", "We sort.", "Ana Lima", "Kelp Forest Mappings"),
        ("Oct 16, 2026cs.RO", "Tidal Names", "We sort.", "Ana Lima", "Kelp Forest Mapping Lab, Oslo"),
        ("Oct 16, 2026cs.RO", "Tidal Names", "We sort.", "Ana Lima", "Oslo · Kelp Forest Mapping"),
        ("Oct 16, 2026cs.RO", "Tidal Names", "Kelp Forest Mapping"),
    ],
    ids=["abstract", "longer word", "institution", "institutions", "nothing else"],
)
def test_parse_listing_takes_no_cut_line_for_labels(cut: Sequence[str]) -> None:
    """The topic's name in a cut abstract, institution or longer word does not make the last line a row of labels."""
    page = _parse(_text(TORN, cut), Vocabulary())

    assert [PAPERS[0].title] == [paper.title for paper in page.papers]
    assert page.incomplete


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_parse_listing_cut_in_a_character_marks_the_page(encoding: str) -> None:
    """Half a character at the end proves the cut, and is no text."""
    body = _text((*NO_AFFILIATIONS[:-1], "Kelp Forest Mapping €")).encode(encoding)[:-1]
    page = _parse(body)

    assert (TOPIC,) == page.papers[0].topics
    assert page.incomplete
    assert page.warnings == ()


@pytest.mark.parametrize(
    ("raw", "title"), [("Tides \\\\ of Salt", "Tides of Salt"), ("\\\\", "\\\\"), ("Salt \\& Tides", "Salt & Tides")]
)
def test_parse_listing_folds_titles_and_never_empties_them(raw: str, title: str) -> None:
    """What LaTeX leaves of a title is one line, and the source where it leaves nothing."""
    page = _parse(_text((NO_AFFILIATIONS[0], raw, *NO_AFFILIATIONS[2:])))

    assert (title, raw) == (page.papers[0].title, page.papers[0].title_raw)
