"""A mail server on loopback that misbehaves on request; what it kept is the truth that outcomes are held against."""

from __future__ import annotations

import asyncio
import re
import socket
import ssl
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

#: where a script may strike
PLACES = ("banner", "ehlo", "starttls", "auth", "mail", "rcpt", "data", "midbody", "end", "rset", "quit", "idle")


@dataclass(frozen=True)
class Script:
    """What a server does at one place; everything else it does right.

    ``act`` is a reply, or reset, fin, hang, late, garbage, drip, endless, longline; a reply may be followed by ``+close``,
    ``+reset`` or ``+hang``.
    """

    place: str = ""  #: one of PLACES; "" is a good server
    act: str = ""
    keep: bool = False  #: whether a message is kept when this strikes after its final "."
    at: int | None = 0  #: which message of all it strikes, or which connection before the first; None: every one


@dataclass
class Kept:
    """A message that the server has in its keeping."""

    sender: str
    recipient: str
    body: bytes
    mail: str  #: the MAIL command
    rcpt: str  #: the RCPT command


@dataclass
class FaultServer:
    """One server with its scripts; speaks SMTP and LMTP."""

    scripts: tuple[Script, ...] = ()
    offers: tuple[str, ...] = ("PIPELINING", "SIZE 10000000", "DSN", "8BITMIME", "SMTPUTF8", "ENHANCEDSTATUSCODES")
    starttls: ssl.SSLContext | None = None  #: offered if given
    implicit: ssl.SSLContext | None = None
    injected: bytes = b""  #: plaintext sent along with the answer to STARTTLS
    auth: bool = False
    eager_data: bool = False  #: answers DATA with 354 although there is no recipient
    delay_s: float = 0.0  #: before each answer
    kept: list[Kept] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)
    connections: int = 0
    most_at_once: int = 0
    port: int = 0

    def __post_init__(self) -> None:
        self._open = 0
        self._begun = 0
        self._stopping = asyncio.Event()
        self._goodbye = asyncio.Condition()
        self.struck = asyncio.Event()  #: a script has struck
        self._tasks: set[asyncio.Task[None]] = set()

    @asynccontextmanager
    async def running(self, *, socket_path: Path | None = None) -> AsyncIterator[FaultServer]:
        """Serve on a free port, or a unix socket, until the end of the block."""
        if socket_path is not None:
            server = await asyncio.start_unix_server(self._serve, socket_path, limit=2**20)
        else:
            server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self.implicit, limit=2**20)
            self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            self._stopping.set()
            server.close()
            for task in tuple(self._tasks):
                task.cancel()
            if self._tasks:
                await asyncio.wait(tuple(self._tasks))
            await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        self._open += 1
        self.most_at_once = max(self.most_at_once, self._open)
        try:
            await _Conversation(self, reader, writer, self.connections - 1).run()
        except (OSError, asyncio.IncompleteReadError, ValueError, asyncio.CancelledError):
            pass  # the client left, was thrown out, or spoke what no line can be made of; or the test is over
        finally:
            self._open -= 1
            self._tasks.discard(task)
            writer.transport.abort()

    def next_message(self) -> int:
        """Return the number of a message that begins."""
        self._begun += 1
        return self._begun - 1

    async def left(self, count: int) -> None:
        """Wait until so many clients have said QUIT."""
        async with self._goodbye:
            await self._goodbye.wait_for(lambda: self.commands.count("QUIT") >= count)

    async def hear_goodbye(self) -> None:
        """Let those know who wait for clients to leave."""
        async with self._goodbye:
            self._goodbye.notify_all()

    async def hang(self) -> None:
        """Wait until the server is stopped."""
        await self._stopping.wait()


class _OverError(ConnectionError):
    """The server is through with this client."""


