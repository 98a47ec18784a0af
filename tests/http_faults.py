"""A web server that takes posts, and misbehaves as told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Post:
    """A whole message that was taken in."""

    headers: dict[str, str]  #: names in lower case
    body: bytes


@dataclass
class PostServer:
    """Takes whole posts on a free port of this machine.

    Each answer of the list is for one post, the last one for all that follow: a status with headers ("429", "Retry-After: 60"),
    or what happens in its place: "hang", "reset", "garbage".
    """

    answers: list[tuple[str, ...]] = field(default_factory=lambda: [("204",)])
    kept: list[Post] = field(default_factory=list)
    begun: int = 0  #: posts whose head came, whole or not
    port: int = 0
    taken: asyncio.Event = field(default_factory=asyncio.Event)  #: a whole post is there

    @property
    def url(self) -> str:
        """Where to post."""
        return f"http://127.0.0.1:{self.port}/hook?key=hush-314"

    @asynccontextmanager
    async def running(self) -> AsyncIterator[PostServer]:
        """Serve until the end of the block."""
        tasks: set[asyncio.Task[None]] = set()

        def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.ensure_future(self._serve(reader, writer))
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        server = await asyncio.start_server(begin, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for task in list(tasks):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[1:-2]
            self.begun += 1
            headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head)}
            body = await reader.readexactly(int(headers["content-length"]))
            self.kept.append(Post(headers, body))
            self.taken.set()
            answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            match answer:
                case ("hang",):
                    await asyncio.Event().wait()
                case ("reset",):
                    writer.transport.abort()
                case ("garbage",):
                    writer.write(b"what?\r\n\r\n")
                case (status, *more):
                    lines = [f"HTTP/1.1 {status} As Told", *more, "Content-Length: 0", "Connection: close", "", ""]
                    writer.write("\r\n".join(lines).encode())
            with suppress(ConnectionError):
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()
