"""A list of feeds as feed readers exchange it. Floor 0."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Outline:
    """A feed, or a folder of feeds and folders."""

    title: str  #: as the list names it, one line
    url: str = ""  #: address of the feed; "" for a folder
    home: str | None = None  #: the page that the feed belongs to
    children: tuple[Outline, ...] = ()  #: of a folder, in order, may be empty


@dataclass(frozen=True, slots=True)
class Outlines:
    """A whole list."""

    title: str = ""
    entries: tuple[Outline, ...] = ()


@dataclass(frozen=True, slots=True)
class ListedFeed:
    """A feed of a list and where it stands there; with no address, a folder or the list itself."""

    folder: tuple[str, ...]  #: names of the folders around it, outermost first; a folder's own name is the last
    title: str
    url: str = ""
    home: str | None = None


@dataclass(frozen=True, slots=True)
class ReadOutlines:
    """What was read of a list."""

    outlines: Outlines
    skipped: tuple[str, ...] = ()  #: what was left out, and why
