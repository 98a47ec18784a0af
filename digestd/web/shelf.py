"""Documents in memory, ready to be sent: hash, date and the packed form are made once. Floor 5. Entry point: :class:`Shelf`."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime, parsedate_to_datetime

from starlette.requests import Request
from starlette.responses import Response

#: shorter ones gain nothing by being packed
_LEAST_PACKED = 500

PUBLIC = "public, max-age=900"
PRIVATE = "private, max-age=900"

#: end of a name -> media type
MEDIA_TYPES = {
    "rss.xml": "application/rss+xml; charset=utf-8",
    "atom.xml": "application/atom+xml; charset=utf-8",
    "feed.json": "application/feed+json; charset=utf-8",
    ".opml": "text/x-opml; charset=utf-8",
    ".css": "text/css; charset=utf-8",
}


@dataclass(frozen=True, slots=True)
class Stored:
    """A document as it is sent."""

    body: bytes
    packed: bytes  #: gzip, b"" where it is not worth it
    tag: str  #: strong ETag of the plain form
    changed_at: datetime  #: whole seconds, UTC
    media_type: str
    last_modified: str  #: ``changed_at`` as HTTP writes it


class Shelf:
    """Public documents by name; replaced whole, read from any thread."""

    def __init__(self) -> None:
        self._documents: dict[str, Stored] = {}

    def put(self, files: Mapping[str, bytes], *, now: datetime) -> tuple[str, ...]:
        """Take documents in and return the names of those that are new or changed; others keep their date."""
        written = []
        for name, body in files.items():
            known = self._documents.get(name)
            if known is None or known.body != body:
                self._documents[name] = store_document(name, body, now)
                written.append(name)
        return tuple(written)

    def get(self, name: str) -> Stored | None:
        """Return a document, None if there is none of this name."""
        return self._documents.get(name)

    def names(self) -> Sequence[str]:
        """Return the names of all documents."""
        return sorted(self._documents)


def store_document(name: str, body: bytes, now: datetime) -> Stored:
    """Return a document ready to be sent; the end of its name says what it is."""
    media_type = next((kind for end, kind in MEDIA_TYPES.items() if name.endswith(end)), "application/octet-stream")
    packed = gzip.compress(body, 6, mtime=0) if len(body) >= _LEAST_PACKED else b""
    changed_at = now.astimezone(UTC).replace(microsecond=0)
    return Stored(
        body,
        packed if len(packed) < len(body) else b"",
        f'"{hashlib.sha256(body).hexdigest()[:32]}"',
        changed_at,
        media_type,
        format_datetime(changed_at, usegmt=True),
    )


def send_document(request: Request, stored: Stored, *, cache: str = PUBLIC, private: bool = False) -> Response:
    """Return the answer to a GET or HEAD of a document: 304 where the client has it.

    Source: RFC 9110 8.8.3 (a packed form has an ETag of its own), 13.1.2 (weak comparison), 13.2.2 (If-None-Match first).
    """
    packs = bool(stored.packed) and _takes_gzip(request.headers.get("accept-encoding", ""))
    tag = f'{stored.tag[:-1]}-gzip"' if packs else stored.tag
    headers = {
        "ETag": tag,
        "Last-Modified": stored.last_modified,
        "Cache-Control": cache,
        "Vary": "Accept-Encoding",
    }
    if private:
        headers["X-Robots-Tag"] = "noindex"
    else:
        headers["Access-Control-Allow-Origin"] = "*"
    if _has_it(request, stored):
        return Response(status_code=304, headers=headers)
    headers["Content-Type"] = stored.media_type
    if packs:
        headers["Content-Encoding"] = "gzip"
    return Response(stored.packed if packs else stored.body, headers=headers)


def _has_it(request: Request, stored: Stored) -> bool:
    known = request.headers.get("if-none-match")
    if known is not None:
        tags = {one.strip().removeprefix("W/").replace('-gzip"', '"') for one in known.split(",")}
        return known.strip() == "*" or stored.tag in tags
    since = request.headers.get("if-modified-since")
    if since is None:
        return False
    try:
        when = parsedate_to_datetime(since)
    except (ValueError, TypeError, OverflowError):  # whatever a client makes up
        return False
    return stored.changed_at <= (when if when.tzinfo is not None else when.replace(tzinfo=UTC))


def _takes_gzip(accepted: str) -> bool:
    """Return whether an Accept-Encoding allows gzip (RFC 9110 12.5.3)."""
    weights = {}
    for part in accepted.lower().split(","):
        name, _, parameters = part.partition(";")
        weight = parameters.strip().removeprefix("q=").strip()
        weights[name.strip()] = not (parameters and weight and set(weight) <= set("0."))
    return weights.get("gzip", weights.get("*", False))
