"""Power cuts: what was not yet synced is lost, or half of it. Entry points: :func:`record`, :func:`cut_power`, :func:`soak`.

A file system of our own between SQLite and the disk keeps what is written until it is synced, and at the power cut forgets
it, or a random part of it. What is written are the statements that the product itself ran for a page, its digests and their
mails. The rule: what was committed before the cut is there after it, and the file is whole. With ``synchronous=NORMAL`` the
rule must break, else the harness is (RELIABILITY 4.2; the file system is after SQLite's own test6.c).
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from itertools import groupby
from pathlib import Path
from typing import Any

import apsw

from digestd.flows.deliver import deliver
from digestd.flows.digest import make_due
from digestd.store import open_store
from tests.followers import Clock, KeepingChannel, add, at, let_follow, make_kitchen, options, start

MONDAY = at("2026-09-28T05:00")
SLOT = at("2026-09-28T07:30")
_WRITES = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "INSERT", "UPDATE", "DELETE", "REPLACE")


class LossyFile(apsw.VFSFile):
    """A file whose writes wait for a sync."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.waiting: list[tuple[int, bytes]] = []

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802 # apsw's name
        """Keep a write back."""
        self.waiting.append((offset, bytes(data)))

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        """Return what would be there once all is written."""
        size, there = self.xFileSize(), super().xFileSize()
        below = super().xRead(min(amount, there - offset), offset) if offset < there else b""
        found = bytearray(below.ljust(amount, b"\0"))
        for start_at, data in self.waiting:
            first, last = max(start_at, offset), min(start_at + len(data), offset + amount)
            if first < last:
                found[first - offset : last - offset] = data[first - start_at : last - start_at]
        return bytes(found[: max(0, min(amount, size - offset))])

    def xFileSize(self) -> int:  # noqa: N802
        """Return the size once all is written."""
        return max([super().xFileSize(), *(offset + len(data) for offset, data in self.waiting)])

    def xTruncate(self, size: int) -> None:  # noqa: N802
        """Write and cut."""
        self._write(1.0, random.Random(0))
        super().xTruncate(size)

    def xSync(self, flags: int) -> None:  # noqa: N802, ARG002
        """Write what waits."""
        self._write(1.0, random.Random(0))

    def cut(self, chance: random.Random, kept: float) -> None:
        """Lose what waits, but for a random part."""
        self._write(kept, chance)

    def _write(self, kept: float, chance: random.Random) -> None:
        for offset, data in self.waiting:
            if chance.random() < kept:
                super().xWrite(data, offset)
        self.waiting.clear()


class LossyDisk(apsw.VFS):
    """A file system of such files."""

    def __init__(self) -> None:
        self.files: list[LossyFile] = []
        super().__init__("lossy", "")

    def xOpen(self, name: Any, flags: list[int]) -> LossyFile:  # noqa: N802
        """Open a file."""
        file = LossyFile("", name, flags)
        self.files.append(file)
        return file


DISK = LossyDisk()


@dataclass(frozen=True)
class Trace:
    """A history, and what the product then did to it."""

    base: Path
    statements: tuple[str, ...]
    states: tuple[str, ...]  #: hash of all rows after so many commits


def record(folder: Path) -> Trace:
    """Let the product read a page, make its digests and send them, and return what it said to SQLite."""
    path, base = folder / "live.sqlite", folder / "base.sqlite"
    with closing(open_store(path)) as store:
        start(store, "Reef Sound", now=MONDAY)
        for number in range(4):
            let_follow(store, f"r{number}@example.org", "Reef Sound", now=MONDAY)
        for name in ("tokens", "render", "instance"):
            store.secret(name)
        store.engine.query("PRAGMA wal_checkpoint(TRUNCATE)")
    shutil.copy(path, base)
    said: list[str] = []
    real = sqlite3.connect

    def connect(*args: Any, **given: Any) -> sqlite3.Connection:
        found: sqlite3.Connection = real(*args, **given)
        found.set_trace_callback(said.append)
        return found

    sqlite3.connect = connect  # type: ignore[assignment]  # every connection of the product, also those of its threads
    try:
        with closing(open_store(path)) as store:
            for day in range(2):
                now = SLOT + timedelta(days=day)
                add(store, "Reef Sound", (f"{now:%Y-%m-%d}", f"Bell Buoys {day}"), now=now - timedelta(hours=1))
                make_due(make_kitchen(store), now=now)
                asyncio.run(deliver(store, KeepingChannel(), Clock(now), options(workers=2)))
    finally:
        sqlite3.connect = real
    # what the full-text index says follows of itself; a statement that sets off triggers is said once for each of them too
    writes = (one for one in said if one.lstrip().upper().startswith(_WRITES) and "paper_fts" not in one)
    statements = tuple(one for one, _ in groupby(writes))
    return Trace(base, statements, _states(base, statements, folder / "check.sqlite"))


