"""Mail leaves encrypted to whom it should, or not at all; passwords never leave in the clear. Faults S50 to S60."""

from __future__ import annotations

import asyncio
import base64
import ssl
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trustme

from digestd.errors import ConfigError
from digestd.model.delivery import Deferred, Outcome, Sent
from digestd.send.settings import Deadlines, Limits, SmtpSettings, TlsMode
from digestd.send.smtp import SmtpChannel
from digestd.send.smtp_connect import tls_context
from tests.builders import make_message
from tests.smtp_faults import FaultServer, Script

PATIENT = Deadlines(connect_s=5, command_s=5, before_dot_s=10, dot_s=5, quit_s=5)
HASTY = Deadlines(connect_s=0.4, command_s=0.4, before_dot_s=1, dot_s=0.4, quit_s=0.3)


class Authority:
    """A certificate authority that the relay's users trust, and one that they do not."""

    def __init__(self, folder: Path) -> None:
        self.ours, self.other = trustme.CA(), trustme.CA()
        self.ca_file = folder / "ca.pem"
        self.ours.cert_pem.write_to_path(str(self.ca_file))
        self.good = _server_context(self.ours.issue_cert("localhost", "127.0.0.1"))
        self.stranger = _server_context(self.other.issue_cert("localhost", "127.0.0.1"))
        self.wrong_host = _server_context(self.ours.issue_cert("relay.example.com"))
        self.expired = _server_context(self.ours.issue_cert("localhost", not_after=datetime(2020, 1, 1, tzinfo=UTC)))


def _server_context(cert: trustme.LeafCert) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    cert.configure_cert(context)
    return context


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    """Return certificates for the whole module; keys take time to make."""
    return Authority(tmp_path_factory.mktemp("ca"))


def settings_for(server: FaultServer, authority: Authority, mode: TlsMode, **given: object) -> SmtpSettings:
    """Return settings of a relay on loopback, with a certificate of an authority of ours."""
    base = SmtpSettings(
        "localhost",
        server.port,
        mode=mode,
        ca_file=authority.ca_file,
        helo_name="t",
        deadlines=PATIENT,
        limits=Limits(connections=1),
    )
    return replace(base, **given)  # type: ignore[arg-type]  # any field of SmtpSettings


async def yes() -> bool:
    """Let it go out."""
    return True


async def send(settings: SmtpSettings, count: int = 1) -> list[Outcome]:
    """Send messages over one channel."""
    channel = SmtpChannel(settings)
    outcomes = [await channel.send(make_message(n), before_dot=yes) for n in range(count)]
    await channel.close()
    return outcomes


def is_secret_safe(server: FaultServer) -> bool:
    """Return whether the server heard no login."""
    return not any(command.startswith("AUTH") for command in server.commands)


LOGIN: dict[str, object] = {"username": "ana", "password": "secret"}
PAUSE = (True, True)
RETRY = (True, False)


@pytest.mark.parametrize("mode", [TlsMode.STARTTLS, TlsMode.IMPLICIT])
@pytest.mark.parametrize("login", [{}, LOGIN], ids=["open", "login"])
async def test_good_relay(mode: TlsMode, login: dict[str, object], authority: Authority) -> None:
    """Over verified encryption, messages arrive on one connection, after the login if there is one."""
    good = authority.good
    server = FaultServer(
        auth=True,
        starttls=good if mode is TlsMode.STARTTLS else None,
        implicit=None if mode is TlsMode.STARTTLS else good,
    )
    async with server.running():
        outcomes = await send(settings_for(server, authority, mode, **login), 3)
    assert [Sent] * 3 == [type(outcome) for outcome in outcomes]
    assert 1 == server.connections
    assert [make_message(n).body for n in range(3)] == [kept.body for kept in server.kept]
    expected = (
        [f"AUTH PLAIN {base64.b64encode(bytes((0,)) + b'ana' + bytes((0,)) + b'secret').decode()}"] if login else []
    )
    assert expected == [command for command in server.commands if command.startswith("AUTH")]


async def test_big_message_over_tls(authority: Authority) -> None:
    """Five megabytes go through encryption too."""
    server = FaultServer(starttls=authority.good)
    message = make_message(size=5_000_000)
    async with server.running():
        channel = SmtpChannel(settings_for(server, authority, TlsMode.STARTTLS))
        assert isinstance(await channel.send(message, before_dot=yes), Sent)
        await channel.close()
    assert [message.body] == [kept.body for kept in server.kept]


async def test_s50_starttls_stripped(authority: Authority) -> None:
    """If somebody takes STARTTLS out of the offers, nothing is sent, the password least of all, and the queue pauses."""
    server = FaultServer(auth=True)
    async with server.running():
        (outcome,) = await send(settings_for(server, authority, TlsMode.STARTTLS, **LOGIN))
    assert Deferred("TLS: no trusted encryption", relay_fault=True, pause=True) == outcome
    assert is_secret_safe(server)
    assert [] == server.kept


@pytest.mark.parametrize(("act", "expected"), [("454 4.7.0 not now", RETRY), ("502 5.5.1 no", PAUSE), ("reset", RETRY)])
async def test_s51_starttls_refused(act: str, expected: tuple[bool, bool], authority: Authority) -> None:
    """A refusal of encryption is no leave to go without; a temporary one may pass."""
    server = FaultServer((Script("starttls", act),), starttls=authority.good, auth=True)
    async with server.running():
        first, second = await send(settings_for(server, authority, TlsMode.STARTTLS, **LOGIN), 2)
    assert isinstance(first, Deferred)
    assert expected == (first.relay_fault, first.pause)
    assert isinstance(second, Sent)
    assert [make_message(1).body] == [kept.body for kept in server.kept]


