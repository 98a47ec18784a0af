"""``digestd collect``: what the sources have, once. Floor 5."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from digestd.cli.common import Shared, json_option, printable, say, say_json, shared_options
from digestd.cli.ingest import record_json, tell_record
from digestd.errors import DigestdError

if TYPE_CHECKING:
    from digestd.flows.read_source import Collected
    from digestd.wiring import App


@click.command("collect")
@click.option("--source", "names", metavar="NAME", multiple=True, help="Only this source; may be given several times.")
@click.option("--all", "ignore_due", is_flag=True, help="Ask also the sources that are not due yet.")
@json_option
@shared_options
def command(shared: Shared, names: tuple[str, ...], ignore_due: bool, as_json: bool) -> int:
    """Ask the sources once, and say what is new.

    A source is asked when it is due: its interval is over, and the server did not ask us to wait. With --json one object a
    document, as digestd ingest prints it. A source that fails does not stop the others; the exit status is 1 at the end.
    """
    with shared.app() as app:
        if not app.sources:
            click.echo("no sources in the settings; a [[sources]] section names a folder or an address", err=True)
            return 0
        app.room.need()
        return 1 if asyncio.run(_collect(app, names, ignore_due=ignore_due, as_json=as_json)) else 0


async def _collect(app: App, names: tuple[str, ...], *, ignore_due: bool, as_json: bool) -> int:
    from digestd.flows.collect import collect

    def report(found: Collected) -> None:
        report_collected(found, as_json=as_json)

    async with app.watched(names) as watched:
        failed = await collect(app.store, watched, app.collect_options(report, ignore_due=ignore_due))
        for one in watched:
            if one.source.waiting:
                spec = one.source.spec
                words = (
                    f"{one.source.waiting} files in {spec.location} have not stood still for {spec.settle_s:g} s yet"
                )
                click.echo(printable(f"{words}; ask again in a moment"), err=True)
    return failed


def report_collected(found: Collected, *, as_json: bool) -> None:
    """Print what came of one document; in words, what failed stands in the log."""
    if found.result is None:
        if not as_json:
            say(f"{found.source}: nothing has changed there")
    elif as_json:
        say_json({"source": found.source} | record_json(found.origin, found.origin, found.result))
    elif not isinstance(found.result, DigestdError):
        tell_record(found.source, found.result)
