"""Backups under load, and what a restore does and refuses."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from sqlite_utils import Database

from digestd.errors import StoreError, StoreUnusableError
from digestd.flows.audit import audit
from digestd.flows.digest import make_due
from digestd.store import SqlStore, open_store
from digestd.store.backup import back_up
from digestd.store.schema import MIGRATIONS
from tests.command import Desk, make_desk
from tests.followers import add, at, let_follow, make_kitchen, start

NOW = at("2026-09-28T05:00")
SLOT = at("2026-09-28T07:30")

HOLD = """
import sys, sqlite3
from pathlib import Path
kind, path = sys.argv[1:]
if kind == "daemon":
    from digestd.daemon import lock_history
    kept = lock_history(Path(path))
elif kind == "sender":
    from digestd.store.writer import sole_process
    kept = sole_process(Path(path), "sender", what="busy")
    kept.__enter__()
else:
    kept = sqlite3.connect(path)
    kept.execute("SELECT COUNT(*) FROM paper").fetchone()
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Desk]:
    """A folder with settings and no history yet."""
    yield from make_desk(tmp_path / "desk", capsys)


def history(path: Path) -> SqlStore:
    """Return a history with one reader, whose digest waits in the outbox."""
    store = open_store(path)
    start(store, "Reef Sound", now=NOW)
    let_follow(store, "ana@example.org", "Reef Sound", now=NOW)
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=NOW)
    make_due(make_kitchen(store), now=SLOT)
    return store


def dump(path: Path) -> list[str]:
    """Return everything in a database as SQL."""
    conn = sqlite3.connect(path)
    try:
        return list(conn.iterdump())
    finally:
        conn.close()


def names(folder: Path) -> list[str]:
    """Return the files of a folder that stay, locks left out."""
    return sorted(
        one.name for one in folder.iterdir() if not one.name.endswith((".lock", "-sender", "-writer", ".toml"))
    )


def test_backup_under_load_is_one_state_of_the_history(tmp_path: Path) -> None:
    """While a thread writes without a pause, each backup is whole, private, audits clean and holds all done before it."""
    store = history(tmp_path / "history.sqlite")
    stop, written = threading.Event(), [0]

    def write() -> None:
        while not stop.is_set():
            number = written[0] + 1
            add(store, "Reef Sound", ("2026-09-28", f"Reef Sound Night {number}"), now=SLOT)
            written[0] = number

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for turn in range(4):
            while written[0] < 3 * turn + 1:
                stop.wait(0.01)
            before, head = written[0], store.history.head()
            goal = tmp_path / f"backup-{turn}.sqlite"
            done = back_up(tmp_path / "history.sqlite", goal)
            assert 0o600 == stat.S_IMODE(goal.stat().st_mode)
            copy = open_store(goal)
            report = audit(copy, now=SLOT)
            assert ([], True) == ([str(one) for one in report.findings], copy.history.head() >= head)
            assert done.rows["paper"] >= 4 + before
            copy.close()
    finally:
        stop.set()
        writer.join()
    assert written[0] > 4
    store.close()


def test_backup_restored_is_the_same_history(desk: Desk) -> None:
    """What was backed up comes back in every row, and what it replaced is kept beside it, numbered."""
    path, goal = desk.folder / "history.sqlite", desk.folder / "copy.sqlite"
    history(path).close()
    before = dump(path)
    assert 0 == desk("backup", goal).status
    assert before == dump(goal)
    store = open_store(path)
    add(store, "Reef Sound", ("2026-09-29", "Cold Drums"), now=SLOT)
    store.close()
    after = dump(path)
    first = desk("restore", goal, "--no-hold", "--json").one
    assert [str(path) + ".replaced-1", 0] == [first["kept"], first["held"]]
    assert (before, after) == (dump(path), dump(Path(first["kept"])))
    assert desk("restore", goal).out.splitlines()[1].endswith("history.sqlite.replaced-2")
    assert ["copy.sqlite", "history.sqlite", "history.sqlite.replaced-1", "history.sqlite.replaced-2"] == names(
        desk.folder
    )
    assert 0 == desk("audit").status


