"""``digestd subscribers``: who follows what. Floor 5."""

from __future__ import annotations

import click

from digestd.cli.common import Shared, json_option, say, say_json_list, shared_options
from digestd.cli.follow import subscription_json, when


@click.command("subscribers")
@click.option("--all", "every", is_flag=True, help="Those who have left, too.")
@json_option
@shared_options
def command(shared: Shared, every: bool, as_json: bool) -> int:
    """List readers, what they follow and when they are told."""
    with shared.app() as app:
        rows = app.store.subscriptions.subscriptions(active_only=not every)
        names = {topic.slug: topic.name for topic in app.store.history.topics()}
    if as_json:
        say_json_list(subscription_json(row) for row in rows)
        return 0
    for row in rows:
        state = "" if row.state == "active" else f" ({row.state})"
        say(f"{row.reader.address}{state}: {', '.join(names.get(slug, slug) for slug in row.topics)}")
        say(f"  {when(row)}")
    if not rows:
        click.echo("no readers yet; 'digestd follow ADDRESS TOPIC' adds one", err=True)
    return 0
