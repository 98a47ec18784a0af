"""Slots, catch-up, pause, welcome, filters and sharing: what readers are told, and that it is once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest

from digestd.addresses import parse_reader
from digestd.errors import NotFoundError, StoreError
from digestd.filters import parse_rule
from digestd.flows.audit import audit
from digestd.flows.digest import Kitchen, Served, dry_runs, make_due, make_now, missed_slots
from digestd.flows.subscribe import pause, reconcile, unfollow
from digestd.model.delivery import DeliveryState
from digestd.model.subscription import Filter, First, Subscription, SubscriptionState
from digestd.store import SqlStore, open_store
from tests.followers import add, at, ingest, let_follow, make_kitchen, page, read_mail, start

MONDAY = at("2026-09-28T05:00")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    """A history with two topics that have had their first page."""
    opened = open_store(tmp_path / "history.sqlite")
    start(opened, "Reef Sound", now=MONDAY)
    start(opened, "Kelp Forests", now=MONDAY)
    yield opened
    opened.close()


@pytest.fixture
def kitchen(store: SqlStore) -> Kitchen:
    """All that digests are made with."""
    return make_kitchen(store)


def titles(store: SqlStore, one: Served) -> list[str]:
    """Return the titles that a served digest told, in the order of its items."""
    assert one.made is not None
    if one.made.digest is None:
        return []
    names = {known.key: known.paper.title for known in store.history.all_papers()}
    return [names[item.paper] for item in store.subscriptions.digest(one.made.key).items]


def all_told(store: SqlStore, subscription: Subscription) -> list[str]:
    """Return all titles ever told to a subscription, oldest digest first."""
    names = {known.key: known.paper.title for known in store.history.all_papers()}
    records = reversed(store.subscriptions.digests(subscription.key))
    return [names[item.paper] for record in records for item in store.subscriptions.digest(record.key).items]


def now_of(store: SqlStore, subscription: Subscription) -> Subscription:
    """Return a subscription as it stands."""
    assert subscription.key is not None
    return store.subscriptions.subscription(subscription.key)


def test_slot_is_served_once(store: SqlStore, kitchen: Kitchen) -> None:
    """A slot makes one digest; a second run at the same time, or a minute later, makes nothing."""
    reader = let_follow(store, "ana@example.org", "Reef Sound", now=MONDAY).subscription
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=MONDAY)
    assert [] == make_due(kitchen, now=at("2026-09-28T07:29:59"))
    (served,) = make_due(kitchen, now=at("2026-09-28T07:30"))
    assert ["Bell Buoys"] == titles(store, served)
    assert [] == make_due(kitchen, now=at("2026-09-28T07:30"))
    assert [] == make_due(kitchen, now=at("2026-09-28T07:31"))
    assert ["2026-09-28T07:30"] == [slot.label for slot in store.subscriptions.slots(reader.key or 0)]
    assert 1 == store.outbox.counts()[DeliveryState.READY]


def test_slot_without_news_makes_no_mail(store: SqlStore, kitchen: Kitchen) -> None:
    """Nothing new makes no mail, and the slot is served all the same."""
    reader = let_follow(store, "ana@example.org", "Reef Sound", now=MONDAY).subscription
    (served,) = make_due(kitchen, now=at("2026-09-28T08:00"))
    assert served.made is not None
    assert served.made.digest is None
    assert [None] == [slot.digest_key for slot in store.subscriptions.slots(reader.key or 0)]
    assert 0 == sum(store.outbox.counts().values())
    assert at("2026-09-29T07:30") == now_of(store, reader).next_due_at


def test_all_quiet_mail_comes_if_asked(store: SqlStore, kitchen: Kitchen) -> None:
    """A reader who asked for it hears that there is nothing new."""
    let_follow(store, "ana@example.org", "Reef Sound", now=MONDAY, all_quiet=True)
    (served,) = make_due(kitchen, now=at("2026-09-28T08:00"))
    assert [] == titles(store, served)
    assert 1 == store.outbox.counts()[DeliveryState.READY]


def test_downtime_makes_one_catch_up_digest(store: SqlStore, kitchen: Kitchen) -> None:
    """After 45 days down one digest covers all missed slots and says so; each of them is on record."""
    reader = let_follow(store, "ana@example.org", "Reef Sound", now=MONDAY).subscription
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=MONDAY)
    add(store, "Reef Sound", ("2026-10-20", "Cold Horns"), ("2026-09-28", "Bell Buoys"), now=at("2026-10-21T05:00"))
    (served,) = make_due(kitchen, now=MONDAY + timedelta(days=45))
    assert ["Cold Horns", "Bell Buoys"] == titles(store, served)
    slots = store.subscriptions.slots(reader.key or 0)
    assert 45 == len(slots)
    assert {"2026-11-11T07:30"} == {slot.coalesced_into for slot in slots[:-1]}
    assert served.made is not None
    assert served.made.digest is not None
    assert "because 44 earlier digests could not be made in time" == served.made.digest.catch_up
    assert [] == make_due(kitchen, now=MONDAY + timedelta(days=45))


def test_pause_holds_and_catches_up_in_one(store: SqlStore, kitchen: Kitchen) -> None:
    """During a pause nothing comes; after it one digest holds what came meanwhile and names the pause."""
    reader = let_follow(store, "ana@example.org", "Reef Sound", now=MONDAY).subscription
    pause(store, reader.reader, date(2026, 10, 3), now=MONDAY)
    for day in range(5):
        add(store, "Reef Sound", (f"2026-09-{28 + min(day, 2)}", f"Horn {day}"), now=MONDAY + timedelta(days=day))
        assert [] == make_due(kitchen, now=MONDAY + timedelta(days=day, hours=4))
    (served,) = make_due(kitchen, now=at("2026-10-03T07:30"))
    assert {f"Horn {day}" for day in range(5)} == set(titles(store, served))
    assert served.made is not None
    assert served.made.digest is not None
    assert "after your pause until Sat, Oct 3" == served.made.digest.catch_up
    assert now_of(store, reader).paused_until is None


def test_pause_that_is_ended_serves_what_was_missed(store: SqlStore, kitchen: Kitchen) -> None:
    """Ending a pause early makes the missed slots due at once, as one digest."""
    reader = let_follow(store, "ana@example.org", "Reef Sound", now=MONDAY).subscription
    pause(store, reader.reader, date(2026, 12, 1), now=MONDAY)
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=MONDAY)
    assert [] == make_due(kitchen, now=at("2026-09-30T08:00"))
    pause(store, reader.reader, None, now=at("2026-09-30T08:00"))
    (served,) = make_due(kitchen, now=at("2026-09-30T08:00"))
    assert ["Bell Buoys"] == titles(store, served)


def test_each_snapshot_tells_at_once_and_only_news(store: SqlStore, kitchen: Kitchen) -> None:
    """A reader of each snapshot is told as soon as something is new, of other topics' pages nothing."""
    reader = let_follow(store, "ana@example.org", "Reef Sound", now=MONDAY, schedule="each-snapshot").subscription
    assert [] == make_due(kitchen, now=MONDAY)
    add(store, "Kelp Forests", ("2026-09-28", "Kelp in June"), now=MONDAY)
    (quiet,) = make_due(kitchen, now=MONDAY)
    assert quiet.made is None
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=MONDAY)
    (first,) = make_due(kitchen, now=MONDAY)
    assert ["Bell Buoys"] == titles(store, first)
    assert [] == make_due(kitchen, now=MONDAY)
    add(store, "Reef Sound", ("2026-09-29", "Cold Horns"), ("2026-09-28", "Bell Buoys"), now=MONDAY)
    (second,) = make_due(kitchen, now=MONDAY)
    assert (["Cold Horns"], "") == (titles(store, second), second.error)
    assert ["Bell Buoys", "Cold Horns"] == all_told(store, reader)


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (First("none"), []),
        (First("latest", latest=2), ["Reef Sound Note 0", "Reef Sound Note 1"]),
        (First("since", since=date(2026, 9, 20)), ["Reef Sound Note 0"]),
    ],
)
def test_welcome_holds_what_was_asked(store: SqlStore, kitchen: Kitchen, first: First, expected: list[str]) -> None:
    """The first digest holds nothing, the latest papers, or those since a day; the second one none of it."""
    let_follow(store, "ana@example.org", "Reef Sound", now=MONDAY, first=first)
    (served,) = make_due(kitchen, now=at("2026-09-28T08:00"))
    assert expected == titles(store, served)
    (second,) = make_due(kitchen, now=at("2026-09-29T08:00"))
    assert [] == titles(store, second)


