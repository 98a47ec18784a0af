"""What changed on a paper that was told before."""

from __future__ import annotations

import pytest

from digestd.model.paper import Revision
from digestd.revision_words import is_withdrawal, merge_revisions, revision_line


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ((("title", "Old Eels", "New Eels"),), "New title, before: \u201cOld Eels\u201d."),
        (
            (("abstract", "Eels hum. They do.", "Eels hum. Cod does not."),),
            "The abstract now says: \u201cCod does not.\u201d",
        ),
        ((("abstract", "Eels hum. They do.", "Eels hum."),), "The abstract was shortened."),
        ((("abstract", "", "Eels hum."),), "An abstract was added."),
        (
            (("title", "A", "B"), ("abstract", "", "Eels hum.")),
            "New title, before: \u201cA\u201d. An abstract was added.",
        ),
        ((("withdrawn", "", "Lemma 2 is wrong. Sorry."),), "Withdrawn: \u201cLemma 2 is wrong.\u201d"),
        ((("withdrawn", "", ""), ("title", "A", "B")), "Withdrawn."),
        ((), "Changed."),
    ],
)
def test_revision_line(changes: tuple[tuple[str, str, str], ...], expected: str) -> None:
    """One line says what is different now, in the paper's own words."""
    assert expected == revision_line(Revision(1, changes))


def test_merge_revisions() -> None:
    """Two revisions between two digests are one: first text before, last text after, spelling left out."""
    revisions = [
        Revision(1, (("title", "A", "B"), ("abstract", "x", "y"))),
        Revision(1, (("title", "B", "b"),), told=False),
        Revision(1, (("title", "B", "C"), ("abstract", "y", "x"))),
    ]
    assert Revision(1, (("title", "A", "C"),)) == merge_revisions(revisions)


def test_merge_revisions_to_nothing() -> None:
    """There and back again is no change, but a withdrawal always is one."""
    assert merge_revisions([Revision(1, (("title", "A", "B"),)), Revision(1, (("title", "B", "A"),))]) is None
    withdrawn = Revision(1, (("withdrawn", "", ""),))
    assert withdrawn == merge_revisions([withdrawn])
    assert [True, False] == [is_withdrawal(withdrawn), is_withdrawal(Revision(1, (("title", "A", "B"),)))]
