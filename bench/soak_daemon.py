"""A daemon under ten times the usual load that is killed at random: nothing may be lost, and memory stays where it is.

Pages are dropped without end, readers are told by page and by the clock, a mail server keeps what it took. Entry point:
:func:`daemon_soak`.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import linear_regression

from bench.corpus import PER_PAGE, make_paper, page_text, read_words
from tests.smtp_sink import Sink, serving

TOPICS = 10
READERS = int(os.environ.get("SOAK_READERS", "100"))
#: seconds between two pages, and the mean between two kills
PAGE_EVERY = float(os.environ.get("SOAK_PAGE_EVERY", "2"))
KILL_EVERY = float(os.environ.get("SOAK_KILL_EVERY", "180"))
#: growth of the resident set in a life of the daemon that is none, MB an hour
FLAT = 20.0
#: lives shorter than this say nothing of memory, seconds
LONG_LIFE = 600.0


def settings(port: int) -> str:
    """Return the settings: a watched folder, a mail server, readers by page and by the clock."""
    parts = [
        '[store]\npath = "history.sqlite"\n[web]\nport = 0\n[mail]\nhost = "127.0.0.1"\nmode = "none"\n'
        f'port = {port}\n[[sources]]\nkind = "folder"\npath = "inbox"\n'
    ]
    names = read_words().labels[:TOPICS]
    parts += [f'[[topics]]\nname = "{name}"\n' for name in names]
    for number in range(READERS):
        when = "cron * * * * *" if number % 2 else "each-snapshot"
        parts.append(
            f'[[subscribers]]\naddress = "r{number}@reef.example"\ntopics = ["{names[number % TOPICS]}"]\n'
            f'schedule = "{when}"\nfirst = "none"\n'
        )
    return "".join(parts)


@dataclass
class Soaked:
    """A daemon in a folder, and what was seen of it."""

    folder: Path
    kills: int = 0
    pages: int = 0
    wrong: list[str] = field(default_factory=list)
    memory: list[tuple[float, float]] = field(default_factory=list)  #: seconds of this life, MB
    process: subprocess.Popen[bytes] | None = None

    def command(self, *words: str) -> list[str]:
        """Return a command on these settings."""
        return [sys.executable, "-m", "digestd", *words, "--config", str(self.folder / "digestd.toml")]

    def start(self) -> None:
        """Start the daemon."""
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(self.command("run"), stdout=log, stderr=log)
        self.memory.clear()

    def stop(self, how: signal.Signals) -> None:
        """End the daemon; it must not have ended by itself."""
        assert self.process is not None
        if (status := self.process.poll()) is not None:
            self.wrong.append(f"the daemon ended by itself, status {status}")
        self.process.send_signal(how)
        self.process.wait(120)

    def audit(self, *words: str) -> None:
        """Have the history audited."""
        done = subprocess.run(self.command("audit", *words), capture_output=True, text=True, check=False)
        if done.returncode:
            self.wrong.append(f"audit after {self.kills} kills: {done.stdout[-2000:]}{done.stderr[-500:]}")
        elif words:
            print(done.stdout + done.stderr, end="")

    def drop(self, chance: random.Random) -> None:
        """Put a page into the watched folder, complete at once."""
        text = page_text(self.pages % TOPICS, [make_paper(chance.randrange(10**7)) for _ in range(PER_PAGE)])
        part = self.folder / "inbox" / f"{self.pages:07d}.txt.part"
        part.write_text(text, encoding="utf-8")
        os.utime(part, (1_700_000_000, 1_700_000_000))
        part.rename(part.with_suffix(""))
        self.pages += 1

    def look(self, age: float) -> None:
        """Note the resident set."""
        assert self.process is not None
        with suppress(OSError, IndexError):
            pages = int(Path(f"/proc/{self.process.pid}/statm").read_text(encoding="ascii").split()[1])
            self.memory.append((age, pages * os.sysconf("SC_PAGE_SIZE") / 1024**2))

    def check_memory(self) -> None:
        """Hold the slope of the last half of this life against what is flat; a short life is only told."""
        if len(late := self.memory[len(self.memory) // 2 :]) < 3:
            return
        slope = 3600 * linear_regression([at for at, _ in late], [mb for _, mb in late]).slope
        print(f"memory: {late[-1][1]:.0f} MB after {late[-1][0]:.0f} s, {slope:+.1f} MB an hour in the last half")
        if late[-1][0] > LONG_LIFE and slope > FLAT:
            self.wrong.append(f"memory grows by {slope:.1f} MB an hour")


def _live(one: Soaked, seconds: float, chance: random.Random) -> None:
    begin = born = time.monotonic()
    next_page, next_kill = begin, begin + chance.expovariate(1 / KILL_EVERY)
    one.start()
    while (now := time.monotonic()) < begin + seconds:
        if now >= next_page:
            one.drop(chance)
            one.look(now - born)
            next_page = now + PAGE_EVERY
        if now >= next_kill:
            one.stop(signal.SIGKILL)
            one.kills += 1
            one.audit()
            one.start()
            born = time.monotonic()
            next_kill = born + chance.expovariate(1 / KILL_EVERY)
        time.sleep(0.05)
    one.check_memory()


def _settle(one: Soaked, sink: Sink) -> None:
    """Wait until all pages are read and no mail has come for some seconds, then end the daemon."""
    deadline, before, quiet = time.monotonic() + 600, -1, 0
    while quiet < 8 and time.monotonic() < deadline:
        size = sink.file.stat().st_size if sink.file.exists() else 0
        quiet = quiet + 1 if size == before and not list((one.folder / "inbox").glob("*.txt")) else 0
        before = size
        time.sleep(1)
    one.stop(signal.SIGTERM)


def daemon_soak(seconds: float = float(os.environ.get("SOAK_SECONDS", "3600"))) -> int:
    """Return 0 if a daemon that was killed again and again lost nothing, and its memory stayed flat."""
    with tempfile.TemporaryDirectory(prefix="digestd-soak-") as place, serving(Sink(Path(place) / "taken")) as sink:
        folder = Path(place)
        (folder / "inbox").mkdir()
        (folder / "digestd.toml").write_text(settings(sink.port), encoding="utf-8")
        one = Soaked(folder)
        try:
            _live(one, seconds, random.Random(os.environ.get("SOAK_SEED", "1")))
            _settle(one, sink)
        finally:
            if one.process is not None and one.process.poll() is None:
                one.process.kill()
        (folder / "kept").mkdir()
        taken = sink.taken()
        for number, mail in enumerate(taken):
            (folder / "kept" / f"{number:07d}.eml").write_bytes(mail.body)
        one.audit("--against", str(folder / "kept"))
        size = sum(path.stat().st_size for path in folder.glob("history.sqlite*")) / 1024**2
        print(f"daemon: {one.pages:,} pages, {one.kills} kills, {len(taken):,} mails taken, history {size:.1f} MB")
        if not taken or not one.pages:
            one.wrong.append("no mail was taken")
        if one.wrong:
            print("\n".join([*one.wrong, (folder / "log").read_text(encoding="utf-8", errors="replace")[-1500:]]))
        return 1 if one.wrong else 0
