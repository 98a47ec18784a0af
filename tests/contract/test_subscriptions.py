"""The contract of readers, subscriptions, slots and digests, on every engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.errors import AlreadyExistsError, NotFoundError, StoreError
from digestd.flows.ingest import IngestOptions, record_page
from digestd.model.delivery import DigestRecord, ToldItem
from digestd.model.paper import Paper, PaperId
from digestd.model.snapshot import Document, Order
from digestd.model.subscription import (
    Cron,
    Daily,
    EachSnapshot,
    Filter,
    FilterRule,
    First,
    Monthly,
    Preferences,
    Schedule,
    SlotRecord,
    Subscription,
    SubscriptionState,
    Weekly,
)
from digestd.model.topic import Topic
from digestd.store import SqlStore, open_store
from digestd.store.engine import Row
from digestd.store.outbox import SqlOutbox
from digestd.store.rows_followers import preferences_text, schedule_text, to_preferences, to_schedule
from digestd.store.sqlite import SQLiteEngine
from digestd.store.subscriptions import SqlSubscriptions
from tests.builders import NOW, make_document, make_page, make_paper, make_reader, make_record, make_subscription

REEF = Topic("reef-sound", "Reef Sound")
KELP = Topic("kelp-forests", "Kelp Forests")


@pytest.fixture(autouse=True)
def topics(store: SqlStore) -> None:
    """Two topics that can be followed."""
    for topic in (REEF, KELP):
        store.history.put_topic(topic, now=NOW)


def _show(store: SqlStore, *papers: Paper, topic: Topic = REEF, source: str = "listing") -> dict[str, int]:
    """Record a page that shows papers and return the keys of all papers by title."""
    page = make_page(papers, topic=topic.name, order=Order.FEED)
    document: Document = make_document("page")
    record_page(store, page, document, IngestOptions(now=NOW, source=source), "raw")
    return {known.paper.title: known.key for known in store.history.all_papers()}


def _subscribe(store: SqlStore, address: str = "ana@reef.example", **fields: object) -> Subscription:
    return store.subscriptions.put(make_subscription(make_reader(address), **fields), now=NOW)


def _key(subscription: Subscription) -> int:
    assert subscription.key is not None
    return subscription.key


def _new(paper: int, position: int = 1, section: str = "new", topic: str | None = "reef-sound") -> ToldItem:
    return ToldItem(paper, topic, section, position)


# -- readers


def test_put_reader_twice_keeps_the_address_as_written_and_takes_the_new_name(store: SqlStore) -> None:
    """A reader is known by the address with case folded; the address stays as written first, the name is the newest."""
    first = store.subscriptions.put_reader(make_reader("Ana.Lima@reef.example", name="Ana"), now=NOW)
    second = store.subscriptions.put_reader(make_reader("ANA.lima@reef.example", name="Ana Lima"), now=NOW)
    assert first.key == second.key
    assert ("Ana.Lima@reef.example", "Ana Lima") == (second.address, second.name)
    assert second == store.subscriptions.find_reader("ana.LIMA@reef.example")


def test_find_reader_unknown_is_none(store: SqlStore) -> None:
    """An address that nobody has is nobody's."""
    assert store.subscriptions.find_reader("nobody@reef.example") is None


def test_put_reader_round_trips_every_field(store: SqlStore) -> None:
    """What is known of an address comes back as it was."""
    reader = make_reader("búho@rïff.example", envelope="búho@xn--rff-zma.example", name="El Búho", smtputf8=True)
    put = store.subscriptions.put_reader(reader, now=NOW)
    assert replace(reader, key=put.key) == put


# -- subscriptions

