"""A paper's names, and which known paper it is."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.identity import (
    Match,
    author_key,
    author_keys,
    contradicts,
    first_author,
    fold,
    is_plausible,
    match_paper,
    paper_ids,
    text_print,
    title_id,
    title_print,
)
from digestd.model.paper import KnownPaper, Paper, PaperId
from tests.builders import NOW, make_paper

LONG = (
    "We hang forty hydrophones over a reef and listen for a year. Shrimp are loudest at dusk, fish at dawn, and boats at noon; "
    "a small model tells them apart from two seconds of sound, and says when it can't. Recordings and code are public."
)
OTHER = (
    "Sonar pictures of river beds are noisy. A prior learnt on graphs of stones removes most of the speckle in half a second, "
    "runs on a buoy, and keeps the edges that divers need. Tests in four rivers show fewer false alarms than filters do."
)


def known(paper: Paper, key: int = 1, ids: Sequence[PaperId] = ()) -> KnownPaper:
    """Return the history's record of a paper, with all the names that its page gives."""
    return KnownPaper(key, paper, NOW, ids=(*paper_ids(paper), *ids))


def match(paper: Paper, *others: KnownPaper) -> Match:
    """Return which of some known papers a paper is."""
    return match_paper(paper, paper_ids(paper), others)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Quiet Reefs at Night", "QUIET REEFS AT NIGHT"),
        ("Quiet Reefs at Night", "  Quiet   Reefs\tat Night. "),
        ("Kelp–Urchin Games", "Kelp-Urchin games"),
        ("Kelp—Urchin Games", "Kelp Urchin Games"),
        ("Ｋelp Games", "Kelp Games"),
        ("ﬁnding ﬁsh", "Finding Fish"),
        ("Café du Récif", "Cafe\u0301 du Recif"),
        ("Søren Łódź æther", "Soren Lodz aether"),
        ("Reefs’ “Voices”", 'Reefs\' "Voices"'),
        ("Straße der Fische", "STRASSE DER FISCHE"),
        ("x² grows", "x2 grows"),
    ],
)
def test_title_print_folds_what_sources_spell_differently(one: str, other: str) -> None:
    """Case, spacing, dashes, quotes, accents and compatibility forms don't make another title."""
    assert title_print(one) == title_print(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ReefGym: Diving for Data", "ReefGym: Swimming for Data"),
        ("Kelp I", "Kelp II"),
        ("???", "!!!"),
        ("珊瑚的声音", "珊瑚的颜色"),
    ],
)
def test_title_print_keeps_titles_apart(one: str, other: str) -> None:
    """The same short name before the colon is nothing; signs count where there is nothing else."""
    assert title_print(one) != title_print(other)


@given(st.text(max_size=80))
@settings(max_examples=300, deadline=None)
def test_fold_is_stable(text: str) -> None:
    """What was folded once stays as it is, so prints of old records stay findable."""
    assert fold(text) == fold(fold(text))


@given(st.text(alphabet=st.characters(max_codepoint=127), max_size=80))
@settings(max_examples=300, deadline=None)
def test_fold_of_plain_text_is_the_same_beside_any_other_letter(text: str) -> None:
    """The short cut for ASCII text folds as the long way does."""
    assert fold(text) + "e" == fold(text + "é")


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("Xiao-Wen Yang", "yang.x"),
        ("Xiaowen Yang", "yang.x"),
        ("X. Yang", "yang.x"),
        ("Yang, Xiaowen", "yang.x"),
        ("Orsini, M.", "orsini.m"),
        ("Marta Orsini", "orsini.m"),
        ("Ana de la Cruz", "cruz.a"),
        ("de la Cruz, Ana", "cruz.a"),
        ("Martin King Jr.", "king.m"),
        ("King, Jr., Martin", "king.m"),
        ("King, Martin, III", "king.m"),
        ("Plato", "plato"),
        ("", ""),
        ("†", ""),
        (", Ana", "ana"),
    ],
)
def test_author_key_is_surname_and_initial(name: str, key: str) -> None:
    """A person's name gives one key, however the source writes it."""
    assert key == author_key(name)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Xiaowen Yang", "Yang Xiaowen"),
        ("Xiao Wen Yang", "Yang Xiao Wen"),
        ("Mia Garcia-Lopez", "M. Lopez"),
        ("Mia Garcia-Lopez", "Garcia-Lopez, Mia"),
    ],
)
def test_author_keys_meet_in_both_orders(one: str, other: str) -> None:
    """Family names come first in many of the world's names."""
    assert author_keys(one) & author_keys(other)


