"""The pages that only show: topics, papers, search, digests, feeds. Floor 5. Entry point: ``READ_ROUTES``.

Nothing here writes. What asks the store runs outside the event loop; texts of strangers go through templates, which escape.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from datetime import UTC, date, datetime
from itertools import groupby
from typing import Any
from urllib.parse import urlencode

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute, Route

from digestd import phrases
from digestd.errors import NotFoundError
from digestd.flows.pages import (
    paper_page,
    past_digest,
    past_digests,
    period,
    search_page,
    topic_page,
    topic_summaries,
    weeks,
)
from digestd.flows.reader_feeds import digests_document, reader_document
from digestd.model.feed import FeedFormat
from digestd.model.pages import SearchWish, TopicPage, TopicSummary
from digestd.model.snapshot import Kind
from digestd.model.subscription import Subscription
from digestd.render import web_view
from digestd.render.mime import clean_text
from digestd.tokens import Purpose
from digestd.web.guard import client_net
from digestd.web.services import WebServices, in_thread, page, services_of
from digestd.web.shelf import PRIVATE, send_document, store_document

#: topics on a page of the index; with their charts some 30 kB
TOPICS = 30

_MOST_WORDS = 200
_SEARCH_NEEDS = "Give a word of title, abstract or authors, or an author."
_BAD_DAY = "A day is written like 2026-09-24."
_SUFFIXES = {".xml": FeedFormat.RSS, ".atom": FeedFormat.ATOM, ".json": FeedFormat.JSON}
_SIGHT_WORDS = {
    Kind.NEW: "new",
    Kind.NEWLY_TAGGED: "an older paper, filed here since",
    Kind.BASELINE: "here when we began to watch",
    Kind.BACKFILL: "an older paper, seen on an older page",
}

Work = Callable[[WebServices, Request], Response]


def _reading(work: Work, *, limited: bool = False) -> Callable[[Request], Awaitable[Response]]:
    """Return a handler that does the work outside the event loop; what is not there is a page of status 404.

    Args:
        work: reads the store and makes the answer.
        limited: whether one client may ask only so often.
    """

    async def handler(request: Request) -> Response:
        services = services_of(request)
        if limited and not _allowed(services, request):
            raise HTTPException(429, headers={"Retry-After": "60"})
        try:
            return await in_thread(lambda: work(services, request))
        except NotFoundError:
            raise HTTPException(404) from None

    return handler


def _allowed(services: WebServices, request: Request) -> bool:
    net = client_net(request.scope, services.proxies)
    return services.reading.allow(net, services.clock.now().timestamp())


def _index(services: WebServices, request: Request) -> Response:
    number = request.query_params.get("page", "1")
    if not re.fullmatch(r"[1-9][0-9]{0,4}", number):
        raise HTTPException(404)
    skip = (int(number) - 1) * TOPICS
    summaries = _summaries(services)
    series = [one.momentum for one in summaries if one.momentum.weekly and one.momentum.weekly_from is not None]
    newest = max(series, key=lambda momentum: momentum.weekly_from or date.min, default=None)
    count = phrases.count_noun(len(summaries), "topic")
    if skip and skip >= len(summaries):
        raise HTTPException(404)
    word = phrases.number_word(len(summaries))
    return page(
        services,
        "index",
        title=f"Topics by momentum, {services.site.name}",
        description=f"{count}, the fastest growing first.",
        here="topics",
        count=f"{word[:1].upper()}{word[1:]} {'topic' if len(summaries) == 1 else 'topics'}",
        groups=web_view.index_groups(summaries, skip=skip, limit=TOPICS),
        more=f"/?page={int(number) + 1}" if skip + TOPICS < len(summaries) else "",
        before=f"/?page={int(number) - 1}" if skip else "",
        charts=newest is not None,
        weeks="" if newest is None or newest.weekly_from is None
        else phrases.week_range(newest.weekly_from, len(newest.weekly)),
        feeds=_feeds(services, "all", "New papers of all topics"),
    )  # fmt: skip


def _summaries(services: WebServices) -> tuple[TopicSummary, ...]:
    """Return how all topics move; worked out again when the history has grown, and every hour."""
    now = services.clock.now()
    key = (services.store.pages.marks(), now.replace(minute=0, second=0, microsecond=0))
    return services.memo.get("index", key, lambda: topic_summaries(services.store, now))


def _feeds(services: WebServices, folder: str, name: str) -> tuple[tuple[str, str, str], ...]:
    """Return (media type, title, address) of a feed's formats, for autodiscovery."""
    base = f"{services.base_url}/feeds/{folder}/"
    return (
        ("application/rss+xml", f"{name} (RSS)", f"{base}rss.xml"),
        ("application/atom+xml", f"{name} (Atom)", f"{base}atom.xml"),
        ("application/feed+json", f"{name} (JSON Feed)", f"{base}feed.json"),
    )


