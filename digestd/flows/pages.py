"""What the pages show, read from the history. Floor 4; nothing here writes.

Entry points: :func:`topic_summaries`, :func:`topic_page`, :func:`paper_page`, :func:`search_page`, :func:`weeks`,
:func:`past_digests`, :func:`past_digest`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from itertools import groupby

from digestd.coverage_words import coverage_line
from digestd.errors import NotFoundError
from digestd.flows.momenta import topic_momenta
from digestd.headline import headline
from digestd.model.delivery import DigestRecord, ToldItem
from digestd.model.pages import (
    ListedPaper,
    ListPlace,
    PaperPage,
    PastDigest,
    SearchPage,
    SearchWish,
    ToldTopic,
    TopicPage,
    TopicSummary,
    Week,
    WeekCount,
)
from digestd.model.snapshot import Kind
from digestd.model.subscription import Subscription
from digestd.model.topic import Topic
from digestd.phrases import date_range
from digestd.ports import Store
from digestd.revision_words import revision_line

#: papers on a page of a topic; with summaries some 25 kB
PAPERS = 20

#: papers that a search shows
HITS = 20

#: papers of a past digest that are shown with their summary; a page is 40 kB at most
SUMMARIES = 24

#: labels to filter by
LABELS = 60

#: weeks in the public list of what came
WEEKS = 26

#: digests in a reader's own list
PAST = 100

#: section of a told item -> heading of what belongs to no topic
_NO_TOPIC = {"revised": "Revised", "withdrawn": "Withdrawn"}


def topic_summaries(store: Store, now: datetime) -> tuple[TopicSummary, ...]:
    """Return all topics with how they move, by name."""
    return tuple(topic_summary(store, topic, now) for topic in store.history.topics())


def topic_summary(store: Store, topic: Topic, now: datetime) -> TopicSummary:
    """Return a topic with how it moves."""
    momentum = topic_momenta(store.history, topic, now).chosen
    return TopicSummary(topic, momentum, headline(momentum), store.history.coverage(topic.slug))


def topic_page(store: Store, slug: str, *, label: str | None = None, before: str = "", now: datetime) -> TopicPage:
    """Return a page of a topic.

    Args:
        store: the history.
        slug: of the topic.
        label: only papers with this label; a label that is none shows no papers.
        before: "2026-09-24": papers of that day and earlier ones; or a paper's public id: those after it; "" for the newest.
        now: the present instant.

    Raises:
        NotFoundError: there is no such topic, or ``before`` names no place in it.
    """
    summary = topic_summary(store, store.history.topic(slug), now)
    after, day = _place(store, slug, before)
    found = store.pages.topic_papers(slug, label=label, after=after, limit=PAPERS + 1)
    return TopicPage(
        summary,
        coverage_line(summary.coverage),
        tuple(found[:PAPERS]),
        tuple(store.pages.labels(slug, limit=LABELS)),
        label,
        shown=summary.coverage.known if label is None else store.pages.label_papers(slug, label),
        earlier=found[PAPERS - 1].known.public_id if len(found) > PAPERS else "",
        before=day if day is not None else found[0].known.effective_at.date() if after and found else None,
    )


def _place(store: Store, slug: str, before: str) -> tuple[ListPlace | None, date | None]:
    if not before:
        return None, None
    try:
        day = date.fromisoformat(before) if len(before) == 10 else None
    except ValueError:
        day = None
    if day is not None:
        return ListPlace((day + timedelta(days=1)).isoformat() if day < date.max else "9999-12-31Z"), day
    place = store.pages.place(slug, before)
    if place is None:
        raise NotFoundError(f"topic {slug!r}: expected a day or a paper of it, found {before!r}")
    return place, None


def paper_page(store: Store, public_id: str) -> PaperPage | None:
    """Return a paper's page; None if there is no such paper."""
    known = store.pages.paper(public_id)
    if known is None:
        return None
    changes = tuple((at, revision_line(revision)) for at, revision in store.pages.changes(known.key))
    return PaperPage(known, tuple(store.pages.sights(known.key)), changes)


