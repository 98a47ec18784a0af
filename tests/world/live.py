"""Lives a world through with digestd as it is: real bytes, parsers, SQLite file, flows and templates; the clock is ours.

The relay is a twin of one, given to the deliver flow at its port. A kill is taken from the disk: at the named point the
files of the history are copied as they stand, whatever the dying process still does is thrown away, and the copy is opened
by a new one. To what is durable that is what ``kill -9`` leaves, since the kernel keeps what was written.
"""

from __future__ import annotations

import asyncio
import os
import random
import shutil
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from digestd import faults
from digestd.addresses import parse_reader
from digestd.flows.audit import audit
from digestd.flows.collect import CollectOptions, collect
from digestd.flows.deliver import DeliverOptions, deliver
from digestd.flows.digest import make_due
from digestd.flows.publish import Publisher
from digestd.flows.read_source import Watched
from digestd.flows.subscribe import Wish, follow, pause, unfollow
from digestd.model.delivery import Deferred, Fenced, Message, Outcome, Refused, Reply, Sent, Uncertain
from digestd.model.snapshot import Document
from digestd.model.source import FailKind, FetchOutcome, FetchState, OutcomeKind, SourceSpec
from digestd.model.subscription import Filter, FilterRule, Preferences
from digestd.schedule import parse_first, parse_schedule
from digestd.wiring import App, Choices
from tests.world.followers import Followers
from tests.world.oracle import Oracle
from tests.world.pages import ERROR_PAGE, Answer, Item, Shown, feed_answer, json_answer, listing_answer
from tests.world.plan import Act, Drop, Kill, Plan, Tick

SITE = "https://digest.example.org"

#: kills after which the document that was being read is known to be in the history
_RECORDED = frozenset({"collect.recorded", "collect.kept", "collect.settled"})


class KilledError(Exception):
    """The process is dead."""


@dataclass(frozen=True)
class Mail:
    """A mail that the relay took."""

    recipient: str
    body: bytes
    at: datetime  #: true time
    clock: datetime  #: what digestd's clock said


@dataclass
class Lived:
    """What came of a world."""

    mails: list[Mail] = field(default_factory=list)
    feeds: list[dict[str, bytes]] = field(default_factory=list)  #: each publication: file name -> bytes
    wrong: list[str] = field(default_factory=list)  #: what was found on the way: audits, errors
    flagged: set[str] = field(default_factory=set)  #: Message-IDs that may have been taken twice, by the history
    held_slots: set[tuple[str, datetime]] = field(default_factory=set)  #: digests that wait for a person, with a record
    kills: Counter[str] = field(default_factory=Counter)
    documents: int = 0


def address_of(follower: int) -> str:
    """Return a follower's address."""
    return f"reader{follower}@reef.example"


