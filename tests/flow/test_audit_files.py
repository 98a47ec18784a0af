"""Every file of a watched folder was read or set aside, and the audit knows which (rule A1)."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime
from pathlib import Path

import pytest

from digestd.model.source import FileFate
from tests.command import Desk, make_desk

NOW = "2026-09-29T06:00:00+00:00"
LATER = "2026-09-29T07:00:00+00:00"
SETTINGS = '[[sources]]\nkind = "folder"\nname = "inbox"\npath = "incoming"\n'
BROKEN = '{"schema": "digestd.snapshot/1"}'


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Desk]:
    """A watched folder with settings and a history."""
    for made in make_desk(tmp_path / "desk", capsys):
        made.configure(SETTINGS)
        yield made


def page(*titles: str) -> str:
    """Return a JSON snapshot of invented papers."""
    papers = [{"title": title, "date": "2026-09-27", "authors": ["Ida Moss"]} for title in titles]
    head = {"schema": "digestd.snapshot/1", "topic": "Tide Sound", "order": "feed"}
    return json.dumps(head | {"papers": papers})


def drop(desk: Desk, name: str, body: str) -> Path:
    """Put a complete file into the watched folder."""
    path = desk.put(f"incoming/{name}", body)
    os.utime(path, (1_790_000_000, 1_790_000_000))
    return path


def fates(desk: Desk) -> list[tuple[str, str]]:
    """Return (name, fate) of all files on record, in the order in which they came."""
    with closing(sqlite3.connect(desk.folder / "history.sqlite")) as database:
        return database.execute("SELECT name, fate FROM watched_file ORDER BY id").fetchall()


def findings(desk: Desk) -> list[str]:
    """Return what the audit finds of rule A1; nothing else may be found."""
    report = desk("audit", "--json", "--now", LATER).one
    assert {"A1"} >= {one["code"] for one in report["findings"]}
    return [f"{Path(one['thing'].split(' file ')[-1]).name}: {one['found']}" for one in report["findings"]]


def play(desk: Desk) -> None:
    """Read a good file, the same again under another name, and a broken one."""
    drop(desk, "1.json", page("Echo Caves"))
    assert 0 == desk("collect", "--now", NOW).status
    drop(desk, "2.json", page("Echo Caves"))
    drop(desk, "3.json", BROKEN)
    assert 1 == desk("collect", "--now", NOW).status


def test_each_file_has_one_fate(desk: Desk) -> None:
    """What was new is done, what the history had is a duplicate, what cannot be read is quarantined; all is accounted for."""
    play(desk)
    assert [("1.json", "done"), ("2.json", "duplicate"), ("3.json", "quarantined")] == fates(desk)
    assert [] == findings(desk)


def test_file_that_is_read_in_the_end_has_its_last_fate(desk: Desk) -> None:
    """A file whose name was what was wrong is done once it is read, and no longer quarantined; it is still one file."""
    drop(desk, "1.json.gz", page("Echo Caves"))
    desk("collect", "--now", NOW)
    quarantine = desk.folder / "incoming/quarantine"
    (quarantine / "1.json.gz").rename(quarantine / "1.json")
    assert [("1.json.gz", "quarantined")] == fates(desk)
    assert 0 == desk("ingest", "--retry", "--now", LATER).status
    assert [("1.json.gz", "done")] == fates(desk)
    assert [] == findings(desk)


def test_file_that_nobody_read_is_found(desk: Desk) -> None:
    """A file that somebody moved to done/ without its being read is a paper lost: the audit names it."""
    play(desk)
    drop(desk, "4.json", page("Quiet Reefs")).rename(desk.folder / "incoming/done/2026-09/4.json")
    assert ["4.json: no record"] == findings(desk)
    assert 1 == desk("audit", "--now", LATER).status


def test_file_that_could_not_be_read_is_not_done(desk: Desk) -> None:
    """A quarantined file that somebody moved to done/ was still never read."""
    play(desk)
    (desk.folder / "incoming/quarantine/3.json").rename(desk.folder / "incoming/done/2026-09/3.json")
    assert ["3.json: one that could not be read"] == findings(desk)


def test_copied_folder_is_known_by_its_bytes(desk: Desk) -> None:
    """After a move to another disk every file has another inode, and is known all the same."""
    play(desk)
    incoming = desk.folder / "incoming"
    shutil.copytree(incoming, desk.folder / "copy")
    shutil.rmtree(incoming)
    (desk.folder / "copy").rename(incoming)
    assert [] == findings(desk)


def test_file_that_somebody_deleted_is_only_noted(desk: Desk) -> None:
    """What was read may be thrown away; that it is gone is said, and is no fault."""
    play(desk)
    (desk.folder / "incoming/done/2026-09/1.json").unlink()
    report = desk("audit", "--json", "--now", LATER).one
    assert (True, ["1 files of inbox are where they were put no more"]) == (report["clean"], report["notes"][:1])


def test_files_from_before_accounts_are_only_noted(desk: Desk) -> None:
    """A folder that an earlier release filled is no fault of anybody's."""
    play(desk)
    with closing(sqlite3.connect(desk.folder / "history.sqlite")) as database:
        database.execute("DELETE FROM watched_file")
        database.commit()
    report = desk("audit", "--json", "--now", LATER).one
    assert (True, True) == (report["clean"], any("3 files of inbox" in note for note in report["notes"]))


def test_folder_that_cannot_be_read_is_found(desk: Desk) -> None:
    """What cannot be looked at is not called well."""
    play(desk)
    done = desk.folder / "incoming/done"
    done.rename(desk.folder / "elsewhere")
    done.write_text("no folder", encoding="utf-8")
    (found,) = desk("audit", "--json", "--now", LATER).one["findings"]
    assert ("A1", True) == (found["code"], "Not a directory" in found["found"])


def test_kept_files_are_read_again_and_stay_what_they_were(desk: Desk) -> None:
    """With folders.done = "keep" a file that is met again after a restart stays done."""
    desk.configure('[folders]\ndone = "keep"\n' + SETTINGS)
    drop(desk, "1.json", page("Echo Caves"))
    for when in (NOW, LATER):
        assert 0 == desk("collect", "--now", when).status
    assert [("1.json", str(FileFate.DONE))] == fates(desk)
    assert [] == findings(desk)


def test_folder_without_a_name_is_accounted_for_as_well(desk: Desk) -> None:
    """A source that was given no name goes by its folder's, in the records and in the audit alike."""
    desk.configure(SETTINGS.replace('name = "inbox"\n', ""))
    play(desk)
    drop(desk, "4.json", page("Quiet Reefs")).rename(desk.folder / "incoming/done/2026-09/4.json")
    assert ["4.json: no record"] == findings(desk)


def test_file_that_is_not_complete_is_said(desk: Desk) -> None:
    """A page that was saved this very moment is not read yet, and the command says so."""
    path = drop(desk, "1.json", page("Echo Caves"))
    just_now = datetime.fromisoformat(NOW).timestamp() - 1
    os.utime(path, (just_now, just_now))
    early = desk("collect", "--now", NOW)
    assert (0, "", True) == (
        early.status,
        early.out,
        "1 files in" in early.err and "have not stood still for 5 s" in early.err,
    )
    assert "Echo Caves" in desk("collect", "--json", "--now", LATER).out
