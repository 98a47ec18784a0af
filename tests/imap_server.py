"""A mailbox on loopback, in a thread of its own: the few IMAP commands that reading bounces takes, and no others.

It has one user and one folder with mails. It can break off at a command, and it says what was asked of it.
"""

from __future__ import annotations

import re
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field


@dataclass
class Mailbox:
    """One folder on a server."""

    mails: dict[int, bytes] = field(default_factory=dict)  #: by UID
    seen: set[int] = field(default_factory=set)
    break_at: str = ""  #: the connection ends where a command begins with this
    commands: list[str] = field(default_factory=list)  #: what was asked, without tags
    port: int = 0

    def answer(self, command: str) -> tuple[list[bytes], str]:
        """Return untagged lines and the status of a command."""
        if command == "CAPABILITY":
            return [b"* CAPABILITY IMAP4rev1"], "OK done"
        if command.startswith("LOGIN"):
            good = command == 'LOGIN "reef" "se\\"cret"'
            return [], "OK in" if good else "NO [AUTHENTICATIONFAILED] wrong"
        if command.startswith("SELECT"):
            good = command == 'SELECT "Bounces"'
            return ([b"* %d EXISTS" % len(self.mails)], "OK [READ-WRITE] open") if good else ([], "NO no such folder")
        if command == "UID SEARCH UNSEEN":
            unseen = [str(uid) for uid in sorted(set(self.mails) - self.seen, reverse=True)]
            return [" ".join(["* SEARCH", *unseen]).encode()], "OK done"
        if fetch := re.fullmatch(r"UID FETCH (\d+) \(BODY\.PEEK\[\]<0\.(\d+)>\)", command):
            uid = int(fetch[1])
            body = self.mails[uid][: int(fetch[2])]
            return [b"* 1 FETCH (UID %d BODY[]<0> {%d}\r\n%b)" % (uid, len(body), body)], "OK done"
        if store := re.fullmatch(r"UID STORE (\d+) \+FLAGS\.SILENT \(\\Seen\)", command):
            self.seen.add(int(store[1]))
            return [], "OK done"
        if command == "LOGOUT":
            return [b"* BYE"], "OK bye"
        return [], "BAD unknown"


@contextmanager
def serve(box: Mailbox, context: ssl.SSLContext | None = None) -> Iterator[Mailbox]:
    """Serve a folder; ``context`` makes it TLS from the first byte."""

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):  # the client may go at any time
                if context is not None:
                    self.request.settimeout(10)
                    with (
                        context.wrap_socket(self.request, server_side=True) as wrapped,
                        wrapped.makefile("rb") as lines,
                    ):
                        _talk(box, lines, wrapped.sendall)
                else:
                    _talk(box, self.rfile, self.request.sendall)

    class Server(socketserver.ThreadingTCPServer):
        daemon_threads = False
        block_on_close = True

    with Server(("127.0.0.1", 0), Handler) as server:
        box.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield box
        finally:
            server.shutdown()
            thread.join()


def _talk(box: Mailbox, lines: Iterator[bytes], send: object) -> None:
    assert callable(send)
    send(b"* OK ready\r\n")
    for line in lines:
        tag, _, command = line.decode().rstrip("\r\n").partition(" ")
        box.commands.append(command)
        if box.break_at and command.startswith(box.break_at):
            return
        untagged, status = box.answer(command)
        send(b"".join(one + b"\r\n" for one in untagged) + f"{tag} {status}\r\n".encode())
        if command == "LOGOUT":
            return
