"""What of a topic's listing has been seen, in one line for readers. Floor 1.

Entry point: ``coverage_line``. The stretches themselves are the business of coverage.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, timedelta

from digestd.model.snapshot import Coverage, Gap
from digestd.phrases import count_noun, day, join_words

#: Gaps that a line names; older ones are only counted.
_NAMED = 2


def coverage_line(coverage: Coverage, since: date | None = None) -> str:
    """Return in words how complete the history of a topic is, for the days that matter to the reader.

    Args:
        coverage: stretches newest first, counts, papers that the totals prove to be missing.
        since: first day that matters; gaps that end before it are not named. None: all days matter.

    Returns:
        "complete since Sep 3"; "90 of 354 papers known; nothing seen between Jun 6 and Sep 11"; "2 papers are missing"
        is added where it is so; "papers of Sep 11 may be missing" where two stretches touch on a day;
        "" where nothing at all is known. No full stop, lower case.
    """
    if not coverage.stretches:
        if not coverage.known:
            return ""
        return "; ".join(part for part in (f"{_known(coverage)}, gaps can't be ruled out", _missing(coverage)) if part)
    gaps = [gap for gap in coverage.gaps if since is None or gap.until >= since]
    reference = coverage.stretches[0].until
    seams = [gap for gap in gaps if gap.since >= gap.until]
    holes = [gap for gap in gaps if gap.since < gap.until]
    newest = coverage.stretches[0]
    if gaps:
        parts = [_known(coverage), f"nothing seen {_gaps(holes, reference)}" if holes else "", _seams(seams, reference)]
    elif coverage.total and coverage.known >= coverage.total and not coverage.missing:
        parts = [f"all {count_noun(coverage.total)} known" if coverage.total > 1 else "the only paper is known"]
    elif newest.since == newest.until:
        parts = [_known(coverage)]  # a single day was shown in part: no day is complete
    elif coverage.missing:
        parts = [f"no gap since {_whole_from(coverage, reference)}"]
    else:
        parts = [f"complete since {_whole_from(coverage, reference)}"]
    parts.append(_missing(coverage))
    return "; ".join(part for part in parts if part)


def _known(coverage: Coverage) -> str:
    """Return "90 of 354 papers known", "12 papers known"."""
    if coverage.total is None or coverage.total < coverage.known:
        return f"{count_noun(coverage.known)} known"
    return f"{coverage.known:,} of {count_noun(coverage.total)} known"


def _missing(coverage: Coverage) -> str:
    """Return "2 papers are missing"; "" if none are."""
    if not coverage.missing:
        return ""
    return f"{count_noun(coverage.missing)} {'is' if coverage.missing == 1 else 'are'} missing"


def _whole_from(coverage: Coverage, reference: date) -> str:
    """Return the first day of the newest stretch that was shown whole: its edge days were shown only in part."""
    newest = coverage.stretches[0]
    first = newest.since + timedelta(days=1)
    return day(min(first, newest.until), beside=reference)


def _gaps(gaps: Sequence[Gap], reference: date) -> str:
    """Return "between Jun 6 and Sep 11, nor between May 17 and May 28, nor in 3 older stretches", newest first."""
    words = [_between(gap, reference) for gap in gaps[:_NAMED]]
    older = len(gaps) - _NAMED
    if older > 0:
        words.append(f"in {count_noun(older, 'older stretch', 'older stretches')}")
    return ", nor ".join(words)


def _seams(gaps: Sequence[Gap], reference: date) -> str:
    """Return "papers of Sep 11 may be missing": two stretches that touch on a day may or may not show all of it."""
    days = [day(gap.until, beside=reference) for gap in gaps[:_NAMED]]
    if not days:
        return ""
    older = len(gaps) - len(days)
    more = f" and {count_noun(older, 'older day')}" if older > 0 else ""
    return f"papers of {join_words(days) if not more else ', '.join(days)}{more} may be missing"


def _between(gap: Gap, reference: date) -> str:
    """Return "between Jun 6 and Sep 11"; the year stands where it is not the one of the newest papers."""
    return f"between {day(gap.since, beside=reference)} and {day(gap.until, beside=reference)}"
