"""What a page adds to the history: kinds of sightings, revisions, coverage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.diff import DiffRules, SourceView, diff_page
from digestd.identity import paper_ids, text_print
from digestd.model.paper import KnownPaper, Paper, PaperId, Revision
from digestd.model.snapshot import Kind, Known, Order, Page, Sighting, SnapshotDiff, Stretch, TopicState
from tests.builders import NOW, make_page, make_paper

LATER = NOW + timedelta(days=1)
RULES = DiffRules()


def day(number: int) -> date:
    """Return a day of September 2026, counted on beyond it."""
    return date(2026, 8, 31) + timedelta(days=number)


def note(title: str, published: int | None, **fields: object) -> Paper:
    """Return a paper published on a day."""
    when = None if published is None else day(published)
    return make_paper(f"Kelp Note {title}", published=when, **fields)  # type: ignore[arg-type]  # fields of Paper


def known(key: int, paper: Paper, *, counted: bool = True) -> KnownPaper:
    """Return a paper of the history."""
    return KnownPaper(key, paper, NOW, ids=paper_ids(paper), counted=counted)


def topic(
    since: int | None = 10,
    until: int = 30,
    *,
    start: int | None = 20,
    held: Sequence[int] = (),
    sighted: Sequence[int] = (),
    more: Sequence[Stretch] = (),
    open_below: bool = False,
) -> TopicState:
    """Return a started topic with one stretch, key 1, that holds some papers."""
    stretches = [] if since is None else [Stretch(day(since), day(until), 1, seen_at=NOW, open_below=open_below)]
    return TopicState(
        "reef-sound",
        start=None if start is None else day(start),
        started=True,
        stretches=(*stretches, *more),
        sighted=frozenset((*held, *sighted)),
        stretch_of=tuple((key, 1) for key in held),
    )


FRESH = TopicState("reef-sound")
QUIET = SourceView(first=False)


def diff(
    papers: Sequence[Paper] | Page,
    state: TopicState = FRESH,
    *,
    papers_known: Sequence[KnownPaper] = (),
    others: Sequence[TopicState] = (),
    source: SourceView = QUIET,
    rules: DiffRules = RULES,
) -> SnapshotDiff:
    """Return what a page adds."""
    page = papers if isinstance(papers, Page) else make_page(papers)
    return diff_page(page, Known(state, tuple(papers_known), tuple(others)), source, rules=rules, fetched_at=LATER)


def kinds(found: SnapshotDiff) -> list[Kind]:
    """Return the kinds of the page's own sightings."""
    return [sighting.kind for sighting in found.sightings if sighting.via == "page"]


def feed(papers: Sequence[Paper]) -> Page:
    """Return an unordered page."""
    return make_page(papers, order=Order.FEED)


# -- the first page


def test_the_first_page_is_the_baseline() -> None:
    """It was there before anybody followed; its newest date is the topic's start."""
    found = diff([note("A", 20), note("B", 18), note("C", None)])
    assert ([Kind.BASELINE] * 3, True, day(20)) == (kinds(found), found.first, found.start)
    assert (Stretch(day(18), day(20), seen_at=LATER),) == found.stretches
    assert 0 == found.page_stretch


def test_a_mistyped_year_does_not_move_the_start() -> None:
    """Else everything after it would be older than the start and told to nobody."""
    assert day(20) == diff([note("A", 20), note("B", 18), note("C", 400), note("D", 17)]).start


def test_a_first_page_without_dates_starts_without_a_date() -> None:
    """What comes then has nothing to be older than."""
    found = diff([note("A", None)])
    assert (None, True, None) == (found.start, found.first, found.page_stretch)


def test_an_empty_first_page_is_a_baseline_of_nothing() -> None:
    """A topic that has no papers yet tells its first one."""
    assert (True, None, ()) == (diff([]).first, diff([]).start, diff([]).sightings)
    assert [Kind.NEW] == kinds(diff([note("A", 20)], topic(None, start=None)))


