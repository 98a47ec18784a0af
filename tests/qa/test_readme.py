"""README.md and docs/ speak of commands and options that exist, and of all commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import click
import pytest

from digestd.cli import cli

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def walk(
    command: click.Command, path: str, context: click.Context | None = None
) -> Iterator[tuple[str, click.Command]]:
    """Yield ("subscribers add", command) for a command and all below it that are not hidden."""
    if command.hidden:
        return
    yield path, command
    if isinstance(command, click.Group):
        inner = click.Context(command, info_name=path, parent=context)
        for name in command.list_commands(inner):
            child = command.get_command(inner, name)
            assert child is not None, f"{path} {name} is listed and not there"
            yield from walk(child, f"{path} {name}".strip(), inner)


@cache
def commands() -> dict[str, click.Command]:
    """Return all commands by their words; the program itself is ""."""
    return dict(walk(cli, ""))


def calls(page: Path) -> list[str]:
    """Return all calls of digestd in a page's code, without prompt and comment."""
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"(?ms)^ *```(?:sh|shell|console|bash)\n(.*?)^ *```", text)
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"(?ms)^ *```.*?^ *```", "", text))
    lines = [line for block in blocks for line in block.splitlines()] + spans
    found = (re.match(r"\s*(?:\$ )?(?:\S*/)?digestd((?:\s+.*)?)$", re.sub(r"\s+#.*", "", line)) for line in lines)
    return [match[1].strip() for match in found if match]


def find_command(call: str) -> tuple[str, click.Command, str] | None:
    """Return the longest command that a call begins with, and the rest of the call; None if its first word is none."""
    words = call.split()
    while words and words[0].startswith("--"):
        words = words[2 if len(words) > 1 and words[0] in {"--config", "--log-level", "--log-format"} else 1 :]
    for n in range(len(words), -1, -1):
        path = " ".join(words[:n])
        if path in commands() and (n or not words):
            return path, commands()[path], " ".join(words[n:])
    return None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_calls_commands_that_exist(page: Path) -> None:
    """Every call in a page's code is a command, and takes the options that the page gives it."""
    wrong = []
    for call in calls(page):
        found = find_command(call)
        if found is None:
            wrong.append(f"digestd {call}: no such command")
            continue
        _, command, rest = found
        known = {
            name
            for parameter in [*command.params, *cli.params]
            for name in [*parameter.opts, *parameter.secondary_opts]
        }
        known |= {"--help"}
        wrong += [
            f"digestd {call}: no option {option}"
            for option in re.findall(r"(?<!\S)--[a-z][a-z-]*", rest)
            if option not in known
        ]
    assert [] == wrong


def test_readme_names_every_command() -> None:
    """The README shows each command that --help shows."""
    shown = {found[0] for call in calls(PAGES[0]) if (found := find_command(call))}
    leaves = {path for path, command in commands().items() if not isinstance(command, click.Group)}
    assert set() == leaves - shown


def test_commands_say_what_they_do() -> None:
    """Every command has a help line of its own that ends as a sentence."""
    assert [] == [
        path
        for path, command in commands().items()
        if not re.search(r"[.:]\s*$", (command.help or "").split("\n\n")[0])
    ]


def test_readme_links_lead_somewhere() -> None:
    """Each relative link or picture of README and docs is in the tree."""
    missing = [
        f"{page.name}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert [] == missing


def test_readme_names_make_targets_that_exist() -> None:
    """Every `make x` of the pages is a rule of the Makefile."""
    rules = set(re.findall(r"(?m)^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8")))
    named = {
        name
        for page in PAGES
        for name in re.findall(r"(?:`|^)make ([a-z]+)", page.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert set() == named - rules
