"""Migration for what the operator is told. Floor 3. See schema.py."""

from __future__ import annotations

from sqlite_utils import Database

from digestd.store.schema import MIGRATIONS, run_script

_TROUBLES = """
CREATE TABLE trouble (
  name TEXT PRIMARY KEY, why TEXT NOT NULL, is_mail INTEGER NOT NULL,
  since_at TEXT NOT NULL, told_at TEXT, mended_at TEXT
);
CREATE TABLE sign (
  name TEXT PRIMARY KEY,                -- what went well: a whole round of work, an audit, a heartbeat
  at TEXT NOT NULL, value INTEGER NOT NULL
);
"""


@MIGRATIONS()
def m011_troubles(db: Database) -> None:
    """What keeps digestd from its work, and when what went well last."""
    run_script(db, _TROUBLES)
