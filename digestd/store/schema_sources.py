"""Migrations for watched sources. Floor 3. See schema.py."""

from __future__ import annotations

from sqlite_utils import Database

from digestd.store.schema import MIGRATIONS, run_script

_M003 = """
CREATE TABLE watched (
  name TEXT PRIMARY KEY,                -- as configured
  state TEXT NOT NULL, updated_at TEXT NOT NULL
);
CREATE TABLE poll (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL, at TEXT NOT NULL,
  paged INTEGER NOT NULL,               -- whether it brought a page that was read
  record TEXT NOT NULL
);
CREATE INDEX poll_source ON poll (name, paged, id);
"""


_M012 = """
CREATE TABLE watched_file (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  source TEXT NOT NULL,                 -- as configured
  inode INTEGER NOT NULL, size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL,
  name TEXT NOT NULL, sha256 TEXT,      -- NULL: its bytes could not be read
  fate TEXT NOT NULL, at TEXT NOT NULL
);
CREATE UNIQUE INDEX watched_file_once ON watched_file (source, inode, size, mtime_ns);
CREATE INDEX watched_file_hash ON watched_file (source, sha256);
"""


@MIGRATIONS()
def m003_sources(db: Database) -> None:
    """What is kept of each watched source between polls, and its latest polls."""
    run_script(db, _M003)


@MIGRATIONS()
def m012_files(db: Database) -> None:
    """What became of each file of the watched folders."""
    run_script(db, _M012)