def test_author_keys_keep_people_apart() -> None:
    """Another surname is another person."""
    assert not author_keys("Ana Lima") & author_keys("Ana Souza")


def test_first_author_is_the_group_where_no_person_is_named() -> None:
    """A collaboration stands for its people."""
    assert ["Ana Lima", "The Reef Group", ""] == [
        first_author(make_paper()),
        first_author(make_paper(authors=(), group="The Reef Group")),
        first_author(make_paper(authors=())),
    ]


def test_ids_come_from_the_source_its_first_link_and_the_title() -> None:
    """Every name of a paper is kept, but links in its text are other works."""
    paper = make_paper(
        ids=(PaperId("s2", "f00"),),
        links=("https://arxiv.org/abs/2609.01234v2", "https://code.example/reef"),
    )
    assert {
        PaperId("s2", "f00"),
        PaperId("arxiv", "2609.01234"),
        PaperId("url", "arxiv.org/abs/2609.01234v2"),
        title_id(paper.title, "Ana Lima"),
    } == set(paper_ids(paper))


def test_text_print_ignores_signs_only() -> None:
    """A change of dashes is the same text, a change of words is not."""
    paper = make_paper("Kelp-Urchin Games", abstract="Ten urchins.")
    assert text_print(paper) == text_print(make_paper("Kelp—urchin games", abstract="Ten  urchins"))
    assert text_print(paper) != text_print(make_paper("Kelp-Urchin Games", abstract="Two urchins."))


def test_same_title_and_first_author_is_one_paper() -> None:
    """A listing page has no id; title and first author find the paper again."""
    assert Match((1,)) == match(make_paper("QUIET reefs at night", authors=("A. Lima",)), known(make_paper()))


def test_same_title_by_another_first_author_is_another_paper() -> None:
    """Two people may write under one title."""
    assert Match() == match(make_paper(authors=("Bo Stern", "Ana Lima")), known(make_paper()))


def test_same_title_and_long_abstract_is_one_paper_whoever_stands_first() -> None:
    """Some sources sort authors by name, or name the group instead."""
    mine = make_paper(authors=("The Reef Group",), abstract=LONG)
    assert Match((1,)) == match(mine, known(make_paper(abstract=LONG)))


def test_a_paper_is_found_by_a_title_that_it_bore_before() -> None:
    """A feed has renamed the paper; the listing, which has no ids, still shows the old name."""
    old = KnownPaper(1, make_paper("What Shrimp Say"), NOW, ids=paper_ids(make_paper()))
    assert Match((1,)) == match(make_paper(), old)
    assert Match() == match(make_paper(authors=("Bo Stern",)), old)


def test_same_short_name_before_the_colon_is_nothing() -> None:
    """Two papers of one project are two papers."""
    mine = make_paper("ReefGym: Diving for Data", abstract=LONG)
    assert Match() == match(mine, known(make_paper("ReefGym: A Harness for Swimmers", abstract=OTHER)))


def test_long_title_alone_is_a_name_where_authors_are_missing() -> None:
    """A feed without authors shows the listing's paper."""
    title = "Listening for Shrimp over Forty Reefs"
    assert Match((1,)) == match(make_paper(title, authors=()), known(make_paper(title)))


