"""Digests: each paper once, in the right section, within the budget, and nothing lost."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.compose import compose_digest, paper_url, share_out
from digestd.model.digest import (
    Digest,
    DigestOptions,
    DigestPaper,
    DigestRequest,
    NewsItem,
    RevisionNews,
    TopicNews,
    Trend,
)
from digestd.model.paper import PaperId, Revision
from digestd.model.snapshot import Coverage, Kind, Stretch
from digestd.momentum import counted_momentum
from tests.builders import make_item, make_known, make_request, make_topic_news

ABSTRACT = (
    "We present EelNet, a detector of humming eels. On two reefs it improves recall by 12% over spectral baselines."
)


def compose(request: DigestRequest) -> Digest:
    """Return the digest, which must be there."""
    digest = compose_digest(request)
    assert digest is not None
    return digest


def keys(papers: tuple[DigestPaper, ...]) -> list[int]:
    """Return the keys of papers in order."""
    return [paper.key for paper in papers]


def on_day(key: int, day: int) -> NewsItem:
    """Return a new paper published on a day of September."""
    return make_item(make_known(key, published=date(2026, 9, day)))


def test_a_paper_in_two_topics_is_told_once() -> None:
    """It stands under the first followed topic in the reader's order, marked with the other, which counts it."""
    both = make_item(make_known(1))
    digest = compose(make_request(make_topic_news("Kelp", [both]), make_topic_news("Eels", [both, on_day(2, 25)])))
    kelp, eels = digest.sections
    assert ([1], ("Eels",), 0) == (keys(kelp.papers), kelp.papers[0].also_in, kelp.above)
    assert ([2], (), 1, 2) == (keys(eels.papers), eels.papers[0].also_in, eels.above, eels.new)
    assert 2 == digest.new


def test_papers_come_newest_first() -> None:
    """By date, newest first; papers of one day in listing order."""
    items = [on_day(3, 24), on_day(2, 26), on_day(1, 26)]
    assert [1, 2, 3] == keys(compose(make_request(make_topic_news("Kelp", items))).sections[0].papers)


def test_papers_over_the_budget_are_titles() -> None:
    """Those in several followed topics are always shown, then the newest; the others are the rest, newest first."""
    items = [on_day(key, 29 - key) for key in range(1, 7)]
    options = DigestOptions(papers_per_topic=3)
    request = make_request(make_topic_news("Kelp", items), make_topic_news("Eels", [items[5]]), options=options)
    section = compose(request).sections[0]
    assert [1, 2, 6] == keys(section.papers)
    assert [3, 4, 5] == keys(section.rest)


def test_summaries() -> None:
    """Two sentences for new papers, one for older ones, none for titles only."""
    new, more, late = (make_known(key, abstract=ABSTRACT, published=date(2026, 9, 9 - key)) for key in (1, 2, 3))
    items = [make_item(new), make_item(more), make_item(late, Kind.NEWLY_TAGGED)]
    digest = compose(make_request(make_topic_news("Kelp", items), options=DigestOptions(papers_per_topic=1)))
    section = digest.sections[0]
    assert [ABSTRACT, ""] == [section.papers[0].summary, section.rest[0].summary]
    assert "We present EelNet, a detector of humming eels." == digest.tagged[0].paper.summary


def test_told_before_is_counted_and_not_told() -> None:
    """A paper that an earlier digest told under another topic is only counted."""
    items = [on_day(1, 24), on_day(2, 25)]
    section = compose(make_request(make_topic_news("Kelp", items), told=[1])).sections[0]
    assert ([2], 1, 2) == (keys(section.papers), section.told_before, section.new)


def test_only_told_before_is_no_digest() -> None:
    """Nothing but papers told before is nothing to tell."""
    late = make_item(make_known(2), Kind.NEWLY_TAGGED)
    assert compose_digest(make_request(make_topic_news("Kelp", [on_day(1, 24), late]), told=[1, 2])) is None


@pytest.mark.parametrize("kind", [Kind.BASELINE, Kind.BACKFILL])
def test_baseline_and_backfill_are_told_to_nobody(kind: Kind) -> None:
    """Papers of the first page and of older pages are history, not news."""
    assert compose_digest(make_request(make_topic_news("Kelp", [make_item(make_known(1), kind)]))) is None


def test_replacements_are_told_to_nobody() -> None:
    """A paper only ever announced as a replacement is known and never new."""
    items = [make_item(make_known(1, counted=False), kind) for kind in (Kind.NEW, Kind.NEWLY_TAGGED)]
    assert compose_digest(make_request(make_topic_news("Kelp", items))) is None