def test_topic_added_later_is_told_from_now_on(store: SqlStore, kitchen: Kitchen) -> None:
    """A topic that a reader adds is told from that moment; the topics followed before go on where they were."""
    let_follow(store, "ana@example.org", "Reef Sound", now=MONDAY)
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=MONDAY)
    add(store, "Kelp Forests", ("2026-09-28", "Kelp in June"), now=MONDAY)
    let_follow(store, "ana@example.org", "Reef Sound", "Kelp Forests", now=MONDAY + timedelta(minutes=1))
    add(
        store,
        "Kelp Forests",
        ("2026-09-29", "Kelp in July"),
        ("2026-09-28", "Kelp in June"),
        now=at("2026-09-29T05:00"),
    )
    (served,) = make_due(kitchen, now=at("2026-09-29T08:00"))
    assert ["Bell Buoys", "Kelp in July"] == titles(store, served)


def test_paper_of_two_topics_is_told_once(store: SqlStore, kitchen: Kitchen) -> None:
    """A paper in two followed topics is told in one place, and never again under the other."""
    reader = let_follow(store, "ana@example.org", "Reef Sound", "Kelp Forests", now=MONDAY).subscription
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=MONDAY)
    make_due(kitchen, now=at("2026-09-28T08:00"))
    add(store, "Kelp Forests", ("2026-09-28", "Bell Buoys"), now=at("2026-09-28T12:00"))
    make_due(kitchen, now=at("2026-09-29T08:00"))
    assert ["Bell Buoys"] == all_told(store, reader)


