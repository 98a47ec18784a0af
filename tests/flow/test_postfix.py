"""A real Postfix takes five hundred digests, half of them greylisted first, some refused; every one is accounted for."""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import socket
import socketserver
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from digestd.flows.deliver import Delivered, deliver
from digestd.flows.digest import make_due
from digestd.model.delivery import DeliveryState
from digestd.send.settings import Limits, SmtpSettings, TlsMode
from digestd.send.smtp import SmtpChannel
from digestd.store import SqlStore, open_store
from tests.followers import Clock, add, at, let_follow, make_kitchen, options, read_mail, start

READERS = 500
DOMAIN = "readers.example"
SLOT = at("2026-09-28T07:30")
DAEMONS = Path("/usr/lib/postfix/sbin")
QUEUES = (
    *("private", "public", "incoming", "active", "maildrop", "hold", "deferred"),
    *("defer", "bounce", "corrupt", "flush", "saved", "trace"),
)

MAIN = """compatibility_level = 3.6
queue_directory = {folder}/queue
data_directory = {folder}/data
daemon_directory = {daemons}
mail_owner = postfix
setgid_group = postdrop
myhostname = relay.example
mydestination =
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
mynetworks = 127.0.0.0/8
alias_maps =
local_recipient_maps =
maillog_file = {folder}/log/mail.log
maillog_file_prefixes = {folder}
virtual_mailbox_domains = {domain}
virtual_mailbox_base = {folder}/mail
virtual_mailbox_maps = texthash:{folder}/mailboxes
virtual_uid_maps = static:{uid}
virtual_gid_maps = static:{gid}
virtual_minimum_uid = 1
smtpd_recipient_restrictions = reject_unauth_destination, check_policy_service inet:127.0.0.1:{policy}
smtpd_relay_restrictions = reject_unauth_destination
smtpd_error_sleep_time = 0
smtpd_peername_lookup = no
default_transport = error:no mail leaves this machine
"""
MASTER = """127.0.0.1:{port} inet n - n - - smtpd
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
flush unix n - n 1000? 0 flush
proxymap unix - - n - - proxymap
smtp unix - - n - - smtp
error unix - - n - - error
retry unix - - n - - error
virtual unix - n n - - virtual
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
postlog unix-dgram n - n - 1 postlogd
"""


def missing() -> str:
    """Return why Postfix cannot be run here, "" if it can."""
    if not (DAEMONS / "master").exists():
        return "postfix is not installed"
    if os.geteuid() != 0:
        return "only root can run a postfix"
    try:
        pwd.getpwnam("postfix")
    except KeyError:
        return "there is no user postfix"
    return ""


pytestmark = pytest.mark.skipif(bool(missing()), reason=missing() or "postfix can be run")


class Policy(socketserver.ThreadingTCPServer):
    """Greylists readers of even number once, refuses each fiftieth for good."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _PolicyTalk)
        self.seen: set[str] = set()
        self.lock = threading.Lock()

    def answer(self, recipient: str) -> str:
        """Return what becomes of a recipient now."""
        number = int(recipient.partition("@")[0].removeprefix("r"))
        with self.lock:
            is_first = recipient not in self.seen
            self.seen.add(recipient)
        if number % 50 == 7:
            return "550 5.1.1 no such reader"
        return "450 4.2.0 greylisted, come again" if is_first and number % 2 == 0 else "DUNNO"


class _PolicyTalk(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        recipient = ""
        for line in self.rfile:
            name, _, value = line.decode().rstrip("\n").partition("=")
            if name == "recipient":
                recipient = value
            elif not name:
                assert isinstance(self.server, Policy)
                self.wfile.write(f"action={self.server.answer(recipient)}\n\n".encode())


def free_port() -> int:
    """Return a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextmanager
