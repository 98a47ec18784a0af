"""Histories of any size, made through the store in bulk: nothing is parsed or matched, so a million papers take minutes."""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path

from bench.corpus import NEWEST, MadePaper, make_paper, read_words
from digestd.identity import paper_ids
from digestd.model.paper import Paper
from digestd.model.snapshot import Kind, Order, Page, PaperIntent, Sighting, SnapshotDiff, SnapshotMeta
from digestd.model.topic import Topic
from digestd.store import open_store

#: papers in one snapshot of the bulk
_AT_ONCE = 1_000
_TOPICS = 100
#: papers that such a history gains a day
_A_DAY = 500
_FIRST = 10_000_000


def make_history(path: Path, papers: int) -> None:
    """Write a history of this many papers in a hundred topics; what is there already is kept."""
    if path.exists():
        return
    store = open_store(path)
    for number, first in enumerate(range(0, papers, _AT_ONCE)):
        slug = f"bulk-{number % _TOPICS}"
        found = [to_paper(make_paper(_FIRST + place), place) for place in range(first, min(first + _AT_ONCE, papers))]
        intents = [
            PaperIntent(place, paper, paper_ids(paper), changed=True, record=paper) for place, paper in enumerate(found)
        ]
        diff = SnapshotDiff(
            papers=tuple(intents),
            sightings=tuple(Sighting(place, slug, Kind.BASELINE) for place in range(len(intents))),
            first=number < _TOPICS,
        )
        page = Page(topic=None, papers=tuple(found), order=Order.FEED, title=slug, format="feed")
        at = NEWEST - timedelta(hours=1)
        with store.transaction():
            store.history.put_topic(Topic(slug, f"Bulk {number % _TOPICS}"), now=at)
            store.history.record(SnapshotMeta(slug, f"feed:{slug}", f"{number}", f"{number}", at, at), page, diff)
    store.engine.query("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()


def to_paper(made: MadePaper, number: int) -> Paper:
    """Return a made-up paper as a parser would give it, by authors of its own, on one of the days of so large a history.

    The corpus has a few hundred names, all of the same months: in a large history each would be the first author of
    hundreds of papers a week, which nobody is.
    """
    chance = random.Random(number)
    names = read_words().names
    people = (f"{chance.choice(names).split()[0]} {chance.choice(names).split()[-1]}" for _ in made.authors)
    at = made.published_at - timedelta(days=number // _A_DAY)
    return Paper(
        title=made.title,
        abstract=made.abstract,
        authors=tuple(people),
        affiliations=made.places,
        categories=made.categories,
        links=(made.url,),
        published=at.date(),
        published_at=at,
    )
