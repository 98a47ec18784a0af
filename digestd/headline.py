"""A Momentum in words: headline, line below, short form; a digest's subject and preheader. Floor 1.

Entry points: ``headline``, ``subject``, ``preheader``. The cases and their order are look/DESIGN.md §6 and §7. Only a
change that is more than counting noise is called a rise or a fall; what a source claims beyond that is told as its claim.
"""

from __future__ import annotations

from datetime import date

from digestd.model.digest import Digest, Headline, Momentum, Section, Trend
from digestd.momentum import significance_key, trend_of, whole_percent
from digestd.phrases import (
    DOT,
    MINUS,
    NBSP,
    count_noun,
    cut_at_word,
    date_range,
    day,
    join_words,
    new_papers,
    number_word,
    short_title,
)

SUBJECT_LIMIT = 50
PREHEADER_LIMIT = 100
#: How near to a whole multiple a change must be to be called one: 95 to 105 % is "double".
_NEAR = 0.05
_FOUR_WEEKS = "in four weeks"


def headline(
    momentum: Momentum, new: int | None = None, last_published: date | None = None, *, beside: date | None = None
) -> Headline:
    """Return the momentum of a topic in words.

    Args:
        momentum: the chosen figures; stated ones are printed as they stand, never computed again.
        new: papers new in this digest; None where there is no digest (pages, listings).
        last_published: the topic's newest paper, told for quiet topics.
        beside: a day of the digest; a date of another year is printed with its year.
    """
    trend = trend_of(momentum, new)
    notes = [share_words(momentum)]
    if trend is Trend.QUIET:
        notes = [_quiet_note(momentum, last_published, beside)]
    elif trend in (Trend.FEW, Trend.STEADY, Trend.UNKNOWN):
        notes.append(_claim(momentum, trend))
    return Headline(
        trend=trend,
        text=_text(momentum, trend, new),
        short=_short(momentum, trend),
        note=_sentence(DOT.join(note for note in notes if note)),
    )


def _text(momentum: Momentum, trend: Trend, new: int | None) -> str:
    """Return the headline itself."""
    match trend:
        case Trend.NEW_TOPIC:
            return _new_topic(momentum)
        case Trend.QUIET:
            return "No new papers, quiet"
        case Trend.STEADY:
            return f"Steady: {_counts(momentum)}"
        case Trend.UP:
            return _sentence(f"{_count(momentum)}, {_rise(momentum)}")
        case Trend.DOWN:
            return f"Cooling: {_count(momentum)}, {_fall(momentum)}"
        case Trend.FEW:
            return _sentence(_counts(momentum))
        case _:
            if momentum.current is not None:
                return _sentence(_count(momentum))
            return "No figures for this topic" if new is None else f"{new:,} new {'paper' if new == 1 else 'papers'}"


def _short(momentum: Momentum, trend: Trend) -> str:
    """Return the form for tables."""
    match trend:
        case Trend.NEW_TOPIC:
            return "new topic"
        case Trend.QUIET:
            return "quiet"
        case Trend.STEADY:
            return "steady"
        case Trend.FEW:
            return _after_short(momentum)
        case Trend.UP | Trend.DOWN:
            return signed_percent(change_percent(momentum))
        case _:
            return "" if momentum.current is None else f"{momentum.current:,}"


def signed_percent(percent: int) -> str:
    """Return "+145%", a fall with a true minus sign, "0%" for neither."""
    sign = "+" if percent > 0 else MINUS if percent < 0 else ""
    return f"{sign}{abs(percent):,}%"


def change_percent(momentum: Momentum) -> int:
    """Return the printed percent of a rise or fall, else the one that the counts give; 0 where there is none."""
    if momentum.change_percent is not None:
        return momentum.change_percent
    return whole_percent(momentum.current or 0, momentum.previous or 0) or 0


def share_words(momentum: Momentum) -> str:
    """Return "0.5% of all new papers", "<0.1% of all new papers"; "" where the source states no share."""
    share = momentum.share_percent
    if momentum.share_below or (share is not None and 0 < share < 0.1):
        return "<0.1% of all new papers"
    return "" if share is None else f"{share:g}% of all new papers"


