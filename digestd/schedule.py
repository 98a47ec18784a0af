"""When a subscription is due. Floor 1, pure.

Entry points: :data:`SCHEDULES` (how each kind is written), :func:`parse_schedule`, :func:`slots_between`,
:func:`next_slot`, :func:`in_words`.

A slot is a local date and time, its label. Each label is served once: where clocks go back and the label comes twice, at
its first coming; where clocks go forward and it never comes, at the end of the gap. So a reader's 02:30 is never skipped
and never doubled, which neither cron nor APScheduler promise.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from cronsim import CronSim, CronSimError

from digestd.errors import ConfigError
from digestd.model.subscription import Cron, Daily, EachSnapshot, First, Monthly, Schedule, Slot, Weekly
from digestd.phrases import join_words

DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
#: papers that a first digest may hold, a topic
MOST_FIRST = 500
_DAY_NAMES = ("Mondays", "Tuesdays", "Wednesdays", "Thursdays", "Fridays", "Saturdays", "Sundays")
_TIME = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])")

#: files beside those of zones whose content is another on each machine
_NO_ZONES = frozenset({"localtime", "posixrules"})

#: longest cron expression; all minutes and hours written out have less
_MOST_CRON = 400

#: slots that one look back hands out at most: a schedule of each minute after years away must not fill the memory
MOST_SLOTS = 100_000


@dataclass(frozen=True, slots=True)
class ScheduleKind:
    """How one kind of schedule is written, said and computed."""

    type: type[Any]
    parse: Callable[[list[str]], Schedule]
    format: Callable[[Any], str]
    words: Callable[[Any], str]
    local: Callable[[Any, date], Iterator[datetime]]  #: local times from a date on, ascending


def parse_schedule(text: str) -> Schedule:
    """Return the schedule that a text says: "weekly mon,thu 07:30".

    Raises:
        ConfigError: it says none; the message shows how it is written.
    """
    name, *words = text.split() or [""]
    name = name.casefold()
    if name not in SCHEDULES:
        raise ConfigError(f"schedule: expected one of {', '.join(SCHEDULES)}, found '{text}'")
    return SCHEDULES[name].parse(words)


def format_schedule(schedule: Schedule) -> str:
    """Return the text that :func:`parse_schedule` reads."""
    name, kind = _kind(schedule)
    return f"{name} {kind.format(schedule)}".strip()


def in_words(schedule: Schedule, zone: str) -> str:
    """Return a schedule for people: "Mondays at 07:30, Europe/Berlin"."""
    words = _kind(schedule)[1].words(schedule)
    return words if isinstance(schedule, EachSnapshot) else f"{words}, {zone}"


def find_zone(name: str) -> ZoneInfo:
    """Return a time zone.

    Raises:
        ConfigError: there is none of this name.
    """
    try:
        zone = ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise _no_zone(name) from error
    if name in _NO_ZONES:
        raise _no_zone(name)
    return zone


def _no_zone(name: str) -> ConfigError:
    return ConfigError(f"zone: expected a name like 'Europe/Berlin', found '{name[:60]}'")


def next_slot(schedule: Schedule, zone: str, after: datetime) -> Slot | None:
    """Return the first slot due after an instant; None for a schedule that goes by snapshots, or has no more dates."""
    for slot in _slots(schedule, zone, after):
        if slot.due_at > after:
            return slot
    return None


def slots_between(schedule: Schedule, zone: str, after: datetime, upto: datetime) -> tuple[Slot, ...]:
    """Return the slots with ``after < due_at <= upto``, by label, the newest ones if there are far too many."""
    if upto <= after:
        return ()
    found: list[Slot] = []
    for slot in _slots(schedule, zone, after):
        if slot.due_at > upto:
            break
        if slot.due_at > after:
            found.append(slot)
            if len(found) >= 2 * MOST_SLOTS:
                del found[:MOST_SLOTS]
    return tuple(found[-MOST_SLOTS:])


def instant_of(local: datetime, zone: ZoneInfo) -> datetime:
    """Return the UTC instant of a local time.

    Args:
        local: without a zone.
        zone: where it is local.

    Returns:
        Of a time that comes twice the first; of one that never comes the end of the gap (for a date that never came, the
        midnight after it).
    """
    aware = local.replace(tzinfo=zone, fold=0)
    before = aware.utcoffset() or timedelta()
    found = aware.astimezone(UTC)
    after = found.astimezone(zone).utcoffset() or timedelta()
    if found.astimezone(zone).replace(tzinfo=None, fold=0) == local:
        return found
    high = int(found.timestamp())
    low = high - int((after - before).total_seconds()) - 1
    while high - low > 1:
        middle = (low + high) // 2
        if datetime.fromtimestamp(middle, zone).utcoffset() == before:
            low = middle
        else:
            high = middle
    return datetime.fromtimestamp(high, UTC)


def _slots(schedule: Schedule, zone: str, after: datetime) -> Iterator[Slot]:
    """Yield slots in the order in which they are due, from some before ``after`` on."""
    place = find_zone(zone)
    # a label is due when clocks first reach it, so that one due later is later than what clocks show now
    for local in _kind(schedule)[1].local(schedule, after.astimezone(place).date()):
        yield Slot(local.isoformat(timespec="minutes"), instant_of(local, place))


def _kind(schedule: Schedule) -> tuple[str, ScheduleKind]:
    return next((name, kind) for name, kind in SCHEDULES.items() if isinstance(schedule, kind.type))


# -- reading and printing


def parse_time(text: str) -> time:
    """Return a time of day; ConfigError for anything but "07:30"."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise ConfigError(f"time: expected one like '07:30', found '{text}'")
    return time(int(found[1]), int(found[2]))


