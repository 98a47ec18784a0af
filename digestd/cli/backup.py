"""``digestd backup``: a copy of the history. Floor 5."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from digestd.cli.common import Shared, json_option, say, say_json, shared_options

#: table -> what a person calls its rows
_TABLES = {"paper": "papers", "ledger": "sightings", "subscription": "subscriptions", "outbox": "deliveries"}


@click.command("backup")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))
@json_option
@shared_options
def command(shared: Shared, file: Path, as_json: bool) -> int:
    """Copy the history into a file, while digestd runs.

    The copy is held against the history before it replaces an older FILE; it holds addresses, and only its owner can read it.
    """
    with shared.app() as app:
        done = app.back_up(file)
    if as_json:
        say_json({"file": str(file), "bytes": done.size, "rows": dict(done.rows)})
    else:
        say(f"{file}: {done.size:,} bytes, {rows_in_words(done.rows)}, checked")
    return 0


def rows_in_words(rows: Mapping[str, int]) -> str:
    """Return how much a history holds: "90 papers, 1 subscriptions, 1 deliveries"."""
    return ", ".join(f"{rows.get(table, 0):,} {name}" for table, name in _TABLES.items())
