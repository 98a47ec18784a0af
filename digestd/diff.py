"""What a page adds to the history. Floor 1, pure: decides, never stores.

Entry point: :func:`diff_page`. The rules of kinds are DESIGN's: the ledger decides whether a reader is told, the printed
date decides only under which heading.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from digestd.coverage import Extension, extend, is_covered, top_stretch
from digestd.identity import fold, text_print
from digestd.matching import intent_keys, match_page
from digestd.model.paper import KnownPaper, Paper, Revision
from digestd.model.snapshot import (
    Kind,
    Known,
    Order,
    Page,
    PaperIntent,
    Sighting,
    SnapshotDiff,
    Stretch,
    TopicState,
)

CROSSED = frozenset({"cross", "replace-cross"})


@dataclass(frozen=True, slots=True)
class DiffRules:
    """What an operator may set about kinds."""

    late_days: int = 7  #: listings fill in late: this near to the top a covered paper still counts as new
    tagged_days: int = 30  #: an unordered source's paper older than this before the start was tagged late
    cross_lists: bool = True  #: False: cross-listed papers are known but told to nobody


@dataclass(frozen=True, slots=True)
class SourceView:
    """What a source showed of known papers before, by which revisions are told from other wordings."""

    first: bool  #: an unordered source's first fetch into this topic
    shown: frozenset[int] = frozenset()  #: keys of papers that this source showed before
    texts: frozenset[tuple[int, int]] = frozenset()  #: (key, text print) that any source showed before
    own_texts: frozenset[tuple[int, int]] = frozenset()  #: those of them that this source showed
    also: tuple[
        tuple[int, str, str], ...
    ] = ()  #: (index of a paper, slug of another topic it belongs to, label or rule)


def diff_page(page: Page, known: Known, source: SourceView, *, rules: DiffRules, fetched_at: datetime) -> SnapshotDiff:
    """Return what a page adds to the history.

    Args:
        page: parsed, of one topic.
        known: what the history knows of the topic, the page's papers and the other topics they name.
        source: what this source showed before.
        rules: the operator's settings.
        fetched_at: when the page was fetched, UTC.

    Returns:
        Intents in page order, one a different paper; sightings of papers unseen in a topic; revisions; the stretches
        afterwards. Nothing at all for a page without papers but the baseline mark.
    """
    intents = match_page(page, known.papers, rewords=lambda old, new: _rewords(old, new, source))
    state = known.topic
    extension = _extension(page, intents, state, fetched_at)
    sightings = _own_sightings(page, intents, state, source, rules)
    sightings += _other_sightings(intents, known.others, state, sightings, source)
    first = not state.started and not _shows_past_the_end(page)
    warnings = [
        f"taken for a known paper by a similar title ({intent.fuzzy} %): {intent.paper.title}"
        for intent in intents
        if intent.fuzzy is not None
    ]
    return SnapshotDiff(
        papers=tuple(intents),
        sightings=tuple(sightings),
        revisions=tuple(_revisions(intents, known.papers, source)),
        stretches=extension.stretches,
        merged=extension.merged,
        page_stretch=extension.page,
        start=_start(page, extension) if first else state.start,
        first=first,
        warnings=tuple(warnings),
    )


def _shows_past_the_end(page: Page) -> bool:
    """Whether a page shows nothing of a listing that says it has papers: it can't tell what is new after it."""
    return not page.papers and bool(page.total_papers)


def _start(page: Page, extension: Extension) -> date | None:
    """Return a topic's start by its first page; a date out of the listing's order does not move it."""
    if extension.page is not None:
        return extension.stretches[extension.page].until
    return max((paper.published for paper in page.papers if paper.published is not None), default=None)


# -- coverage


