"""Holds what readers got against what the oracle says. Entry point: :func:`differences`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime

import feedparser

from digestd.model.snapshot import Kind
from tests.world.followers import Expected
from tests.world.live import Live, Mail, address_of
from tests.world.oracle import CoverageTruth
from tests.world.plan import Plan, WorldPaper
from tests.world.reading import Letter, read_letter


@dataclass(frozen=True)
class Difference:
    """Something that is not as it must be."""

    kind: str
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}"


class Titles:
    """Finds the world's papers by what a reader sees of them."""

    def __init__(self, plan: Plan) -> None:
        self._by_title: dict[str, list[WorldPaper]] = defaultdict(list)
        for paper in plan.papers:
            for title in dict.fromkeys(version.title.casefold() for version in paper.versions):
                self._by_title[" ".join(title.split())].append(paper)
                short = title.partition(":")[0]
                if paper not in self._by_title[short]:
                    self._by_title[short].append(paper)

    def find(self, title: str, text: str) -> WorldPaper | None:
        """Return the paper with a title; of two with the same one the one whose first author stands beside it."""
        found = self._by_title.get(" ".join(title.casefold().split()), [])
        if len(found) == 1:
            return found[0]
        return next((paper for paper in found if paper.authors[0] in text), None)

    def has(self, title: str) -> bool:
        """Whether any paper has a title."""
        return bool(self._by_title.get(" ".join(title.casefold().split())))


def differences(live: Live) -> list[Difference]:
    """Return all in which a world came out otherwise than it must."""
    return [*_wrong(live), *_Mails(live).check(), *_feeds(live)]


def _wrong(live: Live) -> Iterator[Difference]:
    for text in live.lived.wrong:
        yield Difference("audit" if text.startswith("audit") else "run", text)


