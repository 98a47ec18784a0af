"""A word to the service manager. Floor 5. Entry point: :class:`Notifier`.

The protocol is one datagram to a unix socket; libraries for it want a compiler (sd_notify(3)).
"""

from __future__ import annotations

import logging
import socket

log = logging.getLogger(__name__)

#: seconds that the service manager may take to make room for a word that must not be lost
_WAIT_S = 2.0


class Notifier:
    """Tells the service manager how the daemon is; without one it says nothing.

    Args:
        address: path of the socket, "@" first for an abstract name; None: not started by a service manager.
    """

    def __init__(self, address: str | None) -> None:
        self._address = address and ("\0" + address[1:] if address.startswith("@") else address)

    def ready(self, status: str) -> None:
        """Say that start-up, or a reload, is over."""
        self._send(f"READY=1\nSTATUS={status}")

    def reloading(self) -> None:
        """Say that the settings are read again."""
        self._send("RELOADING=1")

    def stopping(self) -> None:
        """Say that the daemon is ending."""
        self._send("STOPPING=1\nSTATUS=finishing the mail in hand")

    def alive(self) -> None:
        """Reset the watchdog."""
        self._send("WATCHDOG=1", wait_s=0)

    def status(self, text: str) -> None:
        """Say in a line what is going on."""
        self._send(f"STATUS={text}")

    def _send(self, text: str, *, wait_s: float = _WAIT_S) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.settimeout(wait_s)  # a manager that does not read must not hold the loop
                sender.connect(self._address)
                sender.sendall(text.encode())
        except BlockingIOError:
            log.debug("service manager not told: it has not read what it was told before")
        except OSError as error:
            log.warning("service manager not told: %s", error.strerror or error)
