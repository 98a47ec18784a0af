"""Mail that came back changes to whom we send. Floor 4.

Entry points: :func:`take_mail`, :func:`take_maildir`, :func:`take_mailbox`.
Whom a mail is about is said by the signed token in the address that it came to, and by nothing else. The same mail taken
twice changes nothing.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from digestd.bounces import MOST_BYTES, BounceReport, ReportKind, read_report
from digestd.flows.confirm import CONFIRM_SCOPE, confirm_key
from digestd.flows.kept_mail import mark_seen, waiting_mails
from digestd.flows.subscribe import leave
from digestd.model.subscription import Subscription, SubscriptionState
from digestd.ports import Clock, Mailbox, Store
from digestd.tokens import Purpose, read_token

# it tells each of its steps, and a traceback of each mail that it can't read; such a mail is no report, and that is said
logging.getLogger("flufl.bounce").setLevel(logging.CRITICAL)

#: key id of the tokens that this history signs
_KEY_ID = "1"


class Effect(StrEnum):
    """What a mail did."""

    SUPPRESSED = "suppressed"  #: nothing more is sent to the address
    COUNTED = "counted"  #: one of the passing failures that together suppress
    LEFT = "left"  #: a subscription is ended
    IGNORED = "ignored"


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of one mail."""

    effect: Effect
    reason: str
    kind: ReportKind | None = None  #: None: no report at all
    subscription: Subscription | None = None  #: whom it is about, if that is proved
    digest_key: str | None = None  #: which of our mails came back, if that is known


def take_maildir(store: Store, maildir: Path, clock: Clock) -> Iterator[tuple[Path, Taken]]:
    """Take the mails of a Maildir that nobody has seen, and mark each as seen when what it did is on the disk.

    Raises:
        FetchError: it is no Maildir.
    """
    for file, body in waiting_mails(maildir, MOST_BYTES):
        # each with its own time: it is from when on nothing may be sent
        taken = take_mail(store, body, now=clock.now())
        mark_seen(file)
        yield file, taken


def take_mailbox(store: Store, mailbox: Mailbox, clock: Clock) -> Iterator[tuple[str, Taken]]:
    """Take the mails of a mailbox that nobody has seen, and mark each as seen when what it did is on the disk.

    Raises:
        MailboxError: the mailbox cannot be read; what was taken before stands, and is nothing new to the next look.
    """
    for name, body in mailbox.waiting(MOST_BYTES):
        taken = take_mail(store, body, now=clock.now())
        mailbox.mark_seen(name)
        yield name, taken


def take_mail(store: Store, body: bytes, addressed_to: Sequence[str] = (), *, now: datetime) -> Taken:
    """Do what a mail that came back asks for, in one transaction, and return what that was.

    Args:
        store: the history.
        body: the mail; what is behind the first 256 KiB does not count.
        addressed_to: envelope recipients; if none, those that its header names (Delivered-To, X-Original-To, To).
        now: the present instant.
    """
    report = read_report(body, addressed_to)
    if report is None:
        return Taken(Effect.IGNORED, "it is no report of a mail of ours")
    if report.token is None:
        return Taken(Effect.IGNORED, "its address carries no token", report.kind)
    purpose = Purpose.UNSUBSCRIBE if report.kind is ReportKind.UNSUBSCRIBE else Purpose.BOUNCE
    token = read_token({_KEY_ID: store.secret("tokens")}, report.token, purpose, now)
    if token is None:
        return Taken(Effect.IGNORED, f"its token is not one of ours for this purpose ({purpose})", report.kind)
    with store.transaction():
        if token.scope == CONFIRM_SCOPE and purpose is Purpose.BOUNCE:
            return _wish_came_back(store, token.subject, report, now=now)
        subscription = store.subscriptions.find_public(token.subject)
        if subscription is None:
            return Taken(Effect.IGNORED, "its subscription is not in this history", report.kind)
        if report.kind is ReportKind.UNSUBSCRIBE:
            return _leave(store, subscription, now=now)
        return _came_back(store, subscription, report, body, now=now)


def _leave(store: Store, subscription: Subscription, *, now: datetime) -> Taken:
    if subscription.state is SubscriptionState.ENDED:
        return Taken(Effect.IGNORED, "the subscription was ended before", ReportKind.UNSUBSCRIBE, subscription)
    leave(store, subscription, reason="unsubscribed", evidence="by mail", now=now)
    return Taken(Effect.LEFT, "the reader wants no more", ReportKind.UNSUBSCRIBE, subscription)


def _came_back(store: Store, subscription: Subscription, report: BounceReport, body: bytes, *, now: datetime) -> Taken:
    """Record a report of one of our mails, unless it says nothing about its reader, or is known."""
    ignored = _nothing_to_do(report)
    if ignored:
        return Taken(Effect.IGNORED, ignored, report.kind, subscription)
    reader = subscription.reader
    found = None
    if report.message_id and reader.key is not None:
        found = store.accounts.digest_of_mail(reader.key, report.message_id)
    # a report that does not say which mail it is about is known again by its own bytes
    name = found or f"report {hashlib.sha256(body[:MOST_BYTES]).hexdigest()[:32]}"
    taken = _record(store, reader.canonical, report, name, now=now)
    return replace(taken, subscription=subscription, digest_key=found)


def _wish_came_back(store: Store, public_id: str, report: BounceReport, *, now: datetime) -> Taken:
    """Record a report of a mail to confirm; the wish stays until it runs out, but its link is blocked with the address."""
    pending = store.confirmations.find(public_id)
    if pending is None:
        return Taken(Effect.IGNORED, "its wish is not in this history, or no longer", report.kind)
    ignored = _nothing_to_do(report)
    if ignored:
        return Taken(Effect.IGNORED, ignored, report.kind)
    # a wish has one mail, so that its key names the mail whatever the report says of it
    return _record(store, pending.reader.canonical, report, confirm_key(public_id), now=now)


def _record(store: Store, address: str, report: BounceReport, name: str, *, now: datetime) -> Taken:
    """Record a report under the name of its mail, unless it is known."""
    if store.accounts.has_bounce(address, str(report.kind), name):
        return Taken(Effect.IGNORED, "it was reported before", report.kind)
    said = f"{report.status} {report.diagnostic}".strip() or str(report.kind)
    dead = store.outbox.add_bounce(address, str(report.kind), at=now, evidence=said, digest_key=name)
    return Taken(Effect.SUPPRESSED if dead else Effect.COUNTED, said, report.kind)


def _nothing_to_do(report: BounceReport) -> str:
    """Return why a report changes nothing, "" if it does."""
    if report.kind is ReportKind.DELAYED:
        return "the mail is delayed only"
    if report.kind is ReportKind.AUTO_REPLY:
        return "it is an automatic reply"
    if report.policy and report.kind is ReportKind.SOFT:
        return f"refused for what we are, which says nothing about the reader: {report.status} {report.diagnostic}"
    return ""
