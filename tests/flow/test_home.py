"""A copy of a history, on another machine, sends nothing until a person says which of the two is at work."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from digestd.errors import MovedError
from digestd.flows.home import adopt, check_home
from digestd.store import SqlStore, open_store
from tests.command import Desk, make_desk
from tests.followers import page

NOW, SLOT = "2026-09-28T05:00:00+00:00", "2026-09-29T07:31:00+00:00"
SETTINGS = '[mail]\nchannel = "maildir"\nfolder = "mail"\nfrom_address = "digest@digest.example.org"\n'


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    """A new history."""
    with closing(open_store(tmp_path / "history.sqlite")) as opened:
        yield opened


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Desk]:
    """A history with a mail in its outbox."""
    for made in make_desk(tmp_path / "desk", capsys):
        made.configure(SETTINGS)
        made.put("1.txt", page("Reef Sound", ("2026-09-20", "Reef Note")))
        made.put("2.txt", page("Reef Sound", ("2026-09-28", "Bell Buoys"), ("2026-09-20", "Reef Note")))
        for command in (
            ("ingest", "1.txt", "--now", NOW),
            ("follow", "ana@example.org", "Reef Sound", "--daily", "07:30", "--first", "none", "--now", NOW),
            ("ingest", "2.txt", "--now", NOW),
            ("digest", "--now", SLOT),
        ):
            assert 0 == made(*(made.folder / one if one.endswith(".txt") else one for one in command)).status
        yield made


def mails(desk: Desk) -> int:
    """Return how many mails came."""
    return len(list((desk.folder / "mail").glob("new/*")))


def move(desk: Desk) -> None:
    """Let the history have worked on another machine."""
    with closing(sqlite3.connect(desk.folder / "history.sqlite")) as database:
        database.execute("INSERT OR REPLACE INTO meta (name, value) VALUES ('home', 'elsewhere')")
        database.commit()


def test_first_machine_is_home_and_another_is_not(store: SqlStore) -> None:
    """The machine that sends first is the history's own; no other sends, however often it tries."""
    check_home(store, "one")
    check_home(store, "one")
    for _ in range(2):
        with pytest.raises(MovedError, match="another one"):
            check_home(store, "two")
    check_home(store, "one")


def test_adopted_machine_is_home_and_the_first_no_longer(store: SqlStore) -> None:
    """There is one home at a time."""
    assert not adopt(store, "one")
    assert adopt(store, "two")
    check_home(store, "two")
    with pytest.raises(MovedError):
        check_home(store, "one")


def test_machine_without_a_name_holds_nothing(store: SqlStore) -> None:
    """Where nothing names the machine nothing can be told, and mail goes out."""
    check_home(store, None)
    assert None is store.home()
    with pytest.raises(MovedError, match="machine-id"):
        adopt(store, None)


def test_id_of_the_machine_is_not_kept(store: SqlStore) -> None:
    """A machine-id is confidential: the history holds a hash of it, and another history another one."""
    check_home(store, "0123456789abcdef0123456789abcdef")
    home = store.home()
    assert home is not None
    assert "0123456789abcdef" not in home
    assert (64, True) == (len(home), all(char in "0123456789abcdef" for char in home))


def test_copy_sends_nothing_until_it_is_adopted(desk: Desk) -> None:
    """A cloned history holds its mail and says why and what to do; adopted, it sends it once."""
    move(desk)
    held = desk("deliver", "--now", SLOT)
    assert (75, True, True, 0) == (held.status, "another one" in held.err, "digestd adopt" in held.err, mails(desk))
    assert (0, "the history is at home here now\n") == ((done := desk("adopt", "--now", SLOT)).status, done.out)
    assert (0, 1) == (desk("deliver", "--now", SLOT).status, mails(desk))
    assert (0, 1) == (desk("deliver", "--now", SLOT).status, mails(desk))
    assert "already" in desk("adopt", "--now", SLOT).out


def test_adopt_can_hold_what_the_other_machine_may_have_sent(desk: Desk) -> None:
    """With --hold nothing goes out until a person asks for it."""
    move(desk)
    done = desk("adopt", "--hold", "--now", SLOT)
    assert (0, True) == (done.status, "1 deliveries are held" in done.out)
    assert (0, 0) == (desk("deliver", "--now", SLOT).status, mails(desk))
    rows = desk("outbox", "list", "--json").one
    assert ["held: taken over from another machine, and perhaps sent there"] == [row["why"] for row in rows]
    assert 0 == desk("outbox", "retry", str(rows[0]["id"]), "--now", SLOT).status
    assert (0, 1) == (desk("deliver", "--now", SLOT).status, mails(desk))


def test_restored_history_is_at_home_where_it_was_restored(desk: Desk) -> None:
    """Who restores a backup on a new machine has said by that where it is at work; its mail is held as ever."""
    move(desk)
    backup = desk.folder / "copy.sqlite"
    assert 0 == desk("backup", str(backup)).status
    assert 0 == desk("restore", str(backup), "--now", SLOT).status
    assert (0, 0) == (desk("deliver", "--now", SLOT).status, mails(desk))
