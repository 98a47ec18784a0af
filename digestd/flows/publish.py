"""Feeds for everybody. Floor 4. Entry points: :class:`Publisher`, for again and again; :func:`publish_topics`, for once.

Each document is read back before it takes the place of the old one; what did not change is not written again. Per topic:
its papers, with an archive, and its revisions for those who ask for them; then the newest papers of all topics, and a list
of all feeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from digestd.compose import paper_url
from digestd.flows.momenta import topic_momenta
from digestd.flows.preview import TOLD
from digestd.headline import headline
from digestd.model.feed import (
    Feed,
    FeedFormat,
    FeedListing,
    FeedPaper,
    FeedPlace,
    FeedRevision,
    FeedSite,
    FeedUrls,
)
from digestd.model.pages import FeedMarks
from digestd.model.snapshot import Kind, LedgerRow
from digestd.model.topic import Topic
from digestd.model.turn import Turn
from digestd.phrases import affiliations, people
from digestd.ports import History, Store
from digestd.render.feed import FORMATS, check_feed, mixed_feed, revisions_feed, split_feed, topic_feed
from digestd.render.feed_momentum import momentum_feed
from digestd.render.opml import opml_bytes
from digestd.revision_words import is_withdrawal, revision_line
from digestd.summary import summarise

#: puts files into the published folder and returns the names of those that were written
WriteFiles = Callable[[Mapping[str, bytes]], Sequence[str]]

SUFFIXES = {FeedFormat.RSS: "rss.xml", FeedFormat.ATOM: "atom.xml", FeedFormat.JSON: "feed.json"}

#: folder of the feed of all topics; a topic of this name would take its place
ALL = "all"

#: folder of the feed of topics that turn, likewise
MOMENTUM = "momentum"

#: revisions in a feed of them
REVISIONS = 50

#: sightings looked through for each entry of a feed of several topics: a paper may be in many of them
_SIGHTS = 4

#: entries that a young feed has at least, if the topic's baseline has them
FILL_TO = 30

#: where nothing ever happened in a topic, so that its empty feed is the same bytes each time
_NEVER = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class PublishOptions:
    """What all feeds share."""

    site: FeedSite
    entries: int = 100  #: newest papers in a feed
    archive_page: int = 100  #: papers in an archive document
    base_url: str | None = None


@dataclass(frozen=True, slots=True)
class Published:
    """What a run of publishing did."""

    topics: int
    files: int
    written: tuple[str, ...]


def publish_topics(
    history: History, topics: Sequence[Topic], options: PublishOptions, write: WriteFiles, *, now: datetime
) -> Published:
    """Write the feeds of topics and the list of them, each document only if its bytes changed."""
    written: list[str] = []
    count = 0
    for topic in topics:
        files = topic_files(history, topic, options, now=now)
        count += len(files)
        written += write(files)
    written += write({"topics.opml": _opml(topics, options)})
    return Published(topics=len(topics), files=count + 1, written=tuple(written))


class Publisher:
    """Publishes again and again; only what changed since its last time is made anew."""

    def __init__(self) -> None:
        self._marks: FeedMarks | None = None
        self._known: dict[str, tuple[Topic, str]] = {}
        self._options: PublishOptions | None = None
        self._turns: tuple[Turn, ...] = ()

    def publish(self, store: Store, options: PublishOptions, write: WriteFiles, *, now: datetime) -> Published:
        """Write what changed: feeds of topics with news, changed papers or another headline, and what sums them up.

        The first time all is made. A run that fails is made up for by the next.
        """
        marks = store.pages.marks()
        topics = store.history.topics()
        known = {
            topic.slug: (topic, headline(topic_momenta(store.history, topic, now).chosen).text) for topic in topics
        }
        fresh = self._marks is None or self._options != options
        changed = frozenset(known) if fresh or self._marks is None else store.pages.changed_topics(self._marks)
        changed |= {slug for slug, state in known.items() if self._known.get(slug) != state}
        written: list[str] = []
        count = 0
        for topic in topics:
            if topic.slug in changed:
                files = topic_files(store.history, topic, options, now=now) | revision_files(store, topic, options)
                count += len(files)
                written += write(files)
        if changed or fresh:
            files = all_files(store, topics, options) | {"topics.opml": _opml(topics, options)}
            count += len(files)
            written += write(files)
        turns = tuple(reversed(store.turns.turns(limit=options.entries)))
        if fresh or turns != self._turns:
            files = momentum_files(turns, topics, options)
            count += len(files)
            written += write(files)
        self._marks, self._known, self._options, self._turns = marks, known, options, turns
        return Published(topics=len(topics), files=count, written=tuple(written))


def revision_files(store: Store, topic: Topic, options: PublishOptions) -> dict[str, bytes]:
    """Return the documents of the feed of a topic's revisions; a feed reader asks for it by its own address."""
    revisions = [
        FeedRevision(
            feed_paper(seen.row),
            seen.number,
            seen.changed_at,
            revision_line(seen.revision),
            withdrawn=is_withdrawal(seen.revision),
        )
        for seen in store.pages.topic_changes(topic.slug, limit=REVISIONS)
    ]
    place = FeedPlace(home=_url(options, f"t/{topic.slug}"), urls=_urls(options, topic.slug, "revisions."))
    feed = revisions_feed(topic, revisions, site=options.site, place=place, changed_at=_NEVER)
    return _documents(feed, f"{topic.slug}/revisions.")


