"""The outbox against a model of it: any order of claims, crashes, outcomes, resends and suppressions, on every engine."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from digestd.errors import StoreError
from digestd.model.delivery import (
    Deferred,
    DeliveryState,
    Fenced,
    Outcome,
    Phase,
    Refused,
    Reply,
    Sent,
    Suppression,
    Uncertain,
)
from digestd.store import open_store
from tests.builders import NOW, make_envelope, make_reader

READY, CLAIMED, ACCEPTED = DeliveryState.READY, DeliveryState.CLAIMED, DeliveryState.ACCEPTED
FAILED, SUPPRESSED = DeliveryState.FAILED, DeliveryState.SUPPRESSED
UNCERTAIN, POISON = DeliveryState.UNCERTAIN, DeliveryState.POISON

OWNERS = st.sampled_from(["w1", "w2"])
ADDRESSES = ("ana@reef.example", "bo@reef.example")
SCOPES = ("all", "k3lp")
LEASE_MIN = 20
OUTCOMES = st.sampled_from(
    [
        Sent(Reply(250, "ok")),
        Refused(Reply(554, "no")),
        Refused(Reply(550, "5.1.1 unknown"), suppress=True),
        Deferred("busy"),
        Deferred("no connection", relay_fault=True),
        Uncertain("lost"),
        Fenced(),
    ]
)


@dataclass(slots=True)
class Row:
    """What a row should be."""

    key: int
    address: str
    scope: str
    next_min: int
    state: DeliveryState = READY
    dot: bool = False
    owner: str = ""
    lease_min: int = 0
    attempts: int = 0
    reaped: int = 0
    resent: bool = False
    flagged: bool = False
    settled_min: int = 0


class OutboxMachine(RuleBasedStateMachine):
    """An outbox, and what it should hold."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.store = open_store(f"sqlite:{self.folder / 'history.sqlite'}")
        self.rows: dict[int, Row] = {}
        self.suppressed: set[tuple[str, str]] = set()
        self.minute = 0

    def teardown(self) -> None:
        """Put the file away."""
        self.store.close()
        shutil.rmtree(self.folder)

    @initialize()
    def begin(self) -> None:
        """Two readers and one content."""
        self.content = self.store.outbox.put_content(b"mail", now=NOW)
        self.readers = {
            address: self.store.subscriptions.put_reader(make_reader(address), now=NOW).key or 0
            for address in ADDRESSES
        }

    def _now(self, minute: int | None = None) -> datetime:
        return NOW + timedelta(minutes=self.minute if minute is None else minute)

    def _blocked(self, row: Row) -> bool:
        return bool({(row.address, "all"), (row.address, row.scope)} & self.suppressed)

    def _settle_model(self, row: Row, state: DeliveryState) -> None:
        row.state, row.dot, row.settled_min = state, False, self.minute
        row.flagged = row.flagged or state is UNCERTAIN

    # -- rules

    @rule(minutes=st.sampled_from([1, 5, LEASE_MIN]))
    def wait(self, minutes: int) -> None:
        """Let time go by."""
        self.minute += minutes

    @rule(address=st.sampled_from(ADDRESSES), scope=st.sampled_from(SCOPES), delay=st.sampled_from([0, 0, 3]))
    def enqueue(self, address: str, scope: str, delay: int) -> None:
        """Add a row."""
        envelope = make_envelope(
            self.readers[address],
            self.content,
            f"k|{len(self.rows)}",
            scope=scope,
            next_at=self._now(self.minute + delay),
        )
        (key,) = self.store.outbox.enqueue([envelope], now=self._now())
        assert key not in self.rows
        row = self.rows[key] = Row(key, address, scope, self.minute + delay)
        if self._blocked(row):
            self._settle_model(row, SUPPRESSED)

    @rule(owner=OWNERS, limit=st.integers(1, 3))
    def claim(self, owner: str, limit: int) -> None:
        """Claim some rows."""
        lease_until = self._now(self.minute + LEASE_MIN)
        claimed = self.store.outbox.claim(owner, now=self._now(), lease_until=lease_until, limit=limit)
        expected: list[int] = []
        due = [row for row in self.rows.values() if row.state is READY and row.next_min <= self.minute]
        for row in sorted(due, key=lambda row: (row.next_min, row.key)):
            if len(expected) == limit:
                break
            if self._blocked(row):
                self._settle_model(row, SUPPRESSED)
                continue
            row.state, row.owner, row.lease_min = CLAIMED, owner, self.minute + LEASE_MIN
            row.attempts += 1
            expected.append(row.key)
        assert expected == [one.delivery.key for one in claimed]

    @precondition(lambda self: self.rows)
    @rule(data=st.data(), owner=OWNERS)
    def mark_dot(self, data: st.DataObject, owner: str) -> None:
        """Ask to send a row; nobody who left is sent anything."""
        row = self._pick(data)
        said = self.store.outbox.mark_dot(row.key, owner, now=self._now(), sha256="0" * 64)
        held = row.state is CLAIMED and row.owner == owner and not row.dot
        if held and self._blocked(row):
            self._settle_model(row, SUPPRESSED)
        elif held:
            row.dot = True
        assert said is row.dot if held else not said

    @precondition(lambda self: self.rows)
    @rule(data=st.data(), owner=OWNERS, outcome=OUTCOMES, delay=st.sampled_from([None, 0, 5]))
    def settle(self, data: st.DataObject, owner: str, outcome: Outcome, delay: int | None) -> None:
        """Say what became of a row, rightly or as somebody who does not hold it."""
        row = self._pick(data)
        next_at = None if delay is None else self._now(self.minute + delay)
        state = self.store.outbox.settle(row.key, owner, outcome, now=self._now(), next_at=next_at)
        if row.state is CLAIMED and row.owner == owner:
            self._settle_held(row, outcome, delay)
        assert row.state is state

    def _settle_held(self, row: Row, outcome: Outcome, delay: int | None) -> None:
        if isinstance(outcome, Fenced) and row.dot:
            return
        row.reaped = 0
        match outcome:
            case Sent():
                self._settle_model(row, ACCEPTED)
            case Refused():
                self._settle_model(row, FAILED)
                if outcome.suppress:
                    self.suppressed.add((row.address, "all"))
            case Deferred():
                row.attempts -= outcome.relay_fault
                self._settle_model(row, FAILED if delay is None else READY)
            case Uncertain():
                self._settle_model(row, UNCERTAIN)
            case Fenced():
                self._settle_model(row, READY)
        if row.state is READY:
            row.next_min = self.minute + (delay or 0)

    @rule(owners=st.sets(OWNERS))
    def reap(self, owners: set[str]) -> None:
        """Some workers are gone."""
        freed = self.store.outbox.reap(now=self._now(), owners=sorted(owners))
        expected = []
        for row in self.rows.values():
            if row.state is CLAIMED and (row.lease_min <= self.minute or row.owner not in owners):
                expected.append(row.key)
                row.reaped += not row.dot
                self._settle_model(row, UNCERTAIN if row.dot else POISON if row.reaped == 3 else READY)
        assert expected == freed

    @rule(minutes=st.sampled_from([0, 15]))
    def resend(self, minutes: int) -> None:
        """Send uncertain rows again."""
        made = self.store.outbox.resend_uncertain(now=self._now(), older_than=self._now(self.minute - minutes))
        expected = []
        for row in self.rows.values():
            if row.state is UNCERTAIN and not row.resent and row.settled_min < self.minute - minutes:
                row.state, row.resent, row.next_min = READY, True, self.minute
                expected.append(row.key)
        assert expected == made

    @rule(address=st.sampled_from(ADDRESSES), scope=st.sampled_from(SCOPES))
    def suppress(self, address: str, scope: str) -> None:
        """A reader leaves."""
        self.store.outbox.suppress(Suppression(address, scope, "unsubscribed", self._now()))
        self.suppressed.add((address, scope))

    @rule(address=st.sampled_from(ADDRESSES), scope=st.sampled_from(SCOPES))
    def lift(self, address: str, scope: str) -> None:
        """A reader comes back."""
        assert ((address, scope) in self.suppressed) is self.store.outbox.lift(address, scope, now=self._now())
        self.suppressed.discard((address, scope))

    @precondition(lambda self: self.rows)
    @rule(data=st.data(), state=st.sampled_from([READY, FAILED, UNCERTAIN, POISON, ACCEPTED]))
    def set_state(self, data: st.DataObject, state: DeliveryState) -> None:
        """A person decides."""
        row = self._pick(data)
        if row.state in (CLAIMED, ACCEPTED):
            with pytest.raises(StoreError):
                self.store.outbox.set_state(row.key, state, why="by hand", now=self._now())
            return
        self.store.outbox.set_state(row.key, state, why="by hand", now=self._now())
        row.resent = row.resent or (row.state is UNCERTAIN and state is READY)
        row.reaped = 0
        self._settle_model(row, state)
        row.next_min = self.minute if state is READY else row.next_min

    @rule(data=st.data(), outcome=OUTCOMES)
    @precondition(lambda self: self.rows)
    def roll_back(self, data: st.DataObject, outcome: Outcome) -> None:
        """A process dies in the middle of its transaction: nothing of it was ever there."""
        row = self._pick(data)
        with pytest.raises(ZeroDivisionError), self.store.transaction():  # noqa: PT012 # what is undone is the test
            self.store.outbox.claim("w1", now=self._now(), lease_until=self._now(), limit=2)
            self.store.outbox.mark_dot(row.key, "w1", now=self._now(), sha256="1" * 64)
            self.store.outbox.settle(row.key, "w1", outcome, now=self._now(), next_at=None)
            raise ZeroDivisionError

    def _pick(self, data: st.DataObject) -> Row:
        return self.rows[data.draw(st.sampled_from(sorted(self.rows)), label="row")]

    # -- what always holds

    @invariant()
    def every_row_is_what_it_should_be(self) -> None:
        """No row is lost, none is doubled, each is in the state that the model has."""
        found = {delivery.key: delivery for delivery in self.store.outbox.deliveries(limit=10_000)}
        assert self.rows.keys() == found.keys()
        for key, row in self.rows.items():
            delivery = found[key]
            phase = None if row.state is not CLAIMED else Phase.DOT if row.dot else Phase.ENVELOPE
            assert (row.state, phase, row.attempts, row.flagged) == (
                delivery.state,
                delivery.phase,
                delivery.attempts,
                delivery.flagged,
            )
            assert (self._now(row.next_min) if row.state is READY else None) == delivery.next_at
            assert (self._now(row.settled_min) if row.state not in (READY, CLAIMED) else None) == delivery.settled_at

    @invariant()
    def counts_are_the_rows(self) -> None:
        """The states add up to all rows, and the next wake-up is that of the next ready one."""
        states = [row.state for row in self.rows.values()]
        assert {state: states.count(state) for state in DeliveryState} == self.store.outbox.counts()
        ready = [row.next_min for row in self.rows.values() if row.state is READY]
        assert (self._now(min(ready)) if ready else None) == self.store.outbox.next_at()

    @invariant()
    def a_row_is_accepted_once(self) -> None:
        """The log never says that a row was taken twice."""
        for key in self.rows:
            outcomes = [attempt.outcome for attempt in self.store.outbox.attempts(key)]
            assert outcomes.count("sent") + outcomes.count("accepted") <= 1


OutboxMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestOutboxMachine = OutboxMachine.TestCase