def test_restore_holds_what_may_have_been_sent_since(desk: Desk) -> None:
    """Mail that waits in a backup is held: it may have gone out after the backup was made; a person can send it."""
    history(desk.folder / "history.sqlite").close()
    desk("backup", desk.folder / "copy.sqlite")
    answer = desk("restore", desk.folder / "copy.sqlite", "--json")
    assert 1 == answer.one["held"]
    held = desk("outbox", "list", "--json").one
    assert [("failed", "held: restored from a backup, and perhaps sent since it was made")] == [
        (row["state"], row["why"]) for row in held
    ]
    desk("outbox", "retry", str(held[0]["id"]))
    assert ["ready"] == [row["state"] for row in desk("outbox", "list", "--json").one]


@pytest.mark.parametrize(("kind", "status"), [("daemon", 1), ("sender", 75), ("reader", 75)])
def test_restore_refuses_while_another_process_is_at_work(desk: Desk, kind: str, status: int) -> None:
    """A daemon, a sender or any open connection keeps its history; when it has gone the restore is done."""
    path, goal = desk.folder / "history.sqlite", desk.folder / "copy.sqlite"
    history(path).close()
    desk("backup", goal)
    before = dump(path)
    command = [sys.executable, "-c", HOLD, kind, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert "held\n" == holder.stdout.readline()
        answer = desk("restore", goal)
        holder.kill()
    assert (status, "", before) == (answer.status, answer.out, dump(path))
    assert ["copy.sqlite", "history.sqlite"] == [
        name for name in names(desk.folder) if not name.endswith(("-wal", "-shm"))
    ]
    assert 0 == desk("restore", goal).status


@pytest.mark.parametrize("kind", ["absent", "text", "other", "cut", "bent", "itself"])
def test_restore_refuses_what_is_no_good_backup(desk: Desk, kind: str) -> None:
    """A file that is missing, no history, or damaged changes nothing and leaves nothing behind."""
    path, goal = desk.folder / "history.sqlite", desk.folder / "copy.sqlite"
    history(path).close()
    desk("backup", goal)
    body = goal.read_bytes()
    match kind:
        case "absent":
            goal.unlink()
        case "text":
            goal.write_text("Reef Sound\n" * 100)
        case "other":
            goal.unlink()
            conn = sqlite3.connect(goal)
            conn.execute("CREATE TABLE paper (id INTEGER)")
            conn.close()
        case "cut":
            goal.write_bytes(body[: len(body) // 2])
        case "bent":
            goal.write_bytes(body[:4096] + b"\xa5" * 8192 + body[12288:])
        case _:
            goal = path
    before, files = dump(path), names(desk.folder)
    answer = desk("restore", goal)
    assert (1, "", before, files) == (answer.status, answer.out, dump(path), names(desk.folder))
    assert answer.err.startswith(f"digestd: backup {goal}: ")


def test_restore_in_place_of_a_damaged_history(desk: Desk) -> None:
    """A history that cannot be opened is replaced too, and kept as it was, with its log."""
    path, goal = desk.folder / "history.sqlite", desk.folder / "copy.sqlite"
    history(path).close()
    before = dump(path)
    desk("backup", goal)
    path.write_bytes(b"\x00" * 5000)
    Path(f"{path}-wal").write_bytes(b"rest")
    assert 78 == desk("topics").status
    assert 0 == desk("restore", goal, "--no-hold").status
    assert before == dump(path)
    kept = desk.folder / "history.sqlite.replaced-1"
    assert (b"\x00" * 5000, b"rest") == (kept.read_bytes(), Path(f"{kept}-wal").read_bytes())


def test_restore_where_no_history_is(desk: Desk) -> None:
    """A new machine gets its history from the backup alone."""
    path, goal = desk.folder / "history.sqlite", desk.folder / "copy.sqlite"
    history(path).close()
    desk("backup", goal)
    before = dump(path)
    path.unlink()
    assert None is desk("restore", goal, "--no-hold", "--json").one["kept"]
    assert before == dump(path)


def test_backup_of_a_damaged_history_leaves_the_older_backup(tmp_path: Path) -> None:
    """A history that SQLite finds damaged is not copied over a good copy."""
    path, goal = tmp_path / "history.sqlite", tmp_path / "copy.sqlite"
    history(path).close()
    back_up(path, goal)
    good, body = goal.read_bytes(), path.read_bytes()
    path.write_bytes(body[:4096] + b"\xa5" * 8192 + body[12288:])
    with pytest.raises(StoreUnusableError, match=r"history\.sqlite"):
        back_up(path, goal)
    assert (good, ["copy.sqlite", "history.sqlite"]) == (
        goal.read_bytes(),
        [name for name in names(tmp_path) if not name.endswith(("-wal", "-shm"))],
    )


def test_backup_says_what_it_cannot_do(tmp_path: Path, desk: Desk) -> None:
    """Without a history, onto itself, into a folder that is not there: an error of one line, and no new file."""
    path = tmp_path / "history.sqlite"
    assert 78 == desk("backup", desk.folder / "copy.sqlite").status
    assert [] == names(desk.folder)
    history(path).close()
    for goal in (path, tmp_path / "nowhere" / "copy.sqlite", tmp_path):
        with pytest.raises(StoreError, match=r"^backup "):
            back_up(path, goal)


# -- before the tables change


def old_history(path: Path, *, before: str = "m007_turns") -> None:
    """Write a history of an older release with a topic in it."""
    with closing(sqlite3.connect(path, isolation_level=None)) as conn:
        conn.execute("PRAGMA journal_mode=WAL")
        MIGRATIONS.apply(Database(conn), stop_before=before)
        conn.execute(
            """INSERT INTO topic (slug, name, name_key, created_at)
            VALUES ('reef-sound', 'Reef Sound', 'reefsound', '2026-01-01T00:00:00.000000Z')"""
        )


def test_history_is_copied_before_its_tables_change(tmp_path: Path) -> None:
    """What an older release wrote lies beside the history, whole, in case the new release is not wanted."""
    old_history(tmp_path / "history.sqlite")
    open_store(tmp_path / "history.sqlite").close()
    (copy,) = tmp_path.glob("*.before-*")
    assert ("history.sqlite.before-m007_turns", 0o600) == (copy.name, stat.S_IMODE(copy.stat().st_mode))
    with closing(sqlite3.connect(copy)) as conn:
        assert [("reef-sound",)] == conn.execute("SELECT slug FROM topic").fetchall()
        assert [("m001_history",)] == conn.execute("SELECT name FROM _sqlite_migrations").fetchall()
    open_store(tmp_path / "history.sqlite").close()
    assert [copy] == list(tmp_path.glob("*.before-*"))


def test_new_history_and_restored_one_need_no_copy(tmp_path: Path) -> None:
    """Nothing is copied where nothing is at stake: an empty file, or the copy of a backup."""
    open_store(tmp_path / "history.sqlite").close()
    old_history(tmp_path / "other.sqlite")
    open_store(tmp_path / "other.sqlite", copies=False).close()
    assert [] == list(tmp_path.glob("*.before-*"))


def test_tables_stay_as_they_are_where_no_copy_can_be_made(tmp_path: Path) -> None:
    """A disk that takes no copy takes no change: the history is as it was, and the error says what could not be written."""
    old_history(tmp_path / "history.sqlite")
    (tmp_path / "history.sqlite.before-m007_turns").mkdir()
    with pytest.raises(StoreUnusableError, match="before-m007_turns"):
        open_store(tmp_path / "history.sqlite")
    with closing(sqlite3.connect(tmp_path / "history.sqlite")) as conn:
        assert [("m001_history",)] == conn.execute("SELECT name FROM _sqlite_migrations").fetchall()


def test_only_the_newest_copies_are_kept(tmp_path: Path) -> None:
    """Copies from before earlier changes go, so that they do not fill the disk."""
    old_history(tmp_path / "history.sqlite")
    for number in range(5):
        old = tmp_path / f"history.sqlite.before-m00{number}"
        old.write_bytes(b"old")
        os.utime(old, (number, number))
    open_store(tmp_path / "history.sqlite").close()
    assert ["before-m003", "before-m004", "before-m007_turns"] == sorted(
        path.name.partition("sqlite.")[2] for path in tmp_path.glob("*.before-*")
    )
