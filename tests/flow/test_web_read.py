"""Pages and feeds over a real history: what they show, how they are cached, and that looking changes nothing."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import sqlite3
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import feedparser
import pytest

from digestd.filters import parse_rule
from digestd.model.pages import SearchWish
from digestd.model.subscription import Filter, Subscription
from tests.followers import ingest, let_follow, page
from tests.schema import check_atom
from tests.site import BASE, NOW, WEEKS, House, addresses, fill, listing, make_house, tree_of
from tests.webclient import file_hashes

#: programs that follow links before a person does
SCANNERS = ("Mozilla/5.0 (compatible; MSOffice-SafeLinks)", "Barracuda Sentinel", "curl/8.0", "")


@pytest.fixture(scope="module")
def lived_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[House, Subscription]]:
    """Yield a house with four topics and a reader; tests of this module only look at it."""
    house = make_house(tmp_path_factory.mktemp("house"))
    subscription = fill(house)
    yield house, subscription
    house.store.close()


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """Yield an empty house."""
    found = make_house(tmp_path)
    yield found
    found.store.close()


def text_of(body: str) -> str:
    """Return what a page says, white space folded."""
    return " ".join(str(tree_of(body).text_content()).split())


def dump(house: House) -> str:
    """Return all rows of the database as text."""
    path = house.store.engine._path  # type: ignore[attr-defined]  # a test looks at the file behind the engine
    with sqlite3.connect(path) as conn:
        found = "\n".join(conn.iterdump())
    conn.close()
    return found


def test_every_page_is_small_guarded_and_without_script(lived_in: tuple[House, Subscription]) -> None:
    """A page has at most 40 kB, no script, no inline style and no address of another site; its headers forbid them too."""
    house, subscription = lived_in
    for address in addresses(house, subscription):
        answer = house.client.get(address)
        assert (404 if address == "/nothing-here" else 200) == answer.status_code, address
        assert len(answer.content) <= 40_000, address
        assert answer.headers["content-security-policy"].startswith("default-src 'none'; style-src 'self'")
        assert "<script" not in answer.text
        assert " style=" not in answer.text
        loaded = tree_of(answer.text).xpath("//link[@rel='stylesheet']/@href | //*/@src")
        assert ["/style.css"] == loaded


def test_looking_changes_nothing(lived_in: tuple[House, Subscription]) -> None:
    """After 200 looks at every kind of address, by link scanners too, the database is the same to the byte."""
    house, subscription = lived_in
    token = house.token(subscription, "feed")
    leave = house.token(subscription, "unsubscribe")
    preferences = house.token(subscription, "preferences")
    paths = [
        *addresses(house, subscription), f"/feed/{token}.xml", f"/feed/{token}/digests.json", f"/unsubscribe/{leave}",
        f"/preferences/{preferences}", f"/confirm/{token}", "/feeds/reef-sound/rss.xml", "/feeds/topics.opml", "/healthz",
        "/robots.txt", "/favicon.ico", "/style.css",
    ]  # fmt: skip
    before = dump(house), file_hashes(house.store)
    looks = 0
    while looks < 200:
        for path in paths:
            for agent in SCANNERS:
                method = ("GET", "HEAD", "OPTIONS")[looks % 3]
                assert house.client.request(method, path, headers={"User-Agent": agent}).status_code < 500, path
                looks += 1
    assert before == (dump(house), file_hashes(house.store))


def test_index_orders_topics_by_how_they_move(lived_in: tuple[House, Subscription]) -> None:
    """Rising topics come first, then steady, then cooling ones, each with its counts."""
    house, _ = lived_in
    said = text_of(house.client.get("/").text)
    assert "Four topics, the fastest growing first." in said
    places = [said.index(word) for word in ("Rising", "Reef Sound", "Steady", "Cooling", "Tide Gauges")]
    assert sorted(places) == places


def test_long_index_is_paged(house: House) -> None:
    """Many topics are many pages of at most 40 kB; each topic is on one of them, and no page is beyond the last."""
    for number in range(70):
        ingest(house.store, listing(f"Long Name of a Topic With Number {number}", (1, 2) * 6), now=NOW)
    names: list[str] = []
    address: str | None = "/"
    while address:
        answer = house.client.get(address)
        assert len(answer.content) <= 40_000
        names += tree_of(answer.text).xpath("//th[@scope='row']/a/text()")
        found = tree_of(answer.text).xpath("//p[@class='more']/a[text()='More topics']/@href")
        address = found[0] if found else None
    assert 70 == len(names) == len(set(names))
    for beyond in ("4", "0", "-1", "x", "99999999999"):
        assert 404 == house.client.get(f"/?page={beyond}").status_code


def test_index_of_an_empty_history(house: House) -> None:
    """A history without topics is a page that says so."""
    assert "No topics yet." in text_of(house.client.get("/").text)
    assert "None yet." in text_of(house.client.get("/digests").text)


def test_topic_is_paged_through_without_loss(lived_in: tuple[House, Subscription]) -> None:
    """Following "Earlier papers" shows each paper of a topic exactly once, newest first."""
    house, _ = lived_in
    address: str | None = "/t/reef-sound"
    titles: list[str] = []
    days: list[str] = []
    while address:
        tree = tree_of(house.client.get(address).text)
        titles += tree.xpath("//article/h4/a/text()")
        days += tree.xpath("//section[@class='day']/h3/time/@datetime")
        found = tree.xpath("//p[@class='more']/a/@href")
        address = found[0] if found else None
    assert house.store.history.coverage("reef-sound").known == len(titles) == len(set(titles))
    assert sorted(days, reverse=True) == days


def test_topic_by_label_counts_what_it_shows(lived_in: tuple[House, Subscription]) -> None:
    """The number beside a label is the number of papers that its link shows."""
    house, _ = lived_in
    tree = tree_of(house.client.get("/t/tide-gauges").text)
    label, count, address = next(
        (link.text.strip(), int(link.find("b").text), link.get("href"))
        for link in tree.xpath("//nav[@class='filter']//a[b]")
    )
    shown = tree_of(house.client.get(address).text)
    assert f"{count} paper" in shown.xpath("string(//section[@class='latest']/h2/small)")
    assert min(count, 20) == len(shown.xpath("//article"))
    assert label == shown.xpath("//nav[@class='filter']//a[@aria-current]/text()")[0].strip()


def test_topic_from_a_day_begins_with_that_day(lived_in: tuple[House, Subscription]) -> None:
    """A day in the address shows papers of that day and before, and says so."""
    house, _ = lived_in
    tree = tree_of(house.client.get("/t/reef-sound?before=2026-09-20").text)
    assert max(tree.xpath("//section[@class='day']/h3/time/@datetime")) <= "2026-09-20"
    assert "Papers up to Sep 20, 2026" in tree.xpath("string(//section[@class='latest']/h2)")


@pytest.mark.parametrize(
    "address",
    [
        "/t/none", "/t/reef-sound?before=zz", "/t/reef-sound?before=2026-13-40", "/p/none", "/d/1abc", "/d/1abc/x",
        "/feed/1abc.xml", "/feed/1abc.exe", "/feeds/none/rss.xml", "/feeds/%2e%2e/style.css", "/t/reef-sound/", "/x" * 300,
    ],
)  # fmt: skip
def test_unknown_addresses_are_a_page_of_ours(lived_in: tuple[House, Subscription], address: str) -> None:
    """What is not there is answered with 404 and a page, never with a redirect; the address is not repeated."""
    house, _ = lived_in
    answer = house.client.get(address)
    assert 404 == answer.status_code
    assert "Nothing here" in answer.text
    assert address.strip("/") not in answer.text


def test_paper_shows_where_it_was_seen(house: House) -> None:
    """A paper's page names its topics and how it came to each; a change of it is told."""
    ingest(house.store, page("Reef Sound", ("2026-09-20", "Calm Reefs")), now=NOW - timedelta(days=7))
    fresh = page("Reef Sound", ("2026-09-28", "Loud Reefs", "Kelp Forests"), ("2026-09-20", "Calm Reefs"))
    ingest(house.store, fresh, now=NOW)
    loud, calm = (one.known.public_id for one in house.store.pages.topic_papers("reef-sound", limit=9))
    assert "Reef Sound : Sep 30, 2026, new" in text_of(house.client.get(f"/p/{loud}").text).replace(":", " :")
    assert "here when we began to watch" in house.client.get(f"/p/{calm}").text


