"""Lives worlds through and tells what is wrong: ``python -m tests.world.run SEED [SEED ...]``."""

from __future__ import annotations

import logging
import sys
import tempfile
import time
from pathlib import Path

from tests.world.compare import Difference, differences
from tests.world.live import Live
from tests.world.make import SMALL, Size, make_plan
from tests.world.plan import Plan


def live_through(plan: Plan) -> tuple[list[Difference], Live]:
    """Return in which ways a world came out otherwise than it must, and its life."""
    logging.getLogger("digestd").setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory(prefix="world-") as folder:
        live = Live(plan, Path(folder))
        live.run()
        return differences(live), live


def say(text: str) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main(seeds: list[int], size: Size = SMALL) -> int:
    """Print what is wrong with worlds."""
    bad = 0
    for seed in seeds:
        began = time.monotonic()
        plan = make_plan(seed, size)
        found, live = live_through(plan)
        bad += bool(found)
        say(
            f"world {seed}: {len(plan.papers)} papers, {len(plan.events)} events, {len(live.lived.mails)} mails, "
            f"{live.lived.documents} documents, {sum(live.lived.kills.values())} kills, {time.monotonic() - began:.1f} s"
        )
        for one in found[:12]:
            say(f"    {one}")
    return bad


if __name__ == "__main__":
    first, *rest = [int(one) for one in sys.argv[1:]]
    sys.exit(main(list(range(first, rest[0])) if rest else [first]))
