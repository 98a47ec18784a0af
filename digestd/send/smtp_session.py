"""One message after the other over one connection of SMTP or LMTP. Floor 3; entry: ``Session.hand_over``.

The step is kept by us and never inferred from an error. Where the server offers PIPELINING, MAIL, RCPT and DATA leave in
one write (RFC 2920). The body follows when DATA was answered, then ``before_dot`` is awaited, then the final "." leaves.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from digestd.model.delivery import Fenced, Message, Outcome, Reply
from digestd.retry import Fault, Step, classify
from digestd.send.envelope import Offers, mail_command, misfit, rcpt_command, stuffed
from digestd.send.settings import Deadlines
from digestd.send.smtp_wire import Wire, WireFault

_PIECE = 65536  #: octets of a body that are written before we look whether the server keeps up


class Session:
    """A greeted connection, owned by one worker; not to be used again once it is not ``is_usable``."""

    def __init__(self, wire: Wire, offers: Offers, deadlines: Deadlines) -> None:
        self._wire = wire
        self._offers = offers
        self._deadlines = deadlines
        self._step = Step.MAIL
        self._ends_at = 0.0
        self._needs_reset = False
        self.handed_over = 0  #: messages that were begun
        self.was_stale = False  #: the last message was turned away before anything of it was heard: the server had left

    @property
    def is_usable(self) -> bool:
        """Whether another message may be begun."""
        return self._wire.is_silent

    async def refresh(self) -> bool:
        """Make ready for another message and return whether that succeeded; a refused one left an open envelope."""
        if self._wire.is_silent and self._needs_reset:
            self._needs_reset = False
            self._wire.write(b"RSET\r\n")
            try:
                reply = await self._wire.reply(self._deadlines.quit_s)
            except WireFault:
                return False
            if reply.code != 250:
                self.abort()
        return self._wire.is_silent

    async def hand_over(self, message: Message, before_dot: Callable[[], Awaitable[bool]]) -> Outcome:
        """Hand over one message; as ``Channel.send``."""
        refused = misfit(message, self._offers)
        if refused is not None:
            return refused
        self.handed_over += 1
        self.was_stale = False
        self._step = Step.MAIL
        self._ends_at = asyncio.get_running_loop().time() + self._deadlines.before_dot_s
        try:
            return await self._transact(message, before_dot)
        except WireFault as end:
            self.was_stale = self._step is Step.MAIL and end.fault is Fault.LOST
            return classify(self._step, end.fault)
        except asyncio.CancelledError:
            self.abort()  # the reply to come would be read as the next message's
            return classify(self._step, Fault.CANCELLED)
        except BaseException:
            self.abort()
            raise

    async def bye(self) -> None:
        """Take leave; nothing depends on the answer."""
        if self._wire.is_silent:
            self._wire.write(b"QUIT\r\n")
            try:
                await self._wire.reply(self._deadlines.quit_s)
            except WireFault:
                return
        self._wire.close()

    def abort(self) -> None:
        """Cut the connection; the server takes nothing of what was begun."""
        self._wire.abort()

    async def _transact(self, message: Message, before_dot: Callable[[], Awaitable[bool]]) -> Outcome:
        refused = await self._envelope(message)
        if refused is not None:
            return refused
        refused = await self._body(message)
        if refused is not None:
            return refused
        if not await before_dot():
            self.abort()
            return Fenced()
        refused = self._early_word()  # as long as the dot is not written, nothing can have been taken
        if refused is not None:
            return refused
        self._step = Step.DOT
        self._wire.write(b".\r\n")
        return self._judge(await self._wire.reply(self._deadlines.dot_s))

    async def _envelope(self, message: Message) -> Outcome | None:
        """Send the envelope; return why it was not taken, None if the body may follow."""
        commands = (
            (Step.MAIL, mail_command(message, self._offers)),
            (Step.RCPT, rcpt_command(message, self._offers)),
            (Step.DATA, b"DATA\r\n"),
        )
        if self._offers.pipelining:
            self._wire.write(b"".join(line for _, line in commands))
        for place, (step, line) in enumerate(commands):
            self._step = step
            if not self._offers.pipelining:
                self._wire.write(line)
            reply = await self._wire.reply(self._patience())
            if reply.code // 100 != (3 if step is Step.DATA else 2):
                outcome = self._judge(reply)
                if self._offers.pipelining:
                    await self._read_on(len(commands) - place - 1)
                return outcome
        return None

    async def _read_on(self, left: int) -> None:
        """Read the replies to commands that were sent along with a refused one; the outcome stands already.

        A server may answer DATA with 354 although it has no recipient; then a lone "." ends the empty message. If it does
        seem to have one, nothing more may be written: the empty message could be delivered.

        Source: RFC 2920 3.1.
        """
        has_recipient = False
        try:
            for _ in range(left):
                reply = await self._wire.reply(self._deadlines.quit_s)
                if reply.code == 354 and not has_recipient:
                    self._wire.write(b".\r\n")
                    await self._wire.reply(self._deadlines.quit_s)
                elif reply.code < 400:
                    has_recipient = True
        except WireFault:
            return
        if has_recipient:
            self.abort()

    async def _body(self, message: Message) -> Outcome | None:
        """Send the body; return what the server said against it, None if the final "." may follow."""
        self._step = Step.BODY
        body = stuffed(message.body)
        for start in range(0, len(body), _PIECE):
            self._wire.write(body[start : start + _PIECE])
            await self._wire.drained(self._patience())
            refused = self._early_word()
            if refused is not None:
                return refused
        return None

    def _early_word(self) -> Outcome | None:
        """Return what a reply before the final "." means: a server that will not hear us out; None if all is quiet."""
        self._wire.check()
        if self._wire.is_silent:
            return None
        self.abort()
        reply = self._wire.take_reply()
        return classify(self._step, Fault.GARBAGE if reply is None or reply.code < 400 else reply)

    def _judge(self, reply: Reply) -> Outcome:
        """Return what a reply to the present step means, and leave the connection in a known state."""
        if reply.code == 421:  # RFC 5321 3.8: the server closes
            self.was_stale = self._step is Step.MAIL
            self.abort()
        elif reply.code < 400 and not (self._step is Step.DOT and reply.code < 300):
            self.abort()  # it answers something that we did not say
        elif self._step is not Step.DOT:
            self._needs_reset = True
        return classify(self._step, reply)

    def _patience(self) -> float:
        """Return how long the next answer may take, the whole hand-over bounded too."""
        left = self._ends_at - asyncio.get_running_loop().time()
        return max(0.0, min(self._deadlines.command_s, left))
