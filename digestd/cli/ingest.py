"""``digestd ingest``: files into the history. Floor 5."""

from __future__ import annotations

import asyncio
import functools
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from digestd.cli.common import Instant, Shared, json_option, say, say_json, shared_options
from digestd.cli.files import expand
from digestd.errors import DigestdError

if TYPE_CHECKING:
    from digestd.flows.ingest import IngestOptions, Parse
    from digestd.flows.read_source import Collected
    from digestd.model.snapshot import Document, SnapshotRecord
    from digestd.ports import Store
    from digestd.wiring import App

#: so many files take long enough to be shown a bar
_BAR_FROM = 20


@click.command("ingest")
@click.argument("paths", metavar="FILE|FOLDER...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--origin", metavar="URL", help="Where the files came from, instead of their own names.")
@click.option("--fetched-at", type=Instant(), metavar="INSTANT", help="When they were fetched.  [default: now]")
@click.option("--topic", metavar="NAME", help="The topic of their papers, instead of the one they name.")
@click.option("--order", type=click.Choice(["auto", "listing", "feed"]), default="auto", help="What their order says.")
@click.option("--format", "format_name", metavar="NAME", help="Format of the files, where it is not to be guessed.")
@click.option(
    "--rules", type=click.Path(path_type=Path), metavar="FILE", help="CSS selectors for pages of other shapes."
)
@click.option("--retry", is_flag=True, help="Read again what watched folders have in quarantine.")
@json_option
@shared_options
def command(
    shared: Shared,
    paths: tuple[Path, ...],
    origin: str | None,
    fetched_at: datetime | None,
    topic: str | None,
    order: str,
    format_name: str | None,
    rules: Path | None,
    retry: bool,
    as_json: bool,
) -> int:
    """Read files into the history and say what is new.

    With --json one object a document. A file that cannot be read changes nothing; the others go on, and the exit status is 1
    at the end. The same file again changes nothing. With --retry files in quarantine are read as their folder's settings say.
    """
    from digestd.model.snapshot import Order

    if not (paths or retry):
        raise click.UsageError("expected files, folders or --retry, found none of them")
    failed = 0
    with shared.app() as app:
        app.room.need()
        if retry:
            failed += asyncio.run(_retry(app, as_json=as_json))
        options = app.ingest_options(topic=topic, order=None if order == "auto" else Order(order))
        reader = app.parser(format_name=format_name, rules=rules)
        files = list(expand(paths))
        ingest = functools.partial(_ingest, app.store, options, reader)  # what is wrong with it is no file's fault
        with _bar(files) as steps:
            for path in steps:
                for document in _documents(app, path, origin, fetched_at):
                    result: SnapshotRecord | DigestdError
                    try:
                        result = document if isinstance(document, DigestdError) else ingest(document)
                    except DigestdError as error:
                        result = error
                    failed += isinstance(result, DigestdError)
                    _report(path, origin, result, as_json=as_json)
    return 1 if failed else 0


async def _retry(app: App, *, as_json: bool) -> int:
    """Read quarantined files again and return how many still cannot be read."""
    from digestd.cli.collect import report_collected
    from digestd.flows.collect import retry

    def report(found: Collected) -> None:
        report_collected(found, as_json=as_json)

    async with app.watched() as watched:
        return await retry(app.store, watched, app.collect_options(report))


def _ingest(store: Store, options: IngestOptions, parse: Parse, document: Document) -> SnapshotRecord:
    from digestd.flows.ingest import ingest_document

    return ingest_document(store, document, options, parse)


def _documents(
    app: App, path: Path, origin: str | None, fetched_at: datetime | None
) -> Iterator[Document | DigestdError]:
    """Yield the documents of a file, or the error that keeps it from being read."""
    try:
        yield from app.read_documents(path, origin=origin, fetched_at=fetched_at)
    except DigestdError as error:
        yield error


def _report(path: Path, origin: str | None, result: SnapshotRecord | DigestdError, *, as_json: bool) -> None:
    if as_json:
        say_json(record_json(str(path), origin, result))
    elif isinstance(result, DigestdError):
        click.echo(f"digestd: {_named(path, result)}", err=True)
    else:
        tell_record(path.name, result)


def _named(path: Path, error: DigestdError) -> str:
    text = str(error)
    return text if path.name in text else f"{path}: {text}"


def record_json(file: str, origin: str | None, result: SnapshotRecord | DigestdError) -> dict[str, object]:
    """Return what ``digestd ingest --json`` prints of one document; all keys are always there."""
    from digestd.model.snapshot import Kind, SnapshotRecord

    failed = isinstance(result, DigestdError)
    record = SnapshotRecord("", "", "", 0) if isinstance(result, DigestdError) else result
    titles = {
        str(kind): [seen.title for seen in record.sightings if seen.kind is kind and seen.via == "page"]
        for kind in Kind
    }
    also: dict[str, list[str]] = {}
    for seen in record.sightings:
        if seen.via != "page":
            also.setdefault(seen.topic_name or seen.topic, []).append(seen.title)
    return {
        "file": file,
        "origin": origin,
        "topic": record.topic_name or None,
        "snapshot": record.snapshot or None,
        "unchanged": record.unchanged,
        **titles,
        "revised": list(record.revised),
        "also": also,
        "cross_listed": list(record.cross_listed),
        "incomplete": record.incomplete,
        "quiet": record.quiet_reason,
        "warnings": list(record.warnings),
        "error": str(result) if failed else None,
    }


def tell_record(name: str, record: SnapshotRecord) -> None:
    """Print for a person what recording one document of this name did."""
    from digestd.coverage_words import coverage_line
    from digestd.model.snapshot import Kind

    if record.unchanged:
        say(f"{name}: {record.topic_name}: unchanged")
        return
    counts = {kind: sum(seen.kind is kind and seen.via == "page" for seen in record.sightings) for kind in Kind}
    words = [f"{count} {str(kind).replace('_', ' ')}" for kind, count in counts.items() if count]
    words += [f"{len(record.revised)} revised"] if record.revised else []
    quiet = f"nothing in it ({record.quiet_reason})" if record.quiet_reason else "nothing new"
    say(f"{name}: {record.topic_name}: {', '.join(words) or quiet}")
    for kind in (Kind.NEW, Kind.NEWLY_TAGGED):
        for seen in record.sightings:
            if seen.kind is kind and seen.via == "page":
                say(f"  {str(kind).replace('_', ' ')}: {seen.title}")
    if record.coverage.stretches:
        say(f"  {coverage_line(record.coverage)}")
    for warning in record.warnings:
        click.echo(f"warning: {name}: {warning}", err=True)


@contextmanager
def _bar(files: Sequence[Path]) -> Iterator[Iterable[Path]]:
    """Yield the files, under a progress bar where a person watches and there are many."""
    if len(files) < _BAR_FROM or not sys.stderr.isatty():
        yield files
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        yield progress.track(files, description="reading")
