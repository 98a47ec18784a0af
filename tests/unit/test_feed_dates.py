"""Dates of feeds."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.parse.feed_dates import FeedDate, read_date

SEEN = datetime(2026, 10, 21, 16, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("Tue, 20 Oct 2026 00:00:00 -0400", datetime(2026, 10, 20, 4, tzinfo=UTC)),
        ("MON, 19 OCT 2026 09:17:10 -0400", datetime(2026, 10, 19, 13, 17, 10, tzinfo=UTC)),
        ("Mon, 19 Oct 2026 10:00:00 GMT", datetime(2026, 10, 19, 10, tzinfo=UTC)),
        ("Mon, 19 Oct 2026 10:00 EST", datetime(2026, 10, 19, 15, tzinfo=UTC)),
        ("19 Oct 26 10:00:00 Z", datetime(2026, 10, 19, 10, tzinfo=UTC)),
        ("Thu, 22 Oct 2026 01:00:00 +1300", datetime(2026, 10, 21, 12, tzinfo=UTC)),
        ("2026-10-20T14:00:00.123456+00:00", datetime(2026, 10, 20, 14, tzinfo=UTC)),
        ("2026-10-20T14:00:00Z", datetime(2026, 10, 20, 14, tzinfo=UTC)),
        ("2026-10-20 14:00", datetime(2026, 10, 20, 14, tzinfo=UTC)),
        ("2026-10-20T24:00:00Z", datetime(2026, 10, 21, tzinfo=UTC)),
        ("2016-12-31T23:59:60Z", datetime(2016, 12, 31, 23, 59, 59, tzinfo=UTC)),
    ],
)
def test_read_date_with_time(text: str, at: datetime) -> None:
    """An instant is UTC, and so is its day."""
    assert FeedDate(at.date(), at) == read_date(text, SEEN)


@pytest.mark.parametrize("text", ["2026-10-20", "20 Oct 2026", "Tue, 20 October 2026", " 2026-10-20\n"])
def test_read_date_of_a_day(text: str) -> None:
    """A day without a time stays a day."""
    assert FeedDate(date(2026, 10, 20)) == read_date(text, SEEN)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (None, "no date"),
        ("  ", "no date"),
        ("0000-00-00", "impossible date '0000-00-00'"),
        ("0000-00-00T00:00:00Z", "impossible date '0000-00-00T00:00:00Z'"),
        ("Mon, 31 Feb 2026 00:00:00 GMT", "impossible date 'Mon, 31 Feb 2026 00:00:00 GMT'"),
        ("1 Jan 99999", "impossible date '1 Jan 99999'"),
        ("0001-01-01T00:00:00Z", "impossible date '0001-01-01T00:00:00Z'"),
        ("0001-01-01T00:00:00+14:00", "impossible date '0001-01-01T00:00:00+14:00'"),
        ("9999-12-31T23:59:59-12:00", "impossible date '9999-12-31T23:59:59-12:00'"),
        ("soon", "impossible date 'soon'"),
        ("Wed, 15 Jan 2031 09:00:00 +0000", "date in the far future 'Wed, 15 Jan 2031 09:00:00 +0000'"),
        ("2026-10-24", "date in the far future '2026-10-24'"),
    ],
)
def test_read_date_that_is_none(text: str | None, fault: str) -> None:
    """Missing, zero, impossible and far dates are none, with the reason."""
    assert FeedDate(fault=fault) == read_date(text, SEEN)


def test_read_date_by_another_reader() -> None:
    """A spelling that is not known here is taken from the other reader, zeros are not."""
    other = datetime(2026, 10, 20, tzinfo=UTC)
    assert FeedDate(other.date(), other) == read_date("2026년 10월 20일", SEEN, fallback=other)
    assert read_date("0000", SEEN, fallback=other).day is None


def test_read_date_a_little_ahead() -> None:
    """Two days ahead a clock or a zone may be wrong; a second more, and the date is none."""
    assert FeedDate(date(2026, 10, 23)) == read_date("2026-10-23", SEEN)
    assert date(2026, 10, 23) == read_date("Fri, 23 Oct 2026 16:00:00 GMT", SEEN).day
    assert read_date("Fri, 23 Oct 2026 16:00:01 GMT", SEEN).day is None


def test_read_date_without_time_of_fetching() -> None:
    """Where nobody knows when the document was fetched, no date is too far ahead."""
    assert FeedDate(date(2031, 1, 15)) == read_date("2031-01-15", None)


@given(st.text(alphabet="0123456789-:TZ +.OctNv,", max_size=40))
@settings(max_examples=300, deadline=None)
def test_read_date_never_raises(text: str) -> None:
    """Any text is a date or a fault, never both."""
    found = read_date(text, SEEN)
    assert bool(found.fault) == (found.day is None)
