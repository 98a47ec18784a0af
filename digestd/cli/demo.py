"""``digestd demo``: the whole way from a page to a mail, on sample pages. Floor 5."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, time, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from digestd.cli.common import Shared, say, shared_options

if TYPE_CHECKING:
    from digestd.model.digest import Digest
    from digestd.model.snapshot import Document, SnapshotRecord
    from digestd.wiring import App


@click.command("demo")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), default=Path("out/demo"), show_default=True,
    help="Folder for the history, the mail and the feeds.",
)  # fmt: skip
@shared_options
def command(shared: Shared, out: Path) -> int:
    """Show the whole way from a page to a mail, on sample pages.

    Older pages of a topic are the history; then its newest page arrives. What was found is printed, and the mail and the
    feeds that a follower would get are written. A second run finds nothing new.
    """
    with replace(shared, db=shared.db or str(out / "history.sqlite")).app() as app:
        *older, newest = _sample_pages(app)
        for document in older:
            _arrive(app, document, "history")
        record = _arrive(app, newest, "arrives")
        _tell(app, record)
        if record.unchanged:
            say(f"\nNothing new: this page is in the history already. The mail and the feeds are in {out}/")
            return 0
        return _write(app, record, newest, out)


def _sample_pages(app: App) -> list[Document]:
    """Return the sample pages, the newest last, the one before it first: it is where the history begins.

    The older ones count as fetched a week before the newest, and that one on the morning after its newest paper.
    """
    from digestd.wiring import data_folder

    reader = app.page_reader(format_name="listing", labels=None, no_labels=False, rules=None)
    found = []
    for path in sorted(data_folder("seeds", "seeds").glob("*.txt")):
        for document in app.read_documents(path):
            days = [paper.published for paper in reader(document).papers if paper.published is not None]
            found.append((max(days), replace(document, origin=path.name)))
    found.sort(key=lambda pair: pair[0], reverse=True)
    morning = datetime.combine(found[0][0] + timedelta(days=1), time(6), UTC)
    dated = [replace(document, fetched_at=morning - timedelta(days=7)) for _, document in found[1:]]
    return [*dated, replace(found[0][1], fetched_at=morning)]


def _arrive(app: App, document: Document, what: str) -> SnapshotRecord:
    from digestd.flows.ingest import ingest_document
    from digestd.model.snapshot import Kind

    assert document.fetched_at is not None
    record = ingest_document(app.store, document, replace(app.ingest_options(), now=document.fetched_at))
    counts = {kind: sum(seen.kind is kind for seen in record.sightings) for kind in Kind}
    words = ", ".join(f"{count} {str(kind).replace('_', ' ')}" for kind, count in counts.items() if count)
    say(f"{what:8} {document.origin}: {'unchanged' if record.unchanged else words or 'nothing new'}")
    return record


def _tell(app: App, record: SnapshotRecord) -> None:
    from digestd.coverage_words import coverage_line
    from digestd.flows.momenta import topic_momenta
    from digestd.headline import headline

    topic = app.store.history.topic(record.topic)
    words = headline(topic_momenta(app.store.history, topic, app.now).chosen)
    say(f"\n{topic.name}: {words.text}")
    say(f"{words.note}" if words.note else "")
    say(coverage_line(record.coverage))


def _write(app: App, record: SnapshotRecord, newest: Document, out: Path) -> int:
    from digestd.cli.preview import mail_bytes, make_preview
    from digestd.flows.publish import publish_topics
    from digestd.model.digest import Links
    from digestd.render.mail import render_mail

    assert newest.fetched_at is not None
    app.stand_at(newest.fetched_at)
    digest = make_preview(app, (record.topic,))
    if digest is None:
        say("nothing to tell")
        return 1
    _show(digest)
    parts = render_mail(digest, Links(), app.templates, pictures=False)
    mails = {
        "digest.eml": mail_bytes(app, digest),
        "digest.html": parts.html.encode(),
        "digest.txt": parts.text.encode(),
    }
    app.file_writer(out / "mail")(mails)
    history = app.store.history
    publish_topics(history, history.topics(), app.publish_options, app.file_writer(out / "feeds"), now=app.now)
    say("\nWritten:")
    for name in _names(out):
        say(f"  {name}")
    return 0


def _show(digest: Digest) -> None:
    from digestd.headline import subject

    say(f"\nSubject: {subject(digest)}")
    shown = digest.sections[0].papers[:5]
    for item in shown:
        say(f"  {item.effective_at:%b} {item.effective_at.day:2}  {item.paper.title}")
    rest = digest.new - len(shown)
    if rest:
        say(f"          and {rest} more")


def _names(out: Path) -> Sequence[str]:
    return [str(path) for folder in ("mail", "feeds") for path in sorted((out / folder).rglob("*")) if path.is_file()]
