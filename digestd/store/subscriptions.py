"""Readers, subscriptions, slots and digests, as a repository over an engine. Floor 3. Entry point: :class:`SqlSubscriptions`.

Unique keys decide what was told, never a time or a memory: one slot a label, one digest a key, one telling of a paper or a
revision a subscription.
"""

from __future__ import annotations

import secrets
from base64 import b32encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import product
from typing import Any, TypeVar

from digestd.errors import NotFoundError
from digestd.model.delivery import DigestRecord, ToldItem
from digestd.model.subscription import Reader, SlotRecord, Subscription
from digestd.store.engine import Engine, chunks, placeholders
from digestd.store.rows import instant
from digestd.store.rows_followers import (
    digest_columns,
    progress_columns,
    reader_columns,
    slot_columns,
    subscription_columns,
    to_digest,
    to_item,
    to_reader,
    to_slot,
    to_subscription,
)

#: what an item of each section must be the only one of, in its subscription: a paper is told once, and so is a revision
_ONCE = {
    "new": "paper",
    "rest": "paper",
    "tagged": "paper",
    "tagged_rest": "paper",
    "revised": "revision",
    "withdrawn": "revision",
}

_SUBSCRIPTION = """SELECT subscription.*, reader.address, reader.envelope, reader.name, reader.smtputf8
  FROM subscription JOIN reader ON reader.id = subscription.reader_id"""

_ADD_DIGEST = """INSERT INTO digest
  (digest_key, subscription_id, after_position, upto, since, until, subject, made_at, mailed)
  VALUES (:digest_key, :subscription, :after, :upto, :since, :until, :subject, :made_at, :mailed)"""

_ITEM = "digest_id, subscription_id, paper_id, topic_id, section, position, once"

#: more rows than any history has
_ALL = 2**62


T = TypeVar("T")


