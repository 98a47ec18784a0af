"""Momentum: what is stated, what is counted, and when a change is more than noise."""

from __future__ import annotations

from datetime import date
from fractions import Fraction
from math import comb

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.model.digest import Momentum, Trend
from digestd.model.snapshot import StatedMomentum
from digestd.momentum import (
    binomial_p,
    change_interval,
    choose,
    counted_momentum,
    disagreement,
    index_key,
    is_few,
    previous_counts,
    significance_key,
    stated_momentum,
    trend_of,
    whole_percent,
)
from tests.builders import is_noise

COUNTS = st.integers(min_value=0, max_value=3000)
SMALL = st.integers(min_value=0, max_value=150)


def counted(current: int, previous: int, *, complete: bool = True, weeks: int | None = None) -> Momentum:
    """Return counted figures without weeks."""
    return counted_momentum((), current, previous, complete=complete, weeks=weeks)


@given(SMALL, SMALL)
@settings(max_examples=200, deadline=None)
def test_binomial_p_is_exact(current: int, previous: int) -> None:
    """The p-value is the exact fraction, rounded once to a float."""
    total, smaller = current + previous, min(current, previous)
    tail = Fraction(2 * sum(comb(total, k) for k in range(smaller + 1)), 2**total)
    expected = float(min(Fraction(1), tail)) if current != previous else 1.0
    assert expected == binomial_p(current, previous)


@pytest.mark.parametrize(("current", "previous"), [(612, 590), (700, 502), (900, 800), (1500, 1400)])
def test_binomial_p_of_counts_over_a_thousand(current: int, previous: int) -> None:
    """The walk over scaled terms gives what the whole coefficients give."""
    total, smaller = current + previous, min(current, previous)
    expected = float(Fraction(2 * sum(comb(total, k) for k in range(smaller + 1)), 2**total))
    assert binomial_p(current, previous) == pytest.approx(expected, rel=1e-15)


@given(COUNTS, COUNTS)
@settings(max_examples=100, deadline=None)
def test_binomial_p_is_symmetric_and_a_probability(current: int, previous: int) -> None:
    """A rise and the same fall are equally sure."""
    assert binomial_p(current, previous) == binomial_p(previous, current)
    assert 0 <= binomial_p(current, previous) <= 1


@given(SMALL, SMALL)
@settings(max_examples=100, deadline=None)
def test_binomial_p_falls_with_the_distance(current: int, further: int) -> None:
    """The further the earlier count, the smaller the p-value; so the nearest fit of a percent is the careful one."""
    previous = current + further
    assert binomial_p(current, previous + 1) <= binomial_p(current, previous)


def test_binomial_p_of_large_counts() -> None:
    """Counts of 100,000 are no matter, and a hopeless change is 0.0 rather than an overflow."""
    assert binomial_p(100_000, 0) == 0.0
    # Normal approximation with continuity correction: 2 * (1 - Phi((900 - 1) / sqrt(200900))) = 0.04488
    assert binomial_p(100_000, 100_900) == pytest.approx(0.04488, abs=5e-5)


def test_binomial_p_refuses_negative_counts() -> None:
    """A negative count is a bug of the caller and not a probability."""
    with pytest.raises(ValueError, match="must not be negative, found -1 and 4"):
        binomial_p(-1, 4)


@pytest.mark.parametrize(
    ("current", "previous", "expected"),
    [(54, 22, False), (31, 43, True), (36, 41, True), (7, 0, False), (4, 0, True), (5, 0, False), (0, 0, True)],
)
def test_noise(current: int, previous: int, *, expected: bool) -> None:
    """4 after 0 has p = 2/16 and is noise, 5 after 0 has p = 2/32 and is not."""
    assert expected is is_noise(current, previous)


def test_change_interval() -> None:
    """54 after 22 is +145 %, with 95 % certainty between about +50 and +303 %."""
    interval = change_interval(54, 22)
    assert interval is not None
    assert (50, 303) == tuple(round(bound) for bound in interval)


@given(st.integers(1, 5000), st.integers(1, 5000))
@settings(max_examples=100, deadline=None)
def test_change_interval_holds_the_change(current: int, previous: int) -> None:
    """The interval lies around the change itself and never below a total loss."""
    low, high = change_interval(current, previous) or (0.0, 0.0)
    assert -100 < low < 100 * (current - previous) / previous < high


@pytest.mark.parametrize(("current", "previous"), [(0, 5), (5, 0), (0, 0)])
def test_change_interval_needs_both_counts(current: int, previous: int) -> None:
    """Nothing has no logarithm."""
    assert change_interval(current, previous) is None