def test_short_title_alone_is_no_name() -> None:
    """An "Editorial" without authors may be anybody's, unless its abstract says whose."""
    assert Match() == match(make_paper("Editorial", authors=()), known(make_paper("Editorial")))
    with_abstract = known(make_paper("Editorial", abstract=LONG))
    assert Match((1,)) == match(make_paper("Editorial", authors=(), abstract=LONG), with_abstract)
    assert Match() == match(make_paper("Editorial", authors=(), abstract=OTHER), with_abstract)


def test_a_paper_without_authors_is_found_again() -> None:
    """A source that names nobody shows the same papers at each poll; none may be new each time."""
    assert Match((1,)) == match(make_paper("Reefs", authors=()), known(make_paper("Reefs", authors=())))


@pytest.mark.parametrize(
    ("fields", "same"),
    [
        ({"published": date(2026, 9, 20)}, True),
        ({"published": date(2026, 9, 23)}, True),
        ({"published": date(2026, 10, 20)}, False),
        ({"published": None}, True),
        ({"published": date(2026, 10, 20), "abstract": LONG}, True),
        ({"published": date(2026, 10, 20), "abstract": OTHER}, False),
        ({"published": None, "abstract": OTHER}, False),
        ({"published": date(2026, 9, 20), "abstract": OTHER}, True),
    ],
)
def test_short_title_wants_date_or_abstract_to_agree(fields: dict[str, object], same: bool) -> None:
    """A monthly "Editorial" by one editor is a new paper each month; one paper seen twice stays one."""
    old = make_paper("Editorial", published=date(2026, 9, 20), abstract=LONG if "abstract" in fields else None)
    mine = make_paper("Editorial", **fields)  # type: ignore[arg-type]  # fields of Paper
    assert same is bool(match(mine, known(old)).keys)


def test_arxiv_number_finds_a_paper_under_any_title_and_version() -> None:
    """A changed title under the same id is a revision, never a new paper."""
    old = known(make_paper("Old Title", links=("http://arxiv.org/abs/2609.00001v1",)))
    mine = make_paper("Wholly Other", authors=("Bo Stern",), links=("https://arxiv.org/pdf/2609.00001v3",))
    assert Match((1,)) == match(mine, old)


def test_other_arxiv_numbers_are_other_papers() -> None:
    """The same title under another number was given another number for a reason."""
    old = known(make_paper(), ids=(PaperId("arxiv", "2609.00001"),))
    assert Match() == match(make_paper(ids=(PaperId("arxiv", "2609.00002"),)), old)


@pytest.mark.parametrize(
    ("ours", "theirs", "apart"),
    [
        ("10.48550/arxiv.2609.1", "10.1234/journal.7", False),
        ("10.48550/arxiv.2609.1", "10.2139/ssrn.55", False),
        ("10.1101/2026.09.01.1", "10.1101/2026.09.01.2", True),
        ("10.21203/rs.3.rs-1/v1", "10.21203/rs.3.rs-1/v2", False),
        ("10.20944/preprints202609.1.v1", "10.20944/preprints202609.1.v2", False),
        ("10.1234/journal.7", "10.1234/journal.8", True),
        ("10.1234/journal.7v1", "10.1234/journal.7v2", True),
    ],
)
def test_dois_tell_apart_only_within_one_kind(ours: str, theirs: str, apart: bool) -> None:
    """A preprint's DOI beside a journal's, another server's or another version's is one work under two names."""
    assert apart is contradicts([PaperId("doi", ours)], [PaperId("doi", theirs)])


def test_a_preprint_and_its_journal_version_are_one_paper() -> None:
    """Title and first author join two DOIs of different kinds."""
    old = known(make_paper(), ids=(PaperId("doi", "10.48550/arxiv.2609.1"),))
    assert Match((1,)) == match(make_paper(ids=(PaperId("doi", "10.1234/journal.7"),)), old)