def test_revision_is_told_once_and_kept_on_record(store: SqlStore, kitchen: Kitchen) -> None:
    """A new title of a paper told before is told once, and the digest's record names it."""
    reader = let_follow(store, "ana@example.org", "Reef Sound", now=MONDAY).subscription
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=MONDAY)
    make_due(kitchen, now=at("2026-09-28T08:00"))
    changed = page("Reef Sound", ("2026-09-28", "Bell Buoys"), ("2026-09-20", "Reef Sound Note 0")).replace(
        "The outcome differs", "Moored buoys ring twice as often. The outcome differs"
    )
    ingest(store, changed, now=at("2026-09-28T12:00"))
    (served,) = make_due(kitchen, now=at("2026-09-29T08:00"))
    assert served.made is not None
    items = store.subscriptions.digest(served.made.key).items
    assert [("revised", None)] == [(item.section, item.topic) for item in items]
    assert served.made.digest is not None
    assert 1 == len(served.made.digest.revised)
    (again,) = make_due(kitchen, now=at("2026-09-30T08:00"))
    assert [] == titles(store, again)
    assert ["Bell Buoys", "Bell Buoys"] == all_told(store, reader)


def test_unfollow_stops_what_waits(store: SqlStore, kitchen: Kitchen) -> None:
    """A reader who leaves gets nothing more, not even what stands in the outbox, and is not served again."""
    reader = let_follow(store, "ana@example.org", "Reef Sound", now=MONDAY).subscription
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=MONDAY)
    make_due(kitchen, now=at("2026-09-28T08:00"))
    assert unfollow(store, reader.reader, (), now=at("2026-09-28T08:01")) is None
    now = at("2026-09-28T08:02")
    assert [] == store.outbox.claim("w", now=now, lease_until=now + timedelta(minutes=20), limit=10)
    assert 1 == store.outbox.counts()[DeliveryState.SUPPRESSED]
    assert SubscriptionState.ENDED == now_of(store, reader).state
    assert [] == make_due(kitchen, now=at("2026-10-28T08:00"))
    with pytest.raises(NotFoundError, match="expected a subscription, found none"):
        unfollow(store, reader.reader, (), now=now)


