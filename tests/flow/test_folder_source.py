"""Watched folders on a real disk: only complete regular files are read, and nothing is ever lost or overwritten."""

from __future__ import annotations

import asyncio
import gzip
import os
import shutil
import socket
import sys
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.errors import FetchError
from digestd.model.source import FetchState, OutcomeKind, SourceSpec
from digestd.watch import folder as folder_module
from digestd.watch import shelf as shelf_module
from digestd.watch.decompress import DamagedError, TooBigError
from digestd.watch.folder import (
    FolderSource,
    Look,
    NotReadyError,
    is_complete,
    quarantined,
    read,
    scan,
    watch,
)
from digestd.watch.shelf import FoundFile, mark_done, quarantine

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

NOW = datetime(2026, 9, 30, 6, 0, tzinfo=UTC)
OLD = NOW - timedelta(hours=1)
TEXT = b"Reef Sound\n5 papers\n"


def read_reason(file: FoundFile) -> str:
    """Return why a file is in quarantine, as the text beside it says; empty if nobody wrote it down."""
    path = file.path.with_name(f"{file.path.name}.why.txt")
    return path.read_text("utf-8") if path.exists() else ""


def put(folder: Path, name: str, body: bytes = TEXT, *, at: datetime = OLD) -> Path:
    """Write a file as of an hour ago."""
    path = folder / name
    path.write_bytes(body)
    os.utime(path, (at.timestamp(), at.timestamp()))
    return path


def found(folder: Path) -> tuple[FoundFile, ...]:
    """Return what one scan finds."""
    return scan(folder, now=NOW)[0]


def only(folder: Path) -> FoundFile:
    """Return the one file that a scan finds."""
    (file,) = found(folder)
    return file


