"""What is known of a source: how to reach it, how the last fetches went, how well it is. Floor 0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, tzinfo
from enum import StrEnum

from digestd.model.snapshot import Document, Gap


@dataclass(frozen=True, slots=True)
class Calendar:
    """When a source rests and when its next batch is due."""

    zone: tzinfo = UTC  #: whose days count
    due_by: time = time(2, 0)  #: until when a working day's batch is out
    rest_days: frozenset[int] = frozenset({5, 6})  #: weekdays without a batch, Monday is 0
    holidays: Mapping[date, str] = field(default_factory=dict, hash=False)  #: day to its name, "" for none


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """A source as the operator configured it."""

    name: str  #: unique, shown in status
    location: str  #: URL, or the path of a folder
    kind: str = "http"  #: key of SOURCES
    topic: str | None = None  #: topic name for sources that name none
    interval_s: int = 3600  #: wanted time between two polls
    min_interval_s: int = 1800  #: floor of every wait, also across restarts and after failures
    max_bytes: int = 5_000_000  #: cap on the body, after decoding
    deadline_s: float = 60.0  #: one fetch with all its redirects, waiting for a busy host left out
    connect_s: float = 10.0  #: name look-up, connection and TLS of one hop
    header_s: float = 20.0  #: from the request to the end of the response headers, one hop
    read_s: float = 15.0  #: longest silence within a body
    page_url: str | None = None  #: template of the listing's further pages: "https://host/list?page={page}"
    max_pages: int = 5  #: how many pages of a listing are walked at most, the first one included
    daily: bool = False  #: whether a new batch is due on each working day (announcement feeds)
    calendar: Calendar = Calendar()  #: when it rests
    settle_s: float = 5.0  #: folders: how long a file stands still before it is complete
    done: str = "move"  #: folders: "move" read files to done/YYYY-MM/, or "keep" them where they are


class OutcomeKind(StrEnum):
    """How a fetch ended."""

    OK = "ok"  #: a document arrived
    NOT_MODIFIED = "not_modified"  #: the server says that nothing changed
    GONE = "gone"  #: 410: never ask again
    REFUSED = "refused"  #: an address, port or scheme that we do not connect to
    FAILED = "failed"  #: everything else; will be tried again


class FailKind(StrEnum):
    """What went wrong with a fetch."""

    ADDRESS = "address"  #: refused address, port or scheme
    NAME = "name"  #: host name unknown
    CONNECT = "connect"  #: no connection, or it broke
    TLS = "tls"  #: certificate or handshake
    TIMEOUT = "timeout"  #: connection, headers or body took too long
    TOO_BIG = "too_big"  #: more bytes than the cap, before or after decoding
    ENCODING = "encoding"  #: content coding that is unknown, nested or damaged
    PROTOCOL = "protocol"  #: not HTTP, or HTTP that contradicts itself
    REDIRECT_LOOP = "redirect_loop"
    REDIRECTS = "redirects"  #: too many redirects, or one that leads nowhere
    BUSY = "busy"  #: 429 or 503
    SERVER = "server"  #: other 5xx
    STATUS = "status"  #: any other status that brings no document
    EMPTY = "empty"  #: a body of no bytes
    GONE = "gone"
    FILE = "file"  #: folders: not a regular file, damaged, or it changed while it was read


@dataclass(frozen=True, slots=True)
class FetchState:
    """What is kept of one source between fetches, also across restarts.

    Validators are opaque: kept as the server sent them, Latin-1, and sent back unchanged.
    """

    location: str | None = None  #: the configured location that this state belongs to
    url: str | None = None  #: where it lives now, after permanent redirects; None: at ``location``
    validated_url: str | None = None  #: which URL gave the validators
    etag: str | None = None
    last_modified: str | None = None
    moved_to: str | None = None  #: where permanent redirects led lately
    moved_count: int = 0  #: how often in a row they led there
    fail_count: int = 0  #: failures in a row
    failing_since: datetime | None = None
    last_ok_at: datetime | None = None  #: last document or "not modified"
    last_try_at: datetime | None = None
    next_try_at: datetime | None = None  #: None: at once
    gone: bool = False  #: 410 was answered: not asked again until ``location`` changes
    last_error: str | None = None
    walk_open: bool = False  #: the last walk down the listing broke off above what was known, and is to be made again


class FileFate(StrEnum):
    """What became of a file of a watched folder; each has exactly one."""

    DONE = "done"  #: read and recorded
    DUPLICATE = "duplicate"  #: read, and the history had it all
    QUARANTINED = "quarantined"  #: could not be read; read again, it may get another fate


@dataclass(frozen=True, slots=True)
class FileMark:
    """By which a file is known again, also after it was put away under another name."""

    inode: int
    size: int
    mtime_ns: int
    name: str = ""  #: as it was found
    sha256: str | None = None  #: of its bytes as they lie there; None: they could not be read

    @property
    def version(self) -> tuple[int, int, int]:
        """What is the same until somebody changes the file: its name, its place and its device may be others."""
        return self.inode, self.size, self.mtime_ns


@dataclass(frozen=True, slots=True)
class ShelvedFile:
    """A file in one of the places where a watched folder's files are put away."""

    quarantined: bool
    path: str
    mark: FileMark  #: without a hash
    moved_at: datetime  #: since when it is there


