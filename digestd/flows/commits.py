"""Many small writes, few commits. Floor 4. Entry point: :class:`GroupCommit`.

A delivery must not go on before its state is on the disk, and a disk flush takes milliseconds. So the writes of all
connections that wait at one time share one transaction: a commit begins as soon as the one before it ended and somebody
waits, and takes all that wait with it. There is no tick, so nobody waits for more than the commit under way and its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, TypeVar

from digestd.ports import Store

T = TypeVar("T")

#: writes that one transaction takes at most, so that none of them waits long
MOST = 500


@dataclass(slots=True)
class _Waiting:
    write: Callable[[], Any]
    done: asyncio.Future[Any] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class GroupCommit:
    """One writer thread that commits for many waiting tasks of one event loop."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="store")
        self._waiting: list[_Waiting] = []
        self._wake = asyncio.Event()
        self._closing = False
        self._loop = asyncio.create_task(self._run())

    async def write(self, write: Callable[[], T]) -> T:
        """Run a write in a transaction and return its result once that is on the disk.

        A cancelled call leaves only when its write is decided, so that what it does next comes after it on the disk.

        Raises:
            Exception: what the write raised; nothing of it is kept, the others of the same transaction are.
        """
        if self._closing:
            raise RuntimeError("a write after the last commit")
        waiting = _Waiting(write)
        self._waiting.append(waiting)
        self._wake.set()
        try:
            return await asyncio.shield(waiting.done)
        except asyncio.CancelledError:
            while not waiting.done.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait({waiting.done})
            if not waiting.done.cancelled():
                waiting.done.exception()  # looked at, so that nobody complains that it never was
            raise

    async def close(self) -> None:
        """Commit what waits, and stop; a second call does nothing."""
        self._closing = True
        self._wake.set()
        await asyncio.wait({self._loop})
        self._thread.shutdown(wait=True)

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._closing:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                batch, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
                try:
                    results = await loop.run_in_executor(self._thread, self._commit, batch)
                except Exception as error:  # whatever keeps the commit from happening belongs to those who wait
                    for one in batch:
                        _fail(one, error)
                    continue
                for one, (result, failure) in zip(batch, results, strict=True):
                    if failure is not None:
                        _fail(one, failure)
                    elif not one.done.done():
                        one.done.set_result(result)

    def _commit(self, batch: list[_Waiting]) -> list[tuple[Any, Exception | None]]:
        results: list[tuple[Any, Exception | None]] = []
        with self._store.transaction():
            for one in batch:
                try:
                    with self._store.transaction():
                        results.append((one.write(), None))
                except Exception as error:  # one write's failure must not undo its neighbours
                    results.append((None, error))
        return results


def _fail(waiting: _Waiting, error: Exception) -> None:
    if not waiting.done.done():
        waiting.done.set_exception(error)
