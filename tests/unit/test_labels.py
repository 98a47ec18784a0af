"""Tag lines are cut by what is known, or not at all."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.model.topic import Vocabulary
from digestd.parse.labels import LabelCut, cut_labels, ends_in_half_label, index_labels, load_vocabulary

REEFS = Vocabulary(
    {
        "Reef Sound": 40,
        "Reef Sound Sensing": 20,
        "Sensing": 3,
        "Robots": 9,
        "Underwater Robots": 7,
        "Learning": 30,
        "Learning for Robots": 2,
        "Deep Learning": 8,
        "Deep": 1,
    }
)


@pytest.mark.parametrize(
    ("line", "cut"),
    [
        ("Underwater Robots Reef Sound", LabelCut(("Underwater Robots", "Reef Sound"))),
        ("Robots Underwater Robots", LabelCut(("Robots", "Underwater Robots"))),
        ("Reef Sound Sensing", LabelCut(("Reef Sound Sensing",))),
        ("Deep Learning for Robots", LabelCut(("Deep", "Learning for Robots"))),
        ("Reef Sound Robots+12", LabelCut(("Reef Sound", "Robots"), 12)),
        ("Reef Sound Robots+1,012", LabelCut(("Reef Sound", "Robots"), 1012)),
        ("Reef Sound Kelp", LabelCut((), 0, "Reef Sound Kelp")),
        ("Reef Sound Kelp+3", LabelCut((), 3, "Reef Sound Kelp")),
        ("Reef Sounds", LabelCut((), 0, "Reef Sounds")),
        ("reef sound", LabelCut((), 0, "reef sound")),
        ("", LabelCut(())),
        ("+4", LabelCut((), 4)),
    ],
)
def test_cut_labels_explains_the_whole_line_or_none_of_it(line: str, cut: LabelCut) -> None:
    """Known labels from end to end make a cut; anything else stays one run."""
    assert cut == cut_labels(line, REEFS, own=None)


def test_cut_labels_prefers_few_then_known_labels() -> None:
    """Of two cuts with as many labels the one whose labels were seen more often wins."""
    vocabulary = Vocabulary({"A B": 1, "C": 1, "A": 5, "B C": 5, "A B C D": 1, "D": 9})

    assert ("A", "B C") == cut_labels("A B C", vocabulary, own=None).labels
    assert ("A B C D",) == cut_labels("A B C D", vocabulary, own=None).labels


def test_cut_labels_knows_the_pages_own_topic() -> None:
    """The topic of the page is a label even if the vocabulary is empty."""
    assert LabelCut(("Kelp Forests",)) == cut_labels("Kelp Forests", Vocabulary(), own="Kelp Forests")
    assert LabelCut((), 0, "Kelp Forests") == cut_labels("Kelp Forests", Vocabulary(), own=None)


def test_cut_labels_sees_a_vocabulary_that_grows() -> None:
    """What could not be cut is cut once its label is known."""
    counts = {"Kelp": 1}
    growing = Vocabulary(counts)
    assert cut_labels("Kelp Tides", growing, own=None).unparsed == "Kelp Tides"

    counts["Tides"] = 1

    assert ("Kelp", "Tides") == cut_labels("Kelp Tides", growing, own=None).labels


@given(st.lists(st.sampled_from(sorted(REEFS.counts)), min_size=1, max_size=8))
@settings(max_examples=200)
def test_cut_labels_always_explains_known_labels(labels: list[str]) -> None:
    """A line made of known labels is cut, into no more labels than it was made of, and nothing of it is lost."""
    line = " ".join(labels)
    cut = cut_labels(line, REEFS, own=None)

    assert cut.unparsed is None
    assert line == " ".join(cut.labels)
    assert len(cut.labels) <= len(labels)
    assert set(cut.labels) <= set(REEFS.counts)


@given(st.text(max_size=60), st.dictionaries(st.text(max_size=6), st.integers(0, 9), max_size=6))
@settings(max_examples=300)
def test_cut_labels_never_invents_a_label(line: str, counts: dict[str, int]) -> None:
    """Whatever the line and the vocabulary, labels are known ones or there are none."""
    cut = cut_labels(line, Vocabulary(counts), own=None)

    assert set(cut.labels) <= set(counts)
    assert not (cut.labels and cut.unparsed)


def test_cut_labels_is_linear_on_hostile_lines() -> None:
    """A line of a million words is left alone, one of four thousand characters is cut fast."""
    hostile = Vocabulary({" ".join(["reef"] * size): 1 for size in range(1, 60)})
    start = time.process_time()

    assert cut_labels("reef " * 1_000_000 + "x", hostile, own=None).unparsed
    assert 14 == len(cut_labels(" ".join(["reef"] * 790), hostile, own=None).labels)
    assert time.process_time() - start < 2


@pytest.mark.parametrize(
    ("line", "half"),
    [
        ("Reef Sound Underwater Rob", True),
        ("Reef Sound Under", True),
        ("Reef Sound Kelp", False),
        ("Reef Sound Kelp+3", False),
        ("Under", True),
        ("Reef Sound", True),
        ("Kelp", False),
    ],
)
def test_ends_in_half_label_finds_the_beginning_of_a_known_one(line: str, *, half: bool) -> None:
    """Whole labels and then the beginning of a known one look like a cut line."""
    assert half == ends_in_half_label(line, index_labels(REEFS, own=None))


def test_load_vocabulary_reads_one_label_a_line() -> None:
    """Comments and empty lines are no labels, a count after a tab is kept, white space folds."""
    text = "\ufeff# labels\n\nReef  Sound\nRobots\t12\r\n  Deep Learning  \nOdd\tmany\n"

    assert {"Reef Sound": 1, "Robots": 12, "Deep Learning": 1, "Odd": 1} == load_vocabulary(text).counts