def parse_days(text: str) -> tuple[int, ...]:
    """Return days of the week, 0 for Monday, of "mon,thu", "weekdays" or "Monday"; ConfigError for anything else."""
    if text.casefold() in {"weekday", "weekdays"}:
        return (0, 1, 2, 3, 4)
    days = {day: number for number, day in enumerate(DAYS)}
    found = {days.get(word.strip().casefold()[:3]) for word in text.split(",")}
    full = {word.strip().casefold() for word in text.split(",")}
    known = {*DAYS, *(name.casefold().removesuffix("s") for name in _DAY_NAMES), *(n.casefold() for n in _DAY_NAMES)}
    if None in found or not full <= known:
        raise ConfigError(f"day: expected some of {', '.join(DAYS)}, found '{text}'")
    return tuple(sorted(day for day in found if day is not None))


def _words(words: list[str], most: int, example: str) -> list[str]:
    if len(words) > most:
        raise ConfigError(f"schedule: expected one like '{example}', found more: '{' '.join(words)}'")
    return words


def _parse_daily(words: list[str]) -> Schedule:
    found = _words(words, 1, "daily 07:30")
    return Daily(*(parse_time(word) for word in found))


def _parse_weekly(words: list[str]) -> Schedule:
    found = _words(words, 2, "weekly mon,thu 07:30")
    days = parse_days(found[0]) if found else (0,)
    return Weekly(days, *(parse_time(word) for word in found[1:]))


def _parse_monthly(words: list[str]) -> Schedule:
    found = _words(words, 2, "monthly 1 07:30")
    day = found[0] if found else "1"
    if not day.isascii() or not day.isdigit() or not 1 <= int(day) <= 31:
        raise ConfigError(f"schedule: expected a day of the month from 1 to 31, found '{day}'")
    return Monthly(int(day), *(parse_time(word) for word in found[1:]))


def _parse_cron(words: list[str]) -> Schedule:
    expression = " ".join(words)
    try:
        if len(expression) > _MOST_CRON:
            raise CronSimError("too long")  # noqa: TRY301 # said as all others are
        first = next(CronSim(expression, datetime(2000, 1, 1)), None)  # noqa: DTZ001 # local time, without a zone on purpose
    except CronSimError as error:
        found = expression if len(expression) <= _MOST_CRON else f"{expression[:40]}\u2026"
        raise ConfigError(f"schedule: expected a cron expression like '30 7 * * 1', found '{found}'") from error
    if first is None or len(words) != 5:
        raise ConfigError(f"schedule: expected a cron expression with dates and five fields, found '{expression}'")
    return Cron(expression)


