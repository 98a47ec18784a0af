"""Forms of the web, as a browser, a mail program, a scanner of mail and an attacker use them."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import time, timedelta
from html import unescape
from pathlib import Path

import pytest

from digestd.flows.confirm import LIMITS, Asked, ask
from digestd.flows.digest import Kitchen, make_due
from digestd.model.delivery import DeliveryState
from digestd.model.subscription import Daily, EachSnapshot, Reader, Subscription, SubscriptionState, Weekly
from digestd.render.outgoing import build_mail, unpack_content
from digestd.store import SqlStore, open_store
from digestd.tokens import Purpose, make_token
from tests.followers import Clock, add, at, let_follow, make_kitchen, read_mail, start, text_of
from tests.webclient import BASE, Answer, Browser, file_hashes, make_services

MONDAY = at("2026-09-28T05:00")
DAY = timedelta(days=1)
PURPOSES = (Purpose.CONFIRM, Purpose.UNSUBSCRIBE, Purpose.PREFERENCES)
TOKEN = re.compile(r"1[a-z2-7_-]{1,80}[a-z0-9-]*")


@dataclass
class Site:
    """A site with readers, and a browser."""

    store: SqlStore
    kitchen: Kitchen
    clock: Clock
    browser: Browser
    reader: Subscription

    def token(self, purpose: str, subject: str | None = None, **limits: object) -> str:
        """Return a genuine token, of the reader unless another subject is named."""
        return make_token(self.store.secret("tokens"), purpose, subject or self.reader.public_id, **limits)  # type: ignore[arg-type]  # scope, expires_at

    def now(self) -> Subscription:
        """Return the reader's subscription as it stands."""
        assert self.reader.key is not None
        return self.store.subscriptions.subscription(self.reader.key)

    def dump(self) -> list[str]:
        """Return the whole database as SQL, but for what numbers were given."""
        lines = self.store.engine._db().conn.iterdump()  # type: ignore[attr-defined]  # SQLite's own
        return [line for line in lines if "sqlite_sequence" not in line]

    def follow(self, address: str, **given: str) -> Answer:
        """Send the form to follow."""
        fields = {"topic": "reef-sound", "address": address, "every": "weekly"} | given
        return self.browser.post("/follow", fields)

    def mail_texts(self, kind: str) -> list[str]:
        """Return the texts of the outbox' mails of a kind, oldest first."""
        rows = [row for row in self.store.outbox.deliveries(limit=1000) if row.kind == kind]
        found = [self.store.outbox.content_of(row.key) for row in reversed(rows)]
        return [text_of(read_mail(build_mail(one.envelope.fields, unpack_content(one.content)))) for one in found]

    def confirm_path(self) -> str:
        """Return the path of the newest link to confirm."""
        found = re.search(rf"{BASE}(/confirm/\S+)", self.mail_texts("confirm")[-1])
        assert found is not None
        return found[1]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A site with two topics and one reader."""
    store = open_store(tmp_path / "history.sqlite")
    for topic in ("Reef Sound", "Kelp Forests"):
        start(store, topic, now=MONDAY)
    reader = let_follow(store, "ana@example.org", "Reef Sound", now=MONDAY).subscription
    for name in ("tokens", "render", "instance", "confirm"):
        store.secret(name)
    kitchen, clock = make_kitchen(store), Clock(MONDAY)
    with Browser(make_services(store, kitchen, clock)) as browser:
        yield Site(store, kitchen, clock, browser, reader)
    store.close()


def masked(answer: Answer) -> tuple[int, dict[str, str], str]:
    """Return an answer with the tokens on its page blotted out."""
    body = re.sub(
        r"/(unsubscribe|resubscribe|preferences|confirm)/([a-z0-9_-]+)", lambda m: f"/{m[1]}/{len(m[2])}", answer.text
    )
    return answer.status, dict(answer.headers), body


# -- the way of a person


def test_person_follows_confirms_changes_and_leaves(site: Site) -> None:
    """From the form to the last click all works by the links and forms of pages and mails alone."""
    answer = site.follow("bo@example.org", topic="kelp-forests", every="daily")
    assert (202, "Look into your mail") == (answer.status, answer.heading)
    path = site.confirm_path()
    shown = site.browser.get(path)
    assert (200, [path]) == (shown.status, shown.actions)
    assert "bo@example.org will get Kelp Forests, daily at 07:30, UTC." in shown.text
    done = site.browser.post(path)
    assert (200, "You will get it") == (done.status, done.heading)
    (row,) = [one for one in site.store.subscriptions.subscriptions() if one.reader.address == "bo@example.org"]
    assert (("kelp-forests",), Daily()) == (row.topics, row.schedule)
    preferences = done.links[-1]
    form = site.browser.get(preferences)
    assert (200, [preferences]) == (form.status, form.actions[:1])
    leave = form.actions[1]
    left = site.browser.post(leave)
    assert (200, "You are unsubscribed") == (left.status, left.heading)
    assert 404 == site.browser.get(preferences).status
    back = site.browser.post(left.actions[0])
    assert (200, "You are subscribed again") == (back.status, back.heading)
    assert 200 == site.browser.get(preferences).status


def test_second_click_says_that_it_is_done(site: Site) -> None:
    """A link to confirm works once; afterwards page and button say so, and nothing is made twice."""
    site.follow("bo@example.org")
    path = site.confirm_path()
    site.browser.post(path)
    before = site.dump()
    assert ("Confirmed already",) * 2 == (site.browser.post(path).heading, site.browser.get(path).heading)
    assert before == site.dump()


def test_link_to_confirm_expires(site: Site) -> None:
    """After two days page and button know nothing of it."""
    site.follow("bo@example.org")
    path = site.confirm_path()
    site.clock.instant += 2 * DAY
    assert (404, 404) == (site.browser.get(path).status, site.browser.post(path).status)
    assert 1 == len(site.store.subscriptions.subscriptions())


def test_confirming_after_leaving_again_makes_no_mail_program_guess(site: Site) -> None:
    """Who confirmed and left since is told so by the old link, and is not brought back."""
    site.follow("bo@example.org")
    path = site.confirm_path()
    site.browser.post(path)
    row = site.store.subscriptions.subscriptions()[-1]
    site.browser.post(f"/unsubscribe/{site.token(Purpose.UNSUBSCRIBE, row.public_id)}")
    assert "has ended since" in site.browser.post(path).text
    assert SubscriptionState.ENDED is site.store.subscriptions.subscriptions()[-1].state


# -- to follow


def test_answers_to_known_and_unknown_addresses_are_the_same(site: Site) -> None:
    """Status, headers and body say nothing of an address: known, unknown, gone, dead, asked before."""
    gone = let_follow(site.store, "gone@example.org", "Reef Sound", now=MONDAY).subscription
    site.browser.post(f"/unsubscribe/{site.token(Purpose.UNSUBSCRIBE, gone.public_id)}")
    site.store.outbox.add_bounce("dead@example.org", "hard", at=MONDAY)
    addresses = ["nobody@example.org", "ana@example.org", "gone@example.org", "dead@example.org", "nobody@example.org"]
    answers = [site.follow(address) for address in addresses]
    assert {202} == {answer.status for answer in answers}
    assert 1 == len({(tuple(answer.headers.items()), answer.body) for answer in answers})
    states = [row.state for row in site.store.outbox.deliveries() if row.kind == "confirm"]
    assert [DeliveryState.SUPPRESSED, DeliveryState.READY, DeliveryState.READY, DeliveryState.READY] == states


@pytest.mark.parametrize(
    "address",
    [
        "",
        "ana",
        "a@b@example.org",
        "ana@example.org, bo@example.org",
        "ana@example.org\r\nBcc: bo@example.org",
        "ana@example.org\nBcc: bo@example.org",
        "ana@example.org%0d%0aBcc:bo@example.org",
        "ana@example.org\x00",
        '"a\r\nb"@example.org',
        "alice@x.org)bob@example.org",
        "-oQ/tmp@example.org",
        "<ana@example.org",
        "ana@example.org>, <bo@example.org>",
        "ana@[127.0.0.1]",
        "ana@localhost",
        "@relay.example.org:ana@example.org",
        "ana%there@example.org",
        "ana@exa\u2028mple.org",
        "a" * 65 + "@example.org",
        "ana@" + "a" * 300 + ".org",
        "<script>alert(1)</script>@example.org",
    ],
)
def test_address_with_tricks_is_refused(site: Site, address: str) -> None:
    """What is not one plain address is said to be none, safely shown, and leaves nothing behind."""
    before = site.dump()
    answer = site.follow(address)
    assert 422 == answer.status
    assert "expected one address like" in answer.text
    assert "<script>" not in answer.text
    assert before == site.dump()


def test_name_before_the_address_is_dropped(site: Site) -> None:
    """A stranger's words in front of an address reach neither mail nor history."""
    assert 202 == site.follow("Buy Pills Now <bo@example.org>").status
    assert "Pills" not in site.mail_texts("confirm")[0]
    assert [] == [line for line in site.dump() if "Pills" in line]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"topic": "moon"}, "Topic: expected"),
        ({"topic": ""}, "Topic: expected"),
        ({"every": "hourly"}, "How often: expected"),
    ],
)
def test_form_to_follow_with_other_values_is_refused(site: Site, given: dict[str, str], said: str) -> None:
    """Only topics and choices that a page offers are taken."""
    answer = site.follow("bo@example.org", **given)
    assert 422 == answer.status
    assert said in answer.text
    assert [] == site.mail_texts("confirm")


