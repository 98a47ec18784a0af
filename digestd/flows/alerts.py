"""A mail when a topic starts to rise or to cool. Floor 4. Entry point: :func:`make_alerts`.

A turn and the mails that tell it are one transaction, and a mail's key is topic and turn: whatever crashes, and however often
it is looked, nobody is told a turn twice. Who asks for alerts later is told the next one.
"""

from __future__ import annotations

import hashlib
import hmac
import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from digestd.coverage_words import coverage_line
from digestd.errors import DigestdError, StoreBusyError
from digestd.flows.digest import Kitchen, pause_end
from digestd.flows.momenta import topic_momenta
from digestd.log_context import about
from digestd.model.delivery import Envelope
from digestd.model.digest import Links, Momentum
from digestd.model.subscription import Subscription
from digestd.model.topic import Topic
from digestd.model.turn import Alert, Turn
from digestd.render.alert_mail import render_alert
from digestd.render.mime import MailHeaders, Skeleton, message_id, placeholder, skeleton_of
from digestd.render.outgoing import pack_content, personal_fields
from digestd.tokens import bounce_address, make_token, tagged_address
from digestd.turns import after_look, turn_title

log = logging.getLogger(__name__)

KIND = "alert"

#: sub-stream of the Feedback-ID header, that of the digests: it names who sends, not what
_STREAM = "digestd01"


@dataclass(frozen=True, slots=True)
class Alerted:
    """A topic turned."""

    turn: Turn
    title: str  #: "Reef Sound is rising: 54 papers in four weeks, up 145%"
    mails: int  #: put into the outbox, those to suppressed addresses included


def make_alerts(kitchen: Kitchen, *, now: datetime) -> list[Alerted]:
    """Look at all topics and return those that turned; one that fails does not stop the others.

    A topic whose listing was not seen lately is passed over: old figures are no news.
    """
    done = []
    for topic in kitchen.store.history.topics():
        try:
            with about(topic=topic.slug):
                found = _look(kitchen, topic, now)
        except StoreBusyError:
            raise  # the next one would wait as long, and in vain
        except Exception as error:
            known = isinstance(error, DigestdError)
            log.error("topic not looked at: %s topic=%s", error, topic.slug, exc_info=not known)
            continue
        if found is not None:
            done.append(found)
    return done


def _look(kitchen: Kitchen, topic: Topic, now: datetime) -> Alerted | None:
    """Look at one topic; only if something changes, the store is written to."""
    turns = kitchen.store.turns
    momenta = topic_momenta(kitchen.store.history, topic, now)
    if not momenta.fresh:
        return None
    state = turns.trend(topic.slug)
    if after_look(topic.slug, state, momenta.chosen) == state:
        return None
    with kitchen.store.transaction():
        state = turns.trend(topic.slug)  # another process may have been here meanwhile
        after = after_look(topic.slug, state, momenta.chosen)
        if after is None or after == state:
            return None
        turns.put_trend(after)
        if state is None or after.turns == state.turns:
            return None
        turn = Turn(topic.slug, after.turns, after.trend, now, momenta.as_of, _figures(momenta.chosen))
        turns.add_turn(turn)
        envelopes = _Writer(kitchen, topic, turn, now).envelopes(readers_of(kitchen, topic, now))
        kitchen.store.outbox.enqueue(envelopes, now=now)
    log.info("topic turned turn=%s trend=%s mails=%s", turn.number, turn.trend, len(envelopes))
    return Alerted(turn, turn_title(topic.name, turn), len(envelopes))


def _figures(momentum: Momentum) -> Momentum:
    """Return what a turn rests on: the weeks of a chart go on, the counts stay true."""
    return replace(momentum, weekly=(), weekly_from=None, partial=False)


def readers_of(kitchen: Kitchen, topic: Topic, now: datetime) -> list[Subscription]:
    """Return the subscriptions whose readers are told of a turn now: active, not paused, one for each reader."""
    found: dict[int | None, Subscription] = {}
    for one in kitchen.store.subscriptions.subscriptions(active_only=True):
        resumes = pause_end(one)
        if one.preferences.alert and topic.slug in one.topics and (resumes is None or now >= resumes):
            found.setdefault(one.reader.key, one)
    return list(found.values())


