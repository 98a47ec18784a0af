"""Wishes to follow, their mails and limits; preferences, leaving and coming back: what the store holds after each."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from digestd.addresses import parse_reader
from digestd.errors import ConfigError
from digestd.flows.confirm import LIMITS, VALID_FOR, Asked, Outcome, ask, confirm, forget_stale, is_busy, wished
from digestd.flows.digest import Kitchen, make_due
from digestd.flows.preferences import UNDO_FOR, leave_by_link, save, undo_leave
from digestd.flows.subscribe import unfollow
from digestd.model.delivery import DeliveryState, Suppression
from digestd.model.forms import PreferenceChange
from digestd.model.subscription import (
    Daily,
    Filter,
    FilterRule,
    First,
    Monthly,
    Preferences,
    Reader,
    Subscription,
    SubscriptionState,
    Weekly,
)
from digestd.render.outgoing import build_mail, unpack_content
from digestd.store import SqlStore, open_store
from digestd.tokens import Purpose, make_token
from tests.followers import LABELS, add, at, let_follow, make_kitchen, read_mail, start, text_of

MONDAY = at("2026-09-28T05:00")
DAY = timedelta(days=1)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    """A history with two topics."""
    opened = open_store(tmp_path / "history.sqlite")
    start(opened, "Reef Sound", now=MONDAY)
    start(opened, "Kelp Forests", now=MONDAY)
    yield opened
    opened.close()


@pytest.fixture
def kitchen(store: SqlStore) -> Kitchen:
    """A kitchen over it."""
    return make_kitchen(store)


def asked(store: SqlStore, address: str = "ana@example.org", topic: str = "Reef Sound") -> Asked:
    """Return a wish."""
    found = store.history.find_topic(topic)
    assert found is not None
    return Asked(parse_reader(address), found, Weekly((2,)))


def mails(store: SqlStore) -> list[bytes]:
    """Return the mails of all wishes in the outbox, oldest first."""
    rows = [row for row in store.outbox.deliveries(limit=1000) if row.kind == "confirm"]
    found = [store.outbox.content_of(row.key) for row in reversed(rows)]
    return [build_mail(one.envelope.fields, unpack_content(one.content)) for one in found]


def last_wish(store: SqlStore) -> str:
    """Return the public id of the newest wish."""
    rows = [row for row in store.outbox.deliveries() if row.kind == "confirm"]
    return rows[0].digest_key.partition("|")[2]


def everything(store: SqlStore) -> list[str]:
    """Return the whole database as SQL."""
    lines = store.engine._db().conn.iterdump()  # type: ignore[attr-defined]  # SQLite's own
    return [line for line in lines if "sqlite_sequence" not in line]  # numbers given, not what is kept


def claimed(store: SqlStore) -> list[str]:
    """Return who is sent to in the next days."""
    found = store.outbox.claim("w1", now=MONDAY + 9 * DAY, lease_until=MONDAY + 10 * DAY, limit=100)
    return [one.envelope.recipient for one in found]


# -- wishes


def test_wish_becomes_a_subscription_by_one_click(store: SqlStore, kitchen: Kitchen) -> None:
    """A mail goes out, the click makes the subscription as wished, and a second click makes no other."""
    assert ask(kitchen, asked(store), now=MONDAY)
    assert () == tuple(store.subscriptions.subscriptions())
    done = confirm(store, last_wish(store), LABELS, now=MONDAY + DAY)
    assert done.outcome is Outcome.DONE
    (row,) = store.subscriptions.subscriptions()
    assert done.subscription == row
    assert (("reef-sound",), Weekly((2,)), "UTC", First("latest", 10), SubscriptionState.ACTIVE) == (
        row.topics,
        row.schedule,
        row.zone,
        row.preferences.first,
        row.state,
    )
    again = confirm(store, last_wish(store), LABELS, now=MONDAY + DAY)
    assert (Outcome.AGAIN, row) == (again.outcome, again.subscription)
    assert [row] == list(store.subscriptions.subscriptions())


def test_mail_holds_one_link_and_the_address(store: SqlStore, kitchen: Kitchen) -> None:
    """The mail is text and HTML, names topic and schedule, and has one link, which is the wish's own."""
    ask(kitchen, asked(store), now=MONDAY)
    mail = read_mail(mails(store)[0])
    token = make_token(store.secret("tokens"), Purpose.CONFIRM, last_wish(store), expires_at=MONDAY + VALID_FOR)
    text = text_of(mail)
    assert [f"https://digest.example.org/confirm/{token}"] == re.findall(r"https?://\S+", text)
    assert "asked for Reef Sound by mail, Wednesdays at 07:30, UTC." in " ".join(text.split())
    assert "Confirm: Reef Sound by mail" == mail["Subject"]
    assert "ana@example.org" == mail["To"]
    assert "auto-generated" == mail["Auto-Submitted"]
    html = mail.get_body(("html",))
    assert html is not None
    assert [f"https://digest.example.org/confirm/{token}"] == re.findall(r'href="([^"]*)"', html.get_content())


