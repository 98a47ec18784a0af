"""A document into the history. Floor 4. Entry point: :func:`ingest_document`.

parse_document -> [one transaction: history.known -> diff_page -> history.record]. A document that cannot be read changes
nothing; the same content again changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from hashlib import sha256
from pathlib import PurePath
from urllib.parse import urlsplit

from digestd.diff import DiffRules, diff_page
from digestd.errors import ParseError
from digestd.faults import crash_point
from digestd.flows.relabel import can_be_cut, cut_again, merged_vocabulary
from digestd.flows.sieve import ReadWholeError, Sieve
from digestd.model.snapshot import Document, Kind, Order, Page, SeenTitle, SnapshotDiff, SnapshotMeta, SnapshotRecord
from digestd.model.topic import Topic, Vocabulary
from digestd.page_hash import batch_hash, page_hash
from digestd.parse import parse_document
from digestd.parse.links import normalise_url
from digestd.ports import History, Store
from digestd.topics import make_slug, other_topics

Parse = Callable[[Document, Vocabulary], Page]

#: how often it is noted that a listing still shows the same: it costs a write, and days are what it is needed for
SEEN_EVERY = timedelta(hours=6)


@dataclass(frozen=True, slots=True)
class IngestOptions:
    """What holds for all documents of a run."""

    now: datetime
    topic: str | None = None  #: name of the topic, where the source names none or another
    source: str | None = None  #: name of the source, None to tell it by its address or topic
    address: str | None = None  #: address of the source as configured, by which it is known wherever redirects lead
    order: Order | None = None  #: what the order of papers says, None to go by the format
    vocabulary: Vocabulary = field(default_factory=Vocabulary)  #: labels known from elsewhere
    rules: DiffRules = field(default_factory=DiffRules)


def ingest_document(
    store: Store, document: Document, options: IngestOptions, parse: Parse = parse_document
) -> SnapshotRecord:
    """Record what a document shows and return what that did.

    Raises:
        ParseError: it could not be read; the history is as it was.
        StoreError: it could not be recorded; the history is as it was.
    """
    raw_digest = sha256(document.body).hexdigest()
    same = _same_bytes(store.history, document, options, raw_digest)
    if same is not None:
        see_again(store, same.slug, raw_digest, document.fetched_at or options.now)
        return _unchanged(store.history, same, raw_digest)
    intake = Intake(store, document, options, parse)
    while True:
        intake.look_up()
        page = intake.read()
        try:
            return intake.record(page, raw_digest)
        except ReadWholeError:
            intake.read_whole()


class Intake:
    """One document on its way into the history: looked up, read, recorded.

    The steps are apart because reading may take long and needs no history: it can be done elsewhere.

    Args:
        store: the history; not used by :meth:`read`.
        document: as it came.
        options: of the run.
        parse: makes a page of it.
        reading: what else decides how bytes are read (format, rules); another text reads the same feed anew.
    """

    def __init__(
        self,
        store: Store,
        document: Document,
        options: IngestOptions,
        parse: Parse = parse_document,
        reading: str = "",
    ) -> None:
        self._store = store
        self._document = document
        self._options = options
        self._parse = parse
        self._reading = reading
        self._whole = False
        self._sieve: Sieve | None = None
        self._vocabulary = Vocabulary()

    def look_up(self) -> None:
        """Find what of the document need not be read, and which labels are known."""
        self._vocabulary = merged_vocabulary(self._options.vocabulary, self._store.history.vocabulary())
        if self._sieve is None:
            self._sieve = self._open_sieve()
        if self._whole and self._sieve is not None:
            self._sieve.read_whole()

    def read(self) -> Page:
        """Return the page, of a feed that was read before without what it showed then.

        Raises:
            ParseError: it cannot be read.
        """
        rest = self._sieve.rest_of(self._document) if self._sieve is not None else None
        if self._sieve is not None and rest is not None:
            try:
                return self._sieve.joined(self._read(rest))
            except ParseError:
                self._sieve.read_whole()
        return self._read(self._document)

    def record(self, page: Page, raw_digest: str) -> SnapshotRecord:
        """Record what was read.

        Raises:
            ReadWholeError: the sieve let through too little: look up and read once more; the history is as it was.
        """
        return record_page(self._store, page, self._document, self._options, raw_digest, self._sieve)

    def read_whole(self) -> None:
        """Leave out nothing the next time."""
        self._whole = True

    def batch(self, page: Page) -> str | None:
        """Return a hash of which papers the whole page shows; None if it shows none."""
        return batch_hash(page, self._sieve.unread_titles if self._sieve is not None else ())

    def _read(self, document: Document) -> Page:
        return read_page(document, self._vocabulary, self._options, self._parse)

    def _open_sieve(self) -> Sieve | None:
        """Return the sieve of a feed that comes from an address, so that it will come again; None for other documents."""
        document, options = self._document, self._options
        address = options.address or document.origin
        if address is None or options.order not in (None, Order.FEED):
            return None
        place = [address, document.origin, options.topic, options.source, document.media_type]
        how = [self._reading] if self._reading else []
        return Sieve.of(document, json.dumps([*place, *how]), self._store, options.rules)


def read_page(
    document: Document, vocabulary: Vocabulary, options: IngestOptions, parse: Parse = parse_document
) -> Page:
    """Return the page of a document; ParseError if it can't be read."""
    crash_point("ingest.seen")
    page = parse(document, vocabulary)
    return replace(page, order=options.order) if options.order is not None else page


