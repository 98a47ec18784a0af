"""How everything is: sources, topics, outbox, what is due, what is not well. Floor 4. Entry point: :func:`look`.

What ``digestd status`` shows, the metrics count, the state dump logs and the operator is told of is one and the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from digestd.health import health
from digestd.model.delivery import DeliveryState
from digestd.model.source import FetchState, Poll, SourceHealth, SourceSpec
from digestd.model.trouble import KnownTrouble, Sign
from digestd.polling import current_state, is_due

if TYPE_CHECKING:  # status is asked for often, and does not wait for what it does not use
    from digestd.ports import History, Store

#: names of the signs that are kept: a whole round of work, an audit (its value: findings)
WORKED, AUDITED = "worked", "audited"


@dataclass(frozen=True, slots=True)
class SourceView:
    """One watched source."""

    spec: SourceSpec
    fetched: FetchState
    health: SourceHealth
    topics: tuple[str, ...]  #: slugs of the topics that its pages went to, latest first
    is_due: bool  #: it may be asked now


@dataclass(frozen=True, slots=True)
class Overview:
    """How everything is now."""

    now: datetime
    sources: tuple[SourceView, ...] = ()
    outbox: Mapping[DeliveryState, int] = field(default_factory=dict)
    next_send_at: datetime | None = None
    last_accepted_at: datetime | None = None
    next_due_at: datetime | None = None  #: the next digest
    troubles: tuple[KnownTrouble, ...] = ()  #: that stand, as the daemon saw them last
    signs: Mapping[str, Sign] = field(default_factory=dict)
    refused: tuple[int, int] = (0, 0)  #: of the latest hand-overs of a day, those refused for what we are, and all


def look(store: Store, specs: Sequence[SourceSpec], *, now: datetime) -> Overview:
    """Return how everything is."""
    newest = store.outbox.deliveries(state=DeliveryState.ACCEPTED, limit=1)
    return Overview(
        now=now,
        sources=tuple(view_source(store, spec, now=now) for spec in specs),
        outbox=store.outbox.counts(),
        next_send_at=store.outbox.next_at(),
        last_accepted_at=newest[0].settled_at if newest else None,
        next_due_at=store.subscriptions.next_due_at(),
        troubles=tuple(one for one in store.troubles.known() if one.mended_at is None),
        signs=store.troubles.signs(),
        refused=store.troubles.policy_refusals(since=now - timedelta(days=1), most=1000),
    )


def view_source(store: Store, spec: SourceSpec, *, now: datetime) -> SourceView:
    """Return how one source is."""
    state = current_state(spec, store.sources.state(spec.name))
    polls = [_today(store.history, poll) for poll in store.sources.polls(spec.name)]
    slugs = dict.fromkeys(poll.topic for poll in reversed(polls) if poll.topic is not None)
    found = health(polls, next_try_at=state.next_try_at, daily=spec.daily, calendar=spec.calendar)
    return SourceView(spec, state, found, tuple(slugs), is_due(state, now))


def _today(history: History, poll: Poll) -> Poll:
    """Return a poll with those of its gaps that no other page has closed since."""
    if not poll.gaps or poll.topic is None:
        return poll
    return replace(poll, gaps=history.coverage(poll.topic).gaps)