def test_forms_of_another_kind_are_refused(site: Site) -> None:
    """Neither JSON nor files nor a bare link makes a wish, and a GET never does."""
    body = b"topic=reef-sound&address=bo%40example.org"
    for kind in ("application/json", "text/plain", "multipart/form-data; boundary=x", ""):
        assert 415 == site.browser.ask("POST", "/follow", body, {"content-type": kind}).status
    assert 405 == site.browser.get(f"/follow?{body.decode()}").status
    assert 413 == site.browser.ask("POST", "/follow", b"a=" + b"b" * 40_000, {"content-type": "x"}).status
    assert [] == site.mail_texts("confirm")


def test_garbage_in_a_form_is_no_fault_of_ours(site: Site) -> None:
    """Whatever bytes a form holds, the answer is a page."""
    draw = random.Random(7)
    kind = {"content-type": "application/x-www-form-urlencoded; charset=utf-7"}
    for path in ("/follow", f"/preferences/{site.token(Purpose.PREFERENCES)}"):
        for _ in range(60):
            answer = site.browser.ask("POST", path, b"topic=" + draw.randbytes(60) + b"&address=%ff%00&at=%", kind)
            assert answer.status in {422, 429}


def test_network_that_asks_too_often_waits(site: Site) -> None:
    """Ten wishes an hour come from one network, all its addresses together; others are served."""
    for number in range(10):
        site.browser.client = f"192.0.2.{number}"
        assert 202 == site.follow(f"r{number}@example.org").status
    answer = site.follow("more@example.org")
    assert (429, "3600") == (answer.status, answer.headers["retry-after"])
    site.browser.client = "198.51.100.1"
    assert 202 == site.follow("other@example.org").status
    site.browser.client = "192.0.2.77"
    site.clock.instant += timedelta(hours=1)
    assert 202 == site.follow("more@example.org").status
    assert 12 == len(site.mail_texts("confirm"))


