"""Status speaks of mail: what waits, what was taken last, what comes next, and what it all runs on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from digestd.flows.deliver import deliver
from digestd.flows.digest import make_due
from digestd.model.trouble import KnownTrouble, Trouble
from digestd.store import open_store
from tests.command import Desk, make_desk
from tests.followers import Clock, KeepingChannel, add, at, let_follow, make_kitchen, options, start

NOW = at("2026-09-28T05:00")
SLOT = at("2026-09-28T07:30")
LATER = at("2026-09-28T07:31")


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Desk]:
    """A folder with settings and no history yet."""
    yield from make_desk(tmp_path / "desk", capsys)


def test_status_of_mail(desk: Desk) -> None:
    """One mail waits, then it was taken; the next digest is due on the next morning."""
    store = open_store(desk.folder / "history.sqlite")
    start(store, "Reef Sound", now=NOW)
    let_follow(store, "ana@example.org", "Reef Sound", now=NOW)
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=NOW)
    make_due(make_kitchen(store), now=SLOT)
    found = desk("status", "--json").one
    assert (1, 0, None) == (found["outbox"]["ready"], found["outbox"]["accepted"], found["last_accepted_at"])
    asyncio.run(deliver(store, KeepingChannel(), Clock(LATER), options()))
    store.close()
    found = desk("status", "--json").one
    assert (0, 1) == (found["outbox"]["ready"], found["outbox"]["accepted"])
    assert ("2026-09-28T07:31:00Z", "2026-09-29T07:30:00Z") == (found["last_accepted_at"], found["next_due_at"])
    lines = desk("status").out.splitlines()
    assert [
        "outbox: 1 accepted",
        "    last mail taken 2026-09-28 07:31 UTC",
        "    next digest due 2026-09-29 07:30 UTC",
    ] == lines[-4:-1]
    assert lines[-1].startswith("digestd ")


def test_status_of_mail_in_an_empty_history(desk: Desk) -> None:
    """Where nothing has happened all keys are there, and nothing is due."""
    found = desk("status", "--json").one
    assert {None} == {found[key] for key in ("next_send_at", "last_accepted_at", "next_due_at")}
    assert {"digestd", "python", "sqlite"} == found["versions"].keys()
    assert "outbox: empty" in desk("status").out.splitlines()


def test_status_of_the_daemon(desk: Desk) -> None:
    """What the daemon noted last is told: the last good round of work, the audit, and what is not well, in 80 columns."""
    store = open_store(desk.folder / "history.sqlite")
    store.troubles.put_sign("worked", at=NOW)
    store.troubles.put_sign("audited", at=NOW, value=2)
    words = "broken: " + "the server answered 500 to a request " * 4
    store.troubles.keep([KnownTrouble(Trouble("source Reefs", words.strip()), NOW, SLOT)])
    store.close()
    found = desk("status", "--json").one
    told = [found[key] for key in ("last_good_run_at", "last_audit_at", "audit_findings")]
    assert ["2026-09-28T05:00:00Z", "2026-09-28T05:00:00Z", 2] == told
    trouble = {"name": "source Reefs", "why": words.strip(), "since": "2026-09-28T05:00:00Z"}
    assert [trouble] == found["troubles"]
    lines = desk("status").out.splitlines()
    assert lines[0].startswith("! source Reefs since 2026-09-28 05:00: broken: the server answered 500")
    assert {"    last good run 2026-09-28 05:00 UTC", "    last audit 2026-09-28 05:00 UTC, 2 findings"} <= set(lines)
    assert max(map(len, lines)) <= 80
