"""Bodies to web servers, through the egress guard. Floor 3; entry: ``GuardedPost``."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime

import httpcore2
import httpx2

from digestd import __version__
from digestd.errors import FetchError
from digestd.model.delivery import HttpAnswer
from digestd.polling import retry_after_s
from digestd.watch.client import GuardedTransport
from digestd.watch.guard import GuardedBackend, Network

_CONNECT_S = 15


class GuardedPost:
    """Posts to web servers; keeps the contract of ``ports.WebPost``.

    Args:
        allow_networks: networks that the operator opened by name.
        limit_s: until a connection, a piece of the body or the answer must be there.
        now: for a Retry-After that is a date.
    """

    def __init__(self, *, allow_networks: Sequence[Network], limit_s: float, now: Callable[[], datetime]) -> None:
        context: ssl.SSLContext = httpx2.create_ssl_context(trust_env=False)
        self._http = httpx2.AsyncClient(
            transport=GuardedTransport(GuardedBackend(allow_networks=allow_networks), context),
            headers={"User-Agent": f"digestd/{__version__}", "Accept": "*/*"},
            timeout=httpx2.Timeout(limit_s, connect=min(limit_s, _CONNECT_S)),
            trust_env=False,
            follow_redirects=False,
        )
        self._now = now

    async def post(self, url: str, headers: Mapping[str, str], body: AsyncIterator[bytes]) -> HttpAnswer:
        """Send a body and return the answer; of the answer's own body nothing is read."""
        self._http.cookies.clear()
        try:
            request = self._http.build_request("POST", url, headers=dict(headers), content=body)
            answer = await self._http.send(request, stream=True)
        except (httpcore2.TimeoutException, httpx2.TimeoutException) as error:
            raise FetchError("no answer in time") from error
        except (httpcore2.ConnectError, httpx2.ConnectError) as error:
            raise FetchError("no connection") from error
        except (httpcore2.NetworkError, httpcore2.ProtocolError, httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise FetchError(f"connection lost or unreadable answer: {type(error).__name__}") from error
        await answer.aclose()
        now, asked = self._now(), answer.headers.get("retry-after")
        return HttpAnswer(answer.status_code, retry_after_s(asked, now, server_date=answer.headers.get("date")))

    async def aclose(self) -> None:
        """Close all connections."""
        await self._http.aclose()
