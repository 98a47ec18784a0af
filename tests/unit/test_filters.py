"""Filters: how rules are written, what they fit, why a paper is hidden, and what a reader is warned of."""

from __future__ import annotations

import string

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from digestd.errors import ConfigError
from digestd.filters import (
    FIELDS,
    MOST_RULES,
    FilterPreview,
    HiddenBy,
    apply_filter,
    fits,
    format_rule,
    hidden_because,
    hides,
    lint,
    parse_rule,
    preview,
)
from digestd.model.paper import Paper
from digestd.model.subscription import Filter, FilterRule
from tests.builders import make_item, make_known, make_paper


def make_filter(include: tuple[str, ...] = (), exclude: tuple[str, ...] = ()) -> Filter:
    """Return a filter of rules as a reader writes them."""
    return Filter(tuple(map(parse_rule, include)), tuple(map(parse_rule, exclude)))


@pytest.mark.parametrize(
    ("text", "field", "value"),
    [
        ("diffusion model", "words", "diffusion model"),
        ("  diffusion \t model ", "words", "diffusion model"),
        ('"diffusion model"', "words", "diffusion model"),
        ("words:GPT:next", "words", "GPT:next"),
        ("RL: a survey", "words", "RL: a survey"),
        ("author:Ana Lima", "author", "Ana Lima"),
        ("Author: Ana Lima", "words", "Author: Ana Lima"),
        ("AUTHOR:Ana Lima", "author", "Ana Lima"),
        ('author:"Lima, Ana"', "author", "Lima, Ana"),
        ("category:cs.", "category", "cs."),
        ("category:cs.*", "category", "cs."),
        ("category:cs.CL", "category", "cs.CL"),
        ("institution:MIT", "institution", "MIT"),
        ("label:Tool Use", "label", "Tool Use"),
    ],
)
def test_rule_is_read(text: str, field: str, value: str) -> None:
    """A rule is a field, a colon and a value; without a field it is words."""
    assert FilterRule(field, value) == parse_rule(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        '""',
        "author:",
        "words:",
        "category:*",
        "category:* *",
        'label:" "',
        "autor:Ana",
        "https://reef.example",
        "x" * 201,
        "autor:\x1b[0m",
    ],
)
def test_rule_that_says_nothing_is_refused(text: str) -> None:
    """A rule without a value, or with a field that does not exist, is refused with what was expected."""
    with pytest.raises(ConfigError, match=r"^filter rule: expected .*, found ") as caught:
        parse_rule(text)
    assert str(caught.value).isprintable()


VALUES = st.text(string.ascii_letters + " :.*\"'éß-1", min_size=1, max_size=20)


@given(st.sampled_from([f"{field}:" for field in FIELDS] + [""]), VALUES)
@example("category:", "*")
@example("category:", "cs.**")
@settings(max_examples=1000, deadline=None)
def test_rule_reads_back_as_it_is_written(field: str, value: str) -> None:
    """What is printed of a rule is read as the same rule."""
    try:
        rule = parse_rule(field + value)
    except ConfigError:
        return
    assert rule == parse_rule(format_rule(rule))


PAPER = make_paper(
    "Naïve Listening: Coral-Reef Sounds",
    abstract="We hear fish with two microphones (C++). It works in MIT's tank.",
    authors=("Ana Lima", "Xiao-Wen Yang"),
    categories=("cs.SD", "q-bio.PE"),
    affiliations=("Department of Sound, University of São Tomé", "MITRE Corporation"),
    topics=("Reef Sound", "Fish"),
)


@pytest.mark.parametrize(
    "rule",
    [
        "coral reef", "CORAL-REEF", "naive", "naïve", "two microphones", "fish",
        "author:Ana Lima", "author:ana lima", "author:Lima, Ana", "author:A. Lima", "author:Yang Xiao-Wen",
        "category:cs.SD", "category:CS.sd", "category:cs.", "category:q-bio.",
        "institution:university of sao tome", "institution:MITRE", "institution:Department of Sound",
        "label:reef sound", "label:Fish",
    ],
)  # fmt: skip
def test_rule_fits(rule: str) -> None:
    """Words, names, places, categories and labels are found with case and accents folded."""
    assert fits(parse_rule(rule), PAPER)


