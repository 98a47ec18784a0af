"""Two records of one paper joined. Floor 1, pure.

Entry point: :func:`join_records`. Sources differ in what they print: listings cut the authors, feeds have no affiliations,
old records lack what newer ones show. Nothing that any source said is lost by joining.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TypeVar

from digestd.model.paper import Paper

T = TypeVar("T")


def join_records(old: Paper, new: Paper, *, same_source: bool) -> Paper:
    """Return the record that says most.

    Args:
        old: the record of the history.
        new: the record of a page.
        same_source: whether the source showed this paper before; then its new wording of title and abstract is the paper's,
            otherwise the old wording stays and the new one only fills gaps.

    Returns:
        The old record itself where the new one adds nothing; warnings of pages are not part of a paper's record.
    """
    wording = new if same_source else old
    authors = new if _shows_more(new.authors, old.authors) else old
    places = new if _shows_more(new.affiliations, old.affiliations) else old
    labels = _join_labels(old, new)
    dated = old if old.published is not None else new
    joined = replace(
        old,
        title=wording.title,
        title_raw=wording.title_raw,
        abstract=wording.abstract or old.abstract or new.abstract,
        abstract_raw=wording.abstract_raw or old.abstract_raw or new.abstract_raw,
        published=dated.published,
        published_at=dated.published_at or old.published_at,
        categories=_union(old.categories, new.categories),
        authors=authors.authors,
        authors_more=authors.authors_more,
        group=old.group or new.group,
        affiliations=places.affiliations,
        affiliations_more=places.affiliations_more,
        topics=labels,
        topics_more=new.topics_more if new.topics and not old.topics else old.topics_more,
        topics_unparsed=None if labels else (new.topics_unparsed or old.topics_unparsed),
        links=_union(old.links, new.links),
        ids=_union(old.ids, new.ids),
        version=max((v for v in (old.version, new.version) if v is not None), default=None),
        announce=old.announce or new.announce,
        withdrawn=old.withdrawn or new.withdrawn,
        warnings=(),
    )
    return old if joined == old else joined


def _union(first: Iterable[T], second: Iterable[T]) -> tuple[T, ...]:
    return tuple(dict.fromkeys((*first, *second)))


def _shows_more(new: tuple[str, ...], old: tuple[str, ...]) -> bool:
    return len(new) > len(old)


def _join_labels(old: Paper, new: Paper) -> tuple[str, ...]:
    """Return the labels of both; a label that a source takes away again stays, because readers were told of it."""
    return _union(old.topics, new.topics)
