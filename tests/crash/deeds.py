"""What a process does that kills itself at a named point: ``python -m tests.crash.deeds POINT NUMBER DEED FOLDER [VALUE]``."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

import digestd.faults
from digestd.store import open_store
from digestd.store.backup import back_up
from tests.followers import Clock, at, make_kitchen
from tests.webclient import Browser, make_services

#: when readers click
CLICK = at("2026-09-28T06:00")


def click(folder: Path, path: str) -> int:
    """Press the button of a page and print what came back."""
    store = open_store(folder / "history.sqlite")
    with Browser(make_services(store, make_kitchen(store), Clock(CLICK))) as browser:
        answer = browser.post(path)
    store.close()
    sys.stdout.write(f"{answer.status} {answer.heading}\n")
    return 0


def start(folder: Path, _: str) -> int:
    """Open a history, which brings it to this release's tables."""
    open_store(folder / "history.sqlite").close()
    return 0


def copy(folder: Path, _: str) -> int:
    """Make a backup."""
    back_up(folder / "history.sqlite", folder / "copy.sqlite")
    return 0


DEEDS: Mapping[str, Callable[[Path, str], int]] = {"click": click, "start": start, "copy": copy}


def main() -> int:
    """Do it, and end at the point when it is reached that often."""
    point, number, deed, folder, *value = sys.argv[1:]
    left = int(number)

    def strike(name: str) -> None:
        nonlocal left
        left -= name == point
        if name == point and left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    digestd.faults.HOOK = strike
    return DEEDS[deed](Path(folder), "".join(value))


if __name__ == "__main__":
    sys.exit(main())
