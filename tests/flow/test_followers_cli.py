"""The commands of readers and their mail, called as a person calls them: settings, a history, a Maildir, real pages."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from digestd.config import load_settings
from digestd.store import open_store
from digestd.tokens import make_token
from tests.command import Desk, make_desk
from tests.followers import page

MONDAY = "2026-09-28T05:00:00Z"
SLOT = "2026-09-28T07:30:00Z"
SETTINGS = """
[mail]
channel = "maildir"
folder = "mail"
from_address = "digest@reef.example"
bounce_address = "bounce@reef.example"
unsubscribe_address = "unsubscribe@reef.example"
"""


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Desk]:
    """A topic, a reader of it, and one paper that is news to her."""
    for made in make_desk(tmp_path, capsys):
        made.configure(SETTINGS)
        first = made.put("first.txt", page("Reef Sound", ("2026-09-20", "Quiet Reefs"), ("2026-09-19", "Loud Shrimp")))
        then = made.put("then.txt", page("Reef Sound", ("2026-09-27", "Bell Buoys"), ("2026-09-20", "Quiet Reefs")))
        assert 0 == made("ingest", first, "--now", MONDAY).status
        follow = made("follow", "ana@example.org", "Reef Sound", "--weekly", "mon", "--first", "none", "--now", MONDAY)
        assert 0 == follow.status, follow.err
        assert 0 == made("ingest", then, "--now", MONDAY).status
        yield made


def serve(desk: Desk) -> str:
    """Make and deliver what is due, and return the digest's key."""
    (row,) = desk("digest", "--json", "--now", SLOT).one
    assert 0 == desk("deliver", "--now", SLOT).status
    return str(row["digest"])


def public_id(desk: Desk) -> str:
    """Return the reader's subscription."""
    (row,) = desk("subscribers", "--json").one
    return str(row["subscription"])


def token(desk: Desk, purpose: str) -> str:
    """Return a genuine token of the reader's subscription."""
    store = open_store(load_settings(desk.folder / "digestd.toml").store.path)
    made = make_token(store.secret("tokens"), purpose, public_id(desk))
    store.close()
    return made


def feed_stdin(monkeypatch: pytest.MonkeyPatch, body: bytes) -> None:
    """Let standard input hold a mail."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(body), encoding="utf-8"))


def test_from_page_to_mail_and_nothing_on_the_second_run(desk: Desk) -> None:
    """News goes out once, the audit is clean against the Maildir, and a second run sends nothing."""
    serve(desk)
    assert 1 == len(list((desk.folder / "mail" / "new").iterdir()))
    assert "nothing is due" in desk("digest", "--now", SLOT).err
    assert "nothing was due" in desk("deliver", "--now", SLOT).out
    audit = desk("audit", "--against", desk.folder / "mail", "--now", SLOT)
    assert (0, True) == (audit.status, audit.out.rstrip().endswith("rules hold"))
    report = desk("audit", "--json", "--now", SLOT).one
    assert report["clean"]
    assert report["kept"] is None
    assert [] == report["findings"]
    assert {"opened": 0, "resent": 0, "held": 0, "resolved": 0} == report["uncertain"]


def test_audit_with_findings_ends_with_one(desk: Desk) -> None:
    """A finding is a line and the exit status; so it is in JSON."""
    serve(desk)
    next((desk.folder / "mail" / "new").iterdir()).unlink()
    audit = desk("audit", "--against", desk.folder / "mail", "--now", SLOT)
    assert 1 == audit.status
    assert "A11 delivery 1 <" in audit.out
    assert "expected kept, for it was accepted, found not kept" in audit.out
    as_json = desk("audit", "--against", desk.folder / "mail", "--json", "--now", SLOT)
    assert (1, "A11") == (as_json.status, as_json.one["findings"][0]["code"])
    assert {"mails": 0, "unnamed": 0, "doubled": 0} == as_json.one["kept"]
    missing = desk("audit", "--against", desk.folder / "nothing")
    assert (1, "") == (missing.status, missing.out)


def test_why_says_it_in_words_and_in_json(desk: Desk) -> None:
    """The kind, the place and the reason, before and after the digest."""
    before = desk("why", "bell buoys", "ana@example.org", "--now", MONDAY)
    assert 0 == before.status
    assert "Reef Sound: waits for the next slot, Mon, Sep 28 at 07:30, UTC" in before.out
    key = serve(desk)
    after = desk("why", "bell buoys", "ana@example.org", "--json", "--now", SLOT).one
    assert ["new"] == [seen["kind"] for seen in after["seen"]]
    (subscription,) = after["subscriptions"]
    (told,) = subscription["told"]
    assert (key, "new", "reef-sound", "accepted") == (told["digest"], told["section"], told["topic"], told["mail"])
    assert "its mail was accepted" in desk("why", after["paper"]["public_id"], "ana@example.org").out


def test_why_of_several_or_no_papers(desk: Desk) -> None:
    """Ambiguous words list candidates, unknown ones are an error; both end with 1."""
    several = desk("why", "season", "ana@example.org")
    assert 1 == several.status
    assert {"Quiet Reefs", "Loud Shrimp", "Bell Buoys"} == {line.split("  ", 2)[2] for line in several.out.splitlines()}
    assert "expected one paper, found 3" in several.err
    assert 3 == len(desk("why", "season", "ana@example.org", "--json").one["candidates"])
    assert 1 == desk("why", "xylophone", "ana@example.org").status
    nobody = desk("why", "bell buoys", "bo@example.org")
    assert (1, True) == (nobody.status, "bo@example.org" in nobody.err)


def test_replay_shows_what_the_maildir_holds(desk: Desk) -> None:
    """The bytes are those of the file, and their sameness is told on the side."""
    key = serve(desk)
    (file,) = (desk.folder / "mail" / "new").iterdir()
    replayed = desk("replay", key, "--format", "text")
    assert (0, True) == (replayed.status, "Bell Buoys" in replayed.out)
    assert "these are the bytes that were sent, sha256 " in replayed.err
    assert "<html" in desk("replay", "1", "--format", "html").out
    as_json = desk("replay", key, "--json").one
    assert (True, file.read_bytes().decode()) == (as_json["same"], as_json["body"])
    assert 1 == desk("replay", "nothing|2026-09-28T07:30").status


def test_preview_of_a_reader_writes_nothing(desk: Desk) -> None:
    """What the reader will get at the next slot is shown; the slot is not used up by it."""
    shown = desk("preview", "ana@example.org", "--now", MONDAY)
    assert (0, True) == (shown.status, "Bell Buoys" in shown.out)
    assert "for the slot 2026-09-28T07:30, UTC" in shown.err
    (as_json,) = desk("preview", "ana@example.org", "--json", "--now", MONDAY).one
    assert (1, "2026-09-28T07:30", public_id(desk)) == (as_json["papers"], as_json["slot"], as_json["subscription"])
    assert [] == desk("outbox", "list", "--json").one
    serve(desk)
    (file,) = (desk.folder / "mail" / "new").iterdir()
    assert as_json["body"].strip() in desk("replay", "1", "--format", "text").out
    assert "Bell Buoys" in file.read_text()
    nothing = desk("preview", "ana@example.org", "--now", SLOT)
    assert (0, "", True) == (nothing.status, nothing.out, "nothing to tell" in nothing.err)


def test_preview_wants_a_reader_or_topics(desk: Desk) -> None:
    """Neither and both are wrong use; topics go on as before."""
    assert 2 == desk("preview").status
    assert 2 == desk("preview", "ana@example.org", "--topic", "Reef Sound").status
    assert "Bell Buoys" in desk("preview", "--topic", "Reef Sound").out
    assert "Bell Buoys" in desk("preview", "--topic", "Reef Sound", "--json").one["body"]
    assert 1 == desk("preview", "bo@example.org").status


def test_bounce_from_standard_input_ends_a_subscription(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mail server pipes in what came; whatever it is, the status is 0, for else it would be sent back."""
    address = f"unsubscribe+{token(desk, 'unsubscribe')}@reef.example"
    feed_stdin(monkeypatch, b"From: ana@example.org\r\nSubject: unsubscribe\r\n\r\n")
    (row,) = desk("bounce", "--recipient", address, "--json").one
    assert ("left", "unsubscribe") == (row["effect"], row["kind"])
    assert [] == desk("subscribers", "--json").one
    feed_stdin(monkeypatch, b"Subject: hello\r\n\r\nhello\r\n")
    ignored = desk("bounce")
    assert (0, "mail: ignored: it is no report of a mail of ours\n") == (ignored.status, ignored.out)


