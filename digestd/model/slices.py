"""What is kept of a feed that was read, so that only its new items are read the next time. Floor 0."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KnownSlice:
    """One item of a feed that was read and recorded."""

    bytes_hash: int  #: of the item as it was fetched
    paper: int  #: key of the paper that it is
    record_hash: int  #: of that paper's record, as it stood when the item was recorded
    content: str  #: what the item says, hashed: its part of the page's hash
    title: str  #: name of the paper by its title and first author
    names: tuple[int, ...] = ()  #: hashes of everything by which another item could claim to be the same paper


@dataclass(frozen=True, slots=True)
class KnownFeed:
    """A feed as it was read the last time."""

    head_hash: int  #: of everything outside of its items
    rules_hash: int  #: of what else decides what an item becomes: match rules, the operator's settings
    topic: str  #: slug
    source: str  #: name
    slices: tuple[KnownSlice, ...] = ()
