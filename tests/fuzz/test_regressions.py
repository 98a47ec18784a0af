"""What the fuzzer found stays mended; and no input of one kind costs a parser more than in proportion to its length."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from digestd.errors import ParseError
from digestd.model.snapshot import Document
from digestd.parse import parse_document
from tests.fuzz.harness import FORMATS, VOCABULARY, check, parse_any, seeds
from tests.fuzz.regressions import FOUND

#: seconds of processor time for 100 kB of anything; a healthy parser needs a tenth of it
BUDGET_S = 3.0

#: tests that the cases are spread over
SHARES = 8

TOKENS = {
    "tables": "<table><tr><td>x</td></tr></table>",
    "definitions": "<dl><dt>Authors</dt><dd>Ana Lima</dd></dl>",
    "dates": "Jun 6, 2026cs.AI\n\n",
    "dates in paragraphs": "<p>Jun 6, 2026cs.AI</p>",
    "open divisions": "<div>",
    "open comments": "<!--",
    "open links": "<a ",
    "lists": "<ul><li>x</li></ul>",
    "open items": "<item>",
    "items": "<item><title>x</title></item>",
    "open sections": "<![CDATA[",
    "ampersands": "&",
    "angle brackets": "<",
    "braces": "{",
    "dollars": "$",
    "open commands": "\\textbf{",
    "square brackets": "[",
    "quotes": '"',
    "more": "+1 ",
    "dots": " · ",
    "names": "A, ",
    "labels": "Reef Sound ",
    "empty lines": "\n",
    "open paragraphs": "<p>x",
    "entities": "&eacute;",
    "one word": "x",
    "lines": "x y\n\n",
    "ends of sections": "]]>",
    "open objects": '{"a":',
    "attributes": ' a="b"',
    "digits": "1",
}
HEADS = {
    "listing": "Reef Sound\n\nLatest papers 5\n\nJun 6, 2026cs.AI\n\nQuiet Reefs\n\n",
    "html": "<html><body><h1>Reef Sound</h1><p>Latest papers 5</p><p>Jun 6, 2026cs.AI</p><h2>Quiet Reefs</h2>",
    "feed": "<rss version='2.0'><channel><item><title>Quiet Reefs</title><description>",
    "snapshot": '{"schema": "digestd.snapshot/1", "papers": [{"title": "',
}


def cases() -> Iterator[tuple[str, str, str]]:
    """Yield (format, name of the token, text before it)."""
    for format_name, head in HEADS.items():
        for token in TOKENS:
            for before in ("", head):
                yield format_name, token, before


def test_what_the_fuzzer_found() -> None:
    """Inputs that once broke a parser, or made a page that cannot be stored, are refused or read."""
    for data in FOUND.values():
        check(data)


def test_seeds_are_read() -> None:
    """The fuzzer starts from pages: each seed is read by the parser that detection names."""
    assert [] == [seed[:80] for seed in seeds() if parse_any(b"\0" + seed) is None and b"api/errors" not in seed]
    assert 10 == len(FORMATS)


@pytest.mark.parametrize("number", range(SHARES))
def test_time_grows_with_length(number: int) -> None:
    """100 kB of one token, alone or within a paper, are read or refused within a budget of processor time."""
    slow = []
    for format_name, token, before in list(cases())[number::SHARES]:
        text = before + TOKENS[token] * (100_000 // len(TOKENS[token]))
        begin = time.process_time()
        with suppress(ParseError):
            parse_document(Document(text.encode()), VOCABULARY, format_name=format_name)
        seconds = time.process_time() - begin
        if seconds > BUDGET_S:
            slow.append((format_name, token, bool(before), round(seconds, 1)))
    assert [] == slow
