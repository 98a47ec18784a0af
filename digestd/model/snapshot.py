"""Documents, pages, what a page adds to the history. Floor 0."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum

from digestd.model.paper import KnownPaper, Paper, PaperId, Revision

#: what is said of an empty feed that gives no reason itself
EMPTY_FEED = "empty feed"


@dataclass(frozen=True, slots=True)
class Document:
    """Bytes as fetched."""

    body: bytes
    origin: str | None = None  #: URL or file it came from; base of relative links
    media_type: str | None = None  #: "text/html; charset=utf-8" as the server said, None for files
    fetched_at: datetime | None = None  #: UTC
    name: str | None = None  #: file name, a hint for the format only


class Order(StrEnum):
    """What the order of a page's papers says."""

    LISTING = "listing"  #: an unbroken stretch of a listing, newest first
    FEED = "feed"  #: unordered, says nothing about coverage


@dataclass(frozen=True, slots=True)
class StatedMomentum:
    """How a topic moves, as the source states it; never computed by us."""

    papers_last_four_weeks: int
    change_percent: int | None = None  #: signed; None for "up from none" and the like
    previous_papers: int | None = None  #: only where the source prints it ("up from none": 0)
    share_percent: float | None = None  #: of all new papers
    share_below: bool = False  #: True for "under 0.1%"
    chart_from: date | None = None  #: Monday of the chart's first week
    chart_to: date | None = None  #: Monday of the chart's last week
    sentence: str = ""  #: as printed
    weekly: tuple[int, ...] = ()  #: papers a week, oldest first, where the source prints them; else empty


@dataclass(frozen=True, slots=True)
class Page:
    """What a parser reads from a document."""

    topic: str | None  #: None where the source names none (a feed has a title, not a topic)
    papers: tuple[Paper, ...]  #: listing order, may be empty
    order: Order = Order.LISTING
    gloss: str | None = None
    title: str | None = None  #: a feed's own title, one line
    origin: str | None = None
    observed_at: datetime | None = None  #: when the source says it was made or fetched
    momentum: StatedMomentum | None = None
    total_papers: int | None = None
    incomplete: bool = False  #: the page was cut: papers that it should show are missing
    quiet_reason: str | None = None  #: why a valid page is empty ("skip day: Saturday"), None if unknown or not empty
    ttl_s: int | None = None  #: how long the source asks not to be read again
    format: str = "listing"  #: name of the parser in PARSERS
    warnings: tuple[str, ...] = ()
    unread: int = 0  #: papers that it shows besides, not read again because the source showed them before


class Kind(StrEnum):
    """Why a paper is seen in a topic for the first time (DESIGN §4)."""

    BASELINE = "baseline"
    NEW = "new"
    NEWLY_TAGGED = "newly_tagged"
    BACKFILL = "backfill"


@dataclass(frozen=True, slots=True)
class Stretch:
    """Dates of a topic's listing that snapshots have shown without a hole, both edge days in part."""

    since: date  #: published date of the oldest paper shown
    until: date  #: published date of the newest paper shown
    key: int | None = None  #: the history's number of it; None: not stored yet
    total: int | None = None  #: listing's total when its newest page was fetched
    seen_at: datetime | None = None  #: when its newest page was fetched
    open_below: bool = False  #: its oldest page was cut: what follows below belongs to the same page

    def covers(self, day: date) -> bool:
        """Whether all papers of the day were shown; the edge days were shown only in part."""
        return self.since < day < self.until


@dataclass(frozen=True, slots=True)
class TopicState:
    """What the history knows of one topic before a page is held against it."""

    slug: str
    start: date | None = None  #: newest published date of the topic's first snapshot; None: none had a date
    started: bool = False  #: whether a first snapshot (or a first follow) has given a baseline
    stretches: tuple[Stretch, ...] = ()  #: newest first, disjoint
    sighted: frozenset[int] = frozenset()  #: keys, of the papers asked for, that were sighted in this topic
    stretch_of: tuple[
        tuple[int, int], ...
    ] = ()  #: (paper key, stretch key) of the papers asked for that a listing showed


@dataclass(frozen=True, slots=True)
class Known:
    """What the history knows that matters for one page: the page's topic, its papers, topics of its labels."""

    topic: TopicState
    papers: tuple[KnownPaper, ...] = ()  #: all known papers that share an id or a title print with one of the page
    others: tuple[TopicState, ...] = ()  #: other topics named by labels or rules of the page's papers