@pytest.mark.parametrize(
    ("current", "previous", "expected"),
    [(54, 22, 145), (31, 43, -28), (9, 8, 13), (7, 8, -13), (5, 5, 0), (0, 5, -100), (3, 0, None)],
)
def test_whole_percent(current: int, previous: int, expected: int | None) -> None:
    """Halves go away from zero (12.5 to 13), and there is no percent of nothing."""
    assert expected == whole_percent(current, previous)


@pytest.mark.parametrize(
    ("current", "percent", "expected"),
    [
        (54, 145, [22]),  # 145.45
        (41, -12, [47]),  # -12.77, which no whole number gives by rounding: cut off
        (18, 0, [18]),
        (9, 12, [8]),  # 12.5, the half rounded down
        (9, 13, [8]),  # 12.5, the half rounded up
        (1000, 0, [996, 997, 998, 999, 1000, 1001, 1002, 1003, 1004, 1005]),
        (5, 1000, []),
        (0, -100, []),
        (3, -100, []),
        (0, 20, []),
        (1, -99, list(range(67, 201))),
        (1, 98, []),
    ],
)
def test_previous_counts(current: int, percent: int, expected: list[int]) -> None:
    """All earlier counts that the printed percent leaves, halves either way, cut off only where rounding fails."""
    assert expected == list(previous_counts(current, percent))


@given(st.integers(1, 2000), st.integers(1, 2000))
@settings(max_examples=200, deadline=None)
def test_previous_counts_hold_the_true_one(current: int, previous: int) -> None:
    """However a source rounds to the nearest percent, the true earlier count is among the fits."""
    percent = whole_percent(current, previous)
    assert percent is not None
    if percent > -100:
        assert previous in previous_counts(current, percent)


@given(st.integers(1, 400), st.integers(-99, 900))
@settings(max_examples=200, deadline=None)
def test_previous_counts_all_fit(current: int, percent: int) -> None:
    """Every fit really is a change of less than one percent off the printed one."""
    for fit in previous_counts(current, percent):
        assert abs(Fraction(100 * (current - fit), fit) - percent) < 1


def test_stated_momentum() -> None:
    """The source's figures stay as printed; the earlier count follows where exactly one fits."""
    stated = StatedMomentum(54, 145, share_percent=0.5, chart_from=date(2026, 7, 13))
    momentum = stated_momentum(stated)
    assert (54, 22, 145, 0.5, "stated") == (
        momentum.current,
        momentum.previous,
        momentum.change_percent,
        momentum.share_percent,
        momentum.source,
    )
    assert binomial_p(54, 22) == momentum.p_value
    assert () == momentum.weekly


def test_stated_momentum_up_from_none() -> None:
    """Up from none has an earlier count, zero, and no percent."""
    momentum = stated_momentum(StatedMomentum(7, None, 0))
    assert (7, 0, None, None) == (momentum.current, momentum.previous, momentum.change_percent, momentum.interval)


def test_stated_momentum_with_several_fits() -> None:
    """An ambiguous percent gives no earlier count, and the most careful p-value of all that fit."""
    momentum = stated_momentum(StatedMomentum(1000, 20))
    assert momentum.previous is None
    assert max(binomial_p(1000, fit) for fit in previous_counts(1000, 20)) == momentum.p_value


def test_stated_momentum_without_a_change() -> None:
    """A count alone concludes nothing."""
    momentum = stated_momentum(StatedMomentum(12))
    assert (12, None, None) == (momentum.current, momentum.previous, momentum.p_value)


def test_stated_momentum_that_contradicts_itself() -> None:
    """Where the printed percent and the printed count point in two directions, neither is called a move."""
    assert Trend.UNKNOWN is trend_of(stated_momentum(StatedMomentum(54, 145, 80)))


def test_stated_weeks_end_unfinished() -> None:
    """Printed weeks are kept, and the last one is marked as unfinished."""
    momentum = stated_momentum(StatedMomentum(5, weekly=(1, 2, 3), chart_from=date(2026, 9, 14)))
    assert ((1, 2, 3), date(2026, 9, 14), True) == (momentum.weekly, momentum.weekly_from, momentum.partial)


def test_counted_momentum() -> None:
    """Our own figures carry their weeks, the last one unfinished, and a percent where there are enough papers."""
    momentum = counted_momentum((3, 4, 5), 54, 22, complete=True, weekly_from=date(2026, 9, 14))
    assert (145, (3, 4, 5), True, "counted") == (
        momentum.change_percent,
        momentum.weekly,
        momentum.partial,
        momentum.source,
    )
    assert momentum.interval is not None


def test_counted_momentum_with_holes_has_no_weeks() -> None:
    """Weeks with holes would be drawn as a fall, so they are left out."""
    momentum = counted_momentum((3, 4, 5), 12, 10, complete=False, weekly_from=date(2026, 9, 14))
    assert ((), None, False) == (momentum.weekly, momentum.weekly_from, momentum.partial)


