"""Bounces are read from a mailbox: seen only once recorded, never deleted, and a server that fails is tried again."""

from __future__ import annotations

import ssl
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme

pytest.importorskip("imap_tools", reason="the extra imap is not installed")

from digestd.config import load_settings  # after the reason to skip is known
from digestd.errors import ConfigError, MailboxError  # as above
from digestd.flows.bounce import Effect, take_mailbox  # as above
from digestd.store import SqlStore, open_store  # as above
from digestd.watch.imap import ImapSettings, open_mailbox  # as above
from tests.command import Desk, make_desk  # as above
from tests.flow.test_bounce import MONDAY, SLOT, bounces, leaving, report  # as above
from tests.followers import Clock, let_follow, start  # as above
from tests.imap_server import Mailbox, serve  # as above


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    """A topic and a daily reader of it."""
    opened = open_store(tmp_path / "history.sqlite")
    start(opened, "Reef Sound", now=MONDAY)
    let_follow(opened, "ana@example.org", "Reef Sound", now=MONDAY)
    yield opened
    opened.close()


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Desk]:
    """Where the command line is called."""
    yield from make_desk(tmp_path / "desk", capsys)


def settings_for(box: Mailbox, *, password: str = 'se"cret', ca_file: Path | None = None) -> ImapSettings:
    """Return how the mailbox is reached: in the clear, with an authority by TLS."""
    return ImapSettings("127.0.0.1", box.port, "reef", password, "Bounces", ca_file is not None, ca_file, 5)


def take(store: SqlStore, settings: ImapSettings) -> list[tuple[str, Effect]]:
    """Read the mailbox once."""
    with open_mailbox(settings) as mailbox:
        return [(name, taken.effect) for name, taken in take_mailbox(store, mailbox, Clock(SLOT))]


def test_unseen_mails_are_taken_once(store: SqlStore) -> None:
    """Oldest first, each marked as seen, none deleted; the seen one and a second look are nothing."""
    mails = {7: report(store, "5.2.2"), 12: leaving(store), 3: leaving(store), 9: b""}
    with serve(Mailbox(mails=dict(mails), seen={3})) as box:
        assert [("7", Effect.COUNTED), ("9", Effect.IGNORED), ("12", Effect.LEFT)] == take(store, settings_for(box))
        assert [] == take(store, settings_for(box))
    assert (mails, {3, 7, 9, 12}) == (box.mails, box.seen)
    asked = {command.split(" ")[0] + " " + command.split(" ")[1] for command in box.commands if command[:3] == "UID"}
    assert {"UID SEARCH", "UID FETCH", "UID STORE"} == asked
    assert not any("EXPUNGE" in command or "CLOSE" in command for command in box.commands)


def test_mail_that_could_not_be_marked_is_taken_again_without_effect(store: SqlStore) -> None:
    """A connection lost between record and mark repeats the mail, which then is known."""
    with serve(Mailbox(mails={1: report(store, "5.2.2")}, break_at="UID STORE")) as box:
        with pytest.raises(MailboxError, match=r"mailbox 127\.0\.0\.1"):
            take(store, settings_for(box))
        assert (1, set()) == (bounces(store), box.seen)
        box.break_at = ""
        assert [("1", Effect.IGNORED)] == take(store, settings_for(box))
    assert (1, {1}) == (bounces(store), box.seen)


@pytest.mark.parametrize("command", ["LOGIN", "SELECT", "UID SEARCH", "UID FETCH"])
def test_lost_connection_is_tried_again(store: SqlStore, command: str) -> None:
    """Wherever a server breaks off, it is an error that passes, and nothing is marked."""
    with serve(Mailbox(mails={1: report(store, "5.2.2")}, break_at=command)) as box, pytest.raises(MailboxError):
        take(store, settings_for(box))
    assert (0, set()) == (bounces(store), box.seen)


