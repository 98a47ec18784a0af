"""Mail straight into a mail store (RFC 2033). Floor 3; entry: ``LmtpChannel``.

LMTP is SMTP with another greeting and one answer to the final "." for each recipient; a message here has one recipient.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from digestd.model.delivery import Message, Outcome
from digestd.send.settings import LmtpSettings
from digestd.send.smtp_connect import open_lmtp_session
from digestd.send.smtp_pool import Pool


class LmtpChannel:
    """Hands messages to a mail store over a few connections that are kept; as ``SmtpChannel``."""

    def __init__(self, settings: LmtpSettings) -> None:
        self._pool = Pool(lambda: open_lmtp_session(settings), settings.limits)

    async def send(self, message: Message, *, before_dot: Callable[[], Awaitable[bool]]) -> Outcome:
        """Hand over one message; waits for a connection and for the limits."""
        return await self._pool.hand_over(message, before_dot)

    async def close(self) -> None:
        """Take leave on all connections; a second call does nothing."""
        await self._pool.close()
