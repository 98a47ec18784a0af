"""What one subscription is told at one time, ready for rendering; momentum and its words. Floor 0."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum

from digestd.model.paper import KnownPaper, Paper, Revision
from digestd.model.snapshot import Coverage, Kind
from digestd.model.topic import Topic


class Trend(StrEnum):
    """The case of a headline (look/DESIGN.md §6), in the order in which they are tested."""

    NEW_TOPIC = "new_topic"
    QUIET = "quiet"
    FEW = "few"
    STEADY = "steady"
    UP = "up"
    DOWN = "down"
    UNKNOWN = "unknown"  #: neither stated nor counted momentum is there


@dataclass(frozen=True, slots=True)
class Momentum:
    """Papers of the last four weeks against the four before."""

    current: int | None = None  #: C; None if unknown
    previous: int | None = None  #: P; from a stated percent where only one whole number fits, else None
    change_percent: int | None = None  #: signed; as printed if stated; None from none and for small numbers
    share_percent: float | None = None  #: of all new papers, stated only
    share_below: bool = False  #: True for "under 0.1%"
    source: str = "none"  #: stated, counted or none
    weekly: tuple[int, ...] = ()  #: papers a week, oldest first, twelve at most; empty if unknown, never invented
    weekly_from: date | None = None  #: Monday of the first week
    partial: bool = False  #: whether the last week is unfinished
    weeks: int | None = None  #: weeks of data, None if at least eight or not known
    p_value: float | None = None  #: exact two-sided binomial p of C against C+P at one half
    interval: tuple[float, float] | None = None  #: 95 % interval of the change, in percent
    complete: bool = True  #: False for counted figures with holes in the coverage of the eight weeks
    late_p_value: float | None = None  #: p of a counted fall without the days not yet named by the listing


@dataclass(frozen=True, slots=True)
class Headline:
    """Momentum in words."""

    trend: Trend
    text: str  #: "54 papers in four weeks, up 145%"
    short: str  #: "+145%"
    note: str = ""  #: the line below: "0.5% of all new papers"


@dataclass(frozen=True, slots=True)
class DigestPaper:
    """A paper as one digest tells it."""

    key: int
    paper: Paper
    kind: Kind
    effective_at: datetime
    summary: str = ""  #: one or two whole sentences of the abstract
    url: str | None = None  #: where the title leads; None: no link is known
    also_in: tuple[str, ...] = ()  #: names of other followed topics that hold it
    cross_listed: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """What one topic has for the reader."""

    topic: Topic
    headline: Headline
    momentum: Momentum = field(default_factory=Momentum)
    papers: tuple[DigestPaper, ...] = ()  #: shown here, newest first
    rest: tuple[DigestPaper, ...] = ()  #: new as well, over the budget: titles only
    above: int = 0  #: new here too, shown under an earlier topic
    hidden: int = 0  #: left out by the reader's filters
    coverage: Coverage = field(default_factory=Coverage)
    coverage_line: str = ""  #: "complete since Sep 3", "nothing seen between Jun 6 and Sep 11"
    last_published: date | None = None  #: newest paper of the topic, for quiet ones
    url: str | None = None  #: the topic's page
    told_before: int = 0  #: new here too, but an earlier digest told the reader under another topic

    @property
    def new(self) -> int:
        """Papers new in this topic: shown, over the budget, shown above, and told before under another topic."""
        return len(self.papers) + len(self.rest) + self.above + self.told_before


@dataclass(frozen=True, slots=True)
class TaggedPaper:
    """An older paper that came to a followed topic late."""

    topic: Topic
    paper: DigestPaper


@dataclass(frozen=True, slots=True)
class RevisedPaper:
    """A paper told before whose title or abstract really changed, or which was withdrawn."""

    paper: DigestPaper
    revision: Revision
    line: str  #: what changed, one line


@dataclass(frozen=True, slots=True)
class Digest:
    """What one subscription is told at one time."""

    name: str  #: "Agent Papers Weekly"
    since: date  #: first day of the news
    until: date  #: last day of the news
    sections: tuple[Section, ...]  #: in the reader's order, quiet topics too
    tagged: tuple[TaggedPaper, ...] = ()
    revised: tuple[RevisedPaper, ...] = ()
    withdrawn: tuple[RevisedPaper, ...] = ()
    upto: int = 0  #: ledger position that it reaches
    catch_up: str = ""  #: "after your pause since Sep 2": why it covers more than one period; "" if it does not
    welcome: bool = False  #: a reader's first digest
    next_line: str = ""  #: "The next digest comes on Wednesday, Oct 7."; "" if unknown
    why_line: str = ""  #: "You get this mail because you follow three topics here, weekly on Wednesdays."
    language: str = "en"
    tagged_rest: tuple[TaggedPaper, ...] = ()  #: newly tagged as well, over the budget: titles only

    @property
    def new(self) -> int:
        """Different papers that are new in this digest."""
        return sum(len(section.papers) + len(section.rest) for section in self.sections)


@dataclass(frozen=True, slots=True)
class Links:
    """Web addresses that a rendered digest may use; None where the service has no base_url: the link is left out."""

    online: str | None = None
    preferences: str | None = None
    unsubscribe: str | None = None
    feed: str | None = None
    more: str | None = None  #: the digest's own page, for "5 more online"


@dataclass(frozen=True, slots=True)
class NewsItem:
    """One sighting in the stretch of the ledger that a digest covers."""

    position: int
    kind: Kind
    known: KnownPaper
    cross_listed: bool = False
    since_follow: bool = (
        False  #: seen after its topic was followed: a first digest tells news of it whatever its limits
    )


@dataclass(frozen=True, slots=True)
class TopicNews:
    """What a digest is composed from for one followed topic."""

    topic: Topic
    momentum: Momentum = field(default_factory=Momentum)  #: chosen between stated and counted
    items: tuple[NewsItem, ...] = ()  #: all sightings in the stretch, filtered ones left out; any order, any kind
    hidden: int = 0  #: sightings that the reader's filters left out
    coverage: Coverage = field(default_factory=Coverage)
    coverage_line: str = ""  #: "" to have it worded from ``coverage``
    last_published: date | None = None
    url: str | None = None  #: the topic's page


@dataclass(frozen=True, slots=True)
class RevisionNews:
    """A revision in the stretch of the ledger that a digest covers."""

    known: KnownPaper
    revision: Revision


@dataclass(frozen=True, slots=True)
class DigestOptions:
    """How much goes in, and what kind of digest it is."""

    papers_per_topic: int = 12
    budget: int = 40  #: papers with a summary in the whole digest
    tagged_shown: int = 5
    all_quiet: bool = False  #: compose a digest even if there is nothing to tell
    welcome: bool = False  #: a first digest: baseline and backfill are told too, within the two limits below
    welcome_latest: int | None = None  #: at most so many papers a topic, the newest
    welcome_since: date | None = None  #: only papers of this day and later
    catch_up: str = ""  #: why the digest covers more than one period; "" if it does not
    language: str = "en"


@dataclass(frozen=True, slots=True)
class DigestRequest:
    """All that compose_digest needs to know."""

    name: str
    since: date
    until: date
    topics: tuple[TopicNews, ...]  #: in the reader's order
    revisions: tuple[RevisionNews, ...] = ()  #: in ledger order
    told: frozenset[int] = frozenset()  #: keys of papers that the reader was told before
    options: DigestOptions = field(default_factory=DigestOptions)
    upto: int = 0  #: ledger position that the digest reaches
    next_line: str = ""
    why_line: str = ""
