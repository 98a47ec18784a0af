"""Tag lines without separators, cut into labels by what is known. Floor 1, pure.

    Quantum Sensing Reef Sound Sensing+1   ->   "Quantum Sensing", "Reef Sound Sensing", one more

Entry points: :func:`cut_labels`, :func:`load_vocabulary`. A line is cut only if known labels explain it from end to end;
else it stays one unparsed run, to be tried again when more labels are known. A guess would file papers under topics that
their source never named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from digestd.model.topic import Vocabulary
from digestd.parse.fields import split_more

#: a row of six labels has some 200 characters; a longer line is no row of labels
_MAX_LINE = 4_000


@dataclass(frozen=True, slots=True)
class LabelCut:
    """A tag line, cut or not."""

    labels: tuple[str, ...]  #: in order; empty if the line could not be cut
    more: int = 0  #: the printed "+N"
    unparsed: str | None = None  #: the line without "+N" where it could not be cut


@dataclass(frozen=True, slots=True)
class LabelIndex:
    """A vocabulary, ready for cutting."""

    counts: Mapping[str, int]
    lengths: Mapping[str, tuple[int, ...]]  #: first word -> lengths of labels that begin with it, longest first


def cut_labels(line: str, vocabulary: Vocabulary, *, own: str | None) -> LabelCut:
    """Return the labels of a tag line.

    Of several cuts that explain the whole line the one with fewest labels wins, then the one whose labels were seen more
    often, then the one whose first label is longest.

    Args:
        line: folded, with its "+N" if there is one, may be empty.
        vocabulary: labels known so far.
        own: the page's own topic, which counts as known; None if the page names none.
    """
    return cut_with(line, index_labels(vocabulary, own=own))


def index_labels(vocabulary: Vocabulary, *, own: str | None) -> LabelIndex:
    """Return the vocabulary ready for cutting many lines; kept for the next page of the same topic."""
    return _index(_SameVocabulary(vocabulary), own)


def cut_with(line: str, index: LabelIndex) -> LabelCut:
    """Return the labels of a tag line, as :func:`cut_labels` does."""
    row, more = split_more(line)
    if not row:
        return LabelCut((), more)
    labels = _cut_row(row, index) if len(row) <= _MAX_LINE else None
    return LabelCut((), more, row) if labels is None else LabelCut(labels, more)


def ends_in_half_label(line: str, index: LabelIndex) -> bool:
    """Return whether a tag line looks cut: whole labels, then the beginning of a known one."""
    row, more = split_more(line)
    if more or len(row) > _MAX_LINE:
        return False
    starts = {0}
    for start in _word_starts(row):
        if start not in starts:
            continue
        first = row.find(" ", start)
        for length in index.lengths.get(row[start : first if first > 0 else len(row)], ()):
            if _is_label(row, start, start + length, index.counts):
                starts.add(start + length + 1)
    return any(
        len(tail := row[start:]) > 1 and any(label.startswith(tail) and label != tail for label in index.counts)
        for start in starts
        if start < len(row)
    )


def load_vocabulary(text: str) -> Vocabulary:
    """Return the labels of a list: one a line, optionally a tab and how often it was seen; "#" starts a comment."""
    counts: dict[str, int] = {}
    for line in text.removeprefix("\ufeff").splitlines():
        name, _, count = line.partition("\t")
        label = " ".join(name.split())
        if label and not label.startswith("#"):
            counts[label] = int(count) if count.strip().isdecimal() and len(count) < 10 else 1
    return Vocabulary(counts)


class _SameVocabulary:
    """A vocabulary as a key of a cache: the same object with as many labels, compared without reading them."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.size = len(vocabulary.counts)

    def __hash__(self) -> int:
        return id(self.vocabulary)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _SameVocabulary) and self.vocabulary is other.vocabulary and self.size == other.size


@lru_cache(maxsize=8)
def _index(same: _SameVocabulary, own: str | None) -> LabelIndex:
    counts = dict(same.vocabulary.counts)
    if own and own not in counts:
        counts[own] = 1
    lengths: dict[str, set[int]] = {}
    for label in counts:
        if label:
            lengths.setdefault(label.split(" ", 1)[0], set()).add(len(label))
    return LabelIndex(counts, {word: tuple(sorted(found, reverse=True)) for word, found in lengths.items()})


def _word_starts(row: str) -> list[int]:
    """Return where each word of a folded row begins."""
    starts = [0]
    while (blank := row.find(" ", starts[-1])) >= 0:
        starts.append(blank + 1)
    return starts


def _is_label(row: str, start: int, end: int, counts: Mapping[str, int]) -> bool:
    """Return whether the stretch is a known label that ends where a word ends."""
    return (end == len(row) or row[end : end + 1] == " ") and row[start:end] in counts


def _cut_row(row: str, index: LabelIndex) -> tuple[str, ...] | None:
    """Return the best cut, None if there is none: dynamic programming from the end, one look per word and length."""
    size, counts, lengths = len(row), index.counts, index.lengths
    # place -> (labels from here on, minus how often they were seen, end of the first one)
    best: dict[int, tuple[int, int, int]] = {size + 1: (0, 0, 0)}
    end_of_word = size
    while end_of_word >= 0:
        start = row.rfind(" ", 0, end_of_word) + 1
        chosen: tuple[int, int, int] | None = None
        for length in lengths.get(row[start:end_of_word], ()):
            end = start + length
            rest = best.get(end + 1)
            if rest is None or row[start:end] not in counts:
                continue
            option = (rest[0] + 1, rest[1] - counts[row[start:end]], end)
            if chosen is None or option[:2] < chosen[:2]:
                chosen = option
        if chosen is not None:
            best[start] = chosen
        end_of_word = start - 1
    if 0 not in best:
        return None
    labels: list[str] = []
    place = 0
    while place < size:
        end = best[place][2]
        labels.append(row[place:end])
        place = end + 1
    return tuple(labels)
