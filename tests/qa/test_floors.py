"""The floors hold: who may import whom, which library is used where, who may ask for the time or the environment.

A module's floor stands in its docstring ("Floor 1"); a folder's modules all have the folder's floor.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "digestd"

#: folder -> floor of all modules in it
FOLDERS = {"model": 0, "parse": 1, "render": 1, "watch": 3, "store": 3, "send": 3, "flows": 4, "web": 5, "cli": 5}

#: single modules whose floor is part of the design
MODULES = {
    "errors": 0,
    "identity": 1,
    "diff": 1,
    "coverage": 1,
    "momentum": 1,
    "headline": 1,
    "summary": 1,
    "phrases": 1,
    "schedule": 1,
    "compose": 1,
    "retry": 1,
    "ports": 2,
    "templating": 3,
    "config": 5,
    "wiring": 5,
    "daemon": 5,
    "troubles": 1,
    "mail_dns": 1,
    "metrics": 5,
    "eyes": 5,
    "logs": 5,
    "log_context": 0,
    "__main__": 5,
}

#: third-party package -> where it may be imported: a folder or a module
CONFINED = {
    "apprise": ("send",),
    "aiosmtplib": ("send",),
    "apscheduler": ("schedule", "daemon"),
    "backports": ("watch",),
    "click": ("cli",),
    "cronsim": ("schedule",),
    "css_inline": ("render",),
    "cssselect": ("parse",),
    "dkim": ("send",),
    "dns": ("send",),
    "email_validator": ("addresses",),
    "feedparser": ("parse",),
    "flufl": ("bounces",),
    "httpcore2": ("watch",),
    "httpx2": ("watch",),
    "imap_tools": ("watch",),
    "jinja2": ("templating", "render", "wiring"),
    "logging_journald": ("logs",),
    "lxml": ("parse", "render"),
    "markupsafe": ("render", "templating"),
    "nh3": ("parse", "render"),
    "platformdirs": ("config",),
    "prometheus_client": ("metrics",),
    "pydantic": ("config", "config_findings"),
    "pydantic_core": ("config_findings",),
    "pydantic_settings": ("config",),
    "pylatexenc": ("parse",),
    "rapidfuzz": ("identity",),
    "resvg_py": ("render",),
    "rich": ("cli",),
    "sqlite_utils": ("store",),
    "starlette": ("web",),
    "structlog": ("logs",),
    "uvicorn": ("web", "daemon"),
    "watchfiles": ("watch",),
}

#: part of the standard library in later releases than the oldest that digestd runs on
LATER_STDLIB = {"compression"}

#: the outside world: floors 0 to 2 get what they need as arguments
IMPURE = {
    "asyncio",
    "os",
    "random",
    "secrets",
    "shutil",
    "signal",
    "socket",
    "sqlite3",
    "subprocess",
    "tempfile",
    "threading",
    "time",
}

#: calls that ask for the time of day; the one module that may is wiring
CLOCK = {"datetime.now", "datetime.utcnow", "datetime.today", "date.today", "time.time"}


@dataclass(frozen=True)
class Module:
    """One file of the package."""

    name: str  #: dotted, within the package: "parse.listing"; "parse" for its __init__
    folder: str  #: "parse"; "" at the top
    tree: ast.Module

    @property
    def floor(self) -> int | None:
        """The floor that the docstring states."""
        stated = re.search(r"\bfloor (\d)\b", ast.get_docstring(self.tree) or "", re.IGNORECASE)
        return int(stated[1]) if stated else None

    @property
    def place(self) -> str:
        """The folder, or the module's own name at the top."""
        return self.folder or self.name


@cache
def modules() -> dict[str, Module]:
    """Return all modules of the package that say something, the package's own __init__ left out."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        name = ".".join(part for part in parts if part != "__init__")
        tree = ast.parse(path.read_text(encoding="utf-8"), str(path))
        if name and tree.body:
            found[name] = Module(name, parts[0] if len(parts) > 1 else "", tree)
    return found


def imports(module: Module) -> Iterator[tuple[str, int]]:
    """Yield (dotted name, line) of everything a module imports, at any depth, for types too."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module.name} line {node.lineno}: imports are absolute"
            base = node.module or ""
            yield from ((f"{base}.{alias.name}", node.lineno) for alias in node.names)


def imported_module(dotted: str) -> Module | None:
    """Return the module of ours that an import names; None for the package itself and for others' packages."""
    parts = dotted.split(".")
    if parts[0] != "digestd":
        return None
    known = modules()
    return next((known[name] for n in range(len(parts), 1, -1) if (name := ".".join(parts[1:n])) in known), None)


