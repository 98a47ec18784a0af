"""Documents into a real history: what is told, in any order, and never twice."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from itertools import permutations
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.errors import ParseError
from digestd.flows.follow import start_topic
from digestd.flows.ingest import IngestOptions, ingest_document, record_page
from digestd.model.snapshot import Document, Kind, Order, SnapshotRecord
from digestd.model.topic import MatchRule, Topic, Vocabulary
from digestd.parse import parse_document
from digestd.store import SqlStore, open_store
from tests.builders import NOW, make_document, make_page, make_paper
from tests.shared import shared_path

SEEDS = Path(__file__).resolve().parents[2] / "seeds"
DAY = timedelta(days=1)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    """An empty history."""
    opened = open_store(tmp_path / "history.sqlite")
    yield opened
    opened.close()


@contextmanager
def fresh() -> Iterator[SqlStore]:
    """Open an empty history in a folder of its own, for properties."""
    with TemporaryDirectory() as folder:
        opened = open_store(Path(folder) / "history.sqlite")
        yield opened
        opened.close()


def ingest(
    store: SqlStore, body: str | bytes, *, at: datetime = NOW, topic: str | None = None, vocabulary: Sequence[str] = ()
) -> SnapshotRecord:
    """Ingest a document."""
    raw = body.encode() if isinstance(body, str) else body
    options = IngestOptions(now=at, topic=topic, vocabulary=Vocabulary(dict.fromkeys(vocabulary, 1)))
    return ingest_document(store, Document(raw, fetched_at=at), options)


def counts(record: SnapshotRecord) -> tuple[int, int, int, int]:
    """Return how many sightings of the page's own topic are baseline, new, newly tagged, backfill."""
    kinds = [seen.kind for seen in record.sightings if seen.topic == record.topic]
    return (
        kinds.count(Kind.BASELINE),
        kinds.count(Kind.NEW),
        kinds.count(Kind.NEWLY_TAGGED),
        kinds.count(Kind.BACKFILL),
    )


def told(store: SqlStore, slug: str) -> list[str]:
    """Return the titles that a follower of the topic is told, in ledger order."""
    rows = store.history.sightings(slug, 0, store.history.head())
    return [row.known.paper.title for row in rows if row.kind in {Kind.NEW, Kind.NEWLY_TAGGED}]


# -- three pages of one listing


def seed_pages() -> list[bytes]:
    """Return pages 1, 6 and 8 of the sample listing."""
    return [(SEEDS / f"llm-agent-training.page-{number}.txt").read_bytes() for number in (1, 6, 8)]


def real_pages() -> list[bytes]:
    """Return pages 1, 6 and 8 of the real listing, or skip."""
    sixth, eighth, first = (path.read_bytes() for path in sorted(shared_path("seeds").glob("00*.txt")))
    return [first, sixth, eighth]


@pytest.mark.parametrize("pages_of", [seed_pages, real_pages])
@pytest.mark.parametrize("order", list(permutations((0, 1, 2))))
def test_kinds_of_three_pages_in_any_order(store: SqlStore, pages_of: object, order: tuple[int, int, int]) -> None:
    """The first page is the baseline; newer ones than it are new, older ones backfill; each paper once."""
    pages = pages_of()  # type: ignore[operator]  # one of the two functions above
    found = [counts(ingest(store, pages[place])) for place in order]
    assert (30, 0, 0, 0) == found[0]
    for place, kinds in zip(order[1:], found[1:], strict=True):
        assert ((0, 30, 0, 0) if place < order[0] else (0, 0, 0, 30)) == kinds
    slug = store.history.topics()[0].slug
    coverage = store.history.coverage(slug)
    assert (90, 3, 354) == (coverage.known, len(coverage.stretches), coverage.total)
    assert 30 * sum(place < order[0] for place in order) == len(set(told(store, slug)))


@pytest.mark.parametrize(
    "spoil",
    [
        lambda body: body,
        lambda body: body.replace(b"\n", b"\r\n"),
        lambda body: b"\xef\xbb\xbf" + body,
        lambda body: b"\xef\xbb\xbf" + body.replace(b"\n", b"\r\n") + b"\r\n\r\n",
    ],
)
def test_the_same_page_again_is_unchanged(store: SqlStore, spoil: object) -> None:
    """Whatever its line ends, and whenever it comes."""
    pages = seed_pages()
    for page in pages:
        ingest(store, page)
    head = store.history.head()
    for page in pages:
        again = ingest(store, spoil(page), at=NOW + DAY)  # type: ignore[operator]  # one of the functions above
        assert (True, (), head) == (again.unchanged, again.sightings, again.position)


