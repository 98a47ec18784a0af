"""Migrations for turns of topics and for the list of feeds that was imported. Floor 3. See schema.py."""

from __future__ import annotations

from sqlite_utils import Database

from digestd.store.schema import MIGRATIONS, run_script

_M007 = """
CREATE TABLE trend (
  topic_id INTEGER PRIMARY KEY REFERENCES topic(id),
  trend TEXT NOT NULL,                  -- what was announced last and is not over; 'steady': nothing is
  turns INTEGER NOT NULL
);
CREATE TABLE turn (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  topic_id INTEGER NOT NULL REFERENCES topic(id), number INTEGER NOT NULL,
  trend TEXT NOT NULL, at TEXT NOT NULL, as_of TEXT NOT NULL, momentum TEXT NOT NULL
);
CREATE UNIQUE INDEX turn_once ON turn (topic_id, number);
CREATE TRIGGER turn_append_only BEFORE DELETE ON turn BEGIN SELECT RAISE(ABORT, 'turns are append-only'); END
"""

_M008 = """
CREATE TABLE listed_feed (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  place INTEGER NOT NULL,               -- order in the list
  folder TEXT NOT NULL,                 -- names of the folders around it, outermost first, JSON
  url TEXT NOT NULL,                    -- as the list has it; '': the folder itself, which may be empty
  title TEXT NOT NULL, home TEXT, added_at TEXT NOT NULL,
  topic TEXT NOT NULL                   -- title under which the feed came first: a new title is no new topic
);
CREATE UNIQUE INDEX listed_feed_once ON listed_feed (url, folder)
"""


@MIGRATIONS()
def m007_turns(db: Database) -> None:
    """What was announced of each topic, and its turns."""
    run_script(db, _M007)


@MIGRATIONS()
def m008_listed_feeds(db: Database) -> None:
    """Feeds that were imported from a list."""
    run_script(db, _M008)
