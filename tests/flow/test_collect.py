"""Sources into the history, end to end: real servers on loopback, real folders, a real history; each paper is told once."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from functools import partial
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from digestd.errors import StoreBusyError
from digestd.flows.audit import Shelf, audit
from digestd.flows.collect import CollectOptions, collect, retry
from digestd.flows.ingest import IngestOptions, Parse
from digestd.flows.read_source import Collected, Watched
from digestd.model.snapshot import Document, Page
from digestd.model.source import SourceSpec
from digestd.model.topic import Vocabulary
from digestd.parse import parse_document
from digestd.store import SqlStore, open_store
from digestd.watch import SOURCES
from digestd.watch.client import WebClient
from digestd.watch.folder import FolderSource
from digestd.watch.shelf import hash_file, shelved
from tests.command import Answer, Desk, make_desk
from tests.feeds import rss

NEWEST = date(2026, 9, 28)
START = datetime(2026, 9, 29, 6, 0, tzinfo=UTC)  # a Tuesday


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Desk]:
    """A folder with settings and a history of its own."""
    yield from make_desk(tmp_path / "desk", capsys)


def at(hours: float) -> str:
    """Return an instant so many hours after the start."""
    return (START + timedelta(hours=hours)).isoformat()


def settings_for(*sources: str, more: str = "") -> str:
    """Return settings with these sources; loopback is opened by name."""
    fetch = '[fetch]\nallow_networks = ["127.0.0.1"]\nhost_interval_s = 0\n'
    return more + fetch + "".join(f"[[sources]]\n{source}\n" for source in sources)


def url_source(server: HTTPServer, path: str = "/feed", *, name: str = "reef", more: str = "") -> str:
    """Return the settings of a watched address."""
    return f'kind = "url"\nname = "{name}"\nurl = "{server.url_for(path)}"\n{more}'


def item(number: int, *, categories: Sequence[str] = ("cs.SD",), text: str = "Waves are loud.") -> str:
    """Return a feed's item: one invented paper."""
    labels = "".join(f"<category>{category}</category>" for category in categories)
    return (
        f"<title>Tide Note {number}</title><link>https://tide.example/{number}</link>"
        f"<pubDate>Mon, 28 Sep 2026 0{number % 10}:00:00 GMT</pubDate><description>{text}</description>"
        f"<dc:creator>Ida Moss</dc:creator>{labels}"
    )


def listing(numbers: Sequence[int], total: int, *, topic: str = "Tide Sound") -> str:
    """Return a page of a listing as a JSON snapshot; larger numbers are newer, one a day."""
    papers = [
        {
            "title": f"Tide Note {number}",
            "date": (NEWEST - timedelta(days=100 - number)).isoformat(),
            "authors": [f"Ida Moss{number}"],
            "abstract": f"Of the tide of day {number}.",
        }
        for number in numbers
    ]
    head = {"schema": "digestd.snapshot/1", "topic": topic, "order": "listing", "total_papers": total}
    return json.dumps(head | {"papers": papers})


def told(answer: Answer, kind: str = "new") -> list[str]:
    """Return all titles of a kind that a run printed."""
    return [title for one in answer.objects for title in one[kind]]


def sources_of(desk: Desk, now: str) -> dict[str, dict[str, Any]]:
    """Return what status says of each source."""
    return {source["source"]: source for source in desk("status", "--json", "--now", now).one["sources"]}


def serve_pages(server: HTTPServer, pages: dict[str, str | int]) -> list[str]:
    """Serve a listing by its page numbers, an int is a status; return the list of pages asked for, as it grows."""
    asked: list[str] = []

    def answer(request: Request) -> Response:
        number = request.args.get("page", "1")
        asked.append(number)
        page = pages.get(number, 404)
        return Response(status=page) if isinstance(page, int) else Response(page, mimetype="application/json")

    server.expect_request("/list").respond_with_handler(answer)
    return asked


# -- feeds


def test_collect_feed_tells_each_paper_once(desk: Desk, httpserver: HTTPServer) -> None:
    """The first fetch is where the feed starts, what comes later is new once, and nothing is new the next time."""
    desk.configure(settings_for(url_source(httpserver)))
    numbers = [1, 2]
    httpserver.expect_request("/feed").respond_with_handler(lambda _: Response(rss(*map(item, numbers))))
    first = desk("collect", "--json", "--now", at(0))
    numbers.append(3)
    second = desk("collect", "--json", "--now", at(2))
    third = desk("collect", "--json", "--now", at(4))
    assert (0, 0, 0) == (first.status, second.status, third.status)
    assert ["Tide Note 1", "Tide Note 2"] == told(first, "baseline")
    assert [[], ["Tide Note 3"], []] == [told(answer) for answer in (first, second, third)]
    assert [True] == [one["unchanged"] for one in third.objects]


