"""The contract of the history, on every engine."""

from __future__ import annotations

import sqlite3
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.diff import DiffRules, diff_page
from digestd.errors import AlreadyExistsError, NotFoundError, SchemaVersionError, StoreBusyError, StoreError
from digestd.flows.ingest import IngestOptions, record_page
from digestd.model.paper import Paper, PaperId
from digestd.model.snapshot import (
    Coverage,
    Document,
    Kind,
    Order,
    Page,
    Sighting,
    SnapshotDiff,
    SnapshotMeta,
    SnapshotRecord,
    StatedMomentum,
    Stretch,
)
from digestd.model.topic import MatchRule, Topic
from digestd.store import SqlStore, open_store
from digestd.store.sqlite import SQLiteEngine
from tests.builders import NOW, make_page, make_paper

DAY = timedelta(days=1)


def record(
    store: SqlStore, page: Page, *, at: datetime = NOW, source: str | None = None, rules: DiffRules | None = None
) -> SnapshotRecord:
    """Record a page as the flow does."""
    options = IngestOptions(now=at, source=source, rules=rules or DiffRules())
    return record_page(store, page, Document(b"", fetched_at=at), options, raw_digest="")


def meta(digest: str = "d") -> SnapshotMeta:
    """Return what is known of a snapshot besides its page."""
    return SnapshotMeta("reef-sound", "listing:reef-sound", digest, f"raw-{digest}", NOW, NOW)


def write(store: SqlStore, page: Page, diff: SnapshotDiff, digest: str = "d") -> int:
    """Record a diff of a topic that is made if need be."""
    with store.transaction():
        store.history.put_topic(Topic("reef-sound", "Reef Sound"), now=NOW)
        return store.history.record(meta(digest), page, diff)


def diff_of(store: SqlStore, page: Page) -> SnapshotDiff:
    """Return what a page of the topic adds."""
    known, view = store.history.known("reef-sound", page, "listing:reef-sound", [])
    return diff_page(page, known, view, rules=DiffRules(), fetched_at=NOW)


def titles(store: SqlStore, slug: str = "reef-sound") -> list[tuple[str, Kind]]:
    """Return (title, kind) of a topic's ledger, in ledger order."""
    rows = store.history.sightings(slug, 0, store.history.head())
    return [(row.known.paper.title, row.kind) for row in rows]


def arxiv(number: int) -> tuple[PaperId, ...]:
    """Return an arXiv number as a paper's only id."""
    return (PaperId("arxiv", f"2609.{number:05}"),)


def check_books(store: SqlStore) -> None:
    """Hold every counter that is kept against a recount from the ledger."""
    for topic in store.history.topics():
        rows = store.history.papers(topic.slug)
        keys = [row.known.key for row in rows]
        assert sorted(set(keys)) == sorted(keys)
        assert len(rows) == store.history.coverage(topic.slug).known
        days = Counter(
            row.known.paper.published for row in rows if row.known.counted and row.known.paper.published is not None
        )
        first, last = date(1989, 1, 2), date(2031, 12, 29)
        assert days == Counter({day: store.history.count(topic.slug, day, day + DAY) for day in days})
        assert sum(days.values()) == store.history.count(topic.slug, first, last)
        assert sum(days.values()) == sum(papers for _, papers in store.history.weekly(topic.slug, first, last))
        assert max(days, default=None) == store.history.last_published(topic.slug)


FULL = Paper(
    title="Quiet Reefs at Night",
    title_raw="\\textbf{Quiet} Reefs at Night",
    published=date(2026, 9, 20),
    published_at=datetime(2026, 9, 20, 4, 5, 6, 789, tzinfo=UTC),
    categories=("cs.SD", "q-bio.PE"),
    abstract="Reefs are “quiet” at night; 96.00% of them. 珊瑚",
    abstract_raw="Reefs are ``quiet'' at night",
    authors=("Ana Lima", "Bo Stern"),
    authors_more=3,
    group="The Reef Group",
    affiliations=("Reef Lab",),
    affiliations_more=1,
    topics=("Reef Sound", "Sonar"),
    topics_more=2,
    topics_unparsed=None,
    links=("https://arxiv.org/abs/2609.00001v2",),
    ids=(PaperId("doi", "10.1234/a:b"),),
    version=2,
    announce="new",
    withdrawn=True,
)


