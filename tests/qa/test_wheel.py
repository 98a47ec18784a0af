"""The wheel holds all that the program needs, wherever it is started."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SAMPLE = ROOT / "seeds" / "llm-agent-training.page-1.txt"


def run(*command: str | Path, cwd: Path | str = "/") -> str:
    """Return what a command prints, run from elsewhere and with nothing of this tree in its environment."""
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "DIGESTD_", "COV_"))
    }
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{command}: exit {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel, built without a network by the build system of this environment."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of a fresh environment: the wheel in it, the libraries of this environment behind it."""
    folder = tmp_path_factory.mktemp("fresh")
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    purelib = folder / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet", "--no-deps", "--no-index"]
    run(*pip, "--target", purelib, wheel)
    # appended, so what the wheel brings comes first; a path file that leads back to this tree is not read there
    (purelib / "libraries.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return folder / "bin" / "python"


def test_wheel_holds_code_templates_and_samples(wheel: Path) -> None:
    """Code, templates, configuration, samples and the licence are in it; tests are not."""
    names = set(zipfile.ZipFile(wheel).namelist())
    wanted = {f"digestd/{path.relative_to(ROOT)}" for path in (ROOT / "templates").rglob("*") if path.is_file()}
    wanted |= {path.relative_to(ROOT).as_posix() for path in (ROOT / "digestd").rglob("*.py")}
    wanted |= {f"digestd/seeds/{SAMPLE.name}", "digestd/config_files/digestd.toml", "digestd/py.typed"}
    wanted |= {"digestd/units/digestd.service", "digestd/units/digestd.socket"}
    assert set() == wanted - names
    assert [] == [name for name in names if name.startswith(("tests/", "bench/"))]
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_wheel_is_what_runs(python: Path) -> None:
    """The fresh environment runs the wheel's code, not this tree's."""
    where = run(python, "-c", "import digestd; print(digestd.__file__)")
    assert not Path(where.strip()).is_relative_to(ROOT / "digestd")


def test_wheel_parses_from_elsewhere(python: Path) -> None:
    """`digestd parse` reads a page when started in another folder."""
    snapshot = json.loads(run(python, "-m", "digestd", "parse", SAMPLE, "--json"))
    assert "digestd.snapshot/1" == snapshot["schema"]


def test_wheel_renders_from_elsewhere(python: Path, tmp_path: Path) -> None:
    """`digestd demo` finds templates and samples in the wheel and makes a digest of them."""
    run(python, "-m", "digestd", "demo", "--out", tmp_path / "demo")
    assert [] != list((tmp_path / "demo").rglob("*.html"))


def test_wheel_prints_its_surroundings(python: Path) -> None:
    """Unit, socket, completion and manual come from the wheel; the unit calls the interpreter that it is installed for."""
    assert f"ExecStart={python} -m digestd run" in run(python, "-m", "digestd", "systemd", "print")
    assert "ListenStream=" in run(python, "-m", "digestd", "systemd", "print", "--socket")
    assert "_DIGESTD_COMPLETE" in run(python, "-m", "digestd", "completion", "bash")
    assert run(python, "-m", "digestd", "man").startswith(".TH DIGESTD 1")
