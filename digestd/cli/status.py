"""``digestd status``: how well the sources are, what is known of each topic, what waits in the outbox. Floor 5."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from digestd.cli.common import Shared, fold, instant_text, json_option, printable, say, say_json, shared_options

if TYPE_CHECKING:
    from digestd.flows.overview import Overview, SourceView
    from digestd.model.snapshot import Gap
    from digestd.model.topic import Topic
    from digestd.ports import History

#: states that are worth a person's look
_TROUBLE = frozenset({"stale", "gap", "not_a_topic_page", "broken"})

#: columns of a name in the table of sources
_NAME = 26


@click.command("status")
@json_option
@shared_options
def command(shared: Shared, as_json: bool) -> int:
    """Show how well the sources are, what is known of each topic, and what waits in the outbox.

    A source is ok, quiet (nothing in it, and why), stale (an earlier batch is served again), gap (dates that no page showed),
    not_a_topic_page, or broken (since when, why, next try).
    """
    from digestd.flows.overview import look

    with shared.app() as app:
        overview = look(app.store, app.source_specs, now=app.now)
        found = {
            "now": instant_text(app.now),
            "sources": [source_status(one) for one in overview.sources],
            "topics": [topic_status(app.store.history, topic, app.now) for topic in app.store.history.topics()],
            **work_status(overview),
            "versions": versions(),
        }
    if as_json:
        say_json(found)
    else:
        _print(found)
    return 0


def source_status(view: SourceView) -> dict[str, Any]:
    """Return what ``digestd status --json`` says of a source; all keys are always there."""
    spec, state, health = view.spec, view.fetched, view.health
    return {
        "source": spec.name,
        "kind": "folder" if spec.kind == "folder" else "url",
        "location": spec.location,
        "now_at": state.url,
        "topics": list(view.topics),
        "health": str(health.state),
        "since": instant_text(health.since),
        "why": health.why,
        "gaps": [_gap(gap) for gap in health.gaps],
        "last_good_at": instant_text(state.last_ok_at),
        "last_try_at": instant_text(state.last_try_at),
        "next_try_at": instant_text(state.next_try_at),
        "due": view.is_due,
        "failures": state.fail_count,
    }


def work_status(overview: Overview) -> dict[str, Any]:
    """Return what waits in the outbox, what was done last and comes next, and what is not well; all keys are there."""
    from digestd.flows.overview import AUDITED, WORKED

    worked, audited = overview.signs.get(WORKED), overview.signs.get(AUDITED)
    return {
        "outbox": {str(state): count for state, count in overview.outbox.items()},
        "next_send_at": instant_text(overview.next_send_at),
        "last_accepted_at": instant_text(overview.last_accepted_at),
        "next_due_at": instant_text(overview.next_due_at),
        "last_good_run_at": instant_text(worked.at) if worked else None,
        "last_audit_at": instant_text(audited.at) if audited else None,
        "audit_findings": audited.value if audited else None,
        "troubles": [
            {"name": one.trouble.name, "why": one.trouble.why, "since": instant_text(one.since)}
            for one in overview.troubles
        ],
    }


def versions() -> dict[str, str]:
    """Return what this runs on."""
    import platform
    import sqlite3

    from digestd import __version__

    return {"digestd": __version__, "python": platform.python_version(), "sqlite": sqlite3.sqlite_version}


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
    """Print the tables for a person: 80 columns, times in UTC."""
    for trouble in found["troubles"]:
        fold(f"! {trouble['name']} since {_minute(trouble['since'])}: {trouble['why']}")
    if found["sources"]:
        say(_row(" ", "source", "health", "last good", "next look (UTC)"))
    else:
        click.echo("no sources in the settings; a [[sources]] section names a folder or an address", err=True)
    for source in found["sources"]:
        _print_source(source)
    for topic in found["topics"]:
        fold(f"  {topic['topic']}: {topic['coverage'] or 'nothing known yet'}")
        if topic["disagreement"]:
            fold(f"    {topic['disagreement']}")
    waits = ", ".join(f"{count} {state}" for state, count in found["outbox"].items() if count)
    say(f"outbox: {waits or 'empty'}")
    audited = f", {found['audit_findings']:,} findings" if found["audit_findings"] is not None else ""
    for words, key, more in (
        ("last mail taken", "last_accepted_at", ""),
        ("next digest due", "next_due_at", ""),
        ("last good run", "last_good_run_at", ""),
        ("last audit", "last_audit_at", audited),
    ):
        if found[key]:
            say(f"    {words} {_minute(found[key])} UTC{more}")
    say(", ".join(f"{name} {version}" for name, version in found["versions"].items()))


def _print_source(source: Mapping[str, Any]) -> None:
    """Print a source's row, and below it what there is no room for in it."""
    name = source["source"]
    good = _minute(source["last_good_at"]) if source["last_good_at"] else "never"
    due = "now" if source["due"] else _minute(source["next_try_at"]) if source["next_try_at"] else "never"
    health = source["health"].replace("_", " ")
    if len(printable(name)) > _NAME:
        fold(f"  {name}")
        name = ""
    say(_row("!" if source["health"] in _TROUBLE else " ", name, health, good, due))
    if source["why"]:
        since = f"since {_minute(source['since'])}: " if source["since"] else ""
        fold(f"    {since}{source['why']}")


def _row(mark: str, name: str, health: str, good: str, due: str) -> str:
    return f"{mark} {name:{_NAME}} {health:16} {good:16} {due}".rstrip()


def _minute(text: str) -> str:
    """Return an instant for people, UTC: 2026-09-30 06:00."""
    return f"{datetime.fromisoformat(text):%Y-%m-%d %H:%M}"