@pytest.mark.parametrize(
    "rule",
    [
        "cora", "reef coral", "listening sounds", "phones", "...", "author:Lima", "author:Antonio Lima", "author:Ana Li",
        "author:...", "category:cs", "category:cs.S", "category:q-bio", "category:s.", "institution:MIT",
        "institution:Sound Tomé", "institution:...", "label:Reef", "label:Sound Reef",
    ],
)  # fmt: skip
def test_rule_does_not_fit(rule: str) -> None:
    """Parts of words, other orders, other people and places by a chance likeness are not found."""
    assert not fits(parse_rule(rule), PAPER)


def test_rule_of_unknown_field_fits_nothing() -> None:
    """A rule of a later release hides nothing here."""
    assert not fits(FilterRule("venue", "Reef Days"), PAPER)


def test_institution_is_not_looked_for_across_two() -> None:
    """Words of two institutions do not make a third."""
    paper = make_paper(affiliations=("Reef University", "College of Kelp"))
    assert not fits(parse_rule("institution:University College"), paper)


@pytest.mark.parametrize(
    ("include", "exclude", "expected"),
    [
        ((), (), None),
        ((), ("kelp",), None),
        ((), ("kelp", "fish"), "excluded by 'fish'"),
        (("fish",), (), None),
        (("kelp", "fish"), (), None),
        (("kelp",), (), "none of the rules to include fits"),
        (("fish",), ("author:Ana Lima",), "excluded by 'author:Ana Lima'"),
        (("kelp",), ("fish",), "excluded by 'fish'"),
    ],
)
def test_paper_is_hidden_for_a_reason(include: tuple[str, ...], exclude: tuple[str, ...], expected: str | None) -> None:
    """A paper is hidden if a rule to exclude fits, or if there are rules to include and none fits; the reason is said."""
    assert expected == hidden_because(make_filter(include, exclude), PAPER)


def test_filter_parts_what_is_shown_from_what_is_hidden() -> None:
    """Each sighting is either kept or hidden with its reason, in order; none is lost."""
    items = [make_item(make_known(key, title)) for key, title in enumerate(["Fish A", "Kelp B", "Fish C", "Crab D"], 1)]
    kept, hidden = apply_filter(make_filter(include=("fish", "kelp"), exclude=("c",)), items)
    assert (items[0], items[1]) == kept
    assert ((items[2], HiddenBy(FilterRule("words", "c"))), (items[3], HiddenBy(None))) == hidden


def test_preview_counts_what_would_have_been_hidden() -> None:
    """Before a filter is saved it is tried on the history, and each rule's part is counted."""
    papers = (
        [make_paper(f"Fish {n}") for n in range(4)] + [make_paper(f"Kelp {n}") for n in range(3)] + [make_paper("Crab")]
    )
    found = preview(make_filter(include=("fish", "kelp"), exclude=("kelp", "fish 0")), papers)
    expected = FilterPreview(
        5,
        8,
        ((HiddenBy(FilterRule("words", "kelp")), 3), (HiddenBy(FilterRule("words", "fish 0")), 1), (HiddenBy(None), 1)),
    )
    assert expected == found
    assert "would have hidden 5 of 8" == str(found)


def test_preview_of_large_numbers_is_readable() -> None:
    """Thousands are parted."""
    assert "would have hidden 1,204 of 10,000" == str(FilterPreview(1204, 10_000))


RULES = st.sampled_from(["fish", "kelp", "reef", "author:Ana Lima", "category:cs.", "label:Fish"]).map(parse_rule)
FILTERS = st.builds(Filter, st.lists(RULES, max_size=3).map(tuple), st.lists(RULES, max_size=3).map(tuple))
PAPERS = st.lists(
    st.builds(
        make_paper,
        st.sampled_from(["Fish", "Kelp and Fish", "Reef", "Crab"]),
        authors=st.sampled_from([("Ana Lima",), ("Bo Li",)]),
        categories=st.sampled_from([("cs.SD",), ("math.CO",), ()]),
        topics=st.sampled_from([("Fish",), ()]),
    ),
    max_size=8,
)


