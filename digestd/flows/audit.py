"""Is everything accounted for, exactly once? Floor 4. Entry point: :func:`audit`.

The rules are A1 to A8, A10 and A11 of the reliability promises: what came was read or set aside; what was seen stands in
the ledger; what stands there was told, or passed over with a reason; every slot was served; what was told has its mail; what
a mail's fate is, is known or flagged. Nothing is written, and all that is read is one state of the history.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import accumulate, islice

from digestd.errors import FetchError, RenderError, StoreError
from digestd.model.audit import AcceptedRow, AuditReport, Check, Cursor, Finding, Kept, ScheduleSpan, ToldStretch
from digestd.model.delivery import DeliveryState
from digestd.model.source import FileFate, ShelvedFile
from digestd.model.subscription import Schedule, Slot
from digestd.ports import Store
from digestd.render.outgoing import build_mail, unpack_content
from digestd.schedule import MOST_SLOTS, slots_between

#: findings of one rule that are named; the others are counted
MOST = 100

#: subscriptions and outbox rows that are looked at together
PAGE = 200
_ROWS = 5000

#: files that are looked up together
_FILES = 500

#: mails that are built again
SAMPLE = 200

#: A suppression carries the time at which it was asked for; a writer waits at most so long until it stands.
_GRACE = timedelta(seconds=10)

#: by which the rules of a time zone, mended later, move what was due
ZONE_MOVE = timedelta(hours=3)

#: (positions, papers) of a topic's sightings that readers are told
News = tuple[Sequence[int], Sequence[int]]


@dataclass(frozen=True, slots=True)
class Shelf:
    """Where a watched folder's files are put away."""

    source: str  #: name
    files: Callable[[], Iterator[ShelvedFile]]
    hash_file: Callable[[str], str | None]
    moves: bool = True  #: whether files that were read leave the folder


def audit(
    store: Store,
    *,
    now: datetime,
    kept: Counter[str] | None = None,
    unnamed: int = 0,
    shelves: Sequence[Shelf] = (),
) -> AuditReport:
    """Return what of a history is not as it must be.

    Args:
        store: never written to.
        now: for leases.
        kept: Message-IDs that a relay or a sink kept, with how often; None: nothing to compare with.
        unnamed: mails there that have none.
        shelves: of the watched folders.
    """
    accounts, notes = store.accounts, list[str]()
    # a file's fate is recorded before the file is moved: looked at before the history, none can be there without
    files = [_shelved(store, shelf, notes) for shelf in shelves]
    with accounts.reading():
        database = accounts.database()
        faults = tuple(Finding("A10", thing, found, expected) for thing, found, expected in database.faults)
        checks = [
            *files,
            *accounts.checks(now=now, most=MOST),
            _told(store),
            _slots(store),
            _states(store),
            _hashes(store),
            _suppressed(store),
            Check("A10", "the database is intact, and set as the promises need it", 1, faults, len(faults)),
        ]
        if kept is not None:
            checks += _reconciled(store, kept)
        oldest, doubt = accounts.oldest_ready(), accounts.doubt()
    notes += database.notes
    if oldest is not None and oldest < now:
        notes.append(f"the oldest delivery that is ready has been due for {_for_people(now - oldest)}")
    if doubt.opened:
        notes.append(
            f"{doubt.opened} deliveries were uncertain once ({doubt.resent} sent again, {doubt.held} held, "
            f"{doubt.resolved} resolved): as many duplicates are possible"
        )
    figures = None if kept is None else Kept(kept.total(), unnamed, sum(times > 1 for times in kept.values()))
    return AuditReport(tuple(sorted(checks, key=_by_code)), tuple(notes), doubt, figures)


def _by_code(check: Check) -> int:
    return int(check.code[1:])


def _check(code: str, what: str, looked_at: int, findings: Iterator[Finding]) -> Check:
    """Return a check with its first findings and their number."""
    found: list[Finding] = []
    total = 0
    for finding in findings:
        total += 1
        if len(found) < MOST:
            found.append(finding)
    return Check(code, what, looked_at, tuple(found), total)


# -- A1: the files of watched folders


