"""Readers come, change and leave. Floor 4. Entry points: :func:`follow`, :func:`unfollow`, :func:`pause`, :func:`reconcile`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime

from digestd.addresses import channel_name
from digestd.errors import NotFoundError
from digestd.filters import FilterPreview, preview
from digestd.flows.digest import next_due
from digestd.flows.follow import start_topic
from digestd.model.delivery import Suppression
from digestd.model.subscription import (
    Filter,
    Preferences,
    Reader,
    Schedule,
    Subscription,
    SubscriptionState,
)
from digestd.model.topic import Topic, Vocabulary
from digestd.ports import Store
from digestd.schedule import find_zone

#: papers that a filter is tried on before it is saved
_PREVIEW_PAPERS = 200


@dataclass(frozen=True, slots=True)
class Wish:
    """What a reader wants to follow, and how."""

    reader: Reader
    topics: tuple[str, ...]  #: names or slugs, in the reader's order
    schedule: Schedule
    zone: str
    preferences: Preferences
    declared: bool = False


@dataclass(frozen=True, slots=True)
class Followed:
    """What following did."""

    subscription: Subscription
    added: bool
    started: tuple[str, ...] = ()  #: names of topics that nobody followed before
    preview: FilterPreview | None = None  #: what the filter would have hidden


def follow(store: Store, wish: Wish, vocabulary: Vocabulary, *, now: datetime) -> Followed:
    """Add a subscription, or change the reader's one to these topics and preferences.

    A topic that is new to the reader is told from now on; those followed before go on where they were. What the first
    digest holds is decided by ``preferences.first``.

    Raises:
        ConfigError: the zone or the filter cannot be used; nothing is written.
    """
    find_zone(wish.zone)
    with store.transaction():
        topics, started = _topics(store, wish.topics, vocabulary, now)
        reader = store.subscriptions.put_reader(wish.reader, now=now)
        head = store.history.head()
        known = _current(store, reader)
        made = _new(wish, reader, topics, head, now) if known is None else _changed(known, wish, topics, head)
        if known is not None and (made.schedule, made.zone) != (known.schedule, known.zone):
            # the new schedule begins now: it had no slots that could have been missed
            made = replace(made, high_water_at=now)
        store.outbox.lift(reader.canonical, made.public_id or "all", now=now)
        if channel_name(reader.address) is not None:  # it can confirm nothing: the operator's word is what there is
            store.outbox.lift(reader.canonical, "all", now=now)
        # from the last slot served, not from now: one that is due already stays due
        made = replace(made, next_due_at=next_due(made, made.high_water_at or now))
        saved = store.subscriptions.put(made, now=now)
    tried = filter_preview(store, topics, wish.preferences.filter)
    return Followed(saved, added=known is None, started=started, preview=tried)


def filter_preview(store: Store, topics: Sequence[Topic], wanted: Filter) -> FilterPreview | None:
    """Return what a filter would have hidden of the topics' latest papers; None for no filter."""
    if not wanted.include and not wanted.exclude:
        return None
    papers = {
        row.known.key: row.known.paper
        for topic in topics
        for row in store.history.papers(topic.slug, limit=_PREVIEW_PAPERS)
    }
    return preview(wanted, papers.values())


def unfollow(store: Store, reader: Reader, topics: Sequence[str], *, now: datetime) -> Subscription | None:
    """Take topics from a reader's subscription, all of it without any, and return what is left; None if nothing is.

    Raises:
        NotFoundError: the reader follows nothing, or not this topic.
    """
    with store.transaction():
        current = _current(store, reader)
        if current is None:
            raise NotFoundError(f"reader {reader.address}: expected a subscription, found none")
        gone = {_slug(store, name) for name in topics}
        missing = gone - set(current.topics)
        if missing:
            raise NotFoundError(
                f"reader {reader.address}: expected topics that are followed, found {sorted(missing)[0]}"
            )
        left = tuple(slug for slug in current.topics if slug not in gone) if topics else ()
        if left:
            return store.subscriptions.put(replace(current, topics=left), now=now)
        leave(store, current, reason="unsubscribed", evidence="by the operator", now=now)
    return None


def leave(store: Store, subscription: Subscription, *, reason: str, evidence: str, now: datetime) -> None:
    """End a subscription inside the open transaction; what waits in the outbox for it is not sent any more."""
    store.subscriptions.put(
        replace(subscription, state=SubscriptionState.ENDED, next_due_at=None, declared=False), now=now
    )
    store.outbox.suppress(
        Suppression(subscription.reader.canonical, subscription.public_id, reason, now, evidence=evidence)
    )