SCHEDULES: tuple[Schedule, ...] = (
    Daily(time(6, 5)),
    Weekly((0, 2, 6), time(23, 59)),
    Monthly(31, time(0, 0)),
    Cron("*/15 7-9 * * mon"),
    EachSnapshot(),
)


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda schedule: type(schedule).__name__)
def test_put_round_trips_every_field(store: SqlStore, schedule: Schedule) -> None:
    """Whatever a subscription says stands in the store, and comes back as it was."""
    subscription = make_subscription(
        store.subscriptions.put_reader(make_reader(), now=NOW),
        topics=("kelp-forests", "reef-sound"),
        schedule=schedule,
        zone="Pacific/Apia",
        preferences=Preferences(
            format="text",
            budget=7,
            all_quiet=True,
            first=First("since", 3, date(2026, 9, 1)),
            filter=Filter((FilterRule("words", "sonár"),), (FilterRule("author", "Ö. Nøkk"), FilterRule("label", "x"))),
        ),
        public_id="k3lp",
        state=SubscriptionState.PENDING,
        told_upto=41,
        high_water_at=NOW - timedelta(days=7),
        next_due_at=NOW + timedelta(microseconds=1),
        paused_until=date(2027, 1, 1),
        declared=True,
        welcomed=True,
        created_at=NOW - timedelta(days=30),
        followed_from=(("kelp-forests", 40), ("a-topic-left", 3)),
    )
    put = store.subscriptions.put(subscription, now=NOW)
    assert replace(subscription, key=put.key) == put
    assert put == store.subscriptions.subscription(_key(put))
    assert put == store.subscriptions.find_public("k3lp")


@given(
    st.one_of(
        st.builds(Daily, st.times()),
        st.builds(Weekly, st.sets(st.integers(0, 6), min_size=1).map(lambda days: tuple(sorted(days))), st.times()),
        st.builds(Monthly, st.integers(1, 31), st.times()),
        st.builds(Cron, st.text()),
        st.just(EachSnapshot()),
    )
)
@settings(max_examples=60, deadline=None)
def test_schedules_come_back_as_they_were(schedule: Schedule) -> None:
    """No schedule is changed by being stored."""
    assert schedule == to_schedule(schedule_text(schedule))


@given(st.from_type(Preferences))
@settings(max_examples=60, deadline=None)
def test_preferences_come_back_as_they_were(preferences: Preferences) -> None:
    """No preference is changed by being stored."""
    assert preferences == to_preferences(preferences_text(preferences))


def test_preferences_of_an_older_row_take_the_default_for_what_is_newer() -> None:
    """A field that was not there when the row was written has its default."""
    assert Preferences(budget=3) == to_preferences('{"budget": 3}')


def test_schedule_of_an_unknown_kind_is_a_store_error() -> None:
    """A kind that this version does not know is said, not guessed."""
    with pytest.raises(StoreError, match="found 'lunar'"):
        to_schedule('{"kind": "lunar"}')


def test_put_new_gives_key_public_id_and_reader(store: SqlStore) -> None:
    """A new subscription gets all that it needs to be found again."""
    one, other = _subscribe(store, "ana@reef.example"), _subscribe(store, "bo@reef.example")
    assert len({one.key, other.key, None}) == 3
    assert len({one.public_id, other.public_id, ""}) == 3
    assert one.reader == store.subscriptions.find_reader("ana@reef.example")
    assert NOW == one.created_at


def test_put_known_writes_all_fields(store: SqlStore) -> None:
    """A known subscription is as it was put last, topics in their new order."""
    before = _subscribe(store, topics=("reef-sound", "kelp-forests"))
    changed = replace(before, topics=("kelp-forests", "reef-sound"), zone="Asia/Tokyo", told_upto=5, welcomed=True)
    assert changed == store.subscriptions.put(changed, now=NOW + timedelta(days=1))
    fewer = replace(changed, topics=("kelp-forests",), schedule=Daily(), state=SubscriptionState.ENDED)
    assert fewer == store.subscriptions.put(fewer, now=NOW)
    assert fewer == store.subscriptions.subscription(_key(before))


def test_put_unknown_topic_or_key_is_not_found_and_leaves_nothing(store: SqlStore) -> None:
    """What is not there can't be followed or changed, and the attempt leaves nothing behind."""
    with pytest.raises(NotFoundError, match="topic 'deep-sea'"):
        store.subscriptions.put(make_subscription(topics=("reef-sound", "deep-sea")), now=NOW)
    with pytest.raises(NotFoundError, match="subscription 99"):
        store.subscriptions.put(make_subscription(key=99), now=NOW)
    assert [] == store.subscriptions.subscriptions()
    assert store.subscriptions.find_reader("ana@reef.example") is None


