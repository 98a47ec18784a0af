"""Forms: filled in and read back they say the same; what cannot be used is named; keys to count by fold spellings."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, time, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.addresses import parse_reader
from digestd.errors import ConfigError
from digestd.forms import EVERY, MOST_PAUSE, fields_of, less_often, limit_key, read_change, read_every, typed_fields
from digestd.model.forms import PreferenceFields
from digestd.model.subscription import (
    Cron,
    Daily,
    EachSnapshot,
    Filter,
    FilterRule,
    Monthly,
    Preferences,
    Schedule,
    Weekly,
)
from tests.builders import make_subscription

TODAY = date(2026, 9, 30)
TOPICS = ("reef-sound", "kelp-forests", "tide-gauges")

_TIMES = st.builds(time, st.integers(0, 23), st.integers(0, 59))
_SCHEDULES: st.SearchStrategy[Schedule] = st.one_of(
    st.builds(Daily, _TIMES),
    st.builds(Weekly, st.sets(st.integers(0, 6), min_size=1).map(lambda days: tuple(sorted(days))), _TIMES),
    st.builds(Monthly, st.integers(1, 31), _TIMES),
    st.just(Cron("30 7 * * 1")),
    st.just(EachSnapshot()),
)
_RULES = st.builds(
    FilterRule,
    st.sampled_from(["words", "author", "institution", "label"]),
    st.text("abc dé:-", min_size=1, max_size=20)
    .map(lambda text: " ".join(text.split()))
    .filter(lambda text: text.strip('" ')),
)
_FILTERS = st.builds(Filter, *[st.lists(_RULES, max_size=3, unique=True).map(tuple)] * 2)
_PREFERENCES = st.builds(
    Preferences,
    format=st.sampled_from(["html", "text"]),
    budget=st.none() | st.integers(1, 200),
    all_quiet=st.booleans(),
    alert=st.booleans(),
    filter=_FILTERS,
)
_PAUSES = st.none() | st.dates(TODAY + timedelta(days=1), TODAY + MOST_PAUSE)


def pairs_of(fields: PreferenceFields) -> list[tuple[str, str]]:
    """Return what a browser sends of a form."""
    pairs = [("topic", slug) for slug in fields.topics]
    names = ("every", "day", "month_day", "at", "zone", "include", "exclude", "format", "budget", "pause")
    pairs += [(name, getattr(fields, name).replace("\n", "\r\n")) for name in names]
    return pairs + [(name, "yes") for name in ("all_quiet", "alert") if getattr(fields, name)]


@given(_SCHEDULES, _PREFERENCES, _PAUSES, st.permutations(TOPICS))
@settings(max_examples=300, deadline=None)
def test_form_sent_as_it_was_filled_in_changes_nothing(
    schedule: Schedule, preferences: Preferences, until: date | None, topics: list[str]
) -> None:
    """Whatever a subscription is, pressing Save without touching the form leaves it as it is."""
    current = make_subscription(
        topics=tuple(topics[:2]),
        schedule=schedule,
        zone="Europe/Berlin",
        preferences=preferences,
        paused_until=until,
    )
    change, problems = read_change(typed_fields(pairs_of(fields_of(current, TODAY))), current, TOPICS, today=TODAY)
    assert () == problems
    assert change is not None
    assert (current.topics, schedule, "Europe/Berlin", until) == (
        change.topics,
        change.schedule,
        change.zone,
        change.paused_until,
    )
    assert preferences == change.preferences


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["topic", "every", "day", "at", "zone", "budget", "pause", "include", "x"]),
            st.text(max_size=40),
        ),
        max_size=12,
    )
)
@settings(max_examples=400, deadline=None)
def test_form_of_anything_is_read_or_refused_in_words(pairs: list[tuple[str, str]]) -> None:
    """No form raises; one that cannot be used has a line that says what was found and what was expected."""
    change, problems = read_change(typed_fields(pairs), make_subscription(), TOPICS, today=TODAY)
    assert (change is None) == bool(problems)
    for line in problems:
        assert "expected" in line
        assert line.isprintable()


@pytest.mark.parametrize(
    ("field", "typed", "said"),
    [
        ("every", "hourly", "how often: expected daily, weekly or monthly, found 'hourly'"),
        ("day", "someday", "day: expected one of mon, tue, wed, thu, fri, sat, sun, found 'someday'"),
        ("at", "25:00", "time: expected one like '07:30', found '25:00'"),
        ("zone", "Mars/Base", "zone: expected a name like 'Europe/Berlin', found 'Mars/Base'"),
        ("zone", "../../etc/passwd", "zone: expected a name like 'Europe/Berlin', found '../../etc/passwd'"),
        ("budget", "0", "papers in a digest: expected a number from 1 to 200, found '0'"),
        ("budget", "²", "papers in a digest: expected a number from 1 to 200, found '²'"),
        ("format", "pdf", "form: expected one of html, text, found 'pdf'"),
        ("pause", "soon", "pause until: expected a day like '2026-12-24', found 'soon'"),
        (
            "pause",
            "2026-09-30",
            "pause until: expected a day after Sep 30, 2026 and within three years, found '2026-09-30'",
        ),
        (
            "pause",
            "9999-12-31",
            "pause until: expected a day after Sep 30, 2026 and within three years, found '9999-12-31'",
        ),
    ],
)
def test_field_that_cannot_be_used_is_named(field: str, typed: str, said: str) -> None:
    """A line names the field, what was found and what was expected."""
    fields = replace(fields_of(make_subscription(), TODAY), **{field: typed})  # type: ignore[arg-type]  # a field of text
    assert (None, (said,)) == read_change(fields, make_subscription(), TOPICS, today=TODAY)


def test_filter_has_a_limit_of_rules() -> None:
    """A filter is written by a person; a flood of rules is refused, not stored."""
    fields = replace(fields_of(make_subscription(), TODAY), exclude="\n".join(f"word{number}" for number in range(101)))
    _, problems = read_change(fields, make_subscription(), TOPICS, today=TODAY)
    assert ("filter: expected at most 100 rules to exclude, found 101",) == problems


def test_all_faults_are_named_at_once() -> None:
    """A reader mends a form once, not field by field."""
    fields = replace(fields_of(make_subscription(), TODAY), topics=(), zone="x", budget="many", include="colour:red")
    change, problems = read_change(fields, make_subscription(), TOPICS, today=TODAY)
    assert change is None
    assert ["topics", "zone", "filter rule", "papers in a digest"] == [line.partition(":")[0] for line in problems]


def test_topics_keep_the_readers_order() -> None:
    """What was followed stays where it was; what is new comes behind it."""
    current = make_subscription(topics=("tide-gauges", "kelp-forests"))
    fields = replace(fields_of(current, TODAY), topics=("reef-sound", "kelp-forests", "tide-gauges"))
    change, _ = read_change(fields, current, TOPICS, today=TODAY)
    assert change is not None
    assert ("tide-gauges", "kelp-forests", "reef-sound") == change.topics


def test_topic_that_is_not_listed_is_refused() -> None:
    """A form can't make a topic."""
    fields = replace(fields_of(make_subscription(), TODAY), topics=("reef-sound", "moon"))
    _, problems = read_change(fields, make_subscription(), TOPICS, today=TODAY)
    assert ("topics: expected some of those listed here, found 'moon'",) == problems