def test_every_field_of_a_paper_comes_back(store: SqlStore) -> None:
    """What a page said is what readers get, to the microsecond and the last sign."""
    empty = {field.name for field in fields(Paper) if getattr(FULL, field.name) == field.default}
    assert {"topics_unparsed", "warnings"} == empty
    record(store, make_page([FULL, make_paper("Bare", published=None, authors=())]))
    first, second = store.history.sightings("reef-sound", 0, 9)
    assert (FULL, make_paper("Bare", published=None, authors=())) == (first.known.paper, second.known.paper)
    assert {
        PaperId("doi", "10.1234/a:b"),
        PaperId("arxiv", "2609.00001"),
        PaperId("url", "arxiv.org/abs/2609.00001v2"),
    } < set(first.known.ids)
    assert (NOW, True, None) == (first.known.first_seen_at, first.known.counted, first.known.revised_at)


TEXT = st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=30)


@given(
    st.lists(
        st.builds(
            Paper,
            title=TEXT,
            abstract=st.none() | TEXT,
            published=st.none() | st.dates(date(1990, 1, 1), date(2030, 1, 1)),
            published_at=st.none() | st.datetimes(timezones=st.just(UTC)),
            authors=st.lists(TEXT, max_size=3).map(tuple),
            authors_more=st.integers(0, 99),
            topics=st.lists(TEXT, max_size=3, unique=True).map(tuple),
            version=st.none() | st.integers(1, 9),
        ),
        max_size=4,
    )
)
@settings(max_examples=15, deadline=None)
def test_any_paper_is_found_again_and_nothing_is_written_twice(papers: list[Paper]) -> None:
    """Whatever a page says: a page with one more total adds no paper, and the books agree."""
    with TemporaryDirectory() as folder:
        store = open_store(Path(folder) / "history.sqlite")
        first = record(store, make_page(papers))
        before = titles(store)
        second = record(store, make_page(papers, total_papers=9), at=NOW + DAY)
        assert (before, ()) == (titles(store), second.sightings)
        assert len(before) == len([seen for seen in first.sightings if seen.topic == "reef-sound"])
        check_books(store)
        store.close()


def test_topics_come_back_and_keep_what_is_not_said(store: SqlStore) -> None:
    """A page that states no gloss takes none away; the name is found in any spelling."""
    rule = MatchRule(("kelp",), ("sea",), ("whale",), ("cs.",), ("Ana Lima",), ("Sonar",))
    with store.transaction():
        store.history.put_topic(Topic("reef-sound", "Reef Sound", "RS: Reef Sound", rule), now=NOW)
        store.history.put_topic(Topic("reef-sound", "Reef Sounds"), now=NOW)
        store.history.put_topic(Topic("kelp", "Kelp"), now=NOW)
    expected = Topic("reef-sound", "Reef Sounds", "RS: Reef Sound", rule)
    assert [Topic("kelp", "Kelp"), expected] == list(store.history.topics())
    assert [expected] * 3 == [store.history.find_topic(name) for name in ("reef SOUNDS", "reef-sound", "Reef-sounds")]
    assert (expected, None) == (store.history.topic("reef-sound"), store.history.find_topic("Sonar"))
    with pytest.raises(NotFoundError, match="topic 'sonar': expected one of the history, found none"):
        store.history.topic("sonar")


def test_two_topics_never_share_a_name(store: SqlStore) -> None:
    """The second would take the papers of the first."""
    with store.transaction():
        store.history.put_topic(Topic("reef-sound", "Reef Sound"), now=NOW)
    with pytest.raises(AlreadyExistsError), store.transaction():
        store.history.put_topic(Topic("reef-sound-2", "REEF sound"), now=NOW)


