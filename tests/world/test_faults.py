"""The worlds can fail: each of ten planted faults is found, in the first world that shows it."""

from __future__ import annotations

import pytest

from tests.world.faults import FAULTS, WORLDS, finds
from tests.world.make import make_plan

#: the first world that shows each fault, as docs/worlds.md has it; ``python -m tests.world.faults`` looks for them anew
FIRST = {
    "identity": 8,
    "coverage": 31,
    "ledger cursor": 0,
    "slot": 33,
    "outbox phase": 0,
    "suppression": 0,
    "filter": 1,
    "catch-up": 1,
    "feed id": 0,
    "label cut": 0,
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(name: str) -> None:
    """A promise that is broken in the package is seen by the readers of a world, or by its audit."""
    assert FIRST[name] < WORLDS
    assert finds(make_plan(FIRST[name]), name)
