"""The command line in this process, with a history and settings of its own."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from digestd.cli import run


@dataclass(frozen=True)
class Answer:
    """What one call of the command line gave."""

    status: int
    out: str
    err: str

    @property
    def objects(self) -> list[dict[str, Any]]:
        """The JSON objects printed, one a line."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def one(self) -> Any:
        """The one JSON document printed."""
        return json.loads(self.out)


class Desk:
    """Where the command line is called: a folder with settings and a history."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self._capsys = capsys
        self.configure("")

    def configure(self, text: str) -> None:
        """Write the settings; the history is always the folder's own."""
        (self.folder / "digestd.toml").write_text(f'{text}\n[store]\npath = "history.sqlite"\n', encoding="utf-8")

    def put(self, name: str, body: str | bytes) -> Path:
        """Write a file into the folder."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body.encode() if isinstance(body, str) else body)
        return path

    def __call__(self, *args: str | Path) -> Answer:
        """Call digestd and return what it gave; a traceback is an error of the test."""
        self._capsys.readouterr()
        status = run([*map(str, args), "--config", str(self.folder / "digestd.toml")])
        out, err = self._capsys.readouterr()
        assert "Traceback" not in err, err
        return Answer(status, out, err)


def make_desk(folder: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Desk]:
    """Yield a desk; a test file makes its fixture of this."""
    folder.mkdir(exist_ok=True)
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield Desk(folder, capsys)
    root.handlers[:] = handlers  # a command sends all log lines to a standard error that is gone after the test
    root.setLevel(level)