def _states(base: Path, statements: Sequence[str], scratch: Path) -> tuple[str, ...]:
    shutil.copy(base, scratch)
    with closing(sqlite3.connect(scratch, isolation_level=None)) as conn:
        states = [state_of(conn)]
        for statement in statements:
            conn.execute(statement).fetchall()
            if statement == "COMMIT":
                states.append(state_of(conn))
    return tuple(states)


def state_of(conn: sqlite3.Connection) -> str:
    """Return a hash of all rows."""
    names = [name for (name,) in conn.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    found = hashlib.sha256()
    for name in names:
        if "fts" not in name:
            found.update(repr((name, conn.execute(f'SELECT * FROM "{name}" ORDER BY rowid').fetchall())).encode())
    return found.hexdigest()


@dataclass(frozen=True)
class Cut:
    """What a power cut came to."""

    acked: int  #: commits that the program was told of
    found: int  #: commits whose state is there afterwards; -1: none of the states that there were
    whole: bool


def cut_power(trace: Trace, folder: Path, *, seed: int, synchronous: str, checkpoint: int) -> Cut:
    """Say the statements up to a random commit, cut the power, and look at what is there.

    Args:
        trace: what is said.
        folder: scratch.
        seed: decides when the power is cut, and which part of what waits is written all the same.
        synchronous: FULL, as the product has it, or NORMAL.
        checkpoint: pages of the log after which it is brought into the file.
    """
    chance = random.Random(seed)
    live, after = folder / "lossy.sqlite", folder / "after.sqlite"
    for path in (live, after):
        for suffix in ("", "-wal", "-shm", "-journal"):
            Path(f"{path}{suffix}").unlink(missing_ok=True)
    shutil.copy(trace.base, live)
    DISK.files.clear()
    conn = apsw.Connection(str(live), vfs="lossy")
    for pragma in (
        "locking_mode=EXCLUSIVE", "journal_mode=WAL", f"synchronous={synchronous}", f"wal_autocheckpoint={checkpoint}",
        "foreign_keys=ON",
    ):  # fmt: skip
        list(conn.execute(f"PRAGMA {pragma}"))
    until, acked = chance.randint(1, len(trace.states) - 1), 0
    for statement in trace.statements:
        list(conn.execute(statement))
        acked += statement == "COMMIT"
        if acked == until:
            break
    kept = chance.choice([0.0, 0.5, 0.9])
    for file in DISK.files:
        file.cut(chance, kept)
    for suffix in ("", "-wal"):
        if os.path.exists(f"{live}{suffix}"):  # noqa: PTH110 # a name that is no path of ours
            shutil.copy(f"{live}{suffix}", f"{after}{suffix}")
    conn.close()
    try:
        with closing(sqlite3.connect(after)) as look:
            whole = look.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            state = state_of(look)
    except sqlite3.DatabaseError:
        return Cut(acked, -1, whole=False)
    if state == trace.states[acked]:  # some commits change nothing
        return Cut(acked, acked, whole)
    return Cut(acked, trace.states.index(state) if state in trace.states else -1, whole)


def soak(seeds: int = int(os.environ.get("SOAK_CUTS", "300"))) -> int:
    """Cut the power so often with each setting; print the sums; 0 if FULL loses nothing and NORMAL does."""
    failed = 0
    with tempfile.TemporaryDirectory(prefix="digestd-power-") as name:
        trace = record(Path(name))
        for synchronous in ("FULL", "NORMAL"):
            for checkpoint in (1000, 5):
                cuts = [
                    cut_power(trace, Path(name), seed=seed, synchronous=synchronous, checkpoint=checkpoint)
                    for seed in range(seeds)
                ]
                lost = sum(max(0, cut.acked - cut.found) for cut in cuts)
                damaged = sum(not cut.whole for cut in cuts)
                sys.stdout.write(
                    f"power: synchronous={synchronous} checkpoint={checkpoint}: {len(cuts)} cuts, "
                    f"{sum(cut.acked for cut in cuts):,} commits, {lost:,} lost, {damaged} files damaged\n"
                )
                failed += bool(lost or damaged) if synchronous == "FULL" else not lost
    return 1 if failed else 0