@pytest.mark.parametrize(
    "link",
    [
        "https://papers.example/reef",
        "http://www.papers.example/reef/",
        "https://papers.example/reef?utm_source=feed&utm_medium=rss",
        "HTTPS://Papers.Example/reef#top",
    ],
)
def test_a_link_is_the_same_by_any_spelling(link: str) -> None:
    """Scheme, www, slash and tracking don't make another link; the title may have been renamed."""
    old = known(make_paper("Reefs by Day", links=("http://papers.example/reef",)))
    assert Match((1,)) == match(make_paper("Reefs by Day and Night", links=(link,)), old)


def test_a_reused_link_is_no_name() -> None:
    """Each report at "latest.html" is a paper of its own, even by the same people."""
    link = ("https://harbour.example/latest.html",)
    old = known(make_paper("Harbour Report 12", links=link, abstract=LONG))
    assert Match() == match(make_paper("Harbour Report 13", links=link, abstract=OTHER), old)
    assert Match() == match(make_paper("Harbour Report 13", links=link, authors=()), old)
    assert Match() == match(make_paper("Mud and its Uses", links=link, abstract=OTHER), old)
    assert Match() == match(make_paper("Mud and its Uses", links=link, authors=("Bo Stern",)), old)


def test_a_reused_guid_is_no_name() -> None:
    """A feed that counts its entries from one again has new papers."""
    guid = (PaperId("guid", "harbour.example|1"),)
    old = known(make_paper("Sand in Harbours", ids=guid, abstract=LONG))
    assert Match() == match(make_paper("Mud and its Uses", authors=("Bo Stern",), ids=guid, abstract=OTHER), old)


def test_a_renamed_paper_keeps_its_own_link() -> None:
    """The same people and nearly the same abstract under one link are one paper, however new the title."""
    link = ("https://papers.example/reef",)
    old = known(make_paper("Reefs by Day", links=link, abstract=LONG))
    mine = make_paper("What Shrimp Say", links=link, abstract=LONG.replace("forty", "fifty"))
    assert Match((1,)) == match(mine, old)


def test_the_same_abstract_under_one_link_is_one_paper() -> None:
    """Numbers in a title may be corrected."""
    old = make_paper("Reefs in 2025", abstract=LONG)
    assert is_plausible(make_paper("Reefs in 2026", authors=("Bo Stern",), abstract=LONG), old)


def test_two_records_that_share_a_paper_are_merged() -> None:
    """A page that carries both names shows that two known papers are one; the older one stays."""
    by_title, by_number = known(make_paper(), 2), known(make_paper("Reefs", ids=(PaperId("arxiv", "2609.00001"),)), 5)
    mine = make_paper(ids=(PaperId("arxiv", "2609.00001"),))
    assert Match((2, 5)) == match(mine, by_title, by_number)


def test_two_records_that_a_registry_tells_apart_are_never_merged() -> None:
    """A page without numbers that fits both is one of them, not their bridge."""
    one = known(make_paper(), 2, ids=(PaperId("arxiv", "2609.00001"),))
    two = known(make_paper(), 5, ids=(PaperId("arxiv", "2609.00002"),))
    assert Match((2,)) == match(make_paper(), one, two)
    assert Match((5,)) == match(make_paper(ids=(PaperId("arxiv", "2609.00002"),)), one, two)


def test_a_registrys_id_comes_before_a_title() -> None:
    """Where the two lead to papers that are told apart, the number decides."""
    one = known(make_paper(), 2, ids=(PaperId("doi", "10.1234/a"),))
    two = known(make_paper("Other Reefs"), 5, ids=(PaperId("doi", "10.1234/b"), PaperId("openalex", "W1")))
    mine = make_paper(ids=(PaperId("openalex", "W1"),))
    assert Match((5,)) == match(mine, one, two)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Games of Kelp and Urchins, Part I", "Games of Kelp and Urchins, Part II"),
        ("Games of Kelp and Urchins 1", "Games of Kelp and Urchins 2"),
        ("Games of Kelp and Urchins: Part A", "Games of Kelp and Urchins: Part B"),
        ("Games of Kelp and Urchins, Part One", "Games of Kelp and Urchins, Part Two"),
        ("Games of Kelp-3 and Urchins", "Games of Kelp-4 and Urchins"),
    ],
)
def test_parts_are_never_one_paper(one: str, other: str) -> None:
    """Part I and Part II come out together, by the same people, in nearly the same words."""
    assert Match() == match(make_paper(one, abstract=LONG), known(make_paper(other, abstract=LONG)))
    assert Match() == match(make_paper(one), known(make_paper(other)))


