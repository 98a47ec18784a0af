"""What was committed is there after a power cut: a page, its digests, and what became of their mails."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.powerloss import Trace, cut_power, record

SEEDS = range(6)


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Trace:
    """What the product says to SQLite."""
    return record(tmp_path_factory.mktemp("trace"))


@pytest.mark.parametrize("checkpoint", [1000, 5])
def test_what_was_committed_outlives_the_power(trace: Trace, tmp_path: Path, checkpoint: int) -> None:
    """Whenever the power is cut, whatever part of what was on its way is written: nothing committed is lost or damaged."""
    cuts = [cut_power(trace, tmp_path, seed=seed, synchronous="FULL", checkpoint=checkpoint) for seed in SEEDS]
    assert [(cut.acked, True) for cut in cuts] == [(cut.found, cut.whole) for cut in cuts]
    assert len({cut.acked for cut in cuts}) > 2


def test_harness_sees_what_a_weaker_setting_loses(trace: Trace, tmp_path: Path) -> None:
    """With synchronous=NORMAL commits are lost: if none were, the harness would prove nothing."""
    cuts = [cut_power(trace, tmp_path, seed=seed, synchronous="NORMAL", checkpoint=1000) for seed in SEEDS]
    assert any(cut.found < cut.acked for cut in cuts)
    assert all(cut.whole for cut in cuts)