def test_search_finds_and_marks(lived_in: tuple[House, Subscription]) -> None:
    """A search shows the words in the abstract, and limits by topic, author and day."""
    house, _ = lived_in
    tree = tree_of(house.client.get("/search?q=shrimp").text)
    assert {"shrimp"} == {mark.casefold() for mark in tree.xpath("//mark/text()")}
    only = tree_of(house.client.get("/search?q=shrimp&topic=tide-gauges&since=2026-08-01").text)
    links = only.xpath("//article/h4/a/@href")
    assert links
    for link in links:
        known = house.store.pages.paper(link.removeprefix("/p/"))
        assert known is not None
        assert "tide-gauges" in {sight.topic.slug for sight in house.store.pages.sights(known.key)}
    assert min(only.xpath("//div[@class='day hit']/h3/time/@datetime")) >= "2026-08-01"
    by = house.store.pages.search(SearchWish(author="hoshino"), limit=500)
    assert by
    assert all("Mei Hoshino" in one.known.paper.authors for one in by)


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("q=%22%20OR%20%2A", "No paper fits"), ("q=%00%22%27", "Give a word"), ("since=2026-09-01", "Give a word"),
        ("q=x&since=yesterday", "A day is written like"), ("q=%3Cscript%3Ealert(1)%3C/script%3E", "No paper fits"),
        ("q=title%3Ashrimp", "No paper fits"), ("q=" + "a" * 900, "No paper fits"), ("q=NEAR(a%20b)", "No paper fits"),
    ],
)  # fmt: skip
def test_search_takes_any_text(lived_in: tuple[House, Subscription], query: str, says: str) -> None:
    """Whatever is typed is looked for as words; it is never a command to the index and comes back escaped."""
    house, _ = lived_in
    answer = house.client.get(f"/search?{query}")
    assert 200 == answer.status_code
    assert says in answer.text
    assert "<script" not in answer.text


