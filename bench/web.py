"""Feeds over HTTP, one worker on loopback and the load in another process; and 500 topics published again and again.

Serving: the web server that the daemon runs, beside a bare starlette app with the same bytes and hash in memory and beside
starlette's StaticFiles, all three under uvicorn. Publishing: onto the disk, beside rendering all feeds and writing none.
``python -m bench.web SERVER FOLDER`` runs one of the servers and prints its port.
"""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from bench.corpus import NEWEST, make_paper
from bench.measure import Measure, Part, Run

if TYPE_CHECKING:
    from starlette.types import ASGIApp

    from digestd.flows.publish import PublishOptions, WriteFiles
    from digestd.store import SqlStore

NOW = NEWEST + timedelta(days=2)
BASE = "https://digest.example.org"
FEED = "topic-000/rss.xml"
#: entries of the feed that is served
ENTRIES = 100
TOPICS = 500
#: papers in each topic that is published
PAPERS = 20
#: topics that the yardstick of publishing renders; its figure is scaled to all
RENDERED = 50

#: a run of load ends at whichever comes first
SECONDS = 0.6
REQUESTS = 4_000
CLIENTS = 16


def add_papers(store: SqlStore, topic: int, numbers: Iterable[int]) -> None:
    """Record papers in a topic as new ones, unparsed."""
    from bench.history import to_paper
    from digestd.identity import paper_ids
    from digestd.model.snapshot import Kind, Order, Page, PaperIntent, Sighting, SnapshotDiff, SnapshotMeta
    from digestd.model.topic import Topic

    slug = f"topic-{topic:03d}"
    found = [to_paper(make_paper(number), number % 1000) for number in numbers]
    intents = [
        PaperIntent(place, paper, paper_ids(paper), changed=True, record=paper) for place, paper in enumerate(found)
    ]
    diff = SnapshotDiff(tuple(intents), tuple(Sighting(place, slug, Kind.NEW) for place in range(len(intents))))
    page = Page(topic=None, papers=tuple(found), order=Order.FEED, title=slug, format="feed")
    name = f"{topic}-{found[0].links[0]}"
    store.history.put_topic(Topic(slug, f"Topic {topic:03d}"), now=NEWEST)
    store.history.record(SnapshotMeta(slug, f"feed:{slug}", name, name, NEWEST, NEWEST), page, diff)


def prepare(folder: Path) -> None:
    """Write the two histories, and the served feed as a file."""
    from digestd.flows.publish import Publisher
    from digestd.send.files import write_files
    from digestd.store import open_store

    for name, topics, papers in (("served", 1, ENTRIES), ("topics", TOPICS, PAPERS)):
        store = open_store(folder / f"{name}.sqlite")
        with store.transaction():
            for topic in range(topics):
                add_papers(store, topic, range(topic * papers, (topic + 1) * papers))
        store.engine.query("PRAGMA wal_checkpoint(TRUNCATE)")
        if name == "served":
            Publisher().publish(store, publish_options(), partial(write_files, folder / "feeds"), now=NOW)
        store.close()


def publish_options() -> PublishOptions:
    """Return what the feeds share."""
    from digestd.flows.publish import PublishOptions
    from digestd.model.feed import FeedSite

    return PublishOptions(FeedSite("Made-up Papers", "digest.example.org"), entries=ENTRIES, base_url=BASE)


# ---- serving


def our_app(folder: Path) -> ASGIApp:
    """Return the service's own application over a history, its feeds on the shelf."""
    from digestd.flows.publish import Publisher
    from digestd.model.pages import Site
    from digestd.store import open_store
    from digestd.templating import build_environment
    from digestd.web.app import create_app
    from digestd.web.services import WebServices
    from digestd.web.shelf import Shelf
    from tests.followers import Clock

    store, shelf = open_store(folder / "served.sqlite"), Shelf()
    Publisher().publish(store, publish_options(), lambda files: shelf.put(files, now=NOW), now=NOW)
    services = WebServices(
        store=store,
        site=Site("Made-up Papers", BASE),
        templates=build_environment(),
        clock=Clock(NOW),
        publish=publish_options(),
        shelf=shelf,
        secrets={"1": store.secret("tokens")},
    )
    return create_app(services)