def test_a_document_that_is_no_page_changes_nothing(store: SqlStore) -> None:
    """Neither topic nor paper nor label comes of it."""
    with pytest.raises(ParseError):
        ingest(store, "502 Bad Gateway")
    assert (0, []) == (store.history.head(), list(store.history.topics()))


# -- a listing that grows


LABELS = ("Kelp Listening", "Sonar Maps", "Tidal Drift")
START = date(2026, 6, 1)


def block(number: int) -> str:
    """Return paper ``number`` of the listing as a page prints it; three papers a day."""
    day = START + timedelta(days=number // 3)
    names = ("Ana Lima", "Bo Stern", "Mia Okoro", "Ravi Menon", "Lea Fontaine")
    extra = f" {LABELS[1 + number % 2]}" if number % 4 == 0 else ""
    return "\n\n".join(
        [
            f"{day:%b} {day.day}, {day.year}cs.SD",
            f"Dive Log {number}: Hydrophones on Reef {number * 7 % 101}",
            f"We listen to reef {number} for a night. Shrimp are louder than fish by {number % 9} decibels at the most.",
            f"{names[number % 5]}, {names[(number + 2) % 5]} +{number % 3 + 1}",
            "Reef Lab University · Harbour Institute",
            f"{LABELS[0]}{extra}",
        ]
    )


def listing(size: int, first: int, count: int) -> str:
    """Return the page of a listing of ``size`` papers that shows ``count`` from place ``first``, newest first."""
    shown = range(size - 1 - first, max(-1, size - 1 - first - count), -1)
    head = f"{LABELS[0]}\n\nFollow this topic Ask about this topic\n\nLatest papers {size}\n\n"
    return head + "\n\n".join(block(number) for number in shown) + "\n"


def titles(numbers: Sequence[int]) -> list[str]:
    """Return the titles of papers of the listing."""
    return [f"Dive Log {number}: Hydrophones on Reef {number * 7 % 101}" for number in numbers]


def test_the_synthetic_listing_reads_as_it_should() -> None:
    """The generator prints what the parser reads, so that the properties below are about the history."""
    page = parse_document(Document(listing(40, 0, 8).encode()), Vocabulary(dict.fromkeys(LABELS, 1)))
    assert titles(range(39, 31, -1)) == [paper.title for paper in page.papers]
    assert (40, START + timedelta(days=13)) == (page.total_papers, page.papers[0].published)
    assert ("Ana Lima", "Mia Okoro") == page.papers[4].authors


WINDOWS = st.lists(
    st.tuples(st.integers(12, 40), st.integers(0, 5), st.sampled_from([4, 8, 12])), min_size=1, max_size=7
)


@given(WINDOWS)
@settings(max_examples=25, deadline=None)
def test_any_order_and_repetition_of_pages_gives_the_same_papers(windows: list[tuple[int, int, int]]) -> None:
    """Pages of a growing listing in any order: each paper shown is known once, told at most once, none is lost."""
    shown: set[int] = set()
    with fresh() as store:
        for place, (size, page, count) in enumerate(windows):
            first = page * 4
            body = listing(size, first, count)
            numbers = set(range(size - 1 - first, max(-1, size - 1 - first - count), -1))
            if not numbers:
                continue
            shown |= numbers
            ingest(store, body, at=NOW + DAY * place, vocabulary=LABELS)
            again = ingest(store, body.replace("\n", "\r\n"), at=NOW + DAY * place, vocabulary=LABELS)
            assert (True, ()) == (again.unchanged, again.sightings)
        if not shown:
            return
        rows = store.history.papers("kelp-listening")
        assert sorted(titles(sorted(shown))) == sorted(row.known.paper.title for row in rows)
        found = told(store, "kelp-listening")
        assert sorted(set(found)) == sorted(found)
        days = {START + timedelta(days=number // 3) for number in shown}
        stretches = store.history.coverage("kelp-listening").stretches
        assert all(any(one.since <= day <= one.until for one in stretches) for day in days)
        assert {min(days), max(days)} == {stretches[-1].since if len(stretches) == 1 else min(days), stretches[0].until}


@given(st.permutations([(40, 0, 12), (40, 8, 12), (40, 16, 12), (36, 0, 12), (30, 0, 8)]))
@settings(max_examples=20, deadline=None)
def test_overlapping_pages_cover_the_union_in_any_order(windows: list[tuple[int, int, int]]) -> None:
    """Pages that share papers are one stretch at the end, whatever came first."""
    with fresh() as store:
        for place, window in enumerate(windows):
            ingest(store, listing(*window), at=NOW + DAY * place, vocabulary=LABELS)
        (stretch,) = store.history.coverage("kelp-listening").stretches
        assert (START + timedelta(days=4), START + timedelta(days=13)) == (stretch.since, stretch.until)
        assert 28 == store.history.coverage("kelp-listening").known


@given(st.lists(st.integers(1, 10), min_size=1, max_size=6))
@settings(max_examples=20, deadline=None)
def test_a_follower_is_told_all_that_came_after_the_start(growth: list[int]) -> None:
    """The listing is looked at as it grows, at worst so late that a page no longer reaches down: every paper shown is told."""
    with fresh() as store:
        size = 20
        ingest(store, listing(size, 0, 8), vocabulary=LABELS)
        expected: set[int] = set()
        for place, more in enumerate(growth, start=1):
            size += more
            expected |= set(range(max(20, size - 8), size))
            ingest(store, listing(size, 0, 8), at=NOW + DAY * place, vocabulary=LABELS)
        assert sorted(titles(sorted(expected))) == sorted(told(store, "kelp-listening"))
        missing = store.history.coverage("kelp-listening").missing
        assert size - 20 - len(expected) == missing


def test_a_walk_down_the_listing_fills_the_gap_and_tells_it(store: SqlStore) -> None:
    """After long downtime the deeper pages still tell what came since, once."""
    ingest(store, listing(20, 0, 8), vocabulary=LABELS)
    for first in (0, 8, 16, 24):
        ingest(store, listing(44, first, 8), at=NOW + DAY, vocabulary=LABELS)
    assert sorted(titles(range(20, 44))) == sorted(told(store, "kelp-listening"))
    coverage = store.history.coverage("kelp-listening")
    assert (32, 44, 0) == (coverage.known, coverage.total, coverage.missing)


@given(st.integers(0, len(listing(40, 0, 12).encode())))
@settings(max_examples=40, deadline=None)
def test_a_page_cut_anywhere_makes_no_double_and_no_removal(cut: int) -> None:
    """A download that stops: refused, or a prefix of the papers; the whole page then tells the rest, each once."""
    with fresh() as store:
        ingest(store, listing(32, 0, 8), vocabulary=LABELS)
        before = {row.known.paper.title for row in store.history.papers("kelp-listening")}
        whole = listing(40, 0, 12).encode()
        try:
            ingest(store, whole[:cut], at=NOW + DAY, topic=LABELS[0], vocabulary=LABELS)
        except ParseError:
            assert before == {row.known.paper.title for row in store.history.papers("kelp-listening")}
        assert before <= {row.known.paper.title for row in store.history.papers("kelp-listening")}
        ingest(store, whole, at=NOW + 2 * DAY, topic=LABELS[0], vocabulary=LABELS)
        assert set(titles(range(24, 40))) == {row.known.paper.title for row in store.history.papers("kelp-listening")}
        found = told(store, "kelp-listening")
        assert titles(range(32, 40)) == sorted(found, key=lambda title: int(title.split()[2].rstrip(":")))


def test_the_first_page_cut_then_whole(store: SqlStore) -> None:
    """What the cut took away is told: rather that than lost."""
    whole = listing(40, 0, 12).encode()
    first = ingest(store, whole[: len(whole) // 2], vocabulary=LABELS)
    second = ingest(store, whole, at=NOW + DAY, vocabulary=LABELS)
    assert (True, False) == (first.incomplete, second.incomplete)
    assert (12, 0) == (counts(first)[0] + counts(second)[1], counts(second)[3])


# -- the same papers by other ways


def feed(numbers: Sequence[int], **fields: object) -> list[dict[str, object]]:
    """Return papers of the listing as a JSON snapshot prints them."""
    return [
        {
            "title": titles([number])[0],
            "published": (START + timedelta(days=number // 3)).isoformat(),
            "authors": [("Ana Lima", "Bo Stern", "Mia Okoro", "Ravi Menon", "Lea Fontaine")[number % 5]],
            "links": [f"https://arxiv.org/abs/2606.{number:05}v1"],
            **fields,
        }
        for number in numbers
    ]


@pytest.mark.parametrize("order", list(permutations(range(3))))
def test_a_paper_by_text_json_and_feed_is_one_paper(store: SqlStore, order: tuple[int, ...]) -> None:
    """With all its ids, told at most once, whichever way it came first."""
    numbers = range(28, 40)

    def by_text() -> None:
        ingest(store, listing(40, 0, 12), vocabulary=LABELS)

    def by_json() -> None:
        page = {"schema": "digestd.snapshot/1", "topic": LABELS[0], "papers": feed(numbers)}
        ingest(store, json.dumps(page))

    def by_feed() -> None:
        papers = [
            make_paper(
                f"DIVE LOG {number} - Hydrophones on Reef {number * 7 % 101}.",
                authors=(("A. Lima", "Stern, Bo", "Mia Okoro", "R. Menon", "Lea Fontaine")[number % 5],),
                published=START + timedelta(days=number // 3 + 1),
                links=(f"http://www.arxiv.org/abs/2606.{number:05}?utm_source=rss",),
            )
            for number in reversed(numbers)
        ]
        page = make_page(papers, topic=None, title="Reef feed", order=Order.FEED)
        record_page(
            store,
            page,
            Document(b"", "https://reef.example/feed", fetched_at=NOW),
            IngestOptions(NOW, LABELS[0]),
            "feed",
        )

    ways = (by_text, by_json, by_feed)
    for place in order:
        ways[place]()
    rows = store.history.papers("kelp-listening")
    assert (12, 12) == (len(rows), len(list(store.history.all_papers())))
    assert {f"2606.{number:05}" for number in numbers} == {
        name.value for row in rows for name in row.known.ids if name.scheme == "arxiv"
    }
    assert [] == told(store, "kelp-listening")


# -- topics and labels


def test_a_topic_that_was_a_label_takes_its_papers_as_baseline(store: SqlStore) -> None:
    """They bore the label before there was a topic to follow, so they are no news when their page comes again."""
    ingest(store, listing(12, 0, 12), vocabulary=LABELS)
    assert None is store.history.find_topic(LABELS[1])
    own = make_page([make_paper("Sonar over Silt")], topic=LABELS[1])
    record_page(store, own, Document(b"", fetched_at=NOW), IngestOptions(NOW), "own")
    assert (4, []) == (store.history.coverage("sonar-maps").known, told(store, "sonar-maps"))
    again = ingest(store, listing(13, 0, 12), at=NOW + DAY, vocabulary=LABELS)
    assert [Kind.NEW, Kind.NEW] == [seen.kind for seen in again.sightings]
    assert titles([12]) == told(store, "sonar-maps")


def test_following_a_label_makes_what_is_known_its_baseline(store: SqlStore) -> None:
    """Later papers with the label are told in it, once, with the kind that they have on their page."""
    ingest(store, listing(20, 0, 12), vocabulary=LABELS)
    start_topic(store, Topic("", LABELS[1]), Vocabulary(dict.fromkeys(LABELS, 1)), now=NOW)
    assert (3, []) == (store.history.coverage("sonar-maps").known, told(store, "sonar-maps"))
    for size in (25, 26, 26):
        ingest(store, listing(size, 0, 12), at=NOW + DAY * size, vocabulary=LABELS)
    assert titles([24, 20]) == told(store, "sonar-maps")


def test_a_label_that_appears_later_is_told_once(store: SqlStore) -> None:
    """A known paper gets a label: newly tagged there, on the first page that shows it."""
    start_topic(store, Topic("", LABELS[2]), Vocabulary({}), now=NOW)
    body = listing(12, 0, 12)
    ingest(store, body, vocabulary=LABELS)
    tagged = body.replace(f"Institute\n\n{LABELS[0]}\n", f"Institute\n\n{LABELS[0]} {LABELS[2]}\n", 1)
    first = ingest(store, tagged, at=NOW + DAY, vocabulary=LABELS)
    assert [("tidal-drift", Kind.NEWLY_TAGGED, "label")] == [(s.topic, s.kind, s.via) for s in first.sightings]
    ingest(store, tagged.replace("papers 12", "papers 13"), at=NOW + 2 * DAY, vocabulary=LABELS)
    assert 1 == len(told(store, "tidal-drift"))


def test_a_paper_known_in_one_topic_is_new_in_another_by_its_page(store: SqlStore) -> None:
    """Baseline there says nothing about here: the other topic's own page decides."""
    old = make_paper("Dive Log 1", published=date(2026, 9, 1))
    record_page(store, make_page([old], topic="Sonar"), Document(b"", fetched_at=NOW), IngestOptions(NOW), "a")
    both = make_paper("Dive Log 2", published=date(2026, 9, 9))
    record_page(store, make_page([both], topic="Kelp"), Document(b"", fetched_at=NOW), IngestOptions(NOW), "b")
    found = record_page(
        store, make_page([both, old], topic="Sonar"), Document(b"", fetched_at=NOW), IngestOptions(NOW), "c"
    )
    assert [("sonar", Kind.NEW, "Dive Log 2")] == [(seen.topic, seen.kind, seen.title) for seen in found.sightings]


def test_one_feed_serves_several_topics_by_rule(store: SqlStore) -> None:
    """A paper that matches two rules is one paper in both."""
    start_topic(store, Topic("", "Shrimp", rule=MatchRule(any_of=("shrimp",))), Vocabulary({}), now=NOW)
    start_topic(store, Topic("", "Reefs", rule=MatchRule(any_of=("reef",))), Vocabulary({}), now=NOW)
    source = Document(b"", "https://reef.example/feed", fetched_at=NOW)
    for place, title in enumerate(("Old Mud", "Shrimp of the Reef")):
        page = make_page([make_paper(title)], topic=None, title="All papers", order=Order.FEED)
        record_page(store, page, source, IngestOptions(NOW), str(place))
    assert [["Shrimp of the Reef"]] * 3 == [told(store, slug) for slug in ("shrimp", "reefs", "all-papers")]
    assert 2 == len(list(store.history.all_papers()))


# -- feeds


def test_a_feed_that_moves_keeps_its_papers_and_its_place(store: SqlStore) -> None:
    """From http to https, www, a slash and tracking: the same source, the same papers."""
    for at, origin, prefix, numbers in (
        (0, "http://reef.example/feed.xml", "http://reef.example/", (1, 2)),
        (1, "https://www.reef.example/feed.xml", "https://www.reef.example/", (1, 2, 3)),
    ):
        papers = [
            make_paper(f"Dive {number}", links=(f"{prefix}{number}/?utm_source=x" if at else f"{prefix}{number}",))
            for number in numbers
        ]
        page = make_page(papers, topic=None, title="Reef feed", order=Order.FEED)
        when = NOW + DAY * at
        record_page(store, page, Document(b"", origin, fetched_at=when), IngestOptions(when), str(at))
    assert ["Dive 3"] == told(store, "reef-feed")


def test_a_feed_that_swings_between_two_states_tells_once(store: SqlStore) -> None:
    """A cache serves old and new in turns: nothing is told again, nothing is revised twice."""
    states = [
        make_page([make_paper(f"Dive {number}") for number in numbers], topic=None, title="Reef feed", order=Order.FEED)
        for numbers in ((1, 2), (1, 2, 3), (2, 3))
    ]
    for place in (0, 1, 0, 2, 1, 0, 2):
        when = datetime(2026, 9, 1, tzinfo=UTC) + DAY * place
        record_page(
            store, states[place], Document(b"", "https://reef.example/f", fetched_at=when), IngestOptions(when), ""
        )
    assert (["Dive 3"], 3) == (told(store, "reef-feed"), store.history.head())


def test_a_listing_that_still_shows_the_same_counts_as_seen(store: SqlStore) -> None:
    """A quiet week is told from a week in which nobody looked: the same page again moves the time of the last look."""
    page = (SEEDS / "llm-agent-training.page-1.txt").read_bytes()
    first, later = NOW, NOW + timedelta(days=9)
    for at in (first, later):
        ingest_document(store, make_document(page, fetched_at=at), IngestOptions(now=at))
    assert [later] == [stretch.seen_at for stretch in store.history.coverage("llm-agent-training").stretches]
    older = (SEEDS / "llm-agent-training.page-6.txt").read_bytes()
    ingest_document(store, make_document(older, fetched_at=later), IngestOptions(now=later))
    again = later + timedelta(days=9)
    ingest_document(store, make_document(page, fetched_at=again), IngestOptions(now=again))
    top = store.history.coverage("llm-agent-training").stretches[0]
    assert later == top.seen_at, "a page that is not the newest one says nothing of today"