def all_files(store: Store, topics: Sequence[Topic], options: PublishOptions) -> dict[str, bytes]:
    """Return the documents of the feed of all topics; {} where a topic has its name."""
    if any(topic.slug == ALL for topic in topics):
        return {}
    rows = store.pages.latest(None, limit=_SIGHTS * options.entries)
    feed = mixed_feed(
        f"{options.site.name}: all topics",
        mixed_papers(rows, {topic.slug: topic for topic in topics}, options),
        key=(ALL,),
        site=options.site,
        place=FeedPlace(home=f"{options.base_url}/" if options.base_url else None, urls=_urls(options, ALL, "")),
        changed_at=_NEVER,
    )
    return _documents(feed, f"{ALL}/")


def momentum_files(turns: Sequence[Turn], topics: Sequence[Topic], options: PublishOptions) -> dict[str, bytes]:
    """Return the documents of the feed of topics that turn; {} where a topic has its name."""
    if any(topic.slug == MOMENTUM for topic in topics):
        return {}
    feed = momentum_feed(
        turns,
        {topic.slug: topic for topic in topics},
        site=options.site,
        place=FeedPlace(home=f"{options.base_url}/" if options.base_url else None, urls=_urls(options, MOMENTUM, "")),
        changed_at=_NEVER,
        base_url=options.base_url,
    )
    return _documents(feed, f"{MOMENTUM}/")


def mixed_papers(
    rows: Iterable[LedgerRow], topics: Mapping[str, Topic], options: PublishOptions
) -> list[tuple[Topic, str | None, FeedPaper]]:
    """Return the entries of a feed of several topics: each paper once, at its first sighting, newest first.

    Args:
        rows: sightings, newest first.
        topics: by slug; a sighting in another one is left out.
        options: say how many entries, and where topics have their pages.
    """
    first: dict[int, LedgerRow] = {}
    for row in rows:
        if row.topic in topics:
            first[row.known.key] = row  # rows come newest first, so an earlier sighting takes the place of a later one
    newest = sorted(first.values(), key=lambda row: row.position, reverse=True)[: options.entries]
    return [(topics[row.topic], _url(options, f"t/{row.topic}"), feed_paper(row)) for row in newest]


def _opml(topics: Sequence[Topic], options: PublishOptions) -> bytes:
    return opml_bytes(options.site.name, [_listing(topic, options) for topic in topics])


def topic_files(history: History, topic: Topic, options: PublishOptions, *, now: datetime) -> dict[str, bytes]:
    """Return the documents of a topic's feed by file name, archive documents first; all were read back."""
    told = feed_rows(history, topic)
    momentum = topic_momenta(history, topic, now).chosen
    changed = max((row.known.revised_at or row.seen_at for row in told), default=_NEVER)
    feed = topic_feed(
        topic,
        [feed_paper(row) for row in told],
        headline=headline(momentum).text,
        site=options.site,
        place=FeedPlace(home=_url(options, f"t/{topic.slug}"), urls=_urls(options, topic.slug, "")),
        changed_at=changed,
    )
    current, archives = split_feed(
        feed, options.archive_page, lambda page: _urls(options, topic.slug, f"archive-{page}.")
    )
    files: dict[str, bytes] = {}
    for number, archive in enumerate(archives):
        files |= _documents(archive, f"{topic.slug}/archive-{number}.")
    return files | _documents(current, f"{topic.slug}/")


def feed_rows(history: History, topic: Topic) -> list[LedgerRow]:
    """Return the papers of a topic's feed, oldest first, in an order that only grows at its end.

    Those that followers are told; a young feed is filled up with the newest of the baseline, so that nobody subscribes to an
    empty one.
    """
    rows = history.papers(topic.slug, kinds=(Kind.BASELINE, *TOLD))
    told = [row for row in rows if row.kind in TOLD]
    fill = [row for row in rows if row.kind is Kind.BASELINE][: max(0, FILL_TO - len(told))]
    by_snapshot: dict[datetime, int] = {}
    for row in told:
        by_snapshot[row.seen_at] = min(row.position, by_snapshot.get(row.seen_at, row.position))
    told.sort(key=lambda row: (by_snapshot[row.seen_at], row.known.effective_at, -row.position))
    return [*reversed(fill), *told]


def _documents(feed: Feed, prefix: str) -> dict[str, bytes]:
    return {f"{prefix}{SUFFIXES[kind]}": document_of(feed, kind) for kind in FORMATS}


def document_of(feed: Feed, kind: FeedFormat) -> bytes:
    """Return a feed's document in one format, read back."""
    body = FORMATS[kind].document(feed, FORMATS[kind].entry)
    check_feed(body, kind)
    return body


def feed_paper(row: LedgerRow) -> FeedPaper:
    """Return a paper as the feed of its sighting's topic tells it."""
    paper = row.known.paper
    return FeedPaper(
        public_id=row.known.public_id,
        paper=paper,
        kind=row.kind,
        effective_at=row.known.effective_at,
        seen_at=row.seen_at,
        revised_at=row.known.revised_at,
        summary=summarise(paper.abstract or "", title=paper.title),
        people=people(paper),
        affiliations=affiliations(paper, 2),
        url=paper_url(row.known),
    )


def _url(options: PublishOptions, path: str) -> str | None:
    return f"{options.base_url}/{path}" if options.base_url else None


def _urls(options: PublishOptions, slug: str, part: str) -> FeedUrls:
    if options.base_url is None:
        return FeedUrls()
    base = f"{options.base_url}/feeds/{slug}/{part}"
    return FeedUrls(
        rss=base + SUFFIXES[FeedFormat.RSS],
        atom=base + SUFFIXES[FeedFormat.ATOM],
        json=base + SUFFIXES[FeedFormat.JSON],
    )


def _listing(topic: Topic, options: PublishOptions) -> FeedListing:
    url = _urls(options, topic.slug, "").rss or f"{topic.slug}/{SUFFIXES[FeedFormat.RSS]}"
    return FeedListing(title=topic.name, url=url, home=_url(options, f"t/{topic.slug}"), description=topic.gloss or "")