def _extension(page: Page, intents: Sequence[PaperIntent], state: TopicState, fetched_at: datetime) -> Extension:
    if page.order is not Order.LISTING:
        return Extension(state.stretches, None)
    stretch_of = dict(state.stretch_of)
    listed = [stretch_of[key] for intent in intents for key in intent_keys(intent) if key in stretch_of]
    unseen = sum(all(key not in stretch_of for key in intent_keys(intent)) for intent in intents)
    return extend(state.stretches, page, shared=frozenset(listed), unseen=unseen, fetched_at=fetched_at)


# -- kinds


def _own_sightings(
    page: Page, intents: Sequence[PaperIntent], state: TopicState, source: SourceView, rules: DiffRules
) -> list[Sighting]:
    sightings = []
    follows = _papers_below_a_cut(page, intents, state)
    for intent in intents:
        if any(key in state.sighted for key in intent_keys(intent)):
            continue
        crossed = intent.paper.announce in CROSSED
        if not intent.counted or (crossed and not rules.cross_lists):
            kind = Kind.BACKFILL
        elif not state.started or (page.order is Order.FEED and source.first):
            kind = Kind.BASELINE
        elif page.order is Order.FEED:
            kind = _feed_kind(intent.paper.published, state, rules)
        elif intent.index in follows:
            kind = Kind.NEW
        else:
            kind = _listing_kind(intent, intents, state, rules)
        sightings.append(Sighting(index=intent.index, topic=state.slug, kind=kind, cross_listed=crossed))
    return sightings


def _feed_kind(published: date | None, state: TopicState, rules: DiffRules) -> Kind:
    if published is None or state.start is None or published >= state.start - timedelta(days=rules.tagged_days):
        return Kind.NEW
    return Kind.NEWLY_TAGGED


def _listing_kind(intent: PaperIntent, intents: Sequence[PaperIntent], state: TopicState, rules: DiffRules) -> Kind:
    """Return the kind of a paper that a listing page shows for the first time (DESIGN §4, "Kinds")."""
    day, top = intent.paper.published, top_stretch(state.stretches)
    if day is None or top is None or state.start is None:
        late = day is not None and state.start is not None and day <= state.start
        return Kind.BACKFILL if late else Kind.NEW
    near_top = day >= top.until - timedelta(days=rules.late_days)
    if day > top.until or (near_top and (day > top.since or _lies_inside(intent, intents, state, top))):
        return Kind.NEW
    if is_covered(state.stretches, day) or any(
        _lies_inside(intent, intents, state, stretch) for stretch in state.stretches
    ):
        return Kind.NEWLY_TAGGED
    return Kind.NEW if day > state.start or _came_after_the_start(day, state) else Kind.BACKFILL


def _came_after_the_start(day: date, state: TopicState) -> bool:
    """Whether an unseen paper of the start's own day came later than the first page.

    Newest first, a page shows all of its newest day if it shows anything older, so what it did not show was not there yet.
    """
    return day == state.start and any(stretch.since < day == stretch.until for stretch in state.stretches)


def _lies_inside(intent: PaperIntent, intents: Sequence[PaperIntent], state: TopicState, stretch: Stretch) -> bool:
    """Whether a paper of a stretch's edge day was put inside it, by its place on the page.

    The edge days were shown in part. A paper of the lower one that stands above a paper of the stretch was not cut off there,
    it came later; so did one of the upper one that stands below, or that belongs to the newest stretch of all.
    """
    day, top = intent.paper.published, top_stretch(state.stretches)
    if day is None or not stretch.since <= day <= stretch.until:
        return False
    held = {key for key, of in state.stretch_of if of == stretch.key}
    places = [other.index for other in intents if not held.isdisjoint(intent_keys(other))]
    below = any(place > intent.index for place in places)
    above = any(place < intent.index for place in places)
    return (day > stretch.since or below) and (day < stretch.until or above or stretch == top)


