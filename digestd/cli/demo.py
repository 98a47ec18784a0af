"""``digestd demo``: the daemon itself, from a page that arrives to the mail that it makes of it. Floor 5."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from datetime import time as clock_time
from email import message_from_bytes, policy
from pathlib import Path
from typing import TYPE_CHECKING

import click

from digestd.cli.common import Shared, fold, say, shared_options
from digestd.errors import DigestdError

if TYPE_CHECKING:
    from email.message import EmailMessage

    from digestd.model.snapshot import Document
    from digestd.wiring import App

#: seconds after which something is wrong
_PATIENCE_S = 60

_CONFIG = """# Written by digestd demo; see config/digestd.toml for all settings.
[store]
path = "history.sqlite"
floor_mb = 0
ballast_mb = 0
[web]
port = {port}
base_url = "http://127.0.0.1:{port}"
[metrics]
serve = false
[feeds]
folder = "feeds"
[mail]
channel = "eml"
folder = "mail"
from_address = "digest@digest.example.org"
[[sources]]
kind = "folder"
name = "inbox"
path = "inbox"
[[subscribers]]
address = "you@example.org"
topics = ["{topic}"]
schedule = "each-snapshot"
first = "none"
"""


class DemoError(DigestdError):
    """The demo did not come to its end."""


@dataclass(frozen=True)
class _Stage:
    """What the demo is played with."""

    folder: Path
    older: tuple[Document, ...]
    newest: Document
    topic: str
    morning: datetime  #: on which the newest page comes; the daemon's clock stands there

    @property
    def config(self) -> Path:
        """The settings."""
        return self.folder / "digestd.toml"


@click.command("demo")
@click.option(
    "--out", type=click.Path(path_type=Path, file_okay=False), default=Path("out/demo"), show_default=True,
    help="Folder for the settings, the history, the mail and the feeds.",
)  # fmt: skip
@click.option("--serve", is_flag=True, help="Go on until Ctrl-C, so that the pages can be looked at.")
@shared_options
def command(shared: Shared, out: Path, serve: bool) -> int:
    """Show the whole way from a page to a mail: the daemon at work on sample pages.

    Older pages of a topic are the history; then the daemon is started, the newest page is put into the folder that it
    watches, and what it makes of it is shown: the mail, the feeds, the pages. A second run finds nothing new.
    """
    try:
        return _play(shared, out, serve=serve)
    except OSError as error:
        raise DemoError(f"demo in {out}: {error.filename or 'a file'} cannot be used: {error.strerror}") from error


def _play(shared: Shared, out: Path, *, serve: bool) -> int:
    stage = _set_up(shared, out)
    begun = time.monotonic()
    with _app(shared, stage) as app:
        for document in stage.older:
            _arrive(app, document)
    with _daemon(stage) as daemon:
        address = _ready(stage, daemon)
        say(f"daemon   ready after {time.monotonic() - begun:.1f} s")
        came = _drop(stage)
        with _app(shared, stage) as app:
            _await(daemon, stage, lambda: _is_read(app, came), f"{came.name} to be read")
            news = _fate(app) == "done"
            if news:
                _show(_await_mail(daemon, stage), app, stage)
            else:
                say(f"\nNothing new: {came.name} is in the history already. The mail and the feeds are in {out}/")
        if serve:
            say(f"\nPages: {address}\nCtrl-C ends it.")
            _go_on(daemon)
    return 0


def _set_up(shared: Shared, out: Path) -> _Stage:
    """Write the settings, and read the sample pages: the newest comes on the morning after its newest paper."""
    from digestd.wiring import data_folder

    out.mkdir(parents=True, exist_ok=True)
    with replace(shared, config=None, db=str(out / "history.sqlite")).app() as app:
        reader = app.page_reader(format_name="listing", labels=None, no_labels=False, rules=None)
        found = []
        for path in sorted(data_folder("seeds", "seeds").glob("*.txt")):
            for document in app.read_documents(path):
                page = reader(document)
                days = [paper.published for paper in page.papers if paper.published is not None]
                found.append((max(days), page.topic or path.stem, replace(document, origin=path.name)))
    found.sort(key=lambda one: one[0], reverse=True)
    newest_day, topic, newest = found[0]
    morning = datetime.combine(newest_day + timedelta(days=1), clock_time(6), UTC)
    older = tuple(replace(document, fetched_at=morning - timedelta(days=7)) for _, _, document in found[1:])
    stage = _Stage(out, older, newest, topic, morning)
    for name in ("inbox", "mail"):
        (out / name).mkdir(exist_ok=True)
    stage.config.write_text(_CONFIG.format(port=_free_port(), topic=topic), encoding="utf-8")
    return stage


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def _app(shared: Shared, stage: _Stage) -> Iterator[App]:
    with replace(shared, config=stage.config, db=None, now=stage.morning).app() as app:
        yield app


def _arrive(app: App, document: Document) -> None:
    """Read an older page into the history, as of the day on which it came."""
    from digestd.flows.ingest import ingest_document

    assert document.fetched_at is not None
    record = ingest_document(app.store, document, replace(app.ingest_options(), now=document.fetched_at))
    say(f"history  {document.origin}: {'unchanged' if record.unchanged else f'{len(record.sightings)} papers'}")


# -- the daemon


@contextmanager
def _daemon(stage: _Stage) -> Iterator[subprocess.Popen[bytes]]:
    """Run the daemon beside us; it is gone afterwards, also where we are told to go by SIGTERM."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    command = [
        sys.executable,
        "-m",
        "digestd",
        "run",
        "--config",
        str(stage.config),
        "--now",
        stage.morning.isoformat(),
    ]
    with (stage.folder / "daemon.log").open("wb") as log:
        daemon = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)  # noqa: S603 # ourselves
    try:
        yield daemon
    finally:
        daemon.terminate()
        try:
            daemon.wait(20)
        except subprocess.TimeoutExpired:
            daemon.kill()
            daemon.wait()
        signal.signal(signal.SIGTERM, before)