def tree(folder: Path) -> dict[str, bytes]:
    """Return all files below a folder with their content."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_scan_gives_complete_files_oldest_first(tmp_path: Path) -> None:
    """Complete files come oldest first; hidden, unfinished and sub-folders' files don't come."""
    put(tmp_path, "b.txt", at=OLD)
    put(tmp_path, "a.txt", at=OLD + timedelta(minutes=1))
    for name in (".hidden", "c.tmp", "d.PART", "e.txt~", "f.crdownload", "a.txt.why.txt"):
        put(tmp_path, name)
    (tmp_path / "sub").mkdir()
    put(tmp_path / "sub", "g.txt")
    assert ["b.txt", "a.txt"] == [file.name for file in found(tmp_path)]


def test_scan_fresh_file_waits_until_it_stands_still(tmp_path: Path) -> None:
    """A file that was written a moment ago is left alone until its time has passed."""
    put(tmp_path, "a.txt", at=NOW)
    assert [0, 0, 1] == [len(scan(tmp_path, now=NOW + timedelta(seconds=s), settle_s=5)[0]) for s in (0, 4, 5)]


def test_scan_renamed_file_is_complete_at_once(tmp_path: Path) -> None:
    """A file seen under an unfinished name is complete as soon as it has its own, and stays so until it changes."""
    part = put(tmp_path, "a.txt.part", at=NOW)
    files, looks = scan(tmp_path, now=NOW)
    assert () == files
    path = part.rename(tmp_path / "a.txt")
    for _ in range(2):
        files, looks = scan(tmp_path, now=NOW, looks=looks)
        assert ["a.txt"] == [file.name for file in files]
    path.write_bytes(b"more")
    os.utime(path, (NOW.timestamp(), NOW.timestamp()))
    assert () == scan(tmp_path, now=NOW, looks=looks)[0]


def test_scan_time_in_the_future_is_watched(tmp_path: Path) -> None:
    """A file with a time in the future is complete once two scans so far apart saw it unchanged."""
    put(tmp_path, "a.txt", at=NOW + timedelta(days=3))
    counts, looks = [], None
    for second in (0, 3, 6):
        files, looks = scan(tmp_path, now=NOW + timedelta(seconds=second), settle_s=5, looks=looks)
        counts.append(len(files))
    assert [0, 0, 1] == counts


@settings(max_examples=100)
@given(age_s=st.floats(-1e6, 1e6), settle_s=st.floats(0, 100), size=st.integers(0, 5), seen=st.integers(0, 5))
def test_is_complete_growing_file_never_is(age_s: float, settle_s: float, size: int, seen: int) -> None:
    """Without a rename, a file younger than the time to settle is complete only if it never changed and lies ahead."""
    mtime_ns = int((NOW.timestamp() - age_s) * 1e9)
    before = Look(seen, mtime_ns, NOW - timedelta(days=1))
    complete = is_complete(size, mtime_ns, before, now=NOW, settle_s=settle_s)
    age = NOW.timestamp() - mtime_ns / 1e9
    assert complete == (age >= settle_s or (age < 0 and size == seen))


def test_is_complete_new_file_with_an_old_inode_waits() -> None:
    """A file that got the inode of an unfinished one which was removed is not taken for that one renamed."""
    mtime_ns = int(NOW.timestamp() * 1e9)
    part = Look(5, mtime_ns - 1000, NOW, unfinished=True)
    asked = [is_complete(5, mtime_ns - late, part, now=NOW, settle_s=5) for late in (1000, 0)]
    assert [True, False] == asked


def test_scan_missing_folder_is_an_error(tmp_path: Path) -> None:
    """A folder that is not there is a failure of the source, not an empty one."""
    with pytest.raises(FetchError, match="cannot be read"):
        found(tmp_path / "nowhere")


def test_read_gives_the_bytes_and_the_plain_name(tmp_path: Path) -> None:
    """A file is a document with its path, its time of reading and its name."""
    path = put(tmp_path, "page.txt")
    document = read(only(tmp_path), max_bytes=1000, now=NOW)
    assert (TEXT, str(path), "page.txt", NOW) == (document.body, document.origin, document.name, document.fetched_at)


@pytest.mark.parametrize(
    ("name", "body", "plain"),
    [
        ("p.json.gz", gzip.compress(TEXT, mtime=0), "p.json"),
        ("p.JSON.GZ", gzip.compress(TEXT, mtime=0), "p.JSON"),
        ("p.xml.zst", zstd.compress(TEXT), "p.xml"),
        ("p.xml", gzip.compress(TEXT, mtime=0), "p.xml"),
        ("p.gz", gzip.compress(TEXT[:5], mtime=0) + gzip.compress(TEXT[5:], mtime=0), "p"),
    ],
)
def test_read_packed_file_is_unpacked(tmp_path: Path, name: str, body: bytes, plain: str) -> None:
    """Packed files are unpacked, whatever they are called, and named without the suffix."""
    put(tmp_path, name, body)
    document = read(only(tmp_path), max_bytes=1000, now=NOW)
    assert (TEXT, plain) == (document.body, document.name)


@pytest.mark.parametrize(
    ("name", "body", "error"),
    [
        ("bomb.gz", gzip.compress(bytes(20_000_000), mtime=0), TooBigError),
        ("bomb.zst", zstd.compress(bytes(20_000_000)), TooBigError),
        ("big.txt", bytes(100_001), TooBigError),
        ("cut.gz", gzip.compress(TEXT, mtime=0)[:-3], DamagedError),
        ("lie.gz", TEXT, DamagedError),
        ("lie.gz", zstd.compress(TEXT), DamagedError),
        ("empty.txt", b"", FetchError),
        ("empty.gz", gzip.compress(b"", mtime=0), FetchError),
    ],
)
def test_read_bad_file_is_an_error_with_its_name(
    tmp_path: Path, name: str, body: bytes, error: type[Exception]
) -> None:
    """Bombs, cut, mislabelled and empty files are errors."""
    put(tmp_path, name, body)
    with pytest.raises(error):
        read(only(tmp_path), max_bytes=100_000, now=NOW)


@pytest.mark.timeout(10)
def test_read_never_opens_what_is_no_regular_file(tmp_path: Path) -> None:
    """Links, pipes and sockets are found, named for what they are, and not opened."""
    secret = put(tmp_path, ".secret", b"root:x:0:0")
    inbox = tmp_path / "in"
    inbox.mkdir()
    (inbox / "link.txt").symlink_to(secret)
    (inbox / "dangling").symlink_to("/nowhere")
    (inbox / "folder-link").symlink_to(tmp_path)
    os.mkfifo(inbox / "pipe.txt")
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(inbox / "socket"))
        files = found(inbox)
    assert ["dangling", "folder-link", "link.txt", "pipe.txt", "socket"] == sorted(file.name for file in files)
    for file in files:
        with pytest.raises(FetchError, match=r"it is (a symbolic link|no regular file)"):
            read(file, max_bytes=1000, now=NOW)
        quarantine(file, "no regular file", now=NOW)
    assert ((), b"root:x:0:0") == (found(inbox), secret.read_bytes())
    assert 5 == len(quarantined(inbox))


@pytest.mark.timeout(10)
@pytest.mark.parametrize("swap", ["link", "pipe", "other", "longer", "gone"])
def test_read_file_swapped_after_the_scan_is_left_for_the_next(tmp_path: Path, swap: str) -> None:
    """A file that is replaced, changed or removed between scan and read is not read."""
    secret = put(tmp_path, ".secret", TEXT)
    path = put(tmp_path, "page.txt")
    file = only(tmp_path)
    path.unlink()
    match swap:
        case "link":
            path.symlink_to(secret)
        case "pipe":
            os.mkfifo(path)
        case "other":
            os.link(secret, path)
        case "longer":
            put(tmp_path, "page.txt", TEXT + b"more")
    with pytest.raises(NotReadyError):
        read(file, max_bytes=1000, now=NOW)


def test_read_strange_names_are_text(tmp_path: Path) -> None:
    """Names of any bytes become text that can be stored, and the files can be put away."""
    names = [b"caf\xe9.txt", b"new\nline.txt", b"-rf", b"x" * 255, "é".encode() * 120 + b".json.gz", b"a;b|c $(d)"]
    for name in names:
        (tmp_path / os.fsdecode(name)).write_bytes(TEXT if not name.endswith(b".gz") else gzip.compress(TEXT, mtime=0))
        os.utime(tmp_path / os.fsdecode(name), (OLD.timestamp(),) * 2)
    files = found(tmp_path)
    assert len(names) == len(files)
    for number, file in enumerate(files):
        document = read(file, max_bytes=1000, now=NOW)
        f"{document.name} {document.origin}".encode()
        kept = quarantine(file, f"reason {number}", now=NOW)
        assert f"reason {number}" in read_reason(replace(file, path=kept))
    assert (len(names), ()) == (len(quarantined(tmp_path)), found(tmp_path))


def test_mark_done_moves_by_month_and_never_overwrites(tmp_path: Path) -> None:
    """Read files of one name stand beside each other in the month's folder."""
    for body in (b"1", b"2", b"3"):
        put(tmp_path, "page.tar.txt", body)
        mark_done(only(tmp_path), now=NOW)
    expected = {
        "done/2026-09/page.tar.txt": b"1",
        "done/2026-09/page-1.tar.txt": b"2",
        "done/2026-09/page-2.tar.txt": b"3",
    }
    assert expected == tree(tmp_path)


