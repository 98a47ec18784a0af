"""What the work at hand is about, for its log lines. Floor 0. Entry points: :func:`about`, :func:`named`.

A line that a library or a lower floor writes does not know for which source or subscription it works; who began the work
does. Tasks and ``asyncio.to_thread`` carry it along, a thread pool of one's own wants ``contextvars.copy_context``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

_NAMED: ContextVar[Mapping[str, str]] = ContextVar("log_context", default={})  # noqa: B039 # never changed, only replaced


@contextmanager
def about(**names: str) -> Iterator[None]:
    """Have all log lines inside carry these names: run, source, topic, subscription (its public id, never an address)."""
    token = _NAMED.set({**_NAMED.get(), **names})
    try:
        yield
    finally:
        _NAMED.reset(token)


def named() -> Mapping[str, str]:
    """Return the names that log lines carry here."""
    return _NAMED.get()
