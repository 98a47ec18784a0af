"""A process that forks children which run commands of digestd and may kill themselves at a named point.

Forking from a process that has all modules loaded makes a child cheap; each is a process of its own all the same. It is told
on standard input, one JSON object a line, what to run, and answers with the child's number and, at its end, its status.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from importlib import import_module
from typing import Any

import digestd.faults
from digestd.cli import COMMANDS, run

#: what commands import when they run
_MODULES = ("flows.deliver", "flows.digest", "flows.publish", "flows.collect", "send.smtp", "store", "config", "wiring")


def main() -> None:
    """Serve requests until standard input ends."""
    for module, _ in COMMANDS.values():
        import_module(f"digestd.cli.{module}")
    for name in _MODULES:
        import_module(f"digestd.{name}")
    for line in sys.stdin:
        request = json.loads(line)
        pid = os.fork()
        if pid == 0:
            os._exit(_child(request))
        _answer(pid)
        _, status = os.waitpid(pid, 0)
        _answer(os.waitstatus_to_exitcode(status))


def _answer(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def _child(request: dict[str, Any]) -> int:
    """Run commands one after the other, return the first status that is not 0; kill this process at a point, if told."""
    log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    left = request["number"]

    def strike(name: str) -> None:
        nonlocal left
        if name == request["point"]:
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    digestd.faults.HOOK = strike
    status = 0
    for command in request["commands"]:
        try:
            status = run(command)
        except BaseException as error:  # it would run on in the parent's code
            sys.stdout.write(f"{type(error).__name__}: {error}\n")
            status = 99
        sys.stdout.flush()
        if status:
            break
    return status


if __name__ == "__main__":
    main()
