"""When a source is asked again, and what is kept of its answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.model.source import FailKind, FetchOutcome, FetchState, OutcomeKind, SourceSpec
from digestd.polling import (
    MAX_REDIRECTS,
    MAX_WAIT_S,
    Hop,
    Reply,
    backoff_s,
    current_state,
    fresh_for_s,
    is_due,
    is_redirect,
    page_urls,
    permanent_target,
    redirect_problem,
    reject_document,
    remember_move,
    respect_ttl,
    retry_after_s,
    settle,
)

NOW = datetime(2026, 9, 30, 6, 0, tzinfo=UTC)
URL = "https://papers.example/reef.xml"
NEW_HOME = "https://reef.example/feed.xml"
SPEC = SourceSpec("reef", URL, interval_s=3600, min_interval_s=1800)
FRESH = FetchState(location=URL)
DRAWS = st.floats(0, 1, exclude_max=True)


def reply(status: int | None = 200, **fields: object) -> Reply:
    """Return a reply of the source's own URL."""
    return Reply(URL, status, **fields)  # type: ignore[arg-type]  # any field of Reply


def settled(answer: Reply, state: FetchState = FRESH, *, draw: float = 0.0, spec: SourceSpec = SPEC) -> FetchOutcome:
    """Return the outcome of a reply at NOW."""
    return settle(spec, state, answer, now=NOW, draw=draw)


def wait_s(outcome: FetchOutcome) -> float:
    """Return the seconds until the next try."""
    assert outcome.state.next_try_at is not None
    return (outcome.state.next_try_at - NOW).total_seconds()


@settings(max_examples=200)
@given(st.integers(-3, 10**6), DRAWS, st.floats(0, 10**6), st.floats(1, 10**6))
def test_backoff_stays_between_floor_and_cap(failures: int, draw: float, floor_s: float, cap_s: float) -> None:
    """No count of failures waits less than the floor or more than the cap."""
    assert min(floor_s, cap_s) <= backoff_s(failures, draw, floor_s=floor_s, cap_s=cap_s) <= cap_s


@settings(max_examples=100)
@given(st.integers(1, 80), DRAWS)
def test_backoff_grows_with_failures(failures: int, draw: float) -> None:
    """One more failure never waits less, for the same draw."""
    assert backoff_s(failures, draw, floor_s=60) <= backoff_s(failures + 1, draw, floor_s=60)


def test_backoff_doubles_and_is_spread() -> None:
    """The waits double from the floor, and draws spread them by a fifth."""
    assert [1800, 3600, 7200] == [backoff_s(n, 0.0, floor_s=1800) for n in (1, 2, 3)]
    assert 1980 == pytest.approx(backoff_s(1, 0.5, floor_s=1800))


@settings(max_examples=100)
@given(st.integers(0, 10**17))
def test_retry_after_seconds_are_capped(seconds: int) -> None:
    """Seconds are taken as they are, at most a day."""
    assert min(seconds, MAX_WAIT_S) == retry_after_s(str(seconds), NOW)


@settings(max_examples=100)
@given(st.integers(-(10**7), 10**7))
def test_retry_after_date_is_measured_from_the_servers_clock(seconds: int) -> None:
    """A date is the same wait whatever the server's clock says, at most a day and never negative."""
    wrong_clock = datetime(2031, 1, 1, tzinfo=UTC)
    dated = format_datetime(wrong_clock + timedelta(seconds=seconds), usegmt=True)
    found = retry_after_s(dated, NOW, server_date=format_datetime(wrong_clock, usegmt=True))
    assert min(max(seconds, 0), MAX_WAIT_S) == found


@pytest.mark.parametrize(
    "text",
    ["Wed, 30 Sep 2026 06:02:00 GMT", "Wednesday, 30-Sep-26 06:02:00 GMT", "Wed Sep 30 06:02:00 2026"],
)
def test_retry_after_reads_all_three_date_forms(text: str) -> None:
    """The three date forms of HTTP are two minutes from now."""
    assert 120 == retry_after_s(text, NOW)


@settings(max_examples=200)
@given(st.text(max_size=40) | st.none())
def test_retry_after_survives_anything(text: str | None) -> None:
    """Any header is a wait within a day or none."""
    found = retry_after_s(text, NOW, server_date=text)
    assert found is None or 0 <= found <= MAX_WAIT_S


