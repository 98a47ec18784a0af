"""Mail into a Maildir (cr.yp.to/proto/maildir.html). Floor 3; entry: ``MaildirChannel``.

A message is written whole into ``tmp``, brought to the disk, and moved into ``new``. Its name is made of its Message-ID, so
that a second hand-over of the same message finds the first, also where a reader has moved it to ``cur`` since.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from digestd.model.delivery import Deferred, Fenced, Message, Outcome, Reply, Sent, Uncertain
from digestd.retry import Fault
from digestd.send.envelope import unsendable
from digestd.send.run_to_end import run_to_end


class MaildirChannel:
    """Puts messages into one Maildir, which is made if it is not there; keeps the contract of ``ports.Channel``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def send(self, message: Message, *, before_dot: Callable[[], Awaitable[bool]]) -> Outcome:
        """Put one message into ``new``, unless it is there already."""
        refused = unsendable(message)
        if refused is not None:
            return refused
        name = f"{hashlib.sha256(message.message_id.encode()).hexdigest()[:32]}.digestd"
        draft = self._folder / "tmp" / name
        try:
            await run_to_end(_write, draft, message.body)
        except OSError as error:
            return Deferred(f"maildir: {error.strerror or error}", relay_fault=True)
        try:
            goes_out = await before_dot()
        except asyncio.CancelledError:
            draft.unlink(missing_ok=True)
            return Deferred(str(Fault.CANCELLED), relay_fault=True)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise
        if not goes_out:
            draft.unlink(missing_ok=True)
            return Fenced()
        return await run_to_end(_move, draft, name)

    async def close(self) -> None:
        """Do nothing: no file is kept open."""


def _write(draft: Path, body: bytes) -> None:
    for name in ("tmp", "new", "cur"):
        (draft.parents[1] / name).mkdir(mode=0o700, parents=True, exist_ok=True)
    # What a killed process left is written over: the name stands for this message only.
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(body)
        file.flush()
        os.fsync(file.fileno())


def _move(draft: Path, name: str) -> Outcome:
    folder = draft.parents[1]
    new = folder / "new"
    try:
        if (new / name).exists() or any((folder / "cur").glob(f"{name}*")):
            draft.unlink()
            return Sent(Reply(250, "2.0.0 was there already"))
        draft.replace(new / name)
    except OSError as error:
        draft.unlink(missing_ok=True)
        return Deferred(f"maildir: {error.strerror or error}", relay_fault=True)
    try:
        _sync_folder(new)
    except OSError as error:
        return Uncertain(f"maildir: {error.strerror or error}")
    return Sent(Reply(250, "2.0.0 kept"))


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