async def test_s52_plaintext_injected(authority: Authority) -> None:
    """What was said before encryption is not taken for an answer after it."""
    server = FaultServer(starttls=authority.good, injected=b"250-evil\r\n250 AUTH PLAIN\r\n250 ok\r\n")
    async with server.running():
        (outcome,) = await send(settings_for(server, authority, TlsMode.STARTTLS, deadlines=HASTY))
    assert isinstance(outcome, Sent | Deferred)
    assert isinstance(outcome, Sent) == (1 == len(server.kept))


@pytest.mark.parametrize("mode", [TlsMode.STARTTLS, TlsMode.IMPLICIT])
@pytest.mark.parametrize("fault", ["stranger", "wrong_host", "expired"])
async def test_s53_to_s55_certificate(mode: TlsMode, fault: str, authority: Authority) -> None:
    """A certificate by a stranger, for another name or of another time is not trusted; a person must look."""
    context = getattr(authority, fault)
    server = FaultServer(
        auth=True,
        starttls=context if mode is TlsMode.STARTTLS else None,
        implicit=context if mode is TlsMode.IMPLICIT else None,
    )
    async with server.running():
        (outcome,) = await send(settings_for(server, authority, mode, **LOGIN))
    assert isinstance(outcome, Deferred)
    assert PAUSE == (outcome.relay_fault, outcome.pause)
    assert is_secret_safe(server)
    assert [] == server.kept


async def test_s56_encryption_to_a_plain_port(authority: Authority) -> None:
    """A relay that greets in the clear where encryption should begin is not spoken to."""
    server = FaultServer()
    async with server.running():
        (outcome,) = await send(settings_for(server, authority, TlsMode.IMPLICIT, deadlines=HASTY, **LOGIN))
    assert isinstance(outcome, Deferred)
    assert outcome.relay_fault
    assert [] == [command for command in server.commands if command.startswith(("AUTH", "MAIL"))]


async def test_s57_plain_words_to_an_encrypted_port(authority: Authority) -> None:
    """A relay that waits for encryption, while we wait for its greeting, is given up in time."""
    server = FaultServer(implicit=authority.good)
    began_at = asyncio.get_running_loop().time()
    async with server.running():
        (outcome,) = await send(settings_for(server, authority, TlsMode.STARTTLS, deadlines=HASTY))
        assert asyncio.get_running_loop().time() - began_at < 2
    assert Deferred("connect: no answer in time", relay_fault=True) == outcome


@pytest.mark.parametrize(
    ("act", "expected"),
    [("535 5.7.8 wrong", PAUSE), ("454 4.7.0 not now", RETRY), ("reset", RETRY), ("garbage", RETRY), ("hang", RETRY)],
)
async def test_s58_s59_login_refused(act: str, expected: tuple[bool, bool], authority: Authority) -> None:
    """A wrong password pauses the queue, anything else at the login may pass."""
    server = FaultServer((Script("auth", act, at=None),), starttls=authority.good, auth=True)
    deadlines = HASTY if act == "hang" else PATIENT
    async with server.running():
        (outcome,) = await send(settings_for(server, authority, TlsMode.STARTTLS, deadlines=deadlines, **LOGIN))
    assert isinstance(outcome, Deferred)
    assert expected == (outcome.relay_fault, outcome.pause)
    assert [] == server.kept


async def test_s60_no_login_offered(authority: Authority) -> None:
    """A relay that offers no login does not get the password; a person must look."""
    server = FaultServer(starttls=authority.good)
    async with server.running():
        (outcome,) = await send(settings_for(server, authority, TlsMode.STARTTLS, **LOGIN))
    assert Deferred("AUTH: no login offered", relay_fault=True, pause=True) == outcome
    assert is_secret_safe(server)


async def test_fault_after_encryption_is_cut_off(authority: Authority) -> None:
    """A relay that hangs after the dot is left within the deadline over encryption too, and the next message arrives."""
    server = FaultServer((Script("end", "hang", keep=True),), starttls=authority.good)
    async with server.running():
        first, second = await send(settings_for(server, authority, TlsMode.STARTTLS, deadlines=HASTY), 2)
    assert "Uncertain(why='final dot: no answer in time')" == str(first)
    assert isinstance(second, Sent)


def test_one_context_for_the_process(authority: Authority) -> None:
    """Loading the system's certificates for each connection would take longer than sending; one verifying context serves."""
    context = tls_context(authority.ca_file)
    assert context is tls_context(authority.ca_file)
    assert (ssl.CERT_REQUIRED, True) == (context.verify_mode, context.check_hostname)


def test_unreadable_certificates_are_found_at_start(tmp_path: Path) -> None:
    """A file of certificates that is none is said at once, not at the first digest."""
    (tmp_path / "ca.pem").write_text("nothing")
    for file in (tmp_path / "ca.pem", tmp_path / "none.pem"):
        with pytest.raises(ConfigError, match=r"mail ca_file: .*\.pem: "):
            SmtpChannel(SmtpSettings("relay.example.org", ca_file=file))