@given(FILTERS, PAPERS)
@settings(max_examples=300, deadline=None)
def test_preview_and_digest_agree(wanted: Filter, papers: list[Paper]) -> None:
    """What a preview counts is what a digest hides: every paper has one fate, and the reasons add up."""
    items = [make_item(make_known(key, paper.title)) for key, paper in enumerate(papers, 1)]
    found = preview(wanted, [item.known.paper for item in items])
    kept, hidden = apply_filter(wanted, items)
    assert found.would_hide == len(hidden) == sum(count for _, count in found.by_rule)
    assert found.of == len(kept) + len(hidden) == len(items)
    assert items == sorted([*kept, *(item for item, _ in hidden)], key=lambda item: item.position)
    assert all(hides(wanted, item.known.paper) is None for item in kept)


@pytest.mark.parametrize(
    ("include", "exclude", "expected"),
    [
        (("diffusion model", "author:Ana Lima", "category:cs.", "label:Fish"), ("category:cs.CR",), ()),
        (("...",), (), ("'...' can never fit: it has no letters or digits",)),
        ((), ("a",), ("'a' fits almost every paper",)),
        ((), ("The",), ("'The' fits almost every paper",)),
        ((), ("x",), ("'x' is a single letter: it fits wherever one stands alone",)),
        (("author:Lima",), (), ("'author:Lima' fits only people of one name: write the full name",)),
        (("category:cs",), (), ("'category:cs' can never fit: write 'category:cs.' for all of cs",)),
        (("category:cs.CL, cs.AI",), (), ("'category:cs.CL, cs.AI' can never fit: write one rule for each category",)),
        (("category:1234",), (), ("'category:1234' is not like a category: 'cs.CL', 'cs.'",)),
        (("category:quant-ph",), (), ()),
        (("fish", "Fish"), (), ("'fish' stands in include 2 times",)),
        ((), ("fish", "fish"), ("'fish' stands in exclude 2 times",)),
        (("fish",), ("fish",), ("'fish' is included and excluded: what it fits is hidden",)),
        (("reef fish",), ("Fish",), ("'reef fish' is included and all of it excluded by 'Fish'",)),
        (("category:cs.CL",), ("category:cs.",), ("'category:cs.CL' is included and all of it excluded by 'category:cs.'",)),
        (("label:reef",), ("label:Reef",), ("'label:reef' is included and all of it excluded by 'label:Reef'",)),
        (("fish", "author:Ana Lima"), ("label:Fish",), ()),
        (("a1 OR b2",), (), ("'a1 OR b2' looks like a search: AND, OR and NOT are words here, write one rule for each",)),
    ],
)  # fmt: skip
def test_lint_says_what_is_odd(include: tuple[str, ...], exclude: tuple[str, ...], expected: tuple[str, ...]) -> None:
    """A reader is warned of rules that can never fit, fit everything, or work against each other; others pass quietly."""
    assert expected == lint(make_filter(include, exclude))


@pytest.mark.parametrize(
    "rule", ["(?i)fish", "fish.*", r"\bfish\b", "^fish", "fish$", "[a-z]+", "fish|kelp", "/fish/i", "fish*"]
)
def test_lint_says_that_there_are_no_patterns(rule: str) -> None:
    """A rule that looks like a pattern is taken as words, and the reader is told."""
    expected = (f"'{rule}' looks like a pattern: there are none, words are compared as they stand",)
    assert expected == lint(make_filter((rule,)))


def test_lint_of_unknown_field_and_too_many_rules() -> None:
    """Filters that came another way than by the reader's hand are looked at too."""
    assert ("'venue:Reef' can never fit: there is no field 'venue'",) == lint(Filter((FilterRule("venue", "Reef"),)))
    many = tuple(FilterRule("words", f"fish {n}") for n in range(MOST_RULES + 1))
    assert ("101 rules to exclude: more than 100",) == lint(Filter(exclude=many))


@given(st.lists(st.builds(FilterRule, st.sampled_from([*FIELDS, "venue"]), st.text(max_size=15)), max_size=4))
@settings(max_examples=300, deadline=None)
def test_lint_takes_any_rule(rules: list[FilterRule]) -> None:
    """Nothing that a reader writes makes the check itself fail, and a warning is never said twice."""
    found = lint(Filter(tuple(rules), tuple(rules)))
    assert len(found) == len(set(found))
