"""Every slot that was due is on record, and no other, whatever a reader and the clock did (rule A4)."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from zoneinfo import available_timezones

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from digestd.addresses import parse_reader
from digestd.flows.audit import audit, misserved
from digestd.flows.digest import make_due
from digestd.flows.preferences import leave_by_link, undo_leave
from digestd.flows.subscribe import pause
from digestd.model.audit import ScheduleSpan
from digestd.schedule import parse_schedule
from digestd.store import SqlStore, open_store
from tests.followers import add, at, let_follow, make_kitchen, start

BEGIN = at("2026-03-27T05:00")  # Europe's spring gap and, in the other order, its autumn are within the year
SCHEDULES = (
    "daily 07:30",
    "daily 02:30",
    "weekly mon,thu 00:00",
    "monthly 31 23:59",
    "each-snapshot",
    "cron 15 2 * * *",
)
ZONES = ("UTC", "Europe/Berlin", "Australia/Lord_Howe", "America/Sao_Paulo", "Pacific/Apia")
ANA = "ana@example.org"


@dataclass
class World:
    """One reader, whom nothing stops."""

    store: SqlStore
    now: datetime = BEGIN
    news: int = 0

    def follow(self, schedule: str, zone: str) -> None:
        """Follow, or change the hour."""
        let_follow(self.store, ANA, "Reef Sound", now=self.now, schedule=schedule, zone=zone)

    def serve(self) -> None:
        """Do what is due."""
        make_due(make_kitchen(self.store), now=self.now)

    def paper(self) -> None:
        """Let a paper appear."""
        self.news += 1
        add(self.store, "Reef Sound", (f"{self.now:%Y-%m-%d}", f"Bell Buoys {self.news}"), now=self.now)

    def leave_for_a_moment(self) -> None:
        """Unsubscribe, and think better of it."""
        (subscription,) = self.store.subscriptions.subscriptions()
        leave_by_link(self.store, subscription.public_id, now=self.now)
        undo_leave(self.store, subscription.public_id, now=self.now + timedelta(minutes=1))

    def findings(self) -> list[str]:
        """Return what the audit finds of slots."""
        return [str(one) for one in audit(self.store, now=self.now).findings if one.code == "A4"]


STEPS = st.one_of(
    st.tuples(st.just("wait"), st.sampled_from([-30, -1, 1, 5, 23, 24, 25, 24 * 9, 24 * 45])),
    st.tuples(st.just("schedule"), st.tuples(st.sampled_from(SCHEDULES), st.sampled_from(ZONES))),
    st.tuples(st.just("pause"), st.integers(1, 20)),
    st.tuples(st.sampled_from(["serve", "serve", "paper", "leave"]), st.none()),
)


def live(world: World, steps: list[tuple[str, object]]) -> None:
    """Let a reader's year go by."""
    for what, value in steps:
        match what, value:
            case "wait", int() as hours:
                world.now += timedelta(hours=hours)
            case "schedule", (str() as schedule, str() as zone):
                world.follow(schedule, zone)
            case "pause", int() as days:
                pause(world.store, parse_reader(ANA), world.now.date() + timedelta(days=days), now=world.now)
            case "serve", _:
                world.serve()
            case "paper", _:
                world.paper()
            case _:
                world.leave_for_a_moment()
    world.serve()


@settings(max_examples=60, deadline=None)
@given(st.lists(STEPS, max_size=14), st.data())
def test_slots_are_accounted_for_whatever_happens(steps: list[tuple[str, object]], data: st.DataObject) -> None:
    """Changes of hour and zone, pauses, downtime, a clock that steps: all slots are on record; one taken away is found."""
    with TemporaryDirectory() as folder, closing(open_store(Path(folder) / "history.sqlite")) as store:
        start(store, "Reef Sound", now=BEGIN)
        world = World(store)
        world.follow("daily 07:30", "Europe/Berlin")
        live(world, steps)
        assert [] == world.findings()
        rows = store.engine.query("SELECT label, due_at FROM slot WHERE label NOT LIKE '%~%' ORDER BY due_at")
        ends = [end for span in store.accounts.spans(after=0, limit=99) for end in (span.since, span.until)]
        slack = timedelta(hours=3)
        inner = [row for row in rows if all(abs(datetime.fromisoformat(row["due_at"]) - end) > slack for end in ends)]
        if inner:
            gone = data.draw(st.sampled_from([row["label"] for row in inner]))
            store.engine.query("DELETE FROM slot WHERE label = :label", {"label": gone})
            assert [True] == [f"slot {gone}: expected served" in one for one in world.findings() if "not served" in one]


