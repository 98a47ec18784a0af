"""Which known paper each paper of a page is."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.identity import paper_ids
from digestd.matching import intent_keys, match_page, page_names
from digestd.model.paper import KnownPaper, Paper, PaperId
from digestd.model.snapshot import PaperIntent
from tests.builders import NOW, make_page, make_paper

LONG = (
    "We hang forty hydrophones over a reef and listen for a year. Shrimp are loudest at dusk, fish at dawn, and boats at noon; "
    "a small model tells them apart from two seconds of sound, and says when it can't. Recordings and code are public."
)


def arxiv(number: int) -> tuple[PaperId, ...]:
    """Return an arXiv number as a paper's only id."""
    return (PaperId("arxiv", f"2609.{number:05}"),)


def known(key: int, paper: Paper, *, counted: bool = True) -> KnownPaper:
    """Return a paper of the history."""
    return KnownPaper(key, paper, NOW, ids=paper_ids(paper), counted=counted)


def match(papers: Sequence[Paper], *others: KnownPaper, rewords: bool = False) -> list[PaperIntent]:
    """Return the intents of a page."""
    return match_page(make_page(papers), others, rewords=lambda _old, _new: rewords)


def test_unseen_papers_are_written_as_they_stand() -> None:
    """Each with its names, its record without the page's warnings, in page order."""
    one, two = make_paper("Kelp", warnings=("line 3: repaired",)), make_paper("Urchins")
    first, second = match([one, two])
    assert [(0, None, True, True), (1, None, True, True)] == [
        (intent.index, intent.key, intent.changed, intent.counted) for intent in (first, second)
    ]
    assert ((), paper_ids(one)) == (first.record.warnings if first.record else None, first.ids)


def test_a_known_paper_that_says_nothing_new_is_not_written() -> None:
    """The cost of a page grows with what is new."""
    (intent,) = match([make_paper("Kelp", warnings=("repaired",))], known(4, make_paper("Kelp")))
    assert (4, False, ()) == (intent.key, intent.changed, intent.merge)


def test_new_names_and_fields_are_written() -> None:
    """A number that was not known, and a field that was missing, are added."""
    old = known(4, make_paper("Quiet Reefs at Night"))
    (intent,) = match([make_paper("Quiet Reefs at Night", ids=arxiv(1), categories=("cs.SD",))], old)
    assert (4, True, ("cs.SD",)) == (intent.key, intent.changed, intent.record.categories if intent.record else None)
    assert PaperId("arxiv", "2609.00001") in intent.ids


def test_wording_is_replaced_only_where_told() -> None:
    """Whether a source rewords a paper is decided by what it showed before."""
    old = known(4, make_paper("Kelp", ids=arxiv(1)))
    titles = [
        intent.record.title
        for rewords in (False, True)
        for intent in match([make_paper("Kelp, Revised", ids=arxiv(1))], old, rewords=rewords)
        if intent.record
    ]
    assert ["Kelp", "Kelp, Revised"] == titles


def test_two_known_papers_that_turn_out_to_be_one_are_merged() -> None:
    """The older one stays, and takes what the other one knew."""
    one = known(2, make_paper("Quiet Reefs at Night"))
    two = known(5, make_paper("Other Words", ids=arxiv(1), categories=("cs.SD",)))
    (intent,) = match([make_paper("Quiet Reefs at Night", ids=arxiv(1))], one, two)
    assert (2, (5,), True, (2, 5)) == (intent.key, intent.merge, intent.changed, intent_keys(intent))
    assert ("Quiet Reefs at Night", ("cs.SD",)) == (
        (intent.record.title, intent.record.categories) if intent.record else None
    )


def test_a_paper_shown_twice_is_one() -> None:
    """Pinned on top and listed again below: the first place counts, the second adds what it knows."""
    twice = [make_paper("Quiet Reefs at Night"), make_paper("Kelp"), make_paper("QUIET REEFS AT NIGHT", ids=arxiv(1))]
    first, second = match(twice)
    assert (0, (2,), 1) == (first.index, first.twins, second.index)
    assert PaperId("arxiv", "2609.00001") in first.ids


