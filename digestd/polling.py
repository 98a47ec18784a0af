"""When to ask a source again and what to keep of its answer. Floor 1: pure; entry points are `is_due` and `settle`.

Nothing here reads a clock, draws a number or opens a connection: `now` and `draw`, a number in [0, 1), are arguments.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from digestd.model.source import FailKind, FetchOutcome, FetchState, OutcomeKind, SourceSpec

#: No server and no backoff keeps a source away for longer.
MAX_WAIT_S = 86_400
#: So many equal permanent redirects in a row rewrite the stored URL.
MOVES_UNTIL_REWRITE = 3
#: Redirects followed in one fetch.
MAX_REDIRECTS = 3
#: Backoff is stretched by up to this fraction, ordinary polls by half of it.
JITTER = 0.2

_PERMANENT = frozenset({301, 308})
_REDIRECT = _PERMANENT | {302, 303, 307}
#: Failures in a row after which a rewritten URL is given up for the configured one.
_FAILURES_UNTIL_HOME = 5
#: A validator longer than this is no validator; it would be stored and sent back for ever.
_MAX_VALIDATOR = 1000
_DIGITS = re.compile(r"[0-9]{1,18}")


@dataclass(frozen=True, slots=True)
class Hop:
    """One redirect that was followed."""

    status: int
    target: str  #: absolute URL


@dataclass(frozen=True, slots=True)
class Reply:
    """How one fetch ended, before it is judged: an HTTP answer, or a failure with words."""

    url: str  #: last URL asked
    status: int | None = None  #: None: no answer
    headers: Mapping[str, str] = field(default_factory=dict)
    hops: tuple[Hop, ...] = ()
    asked_conditionally: bool = False  #: whether the last request carried validators
    empty: bool = False  #: whether the body had no bytes
    fail: FailKind | None = None  #: set where the exchange itself failed
    why: str = ""

    def __post_init__(self) -> None:
        """Fold header names to lower case."""
        folded = {name.lower(): value for name, value in self.headers.items()}
        object.__setattr__(self, "headers", folded)


def is_redirect(status: int) -> bool:
    """Return whether the status sends us to another URL (RFC 9110 15.4; 300, 304, 305 and 306 do not)."""
    return status in _REDIRECT


def current_state(spec: SourceSpec, state: FetchState | None) -> FetchState:
    """Return the state to fetch with: a fresh one if there is none or the configured location has changed."""
    if state is None or state.location != spec.location:
        return FetchState(location=spec.location)
    return state


def is_due(state: FetchState, now: datetime) -> bool:
    """Return whether a source may be asked now; never again once it is gone."""
    return not state.gone and (state.next_try_at is None or state.next_try_at <= now)


def backoff_s(failures: int, draw: float, *, floor_s: float, cap_s: float = MAX_WAIT_S) -> float:
    """Return how long to wait after so many failures in a row.

    Args:
        failures: 1 for the first failure; smaller numbers count as 1.
        draw: number in [0, 1) that spreads sources which failed together.
        floor_s: wait after the first failure before jitter; doubles with each further one.
        cap_s: longest wait, jitter included.

    Returns:
        Seconds in [min(floor_s, cap_s), cap_s].
    """
    top = cap_s / (1 + JITTER)
    # 2**64 is beyond any cap; the limit keeps a count of years from becoming a float overflow
    wait = min(top, max(floor_s, 1.0) * 2.0 ** min(max(failures, 1) - 1, 64))
    return min(cap_s, max(min(floor_s, cap_s), wait * (1 + JITTER * draw)))


def retry_after_s(value: str | None, now: datetime, *, server_date: str | None = None) -> float | None:
    """Return the seconds that a Retry-After header asks for, capped at a day.

    Args:
        value: header, seconds or an HTTP date; None if it was not sent.
        now: our instant, UTC.
        server_date: the answer's Date header; a date form is measured from it, so that a wrong clock on one side does
            not shorten the wait.

    Returns:
        Seconds in [0, 86400]; None without a usable header.

    Source: RFC 9110 10.2.3.
    """
    text = (value or "").strip()
    if _DIGITS.fullmatch(text):
        return float(min(int(text), MAX_WAIT_S))
    until = _http_date(text)
    if until is None:
        return None
    asked = (until - (_http_date(server_date) or now)).total_seconds()
    return float(min(max(asked, 0.0), MAX_WAIT_S))


def fresh_for_s(headers: Mapping[str, str]) -> float:
    """Return for how many seconds the answer calls itself fresh: Cache-Control max-age less Age, at most a day.

    Args:
        headers: names in lower case.

    Returns:
        0 without max-age, and where the answer may not be stored or must be asked for each time.

    Source: RFC 9111 5.2.2.1, 5.1.
    """
    directives: dict[str, str] = {}
    for part in headers.get("cache-control", "").lower().split(","):
        name, _, value = part.strip().partition("=")
        directives.setdefault(name.strip(), value.strip().strip('"'))
    if "no-store" in directives or "no-cache" in directives:
        return 0.0
    max_age, age = directives.get("max-age", ""), headers.get("age", "").strip()
    if not _DIGITS.fullmatch(max_age):
        return 0.0
    spent = int(age) if _DIGITS.fullmatch(age) else 0
    return float(min(max(int(max_age) - spent, 0), MAX_WAIT_S))


def respect_ttl(state: FetchState, ttl_s: int | None, *, now: datetime) -> FetchState:
    """Return the state with the next poll not before the page's own ttl (RSS 2.0 <ttl>, sy:updatePeriod), a day at most."""
    if not ttl_s or ttl_s < 0:
        return state
    earliest = now + timedelta(seconds=min(ttl_s, MAX_WAIT_S))
    if state.next_try_at is not None and state.next_try_at >= earliest:
        return state
    return replace(state, next_try_at=earliest)


