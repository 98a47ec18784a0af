"""What the web pages show, before rendering. Floor 0."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime

from digestd.model.digest import Headline, Momentum
from digestd.model.paper import KnownPaper
from digestd.model.snapshot import Coverage, Kind
from digestd.model.topic import Topic


@dataclass(frozen=True, slots=True)
class Site:
    """What all pages share."""

    name: str
    base_url: str = (
        ""  #: public address without a slash at the end, "" if it is not known: then links are relative to /
    )
    operator: str = ""  #: who runs it, one line; "" leaves the line out
    mail: bool = False  #: whether mail can be sent, so that forms to follow make sense
    language: str = "en"


@dataclass(frozen=True, slots=True)
class TopicSummary:
    """A topic as the index and lists show it."""

    topic: Topic
    momentum: Momentum
    headline: Headline
    coverage: Coverage = field(default_factory=Coverage)


@dataclass(frozen=True, slots=True)
class ListedPaper:
    """A paper in a list of papers."""

    known: KnownPaper
    kind: Kind = Kind.NEW
    snippet: str = ""  #: of a search, with the hits between U+0002 and U+0003; "" for none


@dataclass(frozen=True, slots=True)
class TopicPage:
    """A topic's page."""

    summary: TopicSummary
    coverage_line: str
    papers: tuple[ListedPaper, ...]  #: newest first
    labels: tuple[tuple[str, int], ...] = ()  #: (label, papers with it), most first
    label: str | None = None  #: only papers with this label are shown
    earlier: date | None = None  #: papers before this day are on the next page; None: this is the last one
    before: date | None = None  #: this page shows papers before this day; None: it is the first one


@dataclass(frozen=True, slots=True)
class PaperSight:
    """Where and when a paper was first seen in a topic."""

    topic: Topic
    kind: Kind
    seen_at: datetime


@dataclass(frozen=True, slots=True)
class PaperPage:
    """A paper's page."""

    known: KnownPaper
    sights: tuple[PaperSight, ...]
    changes: tuple[tuple[datetime, str], ...] = ()  #: (when it was seen, what changed, one line), newest first


@dataclass(frozen=True, slots=True)
class SearchPage:
    """What a search found."""

    words: str
    papers: tuple[ListedPaper, ...]
    more: bool = False  #: there are more than are shown
    topic: str = ""  #: slug that the search is limited to
    author: str = ""
    since: str = ""
    until: str = ""
    topics: tuple[Topic, ...] = ()  #: to choose from
    problem: str = ""  #: why the search could not be made, in words


@dataclass(frozen=True, slots=True)
class PastDigest:
    """A digest of the past in a list."""

    period: str  #: "Sep 23–29"
    month: str  #: "September 2026"
    subject: str
    papers: int
    url: str
