"""Readers change what they get, leave, and come back by their own links. Floor 4.

Entry points: :func:`save`, :func:`leave_by_link`, :func:`undo_leave`. Each can be asked again and does nothing more.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from digestd.faults import crash_point
from digestd.flows.digest import next_due
from digestd.flows.subscribe import Wish, follow, leave, pause
from digestd.model.delivery import DeliveryState, Suppression
from digestd.model.forms import PreferenceChange
from digestd.model.subscription import Subscription, SubscriptionState
from digestd.model.topic import Vocabulary
from digestd.ports import Store

#: how long a click on "Undo" takes back a click on "Unsubscribe"
UNDO_FOR = timedelta(hours=24)

#: what a suppression rests on that a reader's own link made, and that the same reader's "Undo" may lift
_BY_LINK = "by the link of a mail"

#: deliveries that were held back by a click and are looked through when it is undone
_MOST_HELD = 1000


def save(
    store: Store, public_id: str, change: PreferenceChange, vocabulary: Vocabulary, *, now: datetime
) -> Subscription | None:
    """Make a subscription what a form asks for, in one transaction; None if it is not active any more.

    Raises:
        ConfigError: the zone cannot be used; nothing is written.
    """
    with store.transaction():
        current = active_of(store, public_id)
        if current is None:
            return None
        wish = Wish(
            current.reader,
            change.topics,
            change.schedule,
            change.zone,
            change.preferences,
            declared=current.declared,
        )
        saved = follow(store, wish, vocabulary, now=now).subscription
        if saved.paused_until != change.paused_until:
            saved = pause(store, current.reader, change.paused_until, now=now)
        return saved


def active_of(store: Store, public_id: str) -> Subscription | None:
    """Return an active subscription; None if there is none of this public id, or it is ended."""
    found = store.subscriptions.find_public(public_id)
    return found if found is not None and found.state is SubscriptionState.ACTIVE else None


def leave_by_link(store: Store, public_id: str, *, now: datetime) -> bool:
    """End a subscription and what waits for it in the outbox; return whether it stood until now."""
    with store.transaction():
        found = store.subscriptions.find_public(public_id)
        if found is None or found.state is SubscriptionState.ENDED:
            return False
        leave(store, found, reason="unsubscribed", evidence=_BY_LINK, now=now)
    crash_point("leave.done")
    return True


def undo_leave(store: Store, public_id: str, *, now: datetime) -> Subscription | None:
    """Take a reader's own click back, for a day; None where there is none to take back.

    What was held back because of the click goes out after all: the reader was never told it. One who follows by another
    subscription meanwhile, or whose mail came back, stays as it is.
    """
    with store.transaction():
        found = store.subscriptions.find_public(public_id)
        if found is None or found.reader.key is None:
            return None
        if found.state is SubscriptionState.ACTIVE:
            return found
        click = _click(store, found, now)
        others = store.subscriptions.subscriptions(reader=found.reader.key)
        if click is None or any(row.state is not SubscriptionState.ENDED for row in others):
            return None
        store.outbox.lift(found.reader.canonical, found.public_id, now=now)
        for row in store.outbox.deliveries(state=DeliveryState.SUPPRESSED, limit=_MOST_HELD):
            held = row.reader == found.reader.key and row.settled_at is not None and row.settled_at >= click.at
            if held and row.kind != "confirm":
                store.outbox.set_state(row.key, DeliveryState.READY, why="unsubscribing was undone", now=now)
        back = replace(found, state=SubscriptionState.ACTIVE)
        due = next_due(back, back.high_water_at or now)
        return store.subscriptions.put(replace(back, next_due_at=due), now=now)


def _click(store: Store, subscription: Subscription, now: datetime) -> Suppression | None:
    """Return the suppression that a reader's own click made within the last day, if nothing else stands with it."""
    standing = [
        one
        for one in store.outbox.suppressions(subscription.reader.canonical)
        if one.scope in {"all", subscription.public_id}
    ]
    if len(standing) != 1 or standing[0].scope != subscription.public_id or standing[0].evidence != _BY_LINK:
        return None
    return standing[0] if now - standing[0].at < UNDO_FOR else None
