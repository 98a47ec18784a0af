"""Types to columns and back. Floor 3; only the store sees rows."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from datetime import UTC, date, datetime
from typing import Any

from digestd.model.paper import KnownPaper, Paper, PaperId
from digestd.model.snapshot import StatedMomentum, Stretch
from digestd.model.topic import MatchRule, Topic


def instant(value: datetime) -> str:
    """Return an instant as fixed-width UTC text that sorts: "2026-09-30T06:00:00.000000Z"."""
    # strftime does not fill up years before 1000
    return value.astimezone(UTC).isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def to_instant(text: str) -> datetime:
    """Return the instant that :func:`instant` wrote."""
    return datetime.fromisoformat(text)


def maybe_instant(value: datetime | None) -> str | None:
    """Return an instant as text, None for None."""
    return None if value is None else instant(value)


def maybe_date(text: str | None) -> date | None:
    """Return a date, None for None."""
    return None if text is None else date.fromisoformat(text)


def iso(day: date | None) -> str | None:
    """Return a date as text, None for None."""
    return None if day is None else day.isoformat()


def paper_text(paper: Paper) -> str:
    """Return a record as JSON text; fields at their default are left out, so that new fields change no old row."""
    record: dict[str, Any] = {}
    for field in fields(paper):
        value = getattr(paper, field.name)
        if value == field.default:
            continue
        if isinstance(value, date):
            value = instant(value) if isinstance(value, datetime) else value.isoformat()
        elif field.name == "ids":
            value = [[one.scheme, one.value] for one in value]
        record[field.name] = value
    return json.dumps(record, ensure_ascii=False, separators=(",", ":"))


def to_paper(text: str) -> Paper:
    """Return the record that :func:`paper_text` wrote."""
    record: dict[str, Any] = json.loads(text)
    for name in _TUPLES:
        if name in record:
            record[name] = tuple(record[name])
    if "ids" in record:
        record["ids"] = tuple(PaperId(scheme, value) for scheme, value in record["ids"])
    if "published" in record:
        record["published"] = date.fromisoformat(record["published"])
    if "published_at" in record:
        record["published_at"] = to_instant(record["published_at"])
    return Paper(**record)


_TUPLES = tuple(field.name for field in fields(Paper) if isinstance(field.default, tuple) and field.name != "ids")


def to_known(row: Mapping[str, Any], ids: tuple[PaperId, ...] = ()) -> KnownPaper:
    """Return a paper of the history from its row and names."""
    return KnownPaper(
        key=row["id"],
        paper=to_paper(row["record"]),
        first_seen_at=to_instant(row["first_seen_at"]),
        ids=ids,
        counted=bool(row["counted"]),
        revised_at=to_instant(row["revised_at"]) if row["revised_at"] else None,
        public_id=row["public_id"],
    )


def to_changes(text: str) -> tuple[tuple[str, str, str], ...]:
    """Return what a revision changed from the JSON text of its row."""
    return tuple((field, before, after) for field, before, after in json.loads(text))


def to_name(text: str) -> PaperId:
    """Return a paper id from "scheme:value"."""
    scheme, _, value = text.partition(":")
    return PaperId(scheme, value)


def momentum_text(momentum: StatedMomentum | None) -> str | None:
    """Return a stated momentum as JSON text, None for None."""
    if momentum is None:
        return None
    record = {field.name: getattr(momentum, field.name) for field in fields(momentum)}
    return json.dumps(record | {"chart_from": iso(momentum.chart_from), "chart_to": iso(momentum.chart_to)})


def to_momentum(text: str | None) -> StatedMomentum | None:
    """Return the momentum that :func:`momentum_text` wrote."""
    if text is None:
        return None
    record: dict[str, Any] = json.loads(text)
    record["chart_from"], record["chart_to"] = maybe_date(record["chart_from"]), maybe_date(record["chart_to"])
    record["weekly"] = tuple(record["weekly"])
    return StatedMomentum(**record)


def rule_text(rule: MatchRule | None) -> str | None:
    """Return a match rule as JSON text, None for None."""
    return None if rule is None else json.dumps({field.name: getattr(rule, field.name) for field in fields(rule)})


def to_topic(row: Mapping[str, Any]) -> Topic:
    """Return a topic from its row."""
    rule = None
    if row["rule"] is not None:
        rule = MatchRule(**{name: tuple(values) for name, values in json.loads(row["rule"]).items()})
    return Topic(slug=row["slug"], name=row["name"], gloss=row["gloss"], rule=rule)


def to_stretch(row: Mapping[str, Any]) -> Stretch:
    """Return a stretch from its row."""
    return Stretch(
        since=date.fromisoformat(row["since"]),
        until=date.fromisoformat(row["until"]),
        key=row["id"],
        total=row["total"],
        seen_at=to_instant(row["seen_at"]),
        open_below=bool(row["open_below"]),
    )
