"""``digestd import``: a history made of an export. Floor 5."""

from __future__ import annotations

from pathlib import Path

import click

from digestd.cli.backup import rows_in_words
from digestd.cli.common import Shared, say, shared_options


@click.command("import")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@click.option(
    "--no-hold", is_flag=True, help="Send what waited when it was exported, though it may have been sent since."
)
@shared_options
def command(shared: Shared, file: Path, no_hold: bool) -> int:
    """Make a history of what 'digestd export' wrote; - reads standard input.

    There must be none yet. Mail that waited is held until 'digestd outbox retry', as after 'digestd restore'.
    """
    with shared.app() as app:
        done = app.import_history(file, hold=not no_hold)
    say(f"{done.path}: imported, {rows_in_words(done.rows)}")
    if done.held:
        say(f"{done.held} deliveries are held: 'digestd outbox list --state failed' shows them, 'outbox retry' sends")
    return 0
