"""What holds the history, the digests and the outbox against each other. Floor 3. Entry point: :class:`SqlAccounts`.

Nothing here writes. Rules about single rows are SQL and stand in account_rules.py; those about a reader's whole stretch of
the ledger are pure functions of the audit, which gets its rows here in pages.
"""

from __future__ import annotations

import json
from array import array
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from datetime import datetime
from typing import Any

from digestd.model.audit import (
    AcceptedRow,
    Check,
    Cursor,
    DatabaseState,
    Doubt,
    Finding,
    LateDot,
    Passing,
    ScheduleSpan,
    SeenWhere,
    Telling,
    ToldStretch,
)
from digestd.model.delivery import DeliveryState
from digestd.store.account_rules import RULES, Rule
from digestd.store.engine import Engine, chunks, placeholders
from digestd.store.rows import instant, to_instant
from digestd.store.rows_followers import to_schedule

#: a final "." that is on its way, or was: of finished attempts, and of the one under way
_DOTS = """SELECT attempt.outbox_id AS id, attempt.dot_at FROM attempt WHERE attempt.dot_at IS NOT NULL
  UNION SELECT outbox.id, outbox.dot_at FROM outbox WHERE outbox.phase = 'dot'"""


#: slots of a schedule by the clock: the label of any other names the ledger position that it was made at
_BY_CLOCK = "slot.label NOT LIKE '%~%'"


