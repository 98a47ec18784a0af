"""``digestd pause``: no digests until a day. Floor 5."""

from __future__ import annotations

from datetime import date, datetime

import click

from digestd.cli.common import Shared, arguments, say, shared_options
from digestd.cli.follow import when


@click.command("pause")
@click.argument("address", metavar="ADDRESS")
@click.option("--until", type=click.DateTime(["%Y-%m-%d"]), metavar="DATE", help="First day with digests again.")
@click.option("--end", is_flag=True, help="End the pause now.")
@shared_options
def command(shared: Shared, address: str, until: datetime | None, end: bool) -> int:
    """Pause a reader's digests; what comes meanwhile is told in one digest after it."""
    from digestd.addresses import parse_reader
    from digestd.flows.subscribe import pause

    if (until is None) is not end:
        raise click.UsageError("expected --until DATE or --end")
    day: date | None = until.date() if until is not None else None
    with arguments():
        reader = parse_reader(address, allow_local=True)
    with shared.app() as app:
        paused = pause(app.store, reader, day, now=app.now)
    say(f"{address}: {when(paused)}")
    return 0
