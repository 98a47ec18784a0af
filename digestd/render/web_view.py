"""What the page templates print, worked out from what the pages show. Floor 1.

Entry points: :func:`index_groups`, :func:`day_groups`, :func:`chart`. Words and cuts are look's: a page says of a paper what
a mail says, with two institutions and five labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import groupby
from urllib.parse import urlencode

from digestd import phrases
from digestd.compose import paper_url
from digestd.headline import signed_percent
from digestd.model.digest import Momentum, Trend
from digestd.model.pages import ListedPaper, TopicSummary, Week
from digestd.model.paper import KnownPaper
from digestd.model.snapshot import Kind
from digestd.momentum import index_key, trend_of
from digestd.render import spark
from digestd.render.feed_xml import web_url
from digestd.summary import summarise

WEEKS = 12

#: weeks that the name of a day takes under a chart, on a phone too
_TICK_ROOM = 3
_TOP, _HEIGHT = 20, 150
_GAP, _GROUP_GAP = 0.28, 0.8
_LEAST_PEAK = 4

#: topics that a past week names
_WEEK_TOPICS = 6

_GROUPS: tuple[tuple[str, tuple[Trend, ...], str], ...] = (
    ("Rising", (Trend.UP,), ""),
    ("Steady", (Trend.STEADY,), "within the noise of their counts"),
    ("Cooling", (Trend.DOWN,), ""),
    ("Few papers", (Trend.FEW,), "counts too small for a percent"),
    ("New topics", (Trend.NEW_TOPIC,), "under eight weeks of data, not rated"),
    ("No figures yet", (Trend.UNKNOWN, Trend.QUIET), ""),
)


@dataclass(frozen=True, slots=True)
class IndexRow:
    """A topic in the index."""

    name: str
    url: str
    svg: str  #: small bars, "" where no weekly numbers are known
    current: str
    previous: str
    change: str
    share: str
    css: str  #: class of the change


@dataclass(frozen=True, slots=True)
class IndexGroup:
    """Topics that move alike."""

    name: str
    note: str
    rows: tuple[IndexRow, ...]


@dataclass(frozen=True, slots=True)
class PaperCard:
    """A paper in a list."""

    title: str
    url: str  #: its own page here
    source: str  #: where the paper itself is, "" if that is not known
    summary: str
    people: str
    category: str
    labels: tuple[tuple[str, str], ...]  #: (label, address of the list filtered by it)
    more: str  #: "+2"
    mark: str = ""  #: "Now in this topic": why an older paper stands here
    snippet: tuple[tuple[str, bool], ...] = ()  #: (text, whether it is a hit)


@dataclass(frozen=True, slots=True)
class DayGroup:
    """Papers of one day."""

    iso: str
    day: str
    weekday: str
    papers: tuple[PaperCard, ...]


def index_groups(
    summaries: Iterable[TopicSummary], *, skip: int = 0, limit: int | None = None
) -> tuple[IndexGroup, ...]:
    """Return the index: Rising (largest first), Steady, Cooling, Few papers, New topics; groups without topics are left out.

    Args:
        summaries: in any order.
        skip: topics of earlier pages.
        limit: topics at most; None: all.
    """
    ordered = sorted(summaries, key=lambda summary: (index_key(summary.momentum), summary.topic.name))
    placed = [
        (name, note, one)
        for name, trends, note in _GROUPS
        for one in ordered
        if trend_of(one.momentum) in trends
    ]  # fmt: skip
    shown = placed[skip : None if limit is None else skip + limit]
    return tuple(
        IndexGroup(name, note, tuple(_index_row(one) for _, _, one in found))
        for (name, note), found in groupby(shown, key=lambda place: place[:2])
    )


def _index_row(summary: TopicSummary) -> IndexRow:
    momentum, trend = summary.momentum, trend_of(summary.momentum)
    percent = momentum.change_percent
    css = "up" if trend is Trend.UP else "muted"
    return IndexRow(
        name=summary.topic.name,
        url=f"/t/{summary.topic.slug}",
        svg=_small_bars(summary),
        current=_number(momentum.current),
        previous=_number(momentum.previous),
        change=_change(trend, percent),
        share=_share(momentum),
        css=css,
    )


def _change(trend: Trend, percent: int | None) -> str:
    """Return a change that is more than counting noise with its sign; what is noise is steady, whatever its percent."""
    if trend is Trend.STEADY:
        return "steady"
    return signed_percent(percent) if trend in (Trend.UP, Trend.DOWN) and percent is not None else "–"


def _small_bars(summary: TopicSummary) -> str:
    series = summary.momentum.weekly[-WEEKS:]
    if not series:
        return ""
    label = f"{summary.topic.name}: weekly papers {spark.in_numbers(series)}"
    return spark.svg(series, label=label, partial=summary.momentum.partial)


def _number(count: int | None) -> str:
    return "–" if count is None else f"{count:,}"


def _share(momentum: Momentum) -> str:
    if momentum.share_percent is None:
        return "–"
    return f"{'<' if momentum.share_below else ''}{momentum.share_percent:g}%"


def day_groups(
    papers: Sequence[ListedPaper], *, own: Sequence[str] = (), page: str = "", now_in: str = ""
) -> tuple[DayGroup, ...]:
    """Return papers by day.

    Args:
        papers: newest first.
        own: labels that need not be said: the page's own topic.
        page: address of the list, to which a label filter is added; "" links no labels.
        now_in: name of the topic that a paper tagged late came to; "" marks none.
    """
    groups = []
    for day, found in groupby(papers, key=lambda paper: paper.known.effective_at.date()):
        cards = tuple(paper_card(paper, own=own, page=page, now_in=now_in) for paper in found)
        groups.append(
            DayGroup(day.isoformat(), phrases.day(day, beside=papers[0].known.effective_at.date()), f"{day:%a}", cards)
        )
    return tuple(groups)


def paper_card(listed: ListedPaper, *, own: Sequence[str] = (), page: str = "", now_in: str = "") -> PaperCard:
    """Return a paper as a list shows it."""
    paper = listed.known.paper
    labels, more = phrases.labels(paper, own, limit=5)
    people = phrases.DOT.join(part for part in (phrases.people(paper), phrases.affiliations(paper, 2)) if part)
    return PaperCard(
        title=paper.title,
        url=f"/p/{listed.known.public_id}",
        source=source_url(listed.known),
        summary="" if listed.snippet or listed.brief else summarise(paper.abstract, paper.title),
        people=people,
        category=paper.categories[0] if paper.categories else "",
        labels=tuple((label, f"{page}?{urlencode({'tag': label})}" if page else "") for label in labels),
        more=f"+{more}" if more else "",
        mark=f"Now in {now_in}" if now_in and listed.kind is Kind.NEWLY_TAGGED else "",
        snippet=_snippet(listed.snippet),
    )


def source_url(known: KnownPaper) -> str:
    """Return where the paper itself is, "" if that is not known or is no address of the web."""
    return web_url(paper_url(known)) or ""


def week_months(weeks: Iterable[Week]) -> tuple[tuple[str, tuple[WeekRow, ...]], ...]:
    """Return what the weeks brought, by month, in the order given."""
    rows = [(month_of(week.monday), _week_row(week)) for week in weeks]
    return tuple((month, tuple(row for _, row in found)) for month, found in groupby(rows, key=lambda pair: pair[0]))


def _week_row(week: Week) -> WeekRow:
    sunday = week.monday + timedelta(days=6)
    return WeekRow(
        iso=week.monday.isoformat(),
        days=phrases.date_range(week.monday, sunday, year=False),
        topics=tuple(
            (one.topic, f"/t/{one.slug}?{urlencode({'before': sunday.isoformat()})}", f"{one.papers:,}")
            for one in week.topics[:_WEEK_TOPICS]
        ),
        others=phrases.count_noun(len(week.topics) - _WEEK_TOPICS, "other topic")
        if len(week.topics) > _WEEK_TOPICS
        else "",
    )


def _snippet(text: str) -> tuple[tuple[str, bool], ...]:
    """Return the parts of a search's snippet; hits stand between U+0002 and U+0003."""
    parts: list[tuple[str, bool]] = []
    for number, piece in enumerate(text.split("\x02")):
        hit, _, rest = piece.partition("\x03") if number else ("", "", piece)
        parts += [(hit, True)] if hit else []
        parts += [(rest, False)] if rest else []
    return tuple(parts)


