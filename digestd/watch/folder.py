"""Documents from a watched folder. Floor 3; entry points are `FolderSource` and `watch`; `scan` and `read` for one look.

A file is read when it is complete. No name in the folder makes us open anything but a regular file in it.
"""

from __future__ import annotations

import asyncio
import errno
import os
import stat
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path

from watchfiles import awatch

from digestd.errors import FetchError
from digestd.model.snapshot import Document
from digestd.model.source import FailKind, FetchOutcome, FetchState, FileMark, OutcomeKind, SourceSpec
from digestd.polling import current_state
from digestd.watch.decompress import SUFFIXES, DamagedError, TooBigError, sniff, unpack
from digestd.watch.shelf import QUARANTINE, WHY_SUFFIX, FoundFile, make_folder, mark_done, printable, quarantine

#: What programs call a file that they have not finished.
_UNFINISHED = (".tmp", ".temp", ".part", ".partial", ".crdownload", ".filepart", ".download", ".swp", "~")
#: Bodies handed out at once, so that a full folder does not fill the memory.
MAX_BATCH_BYTES = 32_000_000


class NotReadyError(FetchError):
    """A file changed or vanished while it was read; it is left for the next scan."""


@dataclass(frozen=True, slots=True)
class Look:
    """What an earlier scan saw of an inode."""

    size: int
    mtime_ns: int
    since: datetime  #: since when size and time stand still
    unfinished: bool = False  #: whether it had the name of an unfinished file
    renamed: bool = False  #: whether it had one before, and has not changed since it got its own


Looks = Mapping[tuple[int, int], Look]


def is_complete(size: int, mtime_ns: int, before: Look | None, *, now: datetime, settle_s: float) -> bool:
    """Return whether a file is complete.

    It is when it was renamed from an unfinished name and is otherwise as it was; when its time is `settle_s` ago; or,
    with a time in the future, when two scans so far apart saw the same size and time.
    """
    age_s = now.timestamp() - mtime_ns / 1e9
    if age_s >= settle_s:
        return True
    # an inode alone is no file: that of a removed ".part" is given to the next file that is begun
    if before is None or (before.size, before.mtime_ns) != (size, mtime_ns):
        return False
    return before.unfinished or before.renamed or (age_s < 0 and (now - before.since).total_seconds() >= settle_s)


def scan(
    folder: Path, *, now: datetime, settle_s: float = 5.0, looks: Looks | None = None
) -> tuple[tuple[FoundFile, ...], Looks]:
    """Return the complete files, oldest first, and what to pass as ``looks`` next time.

    Args:
        folder: watched folder; sub-folders, hidden and unfinished names are left alone.
        now: UTC.
        settle_s: how long size and time must stand still.
        looks: what the scan before returned; None for the first or only one.

    Raises:
        FetchError: the folder is missing or may not be read.
    """
    found: list[FoundFile] = []
    seen: dict[tuple[int, int], Look] = {}
    for entry, status in _entries(folder):
        key = (status.st_dev, status.st_ino)
        before = (looks or {}).get(key)
        same = before is not None and (before.size, before.mtime_ns) == (status.st_size, status.st_mtime_ns)
        since = before.since if before is not None and same else now
        unfinished = _is_unfinished(entry.name)
        renamed = before is not None and same and (before.unfinished or before.renamed)
        seen[key] = Look(status.st_size, status.st_mtime_ns, since, unfinished, renamed and not unfinished)
        if unfinished or entry.name.endswith(WHY_SUFFIX):
            continue
        problem = _problem(status.st_mode)
        if problem or is_complete(status.st_size, status.st_mtime_ns, before, now=now, settle_s=settle_s):
            found.append(_found(folder, Path(entry.path), status))
    return tuple(sorted(found, key=lambda file: (file.mtime_ns, file.path))), seen


def read(file: FoundFile, *, max_bytes: int, now: datetime) -> Document:
    """Return the file as a document, unpacked if it is gzip or zstd.

    Args, and what is raised, are those of :func:`read_bytes` and :func:`unpacked`.
    """
    return unpacked(file, read_bytes(file, max_bytes=max_bytes), max_bytes=max_bytes, now=now)


def read_bytes(file: FoundFile, *, max_bytes: int) -> bytes:
    """Return the bytes of exactly the file that was found.

    Args:
        file: as a scan found it.
        max_bytes: cap on the file.

    Raises:
        NotReadyError: it changed or vanished since; try again at the next scan.
        TooBigError: it is larger than the cap.
        FetchError: it is no regular file, or may not be read.
    """
    if file.problem:
        raise FetchError(f"{file.name} is not read: it is {file.problem}")
    # NOFOLLOW: a link put in its place is not followed; NONBLOCK: a pipe put in its place does not hang us
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        handle = os.open(file.path, flags)
    except OSError as error:
        if error.errno in {errno.ENOENT, errno.ELOOP, errno.ENXIO}:
            raise NotReadyError(f"{file.name} is not there any more") from error
        raise FetchError(f"{file.name} cannot be read: {error.strerror}") from error
    with os.fdopen(handle, "rb") as stream:
        if not _is_same(file, os.fstat(handle)):
            raise NotReadyError(f"{file.name} changed since it was found")
        if file.size > max_bytes:
            raise TooBigError(f"{file.name} has {file.size:,} bytes, more than {max_bytes:,}")
        body = stream.read(max_bytes + 1)
        if not _is_same(file, os.fstat(handle)) or len(body) != file.size:
            raise NotReadyError(f"{file.name} changed while it was read")
    return body


