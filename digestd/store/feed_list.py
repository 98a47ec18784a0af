"""Feeds that were imported from a list, as a repository over an engine. Floor 3. Entry point: :class:`SqlFeedList`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime

from digestd.model.opml import ListedFeed, Outlines
from digestd.outlines import flat_list, nest
from digestd.store.engine import Engine
from digestd.store.rows import instant


class SqlFeedList:
    """A list of feeds in a database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def read(self) -> Outlines:
        """Return the list, as it was imported."""
        rows = self._engine.query("SELECT folder, title, url, home FROM listed_feed ORDER BY place")
        return nest(ListedFeed(tuple(json.loads(row["folder"])), row["title"], row["url"], row["home"]) for row in rows)

    def topics(self) -> Mapping[str, str]:
        """Return the topic of each feed by its address: the title under which it came first, and for ever."""
        rows = self._engine.query("SELECT url, topic FROM listed_feed WHERE url <> '' ORDER BY place DESC")
        return {row["url"]: row["topic"] for row in rows}

    def write(self, outlines: Outlines, *, now: datetime) -> None:
        """Keep a list in place of what was kept before; feeds that stay keep when they came, and their topic."""
        with self._engine.transaction():
            before = self._engine.query("SELECT url, folder, added_at FROM listed_feed")
            topics = self.topics()
            added = {(row["url"], row["folder"]): row["added_at"] for row in before}
            self._engine.query("DELETE FROM listed_feed")
            rows = [(place, json.dumps(feed.folder), feed) for place, feed in enumerate(flat_list(outlines))]
            self._engine.many(
                """INSERT INTO listed_feed (place, folder, url, title, home, added_at, topic)
                VALUES (:place, :folder, :url, :title, :home, :added_at, :topic)""",
                [
                    {
                        "place": place,
                        "folder": folder,
                        "url": feed.url,
                        "title": feed.title,
                        "home": feed.home,
                        "topic": topics.get(feed.url, feed.title),
                        "added_at": added.get((feed.url, folder), instant(now)),
                    }
                    for place, folder, feed in rows
                ],
            )
