"""The coverage line: complete, or it says so."""

from __future__ import annotations

from datetime import date

import pytest

from digestd.coverage_words import coverage_line
from digestd.model.snapshot import Coverage, Stretch

AUTUMN = Stretch(date(2026, 9, 11), date(2026, 9, 29))
SPRING = Stretch(date(2026, 5, 28), date(2026, 6, 6))
MAY = Stretch(date(2026, 5, 7), date(2026, 5, 17))
APRIL = Stretch(date(2026, 4, 7), date(2026, 4, 17))
WINTER = Stretch(date(2025, 11, 7), date(2025, 12, 17))


@pytest.mark.parametrize(
    ("coverage", "since", "expected"),
    [
        (Coverage(), None, ""),
        (Coverage((AUTUMN,), 30, 354), None, "complete since Sep 12"),
        (Coverage((AUTUMN,), 30), None, "complete since Sep 12"),
        (Coverage((AUTUMN, SPRING), 60, 354), date(2026, 9, 23), "complete since Sep 12"),
        (
            Coverage((AUTUMN, SPRING), 60, 354),
            date(2026, 9, 1),
            "60 of 354 papers known; nothing seen between Jun 6 and Sep 11",
        ),
        (Coverage((AUTUMN, SPRING), 60, 354), None, "60 of 354 papers known; nothing seen between Jun 6 and Sep 11"),
        (
            Coverage((AUTUMN, SPRING, MAY), 90, 354),
            None,
            "90 of 354 papers known; nothing seen between Jun 6 and Sep 11, nor between May 17 and May 28",
        ),
        (
            Coverage((AUTUMN, SPRING, MAY, APRIL), 99),
            None,
            "99 papers known; nothing seen between Jun 6 and Sep 11, nor between May 17 and May 28, nor in 1 older stretch",
        ),
        (Coverage((AUTUMN, WINTER), 60, 50), None, "60 papers known; nothing seen between Dec 17, 2025 and Sep 11"),
        (Coverage((WINTER,), 5, 9), None, "complete since Nov 8"),
        (Coverage((Stretch(date(2026, 9, 3), date(2026, 9, 3)),), 5, 9), None, "5 of 9 papers known"),
        (
            Coverage((Stretch(date(2026, 9, 3), date(2026, 9, 9)), Stretch(date(2026, 9, 1), date(2026, 9, 3))), 8, 9),
            None,
            "8 of 9 papers known; papers of Sep 3 may be missing",
        ),
        (
            Coverage((AUTUMN, Stretch(date(2026, 9, 1), AUTUMN.since), SPRING), 8, 9),
            None,
            "8 of 9 papers known; nothing seen between Jun 6 and Sep 1; papers of Sep 11 may be missing",
        ),
        (Coverage((AUTUMN,), 30, 354, missing=2), None, "no gap since Sep 12; 2 papers are missing"),
        (Coverage((AUTUMN,), 30, 354, missing=1), None, "no gap since Sep 12; 1 paper is missing"),
        (
            Coverage((AUTUMN, SPRING), 60, 354, missing=2),
            None,
            "60 of 354 papers known; nothing seen between Jun 6 and Sep 11; 2 papers are missing",
        ),
        (Coverage((AUTUMN,), 30, 30), None, "all 30 papers known"),
        (Coverage((AUTUMN,), 1, 1), None, "the only paper is known"),
        (Coverage((), 12), None, "12 papers known, gaps can't be ruled out"),
        (Coverage((), 12, 14, missing=2), None, "12 of 14 papers known, gaps can't be ruled out; 2 papers are missing"),
    ],
)
def test_coverage_line(coverage: Coverage, since: date | None, expected: str) -> None:
    """Holes are named by their dates, edge days count as unseen, and missing papers are never called complete."""
    assert expected == coverage_line(coverage, since)
