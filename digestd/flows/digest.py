"""What is due becomes digests in the outbox. Floor 4. Entry points: :func:`make_due`, :func:`make_now`.

A slot is served once. After downtime or a pause all missed slots make one digest, the newest's; the others are recorded as
covered by it. A batch of subscriptions is one transaction: slots, digests, items, outbox rows and cursors, or nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time, timedelta
from functools import lru_cache

from digestd.errors import DigestdError, StoreBusyError, StoreError
from digestd.faults import crash_point
from digestd.flows.make_digest import DigestMaker, Made, MailIdentity
from digestd.model.digest import DigestOptions
from digestd.model.subscription import EachSnapshot, Slot, SlotRecord, Subscription, SubscriptionState
from digestd.ports import Store
from digestd.render.mail import Templates
from digestd.schedule import find_zone, instant_of, next_slot, slots_between

log = logging.getLogger(__name__)

#: subscriptions served in one transaction: enough to share what they have in common, few enough to be quick
BATCH = 400

#: readers of one schedule have the same slots
_next_slot = lru_cache(maxsize=1024)(next_slot)
_slots_between = lru_cache(maxsize=1024)(slots_between)


@dataclass(frozen=True, slots=True)
class Kitchen:
    """All that digests are made with."""

    store: Store
    identity: MailIdentity
    options: DigestOptions
    templates: Templates

    def maker(self, now: datetime) -> DigestMaker:
        """Return a maker for the ledger as it is now."""
        return DigestMaker(self.store, self.identity, self.options, self.templates, now=now)


@dataclass(frozen=True, slots=True)
class Served:
    """What serving one subscription did."""

    subscription: Subscription
    slot: Slot | None
    made: Made | None = None
    coalesced: int = 0
    error: str = ""


def make_due(kitchen: Kitchen, *, now: datetime) -> list[Served]:
    """Serve every subscription that is due and return what that did; one that fails does not stop the others."""
    served: list[Served] = []
    makers = _Makers(kitchen, now)
    for batch in _batches(kitchen.store, now):
        served += _serve_batch(makers, batch, now)
    return served


class _Makers:
    """The maker of a run: batches share what it has made, as long as the ledger stands still."""

    def __init__(self, kitchen: Kitchen, now: datetime) -> None:
        self.kitchen = kitchen
        self._now = now
        self._maker: DigestMaker | None = None

    def current(self) -> DigestMaker:
        """Return the maker, inside a transaction; a new one if the ledger has grown."""
        if self._maker is None or self._maker.head != self.kitchen.store.history.head():
            self._maker = self.kitchen.maker(self._now)
        return self._maker

    def forget(self) -> None:
        """Make all anew: what it wrote was rolled back."""
        self._maker = None


def _batches(store: Store, now: datetime) -> Iterator[Sequence[Subscription]]:
    after = 0
    while batch := store.subscriptions.due(now, after=after, limit=BATCH):
        after = batch[-1].key or 0
        yield batch
    head, after = store.history.head(), 0
    while batch := store.subscriptions.waiting(head, after=after, limit=BATCH):
        after = batch[-1].key or 0
        yield batch


def _serve_batch(makers: _Makers, batch: Sequence[Subscription], now: datetime) -> list[Served]:
    store = makers.kitchen.store
    try:
        with store.transaction():
            served = serve(store, makers.current(), batch, now)
            crash_point("slot.open")
    except StoreBusyError:
        raise  # the next one would wait as long, and in vain
    except Exception as error:
        makers.forget()
        if len(batch) == 1:
            known = isinstance(error, DigestdError)
            log.error("subscription not served: %s subscription=%s", error, batch[0].public_id, exc_info=not known)
            return [Served(batch[0], None, error=str(error) or type(error).__name__)]
    else:
        crash_point("slot.done")
        return served
    # one of them cannot be served; the others can, and by halves it is found soon
    middle = len(batch) // 2
    return _serve_batch(makers, batch[:middle], now) + _serve_batch(makers, batch[middle:], now)


def serve(store: Store, maker: DigestMaker, batch: Sequence[Subscription], now: datetime) -> list[Served]:
    """Serve subscriptions inside the open transaction, all or none, and return what that did, in their order.

    They are read again there: another process may have served them since.
    """
    stored = store.subscriptions.read([subscription.key or 0 for subscription in batch])
    # one that was deleted meanwhile is named by the error of reading it alone
    now_stored = [stored.get(one.key or 0) or store.subscriptions.subscription(one.key or 0) for one in batch]
    served = {current.key: Served(current, None) for current in now_stored}
    orders: list[tuple[Subscription, Sequence[Slot]]] = []
    for current in now_stored:
        slots = missed_slots(current, now, maker.head) if current.state is SubscriptionState.ACTIVE else ()
        if slots:
            orders.append((current, slots))
        elif current.state is SubscriptionState.ACTIVE and not isinstance(current.schedule, EachSnapshot):
            # a clock that went back finds slots served already: the next one comes after those
            after = max(now, current.high_water_at or now)
            store.subscriptions.advance([replace(current, next_due_at=next_due(current, after))])
    made = maker.make_all([(current, slots[-1], len(slots) - 1) for current, slots in orders])
    maker.write_all(made)
    records: list[tuple[int, SlotRecord]] = []
    moved: list[Subscription] = []
    for (current, slots), one in zip(orders, made, strict=True):
        if one.digest is None and isinstance(current.schedule, EachSnapshot) and not one.passed_over:
            moved.append(replace(current, told_upto=maker.head))
            continue
        records += _slot_records(one, slots)
        moved.append(_moved(one, maker.head, now))
        served[current.key] = Served(moved[-1], one.slot, one, coalesced=len(slots) - 1)
        if current.paused_until is not None:  # a pause that is over is taken out
            store.subscriptions.put(moved[-1], now=now)
    store.subscriptions.record_all_slots(records)
    store.subscriptions.advance(moved)
    return [served[subscription.key] for subscription in batch]


def _slot_records(made: Made, slots: Sequence[Slot]) -> Iterator[tuple[int, SlotRecord]]:
    """Yield what becomes of slots, the last of which has this digest."""
    key, last = made.subscription.key or 0, slots[-1]
    for one in slots[:-1]:
        yield key, SlotRecord(one.label, one.due_at, coalesced_into=last.label)
    yield key, SlotRecord(last.label, last.due_at, digest_key=made.key if made.digest is not None else None)


def _moved(made: Made, head: int, now: datetime) -> Subscription:
    """Return a subscription that was served up to a ledger position."""
    current = made.subscription
    following = _next_slot(current.schedule, current.zone, max(now, made.slot.due_at))
    return replace(
        current,
        told_upto=head,
        welcomed=current.welcomed or made.digest is not None or current.preferences.first.kind == "none",
        high_water_at=made.slot.due_at,
        paused_until=None,
        next_due_at=following.due_at if following is not None else None,
    )


def dry_runs(kitchen: Kitchen, chosen: Sequence[Subscription] | None, *, now: datetime) -> list[Served]:
    """Return what serving would do, of some subscriptions whatever their schedule says, or of all that are due (None)."""
    maker = kitchen.maker(now)
    if chosen is None:
        due = [subscription for batch in _batches(kitchen.store, now) for subscription in batch]
        slots = [(subscription, missed_slots(subscription, now, maker.head)) for subscription in due]
        return [
            Served(
                subscription, found[-1], maker.make(subscription, found[-1], coalesced=len(found) - 1), len(found) - 1
            )
            for subscription, found in slots
            if found
        ]
    return [Served(one, slot := _slot_now(one, now, maker.head, by_hand=True), maker.make(one, slot)) for one in chosen]


def _slot_now(subscription: Subscription, now: datetime, head: int, *, by_hand: bool = False) -> Slot:
    """Return a slot of its own for this instant; one that tells more has another label, even at the same instant."""
    local = now.astimezone(find_zone(subscription.zone)).replace(tzinfo=None)
    return Slot(f"{local.isoformat(timespec='seconds')}~{head}{' by hand' if by_hand else ''}", now)


def missed_slots(subscription: Subscription, now: datetime, head: int) -> Sequence[Slot]:
    """Return the slots since the last one served, up to now; for one told at each snapshot, this very instant.

    Args:
        subscription: stored.
        now: the present instant.
        head: the ledger's newest position.
    """
    if isinstance(subscription.schedule, EachSnapshot):
        resumes = pause_end(subscription)
        if resumes is not None and now < resumes:
            return ()
        return (_slot_now(subscription, now, head),)
    after = subscription.high_water_at or subscription.created_at or now
    slots = _slots_between(subscription.schedule, subscription.zone, after, now)
    resumes = pause_end(subscription)
    return () if resumes is not None and (not slots or slots[-1].due_at < resumes) else slots


def next_due(subscription: Subscription, after: datetime) -> datetime | None:
    """Return when a subscription is due next: its first slot after an instant, and not before its pause is over."""
    resumes = pause_end(subscription)
    slot = _next_slot(subscription.schedule, subscription.zone, after)
    if slot is not None and resumes is not None and slot.due_at < resumes:
        slot = _next_slot(subscription.schedule, subscription.zone, resumes - timedelta(seconds=1))
    return slot.due_at if slot is not None else None


def pause_end(subscription: Subscription) -> datetime | None:
    """Return the instant at which a pause is over: midnight of its last day's morrow, in the reader's zone; None if none."""
    if subscription.paused_until is None:
        return None
    return instant_of(datetime.combine(subscription.paused_until, time()), find_zone(subscription.zone))


def make_now(kitchen: Kitchen, subscription: Subscription, *, now: datetime) -> Served:
    """Serve one subscription at once, whatever its schedule says; its next slot stays where it is.

    Raises:
        StoreError: it is not active.
    """
    assert subscription.key is not None
    with kitchen.store.transaction():
        current = kitchen.store.subscriptions.subscription(subscription.key)
        if current.state is not SubscriptionState.ACTIVE:
            raise StoreError(f"subscription {current.public_id}: expected an active one, found it {current.state}")
        maker = kitchen.maker(now)
        slot = _slot_now(current, now, maker.head, by_hand=True)
        made = maker.make(current, slot)
        maker.write(made)
        if made.digest is None and not made.passed_over:
            return Served(current, slot, made)
        key = made.key if made.digest is not None else None
        kitchen.store.subscriptions.record_slots(current.key or 0, [SlotRecord(slot.label, now, digest_key=key)])
        moved = replace(current, told_upto=maker.head, welcomed=current.welcomed or made.digest is not None)
        kitchen.store.subscriptions.put(moved, now=now)
        return Served(moved, slot, made)