def test_mark_done_keep_leaves_the_file(tmp_path: Path) -> None:
    """With the setting "keep" nothing moves."""
    path = put(tmp_path, "page.txt")
    assert path == mark_done(only(tmp_path), mode="keep", now=NOW)
    assert {"page.txt": TEXT} == tree(tmp_path)


def test_quarantine_keeps_file_and_every_reason(tmp_path: Path) -> None:
    """A bad file is kept with a line for each time it failed, and a good one at last takes its reasons along."""
    put(tmp_path, "page.txt")
    quarantine(only(tmp_path), "expected a date,\nfound 'x'", now=NOW)
    (file,) = quarantined(tmp_path)
    quarantine(file, "still no date", now=NOW + timedelta(days=1))
    reasons = "2026-09-30T06:00:00Z expected a date, found 'x'\n2026-10-01T06:00:00Z still no date\n"
    assert (reasons, TEXT) == (read_reason(file), read(file, max_bytes=100, now=NOW).body)
    assert {"quarantine/page.txt": TEXT, "quarantine/page.txt.why.txt": reasons.encode()} == tree(tmp_path)
    mark_done(file, mode="keep", now=NOW)
    assert {"done/2026-09/page.txt": TEXT, "done/2026-09/page.txt.why.txt": reasons.encode()} == tree(tmp_path)


def test_quarantine_same_name_keeps_both(tmp_path: Path) -> None:
    """Two bad files of one name are two files with a reason each."""
    for body in (b"1", b"2"):
        put(tmp_path, "page.txt", body)
        quarantine(only(tmp_path), "bad " + body.decode(), now=NOW)
    assert [("page.txt", True), ("page-1.txt", True)] == [
        (file.name, "bad" in read_reason(file)) for file in sorted(quarantined(tmp_path), key=lambda f: -len(f.name))
    ][::-1]


def test_quarantine_folder_that_is_a_link_is_not_used(tmp_path: Path) -> None:
    """A link in the place of our folders does not lead files away."""
    away = tmp_path / "away"
    away.mkdir()
    inbox = tmp_path / "in"
    inbox.mkdir()
    (inbox / "quarantine").symlink_to(away)
    (inbox / "done").symlink_to(away)
    path = put(inbox, "page.txt")
    file = next(file for file in found(inbox) if file.name == "page.txt")
    for act in ("done", "quarantine"):
        with pytest.raises(FetchError, match="symbolic link"):
            put_away(file, act)
    assert (True, []) == (path.exists(), list(away.iterdir()))


