"""Files named on the command line. Floor 5."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

#: names of files that are still being written, or that say why another was not read
_NOT_READ = (".tmp", ".part", ".partial", ".swp", ".crdownload", ".why.txt")


def expand(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield the files themselves and, of a folder, its files by name; sub-folders and unfinished files are left alone."""
    for path in paths:
        if str(path) != "-" and path.is_dir():
            yield from sorted(file for file in path.iterdir() if file.is_file() and _is_readable(file.name))
        else:
            yield path


def _is_readable(name: str) -> bool:
    return not name.startswith(".") and not name.lower().endswith(_NOT_READ)
