"""Which dates of a topic's listing have been seen without a hole. Floor 1, pure.

Entry point: :func:`extend`. A page is an unbroken stretch of its listing, newest first; two stretches become one when they
share a paper, or when the growth of the listing's total is fully explained by the papers seen between them. Everything
else may hide a gap, and is kept apart. A page is a window: absence never means removal.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta

from digestd.model.snapshot import Page, Stretch

#: a listing that claims papers of the last four weeks and shows none of them does not show its newest ones
FOUR_WEEKS = timedelta(days=28)

#: charts end in a week, not on a day, and listings name a paper days after its date
AS_OF_SLACK = timedelta(days=14)


@dataclass(frozen=True, slots=True)
class Extension:
    """A topic's stretches after one more page."""

    stretches: tuple[Stretch, ...]  #: newest first
    page: int | None  #: index of the stretch that the page belongs to, None for a page without dates
    merged: tuple[tuple[int, int], ...] = ()  #: (key that ends, key that takes over)


def extend(
    stretches: Sequence[Stretch], page: Page, *, shared: frozenset[int], unseen: int, fetched_at: datetime
) -> Extension:
    """Return the stretches after a listing page.

    Args:
        stretches: stored ones, newest first, each with its key.
        page: the page; its papers without a date count for nothing here.
        shared: keys of the stretches that hold a paper of the page.
        unseen: papers of the page that no listing page of the topic has shown before.
        fetched_at: when the page was fetched; decides whose total and time a merged stretch keeps.
    """
    days = _days_in_order([paper.published for paper in page.papers if paper.published is not None])
    if not days:
        return Extension(tuple(stretches), None)
    own = Stretch(
        since=days[-1], until=days[0], total=page.total_papers, seen_at=fetched_at, open_below=page.incomplete
    )
    joined = [stretch for stretch in stretches if stretch.key in shared]
    if not joined:
        explained = _explained_by_total(stretches, page, own, unseen)
        joined = [explained] if explained else []
    rest = [stretch for stretch in stretches if stretch not in joined]
    whole = own
    for stretch in joined:
        whole = _join(whole, stretch)
    keys = sorted(stretch.key for stretch in joined if stretch.key is not None)
    if keys:
        whole = replace(whole, key=keys[0])
    result = sorted([*rest, whole], key=lambda stretch: (stretch.until, stretch.since), reverse=True)
    return Extension(tuple(result), result.index(whole), tuple((key, keys[0]) for key in keys[1:]))


def _days_in_order(days: Sequence[date]) -> list[date]:
    """Return the longest run of dates, newest first, that leaves out those that break the listing's order.

    One paper with a mistyped year, or one pinned on top, must not stretch what was seen over years.
    """
    ends: list[int] = []  # negated ordinal of the last date of the best run of each length
    at: list[int] = []  # where that date stands
    before: list[int] = []
    for place, day in enumerate(days):
        length = bisect_right(ends, -day.toordinal())
        before.append(at[length - 1] if length else -1)
        ends[length : length + 1] = [-day.toordinal()]
        at[length : length + 1] = [place]
    run: list[date] = []
    place = at[-1] if at else -1
    while place >= 0:
        run.append(days[place])
        place = before[place]
    return run[::-1]


def may_show_newest(page: Page, newest: date, observed: date | None) -> bool:
    """Return whether a page can be the first of its listing, judged by what it says of itself.

    A page that states papers in the last four weeks but whose newest paper is older than that is a deeper page. Without a
    statement or a date to hold it against, it may be the first.
    """
    momentum = page.momentum
    if momentum is None or momentum.papers_last_four_weeks < 1:
        return True
    as_of = momentum.chart_to or observed
    return as_of is None or newest >= as_of - FOUR_WEEKS - AS_OF_SLACK


def is_covered(stretches: Sequence[Stretch], day: date) -> bool:
    """Return whether all papers of a day were shown: it lies inside a stretch, not on its edge."""
    return any(stretch.covers(day) for stretch in stretches)


def top_stretch(stretches: Sequence[Stretch]) -> Stretch | None:
    """Return the stretch with the newest date, None if there is none."""
    return max(stretches, key=lambda stretch: stretch.until, default=None)


def _explained_by_total(stretches: Sequence[Stretch], page: Page, own: Stretch, unseen: int) -> Stretch | None:
    """Return the top stretch if the listing grew by exactly the papers of this page since the top was seen.

    Only a page that may be the first of its listing says how many papers stand above the old top.
    """
    top = top_stretch(stretches)
    if top is None or top.total is None or page.total_papers is None or top.seen_at is None or own.seen_at is None:
        return None
    if own.until < top.until or own.since < top.until or own.seen_at < top.seen_at:
        return None
    if not may_show_newest(page, own.until, own.seen_at.date()):
        return None
    growth = page.total_papers - top.total
    return top if growth == unseen == len(page.papers) > 0 else None


def _join(one: Stretch, other: Stretch) -> Stretch:
    """Return both as one: outer dates, the later total, open below if the one that reaches lower is."""
    later = one if _instant(one) >= _instant(other) else other
    if one.since == other.since:
        open_below = one.open_below and other.open_below
    else:
        open_below = min(one, other, key=lambda stretch: stretch.since).open_below
    return Stretch(
        since=min(one.since, other.since),
        until=max(one.until, other.until),
        key=other.key if one.key is None else one.key,
        total=later.total if later.total is not None else (one.total if later is other else other.total),
        seen_at=later.seen_at,
        open_below=open_below,
    )


def _instant(stretch: Stretch) -> float:
    return stretch.seen_at.timestamp() if stretch.seen_at is not None else float("-inf")
