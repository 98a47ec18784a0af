"""What makes two pages the same content? Floor 1, pure.

Entry points: :func:`page_hash`, :func:`paper_hash` (its part for one paper) and :func:`batch_hash`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256

from digestd.identity import first_author, title_id
from digestd.model.paper import Paper
from digestd.model.snapshot import Order, Page


def page_hash(page: Page, unread: Sequence[str] = ()) -> str:
    """Return a hash of what a page says.

    Line ends, a byte order mark, the file's name and the time of fetching do not count, nor how far its tag lines could be
    cut; in a feed the order of the papers does not either.

    Args:
        page: parsed.
        unread: of a feed, the hashes (:func:`paper_hash`) of the papers that it shows besides; the hash is that of the
            page with all of them.
    """
    papers: Sequence[object] = [_paper(paper) for paper in page.papers]
    if page.order is Order.FEED:
        papers = sorted([*map(paper_hash, page.papers), *unread])
    momentum = page.momentum
    content = [
        1,  # the version of this list: a new field must not make every old page look changed
        page.topic or page.title,
        str(page.order),
        momentum and [momentum.sentence, momentum.papers_last_four_weeks, momentum.change_percent, momentum.weekly],
        momentum and [str(momentum.chart_from), str(momentum.chart_to)],
        page.total_papers,
        page.incomplete,
        papers,
    ]
    text = json.dumps(content, ensure_ascii=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()


def paper_hash(paper: Paper) -> str:
    """Return a hash of what a page says of one paper."""
    text = json.dumps(_paper(paper), ensure_ascii=True, separators=(",", ":"))
    return sha256(text.encode()).hexdigest()


def batch_hash(page: Page, unread: Sequence[str] = ()) -> str | None:
    """Return a hash of which papers a page shows, whatever their order and the page's own dates; None if it shows none.

    Args:
        page: parsed.
        unread: of a feed, the names (:func:`title_name`) of the papers that it shows besides.
    """
    names = sorted({*map(title_name, page.papers), *unread})
    return sha256("|".join(names).encode()).hexdigest() if names else None


def title_name(paper: Paper) -> str:
    """Return the name of a paper by its title and first author."""
    return title_id(paper.title, first_author(paper)).value


def _paper(paper: Paper) -> list[object]:
    return [
        paper.title_raw or paper.title,
        str(paper.published_at or paper.published),
        paper.categories,
        paper.abstract_raw or paper.abstract,
        [paper.authors, paper.authors_more, paper.group],
        [paper.affiliations, paper.affiliations_more],
        [" ".join(paper.topics) or paper.topics_unparsed, paper.topics_more],
        paper.links,
        [str(name) for name in paper.ids],
        [paper.version, paper.announce, paper.withdrawn],
    ]
