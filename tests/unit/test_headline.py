"""Headlines, subjects and preheaders: words that the numbers bear."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.headline import PREHEADER_LIMIT, SUBJECT_LIMIT, headline, preheader, share_words, signed_percent, subject
from digestd.model.digest import Digest, DigestPaper, Momentum, RevisedPaper, Section, TaggedPaper, Trend
from digestd.model.paper import Revision
from digestd.model.snapshot import Kind, StatedMomentum
from digestd.model.topic import Topic
from digestd.momentum import counted_momentum, is_few, stated_momentum
from tests.builders import NOW, is_noise, make_paper

SINCE, UNTIL = date(2026, 9, 23), date(2026, 9, 29)
MOVES = ("up ", "up\u00a0", "down", "double", "times", "Cooling")


def counted(current: int, previous: int, *, weeks: int | None = None, weekly: tuple[int, ...] = ()) -> Momentum:
    """Return counted figures with complete coverage."""
    return counted_momentum(weekly, current, previous, complete=True, weeks=weeks)


def stated(count: int, percent: int | None = None, previous: int | None = None, share: float | None = None) -> Momentum:
    """Return figures as a source prints them."""
    return stated_momentum(StatedMomentum(count, percent, previous, share))


def section(name: str, momentum: Momentum, new: int = 0, titles: tuple[str, ...] = ()) -> Section:
    """Return a section with this many new papers."""
    papers = tuple(
        DigestPaper(key, make_paper(titles[key] if key < len(titles) else f"Kelp Note {key}"), Kind.NEW, NOW)
        for key in range(new)
    )
    slug = name.lower().replace(" ", "-")
    return Section(Topic(slug, name), headline(momentum, new), momentum, papers=papers)


def digest(*sections: Section, **fields: object) -> Digest:
    """Return a digest of these sections."""
    return Digest("Reef News", SINCE, UNTIL, sections, **fields)  # type: ignore[arg-type]  # any field of Digest


@pytest.mark.parametrize(
    ("momentum", "text", "short"),
    [
        (counted(54, 22), "54 papers in four weeks, up\u00a0145%", "+145%"),
        (counted(31, 60), "Cooling: 31 papers in four weeks, down\u00a048%", "\u221248%"),
        (counted(36, 41), "Steady: 36 papers in four weeks, after 41", "steady"),
        (counted(31, 43), "Steady: 31 papers in four weeks, after 43", "steady"),
        (counted(7, 2), "7 papers in four weeks, after 2", "7 after 2"),
        (counted(1, 0), "1 paper in four weeks, after none", "1 after none"),
        (counted(0, 3), "No papers in four weeks, after 3", "0 after 3"),
        (counted(0, 12), "Cooling: no papers in four weeks, down\u00a0100%", "\u2212100%"),
        (counted(60, 30), "60 papers in four weeks, double the four before", "+100%"),
        (counted(123, 60), "123 papers in four weeks, double the four before", "+105%"),
        (counted(80, 20), "80 papers in four weeks, four times the four before", "+300%"),
        (counted(79, 16), "79 papers in four weeks, over four times the four before", "+394%"),
        (counted(80, 8), "80 papers in four weeks, after 8", "+900%"),
        (counted(9, 0, weeks=3), "New topic: 9 papers in three weeks", "new topic"),
        (counted(1, 0, weeks=1), "New topic: 1 paper in one week", "new topic"),
        (counted(9, 4, weeks=6), "New topic: 13 papers in six weeks", "new topic"),
        (counted(4, 0, weeks=2, weekly=(9, 1, 3)), "New topic: 4 papers in two weeks", "new topic"),
        (Momentum(weeks=5), "New topic", "new topic"),
        (Momentum(current=3, weeks=7), "New topic: 3 papers in four weeks", "new topic"),
        (stated(1234, 20), "1,234 papers in four weeks, up\u00a020%", "+20%"),
        (stated(1000, 400), "1,000 papers in four weeks, five times the four before", "+400%"),
        (stated(100_000, 1900), "100,000 papers in four weeks, up\u00a01,900%", "+1,900%"),
        (stated(60, None, 30), "60 papers in four weeks, double the four before", "+100%"),
        (stated(12), "12 papers in four weeks", "12"),
        (Momentum(), "5 new papers", ""),
    ],
)
def test_headline_words(momentum: Momentum, text: str, short: str) -> None:
    """Each case of the visual standard has its words, with true minus signs and no-break spaces."""
    made = headline(momentum, 5)
    assert (text, short) == (made.text, made.short)


def test_headline_without_any_figures() -> None:
    """Without momentum nothing is claimed; one paper is one paper."""
    assert "1 new paper" == headline(Momentum(), 1).text
    assert "No figures for this topic" == headline(Momentum()).text


@pytest.mark.parametrize(
    ("momentum", "last", "note"),
    [
        (counted(3, 2), date(2026, 9, 14), "3 papers in four weeks, after 2. The last one came on Sep 14."),
        (counted(0, 2), date(2025, 12, 14), "No papers in four weeks, after 2. The last one came on Dec 14, 2025."),
        (stated(1000, 20), None, "1,000 papers in four weeks."),
        (Momentum(), None, ""),
    ],
)
def test_quiet_headline(momentum: Momentum, last: date | None, note: str) -> None:
    """A quiet topic says so, and when its last paper came."""
    made = headline(momentum, 0, last, beside=UNTIL)
    assert (Trend.QUIET, "No new papers, quiet", "quiet", note) == (made.trend, made.text, made.short, made.note)


@pytest.mark.parametrize(
    ("momentum", "text", "note"),
    [
        (
            stated(7, None, 0, 0.1),
            "7 papers in four weeks, after none",
            "0.1% of all new papers · the source says up from none",
        ),
        (
            stated(41, -12, None, 0.4),
            "Steady: 41 papers in four weeks, after 47",
            "0.4% of all new papers · the source says down 12%",
        ),
        (
            stated(18, 0, None, 0.2),
            "Steady: 18 papers in four weeks, after 18",
            "0.2% of all new papers · the source says unchanged",
        ),
        (stated(1000, 1), "Steady: 1,000 papers in four weeks", "The source says up 1%"),
        (stated(9, 13), "9 papers in four weeks, after 8", ""),
        (stated(100, 1150), "100 papers in four weeks, after 8", ""),
        (stated(41, 1000), "41 papers in four weeks", "The source says up 1,000%"),
        (stated(5, 1000), "5 papers in four weeks", ""),
        (stated(54, 145, None, 0.5), "54 papers in four weeks, up\u00a0145%", "0.5% of all new papers"),
    ],
)
def test_the_sources_claim_stays_its_claim(momentum: Momentum, text: str, note: str) -> None:
    """Where we don't call it a move, the line below tells what the source states, but no percent of few papers."""
    made = headline(momentum)
    assert (text, note) == (made.text, made.note)


