"""What is kept for a time only is forgotten, and by that nothing is told twice or lost."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from digestd.errors import NotFoundError
from digestd.flows.audit import audit
from digestd.flows.deliver import deliver
from digestd.flows.digest import make_due
from digestd.flows.keeping import Tidied, is_worth_compacting, tidy
from digestd.flows.replay import replay
from digestd.model.delivery import DeliveryState
from digestd.store import SqlStore, open_store
from tests.command import Desk, make_desk
from tests.followers import Clock, KeepingChannel, add, at, let_follow, make_kitchen, options, start

MONDAY = at("2026-09-28T05:00")
SLOT = at("2026-09-28T07:30")
DAY = timedelta(days=1)
KEEP = timedelta(days=30)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    """A history in which a mail went out a month ago, another today, and a third waits."""
    with closing(open_store(tmp_path / "history.sqlite")) as opened:
        live(opened)
        yield opened


def live(store: SqlStore) -> None:
    """Let a month go by."""
    start(store, "Reef Sound", now=MONDAY)
    let_follow(store, "ana@example.org", "Reef Sound", now=MONDAY)
    for number, day in enumerate((0, 31, 32)):
        now = SLOT + day * DAY
        add(store, "Reef Sound", (f"{now:%Y-%m-%d}", f"Bell Buoys {number}"), now=now - timedelta(hours=1))
        make_due(make_kitchen(store), now=now)
        if day < 32:
            asyncio.run(deliver(store, KeepingChannel(), Clock(now), options()))


def test_old_mails_are_forgotten_and_their_fate_is_not(store: SqlStore) -> None:
    """Of the mail of a month ago stays that it was sent, when, and its hash; the others can be shown as they were."""
    now = SLOT + 32 * DAY
    before = store.outbox.deliveries(limit=9)
    assert Tidied(mails=1, contents=1) == tidy(store, now=now, mail_for=KEEP)
    assert Tidied() == tidy(store, now=now, mail_for=KEEP)
    assert before == store.outbox.deliveries(limit=9)
    newest, middle, oldest = before
    with pytest.raises(NotFoundError, match="kept for its time"):
        replay(store, str(oldest.key))
    assert [True, None] == [replay(store, str(one.key)).same for one in (middle, newest)]
    report = audit(store, now=now)
    assert [] == [str(finding) for finding in report.findings]
    assert [1] == [check.looked_at for check in report.checks if check.what.startswith("what was sent can be built")]


def test_what_is_forgotten_is_not_told_again(store: SqlStore) -> None:
    """A paper whose mail is long forgotten comes back, and nobody is told."""
    now = SLOT + 33 * DAY
    tidy(store, now=now, mail_for=timedelta())
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys 0"), now=now)
    made = make_due(make_kitchen(store), now=now)
    assert [None] == [one.made.digest if one.made is not None else None for one in made]
    assert audit(store, now=now).clean


def test_mail_that_waits_is_never_forgotten(store: SqlStore) -> None:
    """However old it is, what was not sent yet can be sent."""
    tidy(store, now=SLOT + 900 * DAY, mail_for=timedelta())
    assert 1 == store.outbox.counts()[DeliveryState.READY]
    channel = KeepingChannel()
    asyncio.run(deliver(store, channel, Clock(SLOT + 32 * DAY), options()))
    assert 1 == len(channel.kept)


def test_file_is_written_anew_where_it_is_worth_it(store: SqlStore, tmp_path: Path) -> None:
    """A file that holds much nothing shrinks, with every row in it; a small or a full one stays as it is."""
    rows = [tuple(row.values()) for row in store.engine.query("SELECT * FROM paper")]
    store.engine.query("CREATE TABLE bulk (b BLOB)")
    store.engine.many("INSERT INTO bulk VALUES (:b)", [{"b": bytes(100_000)} for _ in range(40)])
    store.engine.query("DROP TABLE bulk")
    size, empty = store.slack()
    assert empty > 4_000_000
    store.compact()
    assert (size - empty, 0) == store.slack()
    assert rows == [tuple(row.values()) for row in store.engine.query("SELECT * FROM paper")]
    assert audit(store, now=SLOT + 32 * DAY).clean
    worth = [is_worth_compacting(1_000_000_000, part) for part in (99_000_000, 240_000_000, 260_000_000)]
    assert [False, False, True] == worth
    assert not is_worth_compacting(150_000_000, 90_000_000)


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Desk]:
    """The same, by the command line."""
    for made in make_desk(tmp_path / "desk", capsys):
        made.configure("[keep]\nmail_days = 30\n")
        with closing(open_store(made.folder / "history.sqlite")) as opened:
            live(opened)
        yield made


def test_tidy_by_hand(desk: Desk) -> None:
    """What would go is said first, then it goes; nothing else does."""
    now = (SLOT + 32 * DAY).isoformat()
    assert "would forget the text of 1 mails\n" == desk("tidy", "--dry-run", "--now", now).out
    with closing(sqlite3.connect(desk.folder / "history.sqlite")) as database:
        assert [(3,)] == database.execute("SELECT COUNT(*) FROM outbox WHERE fields <> ''").fetchall()
    done = desk("tidy", "--compact", "--now", now)
    assert (
        0,
        "forgot the text of 1 mails, and 0 unconfirmed wishes\nthe file has no room to give back\n",
    ) == (done.status, done.out)
    assert 0 == desk("audit", "--now", now).status