def bare_app(folder: Path) -> ASGIApp:
    """Return a starlette app that has the feed's bytes and hash in memory and does nothing else."""
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    body = (folder / "feeds" / FEED).read_bytes()
    headers = {"ETag": f'"{hashlib.sha256(body).hexdigest()[:32]}"', "Content-Type": "application/rss+xml"}

    async def feed(request: Request) -> Response:
        if request.headers.get("if-none-match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        return Response(body, headers=headers)

    return Starlette(routes=[Route(f"/feeds/{FEED}", feed)])


def static_app(folder: Path) -> ASGIApp:
    """Return starlette's StaticFiles over the published folder."""
    from starlette.applications import Starlette
    from starlette.routing import Mount
    from starlette.staticfiles import StaticFiles

    return Starlette(routes=[Mount("/feeds", StaticFiles(directory=folder / "feeds"))])


APPS: dict[str, Callable[[Path], ASGIApp]] = {"ours": our_app, "bare": bare_app, "static": static_app}


def run_server(name: str, folder: Path) -> None:
    """Serve until the process is ended; the port is the first line printed."""
    import uvicorn

    from digestd.web.server import WebServer, listen

    app, listener = APPS[name](folder), listen("127.0.0.1", 0)
    print(listener.getsockname()[1], flush=True)
    if name == "ours":
        asyncio.run(WebServer(app, [listener]).serve())
        return
    config = uvicorn.Config(app, lifespan="off", log_config=None, access_log=False, http="h11", ws="none")
    asyncio.run(uvicorn.Server(config).serve(sockets=[listener]))


class Client(asyncio.Protocol):
    """Asks for the same again and again over one connection, until it is told to stop."""

    def __init__(self, request: bytes, status: bytes) -> None:
        self.answers, self.head = 0, b""
        self.failed: str | None = None
        self.begun = asyncio.Event()  #: set with the first answer
        self._request, self._status, self._left, self._buffer = request, status, 0, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for the first time."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """Count an answer when its last byte is there, and ask again."""
        if self._left:
            self._left -= len(data)
        else:
            self._buffer += data
            head, end, rest = self._buffer.partition(b"\r\n\r\n")
            if not end:
                return
            self.head, self._buffer = head, b""
            if not head.startswith(b"HTTP/1.1 " + self._status):
                self.failed = head.decode("latin-1")
                self.transport.close()
                return
            length = 0 if self._status == b"304" else int(header(head, b"content-length"))
            self._left = length - len(rest)
        if not self._left:
            self.answers += 1
            self.begun.set()
            self.transport.write(self._request)

    def connection_lost(self, exc: Exception | None) -> None:
        """Note a server that closes before the end."""
        self.failed = self.failed or f"closed after {self.answers} answers: {exc}"


def header(head: bytes, name: bytes) -> bytes:
    """Return a field of an answer's head, b"" without one."""
    fields = (line.partition(b":") for line in head.split(b"\r\n")[1:])
    return next((value.strip() for key, _, value in fields if key.lower() == name), b"")


async def load(port: int, *, known: bool) -> float:
    """Return answers a second to clients that have the feed already (304) or want all of it (200)."""
    loop = asyncio.get_running_loop()
    ask = f"GET /feeds/{FEED} HTTP/1.1\r\nHost: digest.example.org\r\nUser-Agent: bench\r\n"

    async def connect(request: bytes, status: bytes) -> Client:
        return (await loop.create_connection(lambda: Client(request, status), "127.0.0.1", port))[1]

    first = await connect(f"{ask}\r\n".encode(), b"200")
    await asyncio.wait_for(first.begun.wait(), 10)
    first.transport.abort()
    more = b"If-None-Match: " + header(first.head, b"etag") + b"\r\n" if known else b""
    request = ask.encode() + more + b"\r\n"
    clients = [await connect(request, b"304" if known else b"200") for _ in range(CLIENTS)]
    await asyncio.sleep(0.1)  # neither first connections nor first answers count
    before, begin = sum(client.answers for client in clients), time.perf_counter()
    done = 0
    while done < REQUESTS and time.perf_counter() < begin + SECONDS:
        await asyncio.sleep(0.02)
        done = sum(client.answers for client in clients) - before
    seconds = time.perf_counter() - begin
    failed = next((client.failed for client in clients if client.failed), None)
    assert failed is None, failed
    for client in clients:
        client.transport.abort()
    return done / seconds


@contextmanager
def running(name: str, folder: Path) -> Iterator[int]:
    """Run one server in a process of its own and yield its port."""
    command = [sys.executable, "-m", "bench.web", name, str(folder)]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline())
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def serve(name: str, folder: Path, *, known: bool) -> float:
    """Return answers a second of one server."""
    with running(name, folder) as port:
        return asyncio.run(load(port, known=known))


# ---- slow clients

#: what clients say that never come to an end
SLOW = (
    b"",
    b"GET / HT",
    b"GET / HTTP/1.1\r\nHost: x\r\nX-A: ",
    b"POST /follow HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 900\r\n\r\na=",
)
SOCKETS, GOOD = 500, 400


