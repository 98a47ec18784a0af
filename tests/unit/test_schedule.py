"""Schedules: how they are written and said, when they are due, both days on which clocks change, and errors."""

from __future__ import annotations

import zoneinfo
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.errors import ConfigError
from digestd.model.subscription import Cron, Daily, EachSnapshot, First, Monthly, Schedule, Slot, Weekly
from digestd.schedule import (
    SCHEDULES,
    find_zone,
    format_schedule,
    in_words,
    instant_of,
    next_slot,
    parse_days,
    parse_first,
    parse_schedule,
    parse_time,
    slots_between,
)

NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)  # a Monday


def utc(text: str) -> datetime:
    """Return a UTC instant: "2026-03-29T01:00"."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def due(schedule: str, zone: str, after: str, upto: str) -> list[str]:
    """Return the labels of the slots after one UTC instant and up to another."""
    return [slot.label for slot in slots_between(parse_schedule(schedule), zone, utc(after), utc(upto))]


@pytest.mark.parametrize(
    ("text", "schedule"),
    [
        ("daily", Daily(time(7, 30))),
        ("daily 7:05", Daily(time(7, 5))),
        ("Daily 23:59", Daily(time(23, 59))),
        ("weekly", Weekly((0,), time(7, 30))),
        ("weekly thu,mon,mon 00:00", Weekly((0, 3), time(0, 0))),
        ("weekly Mondays 08:00", Weekly((0,), time(8, 0))),
        ("weekly weekdays", Weekly((0, 1, 2, 3, 4), time(7, 30))),
        ("monthly", Monthly(1, time(7, 30))),
        ("monthly 31 09:15", Monthly(31, time(9, 15))),
        ("cron 30 7 * * 1", Cron("30 7 * * 1")),
        ("cron  0 8 1,15 * mon-fri", Cron("0 8 1,15 * mon-fri")),
        ("each-snapshot", EachSnapshot()),
    ],
)
def test_schedule_is_read(text: str, schedule: Schedule) -> None:
    """A schedule is its kind and, behind it, days and a time; what is left out has an ordinary value."""
    assert schedule == parse_schedule(text)


@pytest.mark.parametrize(
    "text",
    [
        "", " ", "hourly", "daily 24:00", "daily 7:60", "daily 07:30:00", "daily 0730", "daily ７:30", "daily 07:30 x",
        "weekly mo", "weekly monkey", "weekly mon,", "weekly ,", "weekly 07:30", "weekly mon 7", "weekly mon tue 07:30",
        "monthly 0", "monthly 32", "monthly -1", "monthly ²", "monthly first", "monthly 1 7 7", "each-snapshot 07:30",
        "cron", "cron * * * *", "cron * * * * * *", "cron @daily", "cron 60 * * * *", "cron * 24 * * *", "cron 0 0 30 2 *",
        "cron 0 0 31 4,6 *", "cron x * * * *", "cron 5-1 * * * *", "cron */0 * * * *", "cron 0 0 * * 8",
        f"cron {'9' * 5000} * * * *", f"cron {'0,' * 300}0 * * * *",
    ],
)  # fmt: skip
def test_schedule_that_is_none_is_refused(text: str) -> None:
    """What is no schedule is refused with an example of one."""
    with pytest.raises(ConfigError, match=r"^(schedule|day|time): expected .*, found ") as caught:
        parse_schedule(text)
    assert len(str(caught.value)) < 700


TIMES = st.times().map(lambda at: at.replace(second=0, microsecond=0))
DAYS = st.sets(st.integers(0, 6), min_size=1).map(lambda days: tuple(sorted(days)))
CRONS = st.builds(
    "{} {} {} {} {}".format,
    st.sampled_from(["0", "30", "*/15", "1-59/7", "0,45"]),
    st.sampled_from(["*", "0", "2", "7-9", "*/6", "23"]),
    st.sampled_from(["*", "1", "31", "L", "1-7"]),
    st.sampled_from(["*", "1", "JAN-MAR", "2"]),
    st.sampled_from(["*", "1", "MON-FRI", "0", "7", "5L", "2#3"]),
)


def is_schedule(text: str) -> bool:
    """Return whether a text is read as a schedule."""
    try:
        parse_schedule(text)
    except ConfigError:
        return False
    return True


SCHEDULE = st.one_of(
    st.builds(Daily, TIMES),
    st.builds(Weekly, DAYS, TIMES),
    st.builds(Monthly, st.integers(1, 31), TIMES),
    st.builds(Cron, CRONS.filter(lambda text: is_schedule(f"cron {text}"))),
    st.just(EachSnapshot()),
)


@given(SCHEDULE)
@settings(max_examples=500, deadline=None)
def test_schedule_reads_back_as_it_is_written(schedule: Schedule) -> None:
    """What is stored of a schedule is read as the same schedule."""
    assert schedule == parse_schedule(format_schedule(schedule))


@given(st.text("0123456789*/,-#LWMON JANsu ²", max_size=40))
@settings(max_examples=1000, deadline=None)
def test_any_cron_expression_is_taken_or_refused(text: str) -> None:
    """Whatever stands in place of a cron expression is either a schedule with words and dates, or a named error."""
    try:
        schedule = parse_schedule(f"cron {text}")
    except ConfigError:
        return
    assert in_words(schedule, "UTC").endswith(", UTC")
    assert next_slot(schedule, "UTC", NOW) is not None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("weekly", "Mondays at 07:30, Europe/Berlin"),
        ("weekly mon,thu 08:00", "Mondays and Thursdays at 08:00, Europe/Berlin"),
        ("weekly sat,sun,mon", "Mondays, Saturdays and Sundays at 07:30, Europe/Berlin"),
        ("weekly weekdays 06:00", "weekdays at 06:00, Europe/Berlin"),
        ("daily 07:30", "daily at 07:30, Europe/Berlin"),
        ("monthly", "on the 1st of each month, at 07:30, Europe/Berlin"),
        ("monthly 2", "on the 2nd of each month, at 07:30, Europe/Berlin"),
        ("monthly 11", "on the 11th of each month, at 07:30, Europe/Berlin"),
        ("monthly 23", "on the 23rd of each month, at 07:30, Europe/Berlin"),
        ("monthly 28", "on the 28th of each month, at 07:30, Europe/Berlin"),
        ("monthly 31", "on the 31st of each month, or the month's last day, at 07:30, Europe/Berlin"),
        ("cron 30 7 * * 1", "at 07:30 on Monday, Europe/Berlin"),
        ("each-snapshot", "after each snapshot with news"),
    ],
)
def test_schedule_in_words(text: str, words: str) -> None:
    """A reader is told the schedule in words, with the zone in which its hours count."""
    assert words == in_words(parse_schedule(text), "Europe/Berlin")


def test_next_slot_is_labelled_in_the_readers_zone() -> None:
    """A slot has the reader's own day and hour as its label, and the moment at which that is."""
    slot = next_slot(Weekly((0,), time(0, 30)), "Asia/Tokyo", NOW)
    assert Slot("2026-12-07T00:30", utc("2026-12-06T15:30")) == slot