def unpacked(file: FoundFile, body: bytes, *, max_bytes: int, now: datetime) -> Document:
    """Return a file's bytes as a document, unpacked if they are gzip or zstd.

    Args:
        file: as a scan found it.
        body: its bytes.
        max_bytes: cap on what they unpack to.
        now: UTC.

    Raises:
        TooBigError: it is larger than the cap.
        DamagedError: it is packed and damaged, or named as packed and is not.
        FetchError: it is empty.
    """
    name = file.name
    suffix = next((end for end in SUFFIXES if name.lower().endswith(end)), None)
    packed = sniff(body)
    if suffix and packed != SUFFIXES[suffix]:
        raise DamagedError(f"{name} is named {suffix} and is not {SUFFIXES[suffix]} data")
    if packed:
        body = unpack(body, packed, limit=max_bytes)
    if not body:
        raise FetchError(f"{name} is empty")
    plain = name[: -len(suffix)] if suffix else name
    return Document(body=body, origin=printable(file.path), fetched_at=now, name=plain)


def quarantined(folder: Path) -> tuple[FoundFile, ...]:
    """Return the files in quarantine, oldest first; reasons are not files of their own."""
    place = folder / QUARANTINE
    if not place.is_dir():
        return ()
    files = [
        _found(folder, Path(entry.path), status)
        for entry, status in _entries(place)
        if not entry.name.endswith(WHY_SUFFIX)
    ]
    return tuple(sorted(files, key=lambda file: (file.mtime_ns, file.path)))


async def watch(
    folder: Path, *, settle_s: float = 5.0, rescan_s: float = 60.0, force_polling: bool | None = None
) -> AsyncGenerator[None, None]:
    """Yield whenever the folder is worth a look: at the start, after each change, when a change has settled, and now and then.

    A folder that was removed and made again sends no more events, ever: it is watched anew. A missing one is made.

    Args:
        folder: watched folder.
        settle_s: how long after the last change a file may have become complete.
        rescan_s: longest time between two looks.
        force_polling: for file systems without events (NFS); None: found out.

    Raises:
        FetchError: the folder is missing and cannot be made.
    """
    tick_s = max(0.01, min(settle_s or rescan_s, rescan_s))
    while True:
        make_folder(folder)
        yield None
        changes = _changes(folder, tick_s=tick_s, force_polling=force_polling)
        async with aclosing(changes):
            async for worth_a_look in _paced(changes, settle_s=settle_s, rescan_s=rescan_s):
                if worth_a_look:
                    yield None
        await asyncio.sleep(tick_s)


class FolderSource:
    """A watched folder as a source.

    Args:
        spec: the source; its location is the folder.
    """

    in_batches = True

    def __init__(self, spec: SourceSpec) -> None:
        self.spec = spec
        self.waiting = 0
        self._looks: Looks = {}
        self._open: dict[str, FoundFile] = {}  # by the origin of the outcome, until it is settled
        self._kept: set[tuple[tuple[int, int], int, int]] = set()

    async def collect(self, state: FetchState | None, *, now: datetime, draw: float) -> tuple[FetchOutcome, ...]:  # noqa: ARG002  # a folder needs no jitter
        """Return one outcome a complete file, oldest first; FAILED ones are to be settled with a problem too.

        A full folder comes in batches: once these are settled, ask again until nothing comes.
        """
        kept = replace(current_state(self.spec, state), last_try_at=now)
        folder = Path(self.spec.location)
        try:
            files, self._looks = scan(folder, now=now, settle_s=self.spec.settle_s, looks=self._looks)
        except FetchError as error:
            failing = replace(kept, failing_since=kept.failing_since or now, last_error=str(error))
            why = str(error)
            return (FetchOutcome(OutcomeKind.FAILED, failing, str(folder), fail=FailKind.FILE, why=why),)
        complete = {file.inode for file in files}
        self.waiting = sum(not look.unfinished and inode not in complete for inode, look in self._looks.items())
        good = replace(kept, fail_count=0, failing_since=None, last_error=None, last_ok_at=now)
        self._kept &= {file.version for file in files}
        outcomes: list[FetchOutcome] = []
        room = MAX_BATCH_BYTES
        for file in files:
            if file.version in self._kept:
                continue
            if room <= 0:
                break
            origin = printable(file.path)
            with suppress(NotReadyError):
                outcome = self._outcome(file, origin, good, now)
                outcomes.append(outcome)
                self._open[origin] = file
                room -= len(outcome.document.body) if outcome.document else 0
        return tuple(outcomes)

    async def walk(
        self,
        first: FetchOutcome,  # noqa: ARG002  # the contract's signature
        *,
        now: datetime,  # noqa: ARG002
        reaches_known: Callable[[FetchOutcome], Awaitable[bool]],  # noqa: ARG002
    ) -> AsyncGenerator[FetchOutcome, None]:
        """Yield nothing: the pages of a folder are files of their own."""
        for outcome in tuple[FetchOutcome, ...]():
            yield outcome

    def retry(self, *, now: datetime) -> Iterator[FetchOutcome]:
        """Yield one outcome a file in quarantine, oldest first."""
        state = replace(current_state(self.spec, None), last_try_at=now)
        for file in quarantined(Path(self.spec.location)):
            origin = printable(file.path)
            with suppress(NotReadyError):
                self._open[origin] = file
                yield self._outcome(file, origin, state, now)

    def settle(self, outcome: FetchOutcome, problem: str | None, *, now: datetime) -> None:
        """Put the file of an outcome away: done, or in quarantine if there was a problem."""
        file = self._open.pop(outcome.url, None)
        if file is None:
            return
        if problem is not None:
            quarantine(file, problem, now=now)
            return
        if mark_done(file, mode=self.spec.done, now=now) == file.path:
            self._kept.add(file.version)

    def _outcome(self, file: FoundFile, origin: str, state: FetchState, now: datetime) -> FetchOutcome:
        mark = FileMark(file.inode[1], file.size, file.mtime_ns, file.name)
        try:
            body = read_bytes(file, max_bytes=self.spec.max_bytes)
            mark = replace(mark, sha256=sha256(body).hexdigest())
            document = unpacked(file, body, max_bytes=self.spec.max_bytes, now=now)
        except NotReadyError:
            raise
        except FetchError as error:
            return FetchOutcome(OutcomeKind.FAILED, state, origin, fail=FailKind.FILE, why=str(error), file=mark)
        return FetchOutcome(OutcomeKind.OK, state, origin, document=document, file=mark)