def test_stated_momentum_comes_back_from_the_newest_snapshot(store: SqlStore) -> None:
    """An older page that is read later does not take it back."""
    said = StatedMomentum(54, 145, 22, 0.5, True, date(2026, 7, 13), date(2026, 9, 28), "54 papers.", (1, 2, 3))
    record(store, make_page([make_paper()], momentum=said), at=NOW)
    record(store, make_page([make_paper()], momentum=StatedMomentum(1)), at=NOW - DAY)
    record(store, make_page([make_paper()]), at=NOW + DAY)
    assert (said, None) == (store.history.stated("reef-sound"), store.history.stated("sonar"))


def test_coverage_comes_back(store: SqlStore) -> None:
    """Stretches newest first, with their totals; nothing is known of a topic that is not there."""
    record(store, make_page([make_paper("A", published=date(2026, 6, 6))], total_papers=40), at=NOW)
    record(
        store, make_page([make_paper("B", published=date(2026, 9, 6))], total_papers=44, incomplete=True), at=NOW + DAY
    )
    found = store.history.coverage("reef-sound")
    assert [
        (date(2026, 9, 6), 44, NOW + DAY, True),
        (date(2026, 6, 6), 40, NOW, False),
    ] == [(one.until, one.total, one.seen_at, one.open_below) for one in found.stretches]
    assert (2, 44) == (found.known, found.total)
    assert Coverage() == store.history.coverage("sonar")


def test_papers_that_only_totals_prove_are_missing(store: SqlStore) -> None:
    """The listing grew by sixteen and fourteen of them were shown: two are missing."""
    old = make_paper("Old", published=date(2026, 9, 1))
    record(store, make_page([old], total_papers=40))
    new = [make_paper(f"Kelp Note {number}", published=date(2026, 9, 9)) for number in range(14)]
    record(store, make_page([*new, old], total_papers=56), at=NOW + DAY)
    assert 2 == store.history.coverage("reef-sound").missing
    late = [make_paper(f"Urchin Note {number}", published=date(2026, 9, 5)) for number in range(2)]
    record(store, make_page([*late, old], total_papers=56), at=NOW + DAY)
    assert 0 == store.history.coverage("reef-sound").missing


def test_no_paper_is_missing_from_a_listing_that_was_shown_whole(store: SqlStore) -> None:
    """A paper filed late that is older than the first page was seen all the same, and so was one that a feed showed first."""
    first = make_paper("Old", published=date(2026, 9, 3))
    record(store, make_page([first], total_papers=1))
    fed = make_paper("Fed", published=date(2026, 9, 2))
    record(store, make_page([fed], order=Order.FEED), at=NOW + DAY)
    late = make_paper("Late", published=date(2026, 8, 1))
    record(store, make_page([first, fed, late], total_papers=3), at=NOW + DAY * 2)
    assert 0 == store.history.coverage("reef-sound").missing
    record(store, make_page([first, fed, late], total_papers=4), at=NOW + DAY * 3)
    assert 1 == store.history.coverage("reef-sound").missing


def test_a_paper_that_was_listed_without_a_stretch_joins_one_later(store: SqlStore) -> None:
    """A page without dates covers nothing; its papers still tie later pages together."""
    bare = make_paper("Notes from the Northern Isles", published=None)
    old, new = (make_paper(name, published=date(2026, 9, when)) for name, when in (("A", 1), ("B", 9)))
    for place, papers in enumerate(([bare], [bare, old], [new, bare])):
        record(store, make_page(papers), at=NOW + DAY * place)
    (stretch,) = store.history.coverage("reef-sound").stretches
    assert (date(2026, 9, 1), date(2026, 9, 9)) == (stretch.since, stretch.until)


# -- transactions


def test_an_error_leaves_nothing(store: SqlStore) -> None:
    """A snapshot is recorded as a whole or not at all, its topic too."""
    page = make_page([FULL])

    def fail() -> None:
        with store.transaction():
            store.history.put_topic(Topic("reef-sound", "Reef Sound"), now=NOW)
            store.history.record(meta(), page, diff_of(store, page))
            raise RuntimeError("power")

    with pytest.raises(RuntimeError, match="power"):
        fail()
    assert (0, [], {}) == (store.history.head(), list(store.history.topics()), dict(store.history.vocabulary().counts))
    assert [] == list(store.history.all_papers())
    assert [] == list(store.history.search("reefs", limit=5))


