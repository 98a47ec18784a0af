"""A corpus of made-up papers as topic pages and feeds: words of the sample pages, recombined by a seeded generator.

Entry points: :func:`write_pages` and :func:`write_feeds`. The same arguments write the same bytes.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from xml.sax.saxutils import escape

SEEDS = Path(__file__).resolve().parents[1] / "seeds"
NEWEST = datetime(2026, 9, 28, tzinfo=UTC)
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
CATEGORIES = ("cs.AI", "cs.CL", "cs.LG", "cs.SE", "cs.CV", "cs.RO")
PER_PAGE = 30

_HEAD = re.compile(rf"^(?:{'|'.join(MONTHS)}) \d{{1,2}}, \d{{4}}[a-z]")
_MORE = re.compile(r" \+\d+$")


@dataclass(frozen=True, slots=True)
class Words:
    """What papers are made of."""

    sentences: tuple[str, ...]
    titles: tuple[str, ...]
    names: tuple[str, ...]
    places: tuple[str, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MadePaper:
    """A made-up paper."""

    url: str
    title: str
    abstract: str
    authors: tuple[str, ...]
    places: tuple[str, ...]
    categories: tuple[str, ...]
    labels: tuple[str, ...]
    published_at: datetime


@cache
def read_words() -> Words:
    """Return the words of the sample pages."""
    sentences: list[str] = []
    titles: list[str] = []
    names: set[str] = set()
    places: set[str] = set()
    for path in sorted(SEEDS.glob("*.txt")):
        lines = path.read_text(encoding="utf-8").split("\n")
        starts = [number for number, line in enumerate(lines) if _HEAD.match(line)]
        for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
            block = [line for line in lines[start + 1 : end] if line.strip()]
            if len(block) < 5:
                continue
            titles.append(block[0])
            for line in block[1:-3]:
                sentences += [part for part in re.split(r"(?<=[.!?]) ", line) if 40 < len(part) < 400]
            names.update(name.strip() for name in _MORE.sub("", block[-3]).split(",") if 2 < len(name) < 40)
            places.update(place.strip() for place in _MORE.sub("", block[-2]).split("·") if 2 < len(place) < 90)
    labels = (SEEDS.parent / "config" / "labels.txt").read_text(encoding="utf-8").split("\n")
    return Words(
        tuple(sentences), tuple(titles), tuple(sorted(names)), tuple(sorted(places)), tuple(filter(None, labels))
    )


def make_paper(number: int) -> MadePaper:
    """Return the paper of this number, the same each time; its abstract has about 1,300 characters."""
    words = read_words()
    chance = random.Random(number * 7919 + 17)
    wanted, said, length = chance.gauss(1300, 220), [], 0
    while length < wanted:
        sentence = chance.choice(words.sentences)
        said.append(sentence)
        length += len(sentence) + 1
    one, two = chance.choice(words.titles).split(), chance.choice(words.titles).split()
    title = " ".join(one[: len(one) // 2 + 1] + two[len(two) // 2 :])
    return MadePaper(
        url=f"https://papers.example.org/abs/{2600 + number // 100_000}.{number % 100_000:05d}v1",
        title=f"{title} {number}",
        abstract=" ".join(said),
        authors=tuple(chance.sample(words.names, min(len(words.names), chance.randint(2, 6)))),
        places=tuple(chance.sample(words.places, min(len(words.places), 2))),
        categories=tuple(chance.sample(CATEGORIES, 2)),
        labels=tuple(chance.sample(words.labels, 2)),
        published_at=NEWEST - timedelta(minutes=chance.randrange(120 * 24 * 60)),
    )


def page_text(number: int, papers: Iterable[MadePaper]) -> str:
    """Return a topic page of these papers, newest first."""
    shown = sorted(papers, key=lambda paper: paper.published_at, reverse=True)
    topic = read_words().labels[number % len(read_words().labels)]
    blocks = [
        topic,
        "Follow this topic Ask about this topic",
        "Momentum",
        "54 papers in the last four weeks, up 145% on the four weeks before. 0.5% of all new papers.",
        "Jul 13Week of Sep 28",
        f"Latest papers {len(shown)}",
    ]
    for paper in shown:
        day = paper.published_at
        blocks += [
            f"{MONTHS[day.month - 1]} {day.day}, {day.year}{paper.categories[0]}",
            paper.title,
            paper.abstract,
            f"{', '.join(paper.authors[:3])} +2",
            " · ".join(paper.places),
            " ".join(dict.fromkeys((topic, *paper.labels))),
        ]
    return "\n\n".join(blocks) + "\n"


def rss_text(number: int, papers: Iterable[MadePaper]) -> str:
    """Return an RSS 2.0 feed of these papers."""
    home = f"https://papers.example.org/t/{number}"
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>\n<rss version="2.0" xmlns:dc="http://purl.org/dc/elements/1.1/"><channel>'
        f"<title>Topic {number}</title><link>{home}</link><description>New papers in topic {number}</description>"
    ]
    parts += [
        f'<item><title>{escape(paper.title)}</title><link>{paper.url}</link><guid isPermaLink="true">{paper.url}</guid>'
        f"<dc:creator>{escape(', '.join(paper.authors))}</dc:creator>"
        f"<pubDate>{paper.published_at:%a, %d %b %Y %H:%M:%S} +0000</pubDate>"
        + "".join(f"<category>{category}</category>" for category in paper.categories)
        + f"<description>{escape(f'<p>{escape(paper.abstract)}</p>')}</description></item>"
        for paper in papers
    ]
    return "\n".join(parts) + "</channel></rss>\n"


def atom_text(number: int, papers: Iterable[MadePaper]) -> str:
    """Return an Atom feed of these papers."""
    home = f"https://papers.example.org/t/{number}"
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom">'
        f"<id>{home}</id><title>Topic {number}</title><updated>{NEWEST:%Y-%m-%dT%H:%M:%SZ}</updated>"
        f'<link href="{home}"/>'
    ]
    parts += [
        f'<entry><id>{paper.url}</id><title>{escape(paper.title)}</title><link href="{paper.url}"/>'
        f"<updated>{paper.published_at:%Y-%m-%dT%H:%M:%SZ}</updated>"
        f"<published>{paper.published_at:%Y-%m-%dT%H:%M:%SZ}</published>"
        + "".join(f"<author><name>{escape(author)}</name></author>" for author in paper.authors)
        + "".join(f'<category term="{category}"/>' for category in paper.categories)
        + f'<summary type="html">{escape(f"<p>{escape(paper.abstract)}</p>")}</summary></entry>'
        for paper in papers
    ]
    return "\n".join(parts) + "</feed>\n"


def write_pages(folder: Path, *, pages: int, first: int = 50_000_000) -> Sequence[Path]:
    """Write topic pages of 30 papers each and return their paths; what is there already is kept."""
    written = []
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(pages):
        path = folder / f"page-{number:05d}.txt"
        if not path.exists():
            papers = [make_paper(first + number * PER_PAGE + place) for place in range(PER_PAGE)]
            path.write_text(page_text(number, papers), encoding="utf-8")
        written.append(path)
    return written


def write_feeds(folder: Path, *, feeds: int, entries: int = 100, fresh: int = 0) -> Sequence[Path]:
    """Write feeds, RSS 2.0 and Atom in turn, and return their paths; what is there already is kept.

    Args:
        folder: made if it is missing.
        feeds: how many.
        entries: papers in each.
        fresh: how many new papers each has on top of those of a corpus with ``fresh=0``, in place of its oldest.
    """
    written = []
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(feeds):
        path = folder / f"feed-{number:05d}.xml"
        if not path.exists():
            numbers = [number * entries + place for place in range(entries)]
            news = [40_000_000 + number * fresh + place for place in range(fresh)]
            papers = [make_paper(n) for n in news + numbers[: entries - fresh]]
            path.write_text((rss_text, atom_text)[number % 2](number, papers), encoding="utf-8")
        written.append(path)
    return written
