"""How mail leaves: what each channel needs to know. Floor 3. Settings that cannot be used safely are refused when made."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from urllib.parse import urlsplit

from digestd.errors import ConfigError
from digestd.ports import WebPost


def is_loopback(host: str) -> bool:
    """Return whether a host can only be this machine: localhost, or an address that never leaves it."""
    if host.rstrip(".").lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class TlsMode(StrEnum):
    """How the connection to a relay is encrypted; certificates are always verified."""

    STARTTLS = "starttls"  #: from the first command on, or not at all
    IMPLICIT = "implicit"  #: from the first byte
    NONE = "none"  #: only to this machine


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds until something must have happened.

    Source: RFC 5321 4.5.3.2; the longest wait is the one where giving up makes a message uncertain.
    """

    connect_s: float = 30  #: connection and greeting, or the handshake of encryption
    command_s: float = 60  #: answer to a command, and each piece of a body
    before_dot_s: float = 300  #: everything before the final "."
    dot_s: float = 600  #: answer to the final "."
    quit_s: float = 5  #: answers on which nothing depends


@dataclass(frozen=True, slots=True)
class Limits:
    """What a relay is asked to bear."""

    connections: int = 10  #: at the same time
    per_connection: int = 100  #: messages, then it is made anew
    idle_s: float = 10  #: a connection without work is closed after this
    per_minute: int | None = None  #: messages over all connections, evenly spread; None: no limit
    per_domain: int | None = None  #: messages at the same time to addresses of one domain; None: no limit

    def __post_init__(self) -> None:
        for name in ("connections", "per_connection", "per_minute", "per_domain"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ConfigError(f"mail {name}: expected at least 1, found {value}")


@dataclass(frozen=True, slots=True)
class SmtpSettings:
    """A mail relay.

    Raises:
        ConfigError: no encryption to another machine, or a login without encryption.
    """

    host: str = "localhost"
    port: int | None = None  #: None: 587, 465 or 25, by mode
    socket: Path | None = None  #: unix socket; host then only names whom its certificate is checked for
    mode: TlsMode = TlsMode.STARTTLS
    username: str | None = None  #: None: no login
    password: str = field(default="", repr=False)
    ca_file: Path | None = None  #: certificates to trust in place of the system's
    helo_name: str | None = None  #: name said in EHLO; None: this machine's
    deadlines: Deadlines = Deadlines()
    limits: Limits = Limits()

    def __post_init__(self) -> None:
        if self.mode is not TlsMode.NONE:
            return
        if self.socket is None and not is_loopback(self.host):
            raise ConfigError(f"mail mode: expected starttls or implicit for relay '{self.host}', found none")
        if self.username is not None:
            raise ConfigError("mail mode: expected starttls or implicit, because there is a login, found none")

    @property
    def relay_port(self) -> int:
        """The port, or the usual one of the mode."""
        return self.port or {TlsMode.STARTTLS: 587, TlsMode.IMPLICIT: 465, TlsMode.NONE: 25}[self.mode]


@dataclass(frozen=True, slots=True)
class LmtpSettings:
    """A mail store on this machine that speaks LMTP (RFC 2033), which knows neither encryption nor login here.

    Raises:
        ConfigError: the host is another machine.
    """

    socket: Path | None = None  #: unix socket; None: host and port
    host: str = "localhost"
    port: int = 24
    helo_name: str = "localhost"
    deadlines: Deadlines = Deadlines()
    limits: Limits = Limits()

    def __post_init__(self) -> None:
        if self.socket is None and not is_loopback(self.host):
            raise ConfigError(f"mail host: expected a unix socket or this machine for lmtp, found '{self.host}'")


@dataclass(frozen=True, slots=True)
class SendmailSettings:
    """A program that takes mail the way sendmail does."""

    program: Path = Path("/usr/sbin/sendmail")
    deadline_s: float = 60  #: to read a message, and again to end
    at_once: int = 4  #: programs running at the same time


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """A web server that takes digests as JSON.

    Raises:
        ConfigError: the way to another machine is not encrypted, or the secret cannot be read.
    """

    url: str = field(repr=False)  #: may hold a secret
    post: WebPost
    now: Callable[[], datetime]
    secret: bytes = field(default=b"", repr=False)  #: empty: messages are not signed
    idempotent: bool = False  #: the receiver takes each key once: what may have arrived is sent again
    deadline_s: float = 60

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname or "")):
            raise ConfigError("channel url: expected https:// (http:// only to this machine), found something else")
        if parts.username is not None or parts.password is not None:
            raise ConfigError("channel url: expected no login before the host, found one")


@dataclass(frozen=True, slots=True)
class AppriseSettings:
    """A service that the library apprise can write to."""

    url: str = field(default="", repr=False)  #: as apprise wants it; holds secrets
    deadline_s: float = 60


@dataclass(frozen=True, slots=True)
class ChannelSettings:
    """What any of the channels may need; each takes its own part."""

    smtp: SmtpSettings = SmtpSettings()
    lmtp: LmtpSettings = LmtpSettings()
    sendmail: SendmailSettings = SendmailSettings()
    folder: Path | None = None  #: of channels that write files
    webhook: WebhookSettings | None = None
    apprise: AppriseSettings | None = None
