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
from digestd.eyes import Eyes, audit_now, log_state, look_around, sign_of_life
from digestd.flows.alerts import make_alerts
from digestd.flows.collect import collect
from digestd.flows.deliver import deliver
from digestd.flows.digest import make_due
from digestd.flows.publish import Publisher
from digestd.flows.read_source import Collected
from digestd.log_context import about
from digestd.metrics import CountedApp, Meters, metrics_app, take_stock
from digestd.model.snapshot import SnapshotRecord
from digestd.systemd import Notifier
from digestd.web.app import Application
from digestd.web.server import WebServer
from digestd.wiring import App

log = logging.getLogger(__name__)

Job = Callable[[], Awaitable[None]]

#: seconds between two looks at what is due; a look is a few indexed queries
TICK_S = 15

#: seconds between two wake-ups of jobs that need not look at every tick whether something is due
SLOW = {"beat": 60, "look": 300, "alerts": 3600, "tidy": 3600, "audit": 3600}

#: seconds between two looks at how late the loop is
STALL_S = 5

#: jobs that a start does not wake at once: what they look at is there only after the others ran
AFTER_A_WHILE = frozenset({"audit", "look", "beat"})
AFTER_A_WHILE_S = 60

#: how long running jobs may take to end after a signal; a relay may let the last dot wait longer, and its row is uncertain then
DRAIN_S = 45