def test_an_inner_transaction_fails_alone(store: SqlStore) -> None:
    """It is a savepoint: what the outer one did before stands."""

    def fail() -> None:
        with store.transaction():
            store.history.put_topic(Topic("kelp", "Kelp"), now=NOW)
            raise RuntimeError("power")

    with store.transaction():
        store.history.put_topic(Topic("reef-sound", "Reef Sound"), now=NOW)
        with pytest.raises(RuntimeError, match="power"):
            fail()
    assert ["reef-sound"] == [topic.slug for topic in store.history.topics()]


def test_a_second_sighting_is_refused_and_nothing_of_it_stays(store: SqlStore) -> None:
    """A (topic, paper) pair has one sighting for ever; recording another is an error, not a silent skip."""
    page = make_page([make_paper()])
    write(store, page, diff_of(store, page))
    again = replace(diff_of(store, page), sightings=(Sighting(0, "reef-sound", Kind.NEW),))
    with pytest.raises(AlreadyExistsError):
        write(store, page, again, "other")
    assert ([("Quiet Reefs at Night", Kind.BASELINE)], 1) == (titles(store), store.history.head())
    assert not store.history.has_snapshot("reef-sound", "other", "listing:reef-sound")
    check_books(store)


def test_the_same_content_of_one_source_is_recorded_once(store: SqlStore) -> None:
    """The store itself refuses a second record; another source of the same content is another snapshot."""
    page = make_page([make_paper()])
    write(store, page, diff_of(store, page))
    with pytest.raises(AlreadyExistsError):
        write(store, page, diff_of(store, page))
    assert [True, False, False, False] == [
        store.history.has_snapshot(slug, digest, source)
        for slug, digest, source in (
            ("reef-sound", "d", "listing:reef-sound"),
            ("reef-sound", "e", "listing:reef-sound"),
            ("reef-sound", "d", "feed:reef"),
            ("kelp", "d", "listing:reef-sound"),
        )
    ]
    assert [("reef-sound", None)] == list(store.history.find_raw("raw-d"))


def test_positions_only_grow(store: SqlStore) -> None:
    """Each snapshot's sightings come after all before, and a stretch of the ledger is (after, upto]."""
    heads = [
        record(store, make_page([make_paper(f"Kelp Note {number}")]), at=NOW + DAY * number).position
        for number in range(5)
    ]
    assert (sorted(set(heads)), heads[-1]) == (heads, store.history.head())
    found = store.history.sightings("reef-sound", heads[1], heads[3])
    assert [heads[2], heads[3]] == [row.position for row in found]


def test_a_rolled_back_position_is_not_seen_twice(store: SqlStore) -> None:
    """A reader that was told up to the head misses nothing after a failed snapshot."""
    record(store, make_page([make_paper("A")]))
    head = store.history.head()
    page = make_page([make_paper("B")])

    def fail() -> None:
        with store.transaction():
            store.history.record(meta(), page, diff_of(store, page))
            raise RuntimeError("power")

    with pytest.raises(RuntimeError, match="power"):
        fail()
    assert head == store.history.head()
    record(store, make_page([make_paper("C")]))
    assert ["C"] == [row.known.paper.title for row in store.history.sightings("reef-sound", head, store.history.head())]


# -- one paper by many names


