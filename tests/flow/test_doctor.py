"""The doctor finds what was broken, names the mend, and is content with what is well."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer

from digestd.doctor import breaks_headers
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


def notes(desk: Desk) -> dict[str, str]:
    """Return what doctor says besides problems, the last of each kind."""
    return {one["what"]: one["note"] for one in desk("doctor", "--json").one["examined"] if one["note"]}


def test_doctor_knows_faults_that_are_worked_around(desk: Desk) -> None:
    """Faults of Python and SQLite that digestd works around are notes, and no reason to fail."""
    mail = EmailMessage()
    mail["Subject"] = "=?utf-8?q?a=0D=0ABcc:_e@example.org?="
    try:
        broken = message_from_bytes(mail.as_bytes(policy=SMTP))["Bcc"] is not None
    except ValueError:
        broken = False
    assert broken == breaks_headers()
    desk.configure('mail = {channel = "eml", folder = "mail"}')
    assert broken == ("Python" in notes(desk).get("versions", ""))
    assert {"settings"} == wrong(desk).keys()


def test_doctor_says_that_example_domains_cannot_be_asked(desk: Desk) -> None:
    """Of the sample settings nothing is asked of the DNS, and doctor says so."""
    with serving(Sink(desk.folder / "taken.jsonl")) as sink:
        desk.configure(WELL.format(port=sink.port))
        assert {"dns", "pages"} <= notes(desk).keys()


def test_doctor_asks_the_public_address(desk: Desk, httpserver: HTTPServer) -> None:
    """Pages that answer are well; an address behind which something else answers, or nothing, is a problem."""
    httpserver.expect_request("/healthz").respond_with_data("ok\n")
    address = httpserver.url_for("").rstrip("/")
    desk.configure(f'web.base_url = "{address}"\nmail = {{channel = "eml", folder = "mail"}}')
    assert {"settings"} == wrong(desk).keys()
    desk.configure(f'web.base_url = "{address}/elsewhere"\nmail = {{channel = "eml", folder = "mail"}}')
    assert f"{address}/elsewhere/healthz: answered 500" == wrong(desk)["pages"]


def test_doctor_finds_a_clock_that_went_back(desk: Desk) -> None:
    """A clock that is behind what the history has seen is found: slots would wait for it in silence."""
    store = open_store(desk.folder / "history.sqlite")
    store.troubles.put_sign("worked", at=datetime(2100, 1, 1, tzinfo=UTC))
    store.close()
    desk.configure('mail = {channel = "eml", folder = "mail"}')
    assert "and the history has seen 2100-01-01 00:00" in wrong(desk)["clock"]
    answer = desk("doctor", "--json", "--now", "2020-01-01")
    assert "it shows 2020-01-01, a day before this release was made" in answer.out


def test_doctor_fits_a_terminal(desk: Desk) -> None:
    """What doctor says is read in 80 columns."""
    desk.configure('mail = {channel = "eml", folder = "mail"}')
    assert [] == [line for line in desk("doctor").out.splitlines() if len(line) > 80]
