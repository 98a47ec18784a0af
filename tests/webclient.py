"""The web application asked in this process: no server, no socket, one event loop for a whole test."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from urllib.parse import unquote, urlencode

from starlette.types import Message

from digestd.flows.digest import Kitchen
from digestd.flows.publish import PublishOptions
from digestd.model.feed import FeedSite
from digestd.model.pages import Site
from digestd.store import SqlStore
from digestd.templating import build_environment
from digestd.web.app import create_app
from digestd.web.services import WebServices
from digestd.web.shelf import Shelf
from tests.followers import LABELS, Clock

BASE = "https://digest.example.org"
FORM = "application/x-www-form-urlencoded"


@dataclass(frozen=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode()

    @property
    def heading(self) -> str:
        """The page's own heading."""
        found = re.search(r"<h1>(.*?)</h1>", self.text)
        return found[1] if found else ""

    @property
    def actions(self) -> list[str]:
        """Where the page's forms lead."""
        return re.findall(r'<form method="post" action="([^"]*)"', self.text)

    @property
    def links(self) -> list[str]:
        """Where the page's links lead."""
        return re.findall(r'<a [^>]*?href="([^"]*)"', self.text)


@dataclass
class Browser:
    """Asks an application as a browser would, without cookies."""

    services: WebServices
    client: str = "192.0.2.7"
    headers: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._app = create_app(self.services)
        self._runner = asyncio.Runner()

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._runner.close()

    def ask(self, method: str, path: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Answer:
        """Return the answer to one request."""
        return self._runner.run(self._ask(method, path, body, headers or {}))

    def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        """Return a page."""
        return self.ask("GET", path, headers=headers)

    def post(
        self,
        path: str,
        fields: Sequence[tuple[str, str]] | Mapping[str, str] = (),
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Return the answer to a form."""
        return self.ask("POST", path, urlencode(fields).encode(), {"content-type": FORM, **(headers or {})})

    async def _ask(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        given = {"host": "digest.example.org", "content-length": str(len(body)), **self.headers}
        given |= headers
        path, _, query = path.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "scheme": "https",
            "method": method,
            "path": unquote(path),
            "raw_path": path.encode("utf-8", "surrogatepass"),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [(name.lower().encode(), value.encode("latin-1")) for name, value in given.items()],
            "client": (self.client, 40_000),
            "server": ("digest.example.org", 443),
        }
        sent: list[Message] = []

        async def receive() -> Message:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Message) -> None:
            sent.append(message)

        await self._app(scope, receive, send)
        start = next(one for one in sent if one["type"] == "http.response.start")
        found = {name.decode().lower(): value.decode("latin-1") for name, value in start["headers"]}
        return Answer(start["status"], found, b"".join(one.get("body", b"") for one in sent))


def make_services(store: SqlStore, kitchen: Kitchen | None, clock: Clock) -> WebServices:
    """Return services over a store, as the program makes them."""
    return WebServices(
        store=store,
        site=Site(name="Reef Papers", base_url=BASE, mail=kitchen is not None),
        templates=kitchen.templates if kitchen is not None else build_environment(),
        clock=clock,
        publish=PublishOptions(FeedSite(name="Reef Papers", authority="digest.example.org"), base_url=BASE),
        shelf=Shelf(),
        secrets={"1": store.secret("tokens")},
        kitchen=kitchen,
        vocabulary=lambda: LABELS,
    )


def file_hashes(store: SqlStore) -> list[str]:
    """Return the hashes of the history's file and of its log, byte for byte."""
    path = Path(store.engine.query("PRAGMA database_list")[0]["file"])
    files = (path, path.with_name(f"{path.name}-wal"))
    return [hashlib.sha256(file.read_bytes()).hexdigest() for file in files if file.exists()]