def test_ten_thousand_posts_for_one_victim_are_one_mail(site: Site) -> None:
    """From a thousand networks, in many spellings, one mail goes out, and each post has the same answer."""
    before = len(site.store.outbox.deliveries())
    answers = set()
    for number in range(10_000):
        site.browser.client = f"10.{number // 2560}.{number // 10 % 256}.9"
        answers.add(site.follow(f"Bo+{number % 50}@example.org").body)
    assert 1 == len(answers)
    assert 1 == len(site.store.outbox.deliveries()) - before


def test_all_networks_together_have_a_limit(site: Site) -> None:
    """When two hundred mails went out within the hour, people are asked to come again, whoever they ask for."""
    topic = site.store.history.topic("reef-sound")
    for number in range(LIMITS.hourly):
        address = f"v{number}@example.org"
        assert ask(site.kitchen, Asked(Reader(address, address), topic, Weekly()), now=MONDAY)
    for address in ("bo@example.org", "ana@example.org", "v1@example.org"):
        assert 503 == site.follow(address).status
    site.clock.instant += timedelta(hours=1)
    assert 202 == site.follow("bo@example.org").status


def test_site_without_mail_takes_no_wishes(site: Site) -> None:
    """Where no mail is sent, or links would lead nowhere, there is no form; who follows already can still leave."""
    for kitchen in (None, make_kitchen(site.store, base_url=None)):
        with Browser(make_services(site.store, kitchen, site.clock)) as browser:
            assert 404 == browser.post("/follow", {"topic": "reef-sound", "address": "bo@example.org"}).status
            assert 200 == browser.get(f"/preferences/{site.token(Purpose.PREFERENCES)}").status
    assert [] == site.mail_texts("confirm")


