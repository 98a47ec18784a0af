"""``digestd preview``: the digest that a follower would get now. Floor 5."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from digestd.cli.common import Shared, find_topic, json_option, printable, say_json, say_json_list, shared_options

if TYPE_CHECKING:
    from digestd.flows.make_digest import DigestMaker, Made
    from digestd.model.digest import Digest
    from digestd.model.subscription import Subscription
    from digestd.wiring import App

#: to whom a preview is addressed: an address that can never be anybody's (RFC 2606 2)
READER = "reader@digestd.invalid"


@click.command("preview")
@click.argument("address", metavar="[ADDRESS]", required=False)
@click.option("--topic", "names", multiple=True, metavar="NAME", help="Topic; may be given several times.")
@click.option("--format", "shape", type=click.Choice(["text", "html", "eml"]), default="text", show_default=True)
@click.option(
    "--pictures/--no-pictures", default=True, help="With --topic: charts as pictures, or as block characters."
)
@json_option
@shared_options
def command(
    shared: Shared, address: str | None, names: tuple[str, ...], shape: str, pictures: bool, as_json: bool
) -> int:
    """Show the digest that a reader would get at the next slot, or that a follower of topics would get now.

    Nothing is sent and no digest is written. With --topic all news since the topics' start is in it; where there is none yet,
    the latest papers.
    """
    if (address is None) == (not names):
        raise click.UsageError("a reader's address or --topic is wanted, one of both")
    with shared.app() as app:
        if address is not None:
            return _preview_reader(app, address, shape, as_json=as_json)
        digest = make_preview(app, names)
        if digest is None:
            click.echo("nothing to tell: these topics hold no papers yet", err=True)
        elif as_json:
            say_json(_json(mail_bytes(app, digest, pictures=pictures), digest, shape))
        elif shape == "eml":
            sys.stdout.buffer.write(mail_bytes(app, digest, pictures=pictures))
        else:
            from digestd.model.digest import Links
            from digestd.render.mail import render_mail

            parts = render_mail(digest, Links(), app.templates, pictures=False)
            click.echo(printable(parts.text) if shape == "text" else parts.html, nl=False)
    return 0


def _preview_reader(app: App, address: str, shape: str, *, as_json: bool) -> int:
    """Print what a reader's subscriptions would be told next."""
    maker = app.kitchen.maker(app.now)
    mails = []
    for subscription in app.subscriptions_of(address):
        made = next_digest(app, maker, subscription)
        if made is None or made.digest is None:
            click.echo(f"nothing to tell {address} yet", err=True)
            continue
        click.echo(f"for the slot {made.slot.label}, {subscription.zone}", err=True)
        mails.append((maker.mail(made), made))
    if as_json:
        say_json_list(
            _json(mail, made.digest, shape) | {"subscription": made.subscription.public_id, "slot": made.slot.label}
            for mail, made in mails
            if made.digest is not None
        )
        return 0
    for mail, _ in mails:
        if shape == "eml":
            sys.stdout.buffer.write(mail)
        else:
            part = _part(mail, shape) or ""
            click.echo(printable(part) if shape == "text" else part, nl=False)
    return 0


def next_digest(app: App, maker: DigestMaker, subscription: Subscription) -> Made | None:
    """Return what a subscription would be told at its next slot, were nothing else seen until then.

    Returns:
        None where it is told at no time.
    """
    from digestd.flows.digest import dry_runs, missed_slots, next_due
    from digestd.model.subscription import EachSnapshot
    from digestd.schedule import slots_between

    if isinstance(subscription.schedule, EachSnapshot):
        return dry_runs(app.kitchen, [subscription], now=app.now)[0].made
    due = missed_slots(subscription, app.now, maker.head)
    after = subscription.high_water_at or subscription.created_at or app.now
    if not due:
        # a pause that ends before it makes one digest of all slots since it began
        upto = next_due(subscription, max(after, app.now))
        due = slots_between(subscription.schedule, subscription.zone, after, upto) if upto is not None else ()
    return maker.make(subscription, due[-1], coalesced=len(due) - 1) if due else None


def _part(mail: bytes, shape: str) -> str | None:
    """Return a mail's text, or its HTML; None if it has none."""
    from email import message_from_bytes, policy

    found = message_from_bytes(mail, policy=policy.default).get_body(("plain" if shape == "text" else "html",))
    return None if found is None else str(found.get_content()).replace("\r\n", "\n")


def _json(mail: bytes, digest: Digest, shape: str) -> dict[str, object]:
    from digestd.headline import subject

    return {
        "subject": subject(digest),
        "papers": digest.new + len(digest.tagged) + len(digest.tagged_rest),
        "format": shape,
        "body": mail.decode("utf-8", "replace") if shape == "eml" else _part(mail, shape),
    }


def make_preview(app: App, names: tuple[str, ...]) -> Digest | None:
    """Return the digest of some topics, None if they hold nothing."""
    from digestd.flows.preview import preview_digest

    return preview_digest(
        app.store.history,
        [find_topic(app, name) for name in names],
        name=app.settings.digest.name,
        now=app.now,
        options=app.digest_options,
        welcome_papers=app.settings.digest.welcome_papers,
    )


def mail_bytes(app: App, digest: Digest, *, pictures: bool = True) -> bytes:
    """Return a digest as a whole mail to an invented reader, the same bytes for the same digest."""
    from digestd.model.digest import Links
    from digestd.render.mail import render_mail
    from digestd.render.mime import MailHeaders, build_message, message_id

    mail, key = app.settings.mail, f"preview|{digest.upto}|{app.now.date()}"
    domain = mail.from_address.rpartition("@")[2]
    headers = MailHeaders(
        sender=mail.from_address,
        sender_name=mail.from_name or digest.name,
        recipient=READER,
        reply_to=mail.reply_to,
        date=app.now,
        message_id=message_id("preview", "digest", key, READER, domain),
        key=key,
    )
    return build_message(render_mail(digest, Links(), app.templates, pictures=pictures), headers)
