"""Alerts: a mail when a topic starts to rise or to cool, once a turn, to those who asked."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime, timedelta
from email.message import EmailMessage
from pathlib import Path

import pytest

from digestd.addresses import parse_reader
from digestd.errors import AlreadyExistsError, NotFoundError
from digestd.flows.alerts import Alerted, make_alerts
from digestd.flows.deliver import deliver
from digestd.flows.subscribe import Wish, follow, leave, pause
from digestd.model.delivery import DeliveryState, Suppression
from digestd.model.digest import Momentum, Trend
from digestd.model.subscription import First, Preferences, Subscription, SubscriptionState
from digestd.model.turn import TrendState, Turn
from digestd.schedule import parse_schedule
from digestd.store import SqlStore, open_store
from tests.command import Desk, make_desk
from tests.followers import LABELS, Clock, KeepingChannel, at, make_kitchen, options, text_of
from tests.listings import listing, read_in, spread, two_months

START = at("2026-09-02T06:00")
TURNS = at("2026-09-30T06:00")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    """An empty history."""
    opened = open_store(tmp_path / "history.sqlite")
    yield opened
    opened.close()


def alert_me(
    store: SqlStore,
    address: str = "ana@reef.example",
    *,
    topics: tuple[str, ...] = ("Reef Sound",),
    alert: bool = True,
    form: str = "html",
) -> Subscription:
    """Let a reader follow a topic and ask for alerts."""
    wanted = Preferences(format=form, first=First("none"), alert=alert)
    wish = Wish(parse_reader(address), topics, parse_schedule("daily 07:30"), "UTC", wanted)
    return follow(store, wish, LABELS, now=START).subscription


def show(store: SqlStore, current: int, previous: int, *, now: datetime, topic: str = "Reef Sound") -> list[Alerted]:
    """Read a page with these counts and look for turns."""
    read_in(store, listing(topic, two_months(now.date(), current, previous)), now=now)
    return make_alerts(make_kitchen(store), now=now)


def steady_then_rising(store: SqlStore) -> list[Alerted]:
    """Show a steady topic of 20 papers in four weeks, then 54 more."""
    first = two_months(START.date(), 20, 20)
    read_in(store, listing("Reef Sound", first), now=START)
    make_alerts(make_kitchen(store), now=START)
    later = [day for day in spread(TURNS.date(), 54) if day > START.date()]
    read_in(store, listing("Reef Sound", [*later, *first]), now=TURNS)
    return make_alerts(make_kitchen(store), now=TURNS)


def alerts(store: SqlStore) -> list[tuple[str, str]]:
    """Return key and recipient of the alerts in the outbox, oldest first."""
    rows = store.outbox.deliveries()
    return [(row.digest_key, row.recipient) for row in reversed(rows) if row.kind == "alert"]


def test_alert_when_a_topic_starts_to_rise(store: SqlStore) -> None:
    """The look that finds a rise makes one mail for each reader who asked, and none for the others."""
    alert_me(store)
    alert_me(store, "bo@reef.example", alert=False)
    found = steady_then_rising(store)
    assert [("reef-sound", 1, Trend.UP, 1)] == [
        (one.turn.topic, one.turn.number, one.turn.trend, one.mails) for one in found
    ]
    assert [("reef-sound|1", "ana@reef.example")] == alerts(store)


def test_turn_is_told_once(store: SqlStore) -> None:
    """However often it is looked, by whomever, a turn makes no second mail."""
    alert_me(store)
    steady_then_rising(store)
    for hours in range(5):
        assert [] == make_alerts(make_kitchen(store), now=TURNS + timedelta(hours=hours))
    assert 1 == len(alerts(store))


def test_first_look_is_no_turn(store: SqlStore) -> None:
    """A topic that rises when it is first looked at did not start to do so before our eyes."""
    alert_me(store)
    assert [] == show(store, 54, 22, now=TURNS)
    assert TrendState("reef-sound", Trend.UP, 0) == store.turns.trend("reef-sound")


def test_new_turn_after_the_first_one_is_over(store: SqlStore) -> None:
    """A rise, steady weeks, and another rise are two turns."""
    alert_me(store)
    store_state(store, TrendState("reef-sound", Trend.UP, 1))
    assert [] == show(store, 36, 41, now=TURNS)
    assert TrendState("reef-sound", Trend.STEADY, 1) == store.turns.trend("reef-sound")
    later = TURNS + timedelta(days=60)
    assert [2] == [one.turn.number for one in show(store, 54, 22, now=later)]


def test_rise_that_becomes_a_fall_is_a_turn(store: SqlStore) -> None:
    """What was told to rise and now cools has turned, with no steady weeks between."""
    alert_me(store)
    store_state(store, TrendState("reef-sound", Trend.UP, 4))
    found = show(store, 20, 45, now=TURNS)
    assert [("reef-sound|5", Trend.DOWN)] == [(one.turn.key, one.turn.trend) for one in found]


def store_state(store: SqlStore, state: TrendState) -> None:
    """Pretend that this was announced before."""
    with store.transaction():
        store.turns.put_trend(state)


def test_alert_says_what_it_rests_on(store: SqlStore) -> None:
    """The mail has both counts, who counted, how complete it is, and the way out; subject and headers are in order."""
    alert_me(store)
    steady_then_rising(store)
    mail = sent(store)[0]
    turned = store.turns.turns()[0].momentum
    text = text_of(mail)
    assert f"Reef Sound is rising: {turned.current} papers, after {turned.previous}" == mail["Subject"]
    assert f"{turned.current} papers in the last four weeks, {turned.previous} in the four weeks before." in text
    assert "Counted by publication date; all papers of the eight weeks are known." in " ".join(text.split())
    assert "Complete since" in text
    assert "https://digest.example.org/t/reef-sound" in text
    assert "https://digest.example.org/unsubscribe/" in text
    assert "List-Unsubscribe=One-Click" == mail["List-Unsubscribe-Post"]
    assert "~~" not in text
    html = mail.get_body(("html",))
    assert html is not None
    assert "Reef Sound" in html.get_content()
    assert "~~" not in html.get_content()


def sent(store: SqlStore) -> list[EmailMessage]:
    """Deliver what waits and return the mails."""
    channel = KeepingChannel()
    asyncio.run(deliver(store, channel, Clock(TURNS), options()))
    return channel.mails()


def test_alert_of_plain_text(store: SqlStore) -> None:
    """Who reads plain text gets plain text, of the same turn."""
    alert_me(store, form="text")
    alert_me(store, "bo@reef.example")
    steady_then_rising(store)
    kinds = {mail["To"]: mail.get_content_type() for mail in sent(store)}
    assert {"ana@reef.example": "text/plain", "bo@reef.example": "multipart/alternative"} == kinds


def test_no_alert_during_a_pause(store: SqlStore) -> None:
    """A paused reader is told nothing; the first day after the pause counts again."""
    ana, bo = alert_me(store), alert_me(store, "bo@reef.example")
    pause(store, ana.reader, date(2026, 10, 5), now=START)
    pause(store, bo.reader, date(2026, 9, 30), now=START)
    assert [1] == [one.mails for one in steady_then_rising(store)]
    assert [("reef-sound|1", "bo@reef.example")] == alerts(store)


def test_no_alert_for_who_left_or_has_not_confirmed(store: SqlStore) -> None:
    """Only confirmed subscriptions that stand are told."""
    ana, bo = alert_me(store), alert_me(store, "bo@reef.example")
    with store.transaction():
        leave(store, ana, reason="unsubscribed", evidence="test", now=START)
        store.subscriptions.put(replace(bo, state=SubscriptionState.PENDING), now=START)
    assert [0] == [one.mails for one in steady_then_rising(store)]
    assert [] == alerts(store)


def test_alert_to_a_suppressed_address_is_accounted_for_and_not_sent(store: SqlStore) -> None:
    """An address that must not be written to keeps its row, as suppressed."""
    alert_me(store)
    store.outbox.suppress(Suppression("ana@reef.example", "all", "bounced", START))
    steady_then_rising(store)
    assert [DeliveryState.SUPPRESSED] == [row.state for row in store.outbox.deliveries()]
    assert [] == sent(store)


def test_only_followers_of_the_topic_are_told(store: SqlStore) -> None:
    """A turn of a topic is nothing to those who follow others."""
    read_in(store, listing("Kelp Forests", spread(START.date(), 3)), now=START)
    alert_me(store, topics=("Kelp Forests",))
    assert [0] == [one.mails for one in steady_then_rising(store)]


def test_reader_of_two_subscriptions_is_told_once(store: SqlStore) -> None:
    """One address, one mail, whatever it follows twice."""
    first = alert_me(store)
    store.subscriptions.put(replace(first, key=None, public_id=""), now=START)
    assert [1] == [one.mails for one in steady_then_rising(store)]
    assert 1 == len(alerts(store))


def test_turn_and_mails_are_one(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A crash while the mails are written leaves no turn: the next look finds it again, and tells it once."""
    alert_me(store)
    with monkeypatch.context() as patched:
        patched.setattr(type(store.outbox), "enqueue", _fails)
        assert [] == steady_then_rising(store)
    assert [] == list(store.turns.turns())
    assert [1] == [one.mails for one in make_alerts(make_kitchen(store), now=TURNS)]
    assert 1 == len(alerts(store))


