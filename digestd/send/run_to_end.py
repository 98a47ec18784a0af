"""Steps on the disk that are not left half done. Floor 3; entry: ``run_to_end``."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


async def run_to_end(step: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a short step in a thread and return what it returned, even if the call is cancelled meanwhile.

    A thread cannot be stopped; to leave it alone would mean to say "unknown" of a file that is there a moment later.
    """
    task = asyncio.ensure_future(asyncio.to_thread(step, *args, **kwargs))
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError:
            continue
    return task.result()
