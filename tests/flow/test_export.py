"""Everything as text and back: the same history, to the last row."""

from __future__ import annotations

import json
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlite_utils import Database

from digestd.addresses import parse_reader
from digestd.errors import SchemaVersionError, StoreError
from digestd.filters import parse_rule
from digestd.flows.audit import audit
from digestd.flows.confirm import Asked, ask
from digestd.flows.digest import make_due
from digestd.model.delivery import DeliveryState, Suppression
from digestd.model.source import FileFate, FileMark
from digestd.model.subscription import Filter, First
from digestd.schedule import parse_schedule
from digestd.store import open_store
from digestd.store.dump import dump, load
from digestd.store.schema import MIGRATIONS
from tests.command import Desk, make_desk
from tests.followers import add, at, let_follow, make_kitchen, start

MONDAY = at("2026-09-28T05:00")
SLOT = at("2026-09-28T07:30")


def live(path: Path) -> None:
    """Make a history in which a bit of everything has happened, with a mail that waits."""
    with closing(open_store(path)) as store:
        start(store, "Reef Sound", now=MONDAY)
        start(store, "Kelp Forests", now=MONDAY)
        hide = Filter(exclude=(parse_rule("buoys"),))
        let_follow(store, "ana@example.org", "Reef Sound", "Kelp Forests", now=MONDAY, first=First("latest", 2))
        let_follow(store, "bö@example.org", "Reef Sound", now=MONDAY, schedule="weekly mon 07:30", hide=hide)
        add(store, "Reef Sound", ("2026-09-28", "Bell Buoys", "Kelp Forests"), ("2026-09-27", "Größe 𝒪(n)"), now=MONDAY)
        kitchen = make_kitchen(store)
        ask(
            kitchen,
            Asked(parse_reader("cy@example.org"), store.history.topic("reef-sound"), parse_schedule("daily 07:30")),
            now=MONDAY,
        )
        make_due(kitchen, now=SLOT)
        with store.transaction():
            store.outbox.suppress(Suppression("di@example.org", "all", "bounced", SLOT, evidence="5.1.1"))
            store.sources.put_file("inbox", FileMark(7, 8, 9, "1.txt", "ab" * 32), FileFate.DONE, now=SLOT)
        add(store, "Kelp Forests", ("2026-09-29", "Long Blades"), now=SLOT)


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A history in which much has happened; not to be changed."""
    path = tmp_path_factory.mktemp("lived") / "history.sqlite"
    live(path)
    return path


def lines_of(path: Path) -> list[bytes]:
    """Return the lines of a history."""
    return [line.encode() for line in dump(path)]


def test_history_comes_back_row_for_row(lived: Path, tmp_path: Path) -> None:
    """Exported, imported and exported again, the text is the same, the accounts are clean and words are found."""
    lines = lines_of(lived)
    rows = load(lines, tmp_path / "again.sqlite")
    assert lines == lines_of(tmp_path / "again.sqlite")
    tables = {json.loads(line)["table"] for line in lines[1:]}
    assert {
        "paper",
        "ledger",
        "subscription",
        "outbox",
        "content",
        "told_item",
        "meta",
        "watched_file",
        "suppression",
    } <= tables
    assert len(lines) - 1 == sum(rows.values())
    with closing(open_store(tmp_path / "again.sqlite")) as store:
        assert [] == [str(finding) for finding in audit(store, now=SLOT).findings]
        assert 1 == len(store.engine.search("buoys", limit=5))


def test_imported_history_goes_on_as_the_old_one_would(lived: Path, tmp_path: Path) -> None:
    """Guards stand, numbers are not given twice, and what comes next is told once."""
    load(lines_of(lived), tmp_path / "again.sqlite")
    with closing(open_store(tmp_path / "again.sqlite")) as store:
        with pytest.raises(sqlite3.IntegrityError, match="append-only"):
            store.engine.query("DELETE FROM ledger")
        before = store.engine.query("SELECT seq FROM sqlite_sequence WHERE name = 'paper'")[0]["seq"]
        add(store, "Reef Sound", ("2026-09-29", "Quiet Reefs"), ("2026-09-28", "Bell Buoys", "Kelp Forests"), now=SLOT)
        assert [before + 1] == [
            row["id"] for row in store.engine.query("SELECT id FROM paper WHERE title = 'Quiet Reefs'")
        ]
        made = make_due(make_kitchen(store), now=SLOT + timedelta(days=1))
        assert 1 == len([one for one in made if one.made is not None and one.made.digest is not None])
        assert audit(store, now=SLOT + timedelta(days=1)).clean


def test_export_of_an_older_release_is_imported(tmp_path: Path) -> None:
    """The tables of then are made, filled, and brought to this release."""
    with closing(sqlite3.connect(tmp_path / "old.sqlite", isolation_level=None)) as conn:
        MIGRATIONS.apply(Database(conn), stop_before="m007_turns")
        conn.execute(
            "INSERT INTO topic (slug, name, name_key, created_at) VALUES ('reef', 'Reef', 'reef', '2026-01-01T00:00:00Z')"
        )
    load(lines_of(tmp_path / "old.sqlite"), tmp_path / "new.sqlite")
    with closing(open_store(tmp_path / "new.sqlite", copies=False)) as store:
        assert ["Reef"] == [topic.name for topic in store.history.topics()]
        assert [] == MIGRATIONS.pending(Database(str(tmp_path / "new.sqlite")))


@pytest.mark.parametrize(
    ("head", "error", "words"),
    [
        (b'{"digestd": 1, "migrations": ["m001_history", "m999_wonders"]}', SchemaVersionError, "m999_wonders"),
        (b'{"digestd": 2, "migrations": ["m001_history"]}', SchemaVersionError, "format 2"),
        (b'{"papers": []}', StoreError, "line 1"),
        (b"SQLite format 3\x00", StoreError, "line 1"),
        (b"", StoreError, "found nothing"),
        (b"[" * 100_000, StoreError, "line 1"),
    ],
)
def test_what_is_no_export_is_refused_in_words(tmp_path: Path, head: bytes, error: type[Exception], words: str) -> None:
    """A file of a newer release, or none of ours, is named as what it is."""
    with pytest.raises(error, match=words):
        load([head], tmp_path / "new.sqlite")


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_damaged_export_is_refused_or_is_still_a_history(lived: Path, data: st.DataObject) -> None:
    """Lines torn out, cut or changed: an error in words that names a line or table, or a history whose rows hang together."""
    lines = lines_of(lived)
    place = data.draw(st.integers(1, len(lines) - 1))
    match data.draw(st.sampled_from(["gone", "twice", "cut", "bytes", "column", "value"])):
        case "gone":
            del lines[place]
        case "twice":
            lines.insert(place, lines[place])
        case "cut":
            lines[place] = lines[place][: data.draw(st.integers(0, len(lines[place]) - 2))]
        case "bytes":
            at_byte = data.draw(st.integers(0, len(lines[place]) - 2))
            lines[place] = (
                lines[place][:at_byte] + data.draw(st.binary(min_size=1, max_size=3)) + lines[place][at_byte + 1 :]
            )
        case "column":
            lines[place] = lines[place].replace(b'"row":{', b'"row":{"wonder":1,')
        case _:
            record = json.loads(lines[place])
            column = data.draw(st.sampled_from(sorted(record["row"])))
            record["row"][column] = data.draw(st.sampled_from([None, [], {}, {"base64": "?"}, 2**70, "x", 1.5]))
            lines[place] = json.dumps(record).encode()
    with TemporaryDirectory() as folder:
        goal = Path(folder) / "new.sqlite"
        try:
            load(lines, goal)
        except StoreError as error:
            assert "import" in str(error)  # noqa: PT017 # either is right
            return
        with closing(sqlite3.connect(goal)) as conn:
            assert [("ok",)] == conn.execute("PRAGMA integrity_check").fetchall()
            assert [] == conn.execute("PRAGMA foreign_key_check").fetchall()


# -- the commands


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Desk]:
    """A history with a mail that waits."""
    for made in make_desk(tmp_path / "desk", capsys):
        live(made.folder / "history.sqlite")
        yield made


def test_moved_by_export_and_import_mail_is_held(desk: Desk) -> None:
    """A history is moved as text, readable by its owner alone; what waited may have been sent meanwhile, and is held."""
    file = desk.folder / "all.jsonl"
    assert 0 == desk("export", file).status
    assert 0o600 == stat.S_IMODE(file.stat().st_mode)
    again = desk("import", file)
    assert (1, True) == (again.status, "expected none yet, found one" in again.err)
    (desk.folder / "history.sqlite").rename(desk.folder / "old.sqlite")
    done = desk("import", file)
    assert (0, True) == (done.status, "deliveries are held" in done.out)
    with closing(open_store(desk.folder / "history.sqlite")) as store:
        counts = store.outbox.counts()
        assert (0, True) == (counts.get(DeliveryState.READY, 0), counts[DeliveryState.FAILED] > 0)
    assert 0 == desk("audit").status
    assert [] == [path.name for path in desk.folder.iterdir() if path.name.startswith(".digestd-")]


def test_faulty_import_leaves_nothing(desk: Desk) -> None:
    """What is wrong is said by line, and no half history lies there afterwards."""
    desk("export", desk.folder / "all.jsonl")
    lines = (desk.folder / "all.jsonl").read_bytes().splitlines(keepends=True)
    (desk.folder / "all.jsonl").write_bytes(b"".join(lines[:5]) + b"{]\n")
    (desk.folder / "history.sqlite").rename(desk.folder / "old.sqlite")
    answer = desk("import", desk.folder / "all.jsonl")
    assert (1, True) == (answer.status, "import line 6: expected a JSON object" in answer.err)
    assert not (desk.folder / "history.sqlite").exists()
    missing = desk("import", desk.folder / "nowhere.jsonl")
    assert (1, True) == (missing.status, "No such file" in missing.err)


def test_export_to_standard_output(desk: Desk) -> None:
    """- is standard output, and each line is JSON."""
    answer = desk("export", "-")
    assert (0, 1) == (answer.status, answer.objects[0]["digestd"])
    assert lines_of(desk.folder / "history.sqlite") == answer.out.encode().splitlines(keepends=True)
