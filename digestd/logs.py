"""Log lines on standard error: as text, as JSON Lines, or for the journal. Floor 5.

Entry points: :func:`configure_logging`, called once at start; :func:`mask_address`. The other modules use the standard
library's ``logging`` and end a message with what it is about: ``delivery sent id=17 key=3:2026-10-05 attempt=1``; JSON
lines carry these as keys of their own. Whatever a message says, addresses are shortened, and tokens and passwords left
out, before a line is written.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from datetime import UTC, datetime
from typing import TextIO

#: an address in running text; a key before it (``to=``) is no part of it, though the ``=`` of a return path is
_ADDRESS = re.compile(r"((?:(?<![^\s])[a-z_]+=)?)([^\s@<>\"',;:()\[\]/*])[^\s@<>\"',;:()\[\]/*]*@([\w-]+(?:\.[\w-]+)*)")
_SECRET = re.compile(
    r"(?i)\b(password|passwd|secret|token|authorization|api_?key)(\s*[=:]\s*)(?:(?:bearer|basic)\s+)?[^\s,&'\"]+"
)
_USERINFO = re.compile(r"(?<=://)[^/@\s]+(?=@)")
#: random parts of private addresses: 22 characters of URL-safe base64 or more after a slash
_TOKEN_PATH = re.compile(r"(?<=/)(?=[A-Za-z0-9_-]*[0-9_-])(?=[A-Za-z0-9_-]*[A-Z])[A-Za-z0-9_-]{22,}")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029]")
_PAIR = re.compile(r"(?:^|(?<= ))([a-z][a-z0-9_]*)=(\"[^\"]*\"|\S+)")

#: level -> priority of syslog, by which the journal filters (sd-daemon(3))
_PRIORITY = {logging.DEBUG: 7, logging.INFO: 6, logging.WARNING: 4, logging.ERROR: 3, logging.CRITICAL: 2}


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
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


class _Lines(logging.Formatter):
    """Text lines; with ``journal``, each begins with its priority and the journal adds the time."""

    def __init__(self, *, journal: bool) -> None:
        super().__init__()
        self.journal = journal

    def format(self, record: logging.LogRecord) -> str:
        lines = [_message(record), *_trouble(record).splitlines()]
        if self.journal:
            # a line of a traceback without its own priority would be filed as plain information
            return "\n".join(f"<{_PRIORITY.get(record.levelno, 6)}>{line}" for line in lines)
        return "\n".join([f"{_when(record)} {record.levelname.lower():7} {lines[0]}", *lines[1:]])


class _JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        message = _message(record)
        pairs = {key: value.strip('"') for key, value in _PAIR.findall(message)}
        event = _PAIR.sub("", message).rstrip() or message
        fixed = {"at": _when(record), "level": record.levelname.lower(), "logger": record.name, "event": event}
        trouble = _trouble(record)
        return json.dumps({**pairs, **fixed, **({"trouble": trouble} if trouble else {})}, ensure_ascii=False)


def configure_logging(
    level: str = "info", format_name: str = "auto", *, journal_stream: str | None = None, stream: TextIO | None = None
) -> None:
    """Send all log lines to standard error, and nothing anywhere else.

    Args:
        level: debug, info, warning or error.
        format_name: text, json, or auto: text, in the journal's own form where standard error is the journal.
        journal_stream: what the service manager says the journal is, "device:inode" (``JOURNAL_STREAM``).
        stream: written to instead of standard error.
    """
    target = stream or sys.stderr
    handler = logging.StreamHandler(target)
    if format_name == "json":
        handler.setFormatter(_JsonLines())
    else:
        handler.setFormatter(_Lines(journal=format_name == "auto" and _is_journal(target, journal_stream)))
    root = logging.getLogger()
    for old in root.handlers[:]:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level.upper())
    # these speak of every job, request and event; what digestd makes of them it says itself
    for noisy in ("apscheduler", "httpx2", "httpcore2", "watchfiles", "uvicorn"):
        logging.getLogger(noisy).setLevel(max(logging.WARNING, root.level))


def _is_journal(stream: TextIO, journal_stream: str | None) -> bool:
    """Whether the stream is the journal's socket: the variable is inherited by children whose stream is another."""
    if not journal_stream:
        return False
    try:
        status = os.fstat(stream.fileno())
    except (OSError, ValueError):
        return False
    return journal_stream == f"{status.st_dev}:{status.st_ino}"


def _message(record: logging.LogRecord) -> str:
    """Return the message on one line, so that nothing it quotes can pass for a line of its own."""
    return scrub(record.getMessage()).replace("\n", "\\n")


def _trouble(record: logging.LogRecord) -> str:
    """Return the traceback, "" if there is none."""
    if not record.exc_info:
        return ""
    return scrub(logging.Formatter().formatException(record.exc_info))


def _when(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
