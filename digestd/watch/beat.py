"""A sign of life to a service that calls for help when none comes. Floor 3. Entry point: :func:`beat`."""

from __future__ import annotations

import asyncio

import httpcore2
import httpx2

from digestd.errors import FetchError
from digestd.model.source import SourceSpec
from digestd.watch.client import WebClient

#: seconds that one may take; the next is due in a minute
_DEADLINE_S = 20


async def beat(client: WebClient, url: str) -> str:
    """Ask for a URL and return what went wrong, "" for nothing; the URL, which is a secret, is in no word of it."""
    try:
        async with asyncio.timeout(_DEADLINE_S):
            response = await client.send(httpx2.URL(url), {}, SourceSpec("heartbeat", ""))
            await response.aclose()
    except (FetchError, httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        return type(error).__name__ if url in str(error) else str(error) or type(error).__name__
    except (httpcore2.TimeoutException, httpcore2.NetworkError, httpcore2.ProtocolError) as error:
        return type(error).__name__
    except httpcore2.UnsupportedProtocol:
        return "no web address"
    return "" if 200 <= response.status_code < 300 else f"answered {response.status_code}"
