"""``digestd config``: the settings. Floor 5."""

from __future__ import annotations

import json

import click

from digestd.cli.common import Shared, say, shared_options


@click.group("config")
@shared_options
def command(shared: Shared) -> None:
    """Check and show the settings."""
    del shared


@command.command("check")
@shared_options
def check(shared: Shared) -> int:
    """Say whether the settings can be used; each finding is a line, and the exit status is 78."""
    from digestd.config import find_config

    with shared.app() as app:
        say(f"{find_config(shared.config) or 'no file, all defaults'}: {len(app.settings.sources)} sources: usable")
    return 0


@command.command("show")
@shared_options
def show(shared: Shared) -> int:
    """Print all settings as they are used, secrets masked, as JSON."""
    with shared.app() as app:
        say(app.settings.model_dump_json(indent=2))
    return 0


@command.command("schema")
@shared_options
def schema(shared: Shared) -> int:
    """Print the JSON Schema of the settings, for editors."""
    from digestd.config import Settings

    del shared
    say(json.dumps(Settings.model_json_schema(), indent=2, ensure_ascii=False))
    return 0
