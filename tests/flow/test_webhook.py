"""Digests to a web server: what its answers and its silence mean, the signature, and the way from a subscription to it."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import re
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from digestd.addresses import channel_name, parse_reader
from digestd.errors import ConfigError
from digestd.flows.deliver import deliver
from digestd.flows.digest import make_due
from digestd.model.delivery import Deferred, DeliveryState, HttpAnswer, Outcome, Refused, Sent, Uncertain
from digestd.model.subscription import First
from digestd.ports import Channel
from digestd.retry import classify_http
from digestd.send.routed import RoutedChannel
from digestd.send.settings import WebhookSettings
from digestd.send.webhook import WebhookChannel, secret_bytes
from digestd.store import SqlStore, open_store
from digestd.watch.guard import LOOPBACK
from digestd.watch.post import GuardedPost
from tests.builders import make_message
from tests.command import Desk
from tests.followers import Clock, KeepingChannel, add, at, let_follow, make_kitchen, options, start
from tests.http_faults import PostServer

DOCS = Path(__file__).resolve().parents[2] / "docs" / "channels.md"
NOW = datetime(2026, 11, 30, 7, 30, tzinfo=UTC)
MONDAY, SLOT = at("2026-09-28T05:00"), at("2026-09-28T07:30")
SECRET = "whsec_" + base64.b64encode(b"sixteen octets at least").decode()


async def yes() -> bool:
    """Let it go out."""
    return True


def webhook(
    server: PostServer, *, limit_s: float = 5, idempotent: bool = False, secret: str = SECRET
) -> WebhookChannel:
    """Return a channel to a server of this machine."""
    return WebhookChannel(
        WebhookSettings(
            url=server.url,
            post=GuardedPost(allow_networks=LOOPBACK, limit_s=limit_s, now=lambda: NOW),
            now=lambda: NOW,
            secret=secret_bytes(secret),
            idempotent=idempotent,
            deadline_s=limit_s,
        )
    )


async def sent(server: PostServer, *, limit_s: float = 5, idempotent: bool = False) -> Outcome:
    """Return what becomes of one message."""
    channel = webhook(server, limit_s=limit_s, idempotent=idempotent)
    try:
        return await channel.send(make_message(), before_dot=yes)
    finally:
        await channel.close()


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (200, Sent),
        (202, Sent),
        (302, Deferred),
        (400, Refused),
        (404, Refused),
        (408, Deferred),
        (410, Refused),
        (425, Deferred),
        (429, Deferred),
        (500, Deferred),
        (503, Deferred),
        (504, Uncertain),
    ],
)
def test_status_says_what_becomes_of_a_message(status: int, kind: type[Outcome]) -> None:
    """2xx is taken, 4xx refused for good, busy servers are asked again, a gateway's silence is doubt."""
    assert kind is type(classify_http(HttpAnswer(status)))


def test_only_gone_suppresses_and_only_login_blames_us() -> None:
    """410 ends what is sent there; 401 and 403 say nothing about the receiver."""
    refused = {status: classify_http(HttpAnswer(status)) for status in (400, 401, 403, 410)}
    assert {400: (False, False), 401: (False, True), 403: (False, True), 410: (True, False)} == {
        status: (it.suppress, it.policy) for status, it in refused.items() if isinstance(it, Refused)
    }


async def test_busy_server_is_left_alone_as_long_as_it_asks() -> None:
    """429 with Retry-After is a wait, read from seconds."""
    async with PostServer([("429", "Retry-After: 7200")]).running() as server:
        assert Deferred("HTTP 429", wait_s=7200) == await sent(server)


@pytest.mark.parametrize("answer", ["hang", "reset", "garbage"])
async def test_silence_after_the_body_is_doubt(answer: str) -> None:
    """A server that has the whole body and gives no readable answer may have taken it."""
    async with PostServer([(answer,)]).running() as server:
        assert isinstance(await sent(server, limit_s=0.5), Uncertain)
        assert 1 == len(server.kept)


async def test_silence_of_a_receiver_that_knows_keys_is_no_doubt() -> None:
    """A receiver that takes each key once is sent the same message again, with the same key and bytes."""
    async with PostServer([("reset",), ("204",)]).running() as server:
        first = await sent(server, idempotent=True)
        second = await sent(server, idempotent=True)
    assert (Deferred, Sent) == (type(first), type(second))
    one, two = server.kept
    assert (one.body, one.headers["idempotency-key"]) == (two.body, two.headers["idempotency-key"])


async def test_refused_connection_is_known_unsent() -> None:
    """A server that is away has nothing: the message is deferred, and no fault of the mail relay."""
    async with PostServer().running() as server:
        pass
    assert Deferred("webhook: no connection") == await sent(server)


