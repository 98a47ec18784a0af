"""What the two mail templates print, worked out from a digest: all words, cuts and links. Floor 1; entry: ``mail_view``."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

from digestd import phrases
from digestd.headline import preheader, subject
from digestd.model.digest import Digest, DigestPaper, Links, Momentum, Section, TaggedPaper
from digestd.render import spark
from digestd.render.links import safe_url

TEXT_WIDTH = 72
WEEKS = 12  #: bars in a chart
NAMED = 6  #: short titles of papers over the budget, where the others are online
_BODY_INDENT = 4
_NAME_WIDTH = 26  #: least width of topic names in the text mail's table


@dataclass(frozen=True, slots=True)
class PaperView:
    """A paper as the templates print it; what is not known is ""."""

    title: str
    short: str
    url: str
    summary: str = ""
    change: str = ""  #: what a revision changed
    mark: str = ""  #: "Also in RL for LLM Agents"
    text_mark: str = ""
    who: str = ""  #: people and institution
    filed: str = ""  #: category and labels
    day: str = ""  #: "Sep 29"
    weekday: str = ""
    opens_day: bool = False  #: whether it is the first of its day in its section
    day_rule: str = ""  #: "Tue, Sep 29 ------"
    text_who: str = ""
    text_links: tuple[str, ...] = ()  #: category and link, one line if they fit


@dataclass(frozen=True, slots=True)
class ChartView:
    """A topic's weeks as the templates print them."""

    bars: str
    numbers: str
    first: str  #: "Jul 13"
    last: str
    hollow: bool  #: whether the last bar is that of an unfinished week
    cid: str = ""  #: of the picture; "" for text bars
    width: int = 0
    height: int = 0

    @property
    def small_width(self) -> int:
        """Width in the table on top."""
        return (self.width + 1) // 2

    @property
    def small_height(self) -> int:
        """Height in the table on top."""
        return self.height // 2


@dataclass(frozen=True, slots=True)
class RestView:
    """New papers over the budget."""

    label: str  #: "5 more online"
    url: str
    named: tuple[PaperView, ...]
    unnamed: str  #: what is said of those that are not named, "" if all are or the link shows them
    all: tuple[PaperView, ...]


@dataclass(frozen=True, slots=True)
class SectionView:
    """A topic as the templates print it."""

    name: str
    url: str
    headline: str
    lines: tuple[tuple[str, ...], ...]  #: below the headline; parts of a line stand between dots
    text_lines: tuple[str, ...]
    short: str
    rises: bool
    new: str
    papers: tuple[PaperView, ...]
    rest: RestView | None
    chart: ChartView | None


@dataclass(frozen=True, slots=True)
class OlderView:
    """A list of papers that are not new: newly tagged, revised, withdrawn."""

    heading: str
    note: str
    papers: tuple[PaperView, ...]
    rest: RestView | None = None


@dataclass(frozen=True, slots=True)
class LinkView:
    """A link of the footer."""

    label: str
    url: str


@dataclass(frozen=True, slots=True)
class MailView:
    """All that the two templates print."""

    name: str
    language: str
    subject: str
    preheader: str
    days: str
    count: str  #: "20 new papers in 3 topics"
    catch_up: str
    online: str
    charts: str  #: "12 weeks", the head of the charts' column; "" if there are none
    chart_key: str  #: how to read the charts
    new_label: str
    glance: tuple[str, ...]  #: the table on top, as text
    sections: tuple[SectionView, ...]
    older: tuple[OlderView, ...]
    end: str
    why: str
    links: tuple[LinkView, ...]


def mail_view(digest: Digest, links: Links, *, pictures: bool, named: int) -> MailView:
    """Return what the templates print of a digest.

    Args:
        digest: what is told, already cut to size.
        links: addresses to use; those that are None or unsafe are left out.
        pictures: whether charts are pictures, else block characters.
        named: how many papers over the budget are named in the HTML where no page shows them.
    """
    sections = tuple(
        _section_view(section, digest, links, pictures=pictures, named=named) for section in digest.sections
    )
    charts = [section.chart for section in sections if section.chart is not None]
    weeks = max((len(section.momentum.weekly[-WEEKS:]) for section in digest.sections), default=0)
    papers = [item for section in digest.sections for item in section.papers] + [item.paper for item in digest.tagged]
    short_days = phrases.date_range(digest.since, digest.until, year=False)
    why = [digest.why_line]
    if any(item.summary for item in papers):
        why.append("Summaries are sentences picked from the abstracts.")
    footer = (
        ("Change topics or days", links.preferences),
        ("Unsubscribe", links.unsubscribe),
        ("Same digest as a feed", links.feed),
    )
    return MailView(
        name=digest.name,
        language=digest.language,
        subject=subject(digest),
        preheader=preheader(digest),
        days=phrases.date_range(digest.since, digest.until),
        count=_count(digest),
        catch_up=f"More days than usual, {digest.catch_up.rstrip('.')}." if digest.catch_up else "",
        online=safe_url(links.online),
        charts=f"{weeks} weeks" if charts else "",
        chart_key=_chart_key(charts),
        new_label="Papers" if digest.welcome else "New",
        glance=_glance(sections, "" if digest.welcome else " new"),
        sections=sections,
        older=_older_views(digest, links, named),
        end=" ".join(part for part in (f"That is all for {short_days}.", digest.next_line) if part),
        why=" ".join(part for part in why if part),
        links=tuple(LinkView(label, safe_url(url)) for label, url in footer if safe_url(url)),
    )


