"""Whatever a user types, or has lying about: an answer in words and an exit status, never a traceback."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from io import BytesIO, TextIOWrapper
from pathlib import Path

import click
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from digestd.cli import COMMANDS, cli, run
from digestd.store import open_store
from tests.followers import at, let_follow, start

ROOT = Path(__file__).resolve().parents[2]
NOW = "2026-09-29T06:00:00+00:00"
#: exit statuses that are documented
STATUSES = {0, 1, 2, 75, 78}
#: commands that work until they are stopped, or start a process that does
ENDLESS = {"run", "serve", "demo"}

WORDS = [
    "", " ", "-", "--", "-1", "0", "1e9", "9" * 30, "nan", "\u202e", "a\nb", "a\tb", "\x1b[31m", "\udcff", "Größe", "x" * 5000,
    "*", "../../etc/passwd", "~", "/", ".", "/dev/null", "/dev/full", "nowhere", "Reef Sound", "reef-sound", "Reef", "{}", "[",
    "ana@example.org", "ana@", "@", "a@b@c", '"a b"@c.d', "ana@example.org\r\nBcc: x@y.z", "bo@example.org", "channel:none",
    "07:30", "25:61", "7", "mon", "mon,mon", "someday", "Europe/Berlin", "Mars/Olympus", "UTC", "2026-02-30", "2026-09-29",
    "2026-09-29T06:00", "none", "latest:", "latest:-1", "latest:10", "since:yesterday", "* * * * *", "0 0 31 2 *", "x y z",
    "title:", "title:reef", "nofield:x", "words:(", "category:cs.CL", "/(/", "html", "text", "json", "info", "loud",
    "https://127.0.0.1:1/", "ftp://x/", "http://[", "file:///etc/passwd", "javascript:alert(1)", "<script>",
    "%00", "1", "2", "-5",
]  # fmt: skip


def options_of(command: click.Command) -> list[str]:
    """Return the options of a command and of those below it."""
    found = [option for param in command.params for option in param.opts if option.startswith("-")]
    return [option for option in found if option not in ("--config", "--db")]


def names_of(name: str) -> list[list[str]]:
    """Return a command and, of a group, each command below it, as words."""
    context = click.Context(cli)
    command = cli.get_command(context, name)
    assert command is not None
    if isinstance(command, click.Group):
        return [[name, below] for below in command.list_commands(context)] + [[name]]
    return [[name]]


def command_of(words: list[str]) -> click.Command:
    """Return the command that some words name."""
    context = click.Context(cli)
    found = cli.get_command(context, words[0])
    for word in words[1:]:
        assert isinstance(found, click.Group)
        found = found.get_command(context, word)
    assert found is not None
    return found


CALLS = [words for name in COMMANDS if name not in ENDLESS for words in names_of(name)]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a history, and with things that are none."""
    folder = tmp_path_factory.mktemp("errors")
    with closing(open_store(folder / "history.sqlite")) as store:
        start(store, "Reef Sound", now=at("2026-09-28T05:00"))
        let_follow(store, "ana@example.org", "Reef Sound", now=at("2026-09-28T05:00"))
    (folder / "folder").mkdir()
    (folder / "empty").touch()
    (folder / "binary").write_bytes(bytes(range(256)) * 40)
    (folder / "text.txt").write_text("Reef Sound\n5 papers\n", encoding="utf-8")
    (folder / "page.json").write_text('{"schema": "digestd.snapshot/1", "papers": 5}', encoding="utf-8")
    (folder / "opml.xml").write_text("<opml><body><outline/></body>", encoding="utf-8")
    (folder / "damaged.sqlite").write_bytes(b"SQLite format 3\x00" + bytes(5000))
    (folder / "good.toml").write_text('[store]\npath = "history.sqlite"\nfloor_mb = 0\n', encoding="utf-8")
    (folder / "unknown.toml").write_text("[stoer]\npath = 1\n", encoding="utf-8")
    (folder / "broken.toml").write_text("[store\n", encoding="utf-8")
    (folder / "wrong.toml").write_text('[mail]\nport = "many"\n[[sources]]\nkind = "ship"\n', encoding="utf-8")
    (folder / "latin.toml").write_bytes('[digest]\nname = "Größe"\n'.encode("latin-1"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


FILES = [
    "folder", "empty", "binary", "text.txt", "page.json", "opml.xml", "damaged.sqlite", "history.sqlite", "nowhere/at/all",
    "text.txt/below", "good.toml",
]  # fmt: skip
CONFIGS = ["good.toml"] * 6 + [
    "unknown.toml",
    "broken.toml",
    "wrong.toml",
    "latin.toml",
    "folder",
    "missing.toml",
    "binary",
]


@st.composite
def calls(draw: st.DrawFn) -> tuple[list[str], str]:
    """Return a command line, files as "@name", and the settings file that it is called with."""
    words = draw(st.sampled_from(CALLS))
    options = options_of(command_of(words)) or ["--help"]
    value = (
        st.sampled_from(WORDS)
        | st.sampled_from(FILES).map(lambda name: f"@{name}")
        | st.text(st.characters(codec="utf-8"), max_size=12)
    )
    parts = draw(
        st.lists(st.one_of(value, st.sampled_from(options), st.tuples(st.sampled_from(options), value)), max_size=6)
    )
    line = [word for part in parts for word in (part if isinstance(part, tuple) else (part,))]
    return [*words, *line], draw(st.sampled_from(CONFIGS))


class Captured:
    """What one call wrote."""

    def __init__(self, line: list[str], folder: Path) -> None:
        out, err = (TextIOWrapper(BytesIO(), encoding="utf-8", errors="backslashreplace") for _ in range(2))
        before = sys.stdout, sys.stderr, sys.stdin, Path.cwd()
        os.chdir(folder)
        sys.stdout, sys.stderr, sys.stdin = out, err, TextIOWrapper(BytesIO(b""), encoding="utf-8")
        try:
            self.status = run(line)
        finally:
            sys.stdout, sys.stderr, sys.stdin = before[:3]
            os.chdir(before[3])
        for stream in (out, err):
            with suppress(ValueError):  # closed, as for a reader that has gone
                stream.flush()
        self.out, self.err = (stream.buffer.getvalue().decode("utf-8", "replace") for stream in (out, err))


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(calls())
def test_no_command_line_ends_in_a_traceback(place: Path, call: tuple[list[str], str]) -> None:
    """Any words after any command, with any file in place of settings: a documented status, and a reason where it failed."""
    words, config = call
    line = [str(place / word[1:]) if word.startswith("@") and word[1:] in FILES else word for word in words]
    line = [word.replace("\0", "") for word in line]
    done = Captured([*line, "--config", str(place / config)], place)
    assert done.status in STATUSES, (line, done.err)
    assert "Traceback" not in done.err + done.out
    if done.status not in (0, 1):
        assert done.err.strip(), line
    assert "\x1b" not in done.err + done.out


@pytest.mark.parametrize("words", CALLS, ids=" ".join)
def test_help_of_every_command(words: list[str], tmp_path: Path) -> None:
    """Every command says what it does, within 80 columns, and needs nothing for that."""
    done = Captured([*words, "--help"], tmp_path)
    assert (0, True) == (done.status, done.out.startswith("Usage: digestd"))
    assert [] == [line for line in done.out.splitlines() if len(line) > 80]
    assert [] == list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("args", "status", "words"),
    [
        (("status", "--config", "unknown.toml"), 78, ("unknown.toml", "stoer", "store")),
        (("status", "--config", "broken.toml"), 78, ("broken.toml",)),
        (("status", "--config", "missing.toml"), 78, ("missing.toml",)),
        (("status", "--db", "damaged.sqlite"), 78, ("damaged.sqlite",)),
        (("status", "--db", "folder"), 78, ("folder",)),
        (("ingest", "nowhere.txt"), 1, ("nowhere.txt",)),
        (("preview", "--topic", "Kelp"), 1, ("Kelp", "digestd topics")),
        (("follow", "ana@", "Reef Sound"), 2, ("ana@",)),
        (("follow", "ana@example.org", "Reef Sound", "--zone", "Mars/Olympus"), 2, ("Mars/Olympus",)),
        (("pause", "ana@", "--end"), 2, ("ana@",)),
        (("follow", "ana@example.org", "Reef Sound", "--daily", "25:00"), 2, ("25:00",)),
        (("stauts",), 2, ("stauts",)),
        (("outbox", "retry", "999"), 1, ("999",)),
        (("outbox", "hold", "9" * 30), 2, ("9" * 30,)),
        (("outbox", "list", "--limit", "9" * 30), 2, ("9" * 30,)),
        (("deliver", "--limit", "9" * 30), 2, ("9" * 30,)),
        (("papers", "--topic", "Reef Sound", "--limit", "9" * 30), 2, ("9" * 30,)),
        (("replay", "none"), 1, ("none",)),
        (("why", "Reef Sound Note 1", "zed@example.org"), 1, ("zed@example.org",)),
    ],
)  # fmt: skip
def test_error_names_the_thing(place: Path, args: tuple[str, ...], status: int, words: tuple[str, ...]) -> None:
    """An error says on which thing something failed, by the name that the user gave it."""
    settings_file = () if "--config" in args else ("--config", "good.toml")
    done = Captured([*args, *settings_file], place)
    assert (status, []) == (done.status, [word for word in words if word not in done.err]), done.err


@pytest.mark.parametrize("args", [("papers", "--topic", "Reef Sound"), ("topics",), ("--help",), ("export", "-")])
def test_closed_output_is_no_error_to_shout_about(place: Path, args: tuple[str, ...]) -> None:
    """Where the reader of the output has gone, as in "| head -1", nothing is said."""
    line = " ".join(
        f"'{word}'" for word in (sys.executable, "-m", "digestd", *args, "--config", str(place / "good.toml"))
    )
    done = subprocess.run(
        ["bash", "-c", f"{line} | true; exit 0"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert "" == done.stderr


@pytest.mark.parametrize("args", [("config", "schema"), ("topics",), ("--help",)])
def test_full_disk_under_the_output_is_said(place: Path, args: tuple[str, ...]) -> None:
    """Where the output has no room, that is said in one line, and the status says: try again later."""
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "digestd", *args, "--config", str(place / "good.toml")],
            cwd=ROOT, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
        )  # fmt: skip
    assert (75, "digestd: output: cannot be written: No space left on device\n") == (done.returncode, done.stderr)


@pytest.mark.parametrize("args", [("--help",), ("status", "--config", "{place}/good.toml"), ("follow", "--help")])
def test_small_commands_load_little(place: Path, args: tuple[str, ...]) -> None:
    """What is asked for often does not wait for parsers, templates, servers and schedulers that it does not use."""
    code = (
        "import sys; from digestd.cli import run; run(sys.argv[1:]);"
        "heavy = {'feedparser', 'jinja2', 'apscheduler', 'starlette', 'uvicorn', 'lxml', 'aiosmtplib', 'httpx2', 'structlog'};"
        "sys.stderr.write('loaded ' + ' '.join(sorted(heavy & set(sys.modules))))"
    )
    words = [word.format(place=place) for word in args]
    done = subprocess.run([sys.executable, "-c", code, *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert "loaded " == done.stderr[done.stderr.rindex("loaded ") :]
