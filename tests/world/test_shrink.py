"""The worlds' own tools: a difference is made small, and told so that a person can read it."""

from __future__ import annotations

from collections.abc import Sequence

from tests.world.compare import Difference
from tests.world.make import MIDDLE, SMALL, make_plan
from tests.world.plan import Act, Plan, Tick
from tests.world.shrink import shrink
from tests.world.story import tell


def lives_badly(plan: Plan) -> Sequence[Difference]:
    """Return a difference wherever paper 7 and a kill come together with a follower."""
    has_paper = any(paper.number == 7 for paper in plan.papers)
    has_kill = any(isinstance(event, Tick) and event.kill is not None for event in plan.events)
    has_reader = any(isinstance(event, Act) for event in plan.events)
    return [Difference("lost", "reader 0 lacks #7")] if has_paper and has_kill and has_reader else []


def test_a_world_is_shrunk_to_what_matters() -> None:
    """Whatever is not needed to show the difference is left out."""
    seed = next(seed for seed in range(100) if lives_badly(make_plan(seed, MIDDLE)))
    small, left = shrink(make_plan(seed, MIDDLE), "lost", seconds=60, live=lives_badly)
    assert (1, [7], 2) == (len(small.topics), [paper.number for paper in small.papers], len(small.events))
    assert [Difference("lost", "reader 0 lacks #7")] == list(left)


def test_a_story_names_all_that_happens() -> None:
    """Topics, papers, each event in its order, and what is wrong."""
    plan = make_plan(0, SMALL)
    story = tell(plan, [Difference("lost", "reader 0 lacks #7")]).splitlines()
    assert [f"World 0, {len(plan.papers)} papers:", "  lost: reader 0 lacks #7"] == [story[0], story[-1]]
    assert len(plan.events) <= len([line for line in story if line.startswith("  ") and ":" in line])


def test_a_seed_is_one_world() -> None:
    """The same each time, so that a difference can be looked at again."""
    assert make_plan(3) == make_plan(3)
