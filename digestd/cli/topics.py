"""``digestd topics``: what can be followed. Floor 5."""

from __future__ import annotations

import click

from digestd.cli.common import Shared, json_option, say, say_json_list, shared_options


@click.command("topics")
@json_option
@shared_options
def command(shared: Shared, as_json: bool) -> int:
    """List the topics of the history."""
    from digestd.coverage_words import coverage_line
    from digestd.flows.momenta import topic_momenta
    from digestd.headline import headline

    with shared.app() as app:
        history = app.store.history
        rows = []
        for topic in history.topics():
            momentum, coverage = topic_momenta(history, topic, app.now).chosen, history.coverage(topic.slug)
            words = headline(momentum)
            rows.append(
                {
                    "topic": topic.name,
                    "slug": topic.slug,
                    "gloss": topic.gloss,
                    "known": coverage.known,
                    "total_papers": coverage.total,
                    "headline": words.text,
                    "change": words.short,
                    "coverage": coverage_line(coverage),
                }
            )
    if as_json:
        say_json_list(rows)
    elif not rows:
        click.echo("no topics yet; 'digestd ingest FILE' reads a topic page", err=True)
    for row in [] if as_json else rows:
        say(f"{row['topic']}  ({row['slug']})")
        say(f"  {row['headline']}")
        say(f"  {row['coverage']}")
    return 0
