"""``digestd replay``: what exactly was sent. Floor 5."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from digestd.cli.common import Shared, json_option, printable, say_json, shared_options

if TYPE_CHECKING:
    from digestd.flows.replay import Replayed


@click.command("replay")
@click.argument("digest", metavar="DIGEST")
@click.option("--format", "shape", type=click.Choice(["eml", "text", "html"]), default="eml", show_default=True)
@json_option
@shared_options
def command(shared: Shared, digest: str, shape: str, as_json: bool) -> int:
    """Show exactly what was sent, built again of what the outbox keeps.

    DIGEST is a digest's key, as 'digestd outbox list' and 'digestd why' show it, or a delivery's number. Exit status 1 if
    these are not the bytes that were sent.
    """
    from digestd.flows.replay import replay

    with shared.app() as app:
        found = replay(app.store, digest)
    if as_json:
        say_json(_json(found, shape))
    else:
        click.echo(_verdict(found), err=True)
        _show(found, shape)
    return 1 if found.same is False else 0


def _verdict(found: Replayed) -> str:
    row = found.delivery
    if found.same is None:
        return f"delivery {row.key} is {row.state}, and nothing was sent of it yet"
    if found.same:
        return f"delivery {row.key} is {row.state}: these are the bytes that were sent, sha256 {found.sha256}"
    return f"delivery {row.key} is {row.state}: other bytes were sent, sha256 {row.sha256}, not {found.sha256}"


def _show(found: Replayed, shape: str) -> None:
    if shape == "eml":
        sys.stdout.buffer.write(found.body)
        sys.stdout.buffer.flush()
        return
    part = found.part("plain" if shape == "text" else "html")
    if part is None:
        click.echo(f"the mail has no {shape} part", err=True)
        return
    click.echo(printable(part) if shape == "text" else part, nl=False)


def _json(found: Replayed, shape: str) -> dict[str, object]:
    row = found.delivery
    body = (
        found.body.decode("utf-8", "replace") if shape == "eml" else found.part("plain" if shape == "text" else "html")
    )
    return {
        "digest": row.digest_key,
        "delivery": row.key,
        "state": str(row.state),
        "message_id": row.message_id,
        "sha256": found.sha256,
        "sent_sha256": row.sha256,
        "same": found.same,
        "format": shape,
        "body": body,
    }
