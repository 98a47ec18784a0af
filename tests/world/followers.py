"""What each follower of a world must be told, by when, and what not: the second half of the oracle, from the design alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from digestd.model.snapshot import Kind
from tests.world.oracle import TOLD, CoverageTruth, Entry, Oracle
from tests.world.plan import Act, Wished

_WEEKDAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_MINUTE = timedelta(minutes=1)


@dataclass
class Expected:
    """A digest that a follower must get, or may."""

    follower: int
    slot: datetime
    topics: tuple[str, ...]
    must: dict[int, frozenset[Kind]] = field(default_factory=dict)  #: number -> kinds, one of which it is told under
    may: set[int] = field(default_factory=set)
    past: set[int] = field(default_factory=set)  #: what a first digest may hold besides
    past_limit: int | None = None
    past_must: set[int] = field(default_factory=set)
    revised_must: set[int] = field(default_factory=set)
    revised_may: set[int] = field(default_factory=set)
    is_due_quiet: bool = False  #: comes even if there is nothing new
    covered: int = 1  #: slots that it serves
    since: date | None = None
    figures: dict[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)  #: (now, before) that may be meant
    coverage: dict[str, CoverageTruth] = field(default_factory=dict)
    matters_from: date = date.min  #: gaps before this day need not be named
    is_first: bool = False
    was_paused: bool = False
    excused: str = ""  #: why it need not arrive

    @property
    def must_come(self) -> bool:
        """Whether the mail itself is certain."""
        return bool(self.must or self.revised_must or self.past_must or self.is_due_quiet)


@dataclass
class Follower:
    """A follower's state as the design has it."""

    number: int
    wished: Wished
    told_upto: int
    from_: dict[str, int]
    created_at: datetime
    active: bool = True
    high_water: datetime | None = None
    paused_until: date | None = None
    welcomed: bool = False
    told: set[int] = field(default_factory=set)  #: surely told, by number
    maybe: set[int] = field(default_factory=set)  #: perhaps told


def slots(schedule: str, zone: str, after: datetime, upto: datetime) -> list[datetime]:
    """Return the instants in (after, upto] at which a schedule is due, oldest first."""
    days, at = _days(schedule)
    place = ZoneInfo(zone)
    found = []
    day = after.astimezone(place).date() - timedelta(days=1)
    while day <= upto.astimezone(place).date() + timedelta(days=1):
        if days(day):
            instant = _instant(datetime.combine(day, at), place)
            if after < instant <= upto:
                found.append(instant)
        day += timedelta(days=1)
    return sorted(set(found))


def _days(schedule: str):  # type: ignore[no-untyped-def]  # a predicate and a time
    *words, clock = schedule.split()
    at = time.fromisoformat(clock)
    if words == ["daily"]:
        return (lambda _: True), at
    if words[0] == "monthly":
        wanted = int(words[1])
        return (lambda day: day.day == wanted or (_is_last(day) and day.day < wanted)), at
    chosen = {_WEEKDAYS.index(one) for one in words[-1].split(",")}
    return (lambda day: day.weekday() in chosen), at


def _is_last(day: date) -> bool:
    return (day + timedelta(days=1)).day == 1


def _instant(local: datetime, place: ZoneInfo) -> datetime:
    """Return when a local time is: of two the first, of one that never comes the end of the gap."""
    while True:
        instant = local.replace(tzinfo=place, fold=0).astimezone(UTC)
        if instant.astimezone(place).replace(tzinfo=None) == local:
            return instant
        local += _MINUTE


