"""The daemon: one process, one event loop, all the work. Floor 5. Entry point: :func:`run_daemon`.

APScheduler is the alarm clock and nothing more: what is due stands in the store, so a tick that was missed, or came twice,
changes nothing. Collecting, making digests, delivering and publishing are jobs of their own; a fault in one is logged and
does not stop the others.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import signal
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from apscheduler.schedulers.asyncio import AsyncIOScheduler

from digestd.errors import ConfigError, DigestdError, StoreError
from digestd.flows.collect import collect
from digestd.flows.deliver import deliver
from digestd.flows.digest import make_due
from digestd.flows.publish import Publisher
from digestd.flows.read_source import Collected
from digestd.systemd import Notifier
from digestd.wiring import App

log = logging.getLogger(__name__)

Job = Callable[[], Awaitable[None]]

#: seconds between two looks at what is due; a look is a few indexed queries
TICK_S = 15

#: how long running jobs may take to end after a signal; a relay may let the last dot wait longer, and its row is uncertain then
DRAIN_S = 45


class Daemon:
    """All jobs of one process."""

    def __init__(self, make_app: Callable[[], App], notifier: Notifier, watchdog_s: float | None) -> None:
        self._make_app, self._notifier, self._watchdog_s = make_app, notifier, watchdog_s
        self._app = make_app()
        self._stop = asyncio.Event()
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._publisher = Publisher()
        self._last_alive: datetime | None = None

    async def run(self) -> None:
        """Work until a signal ends it."""
        loop = asyncio.get_running_loop()
        for number, act in ((signal.SIGTERM, self._stop.set), (signal.SIGINT, self._stop.set)):
            loop.add_signal_handler(number, act)
        loop.add_signal_handler(signal.SIGHUP, self._reload)
        loop.add_signal_handler(signal.SIGUSR1, self._dump)
        scheduler = AsyncIOScheduler(timezone=UTC)
        jobs: dict[str, Job] = {"collect": self._collect, "digest": self._digest, "deliver": self._deliver}
        jobs["publish"] = self._publish
        for name, job in jobs.items():
            scheduler.add_job(
                self._guarded,
                "interval",
                seconds=TICK_S,
                args=[name, job],
                next_run_time=self._now(),
                max_instances=1,
                coalesce=True,
                misfire_grace_time=None,
            )
        if self._watchdog_s:
            scheduler.add_job(self._ping, "interval", seconds=self._watchdog_s / 3, misfire_grace_time=None)
        async with AsyncExitStack() as stack:
            pages = await self._serve(stack)
            scheduler.start()
            self._notifier.ready(f"working, {pages}")
            log.info("daemon ready, %s", pages)
            await self._stop.wait()
            self._notifier.stopping()
            scheduler.shutdown(wait=False)
            await self._drain()
        self._app.close()
        log.info("daemon stopped")

    async def _serve(self, stack: AsyncExitStack) -> str:
        """Start the pages, if they are wanted, and return in words where they are."""
        if not self._app.settings.web.serve:
            return "no pages"
        server = await asyncio.to_thread(self._app.web_server)
        task = asyncio.create_task(server.serve())

        async def end() -> None:
            server.stop()
            await asyncio.wait([task], timeout=10)

        stack.push_async_callback(end)
        return f"pages at {server.address}"

    # -- jobs

    async def _guarded(self, name: str, job: Job) -> None:
        """Run a job; its failure is its own."""
        task = asyncio.current_task()
        assert task is not None
        self._busy[name] = task
        try:
            await job()
        except DigestdError as error:
            log.error("%s failed: %s", name, error)
        except asyncio.CancelledError:
            raise
        except Exception:
            log.exception("%s failed by a bug", name)
        finally:
            self._busy.pop(name, None)

    async def _collect(self) -> None:
        app = self._app
        if not app.settings.sources:
            return

        def report(found: Collected) -> None:
            log.debug("collected source=%s", found.source)

        async with app.watched() as watched:
            await collect(app.store, watched, app.collect_options(report))

    async def _digest(self) -> None:
        app, now = self._app, self._now()
        due_at = await asyncio.to_thread(app.store.subscriptions.next_due_at)
        waiting = await asyncio.to_thread(lambda: app.store.subscriptions.waiting(app.store.history.head(), limit=1))
        if (due_at is None or due_at > now) and not waiting:
            return
        served = await asyncio.to_thread(make_due, app.kitchen, now=now)
        made = sum(one.made is not None and one.made.digest is not None for one in served)
        if made:
            log.info("digests made count=%s", made)

    async def _deliver(self) -> None:
        app, now = self._app, self._now()
        due_at = await asyncio.to_thread(app.store.outbox.next_at)
        if due_at is None or due_at > now:
            return
        async with app.sending() as channel:
            done = await deliver(app.store, channel, app.clock, app.deliver_options)
        if done.relay_down:
            log.warning("mail relay: %s", done.relay_down)

    async def _publish(self) -> None:
        """Bring the feeds up to date, those that the web server has in memory and those in the folder."""
        app, now = self._app, self._now()
        folder = app.settings.feeds.folder
        writers = [app.file_writer(folder)] if folder is not None else []
        if app.settings.web.serve:
            writers.append(lambda files: app.shelf.put(files, now=now))
        if not writers:
            return

        def write(files: Mapping[str, bytes]) -> Sequence[str]:
            return list(dict.fromkeys(name for writer in writers for name in writer(files)))

        done = await asyncio.to_thread(lambda: self._publisher.publish(app.store, app.publish_options, write, now=now))
        if done.written:
            log.info("feeds published files=%s", len(done.written))

    # -- life

    def _now(self) -> datetime:
        return self._app.clock.now()

    async def _ping(self) -> None:
        """Tell the service manager that we live, as long as the store answers."""
        await asyncio.wait_for(asyncio.to_thread(self._app.store.history.head), timeout=self._watchdog_s)
        self._last_alive = self._now()
        self._notifier.alive()

    async def _drain(self) -> None:
        """Let running jobs end; a delivery under way settles what it holds when it is cancelled."""
        tasks = list(self._busy.values())
        for name, task in list(self._busy.items()):
            if name != "digest":  # a transaction in a thread can't be stopped, and is short
                task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=DRAIN_S)

    def _reload(self) -> None:
        """Read the settings again; ones that cannot be used leave the old ones in force."""
        self._notifier.reloading()
        try:
            fresh = self._make_app()
            _ = fresh.settings, fresh.topics, fresh.wishes
        except ConfigError as error:
            log.error("settings not reloaded, the old ones stay: %s", error)
        else:
            old, self._app = self._app, fresh
            self._publisher = Publisher()
            asyncio.get_running_loop().call_later(600, old.close)  # jobs under way still use it
            log.info("settings reloaded")
        self._notifier.ready("working")

    def _dump(self) -> None:
        counts = self._app.store.outbox.counts()
        outbox = " ".join(f"{state}={count}" for state, count in counts.items() if count)
        log.info("state busy=%s head=%s %s", ",".join(self._busy) or "none", self._app.store.history.head(), outbox)


def lock_history(path: Path) -> IO[str]:
    """Return the lock that keeps a second daemon from the same history, held as long as the file stays open.

    Raises:
        StoreError: another daemon holds it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    file = Path(f"{path}.lock").open("a+", encoding="ascii")  # noqa: SIM115 # open as long as the daemon lives
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.seek(0)
        owner = file.read().strip() or "unknown"
        file.close()
        raise StoreError(f"history {path}: expected no other daemon on it, found process {owner}") from error
    file.truncate(0)
    file.write(f"{os.getpid()}\n")
    file.flush()
    return file


async def run_daemon(make_app: Callable[[], App], *, notify_address: str | None, watchdog_s: float | None) -> None:
    """Run the daemon until a signal ends it.

    Raises:
        ConfigError: the settings cannot be used.
        StoreError: the history cannot be used, or another daemon has it.
    """
    first = make_app()
    with lock_history(first.store_path):
        _ = first.store  # migrates, or says why it cannot
        first.close()
        await Daemon(make_app, Notifier(notify_address), watchdog_s).run()
