"""When a topic starts to rise or to cool: what was announced, and what would be next. Floor 0."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime

from digestd.model.digest import Momentum, Trend
from digestd.model.topic import Topic


@dataclass(frozen=True, slots=True)
class TrendState:
    """What was announced last of a topic."""

    topic: str  #: slug
    trend: Trend = Trend.STEADY  #: UP or DOWN: announced, and not over; STEADY: the next rise or fall is a turn
    turns: int = 0  #: turns so far; the number of the last one


@dataclass(frozen=True, slots=True)
class Turn:
    """A topic started to rise or to cool; kept for ever as it was then."""

    topic: str  #: slug
    number: int  #: 1, 2, ... within the topic, never given twice
    trend: Trend  #: UP or DOWN
    at: datetime  #: when it was found
    as_of: date  #: last day that the figures include
    momentum: Momentum = field(default_factory=Momentum)  #: the figures it rests on, without weeks

    @property
    def key(self) -> str:
        """Name of the turn, unique for ever: "reef-sound|3"."""
        return f"{self.topic}|{self.number}"


@dataclass(frozen=True, slots=True)
class Alert:
    """A turn as one mail tells it."""

    name: str  #: of the digests
    topic: Topic
    turn: Turn
    coverage_line: str = ""
    url: str | None = None  #: the topic's page
    language: str = "en"