def permanent_target(hops: Sequence[Hop]) -> str | None:
    """Return where the leading permanent redirects lead; None if the first one is temporary or there is none.

    A temporary redirect ends the run: what lies behind it says nothing about where the source lives.
    """
    target = None
    for hop in hops:
        if hop.status not in _PERMANENT:
            break
        target = hop.target
    return target


def remember_move(state: FetchState, hops: Sequence[Hop]) -> tuple[FetchState, str | None]:
    """Return the state after a good answer through these redirects, and the URL it was rewritten to, None if not.

    Only MOVES_UNTIL_REWRITE equal answers in a row rewrite it: a captive portal or a maintenance page also sends a 301.
    """
    target = permanent_target(hops)
    if target is None:
        return replace(state, moved_to=None, moved_count=0), None
    count = state.moved_count + 1 if target == state.moved_to else 1
    if count < MOVES_UNTIL_REWRITE:
        return replace(state, moved_to=target, moved_count=count), None
    return replace(state, url=target, moved_to=None, moved_count=0), target


def redirect_problem(seen: Sequence[str], target: str, *, from_scheme: str, to_scheme: str) -> FailKind | None:
    """Return what forbids following a redirect; None if it may be followed.

    Args:
        seen: URLs asked so far in this fetch, in order.
        target: absolute URL to go to.
        from_scheme: scheme of the URL that redirects.
        to_scheme: scheme of the target; leaving https for http gives up what TLS promised, other schemes are not the web.
    """
    if to_scheme not in {"http", "https"} or (from_scheme, to_scheme) == ("https", "http"):
        return FailKind.ADDRESS
    if target in seen:
        return FailKind.REDIRECT_LOOP
    if len(seen) > MAX_REDIRECTS:
        return FailKind.REDIRECTS
    return None


def settle(spec: SourceSpec, state: FetchState, reply: Reply, *, now: datetime, draw: float) -> FetchOutcome:
    """Return the outcome of a fetch, without its document, and the state to keep.

    Args:
        spec: the source.
        state: state before the fetch.
        reply: how the exchange ended.
        now: UTC.
        draw: number in [0, 1), for jitter.
    """
    fail, why = _judge(reply)
    if fail is not None:
        return _failed(spec, state, reply, fail, why, now=now, draw=draw)
    moved, rewritten = remember_move(state, reply.hops)
    wait = max(spec.interval_s, spec.min_interval_s) * (1 + JITTER / 2 * draw)
    wait = max(wait, fresh_for_s(reply.headers))
    kept = replace(
        moved,
        fail_count=0,
        failing_since=None,
        last_error=None,
        last_ok_at=now,
        last_try_at=now,
        next_try_at=now + timedelta(seconds=wait),
    )
    if reply.status == 304:
        return FetchOutcome(OutcomeKind.NOT_MODIFIED, kept, reply.url, status=304, moved_to=rewritten)
    # both are replaced together: a server may change the one and keep the other
    kept = replace(
        kept,
        validated_url=reply.url,
        etag=_validator(reply.headers.get("etag")),
        last_modified=_validator(reply.headers.get("last-modified")),
    )
    return FetchOutcome(OutcomeKind.OK, kept, reply.url, status=reply.status, moved_to=rewritten)


