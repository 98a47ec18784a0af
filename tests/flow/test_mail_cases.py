"""Cases of sending that went wrong elsewhere, end to end: one recipient fails, line breaks in titles, odd addresses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from digestd.addresses import parse_recipients
from digestd.cli import run
from tests.followers import page
from tests.shared import shared_path
from tests.smtp_sink import Sink, serving

NOW = "2026-10-21T08:00:00Z"


class Service:
    """digestd with a history and a mail server of its own, by its command line."""

    def __init__(self, folder: Path, sink: Sink) -> None:
        self.folder, self.sink = folder, sink
        (folder / "digestd.toml").write_text(
            f'[store]\npath = "{folder / "history.sqlite"}"\n[web]\nbase_url = "https://digest.example.org"\n'
            f'[mail]\nmode = "none"\nhost = "127.0.0.1"\nport = {sink.port}\nfrom_address = "digest@digest.example.org"\n'
            'unsubscribe_address = "unsubscribe@digest.example.org"\nbounce_address = "bounce@digest.example.org"\n',
            encoding="utf-8",
        )

    def call(self, *command: str, now: str = NOW) -> int:
        """Run a command and return its status."""
        return run(["--config", str(self.folder / "digestd.toml"), "--now", now, *command])


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """A service that nobody follows yet."""
    with serving(Sink(tmp_path / "taken.jsonl")) as sink:
        yield Service(tmp_path, sink)


def own_page(folder: Path) -> Path:
    """Write a page of six invented papers and return its path."""
    file = folder / "own.txt"
    file.write_text(page("Reef Sound", *[(f"2026-10-{20 - n}", f"Buoy Diary {n}") for n in range(6)]), encoding="utf-8")
    return file


# -- one recipient fails


def one_recipient_fails(service: Service, source: Path, topic: str) -> list[list[str]]:
    """Let two readers be told, b's mailbox busy in the first run; return who got a mail in each run."""
    service.call("ingest", str(source))
    for address in ("a.reader@example.org", "b.reader@example.org"):
        assert 0 == service.call(
            "follow", address, topic, "--daily", "08:00", "--first", "latest:10", now="2026-10-20T09:00Z"
        )
    service.sink.answers = {"b.reader@example.org": "451 4.2.1 try again later"}
    service.call("digest")
    service.call("deliver")
    first = [one.recipient for one in service.sink.taken()]
    service.sink.answers = {}
    service.call("digest", now="2026-10-21T08:10:00Z")
    service.call("deliver", now="2026-10-21T08:10:00Z")
    return [first, [one.recipient for one in service.sink.taken()][len(first) :]]


def test_only_the_reader_whose_mail_failed_gets_it_again(service: Service, tmp_path: Path) -> None:
    """A mailbox that is busy gets its mail in the next run, with all papers; the other reader gets nothing again."""
    runs = one_recipient_fails(service, own_page(tmp_path), "Reef Sound")
    assert [["a.reader@example.org"], ["b.reader@example.org"]] == runs
    for mail in service.sink.taken():
        assert {f"Buoy Diary {n}" for n in range(6)} == set(re.findall(r"^Buoy Diary \d", mail.text, re.MULTILINE))


def test_shared_case_of_one_failing_recipient(service: Service) -> None:
    """The same with the page of the collected case."""
    folder = shared_path("cases", "open", "02-send-fails-for-one-recipient")
    case = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    runs = one_recipient_fails(service, folder / "page.txt", "Reef Sound Sensing")
    wanted = case["check"]["messages_per_recipient"]
    assert wanted == {address: [runs[0].count(address), runs[1].count(address)] for address in wanted}
    titles = [line for line in (folder / "page.txt").read_text(encoding="utf-8").splitlines() if line]
    for mail in service.sink.taken():
        text = "".join(mail.text.split())
        dates = [place for place, line in enumerate(titles) if re.match(r"[A-Z][a-z]{2} \d+, 2026", line)]
        assert case["check"]["papers_each"] == len(dates)
        assert all("".join(titles[place + 1].split()) in text for place in dates)


# -- line breaks in titles and headers


def feed(titles: list[str]) -> str:
    """Return a feed whose title has line breaks, of papers with these titles."""
    items = "".join(
        f"<item><title>{title}</title><link>https://papers.example/{n}</link><guid isPermaLink='false'>g{n}</guid>"
        f"<pubDate>Tue, 20 Oct 2026 00:00:00 -0400</pubDate><description>A short note on it.</description></item>"
        for n, title in enumerate(titles)
    )
    return (
        "<?xml version='1.0'?><rss version='2.0'><channel><title>Harbour\n  Acoustics\nMonthly</title>"
        f"<link>https://papers.example/</link><description>x</description>{items}</channel></rss>"
    )


def send_feed(service: Service, source: Path, topic: str) -> bytes:
    """Read a feed, tell one reader its latest papers, and return the mail."""
    assert 0 == service.call("ingest", str(source), now="2026-10-21T07:00:00Z")
    given = ("--daily", "08:00", "--first", "latest:10")
    assert 0 == service.call("follow", "ana@example.org", topic, *given, now="2026-10-21T07:00:00Z")
    assert 0 == service.call("digest")
    assert 0 == service.call("deliver")
    (taken,) = service.sink.taken()
    return taken.body


