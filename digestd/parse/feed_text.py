"""What publishers put before an abstract, taken off. Floor 1, pure.

Entry point: :func:`undress_lines`.

``Abstract`` | ``by Noor Haddad, Ama Sarpong`` | ``Transactions on Reefs, Volume 4, Issue 3, Page 1-24, September 2026.`` |
``Tides, Published online: 20 October 2026; doi:10.5555/x`` | ``Publication date: October 2026`` / ``Source: Reef Journal`` /
``Author(s): Ana Lima, Bo Chen`` | ``Tides, Vol. 9, Pages 120: A Title`` / ``Tides doi: 10.5555/tides9`` / ``Authors: ...``
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_HEADING = re.compile(r"(?i)(?:abstract|summary)\s*[:.]?")
_HEADING_BEFORE = re.compile(r"^(?:Abstract|ABSTRACT|Summary|SUMMARY)\s*[:.\u2014]\s+(?=\S)")
_CITATION = re.compile(
    r"(?:.{2,200}, )?(?:Volume|Vol\.) [\w().-]+, .{0,120}(?:Page|Pages|Issue|\b(?:19|20)\d\d).{0,60}"
    r"|.{2,120}, Ahead of Print\.?|.{2,120}, EarlyView\.?|.{2,120}, Published online:.{0,200}"
    r"|Publication date:.{0,80}|Source:.{0,200}|.{2,80}\bdoi:\s?10\.\d{4,9}/\S{1,100}"
)
_BYLINE = re.compile(r"(?:by|Authors?:|Author\(s\):)\s+(?P<names>\S.{2,5000})")


@dataclass(frozen=True, slots=True)
class DressedText:
    """An abstract and what stood around it."""

    text: str  #: on one line, "" if there is none
    byline: str = ""  #: names as they stood


def undress_lines(lines: Sequence[str]) -> DressedText:
    """Return the abstract in the lines of a feed's text.

    Args:
        lines: from the markup, a line for each block, may be empty.

    Returns:
        The text on one line; "" where there is nothing but headings, names and the citation.
    """
    kept: list[str] = []
    byline = ""
    for line in lines:
        before = not kept
        match = _BYLINE.fullmatch(line) if before else None
        if match and (line.startswith("Author") or len(lines) > 1):
            byline = byline or match["names"]
        elif before and (_HEADING.fullmatch(line) or (len(line) < 400 and _CITATION.fullmatch(line))):
            continue
        else:
            kept.append(line)
    return DressedText(_HEADING_BEFORE.sub("", " ".join(kept)), byline)