def test_a_nearly_equal_title_by_the_same_people_is_the_last_step() -> None:
    """A corrected letter is no new paper; how sure that is, is said."""
    mine = make_paper("Listening for Shrimps over Forty Tropical Reefs", abstract=LONG)
    found = match(mine, known(make_paper("Listening for Shrimp over Forty Tropical Reefs", abstract=LONG)))
    assert ((1,), True) == (found.keys, found.fuzzy is not None and found.fuzzy >= 92)


@pytest.mark.parametrize(
    "fields",
    [
        {"authors": ("Bo Stern",)},
        {"authors": ()},
        {"published": date(2026, 10, 20)},
        {"abstract": OTHER},
        {"ids": (PaperId("arxiv", "2609.00009"),)},
    ],
)
def test_anything_against_it_outweighs_a_nearly_equal_title(fields: dict[str, object]) -> None:
    """Other people, another time, another abstract or another number make another paper."""
    old = known(
        make_paper("Listening for Shrimp over Forty Tropical Reefs", abstract=LONG),
        ids=(PaperId("arxiv", "2609.00001"),),
    )
    given = {"abstract": LONG} | fields
    mine = make_paper("Listening for Shrimps over Forty Tropical Reefs", **given)  # type: ignore[arg-type]  # of Paper
    assert Match() == match(mine, old)


def test_companions_without_abstracts_are_kept_apart() -> None:
    """The words "with" and "without" differ by three letters and by everything else."""
    assert Match() == match(
        make_paper("Learning Reef Maps with Any Labels"), known(make_paper("Learning Reef Maps without Any Labels"))
    )


def test_a_renamed_paper_with_the_same_abstract_is_the_same() -> None:
    """A listing may rename a paper before we ever learn its number."""
    found = match(make_paper("What Shrimp Say", abstract=LONG), known(make_paper("Reefs by Day", abstract=LONG)))
    assert Match((1,), fuzzy=92) == found


def test_the_last_step_may_be_left_out() -> None:
    """Twins on one page want certain evidence."""
    mine = make_paper("What Shrimp Say", abstract=LONG)
    old = known(make_paper("Reefs by Day", abstract=LONG))
    assert Match() == match_paper(mine, paper_ids(mine), [old], similar=False)


def test_nothing_known_is_nobody() -> None:
    """The first paper of all is unseen."""
    assert None is match(make_paper()).key


WORDS = st.lists(
    st.sampled_from(
        ["reef", "kelp", "urchin", "sonar", "tide", "shoal", "drift", "buoy", "brine", "silt", "gull", "atoll"]
    ),
    min_size=4,
    max_size=8,
    unique=True,
)


@given(WORDS, st.sampled_from([str.upper, str.title, str.lower]), st.sampled_from([" ", "  ", "-", " – ", ": "]))
@settings(max_examples=100, deadline=None)
def test_any_spelling_of_a_title_finds_the_paper(words: list[str], case: object, joint: str) -> None:
    """The promise "told once" holds against every way to print the same words."""
    old = known(make_paper(" ".join(words)))
    spelt = case(joint.join(words))  # type: ignore[operator]  # one of three functions of str
    assert (1,) == match(make_paper(spelt), old).keys


@given(WORDS, WORDS)
@settings(max_examples=100, deadline=None)
def test_matching_is_mutual(one: list[str], other: list[str]) -> None:
    """Which of two papers came first does not decide whether they are one."""
    mine, theirs = make_paper(" ".join(one), abstract=LONG), make_paper(" ".join(other), abstract=OTHER)
    assert bool(match(mine, known(theirs)).keys) == bool(match(theirs, known(mine)).keys) == (one == other)