def test_bounce_of_a_maildir(desk: Desk) -> None:
    """All mails of the box are taken, each told in a line."""
    desk.put("box/new/1.a", f"Delivered-To: unsubscribe+{token(desk, 'unsubscribe')}@reef.example\n\nbye\n")
    taken = desk("bounce", "--maildir", desk.folder / "box")
    assert (0, True) == (taken.status, "left: the reader wants no more" in taken.out)
    assert "" == desk("bounce", "--maildir", desk.folder / "box").out
    assert 2 == desk("bounce", "--maildir", desk.folder / "box", "--recipient", "a@reef.example").status


def test_sample_pages_end_in_one_mail_each(desk: Desk) -> None:
    """The pages that come along: a first page is history, what comes after it reaches each of three readers once."""
    seeds = Path(__file__).resolve().parents[2] / "seeds"
    older, newest = seeds / "llm-agent-training.page-6.txt", seeds / "llm-agent-training.page-1.txt"
    assert 0 == desk("ingest", older, "--now", "2026-09-30T06:00:00Z").status
    readers = (
        ("bo@example.org", "--daily", "07:30", "--zone", "Asia/Kathmandu"),
        ("cy@example.org", "--weekly", "thu", "--zone", "America/St_Johns"),
        ("di@example.org", "--each-snapshot", "--zone", "UTC"),
    )
    for address, *schedule in readers:
        made = desk(
            "follow", address, "LLM Agent Training", *schedule, "--first", "latest:3", "--now", "2026-09-30T07:00Z"
        )
        assert 0 == made.status, made.err
    assert 0 == desk("ingest", newest, "--now", "2026-09-30T12:00:00Z").status
    for now in ("2026-09-30T12:30:00Z", "2026-10-01T02:00:00Z", "2026-10-01T10:30:00Z", "2026-10-01T10:31:00Z"):
        assert 0 == desk("digest", "--now", now).status
        assert 0 == desk("deliver", "--now", now).status
    audit = desk("audit", "--against", desk.folder / "mail", "--now", "2026-10-02T00:00:00Z")
    assert (0, 1) == (audit.status, len(audit.out.splitlines())), audit.out
    sent = desk("outbox", "list", "--json").one
    assert {"bo@example.org", "cy@example.org", "di@example.org"} <= {row["recipient"] for row in sent}
    assert len({row["recipient"] for row in sent}) == len(sent)
