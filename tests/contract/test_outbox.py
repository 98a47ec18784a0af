"""The contract of the outbox, on every engine."""

from __future__ import annotations

import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from datetime import datetime, timedelta
from hashlib import sha256

import pytest

from digestd.errors import AlreadyExistsError, NotFoundError, StoreError
from digestd.model.delivery import (
    Attempt,
    Claimed,
    Deferred,
    Delivery,
    DeliveryState,
    Envelope,
    Fenced,
    Outcome,
    Phase,
    Refused,
    Reply,
    Sent,
    Suppression,
    Uncertain,
)
from digestd.store import SqlStore, open_store
from tests.builders import NOW, make_envelope, make_reader

CONTENT = b"Subject: Reef Sound\r\n\r\nTwo new papers.\r\n"
SHA = sha256(b"the mail as sent").hexdigest()
OK = Reply(250, "2.0.0 queued")
LEASE = timedelta(minutes=20)
MINUTE = timedelta(minutes=1)


def _reader(store: SqlStore, address: str = "ana@reef.example") -> int:
    key = store.subscriptions.put_reader(make_reader(address), now=NOW).key
    assert key is not None
    return key


def _envelope(
    store: SqlStore, digest_key: str = "a1|1", address: str = "ana@reef.example", **fields: object
) -> Envelope:
    content = store.outbox.put_content(CONTENT, now=NOW)
    return make_envelope(_reader(store, address), content, digest_key, **fields)


def _enqueue(store: SqlStore, digest_key: str = "a1|1", address: str = "ana@reef.example", **fields: object) -> int:
    (key,) = store.outbox.enqueue([_envelope(store, digest_key, address, **fields)], now=NOW)
    return key


def _claim(store: SqlStore, owner: str = "w1", *, now: datetime = NOW, limit: int = 10) -> list[Claimed]:
    return list(store.outbox.claim(owner, now=now, lease_until=now + LEASE, limit=limit))


def _keys(claimed: Sequence[Claimed]) -> list[int]:
    return [one.delivery.key for one in claimed]


def _claimed(store: SqlStore, **fields: object) -> int:
    """Enqueue a row and claim it for w1."""
    key = _enqueue(store, **fields)  # type: ignore[arg-type]  # any argument of _enqueue
    assert [key] == _keys(_claim(store))
    return key


def _dotted(store: SqlStore, **fields: object) -> int:
    """Enqueue a row, claim it for w1 and mark its dot."""
    key = _claimed(store, **fields)
    assert store.outbox.mark_dot(key, "w1", now=NOW + MINUTE, sha256=SHA)
    return key


def _suppress(
    store: SqlStore, scope: str = "all", reason: str = "unsubscribed", address: str = "ana@reef.example"
) -> None:
    store.outbox.suppress(Suppression(address, scope, reason, NOW, "by the reader"))


def _settle(store: SqlStore, key: int, outcome: Outcome, *, next_at: datetime | None = None) -> DeliveryState:
    return store.outbox.settle(key, "w1", outcome, now=NOW + 2 * MINUTE, next_at=next_at)


# -- rows come in


def test_put_content_twice_is_kept_once_under_its_hash(store: SqlStore) -> None:
    """The same content is kept once, and named by its SHA-256."""
    assert sha256(CONTENT).hexdigest() == store.outbox.put_content(CONTENT, now=NOW)
    assert sha256(CONTENT).hexdigest() == store.outbox.put_content(CONTENT, now=NOW + MINUTE)
    assert [{"rows": 1}] == store.engine.query("SELECT COUNT(*) AS rows FROM content")


def test_enqueue_round_trips_every_field(store: SqlStore) -> None:
    """A row holds all that its mail is made of, as it was given."""
    envelope = _envelope(
        store,
        "k3lp|2026-10-05T07:30",
        kind="alert",
        recipient="búho@xn--rff-zma.example",
        sender="bounce+1.x@papers.example",
        message_id="<x@papers.example>",
        fields='{"name": "Búho"}',
        next_at=NOW + timedelta(microseconds=1),
        smtputf8=True,
        scope="k3lp",
    )
    (key,) = store.outbox.enqueue([envelope], now=NOW)
    expected = Delivery(
        key=key,
        kind="alert",
        digest_key="k3lp|2026-10-05T07:30",
        reader=envelope.reader,
        recipient="búho@xn--rff-zma.example",
        message_id="<x@papers.example>",
        state=DeliveryState.READY,
        next_at=NOW + timedelta(microseconds=1),
        created_at=NOW,
    )
    assert expected == store.outbox.delivery(key)
    assert Claimed(expected, envelope, CONTENT) == store.outbox.content_of(key)


