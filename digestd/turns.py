"""When a change of a topic's trend is worth a mail. Floor 1. Entry points: :func:`after_look`, :func:`turn_title`.

A topic turns when it starts to rise or to cool by more than counting noise. That is told once. Only when the change is
clearly within the noise again is the next rise or fall another turn: figures that tremble around the border of the test
would else be told every few days.
"""

from __future__ import annotations

from dataclasses import replace

from digestd.headline import headline, signed_percent
from digestd.model.digest import Momentum, Trend
from digestd.model.turn import TrendState, Turn
from digestd.momentum import NOISE_P, trend_of
from digestd.phrases import count_noun, cut_at_word

#: from here on an announced rise or fall counts as over; well above the border at which one is announced
OVER_P = 2 * NOISE_P

SUBJECT_LIMIT = 50

#: what a turn is called
WORDS = {Trend.UP: "rising", Trend.DOWN: "cooling"}


def after_look(topic: str, state: TrendState | None, momentum: Momentum) -> TrendState | None:
    """Return what is announced of a topic after a look at its figures.

    Args:
        topic: slug.
        state: what was announced before; None: the topic was never looked at.
        momentum: the figures as they are printed now.

    Returns:
        A state with one more turn where the topic turned. A first look is no turn, whatever it finds: nobody saw the topic
        before. None while nothing can be said.
    """
    trend = trend_of(momentum)
    if trend in WORDS:
        if state is None:
            return TrendState(topic, trend)
        return state if state.trend is trend else replace(state, trend=trend, turns=state.turns + 1)
    if trend not in (Trend.STEADY, Trend.FEW):
        return state  # no figures, or too young to have any: nothing was learnt
    if state is None:
        return TrendState(topic)
    p_value = max(momentum.p_value or 0.0, momentum.late_p_value or 0.0)
    return state if p_value < OVER_P else replace(state, trend=Trend.STEADY)


def turn_title(name: str, turn: Turn) -> str:
    """Return what happened, in a line: "Reef Sound is rising: 54 papers in four weeks, up 145%"."""
    words = headline(turn.momentum).text.removeprefix("Cooling: ")
    return f"{' '.join(name.split())} is {WORDS[turn.trend]}: {words}"


def turn_subject(name: str, turn: Turn) -> str:
    """Return the subject of an alert, with the counts: "Reef Sound is rising: 54 papers, after 22"; 50 characters at most."""
    momentum = turn.momentum
    move = f" is {WORDS[turn.trend]}: {count_noun(momentum.current or 0)}, {_against(momentum)}"
    flat = " ".join(name.split())
    room = SUBJECT_LIMIT - len(move)
    return f"{flat if len(flat) <= room else cut_at_word(flat, room)}{move}"


def _against(momentum: Momentum) -> str:
    """Return "after 22"; where the source leaves several earlier counts open, its percent: "+145%"."""
    if momentum.previous is None:
        return signed_percent(momentum.change_percent or 0)
    return f"after {momentum.previous:,}" if momentum.previous else "after none"


def turn_lines(turn: Turn) -> tuple[str, ...]:
    """Return what the turn rests on, whole sentences: both counts, how sure it is, who counted."""
    momentum = turn.momentum
    lines = []
    if momentum.previous is not None:
        before = f"{momentum.previous:,}" if momentum.previous else "none"
        lines.append(f"{count_noun(momentum.current or 0)} in the last four weeks, {before} in the four weeks before.")
    lines.append(_sureness(momentum))
    if momentum.source == "stated":
        lines.append("These are the figures that the source states.")
    else:
        lines.append("Counted by publication date; all papers of the eight weeks are known.")
    return tuple(lines)


def _sureness(momentum: Momentum) -> str:
    """Return how sure the change is, in a sentence."""
    text = "The change is more than counting noise."
    if momentum.interval is None:
        return text
    low, high = (signed_percent(round(edge)) for edge in momentum.interval)
    return f"{text} Its 95% interval: {low} to {high}."