class Live:
    """One run of one world."""

    def __init__(self, plan: Plan, folder: Path) -> None:
        self.plan, self.folder = plan, folder
        self.oracle = Oracle(plan)
        self.followers = Followers(self.oracle)
        self.lived = Lived()
        self.rng = random.Random(f"life {plan.seed}")
        self.when = plan.events[0].at if plan.events else datetime(2026, 1, 1, tzinfo=UTC)
        self.skew = timedelta()
        self.relay = "ok"
        self.dead = False
        self._kill: Kill | None = None
        self._reached = 0
        self._tried: set[tuple[str, int]] = set()
        self._owner = 0
        self.path = folder / "history.sqlite"
        self.incoming = folder / "incoming"
        self.incoming.mkdir(parents=True)
        labels = folder / "labels.txt"
        labels.write_text("".join(f"{topic.name}\n" for topic in plan.topics))
        config = folder / "digestd.toml"
        config.write_text(
            f'[labels]\nfile = "{labels}"\n[digest]\nbudget = 900\npapers_per_topic = 500\ntagged_shown = 100\n'
            f'[mail]\nfrom_address = "digest@digest.example.org"\n[feeds]\nauthority = "digest.example.org"\nentries = 1000\n'
            + (f'[web]\nbase_url = "{SITE}"\n' if plan.has_site else "")
        )
        self._config = config
        self._dropped: list[tuple[str, Shown, bytes]] = []
        self._done_ticks: list[Tick] = []
        self.app = self._open()
        self.publisher = Publisher()

    @property
    def now(self) -> datetime:
        """What digestd's clock says."""
        return self.when + self.skew

    def _open(self) -> App:
        app = App(Choices(db=str(self.path), config=self._config, now=self.now))
        _ = app.store
        return app

    # -- the year

    def run(self) -> Lived:
        """Live through the world."""
        faults.HOOK = self._at_point
        try:
            for event in self.plan.events:
                self.when = max(self.when, event.at)
                match event:
                    case Tick():
                        self._tick(event)
                    case Act():
                        self._act(event)
                    case Drop():
                        self._drop(event)
            self._finish()
        finally:
            faults.HOOK = None
            self.app.close()
        return self.lived

    def _finish(self) -> None:
        kept = Counter(_message_id(mail.body) for mail in self.lived.mails)
        self._audit("at the end", kept)
        store = self.app.store
        held: dict[str, str] = {}
        for one in store.outbox.deliveries(limit=100_000):
            if one.flagged:
                self.lived.flagged.add(one.message_id)
            if str(one.state) in ("uncertain", "failed", "poison"):
                held[one.digest_key] = one.recipient
        for subscription in store.subscriptions.subscriptions():
            for slot in store.subscriptions.slots(subscription.key or 0):
                if slot.digest_key in held:
                    self.lived.held_slots.add((held[slot.digest_key], slot.due_at.replace(microsecond=0)))

    def _audit(self, when: str, kept: Counter[str] | None = None) -> None:
        report = audit(self.app.store, now=self.now, kept=kept)
        for check in report.checks:
            for found in check.findings:
                self.lived.wrong.append(f"audit {when}: {found}")

    def _tick(self, tick: Tick) -> None:
        self.skew = timedelta(seconds=tick.skew_s)
        self.relay, self._kill, self._reached = tick.relay, tick.kill, 0
        self.app.stand_at(self.now)
        try:
            self._work(tick)
        except KilledError:
            self._reborn()
            self._work(tick)

    def _work(self, tick: Tick) -> None:
        """Do what the daemon does when it is woken, in the order in which one job wakes the next."""
        self._collect(tick)
        served = make_due(self.app.kitchen, now=self.now)
        self._mourn()
        for one in served:
            if one.error:
                self.lived.wrong.append(f"not served: {one.error}")
        if not any(one is tick for one in self._done_ticks):
            self.followers.serve(self.now)
            self._done_ticks.append(tick)
        self._deliver()
        self._mourn()
        if tick.publish:
            self._publish()

    # -- kills

    def _mourn(self) -> None:
        """Leave a dead process: what it did after its death, its handling of errors too, is on nobody's disk."""
        if self.dead:
            raise KilledError

    def _at_point(self, name: str) -> None:
        if self.dead:
            raise KilledError(name)
        if self._kill is None or self._kill.point != name:
            return
        self._reached += 1
        if self._reached == self._kill.number:
            self._save_disk()
            self.dead = True
            self.lived.kills[name] += 1
            raise KilledError(name)

    def _save_disk(self) -> None:
        saved = self.folder / "saved"
        saved.mkdir(exist_ok=True)
        for file in saved.iterdir():
            file.unlink()
        for suffix in ("", "-wal"):
            source = Path(f"{self.path}{suffix}")
            if source.exists():
                shutil.copyfile(source, saved / f"history.sqlite{suffix}")

    def _reborn(self) -> None:
        """Begin a new process on what the dead one had written."""
        self.app.close()
        for suffix in ("", "-wal", "-shm"):
            Path(f"{self.path}{suffix}").unlink(missing_ok=True)
        for file in (self.folder / "saved").iterdir():
            shutil.copyfile(file, self.path.parent / file.name)
        self.dead, self._kill = False, None
        self.publisher = Publisher()
        self.app = self._open()
        self._audit("after a kill")

    # -- sources

    def _collect(self, tick: Tick) -> None:
        troubles = {(topic, source): what for topic, source, what in tick.troubles}
        for topic in self.plan.topics:
            for name in topic.sources:
                if name == "json":
                    continue
                source = WorldSource(self, topic.name, name, troubles.get((topic.name, name), ""), tick.at)
                self._ask(source)
        self._read_folder()

    def _run_collect(self, watched: Watched) -> bool:
        """Ask a source, and return whether something of it was recorded or known."""
        read: list[bool] = []
        options = CollectOptions(
            now=self.now, draw=lambda: 0.5, ignore_due=True, report=lambda one: read.append(_is_read(one.result))
        )
        asyncio.run(collect(self.app.store, [watched], options))
        return any(read)

    def _ask(self, source: WorldSource) -> None:
        feed = source.kind != "listing"
        watched = Watched(
            source=source,
            options=self.app.ingest_options(topic=source.topic if feed else None, address=source.spec.location),
            parse=self.app.parser(),
        )
        was_read = self._run_collect(watched)
        if self.dead:
            point = self._kill.point if self._kill is not None else ""
            if (point in _RECORDED or (point == "ingest.done" and feed)) and source.all_readable:
                self._take(source.shown())
            self._mourn()
        if was_read:
            self._take(source.shown())
        if source.all_readable and source.first is not None and source.first.shown is not None and not was_read:
            self.lived.wrong.append(
                f"a good page of {source.kind} {source.topic} was not read on {self.when:%b %d %H:%M}"
            )

    def _take(self, shown: Shown | None) -> None:
        if shown is not None:
            self.lived.documents += 1
            self.oracle.take(shown, at=self.now)

    def _drop(self, drop: Drop) -> None:
        answer = json_answer(self.plan, drop.topic, drop.order, drop.count, self.when)
        assert answer.body is not None
        file = self.incoming / f"{self.when:%Y%m%d-%H%M%S}-{drop.topic.replace(' ', '-')}.json"
        file.write_bytes(answer.body)
        assert answer.shown is not None
        self._dropped.append((file.name, answer.shown, answer.body))

    def _read_folder(self) -> None:
        from digestd.watch import SOURCES

        pending, self._dropped = self._dropped, []
        for name, shown, body in pending:
            file = self.incoming / name
            stamp = (self.now - timedelta(minutes=10)).timestamp()
            if file.exists():
                os.utime(file, (stamp, stamp))
            spec = SourceSpec(name="drop", location=str(self.incoming), kind="folder")
            watched = Watched(
                source=SOURCES["folder"](spec, None),
                options=self.app.ingest_options(),
                parse=self.app.parser(),
            )
            was_read = self._run_collect(watched)
            if self.dead:
                point = self._kill.point if self._kill is not None else ""
                if point in _RECORDED or point == "ingest.done":
                    self._take(shown)
                file.write_bytes(body)  # wherever the dead process has put it since
                self._dropped = pending[pending.index((name, shown, body)) :]
                self._mourn()
            if was_read:
                self._take(shown)

    # -- followers

    def _act(self, act: Act) -> None:
        self.app.stand_at(self.now)
        store, now = self.app.store, self.now
        reader = parse_reader(address_of(act.follower))
        state = self.followers.known.get(act.follower)
        is_there = state is not None and state.active
        if act.what == "follow":
            assert act.wished is not None
            wanted = act.wished
            preferences = Preferences(
                format="text",
                all_quiet=wanted.all_quiet,
                first=parse_first(wanted.first),
                filter=Filter(exclude=tuple(FilterRule("category", one) for one in wanted.exclude)),
            )
            schedule = parse_schedule("each-snapshot" if wanted.schedule == "each" else wanted.schedule)
            follow(store, Wish(reader, wanted.topics, schedule, wanted.zone, preferences), self.app.vocabulary, now=now)
        elif is_there and act.what in ("pause", "resume"):
            pause(store, reader, act.until if act.what == "pause" else None, now=now)
        elif is_there and act.what == "leave":
            unfollow(store, reader, (), now=now)
        self.followers.act(act, now)

    # -- mail and feeds

    def _deliver(self) -> None:
        self._owner += 1
        options = DeliverOptions(
            owner=f"life{self._owner}", workers=2, on_uncertain=self.plan.on_uncertain, draw=self.rng.random
        )
        asyncio.run(deliver(self.app.store, Relay(self), self.app.clock, options))

    def _publish(self) -> None:
        folder = self.folder / "public"
        self.publisher.publish(self.app.store, self.app.publish_options, self.app.file_writer(folder), now=self.now)
        self.lived.feeds.append(
            {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*.xml"))}
        )


def _is_read(result: object) -> bool:
    return result is not None and not isinstance(result, Exception)


def _message_id(body: bytes) -> str:
    head = body.split(b"\r\n\r\n", 1)[0].replace(b"\r\n ", b" ").decode("latin-1")
    return next(line.partition(":")[2].strip() for line in head.split("\r\n") if line.lower().startswith("message-id:"))


class WorldSource:
    """A source of the world, as digestd sees it; it remembers what it showed."""

    in_batches = False
    waiting = 0

    def __init__(self, live: Live, topic: str, kind: str, trouble: str, when: datetime) -> None:
        self.live, self.topic, self.kind, self.trouble = live, topic, kind, trouble
        self.when = when - timedelta(days=2) if trouble == "stale" else when
        slug = topic.lower().replace(" ", "-")
        base = f"https://{'list' if kind == 'listing' else 'press'}.example/{slug}/{kind}"
        self.spec = SourceSpec(
            name=f"{kind} {topic}",
            location=base,
            topic=None if kind == "listing" else topic,
            page_url=base + "?page={page}" if kind == "listing" else None,
            max_pages=live.plan.max_pages,
        )
        self.first: Answer | None = None
        self.answers: list[Answer] = []

    @property
    def all_readable(self) -> bool:
        """Whether something can be read."""
        return bool(self.answers) and self.answers[0].shown is not None

    def _answer(self, page: int) -> Answer | None:
        what = self.trouble
        if what == "nothing" or (what.startswith("broken") and page > int(what[6:]) % 5):
            return None
        if what == "error":
            return Answer(ERROR_PAGE, "text/html", None)
        if what.startswith("cut") and page > 1:
            return None
        if self.kind == "listing":
            return listing_answer(self.live.plan, self.topic, page, self.when, what)
        return feed_answer(self.live.plan, self.topic, self.kind, self.when, what)

    def _outcome(self, state: FetchState, page: int, now: datetime) -> FetchOutcome:
        url = self.spec.location if page == 1 else f"{self.spec.location}?page={page}"
        answer = self._answer(page)
        if answer is None or answer.body is None:
            status = 404 if answer is not None else 502
            return FetchOutcome(
                OutcomeKind.FAILED,
                replace(state, fail_count=state.fail_count + 1, last_try_at=now, last_error="no answer"),
                url,
                fail=FailKind.STATUS if status == 404 else FailKind.SERVER,
                why=f"{url} answered {status}",
                status=status,
            )
        self.answers.append(answer)
        if page == 1:
            self.first = answer
        document = Document(answer.body, origin=url, media_type=answer.media_type, fetched_at=now)
        state = replace(state, fail_count=0, failing_since=None, last_error=None, last_ok_at=now, last_try_at=now)
        return FetchOutcome(OutcomeKind.OK, state, url, document=document, status=200)

    async def collect(
        self,
        state: FetchState | None,
        *,
        now: datetime,
        draw: float,  # noqa: ARG002 # the contract's signature
    ) -> tuple[FetchOutcome, ...]:
        """Answer once."""
        return (self._outcome(state or FetchState(location=self.spec.location), 1, now),)

    async def walk(
        self, first: FetchOutcome, *, now: datetime, reaches_known: Callable[[FetchOutcome], Awaitable[bool]]
    ) -> AsyncGenerator[FetchOutcome, None]:
        """Answer with further pages until one reaches what is known."""
        if first.document is None or await reaches_known(first):
            return
        for page in range(2, self.live.plan.max_pages + 1):
            outcome = self._outcome(first.state, page, now)
            yield outcome
            if outcome.document is None or await reaches_known(outcome):
                return

    def retry(self, *, now: datetime) -> Iterator[FetchOutcome]:  # noqa: ARG002 # as above
        """Yield nothing."""
        return iter(())

    def settle(self, outcome: FetchOutcome, problem: str | None, *, now: datetime) -> None:
        """Do nothing."""

    def shown(self) -> Shown | None:
        """Return what was shown in all pages together."""
        pages = [answer.shown for answer in self.answers if answer.shown is not None]
        if not pages:
            return None
        items: dict[int, Item] = {}
        for page in pages:
            for item in page.items:
                items.setdefault(item.number, item)
        return replace(pages[0], items=tuple(items.values()), cut=any(page.cut for page in pages))


class Relay:
    """A relay's twin: it takes mails, refuses, loses the connection, as the tick says."""

    def __init__(self, live: Live) -> None:
        self.live = live

    async def send(self, message: Message, *, before_dot: Callable[[], Awaitable[bool]]) -> Outcome:
        """Take a message, or do what goes wrong."""
        live, mode = self.live, self.live.relay
        if live.dead:
            raise KilledError("relay")
        name = (_message_id(message.body), 0)
        if mode == "greylist" and name not in live._tried:
            live._tried.add(name)
            return Deferred("greylisted", Reply(451, "4.7.1 come again"))
        if mode == "down":
            return Deferred("connection refused", relay_fault=True)
        if mode == "lost_before":
            return Deferred("connection lost before the end of data")
        if mode == "refuse":
            return Refused(Reply(554, "5.7.1 not today"), policy=True)
        if not await before_dot():
            return Fenced()
        if live.dead:
            raise KilledError("relay")
        if mode != "lost_gone":
            live.lived.mails.append(Mail(message.recipient, message.body, live.when, live.now))
        if mode in ("lost_kept", "lost_gone"):
            return Uncertain("connection lost after the final dot")
        return Sent(Reply(250, "2.0.0 kept"))

    async def close(self) -> None:
        """Do nothing."""
