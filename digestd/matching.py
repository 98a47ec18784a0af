"""Which known paper is each paper of a page? Floor 1, pure.

Entry point: :func:`match_page`. Identity itself is in identity.py; this module applies it to a whole page: names that stand
on several papers name none of them, a paper that the page shows twice is one, and a paper found by certain evidence is
never also the nearly equal twin of another.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime

from digestd.identity import Match, author_keys, first_author, match_paper, paper_ids, title_print
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
        self._by_name: dict[object, list[KnownPaper]] = defaultdict(list)
        self._by_author: dict[str, list[KnownPaper]] = defaultdict(list)
        for known in papers:
            self.add(known)

    def add(self, known: KnownPaper) -> None:
        for name in {*known.ids, title_print(known.paper.title)}:
            self._by_name[name].append(known)
        for key in author_keys(first_author(known.paper)):
            self._by_author[key].append(known)

    def named(self, paper: Paper, ids: Iterable[PaperId]) -> list[KnownPaper]:
        names = (*ids, title_print(paper.title))
        return list({known.key: known for name in names for known in self._by_name.get(name, ())}.values())

    def similar(self, paper: Paper) -> list[KnownPaper]:
        keys = author_keys(first_author(paper))
        return list({known.key: known for key in keys for known in self._by_author.get(key, ())}.values())


def page_names(papers: Sequence[Paper]) -> list[tuple[PaperId, ...]]:
    """Return the names of each paper of a page, without links that stand on several of its papers.

    A feed that links every paper to its home page would otherwise make one paper of all.
    """
    titles_of: dict[PaperId, set[str]] = defaultdict(set)
    names = [paper_ids(paper) for paper in papers]
    for paper, ids in zip(papers, names, strict=True):
        for name in ids:
            if name.scheme in {"url", "guid"}:
                titles_of[name].add(paper.title)
    shared = {name for name, titles in titles_of.items() if len({title_print(title) for title in titles}) > 1}
    return [tuple(name for name in ids if name not in shared) for ids in names] if shared else names


def match_page(page: Page, known: Sequence[KnownPaper], *, same_source: frozenset[int]) -> list[PaperIntent]:
    """Return what shall be written of each different paper of a page, in page order.

    Args:
        page: parsed.
        known: all known papers that share a name, a title print or the first author with one of the page.
        same_source: keys of papers that the page's source showed before; its newer wording replaces the older one.
    """
    index, by_key = _Index(known), {paper.key: paper for paper in known}
    names = page_names(page.papers)
    exact = [
        match_paper(paper, ids, index.named(paper, ids), similar=False)
        for paper, ids in zip(page.papers, names, strict=True)
    ]
    taken = {key for match in exact for key in match.keys}
    intents: list[PaperIntent] = []
    seen = _Index(())
    for place, (paper, ids, found) in enumerate(zip(page.papers, names, exact, strict=True)):
        twin = _twin(paper, ids, found, intents, seen)
        if twin is not None:
            intents[twin] = _with_twin(intents[twin], paper, ids, found)
            continue
        match = found
        if match.key is None:
            match = match_paper(paper, ids, [k for k in index.similar(paper) if k.key not in taken])
            taken.update(match.keys)
        seen.add(KnownPaper(key=len(intents), paper=paper, first_seen_at=_NEVER, ids=ids))
        intents.append(_intent(place, paper, ids, match))
    return [_joined(intent, by_key, same_source) for intent in intents]


def _intent(index: int, paper: Paper, ids: tuple[PaperId, ...], match: Match) -> PaperIntent:
    return PaperIntent(
        index=index,
        paper=paper,
        ids=ids,
        key=match.key,
        merge=match.keys[1:],
        counted=paper.announce not in REPLACED,
        fuzzy=match.fuzzy,
    )


def _twin(
    paper: Paper, ids: Sequence[PaperId], match: Match, intents: Sequence[PaperIntent], seen: _Index
) -> int | None:
    """Return which earlier intent of the page is the same paper, None if none is."""
    if match.keys:
        mine = set(match.keys)
        for place, intent in enumerate(intents):
            if not mine.isdisjoint(intent_keys(intent)):
                return place
    return match_paper(paper, ids, seen.named(paper, ids), similar=False).key


def _with_twin(intent: PaperIntent, paper: Paper, ids: Sequence[PaperId], match: Match) -> PaperIntent:
    keys = sorted({*intent_keys(intent), *match.keys})
    return replace(
        intent,
        paper=join_records(intent.paper, paper, same_source=False),
        ids=tuple(dict.fromkeys((*intent.ids, *ids))),
        key=keys[0] if keys else None,
        merge=tuple(keys[1:]),
        counted=intent.counted or paper.announce not in REPLACED,
    )


def _joined(intent: PaperIntent, by_key: Mapping[int, KnownPaper], same_source: frozenset[int]) -> PaperIntent:
    """Return the intent with the record that shall stand in the history, and whether that differs from what stands."""
    known = by_key.get(intent.key) if intent.key is not None else None
    if known is None:
        return replace(intent, record=replace(intent.paper, warnings=()), changed=True)
    record = join_records(known.paper, intent.paper, same_source=known.key in same_source)
    for key in intent.merge:
        record = join_records(record, by_key[key].paper, same_source=False)
    news = not set(intent.ids) <= set(known.ids)
    counted = intent.counted and not known.counted
    return replace(intent, record=record, changed=record is not known.paper or news or counted or bool(intent.merge))


def intent_keys(intent: PaperIntent) -> tuple[int, ...]:
    """Return all known papers that an intent is, () for a paper unseen until now."""
    return () if intent.key is None else (intent.key, *intent.merge)