def _topic(services: WebServices, request: Request) -> Response:
    slug = request.path_params["slug"]
    label = request.query_params.get("tag", "")[:_MOST_WORDS] or None
    before = request.query_params.get("before", "")[:40]
    shown = topic_page(services.store, slug, label=label, before=before, now=services.clock.now())
    return page(services, "topic", **_topic_values(services, shown))


def _topic_values(services: WebServices, shown: TopicPage) -> dict[str, Any]:
    summary = shown.summary
    topic, words = summary.topic, summary.headline
    address = f"/t/{topic.slug}"

    def listed(**given: str | None) -> str:
        query = {name: value for name, value in given.items() if value}
        return f"{address}?{urlencode(query)}" if query else address

    return {
        "title": f"{topic.name}: {words.text}",
        "description": f"{topic.name}: {words.text}. Weekly chart, latest papers, feeds and mail digests.",
        "here": "topics",
        "feeds": _feeds(services, topic.slug, topic.name),
        "topic": topic,
        "headline": words,
        "coverage_line": shown.coverage_line,
        "chart": web_view.chart(summary.momentum),
        "page": address,
        "feed": f"/feeds/{topic.slug}/",
        "known": f"{phrases.count_noun(shown.shown)} in all" if shown.shown else "",
        "before": "" if shown.before is None else phrases.full_day(shown.before),
        "label": shown.label or "",
        "labels": [(name, f"{count:,}", listed(tag=name)) for name, count in shown.labels],
        "days": web_view.day_groups(shown.papers, own=(topic.name,), page=address, now_in=topic.name),
        "earlier": listed(tag=shown.label, before=shown.earlier) if shown.earlier else "",
    }


def _paper(services: WebServices, request: Request) -> Response:
    shown = paper_page(services.store, request.path_params["public_id"])
    if shown is None:
        raise HTTPException(404)
    if shown.known.public_id != request.path_params["public_id"]:  # two records turned out to be one paper
        return Response(status_code=301, headers={"Location": f"/p/{shown.known.public_id}"})
    paper = shown.known.paper
    return page(
        services,
        "paper",
        title=paper.title,
        description=phrases.people(paper),
        paper=paper,
        people=phrases.people(paper, 30),
        places=phrases.affiliations(paper, 10),
        published=phrases.full_day(paper.published) if paper.published else "No date known",
        categories=", ".join(paper.categories),
        source=web_view.source_url(shown.known),
        sights=[
            {
                "slug": sight.topic.slug,
                "name": sight.topic.name,
                "iso": sight.seen_at.date().isoformat(),
                "day": phrases.full_day(sight.seen_at.date()),
                "words": _SIGHT_WORDS[sight.kind],
            }
            for sight in shown.sights
        ],
        changes=[(phrases.full_day(at.date()), line) for at, line in shown.changes],
    )


def _search(services: WebServices, request: Request) -> Response:
    given = {name: clean_text(request.query_params.get(name, ""))[:_MOST_WORDS].strip() for name in _SEARCH_FIELDS}
    topics = services.store.history.topics()
    problem = ""
    days: dict[str, date | None] = {}
    for name in ("since", "until"):
        try:
            days[name] = date.fromisoformat(given[name]) if given[name] else None
        except ValueError:
            days[name], problem = None, _BAD_DAY
    asked = any(given.values())
    if asked and not problem and not any(char.isalnum() for char in given["q"] + given["author"]):
        problem = _SEARCH_NEEDS
    wish = SearchWish(given["q"], given["topic"], given["author"], days["since"], days["until"])
    shown = search_page(services.store, wish if not problem else SearchWish(topic=given["topic"]))
    cards = [
        {
            "iso": listed.known.effective_at.date().isoformat(),
            "day": phrases.day(listed.known.effective_at.date(), beside=services.clock.now().date()),
            "card": web_view.paper_card(listed),
        }
        for listed in shown.papers
    ]
    count = f"The {len(cards)} best papers" if shown.more else phrases.count_noun(len(cards)).capitalize()
    return page(
        services,
        "search",
        title=f"Search, {services.site.name}",
        here="search",
        search={
            "words": given["q"],
            "topic": given["topic"],
            "author": given["author"],
            "since": given["since"],
            "until": given["until"],
            "topics": topics,
            "problem": problem,
        },
        asked=asked and not problem,
        found=count if cards else "No paper fits",
        cards=cards,
    )


_SEARCH_FIELDS = ("q", "topic", "author", "since", "until")


def _digests(services: WebServices, request: Request) -> Response:
    del request
    found = weeks(services.store, services.clock.now())
    return page(
        services,
        "weeks",
        title=f"Past weeks, {services.site.name}",
        description="What each week brought, by topic.",
        here="archive",
        months=web_view.week_months(found),
    )


