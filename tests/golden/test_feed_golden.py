"""Whole feeds as they are served; ``--update-golden`` rewrites them, to be reviewed as a diff."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from digestd.model.digest import Digest, DigestPaper, Headline, Momentum, Section, TaggedPaper, Trend
from digestd.model.feed import (
    Feed,
    FeedDigest,
    FeedFormat,
    FeedListing,
    FeedPaper,
    FeedPlace,
    FeedRevision,
    FeedSite,
    FeedUrls,
)
from digestd.model.snapshot import Kind
from digestd.model.topic import Topic
from digestd.phrases import affiliations, people
from digestd.render.feed import FORMATS, check_feed, digest_feed, revisions_feed, split_feed, topic_feed
from digestd.render.opml import opml_bytes
from tests.builders import NOW, make_paper
from tests.schema import check_atom

FOLDER = Path(__file__).parent / "feed"
BASE = "https://papers.reef.example"
SITE = FeedSite("Reef Papers", "reef.example", since="2026-09", hub="https://hub.example/")
TOPIC = Topic("reef-sound", "Reef Sound", gloss="Sound: what a hydrophone hears")
QUIET = Topic("tide-models", "Tide Models")


def place(path: str) -> FeedPlace:
    """Return where a feed is served."""
    urls = FeedUrls(f"{BASE}/{path}.rss", f"{BASE}/{path}.atom", f"{BASE}/{path}.json")
    return FeedPlace(home=f"{BASE}/{path}", urls=urls)


def feed_papers() -> tuple[FeedPaper, ...]:
    """Return three papers, oldest sighting first: an ordinary one, one full of special characters, a bare late one."""
    ordinary = make_paper(
        "Quiet Reefs at Night",
        authors=("Ana Lima", "Bo Chen", "Cy Diaz", "Di Ek"),
        authors_more=12,
        affiliations=("Institute of Tides", "Harbour University"),
        categories=("q-bio.PE", "cs.SD"),
        topics=("Reef Sound", "Night Ecology"),
        links=("https://archive.example/abs/2609.00001",),
    )
    special = make_paper(
        "LoudReef: <Noise> & 𝒪(n²) “Signals” from Ångström\x0bBay",
        authors=("Øystein Å. Berg",),
        group="Tide Consortium",
        categories=("physics.ao-ph",),
        topics=("Reef Sound",),
    )
    bare = make_paper("Foam", authors=(), topics=())
    summary = "Reefs are quieter at night than at noon. Snapping shrimp explain p < 0.05 of it & more."
    first = FeedPaper(
        "7f3a", ordinary, Kind.NEW, datetime(2026, 9, 28, tzinfo=UTC), NOW, None, summary, url=f"{BASE}/p/7f3a"
    )
    second = FeedPaper("b21c", special, Kind.NEW, datetime(2026, 9, 29, 17, 59, 59, tzinfo=UTC), NOW)
    third = FeedPaper("90de", bare, Kind.NEWLY_TAGGED, datetime(2026, 6, 1, tzinfo=UTC), NOW + timedelta(days=1))
    told = replace(first, headline="54 papers in four weeks, up\u00a0145%")
    return tuple(
        replace(one, people=people(one.paper), affiliations=affiliations(one.paper, limit=2))
        for one in (told, second, third)
    )


def topic_documents() -> tuple[Feed, tuple[Feed, ...]]:
    """Return the topic's feed in pages of one, and its archives."""
    feed = topic_feed(
        TOPIC,
        feed_papers(),
        headline="54 papers in four weeks, up\u00a0145%",
        site=SITE,
        place=place("t/reef-sound"),
        changed_at=NOW,
    )
    return split_feed(feed, 1, lambda number: place(f"t/reef-sound/archive/{number}").urls)


def digests() -> Feed:
    """Return a feed of one digest."""
    titles = ("Quiet Reefs at Night", "LoudReef: <Noise> & Signals", "DriftNet: Foam Far Out")
    shown = [
        DigestPaper(number, make_paper(title), Kind.NEW, NOW, "One whole sentence.", f"{BASE}/p/{number}")
        for number, title in enumerate(titles)
    ]
    rising = Section(
        TOPIC,
        Headline(Trend.UP, "54 papers in four weeks, up\u00a0145%", "+145%"),
        Momentum(weekly=(3, 5, 4, 6, 4, 7, 5, 6, 13, 18, 16, 7)),
        papers=(shown[0], replace(shown[1], also_in=("Night Ecology",))),
        rest=(shown[2],),
        coverage_line="complete since Sep 3",
        url=f"{BASE}/t/reef-sound",
    )
    quiet = Section(QUIET, Headline(Trend.QUIET, "No new papers, quiet", "quiet", "The last one came on Sep 14."))
    week = Digest("Reef Weekly", date(2026, 9, 23), date(2026, 9, 29), (rising, quiet), (TaggedPaper(TOPIC, shown[1]),))
    told = FeedDigest(
        "k7Qx/2026-09-30",
        week,
        "Reef Sound up 145%, 3 new papers",
        "Sep 23–29",
        "Quiet Reefs at Night, LoudReef, DriftNet.",
        NOW,
        f"{BASE}/d/2026-09-30",
    )
    return digest_feed("Reef Weekly", [told], feed_key="k7Qx", site=SITE, place=place("digests"), changed_at=NOW)


def revisions() -> Feed:
    """Return a feed of one revision, of a service that knows no address."""
    revised = FeedRevision(feed_papers()[1], 3, NOW + timedelta(days=2), "The title changed from “LoudReef: Noise”.")
    return revisions_feed(TOPIC, [revised], site=replace(SITE, hub=None), place=FeedPlace(), changed_at=NOW)


def documents() -> dict[str, Feed]:
    """Return all feeds by their file name."""
    current, archives = topic_documents()
    return {"topic": current, "archive-1": archives[1], "digests": digests(), "revisions": revisions()}


@pytest.mark.parametrize("kind", list(FeedFormat))
@pytest.mark.parametrize("name", ["topic", "archive-1", "digests", "revisions"])
def test_feed_is_as_it_was(name: str, kind: FeedFormat, request: pytest.FixtureRequest) -> None:
    """A feed changes only when somebody has looked at the change."""
    writer = FORMATS[kind]
    body = writer.document(documents()[name], writer.entry)
    check_feed(body, kind)
    if kind is FeedFormat.ATOM:
        check_atom(body)
    compare(FOLDER / f"{name}.{kind}", body, request)


def test_opml_is_as_it_was(request: pytest.FixtureRequest) -> None:
    """The list of feeds changes only when somebody has looked at the change."""
    feeds = [
        FeedListing("Reef Sound", f"{BASE}/t/reef-sound.rss", f"{BASE}/t/reef-sound", "Sound: what a hydrophone hears"),
        FeedListing("Tide Models", f"{BASE}/t/tide-models.rss"),
    ]
    compare(FOLDER / "topics.opml", opml_bytes("Reef Papers", feeds, changed_at=NOW), request)


def compare(path: Path, body: bytes, request: pytest.FixtureRequest) -> None:
    """Compare with the stored bytes, or store these if asked to."""
    if request.config.getoption("--update-golden", default=False):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(body)
    assert body.decode() == path.read_text(encoding="utf-8")
