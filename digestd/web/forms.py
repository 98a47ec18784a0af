"""Pages that change something: follow, confirm, preferences, unsubscribe. Floor 5. Entry point: :data:`FORM_ROUTES`.

GET shows, POST acts, and a POST that comes again does nothing more. Who holds a token is who it was mailed to; a text that
is no genuine token is answered alike, whatever is wrong with it. To follow and to unsubscribe give the same answer for
known and unknown addresses and tokens.
"""

from __future__ import annotations

import logging
import secrets
from base64 import b32encode
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

from starlette.background import BackgroundTask
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from digestd.addresses import parse_reader
from digestd.errors import ConfigError, DigestdError
from digestd.flows.confirm import Asked, Confirmed, Outcome, ask, confirm, current_of, is_busy, pending_of, wished
from digestd.flows.preferences import UNDO_FOR, leave_by_link, undo_leave
from digestd.forms import read_every
from digestd.phrases import join_words
from digestd.schedule import in_words
from digestd.tokens import Purpose, make_token
from digestd.web.answers import KEY_ID, dead_link, message, next_words, sign, subject_of, typed
from digestd.web.guard import Limiter, Rate, client_net
from digestd.web.preferences import PREFERENCE_ROUTES
from digestd.web.services import WebServices, in_thread, services_of

log = logging.getLogger(__name__)

#: wishes to follow that one network may send
ASKING = Rate(10, 3600)

#: scope of the token that takes an unsubscription back
UNDO = "undo"

_ID_BYTES = 5
_HOUR = {"Retry-After": "3600"}


# -- follow


async def _follow(request: Request) -> Response:
    """Take a wish to follow; the answer is there before it is looked at whether anybody knows the address."""
    services = services_of(request)
    kitchen, now = services.kitchen, services.clock.now()
    if kitchen is None or kitchen.identity.base_url is None:
        raise HTTPException(404)
    fields = dict(await typed(request))
    try:
        reader = parse_reader(fields.get("address", ""))
        schedule = read_every(fields.get("every", "weekly"))
    except ConfigError as error:
        return _not_understood(services, str(error))
    topic = await in_thread(lambda: services.store.history.find_topic(fields.get("topic", "")))
    if topic is None:
        return _not_understood(services, "topic: expected one of those listed here, found none of this name")
    if not _asking(request).allow(client_net(request.scope, services.proxies), now.timestamp()):
        return message(
            services,
            "Too many requests",
            "Too many came from your network. Please try again in an hour.",
            status=429,
            headers=_HOUR,
        )
    if await in_thread(lambda: is_busy(services.store, now=now)):
        return message(
            services,
            "Many people ask just now",
            "So that nobody is flooded with mail, no more are sent within this hour. Please try again after it.",
            status=503,
            headers=_HOUR,
        )
    asked = Asked(reader, topic, schedule)
    answer = _look_into_your_mail(services)
    answer.background = BackgroundTask(_ask, lambda: ask(kitchen, asked, now=now))
    return answer


def _not_understood(services: WebServices, problem: str) -> Response:
    return message(
        services,
        "That was not understood",
        f"{problem[:1].upper()}{problem[1:]}.",
        status=422,
        note="Go back in your browser to mend it, or",
        note_url="/",
        note_link="see all topics.",
    )


def _look_into_your_mail(services: WebServices) -> Response:
    return message(
        services,
        "Look into your mail",
        "A mail with one link is on its way to the address. Open the link and press its button: then you follow the topic.",
        status=202,
        note="One such mail a day goes to an address, and three in three months; add more topics in your preferences, which "
        "each digest links to. If the link is not used within two days, the address is deleted.",
    )


def _asking(request: Request) -> Limiter:
    """Return what counts wishes by network, one for the application's life."""
    state = request.app.state
    found = getattr(state, "asking", None)
    if not isinstance(found, Limiter):
        found = state.asking = Limiter(ASKING)
    return found


async def _ask(work: Callable[[], bool]) -> None:
    try:
        await in_thread(work)
    except DigestdError as error:
        log.error("wish to follow not kept: %s", error)


# -- confirm


async def _confirm_page(request: Request) -> Response:
    services = services_of(request)
    token = request.path_params["token"]
    public_id = subject_of(services, token, Purpose.CONFIRM)
    if public_id is None:
        return dead_link(services)
    return await in_thread(lambda: _ask_to_confirm(services, token, public_id))


def _ask_to_confirm(services: WebServices, token: str, public_id: str) -> Response:
    store = services.store
    pending = pending_of(store, public_id, now=services.clock.now())
    if pending is None:
        return dead_link(services)
    if pending.done_at is not None:
        return _confirmed(services, Confirmed(Outcome.AGAIN, current_of(store, pending.reader)))
    wish = wished(store, pending)
    topics = join_words([store.history.topic(slug).name for slug in wish.topics])
    return message(
        services,
        "Confirm your address",
        f"{pending.reader.address} will get {topics}, {in_words(wish.schedule, wish.zone)}.",
        action=f"/confirm/{token}",
        button="Yes, send it",
        note="Not you? Do nothing: without this click no digest is sent, and the address is deleted after two days.",
    )


