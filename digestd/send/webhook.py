"""Digests as signed JSON to a web server. Floor 3; entry: ``WebhookChannel``.

The last octet of the body is the final ".": a server that has been promised more octets than it got has no message. The
signature is that of Standard Webhooks, for which there are libraries in most languages; the key of the outbox is both the
``webhook-id`` and the ``Idempotency-Key``, the same in every attempt.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime

from digestd.addresses import channel_name
from digestd.errors import FetchError
from digestd.model.delivery import Deferred, Fenced, Message, Outcome, Uncertain
from digestd.retry import Fault, classify_http
from digestd.send.envelope import unsendable
from digestd.send.plain import read_digest
from digestd.send.settings import WebhookSettings

_PREFIX = "whsec_"


class _FencedError(Exception):
    """The outbox said no."""


class WebhookChannel:
    """Posts each message to one address; keeps the contract of ``ports.Channel``."""

    def __init__(self, settings: WebhookSettings) -> None:
        self._settings = settings

    async def send(self, message: Message, *, before_dot: Callable[[], Awaitable[bool]]) -> Outcome:
        """Post one message."""
        refused = unsendable(message)
        if refused is not None:
            return refused
        payload = payload_of(message)
        is_at_dot = False

        async def body() -> AsyncIterator[bytes]:
            nonlocal is_at_dot
            yield payload[:-1]
            if not await before_dot():
                raise _FencedError
            is_at_dot = True
            yield payload[-1:]

        settings = self._settings
        headers = headers_of(read_digest(message).key, payload, settings.secret, settings.now())
        try:
            async with asyncio.timeout(settings.deadline_s):
                outcome = classify_http(await settings.post.post(settings.url, headers, body()))
        except _FencedError:
            return Fenced()
        except TimeoutError:
            outcome = self._lost(str(Fault.TIMEOUT), is_at_dot=is_at_dot)
        except asyncio.CancelledError:
            outcome = self._lost(str(Fault.CANCELLED), is_at_dot=is_at_dot)
        except FetchError as error:
            outcome = self._lost(str(error), is_at_dot=is_at_dot)
        if isinstance(outcome, Uncertain) and settings.idempotent:
            return Deferred(f"{outcome.why}; sent again, the receiver takes each key once")
        return outcome

    async def close(self) -> None:
        """Close all connections."""
        await self._settings.post.aclose()

    @staticmethod
    def _lost(why: str, *, is_at_dot: bool) -> Outcome:
        return Uncertain(f"webhook: {why}") if is_at_dot else Deferred(f"webhook: {why}")


def payload_of(message: Message) -> bytes:
    """Return the JSON that a message is posted as, the same bytes each time."""
    digest = read_digest(message)
    record = {
        "schema": "digestd.digest/1",
        "id": digest.key,
        "channel": channel_name(message.recipient),
        "date": digest.date,
        "subject": digest.subject,
        "text": digest.text,
        "html": digest.html,
        "unsubscribe": digest.unsubscribe,
    }
    return json.dumps(record, ensure_ascii=True, sort_keys=True).encode("ascii")


def headers_of(key: str, payload: bytes, secret: bytes, now: datetime) -> dict[str, str]:
    """Return the headers of a post.

    Args:
        key: the same in every attempt.
        payload: the whole body.
        secret: empty: no signature.
        now: stands in the signature, so that an old message cannot be shown again.

    Source: Standard Webhooks 1.0, signature scheme v1; draft-ietf-httpapi-idempotency-key-header 2.1.
    """
    headers = {
        "Content-Type": "application/json",
        "Content-Length": str(len(payload)),
        # a connection kept open may be closed by the other side just when the next message goes out
        "Connection": "close",
        "Idempotency-Key": f'"{key}"',
        "webhook-id": key,
    }
    if secret:
        instant = str(int(now.timestamp()))
        signed = hmac.new(secret, f"{key}.{instant}.".encode() + payload, hashlib.sha256).digest()
        headers |= {"webhook-timestamp": instant, "webhook-signature": f"v1,{base64.b64encode(signed).decode()}"}
    return headers


def secret_bytes(text: str) -> bytes:
    """Return the octets of a secret: base64 behind ``whsec_``, as Standard Webhooks writes it, else the text itself.

    Raises:
        ValueError: what stands behind ``whsec_`` is not base64.
    """
    return base64.b64decode(text.removeprefix(_PREFIX), validate=True) if text.startswith(_PREFIX) else text.encode()
