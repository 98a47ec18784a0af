"""Pages in a real browser: they load nothing from elsewhere, fit small screens, and never run a stranger's text.

Needs node, npm and Chromium; the two node packages are installed into a folder of their own, outside this tree.
"""

from __future__ import annotations

import asyncio
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from starlette.responses import HTMLResponse
from starlette.types import Receive, Scope, Send

from digestd.model.digest import Digest, DigestPaper, Headline, Links, Section, Trend
from digestd.model.snapshot import Kind
from digestd.model.subscription import SubscriptionState
from digestd.model.topic import Topic
from digestd.render.mail import render_mail
from digestd.render.outgoing import build_mail, unpack_content
from digestd.templating import build_environment
from digestd.web.app import Application
from digestd.web.server import WebServer, listen
from tests.flow.test_web_hostile import hostile_house, hostile_papers
from tests.followers import read_mail, text_of
from tests.site import BASE, NOW, House, addresses, fill, make_house
from tests.vectors import vectors

PACKAGES = ("playwright-core@1.65.1", "axe-core@4.14.1", "vnu-jar@26.9.27")
SCRIPT = Path(__file__).parents[1] / "browse.mjs"
VIEWS = [[1200, "light"], [1200, "dark"], [390, "light"], [390, "dark"]]

#: what the checker has against roles on tables; phones lay tables out as grids, which drops their own roles
KNOWN = re.compile(r"^\S+ The “role” attribute must not be used on an? “(table|thead|tbody|tr|th|td)” element")

#: dispatches what a person could do, and names links that do more than lead
PROBE = """() => {
  for (const element of document.querySelectorAll("*"))
    for (const kind of ["mouseover", "focus", "load", "error", "toggle", "animationstart"])
      element.dispatchEvent(new Event(kind));
  for (const link of document.querySelectorAll("a[href], area[href]"))
    if (!["http:", "https:", "mailto:"].includes(link.protocol)) console.log(`fired link ${link.href}`);
}"""


@dataclass(frozen=True)
class Tools:
    """What the tests of this file need."""

    modules: Path
    node: str
    chromium: str


@pytest.fixture(scope="module")
def tools() -> Tools:
    """Return node, its packages and Chromium; what is missing skips the tests and is named."""
    found = {name: shutil.which(name) for name in ("node", "npm", "chromium")}
    missing = [name for name, path in found.items() if path is None]
    if missing:
        pytest.skip(f"no {', '.join(missing)} here: pages are not looked at in a browser")
    modules = Path(tempfile.gettempdir()) / "digestd-browser"
    if not (modules / "node_modules" / "axe-core").is_dir():
        modules.mkdir(exist_ok=True)
        command = [
            str(found["npm"]),
            "install",
            "--no-audit",
            "--no-fund",
            "--ignore-scripts",
            "--prefix",
            str(modules),
        ]
        done = subprocess.run([*command, *PACKAGES], capture_output=True, text=True, timeout=100, check=False)
        if done.returncode:
            pytest.skip(f"npm cannot install {' '.join(PACKAGES)}: {done.stderr.strip()[-200:]}")
    return Tools(modules, str(found["node"]), str(found["chromium"]))


@dataclass
class Extended:
    """An application with further pages."""

    app: Application
    pages: dict[str, str] = field(default_factory=dict)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        body = self.pages.get(str(scope.get("path")))
        answer = self.app if body is None else HTMLResponse(body)
        await answer(scope, receive, send)


@asynccontextmanager
async def served(app: Application) -> AsyncIterator[str]:
    """Yield the origin at which an application is served."""
    listener = listen("127.0.0.1", 0)
    server = WebServer(app, [listener])
    task = asyncio.create_task(server.serve())
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        server.stop()
        await asyncio.wait_for(task, 20)
        listener.close()


