"""What an installation prints for its surroundings: units, completion, manual page; and the recipe for a container."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from digestd.cli import COMMANDS
from digestd.cli.systemd import program_of, unit_for

ROOT = Path(__file__).resolve().parents[2]


def printed(*args: str) -> str:
    """Return what `python -m digestd` prints."""
    call = [sys.executable, "-m", "digestd", *args]
    done = subprocess.run(call, capture_output=True, text=True, timeout=60, check=False, cwd="/")
    assert 0 == done.returncode, done.stderr
    return done.stdout


def test_printed_unit_runs_this_installation(tmp_path: Path) -> None:
    """The unit calls the program of this interpreter; the service manager understands it and finds it shut in."""
    unit = tmp_path / "digestd.service"
    unit.write_text(printed("systemd", "print"))
    program = program_of(Path(sys.executable))
    assert f"ExecStart={program} run --config /etc/digestd/digestd.toml" in unit.read_text().splitlines()
    assert "/usr/bin/digestd" not in unit.read_text() or program == "/usr/bin/digestd"
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    for call in (["verify", "--man=no"], ["security", "--offline=true", "--threshold=15", "--no-pager"]):
        done = subprocess.run(
            ["systemd-analyze", *call, str(unit)], capture_output=True, text=True, timeout=60, check=False
        )
        assert 0 == done.returncode, done.stdout[-300:] + done.stderr
        assert call[0] != "verify" or "" == done.stdout + done.stderr


def test_unit_without_a_program_calls_the_module(tmp_path: Path) -> None:
    """Where no program stands beside the interpreter, the interpreter runs the module."""
    program = program_of(tmp_path / "python3")
    assert f"{tmp_path}/python3 -m digestd" == program
    assert f"ExecStart={program} run\n" == unit_for(program, "ExecStart=/usr/bin/digestd run\n")


def test_printed_socket_is_understood(tmp_path: Path) -> None:
    """The socket is one that the service manager understands, for the service of the same name."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    (tmp_path / "digestd.socket").write_text(printed("systemd", "print", "--socket"))
    (tmp_path / "digestd.service").write_text(printed("systemd", "print"))
    call = ["systemd-analyze", "verify", "--man=no", str(tmp_path / "digestd.socket")]
    done = subprocess.run(call, capture_output=True, text=True, timeout=60, check=False)
    assert (0, "") == (done.returncode, done.stdout + done.stderr)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_read_by_its_shell(shell: str, tmp_path: Path) -> None:
    """The script is one that the shell reads, and names the program."""
    script = tmp_path / "script"
    script.write_text(printed("completion", shell))
    assert "_DIGESTD_COMPLETE" in script.read_text()
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    done = subprocess.run([shell, "-n", str(script)], capture_output=True, text=True, timeout=20, check=False)
    assert (0, "") == (done.returncode, done.stderr)


def test_manual_has_every_command(tmp_path: Path) -> None:
    """Each command has its heading, and where there is a reader of manual pages it has nothing to say against the page."""
    page = tmp_path / "digestd.1"
    page.write_text(printed("man"))
    headings = re.findall(r"(?m)^\.SS digestd ([a-z]+)", page.read_text())
    assert set(COMMANDS) == set(headings)
    if shutil.which("groff") is None:
        pytest.skip("groff is not installed")
    call = ["groff", "-man", "-Tutf8", "-ww", "-z", str(page)]
    done = subprocess.run(call, capture_output=True, text=True, timeout=20, check=False)
    assert (0, "") == (done.returncode, done.stderr)


def test_container_recipe_names_what_is_there() -> None:
    """The recipe copies files that exist, runs as a user who is not root, and asks for health."""
    text = (ROOT / "Dockerfile").read_text()
    assert (ROOT / "requirements.lock").is_file()
    assert re.findall(r"(?m)^USER (\d+)$", text) == ["10001"]
    assert "HEALTHCHECK" in text
    assert "/healthz" in text
