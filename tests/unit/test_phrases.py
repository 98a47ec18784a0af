"""Shared wordings: dates, counts, people, places, labels, short titles."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.model.digest import DigestPaper, Headline, Section, Trend
from digestd.model.snapshot import Kind
from digestd.model.topic import Topic
from digestd.phrases import (
    affiliation,
    affiliations,
    count_noun,
    cut_at_word,
    date_range,
    day,
    join_words,
    label_line,
    labels,
    new_papers,
    number_word,
    people,
    section_counts,
    short_title,
    week_range,
    weekday_day,
    with_more,
)
from tests.builders import NOW, make_paper


@pytest.mark.parametrize(("number", "expected"), [(0, "no"), (1, "one"), (9, "nine"), (10, "10"), (1200, "1,200")])
def test_number_word(number: int, expected: str) -> None:
    """Numbers below ten are words."""
    assert expected == number_word(number)


@pytest.mark.parametrize(("number", "expected"), [(0, "no papers"), (1, "1 paper"), (1204, "1,204 papers")])
def test_count_noun(number: int, expected: str) -> None:
    """One paper is one paper."""
    assert expected == count_noun(number)


@pytest.mark.parametrize(
    ("words", "expected"), [((), ""), (("a",), "a"), (("a", "b"), "a and b"), (("a", "b", "c"), "a, b and c")]
)
def test_join_words(words: tuple[str, ...], expected: str) -> None:
    """Lists read as a sentence does."""
    assert expected == join_words(words)


@pytest.mark.parametrize(
    ("text", "limit", "expected"),
    [
        ("Coral reefs", 11, "Coral reefs"),
        ("Coral reefs at night", 14, "Coral reefs\u2026"),
        ("Coral reefs at night", 12, "Coral reefs\u2026"),
        ("Coral reefs at night", 11, "Coral\u2026"),
        ("Coral reefs, at night", 13, "Coral reefs\u2026"),
        ("Electroencephalography", 9, "Electroe\u2026"),
    ],
)
def test_cut_at_word(text: str, limit: int, expected: str) -> None:
    """Words stay whole where there is more than one, and no comma hangs before the ellipsis."""
    assert expected == cut_at_word(text, limit)


@given(st.text(max_size=60), st.integers(1, 50))
@settings(max_examples=200, deadline=None)
def test_cut_at_word_keeps_the_limit(text: str, limit: int) -> None:
    """Nothing is longer than asked, and what fits is untouched."""
    made = cut_at_word(text, limit)
    assert len(made) <= limit
    if len(text) <= limit:
        assert text == made


@pytest.mark.parametrize(
    ("since", "until", "with_year", "without"),
    [
        (date(2026, 9, 23), date(2026, 9, 29), "Sep 23\u201329, 2026", "Sep 23\u201329"),
        (date(2026, 6, 28), date(2026, 7, 4), "Jun 28 \u2013 Jul 4, 2026", "Jun 28 \u2013 Jul 4"),
        (date(2026, 9, 29), date(2026, 9, 29), "Sep 29, 2026", "Sep 29"),
        (date(2026, 12, 30), date(2027, 1, 5), "Dec 30, 2026 \u2013 Jan 5, 2027", "Dec 30, 2026 \u2013 Jan 5, 2027"),
    ],
)
def test_date_range(since: date, until: date, with_year: str, without: str) -> None:
    """Ranges have an en dash, spaced between months, and both years where they differ."""
    assert with_year == date_range(since, until)
    assert without == date_range(since, until, year=False)


def test_days() -> None:
    """A day has its year only beside another year."""
    assert "Sep 29" == day(date(2026, 9, 29))
    assert "Sep 29" == day(date(2026, 9, 29), beside=date(2026, 1, 1))
    assert "Sep 29, 2025" == day(date(2025, 9, 29), beside=date(2026, 1, 1))
    assert "Tue, Sep 29" == weekday_day(date(2026, 9, 29))


def test_week_range() -> None:
    """Twelve weeks from Jul 13 end with the week of Sep 28."""
    assert "Jul 13 to Sep 28" == week_range(date(2026, 7, 13), 12)
    assert "Nov 30, 2026 to Jan 4, 2027" == week_range(date(2026, 11, 30), 6)


def test_with_more() -> None:
    """The plus hangs on a no-break space."""
    assert ["Ana Lima\u00a0+13", "Ana Lima", "+2"] == [
        with_more("Ana Lima", 13),
        with_more("Ana Lima", 0),
        with_more("", 2),
    ]


@pytest.mark.parametrize(
    ("authors", "more", "group", "expected"),
    [
        (("A One", "B Two"), 0, None, "A One, B Two"),
        (("A One", "B Two", "C Three"), 13, None, "A One, B Two, C Three\u00a0+13"),
        (("A One", "B Two", "C Three", "D Four", "E Five"), 13, None, "A One, B Two, C Three\u00a0+15"),
        ((), 0, "Reef Collaboration", "Reef Collaboration"),
        (("A One",), 0, "Reef Collaboration", "A One, Reef Collaboration"),
        ((), 0, None, ""),
    ],
)
def test_people(authors: tuple[str, ...], more: int, group: str | None, expected: str) -> None:
    """Three authors, then all others in one number, the source's own included."""
    assert expected == people(make_paper(authors=authors, authors_more=more, group=group))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The University of Lagoon", "University of Lagoon"),
        ("School of Oceans, Lagoon University, Port Azure", "Lagoon University"),
        ("Gill Laboratory, Institute of Fins, Tide Academy", "Tide Academy"),
        ("Harbour Labs, Inc.", "Harbour Labs, Inc."),
        ("Deep Blue, Quay 7, Port Azure", "Deep Blue"),
        (
            "Joint International Research Alliance for Acoustic Monitoring of Reefs",
            "Joint International Research Alliance for Acoustic\u2026",
        ),
        ("", ""),
        (",,,", ",,,"),
    ],
)
def test_affiliation(text: str, expected: str) -> None:
    """The institution stays, the chain of departments goes, and what fits is not cut."""
    assert expected == affiliation(text)