def test_collect_asks_only_what_is_due(desk: Desk, httpserver: HTTPServer) -> None:
    """A source is left alone until its interval is over, unless all are asked for."""
    desk.configure(settings_for(url_source(httpserver, more="interval_s = 7200\n")))
    httpserver.expect_request("/feed").respond_with_data(rss(item(1)))
    for args in ([at(0)], [at(1)], [at(1), "--all"], [at(5)]):
        desk("collect", "--now", *args)
    assert 3 == len(httpserver.log)


def test_collect_respects_the_feeds_ttl(desk: Desk, httpserver: HTTPServer) -> None:
    """A feed that asks to be left alone for six hours is, and also after "not modified"."""
    desk.configure(settings_for(url_source(httpserver)))

    def answer(request: Request) -> Response:
        if request.headers.get("If-None-Match"):
            return Response(status=304)
        return Response(rss(item(1), head="<ttl>360</ttl>"), headers={"ETag": '"a"'})

    httpserver.expect_request("/feed").respond_with_handler(answer)
    desk("collect", "--now", at(0))
    assert at(6).replace("+00:00", "Z") == sources_of(desk, at(0))["reef"]["next_try_at"]
    desk("collect", "--now", at(5))
    desk("collect", "--now", at(6.5))
    assert [200, 304] == [response.status_code for _, response in httpserver.log]
    assert at(12.5).replace("+00:00", "Z") == sources_of(desk, at(7))["reef"]["next_try_at"]


def test_collect_error_page_with_status_200_changes_nothing(desk: Desk, httpserver: HTTPServer) -> None:
    """A maintenance page is broken, not empty: history and validators stay, and the next good page is read."""
    desk.configure(settings_for(url_source(httpserver)))
    bodies = [
        (rss(item(1)), "good"),
        ("<html><head><title>Down for maintenance</title></head><body><h1>Sorry</h1></body></html>", "bad"),
        (rss(item(1), item(2)), "good2"),
    ]

    def answer(_: Request) -> Response:
        body, tag = bodies.pop(0)
        return Response(body, headers={"ETag": f'"{tag}"'})

    httpserver.expect_request("/feed").respond_with_handler(answer)
    runs = [desk("collect", "--json", "--now", at(hours)) for hours in (0, 2)]
    broken = sources_of(desk, at(2))["reef"]
    runs.append(desk("collect", "--json", "--now", at(20)))
    assert [0, 1, 0] == [run.status for run in runs]
    assert [[], [], ["Tide Note 2"]] == [told(run) for run in runs]
    assert ("broken", at(2).replace("+00:00", "Z")) == (broken["health"], broken["since"])
    assert broken["why"]
    assert broken["next_try_at"] > at(2)
    assert [None, '"good"', '"good"'] == [request.headers.get("If-None-Match") for request, _ in httpserver.log]
    assert "ok" == sources_of(desk, at(20))["reef"]["health"]


