"""The outbox into smtp-sink, every state on the disk before its effect, beside a bare client with the same messages."""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path

from bench.corpus import make_paper, page_text
from bench.measure import Measure, Part

MAILS = 2000
CONNECTIONS = (1, 10, 50)
FOLLOWED = datetime(2026, 9, 27, 6, tzinfo=UTC)
SLOT = datetime(2026, 9, 28, 7, 30, tzinfo=UTC)


def prepare(folder: Path, mails: int = MAILS) -> None:
    """Fill an outbox with digests of twenty papers, and write the same messages into one file."""
    from digestd.store import open_store

    store = open_store(folder / "history.sqlite")
    fill(store, mails)
    store.close()
    messages = folder / "messages"
    messages.mkdir()
    store = open_store(folder / "history.sqlite")
    with store.transaction():
        claimed = store.outbox.claim("bench", now=SLOT, lease_until=SLOT + timedelta(hours=1), limit=200)
        for number, one in enumerate(claimed):
            from digestd.render.outgoing import build_mail, unpack_content

            (messages / str(number)).write_bytes(build_mail(one.envelope.fields, unpack_content(one.content)))
        store.outbox.reap(now=SLOT, owners=[])
    store.close()


def fill(store: object, mails: int) -> None:
    """Let so many readers follow a topic that has twenty new papers, and make their digests."""
    from digestd.flows.digest import make_due
    from digestd.flows.ingest import IngestOptions, ingest_document
    from digestd.model.snapshot import Document
    from digestd.store import SqlStore
    from tests.followers import let_follow, make_kitchen

    assert isinstance(store, SqlStore)
    page = page_text(0, [make_paper(number) for number in range(20)])
    ingest_document(store, Document(page.encode()), IngestOptions(now=FOLLOWED))
    topic = store.history.topics()[0].name
    from digestd.model.subscription import First

    with store.transaction():
        for number in range(mails):
            let_follow(store, f"r{number}@example.org", topic, now=FOLLOWED, first=First("latest", latest=20))
    made = make_due(make_kitchen(store), now=SLOT)
    assert len(made) == mails


@contextmanager
def sink() -> Iterator[int]:
    """Run smtp-sink and yield its port."""
    program = shutil.which("smtp-sink", path="/usr/sbin:/usr/bin")
    if program is None:
        sys.exit("bench mail: smtp-sink is missing (Debian: the package postfix)")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    command = [program, "-u", "nobody", f"inet:127.0.0.1:{port}", "1000"]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        ends_at = time.monotonic() + 10
        while time.monotonic() < ends_at:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                time.sleep(0.02)
        yield port
    finally:
        process.terminate()
        process.wait(10)


def deliver_all(folder: Path, *, connections: int) -> float:
    """Return mails a second of the whole outbox, a fresh copy of it."""
    from digestd.flows.deliver import DeliverOptions, deliver
    from digestd.model.delivery import DeliveryState
    from digestd.send.settings import Limits, SmtpSettings, TlsMode
    from digestd.send.smtp import SmtpChannel
    from digestd.store import open_store
    from tests.followers import Clock

    copy = folder / f"run-{connections}.sqlite"
    for end in ("", "-wal", "-shm"):
        copy.with_name(copy.name + end).unlink(missing_ok=True)
    shutil.copy(folder / "history.sqlite", copy)
    store = open_store(copy)

    async def run(port: int) -> float:
        settings = SmtpSettings(host="127.0.0.1", port=port, mode=TlsMode.NONE, limits=Limits(connections))
        channel = SmtpChannel(settings)
        begin = time.perf_counter()
        done = await deliver(store, channel, Clock(SLOT), DeliverOptions("bench", workers=connections))
        await channel.close()
        seconds = time.perf_counter() - begin
        assert done.states[DeliveryState.ACCEPTED] == sum(done.states.values()), done
        return done.states[DeliveryState.ACCEPTED] / seconds

    with sink() as port:
        rate = asyncio.run(run(port))
    store.close()
    return rate


def send_bare(folder: Path, *, connections: int) -> float:
    """Return mails a second of aiosmtplib alone: ready bytes, connections kept, nothing recorded."""
    import aiosmtplib

    messages = [path.read_bytes() for path in sorted((folder / "messages").iterdir())]

    async def run(port: int) -> float:
        left = iter(range(MAILS))

        async def worker() -> None:
            client = aiosmtplib.SMTP(hostname="127.0.0.1", port=port, start_tls=False, use_tls=False)
            await client.connect()
            for number in left:
                body = messages[number % len(messages)]
                await client.sendmail("digest@digest.example.org", [f"r{number}@example.org"], body)
            await client.quit()

        begin = time.perf_counter()
        await asyncio.gather(*(worker() for _ in range(connections)))
        return MAILS / (time.perf_counter() - begin)

    with sink() as port:
        return asyncio.run(run(port))


PART = Part(
    prepare,
    tuple(
        Measure(
            f"deliver, durable, {connections} connection{'s' if connections > 1 else ''}",
            "mails/s",
            partial(deliver_all, connections=connections),
            partial(send_bare, connections=connections),
            "aiosmtplib, not durable",
            2.0 if connections == 10 else 1.0,
        )
        for connections in CONNECTIONS
    ),
)