@pytest.mark.parametrize(
    "text", ["", " ", "soon", "-5", "1.5", "٣", "Wed, 99 Foo 2026 06:00:00 GMT", "Fri, 31 Dec 9999 23:59:59 -2300"]
)
def test_retry_after_unusable_is_none(text: str) -> None:
    """What is neither seconds nor a date is no header."""
    assert None is retry_after_s(text, NOW)


@pytest.mark.parametrize(
    ("control", "age", "expected"),
    [
        ("max-age=600", "", 600),
        ("public, Max-Age=600 , must-revalidate", "", 600),
        ('max-age="600"', "", 600),
        ("max-age=600", "200", 400),
        ("max-age=600", "900", 0),
        ("max-age=31536000", "", MAX_WAIT_S),
        ("max-age=600, no-cache", "", 0),
        ("no-store, max-age=600", "", 0),
        ("s-maxage=600", "", 0),
        ("max-age=-1", "", 0),
        ("max-age=never", "", 0),
        ("", "", 0),
    ],
)
def test_fresh_for_reads_max_age(control: str, age: str, expected: float) -> None:
    """Freshness is max-age less age, at most a day, and nothing where the answer must not be kept."""
    assert expected == fresh_for_s({"cache-control": control, "age": age})


@settings(max_examples=100)
@given(st.text(max_size=60), st.text(max_size=20))
def test_fresh_for_survives_anything(control: str, age: str) -> None:
    """Any header is a time within a day."""
    assert 0 <= fresh_for_s({"cache-control": control, "age": age}) <= MAX_WAIT_S


def test_settle_good_answer_takes_both_validators() -> None:
    """A 200 replaces both validators, also when it has only one of them."""
    before = replace(FRESH, validated_url=URL, etag='"old"', last_modified="yesterday", fail_count=3, failing_since=NOW)
    found = settled(reply(headers={"ETag": '"new"'}), before).state
    assert (URL, '"new"', None) == (found.validated_url, found.etag, found.last_modified)
    assert (0, None, NOW) == (found.fail_count, found.failing_since, found.last_ok_at)


def test_settle_monstrous_validator_is_not_kept() -> None:
    """A validator that could not be sent back is none."""
    found = settled(reply(headers={"ETag": "x" * 1001, "Last-Modified": "a\x00b"})).state
    assert (None, None) == (found.etag, found.last_modified)


def test_settle_not_modified_keeps_validators() -> None:
    """A 304 is a good answer that changes no validator."""
    before = replace(FRESH, validated_url=URL, etag='"old"', fail_count=2, failing_since=NOW)
    found = settled(reply(304, asked_conditionally=True), before)
    assert (OutcomeKind.NOT_MODIFIED, '"old"', 0) == (found.kind, found.state.etag, found.state.fail_count)


def test_settle_unasked_not_modified_is_a_failure() -> None:
    """A 304 to a request without a condition brings nothing and is no good answer."""
    assert (OutcomeKind.FAILED, FailKind.PROTOCOL) == ((found := settled(reply(304))).kind, found.fail)


def test_settle_failure_keeps_what_is_known() -> None:
    """A failure changes neither validators nor the stored URL, counts, and remembers since when."""
    before = replace(FRESH, url=NEW_HOME, validated_url=NEW_HOME, etag='"a"', moved_to="x", moved_count=2)
    earlier = NOW - timedelta(hours=1)
    first = settled(reply(500), before)
    again = settled(reply(None, fail=FailKind.TIMEOUT, why="too slow"), replace(first.state, failing_since=earlier))
    assert replace(before, fail_count=1) == replace(
        first.state, failing_since=None, last_try_at=None, last_error=None, next_try_at=None
    )
    assert (2, earlier, "too slow") == (again.state.fail_count, again.state.failing_since, again.state.last_error)


def test_settle_new_home_that_fails_is_given_up() -> None:
    """After five failures in a row the source is asked where the operator said."""
    state = replace(FRESH, url=NEW_HOME)
    urls = []
    for _ in range(5):
        state = settled(reply(500), state).state
        urls.append(state.url)
    assert [NEW_HOME] * 4 + [None] == urls


