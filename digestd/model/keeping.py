"""What became of a backup and of a restore. Floor 0."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Backup:
    """A copy of a history that was held against the history."""

    path: Path
    size: int  #: bytes
    rows: Mapping[str, int] = field(default_factory=dict)  #: by table, the same in both


@dataclass(frozen=True, slots=True)
class Restored:
    """A history that was put in place of another."""

    path: Path
    kept: Path | None  #: where the replaced one is; None: there was none
    held: int = 0  #: deliveries that wait for a person, because they may have been sent since the backup
    rows: Mapping[str, int] = field(default_factory=dict)  #: by table