def test_weeks_add_up(lived_in: tuple[House, Subscription]) -> None:
    """The list of weeks counts each topic's papers by the Monday of their week."""
    house, _ = lived_in
    rows = {
        row.xpath("string(th)"): " ".join(row.xpath("string(td)").replace("\xa0", " ").split())
        for row in tree_of(house.client.get("/digests").text).xpath("//tbody/tr[not(@class)]")
    }
    assert "Sep 28 – Oct 4" in rows
    assert rows["Sep 7–13"].startswith(f"Reef Sound {WEEKS['Reef Sound'][8]}, ")


def test_reader_sees_own_digests(lived_in: tuple[House, Subscription]) -> None:
    """A reader's archive lists what was mailed, and each digest shows what it told; both are kept from search engines."""
    house, subscription = lived_in
    token = house.token(subscription, "feed")
    archive = house.client.get(f"/d/{token}")
    assert ("private, no-store", "noindex") == (archive.headers["cache-control"], archive.headers["x-robots-tag"])
    record = house.store.subscriptions.digests(subscription.key)[0]
    assert record.subject in tree_of(archive.text).text_content()
    address = tree_of(archive.text).xpath("//td/a/@href")[0]
    shown = tree_of(house.client.get(address).text)
    told = {item.paper for item in house.store.subscriptions.digest(record.key).items}
    links = {str(link).removeprefix("/p/") for link in shown.xpath("//article/h4/a/@href")}
    assert {known.public_id for known in house.store.pages.papers(sorted(told)).values()} == links


def test_token_of_another_purpose_or_reader_shows_nothing(lived_in: tuple[House, Subscription]) -> None:
    """An archive opens with its reader's feed token only."""
    house, subscription = lived_in
    other = let_follow(house.store, "bo@reef.example", "Reef Sound", now=NOW).subscription
    label = house.store.subscriptions.digests(subscription.key)[0].key.partition("|")[2]
    assert 404 == house.client.get(f"/d/{house.token(subscription, 'preferences')}").status_code
    assert 404 == house.client.get(f"/d/{house.token(other, 'feed')}/{label}").status_code
    genuine = house.token(subscription, "feed")
    forged = genuine[:-1] + ("b" if genuine.endswith("a") else "a")
    assert [200, 404] == [house.client.get(f"/d/{token}").status_code for token in (genuine, forged)]


