"""The doctor finds what was broken, names the mend, and is content with what is well."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from digestd.store import open_store
from tests.command import Desk, make_desk
from tests.smtp_sink import Sink, serving

WELL = """
web.base_url = "https://digest.example.org"
mail = {{from_address = "digest@example.org", mode = "none", host = "127.0.0.1", port = {port}}}
[[sources]]
kind = "folder"
path = "in"
"""


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Desk]:
    """A folder with settings and a private history."""
    for desk in make_desk(tmp_path / "desk", capsys):
        open_store(desk.folder / "history.sqlite").close()
        (desk.folder / "history.sqlite").chmod(0o600)
        yield desk


def wrong(desk: Desk) -> dict[str, str]:
    """Return the problems found by what they are about; each has a mend."""
    answer = desk("doctor", "--json")
    found = [one for one in answer.one["examined"] if one["problem"]]
    assert (bool(found), not found) == (answer.status == 1, answer.one["well"])
    assert all(one["mend"] for one in found)
    return {one["what"]: one["problem"] for one in found if one["what"] != "disk"}  # a slow or full one fails no test


def test_doctor_is_content_with_what_is_well(desk: Desk) -> None:
    """With a relay that answers, nothing is wrong, and nothing was sent."""
    with serving(Sink(desk.folder / "taken.jsonl")) as sink:
        desk.configure(WELL.format(port=sink.port))
        assert {} == wrong(desk)
        assert [] == sink.taken()
    assert [] == [command for command in sink.commands if command.startswith(("MAIL", "RCPT", "DATA"))]


def test_doctor_finds_what_was_broken(desk: Desk) -> None:
    """A relay that is gone, a history for all eyes and a broken template are each found at one call."""
    with serving(Sink(desk.folder / "taken.jsonl")) as sink:
        port = sink.port
    desk.put("own/mail/digest.txt.j2", "{% if %}")
    desk.configure(WELL.format(port=port).replace("[[", '[templates]\nfolder = "own"\n[[', 1))
    (desk.folder / "history.sqlite").chmod(0o644)
    found = wrong(desk)
    assert {"mail", "permissions", "templates"} == found.keys()
    assert f"relay 127.0.0.1 port {port}: " in found["mail"]
    assert "mail/digest.txt.j2: " in found["templates"]


def test_doctor_finds_a_damaged_history(desk: Desk) -> None:
    """What SQLite cannot read is found, and the rest is looked at all the same."""
    desk.put("history.sqlite", b"\0" * 5000)
    desk.configure('mail = {channel = "eml", folder = "mail"}')
    assert {"history", "settings"} == wrong(desk).keys()


def test_doctor_in_words(desk: Desk) -> None:
    """A person sees what is well, what is not, and what to do."""
    desk.configure('mail = {channel = "eml", folder = "mail"}')
    answer = desk("doctor")
    assert 1 == answer.status
    assert "  templates: well" in answer.out.splitlines()
    assert "! settings: no source is watched\n    add [[sources]], or use 'digestd ingest'" in answer.out