def test_enqueue_returns_keys_in_the_order_of_the_envelopes(store: SqlStore) -> None:
    """Which key belongs to which envelope is never in doubt."""
    envelopes = [_envelope(store, f"a1|{number}") for number in (3, 1, 2)]
    keys = store.outbox.enqueue(envelopes, now=NOW)
    assert ["a1|3", "a1|1", "a1|2"] == [store.outbox.delivery(key).digest_key for key in keys]
    assert [] == store.outbox.enqueue([], now=NOW)


def test_enqueue_twice_already_exists_and_none_is_added(store: SqlStore) -> None:
    """One digest is one delivery to one reader; a second kind of mail about it is another one."""
    first = _envelope(store)
    store.outbox.enqueue([first], now=NOW)
    with store.transaction(), pytest.raises(AlreadyExistsError):
        store.outbox.enqueue([_envelope(store, "a1|2"), replace(first, message_id="<other@papers.example>")], now=NOW)
    assert 1 == len(store.outbox.deliveries())
    store.outbox.enqueue([replace(first, kind="alert"), _envelope(store, address="bo@reef.example")], now=NOW)
    assert 3 == len(store.outbox.deliveries(digest_key="a1|1"))


def test_enqueue_for_an_unknown_reader_or_content_is_not_found(store: SqlStore) -> None:
    """A row that could never become a mail is refused at once, with all that came with it."""
    good = _envelope(store)
    with store.transaction(), pytest.raises(NotFoundError, match="reader 99"):
        store.outbox.enqueue([good, replace(good, reader=99)], now=NOW)
    with pytest.raises(NotFoundError, match="content 'beef'"):
        store.outbox.enqueue([good, replace(good, content="beef", kind="alert")], now=NOW)
    assert [] == store.outbox.deliveries()


@pytest.mark.parametrize(
    ("scope", "of_row", "blocked"),
    [
        ("all", "all", True),
        ("all", "k3lp", True),
        ("k3lp", "k3lp", True),
        ("k3lp", "all", False),
        ("k3lp", "o7", False),
    ],
)
def test_enqueue_for_a_suppressed_reader_is_accounted_for(
    store: SqlStore, scope: str, of_row: str, blocked: bool
) -> None:
    """A row that a suppression of its scope, or of all, stops is there as suppressed; others are ready."""
    _suppress(store, scope, address="ANA@reef.example")
    delivery = store.outbox.delivery(_enqueue(store, scope=of_row))
    assert (DeliveryState.SUPPRESSED if blocked else DeliveryState.READY) == delivery.state
    assert (NOW if blocked else None) == delivery.settled_at
    assert ([] if blocked else [delivery.key]) == _keys(_claim(store))
    assert DeliveryState.READY == store.outbox.delivery(_enqueue(store, address="bo@reef.example")).state


@pytest.mark.parametrize(("reason", "passes"), [("unsubscribed", True), ("bounced", False), ("complained", False)])
def test_a_confirmation_passes_an_unsubscription_only(store: SqlStore, reason: str, passes: bool) -> None:
    """Who left can come back, for which a mail must reach them; who bounced or complained gets none of that either."""
    _suppress(store, reason=reason)
    key = _enqueue(store, kind="confirm")
    assert ([key] if passes else []) == _keys(_claim(store))
    assert passes is store.outbox.mark_dot(key, "w1", now=NOW, sha256=SHA)


# -- claiming