def test_twins_chain() -> None:
    """The third shares a number with the second, which shares its title with the first: all are one."""
    chain = [
        make_paper("Quiet Reefs at Night"),
        make_paper("Quiet Reefs at Night", ids=arxiv(1)),
        make_paper("Loud Reefs", ids=arxiv(1)),
    ]
    (intent,) = match(chain)
    assert (0, (1, 2)) == (intent.index, intent.twins)


def test_a_late_link_joins_two_that_stood_apart() -> None:
    """The third is both of the others."""
    bridge = [
        make_paper("Quiet Reefs at Night"),
        make_paper("Kelp"),
        make_paper("Loud Reefs", ids=arxiv(1)),
        make_paper("Quiet Reefs at Night", ids=arxiv(1)),
    ]
    first, second = match(bridge)
    assert ((0, (2, 3)), (1, ())) == ((first.index, first.twins), (second.index, second.twins))


def test_twins_of_one_known_paper_are_one() -> None:
    """Two wordings that both lead to the same known paper are one intent."""
    old = known(4, make_paper("Quiet Reefs at Night", ids=arxiv(1)))
    (intent,) = match([make_paper("Loud Reefs", ids=arxiv(1)), make_paper("Quiet Reefs at Night")], old)
    assert (4, (1,)) == (intent.key, intent.twins)


def test_two_that_a_registry_tells_apart_are_not_one_known_paper() -> None:
    """The first takes the known record without a number, the second is unseen: none is lost."""
    old = known(4, make_paper("Quiet Reefs at Night"))
    first, second = match([make_paper("Quiet Reefs at Night", ids=arxiv(n)) for n in (1, 2)], old)
    assert (4, None) == (first.key, second.key)


def test_a_shared_number_outweighs_another_doi() -> None:
    """A journal may give a paper a second DOI; the number says which paper it is."""
    old = known(4, make_paper("Kelp", ids=(*arxiv(1), PaperId("doi", "10.1234/a"))))
    (intent,) = match([make_paper("Kelp", ids=(*arxiv(1), PaperId("doi", "10.1234/b")))], old)
    assert 4 == intent.key


def test_a_paper_that_fits_two_joins_one() -> None:
    """Without a number it is one of two papers that a registry tells apart, never the bridge between them."""
    page = [
        make_paper("Kelp Forests of the North", ids=arxiv(2)),
        make_paper("Quiet Reefs at Night", ids=arxiv(1)),
        make_paper("Quiet Reefs at Night"),
        make_paper("Quiet Reefs at Night", ids=arxiv(2)),
    ]
    first = match(page)
    assert [(0, (3,)), (1, (2,))] == [(intent.index, intent.twins) for intent in first]
    stored = [
        KnownPaper(key, intent.record or intent.paper, NOW, ids=intent.ids) for key, intent in enumerate(first, start=1)
    ]
    assert [(1,), (2,)] == [intent_keys(intent) for intent in match(page, *stored)]


def test_a_twin_that_is_no_replacement_counts() -> None:
    """A paper announced as new and as a replacement on one page is counted."""
    replaced, announced = make_paper("Kelp", announce="replace"), make_paper("Kelp", announce="new")
    assert [False, True] == [match([replaced])[0].counted, match([replaced, announced])[0].counted]


def test_a_replacement_seen_as_a_paper_is_counted_from_then_on() -> None:
    """A listing that shows it makes it count."""
    old = known(4, make_paper("Kelp", announce="replace"), counted=False)
    (intent,) = match([make_paper("Kelp")], old)
    assert (True, True) == (intent.changed, intent.counted)


def test_a_link_on_several_papers_names_none() -> None:
    """A feed that links every paper to its home page does not make one paper of all."""
    home = ("https://reef.example/",)
    papers = [make_paper("Kelp", links=home), make_paper("Urchins", links=home)]
    assert [["title"], ["title"]] == [[name.scheme for name in ids] for ids in page_names(papers)]
    assert 2 == len(match(papers))
    twice = [make_paper("Kelp", links=home), make_paper("KELP", links=home)]
    assert [["title", "url"]] * 2 == [sorted(name.scheme for name in ids) for ids in page_names(twice)]