@pytest.mark.parametrize(
    ("zone", "local", "expected"),
    [
        ("UTC", "2026-03-29T02:30", "2026-03-29T02:30"),
        ("Asia/Kathmandu", "2026-03-29T07:30", "2026-03-29T01:45"),
        # clocks go forward: 02:00 to 03:00
        ("Europe/Berlin", "2026-03-29T01:59", "2026-03-29T00:59"),
        ("Europe/Berlin", "2026-03-29T02:00", "2026-03-29T01:00"),
        ("Europe/Berlin", "2026-03-29T02:30", "2026-03-29T01:00"),
        ("Europe/Berlin", "2026-03-29T03:00", "2026-03-29T01:00"),
        ("Europe/Berlin", "2026-03-29T03:01", "2026-03-29T01:01"),
        # back: 03:00 to 02:00
        ("Europe/Berlin", "2026-10-25T01:59", "2026-10-24T23:59"),
        ("Europe/Berlin", "2026-10-25T02:30", "2026-10-25T00:30"),
        ("Europe/Berlin", "2026-10-25T03:00", "2026-10-25T02:00"),
        ("America/New_York", "2026-03-08T02:30", "2026-03-08T07:00"),
        ("America/New_York", "2026-11-01T01:30", "2026-11-01T05:30"),
        ("America/New_York", "2026-11-01T02:00", "2026-11-01T07:00"),
        # by half an hour
        ("Australia/Lord_Howe", "2026-10-04T02:15", "2026-10-03T15:30"),
        ("Australia/Lord_Howe", "2026-10-04T02:30", "2026-10-03T15:30"),
        ("Australia/Lord_Howe", "2026-04-05T01:45", "2026-04-04T14:45"),
        ("Australia/Lord_Howe", "2026-04-05T02:00", "2026-04-04T15:30"),
        # by two hours
        ("Antarctica/Troll", "2026-03-29T02:30", "2026-03-29T01:00"),
        ("Antarctica/Troll", "2026-10-25T01:30", "2026-10-24T23:30"),
        # at midnight: 00:00 to 01:00; back from 00:00 to 23:00 of the day before
        ("America/Sao_Paulo", "2018-11-03T23:59", "2018-11-04T02:59"),
        ("America/Sao_Paulo", "2018-11-04T00:00", "2018-11-04T03:00"),
        ("America/Sao_Paulo", "2018-11-04T00:30", "2018-11-04T03:00"),
        ("America/Sao_Paulo", "2018-02-17T23:30", "2018-02-18T01:30"),
        ("America/Sao_Paulo", "2018-02-18T00:00", "2018-02-18T03:00"),
        # a day that never came, and one that came twice
        ("Pacific/Apia", "2011-12-29T23:59", "2011-12-30T09:59"),
        ("Pacific/Apia", "2011-12-30T08:00", "2011-12-30T10:00"),
        ("Pacific/Apia", "2011-12-31T00:00", "2011-12-30T10:00"),
        ("Pacific/Apia", "2011-12-31T08:00", "2011-12-30T18:00"),
        ("Pacific/Kwajalein", "1993-08-21T08:00", "1993-08-21T12:00"),
        ("America/Juneau", "1867-10-18T12:00", "1867-10-17T20:57:41"),
        # summer time interrupted for Ramadan: back first, forward later
        ("Africa/Casablanca", "2026-02-15T02:30", "2026-02-15T01:30"),
        ("Africa/Casablanca", "2026-03-22T02:30", "2026-03-22T02:00"),
    ],
)
def test_instant_of_a_local_time(zone: str, local: str, expected: str) -> None:
    """A local time that comes twice is its first coming; one that never comes is the end of the gap."""
    assert utc(expected) == instant_of(datetime.fromisoformat(local), ZoneInfo(zone))