def _fails(*_: object, **__: object) -> None:
    raise OSError("no space left on device")


def test_old_figures_are_no_news(store: SqlStore) -> None:
    """A listing not seen for more than a week turns nothing, even as its count gives way to what the source states."""
    alert_me(store)
    claims = "90 papers in the last four weeks, up 200% on the four weeks before. 0.1% of all new papers."
    read_in(store, listing("Reef Sound", two_months(TURNS.date(), 36, 41), stated=claims), now=TURNS)
    make_alerts(make_kitchen(store), now=TURNS)
    before = store.turns.trend("reef-sound")
    assert TrendState("reef-sound", Trend.STEADY) == before
    assert [] == make_alerts(make_kitchen(store), now=TURNS + timedelta(days=30))
    assert before == store.turns.trend("reef-sound")


def test_turn_has_its_number_once(store: SqlStore) -> None:
    """A second turn of the same number is refused, and what was kept comes back as it was."""
    show(store, 36, 41, now=TURNS)
    figures = Momentum(54, 22, 145, share_percent=0.5, source="counted", p_value=0.0003, interval=(50.0, 303.0))
    turn = Turn("reef-sound", 1, Trend.UP, TURNS, TURNS.date(), figures)
    store.turns.add_turn(turn)
    with pytest.raises(AlreadyExistsError):
        store.turns.add_turn(turn)
    assert [turn] == list(store.turns.turns("reef-sound"))
    assert [] == list(store.turns.turns("kelp-forests"))


