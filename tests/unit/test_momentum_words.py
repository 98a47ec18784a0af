"""Noise is never called a rise or a fall, wherever momentum is put into words; and what is called one has its counts."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from digestd.headline import headline, preheader, subject
from digestd.model.digest import Digest, DigestPaper, Links, Momentum, Section, Trend
from digestd.model.feed import FeedFormat, FeedPlace, FeedSite
from digestd.model.pages import TopicSummary
from digestd.model.snapshot import Kind, StatedMomentum
from digestd.model.topic import Topic
from digestd.model.turn import Alert, TrendState, Turn
from digestd.momentum import counted_momentum, index_key, is_few, stated_momentum, trend_of, whole_percent
from digestd.render.alert_mail import render_alert
from digestd.render.feed import FORMATS, check_feed, topic_feed
from digestd.render.feed_momentum import momentum_feed
from digestd.render.web_view import index_groups
from digestd.templating import build_environment
from digestd.turns import after_look, turn_lines, turn_subject, turn_title
from tests.builders import is_noise, make_paper
from tests.schema import check_atom

NOW = datetime(2026, 9, 30, 6, tzinfo=UTC)
TODAY = date(2026, 9, 30)
SITE = FeedSite(name="Reef Papers", authority="reef.example")
TOPIC = Topic("reef-sound", "Reef Sound")
#: words that call a change a rise or a fall; "after 41" does not
MOVE = re.compile(
    r"\b(up|down|rising|rises?|rose|falls?|falling|fell|cooling|double|times the four)\b|[+\u2212]\d|\d%", re.IGNORECASE
)

COUNTS = st.integers(0, 400)
#: two counts that are near each other, so that many are noise
NEAR = st.tuples(st.integers(1, 400), st.integers(-30, 30)).map(lambda pair: (max(0, sum(pair)), pair[0]))


def counted(current: int, previous: int) -> Momentum:
    """Return counted figures of whole coverage."""
    return counted_momentum((), current, previous, complete=True)


def digest_of(momentum: Momentum, new: int) -> Digest:
    """Return a digest with new papers of one topic."""
    papers = tuple(
        DigestPaper(number, make_paper(f"Kelp Note {number}"), Kind.NEW, NOW) for number in range(1, new + 1)
    )
    section = Section(TOPIC, headline(momentum, new), momentum=momentum, papers=papers)
    quiet = Section(Topic("tides", "Tides"), headline(Momentum(), 0), momentum=Momentum())
    return Digest("Reef Papers", date(2026, 9, 23), date(2026, 9, 29), (section, quiet))


def all_words(momentum: Momentum, new: int) -> list[str]:
    """Return everything that is made of a topic's figures where it is not a turn."""
    words, listed = headline(momentum), headline(momentum, new)
    digest = digest_of(momentum, new)
    feed = topic_feed(TOPIC, [], headline=words.text, site=SITE, place=FeedPlace(), changed_at=NOW)
    groups = [group.name for group in index_groups([TopicSummary(TOPIC, momentum, words)])]
    found = [words.text, words.short, words.note, listed.text, listed.short, listed.note]
    return [*found, subject(digest), preheader(digest), feed.note, *groups]


@given(NEAR, st.integers(0, 4))
@settings(max_examples=150, deadline=None)
def test_noise_is_called_a_move_nowhere(pair: tuple[int, int], new: int) -> None:
    """Headline, short form, note, subject, preheader, feed and index group of two counts within noise name no move."""
    current, previous = pair
    assume(is_noise(current, previous) or is_few(current, previous))
    momentum = counted(current, previous)
    assert [] == [text for text in all_words(momentum, new) if MOVE.search(text)]
    assert trend_of(momentum) not in (Trend.UP, Trend.DOWN)
    assert index_key(momentum)[0] not in (0, 2)


