"""``digestd serve`` as it is called: it says where it is, serves pages and feeds, and ends by a signal."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path
from urllib.request import urlopen

from tests.site import NOW, fill, make_house


def test_serve_shows_pages_and_ends_by_a_signal(tmp_path: Path) -> None:
    """The printed address answers with pages and, once they are made, feeds; SIGTERM ends it with status 0."""
    house = make_house(tmp_path)
    fill(house)
    house.store.close()
    (tmp_path / "digestd.toml").write_text('[store]\npath = "history.sqlite"\n', encoding="utf-8")
    command = [sys.executable, "-m", "digestd", "serve", "--port", "0", "--config", str(tmp_path / "digestd.toml")]
    command += ["--now", NOW.isoformat()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/", address)
            with urlopen(f"{address}t/reef-sound") as answer:
                assert b"Reef Sound" in answer.read()
            with urlopen(f"{address}feeds/reef-sound/rss.xml") as answer:
                assert b"<rss" in answer.read()
        finally:
            process.send_signal(signal.SIGTERM)
            status = process.wait(30)
    assert 0 == status


def test_serve_on_a_taken_port_says_so(tmp_path: Path) -> None:
    """A port that cannot be had is an error of the settings, in one line."""
    (tmp_path / "digestd.toml").write_text('[store]\npath = "history.sqlite"\n', encoding="utf-8")
    command = [sys.executable, "-m", "digestd", "serve", "--host", "192.0.2.1", "--port", "8080"]
    done = subprocess.run(
        [*command, "--config", str(tmp_path / "digestd.toml")], capture_output=True, text=True, timeout=60, check=False
    )
    assert 78 == done.returncode
    assert "listening on 192.0.2.1 port 8080" in done.stderr
    assert "Traceback" not in done.stderr