def _count(digest: Digest) -> str:
    """Return "20 new papers in 3 topics"; a first digest's papers are not called new."""
    if digest.welcome:
        topics = phrases.count_noun(len(digest.sections), "topic")
        return f"Your first digest: {phrases.count_noun(digest.new)} in {topics}"
    return phrases.new_papers(digest.new, len(digest.sections))


def _section_view(section: Section, digest: Digest, links: Links, *, pictures: bool, named: int) -> SectionView:
    """Return a topic with its papers."""
    papers: list[PaperView] = []
    for item in section.papers:
        view = _paper_view(item, digest, own=(section.topic.name, *item.also_in))
        if item.also_in:
            also = phrases.join_words(item.also_in)
            view = replace(view, mark=f"Also in {also}", text_mark=f"also in {also}")
        papers.append(replace(view, opens_day=not papers or papers[-1].day != view.day))
    counts = _section_counts(section, digest)
    lines = tuple(part for part in (*section.headline.note.split(phrases.DOT), counts) if part)
    coverage = section.coverage_line[:1].upper() + section.coverage_line[1:]
    page = safe_url(links.more or section.url)
    return SectionView(
        name=section.topic.name,
        url=safe_url(section.url),
        headline=section.headline.text,
        lines=tuple(line for line in (lines, (coverage,) if coverage else ()) if line),
        text_lines=tuple(
            line for line in (" ".join(map(_sentence, lines)), _sentence(coverage) if coverage else "") if line
        ),
        short=section.headline.short or phrases.DASH,
        rises=section.headline.short.startswith("+"),
        new=f"{section.new:,}",
        papers=tuple(papers),
        rest=_rest_view(section.rest, digest, page, named),
        chart=_chart_view(section.momentum, digest, pictures=pictures),
    )


def _section_counts(section: Section, digest: Digest) -> str:
    """Return what became of a topic's papers; a first digest's papers are not called new."""
    counts = phrases.section_counts(section)
    return re.sub(r"^([\d,]+) new\b", r"\1 to begin with", counts) if digest.welcome else counts


def _sentence(text: str) -> str:
    """Return the text with a capital letter in front and a full stop at its end."""
    return text[:1].upper() + (text[1:] if text.endswith((".", "!", "?")) else f"{text[1:]}.")


def _paper_view(item: DigestPaper, digest: Digest, *, own: tuple[str, ...] = (), filed: bool = True) -> PaperView:
    """Return a paper, its labels cut by those that its place in the mail says already."""
    paper, url = item.paper, safe_url(item.url)
    when = paper.published or item.effective_at.date()
    people, place = phrases.people(paper), phrases.affiliations(paper)
    who = phrases.DOT.join(part for part in (people, place) if part)
    category = paper.categories[0] if paper.categories else ""
    one_line = "  ".join(part for part in (category, url) if part)
    both_fit = not url or not category or _BODY_INDENT + len(one_line) <= TEXT_WIDTH
    text_day = f"{phrases.weekday_day(when)} "
    return PaperView(
        title=paper.title,
        short=phrases.short_title(paper.title),
        url=url,
        summary=item.summary,
        who=who,
        filed=phrases.label_line(paper, own) if filed else "",
        day=phrases.day(when, beside=digest.until),
        weekday=phrases.weekday_day(when).split(",")[0],
        day_rule=text_day.ljust(TEXT_WIDTH, "-"),
        text_who=who if _BODY_INDENT + len(who) <= TEXT_WIDTH else people or place,
        text_links=tuple(line for line in ((one_line,) if both_fit else (category, url)) if line),
    )


