"""``digestd search``: papers by words. Floor 5."""

from __future__ import annotations

import click

from digestd.cli.common import Shared, instant_text, json_option, say, say_json_list, shared_options


@click.command("search")
@click.argument("words", metavar="WORD...", nargs=-1, required=True)
@click.option("--limit", type=click.IntRange(min=1, max=1000), default=20, metavar="N", help="At most so many.")
@json_option
@shared_options
def command(shared: Shared, words: tuple[str, ...], limit: int, as_json: bool) -> int:
    """Find papers whose title, abstract or authors hold all the words, best first."""
    from digestd.render.snapshot import paper_json

    with shared.app() as app:
        found = app.store.history.search(" ".join(words), limit=limit)
    if as_json:
        say_json_list(
            paper_json(known.paper) | {"public_id": known.public_id, "first_seen_at": instant_text(known.first_seen_at)}
            for known in found
        )
        return 0
    for known in found:
        say(f"{known.effective_at:%Y-%m-%d}  {known.paper.title}")
    return 0
