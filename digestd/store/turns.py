"""Turns of topics, as a repository over an engine. Floor 3. Entry point: :class:`SqlTurns`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import date
from typing import Any

from digestd.errors import NotFoundError
from digestd.model.digest import Momentum, Trend
from digestd.model.turn import TrendState, Turn
from digestd.store.engine import Engine
from digestd.store.rows import instant, to_instant

#: a turn keeps the figures it rests on; the weeks of a chart are not among them
_LEFT_OUT = frozenset({"weekly", "weekly_from", "partial"})


class SqlTurns:
    """What was announced of topics, in a database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def trend(self, slug: str) -> TrendState | None:
        """Return what was announced last of a topic; None if it was never looked at."""
        return self.trends(slug).get(slug)

    def trends(self, slug: str | None = None) -> Mapping[str, TrendState]:
        """Return what was announced last of topics, by slug; those never looked at are left out."""
        where, args = ("WHERE topic.slug = :slug", {"slug": slug}) if slug is not None else ("", {})
        rows = self._engine.query(
            f"""SELECT topic.slug, trend.trend, trend.turns FROM trend
            JOIN topic ON topic.id = trend.topic_id {where}""",  # noqa: S608 # one of the two clauses above
            args,
        )
        return {row["slug"]: TrendState(row["slug"], Trend(row["trend"]), row["turns"]) for row in rows}

    def put_trend(self, state: TrendState) -> None:
        """Keep what is announced of a topic now."""
        done = self._engine.query(
            """INSERT INTO trend (topic_id, trend, turns) SELECT id, :trend, :turns FROM topic WHERE slug = :slug
            ON CONFLICT (topic_id) DO UPDATE SET trend = excluded.trend, turns = excluded.turns RETURNING topic_id""",
            {"slug": state.topic, "trend": str(state.trend), "turns": state.turns},
        )
        if not done:
            raise NotFoundError(f"topic {state.topic!r}: expected one of the history, found none")

    def add_turn(self, turn: Turn) -> None:
        """Add a turn; AlreadyExistsError if the topic has one of this number."""
        done = self._engine.query(
            """INSERT INTO turn (topic_id, number, trend, at, as_of, momentum)
            SELECT id, :number, :trend, :at, :as_of, :momentum FROM topic WHERE slug = :slug RETURNING id""",
            {
                "slug": turn.topic,
                "number": turn.number,
                "trend": str(turn.trend),
                "at": instant(turn.at),
                "as_of": turn.as_of.isoformat(),
                "momentum": _text(turn.momentum),
            },
        )
        if not done:
            raise NotFoundError(f"topic {turn.topic!r}: expected one of the history, found none")

    def turns(self, slug: str | None = None, *, limit: int = 100) -> Sequence[Turn]:
        """Return the newest turns, of one topic or of all, newest first."""
        where, args = ("WHERE topic.slug = :slug", {"slug": slug}) if slug is not None else ("", {})
        rows = self._engine.query(
            f"""SELECT turn.*, topic.slug FROM turn JOIN topic ON topic.id = turn.topic_id {where}
            ORDER BY turn.id DESC LIMIT :limit""",  # noqa: S608 # as above
            args | {"limit": limit},
        )
        return [_to_turn(row) for row in rows]


def _text(momentum: Momentum) -> str:
    """Return figures as JSON text; fields at their default are left out, so that new fields change no old row."""
    record = {
        field.name: value
        for field in fields(momentum)
        if field.name not in _LEFT_OUT and (value := getattr(momentum, field.name)) != field.default
    }
    return json.dumps(record)


def _to_turn(row: Mapping[str, Any]) -> Turn:
    record: dict[str, Any] = json.loads(row["momentum"])
    if "interval" in record:
        record["interval"] = tuple(record["interval"])
    return Turn(
        topic=row["slug"],
        number=row["number"],
        trend=Trend(row["trend"]),
        at=to_instant(row["at"]),
        as_of=date.fromisoformat(row["as_of"]),
        momentum=Momentum(**record),
    )
