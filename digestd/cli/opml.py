"""``digestd opml``: lists of feeds from other feed readers, and for them. Floor 5.

An imported feed is a source beside those of the settings, with its title as its topic; the settings file is never written.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from digestd.cli.common import Shared, json_option, printable, say, say_json, shared_options

if TYPE_CHECKING:
    from digestd.model.opml import ListedFeed, ReadOutlines
    from digestd.wiring import App


@click.group("opml")
@shared_options
def command(shared: Shared) -> None:
    """Follow the feeds of a list from another feed reader, and give the list back."""
    del shared


@command.command("import")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path, allow_dash=True))
@click.option("--dry-run", is_flag=True, help="Only say what would be followed.")
@json_option
@shared_options
def import_list(shared: Shared, file: Path, dry_run: bool, as_json: bool) -> int:
    """Follow the feeds of an OPML file as sources; '-' reads standard input.

    A feed's title is its topic, which can be followed. Feeds that are followed already stay, with the title and folder that
    the file gives them; their topic keeps its name. 'digestd status' lists all sources, 'digestd opml remove' ends one.
    """
    from digestd.outlines import feeds_of, merge
    from digestd.phrases import count_noun

    with shared.app() as app:
        read = _read(app, file)
        known = app.store.feed_list.read()
        before = {feed.url for feed in feeds_of(known)}
        declared = {source.url for source in app.settings.sources}
        found = feeds_of(read.outlines)
        if not dry_run:
            with app.store.transaction():
                app.store.feed_list.write(merge(app.store.feed_list.read(), read.outlines), now=app.now)
    rows = [_row(feed, before, declared) for feed in found]
    if as_json:
        say_json({"feeds": rows, "skipped": list(read.skipped), "dry_run": dry_run})
        return 0
    for feed, row in zip(found, rows, strict=True):
        say(f"{row['state']:8} {' / '.join((*feed.folder, feed.title))}  {feed.url}")
    for line in read.skipped:
        click.echo(printable(f"left out: {line}"), err=True)
    click.echo(f"{count_noun(len(found), 'feed')}{', nothing was changed' if dry_run else ''}", err=True)
    return 0


@command.command("export")
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write a file.")
@shared_options
def export_list(shared: Shared, out: Path | None) -> int:
    """Print the imported feeds as OPML, in their order and folders."""
    from digestd.render.opml_tree import outlines_bytes

    with shared.app() as app:
        body = outlines_bytes(app.store.feed_list.read())
        if out is not None:
            app.write_file(out, body)
            return 0
    sys.stdout.buffer.write(body)
    sys.stdout.buffer.flush()
    return 0


@command.command("remove")
@click.argument("url", metavar="URL")
@shared_options
def remove(shared: Shared, url: str) -> int:
    """Follow an imported feed no more, by its address; what was read of it stays in the history."""
    from digestd.errors import NotFoundError
    from digestd.outlines import feeds_of, without

    with shared.app() as app, app.store.transaction():
        known = app.store.feed_list.read()
        if url not in {feed.url for feed in feeds_of(known)}:
            raise NotFoundError(f"feed {url}: expected one that was imported, found none")
        app.store.feed_list.write(without(known, lambda feed: feed.url == url), now=app.now)
    say(f"not followed any more: {url}")
    return 0


def _read(app: App, file: Path) -> ReadOutlines:
    from digestd.parse.opml import parse_opml

    return parse_opml(app.read_file(file), origin=str(file))


def _row(feed: ListedFeed, before: set[str], declared: set[str | None]) -> dict[str, object]:
    """Return what ``digestd opml import --json`` says of a feed."""
    state = "settings" if feed.url in declared else "known" if feed.url in before else "new"
    return {"state": state, "title": feed.title, "url": feed.url, "home": feed.home, "folder": list(feed.folder)}