def test_collect_failing_source_does_not_stop_its_neighbours(desk: Desk, httpserver: HTTPServer) -> None:
    """One source that is down, one that is refused and one that is no page: the fourth is read all the same."""
    desk.configure(
        settings_for(
            url_source(httpserver, "/down", name="down"),
            'kind = "url"\nname = "refused"\nurl = "http://10.0.0.1/feed"',
            url_source(httpserver, "/picture", name="picture"),
            url_source(httpserver),
        )
    )
    httpserver.expect_request("/down").respond_with_data("", status=500)
    httpserver.expect_request("/picture").respond_with_data(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    httpserver.expect_request("/feed").respond_with_data(rss(item(1)))
    answer = desk("collect", "--json", "--now", at(0))
    assert 1 == answer.status
    assert ["Tide Note 1"] == told(answer, "baseline")
    assert ["down", "picture", "refused"] == sorted(one["source"] for one in answer.objects if one["error"])
    found = sources_of(desk, at(0))
    assert ["broken", "broken", "not_a_topic_page", "ok"] == [
        found[name]["health"] for name in ("down", "refused", "picture", "reef")
    ]


def test_collect_moved_feed_is_the_same_source(desk: Desk, httpserver: HTTPServer) -> None:
    """A feed that moves away starts no new baseline: what is new on the day of the move is told."""
    desk.configure(settings_for(url_source(httpserver, "/old")))
    moved = [False]

    def old(_: Request) -> Response:
        if moved[0]:
            return Response(status=301, headers={"Location": httpserver.url_for("/new/home.xml")})
        return Response(rss(item(1)))

    httpserver.expect_request("/old").respond_with_handler(old)
    httpserver.expect_request("/new/home.xml").respond_with_data(rss(item(1), item(2)))
    desk("collect", "--now", at(0))
    moved[0] = True
    assert ["Tide Note 2"] == told(desk("collect", "--json", "--now", at(2)))


def test_collect_batch_served_again_is_known_however_it_was_read(desk: Desk, httpserver: HTTPServer) -> None:
    """A batch of which only the new item was read is known when it comes again after a later one."""
    desk.configure(settings_for(url_source(httpserver)))
    served = [""]
    httpserver.expect_request("/feed").respond_with_handler(lambda _: Response(served[0]))
    states = []
    for hours, numbers in ((0, [1, 2]), (24, [3, 1, 2]), (48, [4, 3, 1]), (72, [2, 1, 3]), (96, [5, 3, 1])):
        served[0] = rss(*map(item, numbers))
        desk("collect", "--now", at(hours))
        found = sources_of(desk, at(hours))["reef"]
        states.append((found["health"], found["why"]))
    assert ["ok", "ok", "ok", "stale", "ok"] == [state for state, _ in states]
    assert "2026-09-30" in states[3][1]


async def test_collect_changed_feed_is_parsed_in_its_new_items_only(
    tmp_path: Path, httpserver: HTTPServer, bench: Bench
) -> None:
    """Of a feed that comes again with one new item, that item is parsed, and what a poll says is of the whole feed."""
    read: list[int] = []

    def parse(document: Document, vocabulary: Vocabulary) -> Page:
        page = parse_document(document, vocabulary)
        read.append(len(page.papers))
        return page

    bodies = [rss(*map(item, numbers)) for numbers in ((1, 2), (3, 1, 2), (3, 2, 1))]
    spec = SourceSpec("reef", httpserver.url_for("/feed").replace("localhost", "127.0.0.1"), kind="http")
    allow = (ip_network("127.0.0.1/32"),)
    for hours, body in enumerate(bodies):
        httpserver.clear()
        httpserver.expect_request("/feed").respond_with_data(body, content_type="application/rss+xml")
        async with WebClient(contact_url="https://digestd.example/", allow_networks=allow, host_gap_s=0) as client:
            source = SOURCES["http"](spec, client)
            options = CollectOptions(START + timedelta(hours=hours), lambda: 0.0, ignore_due=True)
            assert 0 == await collect(bench.store, [Watched(source, IngestOptions(now=START), parse)], options)
    assert [2, 1] == read[:2]
    assert not any(read[2:])
    assert [2, 3, 3] == [poll.papers for poll in bench.store.sources.polls("reef")]


def test_collect_listing_not_modified_is_seen_again(desk: Desk, httpserver: HTTPServer) -> None:
    """A server that says each day that nothing changed has shown its listing each day: the weeks were quiet, not unseen."""

    def answer(request: Request) -> Response:
        if request.headers.get("If-None-Match") == '"one"':
            return Response(status=304)
        return Response(listing([98, 97, 96], 3), mimetype="application/json", headers={"ETag": '"one"'})

    httpserver.expect_request("/feed").respond_with_handler(answer)
    desk.configure(settings_for(url_source(httpserver)))
    for day in range(15):
        assert 0 == desk("collect", "--now", at(24 * day)).status
    with closing(open_store(desk.folder / "history.sqlite")) as store:
        (stretch,) = store.history.coverage("tide-sound").stretches
    assert START + timedelta(days=14) == stretch.seen_at


def test_collect_quiet_and_stale_are_told_apart(desk: Desk, httpserver: HTTPServer) -> None:
    """An empty feed on a skip day is quiet, with the reason; an earlier batch served again is stale."""
    desk.configure(settings_for(url_source(httpserver, more="daily = true\n")))
    skip = "<skipDays><day>Saturday</day><day>Sunday</day></skipDays>"
    bodies = {
        0: rss(item(1), item(2)),
        24: rss(item(3), item(4)),
        48: rss(item(2), item(1)),
        96: rss(head=f"<pubDate>Sat, 03 Oct 2026 00:00:00 -0400</pubDate>{skip}"),
    }
    served = [""]
    httpserver.expect_request("/feed").respond_with_handler(lambda _: Response(served[0]))
    states = []
    for hours, body in bodies.items():
        served[0] = body
        desk("collect", "--now", at(hours))
        found = sources_of(desk, at(hours))["reef"]
        states.append((found["health"], found["why"]))
    assert ["ok", "ok", "stale", "quiet"] == [state for state, _ in states]
    assert "2026-09-29" in states[2][1]
    assert "Saturday" in states[3][1]


def test_collect_a_source_rests_on_the_days_its_settings_name(desk: Desk, httpserver: HTTPServer) -> None:
    """On a holiday and on a rest day an old or empty batch is no fault, by the days of the source's own zone."""
    rests = (
        'daily = true\nzone = "Pacific/Auckland"\ndue_by = "12:00"\nrest_days = ["sun"]\n'
        'holidays = ["2026-09-30 Kelp Day", "2026-10-01"]\n'
    )
    desk.configure(settings_for(url_source(httpserver, more=rests)))
    batch = rss(item(1), item(2))
    # it is 13 hours later in Auckland
    days = {0: batch, 12: batch, 24: rss(), 48: rss(), 64: batch, 66: batch, 84: batch, 114: batch}
    served = [""]
    httpserver.expect_request("/feed").respond_with_handler(lambda _: Response(served[0]))
    states = []
    for hours, body in days.items():
        served[0] = body
        desk("collect", "--now", at(hours))
        found = sources_of(desk, at(hours))["reef"]
        states.append((found["health"], found["why"]))
    assert states == [
        ("ok", ""),  # Tuesday 29th, 19:00
        ("ok", ""),  # Wednesday 30th, 07:00: a holiday, else it would be stale
        ("quiet", "holiday: Kelp Day"),
        ("quiet", "holiday"),
        ("ok", ""),  # Friday, 11:00: not due yet
        ("stale", "the batch of 2026-09-29 is served again"),
        ("stale", "the batch of 2026-09-29 is served again"),  # Saturday, 07:00: Friday's never came
        ("ok", ""),  # Sunday, 13:00
    ]


def test_collect_unknown_source_name_is_an_error_of_use(desk: Desk) -> None:
    """A misspelt source is told, with the ones that there are."""
    desk.configure(settings_for('kind = "folder"\nname = "inbox"\npath = "incoming"'))
    answer = desk("collect", "--source", "imbox")
    assert 78 == answer.status
    assert "inbox" in answer.err


# -- listings and their further pages


def page_template(server: HTTPServer, more: str = "") -> str:
    """Return the settings of a listing with further pages."""
    template = server.url_for("/list").rstrip("/") + "?page={page}"
    return url_source(server, "/list", more=f'page_template = "{template}"\n{more}')


def test_collect_walks_down_to_what_is_known(desk: Desk, httpserver: HTTPServer) -> None:
    """After a long pause all that came is told, each once, and the walk leaves no gap and asks no page too many."""
    desk.configure(settings_for(page_template(httpserver)))
    pages: dict[str, str | int] = {"1": listing([82, 81, 80], 3)}
    asked = serve_pages(httpserver, pages)
    desk("collect", "--now", at(0))
    pages |= {
        "1": listing([90, 89, 88], 11),
        "2": listing([87, 86, 85], 11),
        "3": listing([84, 83, 82], 11),
        "4": listing([81, 80], 11),
    }
    run = desk("collect", "--json", "--now", at(24))
    again = desk("collect", "--json", "--now", at(48))
    assert ["1", "1", "2", "3", "1"] == asked
    assert [f"Tide Note {number}" for number in range(90, 82, -1)] == told(run)
    assert [] == told(again)
    status = desk("status", "--json", "--now", at(48)).one
    assert ("ok", []) == (status["sources"][0]["health"], status["topics"][0]["gaps"])
    assert (11, 0) == (status["topics"][0]["known"], status["topics"][0]["missing"])


def test_collect_first_walk_is_all_baseline(desk: Desk, httpserver: HTTPServer) -> None:
    """The pages of the first walk are the start as a whole: none of their papers is news, and nothing lies between them."""
    desk.configure(settings_for(page_template(httpserver, "max_pages = 3\n")))
    asked = serve_pages(httpserver, {str(n): listing([93 - 3 * n, 92 - 3 * n, 91 - 3 * n], 40) for n in range(1, 9)})
    run = desk("collect", "--json", "--now", at(0))
    assert ["1", "2", "3"] == asked
    assert [f"Tide Note {number}" for number in range(90, 81, -1)] == told(run, "baseline")
    assert [] == desk("status", "--json", "--now", at(0)).one["topics"][0]["gaps"]


def test_collect_listing_that_moves_under_the_walk(desk: Desk, httpserver: HTTPServer) -> None:
    """A paper that comes in during the walk pushes one down onto the next page: it is told once, without a gap."""
    desk.configure(settings_for(page_template(httpserver)))
    pages: dict[str, str | int] = {"1": listing([82, 81], 2)}
    serve_pages(httpserver, pages)
    desk("collect", "--now", at(0))
    pages |= {
        "1": listing([88, 87], 8),
        "2": listing([87, 86], 9),
        "3": listing([85, 84], 9),
        "4": listing([83, 82], 9),
    }
    run = desk("collect", "--json", "--now", at(24))
    assert [f"Tide Note {number}" for number in range(88, 82, -1)] == told(run)
    pages["1"] = listing([89, 88], 9)
    assert ["Tide Note 89"] == told(desk("collect", "--json", "--now", at(48)))
    assert [] == desk("status", "--json", "--now", at(48)).one["topics"][0]["gaps"]


def test_collect_walk_that_breaks_off_is_made_again(desk: Desk, httpserver: HTTPServer) -> None:
    """What a broken walk left out is a gap at once, and is fetched next time although its first page is known by then."""
    desk.configure(settings_for(page_template(httpserver)))
    pages: dict[str, str | int] = {"1": listing([82, 81], 2)}
    asked = serve_pages(httpserver, pages)
    desk("collect", "--now", at(0))
    pages |= {"1": listing([88, 87], 8), "2": listing([86, 85], 8), "3": 500, "4": listing([82, 81], 8)}
    first = desk("collect", "--json", "--now", at(24))
    assert [f"Tide Note {number}" for number in (88, 87, 86, 85)] == told(first)
    assert "gap" == sources_of(desk, at(24))["reef"]["health"]
    pages["3"] = listing([84, 83], 8)
    second = desk("collect", "--json", "--now", at(48))
    assert ["Tide Note 84", "Tide Note 83"] == told(second)
    assert "ok" == sources_of(desk, at(48))["reef"]["health"]
    desk("collect", "--json", "--now", at(72))
    assert ["1", "1", "2", "3", "1", "2", "3", "4", "1"] == asked


def test_collect_walk_into_a_limit_says_what_is_missing(desk: Desk, httpserver: HTTPServer) -> None:
    """A pause longer than the pages that may be read is a gap with its dates, and is not walked again for ever."""
    desk.configure(settings_for(page_template(httpserver, "max_pages = 2\n")))
    pages: dict[str, str | int] = {"1": listing([60, 59], 2)}
    asked = serve_pages(httpserver, pages)
    desk("collect", "--now", at(0))
    pages |= {str(n): listing([102 - 2 * n, 101 - 2 * n], 42) for n in range(1, 20)}
    desk("collect", "--now", at(24))
    found = sources_of(desk, at(24))["reef"]
    desk("collect", "--now", at(48))
    assert ("gap", [{"since": "2026-08-19", "until": "2026-09-25"}]) == (found["health"], found["gaps"])
    assert ["1", "1", "2", "1"] == asked


def test_collect_error_page_within_a_walk(desk: Desk, httpserver: HTTPServer) -> None:
    """A further page that is an error page with status 200 ends the walk as a failure, and costs no paper."""
    desk.configure(settings_for(page_template(httpserver)))
    pages: dict[str, str | int] = {"1": listing([82, 81], 2)}
    serve_pages(httpserver, pages)
    desk("collect", "--now", at(0))
    pages |= {"1": listing([86, 85], 6), "2": "<html><title>Bad gateway</title><h1>502</h1></html>"}
    first = desk("collect", "--json", "--now", at(24))
    pages |= {"2": listing([84, 83], 6), "3": listing([82, 81], 6)}
    second = desk("collect", "--json", "--now", at(48))
    assert [["Tide Note 86", "Tide Note 85"], ["Tide Note 84", "Tide Note 83"]] == [told(first), told(second)]


# -- topics for sources that have none


TWO_TOPICS = """
[[topics]]
name = "Reef Sound"
[topics.match]
any_of = ["reef"]
[[topics]]
name = "Kelp Growth"
[topics.match]
all_of = ["kelp"]
none_of = ["survey"]
categories = ["q-bio."]
"""


def test_collect_one_feed_serves_two_topics(desk: Desk, httpserver: HTTPServer) -> None:
    """Match rules deal one feed's papers out to several topics; a paper of both is one paper in both."""
    desk.configure(settings_for(url_source(httpserver), more=TWO_TOPICS))
    items = [item(1)]
    httpserver.expect_request("/feed").respond_with_handler(lambda _: Response(rss(*items)))
    desk("collect", "--now", at(0))
    items += [
        item(2, text="A reef hums."),
        item(3, text="Kelp grows.", categories=["q-bio.PE"]),
        item(4, text="Kelp on a reef.", categories=["q-bio.PE", "cs.SD"]),
        item(5, text="Kelp: a survey.", categories=["q-bio.PE"]),
        item(6, text="Kelp, in code.", categories=["cs.SE"]),
    ]
    run = desk("collect", "--json", "--now", at(2))
    assert {"Reef Sound": ["Tide Note 2", "Tide Note 4"], "Kelp Growth": ["Tide Note 3", "Tide Note 4"]} == run.objects[
        0
    ]["also"]
    rows = {name: desk("papers", "--topic", name, "--json").one for name in ("Reef Sound", "Kelp Growth")}
    both = {row["public_id"] for row in rows["Reef Sound"]} & {row["public_id"] for row in rows["Kelp Growth"]}
    assert 1 == len(both)
    assert {("new", "rule")} == {(row["kind"], row["via"]) for found in rows.values() for row in found}


def test_collect_topic_declared_later_starts_with_what_is_known(desk: Desk, httpserver: HTTPServer) -> None:
    """A topic that is declared when its papers are known already has them as its baseline: they are no news."""
    desk.configure(settings_for(url_source(httpserver)))
    items = [item(1, text="A reef hums."), item(2)]
    httpserver.expect_request("/feed").respond_with_handler(lambda _: Response(rss(*items)))
    desk("collect", "--now", at(0))
    desk.configure(settings_for(url_source(httpserver), more=TWO_TOPICS))
    items.append(item(3, text="A reef sings."))
    desk("collect", "--now", at(2))
    rows = desk("papers", "--topic", "Reef Sound", "--json").one
    assert {"Tide Note 1": "baseline", "Tide Note 3": "new"} == {row["title"]: row["kind"] for row in rows}


def test_collect_wider_rule_makes_no_news_of_what_is_known(desk: Desk, httpserver: HTTPServer) -> None:
    """Papers that only a changed rule lets in were known before: they join the topic and are told to nobody."""
    narrow = '[[topics]]\nname = "Reef Sound"\n[topics.match]\nany_of = ["reef"]\n'
    desk.configure(settings_for(url_source(httpserver), more=narrow))
    httpserver.expect_request("/feed").respond_with_data(rss(item(1, text="A reef hums."), item(2, text="A bay hums.")))
    desk("collect", "--now", at(0))
    desk.configure(settings_for(url_source(httpserver), more=narrow.replace('"reef"]', '"reef", "bay"]')))
    desk("collect", "--now", at(2))
    rows = desk("papers", "--topic", "Reef Sound", "--json").one
    assert {"Tide Note 1": "baseline", "Tide Note 2": "baseline"} == {row["title"]: row["kind"] for row in rows}


def test_collect_honours_topic_order_format_and_rules(desk: Desk, httpserver: HTTPServer) -> None:
    """What the settings say of a source is how its documents are read."""
    desk.put("cards.toml", 'order = "listing"\nitem = "li"\ntitle = "b"\n')
    page = "<html><body><ul>" + "".join(f"<li><b>Foam Note {n}</b></li>" for n in (1, 2)) + "</ul></body></html>"
    desk.configure(
        settings_for(
            url_source(
                httpserver, "/cards", name="cards", more='topic = "Foam"\nrules = "cards.toml"\norder = "feed"\n'
            ),
            url_source(httpserver, "/list", name="list", more='format = "snapshot"\norder = "feed"\ntopic = "Spray"\n'),
            url_source(httpserver, "/wrong", name="wrong", more='format = "snapshot"\n'),
        )
    )
    httpserver.expect_request("/cards").respond_with_data(page)
    httpserver.expect_request("/list").respond_with_data(listing([82, 81], 2))
    httpserver.expect_request("/wrong").respond_with_data(rss(item(1)))
    run = desk("collect", "--json", "--now", at(0))
    by_source = {one["source"]: one for one in run.objects}
    assert ("Foam", ["Foam Note 1", "Foam Note 2"]) == (by_source["cards"]["topic"], by_source["cards"]["baseline"])
    assert ("Spray", ["Tide Note 82", "Tide Note 81"]) == (by_source["list"]["topic"], by_source["list"]["baseline"])
    assert by_source["wrong"]["error"]
    topics = {topic["topic"]: topic for topic in desk("status", "--json", "--now", at(0)).one["topics"]}
    assert all("gaps can't be ruled out" in topics[name]["coverage"] for name in ("Foam", "Spray"))


def test_collect_same_bytes_read_another_way(desk: Desk, httpserver: HTTPServer) -> None:
    """A changed setting reads a page anew although its bytes are the same."""
    desk.configure(settings_for(url_source(httpserver, "/list")))
    httpserver.expect_request("/list").respond_with_data(listing([82, 81], 2))
    desk("collect", "--now", at(0))
    desk.configure(settings_for(url_source(httpserver, "/list", more='topic = "Spray"\n')))
    assert ["Spray"] == [one["topic"] for one in desk("collect", "--json", "--now", at(2)).objects]


# -- folders


def drop(desk: Desk, name: str, body: str | bytes, *, hours: float = -1) -> Path:
    """Put a file into the watched folder, as of an instant."""
    path = desk.put(f"incoming/{name}", body)
    instant = (START + timedelta(hours=hours)).timestamp()
    os.utime(path, (instant, instant))
    return path


FOLDER = 'kind = "folder"\nname = "inbox"\npath = "incoming"'


def names(folder: Path) -> list[str]:
    """Return all files below a folder."""
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_collect_folder_reads_puts_away_and_sets_aside(desk: Desk) -> None:
    """Read files go to done, a bad one to quarantine with its reason, and neither stops the other."""
    desk.configure(settings_for(FOLDER))
    drop(desk, "1.json", listing([82, 81], 2), hours=-3)
    drop(desk, "2.json", '{"schema": "digestd.snapshot/1"}', hours=-2)
    drop(desk, "3.json", listing([83, 82], 3), hours=-1)
    run = desk("collect", "--json", "--now", at(0))
    assert (1, ["Tide Note 83"]) == (run.status, told(run))
    incoming = desk.folder / "incoming"
    assert [
        "done/2026-09/1.json",
        "done/2026-09/3.json",
        "quarantine/2.json",
        "quarantine/2.json.why.txt",
    ] == names(incoming)
    assert "topic" in (incoming / "quarantine/2.json.why.txt").read_text(encoding="utf-8")
    assert 0 == desk("collect", "--json", "--now", at(1)).status


def test_collect_folder_keeps_files_if_asked(desk: Desk) -> None:
    """With folders.done = "keep" a file stays, and the next run finds nothing new in it."""
    desk.configure('[folders]\ndone = "keep"\n' + settings_for(FOLDER))
    drop(desk, "1.json", listing([82, 81], 2))
    first, second = (desk("collect", "--json", "--now", at(hours)) for hours in (0, 1))
    assert ["Tide Note 82", "Tide Note 81"] == told(first, "baseline")
    assert [True] == [one["unchanged"] for one in second.objects]
    assert ["1.json"] == names(desk.folder / "incoming")


def test_collect_folder_that_is_missing_is_broken_until_it_is_there(desk: Desk) -> None:
    """A folder that went away is broken since then; once it is there again, though empty, it is ok."""
    desk.configure(settings_for(FOLDER))
    first = desk("collect", "--json", "--now", at(0))
    assert (1, "broken") == (first.status, sources_of(desk, at(0))["inbox"]["health"])
    (desk.folder / "incoming").mkdir()
    assert 0 == desk("collect", "--json", "--now", at(1)).status
    found = sources_of(desk, at(1))["inbox"]
    assert ("ok", at(1).replace("+00:00", "Z")) == (found["health"], found["last_good_at"])


def test_ingest_retry_reads_quarantine_again(desk: Desk) -> None:
    """Files in quarantine are read again on request: those that can be are done, the others keep all their reasons."""
    desk.configure(settings_for(FOLDER))
    drop(desk, "1.json", '{"schema": "digestd.snapshot/1"}')
    drop(desk, "2.json", '{"schema": "digestd.snapshot/9"}')
    desk("collect", "--now", at(0))
    quarantine = desk.folder / "incoming/quarantine"
    (quarantine / "1.json").write_text(listing([82, 81], 2), encoding="utf-8")
    run = desk("ingest", "--retry", "--json", "--now", at(1))
    assert (1, ["Tide Note 82", "Tide Note 81"]) == (run.status, told(run, "baseline"))
    assert ["2.json", "2.json.why.txt"] == names(quarantine)
    assert 2 == len((quarantine / "2.json.why.txt").read_text(encoding="utf-8").splitlines())
    assert ["2026-09/1.json", "2026-09/1.json.why.txt"] == names(desk.folder / "incoming/done")


def test_ingest_without_files_or_retry_is_wrong_use(desk: Desk) -> None:
    """A call that names nothing to read says so."""
    answer = desk("ingest")
    assert (2, True) == (answer.status, "--retry" in answer.err)


def test_collect_json_lines_record_what_can_be_read(desk: Desk) -> None:
    """Of a file of snapshots the good lines are recorded, the bad one sends the file to quarantine, and a retry is harmless."""
    desk.configure(settings_for(FOLDER))
    lines = [listing([82, 81], 2), "{broken", listing([12], 1, topic="Foam")]
    drop(desk, "pages.jsonl", "\n".join(lines))
    run = desk("collect", "--json", "--now", at(0))
    assert ["Tide Note 82", "Tide Note 81", "Tide Note 12"] == told(run, "baseline")
    assert [1] == [number for number, one in enumerate(run.objects) if one["error"]]
    assert ["pages.jsonl", "pages.jsonl.why.txt"] == names(desk.folder / "incoming/quarantine")
    again = desk("ingest", "--retry", "--json", "--now", at(1))
    assert [True, False, True] == [one["unchanged"] for one in again.objects]


# -- what no document may do


class Bench:
    """A watched folder and a history, without the command line."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "incoming"
        self.folder.mkdir()
        self.store: SqlStore = open_store(folder / "history.sqlite")
        self.found: list[Collected] = []

    def watched(self, parse: Parse) -> Watched:
        """Return the folder as a source whose documents are parsed by this."""
        spec = SourceSpec("inbox", str(self.folder), kind="folder", settle_s=0)
        return Watched(FolderSource(spec), IngestOptions(now=START), parse)

    def options(self) -> CollectOptions:
        """Return the options of a run."""
        return CollectOptions(now=START, draw=lambda: 0.0, report=self.found.append)

    def shelf(self) -> Shelf:
        """Return where its files are put away."""
        return Shelf("inbox", partial(shelved, self.folder), hash_file)

    def files(self) -> list[str]:
        """Return the files that were put away."""
        return [file.path for file in shelved(self.folder)]

    def put(self, name: str, body: str) -> None:
        """Put a file of a minute ago into the folder."""
        path = self.folder / name
        path.write_text(body, encoding="utf-8")
        os.utime(path, (START.timestamp() - 60, START.timestamp() - 60))


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """A watched folder and a history."""
    made = Bench(tmp_path)
    yield made
    made.store.close()


async def test_collect_bug_in_a_parser_costs_its_document_only(bench: Bench) -> None:
    """A parser that falls over sends its document to quarantine; the next document is read."""

    def parse(document: Document, vocabulary: Vocabulary) -> Page:
        if document.name == "1.json":
            raise ZeroDivisionError
        return parse_document(document, vocabulary)

    bench.put("1.json", listing([82], 1))
    bench.put("2.json", listing([83], 1))
    assert 1 == await collect(bench.store, [bench.watched(parse)], bench.options())
    assert ["done/2026-09/2.json", "quarantine/1.json", "quarantine/1.json.why.txt"] == names(bench.folder)
    assert "ZeroDivisionError" in str(bench.found[0].result)


async def test_collect_history_that_is_busy_blames_no_document(bench: Bench) -> None:
    """Where the history cannot be written the file stays, nothing is kept of the try, and the next run reads it."""
    busy = [True]

    def parse(document: Document, vocabulary: Vocabulary) -> Page:
        if busy[0]:
            raise StoreBusyError("another writer holds it")
        return parse_document(document, vocabulary)

    bench.put("1.json", listing([82], 1))
    assert 1 == await collect(bench.store, [bench.watched(parse)], bench.options())
    assert ["1.json"] == names(bench.folder)
    assert (None, []) == (bench.store.sources.state("inbox"), list(bench.store.sources.polls("inbox")))
    busy[0] = False
    assert 0 == await collect(bench.store, [bench.watched(parse)], bench.options())
    assert ["done/2026-09/1.json"] == names(bench.folder)


async def test_collect_full_folder_in_batches(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with more than fits into memory at once is read to its end, oldest first."""
    monkeypatch.setattr("digestd.watch.folder.MAX_BATCH_BYTES", 1)
    for number in range(1, 8):
        bench.put(f"{number}.json", listing([80 + number], number))
    assert 0 == await collect(bench.store, [bench.watched(parse_document)], bench.options())
    assert 7 == len(names(bench.folder / "done"))
    assert 7 == bench.store.history.coverage("tide-sound").known


async def test_collect_file_that_cannot_be_put_away_ends_the_run(bench: Bench) -> None:
    """A read file that cannot be moved is told as a failure and stays; the run does not go round in circles."""
    (bench.folder / "done").write_text("in the way", encoding="utf-8")
    os.utime(bench.folder / "done", (START.timestamp() + 60, START.timestamp() + 60))  # itself not complete yet
    bench.put("1.json", listing([82], 1))
    assert 1 == await collect(bench.store, [bench.watched(parse_document)], bench.options())
    assert 1 == bench.store.history.coverage("tide-sound").known
    assert (bench.folder / "1.json").exists()


class Killed(BaseException):
    """Ends a run where it stands."""


@pytest.mark.parametrize("point", ["collect.recorded", "collect.kept", "collect.settled"])
async def test_collect_stopped_anywhere_tells_once(bench: Bench, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    """A run that ends between any two steps loses no paper and tells none twice: the next run goes on from there."""
    bench.put("1.json", listing([82], 1))
    await collect(bench.store, [bench.watched(parse_document)], bench.options())

    def kill(name: str) -> None:
        if name == point:
            raise Killed

    bench.put("2.json", listing([84, 83, 82], 3))
    with monkeypatch.context() as patch:
        patch.setattr("digestd.faults.HOOK", kill)
        with pytest.raises(BaseExceptionGroup):
            await collect(bench.store, [bench.watched(parse_document)], bench.options())
    assert 0 == await collect(bench.store, [bench.watched(parse_document)], bench.options())
    assert ["done/2026-09/1.json", "done/2026-09/2.json"] == names(bench.folder)
    kept = [bench.store.sources.files_kept("inbox")[0], len(bench.files())]
    assert ([2, 2], True) == (kept, audit(bench.store, now=START, shelves=[bench.shelf()]).clean)
    rows = bench.store.history.sightings("tide-sound", 0, bench.store.history.head())
    assert ["Tide Note 82", "Tide Note 84", "Tide Note 83"] == [row.known.paper.title for row in rows]


async def test_retry_without_quarantine_does_nothing(bench: Bench) -> None:
    """There may be nothing to try again."""
    assert 0 == await retry(bench.store, [bench.watched(parse_document)], bench.options())