def reject_document(
    spec: SourceSpec, before: FetchState, outcome: FetchOutcome, why: str, *, now: datetime, draw: float
) -> FetchState:
    """Return the state to store when a fetched document could not be read or recorded.

    Validators and redirects stay as they were before the fetch: else the next answer would be "not modified" and the
    page would never be read, or an error page's redirect would be remembered.

    Args:
        spec: the source.
        before: state before the fetch.
        outcome: the OK outcome whose document failed.
        why: what the parser said.
        now: UTC.
        draw: number in [0, 1), for jitter.
    """
    reply = Reply(outcome.url, outcome.status)
    return _failed(spec, before, reply, FailKind.STATUS, why, now=now, draw=draw).state


def page_urls(spec: SourceSpec) -> tuple[str, ...]:
    """Return the URLs of a listing's further pages, page 2 first; empty without a template."""
    if spec.page_url is None:
        return ()
    return tuple(spec.page_url.replace("{page}", str(page)) for page in range(2, spec.max_pages + 1))


def _judge(reply: Reply) -> tuple[FailKind | None, str]:
    """Return what is wrong with a reply, with words; (None, "") if it is a document or a proper 304."""
    status = reply.status
    if reply.fail is not None or status is None:
        return reply.fail or FailKind.CONNECT, reply.why
    words = f"the server answered {status}"
    match status:
        case 200 if reply.empty:
            return FailKind.EMPTY, "the server answered 200 with an empty body"
        case 200:
            return None, ""
        case 304 if reply.asked_conditionally:
            return None, ""
        case 304:
            return FailKind.PROTOCOL, "the server answered 304 to a request without a condition"
        case 410:
            return FailKind.GONE, "the server answered 410: the source is gone for good"
        case 429 | 503:
            return FailKind.BUSY, f"{words}: it asks us to come back later"
        case _ if status >= 500:
            return FailKind.SERVER, f"{words}: it is out of order"
        case 401 | 403:
            return FailKind.STATUS, f"{words}: it does not let us in"
        case 404:
            return FailKind.STATUS, f"{words}: there is nothing at this address"
        case _:
            return FailKind.STATUS, f"{words}, which brings no document"


def _failed(
    spec: SourceSpec, state: FetchState, reply: Reply, fail: FailKind, why: str, *, now: datetime, draw: float
) -> FetchOutcome:
    """Return the outcome of a failure: validators and the stored URL stay, the next try moves away."""
    count = state.fail_count + 1
    wait = backoff_s(count, draw, floor_s=spec.min_interval_s)
    if fail is FailKind.BUSY:
        asked = retry_after_s(reply.headers.get("retry-after"), now, server_date=reply.headers.get("date"))
        if asked is not None:
            wait = max(asked, float(spec.min_interval_s))
    gone = fail is FailKind.GONE
    kept = replace(
        state,
        url=state.url if count < _FAILURES_UNTIL_HOME else None,
        fail_count=count,
        failing_since=state.failing_since or now,
        last_try_at=now,
        last_error=why,
        gone=gone,
        next_try_at=None if gone else now + timedelta(seconds=wait),
    )
    kinds = {FailKind.GONE: OutcomeKind.GONE, FailKind.ADDRESS: OutcomeKind.REFUSED}
    kind = kinds.get(fail, OutcomeKind.FAILED)
    return FetchOutcome(kind, kept, reply.url, fail=fail, why=why, status=reply.status)


def _validator(value: str | None) -> str | None:
    """Return a validator as it may be sent back; None if it is missing or could not be one."""
    usable = value and len(value) <= _MAX_VALIDATOR and not any(ord(char) < 32 or ord(char) == 127 for char in value)
    return value if usable else None


def _http_date(text: str | None) -> datetime | None:
    """Return an HTTP date in UTC, any of the three forms of RFC 9110 5.6.7; None if it is none."""
    try:
        parsed = parsedate_to_datetime(text or "")
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    try:
        return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else parsed.astimezone(UTC)
    except OverflowError:
        return None
