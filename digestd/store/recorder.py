"""What one snapshot writes. Floor 3. Entry point: :class:`Recorder`; always inside one open transaction.

The diff says what shall be; this module only writes it, so every decision about papers is made by pure functions.
"""

from __future__ import annotations

import json
from base64 import b32encode
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import blake2b
from typing import Any

from digestd.identity import STRONG_SCHEMES, author_key, first_author, text_hash, text_print, title_print
from digestd.model.paper import KnownPaper, Paper, PaperId, Revision
from digestd.model.snapshot import Kind, Order, Page, PaperIntent, Sighting, SnapshotDiff, SnapshotMeta
from digestd.store.engine import Engine, chunks, placeholders
from digestd.store.rows import instant, iso, maybe_instant, momentum_text, paper_text

_TOLD = frozenset({Kind.NEW, Kind.NEWLY_TAGGED})


@dataclass(slots=True)
class _Work:
    """What one record call has looked up and given out so far."""

    meta: SnapshotMeta
    topics: dict[str, int]
    source: int
    snapshot: int
    keys: dict[int, int] = field(default_factory=dict)  #: index of the page's paper -> paper id
    added: set[int] = field(default_factory=set)  #: paper ids made by this call


class Recorder:
    """Writes snapshots."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def record(self, meta: SnapshotMeta, page: Page, diff: SnapshotDiff) -> None:
        """Write one snapshot."""
        self._engine.ledger_lock()
        work = self._begin(meta, page, diff)
        for intent in diff.papers:
            self._paper(work, intent)
        self._names_and_texts(work, diff.papers)
        self._sightings(work, diff.sightings)
        if page.order is Order.LISTING:
            self._list(work, self._stretches(work, diff), diff)
        for revision in diff.revisions:
            self._revision(work, revision)
        self._labels(work, page, diff.papers)
        self._topic(work, page, diff)

    # -- the snapshot itself

    def _begin(self, meta: SnapshotMeta, page: Page, diff: SnapshotDiff) -> _Work:
        slugs = sorted({meta.slug, *(sighting.topic for sighting in diff.sightings)})
        topics: dict[str, int] = {}
        for part in chunks(slugs):
            marks, args = placeholders("s", part)
            rows = self._engine.query(f"SELECT id, slug FROM topic WHERE slug IN {marks}", args)  # noqa: S608 # numbered
            topics |= {row["slug"]: row["id"] for row in rows}
        source = self._engine.query(
            """INSERT INTO source (name, created_at) VALUES (:name, :now)
            ON CONFLICT (name) DO UPDATE SET name = excluded.name RETURNING id""",
            {"name": meta.source, "now": instant(meta.now)},
        )[0]["id"]
        snapshot = self._engine.query(
            """INSERT INTO snapshot (topic_id, source_id, digest, raw_digest, origin, fetched_at, recorded_at, observed_at,
              list_order, format, total, papers, incomplete, momentum, warnings)
            VALUES (:topic, :source, :digest, :raw_digest, :origin, :fetched_at, :now, :observed_at,
              :list_order, :format, :total, :papers, :incomplete, :momentum, :warnings) RETURNING id""",
            {
                "topic": topics[meta.slug],
                "source": source,
                "digest": meta.digest,
                "raw_digest": meta.raw_digest,
                "origin": page.origin,
                "fetched_at": instant(meta.fetched_at),
                "now": instant(meta.now),
                "observed_at": maybe_instant(page.observed_at),
                "list_order": str(page.order),
                "format": page.format,
                "total": page.total_papers,
                "papers": len(page.papers) + page.unread,
                "incomplete": int(page.incomplete),
                "momentum": momentum_text(page.momentum),
                "warnings": json.dumps([*page.warnings, *diff.warnings], ensure_ascii=False),
            },
        )[0]["id"]
        return _Work(meta=meta, topics=topics, source=source, snapshot=snapshot)

    # -- papers

    def _paper(self, work: _Work, intent: PaperIntent) -> None:
        key = intent.key
        if key is None:
            key = self._insert(work, intent)
        elif intent.changed:
            self._count_all((key, *intent.merge), -1)
            for other in intent.merge:
                self._merge(key, other)
            self._update(key, intent)
            self._count_all((key,), 1)
        work.keys[intent.index] = key

    def _names_and_texts(self, work: _Work, intents: Sequence[PaperIntent]) -> None:
        """Write all names of the page's papers and the texts that its source showed; a name that stands keeps its paper."""
        self._engine.many(
            "INSERT INTO paper_name (name, paper_id) VALUES (:name, :key) ON CONFLICT (name) DO NOTHING",
            [
                {"name": str(name), "key": work.keys[intent.index]}
                for intent in intents
                if intent.changed
                for name in intent.ids
            ],
        )
        self._engine.many(
            """INSERT INTO shown (paper_id, source_id, text_hash) VALUES (:key, :source, :text)
            ON CONFLICT (paper_id, source_id, text_hash) DO NOTHING""",
            [
                {"key": work.keys[intent.index], "source": work.source, "text": text_print(intent.paper)}
                for intent in intents
            ],
        )

    def _insert(self, work: _Work, intent: PaperIntent) -> int:
        record = intent.record or intent.paper
        row = _columns(record, work.meta.fetched_at) | {
            "first_seen_at": instant(work.meta.fetched_at),
            "counted": int(intent.counted),
        }
        for public_id in _public_ids(intent.ids):
            inserted = self._engine.query(
                """INSERT INTO paper (public_id, title, abstract, authors, record, title_hash, author_hash, published,
                  effective_at, first_seen_at, counted)
                VALUES (:public_id, :title, :abstract, :authors, :record, :title_hash, :author_hash, :published,
                  :effective_at, :first_seen_at, :counted) ON CONFLICT (public_id) DO NOTHING RETURNING id""",
                row | {"public_id": public_id},
            )
            if inserted:
                key: int = inserted[0]["id"]
                work.added.add(key)
                return key
        raise AssertionError("a hundred names taken: the hash is broken")

    def _update(self, key: int, intent: PaperIntent) -> None:
        record = intent.record or intent.paper
        old = self._engine.query("SELECT first_seen_at, counted FROM paper WHERE id = :key", {"key": key})[0]
        first_seen_at = datetime.fromisoformat(old["first_seen_at"])
        row = _columns(record, first_seen_at) | {"key": key, "counted": int(intent.counted or old["counted"])}
        self._engine.query(
            """UPDATE paper SET title = :title, abstract = :abstract, authors = :authors, record = :record,
              title_hash = :title_hash, author_hash = :author_hash, published = :published, effective_at = :effective_at,
              counted = :counted WHERE id = :key""",
            row,
        )

    def _count_all(self, keys: Sequence[int], change: int) -> None:
        """Take papers out of the days of all topics where they were sighted, or put them in as they stand now."""
        marks, args = placeholders("k", keys)
        rows = self._engine.query(
            f"""SELECT ledger.topic_id, paper.published FROM ledger JOIN paper ON paper.id = ledger.paper_id
            WHERE ledger.paper_id IN {marks} AND ledger.topic_id IS NOT NULL AND ledger.dup_of IS NULL
            AND paper.counted = 1 AND paper.published IS NOT NULL""",  # noqa: S608 # only numbered parameters are put in
            args,
        )
        self._count_days(Counter((row["topic_id"], row["published"]) for row in rows), change)

    def _merge(self, key: int, other: int) -> None:
        """Make two papers one: the earlier sighting in a topic counts, the later one stands in the ledger as its double."""
        args = {"key": key, "other": other}
        doubles = self._engine.query(
            """SELECT mine.position AS one, theirs.position AS two, mine.topic_id AS topic
            FROM ledger AS mine JOIN ledger AS theirs ON theirs.topic_id = mine.topic_id
            WHERE mine.paper_id = :key AND theirs.paper_id = :other AND mine.dup_of IS NULL AND theirs.dup_of IS NULL""",
            args,
        )
        for double in doubles:
            first, second = sorted((double["one"], double["two"]))
            self._engine.query(
                "UPDATE ledger SET dup_of = :first WHERE position = :second", {"first": first, "second": second}
            )
            self._engine.query("UPDATE topic SET known = known - 1 WHERE id = :topic", {"topic": double["topic"]})
        self._engine.query("UPDATE ledger SET paper_id = :key WHERE paper_id = :other", args)
        for table, column in (("listed", "topic_id"), ("paper_label", "label")):
            self._engine.query(
                f"""DELETE FROM {table} WHERE paper_id = :other AND {column} IN
                (SELECT {column} FROM {table} WHERE paper_id = :key)""",  # noqa: S608 # our own table names
                args,
            )
            self._engine.query(f"UPDATE {table} SET paper_id = :key WHERE paper_id = :other", args)  # noqa: S608 # as above
        self._engine.query(
            """DELETE FROM shown WHERE paper_id = :other AND EXISTS (SELECT 1 FROM shown AS mine WHERE mine.paper_id = :key
            AND mine.source_id = shown.source_id AND mine.text_hash = shown.text_hash)""",
            args,
        )
        self._engine.query("UPDATE shown SET paper_id = :key WHERE paper_id = :other", args)
        self._engine.query("DELETE FROM unparsed WHERE paper_id = :other", args)
        self._engine.query("UPDATE paper_name SET paper_id = :key WHERE paper_id = :other", args)
        self._engine.query("UPDATE paper SET merged_into = :key WHERE id = :other", args)
        gone = self._engine.query("SELECT first_seen_at, revised_at, counted FROM paper WHERE id = :other", args)[0]
        self._engine.query(
            """UPDATE paper SET
              first_seen_at = CASE WHEN first_seen_at > :first_seen_at THEN :first_seen_at ELSE first_seen_at END,
              revised_at = CASE WHEN COALESCE(revised_at, '') < :revised_at THEN :revised_at ELSE revised_at END,
              counted = CASE WHEN counted < :counted THEN :counted ELSE counted END WHERE id = :key""",
            {"key": key} | gone,
        )

    # -- coverage

    def _stretches(self, work: _Work, diff: SnapshotDiff) -> int | None:
        """Write the topic's stretches and return the key of the one that the page belongs to."""
        own: int | None = None
        for ended, heir in diff.merged:
            args = {"heir": heir, "ended": ended}
            self._engine.query("UPDATE listed SET stretch_id = :heir WHERE stretch_id = :ended", args)
            self._engine.query("DELETE FROM stretch WHERE id = :ended", args)
        for place, stretch in enumerate(diff.stretches):
            if place != diff.page_stretch:
                continue
            row: dict[str, Any] = {
                "key": stretch.key,
                "topic": work.topics[work.meta.slug],
                "since": iso(stretch.since),
                "until": iso(stretch.until),
                "total": stretch.total,
                "seen_at": maybe_instant(stretch.seen_at),
                "open_below": int(stretch.open_below),
            }
            if stretch.key is None:
                sql = """INSERT INTO stretch (topic_id, since, until, total, seen_at, open_below)
                    VALUES (:topic, :since, :until, :total, :seen_at, :open_below) RETURNING id"""
            else:
                sql = """UPDATE stretch SET since = :since, until = :until, total = :total, seen_at = :seen_at,
                    open_below = :open_below WHERE id = :key RETURNING id"""
            own = self._engine.query(sql, row)[0]["id"]
        return own

    def _list(self, work: _Work, stretch: int | None, diff: SnapshotDiff) -> None:
        """Write which stretch holds each paper, and count those that the listing gained since its first total."""
        topic = work.topics[work.meta.slug]
        keys = [work.keys[intent.index] for intent in diff.papers]
        known = self._listed(topic, keys)
        self._engine.many(
            """INSERT INTO listed (topic_id, paper_id, stretch_id) VALUES (:topic, :paper, :stretch)
            ON CONFLICT (paper_id, topic_id) DO UPDATE SET stretch_id = COALESCE(excluded.stretch_id, listed.stretch_id)""",
            [{"topic": topic, "paper": key, "stretch": stretch} for key in keys],
        )
        self._engine.query(
            "UPDATE topic SET listed_since = listed_since + :since WHERE id = :topic AND first_total IS NOT NULL",
            {"since": self._gains(topic, [key for key in keys if key not in known], iso(diff.start)), "topic": topic},
        )

    def _listed(self, topic: int, keys: Sequence[int]) -> set[int]:
        found: set[int] = set()
        for part in chunks(keys):
            marks, args = placeholders("k", part)
            rows = self._engine.query(
                f"SELECT paper_id FROM listed WHERE topic_id = :topic AND paper_id IN {marks}",  # noqa: S608 # as above
                args | {"topic": topic},
            )
            found |= {row["paper_id"] for row in rows}
        return found

    def _gains(self, topic: int, keys: Sequence[int], start: str | None) -> int:
        """Return how many papers that the listing shows for the first time were not there when the topic began."""
        gains = 0
        for part in chunks(keys):
            marks, args = placeholders("k", part)
            rows = self._engine.query(
                f"""SELECT ledger.kind, paper.published FROM ledger JOIN paper ON paper.id = ledger.paper_id
                WHERE ledger.topic_id = :topic AND ledger.paper_id IN {marks} AND ledger.dup_of IS NULL""",  # noqa: S608 # as above
                args | {"topic": topic},
            )
            for row in rows:
                later = bool(start and row["published"] and row["published"] > start)
                gains += row["kind"] in _TOLD or (row["kind"] == Kind.BASELINE and later)
        return gains

    # -- the ledger

    def _sightings(self, work: _Work, sightings: Sequence[Sighting]) -> None:
        self._add_sightings(
            [
                {
                    "kind": str(sighting.kind),
                    "topic": work.topics[sighting.topic],
                    "paper": work.keys[sighting.index],
                    "snapshot": work.snapshot,
                    "via": sighting.via,
                    "cross_listed": int(sighting.cross_listed),
                }
                for sighting in sightings
            ],
            work.meta.fetched_at,
        )

    def _add_sightings(self, rows: Sequence[dict[str, Any]], seen_at: datetime) -> None:
        self._engine.many(
            """INSERT INTO ledger (kind, topic_id, paper_id, snapshot_id, via, cross_listed, seen_at)
            VALUES (:kind, :topic, :paper, :snapshot, :via, :cross_listed, :seen_at)""",
            [row | {"seen_at": instant(seen_at)} for row in rows],
        )
        self._engine.many(
            "UPDATE topic SET known = known + :papers WHERE id = :topic",
            [{"topic": topic, "papers": papers} for topic, papers in Counter(row["topic"] for row in rows).items()],
        )
        day_of: dict[int, str] = {}
        for part in chunks(sorted({row["paper"] for row in rows})):
            marks, args = placeholders("k", part)
            found = self._engine.query(
                f"""SELECT id, published FROM paper
                WHERE id IN {marks} AND counted = 1 AND published IS NOT NULL""",  # noqa: S608 # as above
                args,
            )
            day_of |= {row["id"]: row["published"] for row in found}
        self._count_days(
            Counter((row["topic"], day_of[row["paper"]]) for row in rows if row["paper"] in day_of), change=1
        )

    def _count_days(self, papers: Mapping[tuple[int, str], int], change: int) -> None:
        """Add papers, times ``change``, to the days of topics."""
        self._engine.many(
            """INSERT INTO topic_day (topic_id, day, papers) VALUES (:topic, :day, :change)
            ON CONFLICT (topic_id, day) DO UPDATE SET papers = topic_day.papers + excluded.papers""",
            [{"topic": topic, "day": day, "change": change * count} for (topic, day), count in papers.items()],
        )

    def _revision(self, work: _Work, revision: Revision) -> None:
        position = self._engine.query(
            """INSERT INTO ledger (kind, topic_id, paper_id, snapshot_id, via, seen_at)
            VALUES ('revision', NULL, :paper, :snapshot, 'page', :seen_at) RETURNING position""",
            {"paper": revision.key, "snapshot": work.snapshot, "seen_at": instant(work.meta.fetched_at)},
        )[0]["position"]
        self._engine.query(
            "INSERT INTO revision (position, changes, told) VALUES (:position, :changes, :told)",
            {
                "position": position,
                "changes": json.dumps(revision.changes, ensure_ascii=False),
                "told": int(revision.told),
            },
        )
        if revision.told:
            self._engine.query(
                "UPDATE paper SET revised_at = :now WHERE id = :paper",
                {"now": instant(work.meta.fetched_at), "paper": revision.key},
            )

    # -- labels and the topic's own row

    def relabel(self, key: int, record: Paper, topics: Mapping[str, Kind], *, seen_at: datetime) -> None:
        """Give a paper labels that were read late, and sight it in the topics (slug -> kind) that they name."""
        self._engine.query(
            "UPDATE paper SET record = :record WHERE id = :key", {"record": paper_text(record), "key": key}
        )
        self._engine.query("DELETE FROM unparsed WHERE paper_id = :key", {"key": key})
        self._add_labels([(key, label) for label in record.topics], listed=set(record.topics))
        for slug, kind in topics.items():
            self.sight([key], slug, kind, seen_at=seen_at)

    def sight(self, keys: Sequence[int], slug: str, kind: Kind, *, seen_at: datetime) -> None:
        """Write sightings that no snapshot made: by a label read late, or as a topic's baseline."""
        topic = self._engine.query("SELECT id FROM topic WHERE slug = :slug", {"slug": slug})[0]["id"]
        self._add_sightings(
            [
                {"kind": str(kind), "topic": topic, "paper": key, "snapshot": None, "via": "label", "cross_listed": 0}
                for key in keys
            ],
            seen_at,
        )

    def _add_labels(self, pairs: Sequence[tuple[int, str]], *, listed: Collection[str]) -> None:
        """Give papers (key, label) pairs; those that they have already are passed over.

        Only labels that a listing prints (``listed``) count as words that tag lines are cut by: the free keywords of feeds
        and services would cut them in wrong places.
        """
        known: set[tuple[int, str]] = set()
        for part in chunks(sorted({key for key, _ in pairs})):
            marks, args = placeholders("k", part)
            rows = self._engine.query(
                f"SELECT paper_id, label FROM paper_label WHERE paper_id IN {marks}",  # noqa: S608 # as above
                args,
            )
            known |= {(row["paper_id"], row["label"]) for row in rows}
        added = [pair for pair in dict.fromkeys(pairs) if pair not in known]
        self._engine.many(
            "INSERT INTO paper_label (label, paper_id) VALUES (:label, :key)",
            [{"label": label, "key": key} for key, label in added],
        )
        self._engine.many(
            """INSERT INTO label (name, seen) VALUES (:label, :seen)
            ON CONFLICT (name) DO UPDATE SET seen = label.seen + excluded.seen""",
            [
                {"label": label, "seen": seen if label in listed else 0}
                for label, seen in Counter(label for _, label in added).items()
            ],
        )
        # a feed may have given the label, to this paper or another, before a listing printed it
        self._engine.many(
            "UPDATE label SET seen = 1 WHERE name = :label AND seen = 0",
            [{"label": label} for label in sorted(listed)],
        )

    def _labels(self, work: _Work, page: Page, intents: Sequence[PaperIntent]) -> None:
        topic = work.topics[work.meta.slug]
        records = {work.keys[one.index]: one.record or one.paper for one in intents if one.changed}
        shown = intents if page.order is Order.LISTING else ()
        self._add_labels(
            [(key, label) for key, record in records.items() for label in record.topics],
            listed={label for one in shown for label in one.paper.topics},
        )
        self._engine.many(
            """INSERT INTO unparsed (paper_id, topic_id, run) VALUES (:key, :topic, :run)
            ON CONFLICT (paper_id) DO UPDATE SET run = excluded.run""",
            [
                {"key": key, "topic": topic, "run": record.topics_unparsed}
                for key, record in records.items()
                if record.topics_unparsed
            ],
        )
        self._engine.many(
            "DELETE FROM unparsed WHERE paper_id = :key",
            [{"key": key} for key, record in records.items() if not record.topics_unparsed and key not in work.added],
        )

    def _topic(self, work: _Work, page: Page, diff: SnapshotDiff) -> None:
        topic = work.topics[work.meta.slug]
        fetched_at = instant(work.meta.fetched_at)
        args: dict[str, Any] = {"topic": topic, "at": fetched_at, "gloss": page.gloss}
        self._engine.query(
            """UPDATE topic SET started = CASE WHEN started < :started THEN :started ELSE started END, start = :start,
              gloss = COALESCE(gloss, :gloss) WHERE id = :topic""",
            {"started": int(diff.first), "start": iso(diff.start), "topic": topic, "gloss": page.gloss},
        )
        if page.momentum is not None:
            self._engine.query(
                """UPDATE topic SET stated = :stated, stated_at = :at
                WHERE id = :topic AND (stated_at IS NULL OR stated_at <= :at)""",
                {"stated": momentum_text(page.momentum), "at": fetched_at, "topic": topic},
            )
        if page.total_papers is not None and page.order is Order.LISTING:
            self._engine.query(
                """UPDATE topic SET last_total = :total, total_at = :at
                WHERE id = :topic AND (total_at IS NULL OR total_at <= :at)""",
                args | {"total": page.total_papers},
            )
            if not page.incomplete or not diff.first:
                self._engine.query(
                    "UPDATE topic SET first_total = :total, listed_since = 0 WHERE id = :topic AND first_total IS NULL",
                    args | {"total": page.total_papers},
                )


def _public_ids(ids: Sequence[PaperId]) -> Iterator[str]:
    """Yield short permanent names, the same wherever the same paper is met first; the next one where one is taken."""
    best = min(ids, key=lambda name: (name.scheme not in STRONG_SCHEMES, name.scheme != "title", str(name)))
    for salt in range(100):
        digest = blake2b(f"{best}|{salt or ''}".encode(), digest_size=8).digest()
        yield b32encode(digest).decode().rstrip("=").lower()


def _columns(record: Paper, first_seen_at: datetime) -> dict[str, Any]:
    known = KnownPaper(key=0, paper=record, first_seen_at=first_seen_at)
    return {
        "title": record.title,
        "abstract": record.abstract,
        "authors": ", ".join((*record.authors, *((record.group,) if record.group else ()))),
        "record": paper_text(record),
        "title_hash": text_hash(title_print(record.title)),
        "author_hash": text_hash(author_key(first_author(record))),
        "published": iso(record.published),
        "effective_at": instant(known.effective_at),
    }