class _Mails:
    def __init__(self, live: Live) -> None:
        self.live, self.plan = live, live.plan
        self.titles = Titles(live.plan)
        self.letters: dict[str, Letter] = {}
        self.copies: dict[str, list[Mail]] = defaultdict(list)
        for mail in live.lived.mails:
            letter = read_letter(mail.recipient, mail.body)
            self.letters.setdefault(letter.message_id, letter)
            self.copies[letter.message_id].append(mail)

    def check(self) -> Iterator[Difference]:
        """Yield what is wrong with the mails."""
        yield from self._copies()
        yield from self._after_leaving()
        by_slot: dict[tuple[str, datetime], list[Letter]] = defaultdict(list)
        for letter in self.letters.values():
            by_slot[letter.recipient, letter.slot].append(letter)
        for expected in self.live.followers.expected:
            found = by_slot.pop((address_of(expected.follower), expected.slot.replace(microsecond=0)), [])
            yield from self._slot(expected, found)
        for (recipient, slot), _ in sorted(by_slot.items()):
            yield Difference("slot", f"{recipient} got a digest of {slot:%b %d %H:%M} that was not due")
        yield from self._twice()

    def _copies(self) -> Iterator[Difference]:
        for name, mails in self.copies.items():
            if len(mails) > 1 and name not in self.live.lived.flagged:
                yield Difference(
                    "twice", f"{mails[0].recipient} got one mail {len(mails)} times, and nobody flagged it"
                )
            if len({mail.body for mail in mails}) > 1:
                yield Difference("twice", f"{mails[0].recipient} got one mail in different bytes")

    def _after_leaving(self) -> Iterator[Difference]:
        for follower, left in self.live.followers.left:
            for letter in self.letters.values():
                if letter.recipient != address_of(follower) or letter.slot > left:
                    continue
                if any(mail.clock > left for mail in self.copies[letter.message_id]):
                    yield Difference(
                        "left", f"{letter.recipient} got the digest of {letter.slot} after leaving at {left}"
                    )

    def _slot(self, expected: Expected, found: list[Letter]) -> Iterator[Difference]:
        who = f"reader {expected.follower}, digest of {expected.slot:%b %d %H:%M}"
        if len(found) > 1:
            yield Difference("slot", f"{who}: {len(found)} digests of one slot")
        if not found:
            if expected.must_come and not expected.excused and not self._is_held(expected):
                named = ", ".join(self._name(number) for number in sorted(expected.must)[:4])
                yield Difference("lost", f"{who} never came; it must tell {len(expected.must)} papers: {named}")
            return
        letter = found[0]
        told: dict[str, set[int]] = {"new": set(), "tagged": set(), "revised": set()}
        for one in letter.told:
            paper = self.titles.find(one.title, one.text)
            if paper is None and self.titles.has(one.title):
                letter.has_unnamed = True  # a bare title that two papers have: nobody can tell which one it is
            elif paper is None:
                yield Difference("title", f"{who}: no paper has the title {one.title!r}")
            else:
                told[one.section].add(paper.number)
        if letter.has_unnamed:
            return
        yield from self._papers(who, expected, told)
        yield from self._momentum(who, letter, expected)
        for topic, truth in expected.coverage.items():
            if truth.is_sure and not letter.welcome:
                yield from _coverage(
                    f"{who}, {topic}", letter.headlines.get(topic.upper(), ""), truth, expected.matters_from
                )
        if letter.catch_up and expected.covered < 2 and not expected.was_paused:
            yield Difference("slot", f"{who} says that it covers more days than usual, and it does not")

    def _is_held(self, expected: Expected) -> bool:
        return (address_of(expected.follower), expected.slot.replace(microsecond=0)) in self.live.lived.held_slots

    def _name(self, number: int) -> str:
        return f"#{number} {self.live.oracle.papers[number].versions[0].title.split(':')[0]}"

    def _papers(self, who: str, expected: Expected, told: dict[str, set[int]]) -> Iterator[Difference]:
        both = told["new"] | told["tagged"]
        for number in sorted(set(expected.must) - both):
            yield Difference(
                "lost", f"{who} lacks {self._name(number)}, which must be told as {_kinds(expected.must[number])}"
            )
        for number in sorted(expected.past_must - both):
            yield Difference("lost", f"{who}, the first one, lacks {self._name(number)}")
        again = self.live.followers.before.get(expected.follower, set())
        for number in sorted(both - set(expected.must) - expected.may - expected.past - again):
            yield Difference("untold", f"{who} tells {self._name(number)}, which it must not")
        for number, kinds in sorted(expected.must.items()):
            here = {Kind.NEW} if number in told["new"] else set()
            here |= {Kind.NEWLY_TAGGED} if number in told["tagged"] else set()
            if here and not here & kinds and number not in expected.past and not expected.is_first:
                yield Difference("kind", f"{who} tells {self._name(number)} as {_kinds(here)}, it is {_kinds(kinds)}")
        past = (both & expected.past) - expected.may
        if expected.past_limit is not None and len(past) > expected.past_limit:
            yield Difference(
                "untold", f"{who}, the first one, holds {len(past)} older papers, asked were {expected.past_limit}"
            )
        for number in sorted(expected.revised_must - told["revised"]):
            yield Difference("revision", f"{who} lacks the revision of {self._name(number)}")
        for number in sorted(told["revised"] - expected.revised_must - expected.revised_may):
            yield Difference("revision", f"{who} tells a revision of {self._name(number)} that is none to tell")

    def _twice(self) -> Iterator[Difference]:
        told: dict[tuple[str, int], list[Letter]] = defaultdict(list)
        for letter in self.letters.values():
            for one in letter.told:
                paper = self.titles.find(one.title, one.text)
                if paper is not None and one.section != "revised":
                    told[letter.recipient, paper.number].append(letter)
        splits = {number for record in self.live.oracle.records if record.is_split for number in record.numbers}
        for (recipient, number), letters in told.items():
            again = self.live.followers.before.get(int(re.sub(r"\D", "", recipient)), set())
            if len(letters) > 1 and number not in splits | again and not any(letter.welcome for letter in letters):
                days = ", ".join(f"{letter.slot:%b %d %H:%M}" for letter in letters)
                yield Difference("twice", f"{recipient} was told of {self._name(number)} {len(letters)} times: {days}")

    # -- figures

    def _momentum(self, who: str, letter: Letter, expected: Expected) -> Iterator[Difference]:
        for topic in expected.topics:
            line = letter.headlines.get(topic.upper())
            if line is None:
                yield Difference("title", f"{who} has no section of {topic}")
                continue
            rises = re.search(r"papers? in four weeks, (?:up|double|triple|more than)|\bup \d+%", line) is not None
            falls = line[len(topic) :].strip().startswith("Cooling") or re.search(r"\bdown \d+%", line) is not None
            for word, is_said, sign in (("a rise", rises, 1), ("a fall", falls, -1)):
                figures = expected.figures.get(topic, ())
                if is_said and figures and all((now - before) * sign <= 0 for now, before in figures):
                    yield Difference("momentum", f"{who} calls it {word} in {topic}: {line[:120]!r}, true is {figures}")