@dataclass(frozen=True, slots=True)
class WeekRow:
    """A week in the list of past weeks."""

    iso: str
    days: str
    topics: tuple[tuple[str, str, str], ...]  #: (name, address, papers), most papers first
    others: str  #: "3 other topics", "" for none


@dataclass(frozen=True, slots=True)
class ChartBar:
    """A week of the chart; across in percent, down in pixels, so that type never shrinks."""

    x: str
    width: str
    middle: str
    y: float
    height: float
    css: str  #: h: one of the last four weeks; so: the unfinished one
    value: int
    big: bool


@dataclass(frozen=True, slots=True)
class ChartSpan:
    """A bracket under four weeks with their sum."""

    x1: str
    x2: str
    middle: str
    text: str
    big: bool


@dataclass(frozen=True, slots=True)
class Chart:
    """A topic's weeks, ready for the template."""

    bars: tuple[ChartBar, ...]
    ticks: tuple[tuple[str, str, str], ...]  #: (x, text, anchor)
    spans: tuple[ChartSpan, ...]  #: empty where the weeks do not add up to the four-week numbers
    base: int
    height: int
    label: str
    rows: tuple[tuple[str, int], ...]  #: (week, papers)
    hollow: bool


def chart(momentum: Momentum) -> Chart | None:
    """Return the chart of a topic, None without weekly numbers: they are never invented.

    A younger series stands on the right, under the same last four weeks; where nothing is known, nothing is drawn.
    """
    series, first = momentum.weekly[-WEEKS:], momentum.weekly_from
    if not series or first is None:
        return None
    first += timedelta(weeks=len(momentum.weekly) - len(series))
    blank = WEEKS - len(series)
    total = WEEKS + 9 * _GAP + 2 * _GROUP_GAP
    places, x = [], 0.0
    for week in range(WEEKS):
        places.append(x)
        x += 1 + (_GROUP_GAP if week in (3, 7) else _GAP)

    def percent(units: float) -> str:
        return f"{units / total * 100:.2f}%"

    peak, base = max(*series, _LEAST_PEAK), _TOP + _HEIGHT
    bars = []
    for week, papers in enumerate(series, blank):
        height = 1 if papers == 0 else max(3, round(papers / peak * _HEIGHT))
        hollow = momentum.partial and week == WEEKS - 1 and papers > 0
        bars.append(
            ChartBar(
                x=percent(places[week]),
                width=percent(1),
                middle=percent(places[week] + 0.5),
                y=base - height + (0.5 if hollow else 0),
                height=height - (0.5 if hollow else 0),
                css="so" if hollow else "h" if week >= 8 else "",
                value=papers,
                big=week >= 8,
            )
        )
    spans = _spans(momentum, places, percent)
    names = [phrases.day(first + timedelta(weeks=week)) for week in range(len(series))]
    starts = [blank, *(week for week in (4, 8) if week - blank >= _TICK_ROOM)] if len(series) > _TICK_ROOM else []
    ticks = [(percent(places[week]), names[week - blank], "start") for week in starts] + [("100%", names[-1], "end")]
    return Chart(
        bars=tuple(bars),
        ticks=tuple(ticks),
        spans=spans,
        base=base,
        height=base + (54 if spans else 24),
        label="Weekly counts: " + ", ".join(f"{name} {papers}" for name, papers in zip(names, series, strict=True)),
        rows=tuple(zip(names, series, strict=True)),
        hollow=momentum.partial,
    )


def _spans(momentum: Momentum, places: Sequence[float], percent: Callable[[float], str]) -> tuple[ChartSpan, ...]:
    """Return the sums under the last two groups of four, if they are the numbers of the headline."""
    before, now = sum(momentum.weekly[-8:-4]), sum(momentum.weekly[-4:])
    if len(momentum.weekly) < 8 or (before, now) != (momentum.previous, momentum.current):
        return ()
    return tuple(
        ChartSpan(
            percent(places[a]),
            percent(places[b] + 1),
            percent((places[a] + places[b] + 1) / 2),
            phrases.count_noun(count),
            a == 8,
        )
        for a, b, count in ((4, 7, before), (8, 11, now))
    )


def month_of(day: date) -> str:
    """Return "September 2026"."""
    return f"{day:%B %Y}"
