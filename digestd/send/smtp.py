"""Mail by a relay (RFC 5321). Floor 3; entry: ``SmtpChannel``.

The relay is best a mail server on this machine: it answers the final "." within milliseconds, so that hardly ever a message
is of unknown fate, and it keeps trying while the other side is away.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from digestd.model.delivery import Message, Outcome
from digestd.send.settings import SmtpSettings, TlsMode
from digestd.send.smtp_connect import open_session, tls_context
from digestd.send.smtp_pool import Pool


class SmtpChannel:
    """Hands messages to a relay over a few connections that are kept.

    ``send`` keeps the contract of ``ports.Channel``. A cancelled call returns its outcome: whoever cancels in order to
    stop a loop looks at ``Task.cancelling()`` after it.

    Raises:
        ConfigError: the certificates named cannot be read.
    """

    def __init__(self, settings: SmtpSettings) -> None:
        if settings.mode is not TlsMode.NONE:
            tls_context(settings.ca_file)  # a wrong file is found at start, not at the first digest
        self._pool = Pool(lambda: open_session(settings), settings.limits)

    async def send(self, message: Message, *, before_dot: Callable[[], Awaitable[bool]]) -> Outcome:
        """Hand over one message; waits for a connection and for the limits."""
        return await self._pool.hand_over(message, before_dot)

    async def close(self) -> None:
        """Take leave on all connections; a second call does nothing."""
        await self._pool.close()
