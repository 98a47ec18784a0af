"""The SQLite engine, behind sqlite-utils. Floor 3. Entry point: :class:`SQLiteEngine`.

Write-ahead log, full synchronisation, foreign keys on. Write transactions open with BEGIN IMMEDIATE: a deferred one that
reads and then writes fails at once with "database is locked" if another connection wrote in between, whatever the busy
timeout says.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlite_utils import Database

from digestd.errors import AlreadyExistsError, SchemaVersionError, StoreBusyError, StoreError
from digestd.model.audit import DatabaseState
from digestd.model.pages import SearchWish
from digestd.store import (  # noqa: F401 # importing registers their migrations
    schema_alerts,
    schema_confirm,
    schema_followers,
    schema_pages,
    schema_slices,
    schema_sources,
    schema_troubles,
)
from digestd.store.backup import copy_before
from digestd.store.engine import Row
from digestd.store.schema import MIGRATIONS
from digestd.store.writer import WriterLock

BUSY_TIMEOUT_S = 10.0

#: rows of PRAGMA quick_check that are kept
_MOST_FAULTS = 100


class SQLiteEngine:
    """One SQLite file; a connection for each thread that asks."""

    claim_lock = ""

    def __init__(self, path: Path, *, busy_timeout_s: float = BUSY_TIMEOUT_S, copies: bool = True) -> None:
        self._path = path
        self._copies = copies
        self._busy_timeout_s = busy_timeout_s
        self._local = threading.local()
        self._open: list[tuple[threading.Thread, sqlite3.Connection]] = []
        self._lock = threading.Lock()
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"history {path}: its folder cannot be made: {error.strerror}") from error
        self._writer = WriterLock(path, timeout_s=busy_timeout_s)
        with _translated(self._path):
            self._migrate()

    def _migrate(self) -> None:
        db = self._db()
        names = {migration.name for migration in MIGRATIONS.applied(db)}
        unknown = names - {migration.name for migration in MIGRATIONS.pending(db)} - _known_migrations()
        if unknown:
            raise SchemaVersionError(
                f"history {self._path}: expected a file of this digestd or an older one, "
                f"found migration {sorted(unknown)[-1]!r}"
            )
        if MIGRATIONS.pending(db):
            with self._writer.held():
                # another process may have done it while we waited
                pending = [migration.name for migration in MIGRATIONS.pending(db)]
                if pending and names and self._copies:
                    copy_before(self._path, pending[0])
                MIGRATIONS.apply(db)

    def _db(self) -> Database:
        db: Database | None = getattr(self._local, "db", None)
        if db is None:
            # connections are made, used and left to one thread; only close() touches them from another
            conn = sqlite3.connect(
                self._path,
                timeout=self._busy_timeout_s,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=256,
            )
            with self._lock:
                self._close_of_dead_threads()
                self._open.append((threading.current_thread(), conn))
            conn.execute("PRAGMA journal_mode=WAL")
            conn.execute("PRAGMA synchronous=FULL")
            conn.execute("PRAGMA foreign_keys=ON")
            conn.execute("PRAGMA cache_size=-16384")
            db = self._local.db = Database(conn)
        return db

    def _close_of_dead_threads(self) -> None:
        """Close connections whose thread has ended, so that a daemon's many short threads leave none open."""
        for thread, conn in self._open:
            if not thread.is_alive():
                conn.close()
        self._open = [(thread, conn) for thread, conn in self._open if thread.is_alive()]

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Open a write transaction; nests as a savepoint."""
        with _translated(self._path):
            db = self._db()
            if db.conn.in_transaction:
                with db.atomic():
                    yield
                return
            with self._writer.held():
                db.conn.execute("BEGIN IMMEDIATE")
                try:
                    yield
                    db.conn.execute("COMMIT")
                except BaseException:
                    # a COMMIT that failed leaves its transaction open, and everything after it would join that
                    db.rollback()
                    raise

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Open a read transaction; the write-ahead log gives it one state, and lets writers go on."""
        with _translated(self._path):
            conn = self._db().conn
            conn.execute("BEGIN")
            try:
                yield
            finally:
                conn.rollback()  # nothing was written

    def query(self, sql: str, args: Row | None = None) -> list[dict[str, Any]]:
        """Run one statement and return its rows."""
        with _translated(self._path):
            cursor = self._db().conn.execute(sql, dict(args) if args else {})
            if cursor.description is None:
                return []
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def many(self, sql: str, rows: Iterable[Row]) -> None:
        """Run one statement once for each row."""
        with _translated(self._path):
            self._db().conn.executemany(sql, rows)

    def ledger_lock(self) -> None:
        """Do nothing: SQLite has one writer at a time."""

    def search(self, words: str, *, limit: int) -> Sequence[int]:
        """Return keys of papers that hold the words, best first."""
        quoted = self._db().quote_fts(words)
        if not any(char.isalnum() for char in words) or not quoted:
            return []
        rows = self.query(
            """SELECT paper_fts.rowid FROM paper_fts JOIN paper ON paper.id = paper_fts.rowid
            WHERE paper_fts MATCH :words AND paper.merged_into IS NULL ORDER BY rank LIMIT :limit""",
            {"words": quoted, "limit": limit},
        )
        return [row["rowid"] for row in rows]

    def search_pages(self, wish: SearchWish, *, limit: int) -> Sequence[tuple[int, str]]:
        """Return (key, snippet) of papers that fit, best first."""
        terms = [
            (column, self._quoted(text)) for column, text in (("", wish.words), ("authors : ", wish.author)) if text
        ]
        if not terms or not all(quoted for _, quoted in terms):
            return []
        args: dict[str, Any] = {
            "terms": " AND ".join(f"{column}({quoted})" for column, quoted in terms),
            "limit": limit,
        }
        limits = ""
        for name, sign, day in (("since", ">=", wish.since), ("until", "<=", wish.until)):
            if day is not None:
                limits += f" AND substr(paper.effective_at, 1, 10) {sign} :{name}"
                args[name] = day.isoformat()
        if wish.topic:
            limits += """ AND EXISTS (SELECT 1 FROM ledger JOIN topic ON topic.id = ledger.topic_id
              WHERE ledger.paper_id = paper.id AND topic.slug = :topic)"""
            args["topic"] = wish.topic
        rows = self.query(
            f"""SELECT paper_fts.rowid AS key, snippet(paper_fts, 1, char(2), char(3), '…', 32) AS snippet
            FROM paper_fts JOIN paper ON paper.id = paper_fts.rowid
            WHERE paper_fts MATCH :terms AND paper.merged_into IS NULL{limits} ORDER BY rank LIMIT :limit""",  # noqa: S608
            args,
        )
        return [(row["key"], row["snippet"] or "") for row in rows]

    def _quoted(self, words: str) -> str:
        """Return words as the index takes them, "" where there is nothing to look for in them."""
        return self._db().quote_fts(words) if any(char.isalnum() for char in words) else ""

    def compact(self) -> None:
        """Write the file anew without what holds nothing; readers go on, writers wait."""
        with _translated(self._path), self._writer.held():
            conn = self._db().conn
            conn.execute("VACUUM")
            conn.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def check(self) -> DatabaseState:
        """Return what SQLite finds wrong in the file, and how the connection is set."""
        with _translated(self._path):
            db = self._db()
            said = [row[0] for row in db.conn.execute(f"PRAGMA quick_check({_MOST_FAULTS})")]
            faults = [("PRAGMA quick_check", text, "ok") for text in said if text != "ok"]
            faults += [
                (f"PRAGMA foreign_key_check: table {table} row {row}", f"no {parent} that it names", "one")
                for table, row, parent, _ in db.conn.execute("PRAGMA foreign_key_check").fetchmany(_MOST_FAULTS)
            ]
            for name, wanted, words in _SETTINGS:
                found = db.conn.execute(f"PRAGMA {name}").fetchone()[0]
                if found != wanted:
                    faults.append((f"PRAGMA {name}", str(found), words))
            faults += [("schema", f"without migration {one.name}", "it") for one in MIGRATIONS.pending(db)]
        return DatabaseState(tuple(faults), tuple(_version_notes(sqlite3.sqlite_version_info)))

    def close(self) -> None:
        """Give back all connections."""
        with self._lock:
            while self._open:
                self._open.pop()[1].close()
        self._writer.close()
        self._local = threading.local()