@pytest.mark.parametrize(
    ("momentum", "expected"),
    [
        (Momentum(share_percent=0.5), "0.5% of all new papers"),
        (Momentum(share_percent=1.0), "1% of all new papers"),
        (Momentum(share_percent=0.03), "<0.1% of all new papers"),
        (Momentum(share_percent=0.1, share_below=True), "<0.1% of all new papers"),
        (Momentum(share_percent=0.0), "0% of all new papers"),
        (Momentum(), ""),
    ],
)
def test_share_words(momentum: Momentum, expected: str) -> None:
    """The share is printed as stated, small ones as under 0.1 %."""
    assert expected == share_words(momentum)


@pytest.mark.parametrize(("percent", "expected"), [(145, "+145%"), (-28, "\u221228%"), (0, "0%"), (1200, "+1,200%")])
def test_signed_percent(percent: int, expected: str) -> None:
    """A fall has a true minus sign."""
    assert expected == signed_percent(percent)


@given(st.integers(0, 2000), st.integers(0, 2000), st.integers(0, 9))
@settings(max_examples=300, deadline=None)
def test_counting_noise_is_never_worded_as_a_move(current: int, previous: int, new: int) -> None:
    """No pair of counts that the exact test calls noise, or that is too small, is worded as a rise or a fall."""
    made = headline(counted(current, previous), new)
    if is_noise(current, previous) or is_few(current, previous):
        assert not [word for word in MOVES if word in made.text + made.note]
        assert "%" not in made.short


@given(
    st.integers(0, 3000),
    st.none() | st.integers(-100, 3000),
    st.none() | st.integers(0, 3000),
    st.none() | st.integers(0, 9),
)
@settings(max_examples=300, deadline=None)
def test_stated_figures_never_print_nonsense(
    count: int, percent: int | None, previous: int | None, new: int | None
) -> None:
    """Whatever a source states, no word of it is a broken number, and its own percent is the only one printed."""
    made = headline(stated(count, percent, previous), new, date(2026, 9, 1))
    words = f"{made.text} {made.short} {made.note}"
    assert not [word for word in ("None", "nan", "inf", "--", "\u2212-") if word in words]
    if percent is not None:
        printed = [word for word in words.replace("\u00a0", " ").replace("\u2212", "").split() if word.endswith("%")]
        assert {f"{abs(percent):,}%"} >= {word.lstrip("+") for word in printed}


def test_subject_names_the_surest_move() -> None:
    """The surest move stands in front, not the largest percent, then the count."""
    made = digest(
        section("Kelp", counted(24, 10), 3),
        section("Coral Sound", counted(540, 400), 4),
        section("Eels", counted(1, 1)),
    )
    assert "Coral Sound up 35%, 7 new papers" == subject(made)