def test_follow_after_leaving_is_told_again(store: SqlStore, kitchen: Kitchen) -> None:
    """Somebody who comes back is told what is new from then on."""
    gone = let_follow(store, "ana@example.org", "Reef Sound", now=MONDAY).subscription
    unfollow(store, gone.reader, (), now=MONDAY)
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=MONDAY)
    back = let_follow(store, "Ana@example.org", "Reef Sound", now=MONDAY + timedelta(hours=1))
    assert back.added
    add(store, "Reef Sound", ("2026-09-29", "Cold Horns"), ("2026-09-28", "Bell Buoys"), now=at("2026-09-29T05:00"))
    (served,) = make_due(kitchen, now=at("2026-09-29T08:00"))
    assert ["Cold Horns"] == titles(store, served)
    now = at("2026-09-29T08:01")
    assert 1 == len(store.outbox.claim("w", now=now, lease_until=now + timedelta(minutes=20), limit=10))


def test_topic_taken_away_is_not_told(store: SqlStore, kitchen: Kitchen) -> None:
    """A topic that a reader gave up is told no more; the others are."""
    reader = let_follow(store, "ana@example.org", "Reef Sound", "Kelp Forests", now=MONDAY).subscription
    left = unfollow(store, reader.reader, ("Kelp Forests",), now=MONDAY)
    assert left is not None
    assert ("reef-sound",) == left.topics
    with pytest.raises(NotFoundError, match="expected topics that are followed, found kelp-forests"):
        unfollow(store, reader.reader, ("Kelp Forests",), now=MONDAY)
    add(store, "Kelp Forests", ("2026-09-28", "Kelp in June"), now=MONDAY)
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=MONDAY)
    (served,) = make_due(kitchen, now=at("2026-09-28T08:00"))
    assert ["Bell Buoys"] == titles(store, served)


def test_filter_hides_and_is_counted(store: SqlStore, kitchen: Kitchen) -> None:
    """What a filter hides is counted in the mail and on record with its reason, and is not told later."""
    hide = Filter(exclude=(parse_rule("buoys"),))
    followed = let_follow(store, "ana@example.org", "Reef Sound", now=MONDAY, hide=hide)
    assert followed.preview is not None
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), ("2026-09-28", "Cold Horns"), now=MONDAY)
    (served,) = make_due(kitchen, now=at("2026-09-28T08:00"))
    assert ["Cold Horns"] == titles(store, served)
    assert served.made is not None
    assert served.made.digest is not None
    assert 1 == served.made.digest.sections[0].hidden
    ((position, why),) = store.subscriptions.digest(served.made.key).passed_over
    assert position > 0
    assert "buoys" in why
    let_follow(store, "ana@example.org", "Reef Sound", now=at("2026-09-28T09:00"))
    (second,) = make_due(kitchen, now=at("2026-09-29T08:00"))
    assert [] == titles(store, second)


