"""The unit under a real service manager: a container boots, the daemon starts in its sandbox, a page becomes mail and feed.

The container is this machine's own file system with a layer of memory over it, so nothing is left behind.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: an interpreter that the sandbox can see, which has no home folders
PYTHON = Path("/usr/bin/python3")
SECRET = "hush-2718"
PASSWORD = "mail__password"

LAUNCHER = """#!/usr/bin/python3
import sys
sys.path[:0] = ["/usr/lib/digestd-test/digestd", "/usr/lib/digestd-test/packages"]
from digestd.cli import main
main()
"""
#: the pages' socket is the service manager's, on a port that the settings do not name
SOCKET = "[Socket]\nListenStream=127.0.0.1:8765\n"
#: a loop that has stopped is found in seconds
IMPATIENT = "[Service]\nWatchdogSec=6\nRestartSec=1\n"
SETTINGS = """[web]
base_url = "http://127.0.0.1:8765"
port = 8766
[mail]
from_address = "digest@example.org"
channel = "eml"
folder = "/var/lib/digestd/mail"
[[subscribers]]
address = "ana@example.org"
topics = ["LLM Agent Training"]
schedule = "each-snapshot"
[[topics]]
name = "LLM Agent Training"
[[sources]]
kind = "folder"
path = "/var/lib/digestd/incoming"
"""
TARGET = "[Unit]\nDescription=what a test boots\nWants=drive.service\n"
DRIVER = """[Unit]
Description=what a test does
DefaultDependencies=no
[Service]
Type=oneshot
ExecStart=/bin/bash /usr/lib/digestd-test/drive.sh
ExecStopPost=/bin/systemctl poweroff --force
"""
#: waits for what shall come, at most half a minute, and writes what it saw
DRIVE = """
wait_for() { for turn in $(seq 300); do eval "$1" && return; sleep 0.1; done; echo "never: $1"; }
said() { echo "$1=$2" >> /out/seen; }
systemctl start digestd.socket digestd; said start $?
cd /var/lib/digestd
mkdir incoming; chown "$(stat -Lc %u:%g .)" incoming
for page in 6 1; do
    if [ $page = 1 ]; then
        stopped="$(systemctl show -P MainPID digestd)"
        kill -STOP "$stopped"
    fi
    cp /usr/lib/digestd-test/digestd/seeds/llm-agent-training.page-$page.txt incoming/$page.part
    chown "$(stat -Lc %u:%g .)" incoming/$page.part
    mv incoming/$page.part incoming/page-$page.txt
    wait_for '! test -e incoming/page-$page.txt' >> /out/seen
