"""Titles and abstracts that carry mark-up, as plain text. Floor 1, pure.

Entry point: :func:`plain_text`. Catalogues hand out titles with ``<i>`` and ``<sub>`` in them and abstracts in JATS; other
titles hold a bare ``<`` that means "less than", so only tags known by name are taken for tags.
"""

from __future__ import annotations

import html
import re

_INLINE = "i|b|u|em|strong|tt|code|span|font|small|sup|sub|scp|sc|a|q|cite|mark|bold|italic|underline|monospace|roman"
_BLOCK = "p|br|div|sec|title|list|list-item|ul|ol|li|h[1-6]|blockquote|disp-formula|label"
_TAG = re.compile(
    rf"</?(?:(?P<block>(?:jats:)?(?:{_BLOCK}))|(?:jats:)?(?:{_INLINE})|(?:jats|mml|m|xocs|ce):[a-z-]+|inline-formula|tex-math)"
    r"(?:\s+[\w:-]+\s*=[^<>]{0,400})?\s{0,9}/?>",
    re.IGNORECASE,
)
_SMALL = re.compile(r"<(?:jats:)?(?P<kind>sub|sup)>(?P<text>[0-9+\-−=()n]{1,8})</(?:jats:)?(?P=kind)>", re.IGNORECASE)
_HEADING = re.compile(r"^\s*<(jats:)?title>\s*(abstract|summary)\s*</(jats:)?title>", re.IGNORECASE)
#: with its semicolon only: "AT&TIMES" holds no entity
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,30});", re.ASCII)
_LOWERED = str.maketrans("0123456789+-−=()n", "₀₁₂₃₄₅₆₇₈₉₊₋₋₌₍₎ₙ")
_RAISED = str.maketrans("0123456789+-−=()n", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁻⁼⁽⁾ⁿ")
#: an entity may have been escaped twice on its way through two catalogues, not more often
_ROUNDS = 2


def plain_text(markup: str) -> str:
    """Return the text on one line, tags taken out and entities read.

    Args:
        markup: a title or an abstract with or without HTML or JATS tags.

    Returns:
        The text; small figures stay small (``CO<sub>2</sub>`` is ``CO₂``), a heading "Abstract" before it is left out.
    """
    text = _untag(markup)
    for _ in range(_ROUNDS):
        read = _ENTITY.sub(lambda match: html.unescape(match[0]), text)
        if read == text:
            break
        text = _untag(read)
    return " ".join(text.split())


def _untag(text: str) -> str:
    if "<" not in text:
        return text
    text = _SMALL.sub(_small_figures, _HEADING.sub("", text))
    return _TAG.sub(lambda match: " " if match["block"] else "", text)


def _small_figures(match: re.Match[str]) -> str:
    return match["text"].translate(_LOWERED if match["kind"].lower() == "sub" else _RAISED)