def _shelved(store: Store, shelf: Shelf, notes: list[str]) -> Check:
    """Return whether each file that was put away has one record that says what became of it."""
    total, since = store.sources.files_kept(shelf.source)
    seen: Counter[str] = Counter()
    what = f"each file of {shelf.source} that was put away was read, or set aside"
    try:
        findings = list(_unrecorded(store, shelf, since, seen))
    except FetchError as error:
        return Check("A1", what, seen["files"], (Finding("A1", f"source {shelf.source}", str(error), "its files"),), 1)
    if seen["old"]:
        notes.append(f"{seen['old']} files of {shelf.source} were put away before accounts of them were kept")
    if seen["waiting"]:
        notes.append(f"{seen['waiting']} files of {shelf.source} were read by now and still lie in quarantine")
    if shelf.moves and (gone := total - seen["known"]) > 0:
        notes.append(f"{gone} files of {shelf.source} are where they were put no more")
    return _check("A1", what, seen["files"], iter(findings))


def _unrecorded(store: Store, shelf: Shelf, since: datetime | None, seen: Counter[str]) -> Iterator[Finding]:
    files = shelf.files()
    while part := list(islice(files, _FILES)):
        fates = store.sources.fates(shelf.source, [file.mark for file in part])
        for file in part:
            seen["files"] += 1
            fate = fates.get(file.mark.version)
            seen["known"] += fate is not None
            if fate is None and (since is None or file.moved_at < since):
                seen["old"] += 1
                continue
            found = frozenset({fate}) if fate is not None else _fates_of_bytes(store, shelf, file)
            seen["waiting"] += file.quarantined and bool(found) and FileFate.QUARANTINED not in found
            if not found or (not file.quarantined and found == {FileFate.QUARANTINED}):
                words = "one that could not be read" if found else "no record"
                yield Finding("A1", f"source {shelf.source} file {file.path}", words, "a record of what became of it")


def _fates_of_bytes(store: Store, shelf: Shelf, file: ShelvedFile) -> frozenset[FileFate]:
    """Return what became of files with the same bytes: one that was copied or restored is another to its file system."""
    digest = shelf.hash_file(file.path)
    return store.sources.fates_of_hash(shelf.source, digest) if digest is not None else frozenset()


# -- A3: what each reader was told


def _told(store: Store) -> Check:
    """Return whether each sighting of a followed topic was told or passed over, for every active subscription."""
    seen: Counter[str] = Counter()
    findings = _untold(store, seen)
    check = _check("A3", "every sighting is told or passed over with a reason", 0, findings)
    return Check(check.code, check.what, seen["sightings"], check.findings, check.total)


def _untold(store: Store, seen: Counter[str]) -> Iterator[Finding]:
    accounts = store.accounts
    changes, news = accounts.changes(), dict[str, News]()
    after = 0
    while cursors := accounts.cursors(after=after, limit=PAGE):
        after = cursors[-1].key
        stretches = accounts.stretches([cursor.key for cursor in cursors])
        for cursor in cursors:
            for slug, _ in cursor.followed:
                if slug not in news:
                    news[slug] = accounts.news_of(slug)
            seen["sightings"] += sum(_window(news[slug], begun, cursor)[1] for slug, begun in cursor.followed)
            told = stretches.get(cursor.key, ())
            for slug, position in unaccounted(cursor, told, news):
                yield Finding(
                    "A3",
                    f"subscription {cursor.public_id} topic {slug} position {position}",
                    "neither told nor passed over",
                    "one of both in a digest up to it",
                )
            for position in untold_changes(cursor, told, changes):
                yield Finding(
                    "A3",
                    f"subscription {cursor.public_id} revision at position {position}",
                    "neither told nor passed over",
                    "one of both, for its paper was told before",
                )


def _window(news: News, begun: int, cursor: Cursor) -> tuple[int, int]:
    """Return where in a topic's news a reader's part begins, and how long it is."""
    first = bisect_right(news[0], begun)
    return first, max(0, bisect_right(news[0], cursor.told_upto) - first)


def unaccounted(cursor: Cursor, told: Sequence[ToldStretch], news: Mapping[str, News]) -> Iterator[tuple[str, int]]:
    """Yield (slug, position) of sightings that a subscription should know and does not account for.

    A sighting is accounted for by a digest whose stretch holds it and which tells it, passes it over, or tells its paper
    under another topic.

    Args:
        cursor: the subscription.
        told: its digests, oldest first.
        news: sightings of its topics that readers are told.
    """
    accounted: set[int] = set().union(*(stretch.positions for stretch in told)) if told else set()
    ends = [stretch.upto for stretch in told]
    for slug, begun in cursor.followed:
        first, length = _window(news[slug], begun, cursor)
        positions, papers = news[slug]
        for place in range(first, first + length):
            position = positions[place]
            if position in accounted:
                continue
            covering = _covering(told, ends, position)
            if covering is None or papers[place] not in covering.papers:
                yield slug, position


