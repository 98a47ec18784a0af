"""A history as pages show it, and the web application over it: invented topics that rise, stand, cool and are small."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

from lxml import html
from starlette.testclient import TestClient

from digestd.flows.digest import make_due
from digestd.flows.publish import Publisher, PublishOptions
from digestd.model.feed import FeedSite
from digestd.model.pages import Site
from digestd.model.subscription import Subscription
from digestd.store import SqlStore, open_store
from digestd.templating import build_environment
from digestd.tokens import make_token
from digestd.web.app import Application, create_app
from digestd.web.guard import Limiter, Rate
from digestd.web.services import WebServices
from digestd.web.shelf import Shelf
from tests.followers import LABELS, Clock, at, ingest, let_follow, make_kitchen

NOW = at("2026-09-30T06:00")
BASE = "https://digest.example.org"

#: topic -> papers a week, twelve weeks up to that of Sep 28
WEEKS = {
    "Reef Sound": (3, 5, 4, 6, 4, 7, 5, 6, 13, 18, 16, 7),
    "Kelp Forests": (5, 4, 6, 5, 6, 5, 5, 6, 5, 6, 5, 3),
    "Tide Gauges": (9, 11, 10, 12, 13, 11, 14, 12, 6, 5, 4, 1),
    "Slow Robots": (0, 1, 0, 2, 0, 1, 0, 0, 1, 0, 2, 0),
}
_NAMES = ("Ana Lima", "Bo Ek", "Cy Diaz", "Mei Hoshino", "Tomas Okafor", "Britt Solheim", "Olu Adeyemi")
_PLACES = ("Harbour University", "Institute of Tides", "University of the Outer Isles, Department of Water")
_THINGS = ("Shrimp", "Snappers", "Corals", "Buoys", "Drifters", "Holdfasts", "Hydrophones", "Currents", "Sponges")
_HOW = ("Counting {} by Ear", "A Quiet Way to Find {}", "{} at Night: What Changes", "Mapping {} from Small Boats")


def listing(topic: str, weeks: Sequence[int], *, also: str = "") -> str:
    """Return a topic's page with so many papers a week, newest first, the last week begun on Sep 28."""
    monday = date(2026, 9, 28)
    dated = [
        (monday - timedelta(weeks=len(weeks) - 1 - week) + timedelta(days=place % 7), 20 * week + place)
        for week, papers in enumerate(weeks)
        for place in range(papers)
    ]
    # the week that has begun has two days yet; and something was there before the twelve weeks
    dated = [(min(day, monday + timedelta(days=1)), number) for day, number in dated]
    dated += [(date(2026, 6, 20) - timedelta(days=number), 900 + number) for number in range(3)]
    dated.sort(reverse=True)
    blocks = [topic, "Follow this topic Ask about this topic", f"Latest papers {len(dated)}"]
    for day, number in dated:
        thing = _THINGS[number % len(_THINGS)]
        name = _HOW[number % len(_HOW)].format(thing)
        labels = [topic, *([also] if also and number % 3 == 0 else [])]
        blocks += [
            f"{day:%b} {day.day}, {day.year}cs.SD",
            f"{topic.split()[0]}{number}: {name}",
            f"We present a way of {name.lower()} that needs no diver. Counts agree with those of divers within nine "
            f"percent on {number + 3} lagoons. It runs for two years on one battery.",
            ", ".join(_NAMES[(number + place) % len(_NAMES)] for place in range(3)) + " +2",
            _PLACES[number % len(_PLACES)],
            " ".join(labels),
        ]
    return "\n\n".join(blocks) + "\n"


def tree_of(body: str) -> Any:
    """Return a page's elements; its type is left open, for a path may lead to texts or elements."""
    return html.fromstring(body)


@dataclass
class House:
    """A history, what the web shows of it, and a client."""

    store: SqlStore
    services: WebServices
    app: Application
    client: TestClient
    publisher: Publisher
    clock: Clock

    def publish(self) -> tuple[str, ...]:
        """Bring the feeds in memory up to date and return what was written."""
        now = self.clock.now()
        shelf = self.services.shelf
        return self.publisher.publish(
            self.store, self.services.publish, lambda files: shelf.put(files, now=now), now=now
        ).written

    def token(self, subscription: Subscription, purpose: str) -> str:
        """Return a genuine token."""
        return make_token(self.store.secret("tokens"), purpose, subscription.public_id)


def make_house(
    folder: Path, *, base_url: str | None = BASE, entries: int = 100, archive_page: int = 100, now: datetime = NOW
) -> House:
    """Return a house with an empty history."""
    store = open_store(folder / "history.sqlite")
    clock = Clock(now)
    kitchen = make_kitchen(store, base_url=base_url)
    services = WebServices(
        store=store,
        site=Site("Reef Papers", base_url or "", operator="Run by the Reef Lab", mail=base_url is not None),
        templates=build_environment(),
        clock=clock,
        publish=PublishOptions(
            FeedSite("Reef Papers", "reef.example"), entries=entries, archive_page=archive_page, base_url=base_url
        ),
        shelf=Shelf(),
        secrets={"1": store.secret("tokens")},
        kitchen=kitchen if base_url else None,
        vocabulary=lambda: LABELS,
        reading=Limiter(Rate(100_000, 60)),
    )
    app = create_app(services)
    client = TestClient(app, base_url=base_url or "http://testserver", follow_redirects=False)
    return House(store, services, app, client, Publisher(), clock)


def fill(house: House) -> Subscription:
    """Let topics be watched for a week and a reader be told once; return the reader's subscription."""
    week_ago = NOW - timedelta(days=7)
    for topic, weeks in WEEKS.items():
        ingest(house.store, listing(topic, (*weeks[:-1], 0)), now=week_ago)
    followed = let_follow(house.store, "ana@reef.example", *WEEKS, now=week_ago)
    names = list(WEEKS)
    for number, (topic, weeks) in enumerate(WEEKS.items()):
        also = names[(number + 1) % len(names)]
        ingest(house.store, listing(topic, weeks, also=also), now=NOW - timedelta(hours=1))
    house.clock.instant = NOW + timedelta(days=1)
    make_due(house.services.kitchen or make_kitchen(house.store), now=NOW + timedelta(hours=2))
    house.clock.instant = NOW + timedelta(hours=3)
    house.publish()
    return house.store.subscriptions.subscription(followed.subscription.key or 0)


def addresses(house: House, subscription: Subscription) -> list[str]:
    """Return an address of every kind of page that can be read."""
    token = house.token(subscription, "feed")
    label = house.store.subscriptions.digests(subscription.key)[0].key.partition("|")[2]
    paper = house.store.pages.topic_papers("reef-sound", limit=1)[0].known.public_id
    return [
        "/", "/t/reef-sound", "/t/reef-sound?tag=Kelp+Forests", f"/t/reef-sound?before={paper}", "/t/slow-robots",
        "/t/tide-gauges?before=2026-08-01", f"/p/{paper}", "/search", "/search?q=shrimp&author=lima&since=2026-07-01",
        "/digests", f"/d/{token}", f"/d/{token}/{label}", "/nothing-here",
    ]  # fmt: skip
