"""``digestd man``: the manual page, made of what the commands say of themselves. Floor 5."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import click

from digestd import __version__
from digestd.cli.common import Shared, say, shared_options

_EXIT = (
    ("0", "Done."),
    ("1", "Something failed, or does not add up."),
    ("2", "Wrong use."),
    ("75", "Try again later."),
    ("78", "The configuration cannot be used."),
)
_FILES = (
    ("/etc/digestd/digestd.toml", "Settings of the service."),
    ("~/.config/digestd/digestd.toml", "Settings of a user."),
    ("/var/lib/digestd/digestd.sqlite", "History of the service."),
)


@click.command("man")
@shared_options
def command(shared: Shared) -> None:
    """Print the manual page.

    \b
    Try:  digestd man > digestd.1 && man ./digestd.1
    """  # noqa: D301 # click reads this sign as: leave the lines below as they stand
    from digestd.cli import cli

    del shared
    say("\n".join(page_of(cli)))


def page_of(program: click.Group) -> Iterator[str]:
    """Yield the lines of the manual page of a program, in the language of man(7)."""
    context = click.Context(program, info_name="digestd")
    yield f'.TH DIGESTD 1 "" "digestd {__version__}" "User Commands"'
    yield from (".SH NAME", r"digestd \- watch topic listings and tell each follower once what is new")
    yield from (".SH SYNOPSIS", r".B digestd", r"[\fIoptions\fR] \fIcommand\fR [\fIarguments\fR]")
    yield from (".SH OPTIONS", *_options(program, context))
    yield ".SH COMMANDS"
    for name, inner, inner_context in _walk(program, context):
        pieces = " ".join(piece for piece in inner.collect_usage_pieces(inner_context) if piece != "[OPTIONS]")
        yield from (".SS " + _plain(f"{name} {pieces}".strip()), *_text(inner.help or ""))
        yield from _options(inner, inner_context, but={param.name for param in program.params})
    yield from (".SH EXIT STATUS", *_pairs(_EXIT), ".SH FILES", *_pairs(_FILES))


def _walk(group: click.Group, context: click.Context) -> Iterator[tuple[str, click.Command, click.Context]]:
    for name in group.list_commands(context):
        inner = group.get_command(context, name)
        if inner is None or inner.hidden:
            continue
        below = click.Context(inner, info_name=name, parent=context)
        yield below.command_path, inner, below
        if isinstance(inner, click.Group):
            yield from _walk(inner, below)


def _options(command: click.Command, context: click.Context, *, but: set[str | None] | None = None) -> Iterator[str]:
    wanted = [param for param in command.params if param.name not in (but or set())]
    yield from _pairs(record for param in wanted if (record := param.get_help_record(context)) is not None)


def _pairs(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    for left, right in pairs:
        yield from (".TP", r"\fB" + _plain(left) + r"\fR", _plain(right))


def _text(text: str) -> Iterator[str]:
    """Yield paragraphs; where click leaves lines as they are, so does this."""
    for paragraph in text.split("\n\n"):
        if paragraph.startswith("\b"):
            yield from (".PP", ".nf", *(_plain(line) for line in paragraph.split("\n")[1:]), ".fi")
        else:
            yield from (".PP", _plain(" ".join(paragraph.split())))


def _plain(text: str) -> str:
    """Return text that the language of man(7) takes for nothing but text."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-")
    return re.sub(r"(?m)^([.'])", r"\\&\1", escaped)
