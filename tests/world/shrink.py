"""Makes a world that shows a difference as small as it still shows it. Entry point: :func:`shrink`."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from tests.world.compare import Difference
from tests.world.plan import Act, Plan, Tick

T = TypeVar("T")
Live = Callable[[Plan], Sequence[Difference]]


def shrink(plan: Plan, kind: str, *, seconds: float, live: Live | None = None) -> tuple[Plan, Sequence[Difference]]:
    """Return a smaller world with a difference of the same kind, and its differences.

    Args:
        plan: a world that shows one.
        kind: of difference.
        seconds: how long to try.
        live: lives a world through; None: as it is.
    """
    from tests.world.run import live_through

    run = live or (lambda one: live_through(one)[0])
    until = time.monotonic() + seconds

    def shows(one: Plan) -> bool:
        if time.monotonic() > until:
            return False
        try:
            return any(found.kind == kind for found in run(one))
        except Exception:  # a world that cannot live at all is another world
            return False

    small = plan
    while True:
        before = _weight(small)
        small = _drop_topics(small, shows)
        small = _fewer_events(small, shows)
        small = _fewer_papers(small, shows)
        small = _plainer(small, shows)
        if _weight(small) == before or time.monotonic() > until:
            return small, [found for found in run(small) if found.kind == kind]


def _weight(plan: Plan) -> tuple[int, ...]:
    troubles = sum(len(one.troubles) + (one.kill is not None) for one in plan.events if isinstance(one, Tick))
    return len(plan.topics), len(plan.events), len(plan.papers), troubles


def _fewest(items: tuple[T, ...], shows: Callable[[tuple[T, ...]], bool]) -> tuple[T, ...]:
    """Return as few of the items as still show it, by leaving out ever smaller parts."""
    size = max(1, len(items) // 2)
    while True:
        place = 0
        while place < len(items):
            left = items[:place] + items[place + size :]
            if shows(left):
                items = left
            else:
                place += size
        if size == 1:
            return items
        size = max(1, size // 2)


def _fewer_events(plan: Plan, shows: Callable[[Plan], bool]) -> Plan:
    return replace(plan, events=_fewest(plan.events, lambda events: shows(replace(plan, events=events))))


def _fewer_papers(plan: Plan, shows: Callable[[Plan], bool]) -> Plan:
    return replace(plan, papers=_fewest(plan.papers, lambda papers: shows(replace(plan, papers=papers))))


def _drop_topics(plan: Plan, shows: Callable[[Plan], bool]) -> Plan:
    for topic in plan.topics:
        left = tuple(one for one in plan.topics if one is not topic)
        events = []
        for event in plan.events:
            if isinstance(event, Act) and event.wished is not None:
                topics = tuple(name for name in event.wished.topics if name != topic.name)
                if not topics:
                    continue
                event = replace(event, wished=replace(event.wished, topics=topics))
            elif not isinstance(event, (Act, Tick)) and event.topic == topic.name:
                continue
            events.append(event)
        papers = tuple(
            replace(paper, filed=filed)
            for paper in plan.papers
            if (filed := tuple(one for one in paper.filed if one.topic != topic.name))
        )
        smaller = replace(plan, topics=left, events=tuple(events), papers=papers)
        if left and shows(smaller):
            plan = smaller
    return plan


def _plainer(plan: Plan, shows: Callable[[Plan], bool]) -> Plan:
    """Return the world with as little going wrong in its ticks as still shows it."""
    for place, event in enumerate(plan.events):
        if not isinstance(event, Tick):
            continue
        for change in ({"kill": None}, {"troubles": ()}, {"relay": "ok"}, {"publish": False}, {"skew_s": 0}):
            plainer = replace(event, **change)
            if plainer == event:
                continue
            smaller = replace(plan, events=(*plan.events[:place], plainer, *plan.events[place + 1 :]))
            if shows(smaller):
                plan, event = smaller, plainer
    return plan