def test_nothing_new_is_no_digest_unless_asked() -> None:
    """An all-quiet digest comes only to those who asked, with all its topics."""
    topic = make_topic_news("Kelp", last_published=date(2026, 9, 2))
    assert compose_digest(make_request(topic)) is None
    digest = compose(make_request(topic, options=DigestOptions(all_quiet=True)))
    assert [(Trend.QUIET, "The last one came on Sep 2.")] == [
        (section.headline.trend, section.headline.note) for section in digest.sections
    ]


def test_newly_tagged_papers() -> None:
    """Older papers have their own section, newest first, five at most; the others follow as titles."""
    items = [make_item(make_known(key, published=date(2026, 5, key)), Kind.NEWLY_TAGGED) for key in range(1, 8)]
    digest = compose(make_request(make_topic_news("Kelp", items)))
    assert [7, 6, 5, 4, 3] == [entry.paper.key for entry in digest.tagged]
    assert [2, 1] == [entry.paper.key for entry in digest.tagged_rest]
    assert ["Kelp"] * 5 == [entry.topic.name for entry in digest.tagged]
    assert 0 == digest.new


def test_new_in_one_topic_and_tagged_in_another() -> None:
    """A paper new in any followed topic is told as new, even if an earlier topic holds it as newly tagged."""
    known = make_known(1)
    request = make_request(
        make_topic_news("Kelp", [make_item(known, Kind.NEWLY_TAGGED)]), make_topic_news("Eels", [make_item(known)])
    )
    digest = compose(request)
    assert ((), [1], ("Kelp",)) == (
        digest.tagged,
        keys(digest.sections[1].papers),
        digest.sections[1].papers[0].also_in,
    )


def test_a_flood_does_not_silence_other_topics() -> None:
    """The budget of the digest is taken from the largest topics first."""
    flood = make_topic_news("Kelp", [on_day(key, 24) for key in range(1, 31)])
    others = [make_topic_news(name, [on_day(key, 24)]) for name, key in (("Eels", 41), ("Cod", 42))]
    options = DigestOptions(papers_per_topic=12, budget=6)
    digest = compose(make_request(flood, *others, options=options))
    assert [4, 1, 1] == [len(section.papers) for section in digest.sections]
    assert 26 == len(digest.sections[0].rest)


@pytest.mark.parametrize(
    ("counts", "per_topic", "budget", "expected"),
    [
        ([20, 5, 0], 12, 40, [12, 5, 0]),
        ([20, 20, 20, 20], 12, 40, [10, 10, 10, 10]),
        ([20, 20, 20], 12, 35, [12, 12, 11]),
        ([3, 3], 12, 1, [1, 0]),
        ([3], 0, 9, [0]),
        ([3], 2, -1, [0]),
        ([], 12, 40, []),
    ],
)
def test_share_out(counts: list[int], per_topic: int, budget: int, expected: list[int]) -> None:
    """The largest share gives first, among equals the later topic."""
    assert expected == share_out(counts, per_topic, budget)


def test_hidden_papers_keep_a_topic_from_being_called_quiet() -> None:
    """A topic whose new papers the reader's filters hide is not quiet."""
    topic = make_topic_news("Kelp", hidden=3)
    digest = compose(make_request(topic, make_topic_news("Eels", [on_day(1, 24)])))
    assert (Trend.UNKNOWN, 3) == (digest.sections[0].headline.trend, digest.sections[0].hidden)


def test_headline_and_coverage_of_a_section() -> None:
    """A section carries its headline, and how complete its news is, in words."""
    coverage = Coverage((Stretch(date(2026, 9, 2), date(2026, 9, 28)),), known=40, total=90)
    momentum = counted_momentum((), 54, 22, complete=True)
    topic = make_topic_news("Kelp", [on_day(1, 24)], coverage=coverage, momentum=momentum, url="https://d.example/kelp")
    section = compose(make_request(topic)).sections[0]
    assert "54 papers in four weeks, up\u00a0145%" == section.headline.text
    assert ("complete since Sep 3", "https://d.example/kelp") == (section.coverage_line, section.url)
    worded = replace(topic, coverage_line="complete since the flood")
    assert "complete since the flood" == compose(make_request(worded)).sections[0].coverage_line


