"""News of a subscription becomes its digest: order, budget, sections, "also in". Floor 1.

Entry point: ``compose_digest``. It decides what is told and where, from ledger rows alone; when, to whom and how it looks
is decided elsewhere. Each paper is told in one place: under the first followed topic in which it is new, or else among
the older papers newly tagged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from urllib.parse import quote

from digestd.coverage_words import coverage_line
from digestd.headline import headline
from digestd.model.digest import (
    Digest,
    DigestOptions,
    DigestPaper,
    DigestRequest,
    NewsItem,
    RevisedPaper,
    RevisionNews,
    Section,
    TaggedPaper,
    TopicNews,
)
from digestd.model.paper import KnownPaper, Revision
from digestd.model.snapshot import Kind
from digestd.revision_words import is_withdrawal, merge_revisions, revision_line
from digestd.summary import summarise

#: kinds that are told; the others only in a welcome digest
_NEWS = frozenset({Kind.NEW, Kind.NEWLY_TAGGED})


@dataclass(frozen=True, slots=True)
class _Plan:
    """Where each paper is told; topics by their place in the reader's order."""

    news: tuple[tuple[NewsItem, ...], ...]  #: per topic: items new in it and not told before, newest first
    home: dict[int, int]  #: paper key: topic under which it is told as new
    tagged: tuple[tuple[int, NewsItem], ...]  #: (topic, item), newest first
    holders: dict[int, tuple[int, ...]]  #: paper key: all topics with a sighting of it in this stretch


def compose_digest(request: DigestRequest) -> Digest | None:
    """Return what one subscription is told now.

    Papers told before are never told again, only counted; baseline and backfill are told to nobody but the reader of a
    welcome digest who asked for it; papers only announced as replacements are told to nobody.

    Args:
        request: topics in the reader's order with all sightings of the stretch, revisions, what was told before.

    Returns:
        The digest; None where there is nothing to tell, unless ``all_quiet`` asks for one.
    """
    options = request.options
    plan = _plan(request)
    own = [tuple(item for item in items if plan.home[item.known.key] == place) for place, items in enumerate(plan.news)]
    tagged_shown = _tagged_quota(len(plan.tagged), sum(map(len, own)), options)
    quotas = share_out([len(items) for items in own], options.papers_per_topic, options.budget - tagged_shown)
    sections = tuple(_section(request, plan, place, own[place], quotas[place]) for place in range(len(request.topics)))
    tagged = tuple(
        TaggedPaper(
            request.topics[place].topic,
            _digest_paper(item, sentences=int(rank < tagged_shown), also_in=_also_in(request, plan, place, item)),
        )
        for rank, (place, item) in enumerate(plan.tagged)
    )
    changed = _revised(request.revisions, request.told)
    digest = Digest(
        name=request.name,
        since=request.since,
        until=request.until,
        sections=sections,
        tagged=tagged[:tagged_shown],
        tagged_rest=tagged[tagged_shown:],
        revised=tuple(paper for paper in changed if not is_withdrawal(paper.revision)),
        withdrawn=tuple(paper for paper in changed if is_withdrawal(paper.revision)),
        upto=request.upto,
        catch_up=options.catch_up,
        welcome=options.welcome,
        next_line=request.next_line,
        why_line=request.why_line,
        language=options.language,
    )
    return digest if digest.new or tagged or changed or options.all_quiet else None


def share_out(counts: Sequence[int], per_topic: int, budget: int) -> list[int]:
    """Return how many papers each topic may show.

    The largest share gives first, among equals the later one, so that a flood in one topic never silences another.

    Args:
        counts: papers that each topic has to show.
        per_topic: papers at most in one topic.
        budget: papers at most in all.
    """
    shares = [min(count, max(per_topic, 0)) for count in counts]
    while sum(shares) > max(budget, 0):
        largest = max(range(len(shares)), key=lambda place: (shares[place], place))
        shares[largest] -= 1
    return shares


def paper_url(known: KnownPaper) -> str | None:
    """Return where a paper's title leads: its arXiv page, else its first link, else its DOI; None if none is known."""
    names = {name.scheme: name.value for name in reversed((*known.ids, *known.paper.ids))}
    if "arxiv" in names:
        return f"https://arxiv.org/abs/{quote(names['arxiv'], safe='/')}"
    if known.paper.links:
        return known.paper.links[0]
    return f"https://doi.org/{quote(names['doi'], safe='/:;()')}" if "doi" in names else None


def _newest_first(item: NewsItem) -> tuple[float, int]:
    """Return the sort key of papers: newest first, those of one day in listing order."""
    return (-item.known.effective_at.timestamp(), item.position)


def _plan(request: DigestRequest) -> _Plan:
    """Return where each paper is told."""
    holders: dict[int, tuple[int, ...]] = {}
    news: list[tuple[NewsItem, ...]] = []
    home: dict[int, int] = {}
    for place, topic in enumerate(request.topics):
        items = _distinct(topic.items)
        for item in items:
            holders[item.known.key] = (*holders.get(item.known.key, ()), place)
        fresh = [item for item in items if item.known.key not in request.told and item.known.counted]
        news.append(tuple(_new_items(fresh, request.options)))
        for item in news[-1]:
            home.setdefault(item.known.key, place)
    tagged: dict[int, tuple[int, NewsItem]] = {}
    for place, topic in enumerate(request.topics):
        for item in topic.items:
            key = item.known.key
            if _is_late(item, request.options) and item.known.counted and key not in home and key not in request.told:
                tagged.setdefault(key, (place, item))
    ordered = sorted(tagged.values(), key=lambda found: _newest_first(found[1]))
    return _Plan(tuple(news), home, tuple(ordered), holders)