def test_merging_keeps_both_histories_and_tells_once(store: SqlStore) -> None:
    """Two records turn out to be one: each topic has one sighting, the earlier; the later stays in the ledger as its double."""
    shared = make_paper("Quiet Reefs at Night", published=date(2026, 9, 18), topics=("Kelp",))
    other = make_paper("What Shrimp Say", published=date(2026, 9, 20), ids=arxiv(1), topics=("Sonar",))
    for name in ("Kelp", "Sonar"):
        with store.transaction():
            store.history.put_topic(Topic(name.lower(), name), now=NOW)
    record(store, make_page([make_paper("First of all")]))
    record(store, make_page([shared]), at=NOW + DAY)
    record(store, make_page([other]), at=NOW + 2 * DAY)
    head = store.history.head()
    bridge = make_paper("Quiet Reefs at Night", ids=arxiv(1))
    found = record(store, make_page([bridge]), at=NOW + 3 * DAY)
    assert ((), ()) == (found.sightings, found.revised)
    assert 2 == len(store.history.papers("reef-sound"))
    assert [] == [row for row in store.history.sightings("reef-sound", head, store.history.head()) if row.kind in Kind]
    (row,) = (row for row in store.history.papers("reef-sound") if row.known.paper.title != "First of all")
    assert (NOW + DAY, NOW + DAY, ("Kelp", "Sonar")) == (
        row.seen_at,
        row.known.first_seen_at,
        row.known.paper.topics,
    )
    assert PaperId("arxiv", "2609.00001") in row.known.ids
    assert [[row.known.key], [row.known.key]] == [
        [one.known.key for one in store.history.papers(slug)] for slug in ("kelp", "sonar")
    ]
    assert [row.known.key] == [known.key for known in store.history.search("quiet reefs", limit=9)]
    assert 2 == len(list(store.history.all_papers()))
    check_books(store)


def test_a_merged_paper_is_found_by_all_its_names_for_ever(store: SqlStore) -> None:
    """Neither the old title nor the number makes it new again."""
    record(store, make_page([make_paper("Quiet Reefs at Night"), make_paper("What Shrimp Say", ids=arxiv(1))]))
    record(store, make_page([make_paper("Quiet Reefs at Night", ids=arxiv(1))]), at=NOW + DAY)
    again = make_page([make_paper("What Shrimp Say"), make_paper("Unheard Of", ids=arxiv(1))], total_papers=3)
    assert () == record(store, again, at=NOW + 2 * DAY).sightings


def test_merging_counts_the_paper_once_on_its_own_day(store: SqlStore) -> None:
    """Momentum counts papers, not records; a topic that knew only the other record moves with it."""
    record(store, make_page([make_paper("Quiet Reefs at Night", published=date(2026, 9, 1))], topic="Kelp"))
    record(store, make_page([make_paper("What Shrimp Say", published=date(2026, 9, 20), ids=arxiv(1))]))
    check_books(store)
    record(
        store, make_page([make_paper("Quiet Reefs at Night", ids=arxiv(1), published=date(2026, 9, 1))], topic="Sonar")
    )
    check_books(store)
    assert [1, 0] == [
        store.history.count("reef-sound", when, when + DAY) for when in (date(2026, 9, 1), date(2026, 9, 20))
    ]


def test_a_replacement_counts_once_it_is_shown_as_a_paper(store: SqlStore) -> None:
    """Known, never told, not in momentum; then a listing shows it."""
    paper = make_paper("Kelp in Winter", announce="replace")
    record(store, make_page([paper], order=Order.FEED))
    assert [False] == [row.known.counted for row in store.history.papers("reef-sound")]
    check_books(store)
    record(store, make_page([replace(paper, announce=None)]), at=NOW + DAY)
    assert [True] == [row.known.counted for row in store.history.papers("reef-sound")]
    check_books(store)


def test_a_public_id_never_changes(store: SqlStore) -> None:
    """Not by new names, not by merging; two papers never share one."""
    record(store, make_page([make_paper("Quiet Reefs at Night"), make_paper("What Shrimp Say", ids=arxiv(1))]))
    before = {known.key: known.public_id for known in store.history.all_papers()}
    record(store, make_page([make_paper("Quiet Reefs at Night", ids=arxiv(1))]), at=NOW + DAY)
    (left,) = store.history.all_papers()
    assert (before[left.key], 2) == (left.public_id, len(set(before.values())))


def test_two_papers_of_one_name_have_two_public_ids(store: SqlStore) -> None:
    """A title and an author may stand for two papers."""
    record(store, make_page([make_paper("Editorial", published=date(2026, 9, day)) for day in (1, 28)]))
    assert 2 == len({known.public_id for known in store.history.all_papers()})