def test_a_page_past_the_end_of_a_listing_is_no_baseline() -> None:
    """The listing says it has papers and shows none of them: everything would be new after it."""
    assert not diff(make_page([], total_papers=354)).first
    assert diff(make_page([], total_papers=0)).first


# -- later pages of a listing


@pytest.mark.parametrize(
    ("published", "kind"),
    [
        (31, Kind.NEW),
        (30, Kind.NEW),
        (24, Kind.NEW),
        (23, Kind.NEW),
        (22, Kind.NEWLY_TAGGED),
        (11, Kind.NEWLY_TAGGED),
        (10, Kind.BACKFILL),
        (9, Kind.BACKFILL),
        (None, Kind.NEW),
    ],
)
def test_kind_of_an_unseen_paper_by_its_day(published: int | None, kind: Kind) -> None:
    """After the top, or within seven days inside it: new; deeper inside: tagged late; below, before the start: backfill."""
    assert [kind] == kinds(diff([note("A", published)], topic(10, 30, start=30)))


@pytest.mark.parametrize(
    ("published", "kind"), [(25, Kind.NEW), (21, Kind.NEW), (20, Kind.BACKFILL), (19, Kind.BACKFILL)]
)
def test_what_no_page_covered_is_new_after_the_start(published: int, kind: Kind) -> None:
    """A hole that is filled later tells what is in it; older pages than the start tell nothing."""
    assert [kind] == kinds(diff([note("A", published)], topic(60, 90, start=20)))


@pytest.mark.parametrize(("late_days", "kind"), [(0, Kind.NEWLY_TAGGED), (5, Kind.NEW), (4, Kind.NEWLY_TAGGED)])
def test_how_late_listings_fill_in_is_a_setting(late_days: int, kind: Kind) -> None:
    """This near to the top a covered paper is still new."""
    assert [kind] == kinds(diff([note("A", 25)], topic(10, 30), rules=DiffRules(late_days=late_days)))


def test_a_topic_without_a_stretch_tells_what_is_after_its_start() -> None:
    """It was started by a feed; its listing's first page is held against the start."""
    found = diff([note("A", 21), note("B", 20), note("C", None)], topic(None, start=20))
    assert [Kind.NEW, Kind.BACKFILL, Kind.NEW] == kinds(found)


def test_a_paper_on_top_of_a_one_day_stretch_is_new() -> None:
    """The day was shown in part: what stands above a known paper came later, what stands below was cut off."""
    old = known(1, note("A", 20))
    state = topic(20, 20, start=20, held=[1])
    assert [Kind.NEW] == kinds(diff([note("B", 20), old.paper], state, papers_known=[old]))
    assert [Kind.BACKFILL] == kinds(diff([old.paper, note("B", 20)], state, papers_known=[old]))


def test_a_paper_of_the_lower_edge_day_goes_by_its_place() -> None:
    """Above a paper of the stretch it was put inside, so it was tagged late; below it is an older page's."""
    old = known(1, note("A", 10))
    state = topic(10, 30, start=30, held=[1])
    assert [Kind.NEWLY_TAGGED] == kinds(diff([note("B", 10), old.paper], state, papers_known=[old]))
    assert [Kind.BACKFILL] == kinds(diff([old.paper, note("B", 10)], state, papers_known=[old]))
    near = topic(28, 30, start=30, held=[2])
    low = known(2, note("C", 28))
    assert [Kind.NEW] == kinds(diff([note("B", 28), low.paper], near, papers_known=[low]))
    assert [Kind.BACKFILL] == kinds(diff([low.paper, note("B", 28)], near, papers_known=[low]))


def test_a_paper_of_an_older_stretchs_upper_edge_day_goes_by_its_place() -> None:
    """Above the older stretch it lies in the gap; below its newest paper it was tagged late."""
    old = known(1, note("A", 12))
    older = Stretch(day(5), day(12), 1, seen_at=NOW)
    state = replace(
        topic(None, start=50), stretches=(Stretch(day(40), day(60), 2, seen_at=NOW), older), stretch_of=((1, 1),)
    )
    state = replace(state, sighted=frozenset({1}))
    assert [Kind.BACKFILL] == kinds(diff([note("B", 12), old.paper], state, papers_known=[old]))
    assert [Kind.NEWLY_TAGGED] == kinds(diff([old.paper, note("B", 12)], state, papers_known=[old]))


