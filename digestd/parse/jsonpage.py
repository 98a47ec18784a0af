"""A JSON snapshot (schema ``digestd.snapshot/1``) to a page. Floor 1, pure.

Entry point: :func:`parse_snapshot`. The grammar is the table of keys in the README's "JSON snapshot"; a short sample:

    {"schema": "digestd.snapshot/1", "topic": "Reef Sound", "papers": [{"title": "Echo Caves", "date": "2026-10-20"}]}

An exporter writes this on purpose, so what does not keep the schema is refused with the path of the key
(``papers[3].title``), and unknown keys are left out with a warning. Only values that no field can hold (``NaN``, a
number of thousands of digits) cost their paper alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import TypeVar

from digestd.errors import ParseError
from digestd.model.paper import Paper, PaperId
from digestd.model.snapshot import Document, Order, Page, StatedMomentum
from digestd.model.topic import Vocabulary
from digestd.parse.charset import one_line
from digestd.parse.jsontext import (
    MAX_WHOLE,
    date_of,
    holds_unreadable,
    instant_of,
    kind_of,
    links_of,
    read_json,
    refuse_error,
)
from digestd.parse.links import arxiv_number, doi_of, normalise_url

SCHEMA = "digestd.snapshot/1"

_PAGE_KEYS = ("schema", "topic", "gloss", "origin", "order", "observed_at", "momentum", "total_papers", "papers")
_MOMENTUM_KEYS = (
    *("papers_last_four_weeks", "change_percent", "previous_papers", "share_percent", "share_below"),
    *("chart_from", "chart_to", "sentence"),
)
_PAPER_KEYS = (
    *("title", "title_raw", "date", "published_at", "categories", "abstract", "abstract_raw"),
    *("authors", "authors_more", "group", "affiliations", "affiliations_more"),
    *("topics", "topics_more", "topics_unparsed", "links", "ids", "version", "announce", "warnings"),
)
_ANNOUNCE = ("new", "cross", "replace", "replace-cross")
_MAX_NAMED = 10
_MAX_WARNINGS = 200
_SCHEME = re.compile(r"[a-z][a-z0-9_-]{0,29}", re.ASCII)
_T = TypeVar("_T", date, datetime)


@dataclass(frozen=True, slots=True)
class _Node:
    """One object of the document, where it stands, and where its warnings go."""

    value: dict[str, object]
    path: str  #: "papers[3]." or ""
    origin: str | None
    seen_at: datetime | None
    warnings: list[str] = field(default_factory=list)

    def fail(self, key: str, expected: str) -> ParseError:
        """Return the error that names the key, what was expected there and what was found."""
        found = kind_of(self.value[key]) if key in self.value else "no such key"
        return ParseError(f"{self.path}{key}: expected {expected}, found {found}", origin=self.origin)

    def text(self, key: str) -> str:
        """Return a required text, one line, not empty."""
        found = self.text_or_none(key)
        if found is None:
            raise self.fail(key, "a text that is not empty")
        return found

    def text_or_none(self, key: str) -> str | None:
        """Return a text on one line; None if it is null, missing or empty."""
        value = self.value.get(key)
        if value is None:
            return None
        if not isinstance(value, str):
            raise self.fail(key, "text or null")
        return one_line(value.strip()) or None

    def choice(self, key: str, choices: Collection[str]) -> str | None:
        """Return one of the choices; None if it is null or missing."""
        value = self.value.get(key)
        if value is not None and value not in choices:
            raise self.fail(key, f"one of {', '.join(choices)}")
        return value if isinstance(value, str) else None

    def whole_or_none(self, key: str, least: int = 0) -> int | None:
        """Return a whole number; None if it is null or missing."""
        value = self.value.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= MAX_WHOLE:
            raise self.fail(key, f"a whole number of at least {least}" if least > -MAX_WHOLE else "a whole number")
        return value

    def share_or_none(self, key: str) -> float | None:
        """Return a percentage of a whole; None if it is null or missing."""
        value = self.value.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 100:
            raise self.fail(key, "a number from 0 to 100 or null")
        return float(value)

    def flag(self, key: str) -> bool:
        """Return true or false; false if it is missing."""
        value = self.value.get(key, False)
        if not isinstance(value, bool):
            raise self.fail(key, "true or false")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        """Return a list of texts, the empty ones left out; empty if it is null or missing."""
        value = self.value.get(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise self.fail(key, "a list of texts")
        return tuple(folded for one in value if (folded := one_line(one.strip())))

    def date_or_none(self, key: str) -> date | None:
        """Return a date; None if it is null or missing, and with a warning if it is impossible or far off."""
        return self._moment(key, date_of, "a date like 2026-10-19")

    def instant_or_none(self, key: str) -> datetime | None:
        """Return an instant, UTC; None if it is null, missing or none, the latter with a warning."""
        return self._moment(key, _zoned_instant, "an instant like 2026-10-19T08:00:00Z")

    def _moment(self, key: str, read: Callable[[object, datetime | None], _T | None], expected: str) -> _T | None:
        value = self.text_or_none(key)
        found = read(value, self.seen_at)
        if value is not None and found is None:
            self.warnings.append(f"{self.path}{key}: expected {expected}, found {value[:60]!r}; left out")
        return found

    def leave_out_unknown(self, known: Collection[str]) -> None:
        """Warn of the keys that the schema does not have."""
        unknown = [key for key in self.value if key not in known]
        if unknown:
            names = ", ".join(f"{self.path}{one_line(key)[:60]}" for key in unknown[:5])
            more = f" and {len(unknown) - 5} more" if len(unknown) > 5 else ""
            self.warnings.append(f"unknown keys left out: {names}{more}")


def parse_snapshot(document: Document, vocabulary: Vocabulary) -> Page:  # noqa: ARG001  # the signature of all parsers
    """Return the page that a JSON snapshot spells out.

    Args:
        document: one JSON object of schema ``digestd.snapshot/1``.
        vocabulary: not needed, the labels stand apart.

    Returns:
        The page. A paper with a value that no field can hold is left out, with a warning, and the page is incomplete.

    Raises:
        ParseError: it is not JSON, not this schema, a required key is missing or a value has the wrong type (the
            message has the key's path), or none of its papers could be read.
    """
    read = read_json(document)
    if not isinstance(read.value, dict):
        found = f"expected an object of schema {SCHEMA}, found {kind_of(read.value)}"
        raise ParseError(found, origin=document.origin)
    if "schema" not in read.value:
        refuse_error(read.value, document.origin)
    page = _Node(read.value, "", document.origin, document.fetched_at, list(read.warnings))
    if page.value.get("schema") != SCHEMA:
        raise page.fail("schema", SCHEMA)
    page.leave_out_unknown(_PAGE_KEYS)
    order = Order(page.choice("order", [one.value for one in Order]) or Order.LISTING)
    # a feed has no topic of its own, and what digestd prints of one must come back in
    topic = page.text_or_none("topic") if order is Order.FEED and "topic" in page.value else page.text("topic")
    papers, skipped = _read_papers(page)
    return Page(
        topic=topic,
        papers=papers,
        order=order,
        gloss=page.text_or_none("gloss"),
        origin=page.text_or_none("origin") or document.origin,
        observed_at=page.instant_or_none("observed_at"),
        momentum=_read_momentum(page),
        total_papers=page.whole_or_none("total_papers"),
        incomplete=skipped > 0,
        format="snapshot",
        warnings=_bounded(page.warnings),
    )


def _bounded(warnings: list[str]) -> tuple[str, ...]:
    """Return the warnings, the many of an exporter that is wrong in every paper as a count."""
    more = len(warnings) - _MAX_WARNINGS
    return (*warnings[:_MAX_WARNINGS], *([f"{more} more warnings"] if more > 0 else []))


def _read_papers(page: _Node) -> tuple[tuple[Paper, ...], int]:
    """Return the papers that can be read, and how many can't."""
    values = page.value.get("papers")
    if not isinstance(values, list):
        raise page.fail("papers", "a list of papers")
    papers: list[Paper] = []
    skipped: list[str] = []
    for index, value in enumerate(values):
        path = f"papers[{index}]"
        if not isinstance(value, dict):
            raise ParseError(f"{path}: expected an object, found {kind_of(value)}", origin=page.origin)
        unreadable = holds_unreadable([value.get(key) for key in _PAPER_KEYS])
        if unreadable is not None:
            skipped.append(f"{path} holds {unreadable.spelling}")
            continue
        papers.append(_read_paper(_Node(value, f"{path}.", page.origin, page.seen_at, page.warnings)))
    if skipped and not papers:
        raise ParseError(f"expected papers, found none that can be read: {skipped[0]}", origin=page.origin)
    if skipped:
        named = "; ".join(skipped[:_MAX_NAMED])
        page.warnings.append(f"papers left out: {len(skipped)} of {len(values)} ({named})")
    return tuple(papers), len(skipped)


def _read_paper(paper: _Node) -> Paper:
    """Return one paper; ParseError names the key that does not keep the schema."""
    paper.leave_out_unknown(_PAPER_KEYS)
    title = paper.text("title")
    links = paper.texts("links")
    kept = links_of(links)
    if len(kept) < len(set(links)):
        paper.warnings.append(f"{paper.path}links: expected web addresses; {len(set(links)) - len(kept)} left out")
    return Paper(
        title=title,
        title_raw=paper.text_or_none("title_raw") or "",
        published=paper.date_or_none("date"),
        published_at=paper.instant_or_none("published_at"),
        categories=paper.texts("categories"),
        abstract=paper.text_or_none("abstract"),
        abstract_raw=paper.text_or_none("abstract_raw"),
        authors=paper.texts("authors"),
        authors_more=paper.whole_or_none("authors_more") or 0,
        group=paper.text_or_none("group"),
        affiliations=paper.texts("affiliations"),
        affiliations_more=paper.whole_or_none("affiliations_more") or 0,
        topics=paper.texts("topics"),
        topics_more=paper.whole_or_none("topics_more") or 0,
        topics_unparsed=paper.text_or_none("topics_unparsed"),
        links=kept,
        ids=tuple(_read_ids(paper)),
        version=paper.whole_or_none("version", 1),
        announce=paper.choice("announce", _ANNOUNCE),
        warnings=paper.texts("warnings"),
    )


def _read_ids(paper: _Node) -> Iterator[PaperId]:
    """Yield the ids of a paper, each in the spelling by which it is compared."""
    value = paper.value.get("ids")
    if value is None:
        return
    if not isinstance(value, dict):
        raise paper.fail("ids", "an object of ids")
    node = _Node(value, f"{paper.path}ids.", paper.origin, paper.seen_at, paper.warnings)
    for scheme, found in value.items():
        if not _SCHEME.fullmatch(scheme):
            node.warnings.append(f"{node.path}{one_line(scheme)[:60]}: expected a scheme like arxiv or doi; left out")
            continue
        # one id a scheme is text; a paper with two links may have two of "url"
        for text in node.texts(scheme) if isinstance(found, list) else filter(None, [node.text_or_none(scheme)]):
            spelling = _comparable(scheme, text)
            if spelling is None:
                node.warnings.append(
                    f"{node.path}{scheme}: expected an id of this scheme, found {text[:60]!r}; left out"
                )
            else:
                yield PaperId(scheme, spelling)


def _comparable(scheme: str, text: str) -> str | None:
    """Return an id as it is compared; None if the text is none of its scheme."""
    match scheme:
        case "arxiv":
            return arxiv_number(text)[0]
        case "doi":
            return doi_of(text)
        case "url":
            return normalise_url(text if "://" in text else f"https://{text}")
        case _:
            return text


def _read_momentum(page: _Node) -> StatedMomentum | None:
    """Return what the source states; None where it states nothing."""
    value = page.value.get("momentum")
    if value is None:
        return None
    if not isinstance(value, dict):
        raise page.fail("momentum", "an object or null")
    node = _Node(value, "momentum.", page.origin, page.seen_at, page.warnings)
    node.leave_out_unknown(_MOMENTUM_KEYS)
    papers = node.whole_or_none("papers_last_four_weeks")
    if papers is None:
        raise node.fail("papers_last_four_weeks", "a whole number of at least 0")
    return StatedMomentum(
        papers_last_four_weeks=papers,
        change_percent=node.whole_or_none("change_percent", -MAX_WHOLE),
        previous_papers=node.whole_or_none("previous_papers"),
        share_percent=node.share_or_none("share_percent"),
        share_below=node.flag("share_below"),
        chart_from=node.date_or_none("chart_from"),
        chart_to=node.date_or_none("chart_to"),
        sentence=node.text_or_none("sentence") or "",
    )


def _zoned_instant(value: object, seen_at: datetime | None) -> datetime | None:
    """Return the instant of a text that has a zone; None otherwise."""
    try:
        zoned = isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        return None
    found = instant_of(value, seen_at) if zoned else None
    return found.astimezone(UTC) if found else None
