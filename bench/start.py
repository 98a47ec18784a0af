"""How long a command takes that does nothing."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

from bench.measure import Measure, Part

TIMES = 10


def prepare(folder: Path) -> None:
    """Let the interpreter write its caches before anything is timed."""
    run_help(folder)


def seconds_of(*arguments: str) -> float:
    """Return the median seconds of a start of the interpreter with these arguments."""
    taken = []
    for _ in range(TIMES):
        begin = time.perf_counter()
        subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)
        taken.append(time.perf_counter() - begin)
    return statistics.median(taken)


def run_help(_: Path) -> float:
    """Return the seconds of ``digestd --help``."""
    return seconds_of("-m", "digestd", "--help")


def run_nothing(_: Path) -> float:
    """Return the seconds of an interpreter that does nothing."""
    return seconds_of("-c", "pass")


PART = Part(
    prepare, (Measure("digestd --help", "s", run_help, run_nothing, "bare interpreter", 6.0, more_is_better=False),)
)
