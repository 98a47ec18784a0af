"""The bytes that a world's sources send: text listings, feeds, JSON files, and what goes wrong with them.

Written for the worlds and for nothing else: it shares no code with the package.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from html import escape

from tests.world.plan import LABELS_SHOWN, Plan, WorldPaper

PAGE = 30
FEED = 100
ERROR_PAGE = b"<html><head><title>502 Bad Gateway</title></head><body><h1>502 Bad Gateway</h1></body></html>\n"
_PLACE = "Harbour University"

#: names by which a record can be found again; see the oracle
Names = frozenset[str]


@dataclass(frozen=True)
class Item:
    """A paper as one document shows it."""

    number: int
    version: int
    names: Names
    labels: tuple[str, ...] = ()  #: further topics that the document files it under
    announce: str = "new"
    sure: bool = True  #: False: cut in the middle, perhaps read and perhaps not


@dataclass(frozen=True)
class Shown:
    """What a document shows, for the oracle."""

    topic: str
    source: str
    order: str  #: listing or feed
    items: tuple[Item, ...]
    when: datetime  #: as of which instant
    total: int | None = None
    cut: bool = False
    stated: tuple[int, int] | None = None  #: papers of the last four weeks and of those before


@dataclass(frozen=True)
class Answer:
    """What a source sends: bytes, or no answer at all, and what can be read in them."""

    body: bytes | None
    media_type: str
    shown: Shown | None  #: None: nothing that a reader could take in


def title_of(paper: WorldPaper, version: int) -> str:
    """Return the title as people read it."""
    return paper.versions[version].title


def four_weeks(plan: Plan, topic: str, when: datetime) -> tuple[int, int]:
    """Return how many papers of a topic are of the last four weeks, and of the four before."""
    day = when.date()
    ages = [(day - paper.published).days for paper in plan.listed(topic, when)]
    return sum(0 <= age < 28 for age in ages), sum(28 <= age < 56 for age in ages)


def momentum_line(current: int, previous: int) -> str:
    """Return the line of a listing that says how its topic moves."""
    count = f"{current or 'No'} {'paper' if current == 1 else 'papers'} in the last four weeks"
    if previous == 0:
        change = "up from none" if current else "none in the four weeks before"
    else:
        percent = round(100 * (current - previous) / previous)
        change = f"up {percent}%" if percent > 0 else f"down {-percent}%" if percent < 0 else "unchanged"
        change += " on the four weeks before"
    return f"{count}, {change}. 0.1% of all new papers."


def listing_answer(plan: Plan, topic: str, page: int, when: datetime, trouble: str) -> Answer:
    """Return one page of a topic's listing as it stands at an instant."""
    papers = plan.listed(topic, when)
    part = papers[PAGE * (page - 1) : PAGE * page]
    if trouble == "shuffled" and len(part) > 6:
        part[3], part[4] = part[4], part[3]
    if not part and page > 1:
        return Answer(None, "", None)
    stated = four_weeks(plan, topic, when)
    week = when.date() - timedelta(days=when.date().weekday())
    first = week - timedelta(weeks=11)
    head = [
        topic,
        "Follow this topic Ask about this topic",
        "Momentum",
        momentum_line(*stated),
        f"{first:%b} {first.day}Week of {week:%b} {week.day}",
        f"Latest papers {len(papers)}",
    ]
    blocks = [_block(topic, paper, when) for paper in part]
    text = "\n\n".join(head + blocks) + "\n"
    items = tuple(_listed_item(topic, paper, when) for paper in part)
    cut = False
    if trouble.startswith("cut") and len(part) > 2:
        body = text.encode()
        keep = len(body) * (20 + int(trouble[3:]) % 75) // 100
        body, items, cut = _cut(body, keep, head, blocks, items)
        if not items:
            return Answer(body, "text/plain; charset=utf-8", None)
        text = body.decode(errors="ignore")
        shown = Shown(topic, "listing", "listing", items, when, len(papers), cut, stated)
        return Answer(body, "text/plain; charset=utf-8", shown)
    shown = Shown(topic, "listing", "listing", items, when, len(papers), cut, stated)
    return Answer(text.encode(), "text/plain; charset=utf-8", shown)


