"""What keeps digestd from its work, for its operator; and what was counted. Floor 0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Trouble:
    """Something that is not well now."""

    name: str  #: the same as long as it lasts: "source Reefs", "relay", "audit"
    why: str  #: in words, of one line
    is_mail: bool = False  #: mail itself does not go out, so that no mail can tell of it


@dataclass(frozen=True, slots=True)
class KnownTrouble:
    """A trouble as it is kept, from its beginning until its end was told."""

    trouble: Trouble
    since: datetime
    told_at: datetime | None = None  #: when the operator was told of it last; None: not yet
    mended_at: datetime | None = None  #: it is over, and its end was not told yet


@dataclass(frozen=True, slots=True)
class Sign:
    """When something went well last, and what it found."""

    at: datetime
    value: int = 0


@dataclass(frozen=True, slots=True)
class Tally:
    """How much a history has seen: rows that are only ever added, counted up to a place in each table."""

    sightings: Mapping[str, int] = field(default_factory=dict)  #: kind, or revision, to number
    digests: Mapping[str, int] = field(default_factory=dict)  #: mailed and silent (nothing left to tell) to number
    attempts: Mapping[str, int] = field(default_factory=dict)  #: outcome of hand-overs to number
    upto: tuple[int, int, int] = (0, 0, 0)  #: the last ledger row, digest and attempt that are counted