def test_subscription_unknown_is_not_found(store: SqlStore) -> None:
    """Asking for a subscription that is not there says so."""
    with pytest.raises(NotFoundError, match="subscription 5"):
        store.subscriptions.subscription(5)
    assert store.subscriptions.find_public("zzz") is None


def test_public_id_twice_already_exists(store: SqlStore) -> None:
    """Two subscriptions never have one public id."""
    _subscribe(store, public_id="k3lp")
    with pytest.raises(AlreadyExistsError):
        _subscribe(store, "bo@reef.example", public_id="k3lp")
    assert 1 == len(store.subscriptions.subscriptions())


def test_subscriptions_of_a_reader_in_the_order_made(store: SqlStore) -> None:
    """A reader's subscriptions are listed in the order made, ended ones only if asked for."""
    ana, bo = _subscribe(store), _subscribe(store, "bo@reef.example")
    ended = _subscribe(store, state=SubscriptionState.ENDED)
    assert [ana, bo, ended] == store.subscriptions.subscriptions()
    assert [ana, bo] == store.subscriptions.subscriptions(active_only=True)
    assert [ana, ended] == store.subscriptions.subscriptions(reader=ana.reader.key)
    assert [ana] == store.subscriptions.subscriptions(reader=ana.reader.key, active_only=True)


def test_due_holds_active_ones_up_to_now_by_key(store: SqlStore) -> None:
    """Due is what is active and due now or before, paged by key; nothing else."""
    late = _subscribe(store, next_due_at=NOW - timedelta(days=9))
    exact = _subscribe(store, next_due_at=NOW)
    _subscribe(store, next_due_at=NOW + timedelta(microseconds=1))
    _subscribe(store, next_due_at=NOW, state=SubscriptionState.PENDING)
    _subscribe(store, next_due_at=NOW, state=SubscriptionState.ENDED)
    _subscribe(store, schedule=EachSnapshot())
    early = _subscribe(store, next_due_at=NOW - timedelta(days=90))
    assert [late, exact, early] == store.subscriptions.due(NOW)
    assert [late, exact] == store.subscriptions.due(NOW, limit=2)
    assert [early] == store.subscriptions.due(NOW, after=_key(exact), limit=2)
    assert [] == store.subscriptions.due(NOW, after=_key(early))
    assert early.next_due_at == store.subscriptions.next_due_at()


def test_next_due_at_without_any_is_none(store: SqlStore) -> None:
    """Where nobody is due by the clock there is no next time."""
    _subscribe(store, schedule=EachSnapshot())
    _subscribe(store, next_due_at=NOW, state=SubscriptionState.ENDED)
    assert store.subscriptions.next_due_at() is None


def test_waiting_holds_each_snapshot_readers_below_the_head(store: SqlStore) -> None:
    """Waiting is who is told at each snapshot and was not told up to the head, paged by key."""
    one = _subscribe(store, schedule=EachSnapshot(), told_upto=6)
    _subscribe(store, schedule=EachSnapshot(), told_upto=7)
    _subscribe(store, told_upto=0)
    _subscribe(store, schedule=EachSnapshot(), state=SubscriptionState.ENDED)
    two = _subscribe(store, schedule=EachSnapshot(), told_upto=0)
    assert [one, two] == store.subscriptions.waiting(7)
    assert [one] == store.subscriptions.waiting(7, limit=1)
    assert [two] == store.subscriptions.waiting(7, after=_key(one))
    assert [] == store.subscriptions.waiting(0)


