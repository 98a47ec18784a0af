"""How well a source is, by the polls it had. Floor 1: pure; entry point is `health`.

Broken, not a topic page, gap, stale, quiet and ok are told apart, the worst one that holds is reported: a quiet Saturday
is nothing to worry about, yesterday's batch served again on a Tuesday is.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta

from digestd.model.snapshot import EMPTY_FEED, Gap
from digestd.model.source import Calendar, HealthState, OutcomeKind, Poll, SourceHealth

_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_WEEK_END = frozenset({5, 6})


def health(
    polls: Sequence[Poll],
    *,
    next_try_at: datetime | None = None,
    daily: bool = False,
    calendar: Calendar | None = None,
) -> SourceHealth:
    """Return how well a source is by its latest poll, and since when.

    Args:
        polls: oldest first, may be empty; some fifty are enough.
        next_try_at: when it will be asked again; None if never.
        daily: whether a new batch is due on each working day.
        calendar: when the source rests; None: week-ends, UTC.
    """
    if not polls:
        return SourceHealth(HealthState.OK, why="not polled yet", next_try_at=next_try_at)
    days = calendar or Calendar()
    state, why = _judge_poll(polls, daily=daily, calendar=days)
    since = polls[-1].at
    for end in range(len(polls) - 1, 0, -1):
        if _judge_poll(polls[:end], daily=daily, calendar=days)[0] is not state:
            break
        since = polls[end - 1].at
    gaps = _latest_gaps(polls) if state is HealthState.GAP else ()
    return SourceHealth(state, since, why, next_try_at, gaps)


def resting_reason(at: datetime, calendar: Calendar) -> str | None:
    """Return why no batch is due on this day, in words; None on a working day."""
    return _rest_of(at.astimezone(calendar.zone).date(), calendar)


def _rest_of(day: date, calendar: Calendar) -> str | None:
    if day in calendar.holidays:
        return f"holiday: {calendar.holidays[day]}" if calendar.holidays[day] else "holiday"
    if day.weekday() in calendar.rest_days:
        weekend = calendar.rest_days == _WEEK_END
        return f"{'week-end' if weekend else 'rest day'}: {_WEEKDAYS[day.weekday()]}"
    return None


def _judge_poll(polls: Sequence[Poll], *, daily: bool, calendar: Calendar) -> tuple[HealthState, str]:
    """Return the state that the last of these polls shows, with words."""
    last = polls[-1]
    if last.unknown_format:
        return HealthState.NOT_A_TOPIC_PAGE, last.why or "no parser knows what arrives"
    if last.unreadable or last.outcome not in {OutcomeKind.OK, OutcomeKind.NOT_MODIFIED}:
        return HealthState.BROKEN, last.why or "it could not be read"
    gaps = _latest_gaps(polls)
    if gaps:
        return HealthState.GAP, "nothing seen for " + ", ".join(_in_words(gap) for gap in gaps)
    stale = _stale_reason(polls, daily=daily, calendar=calendar)
    if stale:
        return HealthState.STALE, stale
    page = _latest_page(polls)
    if page is not None and page.papers == 0:
        own = page.quiet_reason if page.quiet_reason != EMPTY_FEED else None
        return HealthState.QUIET, own or resting_reason(last.at, calendar) or "empty, without a reason given"
    return HealthState.OK, ""


def _pages(polls: Sequence[Poll]) -> list[Poll]:
    """Return the polls that brought a page which was read, oldest first."""
    return [
        poll for poll in polls if poll.outcome is OutcomeKind.OK and poll.papers is not None and not poll.unreadable
    ]


def _latest_page(polls: Sequence[Poll]) -> Poll | None:
    pages = _pages(polls)
    return pages[-1] if pages else None


def _latest_gaps(polls: Sequence[Poll]) -> tuple[Gap, ...]:
    page = _latest_page(polls)
    return page.gaps if page is not None else ()


def _stale_reason(polls: Sequence[Poll], *, daily: bool, calendar: Calendar) -> str:
    """Return why the batch served is an old one, in words; empty if it is not.

    An earlier batch after a later one is stale anywhere. The same batch as on an earlier day is stale only where a new
    one is due each working day and its hour has passed; a page that calls itself newer than its papers is stale too.
    """
    pages = [page for page in _pages(polls) if page.batch is not None and page.papers]
    last = polls[-1]
    if not pages or resting_reason(last.at, calendar):
        return ""
    current = pages[-1]
    run = len(pages)
    while run > 0 and pages[run - 1].batch == current.batch:
        run -= 1
    first = pages[run]
    if any(page.batch == current.batch for page in pages[:run]):
        return f"the batch of {_day(next(p for p in pages if p.batch == current.batch), calendar)} is served again"
    if not daily:
        return ""
    local = last.at.astimezone(calendar.zone)
    claims_newer = current.issued is not None and first.issued is not None and current.issued > first.issued
    out_until = local.date() if local.time() >= calendar.due_by else local.date() - timedelta(days=1)
    overdue = _works_between(_day(first, calendar), out_until, calendar)
    return f"the batch of {_day(first, calendar)} is served again" if overdue or claims_newer else ""


def _works_between(after: date, upto: date, calendar: Calendar) -> bool:
    """Return whether there is a working day later than ``after`` and not later than ``upto``."""
    days = (after + timedelta(days=number) for number in range(1, (upto - after).days + 1))
    return any(_rest_of(day, calendar) is None for day in days)


def _day(poll: Poll, calendar: Calendar) -> date:
    return poll.at.astimezone(calendar.zone).date()


def _in_words(gap: Gap) -> str:
    return f"{gap.since.isoformat()} to {gap.until.isoformat()}"
