"""Ways in which tools of this field lost, doubled or garbled something, each read through the command line.

A case is a few inputs in order and what is right; `check` has the keys that the optional folder of public cases has, so that
one set of checks reads both. "new" in a source's first run is our baseline.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.command import Answer, Desk, make_desk
from tests.feeds import atom, rss
from tests.shared import REASON, shared_path

Check = Mapping[str, Any]


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Desk]:
    """A folder with settings and a history of its own."""
    yield from make_desk(tmp_path / "desk", capsys)


@dataclass(frozen=True)
class Input:
    """One document of a case."""

    file: str
    fetched: str | None = None
    url: str | None = None


class Played:
    """A case as it was played: each input was ingested in order, then all of them once more."""

    def __init__(self, desk: Desk, folder: Path, inputs: Sequence[Input], now: str) -> None:
        self._desk = desk
        self.inputs = inputs
        self.runs = [self._ingest(folder, one, now) for one in inputs]
        self.again = [self._ingest(folder, one, now) for one in inputs]
        self.pages = {one.file: self._parse(folder, one) for one in inputs}

    def _ingest(self, folder: Path, one: Input, now: str) -> Answer:
        args: list[str | Path] = ["ingest", folder / one.file, "--now", one.fetched or now, "--json"]
        args += ["--origin", one.url] if one.url else []
        args += ["--fetched-at", one.fetched] if one.fetched else []
        return self._desk(*args)

    def _parse(self, folder: Path, one: Input) -> dict[str, Any] | None:
        answer = self._desk("parse", folder / one.file, "--json", *(["--origin", one.url] if one.url else []))
        found: dict[str, Any] | None = answer.one if answer.status == 0 else None
        return found

    def titles(self, run: Answer) -> list[str]:
        """Return what a run told or took as its start, in page order."""
        return [title for one in run.objects for kind in ("baseline", "new", "newly_tagged") for title in one[kind]]

    @property
    def papers(self) -> dict[str, dict[str, Any]]:
        """All papers of the history, by title."""
        names = [topic["slug"] for topic in self._desk("topics", "--json").one]
        rows = [row for name in names for row in self._desk("papers", "--topic", name, "--json").one]
        return {row["title"]: row for row in rows}

    @property
    def everything(self) -> str:
        """All that digestd prints of the case."""
        shown = [self._desk("topics"), self._desk("momentum"), *self.runs, self._desk("momentum", "--json")]
        texts = [answer.out for answer in shown]
        return "\n".join(
            [*texts, json.dumps(self.papers, ensure_ascii=False), json.dumps(self.pages, ensure_ascii=False)]
        )


def sign(direction: str, percent: int | None) -> int | None:
    """Return a change in percent with its sign."""
    return None if percent is None else percent * {"up": 1, "down": -1, "unchanged": 0}[direction]


def check_new_per_run(case: Played, wanted: Any, check: Check) -> None:
    """Each run tells what is new in it, and what it told is never told again."""
    failed = check.get("failed_runs", [])
    for number, run in enumerate(case.runs, start=1):
        assert (number in failed) == (run.status != 0) == bool(run.objects[0]["error"])
    if isinstance(wanted, int):
        assert wanted == len(case.titles(case.runs[0]))
    else:
        assert [sorted(titles) for titles in wanted] == [sorted(case.titles(run)) for run in case.runs]
    assert [[]] * len(case.runs) == [case.titles(run) for run in case.again]


def check_failed_runs(case: Played, wanted: Any, check: Check) -> None:
    """A failed run changes nothing and leaves no paper called like its message."""
    assert {title for titles in check["new_per_run"] for title in titles} == set(case.papers)


def check_new(case: Played, wanted: Any, check: Check) -> None:
    """The first run tells these and no others; what is only replaced is known and counts for nothing."""
    assert wanted == case.titles(case.runs[0])
    assert check["cross_listed"] == case.runs[0].objects[0]["cross_listed"]
    replaced = [case.papers[title] for title in check["not_new"]]
    assert {"backfill"} == {row["kind"] for row in replaced}
    assert check["abstract_of_first"] == case.papers[wanted[0]]["abstract"]


def check_authors(case: Played, wanted: Any, check: Check) -> None:
    """People are cut apart as they were written, in order, and groups are no people."""
    papers = case.papers
    if isinstance(wanted, list):
        assert wanted in [row["authors"] for row in papers.values()]
        return
    for title, people in wanted.items():
        found = papers[title]["authors"]
        assert people == found or (len(people) == len(found) and all("," in name for name in found))
    for title, group in check["group"].items():
        assert group == papers[title]["group"]


def check_titles(case: Played, wanted: Any, check: Check) -> None:
    """Titles are one line each, with the characters that were meant."""
    assert sorted(wanted) == sorted(title.replace("�", "’", 1).replace("�", "–") for title in case.papers)


def check_feed_title(case: Played, wanted: Any, check: Check) -> None:
    """A feed's title is one line."""
    assert [wanted] == [run.objects[0]["topic"] for run in case.runs]


