"""What the web pages show, before rendering. Floor 0."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime

from digestd.model.digest import Headline, Momentum
from digestd.model.paper import KnownPaper, Revision
from digestd.model.snapshot import Coverage, Kind, LedgerRow
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
    position: int = 0  #: of its sighting in the ledger
    brief: bool = False  #: its summary is left out


@dataclass(frozen=True, slots=True)
class ListPlace:
    """A place in a list of papers: after the paper that stands there."""

    instant: str  #: effective_at as the history writes it, or a day: then before all of that day
    position: int = 0


@dataclass(frozen=True, slots=True)
class SearchWish:
    """What is searched for; "" and None do not limit."""

    words: str = ""  #: in title, abstract or authors, all of them
    topic: str = ""  #: slug
    author: str = ""  #: words of one author's name, all of them
    since: date | None = None  #: first day
    until: date | None = None  #: last day


@dataclass(frozen=True, slots=True)
class SeenRevision:
    """A change of a paper of a topic."""

    row: LedgerRow  #: the paper's sighting in the topic
    revision: Revision
    number: int  #: ledger position of the change
    changed_at: datetime


@dataclass(frozen=True, slots=True)
class FeedMarks:
    """How far the history had come at one look."""

    position: int = 0  #: in the ledger
    touched: int = 0  #: in the order of changed papers
    snapshot: int = 0  #: in the order of recorded snapshots


@dataclass(frozen=True, slots=True)
class TopicPage:
    """A topic's page."""

    summary: TopicSummary
    coverage_line: str
    papers: tuple[ListedPaper, ...]  #: newest first
    labels: tuple[tuple[str, int], ...] = ()  #: (label, papers with it), most first
    label: str | None = None  #: only papers with this label are shown
    shown: int = 0  #: papers with that label, or all
    earlier: str = ""  #: public id of the last paper here, after which the next page begins; "": this is the last page
    before: date | None = None  #: this page shows papers of this day and before; None: it is the first one


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


@dataclass(frozen=True, slots=True)
class WeekCount:
    """Papers of a topic in one week."""

    topic: str
    slug: str
    papers: int


@dataclass(frozen=True, slots=True)
class Week:
    """What one week brought."""

    monday: date
    topics: tuple[WeekCount, ...]  #: most papers first, not empty


@dataclass(frozen=True, slots=True)
class ToldTopic:
    """What a digest of the past told of one topic."""

    topic: Topic | None  #: None: revisions and the like, which belong to none
    heading: str
    papers: tuple[ListedPaper, ...]
