"""Digests to chat and push services by the library apprise. Floor 3; entry: ``AppriseChannel``. Needs the extra apprise.

The library says only whether a service took a message, never how far it came. So everything from the moment when it is
asked is the final ".": whatever it does not call taken is uncertain. Its connections are its own, without our guard: it goes
only where the operator's settings say. It and what it uses write addresses, which hold secrets, into the log; they are
silenced.
"""

from __future__ import annotations

import asyncio
import logging
import warnings
from collections.abc import Awaitable, Callable
from contextlib import suppress

from digestd.errors import ConfigError
from digestd.model.delivery import Deferred, Fenced, Message, Outcome, Reply, Sent, Uncertain
from digestd.retry import Fault
from digestd.send.envelope import unsendable
from digestd.send.plain import read_digest
from digestd.send.settings import AppriseSettings

_LOGGERS = ("apprise", "urllib3", "requests", "requests_oauthlib", "oauthlib")


class AppriseChannel:
    """Notifies one service; keeps the contract of ``ports.Channel``.

    Raises:
        ConfigError: the extra is not installed, or the library does not know such an address.
    """

    def __init__(self, settings: AppriseSettings) -> None:
        for name in _LOGGERS:
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # of its plugins, all of which are loaded here
            try:
                from apprise import Apprise
            except ImportError as error:
                raise ConfigError("channel: expected the extra apprise (pip install 'digestd[apprise]')") from error
            self._apprise = Apprise()
            is_known = self._apprise.add(settings.url)
        if not is_known:
            raise ConfigError("channel url: expected an address that apprise knows, found another one")
        self._deadline_s = settings.deadline_s
        self._left: set[asyncio.Task[bool]] = set()

    async def send(self, message: Message, *, before_dot: Callable[[], Awaitable[bool]]) -> Outcome:
        """Notify the service of one message."""
        refused = unsendable(message)
        if refused is not None:
            return refused
        digest = read_digest(message)
        try:
            if not await before_dot():
                return Fenced()
        except asyncio.CancelledError:
            return Deferred(str(Fault.CANCELLED))
        task = asyncio.ensure_future(self._notify(digest.subject, digest.text))
        self._left.add(task)
        task.add_done_callback(self._left.discard)
        try:
            async with asyncio.timeout(self._deadline_s):
                # its thread goes on whatever becomes of us, so it is not cancelled but left
                is_taken = await asyncio.shield(task)
        except TimeoutError:
            return Uncertain(f"apprise: {Fault.TIMEOUT}")
        except asyncio.CancelledError:
            return Uncertain(f"apprise: {Fault.CANCELLED}")
        return (
            Sent(Reply(250, "2.0.0 taken"))
            if is_taken
            else Uncertain("apprise: the service did not take it, or not all")
        )

    async def close(self) -> None:
        """Wait for what was left, each not longer than the library's own deadlines."""
        with suppress(asyncio.CancelledError):
            if self._left:
                await asyncio.wait(self._left, timeout=self._deadline_s)

    async def _notify(self, subject: str, text: str) -> bool:
        try:
            return bool(await self._apprise.async_notify(body=text, title=subject, body_format="text"))
        except Exception as error:  # a plugin's own errors, of any library; their text may hold the address
            logging.getLogger(__name__).warning("channel failed: apprise: %s", type(error).__name__)
            return False