def test_pause_that_is_over_is_not_filled_in() -> None:
    """A pause of the past does not come back as a fault of the reader's."""
    assert "" == fields_of(make_subscription(paused_until=TODAY), TODAY).pause


@pytest.mark.parametrize("typed", ["", "hourly", "Weekly", "cron * * * * *"])
def test_form_to_follow_has_three_choices(typed: str) -> None:
    """Nothing but the three choices is a schedule."""
    with pytest.raises(ConfigError, match="how often: expected one of weekly, daily, monthly"):
        read_every(typed)
    assert {"weekly", "daily", "monthly"} == set(EVERY)


@pytest.mark.parametrize(
    ("schedule", "rarer"),
    [
        (EachSnapshot(), "weekly"),
        (Daily(), "weekly"),
        (Weekly((0, 3)), "weekly"),
        (Weekly((2,)), "monthly"),
        (Monthly(), ""),
        (Cron("0 7 * * *"), "weekly"),
    ],
)
def test_less_often_is_one_step_rarer(schedule: Schedule, rarer: str) -> None:
    """Less mail is offered as long as the form has a rarer choice."""
    assert rarer == less_often(schedule)


@pytest.mark.parametrize(
    "spelling",
    [
        "ana.lima@mail.example.org",
        "AnaLima@mail.example.org",
        "a.n.a.lima+x1@Mail.Example.org",
        "analima+@mail.example.org",
    ],
)
def test_spellings_of_one_mailbox_have_one_key(spelling: str) -> None:
    """Dots, tags and case do not make another victim."""
    assert "analima@mail.example.org" == limit_key(parse_reader(spelling))


def test_other_mailboxes_have_other_keys() -> None:
    """Other names and other domains are counted apart."""
    spellings = ["ana@a.example.org", "ana@b.example.org", "bo@a.example.org", "+ana@a.example.org"]
    assert 4 == len({limit_key(parse_reader(text)) for text in spellings})
