"""The operator is told what is not well, and when it is over. Floor 4. Entry points: `find_troubles`, `tell_operator`.

By the same outbox as everything else, as a kind of its own, and never to readers. That a trouble was told and the mail that
tells it are one transaction: whatever crashes, it is told once.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from digestd.flows.digest import Kitchen
from digestd.flows.overview import AUDITED, Overview
from digestd.model.delivery import DeliveryState, Envelope
from digestd.model.source import HealthState
from digestd.model.subscription import Reader
from digestd.model.trouble import KnownTrouble, Trouble
from digestd.ports import Store
from digestd.render.mime import MailHeaders, message_id, skeleton_of
from digestd.render.outgoing import pack_content, personal_fields
from digestd.render.trouble_mail import render_troubles, trouble_mail
from digestd.troubles import Look, after_look, may_mail

log = logging.getLogger(__name__)

KIND = "trouble"

_BROKEN = frozenset({HealthState.BROKEN, HealthState.NOT_A_TOPIC_PAGE, HealthState.STALE})

#: share of mails refused for what we are that is a trouble, and how many it takes to speak of a share
_MOST_REFUSED = 0.02
_LEAST_REFUSED = 3


@dataclass(frozen=True, slots=True)
class Told:
    """What a look at the troubles did."""

    look: Look
    mails: int = 0  #: put into the outbox


def find_troubles(overview: Overview, *, patience: timedelta, holds: bool = False) -> list[Trouble]:
    """Return what of an overview is not well.

    Args:
        overview: how everything is.
        patience: how long a source may be broken or stale until its operator is told.
        holds: whether deliveries of unknown fate wait for a person, and are not sent again by themselves.
    """
    found = [
        Trouble(f"source {one.spec.name}", f"{str(one.health.state).replace('_', ' ')}: {one.health.why}")
        for one in overview.sources
        if one.health.state in _BROKEN and (one.health.since or overview.now) + patience <= overview.now
    ]
    poison = overview.outbox.get(DeliveryState.POISON, 0)
    if poison:
        words = "delivery" if poison == 1 else "deliveries"
        found.append(Trouble("poison", f"{poison:,} {words} can never be sent; 'digestd outbox list --state poison'"))
    refused, ended = overview.refused
    if refused >= _LEAST_REFUSED and refused > ended * _MOST_REFUSED:
        why = f"{refused:,} of the last {ended:,} mails were refused for what we are (5.7.x); 'digestd doctor' may know why"
        found.append(Trouble("reputation", why))
    unknown = overview.outbox.get(DeliveryState.UNCERTAIN, 0) if holds else 0
    if unknown:
        words = "delivery waits" if unknown == 1 else "deliveries wait"
        found.append(Trouble("uncertain", f"{unknown:,} {words} for a person; 'digestd outbox list --state uncertain'"))
    audited = overview.signs.get(AUDITED)
    if audited is not None and audited.value:
        found.append(Trouble("audit", f"{audited.value:,} findings; 'digestd audit' names them"))
    return found


def tell_operator(
    kitchen: Kitchen,
    operators: Sequence[Reader],
    found: Sequence[Trouble],
    *,
    is_sure: Callable[[str], bool],
    now: datetime,
) -> Told:
    """Keep what is not well, and put a mail into the outbox where something has to be told.

    Args:
        kitchen: mails are made with it.
        operators: whom to tell; none: it is only logged and kept.
        found: what is not well now.
        is_sure: whether a trouble of this name is over where it is not found; False where nobody could look yet.
        now: the present.
    """
    store = kitchen.store
    if not found and not store.troubles.known():
        return Told(Look())
    with store.transaction():
        known = store.troubles.known()
        mails = store.troubles.mails(f"{KIND}|", since=now - timedelta(days=1))
        look = after_look(known, found, is_sure=is_sure, now=now, may_tell=not operators or may_mail(mails, now))
        if look.kept != tuple(known):
            store.troubles.keep(look.kept)
        envelopes = []
        if operators and look.needs_mail:
            writer = _Writer(kitchen, look, now)
            envelopes = [writer.envelope(_stored(store, one, now)) for one in operators]
            store.outbox.enqueue(envelopes, now=now)
    _log(known, look.kept)
    return Told(look, len(envelopes))


def _log(known: Sequence[KnownTrouble], kept: Sequence[KnownTrouble]) -> None:
    """Log what began and what ended, whether a mail may tell it or not."""
    before = {one.trouble.name for one in known if one.mended_at is None}
    standing = {one.trouble.name: one for one in kept if one.mended_at is None}
    for name, one in standing.items():
        if name not in before:
            log.error('trouble began name="%s" why="%s"', name, one.trouble.why)
    for name in before - standing.keys():
        log.warning('trouble is over name="%s"', name)


def _stored(store: Store, operator: Reader, now: datetime) -> Reader:
    return store.subscriptions.find_reader(operator.canonical) or store.subscriptions.put_reader(
        replace(operator, name=""), now=now
    )


class _Writer:
    """Writes the mails of one look; they differ in their addressee alone."""

    def __init__(self, kitchen: Kitchen, look: Look, now: datetime) -> None:
        self._store, self._identity, self._now = kitchen.store, kitchen.identity, now
        self._key = f"{KIND}|{_instant(now)}"
        mail = trouble_mail(look, name=self._identity.name, language=kitchen.options.language)
        self._hidden = hmac.new(self._store.secret("render"), self._key.encode(), hashlib.sha256).hexdigest()
        self._skeleton = skeleton_of(render_troubles(mail, kitchen.templates), self._hidden)
        self._content = self._store.outbox.put_content(pack_content(self._skeleton), now=now)

    def envelope(self, operator: Reader) -> Envelope:
        """Return the outbox row of one operator."""
        identity = self._identity
        assert operator.key is not None
        headers = MailHeaders(
            sender=identity.sender,
            sender_name=identity.sender_name,
            recipient=operator.envelope,
            date=self._now,
            message_id=message_id(
                self._store.secret("instance").hex(), KIND, self._key, str(operator.key), identity.domain
            ),
            key=self._hidden,
        )
        return Envelope(
            kind=KIND,
            digest_key=self._key,
            reader=operator.key,
            recipient=operator.envelope,
            sender=identity.sender,
            message_id=headers.message_id,
            fields=personal_fields(headers, {}, skeleton=self._skeleton, sign=identity.sign),
            content=self._content,
            next_at=self._now,
            smtputf8=operator.smtputf8,
        )


def _instant(now: datetime) -> str:
    """Return an instant that sorts among others, as it stands in digest keys."""
    return now.isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"
