"""``digestd parse``: what is read in a file; the history is not touched. Floor 5."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from digestd.cli.common import Shared, json_option, say, say_json, shared_options
from digestd.cli.files import expand
from digestd.errors import DigestdError

if TYPE_CHECKING:
    from digestd.model.snapshot import Document, Page


@click.command("parse")
@click.argument("paths", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--origin", metavar="URL", help="Where the file came from; relative links begin there.")
@click.option("--format", "format_name", metavar="NAME", help="Format of the files, where it is not to be guessed.")
@click.option("--labels", type=click.Path(path_type=Path), metavar="FILE", help="Label names, one a line.")
@click.option("--no-labels", is_flag=True, help="Cut no tag line by the list of labels that comes along.")
@click.option(
    "--rules", type=click.Path(path_type=Path), metavar="FILE", help="CSS selectors for pages of other shapes."
)
@json_option
@shared_options
def command(
    shared: Shared,
    paths: tuple[Path, ...],
    origin: str | None,
    format_name: str | None,
    labels: Path | None,
    no_labels: bool,
    rules: Path | None,
    as_json: bool,
) -> int:
    """Show what digestd reads in a file.

    With --json one snapshot a document, as docs/snapshot-format.md describes it, one a line. A file that cannot be read gives
    an error; the others go on. Use - for standard input.
    """
    failed = 0
    with shared.app() as app:
        reader = app.page_reader(format_name=format_name, labels=labels, no_labels=no_labels, rules=rules)
        for path in expand(paths):
            try:
                for document in app.read_documents(path, origin=origin):
                    _show(reader(document), document, as_json=as_json)
            except DigestdError as error:
                failed += 1
                click.echo(f"digestd: {error}", err=True)
    return 1 if failed else 0


def _show(page: Page, document: Document, *, as_json: bool) -> None:
    from digestd.render.snapshot import page_json

    if as_json:
        say_json(page_json(page))
        return
    say(f"{page.topic or page.title or document.name or 'no topic'}")
    if page.gloss:
        say(f"  {page.gloss}")
    if page.momentum is not None and page.momentum.sentence:
        say(f"  {page.momentum.sentence}")
    total = f" of {page.total_papers:,}" if page.total_papers is not None else ""
    cut = ", page incomplete" if page.incomplete else ""
    say(f"  {len(page.papers)} papers{total}, format {page.format}, order {page.order}{cut}")
    for paper in page.papers:
        say(f"  {paper.published or '          '}  {paper.title}")
    for warning in (*page.warnings, *(warning for paper in page.papers for warning in paper.warnings)):
        click.echo(f"warning: {warning}", err=True)
