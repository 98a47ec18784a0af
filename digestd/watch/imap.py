"""A mailbox on an IMAP server, for mail that came back. Floor 3; entry: :func:`open_mailbox`. Needs the extra ``imap``.

Mails are looked at without marking them (PEEK), marked as seen one by one when their effect is recorded, and never deleted.
"""

from __future__ import annotations

import imaplib
import ssl
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from digestd.errors import ConfigError, MailboxError

if TYPE_CHECKING:
    from imap_tools import BaseMailBox


@dataclass(frozen=True, slots=True)
class ImapSettings:
    """Where the mailbox is."""

    host: str
    port: int
    username: str
    password: str = field(repr=False)
    folder: str = "INBOX"
    encrypted: bool = True  #: TLS from the first byte
    ca_file: Path | None = None  #: certificates to trust in place of the system's
    timeout_s: float = 60


class ImapMailbox:
    """An open folder of a mailbox."""

    def __init__(self, box: BaseMailBox, where: str) -> None:
        self._box = box
        self._where = where

    def waiting(self, most: int) -> Iterator[tuple[str, bytes]]:
        """Yield the UIDs of mails that nobody has seen, oldest first, with their first ``most`` bytes."""
        with _translated(self._where):
            uids = sorted(self._box.uids("UNSEEN", charset=None), key=int)
        for uid in uids:
            # a part of the mail: however large a mail is, no more of it comes over the wire or into memory
            body = _body(self._ask("FETCH", uid, f"(BODY.PEEK[]<0.{most}>)"))
            if body is not None:
                yield uid, body[:most]

    def mark_seen(self, name: str) -> None:
        """Mark a mail as seen, so that the next look passes it over; a second call does nothing."""
        # not the library's own flag(): it expunges, which deletes what another program has marked as deleted
        self._ask("STORE", name, "+FLAGS.SILENT", r"(\Seen)")

    def _ask(self, *command: str) -> list[Any]:
        with _translated(self._where):
            status, found = self._box.client.uid(*command)
        if status != "OK":
            raise MailboxError(f"{self._where}: expected OK to UID {command[0]}, found {status} {_words(found)}")
        return found


@contextmanager
def open_mailbox(settings: ImapSettings) -> Iterator[ImapMailbox]:
    """Yield the open mailbox, logged out from afterwards.

    Raises:
        ConfigError: the extra is missing, the certificates to trust cannot be read, or the login is refused.
        MailboxError: the server cannot be reached, is not proved to be it, has no such folder, or breaks off.
    """
    try:
        from imap_tools import MailBox, MailboxLoginError, MailBoxUnencrypted
    except ModuleNotFoundError as error:
        raise ConfigError("imap: expected the extra imap, found none (pip install 'digestd[imap]')") from error
    host, port, timeout = settings.host, settings.port, settings.timeout_s
    where = f"mailbox {host}:{port} {settings.folder}"
    with _translated(where):
        box: BaseMailBox
        if settings.encrypted:
            box = MailBox(host, port, timeout, ssl_context=_tls_context(settings.ca_file))
        else:
            box = MailBoxUnencrypted(host, port, timeout)
    try:
        with _translated(where):
            try:
                login = box.login if (settings.username + settings.password).isascii() else box.login_utf8
                login(settings.username, settings.password, initial_folder=None)
            except MailboxLoginError as error:
                raise ConfigError(f"{where}: the login is refused: {_words(error.command_result[1])}") from None
            box.folder.set(settings.folder)
        yield ImapMailbox(box, where)
    finally:
        with suppress(*_failures()):
            box.logout()
        with suppress(OSError):
            box.client.shutdown()  # a logout that failed leaves the connection open


def _tls_context(ca_file: Path | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"bounces imap_ca_file: {ca_file}: {error.strerror or error}") from error


def _failures() -> tuple[type[Exception], ...]:
    from imap_tools.errors import ImapToolsError

    return (imaplib.IMAP4.error, OSError, ImapToolsError)


@contextmanager
def _translated(where: str) -> Iterator[None]:
    """Turn what the library raises into an error of ours."""
    try:
        yield
    except _failures() as error:
        said = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise MailboxError(f"{where}: {said[:300]}") from error


def _body(found: list[Any]) -> bytes | None:
    """Return the body in an answer to FETCH; None if the mail is gone."""
    for item in found:
        if isinstance(item, tuple) and b"BODY[]" in item[0]:
            return bytes(item[1])
        if isinstance(item, bytes) and b"BODY[]" in item:
            return b""  # no literal: nothing that could hold a header line
    return None


def _words(found: list[Any]) -> str:
    """Return what a server said."""
    return b" ".join(item for item in found if isinstance(item, bytes)).decode("ascii", "replace")[:300]
