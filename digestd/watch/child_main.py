"""What runs in the child that reads documents. Floor 3. Entry point: :func:`main`, by ``python -m digestd.watch.child_main``.

The child has pipes to its parent and nothing else: it writes no file, opens no connection, starts no process, and the
kernel ends it when a document takes too much time or memory. Requests come on standard input and answers go to standard
output, each a length of eight bytes and a pickle; ``digestd.watch.child`` is the other end.
"""

from __future__ import annotations

import io
import math
import os
import pickle
import resource
import sys
import traceback
from collections.abc import Callable
from enum import Enum
from typing import IO, Any

from digestd.errors import ParseError
from digestd.model.snapshot import Document, Page
from digestd.model.topic import Vocabulary

#: what libraries must not do with a stranger's document in hand (docs.python.org/3/library/audit_events.html)
_FORBIDDEN = (
    "socket.", "subprocess.Popen", "os.exec", "os.fork", "os.posix_spawn", "os.spawn", "os.system", "os.remove",
    "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.kill", "urllib.Request",
)  # fmt: skip

#: files that may be open at a time: the pipes, and a module that is imported late
_FILES = 32


def main() -> None:
    """Answer requests until the parent closes the pipe."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):  # what a library prints must not end up in an answer
        os.dup2(nothing, number)
    _shut_in()
    vocabulary, rules = Vocabulary(), _Rules()
    put(answers, ("ready",))
    while (request := take(requests)) is not None:
        match request:
            case ("vocabulary", counts):
                vocabulary = Vocabulary(counts)
            case ("parse", document, format_name, text, cpu_s, memory_bytes):
                _allow(cpu_s, memory_bytes)
                put(answers, _answer(lambda: _read(document, vocabulary, format_name, rules.of(text))))  # noqa: B023  # called here
            case _:
                return


class _Rules:
    """Rule files as they were last read."""

    def __init__(self) -> None:
        self._text = ""
        self._rules: Any = None

    def of(self, text: str) -> Any:
        """Return the rules of a rule file's text; None for no text."""
        if text and text != self._text:
            from digestd.parse.rules import load_rules

            self._text, self._rules = text, load_rules(text)
        return self._rules if text else None


def _read(document: Document, vocabulary: Vocabulary, format_name: str | None, rules: Any) -> Page:
    if rules is not None:
        from digestd.parse.rules import parse_with_rules

        return parse_with_rules(document, rules, vocabulary)
    from digestd.parse import parse_document

    return parse_document(document, vocabulary, format_name=format_name)


def _answer(read: Callable[[], Page]) -> tuple[object, ...]:
    """Return the page, or why there is none, as something that can be sent."""
    try:
        return ("page", read())
    except ParseError as error:
        return ("refused", type(error).__name__, error.message, error.origin, error.line)
    except MemoryError:
        return ("memory",)
    except Exception as error:  # a bug costs its document; the parent logs where it is
        return ("bug", type(error).__name__, "".join(traceback.format_exception(error))[-4000:])


def _shut_in() -> None:
    """Give up what reading a document does not need."""
    try:
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:  # noqa: PTH123  # before anything is loaded
            file.write("1000")  # where memory runs out, the child goes first and not the daemon
    except OSError:
        pass
    _lower(resource.RLIMIT_CORE, 0)
    _lower(resource.RLIMIT_FSIZE, 0)
    _lower(resource.RLIMIT_NOFILE, _FILES)
    sys.addaudithook(_refuse)


def _refuse(event: str, args: tuple[Any, ...]) -> None:
    writes = event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    if writes or event.startswith(_FORBIDDEN):
        raise PermissionError(f"{event} is not allowed while a document is read")


def _lower(what: int, to: int) -> None:
    hard = resource.getrlimit(what)[1]
    value = to if hard == resource.RLIM_INFINITY else min(to, hard)
    resource.setrlimit(what, (value, value))


def _allow(cpu_s: float, memory_bytes: int) -> None:
    """Give the next document its time, on top of what is used up, and its memory; the kernel sees to both."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    wanted = {
        resource.RLIMIT_CPU: math.ceil(used.ru_utime + used.ru_stime + cpu_s),
        resource.RLIMIT_AS: memory_bytes,
    }
    for what, most in wanted.items():
        hard = resource.getrlimit(what)[1]
        resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


class _Pickler(pickle.Pickler):
    """Names nothing but the classes of the values."""

    def reducer_override(self, value: object) -> Any:
        """Name an enum's member by its value: up to Python 3.11.3 it is otherwise a call of ``getattr``."""
        return (type(value), (value.value,)) if isinstance(value, Enum) else NotImplemented


def put(pipe: IO[bytes], value: object) -> None:
    """Write one value."""
    made = io.BytesIO()
    _Pickler(made, protocol=5).dump(value)
    body = made.getbuffer()
    pipe.write(len(body).to_bytes(8, "big"))
    pipe.write(body)
    pipe.flush()


def take(pipe: IO[bytes]) -> Any:
    """Return the next value that the parent wrote; None at the end."""
    head = pipe.read(8)
    if len(head) < 8:
        return None
    body = pipe.read(int.from_bytes(head, "big"))
    return pickle.loads(body)  # noqa: S301  # written by our own parent, which started us


if __name__ == "__main__":
    main()
