"""Named points at which a test may end the process, to prove that nothing is lost there. Floor 0.

In service nothing is ever set here, and a point costs one comparison. A test's own start script sets :data:`HOOK` before it
runs a command; no setting, argument or variable of the environment does.
"""

from __future__ import annotations

from collections.abc import Callable

#: called with the name of each point that is reached
HOOK: Callable[[str], None] | None = None


def crash_point(name: str) -> None:
    """Do nothing; under test, perhaps never return."""
    if HOOK is not None:
        HOOK(name)
