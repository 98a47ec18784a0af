"""Counts of papers become a Momentum, and the question whether a change is more than counting noise. Floor 1.

Entry points: ``stated_momentum``, ``counted_momentum``, ``choose``. Stated figures are the source's claim and are never
recomputed; counted figures come from the history. The two are kept apart up to the moment when one is chosen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import date

from digestd.model.digest import Momentum, Trend
from digestd.model.snapshot import StatedMomentum

#: A change with a p-value from here on is called steady.
NOISE_P = 0.10
#: Below this, in both periods, a percent says more than the papers do.
FEW = 10
#: A percent on fewer papers than these is a number of accidents.
FEW_BEFORE = 5
#: A topic with fewer weeks of data than these has no four weeks to be held against.
WEEKS_COMPARED = 8

_ONE = 1 << 1200  # finer than the smallest double (2**-1074), so that rounding is never seen in a p-value
_EXACT = 1200  # papers up to which the coefficients are small enough to be taken whole
_Z95 = 1.959963984540054


def binomial_p(current: int, previous: int) -> float:
    """Return the exact two-sided p-value of a change from ``previous`` to ``current``.

    If papers came at one steady rate, each of the C+P papers fell into the later four weeks with probability one half,
    so C is binomial (C+P, 1/2). The p-value is the chance of a split at least as uneven as the one seen: twice the
    smaller tail, which for one half is the same as summing all splits that are no more likely.

    The terms are walked down from the middle one as whole numbers relative to it, so nothing overflows and the cost
    grows with the square root of the counts only.

    Args:
        current: papers in the last four weeks, 0 or more.
        previous: papers in the four weeks before, 0 or more.

    Returns:
        A probability; 1.0 for equal counts, none at all included; 0.0 where it is too small for a float.

    Raises:
        ValueError: if a count is negative.

    Source: conditional test of two Poisson counts, Przyborowski and Wilenski, Biometrika 31 (1940), 313-323.
    """
    if current < 0 or previous < 0:
        raise ValueError(f"counts must not be negative, found {current} and {previous}")
    if current == previous:
        return 1.0
    total, smaller = current + previous, min(current, previous)
    half = tail = 0
    # Small counts walk the coefficients themselves, where every division is exact; large ones scale the middle to one.
    k, middle = total // 2, math.comb(total, total // 2) if total <= _EXACT else _ONE
    term = middle
    while term:
        half += term
        if k <= smaller:
            tail += term
        term = term * k // (total - k + 1)
        k -= 1
    whole = 2 * half - (middle if total % 2 == 0 else 0)
    return min(1.0, 2 * tail / whole)


def change_interval(current: int, previous: int) -> tuple[float, float] | None:
    """Return the 95 % interval of the change in percent; None where a count is zero.

    Source: log-ratio (Wald) interval of two Poisson counts, standard error sqrt(1/C + 1/P); Katz, Baptista, Azen and
    Pike, Biometrics 34 (1978), 469-474. 54 after 22 gives +50 to +303.
    """
    if current <= 0 or previous <= 0:
        return None
    middle = math.log(current / previous)
    reach = _Z95 * math.sqrt(1 / current + 1 / previous)
    return 100 * math.expm1(middle - reach), 100 * math.expm1(middle + reach)


def whole_percent(current: int, previous: int) -> int | None:
    """Return the change in whole percent, halves away from zero; None from none (there is no percent of nothing)."""
    if previous <= 0:
        return None
    change = 100 * (current - previous)
    rounded = (2 * abs(change) + previous) // (2 * previous)
    return rounded if change >= 0 else -rounded


def previous_counts(current: int, percent: int) -> range:
    """Return all earlier counts from which ``current`` is a change by the printed percent.

    A printed percent is a rounded one and nobody says how halves went, so both neighbours of a half count as fits. Only
    if no whole number fits by rounding is the percent read as cut off ("down 12%" for 41 after 47, which is 12.77).

    Args:
        current: papers in the last four weeks.
        percent: signed whole percent as printed.

    Returns:
        The fits, ascending; empty if there is none, or if there is no upper limit to them (nothing left: down 100%).
    """
    if current <= 0 or percent <= -100:
        return range(0)
    # |100 (C - P) / P - r| <= 1/2  <=>  200 C / (200 + 2r + 1) <= P <= 200 C / (200 + 2r - 1)
    rounded = range(-(-200 * current // (201 + 2 * percent)), 200 * current // (199 + 2 * percent) + 1)
    if rounded:
        return rounded
    # Cut off toward zero: r <= change < r + 1 for a rise, r - 1 < change <= r for a fall.
    if percent >= 0:
        return range(100 * current // (101 + percent) + 1, 100 * current // (100 + percent) + 1)
    return range(-(-100 * current // (100 + percent)), -(-100 * current // (99 + percent)))


def stated_momentum(stated: StatedMomentum) -> Momentum:
    """Return the source's figures as a Momentum: its count, percent, share and weeks exactly as printed.

    The earlier count is the printed one, else the one whole number that the count and the percent leave. Where several
    fit, it stays unknown, and the p-value is the largest among them: a rise is only one if every fit says so.
    """
    count, percent, previous = stated.papers_last_four_weeks, stated.change_percent, stated.previous_papers
    nearest = previous
    if previous is not None and percent is not None and percent * (count - previous) < 0:
        nearest = None  # the source contradicts itself: its figures are printed, but nothing is concluded from them
    elif previous is None and percent is not None:
        fits = previous_counts(count, percent)
        if fits:
            nearest = _nearest(fits, count)
            previous = fits[0] if len(fits) == 1 else None
    return Momentum(
        current=count,
        previous=previous,
        change_percent=percent,
        share_percent=stated.share_percent,
        share_below=stated.share_below,
        source="stated",
        weekly=stated.weekly,
        weekly_from=stated.chart_from,
        partial=bool(stated.weekly),
        p_value=None if nearest is None else binomial_p(count, nearest),
        interval=None if previous is None else change_interval(count, previous),
    )


def _nearest(fits: range, count: int) -> int:
    """Return the fit next to the count; of all fits it has the largest p-value."""
    return min(max(count, fits[0]), fits[-1])


def counted_momentum(
    weekly: Sequence[int],
    last28: int,
    previous28: int,
    *,
    complete: bool,
    weekly_from: date | None = None,
    weeks: int | None = None,
) -> Momentum:
    """Return our own figures as a Momentum.

    Args:
        weekly: papers a Monday week, oldest first, the last week unfinished; may be empty.
        last28: papers published in the last 28 days.
        previous28: papers published in the 28 days before.
        complete: whether the coverage has no hole in these eight weeks; without it the figures are a lower bound.
        weekly_from: Monday of the first week.
        weeks: weeks of data if fewer than eight, else None.

    Returns:
        Source "counted". No percent for small numbers or from none.
    """
    few = is_few(last28, previous28)
    return Momentum(
        current=last28,
        previous=previous28,
        change_percent=None if few else whole_percent(last28, previous28),
        source="counted",
        weekly=tuple(weekly) if complete else (),
        weekly_from=weekly_from if complete and weekly else None,
        partial=complete and bool(weekly),
        weeks=weeks if weeks is not None and weeks < WEEKS_COMPARED else None,
        p_value=binomial_p(last28, previous28),
        interval=None if few else change_interval(last28, previous28),
        complete=complete,
    )


def choose(stated: Momentum | None, counted: Momentum | None) -> Momentum:
    """Return the momentum to print: the counted one if its coverage is complete, else the stated one, else none.

    The share of all papers is only ever the source's, so it goes along with counted figures too.
    """
    if counted is not None and counted.complete and counted.current is not None:
        if stated is None:
            return counted
        return replace(counted, share_percent=stated.share_percent, share_below=stated.share_below)
    return stated if stated is not None else Momentum()


def disagreement(
    stated: Momentum | None, counted: Momentum | None, missing: int = 0, *, readings: Sequence[int] = ()
) -> str:
    """Return in words how the source's count differs from ours by more than coverage explains; "" if it does not.

    Holes and missing papers explain that we count fewer, never that we count more.

    Args:
        stated: the source's figures, None if it states none.
        counted: our figures over the same 28 days, None if nothing was counted.
        missing: papers that the listing's totals prove and no page showed.
        readings: our counts by what else the source may call four weeks; a figure between them is no disagreement.
    """
    if stated is None or counted is None or stated.current is None or counted.current is None:
        return ""
    short = stated.current - max(counted.current, *readings, 0)
    if short <= 0 and stated.current >= min((counted.current, *readings)):
        return ""
    if short > 0 and (not counted.complete or short <= missing):
        return ""
    known = f" and {missing} are known to be missing" if missing else ""
    return f"the source states {stated.current} in the last four weeks, {counted.current} were counted{known}"


def is_few(current: int, previous: int) -> bool:
    """Return whether two counts are too small for a percent: both under 10, or fewer than 5 before."""
    return max(current, previous) < FEW or previous < FEW_BEFORE


def trend_of(momentum: Momentum, new: int | None = None) -> Trend:
    """Return the case of a headline, tested in the order of look/DESIGN.md §6.

    Args:
        momentum: the chosen figures.
        new: papers new in this digest; None where there is no digest (pages, listings), then nothing is quiet.
    """
    if momentum.weeks is not None and momentum.weeks < WEEKS_COMPARED:
        return Trend.NEW_TOPIC
    if new == 0:
        return Trend.QUIET
    current, previous, p_value = momentum.current, momentum.previous, momentum.p_value
    if current is None or p_value is None:
        return Trend.UNKNOWN
    if previous is not None and is_few(current, previous):
        return Trend.FEW
    if max(p_value, momentum.late_p_value or 0.0) >= NOISE_P or momentum.change_percent == 0:
        return Trend.STEADY
    if previous is not None:
        return Trend.UP if current > previous else Trend.DOWN
    return Trend.UP if (momentum.change_percent or 0) > 0 else Trend.DOWN


def significance_key(momentum: Momentum) -> tuple[float, int]:
    """Return a sort key that puts the surest change first: by p-value, then by papers gained or lost.

    A percent would put 12 after 5 before 540 after 400; a reader with several topics is told of the one that is sure.
    """
    moved = abs((momentum.current or 0) - (momentum.previous or 0)) if momentum.previous is not None else 0
    return (momentum.p_value if momentum.p_value is not None else 2.0, -moved)


_INDEX_GROUPS = {Trend.UP: 0, Trend.STEADY: 1, Trend.DOWN: 2, Trend.FEW: 3, Trend.NEW_TOPIC: 3}


def index_key(momentum: Momentum) -> tuple[int, float, float]:
    """Return the sort key of the topic index: Rising (largest first), Steady, Cooling, Few papers (by count), unknown.

    Rising and Cooling hold only changes that are more than noise, so among them the printed percent may decide.
    """
    trend = trend_of(momentum)
    count = float(momentum.current or 0)
    size = float(abs(momentum.change_percent or 0)) if trend in (Trend.UP, Trend.DOWN) else count
    return (_INDEX_GROUPS.get(trend, len(_INDEX_GROUPS)), -size, -count)
