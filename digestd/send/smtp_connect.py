"""From an address to a greeted connection, encrypted and logged in as the settings say. Floor 3; entry: ``open_session``.

aiosmtplib connects, encrypts and logs in; then its transport is taken over by our wire, which can pipeline and keeps the
step before the final ".". What it must not do is asked for step by step, for its own ``connect`` would log in over plaintext
when STARTTLS was stripped from the offers.
"""

from __future__ import annotations

import asyncio
import ssl
from functools import cache
from pathlib import Path
from typing import cast

import aiosmtplib

from digestd.errors import ConfigError
from digestd.model.delivery import Deferred, Outcome, Reply
from digestd.retry import Fault, Step, classify
from digestd.send.envelope import read_offers
from digestd.send.settings import Deadlines, LmtpSettings, SmtpSettings, TlsMode
from digestd.send.smtp_session import Session
from digestd.send.smtp_wire import Wire, WireFault, printable


@cache
def tls_context(ca_file: Path | None) -> ssl.SSLContext:
    """Return the process's one context for relays, which verifies certificates and names.

    Args:
        ca_file: certificates to trust in place of the system's.

    Raises:
        ConfigError: the file cannot be read as certificates.
    """
    try:
        return ssl.create_default_context(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise ConfigError(f"mail ca_file: {ca_file}: {error.strerror or error}") from error


async def open_session(settings: SmtpSettings) -> Session | Deferred:
    """Return a connection that is ready for MAIL, or why there is none."""
    client = aiosmtplib.SMTP(
        hostname=settings.host,
        port=None if settings.socket else settings.relay_port,
        socket_path=settings.socket,
        local_hostname=settings.helo_name,
        timeout=settings.deadlines.command_s,
        use_tls=settings.mode is TlsMode.IMPLICIT,
        start_tls=False,
        tls_context=None if settings.mode is TlsMode.NONE else tls_context(settings.ca_file),
    )
    at = _Progress()
    try:
        # Each step has its time; a server that drips one octet a minute is bounded by the sum.
        async with asyncio.timeout(settings.deadlines.connect_s + settings.deadlines.before_dot_s):
            fault = await _greet(client, settings, at)
    except (aiosmtplib.SMTPException, OSError, TimeoutError) as error:
        _drop(client)
        return _deferred(classify(at.step, _seen(error)))
    except BaseException:
        _drop(client)
        raise
    if fault is not None:
        _drop(client)
        return _deferred(classify(at.step, fault))
    # No await from here on: between two owners nothing can be read by the wrong one.
    wire = Wire.take_over(cast("asyncio.Transport", client.transport))
    return Session(wire, read_offers(client.esmtp_extensions), settings.deadlines)


async def open_lmtp_session(settings: LmtpSettings) -> Session | Deferred:
    """Return an LMTP connection that is ready for MAIL, or why there is none."""
    loop = asyncio.get_running_loop()
    step = Step.CONNECT
    try:
        async with asyncio.timeout(settings.deadlines.connect_s):
            if settings.socket is not None:
                _, wire = await loop.create_unix_connection(Wire, str(settings.socket))
            else:
                _, wire = await loop.create_connection(Wire, settings.host, settings.port)
    except (OSError, TimeoutError) as error:
        return _deferred(classify(step, _seen(error)))
    try:
        reply = await wire.reply(settings.deadlines.connect_s)
        if reply.code == 220:
            step = Step.EHLO
            wire.write(f"LHLO {settings.helo_name}\r\n".encode())
            reply = await wire.reply(settings.deadlines.command_s)
    except WireFault as end:
        return _deferred(classify(step, end.fault))
    except BaseException:
        wire.abort()
        raise
    if step is Step.CONNECT or reply.code != 250:
        wire.abort()
        return _deferred(classify(step, reply))
    return Session(wire, read_offers(_extensions(wire.heard)), settings.deadlines)


class _Progress:
    """How far the greeting has come."""

    step = Step.CONNECT


async def _greet(client: aiosmtplib.SMTP, settings: SmtpSettings, at: _Progress) -> Fault | None:
    """Connect, encrypt and log in; return what a relay does not offer though we need it."""
    deadlines: Deadlines = settings.deadlines
    await client.connect(timeout=deadlines.connect_s)
    at.step = Step.EHLO
    await client.ehlo()
    if settings.mode is TlsMode.STARTTLS:
        at.step = Step.TLS
        if not client.supports_extension("starttls"):
            return Fault.TLS
        await client.starttls(timeout=deadlines.connect_s)
        await client.ehlo()  # what was said before encryption may be anybody's word (RFC 3207 4.2)
    if settings.username is not None:
        at.step = Step.AUTH
        if not client.supported_auth_methods:
            return Fault.NO_LOGIN
        await client.login(settings.username, settings.password)
    return None


def _seen(error: BaseException) -> Reply | Fault:
    """Return what an error of connecting shows."""
    if isinstance(error, ssl.SSLError) or isinstance(error.__cause__, ssl.SSLError):
        return Fault.TLS
    if isinstance(error, aiosmtplib.SMTPResponseException):
        return Reply(error.code, printable(error.message)) if 200 <= error.code <= 599 else Fault.GARBAGE
    return Fault.TIMEOUT if isinstance(error, TimeoutError) else Fault.LOST


def _deferred(outcome: Outcome) -> Deferred:
    """Return the outcome of a step before MAIL, which can be nothing else."""
    if not isinstance(outcome, Deferred):
        raise TypeError(f"outcome of connecting: expected Deferred, found {outcome}")
    return outcome


def _drop(client: aiosmtplib.SMTP) -> None:
    """Cut a connection that came to nothing; a close with courtesy could hang like the connection itself."""
    if client.transport is not None:
        cast("asyncio.Transport", client.transport).abort()
    client.close()


def _extensions(heard: tuple[str, ...]) -> dict[str, str]:
    """Return the parameters of what LHLO's answer offers, by keyword in lower case."""
    found = {}
    for line in heard[1:]:
        keyword, _, parameters = line.partition(" ")
        found[keyword.lower()] = parameters
    return found
