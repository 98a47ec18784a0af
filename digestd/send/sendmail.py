"""Mail by a program that behaves like sendmail. Floor 3; entry: ``SendmailChannel``.

The program has the message when it reads the end of its input: that is the final ".". It exits without it when its input
does not end but the program is killed. Lines end in LF, as such programs expect of their own machine; they put the line ends
of the mail back. In a service that may gain no privileges the program of Postfix hangs: use SMTP to localhost there.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress

from digestd.model.delivery import Deferred, Fenced, Message, Outcome, Refused
from digestd.retry import Fault, Step, classify, classify_exit
from digestd.send.envelope import unsendable
from digestd.send.settings import SendmailSettings


class SendmailChannel:
    """Runs the program once for each message; keeps the contract of ``ports.Channel``."""

    def __init__(self, settings: SendmailSettings) -> None:
        self._settings = settings
        self._gate = asyncio.Semaphore(settings.at_once)

    async def send(self, message: Message, *, before_dot: Callable[[], Awaitable[bool]]) -> Outcome:
        """Give one message to a program of its own."""
        refused = unsendable(message)
        if refused is not None:
            return refused
        try:
            async with self._gate:
                return await self._run(message, before_dot)
        except asyncio.CancelledError:
            return Deferred(str(Fault.CANCELLED), relay_fault=True)

    async def close(self) -> None:
        """Do nothing: no program outlives its message."""

    async def _run(self, message: Message, before_dot: Callable[[], Awaitable[bool]]) -> Outcome:
        arguments = ("-i", "-f", message.sender or "<>", "--", message.recipient)
        try:
            program = await asyncio.create_subprocess_exec(
                self._settings.program,
                *arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.DEVNULL,
                start_new_session=True,  # so that what it starts can be killed with it
            )
        except OSError as error:
            return Deferred(f"{self._settings.program}: {error.strerror or error}", relay_fault=True, pause=True)
        step = Step.BODY
        try:
            ended = await self._feed(program, message.body)
            if ended is not None:
                return ended
            if not await before_dot():
                return Fenced()
            step = Step.DOT
            _input_of(program).close()
            async with asyncio.timeout(self._settings.deadline_s):
                return classify_exit(await program.wait())
        except TimeoutError:
            return classify(step, Fault.TIMEOUT)
        except asyncio.CancelledError:
            return classify(step, Fault.CANCELLED)
        finally:
            await _kill(program)

    async def _feed(self, program: asyncio.subprocess.Process, body: bytes) -> Outcome | None:
        """Write the message but not its end; return what became of a program that ended before it."""
        stdin = _input_of(program)
        stdin.write(body.replace(b"\r\n", b"\n"))
        try:
            async with asyncio.timeout(self._settings.deadline_s):
                await stdin.drain()
        except ConnectionError:  # it closed its input: it will not hear the message out
            return await self._ended_early(program)
        # A program that is quick to leave may not be noticed by the write, only by the state of its input.
        has_left = stdin.is_closing() or program.returncode is not None
        return await self._ended_early(program) if has_left else None

    async def _ended_early(self, program: asyncio.subprocess.Process) -> Outcome:
        """Return what a program means that ended before the message did: nothing was handed over."""
        async with asyncio.timeout(self._settings.deadline_s):
            status = await program.wait()
        said = classify_exit(status)
        if isinstance(said, Deferred | Refused):
            return said
        return Deferred(f"exit status {status} before it had the message", relay_fault=True)


def _input_of(program: asyncio.subprocess.Process) -> asyncio.StreamWriter:
    if program.stdin is None:
        raise TypeError("program without an input")
    return program.stdin


async def _kill(program: asyncio.subprocess.Process) -> None:
    """End a program that still runs, with all that it started, and wait until it is gone."""
    if program.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(program.pid, signal.SIGKILL)
        with suppress(ProcessLookupError):
            program.kill()
    _input_of(program).close()
    while True:
        try:
            await program.wait()
        except asyncio.CancelledError:  # a killed program is gone in a moment; an orphan would stay
            continue
        return
