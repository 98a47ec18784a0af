"""What pages and feeds ask of the history. Floor 3. Entry point: :class:`SqlPages`; nothing here writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from digestd.model.pages import FeedMarks, ListedPaper, ListPlace, PaperSight, SearchWish, SeenRevision
from digestd.model.paper import KnownPaper, Revision
from digestd.model.snapshot import Kind, LedgerRow
from digestd.store.engine import Engine, chunks, placeholders
from digestd.store.rows import iso, to_changes, to_instant, to_known, to_name, to_topic

_TOLD = (str(Kind.NEW), str(Kind.NEWLY_TAGGED))


class SqlPages:
    """The pages' view of a database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def topic_papers(
        self, slug: str, *, label: str | None = None, after: ListPlace | None = None, limit: int
    ) -> Sequence[ListedPaper]:
        """Return a topic's papers, newest first, those of one instant as their page had them."""
        args: dict[str, Any] = {"slug": slug, "limit": limit}
        wanted = ""
        if label is not None:
            wanted += """ AND EXISTS (SELECT 1 FROM paper_label
              WHERE paper_label.paper_id = paper.id AND paper_label.label = :label)"""
            args["label"] = label
        if after is not None:
            wanted += """ AND (paper.effective_at < :instant
              OR (paper.effective_at = :instant AND ledger.position > :position))"""
            args |= {"instant": after.instant, "position": after.position}
        rows = self._engine.query(
            f"""SELECT paper.*, sight.kind, sight.position FROM (
              SELECT paper.id, ledger.kind, ledger.position, paper.effective_at
              FROM topic JOIN ledger ON ledger.topic_id = topic.id JOIN paper ON paper.id = ledger.paper_id
              WHERE topic.slug = :slug AND ledger.dup_of IS NULL{wanted}
              ORDER BY paper.effective_at DESC, ledger.position LIMIT :limit
            ) AS sight JOIN paper ON paper.id = sight.id
            ORDER BY sight.effective_at DESC, sight.position""",  # noqa: S608 # our own words only
            args,
        )
        names = self._names([row["id"] for row in rows])
        return [
            ListedPaper(to_known(row, names.get(row["id"], ())), Kind(row["kind"]), position=row["position"])
            for row in rows
        ]

    def place(self, slug: str, public_id: str) -> ListPlace | None:
        """Return where a paper stands in a topic's list; None if it is not in it."""
        rows = self._engine.query(
            """SELECT paper.effective_at, ledger.position FROM paper
            JOIN ledger ON ledger.paper_id = paper.id AND ledger.dup_of IS NULL JOIN topic ON topic.id = ledger.topic_id
            WHERE paper.public_id = :public AND topic.slug = :slug""",
            {"public": public_id, "slug": slug},
        )
        return ListPlace(rows[0]["effective_at"], rows[0]["position"]) if rows else None

    def labels(self, slug: str, *, limit: int) -> Sequence[tuple[str, int]]:
        """Return the labels of a topic's papers and how many papers have each, most first, then by name."""
        rows = self._engine.query(
            """SELECT paper_label.label, COUNT(*) AS papers FROM topic
            JOIN ledger ON ledger.topic_id = topic.id AND ledger.dup_of IS NULL
            JOIN paper_label ON paper_label.paper_id = ledger.paper_id
            WHERE topic.slug = :slug AND paper_label.label <> topic.name
            GROUP BY paper_label.label ORDER BY papers DESC, paper_label.label LIMIT :limit""",
            {"slug": slug, "limit": limit},
        )
        return [(row["label"], row["papers"]) for row in rows]

    def label_papers(self, slug: str, label: str) -> int:
        """Return how many of a topic's papers have a label."""
        rows = self._engine.query(
            """SELECT COUNT(*) AS papers FROM topic JOIN ledger ON ledger.topic_id = topic.id AND ledger.dup_of IS NULL
            JOIN paper_label ON paper_label.paper_id = ledger.paper_id AND paper_label.label = :label
            WHERE topic.slug = :slug""",
            {"slug": slug, "label": label},
        )
        return int(rows[0]["papers"])

    def paper(self, public_id: str) -> KnownPaper | None:
        """Return the paper of this public id, or the one that it was merged into; None if there is none."""
        rows = self._engine.query("SELECT * FROM paper WHERE public_id = :public", {"public": public_id})
        while rows and rows[0]["merged_into"] is not None:
            rows = self._engine.query("SELECT * FROM paper WHERE id = :id", {"id": rows[0]["merged_into"]})
        if not rows:
            return None
        return to_known(rows[0], self._names([rows[0]["id"]]).get(rows[0]["id"], ()))

    def papers(self, keys: Sequence[int]) -> Mapping[int, KnownPaper]:
        """Return papers by the keys asked for; one that was merged is returned as the one that was kept."""
        kept = {key: key for key in keys}
        found: dict[int, KnownPaper] = {}
        wanted = set(keys)
        while wanted:
            rows = [row for part in chunks(sorted(wanted)) for row in self._rows(part)]
            names = self._names([row["id"] for row in rows])
            into = {row["id"]: row["merged_into"] for row in rows if row["merged_into"] is not None}
            found |= {row["id"]: to_known(row, names.get(row["id"], ())) for row in rows if row["id"] not in into}
            kept = {key: into.get(now, now) for key, now in kept.items()}
            wanted = set(into.values()) - found.keys()
        return {key: found[now] for key, now in kept.items() if now in found}

    def _rows(self, keys: Sequence[int]) -> list[dict[str, Any]]:
        marks, args = placeholders("k", keys)
        return self._engine.query(f"SELECT * FROM paper WHERE id IN {marks}", args)  # noqa: S608 # as above

    def sights(self, key: int) -> Sequence[PaperSight]:
        """Return where a paper was first seen, in ledger order."""
        rows = self._engine.query(
            """SELECT ledger.kind, ledger.seen_at, topic.* FROM ledger JOIN topic ON topic.id = ledger.topic_id
            WHERE ledger.paper_id = :key AND ledger.dup_of IS NULL ORDER BY ledger.position""",
            {"key": key},
        )
        return [PaperSight(to_topic(row), Kind(row["kind"]), to_instant(row["seen_at"])) for row in rows]

    def changes(self, key: int) -> Sequence[tuple[datetime, Revision]]:
        """Return the real changes of a paper and when each was seen, newest first."""
        rows = self._engine.query(
            """SELECT revision.changes, ledger.seen_at FROM ledger JOIN revision ON revision.position = ledger.position
            WHERE ledger.paper_id = :key AND revision.told = 1 ORDER BY ledger.position DESC""",
            {"key": key},
        )
        return [(to_instant(row["seen_at"]), Revision(key, to_changes(row["changes"]))) for row in rows]

    def topic_changes(self, slug: str, *, limit: int) -> Sequence[SeenRevision]:
        """Return the newest real changes of a topic's papers, newest first."""
        rows = self._engine.query(
            """SELECT revision.position AS number, revision.changes, change.seen_at AS changed_at,
              sight.kind, sight.position, sight.seen_at, topic.slug, paper.*
            FROM revision JOIN ledger AS change ON change.position = revision.position
            JOIN paper ON paper.id = change.paper_id
            JOIN ledger AS sight ON sight.paper_id = paper.id AND sight.dup_of IS NULL
            JOIN topic ON topic.id = sight.topic_id
            WHERE revision.told = 1 AND topic.slug = :slug AND sight.position < revision.position
            ORDER BY revision.position DESC LIMIT :limit""",
            {"slug": slug, "limit": limit},
        )
        names = self._names([row["id"] for row in rows])
        return [
            SeenRevision(
                _ledger_row(row, names.get(row["id"], ())),
                Revision(row["id"], to_changes(row["changes"])),
                row["number"],
                to_instant(row["changed_at"]),
            )
            for row in rows
        ]

    def latest(self, slugs: Sequence[str] | None, *, limit: int) -> Sequence[LedgerRow]:
        """Return the newest sightings that followers are told, in some topics or all, newest first."""
        marks, args = placeholders("kind", _TOLD)
        wanted = ""
        if slugs is not None:
            if not slugs:
                return []
            some, more = placeholders("slug", slugs)
            wanted, args = f" AND topic.slug IN {some}", args | more
        rows = self._engine.query(
            f"""SELECT ledger.position, ledger.kind, ledger.seen_at, topic.slug, paper.*
            FROM ledger JOIN topic ON topic.id = ledger.topic_id JOIN paper ON paper.id = ledger.paper_id
            WHERE ledger.dup_of IS NULL AND ledger.kind IN {marks}{wanted} AND paper.counted = 1
            ORDER BY ledger.position DESC LIMIT :limit""",  # noqa: S608 # as above
            args | {"limit": limit},
        )
        names = self._names([row["id"] for row in rows])
        return [_ledger_row(row, names.get(row["id"], ())) for row in rows]

    def search(self, wish: SearchWish, *, limit: int) -> Sequence[ListedPaper]:
        """Return the papers that fit, best first, each with the piece of its abstract that holds the words."""
        hits = dict(self._engine.search_pages(wish, limit=limit))
        known = self.papers(list(hits))
        return [ListedPaper(known[key], snippet=snippet) for key, snippet in hits.items() if key in known]

    def weeks(self, since: date, until: date) -> Sequence[tuple[date, str, str, int]]:
        """Return (Monday, slug, topic, counted papers) of the weeks that begin in [since, until), newest first, most first."""
        rows = self._engine.query(
            """SELECT topic.slug, topic.name, topic_day.day, topic_day.papers FROM topic_day
            JOIN topic ON topic.id = topic_day.topic_id
            WHERE topic_day.day >= :since AND topic_day.day < :until AND topic_day.papers > 0""",
            {"since": iso(since), "until": iso(until + timedelta(days=6))},
        )
        counts: dict[tuple[date, str, str], int] = {}
        for row in rows:
            day = date.fromisoformat(row["day"])
            key = (day - timedelta(days=day.weekday()), row["slug"], row["name"])
            if since <= key[0] < until:
                counts[key] = counts.get(key, 0) + row["papers"]
        found = [(*key, papers) for key, papers in counts.items()]
        return sorted(found, key=lambda one: (-one[0].toordinal(), -one[3], one[2], one[1]))

    def marks(self) -> FeedMarks:
        """Return how far the history has come, to be asked again what changed since."""
        row = self._engine.query(
            """SELECT (SELECT COALESCE(MAX(position), 0) FROM ledger) AS position,
              (SELECT COALESCE(MAX(id), 0) FROM paper_touched) AS touched,
              (SELECT COALESCE(MAX(id), 0) FROM snapshot) AS snapshot"""
        )[0]
        return FeedMarks(row["position"], row["touched"], row["snapshot"])

    def changed_topics(self, since: FeedMarks) -> frozenset[str]:
        """Return the slugs of topics with a snapshot, a sighting, or a paper whose record changed, after the marks."""
        rows = self._engine.query(
            """SELECT DISTINCT topic.slug FROM ledger JOIN topic ON topic.id = ledger.topic_id
            WHERE ledger.position > :position
            UNION SELECT DISTINCT topic.slug FROM snapshot JOIN topic ON topic.id = snapshot.topic_id
            WHERE snapshot.id > :snapshot
            UNION SELECT DISTINCT topic.slug FROM paper_touched
            JOIN ledger ON ledger.paper_id = paper_touched.paper_id JOIN topic ON topic.id = ledger.topic_id
            WHERE paper_touched.id > :touched""",
            {"position": since.position, "touched": since.touched, "snapshot": since.snapshot},
        )
        return frozenset(row["slug"] for row in rows)

    def _names(self, keys: Sequence[int]) -> dict[int, tuple[Any, ...]]:
        found: dict[int, list[Any]] = {}
        for part in chunks(keys):
            marks, args = placeholders("k", part)
            rows = self._engine.query(
                f"SELECT paper_id, name FROM paper_name WHERE paper_id IN {marks} ORDER BY name",  # noqa: S608 # as above
                args,
            )
            for row in rows:
                found.setdefault(row["paper_id"], []).append(to_name(row["name"]))
        return {key: tuple(names) for key, names in found.items()}


def _ledger_row(row: Mapping[str, Any], names: tuple[Any, ...]) -> LedgerRow:
    return LedgerRow(
        position=row["position"],
        kind=Kind(row["kind"]),
        topic=row["slug"],
        known=to_known(row, names),
        seen_at=to_instant(row["seen_at"]),
    )