ZONES = sorted(zoneinfo.available_timezones() - {"localtime", "posixrules"})


@given(st.sampled_from(ZONES), st.datetimes(datetime(1970, 1, 3), datetime(2037, 12, 1)))  # noqa: DTZ001 # local times
@settings(max_examples=1000, deadline=None)
def test_instant_is_the_first_at_which_clocks_have_reached_it(zone: str, local: datetime) -> None:
    """In every zone, clocks showed less a second before the instant, and show at least the local time at it."""
    local = local.replace(second=0, microsecond=0)
    place = ZoneInfo(zone)
    at = instant_of(local, place)
    assert at.astimezone(place).replace(tzinfo=None) >= local
    assert (at - timedelta(seconds=1)).astimezone(place).replace(tzinfo=None) < local
    assert at.microsecond == 0


@pytest.mark.parametrize(
    ("schedule", "zone", "after", "upto", "expected"),
    [
        ("daily 02:30", "Europe/Berlin", "2026-03-27T12:00", "2026-03-30T12:00", ["2026-03-28", "2026-03-29", "2026-03-30"]),
        ("daily 02:30", "Europe/Berlin", "2026-10-23T12:00", "2026-10-26T12:00", ["2026-10-24", "2026-10-25", "2026-10-26"]),
        ("daily 00:00", "America/Sao_Paulo", "2018-11-03T12:00", "2018-11-05T12:00", ["2018-11-04", "2018-11-05"]),
        ("daily 08:00", "Pacific/Apia", "2011-12-29T00:00", "2011-12-31T00:00", ["2011-12-29", "2011-12-30", "2011-12-31"]),
        ("weekly sun 01:30", "America/New_York", "2026-10-25T12:00", "2026-11-08T12:00", ["2026-11-01", "2026-11-08"]),
        ("monthly 31", "UTC", "2026-01-01T00:00", "2026-05-01T00:00", ["2026-01-31", "2026-02-28", "2026-03-31", "2026-04-30"]),
        ("monthly 29", "UTC", "2028-02-01T00:00", "2028-04-01T00:00", ["2028-02-29", "2028-03-29"]),
        ("monthly 1", "Asia/Tokyo", "2026-01-30T00:00", "2026-03-01T00:00", ["2026-02-01", "2026-03-01"]),
        # cron: day of month or of week, unless one of them is a star
        ("cron 0 8 13 * 5", "UTC", "2026-03-01T00:00", "2026-03-21T00:00", ["2026-03-06", "2026-03-13", "2026-03-20"]),
        ("cron 0 8 13 * *", "UTC", "2026-03-01T00:00", "2026-05-01T00:00", ["2026-03-13", "2026-04-13"]),
        ("cron 0 8 * * 0", "UTC", "2026-03-01T12:00", "2026-03-15T12:00", ["2026-03-08", "2026-03-15"]),
        ("cron 0 8 * * 7", "UTC", "2026-03-01T12:00", "2026-03-15T12:00", ["2026-03-08", "2026-03-15"]),
        ("cron 0 8 * * 1", "UTC", "2026-03-01T00:00", "2026-03-10T00:00", ["2026-03-02", "2026-03-09"]),
        ("cron 0 8 L * *", "UTC", "2026-02-01T00:00", "2026-04-01T00:00", ["2026-02-28", "2026-03-31"]),
        ("cron 30 2 * * *", "Europe/Berlin", "2026-03-28T12:00", "2026-03-29T12:00", ["2026-03-29"]),
        ("cron 30 2 * * *", "Europe/Berlin", "2026-10-24T12:00", "2026-10-25T12:00", ["2026-10-25"]),
    ],
)  # fmt: skip
def test_slots_of_a_stretch(schedule: str, zone: str, after: str, upto: str, expected: list[str]) -> None:
    """Each local date that a schedule names has its slot, once, also where clocks change."""
    assert expected == [label[:10] for label in due(schedule, zone, after, upto)]