async def test_redirect_is_not_followed() -> None:
    """A redirect gets nothing, not even to the same server."""
    async with PostServer([("307", "Location: /elsewhere")]).running() as server:
        assert isinstance(await sent(server), Deferred)
        assert 1 == len(server.kept)


async def test_this_machine_is_out_of_reach_unless_named() -> None:
    """Without loopback opened, the guard refuses the address before any connection."""
    async with PostServer().running() as server:
        post = GuardedPost(allow_networks=(), limit_s=5, now=lambda: NOW)
        channel = WebhookChannel(WebhookSettings(server.url, post, lambda: NOW))
        outcome = await channel.send(make_message(), before_dot=yes)
        await channel.close()
        assert isinstance(outcome, Deferred)
        assert "loopback" in outcome.why
        assert 0 == server.begun


@pytest.mark.parametrize(
    "url", ["http://hooks.example.org/x", "ftp://localhost/", "https://me:secret@hooks.example.org/", "x"]
)
def test_unsafe_address_is_refused(url: str) -> None:
    """No plain text to another machine, no login in an address; the finding does not show the address."""
    post = GuardedPost(allow_networks=(), limit_s=5, now=lambda: NOW)
    with pytest.raises(ConfigError) as caught:
        WebhookSettings(url, post, lambda: NOW)
    assert url not in str(caught.value) or url == "x"


async def test_receiver_can_verify_the_signature() -> None:
    """The signature is that of Standard Webhooks over id, instant and body; another body does not fit it."""
    async with PostServer().running() as server:
        assert isinstance(await sent(server), Sent)
    (post,) = server.kept
    assert str(int(NOW.timestamp())) == post.headers["webhook-timestamp"]
    assert verify(SECRET, post.headers, post.body)
    assert not verify(SECRET, post.headers, post.body.replace(b"Reefs", b"Roofs"))
    assert '"1@example.org"' == post.headers["idempotency-key"]
    record = json.loads(post.body)
    assert ("digestd.digest/1", "1@example.org", "Reefs") == (record["schema"], record["id"], record["subject"])


