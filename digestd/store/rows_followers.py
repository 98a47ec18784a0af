"""Readers, subscriptions, digests and deliveries to columns and back. Floor 3; only the store sees rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from datetime import date, time
from functools import lru_cache
from typing import Any

from digestd.errors import StoreError
from digestd.model.delivery import (
    Attempt,
    Delivery,
    DeliveryState,
    DigestRecord,
    Envelope,
    Phase,
    Reply,
    Suppression,
    ToldItem,
)
from digestd.model.subscription import (
    Cron,
    Daily,
    EachSnapshot,
    Filter,
    FilterRule,
    First,
    Monthly,
    Preferences,
    Reader,
    Schedule,
    SlotRecord,
    Subscription,
    SubscriptionState,
    Weekly,
)
from digestd.store.rows import instant, iso, maybe_date, maybe_instant, to_instant

Columns = Mapping[str, Any]

_ENVELOPE = tuple(field.name for field in fields(Envelope))

#: name of a schedule's kind in the store -> its type
_SCHEDULES: dict[str, type[Schedule]] = {
    "daily": Daily,
    "weekly": Weekly,
    "monthly": Monthly,
    "cron": Cron,
    "each_snapshot": EachSnapshot,
}
_KINDS = {type_: name for name, type_ in _SCHEDULES.items()}


def schedule_text(schedule: Schedule) -> str:
    """Return a schedule as JSON text."""
    record: dict[str, Any] = {"kind": _KINDS[type(schedule)]} | asdict(schedule)
    return json.dumps({name: _plain(value) for name, value in record.items()})


def _plain(value: object) -> object:
    return value.isoformat() if isinstance(value, time | date) else value


@lru_cache(maxsize=1024)  # many subscriptions have the same one
def to_schedule(text: str) -> Schedule:
    """Return the schedule that :func:`schedule_text` wrote; StoreError if this digestd does not know its kind."""
    record: dict[str, Any] = json.loads(text)
    kind = record.pop("kind")
    if kind not in _SCHEDULES:
        raise StoreError(f"schedule of a subscription: expected one of {', '.join(_SCHEDULES)}, found {kind!r}")
    if "at" in record:
        record["at"] = time.fromisoformat(record["at"])
    if "days" in record:
        record["days"] = tuple(record["days"])
    return _SCHEDULES[kind](**record)


def preferences_text(preferences: Preferences) -> str:
    """Return preferences as JSON text, defaults too: what a reader chose stays when a default changes."""
    record = asdict(preferences)
    record["first"]["since"] = iso(preferences.first.since)
    return json.dumps(record, ensure_ascii=False)


@lru_cache(maxsize=1024)  # as above
def to_preferences(text: str) -> Preferences:
    """Return the preferences that :func:`preferences_text` wrote; fields that are newer than the row have their default."""
    record: dict[str, Any] = json.loads(text)
    first, rules = record.pop("first", {}), record.pop("filter", {})
    return Preferences(
        **record,
        first=First(**first | {"since": maybe_date(first.get("since"))}),
        filter=Filter(**{name: tuple(FilterRule(**rule) for rule in some) for name, some in rules.items()}),
    )


def reader_columns(reader: Reader) -> dict[str, Any]:
    """Return a reader's columns but its key."""
    return {
        "canonical": reader.canonical,
        "address": reader.address,
        "envelope": reader.envelope,
        "name": reader.name,
        "smtputf8": int(reader.smtputf8),
    }


def to_reader(row: Columns, *, key: str = "id") -> Reader:
    """Return a reader from its row, or from a joined one that has its key in another column."""
    return Reader(
        address=row["address"],
        envelope=row["envelope"],
        name=row["name"],
        smtputf8=bool(row["smtputf8"]),
        key=row[key],
    )


def subscription_columns(subscription: Subscription) -> dict[str, Any]:
    """Return a subscription's columns but its key, public id, reader, topics and making."""
    return progress_columns(subscription) | {
        "schedule": schedule_text(subscription.schedule),
        "each_snapshot": int(isinstance(subscription.schedule, EachSnapshot)),
        "zone": subscription.zone,
        "preferences": preferences_text(subscription.preferences),
        "state": str(subscription.state),
        "paused_until": iso(subscription.paused_until),
        "declared": int(subscription.declared),
        "followed_from": json.dumps(subscription.followed_from),
    }


def progress_columns(subscription: Subscription) -> dict[str, Any]:
    """Return the columns that say how far a subscription was told."""
    return {
        "told_upto": subscription.told_upto,
        "high_water_at": maybe_instant(subscription.high_water_at),
        "next_due_at": maybe_instant(subscription.next_due_at),
        "welcomed": int(subscription.welcomed),
    }


