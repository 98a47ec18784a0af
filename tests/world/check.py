"""What the tests of small worlds share."""

from __future__ import annotations

from tests.world.make import make_plan
from tests.world.run import live_through
from tests.world.shrink import shrink
from tests.world.story import tell

#: seeds of each test file: fifty worlds in all
PARTS = {part: tuple(range(place, 50, 5)) for place, part in enumerate("abcde")}


def check_world(seed: int) -> None:
    """Live a world through; what differs is shrunk and told as a story."""
    plan = make_plan(seed)
    found, _ = live_through(plan)
    if found:
        small, left = shrink(plan, found[0].kind, seconds=60)
        raise AssertionError(tell(small, left))