def untold_changes(cursor: Cursor, told: Sequence[ToldStretch], changes: Mapping[int, Sequence[int]]) -> Iterator[int]:
    """Yield the positions of revisions of papers that a subscription was told before, and of which it was not told.

    A digest tells all changes of a paper in its stretch as one.

    Args:
        cursor: the subscription.
        told: its digests, oldest first.
        changes: positions of revisions by paper.
    """
    ends = [stretch.upto for stretch in told]
    for teller in told:
        for paper in teller.papers & changes.keys():
            for position in changes[paper]:
                # a change within the stretch that tells the paper is told with it: the reader gets the newest text
                if not teller.upto < position <= cursor.told_upto:
                    continue
                covering = _covering(told, ends, position)
                if covering is None or covering.positions.isdisjoint(changes[paper]):
                    yield position


def _covering(told: Sequence[ToldStretch], ends: Sequence[int], position: int) -> ToldStretch | None:
    """Return the digest whose stretch of the ledger holds a position."""
    place = bisect_left(ends, position)
    return told[place] if place < len(told) and told[place].after < position else None


# -- A4: the slots of the past


def _slots(store: Store) -> Check:
    """Return whether each time at which a digest was due, up to the last one served, is on record, and no other."""
    looked_at = Counter[str]()
    check = _check("A4", "every slot that was due was served, and no other", 0, _unserved(store, looked_at))
    return replace(check, looked_at=looked_at["slots"])


def _unserved(store: Store, looked_at: Counter[str]) -> Iterator[Finding]:
    after = 0
    calendar = _Calendar()
    while spans := store.accounts.spans(after=after, limit=PAGE):
        after = spans[-1].key
        for span in spans:
            looked_at["slots"] += span.slots
            if calendar.holds(span):
                continue
            inside = store.accounts.slot_labels(span.subscription, span.since, span.until)
            around = store.accounts.slot_labels(span.subscription, span.since - ZONE_MOVE, span.until + ZONE_MOVE)
            for label, found, expected in misserved(span, inside, around):
                yield Finding("A4", f"subscription {span.public_id} slot {label}", found, expected)


class _Calendar:
    """When each schedule was due; readers who share one are counted by the same list."""

    def __init__(self) -> None:
        self._due: dict[tuple[Schedule, str], tuple[datetime, datetime, list[datetime], list[int]]] = {}

    def holds(self, span: ScheduleSpan) -> bool:
        """Whether the slots on record are, in number and by the sum of their times, those of the schedule."""
        since, until, due, sums = self._due.get((span.schedule, span.zone), (span.since, span.since, [], [0]))
        if span.since < since or span.until > until:
            since, until = min(since, span.since), max(until, span.until)
            due = [slot.due_at for slot in _due_in(span, since, until)]
            sums = [0, *accumulate(int(one.timestamp()) for one in due)]
            self._due[span.schedule, span.zone] = since, until, due, sums
        if len(due) >= MOST_SLOTS and span.since < due[0]:
            return False
        first, last = bisect_right(due, span.since), bisect_right(due, span.until)
        return (last - first, sums[last] - sums[first]) == (span.slots, span.seconds)


def _due_in(span: ScheduleSpan, since: datetime, until: datetime) -> Sequence[Slot]:
    return slots_between(span.schedule, span.zone, since, until)


def misserved(span: ScheduleSpan, inside: frozenset[str], around: frozenset[str]) -> Iterator[tuple[str, str, str]]:
    """Yield (label, found, expected) of slots of a span that were not served, or that its schedule does not have.

    When the rules of a zone are mended, a label that was served is due at another instant than it was then, and is the same
    label: what is that near to an end of the span may lie on either side of it.

    Args:
        span: a stretch of time under one schedule.
        inside: labels on record in it.
        around: labels on record in it and for :data:`ZONE_MOVE` to both sides.
    """
    due = _due_in(span, span.since - ZONE_MOVE, span.until + ZONE_MOVE)
    for slot in due:
        surely = span.since + ZONE_MOVE < slot.due_at <= span.until - ZONE_MOVE
        if surely and slot.label not in around:
            yield slot.label, "not served", f"served, for it was due at {slot.due_at.isoformat()}"
    first = due[0].label if len(due) >= MOST_SLOTS else ""
    foreign = inside - {slot.label for slot in due}
    yield from ((label, "served", "no slot of the schedule") for label in sorted(foreign) if label >= first)


