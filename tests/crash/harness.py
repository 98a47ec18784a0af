"""``kill -9`` at named points of the way from a page to a mail, and what is true afterwards.

The mail server's own file is the truth. A run copies a prepared history, starts a command that is killed at its point, then
lets all commands finish, and counts: mails lost, mails doubled, doubled ones without a flag, damage.
"""

from __future__ import annotations

import json
import os
import queue
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from digestd.cli import COMMANDS
from tests.followers import page
from tests.smtp_sink import Sink, serving

ROOT = Path(__file__).resolve().parents[2]
READERS = ("ana", "bo", "chi", "dov")

#: a server's point begins with "server:"; the others are named in the package
POINTS: dict[str, tuple[str, str]] = {
    "c1": ("collect", "ingest.seen"),
    "c2": ("collect", "collect.kept"),  # the poll is on record, the file not yet put away
    "c3": ("collect", "ingest.parsed"),
    "c4": ("collect", "ingest.open"),
    "c5": ("collect", "ingest.done"),
    "c6": ("collect", "collect.settled"),
    "c7": ("digest", "slot.open"),
    "c8": ("digest", "slot.done"),
    "c9": ("deliver", "claim.before"),
    "c10": ("deliver", "claim.open"),
    "c11": ("deliver", "claim.done"),
    "c12": ("deliver", "server:mail"),
    "c13": ("deliver", "server:rcpt"),
    "c14": ("deliver", "server:data"),
    "c15": ("deliver", "server:midbody"),
    "c16": ("deliver", "dot.before"),
    "c17": ("deliver", "dot.done"),
    "c18": ("deliver", "server:dot.not_kept"),
    "c19": ("deliver", "server:dot.kept"),
    "c20": ("deliver", "server:reply"),
    "c21": ("deliver", "result.read"),
    "c22": ("deliver", "result.open"),
    "c23": ("deliver", "result.done"),
    "c24": ("publish", "publish.written"),
    "c25": ("publish", "publish.synced"),
    "c26": ("publish", "publish.moved"),
}

#: points at which nobody can know whether the mail was taken
UNSURE = ("c17", "c18", "c19", "c20", "c21", "c22")
#: of these, those where the server has it
TAKEN = ("c19", "c20", "c21", "c22")

#: points where the client may have come further before the kill arrives, and what else may be then: a body that fits into
#: the buffers of the network is past its dot before the server has read its middle; a reply on the wire may have been read
#: and recorded, and the next mail begun
RACES = ("c15", "c20")

#: how often a point is reached in a run, where that is not once a mail
REACHED = {"claim.before": 3, "claim.open": 2, "claim.done": 3, "slot.open": 1, "slot.done": 1} | {
    point: 2 for _, point in POINTS.values() if point.startswith(("ingest", "collect"))
}

CONFIG = """
[store]
path = "{folder}/history.sqlite"
[web]
base_url = "https://digest.example.org"
[mail]
mode = "none"
host = "127.0.0.1"
port = {port}
connections = {connections}
from_address = "digest@digest.example.org"
on_uncertain = "{on_uncertain}"
[log]
level = "debug"
[[sources]]
kind = "folder"
name = "drop"
path = "{folder}/incoming"
"""

STARTED, NEWS, SLOT = "2026-09-28T05:00:00Z", "2026-09-29T05:00:00Z", "2026-09-29T07:31:00Z"
LATER = ("2026-09-29T07:32:00Z", "2026-09-29T07:50:00Z", "2026-09-29T09:00:00Z")


@dataclass
class Result:
    """What one killed run came to."""

    point: str
    status: int  #: of the process that was to be killed, -9
    lost: int = 0  #: mails that the server never took and nobody is told about
    held: int = 0  #: mails of unknown fate that wait for a person
    doubled: int = 0  #: mails taken more than once
    unflagged: int = 0  #: doubled, and the history does not know that it may be so
    flagged: int = 0
    other: list[str] = field(default_factory=list)  #: whatever else is wrong


