"""Lists of feeds on the command line: imported feeds are sources, and can be taken away again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from digestd.parse.opml import parse_opml
from tests.command import Desk, make_desk

LIST = """<opml version="2.0"><head><title>Mine</title></head><body>
<outline text="Biology"><outline type="rss" text="Reef News" xmlUrl="https://reef.example/feed"/></outline>
<outline type="rss" text="Kelp" xmlUrl="https://kelp.example/rss" htmlUrl="https://kelp.example/"/>
<outline type="rss" text="Odd" xmlUrl="javascript:alert(1)"/></body></opml>"""


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Desk]:
    """The command line with an empty history."""
    yield from make_desk(tmp_path, capsys)


def sources(desk: Desk) -> list[tuple[str, str]]:
    """Return name and kind of the sources that status lists."""
    return [(row["source"], row["kind"]) for row in desk("status", "--json").one["sources"]]


def test_imported_feeds_are_sources(desk: Desk) -> None:
    """After the import status lists the feeds; what was left out is said."""
    done = desk("opml", "import", desk.put("mine.opml", LIST))
    assert 0 == done.status
    assert ["new", "Biology", "/", "Reef", "News"] == done.out.splitlines()[0].split()[:5]
    assert "left out: Odd" in done.err
    assert [("https://reef.example/feed", "url"), ("https://kelp.example/rss", "url")] == sources(desk)


def test_dry_run_changes_nothing(desk: Desk) -> None:
    """A dry run says what would be followed, and follows nothing."""
    done = desk("opml", "import", desk.put("mine.opml", LIST), "--dry-run", "--json")
    assert ["new", "new"] == [feed["state"] for feed in done.one["feeds"]]
    assert [] == sources(desk)


def test_export_gives_the_list_back(desk: Desk) -> None:
    """What was imported is exported as it came, to standard output and to a file; a second import changes nothing."""
    path = desk.put("mine.opml", LIST)
    for _ in range(2):
        desk("opml", "import", path)
        printed = desk("opml", "export")
        assert parse_opml(LIST.encode()).outlines == parse_opml(printed.out.encode()).outlines
    desk("opml", "export", "--out", desk.folder / "out.opml")
    assert printed.out == (desk.folder / "out.opml").read_text(encoding="utf-8")
    again = desk("opml", "import", path, "--json")
    assert ["known", "known"] == [feed["state"] for feed in again.one["feeds"]]


def test_feed_of_the_settings_is_one_source(desk: Desk) -> None:
    """A feed that the settings declare stays the settings' source."""
    desk.configure('[[sources]]\nkind = "url"\nname = "reef"\nurl = "https://reef.example/feed"')
    done = desk("opml", "import", desk.put("mine.opml", LIST), "--json")
    assert ["settings", "new"] == [feed["state"] for feed in done.one["feeds"]]
    assert [("reef", "url"), ("https://kelp.example/rss", "url")] == sources(desk)


def test_remove(desk: Desk) -> None:
    """A removed feed is no source any more; one that is not there is named."""
    desk("opml", "import", desk.put("mine.opml", LIST))
    assert 0 == desk("opml", "remove", "https://reef.example/feed").status
    assert [("https://kelp.example/rss", "url")] == sources(desk)
    again = desk("opml", "remove", "https://reef.example/feed")
    assert 1 == again.status
    assert "feed https://reef.example/feed: expected one that was imported, found none" in again.err


def test_hostile_list_is_refused_in_words(desk: Desk) -> None:
    """A list with a document type is an error in one line, and nothing is followed."""
    done = desk("opml", "import", desk.put("bad.opml", '<!DOCTYPE opml [<!ENTITY a "b">]><opml/>'))
    assert 1 == done.status
    assert "expected OPML without a document type" in done.err
    assert [] == sources(desk)
