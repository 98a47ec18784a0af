"""``digestd restore``: a backup in place of the history. Floor 5."""

from __future__ import annotations

from pathlib import Path

import click

from digestd.cli.backup import rows_in_words
from digestd.cli.common import Shared, json_option, say, say_json, shared_options


@click.command("restore")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--no-hold", is_flag=True, help="Send what waited in the backup, though it may have been sent since.")
@json_option
@shared_options
def command(shared: Shared, file: Path, no_hold: bool, as_json: bool) -> int:
    """Put a backup in place of the history, which is kept under a numbered name.

    Stop digestd first. A backup does not know what was sent after it was made: mail that waits in it is held until
    'digestd outbox retry', and who left since then follows again.
    """
    with shared.app() as app:
        done = app.restore(file, hold=not no_hold)
    if as_json:
        say_json(
            {
                "file": str(file),
                "history": str(done.path),
                "kept": str(done.kept) if done.kept is not None else None,
                "held": done.held,
                "rows": dict(done.rows),
            }
        )
        return 0
    say(f"{done.path}: restored, {rows_in_words(done.rows)}")
    if done.kept is not None:
        say(f"the replaced history is {done.kept}")
    if done.held:
        say(f"{done.held} deliveries are held: 'digestd outbox list --state failed' shows them, 'outbox retry' sends")
    return 0