def test_a_doi_on_several_papers_names_none() -> None:
    """The DOI of the proceedings on each of its papers would lose all but one."""
    doi = (PaperId("doi", "10.1234/proceedings"),)
    papers = [
        make_paper("Kelp in Winter", ids=doi),
        make_paper("Why Urchins Graze", authors=("Bo Stern",), ids=doi),
        make_paper("Sonar for Silt", authors=("Mia Okoro",), ids=doi),
    ]
    assert 3 == len(match(papers))


def test_two_versions_of_one_number_are_one_paper() -> None:
    """A feed may carry both, with another title."""
    versions = [make_paper("Kelp", ids=arxiv(1), abstract=LONG), make_paper("On Weeds", ids=arxiv(1), abstract=LONG)]
    assert 1 == len(match(versions))


def test_a_nearly_equal_title_is_the_last_step_and_said() -> None:
    """What was guessed is in the intent, so that it can be logged."""
    old = known(4, make_paper("Listening for Shrimp over Forty Tropical Reefs", abstract=LONG))
    (intent,) = match([make_paper("Listening for Shrimps over Forty Tropical Reefs", abstract=LONG)], old)
    assert (4, True) == (intent.key, intent.fuzzy is not None)


def test_a_paper_with_certain_evidence_has_no_nearly_equal_twin() -> None:
    """What is surely one paper is not also taken for another."""
    old = known(4, make_paper("Listening for Shrimp over Forty Tropical Reefs", abstract=LONG))
    similar = make_paper("Listening for Shrimps over Forty Tropical Reefs", abstract=LONG)
    first, second = match([similar, make_paper("Listening for Shrimp over Forty Tropical Reefs", abstract=LONG)], old)
    assert (None, 4) == (first.key, second.key)


def test_one_known_paper_is_guessed_once() -> None:
    """Two nearly equal titles on a page are not both the same known paper."""
    old = known(4, make_paper("Listening for Shrimp over Forty Tropical Reefs", abstract=LONG))
    keys = [
        intent.key
        for intent in match(
            [
                make_paper("Listening for Shrimps over Forty Tropical Reefs", abstract=LONG),
                make_paper("Listening to Shrimp over Forty Tropical Reefs", abstract=LONG),
            ],
            old,
        )
    ]
    assert [4, None] == keys


TITLES = ["Quiet Reefs at Night", "Kelp Forests of the North", "Why Urchins Graze at Noon"]
PAPERS = st.builds(
    make_paper,
    st.sampled_from(TITLES),
    ids=st.sampled_from([(), arxiv(1), arxiv(2), (PaperId("doi", "10.1234/a"),)]),
    authors=st.sampled_from([("Ana Lima",), ("A. Lima", "Bo Stern"), ()]),
)


@given(st.lists(PAPERS, max_size=7), st.lists(PAPERS, max_size=3))
@settings(max_examples=300, deadline=None)
def test_no_paper_of_a_page_is_lost_or_doubled(papers: list[Paper], before: list[Paper]) -> None:
    """Each place of a page belongs to exactly one intent, each known paper to one intent at most."""
    intents = match(papers, *(known(key, paper) for key, paper in enumerate(before, start=1)))
    places = [place for intent in intents for place in (intent.index, *intent.twins)]
    keys = [key for intent in intents for key in intent_keys(intent)]
    assert list(range(len(papers))) == sorted(places)
    assert sorted(set(keys)) == sorted(keys)
    assert sorted(intent.index for intent in intents) == [intent.index for intent in intents]


@given(st.lists(PAPERS, min_size=1, max_size=5))
@settings(max_examples=500, deadline=None)
def test_a_page_that_comes_again_adds_no_paper(papers: list[Paper]) -> None:
    """Every paper that was just written is found again."""
    first = match(papers)
    stored = [
        KnownPaper(key, intent.record or intent.paper, NOW, ids=intent.ids) for key, intent in enumerate(first, start=1)
    ]
    again = match(papers, *stored)
    assert [(key,) for key in range(1, len(first) + 1)] == [intent_keys(intent) for intent in again]