class Daemon:
    """All jobs of one process.

    Each job has a task of its own that sleeps until it is woken: by the clock, by a change in a watched folder, or by the
    job before it, so that a new page is a mail a moment later.
    """

    def __init__(self, app: App, make_app: Callable[[], App], notifier: Notifier, watchdog_s: float | None) -> None:
        self._app, self._make_app, self._notifier, self._watchdog_s = app, make_app, notifier, watchdog_s
        self._stop = asyncio.Event()
        self._jobs: dict[str, Job] = {
            "collect": self._collect,
            "digest": self._digest,
            "deliver": self._deliver,
            "publish": self._publish,
            "alerts": self._alerts,
            "tidy": self._tidy,
            "audit": self._audit,
            "look": self._look,
            "beat": self._beat,
        }
        self._eyes = Eyes()
        self._meters = Meters(lambda tally: take_stock(self._app, tally, self._eyes.findings))
        self._wakers = {name: asyncio.Event() for name in self._jobs}
        self._busy: set[str] = set()
        self._runs = 0
        self._publisher = Publisher()
        self._pages = CountedApp(self._meters)
        self._reloading: asyncio.Task[None] | None = None
        self._dumping: asyncio.Task[None] | None = None  # held, or it could be collected while it works
        self._folder_watchers: list[asyncio.Task[None]] = []
        self._old: list[App] = []

    async def run(self) -> None:
        """Work until a signal ends it."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        loop.add_signal_handler(signal.SIGHUP, self._begin_reload)
        loop.add_signal_handler(signal.SIGUSR1, self._begin_dump)
        scheduler = AsyncIOScheduler(timezone=UTC)
        for name in self._jobs:
            seconds = SLOW.get(name, TICK_S)
            scheduler.add_job(
                self._wake, "interval", seconds=seconds, args=[name], coalesce=True, misfire_grace_time=None
            )
        if self._watchdog_s:
            scheduler.add_job(self._ping, "interval", seconds=self._watchdog_s / 3, misfire_grace_time=None)
        async with AsyncExitStack() as stack:
            pages = await self._serve(stack)
            tasks = {name: asyncio.create_task(self._work(name, job)) for name, job in self._jobs.items()}
            self._watch_folders()
            scheduler.start()
            self._wake(*self._jobs.keys() - AFTER_A_WHILE)
            loop.call_later(AFTER_A_WHILE_S, self._wake, *AFTER_A_WHILE)
            watch = asyncio.create_task(self._watch_loop())
            self._notifier.ready(f"working, {pages}")
            log.info("daemon ready, %s", pages)
            await self._stop.wait()
            self._notifier.stopping()
            scheduler.shutdown(wait=False)
            watch.cancel()
            await self._drain(tasks)
        for app in (*self._old, self._app):
            app.close()
        log.info("daemon stopped")

    async def _serve(self, stack: AsyncExitStack) -> str:
        """Start pages and figures, if they are wanted, and return in words where they are."""
        where, wanted = [], self._app.settings.metrics
        if self._app.settings.web.serve:
            self._pages.app = await asyncio.to_thread(self._app.web_app)
            pages = await asyncio.to_thread(lambda: self._app.web_server(application=self._pages))
            where.append(f"pages at {self._begin(stack, pages)}")
        if wanted.serve:
            try:
                figures = self._app.web_server(wanted.host, wanted.port, application=metrics_app(self._meters))
            except ConfigError as error:  # papers are told without figures, too
                log.warning("no metrics: %s", error)
            else:
                where.append(f"metrics at {self._begin(stack, figures)}metrics")
        return " and ".join(where) or "no pages"

    def _begin(self, stack: AsyncExitStack, server: WebServer) -> str:
        """Have a server answer until the end, and return its address."""
        task = asyncio.create_task(server.serve())

        async def end() -> None:
            server.stop()
            await asyncio.wait([task], timeout=10)

        stack.push_async_callback(end)
        return server.address

    # -- jobs

    def _wake(self, *names: str) -> None:
        for name in names:
            self._wakers[name].set()

    async def _work(self, name: str, job: Job) -> None:
        """Run a job whenever it is woken; woken while it runs, it runs once more."""
        waker = self._wakers[name]
        while True:
            await waker.wait()
            if self._stop.is_set():
                return
            waker.clear()
            self._busy.add(name)
            try:
                await self._guarded(name, job)
            finally:
                self._busy.discard(name)

    async def _guarded(self, name: str, job: Job) -> None:
        """Run a job; its failure is its own."""
        self._runs += 1
        with about(run=f"{name}-{self._runs}"):
            why = ""
            try:
                await job()
            except DigestdError as error:
                why = str(error) or type(error).__name__
                log.error("%s failed: %s", name, error)
            except Exception as error:
                why = f"failed by a bug, see the log: {type(error).__name__}"
                log.exception("%s failed by a bug", name)
            self._eyes.went(name, self._now(), why)
            self._meters.jobs.labels(name, "failed" if why else "done").inc()

    async def _collect(self) -> None:
        """Ask the sources that are due; not where the history must not grow, which the look around tells."""
        if await asyncio.to_thread(self._app.room.is_short):
            return
        app, news = self._app, False
        if not await asyncio.to_thread(lambda: app.sources):
            return

        def report(found: Collected) -> None:
            nonlocal news
            log.debug("collected source=%s", found.source)
            self._meters.count_document(found)
            news = news or (isinstance(found.result, SnapshotRecord) and not found.result.unchanged)

        async with app.watched() as watched:
            await collect(app.store, watched, app.collect_options(report))
        if news:
            self._wake("digest", "publish", "alerts")

    async def _digest(self) -> None:
        """Make the digests that are due; what is passed by for want of room is made when there is some."""
        if await asyncio.to_thread(self._app.room.is_short):
            return
        app, now = self._app, self._now()
        due_at = await asyncio.to_thread(app.store.subscriptions.next_due_at)
        waiting = await asyncio.to_thread(lambda: app.store.subscriptions.waiting(app.store.history.head(), limit=1))
        if (due_at is None or due_at > now) and not waiting:
            return
        served = await asyncio.to_thread(make_due, app.kitchen, now=now)
        made = sum(one.made is not None and one.made.digest is not None for one in served)
        if made:
            log.info("digests made count=%s", made)
            self._wake("deliver", "publish")

    async def _alerts(self) -> None:
        """Tell of topics that turned; figures change with news, and with the days that pass."""
        if await asyncio.to_thread(self._app.room.is_short):
            return
        turned = await asyncio.to_thread(make_alerts, self._app.kitchen, now=self._now())
        if turned:
            log.info("topics turned count=%s", len(turned))
            self._wake("deliver", "publish")

    async def _tidy(self) -> None:
        """Forget what is kept for a time only, and write the file anew in its hour, if that is worth it."""
        app = self._app
        done = await asyncio.to_thread(app.tidy)
        if done.wishes:
            log.info("unconfirmed wishes forgotten count=%s", done.wishes)
        if done.mails:
            log.info("texts of old mails forgotten mails=%s bodies=%s", done.mails, done.contents)
        if self._now().hour == app.settings.keep.compact_hour and (freed := await asyncio.to_thread(app.compact)):
            log.info("history written anew freed_mb=%s", freed // 1_000_000)

    async def _deliver(self) -> None:
        app, now = self._app, self._now()
        due_at = await asyncio.to_thread(app.store.outbox.next_at)
        if due_at is None or due_at > now:
            return
        async with app.sending() as channel:
            done = await deliver(app.store, self._meters.metered(channel), app.clock, app.deliver_options)
        if done.relay_down:
            log.warning("mail relay: %s", done.relay_down)
        if self._eyes.delivered(done, self._now()):
            self._wake("look")

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

    async def _audit(self) -> None:
        """Hold the history against itself, and have the operator told of what is found."""
        if await asyncio.to_thread(audit_now, self._app, self._eyes, now=self._now()):
            self._wake("look")

    async def _look(self) -> None:
        """Tell the operator what is not well, and what is again."""
        told = await asyncio.to_thread(look_around, self._app, self._eyes, now=self._now())
        if told.mails:
            self._wake("deliver")

    async def _beat(self) -> None:
        """Give a sign of life after a whole round of work that went well; without one, somebody else calls for help."""
        if await asyncio.to_thread(sign_of_life, self._app, self._eyes, now=self._now()):
            why = await self._app.beat()
            self._meters.beats.labels("failed" if why else "sent").inc()
            self._eyes.answered(why)

    # -- life

    async def _watch_loop(self) -> None:
        """Measure how late the loop is: whatever holds it holds everything."""
        loop = asyncio.get_running_loop()
        while True:
            begin = loop.time()
            await asyncio.sleep(STALL_S)
            self._meters.stall.observe(max(0.0, loop.time() - begin - STALL_S))

    def _now(self) -> datetime:
        return self._app.clock.now()

    async def _ping(self) -> None:
        """Tell the service manager that we live, as long as the store answers."""
        await asyncio.wait_for(asyncio.to_thread(self._app.store.history.head), timeout=self._watchdog_s)
        self._notifier.alive()

    def _watch_folders(self) -> None:
        """Have each watched folder wake the job that looks into it."""
        for task in self._folder_watchers:
            task.cancel()
        folders = [source.path for source in self._app.settings.sources if source.path is not None]
        self._folder_watchers = [asyncio.create_task(self._watch_folder(folder)) for folder in folders]

    async def _watch_folder(self, folder: Path) -> None:
        try:
            async for _ in self._app.folder_changes(folder):
                self._wake("collect")
        except (DigestdError, OSError) as error:  # the clock wakes the job all the same
            log.warning("folder not watched, only looked at now and then: %s", error)

    async def _drain(self, tasks: Mapping[str, asyncio.Task[None]]) -> None:
        """Let running jobs end; a delivery under way settles what it holds when it is cancelled."""
        stopped = [*self._folder_watchers, tasks["collect"], tasks["deliver"]]
        for task in stopped:
            task.cancel()
        self._wake(*tasks)  # the others have a thread at work, which cannot be stopped, and is short
        await asyncio.wait([*stopped, *tasks.values()], timeout=DRAIN_S)

    def _begin_reload(self) -> None:
        if self._reloading is None or self._reloading.done():
            self._reloading = asyncio.create_task(self._reload())

    async def _reload(self) -> None:
        """Read the settings again; ones that cannot be used leave the old ones in force."""
        self._notifier.reloading()
        try:
            fresh, pages = await asyncio.to_thread(self._prepare)
        except DigestdError as error:
            log.error("settings not reloaded, the old ones stay: %s", error)
        else:
            self._old.append(self._app)  # jobs under way still use it
            self._app, self._publisher = fresh, Publisher()
            self._pages.app = pages
            self._watch_folders()
            self._wake(*self._jobs)
            log.info("settings reloaded")
        self._notifier.ready("working")

    def _prepare(self) -> tuple[App, Application]:
        """Return all parts anew.

        Raises:
            DigestdError: the settings cannot be used, or name another history.
        """
        fresh = self._make_app()
        try:
            _refuse_other_history(self._app.store_path, fresh.store_path)
            fresh.shelf = self._app.shelf  # what the feeds say now is what they say until they are made anew
            _ = fresh.vocabulary, fresh.templates, fresh.store
            return fresh, fresh.web_app()
        except BaseException:
            fresh.close()
            raise

    def _begin_dump(self) -> None:
        self._dumping = asyncio.create_task(self._guarded("dump", self._dump))

    async def _dump(self) -> None:
        """Log how everything is, and what is at work."""
        await asyncio.to_thread(log_state, self._app, self._eyes, sorted(self._busy), now=self._now())


def _refuse_other_history(ours: Path, found: Path) -> None:
    if found != ours:
        raise ConfigError(f"store.path: expected {ours} until the daemon is started anew, found {found}")


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
        await Daemon(first, make_app, Notifier(notify_address), watchdog_s).run()
