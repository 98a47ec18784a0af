"""The engines that every contract of the store is held to."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from digestd.store import SqlStore, open_store


@pytest.fixture(params=["sqlite"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The address of an empty store, on each engine."""
    return f"{request.param}:{tmp_path / 'history.sqlite'}"


@pytest.fixture
def store(store_url: str) -> Iterator[SqlStore]:
    """An empty store, on each engine."""
    opened = open_store(store_url)
    yield opened
    opened.close()