class Mother:
    """A process that forks children."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.crash.child"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def begin(self, commands: list[list[str]], log: Path, *, point: str = "", number: int = 1) -> int:
        """Start commands in a child and return its process id."""
        assert self._process.stdin is not None
        request = {"commands": commands, "log": str(log), "point": point, "number": number}
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def end(self) -> int:
        """Return the status of the child, once it has ended."""
        return self._answer()

    def _answer(self) -> int:
        assert self._process.stdout is not None
        found: int = json.loads(self._process.stdout.readline())
        return found

    def close(self) -> None:
        """Let the process end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()


class Harness:
    """Prepared histories, and processes that run commands on copies of them."""

    def __init__(self, folder: Path, *, mothers: int = 3) -> None:
        self.folder = folder
        self._mothers: queue.SimpleQueue[Mother] = queue.SimpleQueue()
        self._all = [Mother() for _ in range(mothers)]
        for mother in self._all:
            self._mothers.put(mother)
        self._prepare()

    def close(self) -> None:
        """End all processes."""
        for mother in self._all:
            mother.close()

    @contextmanager
    def mother(self) -> Iterator[Mother]:
        """Lend a process."""
        mother = self._mothers.get()
        try:
            yield mother
        finally:
            self._mothers.put(mother)

    # -- what runs begin with

    def _prepare(self) -> None:
        """Make one history for each command that is killed, and the mails and feeds of a run that is not."""
        base = self.folder / "collect"
        (base / "incoming").mkdir(parents=True)
        first = [(f"2026-09-{20 - number:02d}", f"Reef Note {number}") for number in range(4)]
        (base / "first.txt").write_text(page("Reef Sound", *first), encoding="utf-8")
        (base / "other.txt").write_text(page("Kelp Forests", ("2026-09-20", "Kelp Note")), encoding="utf-8")
        follows = [
            [
                "follow",
                f"{name}@example.org",
                "Reef Sound",
                *(["Kelp Forests"] if place % 2 else []),
                "--daily",
                "07:30",
            ]
            for place, name in enumerate(READERS)
        ]
        commands = [["ingest", str(base / "first.txt"), str(base / "other.txt")], *follows]
        with serving(Sink(base / "taken.jsonl")) as sink:
            self.commands(base, sink, [(STARTED, command) for command in commands])
            # the welcome digests have gone; what follows is news
            self.commands(base, sink, [("2026-09-28T07:31:00Z", ["digest"]), ("2026-09-28T07:31:00Z", ["deliver"])])
        (base / "taken.jsonl").unlink()
        news = [("2026-09-29", "Bell Buoys"), ("2026-09-28", "Cold Horns", "Kelp Forests"), *first[:2]]
        (base / "incoming" / "1.txt").write_text(page("Reef Sound", *news), encoding="utf-8")
        kelp = (("2026-09-28", "Kelp in June"), ("2026-09-20", "Kelp Note"))
        (base / "incoming" / "2.txt").write_text(page("Kelp Forests", *kelp), encoding="utf-8")
        for path in (base / "incoming").iterdir():  # files must have stood still for a while
            os.utime(path, (1_790_000_000, 1_790_000_000))
        for name, command, now in (
            ("digest", "collect", NEWS),
            ("deliver", "digest", SLOT),
            ("publish", "deliver", SLOT),
        ):
            shutil.copytree(self.folder / command, self.folder / name)
            with serving(Sink(self.folder / name / "taken.jsonl")) as sink:
                self.commands(self.folder / name, sink, [(now, [command])])
                if command == "deliver":
                    self.truth = sorted((one.recipient, one.body) for one in sink.taken())
        assert len(READERS) == len(self.truth), f"{len(self.truth)} mails without a kill"
        (self.folder / "publish" / "taken.jsonl").unlink()
        control = self.folder / "control"
        shutil.copytree(self.folder / "publish", control)
        with serving(Sink(control / "taken.jsonl")) as sink:
            self.commands(control, sink, [(SLOT, ["publish", str(control / "feeds")])])
        self.feeds = feeds_in(control)

    def commands(
        self, folder: Path, sink: Sink, steps: list[tuple[str, list[str]]], *, on_uncertain: str = "resend"
    ) -> None:
        """Run commands to their end, each at its instant; they must succeed."""
        self.configure(folder, sink, on_uncertain=on_uncertain)
        with self.mother() as mother:
            mother.begin([self.line(folder, now, command) for now, command in steps], folder / "log")
            status = mother.end()
        assert status == 0, (folder / "log").read_text(encoding="utf-8")[-3000:]

    def configure(self, folder: Path, sink: Sink, *, on_uncertain: str, connections: int = 1) -> None:
        """Write the settings."""
        text = CONFIG.format(folder=folder, port=sink.port, on_uncertain=on_uncertain, connections=connections)
        (folder / "digestd.toml").write_text(text, encoding="utf-8")

    def line(self, folder: Path, now: str, command: list[str]) -> list[str]:
        """Return a command line."""
        return ["--config", str(folder / "digestd.toml"), "--now", now, *command]

    # -- one run

    def kill(self, name: str, number: int, *, on_uncertain: str = "resend") -> Result:
        """Kill one command at a point, the ``number``-th time that it is reached, let all finish, and count."""
        command, point = POINTS[name]
        folder = self.folder / f"{name}-{number}-{on_uncertain}-{threading.get_ident()}"
        shutil.copytree(self.folder / command, folder)
        now = {"collect": NEWS, "digest": SLOT, "deliver": SLOT, "publish": SLOT}[command]
        arguments = [command, str(folder / "feeds")] if command == "publish" else [command]
        sink = Sink(folder / "taken.jsonl")
        with serving(sink):
            self.configure(folder, sink, on_uncertain=on_uncertain)
            status = self._killed(folder, sink, self.line(folder, now, arguments), point, number)
            torn = torn_feeds(folder, self.feeds)
            steps = [(NEWS, ["collect"]), (SLOT, ["digest"]), *((later, ["deliver"]) for later in LATER)]
            if command == "publish":
                steps.append((SLOT, ["publish", str(folder / "feeds")]))
            if "audit" in COMMANDS:
                steps.append((LATER[-1], ["audit"]))
            self.commands(folder, sink, steps, on_uncertain=on_uncertain)
        result = self._count(name, status, folder, sink)
        result.other += torn
        if command == "publish" and feeds_in(folder) != self.feeds:
            result.other.append("the feeds are not what they should be")
        if not any((result.lost, result.unflagged, result.other)):
            shutil.rmtree(folder)
        return result

    def _killed(self, folder: Path, sink: Sink, line: list[str], point: str, number: int) -> int:
        """Run a command that is killed at a point, and return its status."""
        with self.mother() as mother:
            if not point.startswith("server:"):
                mother.begin([line], folder / "log", point=point, number=number)
                return mother.end()
            started, left, pid = threading.Event(), number, 0

            def call_out(found: str) -> bool:
                nonlocal left
                left -= f"server:{found}" == point
                if left or f"server:{found}" != point:
                    return False
                assert started.wait(10)
                with suppress(ProcessLookupError):  # it was through before we were
                    os.kill(pid, signal.SIGKILL)
                return True

            sink.call_out = call_out
            pid = mother.begin([line], folder / "log")
            started.set()
            status = mother.end()
            sink.call_out = lambda _: False
            return status

    def _count(self, name: str, status: int, folder: Path, sink: Sink) -> Result:
        """Hold the server's file against what a run without a kill sent, and against the history."""
        taken = Counter((one.recipient, one.body) for one in sink.taken())
        with closing(sqlite3.connect(folder / "history.sqlite")) as db:
            rows = db.execute(
                "SELECT recipient, state, flagged FROM outbox WHERE digest_key LIKE '%2026-09-29%'"
            ).fetchall()
            damage = [row[0] for row in db.execute("PRAGMA quick_check") if row[0] != "ok"]
            damage += [str(row) for row in db.execute("PRAGMA foreign_key_check")]
        if POINTS[name][0] == "publish":
            return Result(name, status, other=damage)
        held = {recipient for recipient, state, _ in rows if state == "uncertain"}
        flagged = {recipient for recipient, _, flag in rows if flag}
        missing = [recipient for recipient, body in self.truth if not taken[recipient, body]]
        double = [recipient for (recipient, _), count in taken.items() if count > 1]
        other = damage + [
            f"{state} {recipient}" for recipient, state, _ in rows if state not in ("accepted", "uncertain")
        ]
        if foreign := set(taken) - set(self.truth):
            other.append(f"{len(foreign)} mails are not what they should be")
        if sorted(recipient for recipient, _, _ in rows) != sorted(recipient for recipient, _ in self.truth):
            other.append(f"outbox rows {rows}")
        return Result(
            point=name,
            status=status,
            lost=len([recipient for recipient in missing if recipient not in held]),
            held=len(held),
            doubled=sum(count - 1 for count in taken.values()),
            unflagged=len(set(double) - flagged),
            flagged=len(flagged),
            other=other,
        )


