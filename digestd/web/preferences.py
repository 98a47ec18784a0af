"""The page on which readers choose what they get. Floor 5. Entry point: :data:`PREFERENCE_ROUTES`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from digestd.filters import lint
from digestd.flows.pages import topic_summary
from digestd.flows.preferences import active_of, save
from digestd.flows.subscribe import filter_preview
from digestd.forms import fields_of, less_often, read_change, typed_fields
from digestd.model.forms import PreferenceChange, PreferenceFields
from digestd.model.subscription import Subscription
from digestd.phrases import count_noun
from digestd.schedule import DAYS, find_zone, in_words
from digestd.tokens import Purpose
from digestd.web.answers import dead_link, next_words, sign, subject_of, typed
from digestd.web.services import WebServices, in_thread, page, services_of

#: what the buttons of the form do; two of them also say how often
_SAVES = {"save": "", "weekly": "weekly", "monthly": "monthly"}

_FREQUENCIES = (
    ("daily", "Daily", "When there is something new"),
    ("weekly", "Weekly", ""),
    ("monthly", "Monthly", ""),
)
_FORMATS = (("html", "HTML with charts", ""), ("text", "Plain text", "72 columns, charts drawn in characters"))
_DAY_NAMES = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

#: followed topics whose momentum is shown; more would make the page slow
_MOST_HEADLINES = 20


@dataclass(frozen=True, slots=True)
class _Shown:
    """What is said on the page beside the form itself."""

    fields: PreferenceFields
    problems: tuple[str, ...] = ()
    done: str = ""
    tried: PreferenceChange | None = None  #: whose filter is tried; None: the subscription's


async def _show(request: Request) -> Response:
    services, token = services_of(request), request.path_params["token"]
    public_id = subject_of(services, token, Purpose.PREFERENCES)
    if public_id is None:
        return dead_link(services)
    return await in_thread(lambda: _form(services, token, public_id))


def _form(services: WebServices, token: str, public_id: str) -> Response:
    current = active_of(services.store, public_id)
    if current is None:
        return dead_link(services)
    today = _today(current, services.clock.now())
    return _page(services, token, current, _Shown(fields_of(current, today)))


async def _change(request: Request) -> Response:
    services, token = services_of(request), request.path_params["token"]
    public_id = subject_of(services, token, Purpose.PREFERENCES)
    if public_id is None:
        return dead_link(services)
    pairs = await typed(request)
    return await in_thread(lambda: _take(services, token, public_id, pairs))


def _take(services: WebServices, token: str, public_id: str, pairs: Sequence[tuple[str, str]]) -> Response:
    """Save what was typed, or show what it would do, or what is wrong with it."""
    store, now = services.store, services.clock.now()
    current = active_of(store, public_id)
    if current is None:
        return dead_link(services)
    fields, button = typed_fields(pairs), dict(pairs).get("do", "save")
    rarer = _SAVES.get(button, "")
    fields = replace(fields, every=rarer) if rarer else fields
    slugs = [topic.slug for topic in store.history.topics()]
    change, problems = read_change(fields, current, slugs, today=_today(current, now))
    if change is None:
        return _page(services, token, current, _Shown(fields, problems), status=422)
    if button not in _SAVES:
        return _page(services, token, current, _Shown(fields, tried=change, done="Nothing is saved yet."))
    saved = save(store, public_id, change, services.vocabulary(), now=now)
    if saved is None:
        return dead_link(services)
    again = fields_of(saved, _today(saved, now))
    return _page(services, token, saved, _Shown(again, done="Saved."))


def _today(subscription: Subscription, now: datetime) -> date:
    return now.astimezone(find_zone(subscription.zone)).date()


def _page(services: WebServices, token: str, current: Subscription, shown: _Shown, *, status: int = 200) -> Response:
    """Return the page with a form filled in."""
    fields, tried = shown.fields, shown.tried
    wanted = tried.preferences.filter if tried is not None else current.preferences.filter
    slugs = tried.topics if tried is not None else current.topics
    topics = [services.store.history.topic(slug) for slug in slugs]
    tested = filter_preview(services.store, topics, wanted) if not shown.problems else None
    rarer = less_often(current.schedule)
    kept = (("keep", "As it is now", in_words(current.schedule, current.zone)),) if _is_special(current) else ()
    return page(
        services,
        "preferences",
        status=status,
        private=True,
        title=f"Your mail, {services.site.name}",
        address=current.reader.address,
        next_line=next_words(current),
        declared=current.declared,
        problems=[f"{line[:1].upper()}{line[1:]}." for line in shown.problems],
        done=shown.done,
        action=f"/preferences/{token}",
        leave=f"/unsubscribe/{sign(services, Purpose.UNSUBSCRIBE, current.public_id)}",
        topics=_topics(services, current, fields),
        fields=fields,
        frequencies=(*kept, *_FREQUENCIES),
        days=tuple(zip(DAYS, _DAY_NAMES, strict=True)),
        formats=_FORMATS,
        preview="" if tested is None else str(tested),
        reasons=[]
        if tested is None
        else [
            f"{count_noun(count)} {why}" if why.rule else f"{count_noun(count)}: {why}" for why, count in tested.by_rule
        ],
        warnings=lint(wanted) if not shown.problems else (),
        rarer=rarer,
    )


def _is_special(current: Subscription) -> bool:
    """Whether the schedule is one that the form has no words for."""
    return fields_of(current, date.min).every == "keep"


def _topics(services: WebServices, current: Subscription, fields: PreferenceFields) -> list[tuple[str, str, str, bool]]:
    """Return (slug, name, momentum, whether it is chosen): those followed first, in their order, then all others."""
    store, now = services.store, services.clock.now()
    known = {topic.slug: topic for topic in store.history.topics()}
    first = dict.fromkeys([slug for slug in (*current.topics, *fields.topics) if slug in known])
    moved = {slug: topic_summary(store, known[slug], now).headline.text for slug in list(first)[:_MOST_HEADLINES]}
    ordered = [*first, *(slug for slug in known if slug not in first)]
    return [(slug, known[slug].name, moved.get(slug, ""), slug in fields.topics) for slug in ordered]


PREFERENCE_ROUTES: Sequence[Route] = (
    Route("/preferences/{token}", _show, methods=["GET"]),
    Route("/preferences/{token}", _change, methods=["POST"]),
)
