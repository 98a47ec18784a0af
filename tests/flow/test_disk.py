"""A disk that is full, has no inodes left or turns read-only, and a history that is damaged: said in words, nothing lost.

Real file systems: small ones in memory, which only root may mount.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Protocol

import pytest

from digestd.store.room import RESERVE, Room
from tests.command import Desk, make_desk
from tests.followers import page

NOW, SLOT = "2026-09-28T05:00:00+00:00", "2026-09-29T07:31:00+00:00"
MB = 1_000_000
FIRST = page("Reef Sound", ("2026-09-20", "Reef Note"))
NEWS = page("Reef Sound", ("2026-09-28", "Bell Buoys"), ("2026-09-20", "Reef Note"))


class MakeDesk(Protocol):
    """Makes a desk on a disk."""

    def __call__(self, options: str, *, floor: int = 8) -> Desk:
        """Return the desk; the disk is mounted with these options."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Give what mounts a small file system of its own."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root may mount a file system")
    mounted: list[Path] = []

    def mount(options: str) -> Path:
        place = tmp_path / f"disk{len(mounted)}"
        place.mkdir()
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)], capture_output=True, text=True, check=False
        )
        if done.returncode:
            pytest.skip(f"no file system can be mounted here: {done.stderr.strip()}")
        mounted.append(place)
        return place

    yield mount
    for place in mounted:
        subprocess.run(["umount", "-l", str(place)], check=False)