@dataclass(frozen=True, slots=True)
class Sighting:
    """The first time a paper is seen in a topic."""

    index: int  #: which paper of the page
    topic: str  #: slug
    kind: Kind
    via: str = "page"  #: page, label or rule
    cross_listed: bool = False


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """One sighting as it stands in the ledger."""

    position: int
    kind: Kind
    topic: str  #: slug
    known: KnownPaper
    seen_at: datetime  #: when the snapshot that showed it was fetched
    via: str = "page"  #: page, label or rule
    cross_listed: bool = False


@dataclass(frozen=True, slots=True)
class PaperIntent:
    """What shall be written of one paper of the page."""

    index: int  #: which paper of the page
    paper: Paper
    ids: tuple[PaperId, ...]  #: all names of it, to be added to the known ones
    key: int | None = None  #: the known paper it is; None: a paper unseen until now
    merge: tuple[int, ...] = ()  #: other known papers that turn out to be the same one
    changed: bool = False  #: whether the stored record gains anything
    counted: bool = True  #: False for a paper only announced as a replacement
    fuzzy: int | None = None  #: similarity in percent where identity was a last-step guess
    record: Paper | None = None  #: what shall stand in the history: the known record and the page's, joined
    twins: tuple[int, ...] = ()  #: other papers of the page that are this one too


@dataclass(frozen=True, slots=True)
class SnapshotDiff:
    """What one page adds to the history; the store writes it in one transaction."""

    papers: tuple[PaperIntent, ...] = ()
    sightings: tuple[Sighting, ...] = ()
    revisions: tuple[Revision, ...] = ()
    stretches: tuple[Stretch, ...] = ()  #: the topic's stretches afterwards; keys of kept ones stay
    merged: tuple[tuple[int, int], ...] = ()  #: (stretch that ends, stretch that takes over)
    page_stretch: int | None = None  #: index in ``stretches`` of the one that this page belongs to
    start: date | None = None  #: the topic's start afterwards
    first: bool = False  #: whether this snapshot gives the topic or source its baseline
    missing: int = 0  #: papers that the totals prove and no page showed
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SnapshotMeta:
    """What is known of a snapshot besides its page."""

    slug: str  #: of the topic it belongs to
    source: str  #: name of the source
    digest: str  #: hash of the page's content
    raw_digest: str  #: hash of the document's bytes
    fetched_at: datetime
    now: datetime  #: when it is recorded


@dataclass(frozen=True, slots=True)
class Gap:
    """Dates of a listing that no snapshot has shown."""

    since: date  #: newest date of the older stretch
    until: date  #: oldest date of the newer stretch


@dataclass(frozen=True, slots=True)
class Coverage:
    """What of a topic's listing has been seen."""

    stretches: tuple[Stretch, ...] = ()  #: newest first
    known: int = 0  #: papers sighted in the topic
    total: int | None = None  #: as the listing said last
    missing: int = 0  #: papers that the totals prove and no page showed

    @property
    def gaps(self) -> tuple[Gap, ...]:
        """The holes between stretches, newest first."""
        pairs = zip(self.stretches, self.stretches[1:], strict=False)
        return tuple(Gap(older.until, newer.since) for newer, older in pairs)


@dataclass(frozen=True, slots=True)
class SeenTitle:
    """A sighting that a snapshot made, for people."""

    kind: Kind
    topic: str  #: slug
    topic_name: str
    via: str  #: page, label or rule
    title: str


@dataclass(frozen=True, slots=True)
class SnapshotRecord:
    """What recording one page did; what ``digestd ingest --json`` prints."""

    snapshot: str  #: hash of the content
    topic: str  #: slug
    topic_name: str
    position: int  #: ledger head afterwards
    unchanged: bool = False
    sightings: tuple[SeenTitle, ...] = ()  #: page order, those in other topics after those in its own
    cross_listed: tuple[str, ...] = ()  #: titles
    revised: tuple[str, ...] = ()  #: titles
    warnings: tuple[str, ...] = ()
    incomplete: bool = False
    coverage: Coverage = field(default_factory=Coverage)
    quiet_reason: str | None = None  #: why a valid page is empty
