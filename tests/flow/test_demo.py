"""The demo is the daemon: it ends with a mail, finds nothing new the second time, and leaves no process behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from email import message_from_bytes, policy
from pathlib import Path
from urllib.request import urlopen

import pytest

ROOT = Path(__file__).resolve().parents[2]


def demo(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Run the demo to its end."""
    command = [sys.executable, "-m", "digestd", "demo", "--out", str(folder), *more]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False)


def daemons(folder: Path) -> list[int]:
    """Return the processes that work on a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and str(folder).encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return found


def test_demo_ends_with_a_mail_and_finds_nothing_new_again(tmp_path: Path) -> None:
    """A newcomer sees what was found and where it lies; the second run says that there is nothing new, and mails nothing."""
    done = demo(tmp_path / "demo")
    assert (0, "") == (done.returncode, done.stderr)
    said = done.stdout.replace("\u00a0", " ")
    assert "LLM Agent Training: 54 papers in four weeks, up 145%\n" in said
    assert "Subject: LLM Agent Training up 145%, 30 new papers\n" in said
    assert "          and 25 more\n" in said
    assert [] == [line for line in said.splitlines() if len(line) > 80 and str(tmp_path) not in line]
    mail = message_from_bytes((tmp_path / "demo/digest.eml").read_bytes(), policy=policy.default)
    assert "LLM Agent Training up 145%, 30 new papers" == mail["Subject"]
    page = (tmp_path / "demo/digest.html").read_text(encoding="utf-8")
    assert (0, True) == (page.count("cid:"), "30 new, 12 shown" in page)
    assert "30 new" in (tmp_path / "demo/digest.txt").read_text(encoding="utf-8")
    again = demo(tmp_path / "demo")
    assert (0, True) == (
        again.returncode,
        "Nothing new: llm-agent-training.page-1.txt is in the history" in again.stdout,
    )
    assert 1 == len(list((tmp_path / "demo/mail").glob("*.eml")))
    assert [] == daemons(tmp_path)


@pytest.mark.parametrize("stop", [(os.killpg, signal.SIGINT), (os.kill, signal.SIGTERM)], ids=["Ctrl-C", "SIGTERM"])
def test_demo_serves_its_pages_until_it_is_stopped(
    tmp_path: Path, stop: tuple[Callable[[int, int], None], signal.Signals]
) -> None:
    """With --serve the pages can be looked at; Ctrl-C ends the daemon too, and so does a SIGTERM to the demo alone."""
    command = [sys.executable, "-m", "digestd", "demo", "--out", str(tmp_path / "demo"), "--serve"]
    process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, start_new_session=True)
    assert process.stdout is not None
    lines = iter(process.stdout.readline, "")
    address = next(line for line in lines if line.startswith("Pages: ")).split()[1]
    with urlopen(f"{address}t/llm-agent-training", timeout=10) as answer:
        assert b"LLM Agent Training" in answer.read()
    assert 2 == len(daemons(tmp_path))
    kill, number = stop
    kill(process.pid, number)
    assert 0 == process.wait(30)
    process.stdout.close()
    assert [] == daemons(tmp_path)


def test_demo_says_what_kept_the_daemon_from_starting(tmp_path: Path) -> None:
    """Where the daemon does not start, its last words are shown, and no process stays."""
    (tmp_path / "demo/feeds").parent.mkdir()
    (tmp_path / "demo/inbox").mkdir()
    (tmp_path / "demo/daemon.log").mkdir()
    done = demo(tmp_path / "demo")
    assert (1, False) == (done.returncode, "Traceback" in done.stderr)
    assert "daemon.log" in done.stderr
    assert [] == daemons(tmp_path)