def _papers_below_a_cut(page: Page, intents: Sequence[PaperIntent], state: TopicState) -> frozenset[int]:
    """Return which papers of the page stand below the last paper of a page that was cut there.

    The cut page should have shown them, so they are told like those that it did show; rather told than lost.
    """
    if page.order is not Order.LISTING:
        return frozenset()
    cut = {stretch.key: stretch for stretch in state.stretches if stretch.open_below}
    stretch_of = dict(state.stretch_of)
    last: int | None = None
    floor: date | None = None
    for intent in intents:
        for key in intent_keys(intent):
            stretch = cut.get(stretch_of.get(key))
            if stretch is not None:
                last, floor = intent.index, stretch.since
    if last is None or floor is None:
        return frozenset()
    return frozenset(
        intent.index
        for intent in intents
        if intent.index > last and (intent.paper.published is None or intent.paper.published <= floor)
    )


def _other_sightings(
    intents: Sequence[PaperIntent],
    others: Sequence[TopicState],
    own: TopicState,
    sightings: Sequence[Sighting],
    source: SourceView,
) -> list[Sighting]:
    """Return the sightings in other topics that labels or match rules name."""
    states = {state.slug: state for state in others}
    kinds = {sighting.index: sighting for sighting in sightings}
    result = []
    by_index = {place: intent for intent in intents for place in (intent.index, *intent.twins)}
    done: set[tuple[int, str]] = set()
    for place, slug, via in source.also:
        intent, state = by_index.get(place), states.get(slug)
        if intent is None or state is None or slug == own.slug or (intent.index, slug) in done:
            continue
        if any(key in state.sighted for key in intent_keys(intent)):
            continue
        done.add((intent.index, slug))
        seen_now = kinds.get(intent.index)
        kind = seen_now.kind if seen_now is not None else Kind.NEWLY_TAGGED
        if not intent.counted:
            kind = Kind.BACKFILL
        crossed = intent.paper.announce in CROSSED
        result.append(Sighting(index=intent.index, topic=slug, kind=kind, via=via, cross_listed=crossed))
    return result


# -- revisions


def _revisions(intents: Sequence[PaperIntent], known: Sequence[KnownPaper], source: SourceView) -> list[Revision]:
    """Return what changed on known papers.

    A source that words a paper otherwise than another source does has not revised it; only a text that differs from what
    the same source showed before, and that no source ever showed, is a change. So a text that swings back and forth is
    told once.
    """
    by_key = {paper.key: paper for paper in known}
    result = []
    for intent in intents:
        old = by_key.get(intent.key) if intent.key is not None else None
        if old is None:
            continue
        print_ = text_print(intent.paper)
        changes = []
        if intent.paper.withdrawn and not any(by_key[key].paper.withdrawn for key in intent_keys(intent)):
            changes.append(("withdrawn", "", intent.paper.abstract or ""))
        if _rewords(old, intent.paper, source) and all(
            (key, print_) not in source.texts for key in intent_keys(intent)
        ):
            changes += _new_wording(old.paper, intent.paper)
        if changes:
            result.append(Revision(old.key, tuple(changes), told=_is_real(changes)))
    return result


def _rewords(old: KnownPaper, new: Paper, source: SourceView) -> bool:
    """Whether a source's wording takes the place of the one that stands.

    Only if the source words the paper otherwise than it did before, or if the wording that stands is its own; else two
    sources that word a paper differently would take turns for ever.
    """
    if old.key not in source.shown:
        return False
    said_before = (old.key, text_print(new)) in source.own_texts
    return not said_before or (old.key, text_print(old.paper)) in source.own_texts


def _new_wording(old: Paper, new: Paper) -> list[tuple[str, str, str]]:
    changes = []
    if new.title != old.title:
        changes.append(("title", old.title, new.title))
    if new.abstract and old.abstract and new.abstract != old.abstract:
        changes.append(("abstract", old.abstract, new.abstract))
    return changes


def _is_real(changes: Sequence[tuple[str, str, str]]) -> bool:
    return any(field == "withdrawn" or fold(before) != fold(after) for field, before, after in changes)
