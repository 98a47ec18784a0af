"""A mail server on loopback, in a thread of its own, that writes what it took into a file: the truth of every count.

It speaks plain SMTP with PIPELINING. It can be told what to answer to a recipient, and to call out at a point of the
protocol, so that a test can kill the client at that very byte.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path

#: points at which the server calls out, in the order of the protocol
POINTS = ("mail", "rcpt", "data", "midbody", "dot.not_kept", "dot.kept", "reply")


@dataclass(frozen=True)
class Taken:
    """A message that the server took."""

    sender: str
    recipient: str
    body: bytes

    @property
    def mail(self) -> EmailMessage:
        """The message, read by the standard library."""
        read = message_from_bytes(self.body, policy=policy.default)
        assert isinstance(read, EmailMessage)
        return read

    @property
    def message_id(self) -> str:
        """The Message-ID."""
        return str(self.mail["Message-ID"])

    @property
    def text(self) -> str:
        """The text part."""
        part = self.mail.get_body(("plain",))
        assert part is not None
        content = part.get_content()
        assert isinstance(content, str)
        return content.replace("\r\n", "\n")


@dataclass
class Sink:
    """One server."""

    file: Path  #: one JSON line for each message taken
    answers: Mapping[str, str] = field(default_factory=dict)  #: recipient -> answer to RCPT, "250 ok" for others
    after_dot: Mapping[str, str] = field(
        default_factory=dict
    )  #: recipient -> answer to the final "." instead of taking
    call_out: Callable[[str], bool] = field(default=lambda _: False)  #: whether the client is gone now
    port: int = 0
    commands: list[str] = field(default_factory=list)

    def taken(self) -> list[Taken]:
        """Return what the server took, in order."""
        if not self.file.exists():
            return []
        rows = [json.loads(line) for line in self.file.read_text(encoding="utf-8").splitlines()]
        return [Taken(row["sender"], row["recipient"], row["body"].encode("latin-1")) for row in rows]

    def counts(self) -> Counter[str]:
        """Return how often each Message-ID was taken."""
        return Counter(one.message_id for one in self.taken())

    def keep(self, sender: str, recipient: str, body: bytes) -> None:
        """Write a message into the file."""
        row = {"sender": sender, "recipient": recipient, "body": body.decode("latin-1")}
        with self.file.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Speak with one client."""
        with suppress(OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            await _Talk(self, reader, writer).run()
        writer.transport.abort()


class _GoneError(ConnectionError):
    """The client was killed, or has left."""


class _Talk:
    def __init__(self, sink: Sink, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.sink, self.reader, self.writer = sink, reader, writer
        self.sender, self.recipient = "", ""

    def reach(self, point: str) -> None:
        if self.sink.call_out(point):
            raise _GoneError

    async def say(self, text: str) -> None:
        self.writer.write(text.encode() + b"\r\n")
        await self.writer.drain()

    async def run(self) -> None:
        await self.say("220 sink ESMTP")
        while line := await self.reader.readline():
            text = line.decode("utf-8", "replace").rstrip("\r\n")
            self.sink.commands.append(text)
            match text[:4].upper():
                case "EHLO":
                    await self.say(
                        "250-sink\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250 ENHANCEDSTATUSCODES"
                    )
                case "MAIL":
                    self.sender, self.recipient = _path(text), ""
                    self.reach("mail")
                    await self.say("250 2.1.0 ok")
                case "RCPT":
                    await self.on_rcpt(_path(text))
                case "DATA":
                    await self.on_data()
                case "QUIT":
                    await self.say("221 2.0.0 bye")
                    return
                case "RSET" | "NOOP":
                    self.recipient = ""
                    await self.say("250 2.0.0 ok")
                case _:
                    await self.say("500 5.5.2 what")

    async def on_rcpt(self, recipient: str) -> None:
        self.reach("rcpt")
        answer = self.sink.answers.get(recipient, "250 2.1.5 ok")
        if answer.startswith("2"):
            self.recipient = recipient
        await self.say(answer)

    async def on_data(self) -> None:
        self.reach("data")
        if not self.recipient:
            await self.say("554 5.5.1 no valid recipients")
            return
        await self.say("354 go")
        lines = [await self.reader.readline()]
        self.reach("midbody")
        while lines[-1] != b".\r\n":
            if not lines[-1]:
                raise _GoneError
            lines.append(await self.reader.readline())
        self.reach("dot.not_kept")
        answer = self.sink.after_dot.get(self.recipient, "250 2.0.0 kept")
        if answer.startswith("2"):
            body = b"".join(line[1:] if line.startswith(b".") else line for line in lines[:-1])
            self.sink.keep(self.sender, self.recipient, body)
            self.reach("dot.kept")
        self.recipient = ""
        await self.say(answer)
        self.reach("reply")


def _path(command: str) -> str:
    return command[command.index("<") + 1 : command.index(">")]


@contextmanager
def serving(sink: Sink) -> Iterator[Sink]:
    """Serve on a free port, in a thread of its own, until the end of the block."""
    started, loop = threading.Event(), asyncio.new_event_loop()
    stop = asyncio.Event()

    async def main() -> None:
        tasks: set[asyncio.Task[None]] = set()

        async def client(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            tasks.add(task)
            try:
                await sink.serve(reader, writer)
            finally:
                tasks.discard(task)

        server = await asyncio.start_server(client, "127.0.0.1", 0, limit=2**20)
        sink.port = server.sockets[0].getsockname()[1]
        started.set()
        await stop.wait()
        server.close()
        for task in tuple(tasks):
            task.cancel()
        if tasks:
            await asyncio.wait(tuple(tasks))
        await server.wait_closed()

    thread = threading.Thread(target=lambda: loop.run_until_complete(main()), daemon=True)
    thread.start()
    assert started.wait(10), "the mail server did not start"
    try:
        yield sink
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
        loop.close()