# -- feeds


@pytest.mark.parametrize("name", ["reef-sound/rss.xml", "reef-sound/atom.xml", "all/rss.xml", "all/atom.xml"])
def test_feed_is_read_by_a_feed_reader(lived_in: tuple[House, Subscription], name: str) -> None:
    """Feeds as served are well-formed, have entries with permanent ids, and name themselves."""
    house, _ = lived_in
    answer = house.client.get(f"/feeds/{name}")
    read = feedparser.parse(io.BytesIO(answer.content))
    assert not read.bozo
    ids = [entry.id for entry in read.entries]
    assert len(ids) == len(set(ids)) > 0
    assert all(one.startswith("tag:reef.example,2026:") for one in ids)
    assert f"{BASE}/feeds/{name}" in {link.href for link in read.feed.links if link.rel == "self"}


def test_feeds_that_are_not_made_yet(house: House) -> None:
    """After a start, until all feeds are made, a feed reader is asked to come again; it is not told that its feed is gone."""
    ingest(house.store, page("Reef Sound", ("2026-09-20", "Calm Reefs")), now=NOW)
    answer = house.client.get("/feeds/reef-sound/rss.xml")
    assert (503, "30") == (answer.status_code, answer.headers["retry-after"])
    house.publish()
    assert [200, 404] == [house.client.get(f"/feeds/{slug}/rss.xml").status_code for slug in ("reef-sound", "none")]


def test_feed_headers(lived_in: tuple[House, Subscription]) -> None:
    """A feed is cached for a quarter of an hour by anybody, packed once, typed right, and open to programs in browsers."""
    house, _ = lived_in
    types = {"rss.xml": "application/rss+xml", "atom.xml": "application/atom+xml", "feed.json": "application/feed+json"}
    for name, kind in types.items():
        plain = house.client.get(f"/feeds/reef-sound/{name}", headers={"Accept-Encoding": "identity"})
        assert f"{kind}; charset=utf-8" == plain.headers["content-type"]
        assert "public, max-age=900" == plain.headers["cache-control"]
        assert "Accept-Encoding" == plain.headers["vary"]
        assert "*" == plain.headers["access-control-allow-origin"]
        assert hashlib.sha256(plain.content).hexdigest().startswith(plain.headers["etag"].strip('"'))
        packed = house.client.get(f"/feeds/reef-sound/{name}", headers={"Accept-Encoding": "gzip;q=0.5, br"})
        assert ("gzip", plain.content) == (packed.headers["content-encoding"], packed.content)
        assert plain.headers["etag"] != packed.headers["etag"]
        assert (
            "content-encoding"
            not in house.client.get(f"/feeds/reef-sound/{name}", headers={"Accept-Encoding": "gzip;q=0"}).headers
        )
        assert plain.headers["content-length"] == house.client.head(
            f"/feeds/reef-sound/{name}", headers={"Accept-Encoding": "identity"}
        ).headers["content-length"]  # fmt: skip


def test_feed_is_not_sent_again(lived_in: tuple[House, Subscription]) -> None:
    """Who has a feed gets 304 without a body, by tag or date, packed or not; who has another one gets it."""
    house, _ = lived_in
    for encoding in ("gzip", "identity"):
        first = house.client.get("/feeds/reef-sound/atom.xml", headers={"Accept-Encoding": encoding})
        asked = [
            {"If-None-Match": first.headers["etag"]},
            {"If-None-Match": f'"other", W/{first.headers["etag"]}'},
            {"If-None-Match": "*"},
            {"If-Modified-Since": first.headers["last-modified"]},
        ]
        for headers in asked:
            again = house.client.get("/feeds/reef-sound/atom.xml", headers=headers | {"Accept-Encoding": encoding})
            assert (304, b"", first.headers["etag"]) == (again.status_code, again.content, again.headers["etag"])
        for headers in (
            {"If-None-Match": '"other"', "If-Modified-Since": first.headers["last-modified"]},
            {"If-Modified-Since": "Mon, 01 Jan 2001 00:00:00 GMT"},
            {"If-Modified-Since": "yesterday"},
            {"If-Modified-Since": "Mon, 01 Jan 99999 00:00:00 GMT"},
        ):
            assert 200 == house.client.get("/feeds/reef-sound/atom.xml", headers=headers).status_code