def test_failing_subscription_does_not_stop_the_others(
    store: SqlStore, kitchen: Kitchen, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A subscription that cannot be served is named and stays due; its neighbours are served, none of it half."""
    readers = [
        let_follow(store, f"{name}@example.org", "Reef Sound", now=MONDAY).subscription for name in ("a", "b", "c")
    ]
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=MONDAY)
    # another digest has taken the key that b's would get
    broken = readers[1]
    with store.transaction():
        store.engine.query(
            "INSERT INTO slot (subscription_id, label, due_at) VALUES (:key, '2026-09-28T07:30', '2026-09-28T07:30:00Z')",
            {"key": broken.key},
        )
    served = make_due(kitchen, now=at("2026-09-28T08:00"))
    assert [False, True, False] == [bool(one.error) for one in served]
    assert [["Bell Buoys"], [], ["Bell Buoys"]] == [all_told(store, reader) for reader in readers]
    assert 2 == store.outbox.counts()[DeliveryState.READY]
    assert at("2026-09-28T07:30") == now_of(store, broken).next_due_at


def test_readers_of_the_same_share_content(store: SqlStore, kitchen: Kitchen) -> None:
    """Readers who want the same share one stored body; what is personal differs."""
    for name in ("a", "b", "c"):
        let_follow(store, f"{name}@example.org", "Reef Sound", now=MONDAY)
    let_follow(store, "d@example.org", "Reef Sound", now=MONDAY, form="text")
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=MONDAY)
    served = make_due(kitchen, now=at("2026-09-28T08:00"))
    assert 4 == len(served)
    assert [{"bodies": 2}] == store.engine.query("SELECT COUNT(*) AS bodies FROM content")
    now = at("2026-09-28T08:00")
    claimed = store.outbox.claim("w", now=now, lease_until=now + timedelta(minutes=20), limit=10)
    assert 4 == len({one.envelope.fields for one in claimed})
    assert 4 == len({one.delivery.message_id for one in claimed})


def test_many_readers_get_what_each_would_get_alone(store: SqlStore, kitchen: Kitchen) -> None:
    """Serving readers together changes nothing: content, items and what is passed over are those of each served alone."""
    hide = Filter(exclude=(parse_rule("words:buoys"),))
    wishes = [
        {},
        {"form": "text"},
        {"hide": hide},
        {"budget": 1},
        {"first": First("latest", 2)},
        {"zone": "Asia/Tokyo"},
    ]
    for number, given in enumerate(wishes * 3):
        topics = ("Reef Sound", "Kelp Forests") if number % 2 else ("Reef Sound",)
        let_follow(store, f"r{number}@example.org", *topics, now=MONDAY - timedelta(hours=number), **given)  # type: ignore[arg-type]  # kinds of wishes
    for day in (28, 29):
        now = at(f"2026-09-{day}T23:00")
        for topic in ("Reef Sound", "Kelp Forests"):
            stories = [
                (f"2026-09-{day}", f"Bell Buoys {day}", "Kelp Forests"),
                (f"2026-09-{day}", f"{topic} Tale {day}"),
            ]
            add(store, topic, *stories, now=now - timedelta(hours=20))
        alone = []
        for one in store.subscriptions.subscriptions():
            *earlier, slot = missed_slots(one, now, store.history.head())
            alone.append(
                kitchen.maker(now).make(one, slot, coalesced=len(earlier))
            )  # a maker that knows of nobody else
        together = [served.made for served in make_due(kitchen, now=now)]
        assert alone == together
        for made in alone:
            record = store.subscriptions.digest(made.key)
            assert (made.items, sorted(made.passed_over)) == (record.items, list(record.passed_over))


def test_text_only_mail_has_no_html(store: SqlStore, kitchen: Kitchen) -> None:
    """A reader of plain text gets one part of plain text, links and all."""
    let_follow(store, "d@example.org", "Reef Sound", now=MONDAY, form="text")
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=MONDAY)
    (served,) = make_due(kitchen, now=at("2026-09-28T08:00"))
    assert served.made is not None
    mail = kitchen.maker(at("2026-09-28T08:00")).mail(served.made)
    assert b"Content-Type: text/plain" in mail
    assert b"<html" not in mail.lower()


def test_now_leaves_the_schedule_alone(store: SqlStore, kitchen: Kitchen) -> None:
    """A digest made by hand tells what is new; the next slot stays, and does not tell it again."""
    reader = let_follow(store, "ana@example.org", "Reef Sound", now=MONDAY).subscription
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=MONDAY)
    by_hand = make_now(kitchen, reader, now=at("2026-09-28T06:00"))
    assert by_hand.made is not None
    archived = read_mail(kitchen.maker(at("2026-09-28T06:00")).mail(by_hand.made))["Archived-At"]
    assert re.fullmatch(r"<https://digest\.example\.org/d/[a-z0-9]+/2026-09-28T06:00:00~\d+%20by%20hand>", archived)
    assert ["Bell Buoys"] == titles(store, by_hand)
    assert reader.next_due_at == now_of(store, reader).next_due_at
    (served,) = make_due(kitchen, now=at("2026-09-28T07:30"))
    assert [] == titles(store, served)
    unfollow(store, reader.reader, (), now=at("2026-09-28T08:00"))
    with pytest.raises(StoreError, match="expected an active one, found it ended"):
        make_now(kitchen, reader, now=at("2026-09-28T09:00"))


def test_dry_run_writes_nothing(store: SqlStore, kitchen: Kitchen) -> None:
    """A dry run says what would be told and leaves all as it was."""
    let_follow(store, "ana@example.org", "Reef Sound", now=MONDAY)
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=MONDAY)
    for _ in range(2):
        (served,) = dry_runs(kitchen, None, now=at("2026-09-28T08:00"))
        assert served.made is not None
        assert served.made.digest is not None
        assert 1 == served.made.digest.new
    assert 0 == sum(store.outbox.counts().values())


def test_budget_leaves_titles(store: SqlStore, kitchen: Kitchen) -> None:
    """Papers over a reader's budget are told too, by title."""
    let_follow(store, "ana@example.org", "Reef Sound", now=MONDAY, budget=1)
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), ("2026-09-28", "Cold Horns"), now=MONDAY)
    (served,) = make_due(kitchen, now=at("2026-09-28T08:00"))
    assert served.made is not None
    sections = [item.section for item in store.subscriptions.digest(served.made.key).items]
    assert ["new", "rest"] == sections


