"""``digestd momentum``: how topics move, stated and counted. Floor 5."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from digestd.cli.common import Shared, find_topic, json_option, say, say_json_list, shared_options

if TYPE_CHECKING:
    from digestd.model.digest import Momentum
    from digestd.model.topic import Topic
    from digestd.wiring import App


@click.command("momentum")
@click.option("--topic", "names", multiple=True, metavar="NAME", help="Only these topics.")
@json_option
@shared_options
def command(shared: Shared, names: tuple[str, ...], as_json: bool) -> int:
    """Show how topics move: the last four weeks against the four before.

    What the source states and what was counted are kept apart; a count is shown as a number only where nothing is missing.
    """
    with shared.app() as app:
        topics = [find_topic(app, name) for name in names] or list(app.store.history.topics())
        rows = [_row(app, topic) for topic in topics]
    if as_json:
        say_json_list(rows)
        return 0
    for row in rows:
        say(f"{row['topic']}: {row['headline']}")
        if row["note"]:
            say(f"  {row['note']}")
        say(f"  {row['coverage']}")
        if row["disagreement"]:
            say(f"  {row['disagreement']}")
    return 0


def _row(app: App, topic: Topic) -> dict[str, object]:
    from digestd.coverage_words import coverage_line
    from digestd.flows.preview import topic_momenta
    from digestd.headline import headline
    from digestd.momentum import disagreement

    history = app.store.history
    momenta, coverage = topic_momenta(history, topic, app.now), history.coverage(topic.slug)
    words = headline(momenta.chosen)
    stated = history.stated(topic.slug)
    return {
        "topic": topic.name,
        "slug": topic.slug,
        "headline": words.text,
        "short": words.short,
        "note": words.note,
        "trend": str(words.trend),
        "source": momenta.chosen.source,
        "as_of": momenta.as_of.isoformat(),
        "stated": None
        if momenta.stated is None
        else _figures(momenta.stated) | {"sentence": stated and stated.sentence},
        "counted": _figures(momenta.counted) | {"complete": momenta.counted.complete},
        "coverage": coverage_line(coverage),
        "known": coverage.known,
        "total_papers": coverage.total,
        "missing": coverage.missing,
        "disagreement": disagreement(momenta.stated, momenta.counted, coverage.missing),
    }


def _figures(momentum: Momentum) -> dict[str, object]:
    return {
        "papers_last_four_weeks": momentum.current,
        "previous_papers": momentum.previous,
        "change_percent": momentum.change_percent,
        "interval_percent": momentum.interval and [round(edge, 1) for edge in momentum.interval],
        "p_value": momentum.p_value and round(momentum.p_value, 6),
        "share_percent": momentum.share_percent,
        "share_below": momentum.share_below,
        "weekly": list(momentum.weekly),
        "weekly_from": momentum.weekly_from and momentum.weekly_from.isoformat(),
    }
