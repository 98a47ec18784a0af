"""Ways in for documents. Floor 3; `SOURCES` names them; all keep the contract of `ports.Source`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from digestd.model.source import SourceSpec
from digestd.ports import Source

if TYPE_CHECKING:
    from digestd.watch.client import WebClient


# The adapters are imported when a source is opened: a command that reads one file needs no HTTP client in memory.


def _folder(spec: SourceSpec, client: WebClient | None) -> Source:  # noqa: ARG001  # all rows have one signature
    from digestd.watch.folder import FolderSource

    return FolderSource(spec)


def _http(spec: SourceSpec, client: WebClient | None) -> Source:
    from digestd.watch.http import HttpSource

    assert client is not None
    return HttpSource(spec, client)


#: Kind of a source to what opens it.
SOURCES: Mapping[str, Callable[[SourceSpec, WebClient | None], Source]] = {"folder": _folder, "http": _http}