async def _changes(folder: Path, *, tick_s: float, force_polling: bool | None) -> AsyncGenerator[bool, None]:
    """Yield True for changes and False for a tick without any; end when the folder is another one than at the start."""
    with suppress(FileNotFoundError), _standing(folder) as stands:
        events = awatch(
            folder,
            watch_filter=None,
            debounce=200,
            rust_timeout=int(tick_s * 1000),
            yield_on_timeout=True,
            recursive=False,
            force_polling=force_polling,
        )
        async with aclosing(events):
            async for changes in events:
                if not stands():
                    return
                yield bool(changes)


@contextmanager
def _standing(folder: Path) -> Iterator[Callable[[], bool]]:
    """Give a question: does the folder that stands here now still stand here?

    It is held open meanwhile, because a file system gives the inode of a removed folder to the next one that is made.
    """
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    def stands() -> bool:
        try:
            return os.path.samestat(os.fstat(handle), folder.stat())
        except OSError:
            return False

    try:
        yield stands
    finally:
        os.close(handle)


async def _paced(changes: AsyncIterator[bool], *, settle_s: float, rescan_s: float) -> AsyncIterator[bool]:
    """Yield for each tick whether it is worth a look."""
    loop = asyncio.get_running_loop()
    looked_at, settled_at = loop.time(), None
    async for changed in changes:
        at = loop.time()
        settled = settled_at is not None and at >= settled_at
        if changed:
            settled_at = at + settle_s
        elif settled:
            settled_at = None
        worth = changed or settled or at - looked_at >= rescan_s
        looked_at = at if worth else looked_at
        yield worth


def _entries(folder: Path) -> Iterator[tuple[os.DirEntry[str], os.stat_result]]:
    """Yield what stands in a folder with its own status, links not followed; sub-folders and hidden names left out."""
    try:
        with os.scandir(folder) as entries:
            listed = [entry for entry in entries if not entry.name.startswith(".")]
    except OSError as error:
        raise FetchError(f"the folder {printable(folder)} cannot be read: {error.strerror}") from error
    for entry in listed:
        try:
            status = os.lstat(entry.path)
        except OSError:
            continue  # it went away between the two looks
        if not stat.S_ISDIR(status.st_mode):
            yield entry, status


def _found(folder: Path, path: Path, status: os.stat_result) -> FoundFile:
    inode = (status.st_dev, status.st_ino)
    return FoundFile(folder, path, status.st_size, status.st_mtime_ns, inode, _problem(status.st_mode))


def _problem(mode: int) -> str | None:
    """Return what a file is if it is no regular one."""
    if stat.S_ISREG(mode):
        return None
    return "a symbolic link" if stat.S_ISLNK(mode) else "no regular file but a pipe, socket or device"


def _is_unfinished(name: str) -> bool:
    return name.lower().endswith(_UNFINISHED)


def _is_same(file: FoundFile, status: os.stat_result) -> bool:
    there = (status.st_dev, status.st_ino), status.st_size, status.st_mtime_ns
    return stat.S_ISREG(status.st_mode) and there == file.version
