"""The contract of watched sources: what is kept of one between polls comes back as it was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from digestd.model.snapshot import Gap
from digestd.model.source import FetchState, OutcomeKind, Poll
from digestd.ports import Sources
from digestd.store import SqlStore, open_store
from digestd.store.sources import POLLS_KEPT

NOW = datetime(2026, 9, 30, 6, 0, tzinfo=UTC)
FULL_STATE = FetchState(
    location="https://papers.example/list",
    url="https://reef.example/list",
    validated_url="https://reef.example/list?x=1",
    etag='W/"\xe4\xff"',
    last_modified="Tue, 29 Sep 2026 08:00:00 GMT",
    moved_to="https://kelp.example/",
    moved_count=2,
    fail_count=3,
    failing_since=NOW - timedelta(days=1),
    last_ok_at=NOW - timedelta(days=2),
    last_try_at=NOW - timedelta(microseconds=1),
    next_try_at=NOW + timedelta(hours=1),
    gone=True,
    last_error="the server answered 410",
    walk_open=True,
)
FULL_POLL = Poll(
    at=NOW,
    outcome=OutcomeKind.OK,
    why="an error page \ud83d",
    papers=0,
    batch="b4tc4",
    issued=date(2026, 9, 29),
    quiet_reason="skip day: Saturday",
    gaps=(Gap(date(2026, 6, 6), date(2026, 9, 11)), Gap(date(2026, 1, 2), date(2026, 1, 9))),
    unreadable=True,
    unknown_format=True,
    topic="reef-sound",
    body="5a" * 32,
    raw="7b" * 32,
    ttl_s=3600,
)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    """A history file of its own."""
    opened = open_store(tmp_path / "history.sqlite")
    yield opened
    opened.close()


@pytest.fixture
def sources(store: SqlStore) -> Sources:
    """The watched sources of a new history."""
    return store.sources


def poll(number: int, *, papers: int | None) -> Poll:
    """Return the poll of an hour."""
    return Poll(NOW + timedelta(hours=number), OutcomeKind.OK, papers=papers)


def test_sources_state_unknown_is_none(sources: Sources) -> None:
    """Of a source that was never polled nothing is kept."""
    assert (None, []) == (sources.state("reef"), list(sources.polls("reef")))


def test_sources_state_comes_back_whole(sources: Sources) -> None:
    """Every field of a state comes back, and a later one takes its place as a whole."""
    assert all(getattr(FULL_STATE, field.name) != field.default for field in fields(FetchState))
    sources.put_state("reef", FULL_STATE, now=NOW)
    assert FULL_STATE == sources.state("reef")
    sources.put_state("reef", FetchState(location="x"), now=NOW)
    assert FetchState(location="x") == sources.state("reef")


def test_sources_poll_comes_back_whole(sources: Sources) -> None:
    """Every field of a poll comes back, also 0 papers, which are not None."""
    assert all(getattr(FULL_POLL, field.name) != field.default for field in fields(Poll))
    sources.add_poll("reef", FULL_POLL)
    sources.add_poll("reef", Poll(NOW, OutcomeKind.FAILED))
    assert [FULL_POLL, Poll(NOW, OutcomeKind.FAILED)] == list(sources.polls("reef"))


@given(tag=st.text(st.characters(max_codepoint=255), max_size=20), count=st.integers(0, 10**6))
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_sources_validators_are_opaque(sources: Sources, tag: str, count: int) -> None:
    """Whatever a server calls its page comes back unchanged."""
    state = FetchState(etag=tag, last_modified=tag, fail_count=count)
    sources.put_state("reef", state, now=NOW)
    assert state == sources.state("reef")


def test_sources_are_apart(sources: Sources) -> None:
    """What is kept of one source says nothing of another."""
    sources.put_state("reef", FULL_STATE, now=NOW)
    sources.add_poll("reef", FULL_POLL)
    assert (None, []) == (sources.state("kelp"), list(sources.polls("kelp")))


def test_sources_polls_are_bounded_by_their_sort(sources: Sources) -> None:
    """The latest polls are kept; a long run without a page does not push out those that brought one."""
    pages = [poll(number, papers=5) for number in range(POLLS_KEPT + 3)]
    silent = [poll(number, papers=None) for number in range(100, 100 + 2 * POLLS_KEPT)]
    for one in [*pages, *silent]:
        sources.add_poll("reef", one)
    assert [*pages[-POLLS_KEPT:], *silent[-POLLS_KEPT:]] == list(sources.polls("reef"))


def test_sources_polls_bound_counts_each_source(sources: Sources) -> None:
    """A busy source does not push out the polls of another."""
    sources.add_poll("kelp", FULL_POLL)
    for number in range(POLLS_KEPT * 2):
        sources.add_poll("reef", poll(number, papers=1))
    assert [FULL_POLL] == list(sources.polls("kelp"))


def test_sources_writes_join_the_transaction(store: SqlStore) -> None:
    """State and poll are written together or not at all."""

    def fail() -> None:
        with store.transaction():
            store.sources.put_state("reef", FULL_STATE, now=NOW)
            store.sources.add_poll("reef", FULL_POLL)
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert (None, []) == (store.sources.state("reef"), list(store.sources.polls("reef")))


def test_sources_keep_across_restart(tmp_path: Path) -> None:
    """What is kept is there when the history is opened again."""
    first = open_store(tmp_path / "history.sqlite")
    first.sources.put_state("reef", replace(FULL_STATE, gone=False), now=NOW)
    first.close()
    second = open_store(tmp_path / "history.sqlite")
    found = second.sources.state("reef")
    second.close()
    assert replace(FULL_STATE, gone=False) == found
