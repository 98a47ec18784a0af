"""Feeds as they were read the last time. Floor 3. Entry point: :class:`SqlFeedsRead`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from digestd.identity import text_hash
from digestd.model.slices import KnownFeed, KnownSlice
from digestd.store.engine import Engine, chunks, placeholders


class SqlFeedsRead:
    """The feeds read in a database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def find(self, place: str) -> KnownFeed | None:
        """Return what is kept of a feed; None if it has to be read whole."""
        rows = self._engine.query("SELECT * FROM feed_read WHERE place = :place", {"place": place})
        if not rows:
            return None
        row = rows[0]
        slices = tuple(
            KnownSlice(bytes_hash, paper, record_hash, content, title, tuple(names))
            for bytes_hash, paper, record_hash, content, title, names in json.loads(row["slices"])
        )
        return KnownFeed(row["head_hash"], row["rules_hash"], row["topic"], row["source"], slices)

    def put(self, place: str, feed: KnownFeed | None) -> None:
        """Keep a feed in place of what was kept before; None forgets it."""
        if feed is None:
            self._engine.query("DELETE FROM feed_read WHERE place = :place", {"place": place})
            return
        slices = [
            [one.bytes_hash, one.paper, one.record_hash, one.content, one.title, one.names] for one in feed.slices
        ]
        self._engine.query(
            """INSERT INTO feed_read (place, head_hash, rules_hash, topic, source, slices)
            VALUES (:place, :head, :rules, :topic, :source, :slices)
            ON CONFLICT (place) DO UPDATE SET head_hash = excluded.head_hash, rules_hash = excluded.rules_hash,
              topic = excluded.topic, source = excluded.source, slices = excluded.slices""",
            {
                "place": place,
                "head": feed.head_hash,
                "rules": feed.rules_hash,
                "topic": feed.topic,
                "source": feed.source,
                "slices": json.dumps(slices, separators=(",", ":")),
            },
        )

    def records(self, papers: Sequence[int]) -> Mapping[int, int]:
        """Return key -> hash of the record of those papers that were not merged into others."""
        found: dict[int, int] = {}
        for part in chunks(papers):
            marks, args = placeholders("k", part)
            rows = self._engine.query(
                f"SELECT id, record, counted FROM paper WHERE id IN {marks} AND merged_into IS NULL",  # noqa: S608 # only numbered parameters are put in
                args,
            )
            found |= {row["id"]: text_hash(f"{row['counted']}{row['record']}") for row in rows}
        return found

    def bearers(self, names: Sequence[str]) -> Mapping[str, int]:
        """Return name -> key of the paper that bears it."""
        found: dict[str, int] = {}
        for part in chunks(names):
            marks, args = placeholders("n", part)
            rows = self._engine.query(
                f"SELECT name, paper_id FROM paper_name WHERE name IN {marks}",  # noqa: S608 # as above
                args,
            )
            found |= {row["name"]: row["paper_id"] for row in rows}
        return found
