"""``digestd status``: how well the sources are, what is known of each topic, what waits in the outbox. Floor 5."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from digestd.cli.common import Shared, instant_text, json_option, say, say_json, shared_options

if TYPE_CHECKING:
    from digestd.model.snapshot import Gap
    from digestd.model.source import Poll, SourceSpec
    from digestd.model.topic import Topic
    from digestd.ports import History
    from digestd.wiring import App

#: states that are worth a person's look
_TROUBLE = frozenset({"stale", "gap", "not_a_topic_page", "broken"})


@click.command("status")
@json_option
@shared_options
def command(shared: Shared, as_json: bool) -> int:
    """Show how well the sources are, what is known of each topic, and what waits in the outbox.

    A source is ok, quiet (nothing in it, and why), stale (an earlier batch is served again), gap (dates that no page showed),
    not_a_topic_page, or broken (since when, why, next try).
    """
    with shared.app() as app:
        found = {
            "now": instant_text(app.now),
            "sources": [source_status(app, spec) for spec in app.source_specs],
            "topics": [topic_status(app.store.history, topic, app.now) for topic in app.store.history.topics()],
            **mail_status(app),
            "versions": versions(),
        }
    if as_json:
        say_json(found)
    else:
        _print(found)
    return 0


def source_status(app: App, spec: SourceSpec) -> dict[str, Any]:
    """Return what ``digestd status --json`` says of a source; all keys are always there."""
    from digestd.health import health
    from digestd.polling import current_state, is_due

    state = current_state(spec, app.store.sources.state(spec.name))
    polls = [_today(app.store.history, poll) for poll in app.store.sources.polls(spec.name)]
    found = health(polls, next_try_at=state.next_try_at, daily=spec.daily)
    slugs = dict.fromkeys(poll.topic for poll in reversed(polls) if poll.topic is not None)
    return {
        "source": spec.name,
        "kind": "folder" if spec.kind == "folder" else "url",
        "location": spec.location,
        "now_at": state.url,
        "topics": list(slugs),
        "health": str(found.state),
        "since": instant_text(found.since),
        "why": found.why,
        "gaps": [_gap(gap) for gap in found.gaps],
        "last_good_at": instant_text(state.last_ok_at),
        "last_try_at": instant_text(state.last_try_at),
        "next_try_at": instant_text(state.next_try_at),
        "due": is_due(state, app.now),
        "failures": state.fail_count,
    }


def mail_status(app: App) -> dict[str, Any]:
    """Return what waits in the outbox, when the relay took its newest mail, and when the next digest is due."""
    from digestd.model.delivery import DeliveryState

    outbox = app.store.outbox
    newest = outbox.deliveries(state=DeliveryState.ACCEPTED, limit=1)
    return {
        "outbox": {str(state): count for state, count in outbox.counts().items()},
        "next_send_at": instant_text(outbox.next_at()),
        "last_accepted_at": instant_text(newest[0].settled_at) if newest else None,
        "next_due_at": instant_text(app.store.subscriptions.next_due_at()),
    }


def versions() -> dict[str, str]:
    """Return what this runs on."""
    import platform
    import sqlite3

    from digestd import __version__

    return {"digestd": __version__, "python": platform.python_version(), "sqlite": sqlite3.sqlite_version}


def _today(history: History, poll: Poll) -> Poll:
    """Return a poll with those of its gaps that no other page has closed since."""
    if not poll.gaps or poll.topic is None:
        return poll
    return replace(poll, gaps=history.coverage(poll.topic).gaps)


def topic_status(history: History, topic: Topic, now: datetime) -> dict[str, Any]:
    """Return what ``digestd status --json`` says of a topic; all keys are always there."""
    from digestd.coverage_words import coverage_line
    from digestd.flows.momenta import topic_momenta

    coverage = history.coverage(topic.slug)
    last = history.last_published(topic.slug)
    return {
        "topic": topic.name,
        "slug": topic.slug,
        "known": coverage.known,
        "total_papers": coverage.total,
        "missing": coverage.missing,
        "gaps": [_gap(gap) for gap in coverage.gaps],
        "coverage": coverage_line(coverage),
        "last_published": last.isoformat() if last is not None else None,
        "disagreement": topic_momenta(history, topic, now).disagreement,
    }


def _gap(gap: Gap) -> dict[str, str]:
    return {"since": gap.since.isoformat(), "until": gap.until.isoformat()}


def _print(found: Mapping[str, Any]) -> None:
    """Print the tables for a person."""
    if not found["sources"]:
        click.echo("no sources in the settings; a [[sources]] section names a folder or an address", err=True)
    for source in found["sources"]:
        mark = "!" if source["health"] in _TROUBLE else " "
        since = f" since {_minute(source['since'])}" if source["since"] else ""
        say(f"{mark} {source['source']}: {source['health'].replace('_', ' ')}{since}")
        if source["why"]:
            say(f"    {source['why']}")
        times = [f"last good {_minute(source['last_good_at'])}" if source["last_good_at"] else "never read"]
        if source["next_try_at"]:
            times.append("due now" if source["due"] else f"next look {_minute(source['next_try_at'])}")
        say(f"    {', '.join(times)}")
    for topic in found["topics"]:
        say(f"  {topic['topic']}: {topic['coverage'] or 'nothing known yet'}")
        if topic["disagreement"]:
            say(f"    {topic['disagreement']}")
    waits = ", ".join(f"{count} {state}" for state, count in found["outbox"].items() if count)
    say(f"outbox: {waits or 'empty'}")
    for words, key in (("last mail taken", "last_accepted_at"), ("next digest due", "next_due_at")):
        if found[key]:
            say(f"    {words} {_minute(found[key])}")
    say(", ".join(f"{name} {version}" for name, version in found["versions"].items()))


def _minute(text: str) -> str:
    """Return an instant for people: 2026-09-30 06:00 UTC."""
    return f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M} UTC"