def test_same_wish_has_the_same_bodies(store: SqlStore, kitchen: Kitchen) -> None:
    """What a hundred people wish alike is kept once."""
    for number in range(100):
        ask(kitchen, asked(store, f"r{number}@example.org"), now=MONDAY)
    rows = store.engine.query("SELECT COUNT(DISTINCT content) AS total FROM outbox")
    assert [{"total": 1}] == rows


def test_flood_of_one_address_makes_one_mail(store: SqlStore, kitchen: Kitchen) -> None:
    """Ten thousand wishes for one mailbox, in all its spellings, are one mail."""
    spellings = [f"{dots}+t{number}@example.org" for number in range(50) for dots in ("ana", "a.na", "an.a", "A.N.A")]
    wishes = [asked(store, text) for text in spellings]
    made = sum(
        ask(kitchen, wishes[number % len(wishes)], now=MONDAY + number * timedelta(seconds=8))
        for number in range(10_000)
    )
    assert 1 == made
    assert 1 == len(mails(store))


def test_an_address_gets_three_mails_in_three_months(tmp_path: Path) -> None:
    """One a day, three in ninety days, however often and after whatever restart it is asked."""
    made: list[int] = []
    for day in range(92):
        store = open_store(tmp_path / "history.sqlite")
        if day == 0:
            start(store, "Reef Sound", now=MONDAY)
        hours = range(24 * day, 24 * day + 24, 6)
        made += [hour for hour in hours if ask(make_kitchen(store), asked(store), now=MONDAY + timedelta(hours=hour))]
        store.close()
    assert [0, 24, 48, 90 * 24, 91 * 24] == made


def test_flood_of_many_addresses_stops_at_the_limit(store: SqlStore, kitchen: Kitchen) -> None:
    """Five thousand victims get two hundred mails in an hour."""
    topic = asked(store).topic
    wishes = [
        Asked(Reader(f"v{number}@example.org", f"v{number}@example.org"), topic, Daily()) for number in range(5000)
    ]
    made = sum(ask(kitchen, wish, now=MONDAY + number * timedelta(seconds=0.7)) for number, wish in enumerate(wishes))
    assert LIMITS.hourly == made
    assert is_busy(store, now=MONDAY + timedelta(minutes=59))
    assert not is_busy(store, now=MONDAY + timedelta(minutes=70))


def test_readers_wish_adds_a_topic_and_nothing_else(store: SqlStore, kitchen: Kitchen) -> None:
    """A stranger who asks for a reader can't change name, spelling, schedule or the other topics, even if it is confirmed."""
    hide = Filter(exclude=(FilterRule("words", "kelp"),))
    before = let_follow(
        store, "Ana Lima <Ana@example.org>", "Kelp Forests", now=MONDAY, zone="Europe/Rome", hide=hide
    ).subscription
    ask(kitchen, asked(store, "Buy Pills <ANA@example.org>"), now=MONDAY)
    assert [before] == list(store.subscriptions.subscriptions())
    assert "Ana@example.org" == read_mail(mails(store)[0])["To"]
    done = confirm(store, last_wish(store), LABELS, now=MONDAY)
    (row,) = store.subscriptions.subscriptions()
    assert done.subscription == row
    assert ("kelp-forests", "reef-sound") == row.topics
    assert (before.reader, before.schedule, before.zone, before.preferences) == (
        row.reader,
        row.schedule,
        row.zone,
        row.preferences,
    )