def test_claim_gives_due_rows_oldest_first(store: SqlStore) -> None:
    """Rows are sent in the order in which they were due, no more than asked for, none before its time."""
    late = _enqueue(store, "a1|1", next_at=NOW)
    early = _enqueue(store, "a1|2", next_at=NOW - MINUTE)
    _enqueue(store, "a1|3", next_at=NOW + timedelta(microseconds=1))
    same = _enqueue(store, "a1|4", next_at=NOW)
    assert [early, late] == _keys(_claim(store, limit=2))
    assert [same] == _keys(_claim(store, "w2"))
    assert [] == _claim(store, "w3")
    assert [] == _claim(store, "w3", now=NOW + MINUTE, limit=0)


def test_claim_hands_out_all_that_it_takes_to_send(store: SqlStore) -> None:
    """A claimed row comes with its envelope and content, its attempts grown by one, in phase env."""
    envelope = _envelope(store)
    (key,) = store.outbox.enqueue([envelope], now=NOW)
    (claimed,) = _claim(store)
    assert (envelope, CONTENT) == (claimed.envelope, claimed.content)
    assert claimed.delivery == store.outbox.delivery(key)
    assert (DeliveryState.CLAIMED, 1, Phase.ENVELOPE, "w1") == (
        claimed.delivery.state,
        claimed.delivery.attempts,
        claimed.delivery.phase,
        claimed.delivery.owner,
    )


def test_claim_settles_suppressed_rows_on_the_way_and_still_fills_its_hands(store: SqlStore) -> None:
    """Rows of readers who left are settled, however many, and the others behind them are claimed all the same."""
    left = [_enqueue(store, f"a1|{number}") for number in range(7)]
    stay = [_enqueue(store, f"b1|{number}", "bo@reef.example") for number in range(3)]
    _suppress(store)
    assert stay[:2] == _keys(_claim(store, limit=2))
    assert {DeliveryState.SUPPRESSED} == {store.outbox.delivery(key).state for key in left}
    assert {0} == {store.outbox.delivery(key).attempts for key in left}
    assert stay[2:] == _keys(_claim(store, limit=2))


def test_claim_of_a_row_with_damaged_content_is_poison(store: SqlStore) -> None:
    """A flipped byte in the store is not sent to anybody; it is found, said, and stops no other row."""
    key = _enqueue(store)
    good = store.outbox.put_content(b"other", now=NOW)
    (other,) = store.outbox.enqueue([make_envelope(_reader(store), good, "a1|2")], now=NOW)
    store.engine.query("UPDATE content SET body = :body WHERE hash <> :good", {"body": b"Subject: Leaf", "good": good})
    assert [other] == _keys(_claim(store))
    delivery = store.outbox.delivery(key)
    assert (DeliveryState.POISON, "its content is damaged") == (delivery.state, delivery.why)
    with pytest.raises(StoreError, match=f"delivery {key}"):
        store.outbox.content_of(key)


def _drain(url: str, owner: str) -> list[int]:
    """Claim seven rows at a time until there are none, in a process of its own."""
    store = open_store(url)
    keys: list[int] = []
    while claimed := store.outbox.claim(owner, now=NOW, lease_until=NOW + LEASE, limit=7):
        keys += _keys(claimed)
    store.close()
    return keys


def test_no_row_is_claimed_twice_by_processes_that_race(store: SqlStore, store_url: str) -> None:
    """Four processes that drain one outbox of 300 rows get each row once between them, and none is left."""
    keys = store.outbox.enqueue([_envelope(store, f"a1|{number}") for number in range(300)], now=NOW)
    with ProcessPoolExecutor(4, mp_context=multiprocessing.get_context("spawn")) as pool:
        shares = list(pool.map(_drain, [store_url] * 4, ["w1", "w2", "w3", "w4"]))
    assert sorted(keys) == sorted(key for share in shares for key in share)
    assert 300 == store.outbox.counts()[DeliveryState.CLAIMED]


# -- the dot


