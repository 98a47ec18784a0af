"""Log lines: no addresses, no tokens, one line an event."""

from __future__ import annotations

import io
import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from digestd.logs import configure_logging, mask_address, scrub

LOG = logging.getLogger("digestd.tests")


@pytest.fixture(autouse=True)
def _restored_logging() -> Iterator[None]:
    """The test runner gets its own handlers back."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)


def logged(format_name: str = "text") -> io.StringIO:
    """Return what will be logged from now on."""
    stream = io.StringIO()
    configure_logging("info", format_name, stream=stream)
    return stream


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
    """What came from outside can't look like a line of its own, nor paint the terminal."""
    stream = logged()
    LOG.warning("page skipped title=%s", "a\n2026-01-01T00:00:00.000Z info \x1b[31mfake")
    (line,) = stream.getvalue().splitlines()
    assert line.endswith("warning page skipped title=a\\n2026-01-01T00:00:00.000Z info \\x1b[31mfake")


def test_json_line_carries_keys() -> None:
    """A JSON line has the event's keys as keys of its own."""
    stream = logged("json")
    LOG.info("delivery sent id=%d key=%s", 17, "3:2026-10-05")
    line = json.loads(stream.getvalue())
    assert ("delivery sent", "17", "3:2026-10-05") == (line["event"], line["id"], line["key"])


def test_json_line_keeps_the_traceback_scrubbed() -> None:
    """A traceback goes into the same object, without addresses."""
    stream = logged("json")
    LOG.error("delivery broke id=1", exc_info=ValueError("refused anna@example.org"))
    trouble = json.loads(stream.getvalue())["trouble"]
    assert trouble.endswith("ValueError: refused a***@example.org")


def test_journal_lines_carry_priorities(tmp_path: Path) -> None:
    """Every line of an error, its traceback too, is an error to the journal; no time, the journal has its own."""
    file = tmp_path / "stream"
    with file.open("w", encoding="utf-8") as stream:
        status = os.fstat(stream.fileno())
        configure_logging(journal_stream=f"{status.st_dev}:{status.st_ino}", stream=stream)
        LOG.error("delivery broke id=1", exc_info=ValueError("broken"))
    lines = file.read_text(encoding="utf-8").splitlines()
    assert ["<3>delivery broke id=1", "<3>ValueError: broken"] == lines


def test_auto_is_text_when_the_stream_is_not_the_journal() -> None:
    """A child that inherited the journal's variable but writes elsewhere gets plain text."""
    stream = io.StringIO()
    configure_logging(journal_stream="1:2", stream=stream)
    LOG.info("started")
    assert stream.getvalue().endswith("info    started\n")