done
said other_process "$(test "$stopped" != "$(systemctl show -P MainPID digestd)"; echo $?)"
said restarts "$(systemctl show -P NRestarts digestd)"
said watchdog "$(journalctl -u digestd -o cat | grep -c 'Watchdog timeout')"
wait_for 'grep -q "^Subject: .*30 new" mail/*.eml 2>/dev/null' >> /out/seen
said subjects "$(cat mail/*.eml | grep -c '^Subject: .*30 new')"
said quarantine "$(ls incoming/quarantine 2>/dev/null)"
/usr/bin/python3 -c '
import urllib.request
feed = urllib.request.urlopen("http://127.0.0.1:8765/feeds/llm-agent-training/atom.xml")
print(feed.read().count(b"<entry"))' > /out/entries 2>&1
said entries "$(tail -1 /out/entries)"
digestd --db digestd.sqlite audit > /out/audit 2>&1; said audit $?
systemctl reload digestd; said reload $?
wait_for 'journalctl -u digestd -o cat | grep -q "settings reloaded"' >> /out/seen
echo "nonsense = 1" >> /etc/digestd/digestd.toml
systemctl reload digestd; said bad_reload $?
said active "$(systemctl is-active digestd)"
tr '\\0' '\\n' < /proc/"$(systemctl show -P MainPID digestd)"/environ > /out/environment
systemctl stop digestd; said stop "$(systemctl show -P Result digestd)"
journalctl -u digestd -o cat > /out/journal
journalctl -t digestd _SYSTEMD_UNIT=digestd.service -o json > /out/fields
cat digestd.sqlite* > /out/history
echo end >> /out/seen
"""


def why_not() -> str | None:
    """Return why no container can be booted here, None if one can be."""
    if os.geteuid() != 0:
        return "booting a container needs root"
    if shutil.which("systemd-nspawn") is None:
        return "systemd-nspawn is not installed (Debian: systemd-container)"
    wanted = f"{sys.version_info.major}.{sys.version_info.minor}"
    asked = [str(PYTHON), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
    found = subprocess.run(asked, capture_output=True, text=True, check=False) if PYTHON.exists() else None
    if found is None or found.stdout.strip() != wanted:
        return f"{PYTHON} is not Python {wanted}, for which the packages are installed"
    return None


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Path]:
    """Return the root folder of a container with digestd and its unit in it."""
    reason = why_not()
    if reason:
        pytest.skip(reason)
    layers = tmp_path / "layers"
    layers.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "tmpfs", layers], check=True)
    try:
        for name in ("upper", "work", "root"):
            (layers / name).mkdir()
        options = f"lowerdir=/,upperdir={layers}/upper,workdir={layers}/work"
        done = subprocess.run(
            ["mount", "-t", "overlay", "overlay", "-o", options, layers / "root"],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            pytest.skip(f"no overlay can be mounted here: {done.stderr.strip()}")
        furnish(layers / "root")
        yield layers / "root"
    finally:
        subprocess.run(["umount", "-R", layers], check=False)


def furnish(root: Path) -> None:
    """Put digestd, its unit, its settings and what is done with it into a container."""
    for name in ("digestd", "templates", "config", "seeds"):
        shutil.copytree(ROOT / name, root / "usr/lib/digestd-test/digestd" / name)
    units = root / "etc/systemd/system"
    units.mkdir(parents=True, exist_ok=True)
    (root / "out").mkdir()
    credentials = root / "etc/digestd/credentials"
    credentials.mkdir(parents=True, exist_ok=True)  # the machine below may have some of its own
    (credentials / PASSWORD).write_text(SECRET)
    (credentials / PASSWORD).chmod(0o600)
    shutil.copy(ROOT / "digestd.service", units)
    (units / "digestd.socket").write_text(SOCKET)
    (units / "digestd.service.d").mkdir()
    (units / "digestd.service.d/impatient.conf").write_text(IMPATIENT)
    (units / "test.target").write_text(TARGET)
    (units / "drive.service").write_text(DRIVER)
    (root / "etc/digestd/digestd.toml").write_text(SETTINGS)
    (root / "usr/lib/digestd-test/drive.sh").write_text(DRIVE)
    (root / "usr/bin/digestd").unlink(missing_ok=True)
    (root / "usr/bin/digestd").write_text(LAUNCHER)
    (root / "usr/bin/digestd").chmod(0o755)
    (root / "usr/lib/digestd-test/packages").mkdir()
    subprocess.run(["chmod", "-R", "a+rX", root / "usr/lib/digestd-test"], check=True)


def test_unit_under_a_real_service_manager(machine: Path, tmp_path: Path) -> None:
    """A stopped loop is killed and nothing lost or told twice; feed by passed socket, reloads, stop; the password nowhere."""
    out = tmp_path / "out"
    out.mkdir()
    packages = sysconfig.get_path("purelib")
    boot = ["systemd-nspawn", "-q", "-D", machine, "--register=no", "--keep-unit", "--private-network"]
    try:
        done = subprocess.run(
            [
                *map(str, boot),
                f"--bind={out}:/out",
                f"--bind-ro={packages}:/usr/lib/digestd-test/packages",
                "-b",
                "systemd.unit=test.target",
            ],
            capture_output=True,
            text=True,
            timeout=150,
            check=False,
        )
        console = done.stdout + done.stderr
    except subprocess.TimeoutExpired as error:
        console = f"not ended: {error.stdout!r}"
    if not (out / "seen").exists():
        pytest.skip(f"no container boots here: {console[-300:]}")
    journal = (out / "journal").read_text()
    seen = dict(line.partition("=")[::2] for line in (out / "seen").read_text().splitlines())
    assert seen == {
        "start": "0",
        "other_process": "0",
        "restarts": "1",
        "watchdog": "1",
        "subjects": "1",
        "quarantine": "",
        "entries": "30",
        "audit": "0",
        "reload": "0",
        "bad_reload": "1",
        "active": "active",
        "stop": "success",
        "end": "",
    }, journal
    assert "daemon stopped" in journal
    entries = [json.loads(line) for line in (out / "fields").read_text().splitlines()]
    sent, *_ = [entry for entry in entries if str(entry["MESSAGE"]).startswith("delivery accepted ")]
    named = {name: sent[name] for name in ("PRIORITY", "SYSLOG_IDENTIFIER", "EXTRA_ID", "CODE_MODULE", "_TRANSPORT")}
    assert ["6", "digestd", "1", "deliver", "journal"] == list(named.values())
    assert sent["EXTRA_RUN"].startswith("deliver-")
    environment = (out / "environment").read_text()
    assert "CREDENTIALS_DIRECTORY=" in environment
    fields = (out / "fields").read_text()
    for place in (environment, journal, fields, (out / "history").read_bytes().decode("latin-1")):
        assert SECRET not in place
