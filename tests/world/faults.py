"""Ten faults that can be planted in digestd, to see that the worlds find them: ``python -m tests.world.faults [NAME ...]``.

Each takes the place of one named part of the package, as long as a world lives, and nowhere but here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from importlib import import_module
from typing import Any

from digestd.flows.digest import _next_slot, _slots_between
from tests.world.make import make_plan
from tests.world.plan import Plan
from tests.world.run import live_through, say

WORLDS = 200


@dataclass(frozen=True)
class Fault:
    """A fault: what it breaks, and how."""

    what: str  #: in words
    place: str  #: module and name within it
    make: Callable[[Any], Any]  #: from the right one to the wrong one


def _all_joined(right: Any) -> Any:
    def extend(stretches: Sequence[Any], page: Any, **given: Any) -> Any:
        return right(stretches, page, **{**given, "shared": frozenset(one.key for one in stretches)})

    return extend


def _one_too_far(right: Any) -> Any:
    def moved(made: Any, head: int, now: datetime) -> Any:
        return replace(right(made, head, now), told_upto=head + 1)

    return moved


def _second_of_two(right: Any) -> Any:
    def instant_of(local: datetime, zone: Any) -> datetime:
        found: datetime = right(local, zone)
        later = found + timedelta(hours=1)
        return later if later.astimezone(zone).replace(tzinfo=None, fold=0) == local else found

    return instant_of


def _only_first(right: Any) -> Any:
    def missed_slots(subscription: Any, now: datetime, head: int) -> Any:
        return right(subscription, now, head)[:1]

    return missed_slots


def _not_marked(_: Any) -> Any:
    def mark_dot(_self: Any, _key: int, _owner: str, **_given: Any) -> bool:
        return True

    return mark_dot


def _not_suppressed(_: Any) -> Any:
    def leave(store: Any, subscription: Any, *, now: datetime, **_given: Any) -> None:
        store.subscriptions.put(replace(subscription, state="ended", next_due_at=None, declared=False), now=now)

    return leave


def _by_version(right: Any) -> Any:
    def paper_id(paper: Any, topic: Any, site: Any) -> str:
        return (
            f"{right(paper, topic, site)}/{paper.revised_at:%Y%m%d}" if paper.revised_at else right(paper, topic, site)
        )

    return paper_id


def _last_dropped(right: Any) -> Any:
    def cut_with(line: str, index: Any) -> Any:
        cut = right(line, index)
        return replace(cut, labels=cut.labels[:-1]) if len(cut.labels) > 1 else cut

    return cut_with


FAULTS = {
    "identity": Fault(
        "a title in other capitals is another paper", "digestd.identity:title_print", lambda _: lambda title: title
    ),
    "coverage": Fault("every page joins all stretches: there never is a gap", "digestd.diff:extend", _all_joined),
    "ledger cursor": Fault("a cursor is moved one row too far", "digestd.flows.digest:_moved", _one_too_far),
    "slot": Fault(
        "of a local time that comes twice the second is taken", "digestd.schedule:instant_of", _second_of_two
    ),
    "outbox phase": Fault("the final dot is not recorded", "digestd.store.outbox:SqlOutbox.mark_dot", _not_marked),
    "suppression": Fault("who leaves is not suppressed", "digestd.flows.subscribe:leave", _not_suppressed),
    "filter": Fault(
        "filters hide nothing", "digestd.flows.make_digest:hidden_because", lambda _: lambda _wanted, _paper: None
    ),
    "catch-up": Fault(
        "after a pause or a sleep the first missed slot is served", "digestd.flows.digest:missed_slots", _only_first
    ),
    "feed id": Fault("an entry's id changes with each revision", "digestd.render.feed:_paper_id", _by_version),
    "label cut": Fault("the last label of a tag line is lost", "digestd.parse.listing_block:cut_with", _last_dropped),
}


@contextmanager
def planted(name: str) -> Iterator[None]:
    """Plant a fault until the end of the block."""
    fault = FAULTS[name]
    module, _, path = fault.place.partition(":")
    owner: Any = import_module(module)
    *outer, last = path.split(".")
    for part in outer:
        owner = getattr(owner, part)
    right = getattr(owner, last)
    setattr(owner, last, fault.make(right))
    _forget()
    try:
        yield
    finally:
        setattr(owner, last, right)
        _forget()


def _forget() -> None:
    """Forget slots that were worked out before."""
    _next_slot.cache_clear()
    _slots_between.cache_clear()


def finds(plan: Plan, name: str) -> str:
    """Return how a world shows a planted fault; "" if it does not."""
    with planted(name):
        try:
            found, _ = live_through(plan)
        except Exception as error:  # a fault may break the run itself
            return f"{type(error).__name__}: {error}"
    return str(found[0]) if found else ""


def main(names: Sequence[str]) -> int:
    """Print for each fault how many worlds it takes to find it."""
    missed = 0
    for name in names or FAULTS:
        for seed in range(WORLDS):
            how = finds(make_plan(seed), name)
            if how:
                say(f"{name:14}{FAULTS[name].what:60}world {seed:3}  {how[:140]}")
                break
        else:
            missed += 1
            say(f"{name:14}{FAULTS[name].what:60}not found in {WORLDS} worlds")
    return missed


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