def test_mark_dot_is_given_once_to_the_owner(store: SqlStore) -> None:
    """The owner of a claimed row may send it, once; nobody else may."""
    key = _claimed(store)
    assert not store.outbox.mark_dot(key, "w2", now=NOW, sha256=SHA)
    assert Phase.ENVELOPE == store.outbox.delivery(key).phase
    assert store.outbox.mark_dot(key, "w1", now=NOW, sha256=SHA)
    assert (Phase.DOT, SHA) == (store.outbox.delivery(key).phase, store.outbox.delivery(key).sha256)
    assert not store.outbox.mark_dot(key, "w1", now=NOW, sha256=SHA)
    assert not store.outbox.mark_dot(key + 1, "w1", now=NOW, sha256=SHA)


def test_mark_dot_of_a_row_that_is_not_claimed_is_refused(store: SqlStore) -> None:
    """A row that was reaped, or settled, is nobody's to send."""
    key = _claimed(store)
    store.outbox.reap(now=NOW, owners=[])
    assert not store.outbox.mark_dot(key, "w1", now=NOW, sha256=SHA)
    assert DeliveryState.READY == store.outbox.delivery(key).state
    assert store.outbox.delivery(key).sha256 is None


def test_mark_dot_after_the_reader_left_settles_the_row(store: SqlStore) -> None:
    """After an unsubscription is answered no new mail is begun: the row is suppressed just before the dot."""
    key = _claimed(store)
    _suppress(store)
    assert not store.outbox.mark_dot(key, "w1", now=NOW + MINUTE, sha256=SHA)
    assert DeliveryState.SUPPRESSED == _settle(store, key, Fenced())
    delivery = store.outbox.delivery(key)
    assert (DeliveryState.SUPPRESSED, NOW + MINUTE, None) == (delivery.state, delivery.settled_at, delivery.sha256)
    assert [("suppressed", None)] == [(one.outcome, one.dot_at) for one in store.outbox.attempts(key)]


def test_other_bytes_at_a_later_attempt_are_counted(store: SqlStore) -> None:
    """A retry sends the same bytes; if it ever does not, the row says so."""
    key = _dotted(store)
    for sha in (SHA, "0" * 64, "0" * 64):
        _settle(store, key, Deferred("busy"), next_at=NOW)
        _claim(store)
        assert store.outbox.mark_dot(key, "w1", now=NOW, sha256=sha)
    assert (1, "0" * 64) == (store.outbox.delivery(key).other_bytes, store.outbox.delivery(key).sha256)


# -- settling


@pytest.mark.parametrize(
    ("outcome", "next_at", "state", "why"),
    [
        (Sent(OK), None, DeliveryState.ACCEPTED, ""),
        (Refused(Reply(554, "5.6.0 no")), None, DeliveryState.FAILED, "refused"),
        (Refused(Reply(550, "5.7.1 no"), policy=True), None, DeliveryState.FAILED, "refused for what we are"),
        (Deferred("busy", Reply(451, "later")), NOW + 5 * MINUTE, DeliveryState.READY, "busy"),
        (Deferred("busy", Reply(451, "later")), None, DeliveryState.FAILED, "expired: busy"),
        (Deferred("no connection"), NOW + 5 * MINUTE, DeliveryState.READY, "no connection"),
        (Uncertain("timed out after the dot"), None, DeliveryState.UNCERTAIN, "timed out after the dot"),
    ],
)
def test_settle_records_each_outcome(
    store: SqlStore, outcome: Outcome, next_at: datetime | None, state: DeliveryState, why: str
) -> None:
    """What became of a row is in the row and in its log: state, reply, reason, times."""
    key = _dotted(store)
    assert state == _settle(store, key, outcome, next_at=next_at)
    delivery = store.outbox.delivery(key)
    reply = None if isinstance(outcome, Uncertain | Fenced) else outcome.reply
    assert (state, why, reply, 1, None) == (
        delivery.state,
        delivery.why,
        delivery.reply,
        delivery.attempts,
        delivery.phase,
    )
    ready = state is DeliveryState.READY
    assert (next_at if ready else None) == delivery.next_at
    assert (None if ready else NOW + 2 * MINUTE) == delivery.settled_at
    assert (state is DeliveryState.UNCERTAIN) is delivery.flagged
    word = type(outcome).__name__.lower()
    expected = Attempt(1, word, NOW + 2 * MINUTE, "w1", NOW + MINUTE, reply, why, SHA)
    assert [expected] == store.outbox.attempts(key)
    assert [] == store.outbox.suppressions()


