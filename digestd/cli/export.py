"""``digestd export``: everything as JSON Lines. Floor 5."""

from __future__ import annotations

from pathlib import Path

import click

from digestd.cli.common import Shared, shared_options


@click.command("export")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False, allow_dash=True))
@shared_options
def command(shared: Shared, file: Path) -> int:
    """Write everything as JSON Lines, while digestd runs; - writes to standard output.

    It holds the readers' addresses, and the secrets behind the links of their mails, without which these would cease to
    work: FILE can be read by its owner alone.
    """
    with shared.app() as app:
        if str(file) == "-":
            for line in app.export_lines():
                click.echo(line, nl=False)
            return 0
        lines = app.export(file)
    click.echo(f"{file}: {lines:,} lines", err=True)
    return 0