# -- revisions


def test_a_revision_is_a_ledger_row_of_the_paper(store: SqlStore) -> None:
    """It moves the head, tells the record's new words, and is no sighting."""
    record(store, make_page([make_paper("Quiet Reefs at Night", ids=arxiv(1))]))
    found = record(store, make_page([make_paper("Loud Reefs at Night", ids=arxiv(1))]), at=NOW + DAY)
    assert (("Loud Reefs at Night",), 2, ()) == (found.revised, found.position, found.sightings)
    (row,) = store.history.papers("reef-sound")
    assert ("Loud Reefs at Night", NOW + DAY) == (row.known.paper.title, row.known.revised_at)
    back = record(
        store, make_page([make_paper("Quiet Reefs at Night", ids=arxiv(1))], total_papers=1), at=NOW + 2 * DAY
    )
    assert ((), 2) == (back.revised, back.position)


# -- labels


def test_labels_are_counted_a_paper_once(store: SqlStore) -> None:
    """The vocabulary says how well a label is known, however often a page is shown."""
    record(store, make_page([make_paper("A", topics=("Sonar", "Kelp")), make_paper("B", topics=("Sonar",))]))
    record(store, make_page([make_paper("A", topics=("Sonar", "Tides"))]), at=NOW + DAY)
    assert {"Sonar": 2, "Kelp": 1, "Tides": 1, "Reef Sound": 1} == dict(store.history.vocabulary().counts)
    assert [["A", "B"], ["A"], []] == [
        [known.paper.title for known in store.history.labelled(name)] for name in ("SONAR", "tides", "Silt")
    ]


def test_a_line_that_could_not_be_cut_waits(store: SqlStore) -> None:
    """It is kept with its page's topic until labels are set, and then sighted in the topics they name."""
    record(store, make_page([make_paper("A", topics_unparsed="Reef Sound Sonar")]))
    ((key, own, run),) = store.history.unparsed()
    assert ("Reef Sound", "Reef Sound Sonar") == (own, run)
    with store.transaction():
        store.history.put_topic(Topic("sonar", "Sonar"), now=NOW)
        store.history.set_labels(key, ("Reef Sound", "Sonar"), store.history.topics(), seen_at=NOW + DAY)
    assert [] == list(store.history.unparsed())
    assert [("A", Kind.BASELINE)] == titles(store, "sonar")
    check_books(store)


def test_a_baseline_passes_over_what_is_sighted(store: SqlStore) -> None:
    """Following a topic twice tells nothing and breaks nothing."""
    record(store, make_page([make_paper("A"), make_paper("B")]))
    keys = [known.key for known in store.history.all_papers()]
    for number in (1, 2):
        with store.transaction():
            store.history.put_topic(Topic("kelp", "Kelp"), now=NOW)
            store.history.add_baseline("kelp", [*keys[:number], *keys[:1]], seen_at=NOW)
    assert [("A", Kind.BASELINE), ("B", Kind.BASELINE)] == titles(store, "kelp")
    check_books(store)


# -- lists


def test_papers_come_newest_first_and_by_kind(store: SqlStore) -> None:
    """Those of one day as their page had them, as many as asked for."""
    record(store, make_page([make_paper(name, published=date(2026, 9, 5)) for name in ("A", "B")]))
    record(store, make_page([make_paper("C", published=date(2026, 9, 9))]), at=NOW + DAY)
    assert ["C", "A", "B"] == [row.known.paper.title for row in store.history.papers("reef-sound")]
    assert ["C", "A"] == [row.known.paper.title for row in store.history.papers("reef-sound", limit=2)]
    assert ["C"] == [row.known.paper.title for row in store.history.papers("reef-sound", kinds=[Kind.NEW])]


