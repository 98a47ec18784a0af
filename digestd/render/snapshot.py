"""A page as a JSON snapshot (schema ``digestd.snapshot/1``), what ``digestd parse --json`` prints. Floor 1, pure.

Entry point: :func:`page_json`. What it gives, ``parse/jsonpage.py`` reads back: the same page, field for field.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime

from digestd.model.paper import Paper, PaperId
from digestd.model.snapshot import Page, StatedMomentum
from digestd.parse.jsonpage import SCHEMA


def page_json(page: Page) -> dict[str, object]:
    """Return the page as the object that the schema describes, keys in the schema's order.

    Returns:
        Only texts, numbers, lists and objects, ready for ``json.dumps``. ``topic`` is null for a feed that names none.
    """
    return {
        "schema": SCHEMA,
        "topic": page.topic,
        "gloss": page.gloss,
        "origin": page.origin,
        "order": page.order.value,
        "observed_at": _instant(page.observed_at),
        "momentum": _momentum(page.momentum) if page.momentum else None,
        "total_papers": page.total_papers,
        "papers": [paper_json(paper) for paper in page.papers],
    }


def paper_json(paper: Paper) -> dict[str, object]:
    """Return one paper as the object that the schema describes."""
    return {
        "title": paper.title,
        "title_raw": paper.title_raw or paper.title,
        "date": _date(paper.published),
        "published_at": _instant(paper.published_at),
        "categories": list(paper.categories),
        "abstract": paper.abstract,
        "abstract_raw": paper.abstract_raw,
        "authors": list(paper.authors),
        "authors_more": paper.authors_more,
        "group": paper.group,
        "affiliations": list(paper.affiliations),
        "affiliations_more": paper.affiliations_more,
        "topics": list(paper.topics),
        "topics_more": paper.topics_more,
        "topics_unparsed": paper.topics_unparsed,
        "links": list(paper.links),
        "ids": _ids(paper.ids),
        "version": paper.version,
        "announce": paper.announce,
        "warnings": list(paper.warnings),
    }


def _momentum(momentum: StatedMomentum) -> dict[str, object]:
    """Return the stated momentum as an object."""
    return {
        "papers_last_four_weeks": momentum.papers_last_four_weeks,
        "change_percent": momentum.change_percent,
        "previous_papers": momentum.previous_papers,
        "share_percent": momentum.share_percent,
        "share_below": momentum.share_below,
        "chart_from": _date(momentum.chart_from),
        "chart_to": _date(momentum.chart_to),
        "sentence": momentum.sentence,
    }


def _ids(ids: Sequence[PaperId]) -> dict[str, object]:
    """Return the ids by scheme: text where there is one of a scheme, a list where there are several."""
    by_scheme: dict[str, list[str]] = {}
    for one in ids:
        by_scheme.setdefault(one.scheme, []).append(one.value)
    return {scheme: values[0] if len(values) == 1 else values for scheme, values in by_scheme.items()}


def _date(day: date | None) -> str | None:
    return day.isoformat() if day else None


def _instant(moment: datetime | None) -> str | None:
    """Return the instant as RFC 3339 text, UTC; fractions of a second only where there are any."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z") if moment else None
