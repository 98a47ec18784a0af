"""Reads what digestd sent as its readers would: titles from the text of a mail, entries of a feed by feedparser."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage
from email.utils import parsedate_to_datetime

_RULE = "=" * 72
_OLDER = {
    "OLDER PAPERS NEWLY TAGGED": "tagged",
    "REVISED SINCE WE TOLD YOU": "revised",
    "WITHDRAWN": "revised",
}


@dataclass
class Told:
    """A paper in a mail: its title as printed, and all that stands with it."""

    title: str
    section: str  #: new, tagged, revised
    topic: str  #: heading it stands under, in capitals
    text: str


@dataclass
class Letter:
    """A mail as it is read."""

    recipient: str
    message_id: str
    slot: datetime
    told: list[Told] = field(default_factory=list)
    headlines: dict[str, str] = field(default_factory=dict)  #: topic in capitals -> all text above its papers
    catch_up: bool = False
    welcome: bool = False
    text: str = ""
    has_unnamed: bool = False  #: some papers are only told on the page that it links to


def read_letter(recipient: str, body: bytes) -> Letter:
    """Return a mail, read from its text part."""
    mail = message_from_bytes(body, policy=policy.default)
    assert isinstance(mail, EmailMessage)
    part = mail.get_body(("plain",))
    assert part is not None
    text = str(part.get_content()).replace("\r\n", "\n")
    slot = parsedate_to_datetime(str(mail["Date"])).astimezone(UTC)
    letter = Letter(recipient, str(mail["Message-ID"]), slot, text=text)
    parts = text.split(_RULE)
    letter.catch_up = "More days than usual" in _flat(parts[0])
    letter.welcome = "Your first digest" in _flat(parts[0])
    for one in parts[1:-1]:
        _read_part(letter, one)
    return letter


def _flat(text: str) -> str:
    return " ".join(text.split())


def _read_part(letter: Letter, part: str) -> None:
    blocks = [block.split("\n") for block in part.strip("\n").split("\n\n") if block.strip()]
    heading, above = "", []
    for place, lines in enumerate(blocks):
        kept = [line for line in lines if not re.match(r"^(-{72}|\w{3}, \w{3} \d+.* -+)$", line)]
        if kept and re.match(r"^[\d,]+ more online: ", kept[0]):
            _read_online(letter, heading, _flat(" ".join(line for line in kept if not line.startswith("http"))))
            continue
        titles = [line for line in kept if line and not line.startswith(" ") and not re.match(r"^\[.*\]$", line)]
        bodies = [line for line in kept if line.startswith("    ")]
        if place == 0:
            heading, above = _heading(kept), kept
            continue
        if bodies and titles:
            letter.told.append(
                Told(_flat(" ".join(titles)), _OLDER.get(heading, "new"), heading, _flat("\n".join(kept)))
            )
        elif any(line.startswith(("- ", "  - ")) for line in kept):
            _read_rest(letter, heading, kept)
        elif not letter.told or letter.told[-1].topic != heading:
            above += kept
    letter.headlines[heading] = _flat("\n".join(above))


def _read_online(letter: Letter, heading: str, text: str) -> None:
    """Read "2 more online: LIBAVI, GUMUDERA.": short titles of at most six of them."""
    count, _, names = text.partition(" more online: ")
    named = names.rstrip(".").split(", ")
    letter.has_unnamed = letter.has_unnamed or int(count.replace(",", "")) > len(named)
    for name in named:
        letter.told.append(Told(name, _OLDER.get(heading, "new"), heading, text))


def _heading(lines: list[str]) -> str:
    """Return the heading, which may go on over lines: all in capitals."""
    kept = []
    for line in lines:
        if line != line.upper():
            break
        kept.append(line)
    return _flat(" ".join(kept))


def _read_rest(letter: Letter, heading: str, lines: list[str]) -> None:
    for line in lines:
        if line.startswith("- "):
            letter.told.append(Told(line[2:].strip(), _OLDER.get(heading, "new"), heading, line))
        elif line.startswith("  ") and letter.told and not line.strip().startswith("http"):
            letter.told[-1].title = _flat(f"{letter.told[-1].title} {line}")
