"""Makes worlds from a seed. Entry point: :func:`make_plan`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta

from tests.world.plan import Act, Drop, Event, Filed, Kill, Plan, Tick, Version, Wished, WorldPaper, WorldTopic

_NAMES = (
    "Reef Sound", "Kelp Forests", "Tide Gauges", "Slow Robots", "Quiet Engines", "Paper Boats", "Moss Gardens",
    "Glass Bridges",
)  # fmt: skip
_SYLLABLES = [left + vowel for left in "bdfgklmnprstv" for vowel in "aeiou"]
_THINGS = ("currents", "lagoons", "lanterns", "holdfasts", "compasses", "harbours", "whistles", "moorings")
_CATEGORIES = ("cs.SD", "cs.RO", "cs.LG", "physics.ao-ph")
_ZONES = (
    "UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Auckland",
    "America/St_Johns",
)  # fmt: skip

#: points at which the process may die, and how often each can be reached in a tick
KILLS = (
    "ingest.seen", "ingest.parsed", "ingest.open", "ingest.done", "collect.recorded", "collect.kept",
    "collect.settled", "slot.open", "slot.done", "claim.before", "claim.open", "claim.done", "dot.before", "dot.done",
    "result.read", "result.open", "result.done", "publish.written", "publish.synced", "publish.moved",
)  # fmt: skip
TROUBLES = ("broken", "error", "stale", "shuffled", "cut", "nothing")
FEED_TROUBLES = ("broken", "error", "stale", "empty", "cut", "nothing")
RELAYS = ("greylist", "down", "lost_before", "lost_kept", "lost_gone")


@dataclass(frozen=True)
class Size:
    """How large a world is."""

    weeks: tuple[int, int] = (2, 6)
    ticks_a_day: tuple[float, float] = (0.5, 1.3)
    topics: int = 2
    followers: int = 3
    rates: tuple[float, ...] = (0.1, 0.4, 1.0, 1.0, 2.5, 6.0)  #: papers a day and topic


SMALL = Size(weeks=(1, 4), ticks_a_day=(0.5, 1.0), rates=(0.2, 0.5, 1.0, 1.0, 2.0, 4.0))
MIDDLE = Size()
YEAR = Size(weeks=(52, 53), ticks_a_day=(0.5, 1.2), topics=3, followers=5)


def make_plan(seed: int, size: Size = SMALL) -> Plan:
    """Return the world of a seed; the same one each time."""
    rng = random.Random(f"world {seed}")
    return _Maker(rng, seed, size).make()


class _Maker:
    def __init__(self, rng: random.Random, seed: int, size: Size) -> None:
        self.rng, self.seed, self.size = rng, seed, size
        near_change = rng.choice([date(2026, 3, 8), date(2026, 3, 29), date(2026, 10, 25), date(2026, 11, 1)])
        day = near_change if rng.random() < 0.5 else date(2026, 1, 5) + timedelta(days=rng.randrange(300))
        self.weeks = rng.randint(*size.weeks)
        self.begin = datetime(day.year, day.month, day.day, 5, tzinfo=UTC) - timedelta(days=7 * (self.weeks // 2))
        self.end = self.begin + timedelta(weeks=self.weeks)
        self._used: set[str] = set()
        #: of a busy listing only the first page, and a watcher that sleeps: then there are gaps
        self.max_pages = rng.choice((1, 2, 5, 5))

    def make(self) -> Plan:
        """Return the world."""
        topics = self._topics()
        papers = self._papers(topics)
        ticks = self._ticks(topics)
        acts = self._under_way(self._followers(topics), ticks) + self._leaver(topics, ticks)
        events: list[Event] = [*ticks, *acts, *self._drops(topics)]
        events.sort(key=lambda event: event.at)
        return Plan(
            self.seed,
            topics,
            papers,
            (*events, *self._quiet_end()),
            on_uncertain="hold" if self.rng.random() < 0.2 else "resend",
            max_pages=self.max_pages,
            has_site=self.rng.random() < 0.4,
        )

    # -- what is there

    def _topics(self) -> tuple[WorldTopic, ...]:
        rng = self.rng
        names = rng.sample(_NAMES, len(_NAMES))
        topics = []
        for name in names[: rng.randint(1, self.size.topics)]:
            choices = (("listing",), ("listing", "last100"), ("listing", "daily"), ("last100",), ("daily",))
            sources = rng.choices(choices, (5, 2, 2, 1, 1))[0]
            if rng.random() < 0.25:
                sources = (*sources, "json")
            moved = self._instant() if rng.random() < 0.3 else None
            topics.append(WorldTopic(name, sources, moved))
        topics += [WorldTopic(name) for name in names[len(topics) : len(topics) + rng.choice((0, 1, 1))]]
        return tuple(topics)

    def _instant(self, begin: datetime | None = None) -> datetime:
        begin = begin or self.begin
        return begin + timedelta(minutes=self.rng.randrange(max(1, int((self.end - begin).total_seconds() / 60))))

    def word(self) -> str:
        """Return a word that occurs nowhere else."""
        while True:
            word = "".join(self.rng.choice(_SYLLABLES) for _ in range(self.rng.randint(3, 4))).capitalize()
            if word not in self._used:
                self._used.add(word)
                return word

    def _papers(self, topics: Sequence[WorldTopic]) -> tuple[WorldPaper, ...]:
        rng = self.rng
        papers: list[WorldPaper] = []
        for topic in topics:
            if not topic.sources:
                continue
            rate = max(rng.choice(self.size.rates), 3.0 if self.max_pages == 1 else 0.0)
            holiday = self._instant().date()
            burst = self._instant().date()
            day = self.begin.date() - timedelta(days=rng.choice((30, 60, 90)))
            while day <= self.end.date():
                now_rate = rate * (0.2 if day.weekday() > 4 else 1.2)
                now_rate *= 0 if 0 <= (day - holiday).days < 9 else 8 if 0 <= (day - burst).days < 2 else 1
                for _ in range(_poisson(rng, now_rate)):
                    papers.append(self._paper(len(papers), day, topic, topics))
                day += timedelta(days=1)
        for place in range(1, len(papers)):
            if rng.random() < 0.02:
                papers[place] = self._namesake(papers[place], papers[rng.randrange(place)])
        return tuple(papers)

    def _namesake(self, paper: WorldPaper, other: WorldPaper) -> WorldPaper:
        """Return the paper with the title of another one, by other people."""
        first = paper.versions[0]
        versions = (Version(first.since, other.versions[0].title, first.abstract),)
        return WorldPaper(**{**paper.__dict__, "versions": versions})

    def _paper(self, number: int, day: date, topic: WorldTopic, topics: Sequence[WorldTopic]) -> WorldPaper:
        rng = self.rng
        noon = datetime(day.year, day.month, day.day, tzinfo=UTC)
        entered = noon + timedelta(hours=rng.choice((1, 3, 8, 12, 20, 26, 30, 50, 80, 120)) + rng.random())
        filed = [Filed(topic.name, entered, self._taken_away(entered))]
        for other in topics:
            if other.name != topic.name and rng.random() < 0.3:
                late = rng.random()
                since = entered if late < 0.6 else entered + timedelta(days=rng.choice((2, 9, 30, 80)))
                filed.append(Filed(other.name, since, self._taken_away(since)))
        if rng.random() < 0.03:  # filed under its own topic late
            filed[0] = Filed(topic.name, entered + timedelta(days=rng.choice((9, 20, 45, 70))))
        title = f"{self.word()}: {self.word()} {rng.choice(_THINGS)} by {self.word()} and {self.word()}"
        if rng.random() < 0.2:
            title += f", {rng.randint(2, 99)}% of {self.word()}"
        return WorldPaper(
            number=number,
            published=day,
            versions=self._versions(title, entered),
            authors=tuple(f"{self.word()} {self.word()}" for _ in range(rng.randint(1, 3))),
            authors_more=rng.choice((0, 2, 11)),
            category=rng.choices(_CATEGORIES, (5, 3, 2, 1))[0],
            filed=tuple(filed),
            arxiv=f"{day:%y%m}.{10000 + number:05d}",
            doi=f"10.5555/world.{number}" if rng.random() < 0.4 else None,
            doi_since=entered + timedelta(days=rng.choice((0, 5, 30))),
            crossed=rng.random() < 0.1,
        )

    def _taken_away(self, since: datetime) -> datetime | None:
        return since + timedelta(days=self.rng.choice((3, 10, 30))) if self.rng.random() < 0.02 else None

    def _abstract(self) -> str:
        words = " ".join(self.word().lower() for _ in range(5))
        number = self.rng.randint(2, 99)
        return f"We look at {words} for a season. The outcome differs by {number}% from what was assumed before."

    def _versions(self, title: str, entered: datetime) -> tuple[Version, ...]:
        rng = self.rng
        versions = [Version(datetime(2000, 1, 1, tzinfo=UTC), title, self._abstract())]
        if rng.random() < 0.12:
            changed = entered + timedelta(days=rng.choice((1, 4, 12, 40)), hours=rng.random())
            what = rng.random()
            if what < 0.7:
                versions.append(Version(changed, title, self._abstract()))
            else:
                renamed = f"{self.word()}: {self.word()} {rng.choice(_THINGS)} of {self.word()}"
                versions.append(Version(changed, renamed, versions[0].abstract))
        return tuple(versions)

    # -- what happens

    def _ticks(self, topics: Sequence[WorldTopic]) -> list[Tick]:
        rng = self.rng
        ticks: list[Tick] = []
        at, skew, gap = self.begin, 0, 24 / rng.uniform(*self.size.ticks_a_day)
        trouble = rng.choice((0.0, 0.05, 0.2))
        naps = 0.1 if self.max_pages == 1 else rng.choice((0.0, 0.02, 0.08))
        is_risky = rng.random() < 0.6
        while at < self.end:
            if rng.random() < 0.02:
                skew = rng.choice((0, 0, -3600, 5400, -90000, 172800))
            ticks.append(
                Tick(
                    at,
                    skew_s=skew,
                    troubles=self._troubles(topics, trouble),
                    relay=rng.choice(RELAYS) if rng.random() < 0.15 else "ok",
                    kill=Kill(rng.choice(KILLS), rng.choice((1, 1, 1, 2, 3)))
                    if is_risky and rng.random() < 0.12
                    else None,
                    publish=rng.random() < 0.06,
                )
            )
            if rng.random() < naps:
                at += timedelta(days=rng.choice((2, 4, 10, 13, 42)))
            at += timedelta(hours=gap * rng.uniform(0.3, 1.7))
        return ticks

    def _troubles(self, topics: Sequence[WorldTopic], odds: float) -> tuple[tuple[str, str, str], ...]:
        rng, found = self.rng, []
        for topic in topics:
            for source in topic.sources:
                if source != "json" and rng.random() < odds:
                    what = rng.choice(TROUBLES if source == "listing" else FEED_TROUBLES)
                    if what in ("cut", "broken"):
                        what += str(rng.randrange(100))
                    found.append((topic.name, source, what))
        return tuple(found)

    def _quiet_end(self) -> list[Tick]:
        """Return ticks in which all is well, so that whatever is under way arrives."""
        end = self.end + timedelta(days=4)
        hours = (0, 1, 2, 3.5, 6, 9)
        return [Tick(end + timedelta(hours=hour), publish=hour == hours[-1]) for hour in hours]

    def _drops(self, topics: Sequence[WorldTopic]) -> list[Drop]:
        rng, drops = self.rng, []
        for topic in topics:
            if "json" in topic.sources:
                order = "listing" if "listing" in topic.sources and rng.random() < 0.4 else "feed"
                drops += [
                    Drop(self._instant(), topic.name, order, rng.choice((5, 20, 60))) for _ in range(rng.randint(1, 5))
                ]
        return drops

    # -- who follows

    def _followers(self, topics: Sequence[WorldTopic]) -> list[Act]:
        acts: list[Act] = []
        for number in range(self.rng.randint(1, self.size.followers)):
            at = self.begin + timedelta(hours=self.rng.choice((3, 20, 100, 300)) + self.rng.random())
            acts += self._life(number, at, topics)
        return acts

    def _leaver(self, topics: Sequence[WorldTopic], ticks: Sequence[Tick]) -> list[Act]:
        """Return the life of a follower, in some worlds, who leaves while a mail may be under way."""
        rng = random.Random(f"leaver {self.seed}")
        stuck = [tick.at for tick in ticks[3:] if tick.relay in ("greylist", "down", "lost_before")]
        if not stuck or rng.random() < 0.6:
            return []
        wished = Wished(tuple(topic.name for topic in topics), "each")
        came, leaves = ticks[1].at + timedelta(minutes=1), rng.choice(stuck) + timedelta(minutes=1)
        return [Act(came, 9, "follow", wished), Act(leaves, 9, "leave")]

    def _under_way(self, acts: Sequence[Act], ticks: Sequence[Tick]) -> list[Act]:
        """Return the acts, some of those who leave put to where a mail of theirs may be under way."""
        found = []
        for act in acts:
            if act.what == "leave" and self.rng.random() < 0.6:
                stuck = [
                    tick.at for tick in ticks if tick.at > act.at and tick.relay in ("greylist", "down", "lost_before")
                ]
                later = [other.at for other in acts if other.follower == act.follower and other.at > act.at]
                if stuck and (not later or stuck[0] < min(later)):
                    act = replace(act, at=stuck[0] + timedelta(minutes=1))
            found.append(act)
        return found

    def _life(self, number: int, at: datetime, topics: Sequence[WorldTopic]) -> list[Act]:
        rng = self.rng
        wished = self._wished(topics, at)
        acts = [Act(at, number, "follow", wished)]
        for _ in range(rng.choice((0, 0, 1, 2, 4))):
            at = self._instant(at) if at < self.end else at
            what = rng.choice(("change", "pause", "resume", "leave"))
            if what == "change":
                acts.append(Act(at, number, "follow", self._wished(topics, at)))
            elif what == "pause":
                acts.append(Act(at, number, "pause", until=(at + timedelta(days=rng.choice((1, 3, 14, 40)))).date()))
            elif what == "resume":
                acts.append(Act(at, number, "resume"))
            else:
                acts.append(Act(at, number, "leave"))
                if rng.random() < 0.6:
                    at = self._instant(at)
                    acts.append(Act(at, number, "follow", self._wished(topics, at)))
        return acts

    def _wished(self, topics: Sequence[WorldTopic], at: datetime) -> Wished:
        rng = self.rng
        names = [topic.name for topic in topics]
        clock = f"{rng.choice((0, 1, 2, 2, 3, 7, 12, 23)):02d}:{rng.choice((0, 15, 30)):02d}"
        schedule = rng.choice(
            (f"daily {clock}", f"daily {clock}", f"weekly mon,thu {clock}", f"weekly sun {clock}",
             f"monthly {rng.choice((1, 15, 31))} {clock}", "each")
        )  # fmt: skip
        since = (at - timedelta(days=rng.choice((3, 20)))).date()
        return Wished(
            tuple(rng.sample(names, rng.randint(1, len(names)))),
            schedule,
            rng.choice(_ZONES),
            rng.choice(("none", "none", "latest:3", "latest:10", f"since:{since}")),
            (rng.choice(_CATEGORIES),) if rng.random() < 0.25 else (),
            all_quiet=rng.random() < 0.2,
        )


def _poisson(rng: random.Random, mean: float) -> int:
    """Return a random count with a mean."""
    count, left = 0, rng.expovariate(1.0)
    while left < mean:
        count += 1
        left += rng.expovariate(1.0)
    return count
