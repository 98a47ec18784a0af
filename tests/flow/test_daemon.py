"""The daemon as a process of its own: from a page in the folder to mail and feed, through reload, kill and end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer

from digestd.store import open_store
from digestd.systemd import Notifier
from tests.builders import make_envelope
from tests.followers import page

SETTINGS = """
[store]
path = "history.sqlite"
[web]
port = 0
[mail]
channel = "maildir"
folder = "mail"
[[sources]]
kind = "folder"
path = "inbox"
[[subscribers]]
address = "ana@reef.example"
topics = ["Reef Sound"]
schedule = "each-snapshot"
first = "none"
[[topics]]
name = "Reef Sound"
"""


def wait_for(what: str, ready: Callable[[], object]) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + 30
    while not ready():
        assert time.monotonic() < deadline, f"{what}: waited in vain"
        time.sleep(0.02)


class Running:
    """A daemon in a folder of its own, and the service manager that hears of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        (folder / "inbox").mkdir(exist_ok=True)
        self.configure(SETTINGS)
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.manager.bind(str(folder / "notify"))
        self.manager.setblocking(False)
        self._told: list[str] = []
        self.process: subprocess.Popen[bytes] | None = None

    def configure(self, text: str) -> None:
        """Write the settings."""
        (self.folder / "digestd.toml").write_text(text, encoding="utf-8")

    def command(self, *words: str) -> list[str]:
        """Return a command on these settings."""
        return [sys.executable, "-m", "digestd", *words, "--config", str(self.folder / "digestd.toml")]

    def start(self) -> None:
        """Start the daemon and wait until it is ready."""
        self.told("")
        self._told.clear()
        given = {"NOTIFY_SOCKET": str(self.folder / "notify"), "WATCHDOG_USEC": "600000"}
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(self.command("run"), stderr=log, env=os.environ | given)
        wait_for("ready", lambda: self.told("READY=1"))

    def told(self, word: str) -> bool:
        """Whether the service manager was told a word since the start."""
        while True:
            try:
                self._told.append(self.manager.recv(4096).decode())
            except BlockingIOError:
                return any(word in text for text in self._told)

    @property
    def log(self) -> str:
        """What was logged."""
        return (self.folder / "log").read_text(encoding="utf-8")

    def drop(self, name: str, text: str) -> None:
        """Put a page into the folder that is watched, complete at once."""
        part = self.folder / "inbox" / f"{name}.part"
        part.write_text(text, encoding="utf-8")
        os.utime(part, (1_700_000_000, 1_700_000_000))
        part.rename(part.with_suffix(""))

    def wait_read(self, name: str) -> None:
        """Wait until a page has been put away."""
        wait_for(f"{name} read", lambda: not (self.folder / "inbox" / name).exists())

    def mails(self) -> list[str]:
        """Return the mails that arrived."""
        return [path.read_text(encoding="utf-8") for path in (self.folder / "mail" / "new").glob("*")]

    def signal(self, number: int) -> None:
        """Send a signal."""
        assert self.process is not None
        self.process.send_signal(number)

    def wait(self) -> int:
        """Return the exit status at the end."""
        assert self.process is not None
        return self.process.wait(timeout=30)

    def close(self) -> None:
        """End what is left."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
        self.manager.close()


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """Return a daemon that is ready."""
    daemon = Running(tmp_path / "d")
    daemon.start()
    yield daemon
    daemon.close()


FIRST = page("Reef Sound", ("2026-09-20", "Old Reefs"))
SECOND = page("Reef Sound", ("2026-09-21", "A Reef at Dusk"), ("2026-09-20", "Old Reefs"), total=2)


def test_daemon_turns_a_page_into_one_mail_and_a_feed(running: Running) -> None:
    """A page dropped is mail and feed a moment later, once; the service manager hears of start, life and end."""
    running.drop("one.txt", FIRST)
    running.wait_read("one.txt")
    running.drop("two.txt", SECOND)
    wait_for("mail", running.mails)
    address = running.log.partition("pages at ")[2].split()[0]
    wait_for("page", lambda: b"A Reef at Dusk" in urllib.request.urlopen(f"{address}t/reef-sound").read())
    running.drop("three.txt", SECOND)
    running.wait_read("three.txt")
    wait_for("sign of life", lambda: running.told("WATCHDOG=1"))
    running.signal(signal.SIGTERM)
    assert 0 == running.wait()
    assert running.told("STOPPING=1")
    assert 1 == len(running.mails())
    assert "A Reef at Dusk" in running.mails()[0]
    assert 0 == subprocess.run(running.command("audit"), capture_output=True, check=False).returncode


def test_daemon_reloads_what_can_be_used(running: Running) -> None:
    """Settings with a mistake leave the old ones in force, good ones are taken; a state is logged when asked for."""
    running.configure(SETTINGS + "nonsense = 1\n")
    running.signal(signal.SIGHUP)
    wait_for("refusal", lambda: "settings not reloaded" in running.log)
    running.configure(SETTINGS)
    running.signal(signal.SIGHUP)
    wait_for("reload", lambda: "settings reloaded" in running.log)
    running.signal(signal.SIGUSR1)
    wait_for("state", lambda: "state busy=" in running.log)
    running.drop("one.txt", FIRST)
    running.wait_read("one.txt")
    running.signal(signal.SIGTERM)
    assert 0 == running.wait()


def test_daemon_is_alone_on_its_history(running: Running) -> None:
    """A second daemon on the same history refuses to start and says who has it; after a kill nothing is lost or doubled."""
    second = subprocess.run(running.command("run"), capture_output=True, text=True, timeout=60, check=False)
    assert running.process is not None
    assert 0 != second.returncode
    assert f"found process {running.process.pid}" in second.stderr
    running.drop("one.txt", FIRST)
    running.wait_read("one.txt")
    running.drop("two.txt", SECOND)
    running.signal(signal.SIGKILL)
    running.wait()
    running.start()
    wait_for("mail", running.mails)
    running.signal(signal.SIGTERM)
    assert 0 == running.wait()
    assert 1 == len(running.mails())
    assert 0 == subprocess.run(running.command("audit"), capture_output=True, check=False).returncode


# -- its eyes

#: starts a daemon that looks around at once instead of after minutes
QUICK = """
import sys
from datetime import timedelta
import digestd.daemon as daemon, digestd.eyes as eyes
from digestd.cli import main
daemon.AFTER_A_WHILE_S, daemon.SLOW = 1, dict.fromkeys(daemon.SLOW, 1)
daemon.TICK_S = 1
eyes.DISK_LOW, eyes.JOB_PATIENCE = 0, timedelta(0)
main()
"""


class Watching(Running):
    """A daemon that looks around all the time, and a service that wants signs of life."""

    def command(self, *words: str) -> list[str]:
        """Return a command; the daemon itself is a quick one."""
        found = super().command(*words)
        return [found[0], "-c", QUICK, *found[3:]] if words == ("run",) else found


@pytest.fixture
def watching(tmp_path: Path, httpserver: HTTPServer) -> Iterator[Watching]:
    """Return a daemon that is ready, with an operator, figures and a dead-man switch."""
    httpserver.expect_request("/ping/8f3aSecret").respond_with_data("ok")
    daemon = Watching(tmp_path / "d")
    url = httpserver.url_for("/ping/8f3aSecret")
    daemon.configure(
        SETTINGS
        + f"""