def search_page(store: Store, wish: SearchWish) -> SearchPage:
    """Return what a search found."""
    found = store.pages.search(wish, limit=HITS + 1)
    return SearchPage(
        words=wish.words,
        papers=tuple(found[:HITS]),
        more=len(found) > HITS,
        topic=wish.topic,
        author=wish.author,
        since=wish.since.isoformat() if wish.since else "",
        until=wish.until.isoformat() if wish.until else "",
    )


def weeks(store: Store, now: datetime) -> tuple[Week, ...]:
    """Return what each of the last weeks brought, by published date, newest week first; empty weeks are left out."""
    monday = now.date() - timedelta(days=now.date().weekday())
    rows = store.pages.weeks(monday - timedelta(weeks=WEEKS - 1), monday + timedelta(days=1))
    return tuple(
        Week(day, tuple(WeekCount(name, slug, papers) for _, slug, name, papers in found))
        for day, found in groupby(rows, key=lambda row: row[0])
    )


def past_digests(store: Store, subscription: Subscription) -> tuple[PastDigest, ...]:
    """Return the digests that one subscription was sent, newest first; their addresses are the labels of their slots."""
    assert subscription.key is not None
    records = store.subscriptions.digests(subscription.key, limit=PAST)
    return tuple(
        PastDigest(
            period=period(record),
            month=f"{date.fromisoformat(record.until):%B %Y}",
            subject=record.subject,
            papers=len({item.paper for item in store.subscriptions.digest(record.key).items if item.topic is not None}),
            url=record.key.partition("|")[2],
        )
        for record in records
        if record.mailed
    )


def period(record: DigestRecord) -> str:
    """Return the days of a digest's news: "Sep 23–29"."""
    return date_range(date.fromisoformat(record.since), date.fromisoformat(record.until), year=False)


def past_digest(store: Store, subscription: Subscription, label: str) -> tuple[DigestRecord, tuple[ToldTopic, ...]]:
    """Return a digest and what it told, by topic in the reader's order.

    Papers are shown as they are known now; which ones were told, and where, is as it was.

    Raises:
        NotFoundError: the subscription has no such digest.
    """
    record = store.subscriptions.digest(f"{subscription.public_id}|{label}")
    if record.subscription != subscription.key or not record.mailed:
        raise NotFoundError(f"digest {label!r}: expected one that was sent, found none")
    known = store.pages.papers([item.paper for item in record.items])
    topics = {topic.slug: topic for topic in store.history.topics()}
    grouped: dict[tuple[str | None, str], list[ListedPaper]] = {}
    for number, item in enumerate(record.items):
        if item.paper in known:
            brief = number >= SUMMARIES or item.section.endswith("rest")
            grouped.setdefault(_group(item), []).append(ListedPaper(known[item.paper], _kind(item), brief=brief))
    told = []
    for (slug, heading), papers in grouped.items():
        topic = topics.get(slug) if slug is not None else None
        ordered = sorted(papers, key=lambda paper: paper.known.effective_at, reverse=True)
        told.append(ToldTopic(topic, heading or (topic.name if topic else ""), tuple(ordered)))
    return record, tuple(told)


def _group(item: ToldItem) -> tuple[str | None, str]:
    if item.topic is None:
        return None, _NO_TOPIC.get(item.section, "Changed")
    return item.topic, ""


def _kind(item: ToldItem) -> Kind:
    return Kind.NEWLY_TAGGED if item.section.startswith("tagged") else Kind.NEW


def reading_topics(store: Store, slugs: Sequence[str]) -> tuple[Topic, ...]:
    """Return topics by their slugs, in this order; those that are gone are left out."""
    known = {topic.slug: topic for topic in store.history.topics()}
    return tuple(known[slug] for slug in slugs if slug in known)
