"""Copies of a history that are whole, or are not there. Floor 3. Entry points: :func:`back_up`, :func:`restore`.

A copy is made by SQLite's backup interface within one read transaction: writers go on, and what they write is not in it.
``cp`` would lose what stands in the write-ahead log and still look intact. A copy is one file, without such a log.
"""

from __future__ import annotations

import fcntl
import logging
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

from digestd.errors import AlreadyExistsError, SchemaVersionError, StoreBusyError, StoreError, StoreUnusableError
from digestd.faults import crash_point
from digestd.model.keeping import Backup, Restored
from digestd.store.writer import WriterLock

log = logging.getLogger(__name__)

#: seconds to wait for a lock
_BUSY_S = 10.0

#: tables that make a file a history of ours
_OURS = frozenset({"meta", "paper", "ledger", "_sqlite_migrations"})

#: what SQLite, and our locks, put beside a file
_LOG_FILES = ("-wal", "-shm", "-journal")
_LOCK_FILES = ("-writer", "-sender", ".lock")

#: copies from before a change of tables that are kept
_COPIES = 3

#: how a copy is called until it is whole
_DRAFT, _NEW = ".digestd-", ".new"


def back_up(database: Path, goal: Path) -> Backup:
    """Copy a history into a file, replaced whole, while others may write; return what was copied.

    Args:
        database: file of the history; it is only read.
        goal: file of the copy, readable by its owner alone; one that is there is replaced when the new one was found good.

    Raises:
        StoreUnusableError: there is no history, or it is damaged.
        StoreError: the copy cannot be written.
    """
    if not database.is_file():
        raise StoreUnusableError(f"history {database}: expected a file, found nothing")
    if goal.exists() and (not goal.is_file() or goal.samefile(database)):
        raise StoreError(f"backup {goal}: expected a file of its own, found {_kind(goal, database)}")
    with _draft(goal) as draft:
        try:
            rows = _copy(database, draft)
            faults = _faults(draft, "quick_check")
        except sqlite3.DatabaseError as error:
            raise StoreUnusableError(f"history {database}: cannot be copied: {error}") from error
        if faults:
            raise StoreUnusableError(f"history {database}: expected an intact database, found: {faults[0]}")
        copied = _rows(draft)
        if copied != rows:
            raise StoreError(f"backup {goal}: expected {sum(rows.values())} rows, found {sum(copied.values())}")
        _sync(draft)
        crash_point("backup.synced")
        draft.replace(goal)
        _sync(goal.parent)
        return Backup(goal, goal.stat().st_size, rows)


def copy_before(database: Path, change: str) -> Path:
    """Copy a history beside itself before its tables are changed; the newest copies of that kind are kept.

    Args:
        database: file of the history; nobody else writes.
        change: name of the first change.

    Raises:
        StoreError: the copy cannot be written: then the tables must not be changed.
    """
    goal = database.with_name(f"{database.name}.before-{change}")
    back_up(database, goal)
    copies = sorted(database.parent.glob(f"{database.name}.before-*"), key=lambda path: path.stat().st_mtime_ns)
    for old in copies[:-_COPIES]:
        old.unlink(missing_ok=True)
    log.info('history copied before its tables change file="%s"', goal)
    return goal