def test_search_takes_words_as_words(store: SqlStore) -> None:
    """Title, abstract and people; accents folded; signs are no operators."""
    record(
        store,
        make_page([make_paper("Éclats de récif", abstract="Kelp grows.", authors=("Ana Lima",)), make_paper("B")]),
    )
    found = [
        [known.paper.title for known in store.history.search(words, limit=5)]
        for words in ("eclats", "kelp lima", "kelp urchins", '"', "NOT (", "recif?")
    ]
    assert [["Éclats de récif"], ["Éclats de récif"], [], [], [], ["Éclats de récif"]] == found


def test_weeks_are_mondays_and_zeros_count(store: SqlStore) -> None:
    """Each week that begins in the span, oldest first."""
    days = (date(2026, 9, 6), date(2026, 9, 7), date(2026, 9, 13), date(2026, 9, 21))
    record(store, make_page([make_paper(f"N{number}", published=day) for number, day in enumerate(days)]))
    expected = [(date(2026, 9, 7), 2), (date(2026, 9, 14), 0), (date(2026, 9, 21), 1)]
    assert expected == list(store.history.weekly("reef-sound", date(2026, 9, 1), date(2026, 9, 22)))


# -- the books


STEPS = st.lists(
    st.tuples(
        st.lists(st.integers(0, 7), min_size=1, max_size=5, unique=True),
        st.sampled_from(["Reef Sound", "Kelp"]),
        st.sampled_from(list(Order)),
        st.integers(0, 3),
    ),
    min_size=1,
    max_size=6,
)


