"""``digestd preview``: the digest that a follower would get now. Floor 5."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from digestd.cli.common import Shared, find_topic, printable, shared_options

if TYPE_CHECKING:
    from digestd.model.digest import Digest
    from digestd.wiring import App

#: to whom a preview is addressed: an address that can never be anybody's (RFC 2606 2)
READER = "reader@digestd.invalid"


@click.command("preview")
@click.option(
    "--topic", "names", multiple=True, required=True, metavar="NAME", help="Topic; may be given several times."
)
@click.option("--format", "shape", type=click.Choice(["text", "html", "eml"]), default="text", show_default=True)
@click.option("--pictures/--no-pictures", default=True, help="Charts as pictures, or as block characters.")
@shared_options
def command(shared: Shared, names: tuple[str, ...], shape: str, pictures: bool) -> int:
    """Show the digest that a follower of these topics would get now.

    Nothing is sent and nothing is written. All news since the topics' start is in it; where there is none yet, the latest
    papers.
    """
    with shared.app() as app:
        digest = make_preview(app, names)
        if digest is None:
            click.echo("nothing to tell: these topics hold no papers yet", err=True)
            return 0
        if shape == "eml":
            sys.stdout.buffer.write(mail_bytes(app, digest, pictures=pictures))
            return 0
        from digestd.model.digest import Links
        from digestd.render.mail import render_mail

        parts = render_mail(digest, Links(), app.templates, pictures=pictures and shape == "eml")
        click.echo(printable(parts.text) if shape == "text" else parts.html, nl=False)
    return 0


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