def check_effective_utc(case: Played, wanted: Any, check: Check) -> None:
    """A date that cannot be is unknown, and such a paper is sorted by its first sight."""
    assert wanted == {title: row["effective_at"] for title, row in case.papers.items()}


def check_momentum(case: Played, wanted: Any, check: Check) -> None:
    """Stated momentum is read as printed, with its sign, and without a percentage where there is none."""
    per_file = wanted if "papers" not in wanted else {case.inputs[0].file: wanted}
    for file, one in per_file.items():
        page = case.pages[file]
        assert page is not None
        found = page["momentum"]
        assert (one["papers"], sign(one["direction"], one["percent"]), one["share"]) == (
            found["papers_last_four_weeks"],
            found["change_percent"],
            found["share_percent"],
        )
        assert one.get("previous") == found["previous_papers"]


def check_numbers(case: Played, wanted: Any, check: Check) -> None:
    """Counts above 999 are read whole."""
    page = case.pages[case.inputs[0].file]
    assert page is not None
    first = page["papers"][0]
    assert (wanted, check["authors_more"], check["affiliations_more"]) == (
        page["total_papers"],
        first["authors_more"],
        first["affiliations_more"],
    )


def check_second_run(case: Played, wanted: Any, check: Check) -> None:
    """What is the same content is nothing new and nothing changed."""
    if len(case.runs) > 1:
        second = case.runs[1].objects[0]
        assert (wanted, [], True) == (len(case.titles(case.runs[1])), second["revised"], second["unchanged"])
        assert (check["papers"], check["topic"]) == (len(case.papers), second["topic"])


def check_links(case: Played, wanted: Any, check: Check) -> None:
    """Links are absolute, each from its own feed's or entry's base."""
    assert wanted == {title: row["links"][0] for title, row in case.papers.items()}
    assert all(link.startswith("http") for row in case.papers.values() for link in row["links"])


def check_incomplete(case: Played, wanted: Any, check: Check) -> None:
    """A cut page says so, and the half paper at its end is not taken for a whole one."""
    assert wanted == [run.objects[0]["incomplete"] for run in case.runs]
    title = check["new_per_run"][1][0]
    assert check["authors_of_third"] == case.papers[title]["authors"]


def check_forbidden_text(case: Played, wanted: Any, check: Check) -> None:
    """Nothing that digestd prints has a trace of the failure."""
    everything = case.everything
    assert [] == [text for text in wanted if text in everything]


def check_feed_error(case: Played, wanted: Any, check: Check) -> None:
    """A valid feed without papers is healthy, and its reason is told."""
    assert wanted == [bool(run.objects[0]["error"]) for run in case.runs]
    assert case.runs[0].objects[0]["quiet"]


