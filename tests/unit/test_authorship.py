"""Which line holds names, which institutions, which is abstract."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.parse.authorship import Likeness, Placed, likeness, place_authors

ABSTRACT = "We listen to reefs. They answer."


@pytest.mark.parametrize(
    "row",
    [
        "Ana Lima, Bo Berg +4",
        "Ana Lima",
        "Ludwig van der Berg, Jo d'Arcy, Md Ali",
        "Sam B. Reed, Cy Dar Jr.",
        "Łucja Żak, Özgür Çelik, Anaïs O’Hara",
        "李 明, 王 芳",
        "Wei (Vivian) Zhang",
        "Reef Team, Ana Lima +120",
        "Ana María de la Cruz",
        "Madonna, Ana Lima",
    ],
)
def test_likeness_knows_names(row: str) -> None:
    """First and last names of any script, with particles and initials, are names."""
    assert Likeness.STRONG is likeness(row)


@pytest.mark.parametrize(
    "row",
    [
        ABSTRACT,
        "-Bench shows gains",
        "τ",
        "\\sim",
        "40\\%",
        "points over the best baseline",
        "",
        ", which is new",
        "A: B",
        "x" * 5000,
    ],
)
def test_likeness_refuses_sentences_and_torn_maths(row: str) -> None:
    """Sentences and the pieces of a torn abstract are no names."""
    assert Likeness.NONE is likeness(row)


def test_likeness_doubts_single_words() -> None:
    """One word with a capital may be a name or a torn word."""
    assert Likeness.WEAK is likeness("Execution")


@pytest.mark.parametrize(
    ("middle", "placed"),
    [
        ([], Placed(None, None, 0)),
        (["Ana Lima, Bo Berg"], Placed(0, None, 0)),
        (["Lagoon Institute · Harbour Labs"], Placed(None, 0, 0)),
        ([ABSTRACT], Placed(None, None, 1)),
        ([ABSTRACT, "Ana Lima, Bo Berg +2"], Placed(1, None, 1)),
        ([ABSTRACT, "Ana Lima, Bo Berg", "Lagoon Institute"], Placed(1, 2, 1)),
        ([ABSTRACT, "Ana Lima, Bo Berg", "Tide Lab, Nordic Group"], Placed(1, 2, 1)),
        ([ABSTRACT, "Ana Lima, Bo Berg", "1Oslo · Bergen +4"], Placed(1, 2, 1)),
        ([ABSTRACT, "ana lima", "Lagoon Institute · Oslo"], Placed(1, 2, 1)),
        ([ABSTRACT, "Lagoon Institute · Oslo"], Placed(None, 1, 1)),
        ([ABSTRACT, "ana lima", "Lagoon Institute"], Placed(1, 2, 1)),
        ([ABSTRACT, "1institute of tides"], Placed(None, 1, 1)),
        ([ABSTRACT, "Reef", "Tides"], Placed(1, 2, 1)),
        (["We compare", "Execution", "Ana Lima, Bo Berg"], Placed(2, None, 2)),
        (["We compare", "Deep Reef", "Ana Lima, Bo Berg, Cy Dar +3"], Placed(2, None, 2)),
        (["We reach", "40\\%", "of all reefs.", "Ana Lima", "Oslo"], Placed(3, 4, 3)),
        (["Ana Lima", "Lagoon Institute"], Placed(0, 1, 0)),
        ([ABSTRACT, "more of the same sentence."], Placed(None, None, 2)),
    ],
)
def test_place_authors_finds_the_rows(middle: list[str], placed: Placed) -> None:
    """Names stand above institutions, below the abstract; each of them may be missing."""
    assert placed == place_authors(middle)


@given(st.lists(st.text(min_size=1, max_size=30).map(lambda text: " ".join(text.split()) or "x"), max_size=6))
@settings(max_examples=300)
def test_place_authors_leaves_no_line_unread(middle: list[str]) -> None:
    """Every line is abstract, names or institutions, each one thing only."""
    placed = place_authors(middle)
    rows = [row for row in (placed.authors, placed.affiliations) if row is not None]
    assert list(range(len(middle))) == [*range(placed.abstract_end), *rows]