async def browse(tools: Tools, app: Application, folder: Path, job: dict[str, Any]) -> dict[str, Any]:
    """Return what the browser found on the pages of an application."""
    async with served(app) as origin:
        (folder / "job.json").write_text(json.dumps({"origin": origin, **job}), encoding="utf-8")
        process = await asyncio.create_subprocess_exec(
            tools.node, str(SCRIPT), str(tools.modules), tools.chromium, str(folder / "job.json"),
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, err = await process.communicate()
    assert 0 == process.returncode, err.decode()[-2000:]
    found: dict[str, Any] = json.loads(out)
    return found


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """Yield an empty house."""
    found = make_house(tmp_path / "house")
    yield found
    found.store.close()


@pytest.mark.timeout(300)
async def test_pages_in_a_browser(tools: Tools, house: House, tmp_path: Path) -> None:
    """All pages, wide and narrow, light and dark: nothing comes from elsewhere, nothing is cut, axe has no complaint."""
    subscription = fill(house)
    paths = addresses(house, subscription)
    for purpose in ("preferences", "unsubscribe"):
        paths.append(f"/{purpose}/{house.token(subscription, purpose)}")
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    job = {"paths": paths, "views": VIEWS, "folder": str(pictures), "axe": True}
    found = await browse(tools, house.app, tmp_path, job)
    assert {"left": [], "axe": [], "fired": [], "wide": [], "errors": []} == {
        name: found[name] for name in ("left", "axe", "fired", "wide", "errors")
    }
    assert len(paths) * len(VIEWS) == found["visited"] == len(list(pictures.glob("*.png")))


@pytest.mark.timeout(300)
async def test_smallest_screen(tools: Tools, house: House, tmp_path: Path) -> None:
    """At 320 px no page has to be moved sideways."""
    subscription = fill(house)
    job = {"paths": addresses(house, subscription), "views": [[320, "light"]], "folder": ""}
    found = await browse(tools, house.app, tmp_path, job)
    assert ([], []) == (found["wide"], found["errors"])


@pytest.mark.timeout(300)
async def test_nothing_of_a_stranger_runs(tools: Tools, tmp_path: Path) -> None:
    """Hostile texts in pages, a mail and feed entries, opened without the protection of the policy: nothing fires."""
    house = hostile_house(tmp_path / "house")
    papers = hostile_papers()
    shown = tuple(
        DigestPaper(number, paper, Kind.NEW, datetime(2026, 9, 29, tzinfo=UTC), paper.abstract or "", paper.links[0])
        for number, paper in enumerate(papers[:120])
    )
    section = Section(Topic("x", papers[0].title), Headline(Trend.UP, papers[1].title, "+1%"), papers=shown)
    digest = Digest(papers[2].title, NOW.date(), NOW.date(), (section,))
    extended = Extended(house.app)
    extended.pages["/mail"] = render_mail(digest, Links(), build_environment(), pictures=False).html
    feed = house.services.shelf.get("reef-sound/feed.json")
    assert feed is not None
    items = json.loads(feed.body)["items"]
    extended.pages["/feed"] = "".join(f"<div>{item['content_html']}</div>" for item in items)
    topic = [
        f"/t/reef-sound?before={one.known.public_id}" for one in house.store.pages.topic_papers("reef-sound", limit=400)
    ]
    some = [f"/p/{one.known.public_id}" for one in house.store.pages.topic_papers("reef-sound", limit=400)[::20]]
    searches = [f"/search?q={quote(text)}&author={quote(text)}" for text in list(vectors())[:120:6]]
    paths = ["/", "/mail", "/feed", "/t/reef-sound", *topic[19::20], *some, *searches]
    job = {"paths": paths, "views": [[1200, "light"]], "folder": "", "probe": f"({PROBE})()"}
    found = await browse(tools, extended, tmp_path, job)
    house.store.close()
    assert ([], [], []) == (found["fired"], found["left"], found["errors"])
    assert len(paths) == found["visited"]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("view", [[1200, "light"], [390, "dark"]])
async def test_person_follows_changes_pauses_and_leaves(
    tools: Tools, house: House, tmp_path: Path, view: list[object]
) -> None:
    """With mouse and keys in a browser: follow, confirm by the mailed link, change and pause, leave; the policy in force."""
    subscription = fill(house)
    house.store.secret("confirm")

    async def walk(*steps: tuple[str, ...]) -> None:
        found = await browse(tools, house.app, tmp_path, {"paths": [], "views": [view], "folder": "", "steps": steps})
        assert ([], [], [], len(steps)) == (found["errors"], found["left"], found["fired"], found["visited"])

    await walk(
        ("goto", "/t/tide-gauges"), ("fill", "#m", "bo@example.org"), ("select", "#f", "daily"),
        ("press", "#m", "Enter"), ("reads", "Look into your mail"),
    )  # fmt: skip
    mails = [row for row in house.store.outbox.deliveries() if row.kind == "confirm"]
    content = house.store.outbox.content_of(mails[0].key)
    text = text_of(read_mail(build_mail(content.envelope.fields, unpack_content(content.content))))
    link = re.search(rf"{BASE}(/confirm/\S+)", text)
    assert link is not None
    await walk(("goto", link[1]), ("click", "main form button"), ("reads", "You will get it"))
    (bo,) = [one for one in house.store.subscriptions.subscriptions() if one.reader.address == "bo@example.org"]
    assert ("tide-gauges",) == bo.topics
    preferences = f"/preferences/{house.token(bo, 'preferences')}"
    await walk(
        ("goto", preferences), ("check", "input[name=topic][value=reef-sound]"), ("check", "input[name=every][value=weekly]"),
        ("fill", "#x", "sponges"), ("fill", "#p", "2026-12-24"), ("click", "button[value=save]"), ("reads", "sponges"),
    )  # fmt: skip
    assert bo.key is not None
    changed = house.store.subscriptions.subscription(bo.key)
    assert ({"tide-gauges", "reef-sound"}, date(2026, 12, 24)) == (set(changed.topics), changed.paused_until)
    assert ["sponges"] == [rule.value for rule in changed.preferences.filter.exclude]
    await walk(
        ("goto", f"/unsubscribe/{house.token(bo, 'unsubscribe')}"), ("click", "main form button"), ("reads", "unsubscribed"),
    )  # fmt: skip
    assert SubscriptionState.ENDED is house.store.subscriptions.subscription(bo.key).state
    assert SubscriptionState.ACTIVE is house.store.subscriptions.subscription(subscription.key or 0).state


async def test_what_runs_is_seen(tools: Tools, house: House, tmp_path: Path) -> None:
    """The look itself sees a handler, a link that runs, and a picture from elsewhere."""
    extended = Extended(house.app)
    extended.pages["/a"] = "<p>x<img src=x onerror=alert(1)>"
    extended.pages["/b"] = "<p><a href='javascript:alert(1)'>x</a>"
    extended.pages["/c"] = "<p><img src='http://127.0.0.1:9/x.png'>"
    job = {"paths": ["/a", "/b", "/c"], "views": [[1200, "light"]], "folder": "", "probe": f"({PROBE})()"}
    found = await browse(tools, extended, tmp_path, job)
    assert any(line.startswith("fired alert") for line in found["fired"])
    assert any(line.startswith("fired link javascript:") for line in found["fired"])
    assert ["http://127.0.0.1:9/x.png"] == found["left"]


def test_pages_are_valid(tools: Tools, house: House, tmp_path: Path) -> None:
    """The checker of the W3C finds no error on any page."""
    java = shutil.which("java")
    jar = tools.modules / "node_modules" / "vnu-jar" / "build" / "dist" / "vnu.jar"
    if java is None or not jar.is_file():
        pytest.skip("no java or no vnu.jar here: pages are not validated")
    subscription = fill(house)
    paths = addresses(house, subscription)
    for purpose in ("preferences", "unsubscribe"):
        paths.append(f"/{purpose}/{house.token(subscription, purpose)}")
    folder = tmp_path / "pages"
    folder.mkdir()
    for number, path in enumerate(paths):
        (folder / f"{number:02d}.html").write_text(house.client.get(path).text, encoding="utf-8")
    done = subprocess.run(
        [java, "-jar", str(jar), "--format", "json", "--stdout", str(folder)],
        capture_output=True, text=True, timeout=110, check=False,
    )  # fmt: skip
    messages = json.loads(done.stdout)["messages"]
    faults = [f"{one['url'][-7:]} {one['message']}" for one in messages if one["type"] == "error"]
    assert [] == [fault for fault in faults if not KNOWN.search(fault)]
