"""A world as plain data: everything that happens in it is written down before it lives, so that parts can be left out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

#: labels on a listing's tag line at most; the rest is "+N"
LABELS_SHOWN = 6


@dataclass(frozen=True)
class Version:
    """What a paper says from an instant on."""

    since: datetime
    title: str
    abstract: str


@dataclass(frozen=True)
class Filed:
    """A label of a paper: from when the listing knows it, and until when (None: for good)."""

    topic: str
    since: datetime
    until: datetime | None = None

    def holds(self, when: datetime) -> bool:
        """Whether the paper has the label at an instant."""
        return self.since <= when and (self.until is None or when < self.until)


@dataclass(frozen=True)
class WorldPaper:
    """A paper, and all that ever becomes of it."""

    number: int
    published: date
    versions: tuple[Version, ...]
    authors: tuple[str, ...]
    authors_more: int
    category: str
    filed: tuple[Filed, ...]
    arxiv: str
    doi: str | None = None  #: named by JSON files from ``doi_since`` on
    doi_since: datetime | None = None
    crossed: bool = False  #: announced by the feed as cross-listed
    withdrawn_at: datetime | None = None

    def version(self, when: datetime) -> int:
        """Return the index of the version that stands at an instant."""
        return max((place for place, one in enumerate(self.versions) if one.since <= when), default=0)

    def labels(self, when: datetime) -> tuple[str, ...]:
        """Return the labels at an instant, each once."""
        return tuple(dict.fromkeys(one.topic for one in self.filed if one.holds(when)))

    def entered(self, topic: str, when: datetime) -> datetime | None:
        """Return since when the paper stands in a topic's listing at an instant; None if it does not."""
        return next((one.since for one in self.filed if one.topic == topic and one.holds(when)), None)


@dataclass(frozen=True)
class WorldTopic:
    """A topic, and the sources that show it: listing, last100, daily, json; none: it is only a label."""

    name: str
    sources: tuple[str, ...] = ()
    https_since: datetime | None = None  #: from when the feeds' links have another scheme and host


@dataclass(frozen=True)
class Kill:
    """The process dies when it comes to a named point for the n-th time."""

    point: str
    number: int = 1


@dataclass(frozen=True)
class Tick:
    """The watcher is awake: it asks all sources, makes what is due, delivers, and now and then publishes."""

    at: datetime
    skew_s: int = 0  #: how far the clock is off
    troubles: tuple[tuple[str, str, str], ...] = ()  #: (topic, source, what it does instead)
    relay: str = "ok"  #: ok, greylist, down, lost_before, lost_kept, lost_gone, refuse
    kill: Kill | None = None
    publish: bool = False


@dataclass(frozen=True)
class Wished:
    """What a follower wants."""

    topics: tuple[str, ...]
    schedule: str  #: daily 07:30, mon,thu 07:30, monthly 1 07:30, each
    zone: str = "UTC"
    first: str = "none"
    exclude: tuple[str, ...] = ()  #: categories
    all_quiet: bool = False


@dataclass(frozen=True)
class Act:
    """A follower does something: follow (come, change, come back), pause, resume, leave."""

    at: datetime
    follower: int
    what: str
    wished: Wished | None = None
    until: date | None = None


@dataclass(frozen=True)
class Drop:
    """A JSON file of a topic is put into the watched folder; it is read at the next tick."""

    at: datetime
    topic: str
    order: str = "feed"
    count: int = 20
    numbers: tuple[int, ...] = ()


Event = Tick | Act | Drop


@dataclass(frozen=True)
class Plan:
    """A world."""

    seed: int
    topics: tuple[WorldTopic, ...]
    papers: tuple[WorldPaper, ...]
    events: tuple[Event, ...]
    on_uncertain: str = "resend"
    max_pages: int = 5  #: how far a listing is walked down
    has_site: bool = False  #: whether digests can link to pages

    def topic(self, name: str) -> WorldTopic:
        """Return a topic by its name."""
        return next(one for one in self.topics if one.name == name)

    def listed(self, topic: str, when: datetime) -> list[WorldPaper]:
        """Return what a topic's listing holds at an instant, newest first; what came last stands first in its day."""
        found = [
            (paper.published, entered, paper.number, paper)
            for paper in self.papers
            if (entered := paper.entered(topic, when)) is not None
        ]
        return [row[3] for row in sorted(found, key=lambda row: row[:3], reverse=True)]
