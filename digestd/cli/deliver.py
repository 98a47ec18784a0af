"""``digestd deliver``: the outbox to the relay. Floor 5."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from digestd.cli.common import MOST, Shared, instant_text, json_option, say, say_json, shared_options

if TYPE_CHECKING:
    from digestd.flows.deliver import Delivered

#: the relay was down: try again later (EX_TEMPFAIL, sysexits.h)
EXIT_TEMPORARY = 75


@click.command("deliver")
@click.option("--limit", type=click.IntRange(1, MOST), default=None, metavar="N", help="At most so many mails.")
@json_option
@shared_options
def command(shared: Shared, limit: int | None, as_json: bool) -> int:
    """Send what is due in the outbox, each mail once.

    Exit status 75 if the relay could not be used; what was not sent stays in the outbox.
    """
    from digestd.flows.deliver import deliver

    with shared.app() as app:

        async def send() -> Delivered:
            async with app.sending() as channel:
                return await deliver(app.store, channel, app.clock, app.deliver_options, most=limit or 0)

        done = asyncio.run(send())
    if as_json:
        say_json(
            {
                **{str(state): count for state, count in sorted(done.states.items())},
                "reaped": done.reaped,
                "resent": done.resent,
                "paused": done.paused or None,
                "relay_down": done.relay_down or None,
                "retry_at": instant_text(done.retry_at),
            }
        )
    else:
        say(", ".join(f"{count} {state}" for state, count in sorted(done.states.items())) or "nothing was due")
    if done.relay_down:
        click.echo(f"digestd: mail relay: {done.relay_down}", err=True)
        click.echo("         what was not sent stays in the outbox", err=True)
        return EXIT_TEMPORARY
    return 0