class _Conversation:
    def __init__(
        self, server: FaultServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, number: int
    ) -> None:
        self.server, self.reader, self.writer, self.number = server, reader, writer, number
        self.message = 0
        self.envelope: tuple[str, str] | None = None  # MAIL, RCPT
        self.sender: str | None = None

    async def run(self) -> None:
        if not await self.strikes("banner", self.number):
            await self.say("220 test ESMTP")
        while True:
            line = await self.reader.readline()
            if not line:
                return
            text = line.decode("utf-8", "replace").rstrip("\r\n")
            self.server.commands.append(text)
            verb = text.split(" ", 1)[0].upper()
            handler = getattr(self, f"on_{verb.lower()}", None)
            if handler is None:
                await self.say("500 5.5.2 what")
            else:
                await handler(text)

    async def say(self, text: str) -> None:
        if self.server.delay_s:
            await asyncio.sleep(self.server.delay_s)
        self.writer.write(text.encode() + b"\r\n")
        await self.writer.drain()

    async def strikes(self, place: str, number: int) -> bool:
        """Misbehave if it is the time and place for it; return whether that was done."""
        script = self.script_for(place, number)
        if script is None:
            return False
        self.server.struck.set()
        await self.act(script.act)
        return True

    def script_for(self, place: str, number: int) -> Script | None:
        found = (each for each in self.server.scripts if each.place == place and each.at in (None, number))
        return next(found, None)

    async def act(self, act: str) -> None:
        match act:
            case "reset":
                self.reset()
            case "fin":
                self.writer.close()
                raise _OverError
            case "hang":
                await self.server.hang()
                raise _OverError
            case "late":
                await asyncio.sleep(2.6)  # twice the deadline of those who do not wait
                await self.say("250 2.0.0 at last")
            case "garbage":
                await self.say("hello there")
            case "drip":
                for char in "250 " + "ok" * 40 + "\r\n":
                    self.writer.write(char.encode())
                    await self.writer.drain()
                    await asyncio.sleep(0.1)
            case "endless":
                while True:
                    self.writer.write(b"250-" + b"x" * 400 + b"\r\n")
                    await self.writer.drain()
                    await asyncio.sleep(0)
            case "longline":
                for _ in range(4000):
                    self.writer.write(b"2" * 1000)
                    await self.writer.drain()
                await self.server.hang()
            case _:
                reply, _, then = act.partition("+")
                await self.say(reply)
                if then:
                    await asyncio.sleep(0.02 if then == "reset" else 0)  # a reset overtakes what was not read yet
                    await self.act({"close": "fin"}.get(then, then))

    def reset(self) -> None:
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()
        raise _OverError

    async def on_ehlo(self, _text: str) -> None:
        if await self.strikes("ehlo", self.number):
            return
        server = self.server
        offers = list(server.offers)
        if server.starttls is not None and self.writer.get_extra_info("sslcontext") is None:
            offers.append("STARTTLS")
        elif server.auth:
            offers.append("AUTH PLAIN LOGIN")
        lines = ["test", *offers]
        await self.say("\r\n".join(f"250{'-' if n < len(lines) - 1 else ' '}{line}" for n, line in enumerate(lines)))

    on_lhlo = on_ehlo

    async def on_starttls(self, _text: str) -> None:
        if await self.strikes("starttls", self.number):
            return
        assert self.server.starttls is not None
        self.writer.write(b"220 go\r\n" + self.server.injected)
        await self.writer.drain()
        await self.writer.start_tls(self.server.starttls)

    async def on_auth(self, _text: str) -> None:
        if not await self.strikes("auth", self.number):
            await self.say("235 2.7.0 ok")

    async def on_mail(self, text: str) -> None:
        self.message = self.server.next_message()
        script = self.script_for("mail", self.message)
        self.sender, self.envelope = (text if script is None or script.act.startswith("2") else None), None
        if not await self.strikes("mail", self.message):
            await self.say("250 2.1.0 ok")

    async def on_rcpt(self, text: str) -> None:
        script = self.script_for("rcpt", self.message)
        takes = self.sender is not None if script is None else script.act.startswith("2")
        if takes:
            self.envelope = (self.sender or "MAIL FROM:<>", text)
        if not await self.strikes("rcpt", self.message):
            await self.say("250 2.1.5 ok" if takes else "503 5.5.1 MAIL first")

    async def on_data(self, _text: str) -> None:
        if self.envelope is None and not self.server.eager_data:
            await self.say("554 5.5.1 no valid recipients")
            return
        if await self.strikes("data", self.message):
            return
        await self.say("354 go")
        lines = []
        if self.script_for("midbody", self.message) is not None:
            lines.append(await self.reader.readline())
            await self.strikes("midbody", self.message)
        while (line := await self.reader.readline()) != b".\r\n":
            if not line:
                raise _OverError
            lines.append(line[1:] if line.startswith(b".") else line)
        await self.on_end(b"".join(lines))

    async def on_end(self, body: bytes) -> None:
        script = self.script_for("end", self.message)
        if (script is None or script.keep) and self.envelope is not None:
            mail, rcpt = self.envelope
            self.server.kept.append(Kept(_path(mail), _path(rcpt), body, mail, rcpt))
        has_recipient = self.envelope is not None
        self.sender = self.envelope = None
        if not await self.strikes("end", self.message):
            await self.say("250 2.0.0 kept" if has_recipient else "554 5.5.1 no valid recipients")
            # Idle faults come by themselves, between two messages.
            await self.strikes("idle", self.message)

    async def on_rset(self, _text: str) -> None:
        self.sender = self.envelope = None
        if not await self.strikes("rset", self.message):
            await self.say("250 2.0.0 ok")

    async def on_quit(self, _text: str) -> None:
        await self.server.hear_goodbye()
        if not await self.strikes("quit", self.message):
            with suppress(OSError):
                await self.say("221 2.0.0 bye")
        raise _OverError


def _path(command: str) -> str:
    """Return the address of an envelope command."""
    match = re.match(r"(?:MAIL FROM|RCPT TO):<([^>]*)>", command)
    assert match is not None, command
    return match[1]