def test_a_paper_of_the_starts_own_day_came_after_the_start() -> None:
    """The first page showed all of its newest day, so what it did not show was not there yet: it is told."""
    newest = Stretch(day(40), day(60), 2, seen_at=NOW)
    first = Stretch(day(5), day(12), 1, seen_at=NOW)
    state = replace(topic(None, start=12), stretches=(newest, first))
    assert [Kind.NEW, Kind.BACKFILL] == kinds(diff([note("B", 12), note("C", 5)], state))
    one_day = replace(state, stretches=(newest, Stretch(day(12), day(12), 1, seen_at=NOW)))
    assert [Kind.BACKFILL] == kinds(diff([note("B", 12)], one_day))


def test_a_known_paper_is_never_sighted_again() -> None:
    """Told once, whatever date it bears now."""
    old = known(1, note("A of the Northern Isles", 20))
    again = replace(old.paper, published=day(40))
    assert () == diff([again], topic(held=[1]), papers_known=[old]).sightings


def test_a_merged_paper_that_either_side_saw_is_not_sighted_again() -> None:
    """Two records of one paper: one of them was told."""
    one = known(1, note("A of the Northern Isles", 20))
    two = known(2, note("B of the Southern Isles", 20, ids=(PaperId("arxiv", "2609.1"),)))
    both = note("A of the Northern Isles", 40, ids=(PaperId("arxiv", "2609.1"),))
    assert () == diff([both], topic(sighted=[2]), papers_known=[one, two]).sightings


def test_a_paper_known_elsewhere_is_sighted_by_this_topics_rules() -> None:
    """Baseline in one topic, it can be new in another whose page shows it for the first time."""
    old = known(1, note("A", 31))
    found = diff([old.paper], topic(10, 30), papers_known=[old])
    assert ((Sighting(0, "reef-sound", Kind.NEW),), 1) == (found.sightings, found.papers[0].key)


def test_a_page_shown_twice_tells_once() -> None:
    """Twins on one page are one sighting."""
    assert [Kind.NEW] == kinds(diff([note("A of the North", 31), note("A of the North", 31)], topic()))


# -- cut pages


def test_papers_below_a_cut_are_told_like_those_above() -> None:
    """The cut page should have shown them: rather told than lost."""
    old = known(1, note("A", 30))
    state = topic(30, 30, start=30, held=[1], open_below=True)
    full = [old.paper, note("B", 30), note("C", 12), note("D", None)]
    assert [Kind.NEW] * 3 == kinds(diff(full, state, papers_known=[old]))
    whole = replace(state, stretches=(replace(state.stretches[0], open_below=False),))
    assert [Kind.BACKFILL, Kind.BACKFILL, Kind.NEW] == kinds(diff(full, whole, papers_known=[old]))


def test_a_deep_page_does_not_belong_below_a_cut() -> None:
    """Without a paper of the cut page on it, it is an older page."""
    assert [Kind.BACKFILL] == kinds(diff([note("B", 12)], topic(30, 30, start=30, open_below=True)))


def test_a_feed_is_not_below_a_cut() -> None:
    """It has no below."""
    old = known(1, note("A", 30))
    state = topic(30, 30, start=30, held=[1], open_below=True)
    assert [Kind.NEWLY_TAGGED] == kinds(diff(feed([old.paper, note("B", -20)]), state, papers_known=[old]))


def test_a_cut_page_leaves_its_stretch_open() -> None:
    """So that the next page knows."""
    assert diff(make_page([note("A", 20)], incomplete=True)).stretches[0].open_below


# -- feeds


def test_a_feeds_first_fetch_is_baseline_even_in_a_started_topic() -> None:
    """What it held before it was watched was not missed."""
    assert [Kind.BASELINE] == kinds(diff(feed([note("A", 40)]), topic(), source=SourceView(first=True)))