def _distinct(items: Iterable[NewsItem]) -> list[NewsItem]:
    """Return the items newest first, each paper once: a merge of two records may leave two rows of one paper."""
    first: dict[int, NewsItem] = {}
    for item in sorted(items, key=lambda item: (item.kind is not Kind.NEW, item.position)):
        first.setdefault(item.known.key, item)
    return sorted(first.values(), key=_newest_first)


def _is_open(options: DigestOptions) -> bool:
    """Return whether this is a first digest whose reader asked for papers of the past."""
    return options.welcome and (options.welcome_latest is not None or options.welcome_since is not None)


def _is_late(item: NewsItem, options: DigestOptions) -> bool:
    """Return whether an item is told among the older papers; a welcome digest of the past needs no such section."""
    return item.kind is Kind.NEWLY_TAGGED and not _is_open(options)


def _new_items(items: Sequence[NewsItem], options: DigestOptions) -> Sequence[NewsItem]:
    """Return the items to be told as new, of items newest first.

    In a welcome digest what became news after the reader came is told whatever the limits; of the rest, a baseline that came
    after the reader too, the latest.
    """
    if not _is_open(options):
        return [item for item in items if item.kind is Kind.NEW]
    since = options.welcome_since
    fresh = {item.position for item in items if item.since_follow and item.kind in _NEWS}
    kept = [item for item in items if item.position not in fresh and (since is None or _day(item.known) >= since)]
    if options.welcome_latest is not None:
        kept = kept[: max(options.welcome_latest, 0)]
    chosen = fresh | {item.position for item in kept}
    return [item for item in items if item.position in chosen]


def _day(known: KnownPaper) -> date:
    """Return the day that a paper counts for."""
    return known.paper.published or known.effective_at.date()


def _tagged_quota(tagged: int, new: int, options: DigestOptions) -> int:
    """Return how many older papers are shown: an eighth of the budget, more only where new ones leave room."""
    room = max(options.budget // 8, options.budget - new)
    return max(0, min(tagged, options.tagged_shown, room))


def _section(request: DigestRequest, plan: _Plan, place: int, own: Sequence[NewsItem], quota: int) -> Section:
    """Return one topic's section; ``own`` are the papers told here, newest first."""
    topic = request.topics[place]
    by_rank = sorted(own, key=lambda item: (len(plan.holders[item.known.key]) < 2, _newest_first(item)))
    shown = {item.known.key for item in by_rank[:quota]}
    papers = [
        _digest_paper(item, sentences=2 if item.known.key in shown else 0, also_in=_also_in(request, plan, place, item))
        for item in own
    ]
    told_before = _told_before(topic, request)
    above = len(plan.news[place]) - len(own)
    count = len(own) + above + told_before + topic.hidden
    welcome = request.options.welcome
    return Section(
        topic=topic.topic,
        headline=headline(topic.momentum, None if welcome else count, topic.last_published, beside=request.until),
        momentum=topic.momentum,
        papers=tuple(paper for paper in papers if paper.key in shown),
        rest=tuple(paper for paper in papers if paper.key not in shown),
        above=above,
        hidden=topic.hidden,
        coverage=topic.coverage,
        coverage_line=topic.coverage_line or coverage_line(topic.coverage, request.since),
        last_published=topic.last_published,
        url=topic.url,
        told_before=told_before,
    )


def _told_before(topic: TopicNews, request: DigestRequest) -> int:
    """Return how many papers are new in the topic but were told to the reader before, under another topic."""
    return len({item.known.key for item in topic.items if item.kind is Kind.NEW and item.known.key in request.told})


def _also_in(request: DigestRequest, plan: _Plan, place: int, item: NewsItem) -> tuple[str, ...]:
    """Return the names of the other followed topics that hold a paper, in the reader's order."""
    return tuple(request.topics[other].topic.name for other in plan.holders[item.known.key] if other != place)


def _digest_paper(item: NewsItem, *, sentences: int, also_in: tuple[str, ...] = ()) -> DigestPaper:
    """Return a paper as it is told; without sentences it is a title only."""
    paper = item.known.paper
    return DigestPaper(
        key=item.known.key,
        paper=paper,
        kind=item.kind,
        effective_at=item.known.effective_at,
        summary=summarise(paper.abstract, paper.title, sentences=sentences) if sentences else "",
        url=paper_url(item.known),
        also_in=also_in,
        cross_listed=item.cross_listed,
    )


def _revised(news: Sequence[RevisionNews], told: frozenset[int]) -> tuple[RevisedPaper, ...]:
    """Return the papers told before that really changed, each once, newest paper first."""
    by_key: dict[int, list[Revision]] = {}
    known: dict[int, KnownPaper] = {}
    for entry in news:
        if entry.known.key in told:
            by_key.setdefault(entry.known.key, []).append(entry.revision)
            known[entry.known.key] = entry.known
    found: list[RevisedPaper] = []
    for key, revisions in by_key.items():
        merged = merge_revisions(revisions)
        if merged is not None:
            item = NewsItem(0, Kind.NEW, known[key])
            found.append(RevisedPaper(_digest_paper(item, sentences=0), merged, revision_line(merged)))
    return tuple(sorted(found, key=lambda entry: (-entry.paper.effective_at.timestamp(), entry.paper.key)))
