"""Forms of readers: filled in for a subscription, and read back with a word on what cannot be used. Floor 1, pure.

Entry points: :func:`fields_of`, :func:`typed_fields`, :func:`read_change`, :func:`read_every`, :func:`limit_key`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import TypeVar

from digestd.errors import ConfigError
from digestd.filters import MOST_RULES, format_rule, parse_rule
from digestd.model.forms import PreferenceChange, PreferenceFields
from digestd.model.subscription import (
    Daily,
    Filter,
    FilterRule,
    Monthly,
    Reader,
    Schedule,
    Subscription,
    Weekly,
)
from digestd.phrases import full_day
from digestd.schedule import DAYS, find_zone, parse_days, parse_time

FORMATS = ("html", "text")
#: most papers in a digest that a form may ask for
MOST_BUDGET = 200
#: longest pause: a date that is a slip of the year is said, not taken
MOST_PAUSE = timedelta(days=3 * 366)

#: how often -> schedule of the form to follow
EVERY: Mapping[str, Schedule] = {"weekly": Weekly(), "daily": Daily(), "monthly": Monthly()}

Value = TypeVar("Value")


def read_every(text: str) -> Schedule:
    """Return the schedule of the form to follow; ConfigError for anything but its choices."""
    if text not in EVERY:
        raise ConfigError(f"how often: expected one of {', '.join(EVERY)}, found '{_shown(text)}'")
    return EVERY[text]


def limit_key(reader: Reader) -> str:
    """Return what mails to strangers are counted by: one mailbox has many spellings, and a flood uses all of them.

    What follows a "+" and all dots before the @-sign are left out. That two people share a key is rare and harmless: one
    of them is asked to wait.
    """
    local, _, domain = reader.envelope.casefold().rpartition("@")
    plain = local.partition("+")[0].replace(".", "")
    return f"{plain or local}@{domain}"


def fields_of(subscription: Subscription, today: date) -> PreferenceFields:
    """Return the form that says what a subscription is."""
    wanted = subscription.preferences
    until = subscription.paused_until
    given = PreferenceFields(
        topics=subscription.topics,
        every="keep",
        zone=subscription.zone,
        include="\n".join(format_rule(rule) for rule in wanted.filter.include),
        exclude="\n".join(format_rule(rule) for rule in wanted.filter.exclude),
        format=wanted.format,
        budget="" if wanted.budget is None else str(wanted.budget),
        pause=until.isoformat() if until is not None and until > today else "",
        all_quiet=wanted.all_quiet,
        alert=wanted.alert,
    )
    match subscription.schedule:
        case Daily(at):
            return replace(given, every="daily", at=at.isoformat(timespec="minutes"))
        case Weekly((day,), at):
            return replace(given, every="weekly", day=DAYS[day], at=at.isoformat(timespec="minutes"))
        case Monthly(month_day, at):
            return replace(given, every="monthly", month_day=str(month_day), at=at.isoformat(timespec="minutes"))
        case _:  # several days, cron, each snapshot: the form has no words for them, and must not lose them
            return given


def typed_fields(pairs: Sequence[tuple[str, str]]) -> PreferenceFields:
    """Return the form as it came in; of a name that comes twice the last counts, of topics all."""
    last = {name: _clean(value) for name, value in pairs}
    lines = {name: _clean(value, lines=True) for name, value in pairs if name in {"include", "exclude"}}
    return PreferenceFields(
        topics=tuple(dict.fromkeys(_clean(value) for name, value in pairs if name == "topic")),
        every=last.get("every", ""),
        day=last.get("day", ""),
        month_day=last.get("month_day", ""),
        at=last.get("at", ""),
        zone=last.get("zone", ""),
        include=lines.get("include", ""),
        exclude=lines.get("exclude", ""),
        format=last.get("format", ""),
        budget=last.get("budget", ""),
        pause=last.get("pause", ""),
        all_quiet=last.get("all_quiet") == "yes",
        alert=last.get("alert") == "yes",
    )


def read_change(
    typed: PreferenceFields, current: Subscription, known: Sequence[str], *, today: date
) -> tuple[PreferenceChange | None, tuple[str, ...]]:
    """Return what the form asks for, or None and what is wrong with it, one line for each field.

    Args:
        typed: the form.
        current: the subscription that it is about; topics that stay keep their order.
        known: slugs of all topics.
        today: in the reader's zone; a pause must end later.
    """
    problems: list[str] = []

    def tried(read: Callable[[], Value], otherwise: Value) -> Value:
        try:
            return read()
        except ConfigError as error:
            problems.append(str(error))
            return otherwise

    before = current.preferences
    topics = tried(lambda: _read_topics(typed.topics, current.topics, known), current.topics)
    schedule = tried(lambda: _read_schedule(typed, current.schedule), current.schedule)
    zone = tried(lambda: str(find_zone(typed.zone)), current.zone)
    wanted = Filter(
        include=tried(lambda: _read_rules(typed.include, "include"), before.filter.include),
        exclude=tried(lambda: _read_rules(typed.exclude, "exclude"), before.filter.exclude),
    )
    preferences = replace(
        before,
        filter=wanted,
        format=tried(lambda: _read_format(typed.format), before.format),
        budget=tried(lambda: _read_budget(typed.budget), before.budget),
        all_quiet=typed.all_quiet,
        alert=typed.alert,
    )
    until = tried(lambda: _read_pause(typed.pause, today), current.paused_until)
    if problems:
        return None, tuple(problems)
    return PreferenceChange(topics, schedule, zone, preferences, until), ()


def less_often(schedule: Schedule) -> str:
    """Return the rarer choice of the form that comes next after a schedule, "" if there is none."""
    match schedule:
        case Monthly():
            return ""
        case Weekly((_,)):
            return "monthly"
        case _:
            return "weekly"


# -- single fields


def _read_topics(typed: Sequence[str], before: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    unknown = [slug for slug in typed if slug not in known]
    if unknown:
        raise ConfigError(f"topics: expected some of those listed here, found '{_shown(unknown[0])}'")
    if not typed:
        raise ConfigError("topics: expected at least one, found none; to get no more mail, unsubscribe")
    kept = [slug for slug in before if slug in typed]
    return tuple(kept + [slug for slug in typed if slug not in kept])


def _read_schedule(typed: PreferenceFields, current: Schedule) -> Schedule:
    match typed.every:
        case "keep":
            return current
        case "daily":
            return Daily(parse_time(typed.at[:5]))
        case "weekly":
            return Weekly(_read_day(typed.day), parse_time(typed.at[:5]))
        case "monthly":
            return Monthly(_read_number(typed.month_day, "day of the month", 31), parse_time(typed.at[:5]))
        case other:
            raise ConfigError(f"how often: expected daily, weekly or monthly, found '{_shown(other)}'")


def _read_day(text: str) -> tuple[int, ...]:
    if text not in DAYS:
        raise ConfigError(f"day: expected one of {', '.join(DAYS)}, found '{_shown(text)}'")
    return parse_days(text)


def _read_number(text: str, what: str, most: int) -> int:
    plain = text.isascii() and text.isdigit() and len(text) <= 6
    if not plain or not 1 <= int(text) <= most:
        raise ConfigError(f"{what}: expected a number from 1 to {most}, found '{_shown(text)}'")
    return int(text)


def _read_rules(text: str, side: str) -> tuple[FilterRule, ...]:
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) > MOST_RULES:
        raise ConfigError(f"filter: expected at most {MOST_RULES} rules to {side}, found {len(lines)}")
    return tuple(dict.fromkeys(parse_rule(line) for line in lines))


def _read_format(text: str) -> str:
    if text not in FORMATS:
        raise ConfigError(f"form: expected one of {', '.join(FORMATS)}, found '{_shown(text)}'")
    return text


def _read_budget(text: str) -> int | None:
    return _read_number(text, "papers in a digest", MOST_BUDGET) if text else None


def _read_pause(text: str, today: date) -> date | None:
    if not text:
        return None
    try:
        until = date.fromisoformat(text)
    except ValueError as error:
        raise ConfigError(f"pause until: expected a day like '2026-12-24', found '{_shown(text)}'") from error
    if not today < until <= today + MOST_PAUSE:
        raise ConfigError(
            f"pause until: expected a day after {full_day(today)} and within three years, found '{until}'"
        )
    return until


def _clean(text: str, *, lines: bool = False) -> str:
    """Return what was typed without signs that no keyboard has; line breaks only where lines are asked for."""
    if lines:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
        return "\n".join(_clean(line) for line in text.split("\n")).strip("\n")
    return "".join(char if char.isprintable() else " " for char in text).strip()


def _shown(text: str) -> str:
    return text[:60] + "\u2026" if len(text) > 60 else text