def test_new_schedule_counts_no_slots_of_its_past(store: SqlStore, kitchen: Kitchen) -> None:
    """Somebody who goes from weekly to daily missed no daily digests; nothing is lost by the change."""
    reader = let_follow(store, "ana@example.org", "Reef Sound", now=MONDAY, schedule="weekly mon 07:30").subscription
    make_due(kitchen, now=at("2026-09-28T07:30"))
    add(store, "Reef Sound", ("2026-09-29", "Bell Buoys"), now=at("2026-09-29T05:00"))
    let_follow(store, "ana@example.org", "Reef Sound", now=at("2026-10-02T12:00"))
    (served,) = make_due(kitchen, now=at("2026-10-03T07:30"))
    assert (["Bell Buoys"], 0) == (titles(store, served), served.coalesced)
    labels = [slot.label for slot in store.subscriptions.slots(reader.key or 0)]
    assert ["2026-09-28T07:30", "2026-10-03T07:30"] == labels


def test_same_wish_again_loses_no_slot(store: SqlStore, kitchen: Kitchen) -> None:
    """Following once more with the same schedule does not put off a slot that is due."""
    let_follow(store, "ana@example.org", "Reef Sound", now=MONDAY)
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=MONDAY)
    let_follow(store, "ana@example.org", "Reef Sound", now=at("2026-09-28T07:31"))
    (served,) = make_due(kitchen, now=at("2026-09-28T07:32"))
    assert (["Bell Buoys"], 0) == (titles(store, served), served.coalesced)


def test_clock_that_goes_back_serves_nothing_twice(store: SqlStore, kitchen: Kitchen) -> None:
    """When the clock was ahead and is put right, served slots stay served."""
    reader = let_follow(store, "ana@example.org", "Reef Sound", now=MONDAY).subscription
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=MONDAY)
    make_due(kitchen, now=at("2026-10-05T08:00"))
    add(store, "Reef Sound", ("2026-09-29", "Cold Horns"), ("2026-09-28", "Bell Buoys"), now=at("2026-09-29T05:00"))
    assert [] == [one for one in make_due(kitchen, now=at("2026-09-29T08:00")) if one.made]
    make_due(kitchen, now=at("2026-10-06T08:00"))
    assert ["Bell Buoys", "Cold Horns"] == all_told(store, reader)
    labels = [slot.label for slot in store.subscriptions.slots(reader.key or 0)]
    assert len(set(labels)) == len(labels)