#: (PRAGMA, value, in words) that the promises rest on
_SETTINGS = (("journal_mode", "wal", "wal"), ("synchronous", 2, "2 (FULL)"), ("foreign_keys", 1, "1"))


def _version_notes(version: tuple[int, ...]) -> Iterator[str]:
    """Yield what is known against a version of SQLite.

    Source: sqlite.org/changes.html, 3.51.3: resetting the write-ahead log while two connections write or checkpoint could
    lose commits from 3.7.0 on; also mended in 3.44.6 and 3.50.7.
    """
    mended = version >= (3, 51, 3) or (3, 50, 7) <= version < (3, 51) or (3, 44, 6) <= version < (3, 45)
    if not mended:
        yield (
            f"SQLite {'.'.join(map(str, version))} has the WAL-reset fault (mended in 3.51.3, 3.50.7, 3.44.6): "
            "let one process write at a time"
        )


def _known_migrations() -> set[str]:
    return {migration.name for migration in MIGRATIONS._migrations}  # the set has no public list of its names


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    """Turn what a user can mend into a StoreError; bugs in our SQL pass through as they are."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        if "UNIQUE" not in str(error):
            raise  # a row that points nowhere, or a ledger row to be deleted: a bug of ours
        raise AlreadyExistsError(f"history {path}: {error}") from error
    except sqlite3.OperationalError as error:
        text = str(error)
        if "locked" in text or "busy" in text:
            raise StoreBusyError(f"history {path}: another writer holds it for longer than the busy timeout") from error
        if any(word in text for word in ("syntax", "no such", "near ", "has no column", "ambiguous")):
            raise
        raise StoreError(f"history {path}: {text}") from error
    except sqlite3.DatabaseError as error:
        if isinstance(error, sqlite3.ProgrammingError | sqlite3.InterfaceError):
            raise
        raise StoreError(f"history {path}: expected an intact database, found: {error}") from error