def test_reader_who_left_comes_back(store: SqlStore, kitchen: Kitchen) -> None:
    """Who unsubscribed, here or from all mail, gets the mail that asks, and is let in by the click."""
    row = let_follow(store, "ana@example.org", "Reef Sound", now=MONDAY).subscription
    leave_by_link(store, row.public_id, now=MONDAY)
    store.outbox.suppress(Suppression("ana@example.org", "all", "unsubscribed", MONDAY))
    ask(kitchen, asked(store), now=MONDAY)
    assert DeliveryState.READY is store.outbox.deliveries()[0].state
    assert confirm(store, last_wish(store), LABELS, now=MONDAY).outcome is Outcome.DONE
    assert [row.public_id] == [one.scope for one in store.outbox.suppressions("ana@example.org")]
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=MONDAY)
    make_due(kitchen, now=MONDAY + 7 * DAY)
    assert ["ana@example.org"] * 2 == claimed(store)


def test_click_lifts_what_stops_all_mail_of_a_follower(store: SqlStore, kitchen: Kitchen) -> None:
    """A follower who once wanted no mail at all, and now confirms one topic more, gets mail again."""
    follower(store)
    store.outbox.suppress(Suppression("ana@example.org", "all", "unsubscribed", MONDAY))
    ask(kitchen, asked(store, topic="Kelp Forests"), now=MONDAY)
    confirm(store, last_wish(store), LABELS, now=MONDAY)
    assert () == tuple(store.outbox.suppressions("ana@example.org"))


@pytest.mark.parametrize("reason", ["bounced", "complained", "operator"])
def test_suppressed_address_is_asked_nothing_and_stays_so(store: SqlStore, kitchen: Kitchen, reason: str) -> None:
    """An address that mail must not go to gets none, and a link from before does not lift that."""
    ask(kitchen, asked(store), now=MONDAY)
    earlier = last_wish(store)
    store.outbox.suppress(Suppression("ana@example.org", "all", reason, MONDAY))
    assert ask(kitchen, asked(store), now=MONDAY + DAY)
    assert DeliveryState.SUPPRESSED is store.outbox.deliveries()[0].state
    assert confirm(store, earlier, LABELS, now=MONDAY + DAY).outcome is Outcome.BLOCKED
    assert [reason] == [one.reason for one in store.outbox.suppressions("ana@example.org")]
    assert () == tuple(store.subscriptions.subscriptions())
    assert [] == claimed(store)


def test_link_ends_after_two_days(store: SqlStore, kitchen: Kitchen) -> None:
    """A wish can be confirmed for 48 hours and not a second longer."""
    ask(kitchen, asked(store), now=MONDAY)
    assert confirm(store, last_wish(store), LABELS, now=MONDAY + VALID_FOR).outcome is Outcome.GONE
    last = MONDAY + VALID_FOR - timedelta(seconds=1)
    assert confirm(store, last_wish(store), LABELS, now=last).outcome is Outcome.DONE
    assert confirm(store, "nosuchwish", LABELS, now=MONDAY).outcome is Outcome.GONE