def _archive(services: WebServices, request: Request) -> Response:
    token, subscription = _bearer(services, request)
    found = past_digests(services.store, subscription)
    months = [
        (month, [(digest, f"/d/{token}/{digest.url}") for digest in digests])
        for month, digests in groupby(found, key=lambda digest: digest.month)
    ]
    return page(
        services,
        "digests",
        title="Your digests",
        private=True,
        lede="Everything that was mailed to you.",
        months=months,
        feed=f"/feed/{token}",
    )


def _past_digest(services: WebServices, request: Request) -> Response:
    token, subscription = _bearer(services, request)
    record, told = past_digest(services.store, subscription, request.path_params["label"])
    return page(
        services,
        "digest",
        title=record.subject,
        private=True,
        heading=record.subject,
        period=phrases.date_range(date.fromisoformat(record.since), date.fromisoformat(record.until)),
        short_period=period(record),
        archive=f"/d/{token}",
        sections=[
            {
                "name": one.heading,
                "url": f"/t/{one.topic.slug}" if one.topic else "",
                "count": phrases.count_noun(len(one.papers)),
                "days": web_view.day_groups(one.papers, own=(one.heading,), now_in=one.topic.name if one.topic else ""),
            }
            for one in told
        ],
    )


def _bearer(services: WebServices, request: Request) -> tuple[str, Subscription]:
    token = str(request.path_params["token"])
    subscription = services.bearer(token, Purpose.FEED)
    if subscription is None:
        raise HTTPException(404)
    return token, subscription


def _reader_feed(services: WebServices, request: Request) -> Response:
    """A reader's own feeds: /feed/TOKEN.xml has papers, /feed/TOKEN/digests.xml digests."""
    token, subscription = _bearer(services, request)
    kind = _SUFFIXES.get(f".{request.path_params['suffix']}")
    if kind is None:
        raise HTTPException(404)
    own = "/digests." in request.url.path
    make = digests_document if own else reader_document
    body, changed_at = make(services.store, subscription, kind, services.publish, token=token)
    name = {FeedFormat.RSS: "rss.xml", FeedFormat.ATOM: "atom.xml", FeedFormat.JSON: "feed.json"}[kind]
    return send_document(request, store_document(name, body, changed_at), cache=PRIVATE, private=True)


async def _feed(request: Request) -> Response:
    shelf = services_of(request).shelf
    stored = shelf.get(request.path_params["name"])
    if stored is None:
        # the list of all feeds is made last: before that it is not known which feeds there are
        raise HTTPException(404) if shelf.get("topics.opml") else HTTPException(503, headers={"Retry-After": "30"})
    return send_document(request, stored)


#: the style sheet's date; its ETag says when it changed
_LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)


def _style(services: WebServices, request: Request) -> Response:
    def make() -> bytes:
        return services.templates.get_template("web/style.css").render().encode()

    body = services.memo.get("style", None, make)
    stored = services.memo.get("style.css", body, lambda: store_document("style.css", body, _LONG_AGO))
    return send_document(request, stored)


async def _robots(request: Request) -> Response:
    del request
    # addresses with a token are asked not to be kept by header and page, not here: a list of them helps nobody
    lines = ("User-agent: *", "Disallow: /search", "Disallow: /d/", "Disallow: /feed/", "")
    return PlainTextResponse("\n".join(lines), headers={"Cache-Control": "public, max-age=86400"})


async def _no_icon(request: Request) -> Response:
    del request
    return Response(status_code=404, headers={"Cache-Control": "public, max-age=86400"})


def _health(services: WebServices, request: Request) -> Response:
    del request
    services.store.pages.marks()
    return PlainTextResponse("ok\n", headers={"Cache-Control": "no-store"})


READ_ROUTES: list[BaseRoute] = [
    Route("/", _reading(_index)),
    Route("/t/{slug}", _reading(_topic)),
    Route("/p/{public_id}", _reading(_paper)),
    Route("/search", _reading(_search, limited=True)),
    Route("/digests", _reading(_digests)),
    Route("/d/{token}", _reading(_archive, limited=True)),
    Route("/d/{token}/{label}", _reading(_past_digest, limited=True)),
    Route("/feed/{token}.{suffix}", _reading(_reader_feed, limited=True)),
    Route("/feed/{token}/digests.{suffix}", _reading(_reader_feed, limited=True)),
    Route("/feeds/{name:path}", _feed),
    Route("/style.css", _reading(_style)),
    Route("/robots.txt", _robots),
    Route("/favicon.ico", _no_icon),
    Route("/healthz", _reading(_health)),
    Route("/readyz", _reading(_health)),  # what answers has its store open and migrated: the server starts after it
]