@pytest.mark.parametrize(
    ("answer", "kind", "fail"),
    [
        (reply(200, empty=True), OutcomeKind.FAILED, FailKind.EMPTY),
        (reply(204), OutcomeKind.FAILED, FailKind.STATUS),
        (reply(300), OutcomeKind.FAILED, FailKind.STATUS),
        (reply(401), OutcomeKind.FAILED, FailKind.STATUS),
        (reply(404), OutcomeKind.FAILED, FailKind.STATUS),
        (reply(410), OutcomeKind.GONE, FailKind.GONE),
        (reply(429), OutcomeKind.FAILED, FailKind.BUSY),
        (reply(500), OutcomeKind.FAILED, FailKind.SERVER),
        (reply(503), OutcomeKind.FAILED, FailKind.BUSY),
        (reply(599), OutcomeKind.FAILED, FailKind.SERVER),
        (reply(None, fail=FailKind.ADDRESS, why="refused"), OutcomeKind.REFUSED, FailKind.ADDRESS),
        (reply(None), OutcomeKind.FAILED, FailKind.CONNECT),
    ],
)
def test_settle_every_other_answer_is_a_failure_of_its_kind(answer: Reply, kind: OutcomeKind, fail: FailKind) -> None:
    """Each answer that brings no document has its kind and, but for silence, words."""
    found = settled(answer)
    assert (kind, fail) == (found.kind, found.fail)
    assert found.document is None
    assert found.why or answer.status is None


def test_settle_gone_is_never_due_again() -> None:
    """410 ends the polling until the configured location changes."""
    state = settled(reply(410)).state
    assert not is_due(state, NOW + timedelta(days=999))
    assert is_due(current_state(replace(SPEC, location=NEW_HOME), state), NOW)


def test_settle_busy_honours_retry_after_but_not_below_the_floor() -> None:
    """Retry-After is a lower bound, as is our own politeness."""
    asked = {"Retry-After": "7200"}
    assert [7200, 7200, 1800, MAX_WAIT_S] == [
        wait_s(settled(reply(429, headers=asked))),
        wait_s(settled(reply(503, headers={"Retry-After": "Wed, 30 Sep 2026 08:00:00 GMT"}))),
        wait_s(settled(reply(429, headers={"Retry-After": "1"}))),
        wait_s(settled(reply(429, headers={"Retry-After": "99999999"}))),
    ]


def test_settle_max_age_is_a_lower_bound() -> None:
    """An answer that is fresh for longer than the interval is not asked for before; a shorter one changes nothing."""
    assert [7200, 3600] == [
        wait_s(settled(reply(headers={"Cache-Control": f"max-age={seconds}"}))) for seconds in (7200, 60)
    ]


@settings(max_examples=150)
@given(
    status=st.integers(100, 599),
    draw=DRAWS,
    fails=st.integers(0, 10_000),
    header=st.sampled_from(["", "0", "5", "100000", "Thu, 01 Jan 1970 00:00:00 GMT", "nonsense"]),
    conditional=st.booleans(),
)
def test_settle_next_try_is_polite_and_within_a_day(
    status: int, draw: float, fails: int, header: str, conditional: bool
) -> None:
    """Whatever is answered, the next try is not before the floor and not after a day."""
    answer = reply(status, headers={"Retry-After": header, "Cache-Control": f"max-age={header}"})
    found = settled(replace(answer, asked_conditionally=conditional), replace(FRESH, fail_count=fails), draw=draw)
    if found.kind is not OutcomeKind.GONE:
        assert SPEC.min_interval_s <= wait_s(found) <= MAX_WAIT_S
        assert not is_due(found.state, NOW + timedelta(seconds=SPEC.min_interval_s - 1))
        assert is_due(found.state, NOW + timedelta(seconds=MAX_WAIT_S))


def test_remember_move_rewrites_after_three_equal_answers() -> None:
    """A permanent redirect moves the stored URL only when it was answered three times in a row."""
    hops = (Hop(301, NEW_HOME),)
    state = FRESH
    told = []
    for _ in range(3):
        found = settled(reply(hops=hops), state)
        state = found.state
        told.append((found.moved_to, state.url))
    assert [(None, None), (None, None), (NEW_HOME, NEW_HOME)] == told


def test_remember_move_another_target_counts_anew() -> None:
    """Two answers for one home and one for another move nothing; nor does an answer without a redirect in between."""
    state = FRESH
    for hops in [
        (Hop(301, NEW_HOME),),
        (Hop(301, NEW_HOME),),
        (Hop(308, "https://b.example/"),),
        (),
        (Hop(301, NEW_HOME),),
    ]:
        state, rewritten = remember_move(state, hops)
        assert rewritten is None
    assert (NEW_HOME, 1) == (state.moved_to, state.moved_count)