def test_address_that_was_not_confirmed_is_forgotten(store: SqlStore, kitchen: Kitchen) -> None:
    """After two days nothing in the database names an address that somebody typed, but its limit still holds."""
    ask(kitchen, asked(store, "victim.of.spam@example.org"), now=MONDAY)
    assert any("victim" in line for line in everything(store))
    assert 0 == forget_stale(store, now=MONDAY + VALID_FOR - timedelta(seconds=1))
    assert 1 == forget_stale(store, now=MONDAY + VALID_FOR)
    assert [] == [line for line in everything(store) if "victim" in line]
    assert 0 == forget_stale(store, now=MONDAY + VALID_FOR)
    for day in (3, 4, 5):
        ask(kitchen, asked(store, "victim.of.spam@example.org"), now=MONDAY + day * DAY)
    assert 3 == len(store.engine.query("SELECT 1 FROM confirm_mail"))
    assert 0 == len(store.engine.query("SELECT 1 FROM confirm_mail WHERE mark LIKE '%victim%'"))


def test_forgetting_leaves_readers_and_mails_at_work(store: SqlStore, kitchen: Kitchen) -> None:
    """Who confirmed stays, and a mail that a worker holds is not taken from under it."""
    ask(kitchen, asked(store, "ana@example.org"), now=MONDAY)
    confirm(store, last_wish(store), LABELS, now=MONDAY)
    ask(kitchen, asked(store, "bo@example.org"), now=MONDAY)
    held = store.outbox.claim("w1", now=MONDAY, lease_until=MONDAY + DAY, limit=1)
    assert ["ana@example.org"] == [one.envelope.recipient for one in held]
    assert 1 == forget_stale(store, now=MONDAY + 3 * DAY)
    assert store.subscriptions.find_reader("bo@example.org") is None
    store.outbox.reap(now=MONDAY + 3 * DAY, owners=[])
    assert 1 == forget_stale(store, now=MONDAY + 3 * DAY)
    assert store.subscriptions.find_reader("ana@example.org") is not None


def test_wish_made_twice_before_the_click_is_one_subscription(store: SqlStore, kitchen: Kitchen) -> None:
    """Two wishes of one address, both confirmed, are one subscription to both topics."""
    ask(kitchen, asked(store), now=MONDAY)
    first = last_wish(store)
    ask(kitchen, asked(store, topic="Kelp Forests"), now=MONDAY + DAY)
    for wish in (last_wish(store), first):
        assert confirm(store, wish, LABELS, now=MONDAY + DAY).outcome is Outcome.DONE
    assert [("kelp-forests", "reef-sound")] == [row.topics for row in store.subscriptions.subscriptions()]


def test_wish_needs_a_public_address(store: SqlStore) -> None:
    """Without an address of the pages there is no link to send, and that is said."""
    with pytest.raises(ConfigError, match=r"web\.base_url"):
        ask(make_kitchen(store, base_url=None), asked(store), now=MONDAY)
    assert [] == list(store.outbox.deliveries())


def test_bounces_of_the_mail_carry_a_token_of_their_own(store: SqlStore, kitchen: Kitchen) -> None:
    """Where bounces are read, the mail's sender names the wish."""
    identity = replace(kitchen.identity, bounce="bounce@digest.example.org")
    ask(replace(kitchen, identity=identity), asked(store), now=MONDAY)
    row = store.outbox.content_of(store.outbox.deliveries()[0].key)
    token = make_token(store.secret("tokens"), Purpose.BOUNCE, last_wish(store), scope="confirm")
    assert row.envelope.sender.startswith(f"bounce+{token}")


_EXAMPLE = itertools.count(1)
_WORDS = st.text(st.characters(codec="utf-8"), max_size=40)


@given(st.emails(), _WORDS)
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_mail_has_nothing_that_a_stranger_wrote(store: SqlStore, kitchen: Kitchen, address: str, name: str) -> None:
    """Whatever is typed, the mail has its own headers and words, and goes to the one address that was typed."""
    try:
        reader = parse_reader(f'"{name}" <{address}>')
    except ConfigError:
        return
    far = LIMITS.window * next(_EXAMPLE)  # so that no limit is in the way
    assert ask(kitchen, replace(asked(store), reader=reader), now=MONDAY + far)
    mail = read_mail(mails(store)[-1])
    assert [
        "From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "Precedence", "X-Auto-Response-Suppress",
        "MIME-Version", "Content-Language", "Content-Type",
    ] == mail.keys()  # fmt: skip
    assert [reader.envelope] == [one.addr_spec for one in mail["To"].addresses]
    assert "" == mail["To"].addresses[0].display_name
    row = store.outbox.deliveries()[0]
    assert reader.envelope == row.recipient