def _cut(
    body: bytes, keep: int, head: Sequence[str], blocks: Sequence[str], items: Sequence[Item]
) -> tuple[bytes, tuple[Item, ...], bool]:
    """Return a page cut after so many bytes, and what is left of its papers; the one that is cut is not sure."""
    at = len("\n\n".join(head).encode())
    left: list[Item] = []
    for block, item in zip(blocks, items, strict=True):
        end = at + 2 + len(block.encode())
        if end + 2 <= keep:
            left.append(item)
        elif at + 2 < keep:
            left.append(Item(item.number, item.version, item.names, item.labels, item.announce, sure=False))
        at = end
    return body[:keep], tuple(left) if any(one.sure for one in left) else (), len(left) < len(items) or keep < len(body)


def _block(topic: str, paper: WorldPaper, when: datetime) -> str:
    said = paper.versions[paper.version(when)]
    labels = _shown_labels(topic, paper, when)
    more = len(paper.labels(when)) - len(labels)
    people = ", ".join(paper.authors) + (f" +{paper.authors_more}" if paper.authors_more else "")
    day = paper.published
    return "\n\n".join(
        [
            f"{day:%b} {day.day}, {day.year}{paper.category}",
            said.title.replace("%", "\\%"),
            said.abstract.replace("%", "\\%"),
            people,
            _PLACE,
            " ".join(labels) + (f"+{more}" if more else ""),
        ]
    )


def _shown_labels(topic: str, paper: WorldPaper, when: datetime) -> list[str]:
    labels = list(paper.labels(when))
    shown = labels[:LABELS_SHOWN]
    return shown if topic in shown else [topic, *shown[: LABELS_SHOWN - 1]]


def _listed_item(topic: str, paper: WorldPaper, when: datetime) -> Item:
    version = paper.version(when)
    further = tuple(label for label in _shown_labels(topic, paper, when) if label != topic)
    return Item(paper.number, version, frozenset({_print(paper, version)}), further)


def _print(paper: WorldPaper, version: int) -> str:
    return f"title:{paper.versions[version].title}|{paper.authors[0]}"


