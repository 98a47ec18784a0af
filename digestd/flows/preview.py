"""The digest that a follower of a topic would get now. Floor 4. Entry point: :func:`preview_digest`.

Nothing is written: it is composed as a digest is, from the ledger, as if the reader had followed the topic from its start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from digestd.compose import compose_digest
from digestd.coverage import top_stretch
from digestd.coverage_words import coverage_line
from digestd.model.digest import Digest, DigestOptions, DigestRequest, Momentum, NewsItem, TopicNews
from digestd.model.snapshot import Coverage, Kind, LedgerRow
from digestd.model.topic import Topic
from digestd.momentum import choose, counted_momentum, stated_momentum
from digestd.ports import History

#: weeks in a chart; two times four of them are compared
CHART_WEEKS = 12
TOLD = frozenset({Kind.NEW, Kind.NEWLY_TAGGED})

#: a listing not looked at for so long may have grown: its own count is no longer complete
_FRESH = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Momenta:
    """What the source states of a topic and what we counted."""

    stated: Momentum | None
    counted: Momentum
    as_of: date  #: last day that the count includes

    @property
    def chosen(self) -> Momentum:
        """The one to print."""
        return choose(self.stated, self.counted)


def topic_momenta(history: History, topic: Topic, now: datetime) -> Momenta:
    """Return a topic's momentum, stated and counted."""
    coverage = history.coverage(topic.slug)
    top = top_stretch(coverage.stretches)
    seen = top.seen_at if top is not None and top.seen_at is not None else now
    as_of = min(seen, now).date()
    middle, first = as_of - timedelta(days=27), as_of - timedelta(days=55)
    monday = as_of - timedelta(days=as_of.weekday())
    weeks = history.weekly(topic.slug, monday - timedelta(weeks=CHART_WEEKS - 1), monday + timedelta(days=1))
    stated = history.stated(topic.slug)
    return Momenta(
        stated=stated_momentum(stated) if stated is not None else None,
        counted=counted_momentum(
            [papers for _, papers in weeks],
            history.count(topic.slug, middle, as_of + timedelta(days=1)),
            history.count(topic.slug, first, middle),
            complete=is_complete(coverage, first, now),
            weekly_from=weeks[0][0] if weeks else None,
        ),
        as_of=as_of,
    )


def is_complete(coverage: Coverage, since: date, now: datetime) -> bool:
    """Return whether all papers published since a day are known, by the listing's own showing."""
    top = top_stretch(coverage.stretches)
    if top is None or top.seen_at is None or coverage.missing or top.open_below:
        return False
    return top.since < since and now - top.seen_at <= _FRESH


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
