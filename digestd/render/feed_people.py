"""Who wrote a paper, as feeds name people. Floor 1. Entry points: ``creator``, ``author_names``."""

from __future__ import annotations

from digestd.model.feed import FeedEntry
from digestd.render.feed_xml import clean_line

#: Names in the one line of RSS.
_CREATORS = 3
#: Names in Atom and JSON Feed, one element each; readers filter by them. Some papers have thousands.
_AUTHORS = 10


def creator(entry: FeedEntry) -> str:
    """Return ``Ana Lima, Bo Chen, Cy Diaz and 13 more, Tide Consortium``; "" if nobody is known."""
    names, more, group = _named(entry, _CREATORS)
    line = ", ".join(names) + (f" and {more} more" if names and more else "")
    return ", ".join(filter(None, (line, group)))


def author_names(entry: FeedEntry) -> tuple[str, ...]:
    """Return one name an author, ten at most, then ``and 13 more``, then the group.

    What is left out is counted, never hidden.
    """
    names, more, group = _named(entry, _AUTHORS)
    rest = (f"and {more} more",) if names and more else ()
    return (*names, *rest, *([group] if group else []))


def _named(entry: FeedEntry, limit: int) -> tuple[tuple[str, ...], int, str]:
    known = tuple(filter(None, map(clean_line, entry.authors)))
    return known[:limit], entry.authors_more + max(0, len(known) - limit), clean_line(entry.group or "")
