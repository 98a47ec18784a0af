"""Log lines: no addresses, no tokens, one line an event."""

from __future__ import annotations

import io
import json
import logging
import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from digestd.errors import ConfigError
from digestd.log_context import about, named
from digestd.logs import configure_logging, cut_fields, mask_address, scrub

LOG = logging.getLogger("digestd.tests")


@pytest.fixture(autouse=True)
def _restored_logging() -> Iterator[None]:
    """The test runner gets its own handlers back."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    for handler in root.handlers:
        if handler not in handlers:
            handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)


def logged(format_name: str = "text") -> io.StringIO:
    """Return what will be logged from now on."""
    stream = io.StringIO()
    configure_logging("info", format_name, stream=stream)
    return stream


def broke(trouble: str, message: str, *values: object) -> None:
    """Log an error with its traceback."""
    try:
        int(trouble)
    except ValueError:
        LOG.exception(message, *values)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("refused: anna.lima@example.org: no", "refused: a***@example.org: no"),
        ("to=anna+x=y@example.org attempt=1", "to=a***@example.org attempt=1"),
        ("from <bounce+TOK=anna=example.net@example.org>", "from <b***@example.org>"),
        ("jörg@exämple.org", "j***@exämple.org"),
        ("password=hunter2 token: abc", "password=*** token: ***"),
        ("Authorization: Bearer abc.def", "Authorization: ***"),
        ("GET https://me:hunter2@example.org/x", "GET https://***@example.org/x"),
        ("GET /f/aB3_kJ8sdkjfhskdjfhskdjfhA/feed.xml", "GET /f/***/feed.xml"),
        ("GET /topics/reinforcement-learning-with-verifiable-rewards", None),
        ("snapshot read source=seeds/000.txt papers=30", None),
        ("two papers, 50 % up; see https://example.org/@someone", None),
    ],
)
def test_scrub(text: str, shown: str | None) -> None:
    """Addresses, tokens and passwords are shortened, everything else stays."""
    assert (shown or text) == scrub(text)


def test_mask_address() -> None:
    """The owner of an address is not told, its domain is."""
    assert ("a***@example.org", "***") == (mask_address("anna@example.org"), mask_address("anna"))


def test_text_line_cannot_be_forged() -> None:
    """What came from outside can't look like a line of its own, nor paint the terminal or turn its text around."""
    stream = logged()
    LOG.warning("page skipped title=%s", "a\n2026-01-01T00:00:00.000Z info \x1b[31m\u202efake")
    (line,) = stream.getvalue().splitlines()
    assert line.endswith(' warning page skipped title="a\\n2026-01-01T00:00:00.000Z info \\\\x1b[31m\\\\u202efake"')


def test_json_line_carries_keys() -> None:
    """A JSON line has the event's keys as keys of its own; numbers stay numbers."""
    stream = logged("json")
    LOG.info("delivery %s id=%d key=%s", "sent", 17, "3:2026-10-05")
    line = json.loads(stream.getvalue())
    at = line.pop("at")
    expected = {"event": "delivery sent", "level": "info", "logger": "digestd.tests", "id": 17, "key": "3:2026-10-05"}
    assert (expected, "Z") == (line, at[-1])


@given(title=st.text(max_size=40))
def test_fields_come_from_the_template_alone(title: str) -> None:
    """No text that is put into a message can become a field, or end one."""
    assert ("page skipped", {"title": title, "papers": 3}) == cut_fields(
        'page skipped title="%s" papers=%d', (title, 3)
    )
    assert (f"refused: {title}", {"id": 1}) == cut_fields("refused: %s id=%s", (title, 1))


def test_field_cannot_take_the_place_of_what_a_line_is() -> None:
    """A field that is named like the line's own level or text stands beside it."""
    stream = logged("json")
    LOG.info("read level=%s event=%s", "error", "nothing")
    line = json.loads(stream.getvalue())
    assert ["info", "error", "read", "nothing"] == [line[name] for name in ("level", "level_", "event", "event_")]


def test_message_without_values_is_taken_as_it_stands() -> None:
    """A percent sign in a message without values is one."""
    assert ("50 % done, 100%d", {}) == cut_fields("50 % done, 100%d", ())


def test_context_is_on_every_line_within() -> None:
    """Lines say which run and source they belong to, others' lines too; a line's own word comes first."""
    stream = logged("json")
    with about(run="collect-7", source="Reefs"), about(topic="reef-sound"):
        logging.getLogger("another.library").warning("slow")
        LOG.info("read source=%s", "Corals")
    LOG.info("done")
    first, second, third = map(json.loads, stream.getvalue().splitlines())
    assert ("collect-7", "Reefs", "reef-sound") == (first["run"], first["source"], first["topic"])
    assert ("collect-7", "Corals") == (second["run"], second["source"])
    assert (False, {}) == ("run" in third, named())


def test_secret_fields_and_contexts_are_never_written() -> None:
    """A field named for a secret has no value, and an address in a field or context is shortened."""
    stream = logged("json")
    with about(source="anna@example.org"):
        LOG.info("asked token=%s smtp_password=%s to=%s", "aaa", "bbb", "anna@example.org")
    line = json.loads(stream.getvalue())
    shown = {key: line[key] for key in ("source", "token", "smtp_password", "to")}
    expected = {"source": "a***@example.org", "token": "***", "smtp_password": "***", "to": "a***@example.org"}
    assert expected == shown


