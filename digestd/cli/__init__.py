"""The command line. Floor 5. Entry point: :func:`main`; one file a command, listed in :data:`COMMANDS`.

Data goes to standard output, everything else to standard error. Exit status: 0 done, 1 something failed, 2 wrong use,
75 try again later, 78 bad configuration (sysexits.h; the service manager does not restart after 2 and 78).
"""

from __future__ import annotations

import errno
import sys
from contextlib import suppress
from importlib import import_module

import click

from digestd import __version__
from digestd.cli.common import Shared, shared_options
from digestd.errors import (
    ConfigError,
    DigestdError,
    MailboxError,
    MovedError,
    NoRoomError,
    NotFoundError,
    SchemaVersionError,
    StoreBusyError,
    StoreUnusableError,
)

#: command -> (module of this package, what it does); a module is imported when its command runs, so that help is quick
COMMANDS: dict[str, tuple[str, str]] = {
    "run": ("run", "Work as a daemon until told to stop."),
    "parse": ("parse", "Show what digestd reads in a file."),
    "ingest": ("ingest", "Read files into the history and say what is new."),
    "collect": ("collect", "Ask the sources once and say what is new."),
    "status": ("status", "Show how well the sources are and what is known of each topic."),
    "topics": ("topics", "List the topics of the history."),
    "papers": ("papers", "List the papers of a topic."),
    "search": ("search", "Find papers by words."),
    "momentum": ("momentum", "Show how topics move."),
    "preview": ("preview", "Show the digest that a reader would get next, or a topic's follower now."),
    "publish": ("publish", "Write the feeds of all topics into a folder."),
    "serve": ("serve", "Show the pages and feeds in the foreground."),
    "follow": ("follow", "Let a reader follow topics, or change how."),
    "unfollow": ("unfollow", "End a reader's subscription, or take topics from it."),
    "pause": ("pause", "Stop a reader's digests until a day."),
    "subscribers": ("subscribers", "List readers, what they follow and when they are told."),
    "digest": ("digest", "Make the digests that are due."),
    "deliver": ("deliver", "Send what waits in the outbox."),
    "outbox": ("outbox", "List deliveries, and decide what a program must not."),
    "bounce": ("bounce", "Take mail that came back: stop what must not be sent any more."),
    "why": ("why", "Say why a reader was told of a paper, or was not."),
    "replay": ("replay", "Show exactly what was sent."),
    "audit": ("audit", "Check that everything is accounted for, exactly once."),
    "doctor": ("doctor", "Look for what would keep mail from arriving, and say the mend."),
    "backup": ("backup", "Copy the history into a file, while digestd runs."),
    "tidy": ("tidy", "Forget what is kept for a time only."),
    "export": ("export", "Write everything as JSON Lines."),
    "import": ("import_", "Make a history of an export."),
    "adopt": ("adopt", "Say that this machine is where the history is at work now."),
    "restore": ("restore", "Put a backup in place of the history."),
    "opml": ("opml", "Import and export lists of feeds."),
    "config": ("config", "Check and show the settings."),
    "systemd": ("systemd", "Print units for the service manager."),
    "completion": ("completion", "Print the completion script of a shell."),
    "man": ("man", "Print the manual page."),
    "demo": ("demo", "Show the whole way from a page to a mail, on sample pages."),
}

EXIT_TEMPORARY = 75
EXIT_CONFIG = 78


class _Group(click.Group):
    """Loads a command when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        del ctx
        if cmd_name not in COMMANDS:
            return None
        command = import_module(f"digestd.cli.{COMMANDS[cmd_name][0]}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80})
@click.version_option(__version__, prog_name="digestd")
@shared_options
def cli(shared: Shared) -> None:
    """Watch topic listings and tell each follower once what is new.

    \b
    Try it:  digestd demo
    Begin:   digestd ingest PAGE.txt
             digestd preview --topic "Name of the topic"
    """  # noqa: D301 # click reads this sign as: leave the lines below as they stand
    del shared


def main() -> None:
    """Run the command line and leave with its exit status."""
    sys.exit(run())


def run(args: list[str] | None = None) -> int:
    """Run the command line and return its exit status; no error of a user is a traceback."""
    try:
        result = cli.main(args=args, prog_name="digestd", standalone_mode=False)
    except click.exceptions.Exit as stop:
        return stop.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code
    except click.Abort:
        click.echo("stopped", err=True)
        return 130
    except BrokenPipeError:  # the reader of our output has gone, which is its right
        sys.stderr.close()
        return 1
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        with suppress(OSError):  # what is left of the output has no room either
            sys.stdout.close()
        click.echo(f"digestd: output: cannot be written: {error.strerror}", err=True)
        return EXIT_TEMPORARY
    except DigestdError as error:
        click.echo(f"digestd: {error}", err=True)
        hint = _hint(error)
        if hint:
            click.echo(f"         {hint}", err=True)
        return exit_status(error)
    return result if isinstance(result, int) else 0


def exit_status(error: DigestdError) -> int:
    """Return the exit status for an error."""
    if isinstance(error, ConfigError | StoreUnusableError):
        return EXIT_CONFIG
    return EXIT_TEMPORARY if isinstance(error, StoreBusyError | MailboxError | MovedError | NoRoomError) else 1


def _hint(error: DigestdError) -> str:
    match error:
        case SchemaVersionError():
            return "install the newer digestd again, or use another --db"
        case MovedError():
            return "stop digestd on the other machine for good, then 'digestd adopt' sends from this one"
        case StoreBusyError():
            return "try again in a moment"
        case NotFoundError() if str(error).startswith("topic"):
            return "'digestd topics' lists what there is"
        case NotFoundError() if str(error).startswith("reader"):
            return "'digestd subscribers' lists who there is"
        case _:
            return ""
