"""Wishes to follow that wait for their confirmation. Floor 3. Entry point: :class:`SqlConfirmations`."""

from __future__ import annotations

import json
import secrets
from base64 import b32encode
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from digestd.model.forms import PendingFollow
from digestd.store.engine import Engine
from digestd.store.rows import instant, maybe_instant, to_instant
from digestd.store.rows_followers import schedule_text, to_reader, to_schedule

#: characters of a public id: 80 random bits
_ID_BYTES = 10

#: readers who came by a wish alone: without them nothing would be known of the address
_LEFT_OVER = """SELECT reader.id FROM reader WHERE reader.id IN (SELECT reader_id FROM pending_follow WHERE expires_at <= :now)
  AND NOT EXISTS (SELECT 1 FROM subscription WHERE subscription.reader_id = reader.id)
  AND NOT EXISTS (SELECT 1 FROM pending_follow AS other WHERE other.reader_id = reader.id AND other.expires_at > :now)"""

#: wishes whose mail a worker holds just now wait for the next time
_EXPIRED = """expires_at <= :now AND NOT EXISTS (SELECT 1 FROM outbox WHERE outbox.reader_id = pending_follow.reader_id
  AND outbox.kind = 'confirm' AND outbox.state = 'claimed')"""


class SqlConfirmations:
    """Wishes that wait, in a database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def add(self, pending: PendingFollow, mark: str) -> PendingFollow:
        """Keep a wish and count its mail by a mark; return it with its public id."""
        kept = replace(pending, public_id=b32encode(secrets.token_bytes(_ID_BYTES)).decode().lower())
        self._engine.query(
            """INSERT INTO pending_follow (public_id, reader_id, topics, schedule, zone, created_at, expires_at, done_at)
            VALUES (:public_id, :reader, :topics, :schedule, :zone, :created_at, :expires_at, :done_at)""",
            {
                "public_id": kept.public_id,
                "reader": kept.reader.key,
                "topics": json.dumps(kept.topics),
                "schedule": schedule_text(kept.schedule),
                "zone": kept.zone,
                "created_at": instant(kept.created_at),
                "expires_at": instant(kept.expires_at),
                "done_at": maybe_instant(kept.done_at),
            },
        )
        self._engine.query(
            "INSERT INTO confirm_mail (mark, at) VALUES (:mark, :at)", {"mark": mark, "at": instant(kept.created_at)}
        )
        return kept

    def find(self, public_id: str) -> PendingFollow | None:
        """Return the wish of this public id; None if there is none, or no longer."""
        rows = self._engine.query(
            """SELECT pending_follow.*, reader.address, reader.envelope, reader.name, reader.smtputf8
            FROM pending_follow JOIN reader ON reader.id = pending_follow.reader_id WHERE public_id = :public_id""",
            {"public_id": public_id},
        )
        return _to_pending(rows[0]) if rows else None

    def settle(self, public_id: str, *, now: datetime) -> bool:
        """Note that a wish was confirmed and return whether this was the first time."""
        rows = self._engine.query(
            "UPDATE pending_follow SET done_at = :now WHERE public_id = :public_id AND done_at IS NULL RETURNING public_id",
            {"public_id": public_id, "now": instant(now)},
        )
        return bool(rows)

    def mails_to(self, mark: str, *, since: datetime) -> Sequence[datetime]:
        """Return when mails were made for a mark after an instant, oldest first."""
        rows = self._engine.query(
            "SELECT at FROM confirm_mail WHERE mark = :mark AND at > :since ORDER BY at",
            {"mark": mark, "since": instant(since)},
        )
        return [to_instant(row["at"]) for row in rows]

    def mails(self, *, since: datetime) -> int:
        """Return how many mails were made after an instant."""
        rows = self._engine.query(
            "SELECT COUNT(*) AS total FROM confirm_mail WHERE at > :since", {"since": instant(since)}
        )
        total: int = rows[0]["total"]
        return total

    def forget(self, *, now: datetime, counted_before: datetime) -> int:
        """Delete wishes that have expired, and addresses that were known by them alone; return how many wishes."""
        with self._engine.transaction():
            args = {"now": instant(now)}
            self._engine.query("DELETE FROM confirm_mail WHERE at <= :before", {"before": instant(counted_before)})
            if not self._engine.query("SELECT 1 FROM pending_follow WHERE expires_at <= :now LIMIT 1", args):
                return 0
            readers = [{"reader": row["id"]} for row in self._engine.query(_LEFT_OVER, args)]
            gone = self._engine.query(f"DELETE FROM pending_follow WHERE {_EXPIRED} RETURNING reader_id", args)  # noqa: S608 # our own text
            deleted = {row["reader_id"] for row in gone}
            left = [one for one in readers if one["reader"] in deleted]
            for sql in (
                "DELETE FROM attempt WHERE outbox_id IN (SELECT id FROM outbox WHERE reader_id = :reader)",
                "DELETE FROM outbox WHERE reader_id = :reader",
                "DELETE FROM reader WHERE id = :reader",
            ):
                self._engine.many(sql, left)
            return len(gone)


def _to_pending(row: dict[str, Any]) -> PendingFollow:
    return PendingFollow(
        reader=to_reader(row, key="reader_id"),
        topics=tuple(json.loads(row["topics"])),
        created_at=to_instant(row["created_at"]),
        expires_at=to_instant(row["expires_at"]),
        schedule=to_schedule(row["schedule"]),
        zone=row["zone"],
        public_id=row["public_id"],
        done_at=to_instant(row["done_at"]) if row["done_at"] is not None else None,
    )