def test_large_mail_is_read_in_part(store: SqlStore) -> None:
    """No more of a mail than counts comes over the wire."""
    mails = {1: report(store, "5.2.2") + b"x" * 3_000_000}
    with serve(Mailbox(mails=mails)) as box, open_mailbox(settings_for(box)) as mailbox:
        assert [1000] == [len(body) for _, body in mailbox.waiting(1000)]
    assert set() == box.seen


def test_wrong_password_is_a_setting_to_mend(store: SqlStore) -> None:
    """A login that is refused is said, without the password."""
    with serve(Mailbox()) as box, pytest.raises(ConfigError, match=r"login is refused: .*wrong") as caught:
        take(store, settings_for(box, password="open sesame"))
    assert "sesame" not in str(caught.value)


def test_password_goes_to_a_server_that_is_proved_only(store: SqlStore, tmp_path: Path) -> None:
    """A certificate of our authority for this name is taken; a stranger's is not, and the login is never tried."""
    ours, other = trustme.CA(), trustme.CA()
    ours.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    for authority, name, good in ((ours, "127.0.0.1", True), (other, "127.0.0.1", False), (ours, "b.example", False)):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        authority.issue_cert(name).configure_cert(context)
        with serve(Mailbox(mails={1: b"Subject: hello\r\n\r\n"}), context) as box:
            settings = settings_for(box, ca_file=tmp_path / "ca.pem")
            if good:
                assert [("1", Effect.IGNORED)] == take(store, settings)
            else:
                with pytest.raises(MailboxError):
                    take(store, settings)
                assert [] == box.commands


def configure(desk: Desk, port: int, folder: str = "Bounces") -> None:
    """Write settings of a mailbox."""
    desk.configure(f"""
[bounces]
imap_host = "127.0.0.1"
imap_port = {port}
imap_mode = "none"
imap_username = "reef"
imap_password = 'se"cret'
imap_folder = "{folder}"
""")


def test_command_takes_the_mailbox(desk: Desk) -> None:
    """The command says what each mail did; a server that is gone or lacks the folder is exit status 75."""
    with serve(Mailbox(mails={4: b"Subject: hello\r\n\r\nhello\r\n"})) as box:
        configure(desk, box.port)
        answer = desk("bounce", "--imap", "--json")
        assert (0, [("4", "ignored")]) == (answer.status, [(row["mail"], row["effect"]) for row in answer.one])
        configure(desk, box.port, "Elsewhere")
        assert 75 == desk("bounce", "--imap").status
    configure(desk, box.port)
    answer = desk("bounce", "--imap")
    assert (75, "") == (answer.status, answer.out)


def test_command_says_what_was_done_before_a_server_broke_off(desk: Desk) -> None:
    """What was taken stands and is said, and the exit status asks for another try."""
    mail = b"Subject: hello\r\n\r\nhello\r\n"
    with serve(Mailbox(mails={1: mail, 2: mail}, break_at="UID STORE 2")) as box:
        configure(desk, box.port)
        answer = desk("bounce", "--imap")
    assert (75, ["1: ignored: it is no report of a mail of ours"]) == (answer.status, answer.out.splitlines())


def test_command_without_settings_or_extra_is_a_setting_to_mend(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exit status 78, and the words say what is missing; two places at once are a wrong call."""
    answer = desk("bounce", "--imap")
    assert (78, True) == (answer.status, "imap_host" in answer.err)
    configure(desk, 1)
    assert 2 == desk("bounce", "--imap", "--maildir", desk.folder).status
    monkeypatch.setitem(sys.modules, "imap_tools", None)
    answer = desk("bounce", "--imap")
    assert (78, True) == (answer.status, "digestd[imap]" in answer.err)


def test_password_in_the_clear_to_another_machine_is_refused(tmp_path: Path) -> None:
    """Without encryption the server must be this machine."""
    file = tmp_path / "digestd.toml"
    file.write_text('[bounces]\nimap_host = "imap.example.org"\nimap_mode = "none"\n', encoding="utf-8")
    with pytest.raises(ConfigError, match="imap_mode 'implicit'"):
        load_settings(file)