[operator]
to = ["ops@reef.example"]
patience_s = 60
heartbeat_url = "{url}"
[fetch]
allow_networks = ["127.0.0.0/8"]
[metrics]
port = 0
"""
    )
    daemon.start()
    yield daemon
    daemon.close()


def figure(text: str, name: str) -> float | None:
    """Return a figure of the metrics."""
    return next((float(line.split()[-1]) for line in text.splitlines() if line.startswith(f"{name} ")), None)


def test_daemon_shows_figures_signs_of_life_and_its_state(watching: Watching, httpserver: HTTPServer) -> None:
    """Figures are served at an address of their own, a whole round of work is a sign of life, USR1 logs how all is."""
    watching.drop("one.txt", FIRST)
    watching.wait_read("one.txt")
    watching.drop("two.txt", SECOND)
    wait_for("mail", watching.mails)
    where = watching.log.partition("metrics at ")[2].split()[0]
    wait_for("sign of life", lambda: httpserver.log)
    text = urllib.request.urlopen(where).read().decode()
    shown = {name: figure(text, name) for name in ("digestd_store_up", "digestd_papers_new_total")}
    assert {"digestd_store_up": 1, "digestd_papers_new_total": 1} == shown
    wait_for("audit", lambda: b"digestd_audit_findings 0.0" in urllib.request.urlopen(where).read())
    watching.signal(signal.SIGUSR1)
    wait_for("state", lambda: "state of source" in watching.log)
    assert [] == [word for word in ("state busy=", "state of job name=collect ended=") if word not in watching.log]
    watching.signal(signal.SIGTERM)
    assert 0 == watching.wait()
    assert [] == [word for word in ("8f3aSecret", "ana@reef", "ops@reef") if word in watching.log]


def test_daemon_tells_its_operator_what_fails(watching: Watching, httpserver: HTTPServer) -> None:
    """A delivery that nothing can send is one mail to the operator; the figures count it; readers hear nothing."""
    watching.drop("one.txt", FIRST)
    watching.wait_read("one.txt")
    wait_for("sign of life", lambda: httpserver.log)
    store = open_store(watching.folder / "history.sqlite")
    content = store.outbox.put_content(b"no content of a mail", now=datetime(2026, 10, 5, tzinfo=UTC))
    reader = store.subscriptions.find_reader("ana@reef.example")
    assert reader is not None
    assert reader.key is not None
    store.outbox.enqueue([make_envelope(reader.key, content, kind="alert")], now=datetime(2026, 10, 5, tzinfo=UTC))
    store.close()
    wait_for("mail", watching.mails)
    (mail,) = watching.mails()
    assert ["To: ops@reef.example"] == [line for line in mail.splitlines() if line.startswith("To: ")]
    assert "* poison: 1 delivery can never be sent" in mail
    watching.signal(signal.SIGTERM)
    assert 0 == watching.wait()
    assert 1 == len(watching.mails())


def test_service_manager_that_does_not_read_holds_nothing(tmp_path: Path) -> None:
    """Signs of life to a manager whose queue is full are left out, and the daemon goes on."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(tmp_path / "notify"))
        notifier = Notifier(str(tmp_path / "notify"))
        for _ in range(2000):
            notifier.alive()
        assert b"WATCHDOG=1" == manager.recv(100)


def test_daemon_that_cannot_publish_says_so_and_gives_no_sign_of_life(
    watching: Watching, httpserver: HTTPServer
) -> None:
    """Feeds that cannot be written are one mail to the operator, and the dead-man switch hears nothing until they can."""
    watching.signal(signal.SIGTERM)
    assert 0 == watching.wait()
    (watching.folder / "feeds").write_text("a file where the folder should be")
    settings = (watching.folder / "digestd.toml").read_text(encoding="utf-8")
    watching.configure(settings + '[feeds]\nfolder = "feeds"\n')
    heard = len(httpserver.log)
    watching.start()
    watching.drop("one.txt", FIRST)
    watching.wait_read("one.txt")
    wait_for("mail", watching.mails)
    (mail,) = watching.mails()
    assert ("To: ops@reef.example" in mail, "* job publish: " in mail) == (True, True)
    assert heard == len(httpserver.log)
    (watching.folder / "feeds").unlink()
    wait_for("sign of life", lambda: len(httpserver.log) > heard)
    watching.signal(signal.SIGTERM)
    assert 0 == watching.wait()
    assert 1 == len(watching.mails())