class SqlSubscriptions:
    """Readers and what they were told, in a database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    # -- readers

    def put_reader(self, reader: Reader, *, now: datetime) -> Reader:
        """Add a reader, or give the one with this canonical address the new name; return it with its key."""
        rows = self._engine.query(
            """INSERT INTO reader (canonical, address, envelope, name, smtputf8, created_at)
            VALUES (:canonical, :address, :envelope, :name, :smtputf8, :now)
            ON CONFLICT (canonical) DO UPDATE SET name = excluded.name RETURNING *""",
            reader_columns(reader) | {"now": instant(now)},
        )
        return to_reader(rows[0])

    def find_reader(self, address: str) -> Reader | None:
        """Return the reader with this address, case folded; None if there is none."""
        rows = self._engine.query(
            "SELECT * FROM reader WHERE canonical = :canonical", {"canonical": address.casefold()}
        )
        return to_reader(rows[0]) if rows else None

    # -- subscriptions

    def put(self, subscription: Subscription, *, now: datetime) -> Subscription:
        """Add a subscription (key None), or write all fields of a known one; return it as it stands."""
        with self._engine.transaction():
            topics = self._topic_keys(subscription.topics)
            if subscription.reader.key is None:
                subscription = replace(subscription, reader=self.put_reader(subscription.reader, now=now))
            key = subscription.key
            if key is None:
                key = self._insert(subscription, now=now)
            else:
                self._update(subscription)
            if self._topics([key]).get(key, []) != [*subscription.topics]:
                self._engine.query("DELETE FROM follow WHERE subscription_id = :key", {"key": key})
                self._engine.many(
                    "INSERT INTO follow (subscription_id, place, topic_id) VALUES (:key, :place, :topic)",
                    [{"key": key, "place": place, "topic": topic} for place, topic in enumerate(topics)],
                )
            return self.subscription(key)

    def _insert(self, subscription: Subscription, *, now: datetime) -> int:
        row = subscription_columns(subscription) | {
            "public_id": subscription.public_id or self._public_id(),
            "reader": subscription.reader.key,
            "created_at": instant(subscription.created_at or now),
        }
        key: int = self._engine.query(
            """INSERT INTO subscription (public_id, reader_id, schedule, each_snapshot, zone, preferences, state, told_upto,
              high_water_at, next_due_at, paused_until, declared, welcomed, created_at, followed_from)
            VALUES (:public_id, :reader, :schedule, :each_snapshot, :zone, :preferences, :state, :told_upto,
              :high_water_at, :next_due_at, :paused_until, :declared, :welcomed, :created_at, :followed_from) RETURNING id""",
            row,
        )[0]["id"]
        return key

    def _update(self, subscription: Subscription) -> None:
        changed = self._engine.query(
            """UPDATE subscription SET reader_id = :reader, schedule = :schedule, each_snapshot = :each_snapshot, zone = :zone,
              preferences = :preferences, state = :state, told_upto = :told_upto, high_water_at = :high_water_at,
              next_due_at = :next_due_at, paused_until = :paused_until, declared = :declared, welcomed = :welcomed,
              followed_from = :followed_from WHERE id = :key RETURNING id""",
            subscription_columns(subscription) | {"reader": subscription.reader.key, "key": subscription.key},
        )
        if not changed:
            raise NotFoundError(f"subscription {subscription.key}: expected one of the history, found none")

    def _topic_keys(self, slugs: Sequence[str]) -> list[int]:
        keys = self._all_topics(slugs)
        return [keys[slug] for slug in slugs]

    def _all_topics(self, slugs: Iterable[str]) -> dict[str, int]:
        """Return the keys of topics by slug; NotFoundError names one that is not there."""
        keys: dict[str, int] = {}
        wanted = sorted(set(slugs))
        for part in chunks(wanted):
            marks, args = placeholders("s", part)
            rows = self._engine.query(f"SELECT id, slug FROM topic WHERE slug IN {marks}", args)  # noqa: S608 # numbered
            keys |= {row["slug"]: row["id"] for row in rows}
        for slug in wanted:
            if slug not in keys:
                raise NotFoundError(f"topic {slug!r}: expected one of the history, found none")
        return keys

    def _public_id(self) -> str:
        """Return a short random name that is not taken: eight letters and digits that survive any case."""
        while True:
            public = b32encode(secrets.token_bytes(5)).decode().lower()
            if self.find_public(public) is None:
                return public

    def subscription(self, key: int) -> Subscription:
        """Return one subscription; NotFoundError if there is none."""
        found = self._select("WHERE subscription.id = :key", {"key": key})
        if not found:
            raise NotFoundError(f"subscription {key}: expected one of the history, found none")
        return found[0]

    def read(self, keys: Sequence[int]) -> Mapping[int, Subscription]:
        """Return subscriptions by key; those that are not there are left out."""
        found: dict[int, Subscription] = {}
        for part in chunks(keys):
            marks, args = placeholders("i", part)
            for one in self._select(f"WHERE subscription.id IN {marks}", args):
                found[one.key or 0] = one
        return found

    def find_public(self, public_id: str) -> Subscription | None:
        """Return the subscription with this public id; None if there is none."""
        found = self._select("WHERE subscription.public_id = :public", {"public": public_id})
        return found[0] if found else None

    def subscriptions(self, *, reader: int | None = None, active_only: bool = False) -> Sequence[Subscription]:
        """Return subscriptions in the order in which they were made, those of one reader or all."""
        clauses = ["subscription.reader_id = :reader"] if reader is not None else []
        clauses += ["subscription.state = 'active'"] if active_only else []
        where = f"WHERE {' AND '.join(clauses)}" if clauses else ""
        return self._select(f"{where} ORDER BY subscription.id", {"reader": reader} if reader is not None else {})

    def due(self, now: datetime, *, after: int = 0, limit: int = 500) -> Sequence[Subscription]:
        """Return active subscriptions with ``next_due_at <= now`` and a key larger than ``after``, by key."""
        return self._select(
            """WHERE subscription.id IN (SELECT id FROM subscription WHERE state = 'active' AND next_due_at IS NOT NULL
              AND next_due_at <= :now AND id > :after ORDER BY id LIMIT :limit) ORDER BY subscription.id""",
            {"now": instant(now), "after": after, "limit": limit},
        )

    def waiting(self, head: int, *, after: int = 0, limit: int = 500) -> Sequence[Subscription]:
        """Return active subscriptions told at each snapshot whose ``told_upto`` is below the ledger's head, by key."""
        return self._select(
            """WHERE subscription.id IN (SELECT id FROM subscription WHERE state = 'active' AND each_snapshot = 1
              AND told_upto < :head AND id > :after ORDER BY id LIMIT :limit) ORDER BY subscription.id""",
            {"head": head, "after": after, "limit": limit},
        )

    def next_due_at(self) -> datetime | None:
        """Return the earliest ``next_due_at`` of all active subscriptions; None if there is none."""
        rows = self._engine.query(
            """SELECT next_due_at FROM subscription WHERE state = 'active' AND next_due_at IS NOT NULL
            ORDER BY next_due_at LIMIT 1"""
        )
        return datetime.fromisoformat(rows[0]["next_due_at"]) if rows else None

    def advance(self, subscriptions: Sequence[Subscription]) -> None:
        """Write how far subscriptions were told, and nothing else of them."""
        self._engine.many(
            """UPDATE subscription SET told_upto = :told_upto, high_water_at = :high_water_at, next_due_at = :next_due_at,
              welcomed = :welcomed WHERE id = :key""",
            [progress_columns(subscription) | {"key": subscription.key} for subscription in subscriptions],
        )

    def _select(self, rest: str, args: Mapping[str, Any]) -> list[Subscription]:
        rows = self._engine.query(f"{_SUBSCRIPTION} {rest}", args)
        topics = self._topics([row["id"] for row in rows])
        return [to_subscription(row, topics.get(row["id"], ())) for row in rows]

    def _topics(self, keys: Sequence[int]) -> dict[int, list[str]]:
        topics: dict[int, list[str]] = {}
        for part in chunks(keys):
            marks, args = placeholders("k", part)
            for row in self._engine.query(
                f"""SELECT follow.subscription_id, topic.slug FROM follow JOIN topic ON topic.id = follow.topic_id
                WHERE follow.subscription_id IN {marks} ORDER BY follow.subscription_id, follow.place""",  # noqa: S608 # as above
                args,
            ):
                topics.setdefault(row["subscription_id"], []).append(row["slug"])
        return topics

    # -- slots

    def record_slots(self, key: int, slots: Sequence[SlotRecord]) -> None:
        """Write what became of slots, all or none; a label that stands already is an AlreadyExistsError."""
        self.record_all_slots([(key, slot) for slot in slots])

    def record_all_slots(self, slots: Sequence[tuple[int, SlotRecord]]) -> None:
        """Write what became of slots of many subscriptions, all or none, as :meth:`record_slots` does."""
        with self._engine.transaction():
            self._engine.many(
                """INSERT INTO slot (subscription_id, label, due_at, digest_key, coalesced_into)
                VALUES (:subscription, :label, :due_at, :digest_key, :coalesced_into)""",
                [slot_columns(key, slot) for key, slot in slots],
            )

    def slots(self, key: int) -> Sequence[SlotRecord]:
        """Return all slots of a subscription in the order of their labels."""
        rows = self._engine.query("SELECT * FROM slot WHERE subscription_id = :key ORDER BY label", {"key": key})
        return [to_slot(row) for row in rows]

    # -- digests

    def record_digest(self, record: DigestRecord) -> None:
        """Write a digest, its items and what it passed over, all or nothing."""
        self.record_digests([record])

    def record_digests(self, records: Sequence[DigestRecord]) -> None:
        """Write digests as :meth:`record_digest` does, all or none; what several share is written once and then copied."""
        with self._engine.transaction():
            self._engine.many(_ADD_DIGEST, [digest_columns(record) for record in records])
            told = [(record.items, record.key) for record in records if record.items]
            self._add_items(_sharers(told))
            passed = [(record.passed_over, record.key) for record in records if record.passed_over]
            self._add_passed_over(_sharers(passed))

    def _add_items(self, shared: Sequence[tuple[tuple[ToldItem, ...], Sequence[str]]]) -> None:
        topics = self._all_topics(item.topic for items, _ in shared for item in items if item.topic is not None)
        kept = self._kept({item.paper for items, _ in shared for item in items})
        self._engine.many(
            f"INSERT INTO told_item ({_ITEM}) SELECT id, subscription_id, :paper, :topic, :section, :position, :once "  # noqa: S608 # ours
            "FROM digest WHERE digest_key = :digest",
            (
                {
                    "digest": keys[0],
                    "paper": kept.get(item.paper, item.paper),
                    "topic": None if item.topic is None else topics[item.topic],
                    "section": item.section,
                    "position": item.position,
                    "once": _ONCE[item.section],
                }
                for items, keys in shared
                for item in items
            ),
        )
        self._copy(
            [keys for _, keys in shared],
            f"""INSERT INTO told_item ({_ITEM})
            SELECT digest.id, digest.subscription_id, one.paper_id, one.topic_id, one.section, one.position, one.once
            FROM digest CROSS JOIN told_item AS one
            WHERE one.digest_id = (SELECT id FROM digest WHERE digest_key = :first) AND digest.digest_key IN {{others}}
            ORDER BY digest.id, one.id""",  # noqa: S608 # ours
        )

    def _add_passed_over(self, shared: Sequence[tuple[tuple[tuple[int, str], ...], Sequence[str]]]) -> None:
        self._engine.many(
            """INSERT INTO passed_over (digest_id, position, why)
            SELECT id, :position, :why FROM digest WHERE digest_key = :digest""",
            (
                {"digest": keys[0], "position": position, "why": why}
                for passed, keys in shared
                for position, why in passed
            ),
        )
        self._copy(
            [keys for _, keys in shared],
            """INSERT INTO passed_over (digest_id, position, why)
            SELECT digest.id, one.position, one.why FROM digest CROSS JOIN passed_over AS one
            WHERE one.digest_id = (SELECT id FROM digest WHERE digest_key = :first) AND digest.digest_key IN {others}
            ORDER BY digest.id, one.position""",
        )

    def _copy(self, shared: Sequence[Sequence[str]], sql: str) -> None:
        """Copy rows of the first digest of each run to the others of it: the database does it without our rows."""
        for first, *others in shared:
            for part in chunks(others):
                marks, args = placeholders("d", part)
                self._engine.query(sql.format(others=marks), args | {"first": first})

    def digest(self, digest_key: str) -> DigestRecord:
        """Return a digest with its items; NotFoundError if there is none."""
        rows = self._engine.query("SELECT * FROM digest WHERE digest_key = :key", {"key": digest_key})
        if not rows:
            raise NotFoundError(f"digest {digest_key!r}: expected one of the history, found none")
        args = {"digest": rows[0]["id"]}
        items = self._engine.query(
            """SELECT told_item.*, topic.slug FROM told_item LEFT JOIN topic ON topic.id = told_item.topic_id
            WHERE told_item.digest_id = :digest ORDER BY told_item.id""",
            args,
        )
        kept = self._kept({row["paper_id"] for row in items})
        passed = self._engine.query(
            "SELECT position, why FROM passed_over WHERE digest_id = :digest ORDER BY position", args
        )
        return replace(
            to_digest(rows[0]),
            items=tuple(to_item(row | {"paper_id": kept.get(row["paper_id"], row["paper_id"])}) for row in items),
            passed_over=tuple((row["position"], row["why"]) for row in passed),
        )

    def digests(self, key: int | None = None, *, limit: int = 100) -> Sequence[DigestRecord]:
        """Return the newest digests, of one subscription or of all, newest first, without their items."""
        where = "WHERE subscription_id = :key" if key is not None else ""
        args = {"limit": limit} | ({"key": key} if key is not None else {})
        rows = self._engine.query(f"SELECT * FROM digest {where} ORDER BY id DESC LIMIT :limit", args)  # noqa: S608 # ours
        return [to_digest(row) for row in rows]

    def told(self, key: int, papers: Sequence[int]) -> frozenset[int]:
        """Return which of the papers a subscription was told, itself or as another that it is one with."""
        return self.told_of([key], papers)[key]

    def told_of(self, keys: Sequence[int], papers: Sequence[int]) -> Mapping[int, frozenset[int]]:
        """Return which of the papers the reader of each of some subscriptions was told, by it or by an earlier one."""
        kept = self._kept(set(papers))
        found: dict[int, set[int]] = {key: set() for key in keys}
        earlier = self._earlier(keys)
        asked = sorted({kept.get(paper, paper) for paper in papers})
        for some, part in product(chunks([*keys, *earlier]), chunks(asked)):
            whose, whom = placeholders("k", some)
            marks, args = placeholders("p", part)
            rows = self._engine.query(
                f"""SELECT subscription_id, paper_id FROM told_item WHERE subscription_id IN {whose} AND once = 'paper'
                AND paper_id IN {marks}""",  # noqa: S608 # only numbered parameters are put in
                args | whom,
            )
            for row in rows:
                found[earlier.get(row["subscription_id"], row["subscription_id"])].add(row["paper_id"])
        return {
            key: frozenset(paper for paper in papers if kept.get(paper, paper) in told) if told else frozenset()
            for key, told in found.items()
        }

    def _earlier(self, keys: Sequence[int]) -> dict[int, int]:
        """Return, by key, the earlier subscriptions of the same readers, and which of these took its place."""
        found: dict[int, int] = {}
        for part in chunks(keys):
            marks, args = placeholders("k", part)
            for row in self._engine.query(
                f"""SELECT earlier.id, subscription.id AS heir FROM subscription
                JOIN subscription AS earlier ON earlier.reader_id = subscription.reader_id AND earlier.id < subscription.id
                WHERE subscription.id IN {marks}""",  # noqa: S608 # as above
                args,
            ):
                found[row["id"]] = row["heir"]
        return found

    def papers_told(self, key: int) -> frozenset[int]:
        """Return all papers that a subscription was told, those that became one named by the one that was kept."""
        rows = self._engine.query(
            """SELECT told_item.paper_id FROM digest JOIN told_item ON told_item.digest_id = digest.id
            WHERE digest.subscription_id = :key AND told_item.once = 'paper'""",
            {"key": key},
        )
        return frozenset(row["paper_id"] for row in rows)

    def _kept(self, papers: Iterable[int]) -> dict[int, int]:
        """Return, of the papers that are one with another, which one was kept."""
        kept: dict[int, int] = {}
        for part in chunks(sorted(papers)):
            marks, args = placeholders("p", part)
            rows = self._engine.query(
                f"""WITH RECURSIVE heir (asked, id, merged_into) AS (
                  SELECT id, id, merged_into FROM paper WHERE id IN {marks} AND merged_into IS NOT NULL
                  UNION ALL SELECT heir.asked, paper.id, paper.merged_into FROM heir JOIN paper ON paper.id = heir.merged_into
                ) SELECT asked, id FROM heir WHERE merged_into IS NULL""",  # noqa: S608 # as above
                args,
            )
            kept |= {row["asked"]: row["id"] for row in rows}
        return kept


def _sharers(contents: Sequence[tuple[T, str]]) -> list[tuple[T, Sequence[str]]]:
    """Return each content with the keys of the digests that have this very one; equal ones are not looked for."""
    shared: dict[int, tuple[T, list[str]]] = {}
    for content, key in contents:
        shared.setdefault(id(content), (content, []))[1].append(key)
    return list(shared.values())