@given(SMALL, SMALL)
@settings(max_examples=100, deadline=None)
def test_small_numbers_make_no_percent(current: int, previous: int) -> None:
    """Fewer than ten papers in both periods, or than five before, never give a percent or an interval."""
    momentum = counted(current, previous)
    if max(current, previous) < 10 or previous < 5:
        assert (None, None) == (momentum.change_percent, momentum.interval)
    else:
        assert momentum.change_percent is not None


def test_choose_takes_complete_counts() -> None:
    """Complete counts are shown; the share, which only the source can know, goes along."""
    chosen = choose(stated_momentum(StatedMomentum(54, 145, share_percent=0.5)), counted(50, 22))
    assert ("counted", 50, 0.5) == (chosen.source, chosen.current, chosen.share_percent)
    assert "counted" == choose(None, counted(50, 22)).source


def test_choose_takes_the_source_where_coverage_has_holes() -> None:
    """Counts with holes are never shown as numbers, even if there is nothing else."""
    assert "stated" == choose(stated_momentum(StatedMomentum(54, 145)), counted(30, 22, complete=False)).source
    assert Momentum() == choose(None, counted(30, 22, complete=False))
    assert Momentum() == choose(None, None)


@pytest.mark.parametrize(
    ("own", "complete", "missing", "expected"),
    [(54, True, 0, False), (52, True, 2, False), (52, True, 1, True), (30, False, 0, False), (55, False, 9, True)],
)
def test_disagree(own: int, *, complete: bool, missing: int, expected: bool) -> None:
    """Holes explain that we count fewer than the source, never that we count more."""
    stated = stated_momentum(StatedMomentum(54, 145))
    assert expected is bool(disagreement(stated, counted(own, 22, complete=complete), missing))


def test_disagreement_in_words() -> None:
    """The operator reads both figures and what is known to be missing."""
    stated = stated_momentum(StatedMomentum(54, 145))
    expected = "the source states 54 in the last four weeks, 50 were counted and 2 are known to be missing"
    assert expected == disagreement(stated, counted(50, 22), 2)
    assert "" == disagreement(None, counted(50, 22))
    assert "" == disagreement(stated, None)


@pytest.mark.parametrize(
    ("momentum", "new", "expected"),
    [
        (counted(9, 0, weeks=3), 0, Trend.NEW_TOPIC),
        (counted(54, 22), 0, Trend.QUIET),
        (counted(54, 22), None, Trend.UP),
        (counted(7, 2), 3, Trend.FEW),
        (counted(40, 4), 3, Trend.FEW),
        (counted(36, 41), 3, Trend.STEADY),
        (counted(47, 30), 3, Trend.UP),  # p = 0.067
        (counted(46, 31), 3, Trend.STEADY),  # p = 0.110
        (counted(22, 54), 3, Trend.DOWN),
        (Momentum(), 3, Trend.UNKNOWN),
        (Momentum(), None, Trend.UNKNOWN),
        (stated_momentum(StatedMomentum(1000, 20)), 1, Trend.UP),
        (stated_momentum(StatedMomentum(1000, -20)), 1, Trend.DOWN),
        (stated_momentum(StatedMomentum(1000, 2)), 1, Trend.STEADY),
        (counted(1_002_000, 1_000_000), 1, Trend.STEADY),  # sure, but 0 % in whole numbers
        (counted(1_004_000, 1_000_000), 1, Trend.STEADY),
    ],
)
def test_trend_of(momentum: Momentum, new: int | None, expected: Trend) -> None:
    """The cases are tested in the order of the visual standard: new, quiet, few, steady, up, down."""
    assert expected is trend_of(momentum, new)


@given(COUNTS, COUNTS, st.integers(0, 5))
@settings(max_examples=200, deadline=None)
def test_noise_is_never_a_trend(current: int, previous: int, new: int) -> None:
    """Two counts that the exact test calls noise are neither a rise nor a fall."""
    trend = trend_of(counted(current, previous), new)
    if is_noise(current, previous) or is_few(current, previous):
        assert trend not in (Trend.UP, Trend.DOWN)


def test_significance_before_percent() -> None:
    """540 after 400 is surer than 24 after 10, though its percent is smaller."""
    sure, large, unknown = counted(540, 400), counted(24, 10), Momentum()
    assert [sure, large, unknown] == sorted([unknown, large, sure], key=significance_key)


def test_index_order() -> None:
    """Rising with the largest first, steady, cooling, few papers by count, and topics without figures last."""
    rows = [
        counted(54, 22),
        counted(200, 100),
        counted(41, 44),
        counted(10, 40),
        counted(7, 2),
        counted(3, 2),
        Momentum(),
    ]
    mixed = [rows[place] for place in (6, 2, 5, 1, 0, 4, 3)]
    assert rows == sorted(mixed, key=index_key)
