"""Which known paper is each paper of a page? Floor 1, pure.

Entry point: :func:`match_page`. Identity itself is in identity.py; this module applies it to a whole page: names that stand
on several papers name none of them, a paper that the page shows twice is one, and a paper found by certain evidence is
never also the nearly equal twin of another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from digestd.identity import (
    STRONG_SCHEMES,
    author_keys,
    contradicts,
    first_author,
    is_plausible,
    match_paper,
    paper_ids,
    shares_strong,
    title_print,
)
from digestd.model.paper import KnownPaper, Paper, PaperId
from digestd.model.snapshot import Page, PaperIntent
from digestd.records import join_records

#: arXiv's announce types of papers that were announced before
REPLACED = frozenset({"replace", "replace-cross"})

#: page papers stand as candidates for each other; when they were first seen means nothing there
_NEVER = datetime.min.replace(tzinfo=UTC)


class _Index:
    """Papers by name, by title print and by first author."""

    def __init__(self, papers: Iterable[KnownPaper]) -> None:
        self._papers: dict[int, KnownPaper] = {}
        self._by_name: dict[object, set[int]] = defaultdict(set)
        self._by_author: dict[str, set[int]] = defaultdict(set)
        for known in papers:
            self.put(known)

    def put(self, known: KnownPaper) -> None:
        """Add a paper, or more names of one that is in it."""
        self._papers[known.key] = known
        for name in {*known.ids, title_print(known.paper.title)}:
            self._by_name[name].add(known.key)
        for key in author_keys(first_author(known.paper)):
            self._by_author[key].add(known.key)

    def drop(self, key: int) -> None:
        """Forget a paper."""
        del self._papers[key]

    def ids(self, key: int) -> frozenset[PaperId]:
        """Return all names of a paper."""
        return frozenset(self._papers[key].ids)

    def named(self, paper: Paper, ids: Iterable[PaperId]) -> list[KnownPaper]:
        names = (*ids, title_print(paper.title))
        return self._found(key for name in names for key in self._by_name.get(name, ()))

    def similar(self, paper: Paper) -> list[KnownPaper]:
        names = author_keys(first_author(paper))
        return self._found(key for name in names for key in self._by_author.get(name, ()))

    def _found(self, keys: Iterable[int]) -> list[KnownPaper]:
        return [self._papers[key] for key in sorted(set(keys)) if key in self._papers]


def page_names(papers: Sequence[Paper]) -> list[tuple[PaperId, ...]]:
    """Return the names of each paper of a page, without those that stand on several of its papers.

    A feed that links every paper to its home page would otherwise make one paper of all; so would the DOI of the
    proceedings on each of its papers. Two versions of one paper on a page keep the id that they share.
    """
    bearers: dict[PaperId, list[Paper]] = defaultdict(list)
    names = [paper_ids(paper) for paper in papers]
    for paper, ids in zip(papers, names, strict=True):
        for name in ids:
            if name.scheme != "title":
                bearers[name].append(paper)
    shared = {name for name, all_ in bearers.items() if len(all_) > 1 and _names_several(name, all_)}
    return [tuple(name for name in ids if name not in shared) for ids in names] if shared else names


def _names_several(name: PaperId, bearers: Sequence[Paper]) -> bool:
    if name.scheme in STRONG_SCHEMES:
        return not all(is_plausible(bearers[0], other) for other in bearers[1:])
    return len({title_print(paper.title) for paper in bearers}) > 1


@dataclass(slots=True)
class _Group:
    """Papers of a page that are one, and what they are known as."""

    place: int  #: of the first of them on the page
    paper: Paper  #: their records joined
    ids: tuple[PaperId, ...]
    keys: tuple[int, ...]  #: known papers, lowest first
    counted: bool
    twins: tuple[int, ...] = ()
    fuzzy: int | None = None

    def join(self, other: _Group) -> None:
        self.paper = join_records(self.paper, other.paper, same_source=False)
        self.ids = tuple(dict.fromkeys((*self.ids, *other.ids)))
        self.keys = tuple(sorted({*self.keys, *other.keys}))
        self.counted = self.counted or other.counted
        self.twins = (*self.twins, other.place, *other.twins)


def match_page(
    page: Page, known: Sequence[KnownPaper], *, rewords: Callable[[KnownPaper, Paper], bool]
) -> list[PaperIntent]:
    """Return what shall be written of each different paper of a page, in page order.

    Args:
        page: parsed.
        known: all known papers that share a name, a title print or the first author with one of the page.
        rewords: whether the page's wording of a known paper takes the place of the one that stands.
    """
    index = _Index(known)
    groups = _groups(page, index)
    taken = {key for group in groups for key in group.keys}
    for group in groups:
        if not group.keys:
            rest = [paper for paper in index.similar(group.paper) if paper.key not in taken]
            match = match_paper(group.paper, group.ids, rest)
            group.keys, group.fuzzy = match.keys, match.fuzzy
            taken.update(match.keys)
    by_key = {paper.key: paper for paper in known}
    return [_intent(group, by_key, rewords) for group in groups]


def _groups(page: Page, index: _Index) -> list[_Group]:
    """Return the different papers of a page in page order, each with the known papers that it certainly is."""
    groups: dict[int, _Group] = {}
    of_key: dict[int, int] = {}  # known paper -> place of the group that is it
    seen = _Index(())
    for place, (paper, ids) in enumerate(zip(page.papers, page_names(page.papers), strict=True)):
        found = match_paper(paper, ids, index.named(paper, ids), similar=False).keys
        twins = match_paper(paper, ids, seen.named(paper, ids), similar=False).keys
        # what a registry tells apart stays apart, though a paper without a number fits both; the page's own papers first
        names = frozenset(ids)
        joined: list[int] = []
        for one in dict.fromkeys((*twins, *(of_key[key] for key in found if key in of_key))):
            others = _all_names(groups[one], index)
            if shares_strong(ids, others) or not contradicts(names, others):
                names |= others
                joined.append(one)
        keys = []
        for key in found:
            others = index.ids(key)
            fits = shares_strong(ids, others) or not contradicts(names, others)
            if of_key[key] in joined if key in of_key else fits:
                names |= others
                keys.append(key)
        group = _Group(place, paper, ids, tuple(keys), paper.announce not in REPLACED)
        for one in sorted(joined, reverse=True):
            earlier = groups.pop(one)
            seen.drop(one)
            earlier.join(group)
            group = earlier
        groups[group.place] = group
        of_key.update(dict.fromkeys(group.keys, group.place))
        seen.put(KnownPaper(key=group.place, paper=group.paper, first_seen_at=_NEVER, ids=group.ids))
    return [groups[place] for place in sorted(groups)]


def _all_names(group: _Group, index: _Index) -> frozenset[PaperId]:
    return frozenset(group.ids).union(*(index.ids(key) for key in group.keys))


def _intent(
    group: _Group, by_key: Mapping[int, KnownPaper], rewords: Callable[[KnownPaper, Paper], bool]
) -> PaperIntent:
    """Return the intent with the record that shall stand in the history, and whether that differs from what stands."""
    intent = PaperIntent(
        index=group.place,
        paper=group.paper,
        ids=group.ids,
        key=group.keys[0] if group.keys else None,
        merge=group.keys[1:],
        counted=group.counted,
        fuzzy=group.fuzzy,
        twins=tuple(sorted(group.twins)),
    )
    if intent.key is None:
        return replace(intent, record=replace(group.paper, warnings=()), changed=True)
    known = by_key[intent.key]
    record = join_records(known.paper, group.paper, same_source=rewords(known, group.paper))
    for key in intent.merge:
        record = join_records(record, by_key[key].paper, same_source=False)
    news = not set(group.ids) <= set(known.ids)
    counted = group.counted and not known.counted
    return replace(intent, record=record, changed=record is not known.paper or news or counted or bool(intent.merge))


def intent_keys(intent: PaperIntent) -> tuple[int, ...]:
    """Return all known papers that an intent is, () for a paper unseen until now."""
    return () if intent.key is None else (intent.key, *intent.merge)
