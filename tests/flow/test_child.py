"""Documents read in a child: the same pages, and nothing that a page does gets further than its child."""

from __future__ import annotations

import io
import os
import pickletools
import time
from collections.abc import Iterator
from dataclasses import replace
from enum import Enum
from pathlib import Path

import pytest

from digestd.errors import ErrorPageError, ParseError, StoreError, UnknownFormatError
from digestd.model.snapshot import Document, Page
from digestd.model.topic import Vocabulary
from digestd.parse import parse_document
from digestd.parse.rules import load_rules, parse_with_rules
from digestd.watch.child import ChildLimits, ChildParser
from digestd.watch.child_main import put
from tests.followers import LABELS, page

PAGE = Document(
    page("Reef Sound", ("2026-09-21", "A Reef at Dusk", "Kelp Forests"), ("2026-09-20", "Two Reefs")).encode(),
    origin="reef.txt",
)
RULES = 'order = "feed"\nitem = "article"\ntitle = "h3"\n'
HTML = Document(b"<html><body><article><h3>Reefs by Rule</h3></article></body></html>", origin="reef.html")

#: what stands in for a parser that goes wrong, run in the child in the place of the real one
FAULTS = {
    "spins": "while True: pass",
    "hangs": "import time; time.sleep(600)",
    "grows": "return [bytearray(10_000_000) for _ in range(1_000)]",
    "dies": "import signal; signal.raise_signal(signal.SIGSEGV)",
    "leaves": "import os; os._exit(3)",
    "breaks": "raise KeyError('reef')",
    "connects": "import socket; socket.socket()",
    "writes": "open('written', 'w')",
    "starts": "import subprocess; subprocess.run(['true'])",
    "prints": "print('x' * 100_000); import os; os.write(1, b'noise'); return real(document, vocabulary, **given)",
    "lies": "import pathlib; return pathlib.Path('/')",
}
#: a module that Python imports at its start, by which a test puts its fault into the child
SITE = """
import digestd.parse
real = digestd.parse.parse_document
def parse_document(document, vocabulary, **given):
    if b"GOOD" in document.body:
        return real(document, vocabulary, **given)
    FAULT
digestd.parse.parse_document = parse_document
"""


@pytest.fixture
def child() -> Iterator[ChildParser]:
    """Return a child with a little time."""
    parser = ChildParser(ChildLimits(cpu_s=1, waits=3))
    yield parser
    parser.close()


def is_there(pid: int | None) -> bool:
    """Return whether a process is there."""
    return pid is not None and Path(f"/proc/{pid}").exists()


def test_child_reads_the_same_page(child: ChildParser) -> None:
    """A page read in the child is the page that is read here, and a child serves many."""
    pages = [child.parse(PAGE, LABELS) for _ in range(3)]
    assert [parse_document(PAGE, LABELS)] * 3 == pages
    first = child.pid
    child.parse(PAGE, LABELS)
    assert (first, True) == (child.pid, first != os.getpid())


def test_child_knows_the_vocabulary_of_each_document(child: ChildParser) -> None:
    """Labels are cut with the vocabulary given, also when it changes between two documents."""
    few = Vocabulary({"Reef Sound": 1})
    found = [child.parse(PAGE, words).papers[0].topics for words in (few, LABELS, few, LABELS)]
    cut = tuple(parse_document(PAGE, LABELS).papers[0].topics)
    assert ("Reef Sound", "Kelp Forests") == cut
    assert [(), cut, (), cut] == found


def test_child_reads_by_format_and_rules(child: ChildParser) -> None:
    """A format that is named is used, and so are the rules of a rule file, also one after the other."""
    expected = parse_with_rules(HTML, load_rules(RULES), Vocabulary())
    assert expected == child.parser(rules=RULES)(HTML, Vocabulary())
    assert parse_document(PAGE, LABELS, format_name="listing") == child.parser(format_name="listing")(PAGE, LABELS)
    assert ["Reefs by Rule"] == [paper.title for paper in expected.papers]


@pytest.mark.parametrize(
    ("body", "kind"),
    [(b"nothing of the kind", ParseError), (b"%PDF-1.7", UnknownFormatError), (b"Error: 503 gone\n", ErrorPageError)],
)
def test_child_refuses_as_the_parser_does(child: ChildParser, body: bytes, kind: type[ParseError]) -> None:
    """What is wrong with a document is said in the same words, of the same kind."""
    document = Document(body, origin="reef.txt")
    with pytest.raises(ParseError) as here:
        parse_document(document, LABELS)
    with pytest.raises(ParseError) as there:
        child.parse(document, LABELS)
    assert (str(here.value), type(here.value)) == (str(there.value), type(there.value))
    assert issubclass(type(here.value), kind if kind is not ErrorPageError else ParseError)


