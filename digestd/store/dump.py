"""A history as text, one JSON object a line, and back. Floor 3. Entry points: :func:`dump`, :func:`load`.

The first line says which tables these are, by the names of the migrations that made them; each further one is a row:

    {"digestd": 1, "migrations": ["m001_history", ...]}
    {"table": "paper", "row": {"id": 1, "title": "Echo Caves", ...}}

Values are those of SQLite; bytes stand as ``{"base64": "..."}``. Rows come by table and in the order of their keys, so that the
text of a history is the same wherever it was written. What can be made anew from the rows (indexes, the full-text index)
is not in it.
"""

from __future__ import annotations

import base64
import binascii
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from sqlite_utils import Database, Migrations

from digestd.errors import SchemaVersionError, StoreError
from digestd.store.schema import MIGRATIONS

FORMAT = 1

#: the table in which SQLite keeps which numbers were given, also those of rows that are gone
_NUMBERS = "sqlite_sequence"

#: rows that are written together
_BATCH = 500
#: characters of a line that an error shows
_SHOWN = 80


def dump(database: Path) -> Iterator[str]:
    """Yield the lines of a history, all of one state of it, while others may write.

    Raises:
        StoreError: it cannot be read.
    """
    try:
        uri = f"{database.absolute().as_uri()}?mode=rw"
        with closing(sqlite3.connect(uri, uri=True, timeout=10, isolation_level=None)) as conn:
            conn.execute("BEGIN")
            names = conn.execute(f"SELECT name FROM {Migrations.migrations_table} ORDER BY rowid").fetchall()  # noqa: S608 # sqlite-utils' own name
            yield _line({"digestd": FORMAT, "migrations": [name for (name,) in names]})
            for table in (*_tables(conn), _NUMBERS):
                order = "name" if table == _NUMBERS else "rowid"
                rows = conn.execute(f'SELECT * FROM "{table}" ORDER BY {order}')  # noqa: S608 # a table of the file itself
                columns = [column[0] for column in rows.description]
                for row in rows:
                    yield _line({"table": table, "row": dict(zip(columns, map(_to_json, row), strict=True))})
    except sqlite3.DatabaseError as error:
        raise StoreError(f"history {database}: cannot be exported: {error}") from error


def load(lines: Iterable[bytes], goal: Path) -> dict[str, int]:
    """Make a history of the lines that :func:`dump` gave, and return its rows by table.

    Args:
        lines: of an export.
        goal: an empty file.

    Raises:
        SchemaVersionError: a newer digestd wrote them.
        StoreError: they are no export, or not a whole one; the message names the line.
    """
    numbered = enumerate(lines, 1)
    head = _head(next(numbered, (1, b""))[1])
    with closing(sqlite3.connect(goal, isolation_level=None)) as conn:
        conn.execute("PRAGMA journal_mode=WAL")
        head.apply(Database(conn))
        conn.execute("BEGIN IMMEDIATE")
        triggers = conn.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:  # they say what follows from a change; these rows are what followed
            conn.execute(f'DROP TRIGGER "{name}"')
        writer = _Writer(conn)
        for number, line in numbered:
            writer.add(number, line)
        counts = writer.end()
        for _, sql in triggers:
            conn.execute(sql)
        for table in _indexes(conn):
            conn.execute(f'INSERT INTO "{table}" ("{table}") VALUES (\'rebuild\')')  # noqa: S608 # as above
        lost = conn.execute("PRAGMA foreign_key_check").fetchone()
        if lost is not None:
            raise StoreError(
                f"import: expected whole accounts, found a row of {lost[0]} whose row of {lost[2]} is missing"
            )
        conn.execute("COMMIT")
    return counts