class _Writer:
    """Writes the mails of one turn; what they share is rendered once for each format."""

    def __init__(self, kitchen: Kitchen, topic: Topic, turn: Turn, now: datetime) -> None:
        self._store, self._identity, self._templates = kitchen.store, kitchen.identity, kitchen.templates
        self._turn, self._now = turn, now
        base = self._identity.base_url
        self._alert = Alert(
            name=self._identity.name,
            topic=topic,
            turn=turn,
            coverage_line=coverage_line(self._store.history.coverage(topic.slug)),
            url=f"{base}/t/{topic.slug}" if base else None,
            language=kitchen.options.language,
        )
        self._contents: dict[str, tuple[str, Skeleton]] = {}

    def envelopes(self, subscriptions: Sequence[Subscription]) -> list[Envelope]:
        """Return the outbox rows; their contents are kept."""
        return [self._envelope(one) for one in subscriptions]

    def _content(self, form: str) -> tuple[str, Skeleton]:
        """Return the hash of the stored bodies, and the bodies."""
        if form not in self._contents:
            key, base = self._key(form), self._identity.base_url
            links = (
                Links(preferences=placeholder("preferences", key), unsubscribe=placeholder("unsubscribe", key))
                if base
                else Links()
            )
            parts = render_alert(self._alert, links, self._templates)
            if form == "text":
                parts = replace(parts, html="")
            skeleton = skeleton_of(parts, key)
            self._contents[form] = self._store.outbox.put_content(pack_content(skeleton), now=self._now), skeleton
        return self._contents[form]

    def _key(self, form: str) -> str:
        """Return a key that no text from outside can know, so that no title can hold a placeholder or boundary."""
        name = f"{KIND}|{self._turn.key}|{form}"
        return hmac.new(self._store.secret("render"), name.encode(), hashlib.sha256).hexdigest()

    def _envelope(self, subscription: Subscription) -> Envelope:
        identity, reader, form = self._identity, subscription.reader, subscription.preferences.format
        assert reader.key is not None
        key, leave = self._key(form), self._token("unsubscribe", subscription)
        url = f"{identity.base_url}/unsubscribe/{leave}" if identity.base_url else None
        sender = identity.sender
        if identity.bounce is not None:
            sender = bounce_address(identity.bounce, self._token("bounce", subscription), reader.envelope)
        headers = MailHeaders(
            sender=identity.sender,
            sender_name=identity.sender_name,
            recipient=reader.envelope,
            reply_to=identity.reply_to,
            date=self._turn.at,
            message_id=message_id(
                self._store.secret("instance").hex(), KIND, self._turn.key, str(reader.key), identity.domain
            ),
            key=key,
            list_id=f"{subscription.public_id}.{identity.domain}",
            list_name=identity.name,
            unsubscribe_url=url,
            unsubscribe_mailto=tagged_address(identity.unsubscribe, leave) if identity.unsubscribe else None,
            feedback_id=f"{subscription.public_id}:{KIND}:mail:{_STREAM}",
        )
        values = {}
        if url is not None:
            preferences = f"{identity.base_url}/preferences/{self._token('preferences', subscription)}"
            values = {placeholder("unsubscribe", key): url, placeholder("preferences", key): preferences}
        content, skeleton = self._content(form)
        return Envelope(
            kind=KIND,
            digest_key=self._turn.key,
            reader=reader.key,
            recipient=reader.envelope,
            sender=sender,
            message_id=headers.message_id,
            fields=personal_fields(headers, values, skeleton=skeleton, sign=identity.sign),
            content=content,
            next_at=self._now,
            smtputf8=reader.smtputf8,
            scope=subscription.public_id,
        )

    def _token(self, purpose: str, subscription: Subscription) -> str:
        return make_token(self._store.secret("tokens"), purpose, subscription.public_id)
