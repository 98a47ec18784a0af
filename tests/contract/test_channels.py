"""All channels keep the contract of ``ports.Channel``; what the other side holds in the end is the truth."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

import pytest

from digestd.model.delivery import Deferred, Fenced, Message, Refused, Sent
from digestd.ports import Channel
from digestd.send import CHANNELS
from digestd.send.settings import (
    AppriseSettings,
    ChannelSettings,
    Deadlines,
    LmtpSettings,
    SendmailSettings,
    SmtpSettings,
    TlsMode,
    WebhookSettings,
)
from digestd.watch.guard import LOOPBACK
from digestd.watch.post import GuardedPost
from tests.builders import make_message
from tests.http_faults import PostServer
from tests.smtp_faults import FaultServer, Script

NOW = datetime(2026, 11, 30, 7, 30, tzinfo=UTC)
#: keeps what it reads beside itself, and only when it has read all of it
PROGRAM = """#!/bin/sh
draft="$(dirname "$0")/draft.$$"
cat > "$draft" && echo "$@" > "$(dirname "$0")/arguments" && mv "$draft" "$(dirname "$0")/kept.$$"
"""


@dataclass
class Opened:
    """A channel and what the other side holds."""

    channel: Channel
    kept: Callable[[], Sequence[bytes]]


def _as_mail(body: bytes, field: str) -> bytes:
    """Return the mail of ``make_message`` that a JSON text was read from; its number stands in the first line."""
    text = json.loads(body)[field].strip()
    number = int(text.partition(".")[0].removeprefix("Message "))
    return next(
        mail.body
        for mail in (make_message(number, size=size) for size in (600, 200_000))
        if mail.body.decode().partition("\r\n\r\n")[2].replace("\r\n", "\n").strip() == text
    )


def _bytes_of(folder: Path, pattern: str) -> list[bytes]:
    return sorted(file.read_bytes() for file in folder.glob(pattern))


@asynccontextmanager
async def opened(name: str, folder: Path, script: Script | None = None) -> AsyncIterator[Opened]:
    """Open a channel by its name, against what it needs on the other side."""
    if name == "apprise" and find_spec("apprise") is None:
        pytest.skip("the extra apprise is not installed")
    server, web = FaultServer((script,) if script else ()), PostServer()
    quick = Deadlines(connect_s=5, command_s=5, before_dot_s=10, dot_s=5, quit_s=1)
    async with server.running(), web.running():
        program = folder / "sendmail"
        program.write_text(PROGRAM)
        program.chmod(0o755)
        channel = CHANNELS[name](
            ChannelSettings(
                smtp=SmtpSettings("127.0.0.1", server.port, mode=TlsMode.NONE, helo_name="t", deadlines=quick),
                lmtp=LmtpSettings(host="127.0.0.1", port=server.port, deadlines=quick),
                sendmail=SendmailSettings(program, deadline_s=10),
                folder=folder / "mail",
                webhook=WebhookSettings(
                    url=web.url,
                    post=GuardedPost(allow_networks=LOOPBACK, limit_s=10, now=lambda: NOW),
                    now=lambda: NOW,
                ),
                apprise=AppriseSettings(f"json://127.0.0.1:{web.port}/hook"),
            )
        )
        kept: dict[str, Callable[[], Sequence[bytes]]] = {
            "smtp": lambda: sorted(kept.body for kept in server.kept),
            "lmtp": lambda: sorted(kept.body for kept in server.kept),
            # Such a program is given the line ends of its own machine.
            "sendmail": lambda: [body.replace(b"\n", b"\r\n") for body in _bytes_of(folder, "kept.*")],
            "maildir": lambda: _bytes_of(folder, "mail/new/*") + _bytes_of(folder, "mail/cur/*"),
            "eml": lambda: _bytes_of(folder, "mail/*.eml"),
            "webhook": lambda: sorted(_as_mail(post.body, "text") for post in web.kept),
            "apprise": lambda: sorted(_as_mail(post.body, "message") for post in web.kept),
        }
        try:
            yield Opened(channel, kept[name])
        finally:
            await channel.close()


def bodies(*messages: Message) -> list[bytes]:
    """Return what the other side should hold."""
    return sorted(message.body for message in messages)


async def yes() -> bool:
    """Let it go out."""
    return True


pytestmark = pytest.mark.parametrize("name", CHANNELS)


async def test_message_arrives_as_it_is(name: str, tmp_path: Path) -> None:
    """A sent message is held by the other side, octet for octet, dots and long lines too."""
    message = make_message(1, size=200_000)
    async with opened(name, tmp_path) as it:
        outcome = await it.channel.send(message, before_dot=yes)
        assert isinstance(outcome, Sent)
        assert 250 == outcome.reply.code
        assert bodies(message) == it.kept()


async def test_before_dot_is_asked_once_and_nothing_is_kept_before(name: str, tmp_path: Path) -> None:
    """While the outbox is asked, the other side holds nothing yet."""
    seen: list[Sequence[bytes]] = []
    async with opened(name, tmp_path) as it:

        async def before_dot() -> bool:
            seen.append(it.kept())
            return True

        assert isinstance(await it.channel.send(make_message(), before_dot=before_dot), Sent)
    assert [[]] == seen


async def test_fenced_message_is_given_up(name: str, tmp_path: Path) -> None:
    """If the outbox says no, nothing is handed over, nothing stays behind, and the next message goes its way."""
    answers = iter((False, True))

    async def before_dot() -> bool:
        return next(answers)

    async with opened(name, tmp_path) as it:
        assert Fenced() == await it.channel.send(make_message(1), before_dot=before_dot)
        assert isinstance(await it.channel.send(make_message(2), before_dot=before_dot), Sent)
        assert bodies(make_message(2)) == it.kept()
    assert [] == _bytes_of(tmp_path, "mail/tmp/*") + _bytes_of(tmp_path, "mail/.*")


async def test_error_of_the_outbox_passes(name: str, tmp_path: Path) -> None:
    """An error of ``before_dot`` reaches the caller; the message is not handed over."""

    async def broken() -> bool:
        raise RuntimeError("no disk")

    async with opened(name, tmp_path) as it:
        with pytest.raises(RuntimeError, match="no disk"):
            await it.channel.send(make_message(), before_dot=broken)
        assert [] == it.kept()


async def test_cancelled_before_the_dot_is_known_unsent(name: str, tmp_path: Path) -> None:
    """A call that is cancelled while the outbox is asked is deferred, and the other side holds nothing."""
    asked = asyncio.Event()

    async def never() -> bool:
        asked.set()
        await asyncio.Event().wait()
        return True

    async with opened(name, tmp_path) as it:
        task = asyncio.create_task(it.channel.send(make_message(), before_dot=never))
        await asked.wait()
        task.cancel()
        assert isinstance(await task, Deferred)
        assert 1 == task.cancelling()
        assert [] == it.kept()


@pytest.mark.parametrize(
    "recipient",
    [
        "",
        "ana",
        "ana@x\r\nRCPT TO:<eve@x>",
        "a@x\nDATA",
        "a@x\0",
        "a@x, eve@x",
        "<a@x>",
        "a@x> SIZE=1",
        '"a b"@x',
        "a@x" + "y" * 300,
        "\ud800@x",
    ],
)
async def test_unwritable_address_is_refused(name: str, recipient: str, tmp_path: Path) -> None:
    """An address that could be read as something else is refused, the outbox is not asked, and nothing is handed over."""
    async with opened(name, tmp_path) as it:
        outcome = await it.channel.send(make_message(recipient=recipient), before_dot=_never_asked)
        assert isinstance(outcome, Refused)
        assert ("5.1.3", False) == (outcome.reply.enhanced, outcome.suppress)
        assert [] == it.kept()


async def test_unwritable_sender_is_refused(name: str, tmp_path: Path) -> None:
    """The same holds for the sender; the empty one is the sender of bounces."""
    async with opened(name, tmp_path) as it:
        outcome = await it.channel.send(make_message(sender="d@x\r\nDATA"), before_dot=_never_asked)
        assert isinstance(outcome, Refused)
        assert isinstance(await it.channel.send(make_message(sender=""), before_dot=yes), Sent)


@pytest.mark.parametrize("body", [b"a\nb\r\n", b"a\rb\r\n", b"a\r\n.\nb\r\n", b"a\0\r\n"])
async def test_body_with_bare_line_ends_is_refused(name: str, body: bytes, tmp_path: Path) -> None:
    """A body that others could cut in two is not handed over."""
    async with opened(name, tmp_path) as it:
        assert isinstance(await it.channel.send(make_message(body=body), before_dot=_never_asked), Refused)
        assert [] == it.kept()


async def test_many_at_once_arrive_once_each(name: str, tmp_path: Path) -> None:
    """Messages sent at the same time do not meet."""
    messages = [make_message(n) for n in range(24)]
    async with opened(name, tmp_path) as it:
        outcomes = await asyncio.gather(*(it.channel.send(message, before_dot=yes) for message in messages))
        assert {Sent} == {type(outcome) for outcome in outcomes}
        assert bodies(*messages) == it.kept()


async def test_close_twice(name: str, tmp_path: Path) -> None:
    """A second close does nothing."""
    async with opened(name, tmp_path) as it:
        await it.channel.send(make_message(), before_dot=yes)
        await it.channel.close()
        await it.channel.close()


async def _never_asked() -> bool:
    raise AssertionError("the outbox was asked about a message that cannot go out")
