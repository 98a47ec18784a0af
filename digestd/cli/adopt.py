"""``digestd adopt``: this machine is where the history is at work now. Floor 5."""

from __future__ import annotations

import click

from digestd.cli.common import Shared, say, shared_options


@click.command("adopt")
@click.option("--hold", is_flag=True, help="Hold what waits in the outbox: it may have been sent by the other machine.")
@shared_options
def command(shared: Shared, hold: bool) -> int:
    """Say that this machine is where the history is at work now.

    A history that finds itself on another machine than before sends nothing, because a copy would tell every reader twice.
    Stop digestd on the other machine for good, then adopt the history here. With --hold, what waits stays until
    'digestd outbox retry' sends it.
    """
    with shared.app() as app:
        held, moved = app.adopt(hold=hold)
    say("the history is at home here now" if moved else "the history was at home here already")
    if held:
        say(f"{held} deliveries are held: 'digestd outbox list --state failed' shows them, 'outbox retry' sends")
    return 0
