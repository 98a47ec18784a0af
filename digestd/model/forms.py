"""What readers write into forms, once it is read. Floor 0."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime

from digestd.model.subscription import Preferences, Reader, Schedule, Weekly


@dataclass(frozen=True, slots=True)
class PendingFollow:
    """A wish to follow topics that waits until the address' reader confirms it."""

    reader: Reader  #: stored
    topics: tuple[str, ...]  #: slugs
    created_at: datetime
    expires_at: datetime
    schedule: Schedule = field(default_factory=Weekly)
    zone: str = "UTC"
    public_id: str = ""  #: random name for links; "": not stored yet
    done_at: datetime | None = None  #: when it was confirmed; None: not yet


@dataclass(frozen=True, slots=True)
class PreferenceFields:
    """The preferences form as it was typed, or as it is filled in for a subscription."""

    topics: tuple[str, ...] = ()  #: slugs
    every: str = ""  #: daily, weekly, monthly, or keep: the schedule stays as it is
    day: str = "mon"  #: of the week
    month_day: str = "1"
    at: str = "07:30"
    zone: str = "UTC"
    include: str = ""  #: rules, one a line
    exclude: str = ""
    format: str = "html"
    budget: str = ""  #: "" for the operator's
    pause: str = ""  #: "2026-12-24", "" for none
    all_quiet: bool = False
    alert: bool = False


@dataclass(frozen=True, slots=True)
class PreferenceChange:
    """What a subscription is to become."""

    topics: tuple[str, ...]  #: slugs, in the reader's order
    schedule: Schedule
    zone: str
    preferences: Preferences
    paused_until: date | None = None