def _coverage(who: str, line: str, truth: CoverageTruth, matters_from: date) -> Iterator[Difference]:
    """Yield in what a coverage line names no gap that is one, or one that is none."""
    says = f"{who} says {line[-200:]!r}"
    named = {
        (one[1], one[2]) for one in re.finditer(r"between (\w{3} \d+)(?:, \d{4})? and (\w{3} \d+)(?:, \d{4})?", line)
    }
    real = {(_day(since), _day(until)) for since, until in truth.gaps if since < until}
    for since, until in sorted(named - real):
        yield Difference("gap", f"{says}; nothing is missing between {since} and {until}")
    wanted = [gap for gap in truth.gaps if gap[1] >= matters_from]
    for since, until in wanted:
        is_named = (_day(since), _day(until)) in named or re.search(rf"papers of .*\b{_day(until)}\b", line)
        if not is_named and " older " not in line:
            yield Difference("gap", f"{says}; nothing was seen between {since} and {until}")
    missing = re.search(r"(\d+) papers? (?:is|are) missing", line)
    count = int(missing[1]) if missing else 0
    if count > truth.unshown:
        yield Difference("none missing", f"{says}; {truth.unshown} papers were never shown")
    whole = re.search(r"(?:[Cc]omplete|[Nn]o gap) since (\w{3} \d+)", line)
    if whole and truth.top is not None:
        first = _date_before(whole[1], truth.top)
        hidden = [number for day, number in truth.unknown if first <= day < truth.top]
        if len(hidden) > count:
            yield Difference("missing", f"{says}; {len(hidden)} papers of these days were never seen: {hidden[:5]}")


def _day(day: date) -> str:
    return f"{day:%b} {day.day}"


def _date_before(words: str, latest: date) -> date:
    """Return the last day of this name that is not after another one."""
    for year in (latest.year, latest.year - 1):
        found = datetime.strptime(f"{words} {year}", "%b %d %Y").replace(tzinfo=UTC).date()
        if found <= latest:
            return found
    return latest


def _kinds(kinds: object) -> str:
    return " or ".join(sorted(str(kind) for kind in kinds))  # type: ignore[attr-defined]


def _feeds(live: Live) -> Iterator[Difference]:
    titles = Titles(live.plan)
    seen: dict[tuple[str, int], str] = {}
    splits = {number for record in live.oracle.records if record.is_split for number in record.numbers}
    for published in live.lived.feeds:
        for name, body in published.items():
            if not name.endswith("/atom.xml") or name.startswith(("all/", "momentum/")):
                continue
            read = feedparser.parse(body)
            if read.bozo:
                yield Difference("feed", f"{name} is not well-formed: {read.bozo_exception}")
            here: set[int] = set()
            for entry in read.entries:
                people = " ".join(one.get("name", "") for one in entry.get("authors", ()))
                paper = titles.find(entry.title, f"{people} {entry.get('summary', '')}")
                if paper is None or paper.number in splits:
                    continue
                if paper.number in here:
                    yield Difference("feed", f"{name} has two entries of #{paper.number}")
                here.add(paper.number)
                before = seen.setdefault((name, paper.number), entry.id)
                if before != entry.id:
                    yield Difference(
                        "feed", f"{name}: the entry of #{paper.number} had the id {before}, now {entry.id}"
                    )
