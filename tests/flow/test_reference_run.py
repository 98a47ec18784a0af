"""From the sample pages to three readers' inboxes over a real SMTP server: each at the civil time, once, what is on record."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest

from digestd.cli import COMMANDS, run
from digestd.model.snapshot import Document
from digestd.model.topic import Vocabulary
from digestd.parse import parse_document
from digestd.store import open_store
from tests.smtp_sink import Sink, Taken, serving

SEEDS = Path(__file__).resolve().parents[2] / "seeds"
PAGES = {number: SEEDS / f"llm-agent-training.page-{number}.txt" for number in (8, 6, 1)}

#: reader -> topics, options of 'follow', the instants at which their slots are due
READERS = {
    "ana@example.org": (
        ["LLM Agent Training"],
        ["--weekly", "mon", "--at", "07:30", "--zone", "Europe/Berlin"],
        ["2026-09-28T05:30", "2026-10-05T05:30"],
    ),
    "bo@example.org": (
        ["Agentic RL", "AI Agent Benchmarks"],
        ["--daily", "18:00", "--zone", "America/New_York"],
        [f"2026-09-{day}T22:00" for day in range(21, 31)] + [f"2026-10-0{day}T22:00" for day in range(1, 6)],
    ),
    "chi@example.org": (
        ["RL for Tool Use", "LLM Agent Training"],
        ["--monthly", "1", "--at", "06:15", "--zone", "Asia/Kolkata", "--format", "text"],
        ["2026-10-01T00:45"],
    ),
}


def squeezed(text: str) -> str:
    """Return a text without white space, so that it is found wherever lines were wrapped."""
    return "".join(text.split())


class Service:
    """digestd with a history, settings and a mail server of its own; all of it by its command line."""

    def __init__(self, folder: Path, sink: Sink) -> None:
        self.folder, self.sink = folder, sink
        self.history = folder / "history.sqlite"
        # without an address for pages all that is told stands in the mail, titles over the budget too
        (folder / "digestd.toml").write_text(
            f'[store]\npath = "{self.history}"\n'
            f'[mail]\nmode = "none"\nhost = "127.0.0.1"\nport = {sink.port}\nfrom_address = "digest@digest.example.org"\n',
            encoding="utf-8",
        )

    def call(self, now: datetime, *command: str) -> int:
        """Run a command at an instant and return its status."""
        return run(["--config", str(self.folder / "digestd.toml"), "--now", now.isoformat(), *command])

    def tick(self, now: datetime) -> list[Taken]:
        """Do what is due and return the mails that this brought."""
        before = len(self.sink.taken())
        assert 0 == self.call(now, "digest")
        assert 0 == self.call(now, "deliver")
        return self.sink.taken()[before:]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """A service that nobody follows yet."""
    with serving(Sink(tmp_path / "taken.jsonl")) as sink:
        yield Service(tmp_path, sink)


def instant(text: str) -> datetime:
    """Return an instant of UTC."""
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def titles_of(number: int) -> set[str]:
    """Return the titles of a sample page."""
    return {paper.title for paper in parse_document(Document(PAGES[number].read_bytes()), Vocabulary()).papers}


def test_each_reader_gets_at_the_civil_time_once_what_is_on_record(
    service: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three readers with different topics, zones and schedules each get what is new, when it is time, and never again."""
    assert 0 == service.call(instant("2026-09-21T08:00"), "ingest", str(PAGES[8]))
    for address, (topics, options, _) in READERS.items():
        assert 0 == service.call(instant("2026-09-21T08:00"), "follow", address, *topics, *options, "--first", "none")
    arrivals = {instant("2026-09-23T06:00"): PAGES[6], instant("2026-09-30T06:00"): PAGES[1]}
    slots = {instant(text) for _, _, due in READERS.values() for text in due}
    minute = timedelta(minutes=1)
    mails: list[tuple[datetime, Taken]] = []
    for now in sorted({*arrivals, *slots, *(slot - minute for slot in slots)}):
        if now in arrivals:
            assert 0 == service.call(now, "ingest", str(arrivals[now]))
        mails += [(now, mail) for mail in service.tick(now)]
        assert [] == service.tick(now), "a second run sends nothing"

    assert [
        ("2026-09-23T22:00", "bo@example.org"),
        ("2026-09-28T05:30", "ana@example.org"),
        ("2026-09-30T22:00", "bo@example.org"),
        ("2026-10-01T00:45", "chi@example.org"),
        ("2026-10-05T05:30", "ana@example.org"),
    ] == [(now.strftime("%Y-%m-%dT%H:%M"), mail.recipient) for now, mail in mails]
    assert [now for now, _ in mails] == [parsedate_to_datetime(mail.mail["Date"]) for _, mail in mails]
    assert len(mails) == len({mail.message_id for _, mail in mails})
    _hold_against_the_record(service, mails)
    if "audit" in COMMANDS:
        capsys.readouterr()
        assert 0 == service.call(instant("2026-11-02T00:00"), "audit"), capsys.readouterr().out


