"""``kill -9`` anywhere between a page and a mail: nothing lost, nothing doubled that is not known to be so."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.crash.harness import POINTS, UNSURE, Harness, run_all, wrong

RUNS = 3


@pytest.fixture(scope="module")
def harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Harness]:
    """Prepared histories and processes."""
    made = Harness(tmp_path_factory.mktemp("crash"))
    yield made
    made.close()


@pytest.mark.parametrize("command", ["collect", "digest", "deliver", "publish"])
def test_killed_command_loses_and_doubles_nothing(harness: Harness, command: str) -> None:
    """Killed anywhere and run again, a command ends as it would have; only mails at the final dot may double, flagged."""
    names = [name for name, (wanted, _) in POINTS.items() if wanted == command]
    results = run_all(harness, names, runs=RUNS, on_uncertain="resend")
    assert [] == [text for result in results if (text := wrong(result, on_uncertain="resend"))]


def test_hold_doubles_nothing_and_lists_what_is_unsure(harness: Harness) -> None:
    """With hold, a mail of unknown fate is never sent again; it stands in the outbox for a person to decide."""
    results = run_all(harness, list(UNSURE), runs=RUNS, on_uncertain="hold")
    assert [] == [text for result in results if (text := wrong(result, on_uncertain="hold"))]
