"""Group commits, and the way from the outbox to a channel: each mail once, none lost, whatever the channel says."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from digestd.errors import NotFoundError
from digestd.flows.commits import GroupCommit
from digestd.flows.deliver import RESEND_AFTER, Delivered, deliver
from digestd.flows.digest import make_due
from digestd.flows.subscribe import unfollow
from digestd.model.delivery import (
    Deferred,
    DeliveryState,
    Message,
    Outcome,
    Phase,
    Refused,
    Reply,
    Uncertain,
)
from digestd.model.topic import Topic
from digestd.store import SqlStore, open_store
from tests.builders import make_envelope
from tests.followers import Clock, KeepingChannel, add, at, let_follow, make_kitchen, options, start

MONDAY = at("2026-09-28T05:00")
SLOT = at("2026-09-28T07:30")
READY, ACCEPTED, UNCERTAIN = DeliveryState.READY, DeliveryState.ACCEPTED, DeliveryState.UNCERTAIN


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    """A history with twelve mails in its outbox."""
    opened = open_store(tmp_path / "history.sqlite")
    start(opened, "Reef Sound", now=MONDAY)
    for number in range(12):
        let_follow(opened, f"r{number:02d}@example.org", "Reef Sound", now=MONDAY)
    add(opened, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=MONDAY)
    make_due(make_kitchen(opened), now=SLOT)
    yield opened
    opened.close()


def states(store: SqlStore) -> dict[DeliveryState, int]:
    """Return how many rows are in each state, empty ones left out."""
    return {state: count for state, count in store.outbox.counts().items() if count}


def recipient(number: int) -> str:
    """Return the address of a reader."""
    return f"r{number:02d}@example.org"


# -- many writes, few commits


async def test_writes_of_many_are_in_their_order(store: SqlStore) -> None:
    """Writes are done in the order in which they were asked for, and each gets its own result."""
    commits = GroupCommit(store)
    done: list[int] = []

    def write(number: int) -> Callable[[], int]:
        return lambda: done.append(number) or number  # type: ignore[func-returns-value]  # append is the effect

    results = await asyncio.gather(*(commits.write(write(number)) for number in range(1200)))
    assert list(range(1200)) == results
    assert list(range(1200)) == done
    await commits.close()


async def test_failing_write_undoes_only_itself(store: SqlStore) -> None:
    """A write that fails leaves nothing behind and takes none of its neighbours with it."""
    commits = GroupCommit(store)

    def put(name: str, *, fail: bool) -> Callable[[], None]:
        def write() -> None:
            store.history.put_topic(Topic(name.lower(), name), now=MONDAY)
            if fail:
                raise NotFoundError(f"no {name}")

        return write

    results = await asyncio.gather(
        *(commits.write(put(f"T{number}", fail=number == 1)) for number in range(3)), return_exceptions=True
    )
    assert [None, "no T1", None] == [str(one) if one else None for one in results]
    await commits.close()
    assert ["Reef Sound", "T0", "T2"] == [topic.name for topic in store.history.topics()]


async def test_cancelled_write_is_decided_before_its_task_goes_on(store: SqlStore) -> None:
    """A task that is cancelled while its write waits goes on only when the write is on the disk."""
    commits = GroupCommit(store)
    seen: list[bool] = []

    async def work() -> None:
        try:
            await commits.write(lambda: store.history.put_topic(Topic("t", "T"), now=MONDAY))
        finally:
            seen.append(store.history.find_topic("T") is not None)

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert [True] == seen
    assert task.cancelled()
    await commits.close()


async def test_close_commits_what_waits_and_refuses_more(store: SqlStore) -> None:
    """Closing loses no write, not even one whose task has gone, and a second close does nothing."""
    commits = GroupCommit(store)
    task = asyncio.create_task(commits.write(lambda: store.history.put_topic(Topic("t", "T"), now=MONDAY)))
    await asyncio.sleep(0)
    await commits.close()
    await task
    await commits.close()
    assert store.history.find_topic("T") is not None
    with pytest.raises(RuntimeError, match="after the last commit"):
        await commits.write(lambda: None)


# -- one run


async def run(
    store: SqlStore, channel: KeepingChannel, *, after: timedelta = timedelta(), owner: str = "test", **given: object
) -> Delivered:
    """Deliver once, some time after the slot."""
    return await deliver(store, channel, Clock(SLOT + after), options(owner, **given))


async def test_each_mail_goes_out_once(store: SqlStore) -> None:
    """All that is due goes out, each mail once; a second run finds nothing."""
    channel = KeepingChannel()
    done = await run(store, channel)
    assert {ACCEPTED: 12} == dict(done.states)
    assert [recipient(number) for number in range(12)] == sorted(message.recipient for message in channel.kept)
    again = await run(store, channel)
    assert {} == dict(again.states)
    assert 12 == len(channel.kept)


async def test_limit_is_kept(store: SqlStore) -> None:
    """No more rows than asked for are taken, and the others are left as they were."""
    channel = KeepingChannel()
    await deliver(store, channel, Clock(SLOT), options(workers=3), most=7)
    assert {ACCEPTED: 7, READY: 5} == states(store)
    assert {0} == {row.attempts for row in store.outbox.deliveries(state=READY)}


async def test_one_failing_recipient_is_sent_again_alone(store: SqlStore) -> None:
    """A mail that is put off goes out later; the others are not sent again, and the bytes are the same."""
    busy = {recipient(3)}
    bodies: list[bytes] = []

    def outcome(message: Message) -> Outcome | None:
        bodies.extend([message.body] if message.recipient in busy else [])
        return Deferred("RCPT: 451", Reply(451, "4.7.1 later")) if message.recipient in busy else None

    channel = KeepingChannel(outcome)
    assert {ACCEPTED: 11, READY: 1} == dict((await run(store, channel)).states)
    assert {} == dict((await run(store, channel, after=timedelta(minutes=3))).states)
    busy.clear()
    assert {ACCEPTED: 1} == dict((await run(store, channel, after=timedelta(minutes=7))).states)
    assert Counter({recipient(number): 1 for number in range(12)}) == Counter(one.recipient for one in channel.kept)
    assert {bodies[0]} == {one.body for one in channel.kept if one.recipient == recipient(3)}


async def test_relay_that_is_down_is_left_alone(store: SqlStore) -> None:
    """A relay that fails thrice in a row is left alone; all rows stay ready and no attempt is counted."""
    channel = KeepingChannel(lambda _: Deferred("connect: connection lost", relay_fault=True))
    done = await run(store, channel, workers=1)
    assert 3 == len(channel.seen)
    assert "connect: connection lost" == done.relay_down
    assert {READY: 12} == states(store)
    assert {0} == {row.attempts for row in store.outbox.deliveries()}
    assert done.retry_at is not None
    assert {ACCEPTED: 12} == dict((await run(store, KeepingChannel(), after=timedelta(hours=1))).states)


async def test_login_that_fails_pauses_at_once(store: SqlStore) -> None:
    """A refused login stops the run at its first mail and says that a person is needed."""
    channel = KeepingChannel(lambda _: Deferred("AUTH: 535", Reply(535), relay_fault=True, pause=True))
    done = await run(store, channel, workers=1)
    assert 1 == len(channel.seen)
    assert "AUTH: 535" == done.paused
    assert {READY: 12} == states(store)


async def test_refused_mail_fails_and_the_others_go(store: SqlStore) -> None:
    """A refusal is final for its row alone; where the mailbox is gone nothing more is sent there."""

    def outcome(message: Message) -> Outcome | None:
        if message.recipient == recipient(1):
            return Refused(Reply(550, "5.1.1 no such user"), suppress=True)
        return Refused(Reply(550, "5.7.1 not you"), policy=True) if message.recipient == recipient(2) else None

    done = await run(store, KeepingChannel(outcome))
    assert {ACCEPTED: 10, DeliveryState.FAILED: 2} == dict(done.states)
    assert [recipient(1)] == [one.address for one in store.outbox.suppressions()]


async def test_mail_that_cannot_be_built_is_set_aside(store: SqlStore) -> None:
    """A row whose mail cannot be built waits for a person; the others go out."""
    (row,) = [one for one in store.outbox.deliveries() if one.recipient == recipient(5)]
    store.engine.query("UPDATE outbox SET fields = '{}' WHERE id = :key", {"key": row.key})
    channel = KeepingChannel()
    done = await run(store, channel)
    assert {ACCEPTED: 11, DeliveryState.POISON: 1} == dict(done.states)
    assert "the mail cannot be built from what the outbox keeps" == store.outbox.delivery(row.key).why
    assert {} == dict((await run(store, channel, after=timedelta(days=1))).states)


async def test_bug_in_a_channel_stops_nobody_else(store: SqlStore) -> None:
    """A channel that raises on one mail puts it off, thrice at most; what may have been taken then is uncertain."""

    def outcome(message: Message) -> Outcome | None:
        if message.recipient == recipient(5):
            raise RuntimeError("surprise")
        return None

    async def at_dot(message: Message) -> Outcome | None:
        if message.recipient == recipient(6):
            raise RuntimeError("late surprise")
        return None

    channel = KeepingChannel(outcome, at_dot)
    assert {ACCEPTED: 10, READY: 1, UNCERTAIN: 1} == dict((await run(store, channel, on_uncertain="hold")).states)
    for hours in (1, 2):
        await run(store, channel, after=timedelta(hours=hours), on_uncertain="hold")
    assert {ACCEPTED: 10, DeliveryState.POISON: 1, UNCERTAIN: 1} == states(store)


async def test_uncertain_mail_is_sent_once_more(store: SqlStore) -> None:
    """A mail of unknown fate waits a quarter of an hour, goes out once more, the same bytes, and stays flagged."""
    lost = True
    bodies: list[bytes] = []

    async def at_dot(message: Message) -> Outcome | None:
        if message.recipient == recipient(4):
            bodies.append(message.body)
            return Uncertain("final dot: connection lost") if lost else None
        return None

    channel = KeepingChannel(at_dot=at_dot)
    assert {ACCEPTED: 11, UNCERTAIN: 1} == dict((await run(store, channel)).states)
    assert 0 == (await run(store, channel, after=RESEND_AFTER)).resent
    assert 1 == (await run(store, channel, after=RESEND_AFTER + timedelta(seconds=1))).resent
    assert [2, 1] == [len(bodies), len(set(bodies))]
    assert 0 == (await run(store, channel, after=timedelta(days=2))).resent, "once in its life"
    (row,) = [one for one in store.outbox.deliveries() if one.recipient == recipient(4)]
    assert (UNCERTAIN, True, 0) == (row.state, row.flagged, row.other_bytes)


async def test_uncertain_mail_is_held_if_wanted(store: SqlStore) -> None:
    """With hold nothing of unknown fate goes out again by itself."""

    async def at_dot(message: Message) -> Outcome | None:
        return Uncertain("final dot: no answer in time") if message.recipient == recipient(4) else None

    channel = KeepingChannel(at_dot=at_dot)
    await run(store, channel, on_uncertain="hold")
    done = await run(store, channel, after=timedelta(days=3), on_uncertain="hold")
    assert (0, {ACCEPTED: 11, UNCERTAIN: 1}) == (done.resent, states(store))
    assert 1 == channel.seen.count(recipient(4))


async def test_rows_of_a_dead_worker_are_freed(store: SqlStore) -> None:
    """What a dead process held before the dot goes out; what it held at the dot is uncertain, never silently again."""
    outbox = store.outbox
    held = outbox.claim("dead", now=SLOT, lease_until=SLOT + timedelta(minutes=20), limit=2)
    assert outbox.mark_dot(held[0].delivery.key, "dead", now=SLOT, sha256="0" * 64)
    assert Phase.DOT == outbox.delivery(held[0].delivery.key).phase
    channel = KeepingChannel()
    done = await run(store, channel, owner="next")
    assert (2, {ACCEPTED: 11}) == (done.reaped, dict(done.states))
    assert {ACCEPTED: 11, UNCERTAIN: 1} == states(store)
    assert held[0].delivery.recipient not in channel.seen


async def test_reader_who_leaves_during_the_hand_over_gets_nothing(store: SqlStore) -> None:
    """An unsubscribe that comes while a mail is on its way stops it before the final dot."""

    def outcome(message: Message) -> Outcome | None:
        if message.recipient == recipient(7):
            reader = store.subscriptions.find_reader(recipient(7))
            assert reader is not None
            unfollow(store, reader, (), now=SLOT)
        return None

    channel = KeepingChannel(outcome)
    done = await run(store, channel, workers=1)
    assert {ACCEPTED: 11, DeliveryState.SUPPRESSED: 1} == dict(done.states)
    assert recipient(7) not in [message.recipient for message in channel.kept]


async def test_cancelled_run_gives_back_and_waits_at_the_dot(store: SqlStore) -> None:
    """A run that is stopped begins nothing more, waits for mails at the final dot, and gives back all others."""
    answered, reached, hanging = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def at_dot(message: Message) -> Outcome | None:
        if message.recipient == recipient(0):
            reached.set()
            await answered.wait()
        return None

    channel = KeepingChannel(at_dot=at_dot)
    begun = channel.send

    async def send(message: Message, *, before_dot: Callable[[], Awaitable[bool]]) -> Outcome:
        if message.recipient == recipient(0):
            return await begun(message, before_dot=before_dot)
        channel.seen.append(message.recipient)
        if len(channel.seen) == 4:
            hanging.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return Deferred("cancelled", relay_fault=True)
        raise AssertionError

    channel.send = send  # type: ignore[method-assign]  # all but one hang before the dot
    task = asyncio.create_task(run(store, channel, workers=4))
    await reached.wait()
    await hanging.wait()
    task.cancel()
    done, _ = await asyncio.wait({task}, timeout=0.3)
    assert set() == done, "it waits for the answer"
    answered.set()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()
    assert {ACCEPTED: 1, READY: 11} == states(store)
    assert 4 == len(channel.seen), "nothing was begun after it was stopped"
    assert {0} == {row.attempts for row in store.outbox.deliveries(state=READY)}


async def test_store_that_fails_ends_the_run_and_the_next_one_sees_to_it(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that cannot record a result ends with the error; the mail is uncertain then, the others go out once."""
    settle = store.outbox.settle
    failed: list[int] = []

    def failing(key: int, *args: object, **given: object) -> DeliveryState:
        if not failed:
            failed.append(key)
            raise NotFoundError("disk gone")
        return settle(key, *args, **given)  # type: ignore[arg-type]  # passed on as they came

    monkeypatch.setattr(store.outbox, "settle", failing)
    channel = KeepingChannel()
    with pytest.raises(NotFoundError, match="disk gone"):
        await run(store, channel, workers=1, owner="first")
    done = await run(store, channel, owner="second", on_uncertain="hold")
    assert 1 == done.reaped
    assert {ACCEPTED: 11, UNCERTAIN: 1} == states(store)
    assert 12 == len(channel.kept)
    assert [UNCERTAIN] == [store.outbox.delivery(key).state for key in failed]


async def test_row_without_readable_content_is_poison_and_stops_no_other(store: SqlStore) -> None:
    """Content that is whole by its hash and yet no mail's is a person's to look at; all other mails go out."""
    content = store.outbox.put_content(b"no packed bodies", now=SLOT)
    reader = store.subscriptions.find_reader(recipient(0))
    assert reader is not None
    assert reader.key is not None
    store.outbox.enqueue([make_envelope(reader.key, content, kind="alert", next_at=SLOT)], now=SLOT)
    await deliver(store, KeepingChannel(), Clock(SLOT), options())
    assert {ACCEPTED: 12, DeliveryState.POISON: 1} == states(store)
