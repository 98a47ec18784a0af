"""What one look into a folder learnt holds for the next: the daemon asks its sources anew again and again."""

from __future__ import annotations

import asyncio
import os
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from digestd.flows.collect import collect
from digestd.flows.read_source import Collected
from digestd.wiring import App, Choices

SEED = Path(__file__).resolve().parents[2] / "seeds" / "llm-agent-training.page-1.txt"
NOW = datetime(2026, 10, 1, 6, tzinfo=UTC)


def make_app(folder: Path, done: str = "move") -> App:
    """Return the application of a folder with one watched folder, ``incoming``."""
    (folder / "incoming").mkdir()
    settings = folder / "digestd.toml"
    settings.write_text(
        f"""[folders]
done = "{done}"
[fetch]
isolate = false
[[sources]]
kind = "folder"
name = "inbox"
path = "{folder / "incoming"}"
""",
        encoding="utf-8",
    )
    return App(Choices(db=str(folder / "history.sqlite"), config=settings, now=NOW))


def look(app: App, seconds: int) -> list[Collected]:
    """Ask the sources so many seconds after the first look, as the daemon does, and return what came."""
    found: list[Collected] = []

    async def ask() -> None:
        async with app.watched() as watched:
            await collect(app.store, watched, app.collect_options(found.append))

    app.stand_at(NOW + timedelta(seconds=seconds))
    asyncio.run(ask())
    return found


def put(folder: Path, name: str, age_s: int) -> None:
    """Put a page into the watched folder, last changed so long before the first look."""
    path = folder / "incoming" / name
    path.write_bytes(SEED.read_bytes())
    os.utime(path, (NOW.timestamp() - age_s,) * 2)


@pytest.mark.parametrize("ahead_s", [1, 3_600, 40_000_000])
def test_a_file_of_the_future_is_read_when_it_stood_still(tmp_path: Path, ahead_s: int) -> None:
    """A file whose clock ran ahead is not left lying until the future comes."""
    app = make_app(tmp_path)
    put(tmp_path, "page.txt", -ahead_s)
    assert [look(app, seconds) for seconds in (0, 2)] == [[], []]
    assert len(look(app, 15)) == 1
    assert app.store.history.topics()


def test_a_file_that_got_its_name_when_it_was_finished_is_read_at_once(tmp_path: Path) -> None:
    """Whoever renames a file when it is finished need not wait until it has stood still."""
    app = make_app(tmp_path)
    put(tmp_path, "page.txt.part", 1)
    assert look(app, 0) == []
    (tmp_path / "incoming" / "page.txt.part").rename(tmp_path / "incoming" / "page.txt")
    assert len(look(app, 1)) == 1


def test_a_file_that_is_kept_is_read_once(tmp_path: Path) -> None:
    """Files left in their place are not opened at every tick."""
    app = make_app(tmp_path, done="keep")
    put(tmp_path, "page.txt", 60)
    assert [len(look(app, seconds)) for seconds in (0, 15, 30)] == [1, 0, 0]
    put(tmp_path, "page.txt", 30)
    assert len(look(app, 45)) == 1, "changed since"
