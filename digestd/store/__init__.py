"""The history file and everything in it. Floor 3. Entry point: :func:`open_store`."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

from digestd.errors import ConfigError, StoreBusyError, StoreError, StoreUnusableError
from digestd.store.accounts import SqlAccounts
from digestd.store.confirmations import SqlConfirmations
from digestd.store.engine import Engine
from digestd.store.feed_list import SqlFeedList
from digestd.store.history import SqlHistory
from digestd.store.outbox import SqlOutbox
from digestd.store.pages import SqlPages
from digestd.store.slices import SqlFeedsRead
from digestd.store.sources import SqlSources
from digestd.store.sqlite import SQLiteEngine
from digestd.store.subscriptions import SqlSubscriptions
from digestd.store.troubles import SqlTroubles
from digestd.store.turns import SqlTurns


class SqlStore:
    """All repositories over one engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._history = SqlHistory(engine)
        self._sources = SqlSources(engine)
        self._turns = SqlTurns(engine)
        self._troubles = SqlTroubles(engine)
        self._feed_list = SqlFeedList(engine)
        self._subscriptions = SqlSubscriptions(engine)
        self._outbox = SqlOutbox(engine)
        self._confirmations = SqlConfirmations(engine)
        self._accounts = SqlAccounts(engine)
        self._pages = SqlPages(engine)
        self._feeds_read = SqlFeedsRead(engine)

    @property
    def history(self) -> SqlHistory:
        """Papers, topics and the ledger."""
        return self._history

    @property
    def subscriptions(self) -> SqlSubscriptions:
        """Readers, subscriptions, slots and digests."""
        return self._subscriptions

    @property
    def outbox(self) -> SqlOutbox:
        """Deliveries."""
        return self._outbox

    @property
    def confirmations(self) -> SqlConfirmations:
        """Wishes that wait for their confirmation."""
        return self._confirmations

    @property
    def sources(self) -> SqlSources:
        """Watched sources."""
        return self._sources

    @property
    def turns(self) -> SqlTurns:
        """When topics started to rise or to cool."""
        return self._turns

    @property
    def troubles(self) -> SqlTroubles:
        """What the operator is told, and what was counted."""
        return self._troubles

    @property
    def feed_list(self) -> SqlFeedList:
        """Feeds that were imported from a list."""
        return self._feed_list

    @property
    def accounts(self) -> SqlAccounts:
        """What holds the history, the digests and the outbox against each other."""
        return self._accounts

    @property
    def feeds_read(self) -> SqlFeedsRead:
        """Feeds as they were read the last time."""
        return self._feeds_read

    @property
    def pages(self) -> SqlPages:
        """What pages and feeds ask of the history."""
        return self._pages

    def transaction(self) -> AbstractContextManager[None]:
        """Open a write transaction: committed at the end, rolled back by any exception; nests as a savepoint."""
        return self.engine.transaction()

    def secret(self, name: str) -> bytes:
        """Return 32 random bytes of this history, made when first asked for and the same for ever after."""
        args = {"name": f"secret {name}"}
        rows = self.engine.query("SELECT value FROM meta WHERE name = :name", args)
        if not rows:
            with self.engine.transaction():
                self.engine.query(
                    "INSERT INTO meta (name, value) VALUES (:name, :value) ON CONFLICT (name) DO NOTHING",
                    args | {"value": secrets.token_bytes(32).hex()},
                )
                rows = self.engine.query("SELECT value FROM meta WHERE name = :name", args)
        return bytes.fromhex(rows[0]["value"])

    def home(self) -> str | None:
        """Return the mark of the machine that this history works on; None if it never worked on one that has a mark."""
        rows = self.engine.query("SELECT value FROM meta WHERE name = 'home'")
        return rows[0]["value"] if rows else None

    def slack(self) -> tuple[int, int]:
        """Return the bytes of the history's file, and how many of them hold nothing."""
        page = self.engine.query("PRAGMA page_size")[0]["page_size"]
        pages = self.engine.query("PRAGMA page_count")[0]["page_count"]
        return page * pages, page * self.engine.query("PRAGMA freelist_count")[0]["freelist_count"]

    def compact(self) -> None:
        """Write the file anew without what holds nothing; nobody else writes meanwhile."""
        self.engine.compact()

    def put_home(self, mark: str) -> None:
        """Keep the mark of the machine that this history works on from now on."""
        with self.engine.transaction():
            self.engine.query(
                "INSERT INTO meta (name, value) VALUES ('home', :mark) ON CONFLICT (name) DO UPDATE SET value = :mark",
                {"mark": mark},
            )

    def close(self) -> None:
        """Give back all connections; a second call does nothing."""
        self.engine.close()


def _open_sqlite(rest: str, copies: bool) -> Engine:  # the table's one signature
    return SQLiteEngine(Path(rest), copies=copies)


#: scheme of a store URL -> how its engine is opened
ENGINES: dict[str, Callable[[str, bool], Engine]] = {"sqlite": _open_sqlite}


def open_store(url: str | Path, *, copies: bool = True) -> SqlStore:
    """Return the store at a path or URL ("sqlite:/var/lib/digestd/history.sqlite"), made and migrated if need be.

    Args:
        url: path or URL.
        copies: whether a history of an older release is copied beside itself before its tables are changed.

    Raises:
        StoreBusyError: another process holds it for too long.
        StoreUnusableError: it cannot be opened, is damaged, or was written by a newer digestd.
        ConfigError: the URL names an engine that is not there.
    """
    scheme, colon, rest = str(url).partition(":")
    if not colon or len(scheme) < 2 or "/" in scheme:
        scheme, rest = "sqlite", str(url)
    if scheme not in ENGINES:
        raise ConfigError(f"store {url}: expected one of {', '.join(ENGINES)}, found {scheme!r}")
    try:
        return SqlStore(ENGINES[scheme](rest, copies))
    except (StoreBusyError, StoreUnusableError):
        raise
    except StoreError as error:
        raise StoreUnusableError(str(error)) from error