def feeds_in(folder: Path) -> dict[str, bytes]:
    """Return the published files by name."""
    feeds = folder / "feeds"
    return {
        str(path.relative_to(feeds)): path.read_bytes()
        for path in sorted(feeds.rglob("*"))
        if path.is_file() and not path.name.startswith(".digestd-")
    }


def torn_feeds(folder: Path, whole: dict[str, bytes]) -> list[str]:
    """Return the published files that are not whole."""
    return [f"{name} is torn" for name, body in feeds_in(folder).items() if whole.get(name) != body]


def run_all(harness: Harness, names: list[str], *, runs: int, on_uncertain: str, threads: int = 3) -> list[Result]:
    """Kill at each of these points so often, at another mail each time, several at once."""
    jobs = [(name, 1 + number % REACHED.get(POINTS[name][1], len(READERS))) for name in names for number in range(runs)]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(lambda job: harness.kill(*job, on_uncertain=on_uncertain), jobs))


def wrong(result: Result, *, on_uncertain: str) -> str:
    """Return what is not as promised, "" if all is."""
    unsure, taken = result.point in UNSURE, result.point in TAKEN
    expected = Result(
        point=result.point,
        status=-signal.SIGKILL,
        held=int(unsure and on_uncertain == "hold"),
        doubled=int(taken and on_uncertain == "resend"),
        flagged=int(unsure),
    )
    if result.point in RACES:
        allowed = [expected, replace(expected, held=0, doubled=0, flagged=0), _raced(expected)]
        return "" if result in allowed else f"expected one of {allowed}, found {result}"
    return "" if result == expected else f"expected {expected}, found {result}"


