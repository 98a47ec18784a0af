"""What all commands share: their common options, output, and the way to the parts. Floor 5."""

from __future__ import annotations

import functools
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import click

from digestd.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from digestd.model.topic import Topic
    from digestd.wiring import App

#: the largest number that a history can hold; a larger one would be an error of the database's
MOST = 2**63 - 1

P = ParamSpec("P")
R = TypeVar("R")

#: control characters, and marks that turn the direction of text: a stranger's title must not drive a terminal
_UNSAFE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class Shared:
    """The options that every command takes, before or after its name."""

    db: str | None = None
    config: Path | None = None
    now: datetime | None = None
    at_once: bool = False  #: ``--now`` was given without an instant
    log_level: str | None = None
    log_format: str | None = None

    def make_app(self) -> App:
        """Return the parts of a run, its log set up; who asks for it closes it."""
        from digestd.config import journal_stream
        from digestd.logs import configure_logging
        from digestd.wiring import App, Choices

        log = {name: value for name, value in (("level", self.log_level), ("format", self.log_format)) if value}
        app = App(Choices(db=self.db, config=self.config, now=self.now, overrides={"log": log} if log else None))
        configure_logging(app.settings.log.level, app.settings.log.format, journal_stream=journal_stream())
        return app

    @contextmanager
    def app(self) -> Iterator[App]:
        """Yield the parts of this run, closed afterwards."""
        app = self.make_app()
        try:
            yield app
        finally:
            app.close()


#: what click puts in for an option without its value
_BARE = "at once"
_AT_ONCE = datetime.max.replace(tzinfo=UTC)


class Instant(click.ParamType[datetime]):
    """An RFC 3339 instant or a date; without a zone it is UTC."""

    name = "instant"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> datetime:
        """Return the instant."""
        if isinstance(value, datetime):
            return value
        if value == _BARE:
            return _AT_ONCE
        try:
            found = datetime.fromisoformat(str(value).strip())
        except ValueError:
            self.fail(f"expected an instant like 2026-09-30T06:00:00Z, found '{value}'", param, ctx)
        return (found if found.tzinfo is not None else found.replace(tzinfo=UTC)).astimezone(UTC)


_OPTIONS: tuple[Callable[[Callable[..., Any]], Callable[..., Any]], ...] = (
    click.option("--db", metavar="PATH", help="File of the history.  [default: from the settings]"),
    click.option("--config", type=click.Path(path_type=Path), metavar="PATH", help="Settings file (TOML)."),
    click.option(
        "--now",
        type=Instant(),
        is_flag=False,
        flag_value=_BARE,
        metavar="[INSTANT]",
        help="Take this instant for now, for runs to repeat.",
    ),
    click.option("--log-level", type=click.Choice(["debug", "info", "warning", "error"]), help="How much is logged."),
    click.option("--log-format", type=click.Choice(["auto", "text", "json", "journal"]), help="How log lines look."),
)


def shared_options(function: Callable[..., R]) -> Callable[..., R]:
    """Give a command the common options; what stands after its name wins over what stands before it."""

    @functools.wraps(function)
    @click.pass_context
    def wrapper(ctx: click.Context, *args: Any, **given: Any) -> R:
        own = {name: given.pop(name) for name in ("db", "config", "now", "log_level", "log_format")}
        if own["now"] == _AT_ONCE:
            own |= {"now": None, "at_once": True}
        before = ctx.parent.obj if ctx.parent is not None and isinstance(ctx.parent.obj, Shared) else Shared()
        ctx.obj = replace(before, **{name: value for name, value in own.items() if value is not None})
        return function(ctx.obj, *args, **given)

    for option in reversed(_OPTIONS):
        wrapper = option(wrapper)
    return wrapper


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")


def find_topic(app: App, name: str) -> Topic:
    """Return the topic of this name or slug.

    Raises:
        NotFoundError: there is none; names the nearest one.
    """
    from difflib import get_close_matches

    from digestd.errors import NotFoundError

    found = app.store.history.find_topic(name)
    if found is not None:
        return found
    names = [topic.name for topic in app.store.history.topics()]
    near = get_close_matches(name, names, n=1, cutoff=0.5)
    known = f"did you mean '{near[0]}'" if near else f"the history has {len(names)} topics"
    raise NotFoundError(f"topic '{name}': expected a topic of the history, found none; {known}")


def printable(text: str) -> str:
    """Return a text that is safe on a terminal."""
    return _UNSAFE.sub("\ufffd", text)


def say(text: str = "") -> None:
    """Print a line of data for a person."""
    click.echo(printable(text))


@contextmanager
def arguments() -> Iterator[None]:
    """Make what is wrong with a user's words a matter of use; of the settings it would be one of configuration."""
    try:
        yield
    except ConfigError as error:
        raise click.UsageError(str(error)) from error


def fold(line: str) -> None:
    """Print a line for a person in as many as it takes, the later ones further in; an address stays whole, to be copied."""
    import textwrap

    indent = " " * (len(line) - len(line.lstrip(" !")) + 2)
    text = printable(line)
    for part in textwrap.wrap(text, 80, subsequent_indent=indent, break_on_hyphens=False, break_long_words=False):
        say(part)


def say_json(value: object) -> None:
    """Print one JSON document on a line; safe characters stay readable, lone surrogates are escaped."""
    sys.stdout.write(to_json(value) + "\n")


def say_json_list(values: Iterable[Mapping[str, object]]) -> None:
    """Print a JSON array with one object a line."""
    sys.stdout.write("[")
    for number, value in enumerate(values):
        sys.stdout.write((",\n" if number else "\n") + to_json(value))
    sys.stdout.write("\n]\n")


def to_json(value: object) -> str:
    """Return JSON in one line that any terminal and encoding can carry."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return re.sub(r"[\ud800-\udfff\u2028\u2029\x7f-\x9f]", lambda found: f"\\u{ord(found[0]):04x}", text)


def instant_text(value: datetime | None) -> str | None:
    """Return an instant as RFC 3339 text in UTC, None for None."""
    if value is None:
        return None
    return value.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
