"""Options of the whole suite."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--update-golden``: rewrite the files in tests/golden, to be reviewed as a diff."""
    parser.addoption("--update-golden", action="store_true", default=False, help="rewrite the files in tests/golden")
