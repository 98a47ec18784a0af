"""Each message by the channel of its reader: mail, or one that the settings name. Floor 3; entry: ``RoutedChannel``."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from digestd.addresses import channel_name
from digestd.model.delivery import Deferred, Message, Outcome
from digestd.ports import Channel


class RoutedChannel:
    """Hands messages to one of several channels; keeps the contract of ``ports.Channel``, since they do.

    A message for a channel that the settings no longer name waits, like one for a server that is away.
    """

    def __init__(self, mail: Channel, named: Mapping[str, Channel]) -> None:
        self._mail, self._named = mail, dict(named)

    async def send(self, message: Message, *, before_dot: Callable[[], Awaitable[bool]]) -> Outcome:
        """Hand over one message by the channel of its reader."""
        name = channel_name(message.recipient)
        if name is None:
            return await self._mail.send(message, before_dot=before_dot)
        if name not in self._named:
            return Deferred(f"no channel '{name}' in the settings")
        return await self._named[name].send(message, before_dot=before_dot)

    async def close(self) -> None:
        """Close all of them."""
        for channel in (self._mail, *self._named.values()):
            await channel.close()