def restore(database: Path, backup: Path, *, prepare: Callable[[Path], int]) -> Restored:
    """Put a backup in place of a history; the replaced one is kept under a numbered name.

    Nothing is touched before the copy was found good. No other process may be at work: the caller holds the daemon's and
    the sender's lock; an open connection of any other is noticed.

    Args:
        database: file of the history; need not be there.
        backup: what ``back_up`` made; it is only read.
        prepare: is given the copy before it is put in place, and returns how many deliveries it held.

    Raises:
        StoreBusyError: another process has the history open.
        SchemaVersionError: the backup was made by a newer digestd.
        StoreError: the backup is damaged or no history, or the files cannot be written.
    """
    if not backup.is_file():
        raise StoreError(f"backup {backup}: expected a file, found nothing")
    if database.exists() and backup.samefile(database):
        raise StoreError(f"backup {backup}: expected another file than the history itself")
    with _draft(database) as draft:
        try:
            rows = _copy(backup, draft)
            faults = _faults(draft, "integrity_check")
        except sqlite3.DatabaseError as error:
            raise StoreError(f"backup {backup}: expected a history, found: {error}") from error
        if faults:
            raise StoreError(f"backup {backup}: expected an intact history, found: {faults[0]}")
        if _OURS - rows.keys():
            raise StoreError(f"backup {backup}: expected a history, found no table {min(_OURS - rows.keys())!r}")
        try:
            held = prepare(draft)
        except SchemaVersionError as error:
            raise SchemaVersionError(f"backup {backup}: expected one of this digestd or an older one") from error
        _close_log(draft)
        _sync(draft)
        lock = WriterLock(database, timeout_s=_BUSY_S)
        try:
            with lock.held():
                kept = _swap(draft, database)
        finally:
            lock.close()
        return Restored(database, kept, held, rows)


def make_history(database: Path, *, fill: Callable[[Path], dict[str, int]], prepare: Callable[[Path], int]) -> Restored:
    """Make a history where there is none, whole or not at all.

    Args:
        database: file of the history; must not be there.
        fill: is given an empty file, makes a history of it, and returns its rows by table.
        prepare: as :func:`restore`'s.

    Raises:
        AlreadyExistsError: there is one.
        StoreError: what fills it found a fault, or the files cannot be written.
    """
    if database.exists():
        raise AlreadyExistsError(f"history {database}: expected none yet, found one")
    with _draft(database) as draft:
        rows = fill(draft)
        faults = _faults(draft, "integrity_check")
        if faults:
            raise StoreError(f"history {database}: expected an intact one, found: {faults[0]}")
        held = prepare(draft)
        _close_log(draft)
        _sync(draft)
        _give(draft, database.parent.stat())
        draft.replace(database)
        _sync(database.parent)
    return Restored(database, None, held, rows)


def write_whole(goal: Path, lines: Iterable[str]) -> int:
    """Write lines into a file, replaced whole and readable by its owner alone; return how many.

    Raises:
        StoreError: it cannot be written.
    """
    count = 0
    if goal.exists() and not goal.is_file():
        raise StoreError(f"file {goal}: expected a file, found a folder or device")
    with _draft(goal) as draft:
        with draft.open("w", encoding="utf-8", newline="\n") as file:
            for count, line in enumerate(lines, 1):  # noqa: B007 # the last one is the number of all
                file.write(line)
        _sync(draft)
        draft.replace(goal)
        _sync(goal.parent)
    return count


def _kind(goal: Path, database: Path) -> str:
    return "the history itself" if goal.is_file() and goal.samefile(database) else "a folder or device"


@contextmanager
def _draft(goal: Path) -> Iterator[Path]:
    """Yield an empty file beside the goal, readable by its owner alone, which is gone afterwards, with all beside it.

    Raises:
        StoreError: the disk refused, here or while the file was in use.
    """
    draft: Path | None = None
    handle: int | None = None
    _forget_old_drafts(goal.parent)
    try:
        # in the same folder: a move between file systems would be a copy, and a copy can be seen half done
        handle, name = tempfile.mkstemp(prefix=_DRAFT, suffix=_NEW, dir=goal.parent)
        fcntl.flock(handle, fcntl.LOCK_EX)
        draft = Path(name)
        yield draft
    except OSError as error:
        raise StoreError(f"backup {goal}: cannot be written: {error.strerror or error}") from error
    finally:
        if draft is not None:
            _remove(draft)
        if handle is not None:
            os.close(handle)


def _forget_old_drafts(folder: Path) -> None:
    """Delete drafts that a process left which was ended in the middle; a living one holds the lock on its own."""
    for left in folder.glob(f"{_DRAFT}*{_NEW}"):
        with suppress(OSError), left.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(left)


