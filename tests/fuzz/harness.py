"""One parser under a coverage-guided fuzzer: ``python -m tests.fuzz.harness FOLDER [libFuzzer options]``.

It needs atheris, which is no dependency of the project: ``.venv/bin/python -m pip install atheris``. Own fixtures are the
seeds; what it finds is written as ``crash-...`` into the folder and belongs, once mended, into ``regressions.py``.
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from importlib import import_module
from pathlib import Path

from digestd.errors import ParseError
from digestd.model.snapshot import Document, Page
from digestd.model.topic import Vocabulary
from digestd.parse import PARSERS, parse_document

TESTS = Path(__file__).resolve().parents[1]
SEEN = datetime(2026, 10, 21, 16, 0, tzinfo=UTC)
VOCABULARY = Vocabulary({"Reef Sound": 3, "Sonar": 2, "Kelp": 1, "Kelp Sonar": 1})
FORMATS = (None, *PARSERS)


def seeds() -> list[bytes]:
    """Return the project's own fixtures of all formats."""
    from tests.feeds import SHAPES

    files = [*(TESTS / "data").rglob("*.*"), *(TESTS.parent / "seeds").glob("*.txt")]
    return [*(text.encode() for text in SHAPES.values()), *(path.read_bytes() for path in sorted(files))]


def parse_any(data: bytes) -> Page | None:
    """Return the page of fuzzed input, whose first byte names the format; None where the parser refuses it."""
    if not data:
        return None
    document = Document(body=data[1:], origin="https://kelp.example/feed", fetched_at=SEEN)
    try:
        return parse_document(document, VOCABULARY, format_name=FORMATS[data[0] % len(FORMATS)])
    except ParseError:
        return None


def check(data: bytes) -> None:
    """Parse, and hold the page to what the store and the renderers rely on: text that can be written as UTF-8."""
    page = parse_any(data)
    if page is not None:
        str(page).encode("utf-8")
        for paper in page.papers:
            assert paper.title == " ".join(paper.title.split()), f"title on one line: {paper.title!r}"
            assert paper.title, "a paper has a title"


def main(arguments: list[str]) -> None:
    """Fuzz until the options say stop."""
    atheris = import_module("atheris")
    corpus = Path(arguments[1])
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds()):
        for which in range(len(FORMATS)) if len(seed) < 4000 else (0,):
            (corpus / f"seed-{number:03d}-{which}").write_bytes(bytes([which]) + seed[:6000])
    with atheris.instrument_imports(include=["digestd.parse"]):
        for target in PARSERS.values():
            sys.modules.pop(target.partition(":")[0], None)
            import_module(target.partition(":")[0])
    atheris.Setup([arguments[0], str(corpus), *arguments[2:]], check)
    atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv)
