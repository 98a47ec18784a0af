"""``digestd serve``: pages and feeds in the foreground. Floor 5."""

from __future__ import annotations

import asyncio
import logging
import signal
from typing import TYPE_CHECKING

import click

from digestd.cli.common import Shared, say, shared_options
from digestd.errors import ConfigError, StoreError

if TYPE_CHECKING:
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
        web = app.settings.web
        asyncio.run(_serve(app, web.host if host is None else host, web.port if port is None else port))
    return 0


async def _serve(app: App, host: str, port: int) -> None:
    from digestd.web.server import WebServer, listen

    try:
        socket = listen(host, port)
    except OSError as error:
        raise ConfigError(f"web: listening on {host} port {port}: {error.strerror or error}") from error
    loop = asyncio.get_running_loop()
    server = WebServer(await asyncio.to_thread(app.web_app), [socket])
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, server.stop)
    refreshing = asyncio.create_task(_refresh(app))
    shown = f"[{host}]" if ":" in host else host
    say(f"http://{shown}:{socket.getsockname()[1]}/")
    try:
        await server.serve()
    finally:
        refreshing.cancel()
        await asyncio.gather(refreshing, return_exceptions=True)


async def _refresh(app: App) -> None:
    """Keep the feeds in memory as the history has them."""
    from digestd.flows.publish import Publisher

    publisher = Publisher()
    while True:
        now = app.clock.now()
        try:
            await asyncio.to_thread(
                lambda now=now: publisher.publish(  # type: ignore[misc]  # mypy cannot type a default
                    app.store, app.publish_options, lambda files: app.shelf.put(files, now=now), now=now
                )
            )
        except StoreError as error:
            log.error("publish failed: %s", error)
        await asyncio.sleep(REFRESH_S)