def record_page(
    store: Store, page: Page, document: Document, options: IngestOptions, raw_digest: str, sieve: Sieve | None = None
) -> SnapshotRecord:
    """Record a parsed page in one transaction.

    Args:
        store: the history.
        page: parsed; through a sieve, only what is new of it.
        document: that shows the page.
        options: of the run.
        raw_digest: hash of the document's bytes.
        sieve: through which a feed went, None for other documents.

    Raises:
        ReadWholeError: the sieve let through too little; the history is as it was.
    """
    crash_point("ingest.parsed")
    history, digest = store.history, page_hash(page, sieve.unread if sieve is not None else ())
    fetched_at = document.fetched_at or options.now
    with store.transaction():
        topic = _topic_of(history, page, document, options)
        source = options.source or source_name(page, options.address or document.origin, topic.slug)
        if sieve is not None:
            sieve.check(topic.slug, source)
        if history.has_snapshot(topic.slug, digest, source):
            see_again(store, topic.slug, digest, fetched_at)
            return _unchanged(history, topic, digest)
        also = other_topics(page.papers, history.topics(), topic.slug)
        known, view = history.known(topic.slug, page, source, also)
        diff = diff_page(page, known, view, rules=options.rules, fetched_at=fetched_at)
        meta = SnapshotMeta(topic.slug, source, digest, raw_digest, fetched_at, options.now)
        if sieve is not None:
            sieve.check(topic.slug, source, diff)
        labels_before = len(history.vocabulary().counts)
        history.record(meta, page, diff)
        if len(history.vocabulary().counts) > labels_before or can_be_cut(page, history, options.vocabulary):
            cut_again(history, options.vocabulary, fetched_at=fetched_at)
        if sieve is not None:
            sieve.keep(page, known, diff, topic.slug, source)
        crash_point("ingest.open")
    crash_point("ingest.done")
    return _record(history, topic, meta, page, diff)


def source_name(page: Page, origin: str | None, slug: str) -> str:
    """Return by which name a source is known: a feed's address, else the topic whose listing or feed it is.

    All pages of a listing are one source, whatever their address: what it showed of a paper on one page, it shows on the
    next one when the paper has moved down.
    """
    if page.order is Order.FEED:
        address = normalise_url(origin) if origin else None
        return f"feed:{address or slug}"
    return f"listing:{slug}"


