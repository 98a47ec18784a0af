"""Each local slot is served once: over all zones, through restarts, crashes, clocks that jump, and long downtime.

The model of the service is the smallest one that keeps the rule: at a tick, the slots between the high-water mark and now
and the new mark are written together or not at all. What it serves is held against a reference that knows nothing of how
slots are computed: it reads a clock on the wall every quarter of an hour.
"""

from __future__ import annotations

import zoneinfo
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from itertools import accumulate, pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.model.subscription import Cron, Daily, Monthly, Schedule, Slot, Weekly
from digestd.schedule import next_slot, slots_between

ZONES = sorted(zoneinfo.available_timezones() - {"localtime", "posixrules"})

#: zones whose clocks do unusual things, drawn more often than the rest
STRANGE = [
    "Africa/Casablanca", "Africa/El_Aaiun", "America/New_York", "America/Sao_Paulo", "America/St_Johns", "Antarctica/Troll",
    "Asia/Gaza", "Asia/Kathmandu", "Asia/Pyongyang", "Australia/Lord_Howe", "Europe/Berlin", "Europe/Dublin", "Pacific/Apia",
    "Pacific/Kwajalein",
]  # fmt: skip
STEP = timedelta(minutes=15)


@dataclass
class Service:
    """What stands in the store of one subscription, and the tick that changes it."""

    schedule: Schedule
    zone: str
    high_water: datetime
    served: list[tuple[Slot, datetime]] = field(default_factory=list)  #: slot, and when it was served
    digests: int = 0

    def tick(self, now: datetime, *, crash: bool = False) -> None:
        """Serve what is due; a crash takes back all that the tick would have written."""
        if now <= self.high_water:
            return  # the clock went back: nothing is served again
        slots = slots_between(self.schedule, self.zone, self.high_water, now)
        if crash:
            return
        self.served += [(slot, now) for slot in slots]
        self.digests += bool(slots)
        self.high_water = now

    @property
    def labels(self) -> list[str]:
        """Return the labels served, in order."""
        return [slot.label for slot, _ in self.served]


def wall_clock(zone: str, after: datetime, upto: datetime) -> list[tuple[datetime, datetime]]:
    """Return (latest local time shown so far, instant) for each quarter of an hour; clocks that go back show nothing new."""
    place = ZoneInfo(zone)
    begin = after - timedelta(days=3)
    count = int((upto - begin) / STEP) + 2
    instants = [begin + STEP * n for n in range(count)]
    shown = accumulate((at.astimezone(place).replace(tzinfo=None) for at in instants), max)
    return list(zip(shown, instants, strict=True))


def is_wanted(schedule: Schedule, day: date) -> bool:
    """Return whether a schedule names a date."""
    match schedule:
        case Weekly(days=days):
            return day.weekday() in days
        case Monthly(day=number):
            last = (day + timedelta(days=1)).month != day.month
            return day.day == number or (last and day.day < number)
        case _:
            return True


def expected_labels(schedule: Daily | Weekly | Monthly, zone: str, after: datetime, upto: datetime) -> Iterator[str]:
    """Yield the labels that the wall clock reached for the first time in the stretch."""
    clock = wall_clock(zone, after, upto)
    local = [shown for shown, _ in clock]
    day = local[0].date() + timedelta(days=1)
    while day <= local[-1].date():
        label = datetime.combine(day, schedule.at)
        at = bisect_left(local, label)
        if is_wanted(schedule, day) and at < len(clock) and after < clock[at][1] <= upto:
            yield label.isoformat(timespec="minutes")
        day += timedelta(days=1)


FIRST = datetime(2012, 1, 10, tzinfo=UTC)
DAYS = 24 * 365


@cache
def changes(zone: str) -> list[datetime]:
    """Return midnights (UTC) before the days on which clocks of a zone change; the first day where they never do."""
    place = ZoneInfo(zone)
    offsets = [(FIRST + timedelta(days=n)).astimezone(place).utcoffset() for n in range(DAYS)]
    return [FIRST + timedelta(days=n) for n, (one, two) in enumerate(pairwise(offsets)) if one != two] or [FIRST]


def starts(zone: str) -> st.SearchStrategy[datetime]:
    """Return instants on a quarter of an hour, most of them shortly before clocks change."""
    anywhere = st.integers(0, DAYS).map(lambda days: FIRST + timedelta(days=days))
    return st.builds(
        lambda day, quarters: day - STEP * quarters, st.sampled_from(changes(zone)) | anywhere, st.integers(0, 6 * 96)
    )


