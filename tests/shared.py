"""Where the optional folder with real pages is; the project's tests pass without it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

REASON = "real pages are not beside the checkout (set DIGESTD_SHARED to their folder)"


def shared_path(*parts: str) -> Path:
    """Return a path in the folder beside the checkout, or skip the test and say why."""
    root = Path(os.environ.get("DIGESTD_SHARED") or Path(__file__).resolve().parents[2] / "shared")
    path = root.joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{REASON}: {'/'.join(parts)}")
    return path
