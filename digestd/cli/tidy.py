"""``digestd tidy``: forget what is kept for a time only. Floor 5."""

from __future__ import annotations

import click

from digestd.cli.common import Shared, say, shared_options


@click.command("tidy")
@click.option("--dry-run", is_flag=True, help="Say what would be forgotten, and forget nothing.")
@click.option("--compact", is_flag=True, help="Write the file anew as well, whatever the hour, if that is worth it.")
@shared_options
def command(shared: Shared, dry_run: bool, compact: bool) -> int:
    """Forget what is kept for a time only; the daemon does it each hour.

    That is the text of mails sent long ago (keep.mail_days), and wishes to follow that nobody confirmed. Papers, what was
    told to whom, and the fate of every mail are never forgotten.
    """
    with shared.app() as app:
        if dry_run:
            mails = app.store.outbox.mails_before(app.now - app.mail_for)
            say(f"would forget the text of {mails:,} mails")
            return 0
        done = app.tidy()
        say(f"forgot the text of {done.mails:,} mails, and {done.wishes:,} unconfirmed wishes")
        if compact:
            freed = app.compact()
            say(f"the file is {freed / 1_000_000:,.1f} MB smaller" if freed else "the file has no room to give back")
    return 0
