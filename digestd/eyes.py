"""What the daemon sees of itself: which jobs go well, what is not well, a sign of life. Floor 5. Entry point: :class:`Eyes`.

What a history cannot know, because it did not happen there, is kept here while the process lives: a job that fails, a relay
that lets nobody in. After a start nothing of that is over until its job has run once.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from digestd.errors import MovedError
from digestd.flows.audit import audit
from digestd.flows.deliver import Delivered
from digestd.flows.home import check_home
from digestd.flows.operator import Told, find_troubles, tell_operator
from digestd.flows.overview import AUDITED, WORKED, look
from digestd.model.trouble import Trouble

if TYPE_CHECKING:
    from digestd.wiring import App

log = logging.getLogger(__name__)

#: jobs that are the work; a round of it is whole when each has run well
WORK = ("collect", "digest", "deliver", "publish")

#: how long a job must fail until it is a trouble: a busy history or a reload is none
JOB_PATIENCE = timedelta(minutes=5)
#: how long the relay may be away; most come back by themselves
RELAY_PATIENCE = timedelta(hours=1)
#: bytes free below which the operator is told, before new work stops at the floor of the settings
DISK_LOW = 500_000_000


@dataclass(slots=True)
class _Job:
    """What is known of a job."""

    done_at: datetime  #: when it ended last
    why: str = ""  #: how it failed then; "": it went well
    failing_since: datetime | None = None


@dataclass(slots=True)
class Eyes:
    """What is seen while the process lives."""

    jobs: dict[str, _Job] = field(default_factory=dict)
    paused: str = ""  #: why the relay takes nothing until a person has mended it
    down: str = ""  #: why it could not be reached
    down_since: datetime | None = None
    findings: Mapping[str, int] = field(default_factory=dict)  #: rule to findings of the last audit
    _relay_seen: bool = False
    _beaten_at: datetime | None = None
    _unheard: str = ""

    def went(self, job: str, now: datetime, why: str = "") -> None:
        """Note how a run of a job ended."""
        before = self.jobs.get(job)
        since = None if not why else (before.failing_since if before else None) or now
        self.jobs[job] = _Job(now, why, since)

    def delivered(self, done: Delivered, now: datetime) -> bool:
        """Note what became of a run of delivering; return whether the relay began or ceased to let us in.

        Only mail that was taken or refused ends a pause: a run that sent nothing says nothing about the relay.
        """
        before = self.paused
        if done.relay_down:
            self.down, self.down_since = done.relay_down, self.down_since or now
            self.paused = done.paused or self.paused
            self._relay_seen = True
        elif done.states:
            self.paused, self.down, self.down_since, self._relay_seen = "", "", None, True
        return before != self.paused

    def troubles(self, now: datetime) -> list[Trouble]:
        """Return what is not well, as far as this process knows."""
        found = [
            Trouble(f"job {name}", job.why, is_mail=name == "deliver")
            for name, job in self.jobs.items()
            if job.failing_since is not None and job.failing_since + JOB_PATIENCE <= now
        ]
        if self.paused:
            found.append(Trouble("relay", f"{self.paused}; nothing is sent until this is mended", is_mail=True))
        elif self.down_since is not None and self.down_since + RELAY_PATIENCE <= now:
            found.append(Trouble("relay", self.down, is_mail=True))
        return found

    def is_sure(self, name: str) -> bool:
        """Return whether a trouble of this name, not being found, is over."""
        if name == "relay":
            return self._relay_seen
        kind, _, job = name.partition(" ")
        return kind != "job" or (job in self.jobs and not self.jobs[job].why)

    def is_well(self, jobs: Iterable[str] = WORK) -> bool:
        """Return whether each job ran since the last sign of life, and went well, and mail is not held up."""
        if self.paused or self.down:
            return False
        runs = [self.jobs.get(name) for name in jobs]
        return all(
            job is not None and not job.why and (self._beaten_at is None or job.done_at > self._beaten_at)
            for job in runs
        )

    def answered(self, why: str) -> None:
        """Note whether a sign of life was heard, and log it where that is news."""
        if why and why != self._unheard:
            log.warning('heartbeat not heard why="%s"', why)
        elif self._unheard and not why:
            log.info("heartbeat heard again")
        self._unheard = why

    def beaten(self, now: datetime) -> None:
        """Note a sign of life: the next one wants another round of work."""
        self._beaten_at = now


def look_around(app: App, eyes: Eyes, *, now: datetime) -> Told:
    """Tell the operator what is not well, by the history and by what the process knows."""
    overview = look(app.store, app.source_specs, now=now)
    patience, holds = timedelta(seconds=app.settings.operator.patience_s), app.settings.mail.on_uncertain == "hold"
    found = find_troubles(overview, patience=patience, holds=holds)
    found += [*eyes.troubles(now), *_disk(app), *_elsewhere(app)]
    return tell_operator(app.kitchen, app.operators, found, is_sure=eyes.is_sure, now=now)


def _disk(app: App) -> list[Trouble]:
    """Return whether the disk is too full for new papers; soon or now. Where it is not, the ballast is laid in."""
    room, folder = app.room, app.store_path.parent
    free = room.free()
    if free < room.floor:
        return [
            Trouble(
                "disk",
                f"{folder}: {free // 1_000_000:,} MB free; no new papers and digests until there is room for them",
            )
        ]
    room.restock()
    if free >= DISK_LOW:
        return []
    return [Trouble("disk", f"{folder}: fewer than {DISK_LOW // 1_000_000} MB free")]


def _elsewhere(app: App) -> list[Trouble]:
    try:
        check_home(app.store, app.machine)
    except MovedError as error:
        return [Trouble("home", f"{error}; 'digestd adopt' if it is none", is_mail=True)]
    return []


def audit_now(app: App, eyes: Eyes, *, now: datetime) -> int:
    """Hold the history against itself, keep how many findings there are, and return them."""
    report = audit(app.store, now=now, shelves=app.file_shelves())
    eyes.findings = {check.code: 0 for check in report.checks}
    for check in report.checks:
        eyes.findings = {**eyes.findings, check.code: eyes.findings[check.code] + check.total}
        if check.total:
            log.error('audit findings rule=%s what="%s" count=%d', check.code, check.what, check.total)
    total = sum(eyes.findings.values())
    with app.store.transaction():
        app.store.troubles.put_sign(AUDITED, at=now, value=total)
    return total


def sign_of_life(app: App, eyes: Eyes, *, now: datetime) -> bool:
    """Keep that a whole round of work went well, if one did; return whether it did, and the history took the note."""
    if not eyes.is_well():
        return False
    with app.store.transaction():
        app.store.troubles.put_sign(WORKED, at=now)
    eyes.beaten(now)
    return True


def log_state(app: App, eyes: Eyes, busy: Iterable[str], *, now: datetime) -> None:
    """Log how everything is, one line a thing."""
    overview = look(app.store, app.source_specs, now=now)
    outbox = ",".join(f"{state}:{count}" for state, count in overview.outbox.items() if count)
    log.info(
        "state busy=%s head=%s outbox=%s next_send=%s next_digest=%s",
        ",".join(busy) or "none",
        app.store.history.head(),
        outbox or "empty",
        overview.next_send_at or "none",
        overview.next_due_at or "none",
    )
    for name, job in sorted(eyes.jobs.items()):
        log.info('state of job name=%s ended=%s result="%s"', name, job.done_at, job.why or "well")
    for one in overview.sources:
        state, good = one.health.state, one.fetched.last_ok_at or "never"
        log.info(
            'state of source name="%s" health=%s last_good=%s why="%s"', one.spec.name, state, good, one.health.why
        )
    for trouble in overview.troubles:
        log.info(
            'state of trouble name="%s" since=%s why="%s"', trouble.trouble.name, trouble.since, trouble.trouble.why
        )