#: (zone, instant at which the service begins); from 2012 on all clocks of the world change at a quarter, or a minute after
PLACES = (st.sampled_from(STRANGE) | st.sampled_from(ZONES)).flatmap(
    lambda zone: st.tuples(st.just(zone), starts(zone))
)
TIMES = st.builds(time, st.integers(0, 3) | st.integers(0, 23), st.sampled_from([0, 15, 30, 45]))
SCHEDULES = st.one_of(
    st.builds(Daily, TIMES),
    st.builds(Weekly, st.sets(st.integers(0, 6), min_size=1).map(lambda days: tuple(sorted(days))), TIMES),
    st.builds(Monthly, st.integers(1, 31), TIMES),
)
WAITS = st.sampled_from([1, 5, 15, 17, 30, 60, 61, 600, 1440, 4320, 20160, 45 * 1440]).map(
    lambda m: timedelta(minutes=m)
)
#: what the clock shows beside the time that it is: set back, or set forward and mended later
JUMPS = st.sampled_from([0, 0, 0, -90, -3600, -86400, 90, 3600, 86400]).map(lambda s: timedelta(seconds=s))


@given(SCHEDULES, PLACES, st.lists(st.tuples(WAITS, JUMPS, st.booleans()), min_size=3, max_size=20))
@settings(max_examples=120, deadline=None)
def test_each_slot_is_served_once(
    schedule: Daily | Weekly | Monthly, place: tuple[str, datetime], ticks: list[tuple[timedelta, timedelta, bool]]
) -> None:
    """Whatever clocks, crashes and restarts do, each label up to the mark is served exactly once, and none after it."""
    zone, start = place
    service, real = Service(schedule, zone, start), start
    for wait, jump, crash in ticks:
        real += wait
        service.tick(real + jump, crash=crash)
        service = Service(schedule, zone, service.high_water, service.served, service.digests)  # a restart
    # the last tick is on a quarter of an hour after all jumps, so that both sides end at the same instant
    end = max(real, service.high_water) + STEP
    end -= (end - start) % STEP
    service.tick(max(end, service.high_water))
    end = service.high_water
    assert [] == [label for label, count in Counter(service.labels).items() if count > 1]
    served = set(service.labels)
    sure = set(expected_labels(schedule, zone, start, end - STEP))
    possible = set(expected_labels(schedule, zone, start - STEP, end + STEP))
    assert sure <= served | early(schedule, zone, start)
    assert served <= possible


def early(schedule: Schedule, zone: str, start: datetime) -> set[str]:
    """Return labels due in the quarter of an hour before a service began: clocks that change at 00:01 are read late."""
    return {slot.label for slot in slots_between(schedule, zone, start - STEP, start)}


@given(SCHEDULES, PLACES)
@settings(max_examples=150, deadline=None)
def test_slot_is_due_when_the_wall_clock_reaches_it(
    schedule: Daily | Weekly | Monthly, place: tuple[str, datetime]
) -> None:
    """A slot is due at the first instant at which a clock on the wall shows its label, or what comes after a gap."""
    zone, start = place
    end = start + timedelta(days=45)
    clock = wall_clock(zone, start, end + timedelta(days=2))
    local = [shown for shown, _ in clock]
    for slot in slots_between(schedule, zone, start, end):
        seen = clock[bisect_left(local, datetime.fromisoformat(slot.label))][1]
        assert seen - STEP < slot.due_at <= seen


@given(SCHEDULES | st.sampled_from([Cron("*/30 1-3 * * *"), Cron("0 0 1,15 * *")]), PLACES)
@settings(max_examples=60, deadline=None)
def test_alarm_clock_alone_serves_the_same_slots(schedule: Schedule, place: tuple[str, datetime]) -> None:
    """Woken at each next slot and at no other time, the service serves each slot at its own instant, and the same ones."""
    zone, start = place
    service, end = Service(schedule, zone, start), start + timedelta(days=40)
    while (slot := next_slot(schedule, zone, service.high_water)) is not None and slot.due_at <= end:
        service.tick(slot.due_at)
    assert list(slots_between(schedule, zone, start, end)) == [slot for slot, _ in service.served]
    assert all(slot.due_at == now for slot, now in service.served)


