"""Feeds out: one model, three formats. Floor 1.

Entry points: ``topic_feed``, ``mixed_feed``, ``digest_feed``, ``revisions_feed`` make a ``Feed``; ``split_feed`` parts it
into the document that readers poll and archive documents; ``FORMATS`` says how each format is written; ``check_feed`` reads
a document back before it takes the place of the old one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from urllib.parse import quote

from digestd.errors import ConfigError
from digestd.model.feed import (
    Feed,
    FeedDigest,
    FeedEntry,
    FeedFormat,
    FeedPaper,
    FeedPlace,
    FeedRevision,
    FeedSite,
    FeedUrls,
)
from digestd.model.topic import Topic
from digestd.render import feed_atom, feed_json, feed_rss
from digestd.render.feed_atom import atom_bytes
from digestd.render.feed_content import digest_content, paper_content, revision_content
from digestd.render.feed_json import json_bytes
from digestd.render.feed_rss import rss_bytes
from digestd.render.feed_xml import web_url

__all__ = [
    "FORMATS",
    "FormatWriter",
    "atom_bytes",
    "check_feed",
    "digest_feed",
    "json_bytes",
    "mixed_feed",
    "revisions_feed",
    "rss_bytes",
    "split_archive",
    "split_feed",
    "tag_uri",
    "topic_feed",
]

_DNS = r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*"
_AUTHORITY = re.compile(rf"(?:[A-Za-z0-9._-]+@)?{_DNS}")
_SINCE = re.compile(r"[0-9]{4}(?:-(?:0[1-9]|1[0-2])(?:-(?:0[1-9]|[12][0-9]|3[01]))?)?")


@dataclass(frozen=True, slots=True)
class FormatWriter:
    """How one format is written, checked and served."""

    media_type: str
    entry: Callable[[FeedEntry], bytes]  #: bytes of one entry, the same in every document
    document: Callable[[Feed, Callable[[FeedEntry], bytes]], bytes]
    check: Callable[[bytes], None]


FORMATS: Mapping[FeedFormat, FormatWriter] = {
    FeedFormat.RSS: FormatWriter(feed_rss.MEDIA_TYPE, feed_rss.rss_item, rss_bytes, feed_rss.check_rss),
    FeedFormat.ATOM: FormatWriter(feed_atom.MEDIA_TYPE, feed_atom.atom_entry, atom_bytes, feed_atom.check_atom),
    FeedFormat.JSON: FormatWriter(feed_json.MEDIA_TYPE, feed_json.json_item, json_bytes, feed_json.check_json),
}


def check_feed(body: bytes, kind: FeedFormat) -> None:
    """Read a document of ours back as a feed reader would, before it takes the place of the old one.

    Raises:
        RenderError: the document is not well-formed or breaks a rule of its format.
    """
    FORMATS[kind].check(body)


def tag_uri(site: FeedSite, *parts: str) -> str:
    """Return ``tag:AUTHORITY,SINCE:part/part``, a name for ever: no web address is in it, so none can change it.

    Args:
        site: gives authority and date.
        *parts: path segments; characters that a URI may not hold are percent-encoded.

    Raises:
        ConfigError: authority or date is none (upper case is refused: tags are compared letter by letter).

    Source: RFC 4151 2.1, 2.4.
    """
    if not _AUTHORITY.fullmatch(site.authority):
        raise ConfigError(f"feed authority: expected a domain like 'digest.example.org', found '{site.authority}'")
    if not _SINCE.fullmatch(site.since):
        raise ConfigError(f"feed authority date: expected a date like '2026-09', found '{site.since}'")
    path = "/".join(quote(part.encode(errors="replace"), safe="/-._~!$&'()*+,;=:@") for part in parts)
    return f"tag:{site.authority},{site.since}:{path}"


def topic_feed(
    topic: Topic, papers: Sequence[FeedPaper], *, headline: str, site: FeedSite, place: FeedPlace, changed_at: datetime
) -> Feed:
    """Return the feed of a topic, one entry a paper.

    Args:
        topic: the topic.
        papers: in the order in which they are to be written, may be empty. For ``split_feed``: as the ledger has them,
            oldest sighting first.
        headline: the topic's momentum in words, as it is now; "" if unknown. It is said of the feed. An entry says what
            was true when its paper was told (``FeedPaper.headline``), else entries would change with every week.
        site: what all feeds share.
        place: where this feed and its page are.
        changed_at: when topic or momentum last changed; never the time of writing.
    """
    home = place.home or place.listing
    entries = tuple(_paper_entry(paper, topic, site, home) for paper in papers)
    gloss = f" ({topic.gloss})" if topic.gloss else ""
    return Feed(
        id=tag_uri(site, "topic", topic.slug),
        title=topic.name,
        subtitle=f"Papers in {topic.name}{gloss}, each once.",
        note=f"{headline.rstrip('.')}." if headline else "",
        updated=_newest(entries, changed_at),
        site=site,
        place=place,
        entries=entries,
    )


def mixed_feed(
    title: str,
    papers: Sequence[tuple[Topic, str | None, FeedPaper]],
    *,
    key: Sequence[str],
    site: FeedSite,
    place: FeedPlace,
    changed_at: datetime,
) -> Feed:
    """Return a feed of papers of several topics, one entry a paper, with ids of its own.

    Args:
        title: of the feed.
        papers: (topic that the entry names, its page, paper), in the order in which they are to be written, may be empty.
        key: permanent name of the feed, path segments; unique, not a secret token.
        site: what all feeds share.
        place: where this feed and its page are.
        changed_at: counts where there is no paper.
    """
    entries = tuple(
        replace(_paper_entry(paper, topic, site, home), id=tag_uri(site, *key, "paper", paper.public_id))
        for topic, home, paper in papers
    )
    return Feed(
        id=tag_uri(site, *key),
        title=title,
        subtitle="New papers, each once.",
        updated=_newest(entries, None if entries else changed_at),
        site=site,
        place=place,
        entries=entries,
    )


def _paper_entry(paper: FeedPaper, topic: Topic, site: FeedSite, home: str | None) -> FeedEntry:
    content = paper_content(paper, topic, home)
    labels = (topic.name, *(label for label in paper.paper.topics if label.casefold() != topic.name.casefold()))
    return FeedEntry(
        id=_paper_id(paper, topic, site),
        title=paper.paper.title,
        published=paper.effective_at,
        updated=max(filter(None, (paper.effective_at, paper.seen_at, paper.revised_at))),
        content_html=content.html,
        content_text=content.text,
        url=_paper_url(paper),
        summary=paper.summary,
        authors=paper.paper.authors,
        authors_more=paper.paper.authors_more,
        group=paper.paper.group,
        categories=tuple(dict.fromkeys(labels)),
    )


def _paper_id(paper: FeedPaper, topic: Topic, site: FeedSite) -> str:
    # The topic is part of the id: some readers keep one entry an id for all feeds, and would drop a paper of two topics.
    return tag_uri(site, "topic", topic.slug, "paper", paper.public_id)


def _paper_url(paper: FeedPaper) -> str | None:
    return next(filter(None, map(web_url, (paper.url, *paper.paper.links))), None)


def revisions_feed(
    topic: Topic, revisions: Sequence[FeedRevision], *, site: FeedSite, place: FeedPlace, changed_at: datetime
) -> Feed:
    """Return the feed of a topic's revisions, one entry a change of a paper, with an id of its own.

    Args:
        topic: the topic.
        revisions: in the order in which they are to be written, may be empty.
        site: what all feeds share.
        place: where this feed and the topic's page are.
        changed_at: when the topic last changed; counts where there is no revision.
    """
    home = place.home or place.listing
    entries = tuple(_revision_entry(revision, topic, site, home) for revision in revisions)
    return Feed(
        id=tag_uri(site, "topic", topic.slug, "revisions"),
        title=f"{topic.name}: revisions",
        subtitle=f"Papers in {topic.name} whose title or abstract changed, or which were withdrawn.",
        updated=_newest(entries, None if entries else changed_at),
        site=site,
        place=place,
        entries=entries,
    )


def _revision_entry(revision: FeedRevision, topic: Topic, site: FeedSite, home: str | None) -> FeedEntry:
    content = revision_content(revision, topic, home)
    return replace(
        _paper_entry(revision.paper, topic, site, home),
        id=f"{_paper_id(revision.paper, topic, site)}/revision/{revision.number}",
        title=f"{'Withdrawn' if revision.withdrawn else 'Revised'}: {revision.paper.paper.title}",
        published=revision.changed_at,
        updated=revision.changed_at,
        summary=revision.line,
        content_html=content.html,
        content_text=content.text,
    )


def digest_feed(
    name: str, digests: Sequence[FeedDigest], *, feed_key: str, site: FeedSite, place: FeedPlace, changed_at: datetime
) -> Feed:
    """Return a feed with one entry a digest.

    Args:
        name: name of the digest, "Agent Papers Weekly".
        digests: in the order in which they are to be written, may be empty.
        feed_key: permanent name of the feed, unique among the digest feeds of the service; not a secret token.
        site: what all feeds share.
        place: where this feed and its page are.
        changed_at: when the subscription was made; counts where there is no digest.
    """
    entries = tuple(_digest_entry(digest, site) for digest in digests)
    return Feed(
        id=tag_uri(site, "digests", feed_key),
        title=name,
        subtitle="One entry a digest.",
        updated=_newest(entries, None if entries else changed_at),
        site=site,
        place=place,
        entries=entries,
    )


def _digest_entry(told: FeedDigest, site: FeedSite) -> FeedEntry:
    content = digest_content(told.digest, told.period)
    return FeedEntry(
        id=tag_uri(site, "digest", told.public_id),
        title=f"{told.period}: {told.subject}",
        published=told.made_at,
        updated=told.made_at,
        content_html=content.html,
        content_text=content.text,
        url=told.url,
        summary=told.preheader,
        categories=tuple(section.topic.name for section in told.digest.sections if section.new),
    )


def _newest(entries: Sequence[FeedEntry], changed_at: datetime | None) -> datetime:
    instants = [entry.updated for entry in entries]
    return max([*instants, changed_at] if changed_at is not None else instants)


def split_archive(
    entries: Sequence[FeedEntry], page_size: int
) -> tuple[tuple[FeedEntry, ...], tuple[tuple[FeedEntry, ...], ...]]:
    """Return (entries of the document that readers poll, archive pages oldest first), each page newest first.

    Pages are numbered from the oldest entry on, so a full page never changes when entries come. The polled document keeps
    one page's worth at least and less than two, so that it is bounded and a reader that was away sees no near-empty feed.
    Every entry is in exactly one document.

    Args:
        entries: oldest first, in an order that only grows at its end (the ledger's).
        page_size: entries an archive page, at least 1.

    Source: RFC 5005 4 (the set of entries of an archive document should not change).
    """
    full = max(0, len(entries) // page_size - 1)
    pages = tuple(tuple(reversed(entries[number * page_size : (number + 1) * page_size])) for number in range(full))
    return tuple(reversed(entries[full * page_size :])), pages


def split_feed(feed: Feed, page_size: int, archive_urls: Callable[[int], FeedUrls]) -> tuple[Feed, tuple[Feed, ...]]:
    """Return the feed that readers poll and its archive documents, oldest first, linked to one another.

    An archive document has the date of its newest entry and no momentum, so it is written once; only the newest one is
    written a second time, when it gets a newer neighbour to link to. Its entries stay as they are.

    Args:
        feed: a feed with all entries, oldest first.
        page_size: entries an archive document.
        archive_urls: addresses of archive number 0, 1, ...; empty ones where they are not known.

    Source: RFC 5005 4, 4.1 (links), appendix B (RSS).
    """
    current, pages = split_archive(feed.entries, page_size)
    urls = [archive_urls(number) for number in range(len(pages))]
    archives = tuple(
        replace(
            feed,
            entries=page,
            updated=_newest(page, None),
            note="",
            archive=True,
            place=replace(feed.place, urls=urls[number]),
            current=feed.place.urls,
            older=urls[number - 1] if number else FeedUrls(),
            newer=urls[number + 1] if number + 1 < len(pages) else FeedUrls(),
        )
        for number, page in enumerate(pages)
    )
    return replace(feed, entries=current, older=urls[-1] if urls else FeedUrls()), archives
