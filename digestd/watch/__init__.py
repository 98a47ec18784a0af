"""Ways in for documents. Floor 3; `SOURCES` names them.

Every source is an object with

    async collect(state, *, now, draw) -> tuple[FetchOutcome, ...]   ask once; never raises for what the world does
    settle(outcome, problem, *, now) -> None                         say what came of it: None, or why it failed

The caller stores `outcome.state` only after the document was recorded (`polling.reject_document` otherwise).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from digestd.model.source import FetchOutcome, FetchState, SourceSpec

if TYPE_CHECKING:
    from digestd.watch.client import WebClient


class Collector(Protocol):
    """A source that can be asked."""

    spec: SourceSpec
    name: str

    async def collect(self, state: FetchState | None, *, now: datetime, draw: float) -> tuple[FetchOutcome, ...]:
        """Ask once and return what came of it, oldest first; empty if there is nothing to read."""

    def settle(self, outcome: FetchOutcome, problem: str | None, *, now: datetime) -> None:
        """Take note that the outcome's document was recorded (problem None) or why it was not; a second call does nothing.

        Raises:
            FetchError: a file could not be put away; it stays and will come again, which changes nothing.
        """


# The adapters are imported when a source is opened: a command that reads one file needs no HTTP client in memory.


def _folder(spec: SourceSpec, client: WebClient) -> Collector:  # noqa: ARG001  # all rows have one signature
    from digestd.watch.folder import FolderSource

    return FolderSource(spec)


def _http(spec: SourceSpec, client: WebClient) -> Collector:
    from digestd.watch.http import HttpSource

    return HttpSource(spec, client)


#: Kind of a source to what opens it.
SOURCES: Mapping[str, Callable[[SourceSpec, WebClient], Collector]] = {"folder": _folder, "http": _http}
