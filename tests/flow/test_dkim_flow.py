"""Digests signed by digestd itself: the signature stands, and a retry is the same mail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

dkim = pytest.importorskip("dkim", reason="the extra dkim is not installed")

from tests.command import Desk, make_desk  # noqa: E402 # after the reason to skip is known
from tests.contract.test_dkim import pem, rsa, txt  # noqa: E402 # as above

SEEDS = Path(__file__).resolve().parents[2] / "seeds"
PAGE = str(SEEDS / "llm-agent-training.page-1.txt")


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Desk]:
    """Where the command line is called."""
    yield from make_desk(tmp_path, capsys)


SETTINGS = """
[mail]
channel = "maildir"
folder = "mail"
from_address = "digest@example.org"
dkim_selector = "r1"
dkim_key = "key.pem"
"""


def test_a_digest_is_signed_once_and_stays_the_same(desk: Desk) -> None:
    """What the reader gets verifies against the key in DNS, and what replay builds again is it, byte for byte."""
    desk.put("key.pem", pem(rsa()))
    desk.configure(SETTINGS)
    assert 0 == desk("ingest", PAGE).status
    assert 0 == desk("follow", "ana@example.net", "LLM Agent Training", "--daily", "07:30").status
    assert 0 == desk("digest", "--now").status
    assert 0 == desk("deliver").status
    (mail,) = (desk.folder / "mail" / "new").iterdir()
    body = mail.read_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    assert dkim.DKIM(body).verify(dnsfunc=txt)
    (row,) = desk("outbox", "list", "--json").one
    replayed = desk("replay", row["digest"], "--format", "eml")
    assert body.replace(b"\r\n", b"\n").decode() == replayed.out.replace("\r\n", "\n")
