"""Watched sources: what is kept between polls, and the latest polls. Floor 3. Entry point: :class:`SqlSources`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields
from datetime import date, datetime
from typing import Any

from digestd.model.snapshot import Gap
from digestd.model.source import FetchState, FileFate, FileMark, OutcomeKind, Poll
from digestd.store.engine import Engine, chunks, placeholders
from digestd.store.rows import instant, to_instant

#: polls kept of each source: so many that brought a page, and so many that did not. Apart, because a week of "not modified"
#: must not push out the pages that health is judged by.
POLLS_KEPT = 60

_INSTANTS = frozenset({"at", "failing_since", "last_ok_at", "last_try_at", "next_try_at"})


class SqlSources:
    """The watched sources in a database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def state(self, name: str) -> FetchState | None:
        """Return what is kept of a source; None if it was never polled."""
        rows = self._engine.query("SELECT state FROM watched WHERE name = :name", {"name": name})
        return FetchState(**_values(rows[0]["state"])) if rows else None

    def put_state(self, name: str, state: FetchState, *, now: datetime) -> None:
        """Keep the state of a source in place of what was kept before."""
        self._engine.query(
            """INSERT INTO watched (name, state, updated_at) VALUES (:name, :state, :now)
            ON CONFLICT (name) DO UPDATE SET state = excluded.state, updated_at = excluded.updated_at""",
            {"name": name, "state": _text(state), "now": instant(now)},
        )

    def add_poll(self, name: str, poll: Poll) -> None:
        """Add a poll and forget the oldest ones of its sort."""
        args = {"name": name, "paged": int(poll.papers is not None), "kept": POLLS_KEPT}
        self._engine.query(
            "INSERT INTO poll (name, at, paged, record) VALUES (:name, :at, :paged, :record)",
            args | {"at": instant(poll.at), "record": _text(poll)},
        )
        self._engine.query(
            """DELETE FROM poll WHERE name = :name AND paged = :paged AND id <= (
              SELECT id FROM poll WHERE name = :name AND paged = :paged ORDER BY id DESC LIMIT 1 OFFSET :kept)""",
            args,
        )

    def polls(self, name: str) -> Sequence[Poll]:
        """Return the polls kept of a source, oldest first."""
        rows = self._engine.query("SELECT record FROM poll WHERE name = :name ORDER BY id", {"name": name})
        return [_to_poll(row["record"]) for row in rows]

    def put_file(self, name: str, mark: FileMark, fate: FileFate, *, now: datetime) -> None:
        """Keep what became of a file, in place of what was kept of the same one."""
        self._engine.query(
            """INSERT INTO watched_file (source, inode, size, mtime_ns, name, sha256, fate, at)
            VALUES (:source, :inode, :size, :mtime_ns, :name, :sha256, :fate, :now)
            ON CONFLICT (source, inode, size, mtime_ns) DO UPDATE SET sha256 = excluded.sha256, at = excluded.at,
              fate = CASE WHEN excluded.fate = 'duplicate' AND watched_file.fate = 'done' THEN 'done' ELSE excluded.fate END""",
            {
                "source": name,
                "inode": mark.inode,
                "size": mark.size,
                "mtime_ns": mark.mtime_ns,
                "name": mark.name,
                "sha256": mark.sha256,
                "fate": str(fate),
                "now": instant(now),
            },
        )

    def fates(self, name: str, marks: Sequence[FileMark]) -> Mapping[tuple[int, int, int], FileFate]:
        """Return what became of files, by version; those that nothing is kept of are left out."""
        wanted = {mark.version for mark in marks}
        found: dict[tuple[int, int, int], FileFate] = {}
        for part in chunks(sorted({mark.inode for mark in marks})):
            marked, args = placeholders("i", part)
            for row in self._engine.query(
                f"""SELECT inode, size, mtime_ns, fate FROM watched_file
                WHERE source = :source AND inode IN {marked}""",  # noqa: S608 # only numbered parameters are put in
                args | {"source": name},
            ):
                version = (row["inode"], row["size"], row["mtime_ns"])
                if version in wanted:
                    found[version] = FileFate(row["fate"])
        return found

    def fates_of_hash(self, name: str, sha256: str) -> frozenset[FileFate]:
        """Return what became of all files with these bytes."""
        rows = self._engine.query(
            "SELECT DISTINCT fate FROM watched_file WHERE source = :source AND sha256 = :sha256",
            {"source": name, "sha256": sha256},
        )
        return frozenset(FileFate(row["fate"]) for row in rows)

    def files_kept(self, name: str) -> tuple[int, datetime | None]:
        """Return of how many files it is kept what became of them, and since when."""
        row = self._engine.query(
            """SELECT COUNT(*) AS total, (SELECT at FROM watched_file WHERE source = :source ORDER BY id LIMIT 1) AS since
            FROM watched_file WHERE source = :source""",
            {"source": name},
        )[0]
        return row["total"], to_instant(row["since"]) if row["since"] else None


def _text(value: FetchState | Poll) -> str:
    """Return a value as JSON text; fields at their default are left out, so that new fields change no old row."""
    record: dict[str, Any] = {}
    for field in fields(value):
        found = getattr(value, field.name)
        if field.default is not MISSING and found == field.default:
            continue
        match found:
            case datetime():
                found = instant(found)
            case date():
                found = found.isoformat()
            case tuple():
                found = [[gap.since.isoformat(), gap.until.isoformat()] for gap in found]
        record[field.name] = found
    return json.dumps(record, separators=(",", ":"))


def _values(text: str) -> dict[str, Any]:
    found: Mapping[str, Any] = json.loads(text)
    return {name: to_instant(value) if name in _INSTANTS and value else value for name, value in found.items()}


def _to_poll(text: str) -> Poll:
    values = _values(text)
    values["outcome"] = OutcomeKind(values["outcome"])
    if values.get("issued"):
        values["issued"] = date.fromisoformat(values["issued"])
    gaps = [Gap(date.fromisoformat(since), date.fromisoformat(until)) for since, until in values.get("gaps", ())]
    return Poll(**values | {"gaps": tuple(gaps)})
