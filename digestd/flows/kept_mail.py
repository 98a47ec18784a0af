"""Mails in folders and files: what a sink kept, what came back. Floor 4.

Entry points: :func:`count_message_ids`, :func:`waiting_mails`, :func:`mark_seen`.
"""

from __future__ import annotations

import os
import re
import stat
from collections import Counter
from collections.abc import Iterator
from email import message_from_bytes
from pathlib import Path
from typing import BinaryIO

from digestd.errors import FetchError

#: bytes of a mail in which its Message-ID must stand
_HEAD = 256 * 1024
_ID = re.compile(r"<[^<>\s]+>")


def count_message_ids(path: Path) -> tuple[Counter[str], int]:
    """Return how often each Message-ID was kept, and how many mails have none.

    Args:
        path: a Maildir (``new`` and ``cur``), a folder with one mail a file, an mbox file, or a file with one mail.

    Raises:
        FetchError: it is not there, or cannot be read.
    """
    found: Counter[str] = Counter()
    unnamed = 0
    try:
        heads = _heads(path) if path.is_file() else map(_read, _files(path))
        for head in heads:
            named = _ID.search(str(message_from_bytes(head).get("Message-ID", "")))
            if named is None:
                unnamed += 1
            else:
                found[named[0]] += 1
    except OSError as error:
        raise FetchError(f"mail {path}: cannot be read: {error.strerror or error}") from error
    return found, unnamed


def _files(path: Path) -> Iterator[Path]:
    """Yield the files of a Maildir's ``new`` and ``cur``, or of a folder and all below it."""
    if not path.is_dir():
        raise FetchError(f"mail {path}: expected a Maildir, a folder of mails or a file, found none")
    folders = [path / name for name in ("new", "cur") if (path / name).is_dir()] or [path]
    for folder in folders:
        yield from (file for file in sorted(folder.rglob("*")) if file.is_file() and not file.name.startswith("."))


def _read(path: Path, most: int = _HEAD) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(f"{path.name} is no regular file")
        return file.read(most)


def _heads(path: Path) -> Iterator[bytes]:
    """Yield the headers of the mails of an mbox file, or of the one mail that a file holds."""
    with path.open("rb") as file:
        first = file.readline()
        if not first.startswith(b"From "):
            yield first + _head(file)
            return
        yield _head(file)
        empty = False
        for line in file:
            if empty and line.startswith(b"From "):
                yield _head(file)
            empty = line in (b"\n", b"\r\n")


def _head(file: BinaryIO) -> bytes:
    """Return the lines up to the empty one that ends a header."""
    lines: list[bytes] = []
    size = 0
    while (line := file.readline(_HEAD)) not in (b"", b"\n", b"\r\n"):
        size += len(line)
        if size <= _HEAD:
            lines.append(line)
    return b"".join(lines)


def waiting_mails(maildir: Path, most: int) -> Iterator[tuple[Path, bytes]]:
    """Yield the mails of a Maildir that nobody has seen, with their first ``most`` bytes; what is no plain file is passed over.

    Raises:
        FetchError: it is no Maildir.
    """
    if not (maildir / "new").is_dir():
        raise FetchError(f"mail {maildir}: expected a Maildir with a folder new, found none")
    for name in ("new", "cur"):
        folder = maildir / name
        for file in sorted(folder.iterdir()) if folder.is_dir() else ():
            if file.name.startswith(".") or "S" in file.name.rpartition(":2,")[2] * (":2," in file.name):
                continue
            try:
                body = _read(file, most)
            except OSError:
                continue
            yield file, body


def mark_seen(file: Path) -> None:
    """Move a mail of a Maildir to ``cur``, marked as seen, so that the next look passes it over."""
    base, _, flags = file.name.partition(":2,")
    cur = file.parent.parent / "cur"
    cur.mkdir(mode=0o700, exist_ok=True)
    file.replace(cur / f"{base}:2,{''.join(sorted({*flags, *'S'}))}")