def test_settle_refused_for_good_suppresses_the_reader(store: SqlStore) -> None:
    """An address that does not exist gets nothing more, and the reason is kept."""
    key = _claimed(store, address="Ana@Reef.example")
    assert DeliveryState.FAILED == _settle(store, key, Refused(Reply(550, "5.1.1 no such user"), suppress=True))
    (suppression,) = store.outbox.suppressions("ana@reef.example")
    assert Suppression("ana@reef.example", "all", "bounced", NOW + 2 * MINUTE, "550 5.1.1 no such user") == suppression
    assert DeliveryState.SUPPRESSED == store.outbox.delivery(_enqueue(store, "a1|2")).state


def test_settle_gives_the_attempt_back_for_a_fault_of_the_relay(store: SqlStore) -> None:
    """A relay that is down says nothing about the message: its attempts do not grow, its log does."""
    key = _claimed(store)
    _settle(store, key, Deferred("connection refused", relay_fault=True), next_at=NOW)
    assert 0 == store.outbox.delivery(key).attempts
    assert [(1, None, None)] == [(one.number, one.dot_at, one.sha256) for one in store.outbox.attempts(key)]


def test_settle_fenced_frees_a_row_in_phase_env_only(store: SqlStore) -> None:
    """A worker that was told no gives up; it never frees a row that is being sent under its own name."""
    key = _claimed(store)
    assert DeliveryState.READY == _settle(store, key, Fenced())
    assert NOW + 2 * MINUTE == store.outbox.delivery(key).next_at
    _claim(store, now=NOW + 3 * MINUTE)
    assert store.outbox.mark_dot(key, "w1", now=NOW, sha256=SHA)
    assert DeliveryState.CLAIMED == _settle(store, key, Fenced())
    assert Phase.DOT == store.outbox.delivery(key).phase


def test_settle_of_a_row_that_is_not_held_changes_nothing(store: SqlStore) -> None:
    """A late worker's word about a row that is another's, or settled, is not taken."""
    key = _dotted(store)
    before = store.outbox.delivery(key)
    assert DeliveryState.CLAIMED == store.outbox.settle(key, "w2", Sent(OK), now=NOW, next_at=None)
    assert before == store.outbox.delivery(key)
    assert [] == store.outbox.attempts(key)
    _settle(store, key, Sent(OK))
    assert DeliveryState.ACCEPTED == _settle(store, key, Uncertain("late"))
    assert 1 == len(store.outbox.attempts(key))
    with pytest.raises(NotFoundError, match="delivery 99"):
        _settle(store, 99, Sent(OK))


# -- reaping


def test_reap_frees_rows_of_owners_that_are_gone(store: SqlStore) -> None:
    """Rows of a worker that is gone are free at once: ready if nothing was sent, uncertain if it may have been."""
    sent, unsent, alive = (_enqueue(store, f"a1|{number}") for number in range(3))
    _claim(store, "gone", limit=2)
    _claim(store, "w1", limit=1)
    assert store.outbox.mark_dot(sent, "gone", now=NOW, sha256=SHA)
    assert [sent, unsent] == store.outbox.reap(now=NOW + MINUTE, owners=["w1", "w2"])
    assert [DeliveryState.UNCERTAIN, DeliveryState.READY, DeliveryState.CLAIMED] == [
        store.outbox.delivery(key).state for key in (sent, unsent, alive)
    ]
    assert store.outbox.delivery(sent).flagged
    assert not store.outbox.delivery(unsent).flagged
    assert NOW + MINUTE == store.outbox.delivery(sent).settled_at
    assert [("reaped", "gone", NOW)] == [(one.outcome, one.owner, one.dot_at) for one in store.outbox.attempts(sent)]
    assert [unsent] == _keys(_claim(store, now=NOW + MINUTE))


def test_reap_frees_rows_whose_lease_is_over(store: SqlStore) -> None:
    """A lease that is over frees a row whoever holds it; one that runs does not."""
    key = _claimed(store)
    assert [] == store.outbox.reap(now=NOW + LEASE - MINUTE, owners=["w1"])
    assert [key] == store.outbox.reap(now=NOW + LEASE, owners=["w1"])
    assert [] == store.outbox.reap(now=NOW + LEASE, owners=["w1"])


