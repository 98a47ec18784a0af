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


@MIGRATIONS()
def m003_sources(db: Database) -> None:
    """What is kept of each watched source between polls, and its latest polls."""
    run_script(db, _M003)
