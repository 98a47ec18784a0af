"""One measurement: in a process of its own, three times, in turn with its yardstick.

A part is a module with ``PART = Part(...)`` and a row in ``bench.__main__.PARTS``. Each function of a measure gets the
part's folder of prepared data and returns its figure, or None to take the seconds that it ran.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Run = Callable[[Path], float | None]


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure of ours and what it is held against."""

    name: str
    unit: str
    ours: Run
    limit: Run | float  #: a yardstick that is run in turn, or a fixed figure
    limit_name: str
    goal: float  #: the ratio to reach, ours by limit
    more_is_better: bool = True


@dataclass(frozen=True, slots=True)
class Part:
    """Measures that share prepared data."""

    prepare: Callable[[Path], None]
    measures: tuple[Measure, ...]


@dataclass(frozen=True, slots=True)
class Result:
    """Medians of one measure."""

    measure: Measure
    ours: float
    limit: float
    peak_mb: float  #: largest resident set of our runs

    @property
    def ratio(self) -> float:
        """Ours by limit."""
        return self.ours / self.limit if self.limit else float("inf")

    @property
    def reached(self) -> bool:
        """Whether the goal is reached."""
        return self.ratio >= self.measure.goal if self.measure.more_is_better else self.ratio <= self.measure.goal


def run_here(run: Run, folder: Path) -> tuple[float, float]:
    """Return (figure, peak resident set in MB) of one run in this process and its children."""
    begin = time.perf_counter()
    figure = run(folder)
    seconds = time.perf_counter() - begin
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
    per_mb = 1024 * 1024 if sys.platform == "darwin" else 1024
    return (seconds if figure is None else figure), max(own, children) / per_mb


def run_apart(part: str, index: int, side: str, folder: Path) -> tuple[float, float]:
    """Return the same of a run in a fresh process, so that no run warms or fattens the next."""
    command = [sys.executable, "-m", "bench", "--one", part, str(index), side, str(folder)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
    figure, peak = json.loads(done.stdout.splitlines()[-1])
    return figure, peak


def measure_part(name: str, part: Part, folder: Path, *, times: int = 3) -> list[Result]:
    """Return the medians of a part's measures; ours and yardstick run in turn, so that both see the same machine."""
    results = []
    for index, measure in enumerate(part.measures):
        ours, limits = [], []
        for _ in range(times):
            ours.append(run_apart(name, index, "ours", folder))
            if callable(measure.limit):
                limits.append(run_apart(name, index, "limit", folder)[0])
            else:
                limits.append(measure.limit)
        figures, peaks = zip(*ours, strict=True)
        results.append(Result(measure, statistics.median(figures), statistics.median(limits), max(peaks)))
    return results
