"""``digestd unfollow``: a reader leaves, wholly or some topics. Floor 5."""

from __future__ import annotations

import click

from digestd.cli.common import Shared, arguments, say, shared_options


@click.command("unfollow")
@click.argument("address", metavar="ADDRESS")
@click.argument("topics", metavar="[TOPIC]...", nargs=-1)
@shared_options
def command(shared: Shared, address: str, topics: tuple[str, ...]) -> int:
    """End a reader's subscription, or take topics from it.

    Nothing more is sent, not even what waits in the outbox. It is remembered that the reader has left.
    """
    from digestd.addresses import parse_reader
    from digestd.flows.subscribe import unfollow

    with arguments():
        reader = parse_reader(address, allow_local=True)
    with shared.app() as app:
        left = unfollow(app.store, reader, topics, now=app.now)
    say(f"{address} has left" if left is None else f"{address} follows {len(left.topics)} topics now")
    return 0
