"""Documents from outside, read in a child that can be killed. Floor 3. Entry point: :class:`ChildParser`.

A page that makes a parser run for ever, or fills the memory, costs its child and is an error of that page; the daemon and
its other sources go on. The child is started for the first document, serves many, and is ended when it has nothing to do.
"""

from __future__ import annotations

import io
import logging
import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import IO, Any

from digestd.errors import ErrorPageError, ParseError, StoreError, UnknownFormatError
from digestd.model.snapshot import Document, Page
from digestd.model.topic import Vocabulary
from digestd.watch.child_main import put

log = logging.getLogger(__name__)

_ERRORS: Mapping[str, type[ParseError]] = {
    kind.__name__: kind for kind in (ParseError, UnknownFormatError, ErrorPageError)
}


@dataclass(frozen=True, slots=True)
class ChildLimits:
    """What a document may take."""

    cpu_s: float = 5  #: of a processor, for a document of up to ``size_bytes``; in proportion for a larger one
    size_bytes: int = 2_500_000
    waits: float = 4  #: times its processor time until a document must be read, whatever else the machine does
    memory_bytes: int = 320_000_000  #: address space of the child
    memory_factor: int = 16  #: bytes more for each byte of the document; a feed takes about ten
    answer_bytes: int = 64_000_000  #: of a page
    start_s: float = 60  #: until a child must have started
    idle_s: float = 60  #: after which a child with nothing to do is ended

    def time_for(self, size: int) -> float:
        """Return the seconds of processor time for a document of so many bytes."""
        return self.cpu_s * max(1.0, size / self.size_bytes)


class _EndedError(Exception):
    """The child is gone; holds its exit status."""

    def __init__(self, status: int, *, timed_out: bool = False) -> None:
        super().__init__(status)
        self.status, self.timed_out = status, timed_out