# -- preferences


def follower(store: SqlStore, **given: object) -> Subscription:
    """Return a reader's subscription."""
    return let_follow(store, "ana@example.org", "Reef Sound", now=MONDAY, **given).subscription  # type: ignore[arg-type]  # any of let_follow


def changed(**given: object) -> PreferenceChange:
    """Return a change of everything, but for what is named."""
    wanted = Preferences(
        format="text",
        budget=7,
        all_quiet=True,
        first=First("none"),
        filter=Filter(exclude=(FilterRule("author", "Bo Ek"),)),
    )
    standard: dict[str, object] = {
        "topics": ("reef-sound", "kelp-forests"),
        "schedule": Monthly(3),
        "zone": "Europe/Rome",
        "preferences": wanted,
        "paused_until": date(2026, 11, 20),
    }
    return PreferenceChange(**standard | given)  # type: ignore[arg-type]  # any field of PreferenceChange


def test_preferences_are_saved_once_and_for_all(store: SqlStore) -> None:
    """All that a form says is kept, the pause decides when the next digest comes, and a second time changes nothing."""
    row = follower(store)
    saved = save(store, row.public_id, changed(), LABELS, now=MONDAY)
    assert saved is not None
    assert changed() == PreferenceChange(
        saved.topics, saved.schedule, saved.zone, saved.preferences, saved.paused_until
    )
    assert at("2026-12-03T06:30") == saved.next_due_at
    before = everything(store)
    assert saved == save(store, row.public_id, changed(), LABELS, now=MONDAY)
    assert before == everything(store)


def test_saving_loses_and_doubles_no_news(store: SqlStore, kitchen: Kitchen) -> None:
    """News that waits for the old schedule's digest comes with the new one's; what was told is not told again."""
    row = follower(store)
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=MONDAY)
    make_due(kitchen, now=MONDAY + timedelta(hours=3))
    add(
        store, "Reef Sound", ("2026-09-29", "Cold Horns"), ("2026-09-28", "Bell Buoys"), now=MONDAY + timedelta(hours=4)
    )
    saved = save(
        store,
        row.public_id,
        changed(paused_until=None, preferences=Preferences()),
        LABELS,
        now=MONDAY + timedelta(hours=5),
    )
    assert saved is not None
    assert saved.told_upto < store.history.head()
    (served,) = make_due(kitchen, now=at("2026-10-03T08:00"))
    assert served.made is not None
    assert served.made.digest is not None
    told = [paper.paper.title for section in served.made.digest.sections for paper in section.papers]
    assert ["Cold Horns"] == told


def test_pause_is_taken_back(store: SqlStore) -> None:
    """A form without a pause ends it."""
    row = follower(store)
    save(store, row.public_id, changed(), LABELS, now=MONDAY)
    saved = save(store, row.public_id, changed(paused_until=None), LABELS, now=MONDAY)
    assert saved is not None
    assert saved.paused_until is None
    assert at("2026-10-03T05:30") == saved.next_due_at


def test_nothing_is_saved_for_who_has_left(store: SqlStore) -> None:
    """A form that was open when its reader left brings nobody back."""
    row = follower(store)
    leave_by_link(store, row.public_id, now=MONDAY)
    before = everything(store)
    assert save(store, row.public_id, changed(), LABELS, now=MONDAY) is None
    assert save(store, "nosuchone", changed(), LABELS, now=MONDAY) is None
    assert before == everything(store)


# -- leaving, and back


def waiting(store: SqlStore, kitchen: Kitchen) -> Subscription:
    """Return a subscription with a digest that waits in the outbox."""
    row = follower(store)
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=MONDAY)
    make_due(kitchen, now=MONDAY + timedelta(hours=3))
    return row