def test_a_listings_first_page_from_a_new_address_is_no_baseline() -> None:
    """Listings are compared by their topic, not by where they came from."""
    assert [Kind.NEW] == kinds(diff([note("A", 40)], topic(), source=SourceView(first=True)))


@pytest.mark.parametrize(
    ("published", "kind"),
    [(40, Kind.NEW), (15, Kind.NEW), (-10, Kind.NEW), (-11, Kind.NEWLY_TAGGED), (None, Kind.NEW)],
)
def test_a_feeds_later_papers_are_told_whatever_their_date(published: int | None, kind: Kind) -> None:
    """New, or tagged late if published more than thirty days before the topic's start."""
    found = diff(feed([note("A", published)]), topic(10, 30, start=20))
    assert ([kind], topic(10, 30, start=20).stretches, None) == (kinds(found), found.stretches, found.page_stretch)


def test_a_feed_in_a_topic_without_a_start_tells_as_new() -> None:
    """There is nothing to be older than."""
    assert [Kind.NEW] == kinds(diff(feed([note("A", -900)]), topic(None, start=None)))


def test_a_feed_that_starts_a_topic_gives_its_newest_date() -> None:
    """In any order of its papers."""
    found = diff(feed([note("A", 3), note("B", 20), note("C", 7)]), source=SourceView(first=True))
    assert (day(20), ()) == (found.start, found.stretches)


# -- announcements


@pytest.mark.parametrize("announce", ["replace", "replace-cross"])
def test_replaced_papers_are_known_and_never_told(announce: str) -> None:
    """Even on a first fetch, even if the history never saw them; and they don't count."""
    paper = note("A", 40, announce=announce)
    for state in (FRESH, topic()):
        found = diff(feed([paper]), state)
        assert ([Kind.BACKFILL], False) == (kinds(found), found.papers[0].counted)


def test_a_replacement_of_a_counted_paper_counts_on() -> None:
    """It was a paper before it was replaced; in another topic it is still no news."""
    old = known(1, note("A", 40))
    found = diff(feed([note("A", 40, announce="replace")]), topic(), papers_known=[old])
    assert [Kind.BACKFILL] == kinds(found)


def test_cross_lists_are_marked_and_may_be_left_out() -> None:
    """Told by default; known but told to nobody where the operator says so."""
    crossed = feed([note("A", 40, announce="cross"), note("B", 40, announce="new")])
    told = diff(crossed, topic())
    assert [(Kind.NEW, True), (Kind.NEW, False)] == [(seen.kind, seen.cross_listed) for seen in told.sightings]
    quiet = diff(crossed, topic(), rules=DiffRules(cross_lists=False))
    assert [(Kind.BACKFILL, True), (Kind.NEW, False)] == [(seen.kind, seen.cross_listed) for seen in quiet.sightings]


# -- labels and rules


SONAR = TopicState("sonar")


def also(*entries: tuple[int, str, str], first: bool = False) -> SourceView:
    """Return a source whose papers belong to other topics too."""
    return SourceView(first=first, also=entries)


@pytest.mark.parametrize(
    ("state", "published", "kind"),
    [
        (FRESH, 20, Kind.BASELINE),
        (topic(), 31, Kind.NEW),
        (topic(), 12, Kind.NEWLY_TAGGED),
        (topic(), 5, Kind.BACKFILL),
    ],
)
@pytest.mark.parametrize("via", ["label", "rule"])
def test_a_label_or_rule_takes_the_kind_of_the_pages_own_topic(
    state: TopicState, published: int, kind: Kind, via: str
) -> None:
    """What is new on the page is new in the topics that its labels name."""
    found = diff([note("A", published)], state, others=[SONAR], source=also((0, "sonar", via)))
    assert [("reef-sound", kind, "page"), ("sonar", kind, via)] == [(s.topic, s.kind, s.via) for s in found.sightings]


