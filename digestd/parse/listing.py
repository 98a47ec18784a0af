"""Text listings of a topic: bytes to Page. Floor 1, pure.

Entry points: :func:`parse_listing` for documents; :func:`parse_paragraphs` for parsers (HTML) that have the same blocks
as paragraphs of another format.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from digestd.errors import ParseError
from digestd.model.snapshot import Document, Page
from digestd.model.topic import Vocabulary


@dataclass(frozen=True, slots=True)
class Paragraph:
    """One line of the grammar."""

    text: str  #: not empty
    line: int  #: 1-based line of the document
    links: tuple[str, ...] = ()  #: absolute links inside it; those of the title line become the paper's
    labels: tuple[str, ...] = ()  #: labels that stand each on its own, instead of cutting the tag line


def parse_listing(document: Document, vocabulary: Vocabulary) -> Page:
    """Return the page that a text listing shows.

    Raises:
        ParseError: there is neither a head that can be recognised nor a block that can be read.
    """
    return parse_paragraphs([], document, vocabulary)


def parse_paragraphs(
    paragraphs: Sequence[Paragraph],
    document: Document,
    vocabulary: Vocabulary,
    *,
    format_name: str = "listing",
    cut: bool | None = None,
) -> Page:
    """Return the page that these paragraphs show, head first, then blocks.

    Args:
        paragraphs: in document order, none empty.
        document: for origin and fetching time.
        vocabulary: labels known so far; the page's own topic counts as known.
        format_name: what the page is called by.
        cut: True if the source proves that its end is missing, False if it proves that nothing is missing (``</html>``
            is there), None if it says nothing: then the last block must be whole by its looks.

    Raises:
        ParseError: there is neither a head that can be recognised nor a block that can be read.
    """
    raise ParseError("not a listing", origin=document.origin)
