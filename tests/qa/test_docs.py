"""What the documents tell a reader to type does what they say; settings in them are settings, links lead somewhere."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_BLOCK = re.compile(r"(?:<!-- ([^>]*?) -->\n)?```(\w*)\n(.*?)```", re.DOTALL)


def blocks(page: Path, language: str) -> list[tuple[str, str]]:
    """Return (mark, text) of a page's blocks in a language, in order."""
    return [(mark, body) for mark, kind, body in _BLOCK.findall(page.read_text(encoding="utf-8")) if kind == language]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder with the sample pages, and with pages that a reader would have saved."""
    shutil.copytree(ROOT / "seeds", tmp_path / "seeds")
    for name, page in (("page.txt", "page-6"), ("page-a-week-later.txt", "page-1")):
        shutil.copy(ROOT / "seeds" / f"llm-agent-training.{page}.txt", tmp_path / name)
    return tmp_path


def type_in(home: Path, script: str) -> subprocess.CompletedProcess[str]:
    """Run a block as a reader would, in a shell that stops at the first command that fails."""
    folder = home / "bin"
    folder.mkdir(exist_ok=True)
    (folder / "digestd").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m digestd "$@"\n', encoding="utf-8")
    (folder / "digestd").chmod(0o755)
    (home / ".venv/bin").mkdir(parents=True, exist_ok=True)
    shutil.copy(folder / "digestd", home / ".venv/bin/digestd")
    env = {"PATH": f"{folder}:/usr/bin:/bin", "HOME": str(home), "PYTHONPATH": str(ROOT), "LANG": "C.UTF-8"}
    return subprocess.run(
        ["bash", "-e", "-c", script], cwd=home, env=env, capture_output=True, text=True, timeout=100, check=False
    )


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_of_a_page_work(page: Path, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Block by block, in one home folder; what needs root, a relay or a network says so, and is named here."""
    if page.name != "quick-start.md":  # which begins with nothing
        assert 0 == type_in(home, "digestd ingest seeds/llm-agent-training.page-8.txt").returncode
    outputs = []
    for mark, script in blocks(page, "sh"):
        if mark.startswith("not run: "):
            with capsys.disabled():
                sys.stdout.write(f"\n{page.name}: {mark}\n")
            continue
        done = type_in(home, script)
        assert 0 == done.returncode, f"{script}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        outputs.append(done.stdout)
    if page.name == "quick-start.md":
        assert 1 == len(list((home / "papers/mail").glob("*.eml")))
        assert "PAPER DIGEST" in outputs[-1]
        assert outputs[-1].rstrip().endswith("rules hold")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_settings_of_a_page_are_settings(page: Path, tmp_path: Path) -> None:
    """Each block of settings in the documents passes the check that a reader's own file must pass."""
    for number, (_, text) in enumerate(blocks(page, "toml")):
        if text.startswith(("order", "item")):  # rules of a page, read by test_rules
            continue
        file = tmp_path / f"{number}.toml"
        file.write_text(text, encoding="utf-8")
        for name in re.findall(r'(?:_file|_key|rules) = "([^"]+)"', text):
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text("secret", encoding="utf-8")
        done = type_in(tmp_path, f"digestd config check --config {file}")
        assert 0 == done.returncode, f"{text}\n{done.stderr}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    """A link to another file of the project names one that is there."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    targets = [target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text)]
    assert [] == [target for target in targets if "://" not in target and not (page.parent / target).exists()]


def test_all_pages_can_be_found() -> None:
    """Every document is named in the README, or in a document that is."""
    text = "".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert [] == [page.name for page in PAGES[1:] if f"{page.name})" not in text]
