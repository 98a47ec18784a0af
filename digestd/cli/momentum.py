"""``digestd momentum``: how topics move, stated and counted. Floor 5."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from digestd.cli.common import Shared, find_topic, instant_text, json_option, say, say_json_list, shared_options

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
        if row["coverage"]:
            say(f"  {row['coverage']}")
        if not row["fresh"] and row["seen_at"]:
            say(f"  as of {row['as_of']}: the listing was not seen since")
        if row["disagreement"]:
            say(f"  {row['disagreement']}")
    return 0


def _row(app: App, topic: Topic) -> dict[str, object]:
    from digestd.coverage_words import coverage_line
    from digestd.flows.momenta import topic_momenta
    from digestd.headline import headline

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
        "seen_at": instant_text(momenta.seen_at),
        "fresh": momenta.fresh,
        "stated": None
        if momenta.stated is None
        else _figures(momenta.stated) | {"sentence": stated.sentence if stated is not None else ""},
        "counted": _figures(momenta.counted)
        | {
            "complete": momenta.counted.complete,
            "incomplete_because": momenta.incomplete,
            "late_p_value": _rounded(momenta.counted.late_p_value, 6),
        },
        "coverage": coverage_line(coverage),
        "known": coverage.known,
        "total_papers": coverage.total,
        "missing": coverage.missing,
        "disagreement": momenta.disagreement,
    }


def _figures(momentum: Momentum) -> dict[str, object]:
    interval = momentum.interval
    return {
        "papers_last_four_weeks": momentum.current,
        "previous_papers": momentum.previous,
        "change_percent": momentum.change_percent,
        "interval_percent": [round(edge, 1) for edge in interval] if interval is not None else None,
        "p_value": _rounded(momentum.p_value, 6),
        "share_percent": momentum.share_percent,
        "share_below": momentum.share_below,
        "weeks_of_data": momentum.weeks,
        "weekly": list(momentum.weekly),
        "weekly_from": momentum.weekly_from.isoformat() if momentum.weekly_from is not None else None,
        "last_week_unfinished": momentum.partial,
    }


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else round(value, digits)