def verify(secret: str, headers: dict[str, str], body: bytes) -> bool:
    """Return what the lines of docs/channels.md say of a message."""
    (code,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    names: dict[str, Any] = {}
    exec(compile(code, str(DOCS), "exec"), names)  # our own documentation
    found = names["verify"](secret, headers, body)
    assert isinstance(found, bool)
    return found


def test_channel_is_a_reader() -> None:
    """channel:team is a reader whose address can be nobody's; strangers cannot name one."""
    reader = parse_reader("channel:team", allow_local=True)
    assert ("team@channel.invalid", "team") == (reader.envelope, channel_name(reader.envelope))
    assert None is channel_name("ana@example.org")
    for text in ("channel:team", "team@channel.invalid"):
        with pytest.raises(ConfigError):
            parse_reader(text)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    """A history with two due digests: one for a mailbox, one for the channel team."""
    opened = open_store(tmp_path / "history.sqlite")
    start(opened, "Reef Sound", now=MONDAY)
    for address in ("ana@example.org", "channel:team"):
        let_follow(opened, address, "Reef Sound", now=MONDAY)
    add(opened, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=MONDAY)
    make_due(make_kitchen(opened), now=SLOT)
    yield opened
    opened.close()


async def run(store: SqlStore, server: PostServer, mail: Channel, *, now: datetime = SLOT) -> None:
    """Deliver what is due: mail to one place, the channel team to a server."""
    team = webhook(server, limit_s=1)
    try:
        await deliver(store, RoutedChannel(mail, {"team": team}), Clock(now), options())
    finally:
        await team.close()


def state_of(store: SqlStore, recipient: str) -> DeliveryState:
    """Return the state of a reader's only delivery."""
    (row,) = [row for row in store.outbox.deliveries() if row.recipient == recipient]
    return row.state


async def test_mail_and_channel_each_get_their_own(store: SqlStore, caplog: pytest.LogCaptureFixture) -> None:
    """One digest goes by mail, the other to the server, each once; the address and its secret are in no log."""
    caplog.set_level(logging.DEBUG)
    mail = KeepingChannel()
    async with PostServer().running() as server:
        await run(store, server, mail)
        await run(store, server, mail, now=SLOT + timedelta(days=1))
    assert (1, 1) == (len(mail.kept), len(server.kept))
    assert "Bell Buoys" in json.loads(server.kept[0].body)["text"]
    assert "hush-314" not in "\n".join(record.getMessage() for record in caplog.records if "digestd" in record.name)


async def test_server_that_is_busy_does_not_hold_up_mail(store: SqlStore) -> None:
    """The mail goes out; the channel's row waits for the time that the server asked for, then goes out once."""
    mail = KeepingChannel()
    async with PostServer([("503", "Retry-After: 7200"), ("204",)]).running() as server:
        await run(store, server, mail)
        await run(store, server, mail, now=SLOT + timedelta(hours=1))
        assert (1, 1, DeliveryState.READY) == (
            len(mail.kept),
            len(server.kept),
            state_of(store, "team@channel.invalid"),
        )
        await run(store, server, mail, now=SLOT + timedelta(hours=3))
    assert (2, DeliveryState.ACCEPTED) == (len(server.kept), state_of(store, "team@channel.invalid"))


async def test_server_that_is_gone_gets_nothing_more(store: SqlStore) -> None:
    """410 fails the row and suppresses the channel."""
    async with PostServer([("410",)]).running() as server:
        await run(store, server, KeepingChannel())
    assert DeliveryState.FAILED is state_of(store, "team@channel.invalid")
    assert store.outbox.suppressions("team@channel.invalid")


async def test_cancelled_after_the_body_is_doubt() -> None:
    """A call that is cancelled while the server thinks is uncertain."""
    async with PostServer([("hang",)]).running() as server:
        channel = webhook(server, limit_s=30)
        task = asyncio.create_task(channel.send(make_message(), before_dot=yes))
        await server.taken.wait()
        task.cancel()
        assert isinstance(await task, Uncertain)
        await channel.close()


async def test_channel_comes_back_when_it_follows_again(store: SqlStore) -> None:
    """A channel that was gone is sent to again once the operator lets it follow."""
    async with PostServer([("410",)]).running() as server:
        await run(store, server, KeepingChannel())
    let_follow(store, "channel:team", "Reef Sound", now=SLOT)
    assert () == tuple(store.outbox.suppressions("team@channel.invalid"))


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Desk:
    """A folder with settings and a history of its own."""
    return Desk(tmp_path, capsys)


def test_channels_by_command(desk: Desk) -> None:
    """A channel of the settings follows by its name, one that they do not name is refused; secrets are not shown."""
    desk.configure(f'''[[channels]]
name = "team"
url = "https://hooks.example.org/hush-314"
secret = "{SECRET}"''')
    assert "team@channel.invalid follows Reef Sound" in desk("follow", "channel:team", "Reef Sound").out
    refused = desk("follow", "channel:tame", "Reef Sound")
    assert (78, True) == (refused.status, "expected one of team" in refused.err)
    shown = desk("config", "show").out
    assert '"name": "team"' in shown
    kept = b"".join(file.read_bytes() for file in desk.folder.glob("history.sqlite*")).decode("latin-1")
    assert [] == [word for word in ("hush-314", SECRET) if word in shown + kept]


def test_declared_reader_must_be_a_known_channel(desk: Desk) -> None:
    """A subscriber that is a channel which nobody set up is a finding of the settings."""
    desk.configure('[[subscribers]]\naddress = "channel:tame"\ntopics = ["Reef Sound"]')
    checked = desk("config", "check")
    assert (78, True) == (checked.status, "channel:tame" in checked.err)


KILLED = """
import os, sys
from digestd import faults
from digestd.cli import run
point = sys.argv[1]
faults.HOOK = lambda name: os._exit(9) if name == point else None
sys.exit(run(sys.argv[2:]))
"""


@pytest.mark.parametrize(
    ("point", "posts", "flagged"), [("dot.before", 1, False), ("dot.done", 1, True), ("result.read", 2, True)]
)
async def test_killed_delivery_is_made_good(tmp_path: Path, point: str, posts: int, flagged: bool) -> None:
    """A process that dies before the last octet has sent nothing; after it, the same message comes again with the same key."""
    history, config = tmp_path / "history.sqlite", tmp_path / "digestd.toml"
    store = open_store(history)
    let_follow(store, "channel:team", "Reef Sound", now=MONDAY, first=First("latest", 2))
    start(store, "Reef Sound", now=MONDAY)
    make_due(make_kitchen(store), now=SLOT)
    store.close()
    async with PostServer().running() as server:
        config.write_text(f'[store]\npath = "{history}"\n[[channels]]\nname = "team"\nurl = "{server.url}"\n')
        for where, now in ((point, SLOT), ("", SLOT + timedelta(minutes=1)), ("", SLOT + timedelta(hours=1))):
            call = [sys.executable, "-c", KILLED, where, "--config", str(config), "--now", now.isoformat(), "deliver"]
            process = await asyncio.create_subprocess_exec(*call, stderr=asyncio.subprocess.PIPE)
            _, said = await process.communicate()
            assert (9 if where else 0) == process.returncode, said.decode()
    store = open_store(history)
    (row,) = store.outbox.deliveries()
    store.close()
    assert (DeliveryState.ACCEPTED, flagged, posts) == (row.state, row.flagged, len(server.kept))
    assert 1 == len({(post.headers["webhook-id"], post.body) for post in server.kept})