@given(COUNTS, COUNTS, st.integers(1, 4))
@settings(max_examples=100, deadline=None)
def test_true_moves_are_named_in_their_direction(current: int, previous: int, new: int) -> None:
    """What is more than noise is called a rise or a fall, never the other one, and has its count beside it."""
    assume(not is_noise(current, previous) and not is_few(current, previous))
    momentum = counted(current, previous)
    expected = Trend.UP if current > previous else Trend.DOWN
    words = headline(momentum)
    assert expected == words.trend
    assert ("Cooling: " in words.text) is (current < previous)
    assert (f"{current:,} paper" if current else "no papers") in words.text.replace("No papers", "no papers")
    assert (["Rising"] if current > previous else ["Cooling"]) == [
        group.name for group in index_groups([TopicSummary(TOPIC, momentum, words)])
    ]
    percent = whole_percent(current, previous)
    assert percent is not None
    assert f"{'up' if percent > 0 else 'down'} {abs(percent):,}%" in subject(digest_of(momentum, new))


@given(NEAR)
@settings(max_examples=150, deadline=None)
def test_stated_noise_is_the_sources_claim_at_most(pair: tuple[int, int]) -> None:
    """What a source calls a move and its own counts do not bear is told as what it says, and nowhere else."""
    current, previous = pair
    percent = whole_percent(current, previous)
    assume(percent is not None and is_noise(current, previous))
    momentum = stated_momentum(StatedMomentum(current, change_percent=percent, previous_papers=previous))
    told = [
        text.replace("The source says", "the source says").split("the source says")[0]
        for text in all_words(momentum, 2)
    ]
    assert [] == [text for text in told if MOVE.search(text)]


@given(NEAR, st.sampled_from([None, Trend.STEADY, Trend.UP, Trend.DOWN]))
@settings(max_examples=200, deadline=None)
def test_noise_is_no_turn(pair: tuple[int, int], before: Trend | None) -> None:
    """No alert is ever made of counts within noise, whatever was announced before."""
    current, previous = pair
    assume(is_noise(current, previous) or is_few(current, previous))
    state = None if before is None else TrendState("reef-sound", before, 3)
    after = after_look("reef-sound", state, counted(current, previous))
    assert after is not None
    assert (0 if state is None else 3) == after.turns


@given(COUNTS, COUNTS, st.text(min_size=1, max_size=90).filter(lambda text: bool(text.split())))
@settings(max_examples=60, deadline=None)
def test_alerts_and_the_feed_of_turns_have_both_counts(current: int, previous: int, name: str) -> None:
    """The words of a turn name both counts and its direction; the subject keeps its length."""
    assume(not is_noise(current, previous) and not is_few(current, previous))
    turn = turn_of(counted(current, previous))
    trend = "rising" if current > previous else "cooling"
    flat = turn_subject(name, turn)
    assert len(flat) <= 50
    assert f" is {trend}: " in flat
    assert flat.endswith(f"after {previous:,}")
    before = turn_lines(turn)[0]
    assert before.endswith(f"in the last four weeks, {previous:,} in the four weeks before.")
    feed = momentum_feed([turn], {"reef-sound": TOPIC}, site=SITE, place=FeedPlace(), changed_at=NOW)
    assert f"Reef Sound is {trend}: " in feed.entries[0].title
    assert before in feed.entries[0].content_text


def turn_of(momentum: Momentum, *, number: int = 1) -> Turn:
    """Return a turn that rests on these figures."""
    return Turn("reef-sound", number, trend_of(momentum), NOW, TODAY, momentum)


