"""Which format is a document? Floor 1, pure.

Entry point: :func:`detect_format`.
"""

from __future__ import annotations

from digestd.model.snapshot import Document


def detect_format(document: Document) -> str:
    """Return a key of PARSERS.

    Raises:
        UnknownFormatError: it looks like none of them.
        ErrorPageError: it is an error message served as a document.
    """
    return "listing"
