"""``digestd digest``: what is due becomes digests in the outbox. Floor 5."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from digestd.cli.common import Shared, json_option, printable, say, say_json_list, shared_options

if TYPE_CHECKING:
    from digestd.flows.digest import Served
    from digestd.wiring import App


@click.command("digest")
@click.option("--due", is_flag=True, help="Those whose time has come.  [default]")
@click.option("--for", "address", metavar="ADDRESS", help="This reader, whatever the schedule says.")
@click.option("--dry-run", is_flag=True, help="Only say what would be made.")
@json_option
@shared_options
def command(shared: Shared, due: bool, address: str | None, dry_run: bool, as_json: bool) -> int:
    """Make the digests that are due and put them into the outbox; 'digestd deliver' sends them.

    With --now, without an instant, those of all readers, whatever their schedule says.
    """
    if (due, shared.at_once, address is not None).count(True) > 1:
        raise click.UsageError("expected one of --due, --now and --for")
    with shared.app() as app:
        served = _serve(app, address, at_once=shared.at_once, dry_run=dry_run)
        rows = [_row(one) for one in served if one.made is not None or one.error]
        if address is None and not dry_run:
            _alert(app)
    if as_json:
        say_json_list(rows)
    for row in [] if as_json else rows:
        say(f"{row['address']}: {row['error'] or row['subject'] or 'nothing new'}")
    if not rows and not as_json:
        click.echo("nothing is due", err=True)
    return 1 if any(one.error for one in served) else 0


def _alert(app: App) -> None:
    """Make the mails of topics that turned, and say so."""
    from digestd.flows.alerts import make_alerts

    for done in make_alerts(app.kitchen, now=app.now):
        click.echo(printable(f"{done.title}; {done.mails} {'alert' if done.mails == 1 else 'alerts'}"), err=True)


def _serve(app: App, address: str | None, *, at_once: bool, dry_run: bool) -> list[Served]:
    from digestd.flows.digest import dry_runs, make_due, make_now

    if not dry_run:
        app.room.need()
    kitchen = app.kitchen
    if address is not None:
        chosen = app.subscriptions_of(address)
    elif at_once:
        chosen = list(app.store.subscriptions.subscriptions(active_only=True))
    elif dry_run:
        return dry_runs(kitchen, None, now=app.now)
    else:
        return make_due(kitchen, now=app.now)
    if dry_run:
        return dry_runs(kitchen, chosen, now=app.now)
    return [make_now(kitchen, subscription, now=app.now) for subscription in chosen]


def _row(served: Served) -> dict[str, object]:
    from digestd.headline import subject

    digest = served.made.digest if served.made is not None else None
    return {
        "address": served.subscription.reader.address,
        "subscription": served.subscription.public_id,
        "digest": served.made.key if served.made is not None and digest is not None else None,
        "slot": served.slot.label if served.slot is not None else None,
        "subject": subject(digest) if digest is not None else None,
        "papers": digest.new + len(digest.tagged) + len(digest.tagged_rest) if digest is not None else 0,
        "passed_over": len(served.made.passed_over) if served.made is not None else 0,
        "coalesced": served.coalesced,
        "error": served.error or None,
    }
