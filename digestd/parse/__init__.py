"""Document bytes to Page: the table of parsers and the one way in. Floor 1, pure.

Entry point: :func:`parse_document`. A format is one file here with ``parse_x(document, vocabulary) -> Page``, one row in
:data:`PARSERS` and one branch in ``detect.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from digestd.errors import ParseError, UnknownFormatError
from digestd.model.snapshot import Document, Page
from digestd.model.topic import Vocabulary
from digestd.parse.detect import detect_format

Parser = Callable[[Document, Vocabulary], Page]

#: format name -> "module:function"; modules are imported when first used, because feedparser and lxml cost start-up time
PARSERS: dict[str, str] = {
    "listing": "digestd.parse.listing:parse_listing",
    "html": "digestd.parse.html:parse_html",
    "feed": "digestd.parse.feed:parse_feed",
    "snapshot": "digestd.parse.jsonpage:parse_snapshot",
    "hf": "digestd.parse.hf:parse_hf",
    "s2": "digestd.parse.s2:parse_s2",
    "openalex": "digestd.parse.openalex:parse_openalex",
    "openreview": "digestd.parse.openreview:parse_openreview",
    "crossref": "digestd.parse.crossref:parse_crossref",
}


def parse_document(document: Document, vocabulary: Vocabulary | None = None, *, format_name: str | None = None) -> Page:
    """Return the page that a document shows.

    Args:
        document: bytes as fetched; nothing of it is trusted.
        vocabulary: labels known so far, by which tag lines are cut; None cuts nothing.
        format_name: a key of PARSERS; None detects it.

    Raises:
        ParseError: the document is not a readable page of its format; nothing else is ever raised.
    """
    name = format_name or detect_format(document)
    target = PARSERS.get(name)
    if target is None:
        raise UnknownFormatError(f"expected one of {', '.join(PARSERS)}, found format {name!r}", origin=document.origin)
    module, _, function = target.partition(":")
    parse: Parser = getattr(import_module(module), function)
    try:
        return parse(document, vocabulary or Vocabulary())
    except RecursionError as error:
        raise ParseError("nested too deeply", origin=document.origin) from error
