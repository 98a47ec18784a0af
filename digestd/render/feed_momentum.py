"""A feed with one entry for each turn of a topic. Floor 1. Entry point: ``momentum_feed``."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from datetime import datetime

from digestd.headline import headline
from digestd.model.feed import Feed, FeedEntry, FeedPlace, FeedSite
from digestd.model.topic import Topic
from digestd.model.turn import Turn
from digestd.phrases import full_day
from digestd.render.feed import tag_uri
from digestd.render.feed_xml import web_url
from digestd.turns import turn_lines, turn_title


def momentum_feed(
    turns: Sequence[Turn],
    topics: Mapping[str, Topic],
    *,
    site: FeedSite,
    place: FeedPlace,
    changed_at: datetime,
    base_url: str | None = None,
) -> Feed:
    """Return the feed of topics that start to rise or to cool.

    An entry is written of what a turn keeps, so it never changes afterwards.

    Args:
        turns: in the order in which they are to be written, may be empty; for ``split_feed``, oldest first.
        topics: by slug; a turn of a topic that is not among them is left out.
        site: what all feeds share.
        place: where this feed and its page are.
        changed_at: counts where there is no turn.
        base_url: where the topics' pages are; None: entries have no link.
    """
    entries = tuple(_entry(turn, topics[turn.topic], site, base_url) for turn in turns if turn.topic in topics)
    return Feed(
        id=tag_uri(site, "momentum"),
        title=f"{site.name}: momentum",
        subtitle="Topics that start to rise or to cool, each turn once.",
        updated=max((entry.updated for entry in entries), default=changed_at),
        site=site,
        place=place,
        entries=entries,
    )


def _entry(turn: Turn, topic: Topic, site: FeedSite, base_url: str | None) -> FeedEntry:
    words = headline(turn.momentum)
    lines = (*filter(None, (words.note,)), *turn_lines(turn), f"As of {full_day(turn.as_of)}.")
    paragraphs = (words.text, " ".join(line if line.endswith(".") else f"{line}." for line in lines))
    return FeedEntry(
        id=tag_uri(site, "topic", topic.slug, "turn", str(turn.number)),
        title=turn_title(topic.name, turn),
        published=turn.at,
        updated=turn.at,
        content_html="".join(f"<p>{html.escape(paragraph, quote=False)}</p>" for paragraph in paragraphs),
        content_text="\n\n".join(paragraphs),
        url=web_url(f"{base_url}/t/{topic.slug}") if base_url else None,
        summary=words.text,
        categories=(topic.name,),
    )
