"""One writer at a time, over threads and processes. Floor 3. Entry point: :class:`WriterLock`.

SQLite before 3.51.3 (3.44.6, 3.50.7) can lose or damage commits when one connection resets the write-ahead log while
another writes (sqlite.org/changes.html, "WAL-reset"), and the SQLite that comes with a Python is often older. A checkpoint
runs at the end of a commit, so it is enough that nobody else writes from a transaction's begin to its commit.
"""

from __future__ import annotations

import fcntl
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from digestd.errors import StoreBusyError, StoreUnusableError


@contextmanager
def sole_process(database: Path, part: str, *, what: str) -> Iterator[None]:
    """Be the only process that does a part of the work on a database.

    Args:
        database: its file; the lock stands beside it.
        part: of the work, a name for the lock's file.
        what: said of the process that has it: "another process sends mail".

    Raises:
        StoreBusyError: another process does it.
        StoreUnusableError: the lock's file cannot be made.
    """
    path = f"{database}-{part}"
    try:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreUnusableError(f"history {database}: {path} cannot be made: {error.strerror}") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise StoreBusyError(f"history {database}: {what}") from None
    else:
        yield
    finally:
        os.close(handle)


#: seconds between two looks at a lock that another process holds
_LOOK_S = 0.002


class WriterLock:
    """A lock on a file beside the database; the operating system frees it when its process dies."""

    def __init__(self, database: Path, *, timeout_s: float) -> None:
        self._database, self._timeout_s = database, timeout_s
        self._threads = threading.Lock()
        self._handle: int | None = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock.

        Raises:
            StoreBusyError: another writer held it for longer than the timeout.
            StoreUnusableError: the lock's file cannot be made.
        """
        deadline = time.monotonic() + self._timeout_s
        if not self._threads.acquire(timeout=max(self._timeout_s, 0)):
            raise self._busy()
        try:
            self._lock_file(deadline)
            try:
                yield
            finally:
                if self._handle is not None:
                    fcntl.flock(self._handle, fcntl.LOCK_UN)
        finally:
            self._threads.release()

    def close(self) -> None:
        """Give back the file; a second call does nothing."""
        with self._threads:
            if self._handle is not None:
                os.close(self._handle)
                self._handle = None

    def _lock_file(self, deadline: float) -> None:
        if self._handle is None:
            path = f"{self._database}-writer"
            try:
                self._handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            except OSError as error:
                raise StoreUnusableError(
                    f"history {self._database}: {path} cannot be made: {error.strerror}"
                ) from error
        while True:
            try:
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise self._busy() from None
                time.sleep(_LOOK_S)
            else:
                return

    def _busy(self) -> StoreBusyError:
        return StoreBusyError(f"history {self._database}: another writer holds it for more than {self._timeout_s:g} s")