class _Explaining(SQLiteEngine):
    """An engine that keeps how each statement would be answered instead of answering it."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.plans: list[str] = []

    def query(self, sql: str, args: Row | None = None) -> list[dict[str, Any]]:
        """Keep the plan of a statement."""
        self.plans.append("; ".join(row["detail"] for row in super().query(f"EXPLAIN QUERY PLAN {sql}", args)))
        return []


def test_what_the_daemon_asks_at_each_tick_is_answered_by_an_index(tmp_path: Path) -> None:
    """However many readers and deliveries there are, a tick reads those that are due and no others."""
    engine = _Explaining(tmp_path / "history.sqlite")
    subscriptions, outbox = SqlSubscriptions(engine), SqlOutbox(engine)
    subscriptions.due(NOW)
    subscriptions.waiting(9)
    subscriptions.next_due_at()
    outbox.next_at()
    outbox.claim("worker", now=NOW, lease_until=NOW, limit=5)
    outbox.reap(now=NOW, owners=["worker"])
    engine.close()
    due, waiting, next_due, next_out, claim, reap = engine.plans
    assert "COVERING INDEX subscription_due (state=? AND next_due_at>? AND next_due_at<?)" in due
    assert "COVERING INDEX subscription_waiting (state=? AND each_snapshot=? AND told_upto<?)" in waiting
    assert "COVERING INDEX subscription_due" in next_due
    assert "COVERING INDEX outbox_ready" in next_out
    assert "INDEX outbox_ready (state=? AND next_at<?)" in claim
    assert "INDEX outbox_state (state=?)" in reap
    for plan in (next_due, next_out, claim):
        assert "B-TREE" not in plan


def test_advance_writes_how_far_and_nothing_else(store: SqlStore) -> None:
    """A served slot moves the cursor and undoes nothing that a reader changed meanwhile."""
    stale = _subscribe(store, next_due_at=NOW)
    changed = store.subscriptions.put(replace(stale, zone="Asia/Tokyo", paused_until=date(2026, 12, 1)), now=NOW)
    later = NOW + timedelta(days=7)
    served = replace(stale, told_upto=12, high_water_at=NOW, next_due_at=later, welcomed=True)
    store.subscriptions.advance([served])
    expected = replace(changed, told_upto=12, high_water_at=NOW, next_due_at=later, welcomed=True)
    assert expected == store.subscriptions.subscription(_key(stale))


# -- slots


def test_slots_round_trip_in_the_order_of_labels(store: SqlStore) -> None:
    """What became of each slot is kept, sorted by label."""
    key = _key(_subscribe(store))
    missed = SlotRecord("2026-09-21T07:30", NOW - timedelta(days=9), coalesced_into="2026-09-28T07:30")
    served = SlotRecord("2026-09-28T07:30", NOW - timedelta(days=2), digest_key="a1|2026-09-28T07:30")
    store.subscriptions.record_slots(key, [served, missed])
    assert [missed, served] == store.subscriptions.slots(key)
    assert [] == store.subscriptions.slots(key + 1)


def test_slot_label_twice_already_exists_and_none_of_them_is_written(store: SqlStore) -> None:
    """A slot is served once, and half of a group is never written; another reader has slots of its own."""
    key, other = _key(_subscribe(store)), _key(_subscribe(store, "bo@reef.example"))
    slot, late = SlotRecord("2026-09-28T07:30", NOW), SlotRecord("2026-10-05T07:30", NOW)
    store.subscriptions.record_slots(key, [slot])
    with store.transaction(), pytest.raises(AlreadyExistsError):
        store.subscriptions.record_slots(key, [late, slot])
    assert [slot] == store.subscriptions.slots(key)
    store.subscriptions.record_slots(other, [slot])
    assert [slot] == store.subscriptions.slots(other)


# -- digests


def test_digest_round_trips_every_field(store: SqlStore) -> None:
    """A digest is kept as it was told: items in order, and what was passed over with the reason."""
    key = _key(_subscribe(store))
    papers = list(_show(store, *(make_paper(f"Reef Note {number}") for number in range(6))).values())
    sections = ("rest", "new", "tagged", "tagged_rest", "revised", "withdrawn")
    items = [
        ToldItem(paper, None if section in ("revised", "withdrawn") else "reef-sound", section, 9 - paper)
        for paper, section in zip(papers, sections, strict=True)
    ]
    record = make_record(
        key,
        "a1|2026-10-05T07:30",
        items,
        after=3,
        upto=17,
        subject="Reef — 1 new",
        passed_over=((4, "hidden by your filters"), (8, "told before")),
        mailed=False,
    )
    store.subscriptions.record_digest(record)
    assert record == store.subscriptions.digest("a1|2026-10-05T07:30")
    assert [replace(record, items=(), passed_over=())] == store.subscriptions.digests(key)
    assert frozenset(papers[:4]) == store.subscriptions.papers_told(key)
    assert frozenset({papers[0]}) == store.subscriptions.told(key, [papers[0], papers[4], 999])


def test_digest_unknown_is_not_found(store: SqlStore) -> None:
    """Asking for a digest that was not made says so."""
    with pytest.raises(NotFoundError, match="digest 'a1'"):
        store.subscriptions.digest("a1")


def test_digest_key_twice_already_exists(store: SqlStore) -> None:
    """One slot makes one digest."""
    key = _key(_subscribe(store))
    store.subscriptions.record_digest(make_record(key))
    with pytest.raises(AlreadyExistsError):
        store.subscriptions.record_digest(make_record(key, upto=99))
    assert [9] == [record.upto for record in store.subscriptions.digests()]


def test_digest_with_an_unknown_topic_is_not_found(store: SqlStore) -> None:
    """A paper is told under a topic of the history only."""
    key = _key(_subscribe(store))
    with pytest.raises(NotFoundError, match="topic 'deep-sea'"):
        store.subscriptions.record_digest(make_record(key, items=[_new(1, topic="deep-sea")]))


@pytest.mark.parametrize("section", ["new", "rest", "tagged", "tagged_rest"])
def test_a_paper_is_told_once_to_a_subscription(store: SqlStore, section: str) -> None:
    """No second telling of a paper can be written, in whichever section, under whichever topic; nothing of it stays."""
    key, other = _key(_subscribe(store)), _key(_subscribe(store, "bo@reef.example"))
    papers = _show(store, make_paper("Reef One"), make_paper("Reef Two"))
    one, two = papers["Reef One"], papers["Reef Two"]
    store.subscriptions.record_digest(make_record(key, "a|1", [_new(one)]))
    again = [_new(two, 2), _new(one, 7, section, "kelp-forests")]
    with store.transaction(), pytest.raises(AlreadyExistsError):
        store.subscriptions.record_digest(make_record(key, "a|2", again, passed_over=((3, "hidden"),)))
    assert frozenset({one}) == store.subscriptions.papers_told(key)
    assert ["a|1"] == [record.key for record in store.subscriptions.digests()]
    store.subscriptions.record_digest(make_record(other, "b|1", [_new(one)]))
    assert frozenset({one}) == store.subscriptions.told(other, [one, two])


def test_a_revision_is_told_once_and_each_revision_of_a_paper_may_be(store: SqlStore) -> None:
    """A change is told once; the next change of the same paper is another one; the paper itself counts as told by neither."""
    key = _key(_subscribe(store))
    paper = _show(store, make_paper("Reef One"))["Reef One"]
    store.subscriptions.record_digest(make_record(key, "a|1", [_new(paper, 5, "revised", None)]))
    store.subscriptions.record_digest(make_record(key, "a|2", [_new(paper, 6, "revised", None)]))
    with pytest.raises(AlreadyExistsError):
        store.subscriptions.record_digest(make_record(key, "a|3", [_new(paper, 5, "withdrawn", None)]))
    assert frozenset() == store.subscriptions.papers_told(key)


def test_record_digests_is_all_or_none(store: SqlStore) -> None:
    """Digests of many readers are written together, or none of them."""
    key, other = _key(_subscribe(store)), _key(_subscribe(store, "bo@reef.example"))
    paper = _show(store, make_paper("Reef One"))["Reef One"]
    records = [make_record(key, "a|1", [_new(paper)]), make_record(other, "b|1", [_new(paper)])]
    with store.transaction(), pytest.raises(AlreadyExistsError):
        store.subscriptions.record_digests([*records, make_record(key, "a|2", [_new(paper, 8)])])
    assert [] == store.subscriptions.digests()
    store.subscriptions.record_digests(records)
    assert ["b|1", "a|1"] == [record.key for record in store.subscriptions.digests()]
    assert records == [store.subscriptions.digest("a|1"), store.subscriptions.digest("b|1")]


def test_digests_that_share_their_items_are_read_back_whole(store: SqlStore) -> None:
    """What several digests have in common is written once and copied, in its order; a paper told before stops all of it."""
    keys = [_key(_subscribe(store, f"r{number}@reef.example")) for number in range(4)]
    papers = _show(store, make_paper("Reef One"), make_paper("Reef Two"))
    one, two = papers["Reef One"], papers["Reef Two"]
    shared, passed = (_new(two, 2), _new(one, 1, "rest")), ((3, "hidden"), (4, "told before"))
    records = [
        replace(make_record(key, f"{key}|1"), items=shared, passed_over=passed if key != keys[1] else ())
        for key in keys
    ]
    store.subscriptions.record_digests(records)
    assert records == [store.subscriptions.digest(record.key) for record in records]
    told = store.subscriptions.told_of([*keys, 999], [one, two, 998])
    assert {**dict.fromkeys(keys, frozenset({one, two})), 999: frozenset()} == told
    again = [replace(record, key=f"{record.key} again") for record in records]
    with store.transaction(), pytest.raises(AlreadyExistsError):
        store.subscriptions.record_digests(again)
    assert len(keys) == len(store.subscriptions.digests())


def test_many_are_read_and_their_slots_written_at_once(store: SqlStore) -> None:
    """Reading by keys leaves out what is not there; slots of many are all written or none."""
    first, second = _subscribe(store), _subscribe(store, "bo@reef.example")
    assert {_key(first): first, _key(second): second} == store.subscriptions.read([_key(second), 999, _key(first)])
    slot, late = SlotRecord("2026-09-28T07:30", NOW), SlotRecord("2026-10-05T07:30", NOW)
    store.subscriptions.record_all_slots([(_key(first), slot), (_key(second), slot)])
    with store.transaction(), pytest.raises(AlreadyExistsError):
        store.subscriptions.record_all_slots([(_key(first), late), (_key(second), slot)])
    assert [[slot], [slot]] == [store.subscriptions.slots(_key(one)) for one in (first, second)]


def test_digests_newest_first_and_bounded(store: SqlStore) -> None:
    """Digests are listed newest first, of one subscription or all, as many as asked for."""
    key, other = _key(_subscribe(store)), _key(_subscribe(store, "bo@reef.example"))
    for number in range(3):
        store.subscriptions.record_digest(make_record(key, f"a|{number}"))
    store.subscriptions.record_digest(make_record(other, "b|0"))

    def keys(records: Sequence[DigestRecord]) -> list[str]:
        return [record.key for record in records]

    assert ["b|0", "a|2", "a|1", "a|0"] == keys(store.subscriptions.digests())
    assert ["a|2", "a|1"] == keys(store.subscriptions.digests(key, limit=2))
    assert [] == keys(store.subscriptions.digests(other + 1))


def test_what_was_rolled_back_was_never_there(store: SqlStore) -> None:
    """An error at the end of a transaction takes back readers, subscriptions, slots, digests and cursors."""
    kept = _subscribe(store)
    paper = _show(store, make_paper("Reef One"))["Reef One"]
    with pytest.raises(ZeroDivisionError), store.transaction():  # noqa: PT012 # what is done before the error is the test
        other = _subscribe(store, "bo@reef.example")
        store.subscriptions.record_slots(_key(kept), [SlotRecord("2026-09-28T07:30", NOW)])
        store.subscriptions.record_digest(make_record(_key(other), items=[_new(paper)], passed_over=((3, "hidden"),)))
        store.subscriptions.advance([replace(kept, told_upto=9)])
        store.subscriptions.put(replace(kept, topics=("kelp-forests",)), now=NOW)
        raise ZeroDivisionError
    assert [kept] == store.subscriptions.subscriptions()
    assert store.subscriptions.find_reader("bo@reef.example") is None
    assert [] == store.subscriptions.slots(_key(kept))
    assert [] == store.subscriptions.digests()
    assert frozenset() == store.subscriptions.told(_key(kept), [paper])


# -- papers that become one

ARXIV, DOI = PaperId("arxiv", "2609.00001"), PaperId("doi", "10.5555/reef.1")


def _merge(store: SqlStore) -> tuple[int, int]:
    """Show two papers, then one that is both, and return (the one kept, the one gone)."""
    before = _show(store, make_paper("Reef One", ids=[ARXIV]), make_paper("Reefs, Number 1", ids=[DOI]))
    after = set(_show(store, make_paper("Reef One", ids=[ARXIV, DOI]), source="other").values())
    (kept,) = after
    (gone,) = set(before.values()) - after
    return kept, gone


def test_a_merged_paper_counts_as_told_for_the_kept_one(store: SqlStore) -> None:
    """Who was told of a paper is not told again when it turns out to be one with another."""
    for told_first in ("Reef One", "Reefs, Number 1"):
        reader = _key(_subscribe(store, f"{len(told_first)}@reef.example"))
        papers = _show(store, make_paper("Reef One", ids=[ARXIV]), make_paper("Reefs, Number 1", ids=[DOI]))
        store.subscriptions.record_digest(make_record(reader, told_first, [_new(papers[told_first])]))
    kept, gone = _merge(store)
    for subscription in store.subscriptions.subscriptions():
        key = _key(subscription)
        assert frozenset({kept}) == store.subscriptions.papers_told(key)
        assert frozenset({kept, gone}) == store.subscriptions.told(key, [kept, gone])
        for paper in (kept, gone):
            with pytest.raises(AlreadyExistsError):
                store.subscriptions.record_digest(make_record(key, "again", [_new(paper, 50)]))
    assert [kept] == [item.paper for item in store.subscriptions.digest("Reefs, Number 1").items]


def test_papers_both_told_before_they_became_one_stay_in_their_digests(store: SqlStore) -> None:
    """Where both were told before anybody could know, merging them fails nothing and both digests name the kept one."""
    key = _key(_subscribe(store))
    papers = _show(store, make_paper("Reef One", ids=[ARXIV]), make_paper("Reefs, Number 1", ids=[DOI]))
    one, two = papers["Reef One"], papers["Reefs, Number 1"]
    store.subscriptions.record_digest(make_record(key, "a|1", [_new(one), _new(two, 2), _new(two, 3, "revised", None)]))
    kept, _ = _merge(store)
    assert [kept] * 3 == [item.paper for item in store.subscriptions.digest("a|1").items]
    assert frozenset({kept}) == store.subscriptions.papers_told(key)


def test_rows_of_and_revisions_follow_a_merge(store: SqlStore) -> None:
    """All sightings of a paper are found by the key of either, and its changes by the kept one."""
    kept, gone = _merge(store)
    rows = store.history.rows_of(kept)
    assert [kept] == [row.known.key for row in rows]
    assert rows == store.history.rows_of(gone)
    head = store.history.head()
    _show(store, make_paper("Reef One, Considered Again by Night", ids=[ARXIV, DOI]), source="other")
    ((position, known, revision),) = store.history.revisions(head, store.history.head())
    assert (kept, kept) == (known.key, revision.key)
    assert ("title", "Reef One, Considered Again by Night") == (revision.changes[0][0], revision.changes[0][2])
    assert [] == store.history.revisions(position, store.history.head())
    assert [] == store.history.revisions(head, position - 1)


# -- the store's own


def test_secret_outlives_the_process(store: SqlStore, store_url: str) -> None:
    """What was signed before a restart can be read after it."""
    secret = store.secret("tokens")
    again = open_store(store_url)
    assert secret == again.secret("tokens")
    again.close()


def test_secret_is_made_once_for_each_name(store: SqlStore) -> None:
    """A secret is 32 random bytes, the same for ever; each name has its own."""
    assert 32 == len(store.secret("tokens"))
    assert store.secret("tokens") == store.secret("tokens")
    assert store.secret("tokens") != store.secret("bounces")


def test_instants_of_other_zones_are_compared_as_instants(store: SqlStore) -> None:
    """A time with another offset is the same instant."""
    _subscribe(store, next_due_at=NOW)
    moved = datetime(2026, 9, 30, 8, 0, tzinfo=UTC) - timedelta(hours=2)
    assert 1 == len(store.subscriptions.due(moved))
