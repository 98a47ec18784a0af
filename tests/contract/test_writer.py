"""One writer at a time, one sender at a time, whatever thread or process it is."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

import pytest

from digestd.errors import StoreBusyError
from digestd.store import open_store
from digestd.store.writer import WriterLock, sole_process

HOLD = """
import sys
from pathlib import Path
from digestd.store.writer import WriterLock, sole_process
kind, path = sys.argv[1:]
lock = WriterLock(Path(path), timeout_s=5).held() if kind == "writer" else sole_process(Path(path), "sender", what="busy")
with lock:
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize("kind", ["writer", "sender"])
def test_a_lock_of_another_process_is_respected_and_ends_with_it(tmp_path: Path, kind: str) -> None:
    """While another process holds it nobody else does; when that process dies it is free."""
    path = tmp_path / "history.sqlite"
    command = [sys.executable, "-c", HOLD, kind, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert "held\n" == holder.stdout.readline()
        with pytest.raises(StoreBusyError), _lock(kind, path):
            pass
        holder.kill()
    with _lock(kind, path):
        pass


def _lock(kind: str, path: Path):  # type: ignore[no-untyped-def]  # two kinds of context managers
    return WriterLock(path, timeout_s=0.05).held() if kind == "writer" else sole_process(path, "sender", what="busy")


def test_threads_write_one_after_the_other(tmp_path: Path) -> None:
    """Writers of many threads lose nothing to each other."""
    store = open_store(tmp_path / "history.sqlite")
    store.engine.query("CREATE TABLE tally (n INTEGER)")
    store.engine.query("INSERT INTO tally VALUES (0)")

    def add() -> None:
        for _ in range(50):
            with store.transaction():
                n = store.engine.query("SELECT n FROM tally")[0]["n"]
                store.engine.query("UPDATE tally SET n = :n", {"n": n + 1})

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 200 == store.engine.query("SELECT n FROM tally")[0]["n"]
    store.close()


def test_connections_of_ended_threads_are_given_back(tmp_path: Path) -> None:
    """A daemon that uses many short threads does not fill up with open connections."""
    store = open_store(tmp_path / "history.sqlite")
    for _ in range(20):
        thread = threading.Thread(target=store.history.head)
        thread.start()
        thread.join()
    assert 3 > len(store.engine._open)  # type: ignore[attr-defined]  # the engine has no public count of them
    store.close()
