"""Feeds into a folder. Floor 4. Entry point: :func:`publish_topics`.

Each document is read back before it takes the place of the old one; what did not change is not written again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from digestd.flows.momenta import topic_momenta
from digestd.flows.preview import TOLD
from digestd.headline import headline
from digestd.model.feed import Feed, FeedFormat, FeedListing, FeedPaper, FeedPlace, FeedSite, FeedUrls
from digestd.model.snapshot import Kind, LedgerRow
from digestd.model.topic import Topic
from digestd.phrases import affiliations, people
from digestd.ports import History
from digestd.render.feed import FORMATS, check_feed, split_feed, topic_feed
from digestd.render.opml import opml_bytes
from digestd.summary import summarise

#: puts files into the published folder and returns the names of those that were written
WriteFiles = Callable[[Mapping[str, bytes]], Sequence[str]]

SUFFIXES = {FeedFormat.RSS: "rss.xml", FeedFormat.ATOM: "atom.xml", FeedFormat.JSON: "feed.json"}

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
    listing = opml_bytes(options.site.name, [_listing(topic, options) for topic in topics])
    written += write({"topics.opml": listing})
    return Published(topics=len(topics), files=count + 1, written=tuple(written))


def topic_files(history: History, topic: Topic, options: PublishOptions, *, now: datetime) -> dict[str, bytes]:
    """Return the documents of a topic's feed by file name, archive documents first; all were read back."""
    told = feed_rows(history, topic)
    momentum = topic_momenta(history, topic, now).chosen
    changed = max((row.known.revised_at or row.seen_at for row in told), default=_NEVER)
    feed = topic_feed(
        topic,
        [_feed_paper(row) for row in told],
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
    files = {}
    for kind, writer in FORMATS.items():
        body = writer.document(feed, writer.entry)
        check_feed(body, kind)
        files[f"{prefix}{SUFFIXES[kind]}"] = body
    return files


def _feed_paper(row: LedgerRow) -> FeedPaper:
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
