"""Papers, topics and the ledger, as repositories over an engine. Floor 3. Entry point: :class:`SqlHistory`.

This module reads; what one snapshot writes is in recorder.py. Neither asks which engine it has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

from digestd.diff import SourceView
from digestd.errors import NotFoundError
from digestd.identity import author_keys, first_author, text_hash, title_print
from digestd.matching import page_names
from digestd.model.paper import KnownPaper, Paper, PaperId, Revision
from digestd.model.snapshot import (
    Coverage,
    Kind,
    Known,
    LedgerRow,
    Order,
    Page,
    SnapshotDiff,
    SnapshotMeta,
    StatedMomentum,
    TopicState,
)
from digestd.model.topic import Topic, Vocabulary
from digestd.store.engine import Engine, chunks, placeholders
from digestd.store.recorder import Recorder
from digestd.store.rows import (
    instant,
    iso,
    rule_text,
    to_changes,
    to_instant,
    to_known,
    to_momentum,
    to_name,
    to_paper,
    to_stretch,
    to_topic,
)
from digestd.topics import name_key, other_topics

#: papers with a common first author that may be nearly equal: only those published near the page's papers
_SIMILAR_DAYS = 8

#: and the newest of them, this many for each paper of the page
_SIMILAR_PAPERS = 50

#: more rows than any history has
_ALL = 2**62

_SIGHTINGS = """SELECT ledger.position, ledger.kind AS sighted, ledger.via, ledger.cross_listed, ledger.seen_at, topic.slug,
  paper.* FROM ledger JOIN paper ON paper.id = ledger.paper_id JOIN topic ON topic.id = ledger.topic_id
  WHERE ledger.dup_of IS NULL"""
_LEDGER = f"{_SIGHTINGS} AND topic.slug = :slug"


class SqlHistory:
    """The history in a database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._recorder = Recorder(engine)

    # -- topics and labels

    def vocabulary(self) -> Vocabulary:
        """Return all labels of listings and topic names known, with how often each was seen."""
        counts = {row["name"]: row["seen"] for row in self._engine.query("SELECT name, seen FROM label WHERE seen > 0")}
        for row in self._engine.query("SELECT name FROM topic WHERE name IS NOT NULL"):
            counts.setdefault(row["name"], 1)
        return Vocabulary(counts)

    def topics(self) -> Sequence[Topic]:
        """Return all topics, by name."""
        return [to_topic(row) for row in self._engine.query("SELECT * FROM topic ORDER BY name, slug")]

    def topic(self, slug: str) -> Topic:
        """Return one topic; NotFoundError if there is none."""
        rows = self._engine.query("SELECT * FROM topic WHERE slug = :slug", {"slug": slug})
        if not rows:
            raise NotFoundError(f"topic {slug!r}: expected one of the history, found none")
        return to_topic(rows[0])

    def find_topic(self, name: str) -> Topic | None:
        """Return the topic with this name or slug; None if there is none."""
        rows = self._engine.query(
            "SELECT * FROM topic WHERE slug = :name OR name_key = :key ORDER BY slug = :name DESC",
            {"name": name, "key": name_key(name)},
        )
        return to_topic(rows[0]) if rows else None

    def put_topic(self, topic: Topic, *, now: datetime) -> None:
        """Add the topic, or give a known one the new name, gloss and rule."""
        self._engine.query(
            """INSERT INTO topic (slug, name, name_key, gloss, rule, created_at)
            VALUES (:slug, :name, :name_key, :gloss, :rule, :now)
            ON CONFLICT (slug) DO UPDATE SET name = excluded.name, name_key = excluded.name_key,
              gloss = COALESCE(excluded.gloss, topic.gloss), rule = COALESCE(excluded.rule, topic.rule)""",
            {
                "slug": topic.slug,
                "name": topic.name,
                "name_key": name_key(topic.name),
                "gloss": topic.gloss,
                "rule": rule_text(topic.rule),
                "now": instant(now),
            },
        )

    # -- what matters for one page

    def known(
        self, slug: str, page: Page, source: str, also: Sequence[tuple[int, str, str]]
    ) -> tuple[Known, SourceView]:
        """Return what the history knows that matters for a page, and what its source showed before."""
        papers = self._candidates(slug, page.papers)
        keys = [paper.key for paper in papers]
        others = sorted({other for _, other, _ in also if other != slug})
        known = Known(
            topic=self._state(slug, keys),
            papers=tuple(papers),
            others=self._other_states(others, keys),
        )
        return known, self._source_view(slug, source, page.order, keys, also)

    def _candidates(self, slug: str, papers: Sequence[Paper]) -> list[KnownPaper]:
        names_of_page = page_names(papers)
        names = list({str(name) for ids in names_of_page for name in ids})
        rows: dict[int, dict[str, Any]] = {}
        found: set[str] = set()
        for part in chunks(names):
            marks, args = placeholders("n", part)
            for row in self._engine.query(
                f"""SELECT paper.*, paper_name.name FROM paper_name JOIN paper ON paper.id = paper_name.paper_id
                WHERE paper_name.name IN {marks} AND paper.merged_into IS NULL""",  # noqa: S608 # only numbered parameters are put in
                args,
            ):
                found.add(row["name"])
                rows[row["id"]] = row
        self._add_by_hash(rows, "title_hash", [text_hash(title_print(paper.title)) for paper in papers])
        unnamed = [paper for paper, ids in zip(papers, names_of_page, strict=True) if not _any(ids, found)]
        self._add_similar(rows, slug, unnamed)
        names_of = self._names(list(rows))
        return [to_known(row, names_of.get(key, ())) for key, row in sorted(rows.items())]

    def _add_by_hash(self, rows: dict[int, dict[str, Any]], column: str, hashes: Iterable[int]) -> None:
        for part in chunks(sorted(set(hashes))):
            marks, args = placeholders("h", part)
            for row in self._engine.query(
                f"SELECT * FROM paper WHERE {column} IN {marks} AND merged_into IS NULL",  # noqa: S608 # our column names
                args,
            ):
                rows.setdefault(row["id"], row)

    def _add_similar(self, rows: dict[int, dict[str, Any]], slug: str, unnamed: Sequence[Paper]) -> None:
        """Add papers of the topic by the same first author from about the same days, for the last step of identity."""
        windows: dict[int, list[tuple[str, str]]] = {}
        for paper in unnamed:
            if paper.published is None or not first_author(paper):
                continue
            window = (
                (paper.published - timedelta(days=_SIMILAR_DAYS)).isoformat(),
                (paper.published + timedelta(days=_SIMILAR_DAYS)).isoformat(),
            )
            for key in author_keys(first_author(paper)):
                windows.setdefault(text_hash(key), []).append(window)
        near: list[int] = []
        for part in chunks(sorted(windows)):
            marks, args = placeholders("h", part)
            found = self._engine.query(
                f"""SELECT id, author_hash, published FROM paper WHERE author_hash IN {marks}
                AND published BETWEEN :since AND :until AND merged_into IS NULL ORDER BY id DESC""",  # noqa: S608 # as above
                args
                | {
                    "since": min(since for key in part for since, _ in windows[key]),
                    "until": max(until for key in part for _, until in windows[key]),
                },
            )
            near += [
                row["id"]
                for row in found
                if any(since <= row["published"] <= until for since, until in windows[row["author_hash"]])
            ][: _SIMILAR_PAPERS * len(unnamed)]
        for part in chunks([key for key in near if key not in rows]):
            marks, args = placeholders("k", part)
            for row in self._engine.query(
                f"""SELECT paper.* FROM ledger JOIN paper ON paper.id = ledger.paper_id
                WHERE ledger.topic_id = (SELECT id FROM topic WHERE slug = :slug) AND ledger.dup_of IS NULL
                AND ledger.paper_id IN {marks}""",  # noqa: S608 # as above
                args | {"slug": slug},
            ):
                rows[row["id"]] = row

    def _names(self, keys: Sequence[int]) -> dict[int, tuple[PaperId, ...]]:
        names: dict[int, list[PaperId]] = {}
        for part in chunks(keys):
            marks, args = placeholders("k", part)
            for row in self._engine.query(
                f"SELECT paper_id, name FROM paper_name WHERE paper_id IN {marks} ORDER BY name",  # noqa: S608 # as above
                args,
            ):
                names.setdefault(row["paper_id"], []).append(to_name(row["name"]))
        return {key: tuple(found) for key, found in names.items()}

    def _state(self, slug: str, keys: Sequence[int]) -> TopicState:
        rows = self._engine.query("SELECT id, start, started FROM topic WHERE slug = :slug", {"slug": slug})
        if not rows:
            return TopicState(slug)
        topic = rows[0]
        args: dict[str, Any] = {"topic": topic["id"]}
        stretches = self._engine.query(
            "SELECT * FROM stretch WHERE topic_id = :topic ORDER BY until DESC, since DESC", args
        )
        sighted: set[int] = set()
        listed: list[tuple[int, int]] = []
        for part in chunks(keys):
            marks, some = placeholders("k", part)
            for row in self._engine.query(
                f"""SELECT paper_id FROM ledger WHERE topic_id = :topic AND paper_id IN {marks}""",  # noqa: S608 # as above
                args | some,
            ):
                sighted.add(row["paper_id"])
            for row in self._engine.query(
                f"""SELECT paper_id, stretch_id FROM listed WHERE topic_id = :topic AND stretch_id IS NOT NULL
                AND paper_id IN {marks}""",  # noqa: S608 # as above
                args | some,
            ):
                listed.append((row["paper_id"], row["stretch_id"]))  # noqa: PERF401 # reads as the loop above
        return TopicState(
            slug=slug,
            start=date.fromisoformat(topic["start"]) if topic["start"] else None,
            started=bool(topic["started"]),
            stretches=tuple(to_stretch(row) for row in stretches),
            sighted=frozenset(sighted),
            stretch_of=tuple(sorted(listed)),
        )

    def _other_states(self, slugs: Sequence[str], keys: Sequence[int]) -> tuple[TopicState, ...]:
        """Return which papers were sighted in topics that labels and rules name; their coverage decides nothing here."""
        sighted: dict[str, set[int]] = {slug: set() for slug in slugs}
        for some_slugs in chunks(slugs):
            topics, topic_args = placeholders("s", some_slugs)
            for part in chunks(keys):
                marks, args = placeholders("k", part)
                rows = self._engine.query(
                    f"""SELECT topic.slug, ledger.paper_id FROM ledger JOIN topic ON topic.id = ledger.topic_id
                    WHERE ledger.paper_id IN {marks} AND topic.slug IN {topics}""",  # noqa: S608 # as above
                    topic_args | args,
                )
                for row in rows:
                    sighted[row["slug"]].add(row["paper_id"])
        return tuple(TopicState(slug, sighted=frozenset(found)) for slug, found in sighted.items())

    def _source_view(
        self, slug: str, source: str, order: Order, keys: Sequence[int], also: Sequence[tuple[int, str, str]]
    ) -> SourceView:
        args: dict[str, Any] = {"slug": slug, "source": source}
        earlier = self._engine.query(
            """SELECT snapshot.id FROM snapshot JOIN topic ON topic.id = snapshot.topic_id
            JOIN source ON source.id = snapshot.source_id WHERE topic.slug = :slug AND source.name = :source LIMIT 1""",
            args,
        )
        shown: set[int] = set()
        texts: set[tuple[int, int]] = set()
        own: set[tuple[int, int]] = set()
        for part in chunks(keys):
            marks, some = placeholders("k", part)
            for row in self._engine.query(
                f"""SELECT shown.paper_id, shown.text_hash, source.name = :source AS mine FROM shown
                JOIN source ON source.id = shown.source_id WHERE shown.paper_id IN {marks}""",  # noqa: S608 # as above
                {"source": source} | some,
            ):
                texts.add((row["paper_id"], row["text_hash"]))
                if row["mine"]:
                    shown.add(row["paper_id"])
                    own.add((row["paper_id"], row["text_hash"]))
        first = order is Order.FEED and not earlier
        return SourceView(
            first=first,
            shown=frozenset(shown),
            texts=frozenset(texts),
            own_texts=frozenset(own),
            also=tuple(also),
        )

    # -- recording

    def has_snapshot(self, slug: str, digest: str, source: str) -> bool:
        """Return whether this content was recorded from this source for this topic before."""
        return bool(
            self._engine.query(
                """SELECT snapshot.id FROM snapshot JOIN topic ON topic.id = snapshot.topic_id
                JOIN source ON source.id = snapshot.source_id
                WHERE topic.slug = :slug AND source.name = :source AND snapshot.digest = :digest""",
                {"slug": slug, "digest": digest, "source": source},
            )
        )

    def find_raw(self, raw_digest: str) -> Sequence[tuple[str, str | None]]:
        """Return (topic slug, origin) of the snapshots made of exactly these bytes."""
        rows = self._engine.query(
            """SELECT topic.slug, snapshot.origin FROM snapshot JOIN topic ON topic.id = snapshot.topic_id
            WHERE snapshot.raw_digest = :raw ORDER BY snapshot.id""",
            {"raw": raw_digest},
        )
        return [(row["slug"], row["origin"]) for row in rows]

    def is_seen_since(self, slug: str, digest: str, since: datetime) -> bool:
        """Return whether it is known that a topic's newest listing page was still the same at an instant or later.

        True too where this is not the newest page, or no listing page at all: then its coming again says nothing.
        """
        rows = self._engine.query(f"{_NEWEST_LISTED} LIMIT 1", {"slug": slug})
        if not rows or digest not in (rows[0]["digest"], rows[0]["raw_digest"]):
            return True
        return bool(rows[0]["seen_at"] is None or rows[0]["seen_at"] >= instant(since))

    def see_again(self, slug: str, fetched_at: datetime) -> None:
        """Note that a topic's newest listing page was the same at a later instant: a quiet week is not an unseen one."""
        self._engine.query(
            f"""UPDATE stretch SET seen_at = :at WHERE seen_at < :at
            AND id = (SELECT newest.stretch FROM ({_NEWEST_LISTED} LIMIT 1) AS newest)""",  # noqa: S608 # our own text
            {"slug": slug, "at": instant(fetched_at)},
        )

    def record(self, meta: SnapshotMeta, page: Page, diff: SnapshotDiff) -> int:
        """Write one snapshot inside the open transaction and return the ledger head afterwards."""
        self._recorder.record(meta, page, diff)
        return self.head()

    def unparsed(self) -> Sequence[tuple[int, str, str]]:
        """Return (paper key, name of its page's topic, tag line) of all papers whose tag line could not be cut."""
        rows = self._engine.query(
            """SELECT unparsed.paper_id, topic.name, unparsed.run FROM unparsed
            JOIN topic ON topic.id = unparsed.topic_id ORDER BY unparsed.paper_id"""
        )
        return [(row["paper_id"], row["name"], row["run"]) for row in rows]

    def set_labels(self, key: int, labels: Sequence[str], topics: Sequence[Topic], *, seen_at: datetime) -> None:
        """Give a paper labels that were read late; it is sighted in the topics they name, as it was in its own."""
        row = self._engine.query("SELECT record FROM paper WHERE id = :key", {"key": key})[0]
        record = replace(to_paper(row["record"]), topics=tuple(labels), topics_unparsed=None)
        seen = self._engine.query(
            """SELECT ledger.kind, ledger.seen_at, topic.slug FROM ledger JOIN topic ON topic.id = ledger.topic_id
            WHERE ledger.paper_id = :key AND ledger.dup_of IS NULL ORDER BY ledger.position""",
            {"key": key},
        )
        sighted = {row["slug"] for row in seen}
        kind = Kind(seen[0]["kind"]) if seen else Kind.BACKFILL
        if kind is Kind.NEW and seen[0]["seen_at"] != instant(seen_at):  # else the label is as new as the paper
            kind = Kind.NEWLY_TAGGED
        named = [slug for _, slug, via in other_topics([record], topics, "") if via == "label" and slug not in sighted]
        self._recorder.relabel(key, record, dict.fromkeys(named, kind), seen_at=seen_at)

    def labelled(self, name: str) -> Sequence[KnownPaper]:
        """Return the papers with a label of this name."""
        labels = [
            row["name"]
            for row in self._engine.query("SELECT DISTINCT label AS name FROM paper_label")
            if name_key(row["name"]) == name_key(name)
        ]
        found: list[KnownPaper] = []
        for part in chunks(labels):
            marks, args = placeholders("l", part)
            rows = self._engine.query(
                f"""SELECT DISTINCT paper.* FROM paper JOIN paper_label ON paper_label.paper_id = paper.id
                WHERE paper_label.label IN {marks} ORDER BY paper.id""",  # noqa: S608 # as above
                args,
            )
            found += [to_known(row) for row in rows]
        return found

    def all_papers(self) -> Iterator[KnownPaper]:
        """Yield every paper, in the order in which they became known; their names are left out."""
        after = 0
        while rows := self._engine.query(
            "SELECT * FROM paper WHERE id > :after AND merged_into IS NULL ORDER BY id LIMIT 500", {"after": after}
        ):
            after = rows[-1]["id"]
            yield from map(to_known, rows)

    def add_baseline(self, slug: str, keys: Sequence[int], *, seen_at: datetime) -> None:
        """Sight papers as a topic's baseline; those sighted there already are passed over."""
        sighted = self._state(slug, keys).sighted
        self._recorder.sight(
            [key for key in dict.fromkeys(keys) if key not in sighted], slug, Kind.BASELINE, seen_at=seen_at
        )

    # -- the ledger

    def head(self) -> int:
        """Return the ledger's newest position, 0 if it is empty."""
        return int(self._engine.query("SELECT COALESCE(MAX(position), 0) AS head FROM ledger")[0]["head"])

    def sightings(self, slug: str, after: int, upto: int) -> Sequence[LedgerRow]:
        """Return the sightings of a topic at positions (after, upto], in ledger order."""
        return self._ledger_rows(
            f"{_LEDGER} AND ledger.position > :after AND ledger.position <= :upto ORDER BY ledger.position",
            {"slug": slug, "after": after, "upto": upto},
        )

    def papers(
        self, slug: str, *, limit: int | None = None, kinds: Sequence[Kind] = tuple(Kind)
    ) -> Sequence[LedgerRow]:
        """Return the papers of a topic, newest effective_at first, those of one instant as their page had them."""
        marks, args = placeholders("kind", [str(kind) for kind in kinds])
        return self._ledger_rows(
            f"{_LEDGER} AND ledger.kind IN {marks} ORDER BY paper.effective_at DESC, ledger.position LIMIT :limit",
            args | {"slug": slug, "limit": _ALL if limit is None else limit},
        )

    def revisions(self, after: int, upto: int) -> Sequence[tuple[int, KnownPaper, Revision]]:
        """Return (position, paper, revision) of all real changes of papers at positions (after, upto], in ledger order."""
        rows = self._engine.query(
            """SELECT ledger.position, revision.changes, paper.* FROM revision
            JOIN ledger ON ledger.position = revision.position JOIN paper ON paper.id = ledger.paper_id
            WHERE revision.told = 1 AND revision.position > :after AND revision.position <= :upto
            ORDER BY revision.position""",
            {"after": after, "upto": upto},
        )
        names = self._names([row["id"] for row in rows])
        return [
            (row["position"], to_known(row, names.get(row["id"], ())), Revision(row["id"], to_changes(row["changes"])))
            for row in rows
        ]

    def rows_of(self, paper: int) -> Sequence[LedgerRow]:
        """Return all sightings of one paper, in ledger order, also if it is asked for by the key of one merged into it."""
        while rows := self._engine.query(
            "SELECT merged_into FROM paper WHERE id = :key AND merged_into IS NOT NULL", {"key": paper}
        ):
            paper = rows[0]["merged_into"]
        return self._ledger_rows(
            f"{_SIGHTINGS} AND ledger.paper_id = :paper ORDER BY ledger.position", {"paper": paper}
        )

    def _ledger_rows(self, sql: str, args: dict[str, Any]) -> list[LedgerRow]:
        rows = self._engine.query(sql, args)
        names = self._names([row["id"] for row in rows])
        return [
            LedgerRow(
                position=row["position"],
                kind=Kind(row["sighted"]),
                topic=row["slug"],
                known=to_known(row, names.get(row["id"], ())),
                seen_at=to_instant(row["seen_at"]),
                via=row["via"],
                cross_listed=bool(row["cross_listed"]),
            )
            for row in rows
        ]

    def search(self, words: str, *, limit: int) -> Sequence[KnownPaper]:
        """Return the papers whose title, abstract or authors hold all the words, best first."""
        found: dict[int, KnownPaper] = {}
        keys = self._engine.search(words, limit=limit)
        for part in chunks(keys):
            marks, args = placeholders("k", part)
            for row in self._engine.query(
                f"SELECT * FROM paper WHERE merged_into IS NULL AND id IN {marks}",  # noqa: S608 # as above
                args,
            ):
                found[row["id"]] = to_known(row)
        return [found[key] for key in keys if key in found]

    # -- coverage and momentum

    def coverage(self, slug: str) -> Coverage:
        """Return what of the topic's listing has been seen."""
        rows = self._engine.query("SELECT * FROM topic WHERE slug = :slug", {"slug": slug})
        if not rows:
            return Coverage()
        topic = rows[0]
        stretches = self._engine.query(
            "SELECT * FROM stretch WHERE topic_id = :topic ORDER BY until DESC, since DESC", {"topic": topic["id"]}
        )
        grown = (topic["last_total"] or 0) - (topic["first_total"] or 0) if topic["first_total"] is not None else 0
        return Coverage(
            stretches=tuple(to_stretch(row) for row in stretches),
            known=topic["known"],
            total=topic["last_total"],
            missing=self._unlisted(topic, grown - topic["listed_since"]),
        )

    def _unlisted(self, topic: Mapping[str, Any], proved: int) -> int:
        """Return how many papers were never shown, where the growth of the totals seems to prove so many.

        A listing that has shown as many papers as it says that it has hides none. Growth alone does not know that: a paper
        that was filed late and is older than the first page, or that a feed showed first, is not counted as gained.
        """
        if proved <= 0:
            return 0
        shown: int = self._engine.query(
            """SELECT COUNT(*) AS papers FROM stretch JOIN listed ON listed.stretch_id = stretch.id
            WHERE stretch.topic_id = :topic""",
            {"topic": topic["id"]},
        )[0]["papers"]
        total: int = topic["last_total"] or 0
        return max(0, min(proved, total - shown))

    def stated(self, slug: str) -> StatedMomentum | None:
        """Return the momentum that the topic's newest snapshot states; None if none ever did."""
        rows = self._engine.query("SELECT stated FROM topic WHERE slug = :slug", {"slug": slug})
        return to_momentum(rows[0]["stated"]) if rows else None

    def weekly(self, slug: str, since: date, until: date) -> Sequence[tuple[date, int]]:
        """Return (Monday, counted papers) for each week that begins in [since, until), zeros included, oldest first."""
        monday = since - timedelta(days=since.weekday())
        monday += timedelta(days=7 if monday < since else 0)
        counts = {}
        while monday < until:
            counts[monday] = 0
            monday += timedelta(days=7)
        for day, papers in self._days(slug, since, until + timedelta(days=6)):
            week = day - timedelta(days=day.weekday())
            if week in counts:
                counts[week] += papers
        return list(counts.items())

    def count(self, slug: str, since: date, until: date) -> int:
        """Return the counted papers published in [since, until)."""
        return sum(papers for _, papers in self._days(slug, since, until))

    def _days(self, slug: str, since: date, until: date) -> list[tuple[date, int]]:
        rows = self._engine.query(
            """SELECT topic_day.day, topic_day.papers FROM topic_day JOIN topic ON topic.id = topic_day.topic_id
            WHERE topic.slug = :slug AND topic_day.day >= :since AND topic_day.day < :until ORDER BY topic_day.day""",
            {"slug": slug, "since": iso(since), "until": iso(until)},
        )
        return [(date.fromisoformat(row["day"]), row["papers"]) for row in rows]

    def last_published(self, slug: str) -> date | None:
        """Return the date of the topic's newest counted paper; None if no paper has a date."""
        rows = self._engine.query(
            """SELECT MAX(day) AS day FROM topic_day JOIN topic ON topic.id = topic_day.topic_id
            WHERE topic.slug = :slug AND papers > 0""",
            {"slug": slug},
        )
        return date.fromisoformat(rows[0]["day"]) if rows and rows[0]["day"] else None


_NEWEST_LISTED = """SELECT snapshot.digest, snapshot.raw_digest, stretch.seen_at, stretch.id AS stretch
  FROM snapshot JOIN topic ON topic.id = snapshot.topic_id
  LEFT JOIN stretch ON stretch.id = (SELECT top.id FROM stretch AS top WHERE top.topic_id = topic.id
    ORDER BY top.until DESC, top.since DESC LIMIT 1)
  WHERE topic.slug = :slug AND snapshot.list_order = 'listing' ORDER BY snapshot.id DESC"""


def _any(ids: Iterable[PaperId], found: set[str]) -> bool:
    return any(str(name) in found for name in ids)
