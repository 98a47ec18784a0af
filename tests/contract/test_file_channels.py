"""What single channels promise beyond the contract: files told apart by message, programs by their exit status, LMTP."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path

import pytest

from digestd.errors import ConfigError
from digestd.model.delivery import Deferred, Fenced, Refused, Sent, Uncertain
from digestd.send import CHANNELS
from digestd.send.eml_folder import EmlFolderChannel
from digestd.send.lmtp import LmtpChannel
from digestd.send.maildir import MaildirChannel
from digestd.send.sendmail import SendmailChannel
from digestd.send.settings import (
    ChannelSettings,
    Deadlines,
    Limits,
    LmtpSettings,
    SendmailSettings,
    SmtpSettings,
    TlsMode,
    is_loopback,
)
from tests.builders import make_message
from tests.smtp_faults import FaultServer, Script


async def yes() -> bool:
    """Let it go out."""
    return True


async def no() -> bool:
    """Hold it back."""
    return False


def files_of(folder: Path) -> list[Path]:
    """Return what is in a folder."""
    return sorted(folder.iterdir())


async def test_maildir_holds_a_message_once(tmp_path: Path) -> None:
    """A second hand-over finds the first, also where a reader has moved and flagged it."""
    channel = MaildirChannel(tmp_path)
    assert isinstance(await channel.send(make_message(), before_dot=yes), Sent)
    assert isinstance(await channel.send(make_message(), before_dot=yes), Sent)
    (file,) = (tmp_path / "new").iterdir()
    assert 0o600 == stat.S_IMODE(file.stat().st_mode)
    file.rename(tmp_path / "cur" / f"{file.name}:2,S")
    assert isinstance(await channel.send(make_message(), before_dot=yes), Sent)
    assert [0, 0, 1] == [len(files_of(tmp_path / part)) for part in ("new", "tmp", "cur")]


async def test_maildir_takes_over_a_killed_draft(tmp_path: Path) -> None:
    """What a killed process left in tmp is written over, not added to."""
    channel = MaildirChannel(tmp_path)
    await channel.send(make_message(), before_dot=yes)
    (file,) = (tmp_path / "new").iterdir()
    file.rename(tmp_path / "tmp" / file.name)
    (tmp_path / "tmp" / file.name).write_bytes(b"half" * 9999)
    assert isinstance(await channel.send(make_message(), before_dot=yes), Sent)
    assert make_message().body == (tmp_path / "new" / file.name).read_bytes()


async def test_maildir_does_not_follow_links(tmp_path: Path) -> None:
    """A link in tmp, put there by somebody else, is not written through."""
    channel = MaildirChannel(tmp_path / "box")
    await channel.send(make_message(), before_dot=yes)
    (file,) = (tmp_path / "box" / "new").iterdir()
    file.unlink()
    (tmp_path / "box" / "tmp" / file.name).symlink_to(tmp_path / "elsewhere")
    assert isinstance(await channel.send(make_message(), before_dot=yes), Deferred)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize("kind", [MaildirChannel, EmlFolderChannel])
async def test_folder_that_cannot_be_written(kind: type[MaildirChannel | EmlFolderChannel], tmp_path: Path) -> None:
    """A folder that cannot be made is a fault of the way out, not of the message."""
    (tmp_path / "file").write_text("in the way")
    outcome = await kind(tmp_path / "file" / "mail").send(make_message(), before_dot=yes)
    assert isinstance(outcome, Deferred)
    assert outcome.relay_fault


async def test_eml_holds_a_message_once(tmp_path: Path) -> None:
    """The same message twice is one file, untouched; another message is another file."""
    channel = EmlFolderChannel(tmp_path)
    await channel.send(make_message(1), before_dot=yes)
    file = files_of(tmp_path)[0]
    written_at = file.stat().st_mtime_ns
    assert isinstance(await channel.send(make_message(1), before_dot=yes), Sent)
    assert written_at == file.stat().st_mtime_ns
    await channel.send(make_message(2), before_dot=yes)
    assert (2, 0o600) == (len(files_of(tmp_path)), stat.S_IMODE(file.stat().st_mode))


def _program(folder: Path, text: str) -> SendmailChannel:
    program = folder / "program"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)
    return SendmailChannel(SendmailSettings(program, deadline_s=0.5))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("cat >/dev/null", Sent),
        ("cat >/dev/null; exit 75", Deferred),
        ("cat >/dev/null; exit 67", Refused),
        ("cat >/dev/null; exit 3", Uncertain),
        ("cat >/dev/null; kill -9 $$", Uncertain),
        ("cat >/dev/null; exec sleep 60", Uncertain),
    ],
)
async def test_sendmail_exit(text: str, kind: type, tmp_path: Path) -> None:
    """How a program ends that has had the whole message says what became of it; one that does not end is killed."""
    assert kind is type(await _program(tmp_path, text).send(make_message(), before_dot=yes))


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("exit 0", Deferred),
        ("exit 75", Deferred),
        ("exit 67", Refused),
        ("exit 3", Deferred),
        ("exec sleep 60", Deferred),
    ],
)
async def test_sendmail_that_does_not_read(text: str, kind: type, tmp_path: Path) -> None:
    """A program that ends or hangs before it has read a long message has not got it."""
    assert kind is type(await _program(tmp_path, text).send(make_message(size=500_000), before_dot=yes))


async def test_sendmail_missing(tmp_path: Path) -> None:
    """Without a program nothing can be sent until a person has mended it."""
    outcome = await SendmailChannel(SendmailSettings(tmp_path / "none")).send(make_message(), before_dot=yes)
    assert isinstance(outcome, Deferred)
    assert (True, True) == (outcome.relay_fault, outcome.pause)


async def test_sendmail_arguments(tmp_path: Path) -> None:
    """An address that looks like an option is given as an address, behind the mark that ends the options."""
    channel = _program(tmp_path, f'cat >/dev/null; printf "%s\\n" "$@" > {tmp_path}/arguments')
    assert isinstance(await channel.send(make_message(recipient="-oQ/tmp@example.net"), before_dot=yes), Sent)
    assert isinstance(await channel.send(make_message(recipient="-oQ/tmp@example.net"), before_dot=no), Fenced)
    expected = "-i\n-f\ndigest@example.org\n--\n-oQ/tmp@example.net\n"
    assert expected == (tmp_path / "arguments").read_text()


async def test_sendmail_children_are_killed_too(tmp_path: Path) -> None:
    """A message that is given up does not live on in what the program started."""
    for name in ("alive", "begun"):
        os.mkfifo(tmp_path / name)
    end = os.open(tmp_path / "alive", os.O_RDONLY | os.O_NONBLOCK)  # comes to its end when the child does
    os.set_blocking(end, True)
    child = f"(echo > {tmp_path}/begun; cat <&3 > {tmp_path}/child; mv {tmp_path}/child {tmp_path}/kept) 4> {tmp_path}/alive"
    channel = _program(tmp_path, f"exec 3<&0; {child} & wait")

    async def begun() -> bool:
        await asyncio.to_thread((tmp_path / "begun").read_bytes)
        return False

    assert isinstance(await channel.send(make_message(), before_dot=begun), Fenced)
    assert b"" == await asyncio.to_thread(os.read, end, 1)
    os.close(end)
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize(
    ("script", "kind"),
    [
        (Script("banner", "421 busy+close"), Deferred),
        (Script("ehlo", "500 what"), Deferred),
        (Script("ehlo", "reset"), Deferred),
        (Script("rcpt", "550 5.1.1 no such user"), Refused),
        (Script("rcpt", "452 4.2.2 over quota"), Deferred),
        (Script("end", "452 4.2.2 over quota"), Deferred),
        (Script("end", "552 5.2.2 over quota"), Refused),
        (Script("end", "fin", keep=True), Uncertain),
    ],
)
async def test_lmtp_answers(script: Script, kind: type) -> None:
    """A mail store's answers mean what a relay's do, and the next message arrives."""
    server = FaultServer((script,))
    async with server.running():
        deadlines = Deadlines(connect_s=5, command_s=5, before_dot_s=5, dot_s=5, quit_s=1)
        channel = LmtpChannel(LmtpSettings(host="127.0.0.1", port=server.port, deadlines=deadlines))
        assert kind is type(await channel.send(make_message(1), before_dot=yes))
        assert isinstance(await channel.send(make_message(2), before_dot=yes), Sent)
        await channel.close()
    assert make_message(2).body == server.kept[-1].body
    assert "LHLO localhost" in server.commands


async def test_lmtp_over_a_socket(tmp_path: Path) -> None:
    """A mail store is found by its unix socket; one that is not there is a fault of the store."""
    server = FaultServer()
    path = tmp_path / "lmtp"
    channel = LmtpChannel(LmtpSettings(path))
    assert isinstance(await channel.send(make_message(), before_dot=yes), Deferred)
    async with server.running(socket_path=path):
        assert isinstance(await channel.send(make_message(), before_dot=yes), Sent)
        await channel.close()
    assert [make_message().body] == [kept.body for kept in server.kept]


@pytest.mark.parametrize("name", ["maildir", "eml"])
def test_channel_without_a_folder(name: str) -> None:
    """A channel that writes files needs to know where."""
    with pytest.raises(ConfigError, match=f"expected a folder for channel {name}, found none"):
        CHANNELS[name](ChannelSettings())


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("LOCALHOST.", True),
        ("127.0.0.2", True),
        ("::1", True),
        ("192.0.2.1", False),
        ("relay.example.org", False),
        ("localhost.example.org", False),
        ("", False),
    ],
)
def test_is_loopback(host: str, expected: bool) -> None:
    """Only names and addresses that never leave the machine count as this machine."""
    assert expected is is_loopback(host)


def test_no_encryption_only_to_this_machine() -> None:
    """Mail does not cross a network in the clear, and passwords go nowhere in the clear."""
    with pytest.raises(ConfigError, match=r"expected starttls or implicit for relay '192.0.2.1', found none"):
        SmtpSettings("192.0.2.1", mode=TlsMode.NONE)
    with pytest.raises(ConfigError, match="because there is a login, found none"):
        SmtpSettings("127.0.0.1", mode=TlsMode.NONE, username="ana")
    with pytest.raises(ConfigError, match=r"expected a unix socket or this machine for lmtp, found '192.0.2.1'"):
        LmtpSettings(host="192.0.2.1")
    assert "secret" not in repr(SmtpSettings(password="secret"))


@pytest.mark.parametrize(("mode", "port"), [(TlsMode.STARTTLS, 587), (TlsMode.IMPLICIT, 465), (TlsMode.NONE, 25)])
def test_relay_port(mode: TlsMode, port: int) -> None:
    """Without a port, the usual one of the mode is taken."""
    assert [port, 2525] == [SmtpSettings(mode=mode).relay_port, SmtpSettings(port=2525, mode=mode).relay_port]


@pytest.mark.parametrize("name", ["connections", "per_connection", "per_minute", "per_domain"])
def test_limits_are_positive(name: str) -> None:
    """A limit of nothing would hold all mail for ever."""
    with pytest.raises(ConfigError, match=f"mail {name}: expected at least 1, found 0"):
        Limits(**{name: 0})
