"""The markup in a feed's titles and abstracts, as lines of text and the links in it. Floor 1, pure.

Entry points: :func:`text_lines` and :func:`markup_links`. Feeds hold HTML, XHTML, JATS and MathML, well-formed or not,
and plain text in which ``p < 0.05`` and ``x <y> z`` mean themselves: only tags known by name are taken for tags. One pass
over the text, so that no input costs more than its length.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from html.entities import html5

from digestd.parse.charset import one_line

_BLOCK = frozenset(
    (
        *("p", "br", "div", "sec", "title", "ul", "ol", "li", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "hr"),
        *(
            "table",
            "tr",
            "section",
            "article",
            "header",
            "footer",
            "pre",
            "dl",
            "dt",
            "dd",
            "list",
            "list-item",
            "body",
        ),
        *("center", "figure", "figcaption", "disp-formula", "abstract"),
    )
)
_INLINE = frozenset(
    (
        *(
            "a",
            "abbr",
            "acronym",
            "b",
            "bdi",
            "bdo",
            "big",
            "blink",
            "cite",
            "code",
            "del",
            "dfn",
            "em",
            "font",
            "i",
            "img",
        ),
        *(
            "ins",
            "kbd",
            "label",
            "mark",
            "nobr",
            "q",
            "s",
            "samp",
            "sc",
            "scp",
            "small",
            "span",
            "strike",
            "strong",
            "sub",
        ),
        *(
            "sup",
            "tt",
            "u",
            "var",
            "wbr",
            "bold",
            "italic",
            "underline",
            "roman",
            "monospace",
            "td",
            "th",
            "tbody",
            "html",
        ),
        *("math", "mi", "mn", "mo", "mrow", "msub", "msup", "msubsup", "mfrac", "msqrt", "mroot", "mover", "munder"),
        *(
            "mtext",
            "mspace",
            "mstyle",
            "mtable",
            "mtr",
            "mtd",
            "mfenced",
            "semantics",
            "munderover",
            "mpadded",
            "mphantom",
        ),
        *("annotation", "annotation-xml", "inline-formula", "tex-math", "ext-link", "xref", "iframe", "form", "input"),
        *(
            "button",
            "video",
            "audio",
            "source",
            "object",
            "embed",
            "svg",
            "path",
            "picture",
            "center",
            "thead",
            "caption",
        ),
    )
)
#: what stands in these is no text
_HIDDEN = frozenset(
    ("script", "style", "template", "noscript", "annotation", "annotation-xml", "svg", "select", "textarea")
)
_TAG = re.compile(
    r"<(?P<close>/?)(?:[a-z][a-z0-9]{0,9}:)?(?P<name>[a-z][a-z0-9-]{0,15})(?P<rest>(?:\s[^<>=]*=[^<>]*|\s*/?))>|<!--|<!\[CDATA\[|\]\]>",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"\b(?:href|src)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s\"'>]+))", re.IGNORECASE)
#: with its semicolon only: "AT&TIMES" holds no entity
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});", re.ASCII)
_SMALL = frozenset("0123456789+-\u2212=()n")
_RAISED = str.maketrans("0123456789+-\u2212=()n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁿ")
_LOWERED = str.maketrans("0123456789+-\u2212=()n", "₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎ₙ")


def text_lines(markup: str, *, is_markup: bool = True) -> list[str]:
    """Return the text, a line for each block, each folded, none empty.

    Args:
        markup: HTML, or text that may hold some.
        is_markup: False for what its feed declares to be plain text: entities in it mean themselves, unless known
            tags show that the declaration is wrong.

    Returns:
        ``["Abstract", "CO₂ rises."]`` for ``<h3>Abstract</h3><p>CO<sub>2</sub> rises.</p>``; entities are read once.
    """
    if "<" not in markup and ("&" not in markup or not is_markup):
        return [line] if (line := one_line(markup)) else []
    pieces: list[str] = []
    seen_tag = False
    for kind, text in _tokens(markup):
        if kind == "text":
            pieces.append(text)
            continue
        seen_tag = True
        if kind == "block":
            pieces.append("\n")
        elif kind in ("sub", "sup") and text:
            pieces.append(_small_figures(kind, text))
    joined = "".join(piece if piece == "\n" else re.sub(r"\s", " ", piece) for piece in pieces)
    if is_markup or seen_tag:
        joined = _ENTITY.sub(lambda match: read_entity(match[0]).replace("\n", " "), joined)
    return [line for part in joined.split("\n") if (line := one_line(part))]


def read_entity(reference: str) -> str:
    """Return the text of one reference, "&eacute;" or "&#233;"; the reference itself where no such entity is known.

    html.unescape alone reads the beginning of a name as well: "&notakelp;" is no "¬akelp;".
    """
    if reference[1] == "#" or reference[1:] in html5:
        return html.unescape(reference)
    return reference


def _small_figures(kind: str, text: str) -> str:
    """Return the figures of a ``sub`` or ``sup``, small where Unicode has them all; else as they are, kept apart."""
    bare = text.strip()
    if bare and _SMALL.issuperset(bare):
        return bare.translate(_RAISED if kind == "sup" else _LOWERED)
    return text


def _tokens(markup: str) -> Iterator[tuple[str, str]]:
    """Yield ("text", text), ("block", ""), ("tag", "") and, with the text within, ("sub", ...) and ("sup", ...)."""
    at = 0
    while at < len(markup):
        match = _TAG.search(markup, at)
        if match is None:
            yield "text", markup[at:]
            return
        if match[0] == "<!--":
            yield "text", markup[at : match.start()]
            end = markup.find("-->", match.end())
            at = len(markup) if end < 0 else end + 3
            continue
        name = (match["name"] or "").lower()
        known = not name or name in _BLOCK or name in _INLINE or name in _HIDDEN
        yield "text", markup[at : match.start() if known else match.end()]
        at = match.end()
        if not known:
            continue
        yield ("block" if name in _BLOCK else "tag"), ""
        if match["close"] or not name or match["rest"].endswith("/"):
            continue
        if name in _HIDDEN:
            at = _after_hidden(markup, at, name)
        elif name in ("sub", "sup"):
            end = markup.find("<", at, at + 40)
            if end >= 0 and markup[end + 1 : end + 2] == "/":
                yield name, markup[at:end]
                at = end


def _after_hidden(markup: str, at: int, name: str) -> int:
    """Return where the text goes on after an element that holds none; one never closed hides the rest."""
    found = re.compile(rf"</(?:[a-z][a-z0-9]{{0,9}}:)?{name}\b[^<>]*>", re.IGNORECASE).search(markup, at)
    return found.end() if found else len(markup)


def markup_links(markup: str) -> list[str]:
    """Return the addresses of links and pictures in the markup, as they are written, in order, none twice."""
    found: dict[str, None] = {}
    if "<" in markup:
        for match in _TAG.finditer(markup):
            if match["rest"]:
                for address in _ADDRESS.finditer(match["rest"]):
                    found[html.unescape(address[1] or address[2] or address[3] or "")] = None
    return [address for address in found if address.strip()]
