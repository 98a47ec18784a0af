"""``digestd run``: the daemon. Floor 5."""

from __future__ import annotations

import asyncio

import click

from digestd.cli.common import Shared, shared_options


@click.command("run")
@shared_options
def command(shared: Shared) -> int:
    """Work until told to stop: collect, make digests, deliver, publish, serve the pages.

    SIGTERM ends it after the mail in hand, SIGHUP reads the settings again, SIGUSR1 logs what it is doing.
    """
    from digestd.config import notify_socket, watchdog_seconds
    from digestd.daemon import run_daemon

    asyncio.run(run_daemon(shared.make_app, notify_address=notify_socket(), watchdog_s=watchdog_seconds()))
    return 0
