"""Where files of a watched folder go once they were read, or could not be. Floor 3; `mark_done` and `quarantine`.

    incoming/done/2026-09/       where read files go, never over another file
    incoming/quarantine/         what could not be read, with NAME.why.txt beside it

Nothing is ever deleted. A crash between any two steps leaves the file where it was, or where it was going; reading it
again changes nothing in the history.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from digestd.errors import FetchError
from digestd.model.source import FileMark, ShelvedFile

DONE = "done"
QUARANTINE = "quarantine"
WHY_SUFFIX = ".why.txt"

_MAX_NAME = 255  #: bytes of one name, on every usual file system
_MAX_NUMBER = 10_000
#: The longest reason that is kept; a parser's message may quote the document.
_MAX_WHY = 2_000


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A complete file in the folder or in its quarantine, as it was when it was found."""

    folder: Path  #: the watched folder
    path: Path  #: where the file is
    size: int
    mtime_ns: int
    inode: tuple[int, int]  #: device and inode
    problem: str | None = None  #: why it is not read at all: "a symbolic link"

    @property
    def name(self) -> str:
        """Its name as text that can be stored and printed; bytes that are no UTF-8 are replaced."""
        return os.fsencode(self.path.name).decode("utf-8", "replace")

    @property
    def version(self) -> tuple[tuple[int, int], int, int]:
        """What changes when the file does: inode, size and time."""
        return self.inode, self.size, self.mtime_ns


def mark_done(file: FoundFile, *, mode: str = "move", now: datetime) -> Path:
    """Put a read file away and return where it is now.

    Args:
        file: in the folder or its quarantine; a reason beside it goes along.
        mode: "move" to done/YYYY-MM/, or "keep" it where it is; from quarantine it is always moved.
        now: UTC, gives the month.
    """
    if mode == "keep" and file.path.parent == file.folder:
        return file.path
    goal = file.folder / DONE / f"{now.astimezone(UTC):%Y-%m}"
    reason = _reason_path(file.path)
    moved = _move(file.path, goal)
    if file.path.parent.name == QUARANTINE and reason.is_file():
        _move(reason, goal, name=_reason_path(moved).name)
    return moved


def quarantine(file: FoundFile, why: str, *, now: datetime) -> Path:
    """Move a file that could not be read to quarantine/ and return where it is now.

    The reason is written before the file is moved, so that no file is ever there without one. A file that is there
    already stays, and the reason is added to the earlier ones.
    """
    goal = file.folder / QUARANTINE
    if file.path.parent == goal:
        _add_reason(_reason_path(file.path), why, now)
        return file.path
    make_folder(goal)
    place = _reserve(goal, os.fsencode(file.path.name))
    _add_reason(_reason_path(place), why, now)
    return _rename(file.path, place)


def shelved(folder: Path) -> Iterator[ShelvedFile]:
    """Yield the files that lie in a watched folder's done/ and quarantine/, without their reasons.

    Raises:
        FetchError: one of these folders is there and cannot be read.
    """
    months = sorted(_listed(folder / DONE), key=lambda entry: entry.name)
    places = [Path(entry.path) for entry in months if entry.is_dir(follow_symlinks=False)]
    for place in (*places, folder / QUARANTINE):
        for entry in _listed(place):
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # it went away between the two looks
            if stat.S_ISDIR(status.st_mode) or entry.name.endswith(WHY_SUFFIX):
                continue
            mark = FileMark(status.st_ino, status.st_size, status.st_mtime_ns)
            moved_at = datetime.fromtimestamp(status.st_ctime, UTC)
            yield ShelvedFile(place.name == QUARANTINE, printable(Path(entry.path)), mark, moved_at)


def hash_file(path: str) -> str | None:
    """Return the SHA-256 of a file that was put away; None if it cannot be read."""
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return None


def _listed(place: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(place) as entries:
            return list(entries)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise FetchError(f"the folder {printable(place)} cannot be read: {error.strerror}") from error


def _move(path: Path, goal: Path, *, name: str | None = None) -> Path:
    """Move a file into a folder under its name, or the next free numbered one, and return where it is."""
    make_folder(goal)
    return _rename(path, _reserve(goal, os.fsencode(name or path.name)))


def _rename(path: Path, place: Path) -> Path:
    """Move a file over the empty one that holds its place, and write both folders to disk."""
    try:
        path.rename(place)
    except OSError as error:
        with suppress(OSError):
            if place.stat().st_size == 0:
                place.unlink()  # our own empty place holder, nobody's file
        raise FetchError(f"{printable(path)} cannot be moved to {printable(place.parent)}: {error.strerror}") from error
    _sync_folder(place.parent)
    _sync_folder(path.parent)
    return place


def _reserve(goal: Path, name: bytes) -> Path:
    """Return a path in a folder that nobody had, held by an empty file, so that a move never overwrites anything."""
    stem, dot, suffix = name.partition(b".")
    room = _MAX_NAME - len(WHY_SUFFIX) - 8  # the reason's name and a number must fit behind it
    tail = (dot + suffix)[-40:] if dot else b""
    stem = stem if len(name) <= room else name[: room - len(tail)]
    tail = dot + suffix if len(name) <= room else tail
    for number in range(_MAX_NUMBER):
        candidate = goal / os.fsdecode(stem + (b"-%d" % number if number else b"") + tail)
        try:
            os.close(os.open(candidate, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        except FileExistsError:
            continue
        except OSError as error:
            raise FetchError(f"nothing can be moved to {printable(goal)}: {error.strerror}") from error
        return candidate
    raise FetchError(f"{printable(goal)} has {_MAX_NUMBER:,} files of this name")


def _reason_path(path: Path) -> Path:
    return path.with_name(path.name + WHY_SUFFIX)


def _add_reason(path: Path, why: str, now: datetime) -> None:
    """Add one line to a reason and write it to disk."""
    line = f"{now.astimezone(UTC):%Y-%m-%dT%H:%M:%SZ} {' '.join(why[:_MAX_WHY].split())}\n"
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(path, flags, 0o600), "ab") as stream:
            stream.write(line.encode("utf-8", "replace"))
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        raise FetchError(f"the reason {printable(path)} cannot be written: {error.strerror}") from error


def make_folder(path: Path) -> None:
    """Make a folder of ours; a link in its place would lead the files somewhere else."""
    for part in (path.parent, path):
        if part.is_symlink() and part.name in {DONE, QUARANTINE}:
            raise FetchError(f"{printable(part)} is a symbolic link; files are not moved through it")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FetchError(f"the folder {printable(path)} cannot be made: {error.strerror}") from error
    _sync_folder(path.parent)


def _sync_folder(path: Path) -> None:
    """Write a folder to disk, so that a rename outlives a power cut; not every file system can."""
    with suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


def printable(path: Path) -> str:
    """Return a path as text that can be stored and printed; bytes that are no UTF-8 are replaced."""
    return os.fsencode(path).decode("utf-8", "replace")