def test_frame_of_a_digest() -> None:
    """What the request says of the digest as a whole stands in it."""
    request = make_request(
        make_topic_news("Kelp", [on_day(1, 24)]),
        options=DigestOptions(catch_up="after your pause since Sep 2", language="en-US"),
        upto=17,
        next_line="The next digest comes on Wednesday, Oct 7.",
        why_line="You follow one topic here.",
    )
    digest = compose(request)
    assert ("Reef News", date(2026, 9, 23), date(2026, 9, 29), 17) == (
        digest.name,
        digest.since,
        digest.until,
        digest.upto,
    )
    assert ("after your pause since Sep 2", "en-US") == (digest.catch_up, digest.language)
    assert (request.next_line, request.why_line) == (digest.next_line, digest.why_line)


def past(count: int) -> list[NewsItem]:
    """Return papers of a topic's first page, one a day from Sep 1 on."""
    return [make_item(make_known(key, published=date(2026, 9, key)), Kind.BASELINE) for key in range(1, count + 1)]


def test_welcome_latest() -> None:
    """A first digest tells the newest papers of each topic, whatever their kind, each once."""
    items = past(5)
    options = DigestOptions(welcome=True, welcome_latest=2)
    digest = compose(make_request(make_topic_news("Kelp", items), make_topic_news("Eels", items[:4]), options=options))
    assert [[5, 4], [3]] == [keys(section.papers) for section in digest.sections]
    assert (True, 1) == (digest.welcome, digest.sections[1].above)


def test_welcome_since() -> None:
    """A first digest from a day on holds that day; late tags stand among the others."""
    late = make_item(make_known(9, published=date(2026, 9, 9)), Kind.NEWLY_TAGGED)
    undated = make_item(make_known(8, published=None, first_seen_at=datetime(2026, 8, 1, tzinfo=UTC)), Kind.BASELINE)
    options = DigestOptions(welcome=True, welcome_since=date(2026, 9, 4))
    digest = compose(make_request(make_topic_news("Kelp", [*past(5), late, undated]), options=options))
    assert ([9, 5, 4], ()) == (keys(digest.sections[0].papers), digest.tagged)


def test_welcome_without_the_past_is_never_called_quiet() -> None:
    """A first digest without papers tells how the topics move, if it is asked for."""
    topic = make_topic_news("Kelp", past(3), momentum=counted_momentum((), 54, 22, complete=True))
    assert compose_digest(make_request(topic, options=DigestOptions(welcome=True))) is None
    digest = compose(make_request(topic, options=DigestOptions(welcome=True, all_quiet=True)))
    assert Trend.UP is digest.sections[0].headline.trend


def revised(key: int, *changes: tuple[str, str, str], told: bool = True) -> RevisionNews:
    """Return a revision of a known paper."""
    return RevisionNews(make_known(key), Revision(key, changes, told))


def test_revisions_are_told_to_those_who_were_told() -> None:
    """Revised and withdrawn papers have their sections, for papers that the reader was told of before."""
    revisions = (
        revised(1, ("title", "Old Eels", "New Eels")),
        revised(2, ("withdrawn", "", "")),
        revised(3, ("title", "A", "B")),
    )
    digest = compose(make_request(make_topic_news("Kelp"), revisions=revisions, told=[1, 2]))
    assert [(1, "New title, before: \u201cOld Eels\u201d.")] == [
        (entry.paper.key, entry.line) for entry in digest.revised
    ]
    assert [(2, "Withdrawn.")] == [(entry.paper.key, entry.line) for entry in digest.withdrawn]


def test_revisions_that_come_to_nothing() -> None:
    """A text that went back to what it was, or changed in spelling only, is not told."""
    revisions = (
        revised(1, ("title", "A", "B")),
        revised(1, ("title", "B", "A")),
        revised(2, ("title", "A", "a"), told=False),
    )
    assert compose_digest(make_request(make_topic_news("Kelp"), revisions=revisions, told=[1, 2])) is None


@pytest.mark.parametrize(
    ("ids", "links", "expected"),
    [
        (
            (PaperId("arxiv", "2609.01234"), PaperId("doi", "10.1/x")),
            ("https://h.example/a",),
            "https://arxiv.org/abs/2609.01234",
        ),
        ((PaperId("arxiv", "hep-th/9901001"),), (), "https://arxiv.org/abs/hep-th/9901001"),
        ((PaperId("doi", "10.1/x"),), ("https://h.example/a",), "https://h.example/a"),
        ((PaperId("doi", "10.1002/(sici)1<2>3"),), (), "https://doi.org/10.1002/(sici)1%3C2%3E3"),
        ((PaperId("title", "kelp"),), (), None),
    ],
)
def test_paper_url(ids: tuple[PaperId, ...], links: tuple[str, ...], expected: str | None) -> None:
    """A title leads to the paper itself, and nowhere if no address is known."""
    assert expected == paper_url(make_known(1, ids=ids, links=links))


