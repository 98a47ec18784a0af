"""Migrations for wishes to follow that wait for their confirmation. Floor 3. See schema.py."""

from __future__ import annotations

from sqlite_utils import Database

from digestd.store.schema import MIGRATIONS, run_script

_PENDING = """
CREATE TABLE pending_follow (
  public_id TEXT PRIMARY KEY, reader_id INTEGER NOT NULL REFERENCES reader(id),
  topics TEXT NOT NULL,                 -- slugs
  schedule TEXT NOT NULL, zone TEXT NOT NULL,
  created_at TEXT NOT NULL, expires_at TEXT NOT NULL, done_at TEXT
);
CREATE INDEX pending_follow_expires ON pending_follow (expires_at);
CREATE INDEX pending_follow_reader ON pending_follow (reader_id);
CREATE TABLE confirm_mail (
  mark TEXT NOT NULL,                   -- keyed hash of an address: it outlives the address, to count by
  at TEXT NOT NULL
);
CREATE INDEX confirm_mail_mark ON confirm_mail (mark, at);
CREATE INDEX confirm_mail_at ON confirm_mail (at);
"""


@MIGRATIONS()
def m006_confirmations(db: Database) -> None:
    """Wishes that wait for their confirmation, and how many mails were caused by strangers."""
    run_script(db, _PENDING)