def test_affiliations() -> None:
    """Mail names one, pages two; the rest is a number; one institution named twice counts once."""
    paper = make_paper(
        affiliations=("The Reef University", "Harbour Labs", "Reef University", "Tide Co"), affiliations_more=4
    )
    assert "Reef University\u00a0+6" == affiliations(paper)
    assert "Reef University, Harbour Labs\u00a0+5" == affiliations(paper, 2)
    assert "" == affiliations(make_paper())


def test_labels_leave_out_the_topic_itself() -> None:
    """The topic of the section and the other one that holds the paper are not repeated."""
    paper = make_paper(topics=("Reef Sound", "Kelp", "Eels"), categories=("cs.SD",))
    assert (("Eels",), 0) == labels(paper, ("reef sound", "Kelp"))


def test_labels_that_fit() -> None:
    """As many labels as fit 46 characters with the category, at least one, then a number."""
    paper = make_paper(
        topics=("Passive Acoustic Monitoring", "Self-Supervised Audio", "Kelp"), categories=("cs.SD",), topics_more=1
    )
    # 5 + 3 + 27 = 35 fits, and 35 + 3 + 21 = 59 does not
    assert "cs.SD \u00b7 Passive Acoustic Monitoring\u00a0+3" == label_line(paper)
    assert "cs.SD \u00b7 Passive Acoustic Monitoring \u00b7 Self-Supervised Audio \u00b7 Kelp\u00a0+1" == label_line(
        paper, limit=5, width=None
    )
    assert "" == label_line(make_paper())
    assert "cs.SD" == label_line(make_paper(categories=("cs.SD", "cs.LG")))
    assert "A very long label of a source that never knew when to stop" == label_line(
        make_paper(topics=("A very long label of a source that never knew when to stop",))
    )


@given(st.lists(st.text(min_size=1, max_size=30), max_size=8), st.integers(0, 5), st.integers(1, 5))
@settings(max_examples=100, deadline=None)
def test_no_label_is_lost(names: list[str], more: int, limit: int) -> None:
    """Labels shown and labels counted are all labels."""
    kept, rest = labels(make_paper(topics=names, topics_more=more), limit=limit, width=46)
    assert len(names) + more == len(kept) + rest


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("ReefEar: Self-Supervised Listening", "ReefEar"),
        ("Tides and Their Tables", "Tides and Their Tables"),
        ("Ratio 3:1 in Kelp", "Ratio 3:1 in Kelp"),
        ("Untitled: ", "Untitled: "),
        (
            "A Long Title Without Any Colon That Goes On and On Until It Must Be Cut",
            "A Long Title Without Any Colon That Goes On and On Until It\u2026",
        ),
    ],
)
def test_short_title(title: str, expected: str) -> None:
    """The name before the colon, else the title."""
    assert expected == short_title(title)


@pytest.mark.parametrize(
    ("number", "topics", "expected"),
    [(20, 3, "20 new papers in 3 topics"), (1, 1, "1 new paper in 1 topic"), (0, 2, "No new papers in 2 topics")],
)
def test_new_papers(number: int, topics: int, expected: str) -> None:
    """The count of a whole digest."""
    assert expected == new_papers(number, topics)


@pytest.mark.parametrize(
    ("shown", "rest", "above", "told_before", "hidden", "expected"),
    [
        (12, 5, 0, 0, 0, "17 new, 12 shown"),
        (3, 0, 2, 0, 0, "5 new, 2 of them above"),
        (0, 0, 2, 0, 0, "2 new, all of them above"),
        (3, 0, 0, 0, 0, "3 new"),
        (0, 0, 0, 1, 0, "1 new, 1 told before under another topic"),
        (2, 0, 0, 0, 7, "2 new, 7 hidden by your filters"),
        (0, 0, 0, 0, 7, "7 hidden by your filters"),
        (0, 0, 0, 0, 0, ""),
    ],
)
def test_section_counts(shown: int, rest: int, above: int, told_before: int, hidden: int, expected: str) -> None:
    """What is not shown is named: over the budget, above, told before, hidden."""
    paper = DigestPaper(1, make_paper(), Kind.NEW, NOW)
    section = Section(
        Topic("kelp", "Kelp"),
        Headline(Trend.UNKNOWN, "", ""),
        papers=(paper,) * shown,
        rest=(paper,) * rest,
        above=above,
        told_before=told_before,
        hidden=hidden,
    )
    assert expected == section_counts(section)
