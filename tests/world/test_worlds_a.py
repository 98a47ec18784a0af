"""Small worlds, part a of five: the parts are spread over the processors. What a world is, says tests/world/__init__.py."""

from __future__ import annotations

import pytest

from tests.world.check import PARTS, check_world


@pytest.mark.parametrize("seed", PARTS["a"])
def test_world_a(seed: int) -> None:
    """In a whole world of holes, crashes and clocks, each reader is told what the oracle says, once, and of each gap."""
    check_world(seed)
