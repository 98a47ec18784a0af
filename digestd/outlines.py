"""Lists of feeds: flat and nested, two as one, without some. Floor 1, pure.

Entry points: :func:`flat_list`, :func:`nest`, :func:`merge`, :func:`without`, :func:`feeds_of`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from digestd.model.opml import ListedFeed, Outline, Outlines


@dataclass(slots=True)
class _Folder:
    """A folder while a list is put together."""

    title: str
    entries: list[Outline | _Folder] = field(default_factory=list)
    folders: dict[str, _Folder] = field(default_factory=dict)
    feeds: dict[str, int] = field(default_factory=dict)  #: address -> place among the entries

    def inner(self, title: str) -> _Folder:
        """Return the folder of this name in it, made if it is not there."""
        if title not in self.folders:
            self.folders[title] = _Folder(title)
            self.entries.append(self.folders[title])
        return self.folders[title]

    def put(self, feed: Outline) -> None:
        """Add a feed, or give the one of this address the new title and page."""
        if feed.url in self.feeds:
            self.entries[self.feeds[feed.url]] = feed
        else:
            self.feeds[feed.url] = len(self.entries)
            self.entries.append(feed)

    def outlines(self) -> tuple[Outline, ...]:
        """Return what is in it."""
        return tuple(
            Outline(entry.title, children=entry.outlines()) if isinstance(entry, _Folder) else entry
            for entry in self.entries
        )


def flat_list(outlines: Outlines) -> tuple[ListedFeed, ...]:
    """Return a list's feeds and folders in order, the list itself first."""

    def walk(entries: Sequence[Outline], folder: tuple[str, ...]) -> Iterator[ListedFeed]:
        for entry in entries:
            if entry.url:
                yield ListedFeed(folder, entry.title, entry.url, entry.home)
            else:
                inside = (*folder, entry.title)
                yield ListedFeed(inside, entry.title)
                yield from walk(entry.children, inside)

    return (ListedFeed((), outlines.title), *walk(outlines.entries, ()))


def nest(feeds: Iterable[ListedFeed]) -> Outlines:
    """Return the list that these feeds and folders make.

    Folders of one name in one place are one folder; of feeds of one address in one folder the last one counts.
    """
    top = _Folder("")
    for feed in feeds:
        if not feed.url and not feed.folder:
            top.title = feed.title or top.title
            continue
        place = top
        for name in feed.folder:
            place = place.inner(name)
        if feed.url:
            place.put(Outline(feed.title, feed.url, feed.home))
    return Outlines(top.title, top.outlines())


def merge(known: Outlines, added: Outlines) -> Outlines:
    """Return both as one list: what is known stays where it is, with the titles of the added one; the rest follows."""
    return nest((*flat_list(known), *flat_list(added)))


def without(outlines: Outlines, drop: Callable[[ListedFeed], bool]) -> Outlines:
    """Return a list without some of its feeds; its folders stay."""
    return nest(feed for feed in flat_list(outlines) if not feed.url or not drop(feed))


def feeds_of(outlines: Outlines) -> tuple[ListedFeed, ...]:
    """Return the feeds of a list, each address once, where it stands first."""
    found: dict[str, ListedFeed] = {}
    for feed in flat_list(outlines):
        if feed.url:
            found.setdefault(feed.url, feed)
    return tuple(found.values())
