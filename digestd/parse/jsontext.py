"""JSON bytes to values that can be trusted, and lenient readers of single fields. Floor 1, pure.

Entry points: :func:`read_json` for the document, :func:`dig`, :func:`text_of`, :func:`date_of`, :func:`instant_of` and
:func:`links_of` for what stands in it. JSON can spell more than a program should hold: ``NaN``, numbers of thousands of
digits, half a surrogate pair, a hundred thousand open brackets, the same key twice. All of that is met here, once.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime

from digestd.errors import ErrorPageError, ParseError
from digestd.model.snapshot import Document
from digestd.parse.charset import decode_body, one_line
from digestd.parse.feed_dates import FAR_AHEAD, FIRST_YEAR
from digestd.parse.links import absolute_link

#: a page of a thousand papers with abstracts has 2 MB; more is no page
MAX_BYTES = 20_000_000
#: what SQLite's and JavaScript's numbers both hold exactly
MAX_WHOLE = 2**53
_MAX_WARNINGS = 20
#: under these APIs hand out papers; a message beside one of them is no error
_PAPER_KEYS = frozenset({"data", "results", "notes", "papers", "recommendedPapers", "paperId"})

_SURROGATE_HINT = re.compile(r"\\u[dD][89a-fA-F]")
#: one escape, whole: so that the backslash of ``\\\\`` is never taken for the start of the next one
_ESCAPE = re.compile(
    r"\\(?:(?P<pair>u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})(?![\d])", re.ASCII)


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A value that JSON text can spell and no field can hold."""

    spelling: str  #: "NaN", "a number of 5,000 digits"


@dataclass(frozen=True, slots=True)
class JsonText:
    """What a JSON document holds."""

    value: object  #: dict, list, str, int, float, bool, None and, within, Unreadable
    warnings: tuple[str, ...] = ()  #: what was repaired or ambiguous


def read_json(document: Document) -> JsonText:
    """Return the value that a JSON document holds.

    Bytes are read as decode_body reads them; half a surrogate pair becomes U+FFFD with a warning. Of a key given twice
    the last value counts, with a warning.

    Raises:
        ParseError: it is empty, too large, nested too deeply or not JSON; says the line.

    Source: RFC 8259 4 (duplicate keys), 6 (NaN), 8.1 (byte order mark), 8.2 (surrogates).
    """
    if len(document.body) > MAX_BYTES:
        found = f"expected at most {MAX_BYTES:,} bytes of JSON, found {len(document.body):,}"
        raise ParseError(found, origin=document.origin)
    decoded = decode_body(document.body, document.media_type)
    warnings = list(decoded.warnings)
    text = _whole_surrogates(decoded.text, warnings)
    if not text.strip():
        raise ParseError("expected JSON, found an empty document", origin=document.origin)

    def pairs(items: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(items)
        if len(found) < len(items):
            twice = [repr(key[:60]) for key, times in Counter(key for key, _ in items).items() if times > 1]
            warnings.append(f"key {', '.join(twice[:5])} given more than once, the last one counts")
        return found

    try:
        value = json.loads(
            text, object_pairs_hook=pairs, parse_constant=Unreadable, parse_int=_whole, parse_float=_fraction
        )
    except json.JSONDecodeError as error:
        found = f"expected JSON, found at column {error.colno}: {error.msg.lower()}"
        raise ParseError(found, origin=document.origin, line=error.lineno) from error
    except RecursionError as error:
        raise ParseError("expected JSON, found it nested too deeply", origin=document.origin) from error
    if len(warnings) > _MAX_WARNINGS:
        warnings[_MAX_WARNINGS:] = [f"{len(warnings) - _MAX_WARNINGS} more warnings of this kind"]
    return JsonText(value, tuple(warnings))


def _whole_surrogates(text: str, warnings: list[str]) -> str:
    """Return JSON text in which no escape names half a surrogate pair.

    Half a pair can be read, and then breaks whatever writes it: the database, the mail, the feed.
    """
    if not _SURROGATE_HINT.search(text):
        return text
    halves = 0

    def mend(match: re.Match[str]) -> str:
        nonlocal halves
        if match["half"] is None:
            return match[0]
        halves += 1
        return "\\ufffd"

    mended = _ESCAPE.sub(mend, text)
    if halves:
        warnings.append(f"{halves} lone surrogates replaced by U+FFFD")
    return mended


def _whole(digits: str) -> int | Unreadable:
    if len(digits) > 17:  # int() refuses more than 4,300 digits, and no field holds more than 2**53
        return Unreadable(f"a number of {len(digits.lstrip('-')):,} digits")
    return int(digits)


def _fraction(digits: str) -> float | Unreadable:
    found = float(digits)
    return found if math.isfinite(found) else Unreadable(f"the number {digits[:20]}")


def kind_of(value: object) -> str:
    """Return what a JSON value is, in words for a message: "text", "a list", "nothing"."""
    match value:
        case Unreadable():
            return value.spelling
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return f"the text {value[:60]!r}"
        case int() | float():
            return f"the number {value}"
        case list():
            return "a list"
        case _:
            return "an object"


def holds_unreadable(value: object) -> Unreadable | None:
    """Return the first unreadable value within a value, at any depth; None if all can be read."""
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, Unreadable):
            return found
        if isinstance(found, dict):
            waiting.extend(found.values())
        elif isinstance(found, list):
            waiting.extend(found)
    return None