#: key of `check` -> how it is checked; keys that are not here need mail, or belong to another one
CHECKS: dict[str, Callable[[Played, Any, Check], None]] = {
    "new_per_run": check_new_per_run,
    "failed_runs": check_failed_runs,
    "new": check_new,
    "authors": check_authors,
    "titles": check_titles,
    "feed_title": check_feed_title,
    "effective_utc": check_effective_utc,
    "momentum": check_momentum,
    "total": check_numbers,
    "new_second_run": check_second_run,
    "links": check_links,
    "incomplete": check_incomplete,
    "forbidden_text": check_forbidden_text,
    "feed_error": check_feed_error,
}


def play(desk: Desk, folder: Path, inputs: Sequence[Input], now: str, check: Check) -> None:
    """Play a case and hold it against all checks that it has."""
    case = Played(desk, folder, inputs, now)
    for key, wanted in check.items():
        if key in CHECKS:
            CHECKS[key](case, wanted, check)


# -- the kinds, with inputs of our own


def entry(title: str, *, link: str = "", guid: str = "", more: str = "", day: str = "Tue, 13 Oct 2026") -> str:
    """Return a feed's item."""
    return (
        f"<title>{title}</title><link>{link}</link><guid isPermaLink='false'>{guid or link}</guid>"
        f"<pubDate>{day} 06:00:00 GMT</pubDate><description>Of the sea.</description>{more}"
    )


def announced(number: int, title: str, kind: str) -> str:
    """Return an item of an arXiv announcement."""
    return (
        f"<title>{title}</title><link>https://arxiv.org/abs/2610.7000{number}</link>"
        f"<guid isPermaLink='false'>oai:arXiv.org:2610.7000{number}v{number}</guid>"
        f"<dc:creator>Ida Moss</dc:creator><category>eess.AS</category><arxiv:announce_type>{kind}</arxiv:announce_type>"
        f"<pubDate>Tue, 13 Oct 2026 00:00:00 -0400</pubDate>"
        f"<description>arXiv:2610.7000{number}v{number} Announce Type: {kind} \nAbstract: Foam, take {number}.</description>"
    )


def page(momentum: str, *, total: str = "40", blocks: Sequence[str] = (), topic: str = "Foam Dynamics") -> str:
    """Return a topic page as text."""
    head = [
        topic,
        "SPH: Smoothed Particle Hydrodynamics",
        "Follow this topic Ask about this topic",
        "Momentum",
        momentum,
    ]
    return "\n\n".join([*head, "Jul 27Week of Oct 12", f"Latest papers {total}", *blocks]) + "\n"


def block(title: str, authors: str, *, day: str = "Oct 13, 2026", where: str = "Bay Institute") -> str:
    """Return a paper of a topic page as text."""
    return "\n\n".join(
        [
            f"{day}physics.flu-dyn",
            title,
            f"Bubbles burst. {title} says when, and it says why.",
            authors,
            where,
            "Foam Dynamics",
        ]
    )


FOAM = [
    block("Foam at Dusk: Slow Bursts", "Ugo Marsh, Lin Wei"),
    block("Surf Meters That Never Rust", "Sana Okafor, Petra Vold"),
    block("Spray Counts by Ear", "Jo van Riet, Mats Berg", day="Oct 12, 2026"),
    block("Why Breakers Break Twice", "Ines Calder, Tor Vik", day="Oct 11, 2026"),
]
STEADY = "12 papers in the last four weeks, up 20% on the four weeks before. 0.2% of all new papers."
NOW = "2026-10-14T08:00:00Z"
DAYS = [f"2026-10-{day}T08:00:00Z" for day in (13, 14, 15, 16)]

