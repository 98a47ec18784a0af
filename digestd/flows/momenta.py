"""A topic's momentum, as its source states it and as we counted it. Floor 4. Entry point: :func:`topic_momenta`.

Our count is by published date, over 28 days and over Monday weeks, up to the day on which the listing was last seen. It is
shown as a number only where all papers of the eight weeks are known by the listing's own showing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta

from digestd.coverage import top_stretch
from digestd.model.digest import Momentum
from digestd.model.snapshot import Coverage, Kind, Stretch
from digestd.model.topic import Topic
from digestd.momentum import (
    WEEKS_COMPARED,
    binomial_p,
    choose,
    counted_momentum,
    disagreement,
    stated_momentum,
)
from digestd.phrases import count_noun, day
from digestd.ports import History

#: weeks in a chart; two times four of them are compared
CHART_WEEKS = 12

#: a listing not looked at for so long may have grown: its own count is no longer complete
FRESH = timedelta(days=7)

#: a listing names papers up to so many days after their date
_LATE_DAYS = 7

_DAY, _WEEK, _FOUR_WEEKS = timedelta(days=1), timedelta(weeks=1), timedelta(weeks=4)


@dataclass(frozen=True, slots=True)
class Momenta:
    """What the source states of a topic and what we counted."""

    stated: Momentum | None
    counted: Momentum
    as_of: date  #: last day that the count includes
    seen_at: datetime | None = None  #: when the listing's newest page was seen; None: no listing was
    readings: tuple[int, ...] = ()  #: our count of "the last four weeks" in the other senses that a source may mean
    incomplete: str = ""  #: why our count is only a lower bound, in words; "" if it is not
    missing: int = 0  #: papers that the listing's totals prove and no page showed
    fresh: bool = False  #: whether the listing was seen so lately that its figures are those of today

    @property
    def chosen(self) -> Momentum:
        """The one to print."""
        return choose(self.stated, self.counted)

    @property
    def disagreement(self) -> str:
        """How the source's count differs from ours by more than coverage explains, in words; "" if it does not."""
        return disagreement(self.stated, self.counted, self.missing, readings=self.readings)


def topic_momenta(history: History, topic: Topic, now: datetime) -> Momenta:
    """Return a topic's momentum, stated and counted, as of the day on which its listing was last seen."""
    coverage, stated = history.coverage(topic.slug), history.stated(topic.slug)
    top = top_stretch(coverage.stretches)
    seen_at = top.seen_at if top is not None else None
    as_of = min(seen_at or now, now).date()
    why = _incomplete_because(history, topic.slug, coverage, as_of, now)
    return Momenta(
        stated=stated_momentum(stated) if stated is not None else None,
        counted=_counted(history, topic.slug, coverage, as_of, complete=not why),
        as_of=as_of,
        seen_at=seen_at,
        readings=_readings(history, topic.slug, as_of),
        incomplete=why,
        missing=coverage.missing,
        fresh=seen_at is not None and now - seen_at <= FRESH,
    )


def is_complete(coverage: Coverage, since: date, now: datetime) -> bool:
    """Return whether all papers with a date published since a day are known, by the listing's own showing."""
    return not _hole(coverage, since, now)


def _counted(history: History, slug: str, coverage: Coverage, as_of: date, *, complete: bool) -> Momentum:
    """Return our own figures as of a day."""
    top = top_stretch(coverage.stretches)
    monday = as_of - timedelta(days=as_of.weekday())
    weeks = _covered_weeks(history.weekly(slug, monday - (CHART_WEEKS - 1) * _WEEK, monday + _DAY), coverage)
    current, previous = _two_counts(history, slug, as_of)
    counted = counted_momentum(
        [papers for _, papers in weeks],
        current,
        previous,
        complete=complete,
        weekly_from=weeks[0][0] if weeks else None,
        weeks=_weeks_of_data(top, monday) if complete and top is not None and _is_whole(coverage) else None,
    )
    if top is None or not current < previous or not 0 < (as_of - top.until).days <= _LATE_DAYS:
        return counted
    # the listing has not named the papers of its last days yet: a fall must stand without them too
    late, before = _two_counts(history, slug, top.until)
    return replace(counted, late_p_value=binomial_p(late, before) if late < before else 1.0)


def _two_counts(history: History, slug: str, last: date) -> tuple[int, int]:
    """Return the papers of the 28 days up to a day, that day included, and those of the 28 days before."""
    end = last + _DAY
    middle, first = end - _FOUR_WEEKS, end - 2 * _FOUR_WEEKS
    return history.count(slug, middle, end), history.count(slug, first, middle)


def _readings(history: History, slug: str, as_of: date) -> tuple[int, ...]:
    """Return the counts of what else "the last four weeks" can mean: sources do not say how they cut them.

    28 days that end the day before; four calendar weeks, with the unfinished one and without it.
    """
    this_week = as_of - timedelta(days=as_of.weekday())
    ends = (as_of, this_week + _WEEK, this_week)
    return tuple(history.count(slug, end - _FOUR_WEEKS, end) for end in ends)


def _covered_weeks(weeks: Sequence[tuple[date, int]], coverage: Coverage) -> list[tuple[date, int]]:
    """Return the weeks of which all days were shown: one cut at its beginning would read as a rise."""
    top = top_stretch(coverage.stretches)
    if top is None:
        return []
    return [(monday, papers) for monday, papers in weeks if top.since < monday or _is_whole(coverage)]


def _weeks_of_data(top: Stretch, monday: date) -> int:
    """Return in how many calendar weeks, this one included, the topic has had papers since its first one."""
    first = top.since - timedelta(days=top.since.weekday())
    return (monday - first) // _WEEK + 1


def _is_whole(coverage: Coverage) -> bool:
    """Return whether the listing is known to its very end: before its oldest paper there is none."""
    if len(coverage.stretches) != 1 or coverage.missing or coverage.stretches[0].open_below:
        return False
    return coverage.total is not None and coverage.known == coverage.total


def _incomplete_because(history: History, slug: str, coverage: Coverage, as_of: date, now: datetime) -> str:
    """Return why the count of the eight weeks up to a day is only a lower bound; "" if it is not."""
    first = as_of + _DAY - WEEKS_COMPARED * _WEEK
    return _hole(coverage, first, now) or _undated(history, slug, coverage, first)


def _hole(coverage: Coverage, first: date, now: datetime) -> str:
    """Return why papers published since a day may be unknown, by the listing's own showing; "" if none are."""
    top = top_stretch(coverage.stretches)
    if top is None or top.seen_at is None:
        return "no page of a listing has been read"
    if now - top.seen_at > FRESH:
        return f"the listing was last seen on {day(top.seen_at.date(), beside=now.date())}"
    if coverage.missing:
        return f"{count_noun(coverage.missing)} of the listing {'was' if coverage.missing == 1 else 'were'} never shown"
    if top.open_below:
        return "the oldest page that was read was cut"
    if top.since >= first and not _is_whole(coverage):
        return f"the listing is known from {day(top.since + _DAY, beside=now.date())} only"
    return ""


def _undated(history: History, slug: str, coverage: Coverage, first: date) -> str:
    """Return how many papers without a date may belong to these weeks, in words; "" if none do."""
    if coverage.known == history.count(slug, date.min, date.max):
        return ""  # the usual case, without a look at the papers
    rows = history.papers(slug, kinds=tuple(Kind))
    late = [
        row for row in rows if row.known.counted and row.known.paper.published is None and row.seen_at.date() >= first
    ]
    if not late:
        return ""
    return f"{count_noun(len(late))} without a date {'was' if len(late) == 1 else 'were'} seen in these weeks"