def _remove(draft: Path) -> None:
    for suffix in ("", *_LOG_FILES, *_LOCK_FILES):
        Path(f"{draft}{suffix}").unlink(missing_ok=True)


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, timeout=_BUSY_S, isolation_level=None)


def _copy(database: Path, draft: Path) -> dict[str, int]:
    """Copy one state of a database into an empty file and return its rows by table."""
    with closing(_connect(database, "rw" if os.access(database, os.W_OK) else "ro")) as source:
        source.execute("BEGIN")
        rows = _rows_of(source)
        with closing(_connect(draft, "rw")) as target:
            source.backup(target)  # all pages at once: in steps, each commit of another process would begin it anew
            crash_point("backup.copied")
            target.execute("PRAGMA journal_mode=DELETE")
        source.rollback()
    return rows


def _rows(path: Path) -> dict[str, int]:
    with closing(_connect(path, "ro")) as conn:
        return _rows_of(conn)


def _rows_of(conn: sqlite3.Connection) -> dict[str, int]:
    """Return the rows of all tables that hold any themselves."""
    names = conn.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'")
    return {name: conn.execute(f'SELECT COUNT(*) FROM "{name}"').fetchone()[0] for (name,) in names.fetchall()}  # noqa: S608 # names of the file's own tables


def _faults(path: Path, check: str) -> list[str]:
    """Return what SQLite finds wrong in a file."""
    with closing(_connect(path, "ro")) as conn:
        said = [str(row[0]) for row in conn.execute(f"PRAGMA {check}(10)")]
        lost = conn.execute("PRAGMA foreign_key_check").fetchmany(1)
    faults = [text for text in said if text != "ok"]
    return faults + [
        f"a row of {table} that names a row of {parent} which is not there" for table, _, parent, _ in lost
    ]


def _close_log(path: Path) -> None:
    """Bring the write-ahead log of a database into its file, and end it."""
    with closing(_connect(path, "rw")) as conn:
        conn.execute("PRAGMA journal_mode=DELETE")


def _swap(draft: Path, database: Path) -> Path | None:
    """Put a file in place of the history and return where that one is now; at no time is there none."""
    kept: Path | None = None
    if database.exists():
        kept = _free_name(database)
        try:
            _close_log(database)
        except sqlite3.OperationalError as error:
            if "locked" in str(error) or "busy" in str(error):
                raise StoreBusyError(f"history {database}: another process has it open") from error
        except sqlite3.DatabaseError:
            pass  # damaged, which is why it is replaced; its log is kept with it
        _keep(database, kept)
        _give(draft, database.stat())
    else:
        _give(draft, database.parent.stat())
    for suffix in _LOG_FILES:  # of a damaged one, or left of one that is gone: SQLite would read it into the new file
        log = Path(f"{database}{suffix}")
        if log.exists():
            log.replace(f"{kept or _free_name(database)}{suffix}")
    crash_point("restore.kept")
    draft.replace(database)
    _sync(database.parent)
    return kept


def _free_name(database: Path) -> Path:
    number = 1
    while any(Path(f"{database}.replaced-{number}{suffix}").exists() for suffix in ("", *_LOG_FILES)):
        number += 1
    return Path(f"{database}.replaced-{number}")


def _keep(database: Path, kept: Path) -> None:
    """Give a file a second name; on file systems without such names, a copy."""
    try:
        kept.hardlink_to(database)
    except OSError:
        shutil.copy2(database, kept)
        _sync(kept)


def _give(draft: Path, of: os.stat_result) -> None:
    """Let a file belong to whom another belongs: root restores for a service."""
    if os.geteuid() == 0:
        os.chown(draft, of.st_uid, of.st_gid)


def give_locks(database: Path) -> None:
    """Let the locks beside a history belong to its owner, so that a service may take what root made."""
    with suppress(OSError):
        owner = database.stat()
        for suffix in _LOCK_FILES:
            if Path(f"{database}{suffix}").exists():
                _give(Path(f"{database}{suffix}"), owner)


def _sync(path: Path) -> None:
    """Bring a file, or a folder's list of names, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
