"""What is kept of troubles, and what is counted, on each engine."""

from __future__ import annotations

from datetime import timedelta

from digestd.flows.deliver import deliver
from digestd.flows.digest import make_due
from digestd.model.delivery import Deferred, DeliveryState, Uncertain
from digestd.model.trouble import KnownTrouble, Sign, Tally, Trouble
from digestd.store import SqlStore
from tests.followers import Clock, KeepingChannel, add, at, let_follow, make_kitchen, options, start

NOW = at("2026-10-05T08:00")


def test_troubles_are_kept_as_given(store: SqlStore) -> None:
    """All fields of all troubles come back, and what is kept replaces what was."""
    first = KnownTrouble(Trouble("relay", "535 no", is_mail=True), NOW, NOW, NOW + timedelta(hours=1))
    second = KnownTrouble(Trouble("source Reefs", "broken"), NOW + timedelta(hours=1))
    store.troubles.keep([second, first])
    assert [first, second] == store.troubles.known()
    store.troubles.keep([second])
    assert [second] == store.troubles.known()


def test_signs_are_the_latest(store: SqlStore) -> None:
    """Of a sign the latest is kept."""
    store.troubles.put_sign("audited", at=NOW, value=3)
    store.troubles.put_sign("audited", at=NOW + timedelta(hours=1))
    store.troubles.put_sign("worked", at=NOW)
    assert {"audited": Sign(NOW + timedelta(hours=1)), "worked": Sign(NOW)} == store.troubles.signs()


async def test_tally_counts_rows_once_and_from_where_it_was(store: SqlStore) -> None:
    """A tally goes on from the one before and comes to what a whole count does."""
    start(store, "Reef Sound", now=at("2026-10-01T06:00"))
    before = store.troubles.tally(Tally())
    assert ({"baseline": 3}, {}, {}) == (before.sightings, before.digests, before.attempts)
    let_follow(store, "ana@reef.example", "Reef Sound", now=at("2026-10-01T07:00"))
    let_follow(store, "bo@reef.example", "Reef Sound", now=at("2026-10-01T07:00"))
    add(store, "Reef Sound", ("2026-10-02", "A Reef at Dusk"), now=at("2026-10-02T06:00"))
    make_due(make_kitchen(store), now=at("2026-10-06T08:00"))
    outcomes = iter([Uncertain("no reply"), Deferred("greylisted"), None])
    channel = KeepingChannel(outcome=lambda _: next(outcomes, None))
    clock = Clock(at("2026-10-06T08:01"))
    await deliver(store, channel, clock, options(workers=1))
    clock.instant += timedelta(hours=1)
    await deliver(store, channel, clock, options(workers=1))
    after = store.troubles.tally(before)
    assert store.troubles.tally(Tally()) == after == store.troubles.tally(after)
    assert ({"baseline": 3, "new": 1}, {"mailed": 2}) == (after.sightings, after.digests)
    rows = [row for state in DeliveryState for row in store.outbox.deliveries(state=state)]
    logged = [one.outcome for row in rows for one in store.outbox.attempts(row.key)]
    assert {name: logged.count(name) for name in set(logged)} == after.attempts
    assert 1 == after.attempts["uncertain"] == after.attempts["deferred"]