def _ready(stage: _Stage, daemon: subprocess.Popen[bytes]) -> str:
    """Wait until the daemon is at work, and return the address of its pages."""
    log = stage.folder / "daemon.log"
    ready = re.compile(rb"daemon ready.*?(http://\S+)")
    _await(daemon, stage, lambda: ready.search(log.read_bytes()) is not None, "the daemon to be ready")
    found = ready.search(log.read_bytes())
    assert found is not None
    return found[1].decode()


def _await(daemon: subprocess.Popen[bytes], stage: _Stage, holds: Callable[[], bool], what: str) -> None:
    """Wait until something holds; DemoError with the daemon's last words if it never does."""
    ends_at = time.monotonic() + _PATIENCE_S
    while not holds():
        if daemon.poll() is not None or time.monotonic() > ends_at:
            said = (stage.folder / "daemon.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()[-5:]
            raise DemoError("\n".join([f"waited for {what} in vain; the daemon's last words:", *said]))
        time.sleep(0.05)


def _drop(stage: _Stage) -> Path:
    """Put the newest page into the watched folder, complete at once, and return its path there."""
    place = stage.folder / "inbox" / str(stage.newest.origin)
    draft = place.with_name(f"{place.name}.part")
    draft.write_bytes(stage.newest.body)
    came = stage.morning.timestamp() - 60
    os.utime(draft, (came, came))
    draft.replace(place)
    say(f"arrives  {place}")
    return place


def _is_read(app: App, came: Path) -> bool:
    return not came.exists() and bool(_fate(app))


def _fate(app: App) -> str:
    """Return what became of the file that came last: "done", "duplicate", or "" as long as nothing did."""
    files = [file for shelf in app.file_shelves() for file in shelf.files()]
    newest = max(files, key=lambda file: file.moved_at, default=None)
    fates = app.store.sources.fates("inbox", [newest.mark]) if newest is not None else {}
    return next((str(fate) for fate in fates.values()), "")


def _go_on(daemon: subprocess.Popen[bytes]) -> None:
    try:
        daemon.wait()
    except KeyboardInterrupt:
        say("")


# -- what it made


def _await_mail(daemon: subprocess.Popen[bytes], stage: _Stage) -> EmailMessage:
    """Wait for the mail and for the feeds, and return the mail."""
    mail, feeds = stage.folder / "mail", stage.folder / "feeds"
    _await(daemon, stage, lambda: any(mail.glob("*.eml")), "the mail")
    _await(daemon, stage, lambda: any(feeds.glob("*/rss.xml")), "the feeds")
    newest = max(mail.glob("*.eml"), key=lambda path: path.stat().st_mtime_ns)
    found = message_from_bytes(newest.read_bytes(), policy=policy.default)
    shutil.copyfile(newest, stage.folder / "digest.eml")
    (stage.folder / "digest.html").write_text(_part(found, "html"), encoding="utf-8")
    (stage.folder / "digest.txt").write_text(_part(found, "plain"), encoding="utf-8")
    return found


def _part(mail: EmailMessage, kind: str) -> str:
    part = mail.get_body((kind,))
    return str(part.get_content()).replace("\r\n", "\n") if part is not None else ""


def _show(mail: EmailMessage, app: App, stage: _Stage) -> None:
    """Print what the daemon found, and where it is."""
    from digestd.coverage_words import coverage_line
    from digestd.flows.momenta import topic_momenta
    from digestd.headline import headline

    history = app.store.history
    topic = history.find_topic(stage.topic)
    assert topic is not None
    words = headline(topic_momenta(history, topic, app.now).chosen)
    say(f"\n{topic.name}: {words.text}")
    if words.note:
        say(words.note)
    fold(coverage_line(history.coverage(topic.slug)))
    say(f"\nSubject: {mail['Subject']}")
    rows = history.sightings(topic.slug, 0, history.head())
    new = [row for row in rows if str(row.kind) == "new"]
    new.sort(key=lambda row: row.known.effective_at, reverse=True)
    for row in new[:5]:
        day = row.known.effective_at
        fold(f"  {day:%b} {day.day:2}  {row.known.paper.title}")
    if len(new) > 5:
        say(f"          and {len(new) - 5} more")
    say("\nWritten:")
    for name in ("digest.eml", "digest.html", "digest.txt", *_feeds(stage.folder)):
        say(f"  {stage.folder / name}")


def _feeds(folder: Path) -> list[str]:
    return [str(path.relative_to(folder)) for path in sorted((folder / "feeds").rglob("*")) if path.is_file()]
