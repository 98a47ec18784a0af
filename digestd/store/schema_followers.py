"""Migrations for readers, subscriptions, digests and the outbox. Floor 3. See schema.py."""

from __future__ import annotations

from sqlite_utils import Database

from digestd.store.schema import MIGRATIONS, run_script

_M002 = """
CREATE TABLE reader (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  canonical TEXT NOT NULL UNIQUE,       -- what addresses are compared by
  address TEXT NOT NULL, envelope TEXT NOT NULL, name TEXT NOT NULL, smtputf8 INTEGER NOT NULL, created_at TEXT NOT NULL
);
CREATE TABLE subscription (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  public_id TEXT NOT NULL UNIQUE, reader_id INTEGER NOT NULL REFERENCES reader(id),
  schedule TEXT NOT NULL, each_snapshot INTEGER NOT NULL, zone TEXT NOT NULL, preferences TEXT NOT NULL,
  state TEXT NOT NULL, told_upto INTEGER NOT NULL, high_water_at TEXT, next_due_at TEXT, paused_until TEXT,
  declared INTEGER NOT NULL, welcomed INTEGER NOT NULL, created_at TEXT NOT NULL,
  followed_from TEXT NOT NULL           -- ledger position of each topic after which its news is told
);
CREATE INDEX subscription_reader ON subscription (reader_id);
CREATE INDEX subscription_due ON subscription (state, next_due_at, id) WHERE state = 'active' AND next_due_at IS NOT NULL;
CREATE INDEX subscription_waiting ON subscription (state, each_snapshot, told_upto, id)
  WHERE state = 'active' AND each_snapshot = 1;
CREATE TABLE follow (
  subscription_id INTEGER NOT NULL REFERENCES subscription(id), place INTEGER NOT NULL,
  topic_id INTEGER NOT NULL REFERENCES topic(id),
  PRIMARY KEY (subscription_id, place)
);
CREATE INDEX follow_topic ON follow (topic_id);
CREATE TABLE slot (
  subscription_id INTEGER NOT NULL REFERENCES subscription(id), label TEXT NOT NULL,
  due_at TEXT NOT NULL, digest_key TEXT, coalesced_into TEXT,
  PRIMARY KEY (subscription_id, label)
);
CREATE TABLE digest (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  digest_key TEXT NOT NULL UNIQUE, subscription_id INTEGER NOT NULL REFERENCES subscription(id),
  after_position INTEGER NOT NULL, upto INTEGER NOT NULL, since TEXT NOT NULL, until TEXT NOT NULL,
  subject TEXT NOT NULL, made_at TEXT NOT NULL, mailed INTEGER NOT NULL
);
CREATE INDEX digest_subscription ON digest (subscription_id, id);
CREATE TABLE told_item (
  id INTEGER PRIMARY KEY,
  digest_id INTEGER NOT NULL REFERENCES digest(id), subscription_id INTEGER NOT NULL,
  paper_id INTEGER NOT NULL REFERENCES paper(id), topic_id INTEGER REFERENCES topic(id),
  section TEXT NOT NULL, position INTEGER NOT NULL,
  once TEXT NOT NULL                    -- 'paper', 'revision', or 'double': a second telling of what became one paper later
);
CREATE UNIQUE INDEX told_paper_once ON told_item (paper_id, subscription_id) WHERE once = 'paper';
CREATE UNIQUE INDEX told_revision_once ON told_item (subscription_id, position) WHERE once = 'revision';
CREATE INDEX told_item_digest ON told_item (digest_id);
CREATE TABLE passed_over (
  digest_id INTEGER NOT NULL REFERENCES digest(id), position INTEGER NOT NULL, why TEXT NOT NULL
);
CREATE INDEX passed_over_digest ON passed_over (digest_id, position);
CREATE TRIGGER told_follows_merge AFTER UPDATE OF merged_into ON paper WHEN NEW.merged_into IS NOT NULL
BEGIN
  UPDATE told_item SET once = 'double' WHERE once = 'paper' AND paper_id = NEW.id AND EXISTS (
    SELECT 1 FROM told_item AS kept WHERE kept.once = 'paper' AND kept.paper_id = NEW.merged_into
    AND kept.subscription_id = told_item.subscription_id);
  UPDATE told_item SET paper_id = NEW.merged_into WHERE once = 'paper' AND paper_id = NEW.id;
END;
CREATE TABLE content (hash TEXT PRIMARY KEY, body BLOB NOT NULL, created_at TEXT NOT NULL);
CREATE TABLE outbox (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL, digest_key TEXT NOT NULL, reader_id INTEGER NOT NULL REFERENCES reader(id),
  recipient TEXT NOT NULL, sender TEXT NOT NULL, message_id TEXT NOT NULL, fields TEXT NOT NULL,
  content TEXT NOT NULL REFERENCES content(hash), smtputf8 INTEGER NOT NULL, scope TEXT NOT NULL,
  state TEXT NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, next_at TEXT NOT NULL,
  phase TEXT, owner TEXT, lease_until TEXT, dot_at TEXT, -- of claimed rows only
  created_at TEXT NOT NULL, settled_at TEXT, reply_code INTEGER, reply_text TEXT, why TEXT NOT NULL DEFAULT '',
  flagged INTEGER NOT NULL DEFAULT 0,   -- was uncertain once
  resent INTEGER NOT NULL DEFAULT 0,    -- went out again after it was uncertain
  reaped INTEGER NOT NULL DEFAULT 0,    -- how often in a row its worker was gone before the dot
  sha256 TEXT,                          -- of the bytes as sent last
  other_bytes INTEGER NOT NULL DEFAULT 0 -- how often they differed from those before
);
CREATE UNIQUE INDEX outbox_once ON outbox (digest_key, kind, reader_id);
CREATE INDEX outbox_ready ON outbox (state, next_at, id) WHERE state = 'ready';
CREATE INDEX outbox_state ON outbox (state, id);
CREATE INDEX outbox_reader ON outbox (reader_id, id);
CREATE TABLE attempt (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  outbox_id INTEGER NOT NULL REFERENCES outbox(id), number INTEGER NOT NULL, outcome TEXT NOT NULL, owner TEXT,
  dot_at TEXT, ended_at TEXT NOT NULL, reply_code INTEGER, reply_text TEXT, why TEXT NOT NULL, sha256 TEXT
);
CREATE INDEX attempt_outbox ON attempt (outbox_id, id);
CREATE TABLE suppression (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  address TEXT NOT NULL, scope TEXT NOT NULL, reason TEXT NOT NULL, at TEXT NOT NULL, evidence TEXT NOT NULL,
  lifted_at TEXT
);
CREATE UNIQUE INDEX suppression_once ON suppression (address, scope) WHERE lifted_at IS NULL;
CREATE INDEX suppression_address ON suppression (address);
CREATE TABLE bounce (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  address TEXT NOT NULL, kind TEXT NOT NULL, at TEXT NOT NULL, evidence TEXT NOT NULL, digest_key TEXT
);
CREATE INDEX bounce_address ON bounce (address, at);
"""


