"""Who wrote a paper, as feeds name people. Floor 1. Entry points: ``creator``, ``author_names``."""

from __future__ import annotations

from digestd.model.feed import FeedEntry
from digestd.render.feed_xml import clean_line

#: Names in the one line of RSS.
_CREATORS = 3
#: Names in Atom and JSON Feed, one element each; readers filter by them. Some papers have thousands.
_AUTHORS = 10


def creator(entry: FeedEntry) -> str:
    """Return ``Ana Lima, Bo Chen, Cy Diaz and 13 more``; "" if nobody is known."""
    names, more = _named(entry, _CREATORS)
    line = ", ".join(names)
    return f"{line} and {more} more" if line and more else line


def author_names(entry: FeedEntry) -> tuple[str, ...]:
    """Return one name an author, ten at most, then ``and 13 more``: what is left out is counted, never hidden."""
    names, more = _named(entry, _AUTHORS)
    return (*names, f"and {more} more") if names and more else names


def _named(entry: FeedEntry, limit: int) -> tuple[tuple[str, ...], int]:
    known = tuple(filter(None, map(clean_line, (*([entry.group] if entry.group else []), *entry.authors))))
    return known[:limit], entry.authors_more + max(0, len(known) - limit)