def test_reap_three_times_in_a_row_is_poison(store: SqlStore) -> None:
    """A row that ends its worker again and again is set aside; one that was settled in between is not."""
    key = _claimed(store)
    for _ in range(2):
        store.outbox.reap(now=NOW, owners=[])
        _claim(store)
    _settle(store, key, Deferred("busy"), next_at=NOW)
    for state in (DeliveryState.READY, DeliveryState.READY, DeliveryState.POISON):
        _claim(store)
        store.outbox.reap(now=NOW, owners=[])
        assert state == store.outbox.delivery(key).state
    assert [] == _claim(store)
    assert NOW == store.outbox.delivery(key).settled_at


def test_resend_uncertain_once_in_its_life(store: SqlStore) -> None:
    """An uncertain row goes out once more on its own, not before its time; after that a person decides."""
    key = _dotted(store)
    _settle(store, key, Uncertain("lost"))
    settled_at = NOW + 2 * MINUTE
    later = NOW + timedelta(hours=1)
    assert [] == store.outbox.resend_uncertain(now=later, older_than=settled_at)
    assert [key] == store.outbox.resend_uncertain(now=later, older_than=settled_at + MINUTE)
    delivery = store.outbox.delivery(key)
    assert (DeliveryState.READY, later, True, None) == (
        delivery.state,
        delivery.next_at,
        delivery.flagged,
        delivery.settled_at,
    )
    _claim(store, now=later)
    _settle(store, key, Uncertain("lost again"))
    assert [] == store.outbox.resend_uncertain(now=later, older_than=later)


# -- looking, and a person's hand


def test_deliveries_newest_first_by_state_and_digest(store: SqlStore) -> None:
    """Rows are listed newest first, those asked for, as many as asked for."""
    one = _claimed(store, digest_key="a1|1")
    two, three = _enqueue(store, "a1|2"), _enqueue(store, "a1|1", "bo@reef.example")

    def keys(rows: Sequence[Delivery]) -> list[int]:
        return [row.key for row in rows]

    assert [three, two, one] == keys(store.outbox.deliveries())
    assert [three, two] == keys(store.outbox.deliveries(state=DeliveryState.READY))
    assert [three, one] == keys(store.outbox.deliveries(digest_key="a1|1"))
    assert [three] == keys(store.outbox.deliveries(state=DeliveryState.READY, digest_key="a1|1"))
    assert [three] == keys(store.outbox.deliveries(limit=1))


def test_counts_name_all_states(store: SqlStore) -> None:
    """Each row is in one state, and no state is left out for want of rows."""
    assert dict.fromkeys(DeliveryState, 0) == store.outbox.counts()
    _claimed(store)
    _enqueue(store, "a1|2")
    expected = dict.fromkeys(DeliveryState, 0) | {DeliveryState.CLAIMED: 1, DeliveryState.READY: 1}
    assert expected == store.outbox.counts()


def test_next_at_is_the_next_ready_row(store: SqlStore) -> None:
    """The daemon sleeps until the next ready row is due; with none it is not woken."""
    assert store.outbox.next_at() is None
    _enqueue(store, "a1|1", next_at=NOW + 2 * MINUTE)
    _enqueue(store, "a1|2", next_at=NOW)
    assert NOW == store.outbox.next_at()
    _claim(store)
    assert NOW + 2 * MINUTE == store.outbox.next_at()


def test_delivery_unknown_is_not_found(store: SqlStore) -> None:
    """Asking for a row that is not there says so."""
    for ask in (store.outbox.delivery, store.outbox.content_of):
        with pytest.raises(NotFoundError, match="delivery 7"):
            ask(7)
    assert [] == store.outbox.attempts(7)


