"""``kill -9`` while a reader confirms or leaves, while tables are changed, while a backup is made."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.crash.other_points import CASES, kill

RUNS = 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where histories lie."""
    return tmp_path_factory.mktemp("other")


@pytest.mark.parametrize("name", CASES)
def test_killed_deed_is_done_whole_or_not_at_all(folder: Path, name: str) -> None:
    """Killed at any point and tried again, it ends as it would have, and the audit is clean."""
    case = CASES[name]
    numbers = [place * case.times // RUNS for place in range(RUNS)] if case.times > 1 else range(RUNS)
    assert [] == [one for number in numbers for one in kill(folder, name, number)]