#: name -> documents in order (name, body, url), what is right
KINDS: dict[str, tuple[list[tuple[str, str | bytes, str | None]], dict[str, Any]]] = {
    "01-link-and-guid-change": (
        [
            (
                "1.xml",
                rss(entry("Foam Clocks", link="http://surf.example/a/1", guid="http://surf.example/?a=1")),
                "http://surf.example/feed",
            ),
            (
                "2.xml",
                rss(
                    entry("Spray Rulers", link="https://surf.example/a/2", guid="https://surf.example/?a=2"),
                    entry(
                        "Foam Clocks",
                        link="https://www.surf.example/a/1/?utm_campaign=x&amp;fbclid=9",
                        guid="https://surf.example/?a=1",
                    ),
                ),
                "http://surf.example/feed",
            ),
        ],
        {"new_per_run": [["Foam Clocks"], ["Spray Rulers"]]},
    ),
    "02-papers-of-a-page-are-recorded-once": (
        [("page.txt", page(STEADY, blocks=FOAM), None)],
        {
            "new_per_run": [
                [
                    "Foam at Dusk: Slow Bursts",
                    "Surf Meters That Never Rust",
                    "Spray Counts by Ear",
                    "Why Breakers Break Twice",
                ]
            ]
        },
    ),
    "03-announce-types": (
        [
            (
                "eess.AS.xml",
                rss(
                    announced(1, "Foam Models", "new"),
                    announced(2, "Foam Priors", "cross"),
                    announced(3, "Foam Drift", "replace"),
                    announced(4, "Foam Bounds", "replace-cross"),
                ),
                "https://rss.arxiv.org/rss/eess.AS",
            )
        ],
        {
            "new": ["Foam Models", "Foam Priors"],
            "cross_listed": ["Foam Priors"],
            "not_new": ["Foam Drift", "Foam Bounds"],
            "abstract_of_first": "Foam, take 1.",
        },
    ),
    "04-authors-in-one-string": (
        [
            (
                "feed.xml",
                rss(
                    entry(
                        "Plain",
                        link="https://surf.example/1",
                        more="<dc:creator>Ida Moss, Tor Vik and Lin Wei</dc:creator>",
                    ),
                    entry(
                        "Surnames",
                        link="https://surf.example/2",
                        more="<dc:creator>Moss, I., de la Mar, P. Q.</dc:creator>",
                    ),
                    entry(
                        "Semicolons", link="https://surf.example/3", more="<dc:creator>Ida Moss; Tor Vik</dc:creator>"
                    ),
                    entry("Lone", link="https://surf.example/4", more="<dc:creator>Moss, Ida</dc:creator>"),
                    entry(
                        "Group",
                        link="https://surf.example/5",
                        more="<dc:creator>Ida Moss, Tor Vik Jr., Low Tide Consortium</dc:creator>",
                    ),
                ),
                None,
            )
        ],
        {
            "authors": {
                "Plain": ["Ida Moss", "Tor Vik", "Lin Wei"],
                "Surnames": ["I. Moss", "P. Q. de la Mar"],
                "Semicolons": ["Ida Moss", "Tor Vik"],
                "Lone": ["Ida Moss"],
                "Group": ["Ida Moss", "Tor Vik Jr."],
            },
            "group": {"Group": "Low Tide Consortium"},
        },
    ),
    "05-line-breaks-in-titles": (
        [
            (
                "feed.xml",
                rss(
                    entry("Foam\n  by\tNight:\r\nSubject: free fish", link="https://surf.example/1"),
                    entry("  Edges  ", link="https://surf.example/2"),
                ).replace("<title>Kelp Weekly", "<title>Kelp\n \n Weekly ", 1),
                None,
            )
        ],
        {"feed_title": "Kelp Weekly", "titles": ["Foam by Night: Subject: free fish", "Edges"]},
    ),
    "06-error-pages-with-status-200": (
        [
            ("1.xml", rss(entry("Foam Clocks", link="https://surf.example/1")), "https://surf.example/feed"),
            (
                "2.html",
                "<!doctype html><title>502</title><h1>Bad gateway</h1><p>nginx</p>",
                "https://surf.example/feed",
            ),
            (
                "3.xml",
                atom(
                    "<id>http://arxiv.org/api/errors#max_results_too_large</id><title>Error</title>"
                    "<summary>max_results too large</summary><author><name>arXiv api core</name></author>"
                ),
                "https://surf.example/feed",
            ),
            (
                "4.xml",
                rss(
                    entry("Spray Rulers", link="https://surf.example/2"),
                    entry("Foam Clocks", link="https://surf.example/1"),
                ),
                "https://surf.example/feed",
            ),
        ],
        {"new_per_run": [["Foam Clocks"], [], [], ["Spray Rulers"]], "failed_runs": [2, 3]},
    ),
    "07-dates-that-cannot-be": (
        [
            (
                "feed.xml",
                rss(
                    entry("Far Ahead", link="https://surf.example/1", day="Fri, 01 Feb 2041"),
                    entry("Zeros", link="https://surf.example/2").replace(
                        "Tue, 13 Oct 2026 06:00:00 GMT", "0000-00-00 00:00:00"
                    ),
                    "<title>None</title><link>https://surf.example/3</link>",
                    entry("Words", link="https://surf.example/4", day="some day soon"),
                    entry("Ordinary", link="https://surf.example/5"),
                ),
                None,
            )
        ],
        {
            "effective_utc": {
                "Far Ahead": DAYS[0],
                "Zeros": DAYS[0],
                "None": DAYS[0],
                "Words": DAYS[0],
                "Ordinary": "2026-10-13T06:00:00Z",
            },
            "new_per_run": 5,
            "new_second_run": 0,
        },
    ),
    "08-stray-bytes": (
        [
            (
                "feed.xml",
                rss(
                    entry(
                        "Ebb@s end # Åsa Ørn listens",
                        link="https://surf.example/1",
                        more="<dc:creator>Åsa Ørn, Žofia Čermák</dc:creator>",
                    ),
                    entry("Přílivy", link="https://surf.example/2"),
                )
                .encode()
                .replace(b"@", b"\x92")
                .replace(b"#", b"\x96"),
                None,
            )
        ],
        {
            "authors": ["Åsa Ørn", "Žofia Čermák"],
            "titles": ["Ebb’s end – Åsa Ørn listens", "Přílivy"],
            "forbidden_text": ["Ã", "Ä", "Ă", "Ĺ"],
        },
    ),
    "09-empty-on-a-skip-day": (
        [
            (
                "sunday.xml",
                rss(head="<pubDate>Sun, 18 Oct 2026 00:00:00 -0400</pubDate><skipDays><day>Sunday</day></skipDays>"),
                "https://surf.example/feed",
            ),
            ("monday.xml", rss(entry("Foam Clocks", link="https://surf.example/1")), "https://surf.example/feed"),
        ],
        {"new_per_run": [[], ["Foam Clocks"]], "feed_error": [False, False]},
    ),
    "10-momentum-without-or-below-zero-percent": (
        [
            (
                "none.txt",
                page(
                    "3 papers in the last four weeks, up from none on the four weeks before. 0.1% of all new papers.",
                    blocks=FOAM[:1],
                ),
                None,
            ),
            (
                "down.txt",
                page(
                    "25 papers in the last four weeks, down 38% on the four weeks before. 0.3% of all new papers.",
                    blocks=FOAM[:1],
                ),
                None,
            ),
            (
                "same.txt",
                page(
                    "9 papers in the last four weeks, unchanged on the four weeks before. 0.2% of all new papers.",
                    blocks=FOAM[:1],
                ),
                None,
            ),
        ],
        {
            "momentum": {
                "none.txt": {"papers": 3, "direction": "up", "percent": None, "previous": 0, "share": 0.1},
                "down.txt": {"papers": 25, "direction": "down", "percent": 38, "share": 0.3},
                "same.txt": {"papers": 9, "direction": "unchanged", "percent": 0, "share": 0.2},
            },
            "forbidden_text": ["Infinity", "inf%", "NaN", "nan%", "None%"],
        },
    ),
    "11-other-line-ends": (
        [
            ("lf.txt", page(STEADY, blocks=FOAM), None),
            ("crlf.txt", b"\xef\xbb\xbf" + page(STEADY, blocks=FOAM).replace("\n", "\r\n").encode() + b"\r\n", None),
        ],
        {"new_second_run": 0, "papers": 4, "topic": "Foam Dynamics"},
    ),
    "12-thousands": (
        [
            (
                "page.txt",
                page(
                    "2,310 papers in the last four weeks, up 1,020% on the four weeks before. 3.5% of all new papers.",
                    total="31,400",
                    blocks=[
                        block("Foam for All", "Ugo Marsh, Lin Wei +1,204", where="Bay Institute · Low Tide Labs +1,001")
                    ],
                ),
                None,
            )
        ],
        {
            "momentum": {"papers": 2310, "direction": "up", "percent": 1020, "share": 3.5},
            "total": 31400,
            "authors_more": 1204,
            "affiliations_more": 1001,
        },
    ),
    "13-relative-links": (
        [
            (
                "a.atom",
                atom(
                    "<id>tag:surf.example,2026:1</id><title>Foam Tables</title><updated>2026-10-13T00:00:00Z</updated>"
                    '<link href="foam"/>',
                    attributes='xml:base="https://surf.example/x/y/"',
                ),
                "https://surf.example/feed.atom",
            ),
            (
                "b.rss",
                rss(
                    entry("Pier Notes", link="../pier/7", guid="p7").replace(
                        "Of the sea.", '&lt;a href="javascript:alert(1)"&gt;x&lt;/a&gt;'
                    )
                ),
                "https://pier.example/feeds/all.rss",
            ),
        ],
        {
            "links": {"Foam Tables": "https://surf.example/x/y/foam", "Pier Notes": "https://pier.example/pier/7"},
            "forbidden_text": ["javascript:"],
        },
    ),
    "15-cut-in-the-middle": (
        [
            ("cut.txt", page(STEADY, blocks=[*FOAM[:2], FOAM[2].partition(" says when")[0]]), None),
            ("full.txt", page(STEADY, blocks=FOAM), None),
        ],
        {
            "new_per_run": [
                ["Foam at Dusk: Slow Bursts", "Surf Meters That Never Rust"],
                ["Spray Counts by Ear", "Why Breakers Break Twice"],
            ],
            "incomplete": [True, False],
            "authors_of_third": ["Jo van Riet", "Mats Berg"],
        },
    ),
}


