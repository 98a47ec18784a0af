"""The digest that a follower of a topic would get now. Floor 4. Entry point: :func:`preview_digest`.

Nothing is written: it is composed as a digest is, from the ledger, as if the reader had followed the topic from its start.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from digestd.compose import compose_digest
from digestd.coverage_words import coverage_line
from digestd.flows.momenta import topic_momenta
from digestd.model.digest import Digest, DigestOptions, DigestRequest, NewsItem, TopicNews
from digestd.model.snapshot import Kind, LedgerRow
from digestd.model.topic import Topic
from digestd.ports import History

TOLD = frozenset({Kind.NEW, Kind.NEWLY_TAGGED})


def topic_news(history: History, topic: Topic, rows: Sequence[LedgerRow], now: datetime) -> TopicNews:
    """Return what a digest is composed from for one topic."""
    coverage = history.coverage(topic.slug)
    return TopicNews(
        topic=topic,
        momentum=topic_momenta(history, topic, now).chosen,
        items=tuple(NewsItem(row.position, row.kind, row.known, row.cross_listed) for row in rows),
        coverage=coverage,
        coverage_line=coverage_line(coverage),
        last_published=history.last_published(topic.slug),
    )


def preview_digest(
    history: History, topics: Sequence[Topic], *, name: str, now: datetime, options: DigestOptions, welcome_papers: int
) -> Digest | None:
    """Return the digest of some topics, all news since their start in it.

    Where no topic has news yet, it is the digest that a new reader gets: the latest papers.

    Returns:
        None where the topics hold no paper at all.
    """
    head = history.head()
    rows = {topic.slug: history.sightings(topic.slug, 0, head) for topic in topics}
    news = [row for found in rows.values() for row in found if row.kind in TOLD]
    if not news:
        options = DigestOptions(
            papers_per_topic=options.papers_per_topic,
            budget=options.budget,
            language=options.language,
            welcome=True,
            welcome_latest=welcome_papers,
        )
        news = [row for found in rows.values() for row in found]
    days = sorted(row.known.effective_at.date() for row in news) or [now.date()]
    if options.welcome and options.welcome_latest is not None:
        days = days[-options.welcome_latest :]
    request = DigestRequest(
        name=name,
        since=days[0],
        until=days[-1],
        topics=tuple(topic_news(history, topic, rows[topic.slug], now) for topic in topics),
        options=options,
        upto=head,
    )
    return compose_digest(request)