def test_leaving_stops_what_waits(store: SqlStore, kitchen: Kitchen) -> None:
    """From the answer on nothing goes out, and leaving again changes nothing."""
    row = waiting(store, kitchen)
    assert leave_by_link(store, row.public_id, now=MONDAY + DAY)
    before = everything(store)
    assert not leave_by_link(store, row.public_id, now=MONDAY + 2 * DAY)
    assert not leave_by_link(store, "nosuchone", now=MONDAY)
    assert before == everything(store)
    assert [] == claimed(store)


@pytest.mark.parametrize("looked", [False, True])
def test_undo_sends_what_was_held_back(store: SqlStore, kitchen: Kitchen, looked: bool) -> None:
    """Who takes the click back gets what waited, whether a worker has passed it over meanwhile or not, once."""
    row = waiting(store, kitchen)
    leave_by_link(store, row.public_id, now=MONDAY + timedelta(hours=4))
    if looked:
        assert [] == claimed(store)
    back = undo_leave(store, row.public_id, now=MONDAY + timedelta(hours=5))
    assert back is not None
    assert (SubscriptionState.ACTIVE, ()) == (back.state, tuple(store.outbox.suppressions("ana@example.org")))
    before = everything(store)
    assert back == undo_leave(store, row.public_id, now=MONDAY + timedelta(hours=6))
    assert before == everything(store)
    assert ["ana@example.org"] == claimed(store)
    add(store, "Reef Sound", ("2026-09-29", "Cold Horns"), ("2026-09-28", "Bell Buoys"), now=MONDAY + DAY)
    assert 1 == len(make_due(kitchen, now=MONDAY + 2 * DAY))


def test_undo_is_for_a_day_and_for_own_clicks(store: SqlStore) -> None:
    """Neither an old click nor an operator's decision is taken back, and nobody is brought back who was not here."""
    row = follower(store)
    leave_by_link(store, row.public_id, now=MONDAY)
    assert undo_leave(store, row.public_id, now=MONDAY + UNDO_FOR) is None
    assert undo_leave(store, "nosuchone", now=MONDAY) is None
    other = let_follow(store, "bo@example.org", "Reef Sound", now=MONDAY).subscription
    unfollow(store, other.reader, (), now=MONDAY)
    assert undo_leave(store, other.public_id, now=MONDAY) is None


def test_undo_leaves_a_dead_address_alone(store: SqlStore) -> None:
    """An address whose mail came back since stays suppressed."""
    row = follower(store)
    leave_by_link(store, row.public_id, now=MONDAY)
    store.outbox.add_bounce("ana@example.org", "hard", at=MONDAY)
    assert undo_leave(store, row.public_id, now=MONDAY) is None
    assert 2 == len(store.outbox.suppressions("ana@example.org"))


def test_undo_makes_no_second_subscription(store: SqlStore, kitchen: Kitchen) -> None:
    """Who has come back by a new wish is not subscribed twice."""
    row = follower(store)
    leave_by_link(store, row.public_id, now=MONDAY)
    ask(kitchen, asked(store), now=MONDAY)
    confirm(store, last_wish(store), LABELS, now=MONDAY)
    assert undo_leave(store, row.public_id, now=MONDAY) is None
    assert 1 == len(store.subscriptions.subscriptions(active_only=True))


def test_wished_of_a_new_reader_is_the_wish(store: SqlStore, kitchen: Kitchen) -> None:
    """Of somebody new all is as it was asked for."""
    ask(kitchen, asked(store), now=MONDAY)
    pending = store.confirmations.find(last_wish(store))
    assert pending is not None
    wish = wished(store, pending)
    assert (("reef-sound",), Weekly((2,)), "UTC") == (wish.topics, wish.schedule, wish.zone)
    assert store.confirmations.settle(pending.public_id, now=MONDAY)
    assert not store.confirmations.settle(pending.public_id, now=MONDAY)
    assert store.confirmations.find("nosuchwish") is None