def test_hours_that_come_twice_are_served_once() -> None:
    """A schedule of each hour has 24 slots on a day of 25 hours, and on one of 23 too: the one that never comes at the gap."""
    assert 24 == len(due("cron 0 * * * *", "Europe/Berlin", "2026-10-24T21:59", "2026-10-25T22:59"))
    assert 24 == len(due("cron 0 * * * *", "Europe/Berlin", "2026-03-28T22:59", "2026-03-29T21:59"))


def test_stretch_leaves_out_its_beginning_and_holds_its_end() -> None:
    """Two stretches side by side have each slot in one of them."""
    assert [] == due("daily 08:00", "UTC", "2026-03-01T08:00", "2026-03-02T07:59")
    assert ["2026-03-02T08:00"] == due("daily 08:00", "UTC", "2026-03-01T08:00", "2026-03-02T08:00")


@pytest.mark.parametrize("upto", ["2026-03-01T08:00", "2026-02-01T00:00"])
def test_stretch_that_goes_back_has_no_slots(upto: str) -> None:
    """A clock that was set back asks for nothing."""
    assert [] == due("cron * * * * *", "UTC", "2026-03-01T08:00", upto)


def test_stretch_of_far_too_many_slots_keeps_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    """A schedule of each minute after years away does not fill the memory."""
    monkeypatch.setattr("digestd.schedule.MOST_SLOTS", 10)
    found = due("cron * * * * *", "UTC", "2026-03-01T00:00", "2026-03-01T00:35")
    assert [f"2026-03-01T00:{minute}" for minute in range(26, 36)] == found


