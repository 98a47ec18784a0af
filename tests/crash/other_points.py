"""``kill -9`` where readers click, tables change and copies are made: c27 to c31. Entry points: :data:`CASES`, :func:`soak`."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from sqlite_utils import Database

from digestd.addresses import parse_reader
from digestd.flows.audit import audit
from digestd.flows.confirm import Asked, ask
from digestd.flows.deliver import deliver
from digestd.flows.digest import make_due
from digestd.model.delivery import DeliveryState
from digestd.model.subscription import SubscriptionState
from digestd.render.outgoing import build_mail, unpack_content
from digestd.schedule import parse_schedule
from digestd.store import SqlStore, open_store
from digestd.store.schema import MIGRATIONS
from digestd.tokens import Purpose, make_token
from tests.crash.deeds import CLICK
from tests.followers import Clock, KeepingChannel, add, let_follow, make_kitchen, options, read_mail, start, text_of

ROOT = Path(__file__).resolve().parents[2]
SLOT = CLICK + timedelta(hours=2)
READY = "you will get it"


def run(point: str, number: int, deed: str, folder: Path, value: str = "") -> tuple[int, str]:
    """Return status and output of a process that kills itself at a point; "" for none."""
    command = [sys.executable, "-m", "tests.crash.deeds", point, str(number), deed, str(folder), value]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode in (0, -signal.SIGKILL), done.stderr[-2000:]
    return done.returncode, done.stdout.strip()


def prepare(folder: Path) -> None:
    """Make a history with a reader who has mail waiting, and a stranger who wishes to follow."""
    with closing(open_store(folder / "history.sqlite")) as store:
        start(store, "Reef Sound", now=CLICK)
        let_follow(store, "ana@example.org", "Reef Sound", now=CLICK, schedule="daily 07:30")
        for name in ("tokens", "render", "instance", "confirm"):
            store.secret(name)
        topic = store.history.topic("reef-sound")
        asked = Asked(parse_reader("bo@example.org"), topic, parse_schedule("daily 07:30"))
        assert ask(make_kitchen(store), asked, now=CLICK)
        add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=CLICK)


def _confirm_path(store: SqlStore) -> str:
    (row,) = [row for row in store.outbox.deliveries(limit=10) if row.kind == "confirm"]
    one = store.outbox.content_of(row.key)
    text = text_of(read_mail(build_mail(one.envelope.fields, unpack_content(one.content))))
    found = re.search(r"(/confirm/\S+)", text)
    assert found is not None
    return found[1]


def _is_whole(store: SqlStore, *, wrong: list[str]) -> None:
    report = audit(store, now=SLOT)
    wrong += [str(finding) for finding in report.findings]


def confirming(folder: Path, point: str, number: int) -> list[str]:
    """Kill while a wish becomes a subscription; return what is not as promised."""
    with closing(open_store(folder / "history.sqlite")) as store:
        path = _confirm_path(store)
    status, _ = run(point, number, "click", folder, path)
    wrong = [] if status == -signal.SIGKILL else [f"status {status}"]
    with closing(open_store(folder / "history.sqlite")) as store:
        rows = [row for row in store.subscriptions.subscriptions() if row.reader.address == "bo@example.org"]
        if len(rows) != (point == "confirm.done"):
            wrong.append(f"{len(rows)} subscriptions after {point}")
    again = run("", 1, "click", folder, path)[1]
    if not again.startswith("200"):
        wrong.append(f"the second click gave {again}")
    with closing(open_store(folder / "history.sqlite")) as store:
        rows = [row for row in store.subscriptions.subscriptions() if row.reader.address == "bo@example.org"]
        if [SubscriptionState.ACTIVE] != [row.state for row in rows]:
            wrong.append(f"subscriptions {[row.state for row in rows]} in the end")
        _is_whole(store, wrong=wrong)
    return wrong


def leaving(folder: Path, point: str, number: int) -> list[str]:
    """Kill before a reader who leaves is answered; return what is not as promised."""
    with closing(open_store(folder / "history.sqlite")) as store:
        make_due(make_kitchen(store), now=SLOT)
        (ana,) = [row for row in store.subscriptions.subscriptions() if row.reader.address == "ana@example.org"]
        token = make_token(store.secret("tokens"), Purpose.UNSUBSCRIBE, ana.public_id)
    status, _ = run(point, number, "click", folder, f"/unsubscribe/{token}")
    wrong = [] if status == -signal.SIGKILL else [f"status {status}"]
    channel = KeepingChannel()
    with closing(open_store(folder / "history.sqlite")) as store:
        asyncio.run(deliver(store, channel, Clock(SLOT), options()))
        if "ana@example.org" in channel.seen:
            wrong.append("mail went to a reader who had left")
        if not [
            row for row in store.outbox.deliveries(state=DeliveryState.SUPPRESSED, limit=9) if row.kind == "digest"
        ]:
            wrong.append("the mail that waited is not suppressed")
    again = run("", 1, "click", folder, f"/unsubscribe/{token}")[1]
    if not again.startswith("200"):
        wrong.append(f"the second click gave {again}")
    with closing(open_store(folder / "history.sqlite")) as store:
        _is_whole(store, wrong=wrong)
    return wrong


def migrating(folder: Path, point: str, number: int) -> list[str]:
    """Kill while the tables of an older release are changed; return what is not as promised."""
    old = folder / "history.sqlite"
    old.unlink()
    with closing(sqlite3.connect(old, isolation_level=None)) as conn:
        conn.execute("PRAGMA journal_mode=WAL")
        MIGRATIONS.apply(Database(conn), stop_before="m007_turns")
        conn.execute(
            """INSERT INTO topic (slug, name, name_key, created_at)
            VALUES ('reef-sound', 'Reef Sound', 'reefsound', '2026-01-01T00:00:00.000000Z')"""
        )
    status, _ = run(point, number, "start", folder)
    wrong = [] if status == -signal.SIGKILL else [f"status {status}"]
    with closing(sqlite3.connect(old)) as conn:
        wrong += [row[0] for row in conn.execute("PRAGMA quick_check") if row[0] != "ok"]
    with closing(open_store(old)) as store:
        if [topic.name for topic in store.history.topics()] != ["Reef Sound"]:
            wrong.append("the topic is gone")
        applied = [row["name"] for row in store.engine.query("SELECT name FROM _sqlite_migrations")]
        if len(applied) != len(set(applied)) or list(MIGRATIONS.pending(Database(str(old)))):
            wrong.append(f"migrations {applied}")
        _is_whole(store, wrong=wrong)
    return wrong


def copying(folder: Path, point: str, number: int) -> list[str]:
    """Kill while a backup is made; return what is not as promised."""
    run("", 1, "copy", folder)
    goal = folder / "copy.sqlite"
    before = goal.read_bytes()
    with closing(open_store(folder / "history.sqlite")) as store:
        add(store, "Reef Sound", ("2026-09-29", f"Cold Drums {number}"), now=SLOT)
    status, _ = run(point, 1, "copy", folder)
    wrong = [] if status == -signal.SIGKILL else [f"status {status}"]
    if goal.read_bytes() != before:
        wrong.append("the earlier copy was touched")
    run("", 1, "copy", folder)
    left = [path.name for path in folder.glob(".digestd-*")]
    if left:
        wrong.append(f"files are left: {left}")
    with closing(open_store(goal)) as store:
        if not [row for row in store.history.papers("reef-sound") if row.known.paper.title == f"Cold Drums {number}"]:
            wrong.append("the copy made afterwards is an old one")
        _is_whole(store, wrong=wrong)
    return wrong


@dataclass(frozen=True)
class Case:
    """A point and what is done there."""

    point: str
    play: Callable[[Path, str, int], list[str]]
    times: int = 1  #: how often the point is reached


CASES: Mapping[str, Case] = {
    "c27": Case("confirm.open", confirming),
    "c28": Case("confirm.done", confirming),
    "c29": Case("leave.done", leaving),
    "c30": Case("migrate.open", migrating, times=50),
    "c31": Case("backup.copied", copying),
    "c31b": Case("backup.synced", copying),
}


def kill(folder: Path, name: str, number: int) -> list[str]:
    """Kill once at a point; return what is not as promised."""
    case, place = CASES[name], folder / f"{name}-{number}"
    if not (folder / "prepared").exists():
        (folder / "prepared").mkdir()
        prepare(folder / "prepared")
    shutil.copytree(folder / "prepared", place)
    wrong = case.play(place, case.point, 1 + number % case.times)
    if not wrong:
        shutil.rmtree(place)
    return [f"{name} ({case.point}, {number}): {one}" for one in wrong]


def soak(runs: int = int(os.environ.get("SOAK_CRASHES", "40"))) -> int:
    """Kill so often at each point; print the sums; return 0 if all is as promised, else 1."""
    bad: list[str] = []
    with tempfile.TemporaryDirectory(prefix="digestd-crash-") as folder:
        for name in CASES:
            found = [one for number in range(runs) for one in kill(Path(folder), name, number)]
            sys.stdout.write(f"{name:5} {runs} killed at {CASES[name].point}, {len(found)} not as promised\n")
            bad += found
    sys.stdout.write("\n".join([*bad, ""]))
    return 1 if bad else 0