def test_remember_move_failures_in_between_do_not_count() -> None:
    """A failure behind a redirect neither counts for it nor against it."""
    hops = (Hop(301, NEW_HOME),)
    state = settled(reply(hops=hops)).state
    state = settled(reply(500, hops=hops), state).state
    assert 1 == state.moved_count


HOPS = st.lists(st.builds(Hop, st.sampled_from([301, 302, 303, 307, 308]), st.sampled_from("abc")), max_size=5)


@settings(max_examples=100)
@given(HOPS)
def test_permanent_target_ends_at_the_first_temporary_hop(hops: list[Hop]) -> None:
    """What lies behind a temporary redirect says nothing about where the source lives."""
    run: list[Hop] = []
    for hop in hops:
        if hop.status not in {301, 308}:
            break
        run.append(hop)
    assert (run[-1].target if run else None) == permanent_target(hops)


@pytest.mark.parametrize(
    ("seen", "schemes", "expected"),
    [
        (["a"], ("http", "https"), None),
        (["a"], ("https", "https"), None),
        (["a"], ("http", "http"), None),
        (["a"], ("https", "http"), FailKind.ADDRESS),
        (["a"], ("http", "file"), FailKind.ADDRESS),
        (["a"], ("https", "gopher"), FailKind.ADDRESS),
        (["a", "t"], ("http", "http"), FailKind.REDIRECT_LOOP),
        (["a", "b", "c"], ("http", "http"), None),
        (["a", "b", "c", "d"], ("http", "http"), FailKind.REDIRECTS),
    ],
)
def test_redirect_problem_table(seen: Sequence[str], schemes: tuple[str, str], expected: FailKind | None) -> None:
    """Three redirects are followed, upwards to https and never down, in no circle, and to the web only."""
    assert MAX_REDIRECTS == 3
    assert expected is redirect_problem(seen, "t", from_scheme=schemes[0], to_scheme=schemes[1])


def test_is_redirect_only_with_a_target() -> None:
    """Only five statuses send us elsewhere."""
    assert [301, 302, 303, 307, 308] == [status for status in range(100, 600) if is_redirect(status)]


def test_reject_document_forgets_the_answer() -> None:
    """A page that nobody could read is a failure: its validators and its redirect are not kept."""
    before = replace(FRESH, validated_url=URL, etag='"old"', moved_to=NEW_HOME, moved_count=2)
    outcome = settled(reply(headers={"ETag": '"error page"'}, hops=(Hop(301, NEW_HOME),)), before)
    found = reject_document(SPEC, before, outcome, "an error page", now=NOW, draw=0.0)
    assert NEW_HOME == outcome.moved_to
    assert ('"old"', None, 1, "an error page") == (found.etag, found.url, found.fail_count, found.last_error)
    assert NOW + timedelta(seconds=1800) == found.next_try_at


def test_respect_ttl_moves_only_later() -> None:
    """A page's ttl postpones the next poll up to a day, and never brings it forward."""
    state = replace(FRESH, next_try_at=NOW + timedelta(hours=1))
    later = [respect_ttl(state, ttl_s, now=NOW).next_try_at for ttl_s in (None, 0, -5, 60, 7200, 10**9)]
    hours = [1, 1, 1, 1, 2, 24]
    assert [NOW + timedelta(hours=hour) for hour in hours] == later
    assert NOW + timedelta(seconds=60) == respect_ttl(FRESH, 60, now=NOW).next_try_at


def test_current_state_of_another_location_starts_anew() -> None:
    """A state belongs to the configured location; another one knows nothing."""
    known = replace(FRESH, etag='"a"', gone=True)
    assert [known, FetchState(location=NEW_HOME), FRESH] == [
        current_state(SPEC, known),
        current_state(replace(SPEC, location=NEW_HOME), known),
        current_state(SPEC, None),
    ]


def test_page_urls_fill_the_template() -> None:
    """Further pages come from the template, the second one first, up to the limit."""
    spec = replace(SPEC, page_url="https://papers.example/list?page={page}&n={page}", max_pages=3)
    expected = ("https://papers.example/list?page=2&n=2", "https://papers.example/list?page=3&n=3")
    assert expected == page_urls(spec)
    assert () == page_urls(SPEC)
