"""What must be known of a world's topics, worked out from the design and from nothing else of digestd but its types.

The oracle is told what each document shows, by the papers' true numbers, and says for each sighting which kinds it may have.
Where the design leaves more than one kind open (edge days, pages cut in the middle), it names all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime, timedelta

from digestd.model.snapshot import Kind
from tests.world.pages import Item, Shown
from tests.world.plan import Plan

LATE_DAYS = 7
TAGGED_DAYS = 30
ANY = frozenset(Kind)
TOLD = frozenset({Kind.NEW, Kind.NEWLY_TAGGED})


@dataclass
class Record:
    """A paper as far as it can be told apart: all that share a name are one."""

    numbers: set[int]
    names: set[str]
    labels: set[str] = field(default_factory=set)
    is_split: bool = False  #: its names did not lead to what was known of the same paper: nobody can be sure
    only_replaced: bool = False


@dataclass
class Entry:
    """A row of the ledger: a sighting, or (kinds empty) a revision."""

    topic: str
    record: Record
    kinds: frozenset[Kind]
    published: date
    number: int
    version: int = 0
    is_sure: bool = True  #: of revisions: whether they must be told

    @property
    def must(self) -> bool:
        """Whether it is told for certain."""
        return bool(self.kinds) and self.kinds <= TOLD and not self.record.is_split

    @property
    def may(self) -> bool:
        """Whether it can be told."""
        return bool(self.kinds & TOLD)


@dataclass
class Group:
    """Pages of a listing that hang together."""

    since: date
    until: date
    records: list[Record]
    total: int | None
    seen_at: datetime
    papers_then: frozenset[int] = frozenset()  #: what truly stood in the listing at its newest page

    def holds(self, record: Record) -> bool:
        """Whether one of its pages showed the paper."""
        return any(one is record for one in self.records)


@dataclass
class TopicTruth:
    """What the documents so far say of a topic."""

    name: str
    exists: bool = False
    started: bool = False  #: by a document
    by_follow: bool = False  #: somebody followed it before any document came
    start: date | None = None
    groups: list[Group] = field(default_factory=list)
    sighted: list[Record] = field(default_factory=list)
    fetched: dict[str, bool] = field(default_factory=dict)  #: source -> whether its first fetch had papers
    is_shaky: bool = False  #: a page was cut: stretches and kinds at its edges are not sure
    stated: tuple[int, int] | None = None
    first_listing_at: datetime | None = None
    last_listing_at: datetime | None = None

    def has(self, record: Record) -> bool:
        """Whether the paper was sighted in the topic."""
        return any(one is record for one in self.sighted)

    @property
    def top(self) -> Group | None:
        """The group with the newest date."""
        return max(self.groups, key=lambda group: group.until, default=None)


@dataclass(frozen=True)
class CoverageTruth:
    """What a coverage line may say of a topic."""

    gaps: tuple[tuple[date, date], ...] = ()  #: newest first: between which dates nothing was seen
    unshown: int = 0  #: papers that stand in the listing at its last page, and that no page of it ever showed
    unknown: tuple[tuple[date, int], ...] = ()  #: those that came after its first page and are not known at all
    top: date | None = None
    is_sure: bool = False  #: False: nothing can be held against it


class Oracle:
    """The truth about all topics of a world."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.papers = {paper.number: paper for paper in plan.papers}
        self.topics = {topic.name: TopicTruth(topic.name) for topic in plan.topics}
        self.records: list[Record] = []
        self.ledger: list[Entry] = []
        self._by_name: dict[str, Record] = {}
        self._said: dict[tuple[str, str, int], int] = {}  #: (topic, source, number) -> newest version shown there
        self._shown_versions: set[tuple[int, int]] = set()

    @property
    def head(self) -> int:
        """The ledger's length."""
        return len(self.ledger)

    def entries(self, after: int) -> list[Entry]:
        """Return what came after a position."""
        return self.ledger[after:]

    def figures(self, name: str, today: date) -> tuple[tuple[int, int], ...]:
        """Return the (last four weeks, four before) that a headline may speak of: stated, or counted on one of these days."""
        topic = self.topics[name]
        days = [self.papers[min(record.numbers)].published for record in topic.sighted]
        found = [topic.stated] if topic.stated is not None else []
        for back in range(8):
            ages = [(today - timedelta(days=back) - day).days for day in days]
            found.append((sum(0 <= age < 28 for age in ages), sum(28 <= age < 56 for age in ages)))
        return tuple(found)

    def coverage(self, name: str) -> CoverageTruth:
        """Return what has been seen of a topic's listing, and what has not."""
        topic = self.topics[name]
        if topic.top is None or topic.last_listing_at is None:
            return CoverageTruth()
        known = {number for record in topic.sighted for number in record.numbers}
        gaps = tuple((older.until, newer.since) for newer, older in zip(topic.groups, topic.groups[1:], strict=False))
        listed = self.plan.listed(name, topic.last_listing_at)
        shown = {number for group in topic.groups for record in group.records for number in record.numbers}
        first = topic.first_listing_at or topic.last_listing_at
        unknown = tuple(
            (paper.published, paper.number)
            for paper in listed
            if paper.number not in known and (paper.entered(name, topic.last_listing_at) or first) > first
        )
        unshown = sum(paper.number not in shown for paper in listed)
        if any(one.until is not None and one.topic == name for paper in self.plan.papers for one in paper.filed):
            unknown = ()  # what was taken away hides from the totals what came
        return CoverageTruth(gaps, unshown, unknown, topic.top.until, is_sure=not topic.is_shaky)

    def begin_topic(self, name: str) -> None:
        """Somebody follows a topic: if it was only a label, all that bears it is known from the start."""
        topic = self.topics[name]
        if topic.exists:
            return
        topic.exists = topic.by_follow = True
        self._label_baseline(topic)

    def _label_baseline(self, topic: TopicTruth) -> None:
        for record in self.records:
            if topic.name in record.labels and not topic.has(record):
                self._sight(topic, record, frozenset({Kind.BASELINE}), min(record.numbers))

    def _sight(self, topic: TopicTruth, record: Record, kinds: frozenset[Kind], number: int) -> None:
        topic.sighted.append(record)
        self.ledger.append(Entry(topic.name, record, kinds, self.papers[number].published, number))

    # -- identity

    def _resolve(self, item: Item) -> tuple[Record, bool]:
        """Return the record that an item is, and whether it is a new one; names that meet make one record of two."""
        found: list[Record] = []
        for name in sorted(item.names):
            known = self._by_name.get(name)
            if known is not None and all(one is not known for one in found):
                found.append(known)
        if not found:
            relatives = [one for one in self.records if item.number in one.numbers]
            record = Record({item.number}, set(item.names), is_split=bool(relatives) or not item.sure)
            for one in relatives:
                one.is_split = True
            self.records.append(record)
        else:
            record = found[0]
            for other in found[1:]:
                self._merge(record, other)
            record.names |= item.names if item.sure else set()
            record.numbers.add(item.number)
        for name in record.names:
            self._by_name[name] = record
        return record, not found

    def _merge(self, kept: Record, gone: Record) -> None:
        kept.numbers |= gone.numbers
        kept.names |= gone.names
        kept.labels |= gone.labels
        kept.is_split = kept.is_split or gone.is_split
        self.records = [one for one in self.records if one is not gone]
        for entry in self.ledger:
            entry.record = kept if entry.record is gone else entry.record
        for topic in self.topics.values():
            topic.sighted = [kept if one is gone else one for one in topic.sighted]
            for group in topic.groups:
                group.records = [kept if one is gone else one for one in group.records]

    # -- documents

    def take(self, shown: Shown, *, at: datetime) -> None:
        """Take in a document that was recorded, fetched at an instant of digestd's clock."""
        topic = self.topics[shown.topic]
        if not topic.exists:
            topic.exists = True
            self._label_baseline(topic)
        resolved: list[tuple[Item, Record]] = []
        for item in shown.items:
            record, is_new = self._resolve(item)
            if is_new and item.announce == "replace":
                record.only_replaced = True
            if all(record is not other for _, other in resolved):
                resolved.append((item, record))
        resolved = [(item, self._by_name.get(next(iter(record.names)), record)) for item, record in resolved]
        own: dict[int, frozenset[Kind]] = {}
        for item, record in resolved:
            if not topic.has(record):
                kinds = self._kinds(topic, shown, item, record)
                if not item.sure:  # perhaps it was not read: then a later page shows it for the first time
                    self.ledger.append(Entry(topic.name, record, ANY, self.papers[item.number].published, item.number))
                    continue
                own[id(record)] = kinds
                self._sight(topic, record, kinds, item.number)
        self._file_under_labels(topic, resolved, own)
        for item, record in resolved:
            self._revise(shown, item, record)
            if item.announce == "new":
                record.only_replaced = False
        self._keep_state(topic, shown, resolved, at)

    def _kinds(self, topic: TopicTruth, shown: Shown, item: Item, record: Record) -> frozenset[Kind]:
        day = self.papers[item.number].published
        if item.announce == "replace":
            return frozenset({Kind.BACKFILL})
        if record.only_replaced:
            return ANY
        if not topic.started:
            return ANY if topic.by_follow else frozenset({Kind.BASELINE})
        if shown.order == "feed":
            return self._feed_kinds(topic, shown, day)
        return listing_kinds(topic, day)

    def _feed_kinds(self, topic: TopicTruth, shown: Shown, day: date) -> frozenset[Kind]:
        had_papers = topic.fetched.get(shown.source)
        if had_papers is None:
            return frozenset({Kind.BASELINE})
        told = frozenset(TOLD)
        if topic.start is not None:
            edge = topic.start - timedelta(days=TAGGED_DAYS)
            told = told if day == edge else frozenset({Kind.NEW if day > edge else Kind.NEWLY_TAGGED})
        return told if had_papers else told | {Kind.BASELINE}

    def _file_under_labels(
        self, own: TopicTruth, resolved: list[tuple[Item, Record]], kinds: dict[int, frozenset[Kind]]
    ) -> None:
        for item, record in resolved:
            record.labels |= {own.name, *(item.labels if item.sure else ())}
            for label in item.labels:
                topic = self.topics.get(label)
                if topic is None or not topic.exists or topic.has(record):
                    continue
                given = kinds.get(id(record), frozenset({Kind.NEWLY_TAGGED}))
                if not item.sure:
                    self.ledger.append(Entry(topic.name, record, ANY, self.papers[item.number].published, item.number))
                    continue
                if topic.by_follow and not topic.started and own.is_shaky:
                    given |= TOLD
                self._sight(topic, record, given, item.number)

    def _revise(self, shown: Shown, item: Item, record: Record) -> None:
        key = (shown.topic, shown.source, item.number)
        before = self._said.get(key)
        if not item.sure:
            return
        if (item.number, item.version) not in self._shown_versions and item.version > 0:
            sure = before is not None and not record.is_split and not record.only_replaced
            self.ledger.append(
                Entry(
                    "", record, frozenset(), self.papers[item.number].published, item.number, item.version, is_sure=sure
                )
            )
        elif before is not None and item.version > before:
            self.ledger.append(
                Entry(
                    "",
                    record,
                    frozenset(),
                    self.papers[item.number].published,
                    item.number,
                    item.version,
                    is_sure=False,
                )
            )
        self._shown_versions.add((item.number, item.version))
        self._said[key] = max(item.version, before or 0)

    def _keep_state(self, topic: TopicTruth, shown: Shown, resolved: list[tuple[Item, Record]], at: datetime) -> None:
        days = [self.papers[item.number].published for item, _ in resolved if item.sure]
        if not topic.started:
            topic.start = max(days, default=None)
            topic.started = True
            topic.is_shaky = shown.cut
        if shown.order == "feed":
            topic.fetched[shown.source] = topic.fetched.get(shown.source, False) or (bool(resolved) and not shown.cut)
            return
        if topic.first_listing_at is None:
            topic.first_listing_at = shown.when
        topic.last_listing_at = shown.when
        topic.stated = shown.stated or topic.stated
        topic.is_shaky = topic.is_shaky or shown.cut or any(not item.sure for item, _ in resolved)
        if days:
            self._extend(topic, shown, [record for _, record in resolved], days, at)

    def _extend(self, topic: TopicTruth, shown: Shown, records: list[Record], days: list[date], at: datetime) -> None:
        then = frozenset(paper.number for paper in self.plan.listed(topic.name, shown.when))
        page = Group(min(days), max(days), records, shown.total, at, then)
        joined = [group for group in topic.groups if any(group.holds(record) for record in records)]
        if not joined and (top := topic.top) is not None and explained(top, page):
            joined = [top]
        for group in joined:
            newest = max((page, group), key=lambda one: one.seen_at)
            page = Group(
                min(page.since, group.since),
                max(page.until, group.until),
                [*group.records, *(one for one in page.records if not group.holds(one))],
                newest.total,
                newest.seen_at,
                newest.papers_then,
            )
        topic.groups = [group for group in topic.groups if all(group is not one for one in joined)] + [page]
        topic.groups.sort(key=lambda group: (group.until, group.since), reverse=True)