def pause(store: Store, reader: Reader, until: date | None, *, now: datetime) -> Subscription:
    """Stop a reader's digests until a day, or let them go on; what came meanwhile is told in one digest after it.

    Raises:
        NotFoundError: the reader follows nothing.
    """
    with store.transaction():
        current = _current(store, reader)
        if current is None:
            raise NotFoundError(f"reader {reader.address}: expected a subscription, found none")
        paused = replace(current, paused_until=until)
        after = current.high_water_at or now
        return store.subscriptions.put(replace(paused, next_due_at=next_due(paused, after)), now=now)


def reconcile(store: Store, wishes: Sequence[Wish], vocabulary: Vocabulary, *, now: datetime) -> tuple[str, ...]:
    """Bring the subscriptions that the settings declare into the store, and return what a person should know.

    One that is not declared any more is never taken away in silence: it stays, and that is said. One whose reader has left
    is not brought back.
    """
    notes = []
    addresses = {wish.reader.canonical for wish in wishes}
    for wish in wishes:
        known = store.subscriptions.find_reader(wish.reader.address)
        rows = store.subscriptions.subscriptions(reader=known.key) if known is not None else ()
        if rows and all(row.state is SubscriptionState.ENDED for row in rows):
            notes.append(f"{wish.reader.address} is declared but has unsubscribed; nothing is sent")
            continue
        current = next((row for row in rows if row.state is SubscriptionState.ACTIVE), None)
        if current is None or not _says(store, current, wish):
            follow(store, wish, vocabulary, now=now)
    left = [row for row in store.subscriptions.subscriptions(active_only=True) if row.declared]
    notes += [
        f"{row.reader.address} is not declared any more but still follows; 'digestd unfollow' ends it"
        for row in left
        if row.reader.canonical not in addresses
    ]
    return tuple(notes)


def _says(store: Store, current: Subscription, wish: Wish) -> bool:
    """Whether a stored subscription is what the settings declare."""
    found = [store.history.find_topic(name) for name in wish.topics]
    slugs = tuple(topic.slug for topic in found if topic is not None)
    return (
        len(slugs) == len(wish.topics)
        and (current.topics, current.schedule, current.zone) == (slugs, wish.schedule, wish.zone)
        and current.preferences == wish.preferences
        and current.declared
        and current.reader.name == wish.reader.name
    )


def _new(wish: Wish, reader: Reader, topics: Sequence[Topic], head: int, now: datetime) -> Subscription:
    return Subscription(
        reader=reader,
        topics=tuple(topic.slug for topic in topics),
        schedule=wish.schedule,
        zone=wish.zone,
        preferences=wish.preferences,
        told_upto=head,
        high_water_at=now,
        declared=wish.declared,
        welcomed=wish.preferences.first.kind == "none",
        created_at=now,
        followed_from=tuple((topic.slug, head) for topic in topics),
    )


def _changed(known: Subscription, wish: Wish, topics: Sequence[Topic], head: int) -> Subscription:
    before = dict(known.followed_from)
    slugs = tuple(topic.slug for topic in topics)
    return replace(
        known,
        reader=replace(known.reader, name=wish.reader.name or known.reader.name),
        topics=slugs,
        schedule=wish.schedule,
        zone=wish.zone,
        preferences=wish.preferences,
        declared=wish.declared,
        # a topic that was followed all the time keeps its place; one that is new, or came back, begins now
        followed_from=tuple(
            (slug, before[slug] if slug in known.topics and slug in before else head) for slug in slugs
        ),
    )


def _topics(
    store: Store, names: Sequence[str], vocabulary: Vocabulary, now: datetime
) -> tuple[tuple[Topic, ...], tuple[str, ...]]:
    """Return the topics of these names, each once, those that are not known yet made; and the names of the made ones."""
    found: dict[str, Topic] = {}
    started = []
    for name in names:
        topic = store.history.find_topic(name)
        if topic is None:
            topic = start_topic(store, Topic(slug="", name=name), vocabulary, now=now)
            started.append(name)
        found[topic.slug] = topic
    return tuple(found.values()), tuple(started)


def _slug(store: Store, name: str) -> str:
    topic = store.history.find_topic(name)
    if topic is None:
        raise NotFoundError(f"topic '{name}': expected a topic of the history, found none")
    return topic.slug


def _current(store: Store, reader: Reader) -> Subscription | None:
    """Return a reader's subscription that is not ended; None if there is none."""
    known = store.subscriptions.find_reader(reader.address)
    if known is None:
        return None
    rows = store.subscriptions.subscriptions(reader=known.key)
    return next((row for row in rows if row.state is not SubscriptionState.ENDED), None)