def _parse_each(words: list[str]) -> Schedule:
    _words(words, 0, "each-snapshot")
    return EachSnapshot()


def _clock(at: time) -> str:
    return at.isoformat(timespec="minutes")


def _ordinal(day: int) -> str:
    suffix = "th" if 10 <= day % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"{day}{suffix}"


def _monthly_words(schedule: Monthly) -> str:
    last = ", or the month's last day" if schedule.day > 28 else ""
    return f"on the {_ordinal(schedule.day)} of each month{last}, at {_clock(schedule.at)}"


def _weekly_words(schedule: Weekly) -> str:
    if schedule.days == (0, 1, 2, 3, 4):
        return f"weekdays at {_clock(schedule.at)}"
    return f"{join_words([_DAY_NAMES[day] for day in schedule.days])} at {_clock(schedule.at)}"


def _cron_words(schedule: Cron) -> str:
    said = CronSim(schedule.expression, datetime(2000, 1, 1)).explain()  # noqa: DTZ001 # as above
    return f"{said[:1].lower()}{said[1:]}"


# -- local times, ascending


def _dates(start: date) -> Iterator[date]:
    day = start
    while day < date.max:
        yield day
        day += timedelta(days=1)


def _weekly_local(schedule: Weekly, start: date) -> Iterator[datetime]:
    return (datetime.combine(day, schedule.at) for day in _dates(start) if day.weekday() in schedule.days)


def _daily_local(schedule: Daily, start: date) -> Iterator[datetime]:
    return (datetime.combine(day, schedule.at) for day in _dates(start))


def _monthly_local(schedule: Monthly, start: date) -> Iterator[datetime]:
    for day in _dates(start):
        following = day + timedelta(days=1)
        if day.day == schedule.day or (day.day < schedule.day and following.month != day.month):
            yield datetime.combine(day, schedule.at)


def _cron_local(schedule: Cron, start: date) -> Iterator[datetime]:
    begin = datetime.combine(start, time())
    yield from CronSim(schedule.expression, begin - timedelta(minutes=1))


def _never(schedule: EachSnapshot, start: date) -> Iterator[datetime]:
    del schedule, start
    return iter(())


#: kind -> how it is written, said and computed; the name is its first word
SCHEDULES: dict[str, ScheduleKind] = {
    "daily": ScheduleKind(
        Daily, _parse_daily, lambda s: _clock(s.at), lambda s: f"daily at {_clock(s.at)}", _daily_local
    ),
    "weekly": ScheduleKind(
        Weekly,
        _parse_weekly,
        lambda s: f"{','.join(DAYS[day] for day in s.days)} {_clock(s.at)}",
        _weekly_words,
        _weekly_local,
    ),
    "monthly": ScheduleKind(
        Monthly, _parse_monthly, lambda s: f"{s.day} {_clock(s.at)}", _monthly_words, _monthly_local
    ),
    "cron": ScheduleKind(Cron, _parse_cron, lambda s: s.expression, _cron_words, _cron_local),
    "each-snapshot": ScheduleKind(
        EachSnapshot, _parse_each, lambda _: "", lambda _: "after each snapshot with news", _never
    ),
}


def parse_first(text: str) -> First:
    """Return what a first digest holds: "none", "latest:10" or "since:2026-09-01".

    Raises:
        ConfigError: it is none of these.
    """
    kind, _, value = text.partition(":")
    try:
        if kind == "none" and not value:
            return First("none")
        if kind == "latest" and (not value or 1 <= int(value) <= MOST_FIRST):
            return First("latest", latest=int(value or 10))
        if kind == "since":
            return First("since", since=date.fromisoformat(value))
    except ValueError:
        pass
    raise ConfigError(f"first digest: expected none, latest:10 or since:2026-09-01, found '{text}'")
