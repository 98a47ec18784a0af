"""Two records of one paper joined."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime

from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.model.paper import Paper, PaperId
from digestd.records import join_records
from tests.builders import make_paper


def test_another_source_fills_gaps_and_changes_no_wording() -> None:
    """What a feed words otherwise stays as it was; what the listing lacks is taken."""
    old = make_paper("Quiet Reefs", abstract=None, categories=("cs.SD",))
    new = make_paper(
        "Quiet reefs!", abstract="Reefs are quiet.", categories=("q-bio.PE",), links=("https://reef.example/1",)
    )
    joined = join_records(old, new, same_source=False)
    assert ("Quiet Reefs", "Reefs are quiet.", ("cs.SD", "q-bio.PE"), ("https://reef.example/1",)) == (
        joined.title,
        joined.abstract,
        joined.categories,
        joined.links,
    )


def test_the_same_source_may_reword() -> None:
    """A revised title and abstract take the place of the old ones, raw forms with them."""
    old = make_paper("Quiet Reefs", title_raw="Quiet Reefs", abstract="Old.", abstract_raw="Old.")
    new = make_paper("Loud Reefs", title_raw="\\textbf{Loud} Reefs", abstract="New.", abstract_raw="{New}.")
    joined = join_records(old, new, same_source=True)
    assert ("Loud Reefs", "\\textbf{Loud} Reefs", "New.", "{New}.") == (
        joined.title,
        joined.title_raw,
        joined.abstract,
        joined.abstract_raw,
    )


def test_a_source_that_drops_the_abstract_takes_nothing_away() -> None:
    """A page without abstracts leaves the one that stands."""
    old = make_paper(abstract="Reefs are quiet.")
    assert "Reefs are quiet." == join_records(old, make_paper(abstract=None), same_source=True).abstract


def test_the_longer_list_of_people_stands_with_its_rest() -> None:
    """Listings cut the authors; the printed "+N" belongs to the list that it was printed with."""
    old = make_paper(authors=("Ana Lima", "Bo Stern"), authors_more=2, affiliations=("Reef Lab",), affiliations_more=1)
    new = make_paper(authors=("A", "B", "C", "D"), affiliations=(), affiliations_more=0)
    joined = join_records(old, new, same_source=False)
    assert (("A", "B", "C", "D"), 0) == (joined.authors, joined.authors_more)
    assert (("Reef Lab",), 1) == (joined.affiliations, joined.affiliations_more)


def test_the_first_date_stays() -> None:
    """Sources date a paper by submission or announcement; it must not wander between weeks."""
    old = make_paper(published=date(2026, 9, 20))
    new = make_paper(published=date(2026, 9, 22), published_at=datetime(2026, 9, 22, 4, tzinfo=UTC))
    joined = join_records(old, new, same_source=False)
    assert (date(2026, 9, 20), None) == (joined.published, joined.published_at)
    assert date(2026, 9, 22) == join_records(make_paper(published=None), new, same_source=False).published


def test_labels_are_joined_and_none_is_taken_back() -> None:
    """Readers were told of a label, so it stays."""
    old = make_paper(topics=("Reef Sound", "Sonar"), topics_more=3)
    joined = join_records(old, make_paper(topics=("Sonar", "Kelp"), topics_more=1), same_source=True)
    assert (("Reef Sound", "Sonar", "Kelp"), 3) == (joined.topics, joined.topics_more)


def test_an_uncut_tag_line_goes_when_labels_come() -> None:
    """Once labels are known, the line that could not be cut is of no use."""
    old = make_paper(topics_unparsed="Reef Sound Sonar")
    assert "Reef Sound Sonar" == join_records(old, make_paper(), same_source=False).topics_unparsed
    assert None is join_records(old, make_paper(topics=("Sonar",)), same_source=False).topics_unparsed


def test_the_highest_version_and_a_withdrawal_stay() -> None:
    """An older page met later takes neither back."""
    old = make_paper(version=3, withdrawn=True)
    joined = join_records(old, make_paper(version=1), same_source=True)
    assert (3, True) == (joined.version, joined.withdrawn)


def test_nothing_new_gives_the_old_record_itself() -> None:
    """What does not change is not written again."""
    old = make_paper(abstract="Reefs are quiet.", ids=(PaperId("doi", "10.1/a"),))
    assert old is join_records(old, replace(old, warnings=("line 3: repaired",)), same_source=True)


PAPERS = st.builds(
    Paper,
    title=st.sampled_from(["Quiet Reefs", "Loud Reefs"]),
    abstract=st.sampled_from([None, "Old.", "New."]),
    published=st.sampled_from([None, date(2026, 9, 1), date(2026, 9, 2)]),
    authors=st.lists(st.sampled_from(["Ana Lima", "Bo Stern"]), unique=True).map(tuple),
    affiliations=st.lists(st.sampled_from(["Reef Lab", "Kelp Institute"]), unique=True).map(tuple),
    topics=st.lists(st.sampled_from(["Sonar", "Kelp"]), unique=True).map(tuple),
    links=st.lists(st.sampled_from(["https://a.example", "https://b.example"]), unique=True).map(tuple),
    version=st.sampled_from([None, 1, 2]),
    withdrawn=st.booleans(),
)


@given(PAPERS, PAPERS, st.booleans())
@settings(max_examples=200, deadline=None)
def test_joining_twice_changes_nothing_more(old: Paper, new: Paper, same_source: bool) -> None:
    """A page that comes again adds nothing."""
    once = join_records(old, new, same_source=same_source)
    assert once is join_records(once, new, same_source=same_source)


@given(PAPERS, PAPERS, st.booleans())
@settings(max_examples=200, deadline=None)
def test_joining_loses_nothing_that_was_said(old: Paper, new: Paper, same_source: bool) -> None:
    """Labels, links, people and places of both sides are in the joined record."""
    joined = join_records(old, new, same_source=same_source)
    assert {*old.topics, *new.topics} == set(joined.topics)
    assert {*old.links, *new.links} == set(joined.links)
    assert len(joined.authors) == max(len(old.authors), len(new.authors))
    assert (joined.abstract is None) == (old.abstract is None and new.abstract is None)
    assert (joined.published is None) == (old.published is None and new.published is None)
