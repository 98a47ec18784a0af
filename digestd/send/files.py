"""Published files, each replaced whole or not at all. Floor 3. Entry points: ``write_files``, ``sweep_leftovers``.

A file is written beside its target under a name that no web server hands out, brought to the disk, and moved over the
target; the folder is then brought to the disk too. A reader sees the old bytes or the new ones, whatever dies when. What is
published can always be made again from the history, so nothing here is the only copy of anything.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path, PurePosixPath

from digestd.errors import ChannelError
from digestd.faults import crash_point

_PREFIX = ".digestd-"
_SUFFIX = ".new"


def write_files(folder: Path, files: Mapping[str, bytes], *, mode: int = 0o644) -> tuple[str, ...]:
    """Bring a folder up to date and return the names of the files that were written, in the order given.

    Files that hold these bytes already are not touched, so that their time of change stays true. An error stops the work
    where it is: files before it are new, the file itself and all after it are as they were. Other files are left alone.

    Args:
        folder: is made if it is not there.
        files: bytes by name; a name is a relative path with ``/`` ("archive/1.rss"), folders on it are made. Give
            documents before those that link to them, for they are replaced one after the other.
        mode: permission bits of written files; 0o600 for those of one reader.

    Raises:
        ChannelError: a name leads out of the folder, or the disk refused (full, read-only, no permission).
    """
    written: list[str] = []
    touched: dict[Path, None] = {}
    try:
        for name, body in files.items():
            target = folder / _inside(name)
            touched.update(dict.fromkeys(_make_folders(target.parent)))
            if not _holds(target, body, mode):
                _replace(target, body, mode)
                touched[target.parent] = None
                written.append(name)
        for changed in touched:
            _sync_folder(changed)
    except OSError as error:
        raise ChannelError(f"publishing to {folder}: {error.strerror or error}") from error
    return tuple(written)


def sweep_leftovers(folder: Path, *, before: datetime) -> int:
    """Remove half-written files that a killed process left, in the folder and below, and return how many.

    Args:
        folder: need not be there.
        before: files changed later may belong to a process that is still at work, and stay.
    """
    count = 0
    for leftover in folder.rglob(f"{_PREFIX}*{_SUFFIX}"):
        with suppress(OSError):  # its owner finished or another sweep came first
            if leftover.lstat().st_mtime < before.timestamp():
                leftover.unlink()
                count += 1
    return count


def _inside(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if not path.parts or path.is_absolute() or ".." in path.parts or "\0" in name:
        raise ChannelError(f"publishing: expected a relative file name, found '{name}'")
    return path


def _make_folders(folder: Path) -> list[Path]:
    """Make the folder and those above it; return the folders that got a new entry."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(exist_ok=True)
    return [path.parent for path in reversed(missing)]


def _holds(target: Path, body: bytes, mode: int) -> bool:
    """Return whether the target is a plain file with these bytes that is open to nobody whom ``mode`` shuts out.

    A link is no plain file: it is replaced, not followed.
    """
    try:
        found = target.lstat()
    except FileNotFoundError:
        return False
    private = not stat.S_IMODE(found.st_mode) & ~mode
    return stat.S_ISREG(found.st_mode) and private and found.st_size == len(body) and target.read_bytes() == body


def _replace(target: Path, body: bytes, mode: int) -> None:
    # In the same folder: a move between file systems would be a copy, and a copy can be seen half done.
    handle, name = tempfile.mkstemp(prefix=_PREFIX, suffix=_SUFFIX, dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(body)
            crash_point("publish.written")
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        crash_point("publish.synced")
        Path(name).replace(target)
        crash_point("publish.moved")
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def _sync_folder(folder: Path) -> None:
    """Bring the folder's list of names to the disk, without which a power cut can undo the move."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