@pytest.mark.parametrize("step", ["make_folder", "_reserve", "_add_reason", "_rename", "_sync_folder"])
@pytest.mark.parametrize("act", ["done", "quarantine"])
def test_crash_at_any_step_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, act: str) -> None:
    """Whenever the process dies while a file is put away, the file is still there once, and the next run finishes."""

    class Killed(BaseException):
        """The process ends here."""

    def die(*args: object, **kwargs: object) -> None:
        raise Killed

    put(tmp_path, "page.txt")
    with monkeypatch.context() as patch:
        patch.setattr(shelf_module, step, die)
        with suppress(Killed):
            put_away(only(tmp_path), act)
    assert 1 == list(tree(tmp_path).values()).count(TEXT)
    for file in found(tmp_path):
        put_away(file, act)
    assert (1, ()) == (list(tree(tmp_path).values()).count(TEXT), found(tmp_path))


def put_away(file: FoundFile, act: str) -> None:
    """Put a file away one way or the other."""
    if act == "done":
        mark_done(file, now=NOW)
    else:
        quarantine(file, "bad", now=NOW)


def test_shelf_move_that_fails_leaves_everything(tmp_path: Path) -> None:
    """A file that vanished, a shelf that is a file, and a reason that cannot be written are errors that move nothing."""
    put(tmp_path, "page.txt")
    put(tmp_path, "done")
    file = next(file for file in found(tmp_path) if file.name == "page.txt")
    with pytest.raises(FetchError, match="cannot be made"):
        mark_done(file, now=NOW)
    (tmp_path / "quarantine" / "page.txt.why.txt").mkdir(parents=True)
    with pytest.raises(FetchError, match="cannot be written"):
        quarantine(file, "bad", now=NOW)
    (tmp_path / "quarantine" / "page.txt.why.txt").rmdir()
    file.path.rename(tmp_path / ".away")
    with pytest.raises(FetchError, match="cannot be moved"):
        quarantine(file, "bad", now=NOW)
    assert {".away", "done", "quarantine/page.txt", "quarantine/page-1.txt.why.txt"} == set(tree(tmp_path))


def test_shelf_full_of_one_name_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers end somewhere, and then nothing is overwritten either."""
    monkeypatch.setattr(shelf_module, "_MAX_NUMBER", 2)
    for body in (b"1", b"2"):
        put(tmp_path, "page.txt", body)
        mark_done(only(tmp_path), now=NOW)
    put(tmp_path, "page.txt", b"3")
    with pytest.raises(FetchError, match="2 files of this name"):
        mark_done(only(tmp_path), now=NOW)
    assert [b"1", b"2", b"3"] == sorted(tree(tmp_path).values())


def test_read_reason_nobody_wrote_is_empty(tmp_path: Path) -> None:
    """A file that somebody put into quarantine by hand has no reason, and no shelf has no files."""
    assert () == quarantined(tmp_path)
    (tmp_path / "quarantine").mkdir()
    put(tmp_path / "quarantine", "page.txt")
    assert [""] == [read_reason(file) for file in quarantined(tmp_path)]


def spec_of(folder: Path, **fields: object) -> SourceSpec:
    """Return a folder as a source."""
    return replace(SourceSpec("in", str(folder), kind="folder", max_bytes=1000), **fields)  # type: ignore[arg-type]  # any field of SourceSpec


async def test_source_good_files_are_done_and_bad_ones_in_quarantine(tmp_path: Path) -> None:
    """Each complete file is an outcome; settled ones are put away and do not come again."""
    put(tmp_path, "good.txt")
    put(tmp_path, "bad.txt", b"nonsense", at=OLD + timedelta(minutes=1))
    put(tmp_path, "big.txt", bytes(2000), at=OLD + timedelta(minutes=2))
    source = FolderSource(spec_of(tmp_path))
    outcomes = await source.collect(None, now=NOW, draw=0.0)
    assert [OutcomeKind.OK, OutcomeKind.OK, OutcomeKind.FAILED] == [outcome.kind for outcome in outcomes]
    for outcome, problem in zip(outcomes, (None, "no papers", outcomes[2].why), strict=True):
        for _ in range(2):
            source.settle(outcome, problem, now=NOW)
    assert () == await source.collect(None, now=NOW, draw=0.0)
    assert {
        "done/2026-09/good.txt",
        "quarantine/bad.txt",
        "quarantine/bad.txt.why.txt",
        "quarantine/big.txt",
        "quarantine/big.txt.why.txt",
    } == set(tree(tmp_path))


async def test_source_kept_file_comes_again_only_after_a_change(tmp_path: Path) -> None:
    """With "keep" a file that was recorded is not handed out again until it changes."""
    put(tmp_path, "page.txt")
    source = FolderSource(spec_of(tmp_path, done="keep"))
    counts = []
    for body in (TEXT, TEXT, b"new"):
        if body != TEXT:
            put(tmp_path, "page.txt", body)
        outcomes = await source.collect(None, now=NOW, draw=0.0)
        counts.append(len(outcomes))
        for outcome in outcomes:
            source.settle(outcome, None, now=NOW)
    assert [1, 0, 1] == counts


async def test_source_file_that_changes_under_our_hands_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is not what the scan saw is no outcome at all, and comes with the next look."""
    path = put(tmp_path, "page.txt")
    source = FolderSource(spec_of(tmp_path))
    file = only(tmp_path)
    put(tmp_path, "page.txt", TEXT + b"more")
    with monkeypatch.context() as patch:
        patch.setattr(folder_module, "scan", lambda *args, **kwargs: ((file,), {}))  # noqa: ARG005  # any call
        assert () == await source.collect(None, now=NOW, draw=0.0)
    (good,) = await source.collect(None, now=NOW, draw=0.0)
    assert (OutcomeKind.OK, str(path)) == (good.kind, good.url)


