"""Ingest at all sizes of the history up to a million papers, and beside a peer: minutes, so only by name (make bench-full).

The peer is the package ``reader`` (github.com/lemon24/reader), in an environment of its own within the project's; where it
can't be installed its measures are left out and the reason is printed.
"""

from __future__ import annotations

import subprocess
import sys
from functools import partial
from pathlib import Path

from bench import ingest
from bench.measure import Measure, Part

SIZES = (1_000, 10_000, 100_000, 1_000_000)
#: kept between runs: installing it takes longer than measuring it
PEER = Path(__file__).resolve().parents[1] / ".venv" / "peers"

_PEER_RUN = """
import os, shutil, sys, time
from pathlib import Path
from reader import make_reader
folder, phase = Path(sys.argv[1]), sys.argv[2]
served = folder / "served"
shutil.rmtree(served, ignore_errors=True)
shutil.copytree(folder / "feeds", served)
database = folder / "peer.sqlite"
database.unlink(missing_ok=True)
reader = make_reader(str(database), feed_root=str(served))
for path in sorted(served.iterdir()):
    reader.add_feed(path.name)
def update():
    begin = time.perf_counter()
    reader.update_feeds(scheduled=False)
    return time.perf_counter() - begin
seconds = update()
if phase != "first":
    if phase == "news":
        shutil.copytree(folder / "feeds-news", served, dirs_exist_ok=True)
    seconds = update()
assert reader.get_entry_counts().total >= int(sys.argv[3]), reader.get_entry_counts().total
print(seconds)
"""


def install_peer() -> str | None:
    """Install the peer and return None, or why it can't be had."""
    # sgmllib3k: the feedparser that it brings along asks for it
    python = PEER / "bin" / "python"
    if any(PEER.glob("lib/python*/site-packages/reader")):
        return None
    try:
        subprocess.run([sys.executable, "-m", "venv", str(PEER)], check=True, capture_output=True)
        subprocess.run(
            [str(python), "-m", "pip", "install", "-q", "reader", "sgmllib3k"], check=True, capture_output=True
        )
    except (OSError, subprocess.CalledProcessError) as error:
        return f"{type(error).__name__}: {str(error)[:200]}"
    return None


def peer(phase: str, folder: Path) -> float:
    """Return entries looked at a second by the peer, which keeps feeds from files in its own database."""
    wanted = ingest.PAPERS["feeds"] + (ingest.FEEDS if phase == "news" else 0)
    command = [str(PEER / "bin" / "python"), "-c", _PEER_RUN, str(folder), phase, str(wanted)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return ingest.PAPERS["feeds"] / float(done.stdout.splitlines()[-1])


def _peer_measures() -> tuple[Measure, ...]:
    goals = {"first": 2.0, "unchanged": 200.0, "news": 20.0}
    why = install_peer()
    if why is not None:
        print(f"bench: without reader: {why}", file=sys.stderr)
        return ()
    return tuple(
        Measure(
            f"feeds, {ingest.LIMITS[phase][0]}, 1,000 known, peer",
            "papers/s",
            partial(ingest.ours, "feeds", phase, 1_000),
            partial(peer, phase),
            "reader",
            goal,
        )
        for phase, goal in goals.items()
    )


PART = Part(partial(ingest.prepare, SIZES), (*_peer_measures(), *ingest.measures(SIZES)))