def _sentence(text: str) -> str:
    """Return the text with a capital letter in front."""
    return text[:1].upper() + text[1:]


def _count(momentum: Momentum) -> str:
    """Return "54 papers in four weeks"."""
    return f"{count_noun(momentum.current or 0)} {_FOUR_WEEKS}"


def _counts(momentum: Momentum) -> str:
    """Return both counts, "7 papers in four weeks, after 2", or the one that is known."""
    return _count(momentum) if momentum.previous is None else f"{_count(momentum)}, {_after(momentum)}"


def _after(momentum: Momentum) -> str:
    """Return "after 22", "after none"."""
    return f"after {momentum.previous:,}" if momentum.previous else "after none"


def _after_short(momentum: Momentum) -> str:
    """Return "7 after 2"."""
    return f"{momentum.current or 0:,} {_after(momentum)}"


def _rise(momentum: Momentum) -> str:
    """Return "up 145%", "double the four before", "four times the four before", "after 8"."""
    percent = change_percent(momentum)
    if abs(percent - 100) <= 100 * _NEAR:
        return "double the four before"
    times = momentum.current / momentum.previous if momentum.current and momentum.previous else 1 + percent / 100
    if times < 4:
        return f"up{NBSP}{percent:,}%"
    nearest = round(times)
    whole, over = (nearest, "") if abs(times - nearest) <= _NEAR else (int(times), "over ")
    if whole < 10:
        return f"{over}{number_word(whole)} times the four before"
    return f"up{NBSP}{percent:,}%" if momentum.previous is None else _after(momentum)


def _fall(momentum: Momentum) -> str:
    """Return "down 28%"."""
    return f"down{NBSP}{abs(change_percent(momentum)):,}%"


def _new_topic(momentum: Momentum) -> str:
    """Return "New topic: 9 papers in three weeks"."""
    weeks = max(momentum.weeks or 0, 1)
    if momentum.weekly:
        count: int | None = sum(momentum.weekly[-weeks:])
    elif weeks <= 4 or momentum.previous is None:
        count, weeks = momentum.current, min(weeks, 4)
    else:
        count = (momentum.current or 0) + momentum.previous
    span = "one week" if weeks == 1 else f"{number_word(weeks)} weeks"
    return "New topic" if count is None else f"New topic: {count_noun(count)} in {span}"


def _quiet_note(momentum: Momentum, last_published: date | None, beside: date | None) -> str:
    """Return "3 papers in four weeks, after 2. The last one came on Sep 14."; what is not known is left out."""
    parts = [] if momentum.current is None else [f"{_sentence(_counts(momentum))}."]
    if last_published is not None:
        parts.append(f"The last one came on {day(last_published, beside=beside)}.")
    return " ".join(parts)


def _claim(momentum: Momentum, trend: Trend) -> str:
    """Return the source's own claim where the headline does not make it: "the source says down 12%"; else "".

    Few papers make no percent, whoever states it; "up from none" is told, it holds no percent.
    """
    if momentum.source != "stated":
        return ""
    percent, current = momentum.change_percent, momentum.current or 0
    if percent is None:
        return "the source says up from none" if momentum.previous == 0 and current > 0 else ""
    if percent == 0:
        return "the source says unchanged"
    if trend is Trend.FEW or (trend is Trend.UNKNOWN and current < 10):
        return ""
    return f"the source says {'up' if percent > 0 else 'down'} {abs(percent):,}%"