def test_a_label_that_appears_later_is_newly_tagged_once() -> None:
    """The paper was known, the label is news; after that it is known too."""
    old = known(1, note("A", 20))
    view = also((0, "sonar", "label"))
    first = diff([old.paper], topic(held=[1]), papers_known=[old], others=[SONAR], source=view)
    assert (Sighting(0, "sonar", Kind.NEWLY_TAGGED, "label"),) == first.sightings
    seen = replace(SONAR, sighted=frozenset({1}))
    assert () == diff([old.paper], topic(held=[1]), papers_known=[old], others=[seen], source=view).sightings


def test_the_label_of_a_twin_counts() -> None:
    """A page may show a paper twice, with the label only the second time; and it is told once in that topic."""
    twins = [note("A of the North", 31), note("A of the North", 31, topics=("Sonar",))]
    view = also((0, "sonar", "rule"), (1, "sonar", "label"))
    found = diff(twins, topic(), others=[SONAR], source=view)
    assert [(0, "reef-sound"), (0, "sonar")] == [(seen.index, seen.topic) for seen in found.sightings]
    late = diff(twins, topic(), others=[SONAR], source=also((1, "sonar", "label")))
    assert [(0, "reef-sound"), (0, "sonar")] == [(seen.index, seen.topic) for seen in late.sightings]


def test_a_replacement_is_no_news_in_other_topics_either() -> None:
    """Known there, told to nobody."""
    view = also((0, "sonar", "label"))
    found = diff(feed([note("A", 40, announce="replace")]), topic(), others=[SONAR], source=view)
    assert [Kind.BACKFILL] * 2 == [seen.kind for seen in found.sightings]


def test_a_topic_that_is_not_in_the_history_is_only_a_label() -> None:
    """Nothing is sighted in it, nor a second time in the page's own."""
    view = also((0, "kelp", "label"), (0, "reef-sound", "label"))
    assert ["reef-sound"] == [seen.topic for seen in diff([note("A", 31)], topic(), source=view).sightings]


# -- revisions


def revisions(
    old: Paper, new: Paper, *, own: Sequence[Paper] = (), others: Sequence[Paper] = ()
) -> tuple[Revision, ...]:
    """Return the revisions that a page makes of paper 1, known as ``old``, whose source showed ``own`` before."""
    mine = frozenset((1, text_print(paper)) for paper in own)
    view = SourceView(
        first=False,
        shown=frozenset({1} if own else ()),
        texts=mine | {(1, text_print(paper)) for paper in others},
        own_texts=mine,
    )
    number = (PaperId("arxiv", "2609.1"),)
    stored = KnownPaper(1, old, NOW, ids=(*paper_ids(old), *number))
    return diff([replace(new, ids=number)], topic(held=[1]), papers_known=[stored], source=view).revisions


A = note("A", 20, abstract="Kelp grows fast.")
B = note("B", 20, abstract="Kelp grows slowly.")


def test_a_change_of_title_or_abstract_is_a_revision() -> None:
    """With what changed, from what to what."""
    changes = (("title", "Kelp Note A", "Kelp Note B"), ("abstract", "Kelp grows fast.", "Kelp grows slowly."))
    assert (Revision(1, changes),) == revisions(A, B, own=[A])


def test_a_change_of_spelling_is_none() -> None:
    """Dashes, case and spacing are not told; nor is a missing abstract."""
    assert () == revisions(A, replace(A, title="Kelp  note: A", abstract="Kelp grows – fast"), own=[A])
    assert () == revisions(A, replace(A, abstract=None), own=[A])


def test_a_spelling_beside_a_missing_abstract_is_kept_but_not_told() -> None:
    """It stands in the history as what it is."""
    (found,) = revisions(A, replace(A, title="Kelp note: A", abstract=None), own=[A])
    assert ((("title", "Kelp Note A", "Kelp note: A"),), False) == (found.changes, found.told)


def test_another_sources_wording_is_no_revision() -> None:
    """A feed that words a paper otherwise than the listing has not revised it, the first time or later."""
    assert () == revisions(A, B, others=[A])
    assert () == revisions(A, B, own=[B], others=[A])