def test_set_state_by_hand_is_logged(store: SqlStore) -> None:
    """What a person decided about a row stands in the row and in its log, without an owner."""
    key = _dotted(store)
    _settle(store, key, Uncertain("lost"))
    store.outbox.set_state(key, DeliveryState.FAILED, why="not in the relay's log", now=NOW + 9 * MINUTE)
    delivery = store.outbox.delivery(key)
    assert (DeliveryState.FAILED, "not in the relay's log", NOW + 9 * MINUTE, True) == (
        delivery.state,
        delivery.why,
        delivery.settled_at,
        delivery.flagged,
    )
    expected = Attempt(1, "failed", NOW + 9 * MINUTE, why="not in the relay's log")
    assert expected == store.outbox.attempts(key)[-1]


def test_set_state_ready_is_sent_again_and_an_uncertain_row_counts_as_resent(store: SqlStore) -> None:
    """A row made ready by hand goes out at its time; it has then been sent again and does so no second time by itself."""
    key = _dotted(store)
    _settle(store, key, Uncertain("lost"))
    store.outbox.set_state(key, DeliveryState.READY, why="again", now=NOW, next_at=NOW + 5 * MINUTE)
    assert NOW + 5 * MINUTE == store.outbox.delivery(key).next_at
    _claim(store, now=NOW + 5 * MINUTE)
    _settle(store, key, Uncertain("lost"))
    assert [] == store.outbox.resend_uncertain(now=NOW + LEASE, older_than=NOW + LEASE)
    store.outbox.set_state(key, DeliveryState.READY, why="again", now=NOW + LEASE)
    assert NOW + LEASE == store.outbox.delivery(key).next_at


def test_set_state_ready_of_a_poisoned_row_forgets_its_reaping(store: SqlStore) -> None:
    """A person who mended what ended the workers gives the row three new chances."""
    key = _enqueue(store)
    for _ in range(3):
        _claim(store)
        store.outbox.reap(now=NOW, owners=[])
    store.outbox.set_state(key, DeliveryState.READY, why="mended", now=NOW)
    _claim(store)
    store.outbox.reap(now=NOW, owners=[])
    assert DeliveryState.READY == store.outbox.delivery(key).state


def test_set_state_of_a_row_that_is_claimed_or_accepted_is_refused(store: SqlStore) -> None:
    """A person can't take a row from a worker, nor have a mail that was taken sent a second time, nor claim."""
    key = _dotted(store)
    with pytest.raises(StoreError, match=f"delivery {key}: expected .* found it claimed"):
        store.outbox.set_state(key, DeliveryState.READY, why="again", now=NOW)
    _settle(store, key, Sent(OK))
    with pytest.raises(StoreError, match=f"delivery {key}: expected .* found it accepted"):
        store.outbox.set_state(key, DeliveryState.READY, why="again", now=NOW)
    with pytest.raises(StoreError, match="only a worker"):
        store.outbox.set_state(_enqueue(store, "a1|2"), DeliveryState.CLAIMED, why="mine", now=NOW)
    with pytest.raises(NotFoundError, match="delivery 99"):
        store.outbox.set_state(99, DeliveryState.READY, why="again", now=NOW)


# -- to whom nothing is sent


def test_suppress_twice_changes_nothing(store: SqlStore) -> None:
    """The first reason stands; another scope is another suppression; other addresses are other addresses."""
    _suppress(store, reason="complained", address="Ana@reef.example")
    _suppress(store, reason="bounced")
    _suppress(store, "k3lp")
    _suppress(store, address="bo@reef.example")
    assert [("all", "complained"), ("k3lp", "unsubscribed")] == [
        (one.scope, one.reason) for one in store.outbox.suppressions("ANA@reef.example")
    ]
    assert 3 == len(store.outbox.suppressions())


def test_suppression_round_trips_every_field(store: SqlStore) -> None:
    """What a suppression rests on is kept."""
    suppression = Suppression("ana@reef.example", "k3lp", "operator", NOW, "asked by phone")
    store.outbox.suppress(suppression)
    assert [suppression] == store.outbox.suppressions()


