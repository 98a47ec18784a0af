"""Which other topics a paper belongs to."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.model.topic import MatchRule, Topic
from digestd.topics import is_same_person, make_slug, matches, name_key, other_topics
from tests.builders import make_paper


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("Reef Sound", "reef-sound"),
        ("  Kelp & Urchins (2026) ", "kelp-urchins-2026"),
        ("Éclats de récif", "eclats-de-recif"),
        ("珊瑚", "topic"),
        ("", "topic"),
        ("x" * 90, "x" * 60),
    ],
)
def test_slugs_are_short_ascii(name: str, slug: str) -> None:
    """They stand in addresses and file names."""
    assert slug == make_slug(name)


def test_a_taken_slug_gets_a_number() -> None:
    """Two topics never share an address."""
    assert ["reef-sound-2", "reef-sound-3"] == [
        make_slug("Reef Sound!", ["reef-sound"]),
        make_slug("Reef Sound?", ["reef-sound", "reef-sound-2"]),
    ]


@given(st.text(max_size=90), st.lists(st.text(max_size=20), max_size=4))
@settings(max_examples=200, deadline=None)
def test_slugs_are_always_fit_and_free(name: str, others: list[str]) -> None:
    """Whatever a topic is called, its slug is safe as a file name and not taken."""
    taken = [make_slug(other) for other in others]
    slug = make_slug(name, taken)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug)
    assert slug not in taken


TOPICS = (
    Topic("reef-sound", "Reef Sound"),
    Topic("sonar", "Sonar"),
    Topic("kelp", "Kelp Forests", rule=MatchRule(any_of=("kelp",))),
)


def test_labels_and_rules_name_other_topics() -> None:
    """A paper belongs to each once; its page's own topic is not another one."""
    papers = [
        make_paper("Quiet Reefs", topics=("Reef Sound", "sonar", "SONAR", "Unknown")),
        make_paper("Kelp in Winter", topics=("Reef Sound",)),
        make_paper("Kelp Maps", topics=("Kelp forests",)),
    ]
    assert [(0, "sonar", "label"), (1, "kelp", "rule"), (2, "kelp", "label")] == other_topics(
        papers, TOPICS, "reef-sound"
    )


def test_a_topics_own_rule_says_nothing_on_its_own_page() -> None:
    """The page already says that the paper belongs to it."""
    assert [] == other_topics([make_paper("Kelp in Winter")], TOPICS, "kelp")


def test_names_of_signs_only_are_not_all_the_same() -> None:
    """Folding leaves nothing of them, so they stand as they are."""
    assert [name_key("???"), name_key("!!!")] == ["???", "!!!"]
    assert [] == other_topics([make_paper(topics=("!!!",))], [Topic("x", "???")], "reef-sound")


PAPER = make_paper(
    "Self-Supervised Kelp Maps",
    abstract="We map kelp from kites. Sea urchins graze; Éclat wins.",
    categories=("cs.CV", "q-bio.PE"),
    authors=("Xiao-Wen Yang", "Marta Orsini"),
    topics=("Sonar",),
)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (MatchRule(), False),
        (MatchRule(none_of=("nothing",)), False),
        (MatchRule(any_of=("sonar", "KELP")), True),
        (MatchRule(any_of=("self supervised",)), True),
        (MatchRule(any_of=("eclat",)), True),
        (MatchRule(any_of=("kel",)), False),
        (MatchRule(any_of=("maps we",)), False),
        (MatchRule(any_of=("we map",)), True),
        (MatchRule(any_of=("",)), False),
        (MatchRule(all_of=("kelp", "sea urchins")), True),
        (MatchRule(all_of=("kelp", "whales")), False),
        (MatchRule(any_of=("kelp",), none_of=("kites",)), False),
        (MatchRule(categories=("cs.",)), True),
        (MatchRule(categories=("cs.CV",)), True),
        (MatchRule(categories=("cs.C",)), False),
        (MatchRule(categories=("cs.CL",)), False),
        (MatchRule(authors=("Xiaowen Yang",)), True),
        (MatchRule(authors=("Orsini, M.",)), True),
        (MatchRule(authors=("Xi Yang",)), False),
        (MatchRule(labels=("sonar",)), True),
        (MatchRule(labels=("Kelp",)), False),
        (MatchRule(any_of=("kelp",), authors=("Ana Lima",)), False),
        (MatchRule(any_of=("kelp",), categories=("cs.CV",), authors=("M. Orsini",), labels=("Sonar",)), True),
    ],
)
def test_rules_match_whole_words_and_all_their_parts(rule: MatchRule, expected: bool) -> None:
    """One of any, all of all, none of none, and one of each list that is not empty."""
    assert expected is matches(PAPER, rule)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Xiao-Wen Yang", "Xiaowen Yang"),
        ("Xiao Wen Yang", "Yang Xiaowen"),
        ("Yang, Xiaowen", "Xiao-Wen Yang"),
        ("Orsini, M.", "Marta Orsini"),
        ("M. Orsini", "Orsini, Marta"),
        ("Marta Orsini", "Marta L. Orsini"),
        ("J.-P. Serre", "Jean-Pierre Serre"),
        ("Ana de la Cruz", "de la Cruz, Ana"),
        ("Jürgen Møller", "Jurgen Moller"),
        ("Cher", "CHER"),
    ],
)
def test_one_person_by_many_spellings(one: str, other: str) -> None:
    """A rule for a person finds all that the sources make of the name."""
    assert (True, True) == (is_same_person(one, other), is_same_person(other, one))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Xi Chen", "Xin Chen"),
        ("Chen Xi", "Xin Chen"),
        ("Chen, Xi", "Xin Chen"),
        ("Marta Orsini", "Maria Orsini"),
        ("Marta L. Orsini", "Marta K. Orsini"),
        ("Ana Lima", "Ana Souza"),
        ("Cher", "Cher Lloyd"),
        ("", "Ana Lima"),
    ],
)
def test_full_names_agree_in_full(one: str, other: str) -> None:
    """Initials decide only where one side has nothing else: "Xi Chen" is not "Xin Chen"."""
    assert (False, False) == (is_same_person(one, other), is_same_person(other, one))
