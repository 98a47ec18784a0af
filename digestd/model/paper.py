"""A work, as a page shows it and as the history knows it. Floor 0."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime


@dataclass(frozen=True, slots=True, order=True)
class PaperId:
    """One name of a paper in a scheme; a paper may have many, an id names one paper.

    Schemes: ``arxiv`` (number without version), ``doi`` (lower case), ``url`` (normalised link), ``guid`` (a feed's own
    entry id, prefixed by the feed's host), ``title`` (title print and first author key), and those of JSON sources
    (``openalex``, ``s2``, ``openreview``).
    """

    scheme: str
    value: str

    def __str__(self) -> str:
        return f"{self.scheme}:{self.value}"


@dataclass(frozen=True, slots=True)
class Paper:
    """A paper as one page shows it (SNAPSHOT.md, "A paper")."""

    title: str  #: readable, one line, never empty
    title_raw: str = ""  #: as the source has it, white space folded; "" means the same as title
    published: date | None = None  #: None if missing, impossible or in the far future
    published_at: datetime | None = None  #: where the source has a time
    categories: tuple[str, ...] = ()  #: primary first
    abstract: str | None = None  #: readable, torn paragraphs joined
    abstract_raw: str | None = None  #: joined, LaTeX as it stands
    authors: tuple[str, ...] = ()  #: displayed names, in order
    authors_more: int = 0  #: the printed "+N"
    group: str | None = None  #: a consortium or collaboration
    affiliations: tuple[str, ...] = ()  #: cleaned
    affiliations_more: int = 0  #: the printed "+N"
    topics: tuple[str, ...] = ()  #: labels, in order, the page's own topic included
    topics_more: int = 0  #: the printed "+N"
    topics_unparsed: str | None = None  #: the run of labels that could not be cut
    links: tuple[str, ...] = ()  #: absolute, http or https
    ids: tuple[PaperId, ...] = ()  #: as the source names it; identity.py adds those of links and title
    version: int | None = None  #: arXiv version
    announce: str | None = None  #: new, cross, replace, replace-cross
    withdrawn: bool = False  #: the source says that the paper was withdrawn
    warnings: tuple[str, ...] = ()  #: what was repaired or left out, with the line


@dataclass(frozen=True, slots=True)
class KnownPaper:
    """A paper of the history."""

    key: int  #: the history's own number, never changed, never given twice
    paper: Paper  #: the newest record, fields of all sources joined
    first_seen_at: datetime  #: when the first snapshot that shows it was fetched
    ids: tuple[PaperId, ...] = ()  #: all names known, title prints included
    counted: bool = True  #: False if only ever announced as a replacement: known, never told, never in momentum
    revised_at: datetime | None = None  #: last real change of title or abstract
    public_id: str = ""  #: short name for feeds and pages, never changed; not made of link or version

    @property
    def effective_at(self) -> datetime:
        """The instant to sort by: the source's own time, else midnight UTC of its date, else when it was first seen."""
        if self.paper.published_at is not None:
            return self.paper.published_at
        if self.paper.published is not None:
            return datetime.combine(self.paper.published, datetime.min.time(), self.first_seen_at.tzinfo)
        return self.first_seen_at


@dataclass(frozen=True, slots=True)
class Revision:
    """What changed on a known paper; kept for ever, told to those who were told of the paper."""

    key: int  #: the paper's key in the history
    changes: tuple[tuple[str, str, str], ...]  #: (field, before, after); fields: title, abstract, withdrawn
    told: bool = field(default=True)  #: False for changes that are only spelling of white space, dashes, markup
