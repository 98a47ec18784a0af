"""A feed read in part leaves the history exactly as the same feed read whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from hashlib import sha256
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.errors import ParseError
from digestd.flows.ingest import IngestOptions, ingest_document, read_page, record_page
from digestd.model.snapshot import Document, Page, SnapshotRecord
from digestd.model.topic import MatchRule, Topic, Vocabulary
from digestd.parse import parse_document
from digestd.store import SqlStore, open_store
from tests.feeds import SEEN, SHAPES, atom, rss

URL = "https://kelp.example/feed.xml"
DOI = "<prism:doi>10.5555/proceedings</prism:doi>"


@dataclass
class Counting:
    """A parser that counts the papers that it is made to read."""

    papers: int = 0

    def __call__(self, document: Document, vocabulary: Vocabulary) -> Page:
        """Parse and count."""
        page = parse_document(document, vocabulary)
        self.papers += len(page.papers)
        return page


def item(number: int, *, text: str = "Fronds sway.", title: str | None = None, more: str = "", link: str = "") -> str:
    """Return the inside of an RSS item."""
    where = link or f"https://kelp.example/p/{number}"
    return (
        f"<title>{title or f'A Study of Frond Number {number}'}</title><link>{where}</link>"
        f'<guid isPermaLink="false">p{number}</guid><pubDate>Tue, 20 Oct 2026 0{number % 10}:00:00 GMT</pubDate>'
        f"<dc:creator>Ida Moss</dc:creator><description>{text}</description>{more}"
    )


def document(body: str, *, hours: int = 0, origin: str = URL) -> Document:
    """Return a feed as fetched some hours later."""
    return Document(body.encode(), origin=origin, fetched_at=SEEN + timedelta(hours=hours))


def read_whole(store: SqlStore, one: Document, options: IngestOptions) -> SnapshotRecord:
    """Ingest without leaving anything out."""
    page = read_page(one, store.history.vocabulary(), options)
    return record_page(store, page, one, options, sha256(one.body).hexdigest())


def contents(store: SqlStore) -> dict[str, list[tuple[object, ...]]]:
    """Return every row of the history but what is kept of feeds."""
    query = store.engine.query
    names = [row["name"] for row in query("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name")]
    kept = [name for name in names if name not in ("feed_read", "_sqlite_migrations") and "fts" not in name]
    return {name: [tuple(row.values()) for row in query(f"SELECT * FROM {name}")] for name in kept}


def compare(documents: Sequence[Document], *, rule_at: int | None = None) -> int:
    """Read the documents in part into one history and whole into another, hold them equal, return the papers parsed."""
    parse = Counting()
    with TemporaryDirectory() as folder:
        sieved, whole = open_store(Path(folder) / "sieved.sqlite"), open_store(Path(folder) / "whole.sqlite")
        for number, one in enumerate(documents):
            options = IngestOptions(now=SEEN + timedelta(days=1, hours=number))
            if number == rule_at:
                for store in (sieved, whole):
                    store.history.put_topic(Topic("two", "Two", rule=MatchRule(any_of=("number 2",))), now=SEEN)
            try:
                expected: SnapshotRecord | None = read_whole(whole, one, options)
            except ParseError:
                expected = None
            try:
                found: SnapshotRecord | None = ingest_document(sieved, one, options, parse)
            except ParseError:
                found = None
            if found is None or expected is None or not found.unchanged:
                assert expected == found
            assert contents(whole) == contents(sieved)
        sieved.close()
        whole.close()
    return parse.papers


def test_only_new_items_are_parsed() -> None:
    """Of a feed with a new item one item is parsed, of one that is only dated anew none, and nothing is lost."""
    made = count(1)
    bodies = [
        rss(*map(item, numbers), head=f"<lastBuildDate>Tue, 20 Oct 2026 1{next(made)}:00:00 GMT</lastBuildDate>")
        for numbers in ((3, 2, 1), (4, 3, 2, 1), (4, 3, 2, 1), (5, 4, 3))
    ]
    assert 3 + 1 + 0 + 1 == compare([document(body, hours=at) for at, body in enumerate(bodies)])


@pytest.mark.parametrize(
    "second",
    [
        rss(item(3, link="https://kelp.example/p/1"), item(2), item(1)),
        rss(item(3).replace(">p3<", ">p1<"), item(2), item(1)),
        rss(item(2), item(1), item(3), head="<link>https://other.example/</link>"),
        rss(item(3, title="A Study of Frond Number 1"), item(2), item(1)),
        rss(item(3), item(2), item(1)).replace("<rss ", '<rss xml:base="https://other.example/" '),
        rss(item(3, more="<!-- so we heard -->"), item(2), item(1)),
        rss(item(3), item(2), item(1, more="<content:encoded><![CDATA[<item>x</item>]]></content:encoded>")),
    ],
)
def test_what_is_decided_on_a_whole_page_has_it_read_whole(second: str) -> None:
    """A link, an id or a title that a new item shares with an old one, another base, a comment: all items are parsed."""
    assert 2 + 3 <= compare([document(rss(item(2), item(1))), document(second, hours=1)])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            rss(item(1, link="/p/1")),
            rss(item(2, link="/p/2"), item(1, link="/p/1")).replace("//kelp.example/<", "//reef.example/<"),
        ),
        (rss(item(2), item(1)), rss(item(2), item(3).replace("20 Oct", "99 Foo"), item(1))),
        (rss(item(1)), rss(item(1), item(1, more="<category>eess.AS</category>"))),
        (rss(item(1)), rss(item(1), item(1) + " ")),
        (rss(item(1, more=DOI)), rss(item(2, more=DOI), item(1, more=DOI))),
    ],
)
def test_a_reading_in_part_would_differ(first: str, second: str) -> None:
    """Links under another address, faults by their number, twins, one DOI for several: all is as if read whole."""
    compare([document(first), document(second, hours=1), document(first, hours=2)])


def test_a_paper_that_changed_elsewhere_is_looked_at_again() -> None:
    """Another source gave the paper more ids or another wording: its item is read again."""
    one, two = rss(item(2), item(1)), rss(item(3), item(2), item(1))
    other = atom(
        "<title>A Study of Frond Number 1</title><id>x</id><link href='https://kelp.example/p/1'/>"
        "<author><name>Ida Moss</name></author><summary>Fronds sway, as we said.</summary>"
        "<published>2026-10-20T01:00:00Z</published><category term='eess.AS'/>"
    )
    documents = [document(one), document(other, hours=1, origin="https://other.example/feed"), document(two, hours=2)]
    assert 2 + 1 + 2 == compare(documents)


def test_a_new_match_rule_has_all_items_read_again() -> None:
    """Papers that the source showed before are sighted in the topic that matches them now."""
    documents = [document(rss(item(2), item(1))), document(rss(item(3), item(2), item(1)), hours=1)]
    assert 2 + 3 == compare(documents, rule_at=1)


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_of_feed_with_its_items_one_after_the_other(shape: str) -> None:
    """Feeds of all dialects, without their last items at first, are read in part as they are read whole."""
    body = SHAPES[shape]
    tag = "entry" if "<entry" in body else "item"
    head, *items = body.split(f"<{tag}>" if f"<{tag}>" in body else f"<{tag} ")
    opening = f"<{tag}>" if f"<{tag}>" in body else f"<{tag} "
    inside, _, tail = items[-1].partition(f"</{tag}>")
    pieces = [f"{opening}{one}" for one in (*items[:-1], f"{inside}</{tag}>")]
    bodies = [f"{head}{''.join(pieces[at:])}{tail}" for at in (len(pieces) - 1, 0)]
    compare([document(one, hours=at) for at, one in enumerate([*bodies, *bodies])])


VARIANTS = [
    *(item(number) for number in range(1, 6)),
    item(1, text="Fronds sway more."),
    item(2, text="Fronds sway <![CDATA[<b>less</b>]]>."),
    item(3, link="https://kelp.example/p/1"),
    item(4).replace(">p4<", ">p1<"),
    item(5, title="A Study of Frond Number 1"),
    item(5, title="A Study of Frond Number 2!", text="Fronds sway."),
    item(2, more="<arxiv:announce_type>replace</arxiv:announce_type>"),
    item(3, more="<arxiv:announce_type>cross</arxiv:announce_type><prism:doi>10.5555/kelp.3</prism:doi>"),
    item(4, link="https://arxiv.org/abs/2610.80004v1"),
    item(4, link="https://arxiv.org/abs/2610.80004v2", text="Fronds sway anew."),
    item(1, text="This paper has been withdrawn."),
    item(3).replace("20 Oct 2026", "99 Foo 2026"),
    item(2, text="Fronds & sway"),
    item(1, more="<content:encoded><![CDATA[<item>x</item>]]></content:encoded>"),
    item(5, more="<!-- not said -->"),
]
OTHER = "https://other.example/feed"
#: one fetch after another: at a place of the feed an item is put in, or taken out
steps = st.tuples(st.integers(0, 4), st.none() | st.sampled_from(VARIANTS), st.sampled_from([URL, URL, URL, OTHER]))


@given(st.permutations(VARIANTS[:4]), st.lists(steps, min_size=1, max_size=6), st.integers(0, 8))
@settings(max_examples=60, deadline=None)
def test_feeds_that_change_step_by_step(
    items: list[str], changes: list[tuple[int, str | None, str]], rule_at: int
) -> None:
    """Revisions, shared names, replacements, withdrawals, faults, two sources: the history is the same in every row."""
    shown = list(items[:3])
    documents = [document(rss(*shown), origin=URL), document(rss(*shown[:1]), hours=1, origin=OTHER)]
    for at, (place, piece, origin) in enumerate(changes, start=2):
        if piece is None:
            shown = shown[:place] + shown[place + 1 :]
        else:
            shown.insert(place, piece)
        head = f"<lastBuildDate>Tue, 20 Oct 2026 1{at}:00:00 GMT</lastBuildDate><ttl>{60 + at // 5}</ttl>"
        documents.append(document(rss(*shown, head=head), hours=at, origin=origin))
    compare(documents, rule_at=rule_at)


def test_growing_feeds_are_mostly_read_in_part() -> None:
    """The property above is about something: a feed that gains one item a fetch has each item parsed about once."""
    numbers = list(range(1, 10))
    documents = [document(rss(*map(item, reversed(numbers[:at]))), hours=at) for at in range(1, 10)]
    assert 9 == compare(documents)
    assert 9 == compare([replace(one, media_type="application/rss+xml") for one in documents])