def _hold_against_the_record(service: Service, mails: list[tuple[datetime, Taken]]) -> None:
    """Check that mails tell the titles that the history says they told, each title once to a reader."""
    store = open_store(service.history)
    names = {known.key: known.paper.title for known in store.history.all_papers()}
    labels = {known.paper.title: known.paper.topics for known in store.history.all_papers()}
    told: dict[str, list[str]] = {}
    for subscription in store.subscriptions.subscriptions():
        records = list(reversed(store.subscriptions.digests(subscription.key)))
        ours = [mail for _, mail in mails if mail.recipient == subscription.reader.address]
        mailed = [record for record in records if record.mailed]
        assert len(mailed) == len(ours)
        for record, mail in zip(mailed, ours, strict=True):
            items = [names[item.paper] for item in store.subscriptions.digest(record.key).items]
            text = squeezed(mail.text)
            assert sorted(items) == sorted(title for title in names.values() if squeezed(title) in text)
            assert {1} == {text.count(squeezed(title)) for title in items}
            told.setdefault(subscription.reader.address, []).extend(items)
    store.close()
    news = titles_of(6) | titles_of(1)
    assert sorted(news) == sorted(told["ana@example.org"])
    assert sorted(news) == sorted(told["chi@example.org"])
    followed = set(READERS["bo@example.org"][0])
    assert sorted(title for title in news if followed & set(labels[title])) == sorted(told["bo@example.org"])
    assert len(told["bo@example.org"]) >= 5


def test_commands_say_what_they_did(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    """What programs read of 'digest' and 'deliver' is what happened; nothing due is no error."""
    now = instant("2026-09-21T08:00")
    service.call(now, "ingest", str(PAGES[8]))
    service.call(now, "follow", "ana@example.org", "LLM Agent Training", "--daily", "09:00", "--first", "latest:3")
    capsys.readouterr()
    assert 0 == service.call(instant("2026-09-21T09:00"), "digest", "--json")
    (row,) = json.loads(capsys.readouterr().out)
    assert ("ana@example.org", "2026-09-21T09:00", 3, None) == (
        row["address"],
        row["slot"],
        row["papers"],
        row["error"],
    )
    assert 0 == service.call(instant("2026-09-21T09:00"), "deliver", "--json")
    assert 1 == json.loads(capsys.readouterr().out)["accepted"]
    assert 0 == service.call(instant("2026-09-21T09:00"), "deliver", "--json")
    assert "accepted" not in json.loads(capsys.readouterr().out)


def test_relay_that_is_not_there_is_status_75(service: Service, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a relay the command says so with status 75, and the mail goes out once it is back."""
    now = instant("2026-09-21T08:00")
    service.call(now, "ingest", str(PAGES[8]))
    service.call(now, "follow", "ana@example.org", "LLM Agent Training", "--daily", "09:00", "--first", "latest:3")
    service.call(instant("2026-09-21T09:00"), "digest")
    settings = service.folder / "digestd.toml"
    good = settings.read_text(encoding="utf-8")
    settings.write_text(good.replace(f"port = {service.sink.port}", "port = 1"), encoding="utf-8")
    capsys.readouterr()
    assert 75 == service.call(instant("2026-09-21T09:00"), "deliver")
    assert "mail relay: connect" in capsys.readouterr().err
    settings.write_text(good, encoding="utf-8")
    assert 1 == len(service.tick(instant("2026-09-21T10:00")))