@pytest.fixture
def on_disk(disk: Callable[[str], Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> MakeDesk:
    """Give what makes a desk whose history is on a small disk, with a mail in its outbox; mail goes elsewhere."""

    def make(options: str, *, floor: int = 8) -> Desk:
        place = disk(options)
        desk = next(make_desk(tmp_path / "desk", capsys))
        (desk.folder / "digestd.toml").write_text(
            f'[store]\npath = "{place}/history.sqlite"\nfloor_mb = {floor}\nballast_mb = 6\n'
            '[mail]\nchannel = "maildir"\nfolder = "mail"\nfrom_address = "digest@digest.example.org"\n',
            encoding="utf-8",
        )
        desk.put("1.txt", FIRST)
        desk.put("2.txt", NEWS)
        follow = ("follow", "ana@example.org", "Reef Sound", "--daily", "07:30", "--first", "none", "--now", NOW)
        for command in (("ingest", desk.folder / "1.txt", "--now", NOW), follow):
            assert 0 == desk(*command).status
        return desk

    return make


def place_of(desk: Desk) -> Path:
    """Return the disk of a desk's history."""
    text = (desk.folder / "digestd.toml").read_text(encoding="utf-8")
    return Path(text.split('path = "')[1].split('"')[0]).parent


def fill(place: Path, *, leave: int = 0) -> None:
    """Fill a disk up to so many bytes."""
    with (place / "filler").open("ab") as file:
        try:
            while (free := shutil.disk_usage(place).free) > leave:
                file.write(bytes(min(65_536, free - leave)))
                file.flush()
        except OSError:
            return


def mails(desk: Desk) -> int:
    """Return how many mails came."""
    return len(list((desk.folder / "mail").glob("new/*")))


def test_floor_stops_new_work_and_not_what_is_begun(on_disk: MakeDesk) -> None:
    """Below the floor no page is read and no digest made; mail that waits goes out, and all resumes once there is room."""
    desk = on_disk("size=24m")
    assert 0 == desk("ingest", desk.folder / "2.txt", "--now", NOW).status
    assert 0 == desk("digest", "--now", SLOT).status
    fill(place_of(desk), leave=6 * MB)
    for command in (("ingest", desk.folder / "2.txt"), ("digest",)):
        answer = desk(*command, "--now", SLOT)
        assert (75, True, True) == (answer.status, "8 MB free" in answer.err, "found" in answer.err)
    assert (0, 1) == (desk("deliver", "--now", SLOT).status, mails(desk))
    assert (0, 0) == (desk("status").status, desk("audit", "--now", SLOT).status)
    (place_of(desk) / "filler").unlink()
    assert 0 == desk("ingest", desk.folder / "2.txt", "--now", SLOT).status


def test_full_disk_is_opened_and_mail_recorded_by_giving_up_the_ballast(on_disk: MakeDesk) -> None:
    """After a restart on a disk with not one byte left, what was begun is ended and recorded; nothing is sent twice."""
    desk = on_disk("size=24m")
    place = place_of(desk)
    assert 0 == desk("ingest", desk.folder / "2.txt", "--now", NOW).status
    assert 0 == desk("digest", "--now", SLOT).status
    Room(place / "history.sqlite", floor=8 * MB, ballast=6 * MB).restock()
    assert 6 * MB == (place / "history.sqlite-ballast").stat().st_size
    fill(place)
    assert (0, 1) == (desk("deliver", "--now", SLOT).status, mails(desk))
    assert not (place / "history.sqlite-ballast").exists()
    assert 0 == desk("audit", "--now", SLOT).status
    assert (0, 1) == (desk("deliver", "--now", SLOT).status, mails(desk))


def test_full_disk_without_ballast_holds_mail_and_says_so(on_disk: MakeDesk) -> None:
    """Where what becomes of a mail could not be recorded, none is sent: it would be sent again."""
    desk = on_disk("size=24m")
    place = place_of(desk)
    assert 0 == desk("ingest", desk.folder / "2.txt", "--now", NOW).status
    assert 0 == desk("digest", "--now", SLOT).status
    fill(place, leave=RESERVE // 2)
    answer = desk("deliver", "--now", SLOT)
    assert (75, 0, True) == (answer.status, mails(desk), "room" in answer.err)
    (place / "filler").unlink()
    assert (0, 1) == (desk("deliver", "--now", SLOT).status, mails(desk))


@pytest.mark.parametrize("size", ["4m", "10m", "24m"])
def test_disk_that_fills_up_within_a_page_keeps_the_history_whole(on_disk: MakeDesk, size: str) -> None:
    """A page for which there is no room leaves no half of itself, whatever the floor said."""
    desk = on_disk(f"size={size}", floor=0)
    place = place_of(desk)
    fill(place, leave=40_000)
    big = page(
        "Reef Sound", *((f"2026-09-{28 - number // 9:02d}", f"Bell {'x' * 90} {number}") for number in range(200))
    )
    desk.put("3.txt", big)
    answer = desk("ingest", desk.folder / "3.txt", "--now", NOW)
    assert answer.status in (1, 75, 78)
    assert "full" in answer.err or "room" in answer.err
    (place / "filler").unlink()
    with closing(sqlite3.connect(place / "history.sqlite")) as database:
        assert [("ok",)] == database.execute("PRAGMA integrity_check").fetchall()
        assert [(1,)] == database.execute("SELECT COUNT(*) FROM paper").fetchall()
    assert 0 == desk("ingest", desk.folder / "3.txt", "--now", NOW).status


def test_disk_without_inodes_is_said(on_disk: MakeDesk) -> None:
    """A disk that takes no more files is no place for a history, and the error names it."""
    desk = on_disk("size=24m,nr_inodes=12")
    place = place_of(desk)
    try:
        for number in range(20):
            (place / str(number)).touch()
    except OSError:
        pass
    for name in ("history.sqlite-wal", "history.sqlite-shm"):
        (place / name).unlink(missing_ok=True)
    (place / "one").unlink(missing_ok=True)
    for number in range(4):
        try:
            (place / f"more{number}").touch()
        except OSError:
            break
    answer = desk("status")
    assert (78, True) == (answer.status, "history.sqlite" in answer.err)


def test_disk_that_turned_read_only_is_said(on_disk: MakeDesk) -> None:
    """A history that cannot be written is not opened: no half state, one line, exit status 78."""
    desk = on_disk("size=24m")
    subprocess.run(["mount", "-o", "remount,ro", str(place_of(desk))], check=True)
    for command in (("status",), ("ingest", desk.folder / "2.txt"), ("deliver",)):
        answer = desk(*command)
        assert (78, True) == (answer.status, "history.sqlite" in answer.err)
    subprocess.run(["mount", "-o", "remount,rw", str(place_of(desk))], check=True)
    assert 0 == desk("status").status


# -- damage


def overwrite(path: Path, at: int, data: bytes) -> None:
    """Write bytes into the middle of a file."""
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def leaf(path: Path, table: str) -> int:
    """Return where a page of a table's rows begins."""
    with closing(sqlite3.connect(path)) as database:
        (root,) = database.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    return int(root - 1) * 4096


DAMAGE: dict[str, Callable[[Path], None]] = {
    "header": lambda path: overwrite(path, 0, b"garbage!"),
    "schema": lambda path: overwrite(path, 100, b"\xff" * 400),
    "truncated": lambda path: os.truncate(path, 4096 * 3),
    "leaf": lambda path: overwrite(path, leaf(path, "paper"), os.urandom(4096)),
    "zeroed": lambda path: overwrite(path, leaf(path, "ledger"), bytes(4096)),
}


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Desk]:
    """A history with papers and a mail that was sent."""
    for made in make_desk(tmp_path / "desk", capsys):
        made.configure('[mail]\nchannel = "maildir"\nfolder = "mail"\nfrom_address = "digest@digest.example.org"\n')
        made.put("1.txt", FIRST)
        made.put("2.txt", NEWS)
        for command in (
            ("ingest", made.folder / "1.txt", "--now", NOW),
            ("follow", "ana@example.org", "Reef Sound", "--daily", "07:30", "--first", "none", "--now", NOW),
            ("ingest", made.folder / "2.txt", "--now", NOW),
            ("digest", "--now", SLOT),
            ("deliver", "--now", SLOT),
        ):
            assert 0 == made(*command).status
        with closing(sqlite3.connect(made.folder / "history.sqlite")) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        yield made


@pytest.mark.parametrize("what", DAMAGE)
def test_damaged_history_is_found_and_never_followed_by_a_traceback(desk: Desk, what: str) -> None:
    """Whatever part is damaged, a command says so in words, or the audit names it; a backup from before brings all back."""
    path, backup = desk.folder / "history.sqlite", desk.folder / "copy.sqlite"
    assert 0 == desk("backup", backup).status
    DAMAGE[what](path)
    found = [desk("status"), desk("audit", "--now", SLOT), desk("doctor")]
    assert any(answer.status in (1, 78) for answer in found)
    assert all(answer.status in (0, 1, 78) for answer in found)
    assert 0 == desk("restore", backup, "--now", SLOT).status
    assert 0 == desk("audit", "--now", SLOT).status


def test_one_byte_in_what_was_sent_is_found(desk: Desk) -> None:
    """SQLite's own check does not see a byte that changed within a value; the hash of a mail does."""
    with closing(sqlite3.connect(desk.folder / "history.sqlite")) as database:
        (body,) = database.execute("SELECT body FROM content LIMIT 1").fetchone()
    raw = bytearray((desk.folder / "history.sqlite").read_bytes())
    at = raw.find(body[8:40])
    assert at > 0
    overwrite(desk.folder / "history.sqlite", at, bytes([raw[at] ^ 0xFF]))
    with closing(sqlite3.connect(desk.folder / "history.sqlite")) as database:
        assert [("ok",)] == database.execute("PRAGMA quick_check").fetchall()
    answer = desk("audit", "--now", SLOT)
    assert (1, True) == (answer.status, "A6 delivery" in answer.out)