def test_a_text_that_swings_back_is_told_once() -> None:
    """A, then B, then A again: the way back is no news."""
    assert 1 == len(revisions(A, B, own=[A]))
    assert () == revisions(B, A, own=[A, B])


def test_a_text_that_another_source_showed_first_is_no_news() -> None:
    """The listing follows the feed's new wording a day later."""
    assert () == revisions(A, B, own=[A], others=[B])


def test_two_sources_do_not_take_turns_with_the_record() -> None:
    """The wording that stands stays, until a source says something that it never said."""
    stored = known(1, A)
    other = replace(A, abstract="Kelp grows slowly.")
    view = SourceView(
        first=False,
        shown=frozenset({1}),
        texts=frozenset({(1, text_print(A)), (1, text_print(other))}),
        own_texts=frozenset({(1, text_print(other))}),
    )
    again = diff([other], topic(held=[1]), papers_known=[stored], source=view)
    assert ([False], ()) == ([intent.changed for intent in again.papers], again.revisions)
    revised = replace(A, abstract="Kelp does not grow.")
    found = diff([revised], topic(held=[1]), papers_known=[stored], source=view)
    assert (["Kelp does not grow."], 1) == (
        [intent.record.abstract for intent in found.papers if intent.record],
        len(found.revisions),
    )


def test_a_withdrawal_is_told_though_the_text_stays() -> None:
    """Once: a known withdrawal is no news."""
    gone = replace(A, withdrawn=True)
    assert (Revision(1, (("withdrawn", "", "Kelp grows fast."),)),) == revisions(A, gone, own=[A])
    assert (Revision(1, (("withdrawn", "", "Kelp grows fast."),)),) == revisions(A, gone, others=[A])
    assert () == revisions(gone, gone, own=[A])


def test_an_unseen_paper_has_no_revision() -> None:
    """It is new."""
    assert () == diff([A], topic()).revisions


# -- what is said


def test_a_guess_is_said() -> None:
    """A paper taken for a known one by a similar title is in the warnings."""
    abstract = "We hang forty hydrophones over a reef and listen for a year. " * 4
    old = known(1, make_paper("Listening for Shrimp over Forty Tropical Reefs", abstract=abstract))
    mine = make_paper("Listening for Shrimps over Forty Tropical Reefs", abstract=abstract)
    (warning,) = diff([mine], topic(held=[1]), papers_known=[old]).warnings
    assert warning.startswith("taken for a known paper by a similar title (9")


# -- properties


DAYS = st.one_of(st.none(), st.integers(-10, 50))


@given(st.lists(DAYS, max_size=8, unique=True), st.sets(st.integers(0, 7)), st.sampled_from(Order), st.booleans())
@settings(max_examples=300, deadline=None)
def test_every_unseen_paper_is_sighted_once_and_no_seen_one(
    days: list[int | None], seen: set[int], order: Order, first: bool
) -> None:
    """Nothing is lost, nothing is told twice, whatever the dates."""
    papers = [note(f"{place} of the Northern Isles", when) for place, when in enumerate(days)]
    stored = [known(place + 1, paper) for place, paper in enumerate(papers) if place in seen]
    state = topic(held=[paper.key for paper in stored])
    found = diff(make_page(papers, order=order), state, papers_known=stored, source=SourceView(first=first))
    assert [place for place in range(len(days)) if place not in seen] == [
        sighting.index for sighting in found.sightings
    ]


@given(st.integers(-10, 50), st.integers(1, 20), st.integers(0, 9))
@settings(max_examples=300, deadline=None)
def test_what_is_after_the_start_is_never_backfill(published: int, length: int, late_days: int) -> None:
    """A paper that came after the reader's topic began is told under one heading or another."""
    state = topic(20, 20 + length, start=15)
    (kind,) = kinds(diff([note("A", published)], state, rules=DiffRules(late_days=late_days)))
    assert (published <= 15) is (kind is Kind.BACKFILL)