def may_import(module: Module, target: Module) -> bool:
    """Return whether the floors allow it."""
    here, there = module.floor, target.floor
    if here is None or there is None:
        return False
    if module.place == target.place:
        return True
    return there < here or (there == here and here in (0, 1, 5))


def dotted_name(node: ast.expr) -> str:
    """Return "os.environ" for such an expression, "" for others."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{dotted_name(node.value)}.{node.attr}"
    return ""


@pytest.mark.parametrize("name", modules())
def test_module_states_its_floor(name: str) -> None:
    """A module says on which floor it is, and it is the one of its folder or of the design."""
    module = modules()[name]
    expected = FOLDERS.get(module.folder, MODULES.get(name))
    if module.folder:
        assert module.folder in FOLDERS, f"folder {module.folder} has no floor"
    assert module.floor is not None, f"the docstring of {name} names no floor"
    assert (module.floor if expected is None else expected) == module.floor


@pytest.mark.parametrize("name", modules())
def test_module_imports_lower_floors_only(name: str) -> None:
    """A module imports lower floors or its own folder; floors 0, 1 and 5 are one house each; adapters never meet."""
    module = modules()[name]
    wrong = [
        f"line {line}: {dotted}"
        for dotted, line in imports(module)
        if (target := imported_module(dotted)) is not None and not may_import(module, target)
    ]
    assert [] == wrong


@pytest.mark.parametrize(
    "name", [name for name, module in modules().items() if (module.floor or 0) > 3 and name != "wiring"]
)
def test_adapters_are_named_in_wiring_only(name: str) -> None:
    """Use cases and the program know adapters by their contracts; which ones there are stands in one file."""
    module = modules()[name]
    named = [(dotted, line, imported_module(dotted)) for dotted, line in imports(module)]
    assert [] == [
        f"line {line}: {dotted}" for dotted, line, target in named if target is not None and target.floor == 3
    ]


@pytest.mark.parametrize("name", modules())
def test_module_uses_libraries_where_they_belong(name: str) -> None:
    """Each library is confined to one or two places, so that it can be replaced there."""
    module = modules()[name]
    wrong = []
    for dotted, line in imports(module):
        package = dotted.split(".")[0]
        if package in sys.stdlib_module_names | LATER_STDLIB or package == "digestd":
            continue
        places = CONFINED.get(package, ())
        if module.place not in places:
            wrong.append(f"line {line}: {package} belongs to {', '.join(places) or 'nowhere yet'}")
    assert [] == wrong


@pytest.mark.parametrize("name", [name for name, module in modules().items() if (module.floor or 0) <= 2])
def test_lower_floors_are_pure(name: str) -> None:
    """Floors 0 to 2 have no clock, disk, network or chance."""
    module = modules()[name]
    assert [] == [f"line {line}: {dotted}" for dotted, line in imports(module) if dotted.split(".")[0] in IMPURE]


@pytest.mark.parametrize("name", modules())
def test_environment_and_clock_are_asked_once(name: str) -> None:
    """Only config reads the environment, only wiring asks for the time."""
    wrong = []
    for node in ast.walk(modules()[name].tree):
        asked = dotted_name(node) if isinstance(node, ast.Attribute) else ""
        if name != "config" and re.fullmatch(r"os\.(environ|environb|getenv|putenv)(\..*)?", asked):
            wrong.append(f"line {node.lineno}: {asked}")  # type: ignore[attr-defined]  # attributes have lines
        if name != "wiring" and ".".join(asked.split(".")[-2:]) in CLOCK:
            wrong.append(f"line {node.lineno}: {asked}")  # type: ignore[attr-defined]  # attributes have lines
    assert [] == wrong


def test_confined_libraries_are_dependencies_in_use() -> None:
    """The package imports each library that it asks to be installed, apart from data and plug-ins."""
    project = tomllib.loads((PACKAGE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [line for lines in project.get("optional-dependencies", {}).values() for line in lines]
    wanted = {re.split(r"[^A-Za-z0-9-]", line)[0].replace("-", "_") for line in project["dependencies"] + extras}
    wanted = {{"dkimpy": "dkim"}.get(name, name) for name in wanted}  # imported under another name
    data_only = {"tzdata", "cssselect", "python_multipart"}  # read by zoneinfo, by lxml, by starlette
    used = {dotted.split(".")[0] for module in modules().values() for dotted, _ in imports(module)}
    assert set() == wanted - used - data_only
