"""Migrations for what is kept of feeds that were read. Floor 3. See schema.py."""

from __future__ import annotations

from sqlite_utils import Database

from digestd.store.schema import MIGRATIONS, run_script

_FEED_READ = """
CREATE TABLE feed_read (
  place TEXT PRIMARY KEY,               -- address and how it is read
  head_hash INTEGER NOT NULL, rules_hash INTEGER NOT NULL, topic TEXT NOT NULL, source TEXT NOT NULL,
  slices TEXT NOT NULL                  -- [[hash of the bytes, paper, hash of its record, content, title, [names]], ...]
);
"""


@MIGRATIONS()
def m009_feeds_read(db: Database) -> None:
    """The items of each feed as they were read the last time."""
    run_script(db, _FEED_READ)


@MIGRATIONS()
def m010_feeds_read_again(db: Database) -> None:
    """Each item with its paper's title: what was kept without is forgotten, and the feeds are read whole once."""
    run_script(db, "DELETE FROM feed_read;")