def to_subscription(row: Columns, topics: Sequence[str]) -> Subscription:
    """Return a subscription from its row joined with its reader's, and its topics' slugs in order."""
    return Subscription(
        reader=to_reader(row, key="reader_id"),
        topics=tuple(topics),
        schedule=to_schedule(row["schedule"]),
        zone=row["zone"],
        preferences=to_preferences(row["preferences"]),
        key=row["id"],
        public_id=row["public_id"],
        state=SubscriptionState(row["state"]),
        told_upto=row["told_upto"],
        high_water_at=to_instant(row["high_water_at"]) if row["high_water_at"] else None,
        next_due_at=to_instant(row["next_due_at"]) if row["next_due_at"] else None,
        paused_until=maybe_date(row["paused_until"]),
        declared=bool(row["declared"]),
        welcomed=bool(row["welcomed"]),
        created_at=to_instant(row["created_at"]),
        followed_from=tuple((slug, position) for slug, position in json.loads(row["followed_from"])),
    )


def slot_columns(key: int, slot: SlotRecord) -> dict[str, Any]:
    """Return a slot's columns."""
    return {
        "subscription": key,
        "label": slot.label,
        "due_at": instant(slot.due_at),
        "digest_key": slot.digest_key,
        "coalesced_into": slot.coalesced_into,
    }


def to_slot(row: Columns) -> SlotRecord:
    """Return a slot from its row."""
    return SlotRecord(
        label=row["label"],
        due_at=to_instant(row["due_at"]),
        digest_key=row["digest_key"],
        coalesced_into=row["coalesced_into"],
    )


def digest_columns(record: DigestRecord) -> dict[str, Any]:
    """Return a digest's columns but its key in the history."""
    return {
        "digest_key": record.key,
        "subscription": record.subscription,
        "after": record.after,
        "upto": record.upto,
        "since": record.since,
        "until": record.until,
        "subject": record.subject,
        "made_at": instant(record.made_at),
        "mailed": int(record.mailed),
    }


def to_digest(row: Columns) -> DigestRecord:
    """Return a digest from its row, without items."""
    return DigestRecord(
        key=row["digest_key"],
        subscription=row["subscription_id"],
        after=row["after_position"],
        upto=row["upto"],
        since=row["since"],
        until=row["until"],
        subject=row["subject"],
        made_at=to_instant(row["made_at"]),
        mailed=bool(row["mailed"]),
    )


def to_item(row: Columns) -> ToldItem:
    """Return a told item from its row joined with its topic's."""
    return ToldItem(paper=row["paper_id"], topic=row["slug"], section=row["section"], position=row["position"])


def envelope_columns(envelope: Envelope) -> dict[str, Any]:
    """Return the columns of an outbox row that its envelope gives."""
    record = {name: getattr(envelope, name) for name in _ENVELOPE}
    return record | {"next_at": instant(envelope.next_at), "smtputf8": int(envelope.smtputf8)}


def to_envelope(row: Columns) -> Envelope:
    """Return the envelope of an outbox row."""
    return Envelope(
        kind=row["kind"],
        digest_key=row["digest_key"],
        reader=row["reader_id"],
        recipient=row["recipient"],
        sender=row["sender"],
        message_id=row["message_id"],
        fields=row["fields"],
        content=row["content"],
        next_at=to_instant(row["next_at"]),
        smtputf8=bool(row["smtputf8"]),
        scope=row["scope"],
    )


def to_delivery(row: Columns) -> Delivery:
    """Return a delivery from its outbox row."""
    state = DeliveryState(row["state"])
    return Delivery(
        key=row["id"],
        kind=row["kind"],
        digest_key=row["digest_key"],
        reader=row["reader_id"],
        recipient=row["recipient"],
        message_id=row["message_id"],
        state=state,
        attempts=row["attempts"],
        next_at=to_instant(row["next_at"]) if state is DeliveryState.READY else None,
        phase=Phase(row["phase"]) if row["phase"] else None,
        created_at=to_instant(row["created_at"]),
        settled_at=to_instant(row["settled_at"]) if row["settled_at"] else None,
        reply=to_reply(row),
        why=row["why"],
        flagged=bool(row["flagged"]),
        owner=row["owner"],
        sha256=row["sha256"],
        other_bytes=row["other_bytes"],
    )


def to_reply(row: Columns) -> Reply | None:
    """Return what the relay answered last, None if it did not."""
    return None if row["reply_code"] is None else Reply(row["reply_code"], row["reply_text"])


def to_attempt(row: Columns) -> Attempt:
    """Return an attempt from its row."""
    return Attempt(
        number=row["number"],
        outcome=row["outcome"],
        ended_at=to_instant(row["ended_at"]),
        owner=row["owner"],
        dot_at=to_instant(row["dot_at"]) if row["dot_at"] else None,
        reply=to_reply(row),
        why=row["why"],
        sha256=row["sha256"],
    )


def to_suppression(row: Columns) -> Suppression:
    """Return a suppression from its row."""
    return Suppression(
        address=row["address"],
        scope=row["scope"],
        reason=row["reason"],
        at=to_instant(row["at"]),
        evidence=row["evidence"],
        lifted_at=to_instant(row["lifted_at"]) if row["lifted_at"] else None,
    )
