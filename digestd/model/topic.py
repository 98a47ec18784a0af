"""A followable subject. Floor 0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class MatchRule:
    """Which papers of a source without topics belong to a topic.

    A paper matches when it has at least one of ``any_of`` (if there are any), all of ``all_of``, none of ``none_of``, and
    at least one of ``categories``, ``authors``, ``labels`` for each of these that is not empty. Words and phrases are
    compared in title and abstract by whole words, case folded.
    """

    any_of: tuple[str, ...] = ()  #: words or phrases
    all_of: tuple[str, ...] = ()  #: words or phrases
    none_of: tuple[str, ...] = ()  #: words or phrases
    categories: tuple[str, ...] = ()  #: "cs.CL"; "cs." matches all of cs
    authors: tuple[str, ...] = ()  #: displayed names
    labels: tuple[str, ...] = ()  #: label names


@dataclass(frozen=True, slots=True)
class Topic:
    """A followable subject."""

    slug: str  #: "llm-agent-training", unique
    name: str  #: "LLM Agent Training", unique by its folded form
    gloss: str | None = None  #: "LLM: Large Language Model"
    rule: MatchRule | None = None  #: None: papers come from the topic's own pages and from labels only


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """All label names known, topics included, with how often each was seen; tag lines are cut with it."""

    counts: Mapping[str, int] = field(default_factory=dict)

    def __contains__(self, label: str) -> bool:
        return label in self.counts
