"""What may not stand in the tree: names of registries' hosts, paths of one machine, reminders."""

from __future__ import annotations

import re
import subprocess
import tomllib
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

#: spelt in two halves, so that this file does not find itself
HOSTS = [
    "pypi." + "org",
    "pythonhosted." + "org",
    "npmjs." + "org",
    "deb.debian" + ".org",
    "crates." + "io",
    "ghcr." + "io",
]
PATHS = [r"/wo" + r"rk/", r"/ro" + r"ot/", r"/ho" + r"me/[a-z]", r"/op" + r"t/[a-z]", r"/Us" + r"ers/[A-Za-z]"]
REMINDERS = [r"\bTO" + r"DO\b", r"\bFIX" + r"ME\b", r"\bXX" + r"X\b"]


@cache
def texts() -> dict[str, str]:
    """Return the text files of the tree, as git knows them or will; path -> text."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    ).stdout.decode()
    found = {}
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        if path.is_file() and b"\0" not in (body := path.read_bytes()):
            found[name] = body.decode("utf-8", errors="replace")
    return found


def lines_with(pattern: str, *, but: tuple[str, ...] = ()) -> list[str]:
    """Return "path:line: text" of all lines in which the pattern occurs, outside of some files."""
    rule = re.compile(pattern)
    return [
        f"{name}:{number}: {line.strip()[:120]}"
        for name, text in texts().items()
        if not name.startswith(but or ("\0",))
        for number, line in enumerate(text.splitlines(), 1)
        if rule.search(line)
    ]


def test_no_registry_is_named() -> None:
    """Packages come from wherever the installer of the machine looks; no file names a host for it."""
    assert [] == lines_with("|".join(re.escape(host) for host in HOSTS))


def test_no_path_of_one_machine() -> None:
    """Nothing in the tree works on one machine only."""
    assert [] == lines_with(r"(?<![\w.~$}-])(" + "|".join(PATHS) + ")")


def test_no_reminders() -> None:
    """What is left to do stands where work is planned, not in the files."""
    assert [] == lines_with("|".join(REMINDERS), but=("seeds/",))


def test_packed_input_is_the_same_in_every_process() -> None:
    """Tests have the same names in every worker: gzip writes the time of day into its head unless it is told not to."""
    assert [] == lines_with(r"gzip\.comp" + r"ress\((?!.*mtime=)")


def test_locks_have_hashes_and_agree() -> None:
    """Every locked release has hashes, and the tests run with the very releases that a user gets."""
    locks = []
    for name in ("requirements.lock", "requirements-dev.lock"):
        blocks = re.split(r"\n(?=\S)", texts()[name].split("\n", 2)[2])
        assert [] == [block.split()[0] for block in blocks if "--hash=sha256:" not in block]
        locks.append({block.split()[0] for block in blocks})
    assert set() == locks[0] - locks[1]


def test_lock_fits_the_project() -> None:
    """Every dependency that pyproject.toml names is locked: `make lock` was run after the last change."""
    project = tomllib.loads(texts()["pyproject.toml"])
    groups = project["dependency-groups"]
    for lock, wanted in (
        ("requirements.lock", project["project"]["dependencies"] + groups["build"]),
        ("requirements-dev.lock", [line for line in groups["dev"] if isinstance(line, str)]),
    ):
        locked = set(re.findall(r"(?m)^([a-z0-9-]+)==", texts()[lock]))
        names = {re.split(r"[^A-Za-z0-9._-]", line)[0].lower().replace(".", "-").replace("_", "-") for line in wanted}
        assert set() == names - locked


def test_text_files_are_clean() -> None:
    """Text ends with one line end and has no carriage returns, apart from samples of what others send."""
    wrong = [
        name
        for name, text in texts().items()
        if text
        and not name.startswith(("seeds/", "tests/golden/", "tests/fixtures/"))
        and ("\r" in text or not text.endswith("\n"))
    ]
    assert [] == wrong