def test_lift_ends_one_scope_and_it_can_be_suppressed_again(store: SqlStore) -> None:
    """After a fresh confirmation mail of that scope flows again, until it is stopped again."""
    _suppress(store, "k3lp")
    _suppress(store, "o7")
    assert store.outbox.lift("ANA@reef.example", "k3lp", now=NOW)
    assert not store.outbox.lift("ana@reef.example", "k3lp", now=NOW)
    assert ["o7"] == [one.scope for one in store.outbox.suppressions()]
    assert DeliveryState.READY == store.outbox.delivery(_enqueue(store, scope="k3lp")).state
    _suppress(store, "k3lp", "complained")
    assert ["complained"] == [one.reason for one in store.outbox.suppressions() if one.scope == "k3lp"]


@pytest.mark.parametrize(("kind", "reason"), [("hard", "bounced"), ("complaint", "complained")])
def test_a_hard_bounce_or_complaint_suppresses_at_once(store: SqlStore, kind: str, reason: str) -> None:
    """Nothing more is sent to an address that does not exist or does not want it."""
    assert store.outbox.add_bounce("Ana@reef.example", kind, at=NOW, evidence="5.1.1", digest_key="a1|1")
    (suppression,) = store.outbox.suppressions()
    assert Suppression("ana@reef.example", "all", reason, NOW, "5.1.1") == suppression
    assert store.outbox.add_bounce("ana@reef.example", "soft", at=NOW)


def _accept(store: SqlStore, number: int) -> str:
    """Have a digest accepted and return its key."""
    key = _enqueue(store, f"a1|{number}")
    _claim(store)
    _settle(store, key, Sent(OK))
    return f"a1|{number}"


def _bounce(store: SqlStore, number: int, *, days: int | None = None) -> bool:
    at = NOW + timedelta(days=number if days is None else days)
    return store.outbox.add_bounce("ana@reef.example", "soft", at=at, digest_key=f"a1|{number}")


def test_five_soft_bounces_in_a_row_suppress(store: SqlStore) -> None:
    """Five digests in a row that came back within 30 days are an address that nobody reads."""
    for number in range(5):
        _accept(store, number)
    _accept(store, 5)  # has not had the time to come back
    assert [False, False, False, False, True] == [_bounce(store, number) for number in range(5)]
    assert ["bounced"] == [one.reason for one in store.outbox.suppressions()]


def test_soft_bounces_with_a_delivery_between_them_do_not_suppress(store: SqlStore) -> None:
    """An address that takes mail now and then is read."""
    for number in range(7):
        _accept(store, number)
    assert not any(_bounce(store, number) for number in (0, 1, 3, 4, 5))
    assert not _bounce(store, 5)


def test_soft_bounces_count_once_a_digest_and_only_within_thirty_days(store: SqlStore) -> None:
    """Two reports on one digest are one; what came back long ago says nothing about now."""
    for number in range(5):
        _accept(store, number)
    assert not any(_bounce(store, number) for number in (0, 0, 1, 1, 2, 2, 3, 3))
    assert not _bounce(store, 4, days=30)


def test_bounces_from_before_a_lift_do_not_count(store: SqlStore) -> None:
    """A fresh confirmation is a fresh start."""
    assert [False] * 4 + [True] == [_bounce(store, number) for number in range(5)]
    store.outbox.lift("ana@reef.example", "all", now=NOW + timedelta(days=5))
    assert not _bounce(store, 6)


def test_what_was_rolled_back_was_never_there(store: SqlStore) -> None:
    """An error at the end of a transaction takes back rows, content, claims, outcomes and suppressions."""
    key = _enqueue(store)
    before = store.outbox.delivery(key)
    with pytest.raises(ZeroDivisionError), store.transaction():  # noqa: PT012 # what is done before the error is the test
        _enqueue(store, "a1|2")
        _claim(store)
        store.outbox.mark_dot(key, "w1", now=NOW, sha256=SHA)
        _settle(store, key, Refused(Reply(550, "5.1.1 no"), suppress=True))
        store.outbox.put_content(b"other", now=NOW)
        store.outbox.add_bounce("bo@reef.example", "hard", at=NOW)
        raise ZeroDivisionError
    assert [before] == store.outbox.deliveries()
    assert [] == store.outbox.attempts(key)
    assert [] == store.outbox.suppressions()
    assert [{"rows": 1}] == store.engine.query("SELECT COUNT(*) AS rows FROM content")