def test_slot_that_no_schedule_has_is_found(tmp_path: Path) -> None:
    """A reader who was served at an hour that was never theirs is named."""
    with closing(open_store(tmp_path / "history.sqlite")) as store:
        start(store, "Reef Sound", now=BEGIN)
        world = World(store)
        world.follow("daily 07:30", "UTC")
        world.now += timedelta(days=3)
        world.serve()
        store.engine.query(
            """UPDATE slot SET label = '2026-03-28T08:30', due_at = '2026-03-28T08:30:00.000000Z'
            WHERE label = '2026-03-28T07:30'"""
        )
        assert [
            "expected served, for it was due at 2026-03-28T07:30:00+00:00, found not served",
            "expected no slot of the schedule, found served",
        ] == [one.partition(": ")[2] for one in world.findings() if "slot 2026-03-28" in one]


def test_schedule_of_before_is_held_against_its_own_time(tmp_path: Path) -> None:
    """Slots are judged by the schedule that held when they were due, not by the one that holds now."""
    with closing(open_store(tmp_path / "history.sqlite")) as store:
        start(store, "Reef Sound", now=BEGIN)
        world = World(store)
        for schedule in ("daily 07:30", "weekly mon 09:00", "each-snapshot"):
            world.follow(schedule, "UTC")
            world.now += timedelta(days=15)
            world.paper()
            world.serve()
        spans = store.accounts.spans(after=0, limit=9)
        assert ([15, 2, 0], []) == ([span.slots for span in spans], world.findings())
        assert [parse_schedule("daily 07:30"), "UTC"] == [spans[0].schedule, spans[0].zone]


@settings(max_examples=100, deadline=None)
@example("Europe/Berlin", date(2026, 3, 29), -60)
@given(
    st.sampled_from(sorted(available_timezones())), st.dates(date(2020, 1, 1), date(2030, 1, 1)), st.integers(-120, 120)
)
def test_mended_rules_of_a_zone_make_no_findings(zone: str, day: date, minutes: int) -> None:
    """What was served under older rules of a zone, up to two hours apart, is the same label and no fault."""
    schedule = parse_schedule("daily 02:30")
    ends = [datetime(day.year, day.month, day.day, 2, 30, tzinfo=BEGIN.tzinfo) + timedelta(days=add) for add in (0, 9)]
    around = frozenset((day + timedelta(days=number)).isoformat() + "T02:30" for number in range(-1, 11))
    inside = frozenset((day + timedelta(days=number)).isoformat() + "T02:30" for number in range(1, 10))
    moved = [end + timedelta(minutes=minutes) for end in ends]
    span = ScheduleSpan(1, "a1", 1, schedule, zone, moved[0], moved[1], 9, 0)
    found = [label for label, what, _ in misserved(span, inside, around) if what == "not served"]
    assert [] == [label for label in found if label in around]


@pytest.mark.parametrize("gone", range(1, 8))
def test_every_inner_slot_is_missed(gone: int) -> None:
    """Whichever day is left out, it is named."""
    days = [f"2026-09-{day:02d}T07:30" for day in range(2, 11)]
    kept = frozenset(label for place, label in enumerate(days) if place != gone)
    since, until = at("2026-09-01T07:30"), at("2026-09-10T07:30")
    span = ScheduleSpan(1, "a1", 1, parse_schedule("daily 07:30"), "UTC", since, until, 8, 0)
    assert [days[gone]] == [label for label, _, _ in misserved(span, kept, kept)]
