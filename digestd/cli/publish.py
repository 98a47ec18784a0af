"""``digestd publish``: feeds into a folder. Floor 5."""

from __future__ import annotations

from pathlib import Path

import click

from digestd.cli.common import Shared, json_option, say, say_json, shared_options


@click.command("publish")
@click.argument("folder", metavar="FOLDER", type=click.Path(path_type=Path, file_okay=False))
@json_option
@shared_options
def command(shared: Shared, folder: Path, as_json: bool) -> int:
    """Write the feeds of all topics into a folder: RSS, Atom and JSON Feed for each.

    A file is replaced whole, and only if its content changed; any web server can serve the folder.
    """
    from digestd.flows.publish import Publisher

    with shared.app() as app:
        done = Publisher().publish(app.store, app.publish_options, app.file_writer(folder), now=app.now)
    if as_json:
        say_json({"folder": str(folder), "topics": done.topics, "files": done.files, "written": list(done.written)})
        return 0
    topics = f"{done.topics} topic{'' if done.topics == 1 else 's'}"
    say(
        f"{folder}: {done.files} files of {topics}, {len(done.written)} written, {done.files - len(done.written)} unchanged"
    )
    return 0
