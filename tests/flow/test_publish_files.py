"""Published files: whole or not at all, untouched when nothing changed, never outside the folder."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from digestd.errors import ChannelError
from digestd.send.files import sweep_leftovers, write_files

#: Publishes documents of one repeated letter for ever, a large one so that a reader may well see half of it.
WRITER = """
import itertools, sys
from pathlib import Path
from digestd.send.files import write_files
for letter in itertools.cycle(b"abc"):
    write_files(Path(sys.argv[1]), {"feed.rss": bytes([letter]) * 3_000_000})
    print("x", flush=True)
"""
#: Publishes a small and a large file where no file may be larger than 10 kB.
CRAMPED = """
import resource, signal, sys
from pathlib import Path
from digestd.errors import ChannelError
from digestd.send.files import write_files
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
try:
    write_files(Path(sys.argv[1]), {"small": b"new", "large": b"n" * 20_000, "last": b"new"})
except ChannelError as error:
    print(error)
"""


def names_in(folder: Path) -> list[str]:
    """Return the names of all files below the folder, hidden ones too."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


def test_write_files_writes_and_names_what_it_wrote(tmp_path: Path) -> None:
    """A first publication makes folder and files, readable for a web server, and leaves nothing else behind."""
    folder = tmp_path / "www" / "feeds"
    files = {"archive/0.rss": b"old", "feed.rss": b"new"}
    assert write_files(folder, files) == ("archive/0.rss", "feed.rss")
    assert names_in(folder) == ["archive/0.rss", "feed.rss"]
    assert (folder / "feed.rss").read_bytes() == b"new"
    assert stat.S_IMODE((folder / "feed.rss").stat().st_mode) == 0o644


def test_write_files_leaves_unchanged_bytes_alone(tmp_path: Path) -> None:
    """A file that holds the bytes already keeps its inode and time, so that Last-Modified stays true."""
    write_files(tmp_path, {"a": b"1", "b": b"2", "c": b"3"})
    before = [(tmp_path / name).stat() for name in "ac"]
    assert write_files(tmp_path, {"a": b"1", "b": b"changed", "c": b"3"}) == ("b",)
    after = [(tmp_path / name).stat() for name in "ac"]
    assert [(one.st_ino, one.st_mtime_ns) for one in before] == [(one.st_ino, one.st_mtime_ns) for one in after]
    assert (tmp_path / "b").read_bytes() == b"changed"


def test_write_files_sees_a_change_of_the_same_length(tmp_path: Path) -> None:
    """Bytes are compared, not sizes."""
    write_files(tmp_path, {"a": b"one"})
    assert write_files(tmp_path, {"a": b"two"}) == ("a",)


def test_write_files_closes_a_private_file(tmp_path: Path) -> None:
    """A file of one reader that others could read is written again, closed, though its bytes are right."""
    write_files(tmp_path, {"a": b"1"})
    assert write_files(tmp_path, {"a": b"1"}, mode=0o600) == ("a",)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o600
    assert write_files(tmp_path, {"a": b"1"}, mode=0o600) == ()
    assert write_files(tmp_path, {"a": b"1"}) == ()


def test_write_files_replaces_a_link_and_spares_its_target(tmp_path: Path) -> None:
    """A symbolic link in the folder never leads the writer to another file."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"precious")
    folder = tmp_path / "www"
    folder.mkdir()
    (folder / "feed.rss").symlink_to(elsewhere)
    assert write_files(folder, {"feed.rss": b"precious"}) == ("feed.rss",)
    write_files(folder, {"feed.rss": b"other"})
    assert elsewhere.read_bytes() == b"precious"
    assert not (folder / "feed.rss").is_symlink()


@pytest.mark.parametrize("name", ["", ".", "/etc/x", "../x", "a/../../x", "a\0b"])
def test_write_files_refuses_names_that_lead_out(tmp_path: Path, name: str) -> None:
    """No name writes outside the folder."""
    with pytest.raises(ChannelError, match="expected a relative file name"):
        write_files(tmp_path / "www", {name: b"x"})
    assert names_in(tmp_path) == []


def test_write_files_reports_a_folder_that_is_none(tmp_path: Path) -> None:
    """What the disk refuses is one error that names the folder."""
    (tmp_path / "www").write_bytes(b"a file")
    with pytest.raises(ChannelError, match=r"publishing to .*www: Not a directory"):
        write_files(tmp_path / "www", {"a": b"1"})
    (tmp_path / "b").mkdir()
    with pytest.raises(ChannelError, match=r"publishing to .*: Is a directory"):
        write_files(tmp_path, {"b": b"1"})
    assert names_in(tmp_path) == ["www"]


def test_old_file_stays_when_the_disk_is_full(tmp_path: Path) -> None:
    """A file that does not fit leaves the old one whole and no remains; what comes after it is not touched."""
    write_files(tmp_path, {"small": b"old", "large": b"old", "last": b"old"})
    done = subprocess.run([sys.executable, "-c", CRAMPED, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == f"publishing to {tmp_path}: File too large\n"
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "small": b"new",
        "large": b"old",
        "last": b"old",
    }


def test_reader_never_sees_half_a_file_even_if_the_writer_is_killed(tmp_path: Path) -> None:
    """Whenever a reader looks and whenever the writer dies, the file is a whole old or a whole new one."""
    target = tmp_path / "feed.rss"
    looks = 0
    for round_ in range(10):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE)
        assert writer.stdout is not None
        writer.stdout.readline()
        # Each round is cut off a little later, so that kills fall on different steps of the writer.
        end = time.monotonic() + 0.02 + 0.003 * round_
        while time.monotonic() < end:
            seen = target.read_bytes()
            assert (len(seen), len(set(seen))) == (3_000_000, 1)
            looks += 1
        os.kill(writer.pid, signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        seen = target.read_bytes()
        assert (len(seen), len(set(seen))) == (3_000_000, 1)
    assert looks > 10


def test_sweep_leftovers_removes_only_old_half_written_files(tmp_path: Path) -> None:
    """What a killed writer left is removed; what may be in work, and every other file, stays."""
    now = datetime(2026, 9, 30, 6, tzinfo=UTC)
    (tmp_path / "archive").mkdir()
    for name, age in {
        ".digestd-a.new": 2,
        "archive/.digestd-b.new": 2,
        ".digestd-c.new": 0,
        "feed.rss": 2,
        ".htaccess": 2,
    }.items():
        path = tmp_path / name
        path.write_bytes(b"x")
        moment = (now - timedelta(hours=age)).timestamp()
        os.utime(path, (moment, moment))
    assert sweep_leftovers(tmp_path, before=now - timedelta(hours=1)) == 2
    assert names_in(tmp_path) == [".digestd-c.new", ".htaccess", "feed.rss"]
    assert sweep_leftovers(tmp_path / "nowhere", before=now) == 0