def test_reader_feeds_are_private_and_filtered(house: House) -> None:
    """A reader's feeds hold its topics' news without what its filter hides, once each, and are for it alone."""
    week_ago = NOW - timedelta(days=7)
    for topic in ("Reef Sound", "Kelp Forests"):
        ingest(house.store, page(topic, ("2026-09-20", f"{topic} Note")), now=week_ago)
    hide = Filter(exclude=(parse_rule("foam"),))
    reader = let_follow(house.store, "ana@reef.example", "Reef Sound", "Kelp Forests", now=week_ago, hide=hide)
    news = [
        ("2026-09-29", "Both Ways", "Kelp Forests"),
        ("2026-09-28", "Foam Notes"),
        ("2026-09-20", "Reef Sound Note"),
    ]
    ingest(house.store, page("Reef Sound", *news), now=NOW)
    token = house.token(reader.subscription, "feed")
    answer = house.client.get(f"/feed/{token}.json")
    assert ("private, max-age=900", "noindex") == (answer.headers["cache-control"], answer.headers["x-robots-tag"])
    assert "access-control-allow-origin" not in answer.headers
    assert ["Both Ways"] == [item["title"] for item in answer.json()["items"]]
    for suffix in ("xml", "atom"):
        read = feedparser.parse(io.BytesIO(house.client.get(f"/feed/{token}.{suffix}").content))
        assert (False, ["Both Ways"]) == (bool(read.bozo), [entry.title for entry in read.entries])
    check_atom(house.client.get(f"/feed/{token}.atom").content)


def test_digest_feed_has_one_entry_a_digest(lived_in: tuple[House, Subscription]) -> None:
    """The feed of digests has what each moved as its title, and leads to the digest's page."""
    house, subscription = lived_in
    token = house.token(subscription, "feed")
    record = house.store.subscriptions.digests(subscription.key)[0]
    for suffix in ("xml", "atom"):
        read = feedparser.parse(io.BytesIO(house.client.get(f"/feed/{token}/digests.{suffix}").content))
        assert not read.bozo
        (entry,) = read.entries
        assert entry.title.endswith(f": {record.subject}")
        assert 200 == house.client.get(entry.link.removeprefix(BASE)).status_code
    check_atom(house.client.get(f"/feed/{token}/digests.atom").content)


def test_revisions_have_a_feed_of_their_own(house: House) -> None:
    """A changed abstract is in the topic's feed of revisions, and no second entry in its feed of papers."""
    known = page("Reef Sound", ("2026-09-20", "Calm Reefs"))
    ingest(house.store, known, now=NOW - timedelta(days=7))
    changed = known.replace("differs from what was assumed before", "is the opposite of what everybody assumed")
    ingest(house.store, changed, now=NOW)
    house.publish()
    revisions = house.client.get("/feeds/reef-sound/revisions.feed.json").json()
    assert ["Revised: Calm Reefs"] == [item["title"] for item in revisions["items"]]
    papers = house.client.get("/feeds/reef-sound/feed.json").json()
    assert ["Calm Reefs"] == [item["title"] for item in papers["items"]]


def test_only_what_changed_is_published_again(lived_in: tuple[House, Subscription], tmp_path: Path) -> None:
    """After one new paper in one topic, its documents and the common ones are made, nothing else; then nothing at all."""
    house = make_house(tmp_path)
    for topic in WEEKS:
        ingest(house.store, page(topic, ("2026-09-20", f"{topic} Note")), now=NOW - timedelta(days=1))
    first = house.publish()
    assert {"reef-sound/rss.xml", "slow-robots/atom.xml", "all/feed.json", "topics.opml"} <= set(first)
    assert () == house.publish()
    ingest(house.store, page("Reef Sound", ("2026-09-29", "News"), ("2026-09-20", "Reef Sound Note")), now=NOW)
    again = house.publish()
    assert {"reef-sound", "all"} == {name.partition("/")[0] for name in again}
    assert not [name for name in again if "revisions" in name]
    assert () == house.publish()
    house.store.close()