def _raced(expected: Result) -> Result:
    """Return what a run may come to as well, if the client was quicker than the kill."""
    return replace(expected, doubled=0, flagged=1)


def table(results: list[Result]) -> str:
    """Return the sums of all runs at each point."""
    lines = ["point  runs  killed  lost  held  doubled  unflagged  flagged  other"]
    for name in POINTS:
        here = [result for result in results if result.point == name]
        if here:
            figures = [
                len(here),
                sum(one.status == -signal.SIGKILL for one in here),
                *(
                    sum(getattr(one, field) for one in here)
                    for field in ("lost", "held", "doubled", "unflagged", "flagged")
                ),
                sum(len(one.other) for one in here),
            ]
            widths = (4, 6, 4, 4, 7, 9, 7, 5)
            cells = (f"{figure:>{width}}" for figure, width in zip(figures, widths, strict=True))
            lines.append("  ".join((f"{name:5}", *cells)))
    return "\n".join(lines)


def soak(runs: int) -> int:
    """Kill so often at each point, resending and holding; print the sums; return 0 if all is as promised, else 1."""
    with tempfile.TemporaryDirectory(prefix="digestd-crash-") as folder:
        harness = Harness(Path(folder))
        bad = []
        try:
            for names, policy in ((list(POINTS), "resend"), (list(UNSURE), "hold")):
                results = run_all(harness, names, runs=runs, on_uncertain=policy)
                sys.stdout.write(f"kill -9, on_uncertain={policy}\n{table(results)}\n")
                bad += [text for one in results if (text := wrong(one, on_uncertain=policy))]
        finally:
            harness.close()
    sys.stdout.write(
        "\n".join([*bad, f"crash: {'as promised' if not bad else f'{len(bad)} runs are not as promised'}\n"])
    )
    return 1 if bad else 0
