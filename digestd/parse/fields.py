"""The small fields of a listing block: dates, numbers, "+N" counts, names, affiliations. Floor 1, pure.

    Jun 6, 2026cs.AI                        -> date and categories
    Maren Oduya, Tomás Vidal +1,012         -> two names, 1012 more
    1Lagoon Institute · 2Harbour Labs, Inc. -> affiliations without footnote marks

Every function is linear in its input and refuses what it can't read by returning None or the text itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date

from digestd.parse.archives import is_category

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_FULL_MONTHS = (
    "january february march april may june july august september october november december sept".split()  # noqa: SIM905  # reads as a list
)
_MONTH_NUMBERS = {name: number for number, name in enumerate(_MONTHS, 1)} | {
    name: number % 12 or 12 for number, name in enumerate(_FULL_MONTHS[:12], 1)
}
_MONTH_NUMBERS["sept"] = 9

_STARTS = frozenset(word for name in _MONTHS for word in (name, name.title(), name.upper()))

_MONTH_DAY_YEAR = re.compile(r"([A-Za-z]{3,9})\.? (\d{1,2})(?:st|nd|rd|th)?,? ?(\d{4})(?!\d)")
_DAY_MONTH_YEAR = re.compile(r"(\d{1,2}) ([A-Za-z]{3,9})\.?,? (\d{4})(?!\d)")
_ISO = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?!\d)")
_MONTH_DAY = re.compile(r"([A-Za-z]{3,9})\.? (\d{1,2})")
_NUMBER = re.compile(r"\d{1,3}(?:[,.\u2019' ]\d{3}){1,4}|\d{1,12}")
_MORE = re.compile(r" ?\+ ?(\d{1,3}(?:[,.]\d{3})*|\d{1,12})$")

#: a date and some categories
MAX_DATE_LINE = 80

_FOOTNOTE = re.compile(
    r"(?:(?:the )?corresponding\b|correspondence\b|equal(?:ly)?\b.*\bcontribut|contributed equally|co-?first\b|joint first"
    r"|these authors\b|(?:this )?work (?:was )?(?:done|performed|conducted|completed)\b|project lead|(?:core )?contributors?\b"
    r"|during (?:an |the |his |her |their )?internship\b|et al\b|e-?mails?\b|contact\b)",
    re.IGNORECASE,
)
_MARKS = "†‡*§¶‖∗✉#"
_ABBREVIATED = re.compile(r"(?:\b(?:Inc|Ltd|Co|Corp|LLC|Bros)|\.[A-Za-z])\.$")


@dataclass(frozen=True, slots=True)
class DateLine:
    """The first line of a block."""

    published: date | None  #: None: no date of the calendar
    categories: tuple[str, ...]
    printed: str  #: the date as printed, "" if there is none


def read_number(text: str) -> int | None:
    """Return a count as printed, with or without thousands separators ("12,480"); None if it is none."""
    text = text.strip()
    if not _NUMBER.fullmatch(text):
        return None
    return int(re.sub(r"\D", "", text))


def split_more(text: str) -> tuple[str, int]:
    """Return a row without its printed "+N", and N, 0 if there is none.

    Source: seeds/000 lines 28 and 45: a blank stands before the plus of names, none before that of labels.
    """
    if "+" not in text[-14:]:
        return text, 0
    found = _MORE.search(text, max(0, len(text) - 20))
    if found is None:
        return text, 0
    return text[: found.start()].rstrip(), int(re.sub(r"\D", "", found[1]))


def make_date(year: int, month: int, day: int) -> date | None:
    """Return the date, None if the calendar has none such."""
    try:
        return date(year, month, day)
    except ValueError:
        return None


def month_number(name: str) -> int | None:
    """Return the number of an English month name, short or full; None if it is none."""
    return _MONTH_NUMBERS.get(name.lower())


def read_month_day(text: str) -> tuple[int, int] | None:
    """Return (month, day) of "Sep 28", None if it is no such thing."""
    found = _MONTH_DAY.fullmatch(text)
    month = month_number(found[1]) if found else None
    return (month, int(found[2])) if found and month else None


def read_date_line(line: str) -> DateLine | None:
    """Return what the first line of a block says, None if the line is not one.

    Args:
        line: folded, one line: a date and glued or spaced to it the category; or one of them alone.
    """
    if len(line) > MAX_DATE_LINE or not line:
        return None
    if line[:3] not in _STARTS and not line[0].isdigit():
        return DateLine(None, (line,), "") if " " not in line and is_category(line) else None
    if found := _MONTH_DAY_YEAR.match(line):
        year, month, day = found[3], month_number(found[1]), found[2]
    elif found := _DAY_MONTH_YEAR.match(line):
        year, month, day = found[3], month_number(found[2]), found[1]
    elif found := _ISO.match(line):
        year, month, day = found[1], int(found[2]), found[3]
    else:
        return None
    if month is None:
        return None
    rest = line[found.end() :]
    categories = _read_categories(rest)
    if categories is None:
        return None
    return DateLine(make_date(int(year), month, int(day)), categories, found[0])


def _read_categories(rest: str) -> tuple[str, ...] | None:
    """Return the categories after a date, () if there are none, None if other text stands there."""
    if not rest:
        return ()
    tokens = re.split(r"[\s·•,;|]+", rest.strip(" ·•,;|"))
    if all(is_category(token) for token in tokens):
        return tuple(tokens)
    # one glued word of another scheme ("Sep 1, 2026Robotics") still is a category: a title never starts glued to a date
    return (rest,) if re.fullmatch(r"[A-Za-z][\w.\-]{0,40}", rest) else None


def split_authors(row: str) -> tuple[tuple[str, ...], int]:
    """Return the names of an author row in order, and how many more are printed as "+N"."""
    row, more = split_more(row)
    separator = ";" if ";" in row else ","
    names: list[str] = []
    for part in row.split(separator):
        name = part.strip()
        if " and " in name or name.startswith("and "):
            names.extend(piece for piece in (n.strip() for n in f" {name}".split(" and ")) if piece)
        elif name.rstrip(".") in ("Jr", "Sr", "II", "III", "IV", "MD", "PhD", "Ph.D") and names:
            names[-1] = f"{names[-1]}, {name}"
        elif name and name.rstrip(".") != "et al":
            names.append(name)
    return tuple(names), more


def split_affiliations(row: str) -> tuple[tuple[str, ...], int]:
    """Return the institutions of an affiliation row, cleaned, and how many more are printed as "+N".

    Footnote numbers go only where they equal the place in the row, which keeps "4Paradigm" and "3M"; footnotes are left out.

    Source: truth notes of the seeds, "affiliations", rules 1 to 5.
    """
    row, more = split_more(row)
    kept: list[str] = []
    for place, part in enumerate(row.split(" · "), 1):
        name = _clean_affiliation(part.strip(" ·"), place)
        if name:
            kept.append(name)
    return tuple(kept), more


def _clean_affiliation(name: str, place: int) -> str:
    """Return one institution without marks, "" for a footnote."""
    name = name.lstrip(_MARKS).strip()
    if _FOOTNOTE.match(name) or ("@" in name and " " not in name):
        return ""
    number = str(place)
    rest = name[len(number) :]
    # a capital must follow, and more than one letter: "1st Hospital" and "3M" are names
    if name.startswith(number) and len(rest) > 1 and rest[0].isalpha() and not rest[0].islower():
        name = rest
    name = name.replace(" ,", ",")
    if name.endswith(".") and not _ABBREVIATED.search(name[-8:]):
        name = name[:-1]
    return name.strip()
