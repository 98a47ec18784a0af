"""``digestd papers``: the papers of a topic. Floor 5."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from digestd.cli.common import MOST, Shared, find_topic, instant_text, json_option, say, say_json_list, shared_options

if TYPE_CHECKING:
    from digestd.model.snapshot import LedgerRow


@click.command("papers")
@click.option("--topic", required=True, metavar="NAME", help="Name or slug of the topic.")
@click.option(
    "--kind", "kinds", multiple=True, metavar="KIND", help="Only these: baseline, new, newly_tagged, backfill."
)
@click.option("--limit", type=click.IntRange(1, MOST), metavar="N", help="At most so many, the newest.")
@json_option
@shared_options
def command(shared: Shared, topic: str, kinds: tuple[str, ...], limit: int | None, as_json: bool) -> int:
    """List the papers of a topic, newest first.

    With --json a list of objects with the keys of docs/snapshot-format.md and kind, first_seen_at and effective_at.
    """
    from digestd.model.snapshot import Kind

    wrong = [kind for kind in kinds if kind not in [str(one) for one in Kind]]
    if wrong:
        raise click.BadParameter(f"expected one of {', '.join(Kind)}, found '{wrong[0]}'", param_hint="--kind")
    with shared.app() as app:
        found = find_topic(app, topic)
        chosen = tuple(Kind(kind) for kind in kinds) or tuple(Kind)
        rows = app.store.history.papers(found.slug, limit=limit, kinds=chosen)
    if as_json:
        say_json_list(ledger_json(row) for row in rows)
        return 0
    for row in rows:
        say(f"{row.known.effective_at:%Y-%m-%d}  {str(row.kind).replace('_', ' '):12}  {row.known.paper.title}")
    return 0


def ledger_json(row: LedgerRow) -> dict[str, object]:
    """Return a paper as ``digestd papers --json`` prints it."""
    from digestd.render.snapshot import paper_json

    known = row.known
    return paper_json(known.paper) | {
        "ids": _ids(row),
        "kind": str(row.kind),
        "via": row.via,
        "cross_listed": row.cross_listed,
        "first_seen_at": instant_text(row.seen_at),
        "effective_at": instant_text(known.effective_at),
        "revised_at": instant_text(known.revised_at),
        "public_id": known.public_id,
    }


def _ids(row: LedgerRow) -> dict[str, object]:
    """Return all names of a paper that mean something outside of this history."""
    found: dict[str, list[str]] = {}
    for name in row.known.ids:
        if name.scheme != "title":
            found.setdefault(name.scheme, []).append(name.value)
    return {scheme: values[0] if len(values) == 1 else values for scheme, values in sorted(found.items())}
