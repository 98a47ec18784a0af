"""Many worlds, spread over the processors: ``python -m tests.world.soak WORLDS [small|middle|year]``.

What was lived through well stands in a file (``WORLD_LOG``, else .soak/worlds.txt), so that a run goes on where it was
stopped. A world that differs is shrunk and told.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from tests.world.make import MIDDLE, SMALL, YEAR, Size, make_plan
from tests.world.run import live_through, say
from tests.world.shrink import shrink
from tests.world.story import tell

SIZES: dict[str, Size] = {"small": SMALL, "middle": MIDDLE, "year": YEAR}
_BAR = 30
_SHRINK_S = 120


def live(job: tuple[int, str]) -> tuple[int, str, int]:
    """Return a seed, what is wrong with its world in words ("" for nothing), and how many kills it saw."""
    seed, size = job
    plan = make_plan(seed, SIZES[size])
    try:
        found, lived = live_through(plan)
    except Exception as error:
        return seed, f"World {seed} could not live: {type(error).__name__}: {error}", 0
    if not found:
        return seed, "", sum(lived.lived.kills.values())
    small, left = shrink(plan, found[0].kind, seconds=_SHRINK_S)
    return seed, tell(small, left or found), sum(lived.lived.kills.values())


def main(worlds: int, size: str = "small") -> int:
    """Live through worlds that were not before; return how many came out otherwise than they must."""
    log = Path(os.environ.get("WORLD_LOG", ".soak/worlds.txt"))
    log.parent.mkdir(parents=True, exist_ok=True)
    done = set(_done(log, size))
    seeds = [seed for seed in range(worlds) if seed not in done]
    began, bad, kills = time.monotonic(), 0, 0
    workers = int(os.environ.get("WORLD_JOBS", "0")) or os.cpu_count() or 1
    with (
        multiprocessing.get_context("spawn").Pool(workers, maxtasksperchild=200) as pool,
        log.open("a", encoding="ascii") as file,
    ):
        for count, (seed, story, died) in enumerate(pool.imap_unordered(live, [(one, size) for one in seeds]), 1):
            kills += died
            if story:
                bad += 1
                say(f"\n{story}")
            else:
                file.write(f"{size} {seed}\n")
                file.flush()
            _progress(len(done) + count, worlds, time.monotonic() - began, count, bad)
    say(f"\n{worlds:,} {size} worlds, {len(seeds):,} of them now, {kills:,} kills, {bad:,} that differ")
    return min(bad, 1)


def _done(log: Path, size: str) -> Iterator[int]:
    if log.exists():
        for line in log.read_text(encoding="ascii").splitlines():
            kind, _, seed = line.partition(" ")
            if kind == size and seed.isdigit():
                yield int(seed)


def _progress(done: int, worlds: int, seconds: float, count: int, bad: int) -> None:
    filled = _BAR * done // max(worlds, 1)
    left = seconds / count * (worlds - done)
    sys.stdout.write(
        f"\r[{'#' * filled}{'.' * (_BAR - filled)}] {done:,} of {worlds:,}, {bad} differ, {left / 60:,.0f} min to go "
    )
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), *sys.argv[2:3]))