def test_each_snapshot_is_never_due_by_the_clock() -> None:
    """A schedule that goes by snapshots has no slots."""
    assert next_slot(EachSnapshot(), "UTC", NOW) is None
    assert () == slots_between(EachSnapshot(), "UTC", NOW, NOW + timedelta(days=400))


@pytest.mark.parametrize("schedule", [Daily(), Weekly(), Monthly(31)])
def test_schedule_has_no_slots_at_the_end_of_all_dates(schedule: Schedule) -> None:
    """Where the calendar of the machine ends, a schedule has no more slots, instead of failing."""
    assert next_slot(schedule, "UTC", utc("9999-12-30T12:00")) is None


@given(
    SCHEDULE,
    st.sampled_from(ZONES),
    st.integers(0, 61 * 365).map(lambda days: utc("1975-01-01T12:00") + timedelta(days=days)),
)
@settings(max_examples=300, deadline=None)
def test_next_slot_is_the_first_of_the_stretch(schedule: Schedule, zone: str, after: datetime) -> None:
    """The alarm is set for the very slot that the next look finds, and it is never in the past."""
    slot = next_slot(schedule, zone, after)
    if slot is None:
        assert isinstance(schedule, EachSnapshot)
        return
    assert slot.due_at > after
    assert slot == slots_between(schedule, zone, after, slot.due_at)[0]
    assert () == slots_between(schedule, zone, after, slot.due_at - timedelta(seconds=1))
    assert slot.due_at == instant_of(datetime.fromisoformat(slot.label), ZoneInfo(zone))


@pytest.mark.parametrize(
    "name",
    ["", "Europe", "europe/atlantis", "../zone", "/etc/passwd", "a\0b", "\ud800", "zone.tab", "localtime", "x" * 5000],
)
def test_zone_that_is_none_is_refused(name: str) -> None:
    """A name that is no zone, or another one on each machine, is refused with an example."""
    with pytest.raises(ConfigError, match=r"^zone: expected a name like 'Europe/Berlin', found "):
        find_zone(name)


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires", "Etc/GMT+12"])
def test_zone_is_found(zone: str) -> None:
    """A zone is found by its name."""
    assert zone == find_zone(zone).key


def test_time_and_days_are_read_alone() -> None:
    """Times and days stand in options of commands too."""
    assert time(7, 30) == parse_time("07:30")
    assert (0, 3) == parse_days("thu, Monday")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("none", First("none")),
        ("latest", First("latest", latest=10)),
        ("latest:3", First("latest", latest=3)),
        ("since:2026-09-01", First("since", since=date(2026, 9, 1))),
    ],
)
def test_first_digest_is_read(text: str, expected: First) -> None:
    """A reader says what the first digest holds."""
    assert expected == parse_first(text)


@pytest.mark.parametrize(
    "text", ["", "all", "none:1", "latest:0", "latest:501", "latest:x", "since", "since:", "since:2026-13-01"]
)
def test_first_digest_that_is_none_is_refused(text: str) -> None:
    """What is no beginning is refused with the three that are."""
    with pytest.raises(ConfigError, match=r"^first digest: expected none, latest:10 or since:2026-09-01, found "):
        parse_first(text)


def test_each_kind_is_written_by_its_own_name() -> None:
    """The table of kinds is complete: the name that is written is the name that is read."""
    examples = (Daily(), Weekly(), Monthly(), Cron("0 0 * * *"), EachSnapshot())
    assert list(SCHEDULES) == [format_schedule(example).split()[0] for example in examples]
