"""Nobody gets digests who did not ask for them: a wish, a mail with one link, a click. Floor 4.

Entry points: :func:`ask`, :func:`confirm`, :func:`forget_stale`. What :func:`ask` does for an address says nothing to who
asked: known, unknown or suppressed, it is the same, and what differs reaches the address alone.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum

from digestd.errors import ConfigError
from digestd.faults import crash_point
from digestd.flows.digest import Kitchen
from digestd.flows.subscribe import Followed, Wish, follow
from digestd.forms import limit_key
from digestd.model.delivery import Envelope
from digestd.model.forms import PendingFollow
from digestd.model.subscription import Preferences, Reader, Schedule, Subscription, SubscriptionState
from digestd.model.topic import Topic, Vocabulary
from digestd.ports import Store
from digestd.render.confirm_mail import ConfirmMail, render_confirm
from digestd.render.mime import MailHeaders, Skeleton, message_id, placeholder, skeleton_of
from digestd.render.outgoing import pack_content, personal_fields
from digestd.schedule import in_words
from digestd.tokens import Purpose, bounce_address, make_token

log = logging.getLogger(__name__)

#: how long a link to confirm works, and a wish is kept
VALID_FOR = timedelta(hours=48)
#: scope of the tokens to which mails to confirm come back; their subject is the wish
CONFIRM_SCOPE = "confirm"


@dataclass(frozen=True, slots=True)
class MailLimits:
    """How many mails strangers can cause (RELIABILITY 3.5)."""

    pause: timedelta = timedelta(hours=24)  #: between two to one address
    most: int = 3  #: to one address
    window: timedelta = timedelta(days=90)
    hourly: int = 200  #: to all addresses


LIMITS = MailLimits()


@dataclass(frozen=True, slots=True)
class Asked:
    """What somebody asks for in a reader's name."""

    reader: Reader
    topic: Topic
    schedule: Schedule
    zone: str = "UTC"


class Outcome(StrEnum):
    """What a click on the button to confirm did."""

    DONE = "done"
    AGAIN = "again"  #: it was done before
    GONE = "gone"  #: no such wish, or no longer
    BLOCKED = "blocked"  #: no mail can go to the address: it came back, or its reader complained


@dataclass(frozen=True, slots=True)
class Confirmed:
    """What a click did."""

    outcome: Outcome
    subscription: Subscription | None = None  #: as it stands; None where there is none


# -- asking


def is_busy(store: Store, *, now: datetime, limits: MailLimits = LIMITS) -> bool:
    """Return whether so many mails went to strangers in the last hour that nobody is served."""
    return store.confirmations.mails(since=now - timedelta(hours=1)) >= limits.hourly


def ask(kitchen: Kitchen, asked: Asked, *, now: datetime, limits: MailLimits = LIMITS) -> bool:
    """Keep a wish and put its mail into the outbox, unless a limit forbids it; return whether that was done.

    An address that mail must not go to gets its row in the outbox too, where it is accounted for as suppressed.

    Raises:
        ConfigError: the settings name no public address, so that no link could be made.
    """
    store = kitchen.store
    if kitchen.identity.base_url is None:
        raise ConfigError("web.base_url: expected the public address that links to confirm lead to, found none")
    mark = hmac.new(store.secret("confirm"), limit_key(asked.reader).encode(), hashlib.sha256).hexdigest()
    if not _may_mail(store, mark, now, limits):  # looked at first: a flood must not take the write lock each time
        return False
    with store.transaction():
        if not _may_mail(store, mark, now, limits):
            return False
        forget_stale(store, now=now, limits=limits)
        # a known reader keeps name and spelling: a stranger has no say in them, and the mail goes where digests go
        known = store.subscriptions.find_reader(asked.reader.canonical)
        reader = known or store.subscriptions.put_reader(replace(asked.reader, name=""), now=now)
        wish = PendingFollow(reader, (asked.topic.slug,), now, now + VALID_FOR, asked.schedule, asked.zone)
        pending = store.confirmations.add(wish, mark)
        store.outbox.enqueue([_envelope(kitchen, pending, asked.topic, now)], now=now)
    return True


def forget_stale(store: Store, *, now: datetime, limits: MailLimits = LIMITS) -> int:
    """Delete wishes that nobody confirmed in time, with addresses known by them alone; return how many wishes."""
    return store.confirmations.forget(now=now, counted_before=now - limits.window)


def _may_mail(store: Store, mark: str, now: datetime, limits: MailLimits) -> bool:
    mails = store.confirmations.mails_to(mark, since=now - limits.window)
    if len(mails) >= limits.most or (mails and mails[-1] > now - limits.pause):
        return False
    if is_busy(store, now=now, limits=limits):
        log.warning("no mail to confirm: the limit of all addresses is reached limit=%d", limits.hourly)
        return False
    return True