def feed_answer(plan: Plan, topic: str, source: str, when: datetime, trouble: str) -> Answer:
    """Return a topic's feed: the last hundred papers, or what one day announced."""
    since = when - timedelta(days=1) if source == "daily" else datetime.min.replace(tzinfo=UTC)
    rows = []
    for paper in plan.papers:
        entered = paper.entered(topic, when)
        if entered is None:
            continue
        revised = paper.versions[paper.version(when)].since
        if entered > since and source == "last100":
            rows.append((entered, paper, "new"))
        elif entered > since:
            rows.append((entered, paper, "cross" if paper.crossed else "new"))
        elif source == "daily" and revised > since:
            rows.append((revised, paper, "replace"))
    rows.sort(key=lambda row: (row[0], row[1].number), reverse=True)
    rows = rows[:FEED]
    items = tuple(_feed_item(plan, topic, source, row[1], when, row[2]) for row in rows)
    if trouble == "empty":
        rows, items = [], ()
    entries = [_entry(plan, topic, source, paper, when, kind) for _, paper, kind in rows]
    body = _rss(topic, when, entries).encode()
    shown = Shown(topic, source, "feed", items, when)
    if trouble.startswith("cut"):
        return _cut_feed(body, entries, shown, len(body) * (20 + int(trouble[3:]) % 75) // 100)
    return Answer(body, "application/rss+xml", shown)


def _cut_feed(body: bytes, entries: Sequence[str], shown: Shown, keep: int) -> Answer:
    """Return a feed that breaks off after so many bytes: what is whole can be read."""
    left = []
    for entry, item in zip(entries, shown.items, strict=True):
        at = body.index(entry.encode())
        if at + len(entry.encode()) <= keep:
            left.append(item)
        elif at < keep:
            left.append(replace(item, sure=False))
    if not any(one.sure for one in left):
        return Answer(None, "", None)
    return Answer(body[:keep], "application/rss+xml", replace(shown, items=tuple(left), cut=True))


def _feed_title(title: str, source: str) -> str:
    """Return a title as a feed has it: one feed writes in capitals, which changes nothing of what it is."""
    return title.upper() if source == "last100" else title


def _link(plan: Plan, topic: str, source: str, paper: WorldPaper, when: datetime) -> str:
    moved = plan.topic(topic).https_since
    version = paper.version(when) + 1
    if source == "daily":
        return f"https://arxiv.org/abs/{paper.arxiv}v{version}"
    if moved is not None and when >= moved:
        return f"https://www.press.example/p/{paper.number}/?utm_source=feed"
    return f"http://press.example/p/{paper.number}"


def _feed_item(plan: Plan, topic: str, source: str, paper: WorldPaper, when: datetime, kind: str) -> Item:
    version = paper.version(when)
    name = f"arxiv:{paper.arxiv}" if source == "daily" else f"url:{paper.number}"
    return Item(paper.number, version, frozenset({_print(paper, version), name}), (), kind)


def _entry(plan: Plan, topic: str, source: str, paper: WorldPaper, when: datetime, kind: str) -> str:
    said = paper.versions[paper.version(when)]
    link = _link(plan, topic, source, paper, when)
    stamp = datetime(paper.published.year, paper.published.month, paper.published.day, tzinfo=UTC)
    parts = [f"<title>{escape(_feed_title(said.title, source))}</title>", f"<link>{escape(link)}</link>"]
    if source == "daily":
        parts.append(
            f'<guid isPermaLink="false">oai:arXiv.org:{paper.arxiv}v{paper.version(when) + 1}</guid>'
            f"<arxiv:announce_type>{kind}</arxiv:announce_type>"
            f"<description>arXiv:{paper.arxiv}v{paper.version(when) + 1} Announce Type: {kind} \n"
            f"Abstract: {escape(said.abstract)}</description>"
        )
    else:
        parts.append(f"<description>{escape(said.abstract)}</description>")
    parts.append(f"<dc:creator>{escape(', '.join(paper.authors))}</dc:creator><category>{paper.category}</category>")
    parts.append(f"<pubDate>{stamp:%a, %d %b %Y} 00:00:00 +0000</pubDate>")
    return f"<item>{''.join(parts)}</item>"


def _rss(topic: str, when: datetime, entries: Sequence[str]) -> str:
    spaces = 'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:arxiv="http://arxiv.org/schemas/atom"'
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>\n<rss version="2.0" {spaces}><channel><title>{escape(topic)}</title>'
        f"<link>https://press.example/</link><lastBuildDate>{when:%a, %d %b %Y %H:%M:%S} +0000</lastBuildDate>\n"
        + "\n".join(entries)
        + "</channel></rss>\n"
    )


def json_answer(plan: Plan, topic: str, order: str, count: int, when: datetime) -> Answer:
    """Return a JSON file of a topic: its newest papers, as a listing's page or as an unordered list, with ids."""
    papers = plan.listed(topic, when)[: count if order == "feed" else PAGE]
    total = len(plan.listed(topic, when))
    rows, items = [], []
    for paper in papers:
        version = paper.version(when)
        said, ids = paper.versions[version], {"arxiv": paper.arxiv}
        names = {_print(paper, version), f"arxiv:{paper.arxiv}"}
        if paper.doi is not None and paper.doi_since is not None and when >= paper.doi_since:
            ids["doi"] = paper.doi
            names.add(f"doi:{paper.doi}")
        labels = paper.labels(when)
        rows.append(
            {
                "title": said.title,
                "date": paper.published.isoformat(),
                "categories": [paper.category],
                "abstract": said.abstract,
                "authors": list(paper.authors),
                "authors_more": paper.authors_more,
                "affiliations": [_PLACE],
                "topics": list(labels),
                "ids": ids,
                "version": version + 1,
            }
        )
        further = tuple(label for label in labels if label != topic)
        items.append(Item(paper.number, version, frozenset(names), further))
    document = {
        "schema": "digestd.snapshot/1",
        "topic": topic,
        "order": order,
        "observed_at": when.isoformat(),
        "total_papers": total if order == "listing" else None,
        "papers": rows,
    }
    source = "listing" if order == "listing" else "json"
    shown = Shown(topic, source, order, tuple(items), when, total if order == "listing" else None)
    return Answer(json.dumps(document).encode(), "application/json", shown)
