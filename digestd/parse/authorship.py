"""Which lines of a block are names, which are institutions? Floor 1, pure.

    abstract, names, institutions | abstract, names | names, institutions | names

Entry point: :func:`place_authors`. A block does not say which of its lines is which: one page in four papers has no line of
institutions, and "Tongyi Lab, Alibaba Group" looks like two names.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

from digestd.parse.fields import split_more

_PARTICLES = frozenset(
    (  # noqa: SIM905  # reads as a list
        "de da do du di del della dos das van von der den ter ten te bin bint ibn al el la le lo af av zu zur y e "
        "i vom of the und dan"
    ).split()
)
_NOT_IN_NAMES = re.compile(r"[\\:;!?=%<>{}\[\]\"/$|@·_^*#~]|\d{3}|\. [a-z]")
_INSTITUTION = re.compile(
    r"\b(?:Universit|Institut|Laborator|Labs?\b|College\b|School\b|Dep(?:artmen)?t\b|Academ|Cent(?:er|re)\b|Hospital|Research\b"
    r"|Inc\b|Ltd\b|Corp\b|LLC\b|GmbH\b|Group\b|Company\b|Technolog|Facult|Polytechni|Hochschule|Foundation\b|Compan)"
)
_MAX_ROW = 4_000
_MAX_NAME = 70


class Likeness(IntEnum):
    """How much a line looks like a row of names."""

    NONE = 0
    WEAK = 1  #: words of one name each, as titles and torn words have too
    STRONG = 2  #: first and last names


@dataclass(frozen=True, slots=True)
class Placed:
    """Which lines of a block's middle are what; indices into it, None where there is none."""

    authors: int | None
    affiliations: int | None
    abstract_end: int  #: the abstract is the lines before this one


def likeness(row: str) -> Likeness:
    """Return how much a line looks like a row of names, "+N" allowed."""
    row, more = split_more(row)
    if not row or len(row) > _MAX_ROW or _NOT_IN_NAMES.search(row):
        return Likeness.NONE
    full_names = False
    for part in row.split(","):
        words = part.split()
        if not words or len(words) > 8 or len(part) > _MAX_NAME:
            return Likeness.NONE
        capitals = 0
        for word in words:
            first = word[0]
            if first.isupper() or (first.isalpha() and not first.islower()):
                capitals += 1
            elif word.lower().rstrip("'’") not in _PARTICLES and not _is_odd_name(word):
                return Likeness.NONE
        last = words[-1]
        if not capitals or (last.endswith(".") and len(last) > 4):
            return Likeness.NONE
        full_names = full_names or len(words) > 1
    return Likeness.STRONG if full_names or more else Likeness.WEAK


def _is_odd_name(word: str) -> bool:
    """Return whether a word without a capital in front can be part of a name: "d'Arcy", "(Vivian)", "’t", "3rd"."""
    return any(char.isupper() for char in word[:4]) or word[0] in "'’(&"


def is_institution(row: str) -> bool:
    """Return whether a line names an institution beyond doubt: several by middle dots, a glued number, or a word for one."""
    return " · " in row or row[0] in "†‡1" or _INSTITUTION.search(row) is not None


def place_authors(middle: Sequence[str]) -> Placed:
    """Return which lines between title and labels are names, institutions, abstract.

    Args:
        middle: the lines in order, may be empty.

    Source: truth notes of the seeds, "Line shapes and traps" 3 to 5.
    """
    size = len(middle)
    if not middle:
        return Placed(None, None, 0)
    last = middle[-1]
    if size == 1:
        if " · " not in last and likeness(last) and not (is_institution(last) and not split_more(last)[1]):
            return Placed(0, None, 0)
        return (
            Placed(None, 0, 0)
            if is_institution(last) and len(last) < 300 and last[-1] != "."
            else Placed(None, None, 1)
        )
    before = middle[-2]
    names = likeness(before)
    if " · " in last:
        if names or _may_be_names(before):
            return Placed(size - 2, size - 1, size - 2)
        return Placed(None, size - 1, size - 1)
    last_names = likeness(last)
    if names is Likeness.STRONG:
        # a row of institutions with "+N" is full and has middle dots, so this is a full row of names below a torn abstract
        torn = (
            last_names is Likeness.STRONG
            and split_more(last)[1]
            and not split_more(before)[1]
            and not is_institution(last)
        )
        return Placed(size - 1, None, size - 1) if torn else Placed(size - 2, size - 1, size - 2)
    if names is Likeness.WEAK and (last_names is not Likeness.STRONG or is_institution(last)):
        return Placed(size - 2, size - 1, size - 2)
    place_named = is_institution(last) and len(last) < 600 and not split_more(last)[1]
    if last_names and not (place_named and _may_be_names(before)):
        return Placed(size - 1, None, size - 1)
    if place_named:
        return Placed(size - 2, size - 1, size - 2) if _may_be_names(before) else Placed(None, size - 1, size - 1)
    return Placed(None, None, size)


def _may_be_names(line: str) -> bool:
    """Return whether a line above institutions can be names of a kind not foreseen, rather than the abstract's end."""
    return len(line) < 200 and line[-1] not in ".?!)" and (", " in line or len(line) < 40) and not line.startswith("\\")