def refuse_error(value: object, origin: str | None) -> None:
    """Raise ErrorPageError if the value is an API's error message, else do nothing.

    Messages are found as ``error``, ``message``, ``detail`` or ``reason`` of an object that has none of the keys under
    which APIs hand out papers.
    """
    if not isinstance(value, dict) or value.keys() & _PAPER_KEYS or value.get("status") == "ok":
        return
    for key in ("error", "message", "detail", "reason", "errors"):
        found = value.get(key)
        if isinstance(found, dict):
            found = found.get("message") or found.get("name")
        if isinstance(found, list) and found:
            found = dig(found[0], "message") or found[0]
        if isinstance(found, str) and found.strip():
            raise ErrorPageError(f"expected papers, found an API error: {one_line(found)[:200]}", origin=origin)


def dig(value: object, *keys: str) -> object:
    """Return what stands under the keys, one within the other; None where one of them is missing."""
    for key in keys:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def list_of(value: object) -> Sequence[object]:
    """Return the value if it is a list, else an empty one."""
    return value if isinstance(value, list) else ()


def text_of(value: object) -> str | None:
    """Return the value on one line; None if it is no text or an empty one."""
    return (one_line(value.strip()) or None) if isinstance(value, str) else None


def texts_of(values: Iterable[object]) -> tuple[str, ...]:
    """Return those values that are texts, folded, none twice."""
    return tuple(dict.fromkeys(text for value in values if (text := text_of(value))))


def names_of(values: Iterable[object]) -> tuple[str, ...]:
    """Return those values that are texts, folded; two people of one name are two people."""
    return tuple(text for value in values if (text := text_of(value)))


def date_of(value: object, seen_at: datetime | None = None) -> date | None:
    """Return the date that a text begins with.

    Args:
        value: "2026-10-19", with or without a time; a year alone, or a year and month, is no date.
        seen_at: when the document was fetched; None takes every year.

    Returns:
        The date; None if there is none, it is impossible, or lies in the far future.
    """
    match = _DATE.match(value.strip()) if isinstance(value, str) else None
    if match is None:
        return None
    try:
        found = date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        return None
    return found if is_plausible(found, seen_at) else None


def is_plausible(day: date, seen_at: datetime | None) -> bool:
    """Whether a paper can have been published on this day, as seen from the instant of fetching."""
    return day.year >= FIRST_YEAR and (seen_at is None or day <= (seen_at + FAR_AHEAD).date())


def instant_of(value: object, seen_at: datetime | None = None) -> datetime | None:
    """Return the instant that a text or a number of milliseconds names, UTC.

    Args:
        value: RFC 3339 text (without a zone: UTC), or milliseconds since 1970.
        seen_at: when the document was fetched; None takes every year.

    Returns:
        The instant; None if the value names none, or one in the far future.
    """
    try:
        if isinstance(value, str) and _DATE.match(value.strip()):
            parsed = datetime.fromisoformat(value.strip())
            found = (parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)).astimezone(UTC)
        elif isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            found = datetime.fromtimestamp(value / 1000, UTC)
        else:
            return None
    except (ValueError, OverflowError, OSError):
        return None
    return found if is_plausible(found.date(), seen_at) else None


def links_of(values: Iterable[object], base: str | None = None) -> tuple[str, ...]:
    """Return those values that are web addresses, absolute, in order, none twice."""
    return tuple(dict.fromkeys(_links(values, base)))


def _links(values: Iterable[object], base: str | None) -> Iterator[str]:
    for value in values:
        text = text_of(value)
        link = absolute_link(text, base) if text else None
        if link:
            yield link