def test_unknown_topic_has_no_turns(store: SqlStore) -> None:
    """What names no topic of the history is refused."""
    with pytest.raises(NotFoundError):
        store.turns.put_trend(TrendState("nowhere"))
    with pytest.raises(NotFoundError):
        store.turns.add_turn(Turn("nowhere", 1, Trend.UP, TURNS, TURNS.date()))


@pytest.fixture
def desk(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Desk]:
    """The command line with an empty history."""
    yield from make_desk(tmp_path / "desk", capsys)


def test_alerts_from_the_command_line(desk: Desk) -> None:
    """``follow --alert`` asks for alerts, and ``digest`` makes them."""
    first = two_months(START.date(), 20, 20)
    now = "--now=2026-09-02T06:00:00Z"
    desk("ingest", str(desk.put("first.txt", listing("Reef Sound", first))), now)
    followed = desk("follow", "ana@reef.example", "Reef Sound", "--alert", "--first", "none", "--json", now)
    assert followed.one["alert"] is True
    desk("digest", now)
    later = [day for day in spread(TURNS.date(), 54) if day > START.date()]
    now = "--now=2026-09-30T06:00:00Z"
    desk("ingest", str(desk.put("next.txt", listing("Reef Sound", [*later, *first]))), now)
    told = desk("digest", now)
    assert "Reef Sound is rising" in told.err
    assert "reef-sound|1" in {row["digest"] for row in desk("outbox", "list", "--json").one}
