"""``python -m bench [part ...]``: measure and print one table; without a part the short ones, with ``full`` all but the soak.

A new part is a module with ``PART`` and a row in :data:`PARTS`.
"""

from __future__ import annotations

import json
import sys
import tempfile
from importlib import import_module
from pathlib import Path

from bench.measure import Part, Result, measure_part, run_here

#: name -> module with PART
PARTS = {
    "ingest": "bench.ingest",
    "listing": "bench.listing",
    "mail": "bench.mail",
    "digests": "bench.digests",
    "start": "bench.start",
    "web": "bench.web",
}

#: the same, of parts that take minutes: run by name, and by ``full``
LONG_PARTS = {"ingest-full": "bench.ingest_full"}


def load_part(name: str) -> Part:
    """Return a part by its name."""
    part: Part = import_module((PARTS | LONG_PARTS)[name]).PART
    return part


def figure(value: float) -> str:
    """Return a figure with three places that matter."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def print_table(rows: list[tuple[str, Result]]) -> None:
    """Print all results as one table."""
    head = ("part", "measure", "ours", "limit", "ratio", "goal", "peak MB", "")
    lines = [head]
    for part, result in rows:
        measure = result.measure
        sign = ">=" if measure.more_is_better else "<="
        lines.append(
            (
                part,
                measure.name,
                f"{figure(result.ours)} {measure.unit}",
                f"{figure(result.limit)} ({measure.limit_name})",
                f"{result.ratio:.2f}",
                f"{sign} {measure.goal:g}",
                f"{result.peak_mb:.0f}",
                "reached" if result.reached else "MISSED",
            )
        )
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    for line in lines:
        print("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
    print("medians of three runs, each in a process of its own, ours and limit in turn")


def main(arguments: list[str]) -> int:
    """Run what the command line names; 0 if all goals were reached, 1 if not, 2 for a part that is none."""
    if arguments[:1] == ["--one"]:
        _, name, index, side, folder = arguments
        measure = load_part(name).measures[int(index)]
        run = measure.ours if side == "ours" else measure.limit
        assert callable(run)
        print(json.dumps(run_here(run, Path(folder))))
        return 0
    if arguments == ["soak"]:
        from bench.soak import crash_soak, power_soak, soak
        from bench.soak_daemon import daemon_soak

        return max(soak(), crash_soak(), power_soak(), daemon_soak())
    if arguments == ["soak-daemon"]:
        from bench.soak_daemon import daemon_soak

        return daemon_soak()
    names = list(PARTS | LONG_PARTS) if arguments == ["full"] else arguments or list(PARTS)
    if unknown := [name for name in names if name not in PARTS | LONG_PARTS]:
        print(
            f"bench: no part {', '.join(unknown)}; there are {', '.join(PARTS | LONG_PARTS)}, full and soak",
            file=sys.stderr,
        )
        return 2
    rows: list[tuple[str, Result]] = []
    with tempfile.TemporaryDirectory(prefix="digestd-bench-") as folder:
        for name in names:
            part = load_part(name)
            place = Path(folder) / name
            place.mkdir()
            part.prepare(place)
            rows += [(name, result) for result in measure_part(name, part, place)]
    print_table(rows)
    return 0 if all(result.reached for _, result in rows) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