def test_civil_time_holds_across_both_clock_changes(store: SqlStore, kitchen: Kitchen) -> None:
    """07:30 in Berlin is 05:30 UTC in summer and 06:30 in winter; a time that never comes or comes twice serves once."""
    reader = let_follow(
        store, "ana@example.org", "Reef Sound", now=at("2026-10-23T12:00"), zone="Europe/Berlin", schedule="daily 02:30"
    ).subscription
    instants = []
    clock = at("2026-10-23T12:00")
    while clock < at("2026-10-27T12:00"):
        instants += [clock for one in make_due(kitchen, now=clock) if one.slot]
        clock += timedelta(minutes=30)
    # the first 02:30 of the night of Oct 25 is 00:30 UTC, that of the next one 01:30
    assert [
        at(f"2026-10-{day}T{hour}") for day, hour in ((24, "00:30"), (25, "00:30"), (26, "01:30"), (27, "01:30"))
    ] == (instants)
    assert 4 == len(store.subscriptions.slots(reader.key or 0))


def test_declared_reader_is_reconciled_and_never_silently_removed(store: SqlStore) -> None:
    """Declared readers come in; one that is declared no more stays and is named; one that left is not brought back."""
    from digestd.addresses import parse_reader
    from digestd.flows.subscribe import Wish
    from digestd.model.subscription import Preferences
    from digestd.schedule import parse_schedule
    from tests.followers import LABELS

    wish = Wish(
        parse_reader("ana@example.org"), ("Reef Sound",), parse_schedule("daily 07:30"), "UTC", Preferences(), True
    )
    assert () == reconcile(store, [wish], LABELS, now=MONDAY)
    (reader,) = store.subscriptions.subscriptions(active_only=True)
    assert () == reconcile(store, [wish], LABELS, now=MONDAY + timedelta(days=1))
    assert reader == now_of(store, reader)
    changed = replace(wish, topics=("Kelp Forests",))
    reconcile(store, [changed], LABELS, now=MONDAY + timedelta(days=1))
    assert ("kelp-forests",) == now_of(store, reader).topics
    (note,) = reconcile(store, [], LABELS, now=MONDAY)
    assert "ana@example.org is not declared any more but still follows" in note
    unfollow(store, reader.reader, (), now=MONDAY)
    (note,) = reconcile(store, [wish], LABELS, now=MONDAY)
    assert "has unsubscribed" in note
    assert [] == list(store.subscriptions.subscriptions(active_only=True))


def test_reader_who_comes_back_is_told_nothing_twice(store: SqlStore) -> None:
    """Who left and follows again is not told again what an earlier subscription told, and that is accounted for."""
    let_follow(store, "ana@example.org", "Reef Sound", now=MONDAY)
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=MONDAY)
    (first,) = make_due(make_kitchen(store), now=at("2026-09-28T07:30"))
    assert ["Bell Buoys"] == titles(store, first)
    unfollow(store, parse_reader("ana@example.org"), (), now=at("2026-09-28T08:00"))
    let_follow(store, "ana@example.org", "Kelp Forests", now=at("2026-09-28T09:00"))
    add(store, "Kelp Forests", ("2026-09-29", "Long Blades"), ("2026-09-28", "Bell Buoys"), now=at("2026-09-29T05:00"))
    (second,) = make_due(make_kitchen(store), now=at("2026-09-29T07:30"))
    assert ["Long Blades"] == titles(store, second)
    assert [] == [str(finding) for finding in audit(store, now=at("2026-09-29T08:00")).findings]


def test_topic_added_before_the_first_digest_begins_where_it_was_added(store: SqlStore) -> None:
    """What a topic brought before the reader followed it is no news; of it too, the latest are told, as asked for."""
    let_follow(store, "ana@example.org", "Reef Sound", now=MONDAY, first=First("latest", 1))
    add(store, "Kelp Forests", *((f"2026-09-{21 + n}", f"Long Blades {n}") for n in range(5, 0, -1)), now=MONDAY)
    let_follow(store, "ana@example.org", "Reef Sound", "Kelp Forests", now=MONDAY, first=First("latest", 1))
    add(store, "Kelp Forests", ("2026-09-28", "Holdfasts"), ("2026-09-26", "Long Blades 5"), now=MONDAY)
    (served,) = make_due(make_kitchen(store), now=at("2026-09-28T07:30"))
    assert {"Reef Sound Note 0", "Long Blades 5", "Holdfasts"} == set(titles(store, served))
    assert [] == [str(finding) for finding in audit(store, now=at("2026-09-28T08:00")).findings]
