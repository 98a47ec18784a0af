"""One reader's own feeds, made when they are asked for. Floor 4; nothing here writes.

Entry points: :func:`reader_document` (papers), :func:`digests_document` (one entry a digest).
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from urllib.parse import quote

from digestd.compose import paper_url
from digestd.filters import hidden_because
from digestd.flows.pages import past_digest, period, reading_topics
from digestd.flows.publish import PublishOptions, document_of, mixed_papers
from digestd.model.delivery import DigestRecord
from digestd.model.digest import Digest, DigestPaper, Headline, RevisedPaper, Section, Trend
from digestd.model.feed import FeedDigest, FeedFormat, FeedPlace, FeedUrls
from digestd.model.pages import ListedPaper, ToldTopic
from digestd.model.paper import Revision
from digestd.model.subscription import Subscription
from digestd.phrases import short_title
from digestd.ports import Store
from digestd.render.feed import digest_feed, mixed_feed
from digestd.summary import summarise

#: digests in a reader's feed of them
DIGESTS = 30

#: sightings looked through for each entry: some are hidden by filters, some papers are in several topics
_SIGHTS = 6

_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)


def reader_document(
    store: Store, subscription: Subscription, kind: FeedFormat, options: PublishOptions, *, token: str
) -> tuple[bytes, datetime]:
    """Return the feed of the papers in a reader's topics that its filters let pass, and when it last changed."""
    topics = {topic.slug: topic for topic in reading_topics(store, subscription.topics)}
    rows = [
        row
        for row in store.pages.latest(list(topics), limit=_SIGHTS * options.entries)
        if hidden_because(subscription.preferences.filter, row.known.paper) is None
    ]
    feed = mixed_feed(
        f"{options.site.name}: your topics",
        mixed_papers(rows, topics, options),
        key=("reader", subscription.public_id),
        site=options.site,
        place=_place(options, token, ""),
        changed_at=subscription.created_at or _LONG_AGO,
    )
    return document_of(feed, kind), feed.updated


def digests_document(
    store: Store, subscription: Subscription, kind: FeedFormat, options: PublishOptions, *, token: str
) -> tuple[bytes, datetime]:
    """Return the feed of a reader's digests, one entry each, and when it last changed."""
    assert subscription.key is not None
    records = [one for one in store.subscriptions.digests(subscription.key, limit=DIGESTS) if one.mailed]
    feed = digest_feed(
        options.site.name,
        [_told(store, subscription, record, options, token) for record in records],
        feed_key=subscription.public_id,
        site=options.site,
        place=_place(options, token, "/digests"),
        changed_at=subscription.created_at or _LONG_AGO,
    )
    return document_of(feed, kind), feed.updated


def _place(options: PublishOptions, token: str, part: str) -> FeedPlace:
    if options.base_url is None:
        return FeedPlace()
    base = f"{options.base_url}/feed/{token}{part}"
    return FeedPlace(
        home=f"{options.base_url}/d/{token}",
        urls=FeedUrls(rss=f"{base}.xml", atom=f"{base}.atom", json=f"{base}.json"),
    )


def _told(
    store: Store, subscription: Subscription, record: DigestRecord, options: PublishOptions, token: str
) -> FeedDigest:
    label = record.key.partition("|")[2]
    _, told = past_digest(store, subscription, label)
    digest = _digest(record, told, options)
    titles = [short_title(paper.known.paper.title) for one in told for paper in one.papers]
    return FeedDigest(
        public_id=f"{subscription.public_id}/{label}",
        digest=digest,
        subject=record.subject,
        period=period(record),
        preheader=", ".join(titles[:3]),
        made_at=record.made_at,
        url=f"{options.base_url}/d/{token}/{quote(label, safe=':~')}" if options.base_url else None,
    )


def _digest(record: DigestRecord, told: tuple[ToldTopic, ...], options: PublishOptions) -> Digest:
    """Return what is kept of a digest; the headlines of its topics are in its subject only, for they were true then."""
    # no headline is put in: today's would be a wrong one for the papers of then
    sections = tuple(
        Section(
            one.topic,
            Headline(Trend.UNKNOWN, "", ""),
            papers=tuple(map(_paper, one.papers)),
            url=f"{options.base_url}/t/{one.topic.slug}" if options.base_url else None,
        )
        for one in told
        if one.topic is not None
    )
    changed = tuple(
        RevisedPaper(_paper(paper), Revision(paper.known.key, ()), f"{one.heading}.")
        for one in told
        if one.topic is None
        for paper in one.papers
    )
    return Digest(
        name=options.site.name,
        since=date.fromisoformat(record.since),
        until=date.fromisoformat(record.until),
        sections=sections,
        revised=changed,
        upto=record.upto,
    )


def _paper(listed: ListedPaper) -> DigestPaper:
    known = listed.known
    return DigestPaper(
        known.key,
        known.paper,
        listed.kind,
        known.effective_at,
        summary=summarise(known.paper.abstract, known.paper.title),
        url=paper_url(known),
    )
