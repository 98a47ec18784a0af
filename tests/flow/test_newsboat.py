"""A real feed reader takes our feeds as they are served: newsboat lists every entry of two topics and of the common feed."""

from __future__ import annotations

import asyncio
import re
import shutil
import socket
from pathlib import Path

import pytest

from digestd.web.server import WebServer, listen
from tests.site import NOW, WEEKS, fill, make_house


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


async def _newsboat(folder: Path, *commands: str) -> str:
    """Return what newsboat prints."""
    process = await asyncio.create_subprocess_exec(
        "newsboat", "-u", str(folder / "urls"), "-c", str(folder / "cache.db"), "-C", str(folder / "config"),
        *(part for command in commands for part in ("-x", command)),
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT, env={"HOME": str(folder), "LC_ALL": "C.UTF-8"},
    )  # fmt: skip
    out, _ = await asyncio.wait_for(process.communicate(), 60)
    return out.decode()


async def test_newsboat_lists_all_entries(tmp_path: Path) -> None:
    """No entry is lost where papers are in several feeds, and nothing is new after a revision-free second look."""
    if shutil.which("newsboat") is None:
        pytest.skip("no newsboat here: feeds are not read by it")
    port = _free_port()
    house = make_house(tmp_path, base_url=f"http://127.0.0.1:{port}")
    fill(house)
    names = ("reef-sound/rss.xml", "kelp-forests/atom.xml", "all/rss.xml")
    stored = [house.services.shelf.get(name) for name in names]
    entries = sum(len(re.findall(rb"<item>|<entry>", one.body)) for one in stored if one is not None)
    (tmp_path / "urls").write_text(
        "".join(f"http://127.0.0.1:{port}/feeds/{name}\n" for name in names), encoding="utf-8"
    )
    (tmp_path / "config").write_text("", encoding="utf-8")
    listener = listen("127.0.0.1", port)
    server = WebServer(house.app, [listener])
    task = asyncio.create_task(server.serve())
    try:
        first = await _newsboat(tmp_path, "reload", "print-unread")
        again = await _newsboat(tmp_path, "reload", "print-unread")
    finally:
        server.stop()
        await asyncio.wait_for(task, 20)
        listener.close()
        house.store.close()
    assert entries > len(WEEKS)
    assert [f"{entries} unread articles"] * 2 == [first.strip(), again.strip()]
    assert NOW < house.clock.now()
