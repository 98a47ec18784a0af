"""Tells a world as a story that a person can read. Entry point: :func:`tell`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from tests.world.compare import Difference
from tests.world.plan import Act, Drop, Plan, Tick, WorldPaper

_RELAY = {
    "greylist": "the relay greylists",
    "down": "the relay is down",
    "lost_before": "the connection to the relay breaks before a mail is whole",
    "lost_kept": "the relay takes mails and its answers are lost",
    "lost_gone": "the connection breaks at the final dot and the mails are gone",
    "refuse": "the relay refuses all mail",
}


def tell(plan: Plan, found: Sequence[Difference]) -> str:
    """Return a world and what is wrong with it, in words."""
    lines = [f"World {plan.seed}, {len(plan.papers)} papers:"]
    lines += [f"  {topic.name}: {', '.join(topic.sources) or 'only a label'}" for topic in plan.topics]
    lines += [f"  {_paper(paper)}" for paper in plan.papers[:40]]
    if len(plan.papers) > 40:
        lines.append(f"  and {len(plan.papers) - 40} more")
    lines += [f"  {_clock(event.at)}  {words}" for event in plan.events for words in _event(event)]
    lines += ["What is wrong:", *(f"  {one}" for one in found[:10])]
    return "\n".join(lines)


def _clock(at: datetime) -> str:
    return f"{at:%b %d %H:%M}"


def _paper(paper: WorldPaper) -> str:
    filed = ", ".join(
        f"{one.topic} from {_clock(one.since)}" + (f" to {_clock(one.until)}" if one.until else "")
        for one in paper.filed
    )
    changed = "".join(f"; revised {_clock(version.since)}" for version in paper.versions[1:])
    name = paper.versions[0].title.partition(":")[0]
    return f"#{paper.number} {name}, {paper.category}, published {paper.published:%b %d}; in {filed}{changed}"


def _event(event: Tick | Act | Drop) -> Iterator[str]:
    match event:
        case Drop():
            yield f"a JSON file of {event.topic} is put into the folder, as {event.order}"
        case Act(wished=None):
            until = f" until {event.until}" if event.until else ""
            yield f"reader {event.follower}: {event.what}{until}"
        case Act(wished=wished):
            assert wished is not None
            hidden = f", without {', '.join(wished.exclude)}" if wished.exclude else ""
            yield (
                f"reader {event.follower} follows {', '.join(wished.topics)}, {wished.schedule} {wished.zone}, "
                f"first {wished.first}{hidden}"
            )
        case Tick():
            parts = ["all sources are asked"]
            if event.skew_s:
                parts.append(f"the clock is off by {event.skew_s / 3600:+g} h")
            parts += [f"{source} of {topic} is {what}" for topic, source, what in event.troubles]
            if event.relay != "ok":
                parts.append(_RELAY[event.relay])
            if event.kill is not None:
                parts.append(f"killed at {event.kill.point}, reached for the time number {event.kill.number}")
            if event.publish:
                parts.append("feeds are published")
            yield "; ".join(parts)
