r"""LaTeX to readable Unicode, never worse than the source. Floor 1, pure.

    96.00\% of \textbf{s}elf-play, $\alpha^{2} \le 10^{-3}$   ->   96.00% of self-play, α² ≤ 10⁻³

Entry points: :func:`to_unicode` for a whole text, :func:`join_fragments` for abstracts whose inline maths was torn out
into paragraphs. What is not understood stays as it stands: unknown macros, braces of plain text ("{a, b}"), dollars
that are money, under-scores outside maths ("hip_kernel_lab"), tildes ("~13K").

pylatexenc gives the table of symbols; its converter is not used, because it loses text: "100% of cases" becomes "100",
``\texttt{x}`` becomes "", "$5 and $6" loses its dollars.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from digestd.parse import symbols

#: longer texts are no titles or abstracts; they are left as they stand
_MAX_LENGTH = 200_000
#: groups nested deeper than this are left as they stand
_MAX_DEPTH = 20
#: inline maths longer than this is money or an accident
_MAX_MATHS = 600

_TEXT_SPECIAL = re.compile(r"[\\{$^]")
_MATHS_SPECIAL = re.compile(r"[\\{}$^_]")
_NAME = re.compile(r"[A-Za-z]+\*?")
_ARGUMENTS = re.compile(r"\[[^\[\]{}\\]{0,80}\]")
_DECLARATION = re.compile(
    r"\\(?:bf|em|it|sc|tt|rm|sf|sl|bfseries|itshape|scshape|ttfamily|small|large|normalfont)(?![A-Za-z]) *"
)
_MONEY = re.compile(r"\d[\d.,]*\s+[A-Za-z]")
_MATHS_ONLY = re.compile(r"\\[A-Za-z{}]|[\^_]")
_LONG_WORD = re.compile(r"[A-Za-z]{3}")
_PLAIN = re.compile(r"[\w.]+")
_DIRECTORIES = re.compile(r"(?:\\[A-Za-z]+)+")
_ESCAPED = re.compile(r"\\([_%#&~])")
_DIGITS = re.compile(r"\d+")
_SPACES = re.compile(r" {2,}")

_DASHES = re.compile(r"-{2,}")
_LOST_THIN_SPACE = re.compile(r"(?<=\d),pp\b")
_QUOTES = (
    (re.compile(r"``([^`']{1,300})''"), "“\\1”"),
    (re.compile(r"(?<![\w'])''(?=[^\s'])([^'\"]{1,300})(?<=\S)''(?![\w'])"), "“\\1”"),
    (re.compile(r"(?<![\w`])`([^`'\n]{1,120})'(?![\w'`])"), "‘\\1’"),
)
_URL = re.compile(r"(https?://\S+)")
#: every text that needs work holds one of these; plain texts are told apart at the speed of memchr
_HINTS = ("\\", "{", "$", "^", "--", "''", "`", ",pp")


def to_unicode(text: str) -> str:
    """Return the text with LaTeX made readable; a text without LaTeX is returned as it is.

    Source: truth notes of the seeds, "abstract_unicode"; seeds/002 for ",pp", what is left of a thin space and "pp".
    """
    for hint in _HINTS:
        if hint in text:
            break
    else:
        return text
    if len(text) > _MAX_LENGTH:
        return text
    if "\\" in text or "{" in text or "$" in text or "^" in text:
        text = _Reader(text).read(0, len(text), 0)
    return _polish(text)


def join_fragments(fragments: Sequence[str]) -> str:
    """Return the paragraphs of a torn abstract as one: with a blank, or glued where the source must have been.

    Only white space is made up, every other character is one of the fragments' in their order.
    """
    joined = ""
    for fragment in fragments:
        if joined and fragment and not _is_glued(joined, fragment):
            joined += " "
        joined += fragment
    return joined


_GLUED_AFTER = ("(", "[", "/", r"\sim", r"{\sim}", "--")
_GLUED_BEFORE = (")", "]", ",", ";", "%", r"\%", r"\times", "--", "/")
_SUFFIX = re.compile(r"-[A-Za-z]|[.:?!](?:\s|$)|[’']s\b|\{,\}")


def _is_glued(before: str, after: str) -> bool:
    """Return whether no blank stood between two fragments. Source: truth notes, "abstract"; seeds/000, 001, 002."""
    if before.endswith(_GLUED_AFTER) or after.startswith(_GLUED_BEFORE) or _SUFFIX.match(after):
        return True
    return before[-1] == "-" and before[-2:-1].isalpha()


def _polish(text: str) -> str:
    """Return the text with dashes and quotes, web addresses untouched."""
    if "://" not in text:
        return _polish_words(text)
    return "".join(part if place % 2 else _polish_words(part) for place, part in enumerate(_URL.split(text)))


def _polish_words(text: str) -> str:
    if "--" in text:
        text = _DASHES.sub(_dash, text)
    if "''" in text or "`" in text:
        for quotes, readable in _QUOTES:
            text = quotes.sub(readable, text)
    return _LOST_THIN_SPACE.sub(" pp", text) if ",pp" in text else text


def _dash(found: re.Match[str]) -> str:
    """Return the dash that two or three hyphens mean; "--flag" and longer runs stay."""
    run, text = found[0], found.string
    if len(run) == 3:
        return "—"
    before = text[found.start() - 1] if found.start() else " "
    after = text[found.end()] if found.end() < len(text) else " "
    return "–" if len(run) == 2 and before.isspace() == after.isspace() else run


def _match_braces(text: str) -> dict[int, int]:
    """Return the place of the closing brace for each opening one that has one."""
    opened: list[int] = []
    pairs: dict[int, int] = {}
    at = text.find("{")
    close = text.find("}", at)
    while close >= 0:
        if 0 <= at < close:
            if not _is_escaped(text, at):
                opened.append(at)
            at = text.find("{", at + 1)
            continue
        if opened and not _is_escaped(text, close):
            pairs[opened.pop()] = close
        close = text.find("}", close + 1)
    return pairs


def _is_escaped(text: str, at: int) -> bool:
    """Return whether an odd number of back-slashes stands before a place."""
    start = at
    while start and text[start - 1] == "\\":
        start -= 1
    return (at - start) % 2 == 1


#: what a reading step gives: the readable piece (None: not understood) and where to go on
_Step = tuple[str | None, int]


class _Reader:
    """One reading of one text. Places are places in the whole text, so that nothing is copied or read twice."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.pairs = _match_braces(text) if "{" in text else {}

    def read(self, start: int, end: int, depth: int) -> str:
        """Return a stretch of running text; what is not understood stays."""
        pieces: list[str] = []
        while (found := _TEXT_SPECIAL.search(self.text, start, end)) is not None:
            at = found.start()
            pieces.append(self.text[start:at])
            if depth > _MAX_DEPTH:
                start = at
                break
            piece, start = self._step(at, end, depth)
            pieces.append(piece)
        pieces.append(self.text[start:end])
        return "".join(pieces)

    def _step(self, at: int, end: int, depth: int) -> tuple[str, int]:
        char = self.text[at]
        if char == "\\":
            piece, after = self._macro(at, end, depth, maths=False)
        elif char == "{":
            piece, after = self._group(at, end, depth)
        elif char == "$":
            piece, after = self._dollars(at, end, depth)
        else:
            piece, after = self._bare_power(at, end, depth)
        return (self.text[at:after] if piece is None else piece), after

    def maths(self, start: int, end: int, depth: int) -> str | None:
        """Return a stretch of maths, None if anything in it is not understood."""
        pieces: list[str] = []
        if depth > _MAX_DEPTH:
            return None
        while (found := _MATHS_SPECIAL.search(self.text, start, end)) is not None:
            at = found.start()
            pieces.append(self.text[start:at])
            piece, start = self._maths_step(at, end, depth)
            if piece is None:
                return None
            pieces.append(piece)
        pieces.append(self.text[start:end])
        return _SPACES.sub(" ", "".join(pieces))

    def _maths_step(self, at: int, end: int, depth: int) -> _Step:
        char = self.text[at]
        if char == "\\":
            return self._macro(at, end, depth, maths=True)
        if char in "^_":
            return self._script(at, end, depth)
        close = self.pairs.get(at, end)
        if char != "{" or close >= end:
            return None, at + 1
        return self.maths(at + 1, close, depth + 1), close + 1

    # -- groups and dollars in running text

    def _group(self, at: int, end: int, depth: int) -> _Step:
        text, close = self.text, self.pairs.get(at, end)
        if close >= end:
            return None, at + 1
        before = text[at - 1] if at else " "
        inner = text[at + 1 : close]
        if inner in (",", ".", ":") and before.isdigit():
            return inner, close + 1
        if found := _DECLARATION.match(text, at + 1, close):
            return self.read(found.end(), close, depth + 1), close + 1
        content = self.read(at + 1, close, depth + 1)
        if inner.startswith("\\") and "\\" not in content and inner[1:2] not in ("{", "}"):
            return content, close + 1
        after = text[close + 1 : close + 2]
        if inner.isalpha() and inner[0].isupper() and (before.isalpha() or after.isalpha()):
            return inner, close + 1
        return f"{{{content}}}", close + 1

    def _dollars(self, at: int, end: int, depth: int) -> _Step:
        text = self.text
        mark = "$$" if text.startswith("$$", at) else "$"
        start = at + len(mark)
        close = text.find(mark, start, min(end, start + _MAX_MATHS))
        if close <= start:
            return None, start
        inner = text[start:close]
        after = text[close + len(mark) : close + len(mark) + 1]
        if inner[0].isspace() or inner[-1].isspace() or inner[-1] == "\\" or not _is_maths(inner, before=after):
            return None, start
        return self.maths(start, close, depth + 1), close + len(mark)

    def _bare_power(self, at: int, end: int, depth: int) -> _Step:
        """Read "τ^2" or "10^{-3}" whose dollars were lost; anything else keeps its caret."""
        text = self.text
        before = text[at - 1] if at else " "
        if not (before.isalnum() or before in ")]}"):
            return None, at + 1
        if found := _DIGITS.match(text, at + 1, end):
            return symbols.raise_text(found[0]), found.end()
        close = self.pairs.get(at + 1, end)
        if text.startswith("\\circ", at + 1):
            return "°", at + 6
        if close >= end or close - at > 22:
            return None, at + 1
        content = self.maths(at + 2, close, depth + 1)
        raised = symbols.raise_text(content) if content else None
        return (raised, close + 1) if raised else (None, at + 1)

    def _script(self, at: int, end: int, depth: int) -> _Step:
        """Read a super- or subscript inside maths."""
        content, after = self._argument(at + 1, end, depth, maths=True)
        if content is None:
            return None, after
        raised = self.text[at] == "^"
        if raised and content in ("∘", "°"):
            return "°", after
        small = symbols.raise_text(content) if raised else symbols.lower_text(content)
        if small is not None:
            return small, after
        mark = self.text[at]
        return (mark + content if _PLAIN.fullmatch(content) else f"{mark}({content})"), after

    # -- macros

    def _argument(self, at: int, end: int, depth: int, *, maths: bool) -> _Step:
        """Read the argument at a place: a group, in maths a macro or a single character too; None if there is none."""
        while at < end and self.text[at] == " ":
            at += 1
        close = self.pairs.get(at, end)
        if close < end and self.text[at] == "{":
            read = self.maths if maths else self.read
            return read(at + 1, close, depth + 1), close + 1
        if not maths or at >= end or self.text[at] in "{}$^_":
            return None, min(at + 1, end)
        if self.text[at] == "\\":
            return self._macro(at, end, depth + 1, maths=True) if depth < _MAX_DEPTH else (None, at + 1)
        return self.text[at], at + 1

    def _macro(self, at: int, end: int, depth: int, *, maths: bool) -> _Step:
        text = self.text
        mark = text[at + 1] if at + 1 < end else ""
        if found := _NAME.match(text, at + 1, end):
            return self._named(at, found[0], found.end(), end, depth, maths=maths)
        if mark and mark in "%&#_{}$":
            return mark, at + 2
        if mark and mark in ",;:> ":
            return " ", at + 2
        if mark == "\\" and not text[at + 2 : at + 3].isalpha():
            return " ", at + 2
        if mark and mark in ("!" if maths else "!/-"):
            return "", at + 2
        if maths:
            return ("‖" if mark == "|" else None), at + 2
        if mark in symbols.ACCENTS:
            return self._accent(at, mark, at + 2, end)
        if mark == "(":
            close = text.find("\\)", at + 2, min(end, at + _MAX_MATHS))
            content = self.maths(at + 2, close, depth + 1) if close > 0 else None
            return (content.strip(), close + 2) if content is not None else (None, at + 2)
        return None, min(at + 2, end)

    def _accent(self, at: int, mark: str, start: int, end: int) -> _Step:
        r"""Read an accent and its letter: ``\'e``, ``\"{o}``, ``\'{\i}``, ``\v{s}``."""
        text, close = self.text, self.pairs.get(start, end)
        braced = close < end and text.startswith("{", start)
        inner = text[start + 1 : close] if braced else text[start : min(start + 1, end)]
        after = close + 1 if braced else start + 1
        if not braced and text.startswith(("\\i", "\\j"), start) and not text[start + 2 : start + 3].isalpha():
            inner, after = text[start : start + 2], start + 2
        letter = {"\\i": "i", "\\j": "j"}.get(inner, inner)
        if len(letter) != 1 or not letter.isalpha():
            return None, at + 2
        return unicodedata.normalize("NFC", letter + symbols.ACCENTS[mark]), after

    def _named(self, at: int, name: str, after: int, end: int, depth: int, *, maths: bool) -> _Step:
        text = self.text
        if name in symbols.WRAPPERS or name in symbols.MATHS_WRAPPERS:
            inside = maths or name in symbols.MATHS_WRAPPERS
            content, close = self._argument(after, end, depth, maths=inside and name not in symbols.TEXT_WRAPPERS)
            if content is None:
                return None, after
            return (symbols.double_struck(content) if name == "mathbb" else content), close
        if not maths and name in symbols.ACCENTS and len(name) == 1:
            attached = at > 0 and text[at - 1].isalpha() and text.startswith(" ", after)
            piece, close = self._accent(at, name, after + 1 if attached else after, end)
            return (piece, close) if attached or text.startswith("{", after) else (None, after)
        if (compound := self._compound(name, after, end, depth, maths=maths)) is not None:
            return compound
        if maths and name in symbols.SILENT:
            return "", after + 1 if text.startswith(".", after) else after
        if name in symbols.FUNCTIONS and maths:
            return name + (
                " " if text[after : after + 1].isalnum() or text.startswith(("{", "\\"), after) else ""
            ), after
        return self._symbol(at, name, after, end, maths=maths)

    def _compound(self, name: str, after: int, end: int, depth: int, *, maths: bool) -> _Step | None:
        """Read a macro with arguments of its own kind; None if it is none of them."""
        if name == "url" and self.text.startswith("{", after) and self.pairs.get(after, end) < end:
            close = self.pairs[after]
            return _ESCAPED.sub(r"\1", self.text[after + 1 : close]), close + 1
        if name == "href":
            address, middle = self._argument(after, end, depth, maths=False)
            return (None, middle) if address is None else self._argument(middle, end, depth, maths=False)
        if name in ("frac", "tfrac", "dfrac", "nicefrac"):
            above, middle = self._argument(after, end, depth, maths=True)
            if above is None:  # reading on would make hostile chains of fractions exponential
                return None, middle
            below, close = self._argument(middle, end, depth, maths=True)
            return (None if below is None else f"{_bracket(above)}/{_bracket(below)}"), close
        if name == "sqrt":
            content, close = self._argument(after, end, depth, maths=True)
            return (None if content is None else f"√{_bracket(content)}"), close
        if name in ("textsuperscript", "textsubscript"):
            content, close = self._argument(after, end, depth, maths=False)
            small = symbols.raise_text if name == "textsuperscript" else symbols.lower_text
            return (None if content is None else small(content)), close
        if maths and name in symbols.MATHS_ACCENTS:
            content, close = self._argument(after, end, depth, maths=True)
            if content is None or len(content) != 1:
                return None, close
            return unicodedata.normalize("NFC", content + symbols.MATHS_ACCENTS[name]), close
        return None

    def _symbol(self, at: int, name: str, after: int, end: int, *, maths: bool) -> _Step:
        text = self.text
        if not maths and at > 1 and text[at - 1] == ":" and text[at - 2].isalpha():
            return None, _DIRECTORIES.match(text, at, end).end()  # type: ignore[union-attr]  # a macro stands here
        symbol = symbols.find_symbol(name)
        if symbol is None:
            return None, self._skip_arguments(after, end)
        if text.startswith("{}", after):
            return symbol, after + 2
        # TeX eats the blank after a macro: "Stra\ss e" is one word
        if symbol.isalpha() and name in symbols.LETTERS and text[after : after + 1] == " " and not maths:
            after += 1
        return symbol, after

    def _skip_arguments(self, after: int, end: int) -> int:
        """Return the place behind an unknown macro and all groups that directly follow it."""
        while after < end:
            if self.text[after] == "{" and self.pairs.get(after, end) < end:
                after = self.pairs[after] + 1
            elif found := _ARGUMENTS.match(self.text, after, end):
                after = found.end()
            else:
                break
        return after


def _bracket(content: str) -> str:
    """Return part of a fraction, in brackets unless it is one word."""
    return content if _PLAIN.fullmatch(content) else f"({content})"


def _is_maths(inner: str, *, before: str) -> bool:
    """Return whether text between dollars is maths rather than sums of money with words or a dash between.

    Args:
        inner: not empty.
        before: the character before which it stands, "" at the end.
    """
    if _MONEY.match(inner):
        return False
    if _MATHS_ONLY.search(inner):
        return True
    return not before.isdigit() and ("{" in inner or not _LONG_WORD.search(inner))