def test_two_rows_of_one_paper_are_told_once() -> None:
    """Two records that turned out to be one paper leave two rows, and one telling."""
    known = make_known(1)
    rows = [make_item(known, Kind.NEWLY_TAGGED, position=3), make_item(known, position=9)]
    digest = compose(make_request(make_topic_news("Kelp", rows)))
    assert ([1], (), ()) == (keys(digest.sections[0].papers), digest.tagged, digest.sections[0].papers[0].also_in)


ITEMS = st.lists(
    st.tuples(st.integers(1, 12), st.sampled_from(Kind), st.integers(1, 28)), max_size=14, unique_by=lambda row: row[0]
)


@given(
    topics=st.lists(ITEMS, min_size=1, max_size=4),
    told=st.frozensets(st.integers(1, 12), max_size=4),
    uncounted=st.frozensets(st.integers(1, 12), max_size=2),
    limits=st.tuples(st.integers(0, 5), st.integers(0, 12), st.integers(0, 3)),
)
@settings(max_examples=300, deadline=None)
def test_every_sighting_is_accounted_for_exactly_once(
    topics: list[list[tuple[int, Kind, int]]],
    told: frozenset[int],
    uncounted: frozenset[int],
    limits: tuple[int, int, int],
) -> None:
    """No paper stands twice, none told before stands again, each new sighting is shown, rest, above or told before."""
    known = {
        key: make_known(key, counted=key not in uncounted, published=date(2026, 9, 1 + key * 2)) for key in range(1, 13)
    }
    news: list[TopicNews] = [
        make_topic_news(f"Topic {place}", [make_item(known[key], kind, position=at) for key, kind, at in rows])
        for place, rows in enumerate(topics)
    ]
    per_topic, budget, tagged_shown = limits
    options = DigestOptions(per_topic, budget, tagged_shown, all_quiet=True)
    digest = compose(make_request(*news, options=options, told=sorted(told)))
    in_sections = [key for section in digest.sections for key in keys(section.papers) + keys(section.rest)]
    late = [entry.paper.key for entry in (*digest.tagged, *digest.tagged_rest)]
    assert len(in_sections) + len(late) == len({*in_sections, *late})
    assert not told & {*in_sections, *late}
    wanted = {
        kind: {item.known.key for topic in news for item in topic.items if item.kind is kind} - told - uncounted
        for kind in (Kind.NEW, Kind.NEWLY_TAGGED)
    }
    assert wanted[Kind.NEW] == set(in_sections)
    assert wanted[Kind.NEWLY_TAGGED] - wanted[Kind.NEW] == set(late)
    for topic, section in zip(news, digest.sections, strict=True):
        rows = {item.known.key for item in topic.items if item.kind is Kind.NEW}
        own = {*keys(section.papers), *keys(section.rest)}
        assert own <= rows
        assert len(rows - uncounted - told) == len(own) + section.above
        assert len(rows & told) == section.told_before
        assert len(section.papers) <= per_topic
    assert sum(len(section.papers) for section in digest.sections) + len(digest.tagged) <= budget
    assert len(digest.tagged) <= tagged_shown


def test_older_papers_take_their_share_of_the_budget() -> None:
    """Older papers count in the budget: an eighth of it at most where new papers fill the rest."""
    new = [on_day(key, 24) for key in range(1, 61)]
    late = [make_item(make_known(key), Kind.NEWLY_TAGGED) for key in range(61, 68)]
    options = DigestOptions(papers_per_topic=60, budget=16)
    digest = compose(make_request(make_topic_news("Kelp", [*new, *late]), options=options))
    assert (14, 2) == (len(digest.sections[0].papers), len(digest.tagged))


def test_welcome_baseline_after_the_reader_came_is_told_within_the_limit() -> None:
    """Who follows a topic before its first page was read gets the latest papers of that page, as asked for."""
    items = [make_item(make_known(n), Kind.BASELINE) for n in range(1, 6)] + [make_item(make_known(9), Kind.NEW)]
    items = [replace(item, since_follow=True) for item in items]
    options = DigestOptions(welcome=True, welcome_latest=2)
    digest = compose_digest(make_request(make_topic_news(items=items), options=options))
    assert digest is not None
    told = {paper.key for section in digest.sections for paper in (*section.papers, *section.rest)}
    assert 3 == len(told)
    assert items[-1].known.key in told