class _Writer:
    """Writes rows, some hundred at a time."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self._conn = conn
        self._columns = {table: _columns(conn, table) for table in (*_tables(conn), _NUMBERS)}
        self._waiting: list[list[object]] = []
        self._numbers: list[list[object]] = []
        self._table = ""
        self.counts: dict[str, int] = {}
        for table in self._columns:
            conn.execute(f'DELETE FROM "{table}"')  # noqa: S608 # as above

    def add(self, number: int, line: bytes) -> None:
        """Take one line; it is written with others of its table."""
        record = _object(number, line)
        table, row = record.get("table"), record.get("row")
        if not isinstance(table, str) or table not in self._columns or not isinstance(row, dict):
            raise StoreError(f"import line {number}: expected a row of one of the tables, found {_shown(line)}")
        columns = self._columns[table]
        if set(row) != set(columns):
            odd = sorted(set(row) ^ set(columns))[0]
            raise StoreError(f"import line {number}: expected the columns of {table}, found {odd!r} missing or unknown")
        if table != self._table or len(self._waiting) >= _BATCH:
            self._write()
            self._table = table
        values = [_from_json(number, row[column]) for column in columns]
        if table == _NUMBERS:
            self._numbers.append(values)
        else:
            self._waiting.append(values)
        self.counts[table] = self.counts.get(table, 0) + 1

    def end(self) -> dict[str, int]:
        """Write what waits, and return the rows by table."""
        self._write()
        # SQLite counts along while rows are written; what it must go on from is what the export says
        self._conn.execute(f"DELETE FROM {_NUMBERS}")  # noqa: S608 # SQLite's own name
        self._table, self._waiting = _NUMBERS, self._numbers
        self._write()
        return self.counts

    def _write(self) -> None:
        if not self._waiting:
            return
        columns = self._columns[self._table]
        marks = ", ".join("?" for _ in columns)
        named = ", ".join(f'"{column}"' for column in columns)
        try:
            self._conn.executemany(f'INSERT INTO "{self._table}" ({named}) VALUES ({marks})', self._waiting)  # noqa: S608 # as above
        except (sqlite3.Error, OverflowError) as error:
            raise StoreError(f"import: rows of {self._table} do not fit: {error}") from error
        self._waiting = []


def _head(line: bytes) -> Migrations:
    """Return the migrations that an export's first line names, in their order."""
    record = _object(1, line)
    names = record.get("migrations")
    if "digestd" not in record or not isinstance(names, list):
        raise StoreError(f"import line 1: expected the head of an export, found {_shown(line)}")
    known: Mapping[str, Callable[[Database], None]] = {
        migration.name: migration.fn for migration in MIGRATIONS.pending(Database(memory=True))
    }
    unknown = [name for name in names if name not in known]
    if record["digestd"] != FORMAT or unknown:
        found = repr(unknown[0]) if unknown else f"format {record['digestd']!r}"
        raise SchemaVersionError(f"import: expected an export of this digestd or an older one, found {found}")
    head = Migrations(MIGRATIONS.name)
    for name in names:
        head(name=name)(known[name])
    return head


def _tables(conn: sqlite3.Connection) -> list[str]:
    """Return the tables that hold rows themselves, by name."""
    virtual = _indexes(conn)
    names = [name for (name,) in conn.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    return [
        name
        for name in names
        if not name.startswith(("sqlite_", Migrations.migrations_table))
        and not any(name == index or name.startswith(f"{index}_") for index in virtual)
    ]


def _indexes(conn: sqlite3.Connection) -> list[str]:
    """Return the full-text indexes."""
    return [name for (name,) in conn.execute("SELECT name FROM sqlite_master WHERE sql LIKE 'CREATE VIRTUAL%'")]


def _columns(conn: sqlite3.Connection, table: str) -> list[str]:
    return [row[1] for row in conn.execute(f'PRAGMA table_info("{table}")')]


def _line(record: Mapping[str, object]) -> str:
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n"


def _object(number: int, line: bytes) -> dict[str, Any]:
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise StoreError(f"import line {number}: expected a JSON object, found {_shown(line)}")
    return found


def _shown(line: bytes) -> str:
    text = line[:_SHOWN].decode("utf-8", "replace").strip()
    return repr(text) if text else "nothing"


def _to_json(value: object) -> object:
    return {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else value


def _from_json(number: int, value: object) -> object:
    match value:
        case {"base64": str() as text}:
            try:
                return base64.b64decode(text, validate=True)
            except binascii.Error as error:
                raise StoreError(f"import line {number}: expected base64, found {text[:_SHOWN]!r}") from error
        case None | int() | float() | str():
            return value
    raise StoreError(f"import line {number}: expected a value of a column, found {str(value)[:_SHOWN]!r}")