def postfix() -> Iterator[tuple[Path, int]]:
    """Run a Postfix of our own and yield its folder and port; the system's own is not touched."""
    folder = Path(tempfile.mkdtemp(prefix="digestd-postfix-"))  # daemons without our rights must reach it
    folder.chmod(0o755)
    owner, reader = pwd.getpwnam("postfix"), pwd.getpwnam("nobody")
    policy, port = Policy(), free_port()
    threading.Thread(target=policy.serve_forever, daemon=True).start()
    for name in ("queue/pid", "conf", "log"):
        (folder / name).mkdir(parents=True)
    for name in QUEUES:
        (folder / "queue" / name).mkdir(mode=0o755)
        os.chown(folder / "queue" / name, owner.pw_uid, -1)
    for name, who in (("data", owner), ("mail", reader)):
        (folder / name).mkdir()
        os.chown(folder / name, who.pw_uid, who.pw_gid)
    places = {"folder": folder, "daemons": DAEMONS, "domain": DOMAIN, "policy": policy.server_address[1]}
    main = MAIN.format(**places, uid=reader.pw_uid, gid=reader.pw_gid)
    (folder / "conf" / "main.cf").write_text(main, encoding="utf-8")
    (folder / "conf" / "master.cf").write_text(MASTER.format(port=port), encoding="utf-8")
    boxes = "".join(f"r{number}@{DOMAIN} r{number}/\n" for number in range(READERS))
    (folder / "mailboxes").write_text(boxes, encoding="utf-8")
    master = subprocess.Popen(
        [DAEMONS / "master", "-c", folder / "conf", "-d", "-e", "110"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        _wait_for(lambda: _listens(port), 20, folder)
        yield folder, port
    finally:
        master.terminate()
        master.wait(20)
        policy.shutdown()
        policy.server_close()
        shutil.rmtree(folder)


def _listens(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1) as connection:
            return connection.recv(3) == b"220"
    except OSError:
        return False


def _wait_for(is_done: Callable[[], bool], seconds: float, folder: Path) -> None:
    ends_at = time.monotonic() + seconds
    while not is_done():
        log = folder / "log" / "mail.log"
        told = log.read_text(encoding="utf-8", errors="replace")[-2000:] if log.exists() else "nothing in its log"
        assert time.monotonic() < ends_at, f"postfix was not ready in time: {told}"
        time.sleep(0.1)


def mails_in(folder: Path) -> list[tuple[str, Path]]:
    """Return (reader, file) of all mails that were delivered."""
    return [(path.parts[-3], path) for path in (folder / "mail").glob("*/new/*")]


def make_digests(store: SqlStore) -> None:
    """Put a digest for each of the readers into the outbox."""
    monday = at("2026-09-28T05:00")
    start(store, "Reef Sound", now=monday)
    with store.transaction():
        for number in range(READERS):
            let_follow(store, f"r{number}@{DOMAIN}", "Reef Sound", now=monday)
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=monday)
    assert READERS == len(make_due(make_kitchen(store), now=SLOT))


@pytest.mark.timeout(120)
def test_postfix_takes_every_digest_once(tmp_path: Path) -> None:
    """Each digest is in its reader's mailbox once or was refused for good; nothing is left over, nothing unsure."""
    store = open_store(tmp_path / "history.sqlite")
    make_digests(store)

    async def send(port: int, hours: float) -> Delivered:
        settings = SmtpSettings(host="127.0.0.1", port=port, mode=TlsMode.NONE, limits=Limits(connections=10))
        channel = SmtpChannel(settings)
        try:
            return await deliver(store, channel, Clock(SLOT + timedelta(hours=hours)), options())
        finally:
            await channel.close()

    refused = {f"r{number}" for number in range(READERS) if number % 50 == 7}
    with postfix() as (folder, port):
        first = asyncio.run(send(port, 0))
        assert {DeliveryState.READY, DeliveryState.ACCEPTED, DeliveryState.FAILED} == set(first.states)
        rounds = 1
        while store.outbox.counts()[DeliveryState.READY]:
            asyncio.run(send(port, rounds))
            rounds += 1
            assert rounds < 10
        _wait_for(lambda: len(mails_in(folder)) >= READERS - len(refused), 40, folder)
        delivered = mails_in(folder)
        counts = Counter(name for name, _ in delivered)
        message_ids = {str(read_mail(path.read_bytes())["Message-ID"]) for _, path in delivered}
    assert {f"r{number}" for number in range(READERS)} - refused == set(counts)
    assert {1} == set(counts.values())
    assert {DeliveryState.ACCEPTED: READERS - len(refused), DeliveryState.FAILED: len(refused)} == {
        state: count for state, count in store.outbox.counts().items() if count
    }
    rows = store.outbox.deliveries(limit=READERS)
    assert message_ids == {row.message_id for row in rows if row.state is DeliveryState.ACCEPTED}
    assert not any(row.flagged for row in rows)
    greylisted = [row for row in rows if int(row.recipient.partition("@")[0][1:]) % 2 == 0]
    assert {2} == {row.attempts for row in greylisted}
    assert len(refused) == len(store.outbox.suppressions())
    store.close()