def test_wish_that_cannot_be_kept_is_the_operators_matter(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    """A fault of the settings is logged without the address, and tells nothing to who asked."""
    good = site.follow("bo@example.org")
    identity = replace(site.kitchen.identity, bounce="b" * 60 + "@digest.example.org")
    with Browser(make_services(site.store, replace(site.kitchen, identity=identity), site.clock)) as browser:
        answer = browser.post("/follow", {"topic": "reef-sound", "address": "cy@example.org", "every": "weekly"})
    assert (202, good.body) == (answer.status, answer.body)
    assert "wish to follow not kept" in caplog.text
    assert "cy@example.org" not in caplog.text
    assert site.store.subscriptions.find_reader("cy@example.org") is None


def test_dead_address_is_told_so_by_its_own_link(site: Site) -> None:
    """Who holds the link of an address whose mail came back since learns why nothing comes."""
    site.follow("bo@example.org")
    site.store.outbox.add_bounce("bo@example.org", "hard", at=MONDAY)
    answer = site.browser.post(site.confirm_path())
    assert (409, "No mail can go to this address") == (answer.status, answer.heading)


# -- to leave


def test_mail_program_leaves_in_one_step(site: Site) -> None:
    """RFC 8058: a POST without cookie, origin or page ends it at once, with no redirect, and again without harm."""
    add(site.store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=MONDAY)
    make_due(site.kitchen, now=MONDAY + timedelta(hours=3))
    row = site.store.outbox.content_of(site.store.outbox.deliveries()[0].key)
    mail = read_mail(build_mail(row.envelope.fields, unpack_content(row.content)))
    assert "List-Unsubscribe=One-Click" == mail["List-Unsubscribe-Post"]
    path = str(mail["List-Unsubscribe"]).strip("<>").removeprefix(BASE)
    body = b'--x\r\nContent-Disposition: form-data; name="List-Unsubscribe"\r\n\r\nOne-Click\r\n--x--\r\n'
    kinds = [
        (b"List-Unsubscribe=One-Click", "application/x-www-form-urlencoded"),
        (body, "multipart/form-data; boundary=x"),
        (b"", "text/plain"),
    ]
    dumps = []
    for sent, kind in kinds:
        answer = site.browser.ask("POST", path, sent, {"content-type": kind})
        assert 200 == answer.status
        assert not {"location", "set-cookie"} & set(answer.headers)
        dumps.append(site.dump())
    assert dumps[0] == dumps[1] == dumps[2]
    assert SubscriptionState.ENDED is site.now().state
    claimed = site.store.outbox.claim("w1", now=MONDAY + DAY, lease_until=MONDAY + 2 * DAY, limit=9)
    assert [] == [one for one in claimed if one.envelope.recipient == "ana@example.org"]


def test_answers_to_known_and_unknown_tokens_are_the_same(site: Site) -> None:
    """Neither the page nor the answer to unsubscribe tells a genuine token from a guess, but for the tokens on it."""
    genuine = site.token(Purpose.UNSUBSCRIBE)
    nobody = site.token(Purpose.UNSUBSCRIBE, "zzzzzzzz")
    forged = genuine[:-1] + ("a" if genuine[-1] != "a" else "b")
    tokens = [genuine, nobody, forged, "x", site.token(Purpose.PREFERENCES), "\u00e9" * 30]
    assert 1 == len({repr(masked(site.browser.get(f"/unsubscribe/{token}"))) for token in tokens})
    assert 1 == len({repr(masked(site.browser.post(f"/unsubscribe/{token}"))) for token in (*tokens, genuine)})
    assert SubscriptionState.ENDED is site.now().state


def test_tokens_on_the_page_of_a_guess_are_nobodys(site: Site) -> None:
    """What a guess is shown opens nothing, and is not what was guessed."""
    forged = "1" + site.reader.public_id + "a" * 26
    page = site.browser.get(f"/unsubscribe/{forged}")
    answer = site.browser.post(f"/unsubscribe/{forged}")
    assert forged not in page.text + answer.text
    assert site.reader.public_id not in page.text + answer.text
    preferences = next(link for link in page.links if link.startswith("/preferences/"))
    assert (404, 404) == (site.browser.get(preferences).status, site.browser.post(answer.actions[0]).status)
    site.browser.post(page.actions[0])
    assert SubscriptionState.ACTIVE is site.now().state


def test_page_to_leave_leads_to_fewer_mails(site: Site) -> None:
    """Who only wants less finds the way from the page with the button."""
    page = site.browser.get(f"/unsubscribe/{site.token(Purpose.UNSUBSCRIBE)}")
    assert ("Stop these mails?", 1) == (page.heading, len(page.actions))
    preferences = next(link for link in page.links if link.startswith("/preferences/"))
    assert "ana@example.org" in site.browser.get(preferences).text


def test_undo_works_for_a_day(site: Site) -> None:
    """The button takes the click back within a day, and a second press says the same."""
    undo = site.browser.post(f"/unsubscribe/{site.token(Purpose.UNSUBSCRIBE)}").actions[0]
    site.clock.instant += DAY
    assert 404 == site.browser.post(undo).status
    site.clock.instant -= timedelta(seconds=1)
    assert ("You are subscribed again",) * 2 == (site.browser.post(undo).heading, site.browser.post(undo).heading)
    assert SubscriptionState.ACTIVE is site.now().state
    assert 405 == site.browser.get(undo).status


# -- tokens, scanners, other sites


def _bad_token(site: Site, draw: random.Random) -> tuple[str, str]:
    """Return (purpose of the page, a text that is no token for it)."""
    purpose = draw.choice(PURPOSES)
    good = site.token(purpose)
    others = [other for other in Purpose if other is not purpose]
    place = draw.randrange(len(good))
    letters = "abcdefghijklmnopqrstuvwxyz234567-_ABCé\u212a٣\x00\x7f/ ."
    match draw.randrange(9):
        case 0:
            return purpose, good[: place or 1]
        case 1:
            flipped = draw.choice(
                [letter for letter in letters if letter != good[place] and letter.lower() != good[place]]
            )
            return purpose, good[:place] + flipped + good[place + 1 :]
        case 2:
            return purpose, site.token(draw.choice(others))
        case 3:
            return purpose, site.token(purpose, expires_at=MONDAY - timedelta(seconds=draw.randrange(10**6)))
        case 4:
            return purpose, site.token(purpose, scope=draw.choice(["undo", "confirm", "all"]))
        case 5:
            return purpose, good + draw.choice(letters)
        case 6:
            return purpose, make_token(draw.randbytes(32), purpose, site.reader.public_id)
        case 7:
            return purpose, site.token(purpose, "nosuch42")
        case _:
            return purpose, "".join(draw.choice(letters) for _ in range(draw.randrange(1, 90)))


def test_ten_thousand_bad_tokens_open_nothing(site: Site) -> None:
    """Cut, flipped, swapped, expired, forged, limited otherwise, beyond ASCII: one and the same answer, nothing written."""
    site.follow("bo@example.org")
    genuine = site.confirm_path().rpartition("/")[2]
    before, draw = site.dump(), random.Random(20260928)
    answers: dict[str, set[str]] = {}
    tried = 0
    for number in range(10_000):
        purpose, token = _bad_token(site, draw)
        if number % 50 == 0:
            purpose, token = (
                Purpose.CONFIRM,
                genuine[:-1] + draw.choice("abcdefghijklmnopqrstuvwxyz234567".replace(genuine[-1], "")),
            )
        # a slash would ask for another address, a percent sign begins a letter
        path = f"/{purpose}/{token.replace('%', '').replace('/', '_')}"
        answer = site.browser.get(path) if number % 2 else site.browser.post(path)
        answers.setdefault(purpose + ("GET" if number % 2 else "POST"), set()).add(repr(masked(answer)))
        tried += 1
    assert (6, 10_000) == (len(answers), tried)
    assert [] == [found for found in answers.values() if len(found) > 1]
    statuses = {name: next(iter(found))[1:4] for name, found in answers.items()}
    assert {"404"} == {status for name, status in statuses.items() if not name.startswith("unsubscribe")}
    assert {"200"} == {status for name, status in statuses.items() if name.startswith("unsubscribe")}
    assert before == site.dump()


AGENTS = ("", "Mozilla/5.0 (compatible; SafeLinks)", "BarracudaCentral", "Proofpoint", "curl/8.9")


def test_scanners_change_nothing(site: Site) -> None:
    """Two hundred looks at all mailed links, by all methods that look, leave the database as it was."""
    site.follow("bo@example.org")
    add(site.store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=MONDAY)
    make_due(site.kitchen, now=MONDAY + timedelta(hours=3))
    site.clock.instant += timedelta(hours=3)
    text = "\n".join(site.mail_texts("confirm") + site.mail_texts("digest"))
    paths = sorted({found.removeprefix(BASE) for found in re.findall(rf"{BASE}/\S+", text)})
    kinds = {path.split("/")[1] for path in paths}
    assert {"confirm", "unsubscribe", "preferences"} <= kinds
    before, looks = (site.dump(), file_hashes(site.store)), 0
    for _ in range(3):
        for agent in AGENTS:
            for method in ("GET", "HEAD", "OPTIONS"):
                for path in paths:
                    answer = site.browser.ask(method, path, headers={"user-agent": agent})
                    assert answer.status == (405 if method == "OPTIONS" else 200), path
                    looks += 1
    assert looks >= 200
    assert before == (site.dump(), file_hashes(site.store))


def test_forms_of_other_sites_are_refused(site: Site) -> None:
    """A page of another site can send no form in a reader's name, by whatever it says of itself."""
    site.follow("bo@example.org")
    paths = [
        "/follow",
        site.confirm_path(),
        f"/preferences/{site.token(Purpose.PREFERENCES)}",
        f"/unsubscribe/{site.token(Purpose.UNSUBSCRIBE)}",
        f"/resubscribe/{site.token(Purpose.CONFIRM, scope='undo', expires_at=MONDAY + DAY)}",
    ]
    before = site.dump()
    for path in paths:
        for origin in ("https://evil.example", "http://digest.example.org", "https://digest.example.org.evil.example"):
            assert 403 == site.browser.post(path, {"do": "save"}, {"origin": origin}).status
    for path in paths[:3]:
        assert 403 == site.browser.post(path, {}, {"origin": "null", "sec-fetch-site": "cross-site"}).status
        assert 403 == site.browser.post(path, {}, {"sec-fetch-site": "cross-site"}).status
    assert before == site.dump()
    own = {"origin": "null", "sec-fetch-site": "same-origin"}  # what browsers say where pages send no referrer
    assert 200 == site.browser.post(paths[1], {}, own).status
    assert 200 == site.browser.post(paths[3], {}, {"origin": BASE}).status


def test_pages_of_readers_are_kept_by_nobody(site: Site) -> None:
    """No cache, no search engine and no referrer gets hold of a reader's link, and nothing is loaded from elsewhere."""
    for purpose in (Purpose.PREFERENCES, Purpose.UNSUBSCRIBE):
        answer = site.browser.get(f"/{purpose}/{site.token(purpose)}")
        assert "no-store" in answer.headers["cache-control"]
        assert "noindex" == answer.headers["x-robots-tag"]
        assert "no-referrer" == answer.headers["referrer-policy"]
        assert answer.headers["content-security-policy"].startswith("default-src 'none'")
        assert [] == re.findall(r'(?:src|href)="(?:https?:)?//', answer.text)


# -- preferences


def fields_on(answer: Answer) -> list[tuple[str, str]]:
    """Return what a browser would send of the page's first form, pressing nothing."""
    form = answer.text.partition("<form")[2].partition("</form>")[0]
    found = []
    for tag in re.findall(r"<input[^>]*>", form):
        named = dict(re.findall(r'(\w+)="([^"]*)"', tag))
        if named["type"] not in {"checkbox", "radio"} or " checked" in tag:
            found.append((named["name"], unescape(named.get("value", ""))))
    for name, options in re.findall(r'<select[^>]*name="(\w+)">(.*?)</select>', form, re.DOTALL):
        found += [(name, value) for value in re.findall(r'value="([^"]*)" selected', options)]
    for name, text in re.findall(r'<textarea[^>]*name="(\w+)"[^>]*>\n?(.*?)</textarea>', form, re.DOTALL):
        found.append((name, unescape(text)))
    return found


def changed(fields: list[tuple[str, str]], **given: str) -> list[tuple[str, str]]:
    """Return the fields with other values."""
    return [(name, value) for name, value in fields if name not in given] + list(given.items())


def test_saving_the_form_untouched_changes_nothing(site: Site) -> None:
    """Open, press Save: all is as it was."""
    path = f"/preferences/{site.token(Purpose.PREFERENCES)}"
    before = site.now()
    answer = site.browser.post(path, [*fields_on(site.browser.get(path)), ("do", "save")])
    assert 200 == answer.status
    assert "Saved." in answer.text
    assert before == site.now()


def test_all_preferences_can_be_changed(site: Site) -> None:
    """Topics, schedule, zone, filter, form, budget, pause and the quiet mail are kept, and shown again."""
    path = f"/preferences/{site.token(Purpose.PREFERENCES)}"
    form = changed(
        fields_on(site.browser.get(path)),
        every="weekly",
        day="fri",
        at="18:15",
        zone="Europe/Paris",
        include="reef\r\nauthor:Ana Lima",
        exclude="label:Slow Robots",
        format="text",
        budget="9",
        pause="2026-10-20",
        all_quiet="yes",
        alert="yes",
    )
    answer = site.browser.post(path, [*form, ("topic", "kelp-forests")])
    assert (200, path) == (answer.status, answer.actions[0])
    row = site.now()
    assert (("reef-sound", "kelp-forests"), "Europe/Paris") == (row.topics, row.zone)
    assert Weekly((4,), time(18, 15)) == row.schedule
    wanted = row.preferences
    assert ("text", 9, True, True) == (wanted.format, wanted.budget, wanted.all_quiet, wanted.alert)
    assert at("2026-10-23T16:15") == row.next_due_at
    assert set(form) - {("topic", "x")} <= set(fields_on(answer)) | {("include", "reef\r\nauthor:Ana Lima")}
    assert "would have hidden" in answer.text


def test_preview_saves_nothing(site: Site) -> None:
    """The filter is tried on the history, its warnings shown, and nothing is kept, whatever else was changed."""
    path = f"/preferences/{site.token(Purpose.PREFERENCES)}"
    form = changed(fields_on(site.browser.get(path)), exclude="note\ncategory:cs", format="text")
    before = site.dump()
    answer = site.browser.post(path, [*form, ("do", "preview")])
    assert 200 == answer.status
    assert "would have hidden 3 of 3" in answer.text
    assert "3 papers excluded by" in answer.text
    assert "can never fit" in answer.text
    assert "Nothing is saved yet." in answer.text
    assert ("format", "text") in fields_on(answer)
    assert before == site.dump()


def test_form_with_faults_comes_back_as_it_was_typed(site: Site) -> None:
    """Every fault is named, what was typed stands there still, safely, and nothing is saved."""
    path = f"/preferences/{site.token(Purpose.PREFERENCES)}"
    evil = '</textarea><script>alert("x")</script>'
    form = changed(
        fields_on(site.browser.get(path)), zone='Mars"><b>', budget="many", exclude=f"colour:{evil}", format="text"
    )
    before = site.dump()
    answer = site.browser.post(path, form)
    assert 422 == answer.status
    assert 3 == len(re.findall("<li>[^<]*expected[^<]*found", answer.text))
    assert {("zone", 'Mars"><b>'), ("budget", "many"), ("exclude", f"colour:{evil}"), ("format", "text")} <= set(
        fields_on(answer)
    )
    assert "<script>" not in answer.text
    assert before == site.dump()


def test_less_often_is_one_press(site: Site) -> None:
    """The button makes it rarer and keeps all else; pressed again by a reload it goes no further."""
    path = f"/preferences/{site.token(Purpose.PREFERENCES)}"
    form = fields_on(site.browser.get(path))
    assert 'name="do" value="weekly"' in site.browser.get(path).text
    for _ in range(2):
        assert 200 == site.browser.post(path, [*form, ("do", "weekly")]).status
        assert Weekly() == site.now().schedule
    assert 'name="do" value="monthly"' in site.browser.get(path).text


def test_schedule_that_the_form_has_no_words_for_is_kept(site: Site) -> None:
    """Who is told at each snapshot stays so, unless another choice is made."""
    row = let_follow(site.store, "cy@example.org", "Reef Sound", now=MONDAY, schedule="each-snapshot").subscription
    path = f"/preferences/{site.token(Purpose.PREFERENCES, row.public_id)}"
    page = site.browser.get(path)
    assert "after each snapshot with news" in page.text
    assert 200 == site.browser.post(path, fields_on(page)).status
    found = site.store.subscriptions.find_public(row.public_id)
    assert found is not None
    assert EachSnapshot() == found.schedule
    assert 200 == site.browser.post(path, changed(fields_on(page), every="daily", at="06:00")).status
    found = site.store.subscriptions.find_public(row.public_id)
    assert found is not None
    assert "06:00:00" == found.schedule.at.isoformat()  # type: ignore[union-attr]  # Daily


def test_preferences_end_with_the_subscription(site: Site) -> None:
    """Who has left finds no form, and a form that was open saves nothing."""
    path = f"/preferences/{site.token(Purpose.PREFERENCES)}"
    form = fields_on(site.browser.get(path))
    site.browser.post(f"/unsubscribe/{site.token(Purpose.UNSUBSCRIBE)}")
    before = site.dump()
    assert (404, 404) == (site.browser.get(path).status, site.browser.post(path, form).status)
    assert before == site.dump()
