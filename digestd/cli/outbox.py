"""``digestd outbox``: deliveries, for a person's eye and hand. Floor 5."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from digestd.cli.common import MOST, Shared, instant_text, json_option, say, say_json_list, shared_options

if TYPE_CHECKING:
    from digestd.model.delivery import Delivery


@click.group("outbox")
@shared_options
def command(shared: Shared) -> None:
    """See what waits, was sent or failed, and decide what a program must not."""
    del shared


@command.command("list")
@click.option(
    "--state", metavar="STATE", help="Only ready, claimed, accepted, failed, suppressed, uncertain or poison."
)
@click.option("--limit", type=click.IntRange(1, MOST), default=50, show_default=True, metavar="N")
@json_option
@shared_options
def list_rows(shared: Shared, state: str | None, limit: int, as_json: bool) -> int:
    """List deliveries, newest first."""
    from digestd.logs import mask_address
    from digestd.model.delivery import DeliveryState

    if state is not None and state not in list(DeliveryState):
        raise click.BadParameter(f"expected one of {', '.join(DeliveryState)}, found '{state}'", param_hint="--state")
    with shared.app() as app:
        rows = app.store.outbox.deliveries(state=DeliveryState(state) if state else None, limit=limit)
        counts = app.store.outbox.counts()
    if as_json:
        say_json_list(delivery_json(row) for row in rows)
        return 0
    say(", ".join(f"{count} {name}" for name, count in counts.items() if count) or "the outbox is empty")
    for row in rows:
        why = f"  {row.why}" if row.why else ""
        say(f"{row.key:6}  {row.state:10}  {mask_address(row.recipient):28}  {row.digest_key}{why}")
    return 0


@command.command("retry")
@click.argument("keys", metavar="ID...", nargs=-1, required=True, type=click.IntRange(1, MOST))
@shared_options
def retry(shared: Shared, keys: tuple[int, ...]) -> int:
    """Make failed, held or poisoned deliveries ready again."""
    return _set(shared, keys, "ready", "by hand")


@command.command("hold")
@click.argument("keys", metavar="ID...", nargs=-1, required=True, type=click.IntRange(1, MOST))
@shared_options
def hold(shared: Shared, keys: tuple[int, ...]) -> int:
    """Take deliveries out of the way until 'retry'."""
    return _set(shared, keys, "failed", "held by hand")


@command.command("resolve")
@click.argument("keys", metavar="ID...", nargs=-1, required=True, type=click.IntRange(1, MOST))
@click.option("--as", "fate", type=click.Choice(["accepted", "failed"]), required=True, help="What became of them.")
@shared_options
def resolve(shared: Shared, keys: tuple[int, ...], fate: str) -> int:
    """Say what became of uncertain deliveries, for example after a look into the relay's log."""
    return _set(shared, keys, fate, "resolved by hand")


def _set(shared: Shared, keys: tuple[int, ...], state: str, why: str) -> int:
    from digestd.model.delivery import DeliveryState

    with shared.app() as app, app.store.transaction():
        for key in keys:
            app.store.outbox.set_state(
                key, DeliveryState(state), why=why, now=app.now, next_at=app.now if state == "ready" else None
            )
    say(f"{len(keys)} set to {state}")
    return 0


def delivery_json(row: Delivery) -> dict[str, object]:
    """Return a delivery as the commands print it."""
    return {
        "id": row.key,
        "kind": row.kind,
        "digest": row.digest_key,
        "recipient": row.recipient,
        "message_id": row.message_id,
        "state": str(row.state),
        "phase": str(row.phase) if row.phase else None,
        "attempts": row.attempts,
        "next_at": instant_text(row.next_at),
        "created_at": instant_text(row.created_at),
        "settled_at": instant_text(row.settled_at),
        "reply": f"{row.reply.code} {row.reply.text}".strip() if row.reply is not None else None,
        "why": row.why or None,
        "flagged": row.flagged,
    }
