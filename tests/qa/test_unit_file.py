"""digestd.service: what systemd itself says of it."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

UNIT = Path(__file__).resolve().parents[2] / "digestd.service"


@pytest.fixture
def unit(tmp_path: Path) -> Path:
    """Return the unit with programs that are there, for systemd looks them up."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    copy = tmp_path / "digestd.service"
    copy.write_text(UNIT.read_text(encoding="utf-8").replace("/usr/bin/digestd", "/bin/true"), encoding="utf-8")
    return copy


def test_unit_has_one_directive_a_line() -> None:
    """Every line is a section, a directive, a comment or empty, and no directive is given twice by mistake."""
    lines = UNIT.read_text(encoding="utf-8").splitlines()
    assert [] == [line for line in lines if not re.fullmatch(r"|#.*|\[\w+\]|\w+=\S*( \S+)*", line)]
    names = [line.partition("=")[0] for line in lines if re.match(r"\w+=", line)]
    assert {"ExecReload", "SystemCallFilter"} == {name for name in names if names.count(name) > 1}


def test_unit_is_understood(unit: Path) -> None:
    """The service manager knows every directive: it says nothing at all, for unknown ones are only warnings to it."""
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (0, "") == (done.returncode, done.stdout + done.stderr)


def test_unit_is_shut_in(unit: Path) -> None:
    """The exposure that the service manager reckons stays at 1.5 of 10 or below."""
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=15", "--no-pager", str(unit)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert 0 == done.returncode, done.stdout[-500:] + done.stderr
