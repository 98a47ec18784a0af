"""Log lines on standard error: as text, as JSON Lines, or in the journal with fields of their own. Floor 5.

Entry points: :func:`configure_logging`, called once at start; :func:`mask_address`. The other modules use the standard
library's ``logging`` and end a message with what it is about: ``"delivery %s id=%s key=%s"``. These become fields, cut out
of the template and never out of what was put in, so that a stranger's title cannot forge one; :mod:`digestd.log_context`
adds what the work at hand is about. Addresses are shortened, and tokens and passwords left out, before a line is written.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Mapping, MutableMapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TextIO

from digestd.errors import ConfigError
from digestd.log_context import named

if TYPE_CHECKING:
    from structlog.typing import Processor

#: an address in running text; a key before it (``to=``) is no part of it, though the ``=`` of a return path is
_ADDRESS = re.compile(r"((?:(?<![^\s])[a-z_]+=)?)([^\s@<>\"',;:()\[\]/*])[^\s@<>\"',;:()\[\]/*]*@([\w-]+(?:\.[\w-]+)*)")
_SECRET_NAME = r"(?:password|passwd|secret|token|authorization|api_?key)"  # noqa: S105 # names of secrets, none of them
_SECRET = re.compile(rf"(?i)\b({_SECRET_NAME})(\s*[=:]\s*)(?:(?:bearer|basic)\s+)?[^\s,&'\"]+")
_SECRET_FIELD = re.compile(rf"(?i)(?:.*_)?{_SECRET_NAME}")
_USERINFO = re.compile(r"(?<=://)[^/@\s]+(?=@)")
#: random parts of private addresses: 22 characters of URL-safe base64 or more after a slash
_TOKEN_PATH = re.compile(r"(?<=/)(?=[A-Za-z0-9_-]*[0-9_-])(?=[A-Za-z0-9_-]*[A-Z])[A-Za-z0-9_-]{22,}")
#: what drives a terminal, and marks that turn the direction of text
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

#: a place of a template where a value is put in, with its name if it has one
_SLOT = re.compile(
    r"(?:(?<!\S)(?P<name>[a-z][a-z0-9_]*)=)?(?P<quote>\"?)%(?:%|[-+ #0-9.]*(?P<kind>[sdrifx]))(?P=quote)"
)
_FIXED = frozenset({"at", "level", "logger", "event", "exception"})

#: parts of a line that no text from outside can be in
_OURS = frozenset({"at", "level", "logger"})

_IDENTIFIER = "digestd"
_JOURNAL = Path("/run/systemd/journal/socket")


def mask_address(address: str) -> str:
    """Return an address so that its owner is not told: ``a***@example.org``."""
    local, _, domain = address.rpartition("@")
    return f"{local[:1]}***@{domain}" if local else "***"


def scrub(text: str) -> str:
    """Return the text without addresses, tokens, passwords and control characters; line ends stay."""
    text = _USERINFO.sub("***", text)
    text = _SECRET.sub(r"\1\2***", text)
    text = _TOKEN_PATH.sub("***", text)
    text = _ADDRESS.sub(r"\1\2***@\3", text)
    return _CONTROL.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    number = ord(found[0])
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"


def cut_fields(template: str, args: Sequence[Any]) -> tuple[str, dict[str, Any]]:
    """Return the message without what is named in it, and that by its names.

    Args:
        template: of the standard library's logging: ``"delivery %s id=%s"``.
        args: what is put in, in order.

    Returns:
        ``("delivery accepted", {"id": 17})``; whole numbers stay numbers.
    """
    if not args:
        return template, {}
    fields: dict[str, Any] = {}
    places, left = iter(args), list[Any]()

    def cut(slot: re.Match[str]) -> str:
        if slot["kind"] is None:
            return slot[0]
        value = next(places)
        if slot["name"] is None:
            left.append(value)
            return slot[0]
        fields[slot["name"]] = value
        return ""

    event = re.sub(" {2,}", " ", _SLOT.sub(cut, template)).strip()
    return event % tuple(left), fields


# -- the chain that each line goes through (structlog's processors)

Event = MutableMapping[str, Any]


def _fields(_: Any, __: str, event: Event) -> Event:
    """Put what a message names, and what the work is about, into fields of their own."""
    record: logging.LogRecord = event["_record"]
    args = event.pop("positional_args", ())
    if isinstance(args, Mapping):
        event["event"], found = str(record.msg) % args, dict[str, Any]()
    else:
        event["event"], found = cut_fields(str(record.msg), args or ())
    for name, value in {**found, **{key: value for key, value in named().items() if key not in found}}.items():
        event[f"{name}_" if name in _FIXED or name.startswith("_") else name] = value
    return event


def _time(_: Any, __: str, event: Event) -> Event:
    instant = datetime.fromtimestamp(event["_record"].created, UTC)
    event["at"] = instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return event


def _scrubbed(_: Any, __: str, event: Event) -> Event:
    """Shorten addresses and leave out secrets, in every text of a line."""
    for name, value in event.items():
        if name.startswith("_") or name in _OURS or value is None or isinstance(value, bool | int | float):
            continue
        event[name] = "***" if _SECRET_FIELD.fullmatch(name) else scrub(str(value))
    return event


def _load_structlog() -> ModuleType:
    """Return structlog, loaded with the first line: most commands write none.

    It would load rich for coloured consoles: 70 ms and 3 MB that no line of ours needs. It does without where it is missing.
    """
    hidden = "rich" not in sys.modules
    if hidden:
        sys.modules["rich"] = None  # type: ignore[assignment]  # the import system's own way to say: not there
    try:
        import structlog
    finally:
        if hidden:
            del sys.modules["rich"]
    return structlog


def _chain() -> list[Processor]:
    """Return what every line goes through."""
    structlog = _load_structlog()
    return [
        _fields,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.format_exc_info,
        _time,
        _scrubbed,
    ]


def _as_text(_: Any, __: str, event: Event) -> str:
    """Return a line for people: time, level, message, fields; a traceback below it."""
    head = f"{event['at']} {event['level']:7} {_message(event)}"
    return "\n".join([head, *event.get("exception", "").splitlines()])


def _message(event: Event) -> str:
    """Return message and fields on one line, so that nothing they quote can pass for a line of its own."""
    fields = (f"{name}={_shown(value)}" for name, value in _own(event).items())
    return " ".join([event["event"], *fields]).replace("\n", "\\n")


def _own(event: Event) -> dict[str, Any]:
    return {name: value for name, value in event.items() if name not in _FIXED and not name.startswith("_")}


def _shown(value: object) -> str:
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if not text or re.search(r"[\s\"]", text) else text


class _Lines(logging.Formatter):
    """Text or JSON lines; the chain is made when the first line comes."""

    def __init__(self, *, as_json: bool) -> None:
        super().__init__()
        self._as_json = as_json

    @cached_property
    def _chained(self) -> logging.Formatter:
        structlog = _load_structlog()
        meta = structlog.stdlib.ProcessorFormatter.remove_processors_meta
        renderer: Processor = structlog.processors.JSONRenderer(ensure_ascii=False) if self._as_json else _as_text
        chained: logging.Formatter = structlog.stdlib.ProcessorFormatter(
            processors=[*_chain(), meta, renderer], use_get_message=False, pass_foreign_args=True
        )
        return chained

    def format(self, record: logging.LogRecord) -> str:
        return self._chained.format(record)


def _journal(socket: Path) -> logging.Handler:
    """Return what writes into the journal, each field under a name of its own (``EXTRA_TOPIC=llm-agents``)."""
    from logging_journald import Facility, JournaldLogHandler

    class Journal(JournaldLogHandler):  # type: ignore[misc]  # the library has no types
        """Sends lines as the chain leaves them: the library alone would send messages and tracebacks as they came."""

        def emit(self, record: logging.LogRecord) -> None:
            try:
                super().emit(self._clean(record))
            except Exception:  # a line that cannot be made must not end the work that it tells of
                self.handleError(record)

        @cached_property
        def _chained(self) -> list[Processor]:
            return _chain()

        def close(self) -> None:
            self.transport.socket.close()
            super().close()

        def _clean(self, record: logging.LogRecord) -> logging.LogRecord:
            level = record.levelname.lower()
            event: Event = {"_record": record, "positional_args": record.args, "exc_info": record.exc_info}
            for processor in self._chained:
                event = processor(None, level, event)  # type: ignore[assignment] # none of them renders
            trouble = event.get("exception")
            values = {
                "name": record.name,
                "levelno": min(max(record.levelno // 10 * 10, logging.DEBUG), logging.CRITICAL),
                "msg": "\n".join([_message(event), *([trouble] if trouble else [])]),
                "created": record.created,
                "relativeCreated": record.relativeCreated,
                "module": record.module,
                "funcName": record.funcName,
                "lineno": record.lineno,
                "pathname": record.pathname,
            }
            own = {f"{key}_" if key in _RECORD else key: value for key, value in _own(event).items()}
            return logging.makeLogRecord({**own, **values})

    return Journal(identifier=_IDENTIFIER, facility=Facility.DAEMON, use_message_id=False, socket_path=socket)


_RECORD = frozenset(logging.makeLogRecord({}).__dict__)


def configure_logging(
    level: str = "info",
    format_name: str = "auto",
    *,
    journal_stream: str | None = None,
    stream: TextIO | None = None,
    journal: Path = _JOURNAL,
) -> None:
    """Send all log lines to standard error or the journal, and nothing anywhere else.

    Args:
        level: debug, info, warning or error.
        format_name: text, json, journal, or auto: the journal where standard error leads there, else text.
        journal_stream: what the service manager says the journal is, "device:inode" (``JOURNAL_STREAM``).
        stream: written to instead of standard error.
        journal: where the journal listens.

    Raises:
        ConfigError: the journal is asked for, and none listens.
    """
    target = stream or sys.stderr
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
        if old.name == _IDENTIFIER:
            old.close()
    handler = _handler(target, format_name, _is_journal(target, journal_stream), journal)
    handler.name = _IDENTIFIER
    root.addHandler(handler)
    root.setLevel(level.upper())
    # these speak of every job, request and event; what digestd makes of them it says itself
    for noisy in ("apscheduler", "httpx2", "httpcore2", "watchfiles", "uvicorn"):
        logging.getLogger(noisy).setLevel(max(logging.WARNING, root.level))


def _handler(target: TextIO, format_name: str, is_journal: bool, journal: Path) -> logging.Handler:
    if format_name == "journal" or (format_name == "auto" and is_journal):
        if journal.is_socket():
            return _journal(journal)
        if format_name == "journal":
            raise ConfigError(f"log.format: expected a journal at {journal}, found none")
    handler = logging.StreamHandler(target)
    handler.setFormatter(_Lines(as_json=format_name == "json"))
    return handler


def _is_journal(stream: TextIO, journal_stream: str | None) -> bool:
    """Whether the stream is the journal's socket: the variable is inherited by children whose stream is another."""
    if not journal_stream:
        return False
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return journal_stream == f"{status.st_dev}:{status.st_ino}"