class SqlAccounts:
    """The accounts in a database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def reading(self) -> AbstractContextManager[None]:
        """Open a read transaction; never inside another."""
        return self._engine.reading()

    def database(self) -> DatabaseState:
        """Return what the database says of itself."""
        return self._engine.check()

    # -- rules about single rows

    def checks(self, *, now: datetime, most: int) -> Sequence[Check]:
        """Return the rules that rows can be held against one by one, each with its first findings."""
        totals: dict[str, int] = {}
        for rule in RULES:
            if rule.table not in totals:
                rows = self._engine.query(f"SELECT COUNT(*) AS total FROM {rule.table}")  # noqa: S608 # our table names
                totals[rule.table] = rows[0]["total"]
        return [self._check(rule, totals[rule.table], now=now, most=most) for rule in RULES]

    def _check(self, rule: Rule, looked_at: int, *, now: datetime, most: int) -> Check:
        args = {"now": instant(now)} if ":now" in rule.sql else {}
        rows = self._engine.query(f"{rule.sql} LIMIT :most", args | {"most": most + 1})
        findings = tuple(Finding(rule.code, row["thing"], str(row["found"]), str(row["expected"])) for row in rows)
        total = len(findings)
        if total > most:
            total = self._engine.query(f"SELECT COUNT(*) AS total FROM ({rule.sql}) AS wrong", args)[0]["total"]  # noqa: S608 # ours
        return Check(rule.code, rule.what, looked_at, findings[:most], total)

    # -- what each reader was told

    def cursors(self, *, after: int, limit: int) -> Sequence[Cursor]:
        """Return active subscriptions with a key larger than ``after``, by key."""
        rows = self._engine.query(
            """SELECT id, public_id, told_upto, followed_from FROM subscription WHERE state = 'active' AND id > :after
            ORDER BY id LIMIT :limit""",
            {"after": after, "limit": limit},
        )
        topics: dict[int, list[str]] = defaultdict(list)
        for part in chunks([row["id"] for row in rows]):
            marks, args = placeholders("k", part)
            for row in self._engine.query(
                f"""SELECT follow.subscription_id, topic.slug FROM follow JOIN topic ON topic.id = follow.topic_id
                WHERE follow.subscription_id IN {marks} ORDER BY follow.place""",  # noqa: S608 # only numbered parameters are put in
                args,
            ):
                topics[row["subscription_id"]].append(row["slug"])
        return [_cursor(row, topics[row["id"]]) for row in rows]

    def spans(self, *, after: int, limit: int) -> Sequence[ScheduleSpan]:
        """Return stretches of time with a key larger than ``after``, by key, each with the slots on record in it."""
        rows = self._engine.query(
            f"""SELECT span.*, COUNT(slot.label) AS slots,
              COALESCE(SUM(CAST(strftime('%s', slot.due_at) AS INTEGER)), 0) AS seconds
            FROM (SELECT schedule_span.id, schedule_span.subscription_id, subscription.public_id, schedule_span.schedule,
                schedule_span.zone, schedule_span.since,
                COALESCE(schedule_span.until, subscription.high_water_at, subscription.created_at) AS until
              FROM schedule_span JOIN subscription ON subscription.id = schedule_span.subscription_id
              WHERE schedule_span.id > :after ORDER BY schedule_span.id LIMIT :limit) AS span
            LEFT JOIN slot ON slot.subscription_id = span.subscription_id AND {_BY_CLOCK}
              AND slot.due_at > span.since AND slot.due_at <= span.until
            GROUP BY span.id ORDER BY span.id""",  # noqa: S608 # our own text
            {"after": after, "limit": limit},
        )
        return [
            ScheduleSpan(
                key=row["id"],
                public_id=row["public_id"],
                subscription=row["subscription_id"],
                schedule=to_schedule(row["schedule"]),
                zone=row["zone"],
                since=to_instant(row["since"]),
                until=to_instant(row["until"]),
                slots=row["slots"],
                seconds=row["seconds"],
            )
            for row in rows
        ]

    def slot_labels(self, subscription: int, since: datetime, until: datetime) -> frozenset[str]:
        """Return the labels of a subscription's slots by the clock that were due in a stretch of time, its end included."""
        rows = self._engine.query(
            f"""SELECT label FROM slot WHERE subscription_id = :key AND {_BY_CLOCK}
            AND due_at > :since AND due_at <= :until""",  # noqa: S608 # our own text
            {"key": subscription, "since": instant(since), "until": instant(until)},
        )
        return frozenset(row["label"] for row in rows)

    def stretches(self, keys: Sequence[int]) -> Mapping[int, Sequence[ToldStretch]]:
        """Return, by subscription, what its digests account for, oldest first."""
        found: dict[int, list[ToldStretch]] = defaultdict(list)
        for part in chunks(keys):
            marks, args = placeholders("k", part)
            digests = self._engine.query(
                f"""SELECT id, subscription_id, digest_key, after_position, upto FROM digest
                WHERE subscription_id IN {marks} ORDER BY subscription_id, id""",  # noqa: S608 # as above
                args,
            )
            positions, papers = self._accounted(marks, args)
            for row in digests:
                stretch = ToldStretch(row["digest_key"], row["after_position"], row["upto"])
                known = frozenset(positions[row["id"]]), frozenset(papers[row["id"]])
                found[row["subscription_id"]].append(replace(stretch, positions=known[0], papers=known[1]))
        return found

    def _accounted(self, marks: str, args: Mapping[str, Any]) -> tuple[dict[int, set[int]], dict[int, set[int]]]:
        """Return, by digest, the positions that it told or passed over, and the papers that it told."""
        positions: dict[int, set[int]] = defaultdict(set)
        papers: dict[int, set[int]] = defaultdict(set)
        for row in self._engine.query(
            f"""SELECT told_item.digest_id, told_item.position, told_item.once, ledger.paper_id
            FROM digest JOIN told_item ON told_item.digest_id = digest.id
            JOIN ledger ON ledger.position = told_item.position WHERE digest.subscription_id IN {marks}""",  # noqa: S608 # as above
            args,
        ):
            positions[row["digest_id"]].add(row["position"])
            if row["once"] != "revision":
                papers[row["digest_id"]].add(row["paper_id"])
        for row in self._engine.query(
            f"""SELECT passed_over.digest_id, passed_over.position FROM digest
            JOIN passed_over ON passed_over.digest_id = digest.id WHERE digest.subscription_id IN {marks}""",  # noqa: S608 # as above
            args,
        ):
            positions[row["digest_id"]].add(row["position"])
        return positions, papers

    def news_of(self, slug: str) -> tuple[Sequence[int], Sequence[int]]:
        """Return the positions of a topic's sightings that readers are told, growing, and their papers."""
        rows = self._engine.query(
            """SELECT position, paper_id FROM ledger WHERE topic_id = (SELECT id FROM topic WHERE slug = :slug)
            AND kind IN ('new', 'newly_tagged') AND dup_of IS NULL ORDER BY position""",
            {"slug": slug},
        )
        # machine integers: a history of a million sightings fits into 16 MB
        return array("q", (row["position"] for row in rows)), array("q", (row["paper_id"] for row in rows))

    def changes(self) -> Mapping[int, Sequence[int]]:
        """Return the positions of revisions that readers are told, by paper; without papers that were two once."""
        found: dict[int, list[int]] = defaultdict(list)
        for row in self._engine.query(
            """SELECT ledger.position, ledger.paper_id FROM revision JOIN ledger ON ledger.position = revision.position
            WHERE revision.told = 1
              AND ledger.paper_id NOT IN (SELECT merged_into FROM paper WHERE merged_into IS NOT NULL)
            ORDER BY ledger.position"""
        ):
            found[row["paper_id"]].append(row["position"])
        return found

    # -- the outbox

    def late_dots(self) -> Sequence[LateDot]:
        """Return the attempts that came to the final "." while a suppression stood that covers them."""
        rows = self._engine.query(
            f"""SELECT dots.id, dots.dot_at, suppression.at, suppression.reason
            FROM suppression JOIN reader ON reader.canonical = suppression.address
            JOIN outbox ON outbox.reader_id = reader.id AND suppression.scope IN ('all', outbox.scope)
            JOIN ({_DOTS}) AS dots ON dots.id = outbox.id
            WHERE dots.dot_at > suppression.at AND (suppression.lifted_at IS NULL OR dots.dot_at <= suppression.lifted_at)
            AND NOT (outbox.kind IN ('confirm', 'trouble') AND suppression.reason = 'unsubscribed')
            ORDER BY dots.id, dots.dot_at"""  # noqa: S608 # our own text
        )
        return [LateDot(row["id"], to_instant(row["dot_at"]), to_instant(row["at"]), row["reason"]) for row in rows]

    def doubt(self) -> Doubt:
        """Return what became of deliveries whose fate was unknown once."""
        row = self._engine.query(
            """SELECT COUNT(*) AS opened, COALESCE(SUM(resent), 0) AS resent,
              COALESCE(SUM(CASE WHEN state = 'uncertain' THEN 1 ELSE 0 END), 0) AS held,
              COALESCE(SUM(CASE WHEN state IN ('accepted', 'failed', 'suppressed', 'poison') THEN 1 ELSE 0 END), 0) AS resolved
            FROM outbox WHERE flagged = 1"""
        )[0]
        return Doubt(row["opened"], row["resent"], row["held"], row["resolved"])

    def oldest_ready(self) -> datetime | None:
        """Return when the ready row that is longest due was due; None if none is ready."""
        rows = self._engine.query("SELECT MIN(next_at) AS at FROM outbox WHERE state = 'ready'")
        return to_instant(rows[0]["at"]) if rows[0]["at"] else None

    def accepted(self, most: int) -> Sequence[int]:
        """Return keys of accepted rows with a hash, whose mail is kept, at most so many, spread over all of them."""
        kept = "FROM outbox WHERE state = 'accepted' AND fields <> '' ORDER BY settled_at"  # what was forgotten can't be built
        first, last = (self._engine.query(f"SELECT id {kept} {way} LIMIT 1") for way in ("ASC", "DESC"))  # our own text
        if not first:
            return ()
        ends = {"first": min(first[0]["id"], last[0]["id"]), "last": max(first[0]["id"], last[0]["id"])}
        step = max(1, (ends["last"] - ends["first"] + 1) / most)
        keys: set[int] = set()
        for place in range(most):
            rows = self._engine.query(
                """SELECT id FROM outbox WHERE state = 'accepted' AND fields <> '' AND sha256 IS NOT NULL
                AND id >= :begin ORDER BY id LIMIT 1""",
                {"begin": ends["first"] + int(place * step)},
            )
            keys.update(row["id"] for row in rows)
        return sorted(keys)

    def rows(self, *, after: int, limit: int) -> Sequence[AcceptedRow]:
        """Return the outbox rows with a key larger than ``after``, by key."""
        rows = self._engine.query(
            "SELECT id, message_id, state, flagged, phase FROM outbox WHERE id > :after ORDER BY id LIMIT :limit",
            {"after": after, "limit": limit},
        )
        return [
            AcceptedRow(
                row["id"], row["message_id"], DeliveryState(row["state"]), bool(row["flagged"]), row["phase"] == "dot"
            )
            for row in rows
        ]

    # -- one paper, one reader

    def find_papers(self, names: Sequence[str]) -> Sequence[int]:
        """Return the keys of the papers with one of these names or public ids; merged ones as they were kept."""
        found: set[int] = set()
        for part in chunks(names):
            marks, args = placeholders("n", part)
            for row in self._engine.query(
                f"""WITH RECURSIVE heir (id, merged_into) AS (
                  SELECT id, merged_into FROM paper WHERE public_id IN {marks}
                    OR id IN (SELECT paper_id FROM paper_name WHERE name IN {marks})
                  UNION SELECT paper.id, paper.merged_into FROM heir JOIN paper ON paper.id = heir.merged_into
                ) SELECT id FROM heir WHERE merged_into IS NULL""",  # noqa: S608 # as above
                args,
            ):
                found.add(row["id"])
        return sorted(found)

    def seen_where(self, paper: int) -> Sequence[SeenWhere]:
        """Return which snapshots made a paper's sightings, in ledger order."""
        rows = self._engine.query(
            """SELECT ledger.position, source.name, snapshot.origin, topic.slug FROM ledger
            LEFT JOIN snapshot ON snapshot.id = ledger.snapshot_id LEFT JOIN source ON source.id = snapshot.source_id
            LEFT JOIN topic ON topic.id = snapshot.topic_id
            WHERE ledger.paper_id = :paper AND ledger.topic_id IS NOT NULL AND ledger.dup_of IS NULL
            ORDER BY ledger.position""",
            {"paper": paper},
        )
        return [SeenWhere(row["position"], row["name"], row["origin"], row["slug"]) for row in rows]

    def tellings(self, subscription: int, paper: int) -> Sequence[Telling]:
        """Return when a subscription was told a paper and its changes, oldest first."""
        rows = self._engine.query(
            """SELECT digest.digest_key, digest.made_at, told_item.section, told_item.position, topic.slug
            FROM digest JOIN told_item ON told_item.digest_id = digest.id
            JOIN ledger ON ledger.position = told_item.position LEFT JOIN topic ON topic.id = told_item.topic_id
            WHERE digest.subscription_id = :key AND ledger.paper_id = :paper ORDER BY digest.id, told_item.id""",
            {"key": subscription, "paper": paper},
        )
        return [
            Telling(row["digest_key"], to_instant(row["made_at"]), row["section"], row["slug"], row["position"])
            for row in rows
        ]

    def passings(self, subscription: int, positions: Sequence[int]) -> Sequence[Passing]:
        """Return where a subscription's digests passed these ledger rows over, in ledger order."""
        found: list[Passing] = []
        for part in chunks(sorted(positions)):
            marks, args = placeholders("p", part)
            found += [
                Passing(row["digest_key"], to_instant(row["made_at"]), row["position"], row["why"])
                for row in self._engine.query(
                    f"""SELECT digest.digest_key, digest.made_at, passed_over.position, passed_over.why
                    FROM digest JOIN passed_over ON passed_over.digest_id = digest.id
                    WHERE digest.subscription_id = :key AND passed_over.position IN {marks}
                    ORDER BY passed_over.position""",  # noqa: S608 # as above
                    args | {"key": subscription},
                )
            ]
        return found

    # -- mail that came back

    def digest_of_mail(self, reader: int, message_id: str) -> str | None:
        """Return the key of the digest that a reader was sent under this Message-ID; None if there is none."""
        rows = self._engine.query(
            "SELECT digest_key FROM outbox WHERE reader_id = :reader AND message_id = :message_id LIMIT 1",
            {"reader": reader, "message_id": message_id},
        )
        return rows[0]["digest_key"] if rows else None

    def has_bounce(self, address: str, kind: str, digest_key: str) -> bool:
        """Return whether this kind of report of this digest was recorded before."""
        return bool(
            self._engine.query(
                """SELECT id FROM bounce WHERE address = :address AND kind = :kind AND digest_key = :digest_key LIMIT 1""",
                {"address": address.casefold(), "kind": kind, "digest_key": digest_key},
            )
        )


def _cursor(row: Mapping[str, Any], slugs: Sequence[str]) -> Cursor:
    begun = dict(json.loads(row["followed_from"]))
    return Cursor(row["id"], row["public_id"], row["told_upto"], tuple((slug, begun.get(slug, 0)) for slug in slugs))
