"""Feeds out: what goes in, and the one document that RSS, Atom and JSON Feed are written from. Floor 0."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from digestd.model.digest import Digest
from digestd.model.paper import Paper
from digestd.model.snapshot import Kind


class FeedFormat(StrEnum):
    """A format that feeds are written in."""

    RSS = "rss"
    ATOM = "atom"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class FeedUrls:
    """Where the same document is served in each format; None: not served, or the address is not known."""

    rss: str | None = None
    atom: str | None = None
    json: str | None = None

    def get(self, kind: FeedFormat) -> str | None:
        """Return the address of one format."""
        return {FeedFormat.RSS: self.rss, FeedFormat.ATOM: self.atom, FeedFormat.JSON: self.json}[kind]


@dataclass(frozen=True, slots=True)
class FeedSite:
    """What all feeds of one service share."""

    name: str  #: "Agent Papers"
    authority: str  #: domain or mail address that all ids are made under (RFC 4151); a stored setting, never base_url
    since: str = "2026"  #: a date on which the authority was the operator's: "2026", "2026-09" or "2026-09-30"
    language: str = "en"
    hub: str | None = None  #: WebSub hub
    ttl_minutes: int = 60  #: how long a reader may wait before it looks again


@dataclass(frozen=True, slots=True)
class FeedPlace:
    """Where one feed and its page are; everything may be unknown, then the links are left out."""

    home: str | None = None  #: the page that the feed belongs to
    listing: str | None = None  #: the source's own page of the topic, used where there is no page of ours
    urls: FeedUrls = field(default_factory=FeedUrls)


@dataclass(frozen=True, slots=True)
class FeedPaper:
    """A paper as one topic's feed tells it."""

    public_id: str  #: permanent public name of the paper ("7f3a"); never its link, never its version
    paper: Paper
    kind: Kind
    effective_at: datetime  #: when it was published, as well as we know
    seen_at: datetime  #: when it was first seen in the topic
    revised_at: datetime | None = None  #: last real change of title or abstract
    summary: str = ""  #: whole sentences of the abstract
    people: str = ""  #: "Ana Lima, Bo Chen, Cy Diaz +13"
    affiliations: str = ""  #: "Institute of Tides, Harbour University +2"
    url: str | None = None  #: where the title leads; None: the paper's own first link, if it has one
    headline: str = ""  #: the topic's momentum when the paper was told; "" if it was not kept


@dataclass(frozen=True, slots=True)
class FeedRevision:
    """A change of a known paper, as the feed of revisions tells it."""

    paper: FeedPaper
    number: int  #: the history's own number of the revision, never given twice
    changed_at: datetime
    line: str  #: what changed, one line
    withdrawn: bool = False


@dataclass(frozen=True, slots=True)
class FeedDigest:
    """A digest as a feed of digests tells it."""

    public_id: str  #: permanent, "k7Qx/2026-09-30": subscription and slot
    digest: Digest
    subject: str  #: "Reef Sound up 145%, 20 new papers"
    period: str  #: "Sep 23–29"
    preheader: str  #: what the subject did not say
    made_at: datetime
    url: str | None = None


@dataclass(frozen=True, slots=True)
class FeedEntry:
    """One entry, ready to be written; text is plain, only ``content_html`` is markup."""

    id: str  #: tag: URI, never changed
    title: str
    published: datetime
    updated: datetime
    content_html: str  #: p br a em h3 ul li; absolute http and https links
    content_text: str
    url: str | None = None
    summary: str = ""
    authors: tuple[str, ...] = ()  #: displayed names, in order
    authors_more: int = 0  #: the source's own +N
    group: str | None = None  #: a consortium or collaboration
    categories: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Feed:
    """One feed document of any format; ``entries`` come in the order in which they are written."""

    id: str  #: tag: URI, never changed
    title: str
    subtitle: str  #: what the feed holds; the same for ever
    updated: datetime  #: newest change, never the time of writing
    site: FeedSite
    place: FeedPlace = field(default_factory=FeedPlace)
    entries: tuple[FeedEntry, ...] = ()
    note: str = ""  #: the present momentum in words; not in archive documents, which stay as they are
    archive: bool = False  #: an archive document (RFC 5005 4): its set of entries never changes
    current: FeedUrls = field(default_factory=FeedUrls)  #: of an archive document: the feed it belongs to
    older: FeedUrls = field(default_factory=FeedUrls)  #: prev-archive
    newer: FeedUrls = field(default_factory=FeedUrls)  #: next-archive, of an archive document that has one


@dataclass(frozen=True, slots=True)
class FeedListing:
    """A feed as an OPML list names it."""

    title: str
    url: str
    home: str | None = None
    description: str = ""