def hold_headers(service: Service, titles: list[str], topic: str) -> None:
    """Check that the one mail has whole headers, no stranger among them, and all titles in its text."""
    (taken,) = service.sink.taken()
    head = taken.body.split(b"\r\n\r\n", 1)[0].decode("ascii")
    names = [line.split(":", 1)[0].lower() for line in head.split("\r\n") if line[:1] not in " \t"]
    assert len(set(names)) == len(names), "each header once"
    assert not {"bcc", "cc", "x-evil"} & set(names)
    assert {"from", "to", "subject", "date", "message-id", "list-unsubscribe"} <= set(names)
    assert "\n" not in str(taken.mail["Subject"])
    assert topic.casefold() in " ".join(taken.text.split()).casefold()
    text = " ".join(taken.text.split())
    assert all(title in text for title in titles)


def test_line_breaks_in_titles_stay_out_of_headers(service: Service, tmp_path: Path) -> None:
    """A break in a feed's or paper's title is a blank; what looks like a header is text; all papers are sent."""
    file = tmp_path / "feed.xml"
    file.write_text(
        feed(
            ["Echoes\n  at   Dawn:\tNotes\nBcc: all@example.net", "  Blanks around  ", "=?utf-8?q?t=0D=0AX-Evil:_1?="]
        ),
        encoding="utf-8",
    )
    send_feed(service, file, "Harbour Acoustics Monthly")
    hold_headers(service, ["Echoes at Dawn: Notes Bcc: all@example.net", "Blanks around"], "Harbour Acoustics Monthly")


def test_shared_case_of_line_breaks(service: Service) -> None:
    """The same with the feed of the collected case."""
    folder = shared_path("cases", "open", "05-newlines-in-titles-and-headers")
    check = json.loads((folder / "case.json").read_text(encoding="utf-8"))["check"]
    send_feed(service, folder / "feed.xml", check["feed_title"])
    hold_headers(service, check["titles"], check["feed_title"])


# -- odd addresses


def follow_all(service: Service, lines: list[str], topic: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Let each address follow and be told; return what was said of those that were refused."""
    refused = []
    for line in lines:
        capsys.readouterr()
        given = ("--daily", "08:00", "--first", "latest:2")
        if service.call("follow", line, topic, *given, now="2026-10-20T09:00:00Z"):
            refused.append(capsys.readouterr().err)
    service.call("digest")
    service.call("deliver")
    return refused


def test_odd_addresses_get_one_mail_each(service: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Plus signs, foreign domains, commas in names and letters beyond ASCII each make one reader, one mail, one envelope."""
    service.call("ingest", str(own_page(tmp_path)), now="2026-10-20T08:00:00Z")
    lines = [
        "fisher+reefs@example.org",
        "kundin@händler.example",
        '"Pérez, Luz" <luz@example.org>',
        "CAPTAIN@Harbour.EXAMPLE",
        "jörg@example.org",
        "nobody@@example.org",
    ]
    (refused,) = follow_all(service, lines, "Reef Sound", capsys)
    assert "nobody@@example.org" in refused
    mails = service.sink.taken()
    expected = [
        "CAPTAIN@harbour.example",
        "fisher+reefs@example.org",
        "jörg@example.org",
        "kundin@xn--hndler-bua.example",
        "luz@example.org",
    ]
    assert expected == sorted(mail.recipient for mail in mails)
    by_recipient = {mail.recipient: mail for mail in mails}
    (address,) = by_recipient["luz@example.org"].mail["To"].addresses
    assert ("Pérez, Luz", "luz@example.org") == (address.display_name, address.addr_spec)
    utf8 = [command for command in service.sink.commands if command.startswith("MAIL") and "SMTPUTF8" in command]
    assert 1 == len(utf8)
    for mail in mails:
        raw = re.search(rb"(?m)^List-Unsubscribe: ([^\r]*(?:\r\n[ \t][^\r]*)*)", mail.body)
        assert raw is not None
        assert b"=?" not in raw[1]
        links = [part.strip() for part in raw[1].decode("ascii").split(",")]
        assert all(re.fullmatch(r"<(https://|mailto:)[!-;=?-~]+>", link) for link in links), links
        assert all("+" not in link for link in links if link.startswith("<https")), "a plus may be read as a blank"


def test_shared_case_of_odd_addresses(service: Service, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same with the list of the collected case; the line of the address that is none is named."""
    folder = shared_path("cases", "open", "14-recipients-plus-idn-and-commas")
    check = json.loads((folder / "case.json").read_text(encoding="utf-8"))["check"]
    text = (folder / "recipients.txt").read_text(encoding="utf-8")
    readers, errors = parse_recipients(text)
    assert 1 == len(errors)
    assert f"line {check['refused']['line']}" in errors[0]
    assert check["needs_smtputf8"] == [reader.address for reader in readers if reader.smtputf8]
    service.call("ingest", str(own_page(tmp_path)), now="2026-10-20T08:00:00Z")
    refused = follow_all(service, text.splitlines(), "Reef Sound", capsys)
    assert 1 == len(refused)
    got = [mail.recipient for mail in service.sink.taken()]
    assert sorted([*check["envelope"], *check["needs_smtputf8"]]) == sorted(got)
    for mail in service.sink.taken():
        (address,) = mail.mail["To"].addresses
        assert check["display_name"].get(mail.recipient, "") == address.display_name
