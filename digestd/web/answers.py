"""What pages of one reader have in common: messages, tokens, forms as they come in. Floor 5.

Entry points: :func:`message`, :func:`dead_link`, :func:`subject_of`, :func:`sign`, :func:`typed`.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from digestd.model.subscription import Subscription
from digestd.phrases import full_day
from digestd.schedule import find_zone
from digestd.tokens import make_token, read_token
from digestd.web.services import WebServices, page

#: key that signs, as that of mails
KEY_ID = "1"


def message(
    services: WebServices,
    heading: str,
    *lines: str,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    **values: object,
) -> Response:
    """Return a page of few words, with one button where ``action`` says what it does; not to be kept by anybody."""
    given: dict[str, object] = {"action": "", "button": "", "quiet": False, "note": "", "note_url": "", "note_link": ""}
    given |= {"title": f"{heading}, {services.site.name}", "heading": heading, "lines": lines} | values
    return page(services, "message", status=status, private=True, headers=headers, **given)


def dead_link(services: WebServices) -> Response:
    """Return the one answer to all tokens that give no access, whatever is wrong with them."""
    return message(
        services,
        "This link does not work",
        "It may be too old, or cut off by a mail program, or what it was for has ended.",
        status=404,
        note="Every topic stays open to read here.",
        note_url="/",
        note_link="See the topics.",
    )


def subject_of(services: WebServices, token: str, purpose: str, *, scope: str = "") -> str | None:
    """Return whose genuine token this is (a public id); None for any other text, another purpose or scope, or an old one."""
    found = read_token(services.secrets, token, purpose, services.clock.now())
    return found.subject if found is not None and found.scope == scope else None


def sign(services: WebServices, purpose: str, subject: str) -> str:
    """Return a token without end, as mails have it."""
    return make_token(services.secrets[KEY_ID], purpose, subject, key_id=KEY_ID)


async def typed(request: Request) -> list[tuple[str, str]]:
    """Return the fields of a form in their order; one of another kind than our pages send is refused."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().casefold()
    if kind != "application/x-www-form-urlencoded":
        raise HTTPException(415)
    body = await request.body()
    return parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True)


def next_words(subscription: Subscription) -> str:
    """Return when the next digest comes, in words."""
    due = subscription.next_due_at
    if due is None:
        return "The next digest comes as soon as there is something new."
    return f"The next digest comes on {full_day(due.astimezone(find_zone(subscription.zone)).date())}."
