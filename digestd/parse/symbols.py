r"""What LaTeX macros and small letters are in Unicode: tables for ``latex.py``. Floor 1, pure.

Entry points: :func:`find_symbol`, :func:`raise_text`, :func:`lower_text`.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import Any

#: macros whose argument is shown and nothing else
TEXT_WRAPPERS = frozenset(
    (  # noqa: SIM905  # reads as a list
        "text textrm textnormal textup textmd textsf textit textbf textsc texttt textsl emph mbox hbox uline "
        "underline uwave operatorname operatorname* enquote mathrm mathsf mathtt mathit"
    ).split()
)
WRAPPERS = TEXT_WRAPPERS
#: the same, with maths inside even where the dollars were lost
MATHS_WRAPPERS = frozenset(
    "mathbf mathcal mathfrak mathscr mathbb boldsymbol bm pmb ensuremath".split()  # noqa: SIM905  # reads as a list
)
#: sizes of brackets in maths
SILENT = frozenset(
    "left right big Big bigl bigr Bigl Bigr bigg Bigg displaystyle textstyle limits nolimits".split()  # noqa: SIM905  # reads as a list
)
FUNCTIONS = frozenset(
    "log exp min max sin cos tan tanh arg argmax argmin sup inf lim det dim ker Pr ln lg gcd deg".split()  # noqa: SIM905  # reads as a list
)
#: macros for letters inside words, whose following blank TeX eats
LETTERS = frozenset("ss o O l L ae AE oe OE aa AA i j dh DH th TH dj DJ ng NG".split())  # noqa: SIM905  # reads as a list

ACCENTS = {
    "'": "\u0301",
    "`": "\u0300",
    "^": "\u0302",
    '"': "\u0308",
    "~": "\u0303",
    "=": "\u0304",
    ".": "\u0307",
    "c": "\u0327",
    "v": "\u030c",
    "u": "\u0306",
    "H": "\u030b",
    "k": "\u0328",
    "r": "\u030a",
    "d": "\u0323",
    "b": "\u0331",
}
MATHS_ACCENTS = {
    "hat": "\u0302",
    "widehat": "\u0302",
    "bar": "\u0304",
    "tilde": "\u0303",
    "widetilde": "\u0303",
    "dot": "\u0307",
    "ddot": "\u0308",
    "vec": "\u20d7",
    "overline": "\u0304",
}

#: what pylatexenc has not, or has otherwise than a reader of prose wants it
_OWN = {
    "sim": "~",
    "thicksim": "~",
    "approx": "≈",
    "epsilon": "ε",
    "phi": "φ",
    "times": "×",
    "dots": "…",
    "ldots": "…",
    "cdots": "⋯",
    "checkmark": "✓",
    "cmark": "✓",
    "xmark": "✗",
    "S": "§",
    "P": "¶",
    "copyright": "©",
    "euro": "€",
    "LaTeX": "LaTeX",
    "TeX": "TeX",
    "BibTeX": "BibTeX",
    "textbackslash": "\\",
    "textasciitilde": "~",
    "textasciicircum": "^",
    "textunderscore": "_",
    "textdollar": "$",
    "textpercent": "%",
    "textbar": "|",
    "textless": "<",
    "textgreater": ">",
    "lbrace": "{",
    "rbrace": "}",
    "degree": "°",
    "quad": " ",
    "qquad": " ",
    "space": " ",
    "thinspace": " ",
    "enspace": " ",
    "xspace": "",
    "colon": ":",
    "lvert": "|",
    "rvert": "|",
    "lVert": "‖",
    "rVert": "‖",
    "textendash": "–",
    "textemdash": "—",
    "textquoteright": "’",
    "textquoteleft": "‘",
    "textquotedblleft": "“",
    "textquotedblright": "”",
    "dj": "đ",
    "DJ": "Đ",
    "dh": "ð",
    "DH": "Ð",
    "th": "þ",
    "TH": "Þ",
    "j": "ȷ",
    "circ": "∘",
    "ne": "≠",
    "neq": "≠",
    "leqslant": "⩽",
    "geqslant": "⩾",
    "lesssim": "≲",
    "gtrsim": "≳",
    "varnothing": "∅",
    "bmod": "mod",
}

_RAISED = dict(
    zip(
        "0123456789+-=()abcdefghijklmnoprstuvwxyzABDEGHIJKLMNOPRTUVWαβγδεθφχ−",  # the minus sign too
        "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ᵃᵇᶜᵈᵉᶠᵍʰⁱʲᵏˡᵐⁿᵒᵖʳˢᵗᵘᵛʷˣʸᶻᴬᴮᴰᴱᴳᴴᴵᴶᴷᴸᴹᴺᴼᴾᴿᵀᵁⱽᵂᵅᵝᵞᵟᵋᶿᵠᵡ⁻",
        strict=True,
    )
)
_LOWERED = dict(
    zip(
        "0123456789+-=()aehijklmnoprstuvxβγρφχ−",  # the minus sign too
        "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ₐₑₕᵢⱼₖₗₘₙₒₚᵣₛₜᵤᵥₓᵦᵧᵨᵩᵪ₋",
        strict=True,
    )
)
_DOUBLE_STRUCK = str.maketrans("RNZCQPEFH1", "ℝℕℤℂℚℙ𝔼𝔽ℍ𝟙")


def raise_text(text: str) -> str | None:
    """Return the text in superscript letters, None if one of them does not exist."""
    return _shrink(text, _RAISED, "′∗*")


def lower_text(text: str) -> str | None:
    """Return the text in subscript letters, None if one of them does not exist."""
    return _shrink(text, _LOWERED, "")


def _shrink(text: str, table: dict[str, str], kept: str) -> str | None:
    small = [table.get(char) or (char if char in kept else "") for char in text]
    return "".join(small) if small and all(small) else None


def double_struck(text: str) -> str:
    """Return number sets as mathematicians write them."""
    return text.translate(_DOUBLE_STRUCK)


@lru_cache(maxsize=2048)
def find_symbol(name: str) -> str | None:
    """Return the text of a macro without arguments, None if it is not known."""
    if name in _OWN:
        return _OWN[name]
    spec = _symbol_table().get_macro_spec(name)
    text = getattr(spec, "simplify_repl", None)
    if not isinstance(text, str) or len(text) != 1 or text.isspace():
        return None
    return text


@cache
def _symbol_table() -> Any:  # pylatexenc has no types
    """Return pylatexenc's table, loaded on first use: most pages need only the macros above."""
    from pylatexenc.latex2text import get_default_latex_context_db

    return get_default_latex_context_db()