async def _confirm(request: Request) -> Response:
    services = services_of(request)
    public_id = subject_of(services, request.path_params["token"], Purpose.CONFIRM)
    if public_id is None:
        return dead_link(services)
    now = services.clock.now()
    done = await in_thread(lambda: confirm(services.store, public_id, services.vocabulary(), now=now))
    return _confirmed(services, done)


def _confirmed(services: WebServices, done: Confirmed) -> Response:
    if done.outcome is Outcome.GONE:
        return dead_link(services)
    if done.outcome is Outcome.BLOCKED:
        return message(
            services,
            "No mail can go to this address",
            "Mail to it came back, or was reported as unwanted, so no more is sent.",
            status=409,
            note="Whoever runs this service can lift that.",
        )
    heading = "You will get it" if done.outcome is Outcome.DONE else "Confirmed already"
    subscription = done.subscription
    if subscription is None:
        return message(services, heading, "Nothing more needs to be done; the subscription has ended since.")
    return message(
        services,
        heading,
        next_words(subscription),
        note="More topics, other days, filters:",
        note_url=f"/preferences/{sign(services, Purpose.PREFERENCES, subscription.public_id)}",
        note_link="choose what you get.",
    )


# -- unsubscribe, and back


async def _unsubscribe_page(request: Request) -> Response:
    """Ask for the click; one page for all tokens, since scanners of mail come here, and so do guesses."""
    services, token = services_of(request), request.path_params["token"]
    public_id = subject_of(services, token, Purpose.UNSUBSCRIBE)
    preferences = sign(services, Purpose.PREFERENCES, public_id) if public_id else _decoy(Purpose.PREFERENCES)
    shown = token if public_id else _decoy(Purpose.UNSUBSCRIBE)  # a stranger's text is not put on a page of ours
    return message(
        services,
        "Stop these mails?",
        "After one click no more digests come to your address.",
        action=f"/unsubscribe/{shown}",
        button="Unsubscribe",
        note="Too many? You can also get fewer, or only some topics:",
        note_url=f"/preferences/{preferences}",
        note_link="change what you get.",
    )


async def _unsubscribe(request: Request) -> Response:
    """End a subscription, for a click on the page and for a mail program alike.

    The body is not looked at: nothing in it, or missing from it, may keep a reader from leaving.

    Source: RFC 8058 3.1, 3.2 (no cookie, no redirect, no further step).
    """
    services = services_of(request)
    now = services.clock.now()
    public_id = subject_of(services, request.path_params["token"], Purpose.UNSUBSCRIBE)
    if public_id is not None:
        await in_thread(lambda: leave_by_link(services.store, public_id, now=now))
    undo = _undo_token(services, public_id, now) if public_id else _decoy(Purpose.CONFIRM, UNDO, now + UNDO_FOR)
    return message(
        services,
        "You are unsubscribed",
        "No more digests go to the address that this link was mailed to. If one comes all the same, the link was cut: use that "
        "of the newest mail.",
        action=f"/resubscribe/{undo}",
        button="Undo",
        quiet=True,
        note="Every topic stays open to read here and as a feed.",
        note_url="/",
        note_link="See the topics.",
    )


async def _resubscribe(request: Request) -> Response:
    services = services_of(request)
    now = services.clock.now()
    public_id = subject_of(services, request.path_params["token"], Purpose.CONFIRM, scope=UNDO)
    back = None
    if public_id is not None:
        back = await in_thread(lambda: undo_leave(services.store, public_id, now=now))
    if back is None:
        return dead_link(services)
    return message(
        services,
        "You are subscribed again",
        next_words(back),
        note="Too many mails?",
        note_url=f"/preferences/{sign(services, Purpose.PREFERENCES, back.public_id)}",
        note_link="Change what you get.",
    )


def _undo_token(services: WebServices, public_id: str, now: datetime) -> str:
    return make_token(
        services.secrets[KEY_ID], Purpose.CONFIRM, public_id, scope=UNDO, key_id=KEY_ID, expires_at=now + UNDO_FOR
    )


def _decoy(purpose: str, scope: str = "", expires_at: datetime | None = None) -> str:
    """Return what looks like a token and is one of nobody: it is signed by a key that is forgotten at once."""
    subject = b32encode(secrets.token_bytes(_ID_BYTES)).decode().lower()
    return make_token(secrets.token_bytes(32), purpose, subject, scope=scope, key_id=KEY_ID, expires_at=expires_at)


def _route(path: str, method: str, handler: Callable[[Request], Awaitable[Response]]) -> Route:
    return Route(path, handler, methods=[method])


FORM_ROUTES: Sequence[Route] = (
    _route("/follow", "POST", _follow),
    _route("/confirm/{token}", "GET", _confirm_page),
    _route("/confirm/{token}", "POST", _confirm),
    _route("/unsubscribe/{token}", "GET", _unsubscribe_page),
    _route("/unsubscribe/{token}", "POST", _unsubscribe),
    _route("/resubscribe/{token}", "POST", _resubscribe),
    *PREFERENCE_ROUTES,
)