class ChildParser:
    """Reads documents in a child process, one at a time; may be used from any thread."""

    def __init__(self, limits: ChildLimits | None = None) -> None:
        self._limits = limits or ChildLimits()
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._sent: Mapping[str, int] | None = None  #: vocabulary that the child has
        self._rest: threading.Timer | None = None
        self._closed = False

    @property
    def pid(self) -> int | None:
        """The child's process, None if there is none now."""
        return self._process.pid if self._process is not None else None

    def parser(self, *, format_name: str | None = None, rules: str = "") -> Callable[[Document, Vocabulary], Page]:
        """Return what reads a document, by the format and the text of a rule file, if any."""
        return lambda document, vocabulary: self.parse(document, vocabulary, format_name=format_name, rules=rules)

    def parse(
        self, document: Document, vocabulary: Vocabulary, *, format_name: str | None = None, rules: str = ""
    ) -> Page:
        """Return the page that a document shows.

        Raises:
            ParseError: it shows none, or reading it took more than it may.
            StoreError: the machine can start no child now; nothing is said against the document, which comes again.
        """
        size, limits = len(document.body), self._limits
        cpu_s = limits.time_for(size)
        memory_bytes = limits.memory_bytes + limits.memory_factor * size
        request = ("parse", document, format_name, rules, cpu_s, memory_bytes)
        with self._lock:
            self._stop_resting()
            try:
                self._start(document.origin)
                answer = self._ask(request, vocabulary, cpu_s * limits.waits)
            except _EndedError as ended:
                raise ParseError(_why(ended, cpu_s, limits.waits, memory_bytes), origin=document.origin) from None
            finally:
                if self._closed:
                    self._end()
                else:
                    self._begin_resting()
            return self._page_of(answer, document, memory_bytes)

    def close(self) -> None:
        """End the child, also one that is reading; a second call does nothing."""
        self._closed = True
        process = self._process
        if process is not None:
            process.kill()  # without the lock: whoever waits for an answer gets its end
        with self._lock:
            self._stop_resting()
            self._end()

    # -- with the lock held

    def _start(self, origin: str | None) -> None:
        if self._closed:
            raise StoreError(f"{origin or 'document'}: not read, because the program ends")
        if self._process is not None and self._process.poll() is None:
            return
        self._end()
        try:
            # its environment holds no secrets; -P: no module comes from the folder that we happen to be in
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-B", "-X", "utf8", "-m", "digestd.watch.child_main"],
                env={"PYTHONPATH": os.pathsep.join(path for path in map(os.path.abspath, sys.path) if path)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C at the terminal is for us
            )
            self._exchange(None, self._limits.start_s)
        except (OSError, _EndedError) as error:
            self._end()
            raise StoreError(f"{origin or 'document'}: no process to read it can be started: {error}") from error

    def _ask(self, request: object, vocabulary: Vocabulary, wait_s: float) -> Any:
        def write(pipe: IO[bytes]) -> None:
            if vocabulary.counts != self._sent:
                counts = dict(vocabulary.counts)
                put(pipe, ("vocabulary", counts))
                self._sent = counts
            put(pipe, request)

        return self._exchange(write, wait_s)

    def _exchange(self, write: Callable[[IO[bytes]], None] | None, wait_s: float) -> Any:
        """Return the child's next answer; a child that does not give it in time is killed."""
        process = self._process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        late = threading.Event()

        def kill() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(wait_s, kill)
        timer.daemon = True
        timer.start()
        try:
            if write is not None:
                write(process.stdin)
            return self._take(process.stdout)
        except (OSError, EOFError):
            process.kill()
            status = process.wait()
            self._end()
            raise _EndedError(status, timed_out=late.is_set()) from None
        finally:
            timer.cancel()

    def _take(self, pipe: IO[bytes]) -> Any:
        """Return the answer; None for one that is too large or no page.

        Raises:
            EOFError: the child has ended.
        """
        head = pipe.read(8)
        size = int.from_bytes(head, "big")
        if len(head) < 8:
            raise EOFError
        if size > self._limits.answer_bytes:
            return None
        body = pipe.read(size)
        if len(body) < size:
            raise EOFError
        try:
            return _OurOwn(io.BytesIO(body)).load()
        except (
            Exception
        ):  # no answer of ours; a damaged pickle may raise anything (docs.python.org/3/library/pickle.html)
            return None

    def _page_of(self, answer: Any, document: Document, memory_bytes: int) -> Page:
        match answer:
            case ("page", Page() as page):
                return page
            case ("refused", str() as kind, message, origin, line):
                raise _ERRORS.get(kind, ParseError)(str(message), origin=origin, line=line)
            case ("memory",):
                self._end()  # what is left of its memory is in pieces
                raise ParseError(_memory(memory_bytes), origin=document.origin)
            case ("bug", name, trace):
                log.error('parser failed by a bug origin="%s" trace="%s"', document.origin, trace)
                raise ParseError(f"could not be read: {name}", origin=document.origin)
        self._end()
        raise ParseError("could not be read: the parser gave no page", origin=document.origin)

    def _end(self) -> None:
        process, self._process, self._sent = self._process, None, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except OSError:
                    continue  # what was not written yet has nobody to read it

    def _begin_resting(self) -> None:
        if self._process is not None:
            self._rest = threading.Timer(self._limits.idle_s, self._retire)
            self._rest.daemon = True
            self._rest.start()

    def _stop_resting(self) -> None:
        if self._rest is not None:
            self._rest.cancel()
            self._rest = None

    def _retire(self) -> None:
        if self._lock.acquire(blocking=False):  # else there is work again
            try:
                if self._rest is threading.current_thread():
                    self._end()
            finally:
                self._lock.release()


_DATES = frozenset({"date", "datetime", "timezone", "timedelta"})


class _OurOwn(pickle.Unpickler):
    """Makes nothing but values of the model: a child that a document took over must not get further."""

    def find_class(self, module: str, name: str) -> Any:
        """Return a class that pages are made of."""
        if module.startswith("digestd.model.") or (module == "datetime" and name in _DATES):
            return super().find_class(module, name)
        raise pickle.UnpicklingError(f"{module}.{name} is no part of a page")


def _why(ended: _EndedError, cpu_s: float, waits: float, memory_bytes: int) -> str:
    """Return why a child ended, from its exit status."""
    if ended.timed_out:
        return f"took more than {cpu_s * waits:g} s to read"
    if ended.status == -signal.SIGXCPU:
        return f"took more than {cpu_s:g} s to read"
    if ended.status in (-signal.SIGKILL, -signal.SIGABRT):
        return _memory(memory_bytes)
    name = signal.Signals(-ended.status).name if ended.status < 0 else f"status {ended.status}"
    return f"could not be read: the parser ended with {name}"


def _memory(memory_bytes: int) -> str:
    return f"took more than {memory_bytes // 1_000_000} MB of memory to read"
