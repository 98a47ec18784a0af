"""Answers mean what the protocol says, and waiting follows the rules."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.model.delivery import Deferred, Refused, Reply, Sent, Uncertain
from digestd.retry import (
    Breaker,
    Fault,
    Step,
    after_answer,
    after_fault,
    classify,
    classify_exit,
    may_try,
    next_attempt,
)

NOW = datetime(2026, 10, 5, 7, 30, tzinfo=UTC)
RELAY = (Step.CONNECT, Step.EHLO, Step.TLS, Step.AUTH, Step.MAIL)
MESSAGE = (Step.RCPT, Step.DATA, Step.BODY)
BEFORE_DOT = RELAY + MESSAGE

replies = st.builds(
    Reply,
    st.one_of(st.integers(200, 599), st.just(-1)),
    st.sampled_from(("", "ok", "5.1.1 no such user", "4.7.1 later", "5.7.1 blocked", "5.3.4 too large", "5.2.2 full")),
)
seen = st.one_of(replies, st.sampled_from(Fault))
draws = st.floats(0, 1, exclude_max=True)


@given(st.sampled_from(BEFORE_DOT), seen)
@settings(max_examples=400)
def test_classify_before_dot_is_never_sent_nor_uncertain(step: Step, answer: Reply | Fault) -> None:
    """Before the final dot a message is known to be unsent, whatever was seen."""
    assert isinstance(classify(step, answer), Deferred | Refused)


@given(seen)
@settings(max_examples=400)
def test_classify_dot_without_readable_code_is_uncertain(answer: Reply | Fault) -> None:
    """After the final dot a message is known to be taken or not only by a code of 2xx, 4xx or 5xx."""
    readable = isinstance(answer, Reply) and answer.code // 100 in (2, 4, 5)
    assert readable != isinstance(classify(Step.DOT, answer), Uncertain)


@given(st.sampled_from((*MESSAGE, Step.DOT)), replies)
@settings(max_examples=400)
def test_classify_policy_never_suppresses(step: Step, reply: Reply) -> None:
    """A refusal for what we are says nothing about the reader."""
    outcome = classify(step, reply)
    if isinstance(outcome, Refused):
        assert not (outcome.policy and outcome.suppress)
        assert outcome.policy == reply.text.startswith("5.7.")


@given(st.sampled_from(RELAY), seen)
@settings(max_examples=400)
def test_classify_relay_fault_does_not_count(step: Step, answer: Reply | Fault) -> None:
    """Up to MAIL the relay is at fault, unless it spoke of this very message."""
    outcome = classify(step, answer)
    if isinstance(outcome, Deferred):
        assert outcome.relay_fault
    else:
        assert step is Step.MAIL


@pytest.mark.parametrize("code", [200, 250, 251, 252, 299])
def test_classify_any_2xx_after_dot_is_sent(code: int) -> None:
    """Any 2xx to the final dot is an acceptance, 251 too."""
    assert Sent(Reply(code, "ok")) == classify(Step.DOT, Reply(code, "ok"))


@pytest.mark.parametrize("code", [421, 450, 451, 452, 499])
@pytest.mark.parametrize("step", [*MESSAGE, Step.DOT])
def test_classify_4xx_is_tried_again(step: Step, code: int) -> None:
    """A 4xx to a recipient or message means: later; the attempt counts."""
    assert Deferred(f"{step}: {code} wait", Reply(code, "wait")) == classify(step, Reply(code, "wait"))


@pytest.mark.parametrize("text", ["5.1.1 no", "5.1.2 no", "5.1.10 no", "5.2.1 no"])
def test_classify_gone_address_is_suppressed(text: str) -> None:
    """An address that does not exist gets nothing more."""
    assert Refused(Reply(550, text), suppress=True) == classify(Step.RCPT, Reply(550, text))


@pytest.mark.parametrize("text", ["no such user", "5.1.3 syntax", "5.2.2 full", "5.1 odd", "x5.1.1 odd"])
def test_classify_other_refusals_do_not_suppress(text: str) -> None:
    """Only codes that say so end the mail to an address."""
    assert Refused(Reply(550, text)) == classify(Step.RCPT, Reply(550, text))


def test_classify_policy_is_told() -> None:
    """5.7.x is marked, so that many of them raise an alarm."""
    assert Refused(Reply(554, "5.7.1 spam"), policy=True) == classify(Step.DOT, Reply(554, "5.7.1 spam"))


@pytest.mark.parametrize(
    ("step", "answer"),
    [
        (Step.AUTH, Reply(535, "5.7.8 bad password")),
        (Step.AUTH, Fault.NO_LOGIN),
        (Step.TLS, Fault.TLS),
        (Step.CONNECT, Fault.TLS),
        (Step.TLS, Reply(501, "no")),
        (Step.MAIL, Reply(530, "5.7.0 log in first")),
    ],
)
def test_classify_login_and_tls_pause(step: Step, answer: Reply | Fault) -> None:
    """What only a person can mend stops the queue."""
    outcome = classify(step, answer)
    assert isinstance(outcome, Deferred)
    assert (True, True) == (outcome.relay_fault, outcome.pause)


@pytest.mark.parametrize(
    ("step", "answer"),
    [
        (Step.AUTH, Reply(454, "later")),
        (Step.TLS, Reply(454, "later")),
        (Step.TLS, Fault.LOST),
        (Step.CONNECT, Fault.TIMEOUT),
        (Step.CONNECT, Reply(554, "go away")),
        (Step.MAIL, Reply(550, "bad sender")),
        (Step.MAIL, Reply(-1)),
    ],
)
def test_classify_passing_relay_faults_do_not_pause(step: Step, answer: Reply | Fault) -> None:
    """What may pass by itself is left to the breaker."""
    outcome = classify(step, answer)
    assert isinstance(outcome, Deferred)
    assert (True, False) == (outcome.relay_fault, outcome.pause)


@pytest.mark.parametrize("reply", [Reply(552, "too large"), Reply(550, "5.3.4 too large"), Reply(553, "5.6.7 ASCII")])
def test_classify_mail_refused_for_this_message(reply: Reply) -> None:
    """One message too large for the relay does not hold up the others."""
    assert Refused(reply) == classify(Step.MAIL, reply)


def test_classify_words_of_an_unreadable_code() -> None:
    """A code that could not be read is not printed as -1."""
    assert Deferred("RCPT: unreadable answer", Reply(-1, "x")) == classify(Step.RCPT, Reply(-1, "x"))


@pytest.mark.parametrize(
    ("status", "kind", "pause"),
    [
        (0, Sent, False),
        (64, Deferred, True),
        (65, Refused, False),
        (67, Refused, False),
        (69, Deferred, False),
        (75, Deferred, False),
        (77, Deferred, True),
        (78, Deferred, True),
        (1, Uncertain, False),
        (-9, Uncertain, False),
    ],
)
def test_classify_exit(status: int, kind: type, pause: bool) -> None:
    """Exit statuses mean what sysexits.h says; others say nothing about the message."""
    outcome = classify_exit(status)
    assert kind is type(outcome)
    assert pause == getattr(outcome, "pause", False)


def test_classify_exit_tempfail_counts() -> None:
    """75 is a word about this message, other failures about the program."""
    outcomes = [classify_exit(75), classify_exit(71)]
    assert [False, True] == [isinstance(outcome, Deferred) and outcome.relay_fault for outcome in outcomes]


@pytest.mark.parametrize(
    ("attempts", "wait_s"), [(0, 300), (1, 300), (2, 600), (3, 1200), (4, 2400), (5, 4000), (99, 4000)]
)
def test_next_attempt_waits(attempts: int, wait_s: int) -> None:
    """5, 10, 20, 40 minutes, then 4000 seconds, at the middle of the spread."""
    assert NOW + timedelta(seconds=wait_s) == next_attempt(attempts, NOW, NOW, 0.5)


@given(st.integers(0, 10**6), st.timedeltas(timedelta(0), timedelta(days=9)), draws)
@settings(max_examples=300)
def test_next_attempt_bounds(attempts: int, age: timedelta, draw: float) -> None:
    """An attempt comes between 4 and 80 minutes later, and none after five days."""
    found = next_attempt(attempts, NOW - age, NOW, draw)
    if age >= timedelta(days=5):
        assert found is None
    else:
        assert found is not None
        assert timedelta(minutes=4) <= found - NOW <= timedelta(minutes=80)


@given(st.lists(draws, min_size=130, max_size=130))
@settings(max_examples=30)
def test_next_attempt_ends(all_draws: list[float]) -> None:
    """A message that is always deferred is given up after five days and at most one more wait."""
    now, attempts = NOW, 0
    while (later := next_attempt(attempts + 1, NOW, now, all_draws[attempts % 130])) is not None:
        now, attempts = later, attempts + 1
    assert timedelta(days=5) <= now - NOW <= timedelta(days=5, minutes=80)
    assert 90 <= attempts <= 140


def test_breaker_doubles_up_to_half_an_hour() -> None:
    """The relay is left alone for 1, 2, 4, 8, 16 and then always 30 minutes."""
    breaker, now, waits = Breaker(), NOW, []
    for _ in range(8):
        breaker = after_fault(breaker, now, 0.5)
        assert breaker.open_until is not None
        waits.append((breaker.open_until - now) / timedelta(minutes=1))
        now = breaker.open_until
    assert [1, 2, 4, 8, 16, 30, 30, 30] == waits


def test_breaker_counts_faults_of_one_moment_once() -> None:
    """Ten connections that fail together open the breaker by one step."""
    once = after_fault(Breaker(), NOW, 0.5)
    assert once == after_fault(once, NOW + timedelta(seconds=3), 0.9)


@given(st.integers(0, 10**9), draws)
@settings(max_examples=200)
def test_breaker_bounds(faults: int, draw: float) -> None:
    """The relay is asked again within 36 minutes, however long it was away."""
    breaker = after_fault(Breaker(faults), NOW, draw)
    assert breaker.open_until is not None
    assert timedelta(seconds=48) <= breaker.open_until - NOW <= timedelta(minutes=36)
    assert not may_try(breaker, NOW)
    assert may_try(breaker, breaker.open_until)


def test_breaker_closes_with_an_answer() -> None:
    """A relay that speaks of a message is well again."""
    assert may_try(after_answer(), NOW)
