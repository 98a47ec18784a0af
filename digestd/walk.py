"""The pages of a listing that were fetched one after the other. Floor 1, pure.

Entry points: :func:`join_pages`, which makes one page of those that follow each other without a hole, and
:func:`reaches_known`, which says when a walk down a listing may end.

    page 1   p9 p8 p7      fetched at 06:00:00, total 40
    page 2   p7 p6 p5      fetched at 06:00:03, total 41: a paper came in between and pushed p7 down
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from digestd.coverage import top_stretch
from digestd.matching import intent_keys, match_page
from digestd.model.paper import Paper
from digestd.model.snapshot import Known, Page


def join_pages(pages: Sequence[Page]) -> tuple[Page, ...]:
    """Return the pages of one walk with those joined that follow each other without a hole, in the order given.

    Two pages follow each other if they share a paper, or if the listing's total stood still between them: what is added
    above pushes papers down onto the next page, where they are seen again, and what is taken away lowers the total. A page
    that was cut at its end is followed by nothing.

    Args:
        pages: of one listing, page 1 first, may be empty.
    """
    joined: list[Page] = []
    for page in pages:
        if joined and _follows(joined[-1], page):
            joined[-1] = _join(joined[-1], page)
        else:
            joined.append(page)
    return tuple(joined)


def adds_nothing(pages: Sequence[Page], page: Page) -> bool:
    """Whether a page shows no paper that the pages before it did not: the listing has ended, or knows no pages."""
    return not _unseen(page.papers, [paper for earlier in pages for paper in earlier.papers])


def reaches_end(pages: Sequence[Page]) -> bool:
    """Whether the pages show as many papers as the listing says that it has."""
    total = next((page.total_papers for page in reversed(pages) if page.total_papers is not None), None)
    return total is not None and sum(len(page.papers) for page in join_pages(pages)) >= total


def reaches_known(page: Page, known: Known, *, below_top: bool = False) -> bool:
    """Whether a page shows a paper that a page of its topic's listing showed before.

    Args:
        page: of a listing.
        known: what the history knows of its topic and papers.
        below_top: the newest stretch does not count: the walk that made it broke off, and what lies below it is wanted.
    """
    top = top_stretch(known.topic.stretches)
    passed = top.key if below_top and top is not None else None
    listed = dict(known.topic.stretch_of)
    intents = match_page(page, known.papers, rewords=lambda _old, _new: False)
    found = {listed[key] for intent in intents for key in intent_keys(intent) if key in listed}
    return bool(found - {passed})


def _follows(upper: Page, lower: Page) -> bool:
    if upper.incomplete or upper.topic != lower.topic:
        return False
    shared = len(_unseen(lower.papers, upper.papers)) < len(lower.papers)
    return shared or upper.total_papers == lower.total_papers


def _join(upper: Page, lower: Page) -> Page:
    """Return both as one page; a paper that both show stands where it stood first."""
    return replace(
        upper,
        papers=(*upper.papers, *_unseen(lower.papers, upper.papers)),
        total_papers=lower.total_papers if lower.total_papers is not None else upper.total_papers,
        incomplete=lower.incomplete,
        warnings=(*upper.warnings, *lower.warnings),
    )


def _unseen(papers: Sequence[Paper], before: Sequence[Paper]) -> list[Paper]:
    """Return the papers that do not stand among those before, to the letter.

    Pages of one walk are minutes apart at most, so the same paper reads the same. What only resembles another stays, and is
    told apart by the rules of identity.
    """
    shown = {_text(paper) for paper in before}
    return [paper for paper in papers if _text(paper) not in shown]


def _text(paper: Paper) -> Paper:
    return replace(paper, warnings=())