@pytest.fixture
def broken(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ChildParser]:
    """Return a child whose parser goes wrong, but for documents that have GOOD in them."""
    fault = FAULTS[request.param]
    (tmp_path / "sitecustomize.py").write_text(SITE.replace("FAULT", fault), encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    # only what does nothing at all may run into the wall clock, however busy the machine is
    parser = ChildParser(ChildLimits(cpu_s=1, waits=4 if request.param == "hangs" else 60))
    yield parser
    parser.close()


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        ("spins", "reef.txt: took more than 1 s to read"),
        ("hangs", "reef.txt: took more than 4 s to read"),
        ("grows", "reef.txt: took more than 320 MB of memory to read"),
        ("dies", "reef.txt: could not be read: the parser ended with SIGSEGV"),
        ("leaves", "reef.txt: could not be read: the parser ended with status 3"),
        ("breaks", "reef.txt: could not be read: KeyError"),
        ("connects", "reef.txt: could not be read: PermissionError"),
        ("writes", "reef.txt: could not be read: PermissionError"),
        ("starts", "reef.txt: could not be read: PermissionError"),
    ],
    indirect=["broken"],
)
def test_child_contains_what_a_page_does(broken: ChildParser, why: str, tmp_path: Path) -> None:
    """Whatever happens while a page is read is an error of that page that says what it was, and the next one is read."""
    with pytest.raises(ParseError) as error:
        broken.parse(PAGE, LABELS)
    assert why == str(error.value)
    good = replace(PAGE, body=PAGE.body.replace(b"Two Reefs", b"GOOD Reefs"))
    assert parse_document(good, LABELS) == broken.parse(good, LABELS)
    assert not (tmp_path / "written").exists()


@pytest.mark.parametrize("broken", ["prints"], indirect=True)
def test_child_keeps_prints_out_of_answers(broken: ChildParser) -> None:
    """What a library prints while it reads is lost and disturbs nothing."""
    assert parse_document(PAGE, LABELS) == broken.parse(PAGE, LABELS)


@pytest.mark.parametrize("broken", ["lies"], indirect=True)
def test_child_answers_pages_only(broken: ChildParser) -> None:
    """An answer that is made of anything but the model is not taken."""
    with pytest.raises(ParseError, match="could not be read: the parser gave no page"):
        broken.parse(PAGE, LABELS)


def test_answer_names_classes_of_pages_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer names no function, on no version of Python: up to 3.11.3 a member of an enum was a call of getattr."""
    monkeypatch.setattr(Enum, "__reduce_ex__", lambda self, _: (getattr, (type(self), self.name)))
    answer = io.BytesIO()
    put(answer, ("page", parse_document(PAGE)))
    named = {value for op, value, _ in pickletools.genops(answer.getvalue()[8:]) if op.name.endswith("UNICODE")}
    assert not named & {"builtins", "getattr"}
    assert "digestd.model.snapshot" in named


def test_child_is_told_no_secrets(child: ChildParser, monkeypatch: pytest.MonkeyPatch) -> None:
    """The child's environment holds the way to the modules and nothing else of ours."""
    monkeypatch.setenv("DIGESTD_MAIL__PASSWORD", "tide and sand")
    child.parse(PAGE, LABELS)
    environment = Path(f"/proc/{child.pid}/environ").read_bytes()
    assert [b"PYTHONPATH"] == [pair.partition(b"=")[0] for pair in environment.split(b"\0") if pair]


def test_child_is_ended_when_idle_and_at_close() -> None:
    """A child with nothing to do goes by itself, comes again for the next page, and is gone after close."""
    parser = ChildParser(ChildLimits(idle_s=0.1))
    parser.parse(PAGE, LABELS)
    deadline = time.monotonic() + 20
    while parser.pid is not None and time.monotonic() < deadline:
        time.sleep(0.01)
    assert parser.pid is None
    assert isinstance(parser.parse(PAGE, LABELS), Page)
    pid = parser.pid
    parser.close()
    parser.close()
    assert not is_there(pid)
    with pytest.raises(StoreError, match="the program ends"):
        parser.parse(PAGE, LABELS)


def test_child_killed_between_pages_comes_again(child: ChildParser) -> None:
    """A child that was killed while it waited costs no page."""
    child.parse(PAGE, LABELS)
    assert child.pid is not None
    os.kill(child.pid, 9)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert parse_document(PAGE, LABELS) == child.parse(PAGE, LABELS)


def test_child_that_cannot_start_says_nothing_against_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no process can be started the document is not called unreadable: it comes again."""
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    parser = ChildParser()
    with pytest.raises(StoreError, match="no process to read it can be started"):
        parser.parse(PAGE, LABELS)


def test_child_may_take_longer_for_more() -> None:
    """A large document has time in proportion to its size."""
    assert [5, 5, 10] == [ChildLimits().time_for(size) for size in (0, 2_500_000, 5_000_000)]
