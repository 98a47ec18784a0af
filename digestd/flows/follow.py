"""Topics that can be followed. Floor 4. Entry points: :func:`start_topic`, :func:`sync_topics`.

A topic that nobody follows is only a label. When it is first followed, or declared, all known papers with that label, or
that its rule matches, become its baseline: told to nobody, because they were there before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from digestd.flows.relabel import cut_again
from digestd.model.topic import MatchRule, Topic, Vocabulary
from digestd.ports import History, Store
from digestd.topics import make_slug, matches


def sync_topics(store: Store, declared: Sequence[Topic], vocabulary: Vocabulary, *, now: datetime) -> None:
    """Bring the declared topics into the history; those that changed nothing cost one look.

    A rule that changed takes in the known papers that it now matches, as a new topic does: an operator's edit is no news.
    """
    for topic in declared:
        known = store.history.find_topic(topic.name)
        if known is None:
            start_topic(store, topic, vocabulary, now=now)
        elif _adds(known, topic):
            with store.transaction():
                changed = replace(topic, slug=known.slug)
                store.history.put_topic(changed, now=now)
                if topic.rule is not None and topic.rule != known.rule:
                    store.history.add_baseline(known.slug, _matching(store.history, topic.rule), seen_at=now)


def start_topic(store: Store, topic: Topic, vocabulary: Vocabulary, *, now: datetime) -> Topic:
    """Make a topic that can be followed and give it its baseline, in one transaction.

    Args:
        store: the history.
        topic: name, gloss and rule; its slug is made here if it has none.
        vocabulary: labels known from elsewhere; the topic's name is one more, so tag lines are cut again.
        now: when.

    Returns:
        The topic with its slug.
    """
    history = store.history
    with store.transaction():
        slug = topic.slug or make_slug(topic.name, [other.slug for other in history.topics()])
        made = replace(topic, slug=slug)
        cut_again(history, Vocabulary({**vocabulary.counts, topic.name: 1}), fetched_at=now)
        history.put_topic(made, now=now)
        keys = [paper.key for paper in history.labelled(topic.name)]
        if topic.rule is not None:
            keys += _matching(history, topic.rule)
        history.add_baseline(slug, tuple(dict.fromkeys(keys)), seen_at=now)
    return made


def _matching(history: History, rule: MatchRule) -> list[int]:
    return [paper.key for paper in history.all_papers() if matches(paper.paper, rule)]


def _adds(known: Topic, declared: Topic) -> bool:
    return (
        known.name != declared.name
        or (declared.gloss is not None and known.gloss != declared.gloss)
        or (declared.rule is not None and known.rule != declared.rule)
    )