# -- A5 to A7: the outbox


def _states(store: Store) -> Check:
    """Return whether the states' counts add up to all rows."""
    counts = store.outbox.counts()
    rows, after = 0, 0
    while page := store.accounts.rows(after=after, limit=_ROWS):
        after, rows = page[-1].key, rows + len(page)
    total = sum(counts.values())
    findings = (
        [Finding("A5", "outbox", f"{total} deliveries by state", f"{rows}, as there are")] if total != rows else []
    )
    return Check("A5", "the states' counts add up", rows, tuple(findings), len(findings))


def _hashes(store: Store) -> Check:
    """Return whether mails that were accepted, built again, have the bytes that were sent."""
    keys = store.accounts.accepted(SAMPLE)
    return _check(
        "A6",
        "what was sent can be built again, byte for byte",
        len(keys),
        _each(keys, lambda key: _rebuilt(store, key)),
    )


def _each(keys: Sequence[int], look: Callable[[int], Finding | None]) -> Iterator[Finding]:
    return (finding for key in keys if (finding := look(key)) is not None)


def _rebuilt(store: Store, key: int) -> Finding | None:
    thing = f"delivery {key}"
    try:
        claimed = store.outbox.content_of(key)
        body = build_mail(claimed.envelope.fields, unpack_content(claimed.content))
    except (StoreError, RenderError, ValueError, KeyError, TypeError, OSError) as error:
        return Finding("A6", thing, f"not built: {error}", "the mail as it was sent")
    found, expected = hashlib.sha256(body).hexdigest(), claimed.delivery.sha256
    return None if found == expected else Finding("A6", thing, f"sha256 {found}", f"{expected}, as it was sent")


def _suppressed(store: Store) -> Check:
    """Return whether nothing was sent to those who had left."""
    late = [dot for dot in store.accounts.late_dots() if dot.dot_at - dot.suppressed_at > _GRACE]
    findings = (
        Finding(
            "A7", f"delivery {dot.key}", f"sent at {dot.dot_at}", f"nothing after {dot.suppressed_at} ({dot.reason})"
        )
        for dot in late
    )
    looked_at = len(store.outbox.suppressions())
    return _check("A7", "nothing is sent after a suppression took effect", looked_at, findings)


# -- A11: the relay's own word


def _reconciled(store: Store, kept: Counter[str]) -> list[Check]:
    """Return whether what was kept elsewhere is what we think we sent."""
    lost: list[Finding] = []
    doubled: list[Finding] = []
    unsent: list[Finding] = []
    ours: set[str] = set()
    rows, after = 0, 0
    while page := store.accounts.rows(after=after, limit=_ROWS):
        after, rows = page[-1].key, rows + len(page)
        for row in page:
            ours.add(row.message_id)
            times, thing = kept.get(row.message_id, 0), f"delivery {row.key} {row.message_id}"
            if row.state is DeliveryState.ACCEPTED and not times:
                lost.append(Finding("A11", thing, "not kept", "kept, for it was accepted"))
            if times and not _may_be_kept(row):
                unsent.append(Finding("A11", thing, f"kept, and here {row.state}", "accepted or uncertain"))
            if times > 1 and not row.flagged:
                doubled.append(Finding("A11", thing, f"kept {times} times, never uncertain", "kept once"))
    unsent += [
        Finding("A11", f"mail {message_id}", "kept, and not in the outbox", "a delivery")
        for message_id in kept
        if message_id not in ours
    ]
    return [
        _check("A11", "what was accepted is kept", rows, iter(lost)),
        _check("A11", "what is kept was sent", len(kept), iter(unsent)),
        _check("A11", "what is kept twice was uncertain once", len(kept), iter(doubled)),
    ]


def _may_be_kept(row: AcceptedRow) -> bool:
    return row.state in (DeliveryState.ACCEPTED, DeliveryState.UNCERTAIN) or row.flagged or row.at_dot


def _for_people(span: timedelta) -> str:
    minutes = int(span.total_seconds()) // 60
    if minutes < 120:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 48 * 60 else f"{minutes // (24 * 60)} days"