def test_words_of_a_turn() -> None:
    """The words of a rise and of a fall, counted and stated."""
    rise, fall = turn_of(counted(54, 22)), turn_of(counted(20, 45))
    assert "Reef Sound is rising: 54 papers in four weeks, up\u00a0145%" == turn_title("Reef Sound", rise)
    assert "Reef Sound is cooling: 20 papers in four weeks, down\u00a056%" == turn_title("Reef Sound", fall)
    assert "Reef Sound is rising: 54 papers, after 22" == turn_subject("Reef Sound", rise)
    assert (
        "54 papers in the last four weeks, 22 in the four weeks before.",
        "The change is more than counting noise. Its 95% interval: +50% to +303%.",
        "Counted by publication date; all papers of the eight weeks are known.",
    ) == turn_lines(rise)
    stated = turn_of(stated_momentum(StatedMomentum(500, change_percent=40)))  # after 356 to 358
    assert "Reef Sound is rising: 500 papers, +40%" == turn_subject("Reef Sound", stated)
    assert (
        "The change is more than counting noise.",
        "These are the figures that the source states.",
    ) == turn_lines(stated)


def test_turns_of_figures_that_tremble_are_one() -> None:
    """Around the border of the test a rise is announced once: it is over only when it is clearly noise again."""
    state: TrendState | None = TrendState("reef-sound")
    # p: 0.07, 0.12, 0.07 (38 after 24; 37 after 25; 38 after 24), then 0.91, then 0.07
    for current, previous, turns in [(38, 23, 1), (37, 25, 1), (38, 23, 1), (30, 29, 1), (38, 23, 2), (23, 38, 3)]:
        state = after_look("reef-sound", state, counted(current, previous))
        assert state is not None
        assert turns == state.turns


def test_no_figures_change_nothing() -> None:
    """Figures that say nothing neither announce nor end anything."""
    rising = TrendState("reef-sound", Trend.UP, 2)
    young = counted_momentum((), 9, 0, complete=True, weeks=3)
    for state in (None, rising):
        assert state == after_look("reef-sound", state, Momentum())
        assert state == after_look("reef-sound", state, young)


def test_alert_in_html_escapes_the_name() -> None:
    """A topic's name is text, whatever it holds."""
    alert = Alert(
        "Reef <b>Papers</b>", Topic("x", "<script>alert(1)</script>"), turn_of(counted(54, 22)), "complete since Sep 3"
    )
    parts = render_alert(alert, Links(unsubscribe="javascript:alert(1)"), build_environment())
    assert "<script" not in parts.html
    assert "javascript:" not in parts.html + parts.text
    assert "&lt;script&gt;" in parts.html
    assert "Complete since Sep 3." in parts.text


def test_feed_of_turns_has_ids_that_stay() -> None:
    """An entry is named by topic and turn; a turn of a topic that is gone is left out; without turns the feed has a date."""
    turns = [turn_of(counted(54, 22)), turn_of(counted(20, 45), number=2), Turn("gone", 1, Trend.UP, NOW, TODAY)]
    feed = momentum_feed(
        turns,
        {"reef-sound": TOPIC},
        site=SITE,
        place=FeedPlace(),
        changed_at=NOW,
        base_url="https://digest.example.org",
    )
    assert [f"tag:reef.example,2026:topic/reef-sound/turn/{number}" for number in (1, 2)] == [
        entry.id for entry in feed.entries
    ]
    assert "https://digest.example.org/t/reef-sound" == feed.entries[0].url
    empty = momentum_feed([], {}, site=SITE, place=FeedPlace(), changed_at=NOW)
    assert ((), NOW) == (empty.entries, empty.updated)


@pytest.mark.parametrize("kind", list(FeedFormat))
def test_feed_of_turns_is_written_in_all_formats(kind: FeedFormat) -> None:
    """Each format of the feed is what its rules want, and the same bytes each time."""
    feed = momentum_feed(
        [turn_of(counted(54, 22))], {"reef-sound": TOPIC}, site=SITE, place=FeedPlace(), changed_at=NOW
    )
    writer = FORMATS[kind]
    body = writer.document(feed, writer.entry)
    check_feed(body, kind)
    if kind is FeedFormat.ATOM:
        check_atom(body)
    assert b"Reef Sound is rising: 54 papers in four weeks" in body
    assert body == writer.document(feed, writer.entry)
