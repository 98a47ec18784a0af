"""Mail as one ``.eml`` file a message. Floor 3; entry: ``EmlFolderChannel``.

The name is made of the Message-ID: a second hand-over of the same message finds its own file and leaves it as it is.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from pathlib import Path

from digestd.errors import ChannelError
from digestd.model.delivery import Deferred, Fenced, Message, Outcome, Reply, Sent, Uncertain
from digestd.retry import Fault
from digestd.send.envelope import unsendable
from digestd.send.files import write_files
from digestd.send.run_to_end import run_to_end


class EmlFolderChannel:
    """Writes messages into a folder, which is made if it is not there; keeps the contract of ``ports.Channel``."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def send(self, message: Message, *, before_dot: Callable[[], Awaitable[bool]]) -> Outcome:
        """Write one message as a file of its own."""
        refused = unsendable(message)
        if refused is not None:
            return refused
        try:
            if not await before_dot():
                return Fenced()
        except asyncio.CancelledError:
            return Deferred(str(Fault.CANCELLED), relay_fault=True)
        return await run_to_end(_write, self._folder, eml_name(message.message_id), message.body)

    async def close(self) -> None:
        """Do nothing: no file is kept open."""


def eml_name(message_id: str) -> str:
    """Return the name of a message's file."""
    return f"{hashlib.sha256(message_id.encode()).hexdigest()[:32]}.eml"


def _write(folder: Path, name: str, body: bytes) -> Outcome:
    try:
        is_new = bool(write_files(folder, {name: body}, mode=0o600))
    except ChannelError as error:
        # The file may stand although the folder could not be brought to the disk: a power cut would decide.
        file = folder / name
        try:
            stands = file.is_file() and file.read_bytes() == body
        except OSError:
            stands = True
        return Uncertain(str(error)) if stands else Deferred(str(error), relay_fault=True)
    return Sent(Reply(250, "2.0.0 kept" if is_new else "2.0.0 was there already"))