def _same_bytes(history: History, document: Document, options: IngestOptions, raw_digest: str) -> Topic | None:
    """Return the topic into which exactly these bytes went before, if they would go there again."""
    wanted = history.find_topic(options.topic) if options.topic else None
    if options.topic and wanted is None:
        return None
    for slug, origin in history.find_raw(raw_digest):
        elsewhere = _is_web(origin) or _is_web(document.origin)
        if (wanted is None or slug == wanted.slug) and (origin == document.origin or not elsewhere):
            return history.topic(slug)
    return None


def _is_web(origin: str | None) -> bool:
    return origin is not None and origin.startswith(("http://", "https://"))


def _topic_of(history: History, page: Page, document: Document, options: IngestOptions) -> Topic:
    """Return the topic that a page belongs to, made if it is not known yet."""
    known = find_page_topic(history, page, document, options)
    if known is not None:
        return known
    name = _topic_name(page, document, options)
    topic = Topic(slug=make_slug(name, [topic.slug for topic in history.topics()]), name=name, gloss=page.gloss)
    history.put_topic(topic, now=options.now)
    # until now the topic was only a label; the papers that bear it were there before anybody could follow it
    history.add_baseline(topic.slug, [paper.key for paper in history.labelled(name)], seen_at=options.now)
    return topic


def find_page_topic(history: History, page: Page, document: Document, options: IngestOptions) -> Topic | None:
    """Return the topic that a page belongs to; None if it is not known yet."""
    return history.find_topic(_topic_name(page, document, options))


def _topic_name(page: Page, document: Document, options: IngestOptions) -> str:
    return (
        options.topic or page.topic or page.title or _name_of_origin(options.address or document.origin, document.name)
    )


def _name_of_origin(origin: str | None, file_name: str | None) -> str:
    if origin is not None and _is_web(origin):
        parts = urlsplit(origin)
        return f"{parts.hostname or ''}{parts.path}".rstrip("/")
    return PurePath(file_name or origin or "unnamed").stem


def see_again(store: Store, slug: str, digest: str, fetched_at: datetime) -> None:
    """Note that a listing still shows the same, so that a quiet week is not taken for one that nobody saw."""
    if not store.history.is_seen_since(slug, digest, fetched_at - SEEN_EVERY):
        with store.transaction():
            store.history.see_again(slug, fetched_at)


def _unchanged(history: History, topic: Topic, digest: str) -> SnapshotRecord:
    return SnapshotRecord(
        snapshot=digest,
        topic=topic.slug,
        topic_name=topic.name,
        position=history.head(),
        unchanged=True,
        coverage=history.coverage(topic.slug),
    )


def _record(history: History, topic: Topic, meta: SnapshotMeta, page: Page, diff: SnapshotDiff) -> SnapshotRecord:
    names = {other.slug: other.name for other in history.topics()}
    titles = {intent.index: intent.paper.title for intent in diff.papers}
    by_key = {intent.key: intent.paper.title for intent in diff.papers if intent.key is not None}
    told = {Kind.BASELINE, Kind.NEW, Kind.NEWLY_TAGGED}
    return SnapshotRecord(
        snapshot=meta.digest,
        topic=topic.slug,
        topic_name=topic.name,
        position=history.head(),
        sightings=tuple(
            SeenTitle(seen.kind, seen.topic, names[seen.topic], seen.via, titles[seen.index]) for seen in diff.sightings
        ),
        cross_listed=tuple(
            titles[seen.index]
            for seen in diff.sightings
            if seen.cross_listed and seen.topic == topic.slug and seen.kind in told
        ),
        revised=tuple(by_key[revision.key] for revision in diff.revisions if revision.told),
        warnings=tuple(
            dict.fromkeys((*page.warnings, *(w for paper in page.papers for w in paper.warnings), *diff.warnings))
        ),
        incomplete=page.incomplete,
        coverage=history.coverage(topic.slug),
        quiet_reason=page.quiet_reason if not page.papers else None,
    )