@dataclass(frozen=True, slots=True)
class FetchOutcome:
    """What came of one fetch.

    ``state`` is what to store if the document was also read and recorded; if it was not, store
    ``polling.reject_document(...)`` instead, so that validators and redirects of a page that nobody could read are not kept.
    """

    kind: OutcomeKind
    state: FetchState
    url: str = ""  #: where the answer came from, passwords left out
    document: Document | None = None  #: of OK
    fail: FailKind | None = None  #: of GONE, REFUSED and FAILED
    why: str = ""  #: words for people, empty for OK and NOT_MODIFIED
    status: int | None = None  #: last HTTP status seen
    moved_to: str | None = None  #: the stored URL was rewritten to this one by this fetch
    file: FileMark | None = None  #: of a file in a folder


class HealthState(StrEnum):
    """How well a source is, best first."""

    OK = "ok"
    QUIET = "quiet"  #: valid and empty, for a reason
    STALE = "stale"  #: an earlier batch was served again on a working day
    GAP = "gap"  #: dates that no page has shown
    NOT_A_TOPIC_PAGE = "not_a_topic_page"  #: something arrives, but no parser knows it
    BROKEN = "broken"  #: cannot be fetched or read


@dataclass(frozen=True, slots=True)
class Poll:
    """One poll of a source and what came of it; the history that health is judged by."""

    at: datetime
    outcome: OutcomeKind
    why: str = ""  #: of a failed fetch or of a page that could not be read
    papers: int | None = None  #: papers on the page; None: no page was read
    batch: str | None = None  #: print of the papers shown, their order and the page's dates left out
    issued: date | None = None  #: the day that the source says it was made
    quiet_reason: str | None = None  #: as the page says it
    gaps: tuple[Gap, ...] = ()  #: holes of the topic's listing after this page
    unreadable: bool = False  #: a document arrived and could not be read: error page, damaged, cut
    unknown_format: bool = False  #: a document arrived that no parser knows
    topic: str | None = None  #: slug of the topic that the page was recorded in
    body: str | None = None  #: hash of the document's bytes; the same bytes need not be read again
    raw: str | None = None  #: hash by which the history knows what was fetched, of a walk that of all its pages
    ttl_s: int | None = None  #: how long the page asks not to be read again


@dataclass(frozen=True, slots=True)
class SourceHealth:
    """How well a source is, with the reason."""

    state: HealthState
    since: datetime | None = None  #: when this state began; None: never polled
    why: str = ""  #: words for people, empty for OK
    next_try_at: datetime | None = None
    gaps: tuple[Gap, ...] = ()  #: of GAP
