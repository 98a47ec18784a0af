"""Whether an address answers: a sign of life to a service that calls for help when none comes, and a look at our own pages.

Floor 3. Entry point: :func:`ask`.
"""

from __future__ import annotations

import asyncio

import httpcore2
import httpx2

from digestd.errors import FetchError
from digestd.model.source import SourceSpec
from digestd.watch.client import WebClient

#: seconds that it may take; the next sign of life is due in a minute
_DEADLINE_S = 20


async def ask(client: WebClient, url: str) -> str:
    """Ask for a URL and return what went wrong, "" for nothing; the URL, which may be a secret, is in no word of it."""
    try:
        async with asyncio.timeout(_DEADLINE_S):
            response = await client.send(httpx2.URL(url), {}, SourceSpec("ask", ""))
            await response.aclose()
    except (TimeoutError, httpcore2.TimeoutException):
        return "no answer in time"
    except (FetchError, httpx2.HTTPError, httpx2.InvalidURL, OSError, httpcore2.UnsupportedProtocol) as error:
        return _words("not asked", error, url)
    except httpcore2.NetworkError as error:
        return _words("no connection", error, url)
    except httpcore2.ProtocolError as error:
        return _words("no answer in HTTP", error, url)
    return "" if 200 <= response.status_code < 300 else f"answered {response.status_code}"


def _words(what: str, error: Exception, url: str) -> str:
    said = str(error)
    return what if not said or url in said else f"{what}: {said}"