def subject(digest: Digest) -> str:
    """Return the subject line: the surest move, then the count; 50 characters at most.

    The count is dropped first, then the topic's name is cut at a word. Where nothing moved the count and the days stand.

    Args:
        digest: what is told.

    Returns:
        One line of plain spaces, without brackets, never empty.
    """
    if digest.welcome:
        return _fit([f"Welcome: {count_noun(digest.new)} in {_topics(digest)}", f"Welcome: {count_noun(digest.new)}"])
    counted = f"{digest.new:,} new {'paper' if digest.new == 1 else 'papers'}"
    moved = _moved(digest)
    if moved and digest.new:
        name, move = " ".join(moved[0].topic.name.split()), _move(moved[0])
        room = SUBJECT_LIMIT - len(move) - 1
        return _fit([f"{name} {move}, {counted}", f"{name} {move}", f"{cut_at_word(name, room)} {move}"])
    days = date_range(digest.since, digest.until, year=False)
    if digest.new or not (digest.tagged or digest.tagged_rest or digest.revised or digest.withdrawn):
        what = new_papers(digest.new, len(digest.sections))
        if len(digest.sections) == 1:
            name = " ".join(digest.sections[0].topic.name.split())
            count = counted if digest.new else "No new papers"
            return _fit([f"{count} in {name}, {days}", f"{count} in {name}", f"{what}, {days}", what])
        return _fit([f"{what}, {days}", what])
    return _fit([f"{_other_news(digest)}, {days}", _other_news(digest)])


def _fit(choices: list[str]) -> str:
    """Return the first choice that fits a subject; the last one is cut if none does."""
    fitting = (choice for choice in choices if len(choice) <= SUBJECT_LIMIT)
    return next(fitting, cut_at_word(choices[-1], SUBJECT_LIMIT)).strip()


def _topics(digest: Digest) -> str:
    """Return "3 topics"."""
    return count_noun(len(digest.sections), "topic")


def _other_news(digest: Digest) -> str:
    """Return what there is to tell where no paper is new."""
    tagged = len(digest.tagged) + len(digest.tagged_rest)
    if tagged:
        return f"{count_noun(tagged, 'older paper')} newly tagged"
    if digest.withdrawn:
        return f"{count_noun(len(digest.withdrawn))} withdrawn"
    return f"{count_noun(len(digest.revised))} revised"


def _moved(digest: Digest) -> list[Section]:
    """Return the sections that rose or fell, the surest change first."""
    moved = [section for section in digest.sections if section.headline.trend in (Trend.UP, Trend.DOWN)]
    return sorted(moved, key=lambda section: significance_key(section.momentum))


def _move(section: Section) -> str:
    """Return "up 145%", "down 28%" with plain spaces: a subject is folded by others."""
    percent = change_percent(section.momentum)
    return f"{'up' if percent > 0 else 'down'} {abs(percent):,}%"


_TOPIC_WORDS = {Trend.QUIET: "quiet", Trend.STEADY: "steady", Trend.NEW_TOPIC: "a new topic"}


def preheader(digest: Digest) -> str:
    """Return what the subject did not say: short names of the first three papers, then the other topics.

    Args:
        digest: what is told.

    Returns:
        100 characters at most, whole sentences; "" where there is nothing to add.
    """
    papers = [item for section in digest.sections for item in section.papers]
    papers = papers or [item.paper for item in digest.tagged]
    names = [short_title(item.paper.title, 36) for item in papers[:3]]
    more = max(digest.new, len(papers)) - len(names)
    firsts = f"{join_words(names)}." if more <= 0 else f"{', '.join(names)} and {more:,} more."
    text = cut_at_word(firsts, PREHEADER_LIMIT) if names else ""
    moved = _moved(digest)
    told = moved[0].topic.slug if moved and digest.new else None
    clauses: list[str] = []
    for section in digest.sections:
        clause = _topic_clause(section)
        if not clause or section.topic.slug == told:
            continue
        longer = " ".join(part for part in (text, f"{', '.join([*clauses, clause])}.") if part)
        if len(longer) > PREHEADER_LIMIT:
            break
        clauses.append(clause)
    return " ".join(part for part in (text, f"{', '.join(clauses)}." if clauses else "") if part)


def _topic_clause(section: Section) -> str:
    """Return "RL for LLM Agents down 28%", "GPU Kernel Generation quiet"; "" for few papers."""
    trend, name = section.headline.trend, " ".join(section.topic.name.split())
    if trend in (Trend.UP, Trend.DOWN):
        return f"{name} {_move(section)}"
    words = _TOPIC_WORDS.get(trend)
    return f"{name} {words}" if words else ""