def shown(number: int, twist: int) -> Paper:
    """Return paper ``number`` as one source shows it: with or without a number of its own, dated a little otherwise."""
    ids = arxiv(number // 2) if twist % 2 else ()
    announce = "replace" if twist == 3 and number % 3 == 0 else None
    return make_paper(
        f"Notes from Reef {number} of the Northern Isles",
        ids=ids,
        published=date(2026, 9, 1 + 3 * number + twist // 2),
        announce=announce,
        topics=("Kelp",) if number % 2 else (),
    )


@given(STEPS)
@settings(max_examples=25, deadline=None)
def test_the_books_agree_after_anything(steps: Sequence[tuple[list[int], str, Order, int]]) -> None:
    """Counters equal a recount, and no paper is sighted twice, after merges, replacements, labels, feeds and listings."""
    with TemporaryDirectory() as folder:
        store = open_store(Path(folder) / "history.sqlite")
        for place, (numbers, name, order, twist) in enumerate(steps):
            page = make_page([shown(number, twist) for number in numbers], topic=name, order=order)
            record(store, page, at=NOW + DAY * place)
            check_books(store)
        store.close()


# -- what only SQLite has


def test_the_file_is_safe_against_power_loss(tmp_path: Path) -> None:
    """Write-ahead log, full synchronisation, foreign keys on: on each connection."""
    engine = SQLiteEngine(tmp_path / "history.sqlite")
    found = {name: engine.query(f"PRAGMA {name}")[0][name] for name in ("journal_mode", "synchronous", "foreign_keys")}
    assert {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1} == found
    engine.close()


def test_rows_that_point_nowhere_are_refused(tmp_path: Path) -> None:
    """A bug of ours shows itself at once, as what it is."""
    engine = SQLiteEngine(tmp_path / "history.sqlite")
    with pytest.raises(sqlite3.IntegrityError, match="FOREIGN KEY"):
        engine.query("INSERT INTO paper_label (label, paper_id) VALUES ('Kelp', 99)")
    engine.close()


def test_the_ledger_is_append_only(tmp_path: Path) -> None:
    """Nothing that was told can be made untold."""
    store = open_store(tmp_path / "history.sqlite")
    record(store, make_page([make_paper()]))
    with pytest.raises(sqlite3.IntegrityError, match="the ledger is append-only"), store.transaction():
        store.engine.query("DELETE FROM ledger")
    assert 1 == store.history.head()
    store.close()


def test_another_writer_for_too_long_is_busy(tmp_path: Path) -> None:
    """The error says what it is; nothing was written, and the next try succeeds."""
    store = SqlStore(SQLiteEngine(tmp_path / "history.sqlite", busy_timeout_s=0.05))
    other = sqlite3.connect(tmp_path / "history.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreBusyError, match="another writer holds it"):
        record(store, make_page([make_paper()]))
    other.execute("ROLLBACK")
    other.close()
    assert 1 == len(record(store, make_page([make_paper()])).sightings)
    store.close()


def test_a_transaction_is_a_writers_from_its_first_moment(tmp_path: Path) -> None:
    """One that reads first and writes later would fail at once if another wrote in between."""
    store = open_store(tmp_path / "history.sqlite")
    other = sqlite3.connect(tmp_path / "history.sqlite", isolation_level=None, timeout=0)
    with store.transaction(), pytest.raises(sqlite3.OperationalError, match="locked"):
        other.execute("BEGIN IMMEDIATE")
    other.close()
    store.close()


def test_a_file_of_a_newer_digestd_is_refused(tmp_path: Path) -> None:
    """An older program does not write into what it does not understand."""
    path = tmp_path / "history.sqlite"
    open_store(path).close()
    conn = sqlite3.connect(path)
    conn.execute(
        "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('digestd', 'm999_later', '2027-01-01')"
    )
    conn.commit()
    conn.close()
    with pytest.raises(SchemaVersionError, match="found migration 'm999_later'"):
        open_store(path)


def test_what_is_no_history_is_refused(tmp_path: Path) -> None:
    """A damaged or foreign file is an error, never started anew."""
    path = tmp_path / "history.sqlite"
    path.write_bytes(b"not a database at all, but long enough to be one" * 100)
    with pytest.raises(StoreError, match="expected an intact database"):
        open_store(path)
    assert path.read_bytes().startswith(b"not a database")
    with pytest.raises(StoreError):
        open_store(tmp_path)


def test_opening_again_finds_all(tmp_path: Path) -> None:
    """What was committed is there after a restart; closing twice does nothing."""
    first = open_store(f"sqlite:{tmp_path / 'deep' / 'history.sqlite'}")
    record(first, make_page([make_paper()]))
    first.close()
    first.close()
    second = open_store(tmp_path / "deep" / "history.sqlite")
    assert [("Quiet Reefs at Night", Kind.BASELINE)] == titles(second)
    second.close()


def test_threads_write_one_after_the_other(store: SqlStore) -> None:
    """Each thread has a connection of its own; positions are in commit order and none is lost."""
    errors: list[BaseException] = []

    def write_some(number: int) -> None:
        try:
            for place in range(5):
                record(store, make_page([make_paper(f"Notes of diver {number}, dive {place}")]), at=NOW + DAY * place)
        except BaseException as error:  # shown by the assertion below
            errors.append(error)

    threads = [threading.Thread(target=write_some, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert ([], 20) == (errors, len(store.history.papers("reef-sound")))
    positions = [row.position for row in store.history.sightings("reef-sound", 0, store.history.head())]
    assert list(range(1, 21)) == positions
    check_books(store)


def test_readers_see_committed_state_only(store: SqlStore) -> None:
    """A page that is half recorded is not there yet for anybody else."""
    seen: list[int] = []
    with store.transaction():
        store.history.put_topic(Topic("reef-sound", "Reef Sound"), now=NOW)
        thread = threading.Thread(target=lambda: seen.append(len(store.history.topics())))
        thread.start()
        thread.join()
    assert ([0], 1) == (seen, len(store.history.topics()))


def test_a_stretch_keeps_its_number(store: SqlStore) -> None:
    """Pages that extend it find it under the same key; merged ones end."""
    old = make_paper("A", published=date(2026, 9, 1))
    mid = make_paper("B", published=date(2026, 9, 9))
    record(store, make_page([old]))
    (first,) = store.history.coverage("reef-sound").stretches
    record(store, make_page([mid]), at=NOW + DAY)
    assert 2 == len(store.history.coverage("reef-sound").stretches)
    record(store, make_page([mid, old]), at=NOW + 2 * DAY)
    expected = Stretch(date(2026, 9, 1), date(2026, 9, 9), first.key, seen_at=NOW + 2 * DAY)
    assert (expected,) == store.history.coverage("reef-sound").stretches
