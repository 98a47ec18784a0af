"""What differs between databases, and nothing else. Floor 3.

The repositories (history and those after it) write SQL once, in the dialect that SQLite and PostgreSQL both speak, with
``:name`` parameters; columns are TEXT, INTEGER and REAL; instants are fixed-width UTC text that sorts; SQL never asks for
the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from digestd.model.audit import DatabaseState
from digestd.model.pages import SearchWish

Row = Mapping[str, Any]


class Engine(Protocol):
    """One database, reached from any thread, each with a connection of its own."""

    claim_lock: str  #: what a claiming sub-select ends with: "" or "FOR UPDATE SKIP LOCKED"

    def transaction(self) -> AbstractContextManager[None]:
        """Open a write transaction; nests as a savepoint. StoreBusyError if another writer holds it too long."""

    def reading(self) -> AbstractContextManager[None]:
        """Open a read transaction: all queries in it see one state, and no writer waits for it; never opened in another."""

    def query(self, sql: str, args: Row | None = None) -> list[dict[str, Any]]:
        """Run one statement and return its rows, [] where it returns none."""

    def many(self, sql: str, rows: Iterable[Row]) -> None:
        """Run one statement once for each row of parameters."""

    def ledger_lock(self) -> None:
        """Make sure, inside a transaction, that ledger positions are given in the order of commits."""

    def search(self, words: str, *, limit: int) -> Sequence[int]:
        """Return keys of papers whose title, abstract or authors hold the words, best first."""

    def search_pages(self, wish: SearchWish, *, limit: int) -> Sequence[tuple[int, str]]:
        """Return (key, snippet) of papers that fit, best first.

        A snippet is a piece of the abstract, its hits between U+0002 and U+0003; "" without an abstract.
        """

    def compact(self) -> None:
        """Write the database anew without what holds nothing; outside of transactions only."""

    def check(self) -> DatabaseState:
        """Return what the database finds wrong in itself, and how it is set against how it must be."""

    def close(self) -> None:
        """Give back all connections; a second call does nothing."""


def placeholders(name: str, values: Sequence[Any]) -> tuple[str, dict[str, Any]]:
    """Return ``(:name0, :name1, ...)`` and its parameters for an IN list; never call it with nothing."""
    args = {f"{name}{index}": value for index, value in enumerate(values)}
    return "(" + ", ".join(f":{key}" for key in args) + ")", args


def chunks(values: Sequence[Any], size: int = 400) -> Iterable[Sequence[Any]]:
    """Yield runs of at most ``size`` values: databases limit the parameters of a statement."""
    for begin in range(0, len(values), size):
        yield values[begin : begin + size]
