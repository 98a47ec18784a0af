"""The tables, as append-only migrations. Floor 3. A migration is never edited after it has landed.

Text columns named ``*_at`` are instants, ``day``, ``start``, ``since``, ``until`` and ``published`` are dates.
"""

from __future__ import annotations

import sqlite3

from sqlite_utils import Database, Migrations

from digestd.faults import crash_point

MIGRATIONS = Migrations("digestd")

_M001 = """
CREATE TABLE meta (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE topic (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  slug TEXT NOT NULL UNIQUE, name TEXT NOT NULL, name_key TEXT NOT NULL UNIQUE, gloss TEXT, rule TEXT,
  created_at TEXT NOT NULL,
  started INTEGER NOT NULL DEFAULT 0,   -- a snapshot of its own has given it a baseline
  start TEXT,                           -- newest published date of that snapshot
  known INTEGER NOT NULL DEFAULT 0,     -- papers sighted
  first_total INTEGER, last_total INTEGER, total_at TEXT,
  listed_since INTEGER NOT NULL DEFAULT 0, -- papers that the listing showed after the first total, told ones only
  stated TEXT, stated_at TEXT           -- momentum of the newest snapshot that has one
);
CREATE TABLE source (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE, created_at TEXT NOT NULL
);
CREATE TABLE snapshot (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  topic_id INTEGER NOT NULL REFERENCES topic(id), source_id INTEGER NOT NULL REFERENCES source(id),
  digest TEXT NOT NULL, raw_digest TEXT NOT NULL, origin TEXT,
  fetched_at TEXT NOT NULL, recorded_at TEXT NOT NULL, observed_at TEXT,
  list_order TEXT NOT NULL, format TEXT NOT NULL, total INTEGER, papers INTEGER NOT NULL, incomplete INTEGER NOT NULL,
  momentum TEXT, warnings TEXT NOT NULL DEFAULT '[]'
);
CREATE UNIQUE INDEX snapshot_content ON snapshot (topic_id, source_id, digest);
CREATE INDEX snapshot_raw ON snapshot (raw_digest);
CREATE TABLE paper (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  public_id TEXT NOT NULL UNIQUE,
  title TEXT NOT NULL, abstract TEXT, authors TEXT NOT NULL, record TEXT NOT NULL,
  title_hash INTEGER NOT NULL, author_hash INTEGER NOT NULL,
  published TEXT, effective_at TEXT NOT NULL, first_seen_at TEXT NOT NULL, revised_at TEXT,
  counted INTEGER NOT NULL, merged_into INTEGER REFERENCES paper(id)
);
CREATE INDEX paper_title ON paper (title_hash);
CREATE INDEX paper_author ON paper (author_hash, published) WHERE merged_into IS NULL;
CREATE TABLE paper_name (
  name TEXT NOT NULL UNIQUE, paper_id INTEGER NOT NULL REFERENCES paper(id)
);
CREATE INDEX paper_name_of ON paper_name (paper_id);
CREATE TABLE label (name TEXT PRIMARY KEY, seen INTEGER NOT NULL);
CREATE TABLE paper_label (label TEXT NOT NULL, paper_id INTEGER NOT NULL REFERENCES paper(id));
CREATE UNIQUE INDEX paper_label_once ON paper_label (label, paper_id);
CREATE TABLE unparsed (
  paper_id INTEGER PRIMARY KEY REFERENCES paper(id), topic_id INTEGER NOT NULL REFERENCES topic(id), run TEXT NOT NULL
);
CREATE TABLE shown (
  paper_id INTEGER NOT NULL REFERENCES paper(id), source_id INTEGER NOT NULL REFERENCES source(id),
  text_hash INTEGER NOT NULL
);
CREATE UNIQUE INDEX shown_once ON shown (paper_id, source_id, text_hash);
CREATE TABLE stretch (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  topic_id INTEGER NOT NULL REFERENCES topic(id), since TEXT NOT NULL, until TEXT NOT NULL,
  total INTEGER, seen_at TEXT NOT NULL, open_below INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX stretch_topic ON stretch (topic_id, until);
CREATE TABLE listed (
  topic_id INTEGER NOT NULL REFERENCES topic(id), paper_id INTEGER NOT NULL REFERENCES paper(id),
  stretch_id INTEGER REFERENCES stretch(id)
);
CREATE UNIQUE INDEX listed_once ON listed (paper_id, topic_id);
CREATE INDEX listed_stretch ON listed (stretch_id);
CREATE TABLE ledger (
  position INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL,                   -- a kind of sighting, or 'revision'
  topic_id INTEGER REFERENCES topic(id),-- NULL for revisions: they are the paper's
  paper_id INTEGER NOT NULL REFERENCES paper(id),
  snapshot_id INTEGER REFERENCES snapshot(id),
  via TEXT NOT NULL, cross_listed INTEGER NOT NULL DEFAULT 0, seen_at TEXT NOT NULL,
  dup_of INTEGER REFERENCES ledger(position) -- set when two papers turn out to be one: the earlier sighting counts
);
CREATE UNIQUE INDEX ledger_once ON ledger (topic_id, paper_id) WHERE dup_of IS NULL AND topic_id IS NOT NULL;
CREATE INDEX ledger_topic ON ledger (topic_id, position);
CREATE INDEX ledger_paper ON ledger (paper_id, position);
CREATE TABLE revision (
  position INTEGER PRIMARY KEY REFERENCES ledger(position), changes TEXT NOT NULL, told INTEGER NOT NULL
);
CREATE TABLE topic_day (
  topic_id INTEGER NOT NULL REFERENCES topic(id), day TEXT NOT NULL, papers INTEGER NOT NULL,
  PRIMARY KEY (topic_id, day)
);
CREATE TRIGGER ledger_append_only BEFORE DELETE ON ledger BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END
"""


@MIGRATIONS()
def m001_history(db: Database) -> None:
    """Papers, names, labels, snapshots, coverage, the ledger."""
    run_script(db, _M001)
    db.table("paper").enable_fts(
        ["title", "abstract", "authors"], create_triggers=True, tokenize="unicode61 remove_diacritics 2"
    )


def run_script(db: Database, script: str) -> None:
    """Run the statements of a script one by one: executescript would commit the migration's transaction."""
    for statement in _statements(script):
        db.execute(statement)
        crash_point("migrate.open")


def _statements(script: str) -> list[str]:
    found, part = [], ""
    for piece in script.split(";"):
        part += piece + ";"
        if sqlite3.complete_statement(part):
            if part.strip(" \n;"):
                found.append(part.strip())
            part = ""
    if part.strip(" \n;"):
        found.append(part.strip())
    return found
