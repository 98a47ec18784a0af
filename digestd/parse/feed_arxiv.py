"""The dress that arXiv gives to papers in its feeds, taken off. Floor 1, pure.

Entry points: :func:`undress_title`, :func:`undress_abstract`, :func:`read_announce`.

New feeds (since 2024) begin each abstract with ``arXiv:2610.90002v1 Announce Type: cross`` and, on the next line,
``Abstract: ...``. The types are ``new``, ``cross`` (new here, at home elsewhere), ``replace`` and ``replace-cross`` (a new
version, of a paper at home here or elsewhere). Old feeds end each title with ``. (arXiv:0808.1234v2 [cs.CL] UPDATED)`` or
``CROSS LISTED``.

Source: https://info.arxiv.org/help/rss_specifications.html
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from digestd.parse.links import arxiv_number

ANNOUNCE_TYPES = frozenset(("new", "cross", "replace", "replace-cross"))

_OLD_TITLE = re.compile(
    r"\.?\s*\(arXiv:\s?(?P<id>[\w.-]{1,20}(?:/\d{7})?(?:v\d{1,3})?)\s*(?:\[(?P<category>[\w.-]{2,30})\])?"
    r"\s*(?P<marks>(?:UPDATED|CROSS[ -]LISTED|[,\s])*)\)\s*$",
    re.IGNORECASE,
)
_NEW_ABSTRACT = re.compile(
    r"^\s*arXiv:(?P<id>[\w./-]{5,30})\s+Announce\s+Type:\s*(?P<type>[a-z-]{3,20})\s*(?:Abstract:\s*)?", re.IGNORECASE
)
_WITHDRAWN = re.compile(
    r"\b(?:this|the)\s+(?:paper|article|manuscript|preprint|submission|work|arxiv\s+(?:paper|submission|version))"
    r"(?:\s+\([^()]{1,60}\))?\s+(?:has\s+been|have\s+been|was|is)\s+(?:now\s+|temporarily\s+)?withdrawn\b"
    r"|^\W*(?:paper\s+|article\s+|preprint\s+)?withdrawn(?:\s+by\b|\s*[:.;\u2014-]|\s*$)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Dress:
    """What the dress said."""

    text: str  #: without it
    number: str | None = None  #: arXiv number without version
    version: int | None = None
    category: str | None = None  #: primary
    announce: str | None = None  #: None where it says nothing


def undress_title(title: str) -> Dress:
    """Return a title without the bracket that arXiv's old feeds put behind it, and what stood there."""
    match = _OLD_TITLE.search(title[-120:])
    if match is None:
        return Dress(title)
    number, version = arxiv_number(match["id"])
    if number is None:
        return Dress(title)
    bare = title[: len(title) - len(match[0])].rstrip()
    marks = match["marks"].upper()
    crossed, updated = "CROSS" in marks, "UPDATED" in marks
    announce = ("replace-cross" if crossed else "replace") if updated else ("cross" if crossed else "new")
    return Dress(bare, number, version, match["category"], announce)


def undress_abstract(abstract: str) -> Dress:
    """Return an abstract without the line that arXiv's feeds put before it, and what stood there."""
    match = _NEW_ABSTRACT.match(abstract)
    if match is None:
        return Dress(abstract)
    number, version = arxiv_number(match["id"])
    return Dress(abstract[match.end() :], number, version, None, read_announce(match["type"]))


def read_announce(text: str | None) -> str | None:
    """Return the announce type that a text names; None if it names none."""
    word = (text or "").strip().lower().replace(" ", "-")
    return word if word in ANNOUNCE_TYPES else None


def is_withdrawn(text: str | None) -> bool:
    """Whether an abstract or a comment says that the paper itself was withdrawn."""
    return bool(text and _WITHDRAWN.search(text))
