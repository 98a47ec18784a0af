"""``digestd serve``: pages and feeds in the foreground. Floor 5."""

from __future__ import annotations

import asyncio
import logging
import signal
from typing import TYPE_CHECKING

import click

from digestd.cli.common import Shared, say, shared_options
from digestd.errors import StoreError

if TYPE_CHECKING:
    from digestd.flows.publish import Publisher
    from digestd.wiring import App

log = logging.getLogger(__name__)

#: seconds between two looks at whether the feeds are still true; another process may collect meanwhile
REFRESH_S = 60


@click.command("serve")
@click.option("--host", metavar="ADDRESS", help="Address to listen on.  [default: from the settings]")
@click.option("--port", type=click.IntRange(0, 65535), metavar="N", help="Port to listen on; 0 takes a free one.")
@shared_options
def command(shared: Shared, host: str | None, port: int | None) -> int:
    """Show the pages and feeds until a signal ends it; nothing is collected or mailed meanwhile.

    The daemon (digestd run) shows them too; this is for a look at a history, or for a process of its own.
    """
    with shared.app() as app:
        asyncio.run(_serve(app, host, port))
    return 0


async def _serve(app: App, host: str | None, port: int | None) -> None:
    from digestd.flows.publish import Publisher

    loop = asyncio.get_running_loop()
    server = await asyncio.to_thread(app.web_server, host, port)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.stop)
    publisher = Publisher()
    await _publish(app, publisher)
    refreshing = asyncio.create_task(_refresh(app, publisher))
    say(server.address)
    try:
        await server.serve()
    finally:
        refreshing.cancel()
        await asyncio.gather(refreshing, return_exceptions=True)


async def _refresh(app: App, publisher: Publisher) -> None:
    """Keep the feeds in memory as the history has them."""
    while True:
        await asyncio.sleep(REFRESH_S)
        await _publish(app, publisher)


async def _publish(app: App, publisher: Publisher) -> None:
    now = app.clock.now()

    def work() -> None:
        publisher.publish(app.store, app.publish_options, lambda files: app.shelf.put(files, now=now), now=now)

    try:
        await asyncio.to_thread(work)
    except StoreError as error:
        log.error("publish failed: %s", error)
