"""The web application: which address leads where, and what becomes of errors. Floor 5. Entry point: :func:`create_app`."""

from __future__ import annotations

import logging
from typing import Any, TypeAlias

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from digestd.errors import StoreBusyError
from digestd.web.forms import FORM_ROUTES
from digestd.web.guard import Guard
from digestd.web.read import READ_ROUTES
from digestd.web.services import WebServices, page, services_of

log = logging.getLogger(__name__)

#: what a server runs
Application: TypeAlias = ASGIApp

#: status -> (heading, what to say)
_WORDS = {
    404: ("Nothing here", "There is no page at this address. It may have been typed wrong, or cut by a mail program."),
    405: ("Not possible", "This page cannot be asked in this way."),
    408: ("Too slow", "The form did not come in time."),
    413: ("Too large", "The form is too large."),
    429: ("Too many requests", "Please wait a minute and try again."),
    503: ("Busy", "The service is busy. Please try again in a minute."),
}
_OTHER = ("That did not work", "The request could not be answered.")
_BROKEN = ("Something is broken here", "The operator can see in the log what happened. Please try again later.")


def create_app(services: WebServices) -> Application:
    """Return the application, guarded."""
    app = Starlette(
        routes=[*READ_ROUTES, *FORM_ROUTES],
        exception_handlers={HTTPException: _refused, StoreBusyError: _busy},
        middleware=[Middleware(_LastResort)],
    )
    # starlette would redirect "/t/x/" to an address that it makes from the Host header, which a stranger writes
    app.router.redirect_slashes = False
    app.state.services = services
    return Guard(app, base_url=services.base_url or None)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    heading, line = _WORDS.get(error.status_code, _OTHER)
    return _error_page(request, error.status_code, (heading, line), headers=dict(error.headers or {}))


async def _busy(request: Request, error: Exception) -> Response:
    log.warning("web request failed path=%s problem=%s", request.url.path[:40], error)
    return _error_page(request, 503, _WORDS[503], headers={"Retry-After": "60"})


def _error_page(
    request: Request, status: int, words: tuple[str, str], *, headers: dict[str, str] | None = None
) -> Response:
    """Return a page about an error; what was asked for is not repeated on it."""
    heading, line = words
    values: dict[str, Any] = {"title": heading, "heading": heading, "lines": [line], "action": "", "note": ""}
    kept = {"Cache-Control": "no-store"} | (headers or {})
    return page(services_of(request), "message", status=status, headers=kept, **values)


class _LastResort:
    """Answers where a handler has a bug, and logs it; nothing of it is shown."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        started = False

        async def noted(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            await send(message)

        try:
            await self._app(scope, receive, noted)
        except Exception:  # whatever it is, the server goes on
            log.exception("web request failed path=%s", str(scope.get("path", ""))[:40])
            if started:
                raise
            await self._answer(scope, receive, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            answer = _error_page(Request(scope), 500, _BROKEN)
        except Exception:  # the page itself is what is broken
            answer = PlainTextResponse(" ".join(_BROKEN), status_code=500)
        await answer(scope, receive, send)