def test_subject_drops_the_count_then_cuts_the_name() -> None:
    """50 characters: the count goes first, then the name is cut at a word."""
    long = section("Passive Acoustic Monitoring of Tropical Reefs", counted(54, 22), 2)
    assert "Passive Acoustic Monitoring of Tropical\u2026 up 145%" == subject(digest(long))
    middle = section("Passive Acoustic Monitoring Network", counted(54, 22), 2)
    assert "Passive Acoustic Monitoring Network up 145%" == subject(digest(middle))


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (
            digest(section("Kelp", counted(12, 11), 3), section("Eels", counted(3, 2), 1), section("Cod", Momentum())),
            "4 new papers in 3 topics, Sep 23\u201329",
        ),
        (digest(section("Kelp", counted(12, 11), 1)), "1 new paper in Kelp, Sep 23\u201329"),
        (digest(section("Kelp", counted(12, 11))), "No new papers in Kelp, Sep 23\u201329"),
        (
            digest(section("Kelp", counted(12, 11)), section("Eels", counted(3, 2))),
            "No new papers in 2 topics, Sep 23\u201329",
        ),
        (digest(section("Kelp", Momentum(), 3), welcome=True), "Welcome: 3 papers in 1 topic"),
        (digest(section("Kelp", stated(60, None, 30), 2)), "Kelp up 100%, 2 new papers"),
        (digest(section("Kelp", counted(22, 54), 2)), "Kelp down 59%, 2 new papers"),
    ],
)
def test_subject_cases(made: Digest, expected: str) -> None:
    """Where nothing moved the count and the days stand; a welcome is called one."""
    assert expected == subject(made)


def test_subject_without_new_papers() -> None:
    """Older, withdrawn or revised papers alone are what the subject tells."""
    told = DigestPaper(1, make_paper(), Kind.NEWLY_TAGGED, NOW)
    quiet = section("Kelp", counted(12, 11))
    changed = RevisedPaper(told, Revision(1, (("title", "A", "B"),)), "New title")
    days = ", Sep 23\u201329"
    assert f"1 older paper newly tagged{days}" == subject(digest(quiet, tagged=(TaggedPaper(quiet.topic, told),)))
    assert f"1 paper withdrawn{days}" == subject(digest(quiet, withdrawn=(changed,)))
    assert f"1 paper revised{days}" == subject(digest(quiet, revised=(changed,)))


NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")), min_size=1, max_size=90)


@given(
    topics=st.lists(
        st.tuples(NAMES, st.integers(0, 99999), st.integers(0, 99999), st.integers(0, 3), NAMES), max_size=4
    ),
    welcome=st.booleans(),
)
@settings(max_examples=150, deadline=None)
def test_subject_and_preheader_keep_their_lengths(
    topics: list[tuple[str, int, int, int, str]], *, welcome: bool
) -> None:
    """Subjects have at most 50 characters, preheaders 100, in one line, whatever topics and papers are called."""
    made = digest(
        *(section(name, counted(now, before), new, (title,) * new) for name, now, before, new, title in topics),
        welcome=welcome,
    )
    assert 0 < len(subject(made)) <= SUBJECT_LIMIT
    assert len(preheader(made)) <= PREHEADER_LIMIT
    assert "\n" not in subject(made) + preheader(made)


def test_preheader() -> None:
    """The first three short names, how many more, then the topics that the subject did not name."""
    made = digest(
        section("Coral Sound", counted(54, 22), 4, ("ReefEar: Listening", "Tide Tables", "Otolith: Rings", "Four")),
        section("Kelp", counted(22, 54), 1),
        section("Eels", counted(3, 2)),
        section("Cod", counted(30, 31), 1),
        section("Crab", counted(3, 2), 1),
    )
    assert "ReefEar, Tide Tables, Otolith and 4 more. Kelp down 59%, Eels quiet, Cod steady." == preheader(made)


def test_preheader_of_few_papers() -> None:
    """Two papers are named without a rest; an empty digest still tells of its topics."""
    assert "Tide Tables and Otolith." == preheader(
        digest(section("Crab", counted(3, 2), 2, ("Tide Tables", "Otolith: Rings")))
    )
    assert "Eels quiet." == preheader(digest(section("Eels", counted(3, 2))))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("A" * 42, f"{'A' * 42} up 145%"),
        ("A" * 43, f"{'A' * 41}\u2026 up 145%"),
    ],
)
def test_subject_at_its_very_limit(name: str, expected: str) -> None:
    """A name of one word that leaves exactly 50 characters stays, a longer one is broken at exactly 50."""
    assert expected == subject(digest(section(name, counted(54, 22), 2)))
    assert 50 == len(expected)


def test_preheader_stops_before_its_limit() -> None:
    """Topics that don't fit are left out whole."""
    long = "Passive Acoustic Monitoring of Reefs and Lagoons at Night"
    made = digest(
        section("Crab", counted(3, 2), 1, ("Tide Tables",)),
        section("Eels", counted(3, 2)),
        section(long, counted(9, 2)),
    )
    assert "Tide Tables. Eels quiet." == preheader(digest(*made.sections[:2]))
    assert f"Tide Tables. Eels quiet, {long} quiet." == preheader(made)
    more = digest(*made.sections, section(long, counted(9, 2)))
    assert f"Tide Tables. Eels quiet, {long} quiet." == preheader(more)
