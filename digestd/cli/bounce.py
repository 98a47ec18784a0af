"""``digestd bounce``: mail that came back. Floor 5."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from digestd.cli.common import Shared, json_option, say, say_json_list, shared_options
from digestd.errors import DigestdError

if TYPE_CHECKING:
    from digestd.flows.bounce import Taken


@click.command("bounce")
@click.option(
    "--recipient", "recipients", multiple=True, metavar="ADDRESS", help="Whom the mail came to.  [default: as it says]"
)
@click.option(
    "--maildir",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="PATH",
    help="Take the mails of this Maildir that nobody has seen, and mark them as seen.",
)
@click.option("--imap", is_flag=True, help="Take the unseen mails of the mailbox in [bounces], and mark them as seen.")
@json_option
@shared_options
def command(shared: Shared, recipients: tuple[str, ...], maildir: Path | None, imap: bool, as_json: bool) -> int:
    """Read a mail that came back, from standard input, and stop what must not be sent any more.

    A mail server hands over what comes to the addresses for bounces and unsubscriptions. An address that is gone and a
    complaint stop all mail to a reader; so do five passing failures within 30 days, with nothing delivered between them. A mail
    to the address for unsubscriptions ends the subscription. Everything else is ignored, and the reason said.
    """
    from digestd.flows.bounce import take_mail, take_mailbox, take_maildir

    if maildir is not None and imap:
        raise click.UsageError("--maildir and --imap are two places; expected one of them")
    if (maildir is not None or imap) and recipients:
        raise click.UsageError(
            "--recipient is of one mail from standard input; the mails of --maildir and --imap say it themselves"
        )
    rows: list[tuple[str, Taken]] = []
    with shared.app() as app:
        try:
            if maildir is not None:
                rows += ((file.name, taken) for file, taken in take_maildir(app.store, maildir, app.clock))
            elif imap:
                with app.bounce_mailbox() as mailbox:
                    rows.extend(take_mailbox(app.store, mailbox, app.clock))
            else:
                rows.append(("-", take_mail(app.store, _stdin(), recipients, now=app.now)))
        except DigestdError:
            if rows:  # what was taken before a server broke off is done, and is said
                _say(rows, as_json=as_json)
            raise
    _say(rows, as_json=as_json)
    return 0


def _say(rows: list[tuple[str, Taken]], *, as_json: bool) -> None:
    if as_json:
        say_json_list(_json(name, taken) for name, taken in rows)
    else:
        for name, taken in rows:
            say(_words(name, taken))


def _stdin() -> bytes:
    from digestd.bounces import MOST_BYTES

    body = sys.stdin.buffer.read(MOST_BYTES)
    while sys.stdin.buffer.read(MOST_BYTES):
        pass  # a mail server takes a pipe that closes early for a failure
    return body


def _words(name: str, taken: Taken) -> str:
    whom = f" subscription {taken.subscription.public_id}" if taken.subscription is not None else ""
    kind = f" {str(taken.kind).replace('_', ' ')}" if taken.kind is not None else ""
    return f"{name if name != '-' else 'mail'}:{kind}{whom} {taken.effect}: {taken.reason}"


def _json(name: str, taken: Taken) -> dict[str, object]:
    return {
        "mail": name,
        "kind": str(taken.kind) if taken.kind is not None else None,
        "effect": str(taken.effect),
        "reason": taken.reason,
        "subscription": taken.subscription.public_id if taken.subscription is not None else None,
        "digest": taken.digest_key,
    }