def confirm_key(public_id: str) -> str:
    """Return the name under which the mail of a wish stands in the outbox."""
    return f"confirm|{public_id}"


def _envelope(kitchen: Kitchen, pending: PendingFollow, topic: Topic, now: datetime) -> Envelope:
    """Return the outbox row of a wish; its bodies are shared by all who wish the same."""
    store, identity, reader = kitchen.store, kitchen.identity, pending.reader
    assert reader.key is not None
    mail = ConfirmMail(
        name=identity.name,
        topics=(topic.name,),
        schedule=in_words(pending.schedule, pending.zone),
        hours=int(VALID_FOR.total_seconds() // 3600),
        language=kitchen.options.language,
    )
    hidden = hmac.new(store.secret("render"), f"confirm|{mail!r}".encode(), hashlib.sha256).hexdigest()
    skeleton = _skeleton(kitchen, mail, hidden)
    tokens, key = store.secret("tokens"), confirm_key(pending.public_id)
    link = make_token(tokens, Purpose.CONFIRM, pending.public_id, expires_at=pending.expires_at)
    sender = identity.sender
    if identity.bounce is not None:
        token = make_token(tokens, Purpose.BOUNCE, pending.public_id, scope=CONFIRM_SCOPE)
        sender = bounce_address(identity.bounce, token, reader.envelope)
    headers = MailHeaders(
        sender=identity.sender,
        sender_name=identity.sender_name,
        recipient=reader.envelope,
        reply_to=identity.reply_to,
        date=now,
        message_id=message_id(store.secret("instance").hex(), "confirm", key, str(reader.key), identity.domain),
        key=hidden,
    )
    values = {
        placeholder("link", hidden): f"{identity.base_url}/confirm/{link}",
        placeholder("address", hidden): reader.address,
    }
    return Envelope(
        kind="confirm",
        digest_key=key,
        reader=reader.key,
        recipient=reader.envelope,
        sender=sender,
        message_id=headers.message_id,
        fields=personal_fields(headers, values, skeleton=skeleton, sign=identity.sign),
        content=store.outbox.put_content(pack_content(skeleton), now=now),
        next_at=now,
        smtputf8=reader.smtputf8,
    )


def _skeleton(kitchen: Kitchen, mail: ConfirmMail, hidden: str) -> Skeleton:
    parts = render_confirm(
        mail,
        link=placeholder("link", hidden),
        address=placeholder("address", hidden),
        templates=kitchen.templates,
    )
    return skeleton_of(parts, hidden)


# -- confirming


def pending_of(store: Store, public_id: str, *, now: datetime) -> PendingFollow | None:
    """Return a wish that can still be confirmed, or was; None if there is none."""
    pending = store.confirmations.find(public_id)
    return pending if pending is not None and now < pending.expires_at else None


def wished(store: Store, pending: PendingFollow) -> Wish:
    """Return what confirming makes of a wish: of a reader who follows already, one topic more and nothing else."""
    current = current_of(store, pending.reader)
    if current is None:
        return Wish(pending.reader, pending.topics, pending.schedule, pending.zone, Preferences())
    topics = (*current.topics, *(slug for slug in pending.topics if slug not in current.topics))
    return Wish(current.reader, topics, current.schedule, current.zone, current.preferences, declared=current.declared)


def current_of(store: Store, reader: Reader) -> Subscription | None:
    """Return a reader's subscription that is not ended; None if there is none."""
    rows = store.subscriptions.subscriptions(reader=reader.key) if reader.key is not None else ()
    return next((row for row in rows if row.state is not SubscriptionState.ENDED), None)


def confirm(store: Store, public_id: str, vocabulary: Vocabulary, *, now: datetime) -> Confirmed:
    """Make the subscription of a wish, once; a reader who left before is let in again.

    An address whose mail came back, or whose reader complained, stays as it is: a link in a mail from before says nothing
    against that.
    """
    with store.transaction():
        pending = pending_of(store, public_id, now=now)
        if pending is None:
            return Confirmed(Outcome.GONE)
        if pending.done_at is not None:
            return Confirmed(Outcome.AGAIN, current_of(store, pending.reader))
        standing = [one for one in store.outbox.suppressions(pending.reader.canonical) if one.scope == "all"]
        if any(one.reason != "unsubscribed" for one in standing):
            return Confirmed(Outcome.BLOCKED)
        for one in standing:
            store.outbox.lift(pending.reader.canonical, one.scope, now=now)
        followed: Followed = follow(store, wished(store, pending), vocabulary, now=now)
        store.confirmations.settle(public_id, now=now)
        crash_point("confirm.open")
    crash_point("confirm.done")
    return Confirmed(Outcome.DONE, followed.subscription)
