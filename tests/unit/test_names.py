"""Author strings are people again."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.parse.names import Authors, join_authors, split_authors


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Ida Moss, Tor Vik, and Chloe de Ruyter", ["Ida Moss", "Tor Vik", "Chloe de Ruyter"]),
        ("Ida Moss and Tor Vik", ["Ida Moss", "Tor Vik"]),
        ("Ida Moss & Tor Vik", ["Ida Moss", "Tor Vik"]),
        ("Moss, I., Vik, T., van der Zee, L. E.", ["I. Moss", "T. Vik", "L. E. van der Zee"]),
        ("Moss, J.B., O'Dell, K.-L.", ["J.B. Moss", "K.-L. O'Dell"]),
        ("Moss, Ida; Vik, Tor; Arai, Ken", ["Ida Moss", "Tor Vik", "Ken Arai"]),
        ("Ida Moss;Tor Vik;", ["Ida Moss", "Tor Vik"]),
        ("Moss, Ida", ["Ida Moss"]),
        ("Moss, Ida, Vik, Tor", ["Ida Moss", "Tor Vik"]),
        ("Moss, Ida and Vik, Tor", ["Ida Moss", "Tor Vik"]),
        ("van der Zee, Lena, Moss, Ida", ["Lena van der Zee", "Ida Moss"]),
        ("Tor Vik Jr., Ida Moss", ["Tor Vik Jr.", "Ida Moss"]),
        ("Tor Vik, Jr., Ida Moss", ["Tor Vik Jr.", "Ida Moss"]),
        ("Vik, Tor, Jr.", ["Tor Vik Jr."]),
        ("Vik, Jr., Tor", ["Tor Vik Jr."]),
        ("Jr.; Moss, Ida", ["Ida Moss"]),
        ("Moss, I., Jr.", ["I. Moss Jr."]),
        ("Moss, I.; Vik, T., Jr.", ["I. Moss", "T. Vik Jr."]),
        ("Ida Moss, PhD, Tor Vik, MD", ["Ida Moss", "Tor Vik"]),
        ("Ida Moss*, Tor Vik†", ["Ida Moss", "Tor Vik"]),
        ("Ida Moss, Tor Vik et al.", ["Ida Moss", "Tor Vik"]),
        ("by Ida Moss, Tor Vik", ["Ida Moss", "Tor Vik"]),
        ("desk@papers.example (Ida Moss)", ["Ida Moss"]),
        ("Ida Moss <ida@papers.example>", ["Ida Moss"]),
        ("William (Bill) Moss, Tor Vik", ["William (Bill) Moss", "Tor Vik"]),
        ("A. Moss, B. Vik", ["A. Moss", "B. Vik"]),
        ("李华、王伟", ["李华", "王伟"]),
        ("Moss JR, Vik T", ["Moss JR", "Vik T"]),
        ("Ida  Moss,\n\tTor Vik", ["Ida Moss", "Tor Vik"]),
        ("Anderson", ["Anderson"]),
        ("desk@papers.example", []),
        ("", []),
        (" , ; ", []),
    ],
)
def test_split_authors_into_people(text: str, names: list[str]) -> None:
    """Each person of a string is one name, given name first."""
    assert names == list(split_authors(text).names)


@pytest.mark.parametrize(
    ("text", "names", "group"),
    [
        ("Ida Moss, Tor Vik (for the Shelf Consortium)", ("Ida Moss", "Tor Vik"), "Shelf Consortium"),
        ("Ida Moss (TIDE Collaboration)", ("Ida Moss",), "TIDE Collaboration"),
        ("Moss, I., Vik, T., The Shelf Group", ("I. Moss", "T. Vik"), "Shelf Group"),
        ("TIDE Collaboration: A. Moss, B. Vik", ("A. Moss", "B. Vik"), "TIDE Collaboration"),
        ("Ida Moss, on behalf of the TIDE Collaboration", ("Ida Moss",), "TIDE Collaboration"),
        ("Ida Moss and Tor Vik for the Shelf Consortium", ("Ida Moss", "Tor Vik"), "Shelf Consortium"),
        ("Ida Moss; The Shelf Group", ("Ida Moss",), "Shelf Group"),
        ("Collaboration, The TIDE", (), "TIDE Collaboration"),
        ("TIDE Collaboration and Shelf Collaboration", (), "TIDE Collaboration, Shelf Collaboration"),
    ],
)
def test_split_authors_keeps_groups_apart(text: str, names: tuple[str, ...], group: str) -> None:
    """A group is no person."""
    assert Authors(names, group) == split_authors(text)


def test_split_authors_reads_places_in_brackets() -> None:
    """Numbers in brackets are marks, words are places."""
    expected = Authors(("A. Moss", "B. Vik"), None, ("Tide Lab", "Shelf Institute"))
    assert expected == split_authors("A. Moss (1), B. Vik (1 and 2) ((1) Tide Lab, (2) Shelf Institute)")
    assert expected == split_authors("A. Moss (Tide Lab), B. Vik (Shelf Institute)")


def test_split_authors_counts_those_left_out() -> None:
    """A printed "+3" is a count, not a name."""
    assert Authors(("Ida Moss", "Tor Vik"), more=3) == split_authors("Ida Moss, Tor Vik +3")


def test_join_authors_of_one_string_each() -> None:
    """One string an author: each is put right, none twice."""
    expected = Authors(("Ida Moss", "T. H. Vik"), "Shelf Group")
    assert expected == join_authors(["Moss, Ida", "T. H. Vik", "Ida Moss", "The Shelf Group"])
    assert Authors() == join_authors([])


@given(st.text(alphabet="AaBb.,;()&+1 é、*@", max_size=60) | st.text(max_size=60))
@settings(max_examples=300, deadline=None)
def test_split_authors_of_anything(text: str) -> None:
    """Any text is answered with names that hold letters, on one line, none twice."""
    found = split_authors(text)
    assert len(set(found.names)) == len(found.names)
    for name in found.names:
        assert any(character.isalpha() for character in name)
        assert name == " ".join(name.split())


@given(
    st.lists(
        st.sampled_from(["Ida Moss", "Tor Vik", "Lena van der Zee", "Ken Arai", "J. P. Roe"]), min_size=2, unique=True
    )
)
@settings(max_examples=100, deadline=None)
def test_split_authors_finds_all_whatever_joins_them(names: list[str]) -> None:
    """Commas, semicolons and "and" give the same people."""
    expected = tuple(names)
    for text in (", ".join(names), "; ".join(names), " and ".join(names), ", ".join(names[:-1]) + f", and {names[-1]}"):
        assert expected == split_authors(text).names
