"""A file that a person named, or standard input, as a document. Floor 3. Entry point: :func:`read_named`.

Unlike a watched folder, a name given by hand may be a link and need not stand still.
"""

from __future__ import annotations

import stat
import sys
from datetime import datetime
from pathlib import Path

from digestd.errors import FetchError
from digestd.model.snapshot import Document
from digestd.watch.decompress import SUFFIXES, sniff, unpack


def read_named(path: Path, *, max_bytes: int, now: datetime) -> Document:
    """Return a file as a document, unpacked if it is gzip or zstd; the path "-" is standard input.

    Raises:
        FetchError: it is not there, may not be read, is no regular file, is empty, or is larger than ``max_bytes``.
    """
    if str(path) == "-":
        body, name = sys.stdin.buffer.read(max_bytes + 1), "standard input"
    else:
        body, name = _read(path, max_bytes), path.name
    if len(body) > max_bytes:
        raise FetchError(f"{path}: expected at most {max_bytes:,} bytes, found more")
    coding = sniff(body)
    if coding is not None:
        body = unpack(body, coding, limit=max_bytes)
        name = name[: -len(Path(name).suffix)] if Path(name).suffix.lower() in SUFFIXES else name
    if not body.strip():
        raise FetchError(f"{path}: expected a document, found an empty file")
    return Document(body=body, origin=str(path), fetched_at=now, name=name)


def _read(path: Path, max_bytes: int) -> bytes:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            kind = "a folder" if stat.S_ISDIR(status.st_mode) else "a pipe, socket or device"
            raise FetchError(f"{path}: expected a file, found {kind}")
        with path.open("rb") as stream:
            return stream.read(max_bytes + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise FetchError(f"{path}: cannot be read: {reason}") from error