def test_archive_links_lead_through_all_papers(tmp_path: Path) -> None:
    """A feed with many papers has archive documents; the links to older ones lead to every paper, each once."""
    house = make_house(tmp_path, archive_page=10)
    ingest(house.store, page("Reef Sound", ("2026-08-01", "First")), now=NOW - timedelta(days=30))
    days = [(f"2026-09-{28 - number // 2:02d}", f"Note {number:02d}") for number in range(45)]
    ingest(house.store, page("Reef Sound", *days, ("2026-08-01", "First")), now=NOW)
    house.publish()
    titles: list[str] = []
    address: str | None = "/feeds/reef-sound/atom.xml"
    while address:
        read = feedparser.parse(io.BytesIO(house.client.get(address).content))
        titles += [entry.title for entry in read.entries]
        older = [link.href for link in read.feed.links if link.rel == "prev-archive"]
        address = older[0].removeprefix(BASE) if older else None
    assert 45 == len(set(titles) - {"First"}) == len([title for title in titles if title != "First"])
    house.store.close()


def test_without_base_url_links_are_relative(tmp_path: Path) -> None:
    """Where the public address is not known, pages work with relative links, and feeds do not name themselves."""
    house = make_house(tmp_path, base_url=None)
    ingest(house.store, listing("Reef Sound", (2,) * 12), now=NOW)
    house.publish()
    body = house.client.get("/t/reef-sound").text
    assert "/feeds/reef-sound/rss.xml" in tree_of(body).xpath("//link[@rel='alternate']/@href")
    assert "Follow by mail" not in body
    feed = house.client.get("/feeds/reef-sound/rss.xml").text
    assert 'rel="self"' not in feed
    assert "feed_url" not in house.client.get("/feeds/reef-sound/feed.json").json()
    house.store.close()


def test_merged_papers_keep_their_addresses(house: House) -> None:
    """The address of a paper that turned out to be another one leads to that one."""
    ingest(house.store, page("Reef Sound", ("2026-09-20", "One"), ("2026-09-19", "Two")), now=NOW)
    one, two = house.store.pages.topic_papers("reef-sound", limit=2)
    with house.store.transaction():
        house.store.engine.query(
            "UPDATE paper SET merged_into = :into WHERE id = :id", {"into": one.known.key, "id": two.known.key}
        )
    answer = house.client.get(f"/p/{two.known.public_id}")
    assert (301, f"/p/{one.known.public_id}") == (answer.status_code, answer.headers["location"])


def test_style_sheet_is_small_and_cached(lived_in: tuple[House, Subscription]) -> None:
    """The one style sheet has at most 12 kB and is not sent twice."""
    house, _ = lived_in
    answer = house.client.get("/style.css")
    assert len(answer.content) <= 12_000
    assert "text/css; charset=utf-8" == answer.headers["content-type"]
    assert 304 == house.client.get("/style.css", headers={"If-None-Match": answer.headers["etag"]}).status_code


def test_templates_name_no_style_that_is_not_there() -> None:
    """Every class that a page uses stands in the style sheet or is a name for tests and people."""
    folder = Path(__file__).parents[2] / "templates" / "web"
    sheet = (folder / "style.css").read_text(encoding="utf-8")
    used = {
        name
        for template in folder.glob("*.j2")
        for value in re.findall(r'class="([^"{]*)"', template.read_text(encoding="utf-8"))
        for name in value.split()
    }
    assert {"hit"} >= {name for name in used if f".{name}" not in sheet}


def test_opml_lists_all_topics(lived_in: tuple[House, Subscription]) -> None:
    """The list of feeds names every topic's feed."""
    house, _ = lived_in
    body = house.client.get("/feeds/topics.opml").text
    for slug in ("reef-sound", "kelp-forests", "tide-gauges", "slow-robots"):
        assert f'xmlUrl="{BASE}/feeds/{slug}/rss.xml"' in body


def test_json_and_gzip_agree(lived_in: tuple[House, Subscription]) -> None:
    """The packed form is the plain one, packed."""
    house, _ = lived_in
    stored = house.services.shelf.get("reef-sound/feed.json")
    assert stored is not None
    assert json.loads(stored.body) == json.loads(gzip.decompress(stored.packed))