@pytest.mark.parametrize("kind", KINDS)
def test_case_of_our_own(desk: Desk, kind: str) -> None:
    """Each kind of failure is none here, with inputs of our own."""
    documents, check = KINDS[kind]
    inputs = []
    for (name, body, url), fetched in zip(documents, DAYS, strict=False):
        desk.put(f"case/{name}", body)
        inputs.append(Input(name, fetched, url))
    play(desk, desk.folder / "case", inputs, NOW, check)


# -- the public cases, where they are


def shared_cases() -> list[str]:
    """Return the names of the public cases, or one that is skipped with its reason."""
    try:
        folder = shared_path("cases", "open")
    except pytest.skip.Exception:
        return ["none"]
    return sorted(path.parent.name for path in folder.glob("*/case.json"))


@pytest.mark.parametrize("name", shared_cases())
def test_case_of_the_public(desk: Desk, name: str) -> None:
    """Each public case gives what its check says, as far as reading goes."""
    if name == "none":
        pytest.skip(REASON)
    folder = shared_path("cases", "open", name)
    case = json.loads((folder / "case.json").read_text(encoding="utf-8"))
    inputs = [
        Input(one["file"], one.get("fetched"), one.get("url"))
        for one in case["inputs"]
        if one.get("role") in {"feed", "topic snapshot"}
    ]
    if not inputs:
        pytest.skip("this case has no document to read")
    play(desk, folder, inputs, case["now"], case["check"])


def test_case_02_page_has_all_its_papers(desk: Desk) -> None:
    """The page whose mail fails for one reader is read with all its papers."""
    folder = shared_path("cases", "open", "02-send-fails-for-one-recipient")
    check = json.loads((folder / "case.json").read_text(encoding="utf-8"))["check"]
    played = Played(desk, folder, [Input("page.txt")], NOW)
    assert check["papers_each"] == len(played.papers)