async def ask_beside_slow(port: int) -> float:
    """Return the milliseconds within which 99 of 100 good requests are answered while 500 sockets are held open."""
    request = f"GET /feeds/{FEED} HTTP/1.1\r\nHost: digest.example.org\r\nConnection: close\r\n\r\n".encode()
    ended = asyncio.Event()

    async def hold(number: int) -> None:
        """Be a slow client; closed, come again."""
        while not ended.is_set():
            with suppress(OSError):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(SLOW[number % len(SLOW)])
                while not ended.is_set() and not reader.at_eof():
                    with suppress(TimeoutError):
                        await asyncio.wait_for(reader.read(1000), 0.5)
                    writer.write(b"a")
                writer.close()
            await asyncio.sleep(0.1)

    slow = [asyncio.create_task(hold(number)) for number in range(SOCKETS)]
    await asyncio.sleep(2)
    times = []
    for _ in range(GOOD):
        begin = time.perf_counter()
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(request)
        answer = await asyncio.wait_for(reader.read(), 30)
        times.append(time.perf_counter() - begin)
        assert answer.startswith(b"HTTP/1.1 200"), answer[:100]
        writer.close()
        await asyncio.sleep(0.02)
    ended.set()
    await asyncio.wait(slow, timeout=10)
    return 1000 * sorted(times)[int(len(times) * 0.99)]


def beside_slow(folder: Path) -> float:
    """Return the same of the daemon's server."""
    with running("ours", folder) as port:
        return asyncio.run(ask_beside_slow(port))


# ---- publishing


def publish(phase: str, files: int, folder: Path) -> float:
    """Return the milliseconds of a run of publishing 500 topics that writes exactly so many files."""
    from digestd.flows.publish import Publisher
    from digestd.send.files import write_files
    from digestd.store import open_store

    out, copy = folder / "published", folder / "run.sqlite"
    shutil.rmtree(out, ignore_errors=True)
    for end in ("", "-wal", "-shm"):
        copy.with_name(copy.name + end).unlink(missing_ok=True)
    shutil.copy(folder / "topics.sqlite", copy)
    store, publisher = open_store(copy), Publisher()

    def run(write: WriteFiles) -> tuple[float, int]:
        begin = time.perf_counter()
        done = publisher.publish(store, publish_options(), write, now=NOW)
        return 1000 * (time.perf_counter() - begin), len(done.written)

    to_disk = partial(write_files, out)
    if phase == "first":
        taken, written = run(to_disk)
    else:
        run(take if phase == "same" else to_disk)
        if phase == "news":
            with store.transaction():
                add_papers(store, TOPICS // 2, [900_000])
        taken, written = run(to_disk)
    store.close()
    assert written == files, f"{written} files"
    return taken


def take(files: Mapping[str, bytes]) -> Sequence[str]:
    """Take files and write none."""
    return tuple(files)


def render_all(folder: Path) -> float:
    """Return the milliseconds that rendering and reading back the feeds of 500 topics takes, by a tenth of them."""
    from digestd.flows.publish import revision_files, topic_files
    from digestd.store import open_store

    store = open_store(folder / "topics.sqlite")
    begin = time.perf_counter()
    for topic in store.history.topics()[:RENDERED]:
        topic_files(store.history, topic, publish_options(), now=NOW)
        revision_files(store, topic, publish_options())
    seconds = time.perf_counter() - begin
    store.close()
    return 1000 * seconds * TOPICS / RENDERED


def _serving(words: str, known: bool, limit: str, limit_name: str, goal: float) -> Measure:
    yardstick: Run = partial(serve, limit, known=known)
    return Measure(words, "requests/s", partial(serve, "ours", known=known), yardstick, limit_name, goal)


def _publishing(words: str, phase: str, files: int, goal: float) -> Measure:
    name = f"publish {TOPICS} topics, {words}: {files:,} files"
    return Measure(name, "ms", partial(publish, phase, files), render_all, "rendering all", goal, False)


PART = Part(
    prepare,
    (
        _serving("feed, all of it (200)", False, "bare", "bare starlette", 0.8),
        _serving("feed, known (304)", True, "bare", "bare starlette", 0.8),
        _serving("feed, all of it (200)", False, "static", "StaticFiles", 1.0),
        _serving("feed, known (304)", True, "static", "StaticFiles", 6.0),
        Measure(
            f"a good request beside {SOCKETS} slow sockets, p99",
            "ms",
            beside_slow,
            1000.0,
            "1 s",
            1.0,
            more_is_better=False,
        ),
        # six documents a topic; three of all topics, three of topics that turn, one list
        _publishing("first time", "first", 6 * TOPICS + 7, 1.5),
        _publishing("nothing changed", "same", 0, 0.05),
        # three of the topic, three of all topics
        _publishing("one new paper", "news", 6, 0.05),
    ),
)


if __name__ == "__main__":
    run_server(sys.argv[1], Path(sys.argv[2]))