async def test_source_unsettled_file_comes_again(tmp_path: Path) -> None:
    """A file that was handed out and never settled, because of a crash, is handed out again."""
    put(tmp_path, "page.txt")
    source = FolderSource(spec_of(tmp_path))
    assert [1, 1] == [len(await source.collect(None, now=NOW, draw=0.0)) for _ in range(2)]


async def test_source_full_folder_comes_in_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than a batch is in memory at once, and settling leads to the next."""
    monkeypatch.setattr(folder_module, "MAX_BATCH_BYTES", 3 * len(TEXT))
    for number in range(7):
        put(tmp_path, f"{number}.txt")
    source = FolderSource(spec_of(tmp_path))
    counts = []
    while outcomes := await source.collect(None, now=NOW, draw=0.0):
        counts.append(len(outcomes))
        for outcome in outcomes:
            source.settle(outcome, None, now=NOW)
    assert [3, 3, 1] == counts


async def test_source_missing_folder_is_a_failure_with_a_beginning(tmp_path: Path) -> None:
    """A folder that is not there is a failed source since the first time, until it is back."""
    inbox = tmp_path / "in"
    source = FolderSource(spec_of(inbox))
    (first,) = await source.collect(None, now=OLD, draw=0.0)
    (again,) = await source.collect(first.state, now=NOW, draw=0.0)
    assert (OutcomeKind.FAILED, OLD) == (again.kind, again.state.failing_since)
    inbox.mkdir()
    put(inbox, "page.txt")
    (good,) = await source.collect(again.state, now=NOW, draw=0.0)
    assert (OutcomeKind.OK, None) == (good.kind, good.state.failing_since)
    assert FetchState(location=str(inbox), last_ok_at=NOW, last_try_at=NOW) == good.state


@pytest.mark.timeout(30)
async def test_watch_wakes_for_changes_and_survives_a_new_folder(tmp_path: Path) -> None:
    """A look is due at the start, after a change, and in a folder that was removed and made again."""
    inbox = tmp_path / "in"
    ticks = watch(inbox, settle_s=0.05, rescan_s=30.0)

    async def until(name: str) -> None:
        async for _ in ticks:
            if (inbox / name).exists():
                return

    await anext(ticks)
    assert inbox.is_dir()
    waiting = asyncio.create_task(until("first.txt"))
    await asyncio.sleep(0)
    put(inbox, "first.txt")
    await asyncio.wait_for(waiting, 10)
    shutil.rmtree(inbox)
    inbox.mkdir()
    put(inbox, "second.txt")
    await asyncio.wait_for(until("second.txt"), 10)
    waiting = asyncio.create_task(until("third.txt"))
    await asyncio.sleep(0.5)  # until the looks that the second file caused are over, so that only an event wakes it
    put(inbox, "third.txt")
    await asyncio.wait_for(waiting, 10)
    await ticks.aclose()


@pytest.mark.timeout(30)
async def test_watch_looks_again_now_and_then(tmp_path: Path) -> None:
    """Without any change there is a look every so often."""
    ticks = watch(tmp_path, settle_s=0.02, rescan_s=0.05)
    for _ in range(3):
        await asyncio.wait_for(anext(ticks), 10)
    await ticks.aclose()
