"""Builders: a test spells only what it is about."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime

from digestd.model.delivery import DigestRecord, Envelope, Message, ToldItem
from digestd.model.digest import DigestOptions, DigestRequest, NewsItem, TopicNews
from digestd.model.feed import FeedPaper
from digestd.model.paper import KnownPaper, Paper, PaperId
from digestd.model.snapshot import Document, Kind, Order, Page
from digestd.model.subscription import Reader, Subscription
from digestd.model.topic import Topic
from digestd.momentum import NOISE_P, binomial_p

NOW = datetime(2026, 9, 30, 6, 0, tzinfo=UTC)


def make_paper(
    title: str = "Quiet Reefs at Night",
    *,
    published: date | None = date(2026, 9, 20),
    authors: Sequence[str] = ("Ana Lima",),
    ids: Sequence[PaperId] = (),
    topics: Sequence[str] = (),
    **fields: object,
) -> Paper:
    """Return a paper with everything ordinary but what is named."""
    return Paper(
        title=title,
        published=published,
        authors=tuple(authors),
        ids=tuple(ids),
        topics=tuple(topics),
        **fields,  # type: ignore[arg-type]  # any field of Paper
    )


def make_page(
    papers: Sequence[Paper] = (), *, topic: str | None = "Reef Sound", order: Order = Order.LISTING, **fields: object
) -> Page:
    """Return a page of these papers."""
    return Page(topic=topic, papers=tuple(papers), order=order, **fields)  # type: ignore[arg-type]  # any field of Page


def make_document(body: str | bytes, **fields: object) -> Document:
    """Return a document with this body."""
    raw = body.encode() if isinstance(body, str) else body
    return Document(body=raw, **fields)  # type: ignore[arg-type]  # any field of Document


def make_feed_paper(title: str = "Quiet Reefs at Night", *, public_id: str = "7f3a", **fields: object) -> FeedPaper:
    """Return a paper as a feed tells it, everything ordinary but what is named."""
    given: dict[str, object] = {
        "paper": make_paper(title, topics=("Reef Sound",), categories=("q-bio.PE",)),
        "kind": Kind.NEW,
        "effective_at": datetime(2026, 9, 29, tzinfo=UTC),
        "seen_at": datetime(2026, 9, 30, 5, 0, tzinfo=UTC),
        "summary": "Reefs are quieter at night than at noon.",
        "people": "Ana Lima",
    }
    return FeedPaper(public_id=public_id, **given | fields)  # type: ignore[arg-type]  # any field of FeedPaper


def make_known(key: int = 1, title: str | None = None, **fields: object) -> KnownPaper:
    """Return a paper of the history; fields of KnownPaper are taken by it, all others by its paper."""
    own = {name: fields.pop(name) for name in ("first_seen_at", "ids", "counted", "revised_at") if name in fields}
    paper = make_paper(title or f"Kelp Note {key}", **fields)  # type: ignore[arg-type]  # any field of Paper
    return KnownPaper(key, paper, **{"first_seen_at": NOW, **own})  # type: ignore[arg-type]  # any field of KnownPaper


def make_item(known: KnownPaper, kind: Kind = Kind.NEW, *, position: int | None = None) -> NewsItem:
    """Return a sighting in a digest's stretch; its position is the paper's key unless named."""
    return NewsItem(known.key if position is None else position, kind, known)


def make_topic_news(name: str = "Reef Sound", items: Sequence[NewsItem] = (), **fields: object) -> TopicNews:
    """Return the news of a followed topic."""
    topic = Topic(name.lower().replace(" ", "-"), name)
    return TopicNews(topic, items=tuple(items), **fields)  # type: ignore[arg-type]  # any field of TopicNews


def make_request(
    *topics: TopicNews, options: DigestOptions | None = None, told: Sequence[int] = (), **fields: object
) -> DigestRequest:
    """Return a request for the week of Sep 23 to 29, 2026."""
    return DigestRequest(
        name="Reef News",
        since=date(2026, 9, 23),
        until=date(2026, 9, 29),
        topics=topics,
        told=frozenset(told),
        options=options or DigestOptions(),
        **fields,  # type: ignore[arg-type]  # any field of DigestRequest
    )


def make_message(number: int = 1, *, size: int = 600, **fields: object) -> Message:
    """Return a mail with everything ordinary but what is named; its id has the number, its body about this many octets."""
    head = f"From: digest@example.org\r\nMessage-ID: <{number}@example.org>\r\nSubject: Reefs\r\n\r\n"
    line = "x" * 900 + "\r\n"
    body = head + f"Message {number}.\r\n.\r\n..two dots\r\n" + line * (size // len(line)) + "y" * (size % 900) + "\r\n"
    given: dict[str, object] = {
        "recipient": "ana@example.net",
        "sender": "digest@example.org",
        "message_id": f"<{number}@example.org>",
        "body": body.encode(),
    }
    return Message(**given | fields)  # type: ignore[arg-type]  # any field of Message


def make_reader(address: str = "ana@reef.example", **fields: object) -> Reader:
    """Return a reader with this address."""
    return Reader(address, **{"envelope": address, **fields})  # type: ignore[arg-type]  # any field of Reader


def make_subscription(reader: Reader | None = None, **fields: object) -> Subscription:
    """Return a subscription to Reef Sound, every Monday, with everything ordinary but what is named."""
    given: dict[str, object] = {"topics": ("reef-sound",)}
    return Subscription(reader or make_reader(), **given | fields)  # type: ignore[arg-type]  # any field of Subscription


def make_record(
    subscription: int, key: str = "a1|2026-09-28T07:30", items: Sequence[ToldItem] = (), **fields: object
) -> DigestRecord:
    """Return the record of a digest for one subscription."""
    given: dict[str, object] = {
        "after": 0,
        "upto": 9,
        "since": "2026-09-21",
        "until": "2026-09-27",
        "subject": "Reef Sound: 2 new",
        "made_at": NOW,
    }
    return DigestRecord(key, subscription, items=tuple(items), **given | fields)  # type: ignore[arg-type]  # any field


def make_envelope(reader: int, content: str, digest_key: str = "a1|2026-09-28T07:30", **fields: object) -> Envelope:
    """Return an envelope for a digest that is due now."""
    given: dict[str, object] = {
        "kind": "digest",
        "recipient": "ana@reef.example",
        "sender": "bounce+7@papers.example",
        "message_id": f"<{digest_key.replace('|', '.').replace(':', '')}.{reader}@papers.example>",
        "fields": '{"name": "Ana"}',
        "next_at": NOW,
    }
    return Envelope(digest_key=digest_key, reader=reader, content=content, **given | fields)  # type: ignore[arg-type]


def is_noise(current: int, previous: int) -> bool:
    """Return whether the change between two counts is counting noise: exact two-sided p of 0.10 or more."""
    return binomial_p(current, previous) >= NOISE_P