@given(SCHEDULES, PLACES, st.lists(st.integers(1, 45 * 96), max_size=10))
@settings(max_examples=200, deadline=None)
def test_cuts_of_a_stretch_change_nothing(schedule: Schedule, place: tuple[str, datetime], cuts: list[int]) -> None:
    """However a stretch of time is cut by restarts, its slots are the same, in the same order."""
    zone, start = place
    marks = [start, *sorted(start + STEP * cut for cut in cuts), start + timedelta(days=45)]
    pieces = [slot for one, two in pairwise(marks) for slot in slots_between(schedule, zone, one, two)]
    whole = slots_between(schedule, zone, start, marks[-1])
    assert list(whole) == pieces
    assert sorted(slot.due_at for slot in whole) == [slot.due_at for slot in whole]
    assert sorted({slot.label for slot in whole}) == [slot.label for slot in whole]


@pytest.mark.parametrize(("zone", "days"), [("Europe/Berlin", 45), ("America/Sao_Paulo", 45), ("Pacific/Apia", 46)])
@pytest.mark.parametrize("schedule", [Daily(), Cron("30 7 * * *")])
def test_long_downtime_makes_one_digest(schedule: Schedule, zone: str, days: int) -> None:
    """After 45 days down all missed slots are served by one tick, and the next tick has nothing to do.

    In Apia these were 46 dates, one of which never came.
    """
    start = datetime(2011, 12, 10, 12, tzinfo=UTC)
    service = Service(schedule, zone, start)
    now = start + timedelta(days=45)
    service.tick(now)
    assert 1 == service.digests
    assert days == len(service.labels)
    service.tick(now + timedelta(seconds=1))
    assert 1 == service.digests


def test_clock_set_back_waits() -> None:
    """While the clock shows what it has shown before, nothing is served; then the next slot comes at its time."""
    service = Service(Daily(time(7, 30)), "UTC", datetime(2026, 3, 1, 12, tzinfo=UTC))
    service.tick(datetime(2026, 3, 2, 7, 30, tzinfo=UTC))
    service.tick(datetime(2026, 3, 1, 7, 0, tzinfo=UTC))
    service.tick(datetime(2026, 3, 2, 7, 30, tzinfo=UTC))
    assert ["2026-03-02T07:30"] == service.labels
    service.tick(datetime(2026, 3, 3, 7, 30, tzinfo=UTC))
    assert ["2026-03-02T07:30", "2026-03-03T07:30"] == service.labels


def test_crash_leaves_the_slot_for_the_next_tick() -> None:
    """A slot whose tick crashed is served by the tick after the restart."""
    service = Service(Daily(time(7, 30)), "UTC", datetime(2026, 3, 1, 12, tzinfo=UTC))
    service.tick(datetime(2026, 3, 2, 7, 30, tzinfo=UTC), crash=True)
    assert [] == service.labels
    service.tick(datetime(2026, 3, 2, 7, 45, tzinfo=UTC))
    assert ["2026-03-02T07:30"] == service.labels


def test_every_zone_serves_a_year_of_days() -> None:
    """In each zone of the world, a year of days has a slot for each of its dates, none twice and none missing."""
    after, upto = datetime(2026, 1, 1, 12, tzinfo=UTC), datetime(2026, 12, 31, 12, tzinfo=UTC)
    for zone in ZONES:
        labels = [slot.label for slot in slots_between(Daily(time(2, 30)), zone, after, upto)]
        first, last = (date.fromisoformat(label[:10]) for label in (labels[0], labels[-1]))
        assert [first + timedelta(days=n) for n in range((last - first).days + 1)] == [
            date.fromisoformat(label[:10]) for label in labels
        ]
        assert 364 == len(labels)


def test_evening_is_todays_in_every_zone() -> None:
    """In each zone, at whatever hour a service begins, today's last minute is its next slot: a date is the reader's."""
    wrong = []
    for zone in ZONES:
        for hour in range(0, 24, 3):
            after = datetime(2026, 7, 15, hour, 1, tzinfo=UTC)
            label = f"{after.astimezone(ZoneInfo(zone)):%Y-%m-%d}T23:59"
            slot = next_slot(Daily(time(23, 59)), zone, after)
            if slot is None or slot.label != label:
                wrong.append((zone, hour, slot))
    assert [] == wrong
