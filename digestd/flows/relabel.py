"""Tag lines that are cut once more labels are known. Floor 4. Entry points: :func:`cut_again`, :func:`can_be_cut`."""

from __future__ import annotations

from datetime import datetime

from digestd.model.snapshot import Page
from digestd.model.topic import Vocabulary
from digestd.parse.labels import cut_labels
from digestd.ports import History


def merged_vocabulary(one: Vocabulary, other: Vocabulary) -> Vocabulary:
    """Return the labels of both, with the larger count."""
    if not other.counts:
        return one
    counts = dict(one.counts)
    for label, seen in other.counts.items():
        counts[label] = max(seen, counts.get(label, 0))
    return Vocabulary(counts)


def can_be_cut(page: Page, history: History, extra: Vocabulary) -> bool:
    """Whether a tag line that could not be cut when the page was read can be by now: other pages came in between."""
    uncut = [paper.topics_unparsed for paper in page.papers if paper.topics_unparsed]
    if not uncut:
        return False
    vocabulary = merged_vocabulary(extra, history.vocabulary())
    return any(cut_labels(run, vocabulary, own=page.topic).labels for run in uncut)


def cut_again(history: History, extra: Vocabulary, *, fetched_at: datetime) -> None:
    """Cut the tag lines that could not be cut before, now that more labels are known.

    The labels were there to be seen all the time and it is only we who read them late, so a paper takes in their topics the
    kind that it had: what was told to nobody stays so, what was new is newly tagged.
    """
    vocabulary = merged_vocabulary(extra, history.vocabulary())
    topics = history.topics()
    for key, own, run in history.unparsed():
        cut = cut_labels(run, vocabulary, own=own)
        if cut.labels:
            history.set_labels(key, cut.labels, topics, seen_at=fetched_at)