class Followers:
    """All followers of a world."""

    def __init__(self, oracle: Oracle) -> None:
        self.oracle = oracle
        self.known: dict[int, Follower] = {}
        self.expected: list[Expected] = []
        self.left: list[tuple[int, datetime]] = []
        self.before: dict[int, set[int]] = {}  #: what followers were told who left and came back

    def act(self, act: Act, now: datetime) -> None:
        """A follower does something."""
        state = self.known.get(act.follower)
        match act.what:
            case "follow":
                assert act.wished is not None
                self._follow(act.follower, act.wished, now)
            case "pause" if state is not None and state.active:
                state.paused_until = act.until
            case "resume" if state is not None and state.active:
                state.paused_until = None
            case "leave" if state is not None and state.active:
                self._leave(state, now)

    def _leave(self, state: Follower, now: datetime) -> None:
        state.active = False
        self.left.append((state.number, now))
        for one in self.expected:
            if one.follower == state.number and not one.excused:
                one.excused = "left"

    def _follow(self, number: int, wished: Wished, now: datetime) -> None:
        for name in wished.topics:
            self.oracle.begin_topic(name)
        head, state = self.oracle.head, self.known.get(number)
        if state is None or not state.active:
            told = state.told if state is not None else set()
            maybe = state.maybe if state is not None else set()
            # what of an old digest reached somebody who has left is not known
            maybe = maybe | told
            self.before.setdefault(number, set()).update(maybe)
            self.known[number] = Follower(
                number,
                wished,
                head,
                dict.fromkeys(wished.topics, head),
                now,
                welcomed=wished.first == "none",
                told=set(told),
                maybe=set(maybe),
            )
            return
        if (wished.schedule, wished.zone) != (state.wished.schedule, state.wished.zone):
            state.high_water = now
        before = state.from_
        state.from_ = {name: before[name] if name in state.wished.topics else head for name in wished.topics}
        state.wished = wished

    def serve(self, now: datetime) -> None:
        """Work out which digests are due at an instant of digestd's clock."""
        for state in self.known.values():
            if state.active:
                self._serve(state, now)

    def _serve(self, state: Follower, now: datetime) -> None:
        resumes = None
        if state.paused_until is not None:
            resumes = _instant(datetime.combine(state.paused_until, time()), ZoneInfo(state.wished.zone))
        if state.wished.schedule == "each":
            if (resumes is not None and now < resumes) or self.oracle.head <= state.told_upto:
                return
            due = [now]
        else:
            due = slots(state.wished.schedule, state.wished.zone, state.high_water or state.created_at, now)
            if not due or (resumes is not None and due[-1] < resumes):
                return
        expected = self._compose(state, due, now)
        state.told_upto = self.oracle.head
        state.paused_until = None
        state.high_water = due[-1]
        if expected is not None:
            self.expected.append(expected)
            if expected.must_come:
                state.welcomed = True

    def _compose(self, state: Follower, due: list[datetime], now: datetime) -> Expected | None:
        expected = Expected(state.number, due[-1], state.wished.topics, covered=len(due))
        expected.is_first, expected.was_paused = not state.welcomed, state.paused_until is not None
        for name in state.wished.topics:
            expected.figures[name] = self.oracle.figures(name, now.date())
            expected.coverage[name] = self.oracle.coverage(name)
        expected.matters_from = (state.high_water or state.created_at).date() + timedelta(days=1)
        expected.is_due_quiet = state.wished.all_quiet and state.wished.schedule != "each"
        for entry in self._news(state):
            number = entry.number
            if self._is_hidden(state, number) or not entry.may:
                continue
            if entry.record.is_split:
                expected.may.add(number)
                continue
            if state.told & entry.record.numbers:
                continue
            if entry.must and number not in state.maybe:
                expected.must[number] = expected.must.get(number, frozenset()) | (entry.kinds & TOLD)
            else:
                expected.may.add(number)
        expected.may -= set(expected.must)
        if not state.welcomed:
            self._add_past(state, expected)
        self._add_revisions(state, expected)
        state.told |= set(expected.must) | expected.past_must
        state.maybe |= expected.may | expected.past
        return expected

    def _news(self, state: Follower) -> Iterator[Entry]:
        for place, entry in enumerate(self.oracle.ledger):
            if not entry.kinds or entry.topic not in state.wished.topics:
                continue
            if place >= max(state.told_upto, state.from_[entry.topic]):
                yield entry

    def _is_hidden(self, state: Follower, number: int) -> bool:
        return self.oracle.papers[number].category in state.wished.exclude

    def _add_past(self, state: Follower, expected: Expected) -> None:
        """Add what a first digest may hold of the past."""
        kind, _, value = state.wished.first.partition(":")
        since = date.fromisoformat(value) if kind == "since" else None
        # of a topic added before the first digest it is open which of its papers are of the past
        is_plain = all(place <= state.told_upto for place in state.from_.values())
        expected.past_limit = int(value) * len(state.wished.topics) if kind == "latest" and is_plain else None
        for entry in self.oracle.ledger:
            if not entry.kinds or entry.topic not in state.wished.topics or self._is_hidden(state, entry.number):
                continue
            if since is not None and entry.published < since:
                if not is_plain:
                    expected.past.add(entry.number)
                continue
            if entry.number not in expected.must and entry.number not in state.told:
                expected.past.add(entry.number)
                if since is not None and entry.kinds == {Kind.BASELINE} and entry.number not in state.maybe:
                    expected.past_must.add(entry.number)

    def _add_revisions(self, state: Follower, expected: Expected) -> None:
        for entry in self.oracle.entries(state.told_upto):
            if entry.kinds:
                continue
            numbers = entry.record.numbers
            if numbers & state.told and entry.is_sure and not (numbers & state.maybe):
                expected.revised_must.add(entry.number)
            elif numbers & (state.told | state.maybe):
                expected.revised_may.add(entry.number)