@MIGRATIONS()
def m002_followers(db: Database) -> None:
    """Readers, subscriptions, slots, digests, the outbox, suppressions and bounces."""
    run_script(db, _M002)


#: A span begins where the slots before it end: at the high water of the subscription when its schedule was changed. By
#: triggers, because whoever writes a schedule must not be able to forget it.
_M013 = """
CREATE TABLE schedule_span (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  subscription_id INTEGER NOT NULL REFERENCES subscription(id),
  schedule TEXT NOT NULL, zone TEXT NOT NULL,
  since TEXT NOT NULL, until TEXT       -- slots after the one, up to the other; NULL: goes on
);
CREATE INDEX schedule_span_subscription ON schedule_span (subscription_id, id);
INSERT INTO schedule_span (subscription_id, schedule, zone, since)
  SELECT id, schedule, zone, COALESCE(high_water_at, created_at) FROM subscription;
CREATE TRIGGER span_begins AFTER INSERT ON subscription
BEGIN
  INSERT INTO schedule_span (subscription_id, schedule, zone, since)
  VALUES (NEW.id, NEW.schedule, NEW.zone, COALESCE(NEW.high_water_at, NEW.created_at));
END;
CREATE TRIGGER span_changes AFTER UPDATE OF schedule, zone ON subscription
WHEN NEW.schedule <> OLD.schedule OR NEW.zone <> OLD.zone
BEGIN
  UPDATE schedule_span SET until = COALESCE(OLD.high_water_at, OLD.created_at)
    WHERE subscription_id = OLD.id AND until IS NULL;
  INSERT INTO schedule_span (subscription_id, schedule, zone, since)
  VALUES (NEW.id, NEW.schedule, NEW.zone, COALESCE(NEW.high_water_at, NEW.created_at));
END;
"""


@MIGRATIONS()
def m013_schedule_spans(db: Database) -> None:
    """Which schedule held when, so that the slots of the past can be counted; of those before nothing is claimed."""
    run_script(db, _M013)


_M014 = """
CREATE INDEX outbox_kept ON outbox (state, settled_at) WHERE fields <> '';
"""


@MIGRATIONS()
def m014_mails_forgotten(db: Database) -> None:
    """Which deliveries still have what their mail is built of: after a time it is forgotten, the delivery never is."""
    run_script(db, _M014)
