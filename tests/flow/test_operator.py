"""The operator hears of what is not well, by the same outbox, once; readers never do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from digestd.addresses import parse_reader
from digestd.errors import RenderError
from digestd.eyes import Eyes
from digestd.flows.audit import audit
from digestd.flows.deliver import Delivered, deliver
from digestd.flows.digest import make_due
from digestd.flows.operator import Told, find_troubles, tell_operator
from digestd.flows.overview import AUDITED, look
from digestd.model.delivery import DeliveryState, Refused, Reply, Suppression
from digestd.model.source import OutcomeKind, Poll, SourceSpec
from digestd.model.trouble import Trouble
from digestd.send.settings import SmtpSettings, TlsMode
from digestd.send.smtp import SmtpChannel
from digestd.store import SqlStore, open_store
from digestd.templating import build_environment
from tests.followers import Clock, KeepingChannel, add, at, let_follow, make_kitchen, options, start, text_of
from tests.smtp_faults import FaultServer

NOW = at("2026-10-05T08:00")
OPERATOR = parse_reader("ops@reef.example")
BROKEN = Trouble("source Reefs", "broken: the server answered 500")
RELAY = Trouble("relay", "535 no; nothing is sent until this is mended", is_mail=True)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    """A history with a reader."""
    opened = open_store(tmp_path / "history.sqlite")
    start(opened, "Reef Sound", now=at("2026-10-01T06:00"))
    let_follow(opened, "ana@reef.example", "Reef Sound", now=at("2026-10-01T07:00"))
    yield opened
    opened.close()


def tell(store: SqlStore, *found: Trouble, minutes: int = 0, sure: bool = True) -> Told:
    """Tell the operator of these troubles."""
    now = NOW + timedelta(minutes=minutes)
    return tell_operator(make_kitchen(store), [OPERATOR], found, is_sure=lambda _: sure, now=now)


async def sent(store: SqlStore) -> KeepingChannel:
    """Send all that waits, and return what was sent."""
    channel = KeepingChannel()
    await deliver(store, channel, Clock(NOW + timedelta(days=3)), options())
    return channel


async def test_operator_is_told_by_mail_and_nobody_else(store: SqlStore) -> None:
    """A trouble is one mail to the operator, text alone, without links; its end is another; the audit holds."""
    assert [1, 0, 1] == [
        tell(store, BROKEN).mails,
        tell(store, BROKEN, minutes=20).mails,
        tell(store, minutes=40).mails,
    ]
    channel = await sent(store)
    assert ["ops@reef.example"] * 2 == channel.seen
    first, second = channel.mails()
    assert ["[digestd] source Reefs", "[digestd] mended: source Reefs"] == [first["Subject"], second["Subject"]]
    assert ("text/plain", None) == (first.get_content_type(), first["List-Unsubscribe"])
    text = text_of(first)
    assert "* source Reefs: broken: the server answered 500\n  since 2026-10-05 08:00 UTC\n" in text
    assert "since 2026-10-05 08:00 UTC, over since 2026-10-05 08:40 UTC" in text_of(second)
    assert max(map(len, text.splitlines())) <= 78
    assert audit(store, now=NOW + timedelta(days=3)).clean


async def test_operator_is_told_in_one_mail_of_all(store: SqlStore) -> None:
    """Troubles that begin together, and those that begin while no mail may go, share a mail."""
    assert 1 == tell(store, BROKEN).mails
    more = [Trouble(f"source {number}", "stale") for number in range(30)]
    assert 0 == tell(store, BROKEN, *more, minutes=5).mails
    told = tell(store, BROKEN, *more, minutes=15)
    assert (1, 30) == (told.mails, len(told.look.begun))
    mail = (await sent(store)).mails()[1]
    assert "[digestd] source 0 and 29 more" == mail["Subject"]
    assert (20, True) == (text_of(mail).count("* source"), "Without room here: 10 more." in text_of(mail))


def test_operator_hears_nothing_by_mail_of_mail_that_is_broken(store: SqlStore) -> None:
    """A relay that lets nobody in is kept and logged, not queued; that it is well again is mailed."""
    assert 0 == tell(store, RELAY).mails
    assert [RELAY] == [one.trouble for one in store.troubles.known()]
    assert 0 == sum(store.outbox.counts().values())
    assert 1 == tell(store, minutes=30).mails


def test_without_an_operator_troubles_are_kept_and_logged(store: SqlStore, caplog: pytest.LogCaptureFixture) -> None:
    """Nobody to tell is no reason not to know: status and log have it, the outbox nothing."""
    for found in ([BROKEN], [BROKEN], []):
        tell_operator(make_kitchen(store), [], found, is_sure=lambda _: True, now=NOW)
    said = [record.getMessage() for record in caplog.records]
    began = 'trouble began name="source Reefs" why="broken: the server answered 500"'
    assert [began, 'trouble is over name="source Reefs"'] == said
    assert 0 == sum(store.outbox.counts().values())


async def test_operator_who_left_as_a_reader_is_told_all_the_same(store: SqlStore) -> None:
    """An unsubscription is from digests; an address whose mail came back gets nothing, and that is accounted for."""
    store.outbox.suppress(Suppression("ops@reef.example", "all", "unsubscribed", NOW))
    tell(store, BROKEN)
    assert ["ops@reef.example"] == (await sent(store)).seen
    store.outbox.lift("ops@reef.example", "all", now=NOW)
    store.outbox.suppress(Suppression("ops@reef.example", "all", "bounced", NOW))
    tell(store, minutes=60)
    assert 1 == store.outbox.counts()[DeliveryState.SUPPRESSED]


def test_told_and_kept_are_one_transaction(store: SqlStore, tmp_path: Path) -> None:
    """A mail that cannot be made leaves the trouble untold, so that the next look tells it."""
    (tmp_path / "own" / "mail").mkdir(parents=True)
    (tmp_path / "own" / "mail" / "trouble.txt.j2").write_text("{{ nothing }}")
    kitchen = replace(make_kitchen(store), templates=build_environment(tmp_path / "own"))
    with pytest.raises(RenderError):
        tell_operator(kitchen, [OPERATOR], [BROKEN], is_sure=lambda _: True, now=NOW)
    assert [] == store.troubles.known()
    assert 1 == tell(store, BROKEN).mails


async def test_relay_without_encryption_is_a_trouble_without_a_mail(store: SqlStore) -> None:
    """A real relay that offers no TLS pauses the queue: the trouble is kept, nothing loops, and taken mail ends it."""
    add(store, "Reef Sound", ("2026-10-02", "A Reef at Dusk"), now=at("2026-10-02T06:00"))
    make_due(make_kitchen(store), now=NOW)
    eyes, clock = Eyes(), Clock(NOW)
    server = FaultServer()
    async with server.running():
        channel = SmtpChannel(SmtpSettings("localhost", server.port, mode=TlsMode.STARTTLS, helo_name="t"))
        done = await deliver(store, channel, clock, options(workers=1))
        await channel.close()
    assert (True, [True]) == (eyes.delivered(done, NOW), [one.is_mail for one in eyes.troubles(NOW)])
    told = tell_operator(make_kitchen(store), [OPERATOR], eyes.troubles(NOW), is_sure=eyes.is_sure, now=NOW)
    assert (0, {DeliveryState.READY: 1}) == (told.mails, {k: v for k, v in store.outbox.counts().items() if v})
    clock.instant += timedelta(hours=1)
    eyes.delivered(await deliver(store, KeepingChannel(), clock, options()), clock.now())
    told = tell_operator(
        make_kitchen(store), [OPERATOR], eyes.troubles(clock.now()), is_sure=eyes.is_sure, now=clock.now()
    )
    assert (1, ["relay"]) == (told.mails, [one.trouble.name for one in told.look.mended])


# -- what is not well


def test_source_is_a_trouble_after_a_while(store: SqlStore) -> None:
    """A source that just broke is given time; one that stays so is a trouble, with its reason."""
    store.sources.add_poll("Reefs", Poll(NOW, OutcomeKind.FAILED, why="the server answered 500"))
    specs, patience = [SourceSpec("Reefs", "https://reef.example/")], timedelta(hours=6)
    early = find_troubles(look(store, specs, now=NOW + timedelta(hours=5)), patience=patience)
    late = find_troubles(look(store, specs, now=NOW + timedelta(hours=6)), patience=patience)
    assert ([], [BROKEN]) == (early, late)


def test_poison_and_audit_findings_are_troubles(store: SqlStore) -> None:
    """Rows that nothing can send and findings of the last audit are troubles until they are gone."""
    tell(store, BROKEN)
    key = store.outbox.deliveries()[0].key
    store.outbox.set_state(key, DeliveryState.POISON, why="test", now=NOW)
    store.troubles.put_sign(AUDITED, at=NOW, value=2)
    found = find_troubles(look(store, [], now=NOW), patience=timedelta(0))
    assert ["poison", "audit"] == [one.name for one in found]
    store.outbox.set_state(key, DeliveryState.FAILED, why="test", now=NOW)
    store.troubles.put_sign(AUDITED, at=NOW)
    assert [] == find_troubles(look(store, [], now=NOW), patience=timedelta(0))


@pytest.mark.parametrize(
    ("refused", "text", "expected"), [(3, "5.7.1 blocked", 1), (2, "5.7.1 blocked", 0), (3, "5.1.1 no", 0)]
)
async def test_mails_refused_for_what_we_are(store: SqlStore, refused: int, text: str, expected: int) -> None:
    """A few refusals of thirty mails for our reputation are a trouble for a day; unknown readers are none."""
    for number in range(29):
        let_follow(store, f"r{number}@reef.example", "Reef Sound", now=at("2026-10-01T07:00"))
    add(store, "Reef Sound", ("2026-10-02", "A Reef at Dusk"), now=at("2026-10-02T06:00"))
    make_due(make_kitchen(store), now=NOW)
    answers = iter([Refused(Reply(550, text), policy=text.startswith("5.7"))] * refused)
    await deliver(store, KeepingChannel(outcome=lambda _: next(answers, None)), Clock(NOW), options())
    words = f"{refused} of the last 30 mails were refused for what we are (5.7.x); 'digestd doctor' may know why"
    assert [Trouble("reputation", words)] * expected == find_troubles(look(store, [], now=NOW), patience=timedelta(0))
    assert [] == find_troubles(look(store, [], now=NOW + timedelta(days=2)), patience=timedelta(0))


def test_deliveries_of_unknown_fate_are_a_trouble_where_they_are_held(store: SqlStore) -> None:
    """With on_uncertain = hold they wait for a person, who must know; with resend they are seen to."""
    tell(store, BROKEN)
    store.outbox.set_state(store.outbox.deliveries()[0].key, DeliveryState.UNCERTAIN, why="test", now=NOW)
    overview = look(store, [], now=NOW)
    words = "1 delivery waits for a person; 'digestd outbox list --state uncertain'"
    assert [Trouble("uncertain", words)] == find_troubles(overview, patience=timedelta(0), holds=True)
    assert [] == find_troubles(overview, patience=timedelta(0))


def test_heartbeat_that_is_not_heard_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    """A service that does not answer for hours is one line, its return another."""
    caplog.set_level("INFO")
    eyes = Eyes()
    for why in ("", "answered 500", "answered 500", "no connection", "", ""):
        eyes.answered(why)
    expected = [
        'heartbeat not heard why="answered 500"',
        'heartbeat not heard why="no connection"',
        "heartbeat heard again",
    ]
    assert expected == [record.getMessage() for record in caplog.records]


def test_eyes_see_a_paused_relay_at_once_and_a_lost_one_after_an_hour() -> None:
    """A login that is refused needs a person now; a relay that is away is given an hour; taken mail ends both."""
    eyes = Eyes()
    assert (False, False) == (eyes.is_sure("relay"), eyes.delivered(Delivered(relay_down="no connection"), NOW))
    assert [] == eyes.troubles(NOW + timedelta(minutes=59))
    assert [Trouble("relay", "no connection", is_mail=True)] == eyes.troubles(NOW + timedelta(hours=1))
    assert eyes.delivered(Delivered(relay_down="535 no", paused="535 no"), NOW)
    assert [RELAY] == eyes.troubles(NOW)
    assert (False, [RELAY]) == (eyes.delivered(Delivered(), NOW), eyes.troubles(NOW))
    taken = Delivered()
    taken.states[DeliveryState.ACCEPTED] += 1
    assert (True, []) == (eyes.delivered(taken, NOW), eyes.troubles(NOW + timedelta(days=1)))
    assert eyes.is_sure("relay")


def test_eyes_see_a_job_that_keeps_failing() -> None:
    """One failure is no trouble; failures for minutes are, until a run goes well; nothing is sure before the first run."""
    eyes = Eyes()
    assert (False, True) == (eyes.is_sure("job publish"), eyes.is_sure("source Reefs"))
    eyes.went("publish", NOW, "the disk is full")
    eyes.went("publish", NOW + timedelta(minutes=5), "the disk is full")
    assert ([], False) == (eyes.troubles(NOW + timedelta(minutes=4)), eyes.is_sure("job publish"))
    assert [Trouble("job publish", "the disk is full")] == eyes.troubles(NOW + timedelta(minutes=5))
    eyes.went("publish", NOW + timedelta(minutes=6))
    assert ([], True) == (eyes.troubles(NOW + timedelta(hours=1)), eyes.is_sure("job publish"))


def test_eyes_are_well_after_each_whole_round() -> None:
    """A sign of life wants a run of each job since the last one, all of them good, and a relay that takes mail."""
    eyes, work = Eyes(), ("collect", "digest", "deliver", "publish")
    for number, job in enumerate(work):
        assert not eyes.is_well()
        eyes.went(job, NOW + timedelta(seconds=number))
    assert eyes.is_well()
    eyes.beaten(NOW + timedelta(minutes=1))
    assert not eyes.is_well()
    for job in work:
        eyes.went(job, NOW + timedelta(minutes=2), "no" if job == "publish" else "")
    assert not eyes.is_well()
    eyes.went("publish", NOW + timedelta(minutes=2))
    eyes.delivered(Delivered(relay_down="535 no", paused="535 no"), NOW)
    assert not eyes.is_well()
