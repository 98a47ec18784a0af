"""How well a source is: quiet, stale, gap and broken are told apart."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.health import health, resting_reason
from digestd.model.snapshot import Gap
from digestd.model.source import Calendar, HealthState, OutcomeKind, Poll, SourceHealth

MON, TUE, WED = (datetime(2026, 9, day, 8, tzinfo=UTC) for day in (7, 8, 9))
SAT = datetime(2026, 9, 5, 8, tzinfo=UTC)


def good(at: datetime, batch: str | None = "a", papers: int | None = 5, **fields: object) -> Poll:
    """Return a poll that brought a page."""
    return Poll(at, OutcomeKind.OK, papers=papers, batch=batch, **fields)  # type: ignore[arg-type]  # any field of Poll


def bad(at: datetime, why: str = "the server answered 500") -> Poll:
    """Return a poll that failed."""
    return Poll(at, OutcomeKind.FAILED, why=why)


def test_health_never_polled_is_ok_and_says_so() -> None:
    """A source without a poll is not called broken."""
    assert SourceHealth(HealthState.OK, None, "not polled yet", MON) == health([], next_try_at=MON)


def test_health_broken_knows_since_why_and_next_try() -> None:
    """A run of failures is broken since its first one, for the latest reason, until the next try."""
    polls = [good(MON), bad(TUE), bad(WED, "no connection in time")]
    assert SourceHealth(HealthState.BROKEN, TUE, "no connection in time", WED) == health(polls, next_try_at=WED)


def test_health_error_page_with_status_200_is_broken() -> None:
    """A document that could not be read is broken, never an empty page."""
    polls = [good(MON), Poll(TUE, OutcomeKind.OK, why="an error page", unreadable=True)]
    assert HealthState.BROKEN is health(polls).state


def test_health_unknown_format_is_not_a_topic_page() -> None:
    """Something that no parser knows is told apart from a failure."""
    polls = [Poll(MON, OutcomeKind.OK, why="no parser knows it", unreadable=True, unknown_format=True)]
    assert HealthState.NOT_A_TOPIC_PAGE is health(polls).state


def test_health_empty_page_is_quiet_with_its_own_reason() -> None:
    """An empty page is quiet, for the reason that it gives, else for that of the calendar, else without one."""
    holiday = Calendar(holidays={date(2026, 9, 7): "Labor Day"})
    empty = good(MON, papers=0, batch=None)
    said = good(SAT, papers=0, quiet_reason="skip day: Saturday")
    reasons = [
        health([said]).why,
        health([good(SAT, papers=0)]).why,
        health([empty], calendar=holiday).why,
        health([empty]).why,
    ]
    assert [
        "skip day: Saturday",
        "week-end: Saturday",
        "holiday: Labor Day",
        "empty, without a reason given",
    ] == reasons
    assert HealthState.QUIET is health([empty]).state


def test_health_older_batch_after_a_newer_one_is_stale() -> None:
    """A source that goes back to a batch it served before is stale, whatever its rhythm."""
    found = health([good(MON, "a"), good(TUE, "b"), good(WED, "a")])
    assert (HealthState.STALE, "the batch of 2026-09-07 is served again") == (found.state, found.why)


def test_health_same_batch_next_working_day_is_stale_only_if_daily() -> None:
    """Yesterday's batch is stale where a new one is due each working day; a slow listing is just slow."""
    polls = [good(MON, "a"), good(TUE, "a")]
    assert HealthState.STALE is health(polls, daily=True).state
    assert HealthState.OK is health(polls).state


def test_health_not_modified_next_working_day_is_stale() -> None:
    """An answer of "nothing changed" serves the same batch again."""
    polls = [good(MON, "a"), Poll(TUE, OutcomeKind.NOT_MODIFIED)]
    found = health(polls, daily=True)
    assert (HealthState.STALE, TUE) == (found.state, found.since)


def test_health_same_batch_at_the_weekend_is_not_stale() -> None:
    """Friday's batch on Saturday and Sunday is as it should be."""
    friday = SAT - timedelta(days=1)
    assert HealthState.OK is health([good(friday, "a"), good(SAT, "a")], daily=True).state


def test_health_same_batch_before_its_hour_is_not_stale() -> None:
    """At three in the night of the source's own zone the new batch is not due yet."""
    eastern = Calendar(zone=ZoneInfo("America/New_York"))
    early = datetime(2026, 9, 8, 5, 30, tzinfo=UTC)  # 01:30 in New York
    polls = [good(MON, "a"), good(early, "a")]
    assert HealthState.OK is health(polls, daily=True, calendar=eastern).state
    assert HealthState.STALE is health([*polls, good(TUE, "a")], daily=True, calendar=eastern).state


def test_health_old_papers_under_a_new_date_are_stale_at_once() -> None:
    """A page that calls itself today's and shows yesterday's papers is stale before the hour."""
    early = datetime(2026, 9, 8, 0, 30, tzinfo=UTC)
    polls = [good(MON, "a", issued=date(2026, 9, 7)), good(early, "a", issued=date(2026, 9, 8))]
    assert HealthState.STALE is health(polls, daily=True).state


def test_health_gap_names_its_dates() -> None:
    """A gap is named by its dates, and stays while pages say "not modified"."""
    gap = Gap(date(2026, 6, 6), date(2026, 9, 1))
    polls = [good(MON, gaps=(gap,)), Poll(TUE, OutcomeKind.NOT_MODIFIED)]
    expected = SourceHealth(HealthState.GAP, MON, "nothing seen for 2026-06-06 to 2026-09-01", None, (gap,))
    assert expected == health(polls)


def test_health_quiet_after_recovery_forgets_the_failure() -> None:
    """A good poll ends a failure."""
    assert SourceHealth(HealthState.OK, WED, "", None) == health([bad(MON), bad(TUE), good(WED)])


def test_resting_reason_other_rest_days() -> None:
    """A source may rest on other days than the week-end."""
    assert "rest day: Saturday" == resting_reason(SAT, Calendar(rest_days=frozenset({4, 5})))


POLLS = st.lists(
    st.builds(
        Poll,
        at=st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 31)).map(lambda at: at.replace(tzinfo=UTC)),  # noqa: DTZ001  # hypothesis wants naive bounds
        outcome=st.sampled_from(OutcomeKind),
        papers=st.none() | st.integers(0, 3),
        batch=st.none() | st.sampled_from("ab"),
        unreadable=st.booleans(),
        unknown_format=st.booleans(),
    ),
    max_size=12,
).map(lambda polls: sorted(polls, key=lambda poll: poll.at))


@settings(max_examples=200)
@given(POLLS, st.booleans())
def test_health_follows_its_rules(polls: list[Poll], daily: bool) -> None:
    """Only what failed is broken, since is an instant of the history, and everything but ok has words."""
    found = health(polls, daily=daily)
    if polls:
        last = polls[-1]
        failed = last.unreadable or last.outcome not in {OutcomeKind.OK, OutcomeKind.NOT_MODIFIED}
        assert (failed and not last.unknown_format) == (found.state is HealthState.BROKEN)
        assert last.unknown_format == (found.state is HealthState.NOT_A_TOPIC_PAGE)
        assert found.since in {poll.at for poll in polls}
        assert (found.state is HealthState.OK) == (not found.why)
