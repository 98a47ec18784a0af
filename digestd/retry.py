"""What an answer of a relay means for a message, and when to try again. Floor 1; entry: ``classify``, ``next_attempt``.

Only the final "." of a transaction is ambiguous: before it a message is known to be unsent, whatever happened. So the step
at which something was seen decides, never the kind of error alone: libraries raise the same error for a connection that was
lost before and after a message was taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from digestd.model.delivery import Deferred, HttpAnswer, Outcome, Refused, Reply, Sent, Uncertain

#: waits between attempts in seconds, the last one for ever; the defaults of a well-known mail server (Postfix, postconf.5)
_WAITS_S = (300, 600, 1200, 2400, 4000)
_LIFETIME = timedelta(days=5)
_JITTER = 0.2
_BREAKER_FIRST_S = 60
_BREAKER_LAST_S = 1800

#: there is no such mailbox, no such domain, or it was closed for good (RFC 3463 3.2 and 3.3, RFC 7505)
_GONE = frozenset({"5.1.1", "5.1.2", "5.1.10", "5.2.1"})
#: only somebody with the password can mend these (RFC 4954 4 and 6)
_LOGIN_CODES = frozenset({530, 534, 535, 538})
#: refusals at MAIL that speak of this message alone: too large (RFC 1870 6.1), needs non-ASCII addresses (RFC 6531 3.7.4)
_ABOUT_MESSAGE = frozenset({"5.3.4", "5.6.7"})


class Step(StrEnum):
    """Where a hand-over stood; in the order of the protocol."""

    CONNECT = "connect"
    EHLO = "EHLO"
    TLS = "TLS"
    AUTH = "AUTH"
    MAIL = "MAIL"
    RCPT = "RCPT"
    DATA = "DATA"
    BODY = "body"
    DOT = "final dot"


class Fault(StrEnum):
    """What was seen in place of a readable reply."""

    TIMEOUT = "no answer in time"
    LOST = "connection lost"
    GARBAGE = "unreadable answer"
    CANCELLED = "cancelled"
    TLS = "no trusted encryption"
    NO_LOGIN = "no login offered"


_RELAY_STEPS = frozenset({Step.CONNECT, Step.EHLO, Step.TLS, Step.AUTH, Step.MAIL})


def classify(step: Step, seen: Reply | Fault) -> Outcome:
    """Return what becomes of a message whose hand-over ended here.

    Up to MAIL the relay is at fault, not the message: such attempts do not count. A refusal at MAIL that speaks of the
    size or the script of this very message is an exception, since one such message would hold up all others.

    Args:
        step: the step that was answered; DOT from the moment when the final "." may have been written.
        seen: the reply that ended the hand-over, or what came in its place. A code of -1 counts as an unreadable one.

    Source: RFC 5321 4.2.1 and 4.3.2; RFC 3463; RFC 1047 for the final ".".
    """
    if step is Step.DOT:
        return _classify_dot(seen)
    if isinstance(seen, Fault):
        pause = seen in (Fault.TLS, Fault.NO_LOGIN)
        return Deferred(f"{step}: {seen}", relay_fault=step in _RELAY_STEPS, pause=pause)
    if step is Step.MAIL and _speaks_of_message(seen):
        return Refused(seen)
    if step in _RELAY_STEPS:
        return Deferred(_in_words(step, seen), seen, relay_fault=True, pause=_needs_person(step, seen))
    return _classify_reply(step, seen)


def classify_exit(status: int) -> Outcome:
    """Return what the exit status of a sendmail program means, once it has had the whole message.

    Args:
        status: 0 to 255; negative: the signal that ended it.

    Source: sysexits.h (BSD); sendmail(1) of Postfix.
    """
    if status == 0:
        return Sent(Reply(250, "2.0.0 exit status 0"))
    if status in _EXIT_REFUSED:
        return Refused(Reply(554, f"{_EXIT_REFUSED[status]} exit status {status}"))
    if status in _EXIT_LATER:
        # 64, 77 and 78 come from how it was called or set up: the next message would fare no better.
        return Deferred(f"exit status {status}", relay_fault=status != _EX_TEMPFAIL, pause=status in (64, 77, 78))
    return Uncertain(f"ended by signal {-status}" if status < 0 else f"exit status {status}, which says nothing")


def classify_http(answer: HttpAnswer) -> Outcome:
    """Return what the answer of a web server to a whole message means.

    A redirect is not followed: it would carry the message to a place that nobody has named. It is tried again, for the
    settings can be mended meanwhile.

    Source: RFC 9110 15; RFC 6585 4; RFC 8470 5.2.
    """
    status, said = answer.status, f"HTTP {answer.status}"
    match status:
        case 410:
            return Refused(Reply(550, f"5.1.1 {said}"), suppress=True)
        case 504:  # the gateway heard nothing from the server behind it, which may have taken the message
            return Uncertain(f"{said}, the server behind the gateway did not answer")
        case 408 | 425 | 429:
            return Deferred(said, wait_s=answer.wait_s)
        case _ if 200 <= status < 300:
            return Sent(Reply(250, f"2.0.0 {said}"))
        case _ if 400 <= status < 500:
            refused_us = status in (401, 403, 407)
            return Refused(Reply(554, f"{'5.7.1' if refused_us else '5.0.0'} {said}"), policy=refused_us)
        case _ if 300 <= status < 400:
            return Deferred(f"{said}, a redirect, which is not followed")
        case _:
            return Deferred(said, wait_s=answer.wait_s)


_EX_TEMPFAIL = 75
#: bad data, no such user, no such host; a wrong host may be the relay's fault, so that none of them suppresses an address
_EXIT_REFUSED = {65: "5.6.0", 67: "5.1.0", 68: "5.1.0"}
#: the program says that it could not take the message
_EXIT_LATER = frozenset({64, 66, 69, 70, 71, 72, 73, 74, _EX_TEMPFAIL, 76, 77, 78})


def next_attempt(attempts: int, created_at: datetime, now: datetime, draw: float) -> datetime | None:
    """Return when a deferred message is tried again, None if it has been tried for five days.

    Args:
        attempts: counted attempts so far, this one included; 0 if only the relay was at fault.
        created_at: when the message was made.
        now: when the attempt ended.
        draw: a random number in [0, 1); spreads the attempts by a fifth either way.
    """
    if now - created_at >= _LIFETIME:
        return None
    wait_s = _WAITS_S[min(max(attempts, 1), len(_WAITS_S)) - 1]
    return now + timedelta(seconds=_spread(wait_s, draw))


@dataclass(frozen=True, slots=True)
class Breaker:
    """Whether a relay is left alone for a while."""

    faults: int = 0  #: in a row
    open_until: datetime | None = None  #: nothing is tried before; None: closed


def may_try(breaker: Breaker, now: datetime) -> bool:
    """Return whether the relay may be asked now."""
    return breaker.open_until is None or now >= breaker.open_until


def after_fault(breaker: Breaker, now: datetime, draw: float) -> Breaker:
    """Return the breaker after a fault of the relay: open for 1, 2, 4 up to 30 minutes.

    Faults that come in while it is open belong to connections that failed together, and count as one.

    Args:
        breaker: as it was.
        now: when the fault was seen.
        draw: a random number in [0, 1).
    """
    if not may_try(breaker, now):
        return breaker
    # The exponent is bounded because a relay that is away for a year would make the number too long to multiply.
    wait_s = min(_BREAKER_FIRST_S * 2 ** min(breaker.faults, 16), _BREAKER_LAST_S)
    return Breaker(breaker.faults + 1, now + timedelta(seconds=_spread(wait_s, draw)))


def after_answer() -> Breaker:
    """Return the breaker after the relay spoke of a message: closed."""
    return Breaker()


def _classify_dot(seen: Reply | Fault) -> Outcome:
    if isinstance(seen, Fault):
        return Uncertain(f"{Step.DOT}: {seen}")
    match seen.code // 100:
        case 2:
            return Sent(seen)
        case 4 | 5:
            return _classify_reply(Step.DOT, seen)
        case _:
            return Uncertain(f"{Step.DOT}: {Fault.GARBAGE}")


def _classify_reply(step: Step, reply: Reply) -> Outcome:
    """Return the outcome of a reply that speaks of the message or its reader."""
    if reply.code // 100 != 5:
        return Deferred(_in_words(step, reply), reply)
    return Refused(reply, suppress=reply.enhanced in _GONE, policy=reply.enhanced.startswith("5.7."))


def _speaks_of_message(reply: Reply) -> bool:
    return reply.code // 100 == 5 and (reply.code == 552 or reply.enhanced in _ABOUT_MESSAGE)


def _needs_person(step: Step, reply: Reply) -> bool:
    # 4xx at TLS or AUTH calls itself temporary ("454 TLS not available due to temporary reason"): the breaker is enough.
    permanent = reply.code // 100 == 5
    return permanent and (step in (Step.TLS, Step.AUTH) or reply.code in _LOGIN_CODES)


def _in_words(step: Step, reply: Reply) -> str:
    return f"{step}: {reply.code} {reply.text}".rstrip() if reply.code > 0 else f"{step}: {Fault.GARBAGE}"


def _spread(wait_s: float, draw: float) -> float:
    return wait_s * (1 - _JITTER + 2 * _JITTER * draw)