def explained(top: Group, page: Group) -> bool:
    """Whether a page of nothing but unseen papers above a group accounts for all by which the listing grew."""
    if top.total is None or page.total is None or page.seen_at < top.seen_at or page.since < top.until:
        return False
    return page.total - top.total == len(page.records) > 0


def listing_kinds(topic: TopicTruth, day: date) -> frozenset[Kind]:
    """Return the kinds that a paper may have which a listing's page shows for the first time."""
    top = topic.top
    if top is None or topic.start is None:
        return ANY
    after_start = day > topic.start
    if day > top.until:
        return frozenset({Kind.NEW})
    if day == top.until:
        whole = top.since < day and not topic.is_shaky
        return frozenset({Kind.NEW}) if whole or after_start else ANY
    on_edge = any(day in (group.since, group.until) for group in topic.groups)
    if on_edge or topic.is_shaky:
        return TOLD if after_start else ANY
    near = top.until - timedelta(days=LATE_DAYS)
    if top.since < day and day == near:
        return TOLD
    if top.since < day and day > near:
        return frozenset({Kind.NEW})
    if any(group.since < day < group.until for group in topic.groups):
        return frozenset({Kind.NEWLY_TAGGED})
    return frozenset({Kind.NEW}) if after_start else frozenset({Kind.BACKFILL})