def test_json_line_keeps_the_traceback_scrubbed() -> None:
    """A traceback goes into the same object, without addresses."""
    stream = logged("json")
    broke("refused anna@example.org", "delivery broke id=%s", 1)
    exception = json.loads(stream.getvalue())["exception"]
    assert exception.startswith("Traceback (most recent call last):\n")
    assert exception.endswith("'refused a***@example.org'")


def test_text_line_has_its_traceback_below() -> None:
    """A traceback stands below its line, without addresses."""
    stream = logged()
    LOG.error("delivery broke id=%s", 1, exc_info=ValueError("refused anna@example.org"))
    first, second = stream.getvalue().splitlines()
    assert (True, "ValueError: refused a***@example.org") == (first.endswith("error   delivery broke id=1"), second)


# -- the journal


class Journal:
    """A journal that keeps what it is sent."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "journal"
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(self.path))
        self._socket.setblocking(False)

    def entry(self) -> dict[str, str]:
        """Return the fields of the next entry (systemd.io/JOURNAL_NATIVE_PROTOCOL)."""
        rest, fields = self._socket.recv(1 << 20), dict[str, str]()
        while rest:
            line, _, rest = rest.partition(b"\n")
            name, equals, value = line.partition(b"=")
            if not equals:
                (size,) = struct.unpack_from("<Q", rest)
                value, rest = rest[8 : 8 + size], rest[8 + size + 1 :]
            fields[name.decode()] = value.decode()
        return fields

    def close(self) -> None:
        """Be gone."""
        self._socket.close()


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    """Return a journal on this machine."""
    found = Journal(tmp_path)
    yield found
    found.close()


def test_journal_gets_fields_and_priorities(journal: Journal, tmp_path: Path) -> None:
    """Under the service manager lines go to the journal itself, under our name, each field a field; none to the stream."""
    file = tmp_path / "stream"
    with file.open("w", encoding="utf-8") as stream:
        status = os.fstat(stream.fileno())
        where = f"{status.st_dev}:{status.st_ino}"
        configure_logging(journal_stream=where, stream=stream, journal=journal.path)
        with about(source="Reefs", name="x"):
            LOG.warning("page skipped papers=%d title=%s", 3, "One\nTwo")
    entry = journal.entry()
    wanted = ("PRIORITY", "SYSLOG_IDENTIFIER", "EXTRA_SOURCE", "EXTRA_PAPERS", "EXTRA_TITLE", "EXTRA_NAME_")
    assert ["4", "digestd", "Reefs", "3", "One\nTwo", "x"] == [entry[name] for name in wanted]
    assert 'page skipped papers=3 title="One\\nTwo" source=Reefs name=x' == entry["MESSAGE"]
    assert ("", "test_logs") == (file.read_text(encoding="utf-8"), entry["CODE_MODULE"])


def test_journal_never_sees_what_others_must_not(journal: Journal) -> None:
    """No field of an entry has the address, token or password that went into a line or its traceback."""
    configure_logging(format_name="journal", journal=journal.path)
    said = ("anna@example.org", "anna@example.org", "hunter2")
    broke("refused anna@example.org with password=hunter2", "delivery broke: %s to=%s token=%s", *said)
    entry = journal.entry()
    assert [] == [name for name, value in entry.items() if "anna" in value or "hunter2" in value]
    assert ("3", True) == (entry["PRIORITY"], "'refused a***@example.org with password=***" in entry["MESSAGE"])


def test_journal_that_is_asked_for_must_be_there(tmp_path: Path) -> None:
    """Without a journal, auto writes text where it can be read, and journal is a mistake in the settings."""
    file = tmp_path / "stream"
    with file.open("w", encoding="utf-8") as stream:
        status = os.fstat(stream.fileno())
        where = f"{status.st_dev}:{status.st_ino}"
        configure_logging(journal_stream=where, stream=stream, journal=tmp_path / "none")
        LOG.info("started")
    assert file.read_text(encoding="utf-8").endswith("info    started\n")
    with pytest.raises(ConfigError, match="expected a journal at"):
        configure_logging(format_name="journal", journal=tmp_path / "none")


def test_auto_is_text_when_the_stream_is_not_the_journal() -> None:
    """A child that inherited the journal's variable but writes elsewhere gets plain text."""
    stream = io.StringIO()
    configure_logging(journal_stream="1:2", stream=stream)
    LOG.info("started")
    assert stream.getvalue().endswith("info    started\n")


def test_commands_that_log_nothing_load_no_logging_library() -> None:
    """What shapes log lines is loaded with the first line, so that small commands start as quickly as without it."""
    code = """if True:
        import sys
        from digestd.logs import configure_logging
        configure_logging()
        print(sorted({"structlog", "rich", "logging_journald", "prometheus_client"} & sys.modules.keys()))"""
    assert (
        "[]" == subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip()
    )


def test_lines_load_no_coloured_consoles() -> None:
    """A line is written without rich, which costs a daemon memory and nobody sees; whoever wants it gets it afterwards."""
    code = """if True:
        import logging, sys
        from digestd.logs import configure_logging
        configure_logging()
        logging.warning("one")
        print("rich" in sys.modules)
        import rich.console
        print("rich" in sys.modules)"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ["False", "True"] == run.stdout.split()