def _rest_view(rest: tuple[DigestPaper, ...], digest: Digest, page: str, named: int) -> RestView | None:
    """Return the papers over the budget; None if there are none."""
    if not rest:
        return None
    everything = tuple(_paper_view(item, digest) for item in rest)
    shown = everything[: NAMED if page else named]
    left = len(everything) - len(shown)
    return RestView(
        label=f"{len(rest):,} more online" if page else f"{len(rest):,} more",
        url=page,
        named=shown,
        unnamed=f"and {left:,} more, named in the text part of this mail" if left and not page else "",
        all=everything,
    )


def _chart_view(momentum: Momentum, digest: Digest, *, pictures: bool) -> ChartView | None:
    """Return the chart of a topic; None without a series, for weeks are never invented."""
    series = momentum.weekly[-WEEKS:]
    if not series or momentum.weekly_from is None:
        return None
    first = momentum.weekly_from + timedelta(weeks=len(momentum.weekly) - len(series))
    last = first + timedelta(weeks=len(series) - 1)
    drawn = spark.bars(series, spark.MAIL, partial=momentum.partial)
    return ChartView(
        bars=spark.unicode_bars(series),
        numbers=spark.in_numbers(series),
        first=phrases.day(first, beside=digest.until),
        last=phrases.day(last, beside=digest.until),
        hollow=drawn[-1].hollow,
        cid=chart_id(momentum) if pictures else "",
        width=spark.width_of(drawn),
        height=spark.MAIL.height,
    )


def _chart_key(charts: Sequence[ChartView]) -> str:
    """Return how to read the charts; "" if there are none."""
    if not charts:
        return ""
    if not charts[0].cid:  # block characters have one colour and no outlines
        return "Charts: papers a week, the last four weeks on the right."
    hollow = ", the unfinished week hollow" if any(chart.hollow for chart in charts) else ""
    return f"Charts: papers a week, the last four weeks in red{hollow}."


def chart_id(momentum: Momentum) -> str:
    """Return the content id of a topic's chart: the same for the same bars."""
    shape = f"{momentum.weekly[-WEEKS:]} {momentum.partial}"
    return f"weeks-{hashlib.sha256(shape.encode()).hexdigest()[:16]}@digestd"


def _older_views(digest: Digest, links: Links, named: int) -> tuple[OlderView, ...]:
    """Return the lists of papers that are not new."""
    page = safe_url(links.more)
    lists = []
    if digest.tagged or digest.tagged_rest:
        papers = tuple(_tagged_view(item, digest) for item in digest.tagged)
        rest = _rest_view(tuple(item.paper for item in digest.tagged_rest), digest, page, named)
        note = "Listed earlier, filed under your topics since."
        lists.append(OlderView("Older papers newly tagged", note, papers, rest))
    changed = (
        ("Revised since we told you", "The title or the abstract changed.", digest.revised),
        ("Withdrawn", "You were told of these papers; they have been taken back since.", digest.withdrawn),
    )
    for heading, note, revisions in changed:
        views = []
        for item in revisions:
            view = replace(_paper_view(item.paper, digest, filed=False), summary="", change=item.line)
            views.append(replace(view, text_mark=view.day))
        if views:
            lists.append(OlderView(heading, note, tuple(views)))
    return tuple(lists)


def _tagged_view(item: TaggedPaper, digest: Digest) -> PaperView:
    """Return an older paper with the topic that it came to."""
    view = _paper_view(item.paper, digest, filed=False)
    topic = item.topic.name
    return replace(view, mark=f"Now in {topic}", text_mark=f"{view.day}, now in {topic}")


def _glance(sections: tuple[SectionView, ...], new: str) -> tuple[str, ...]:
    """Return the table on top as lines of text: name, bars, new papers, change."""
    charts = max((len(section.chart.bars) for section in sections if section.chart), default=0)
    counts = max((len(section.new) for section in sections), default=0) + 5
    shorts = max((len(section.short) for section in sections), default=0)
    shorts = max(shorts, len("+100%") + 2) + 3
    room = TEXT_WIDTH - 2 - charts - counts - len(new) - shorts
    names = [phrases.cut_at_word(section.name, room - 2) for section in sections]
    width = min(room, max((len(name) + 2 for name in [*names, " " * (_NAME_WIDTH - 2)]), default=0))
    return tuple(
        f"  {name:<{width}}{section.chart.bars if section.chart else '':>{charts}}{section.new:>{counts}}{new}"
        f"{section.short:>{shorts}}"
        for name, section in zip(names, sections, strict=True)
    )
