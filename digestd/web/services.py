"""What the handlers of the web work with, put together once. Floor 5. Entry points: :class:`WebServices`, :func:`page`."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from starlette.requests import Request
from starlette.responses import HTMLResponse

from digestd.flows.digest import Kitchen
from digestd.flows.publish import PublishOptions
from digestd.model.pages import Site
from digestd.model.subscription import Subscription
from digestd.model.topic import Vocabulary
from digestd.ports import Clock, Store
from digestd.render.mail import Templates
from digestd.render.mime import clean_text
from digestd.tokens import read_token
from digestd.web.guard import Limiter, Rate
from digestd.web.shelf import Shelf

Answer = TypeVar("Answer")


class Memo:
    """Keeps what was worked out for as long as the key that it was worked out for stays the same; for any thread."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[object, Any]] = {}

    def get(self, name: str, key: object, make: Callable[[], Answer]) -> Answer:
        """Return what is kept under the name, made anew for a new key."""
        known = self._kept.get(name)
        if known is not None and known[0] == key:
            return cast("Answer", known[1])
        made = make()
        self._kept[name] = (key, made)
        return made


@dataclass(frozen=True, slots=True)
class WebServices:
    """All that requests are answered with."""

    store: Store
    site: Site
    templates: Templates
    clock: Clock
    publish: PublishOptions
    shelf: Shelf  #: public feeds, ready to be sent
    secrets: Mapping[str, bytes]  #: key id to secret of tokens, read beforehand: a GET must not make one
    kitchen: Kitchen | None = None  #: to make mail with; None: this service sends none, and there are no forms
    vocabulary: Callable[[], Vocabulary] = field(default=Vocabulary)
    proxies: Sequence[ipaddress.IPv4Network | ipaddress.IPv6Network] = ()  #: whose X-Forwarded-For is believed
    #: pages that cost something, by network of the client: searches, and pages of one reader
    reading: Limiter = field(default_factory=lambda: Limiter(Rate(120, 60)))
    memo: Memo = field(default_factory=Memo)

    @property
    def base_url(self) -> str:
        """The public address without a slash at its end, "" where it is not known."""
        return self.site.base_url

    def bearer(self, token: str, purpose: str) -> Subscription | None:
        """Return the subscription whose genuine token this is, None for any other text; reads the store."""
        found = read_token(self.secrets, token, purpose, self.clock.now())
        return None if found is None else self.store.subscriptions.find_public(found.subject)


def services_of(request: Request) -> WebServices:
    """Return what the application was made with."""
    services = request.app.state.services
    assert isinstance(services, WebServices)
    return services


async def in_thread(work: Callable[[], Answer]) -> Answer:
    """Return what a call gives that asks the store, made outside the event loop."""
    return await asyncio.to_thread(work)


def page(
    services: WebServices,
    template: str,
    *,
    status: int = 200,
    private: bool = False,
    headers: Mapping[str, str] | None = None,
    **values: Any,
) -> HTMLResponse:
    """Return a page of ours.

    Args:
        services: gives templates and site.
        template: name under ``web/`` without its suffixes.
        status: of the answer.
        private: a page of one reader: kept by nobody, listed by no search engine.
        headers: further ones.
        **values: what the template prints; ``title`` at least.
    """
    given = {"site": services.site, "private": private, "feeds": (), "here": "", "description": "", **values}
    html = clean_text(services.templates.get_template(f"web/{template}.html.j2").render(**given))
    kept = (
        {"Cache-Control": "private, no-store", "X-Robots-Tag": "noindex"} if private else {"Cache-Control": "no-cache"}
    )
    return HTMLResponse(html, status_code=status, headers=kept | dict(headers or {}))
