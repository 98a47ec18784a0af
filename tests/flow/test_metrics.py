"""What Prometheus is told: exact where the history knows, without addresses, titles or tokens."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from digestd.errors import FetchError, StoreError
from digestd.flows.deliver import deliver
from digestd.flows.digest import make_due
from digestd.flows.overview import AUDITED, look
from digestd.flows.read_source import Collected
from digestd.metrics import Meters, Stock, metrics_app, source_label
from digestd.model.delivery import Message, Outcome, Refused, Reply, Uncertain
from digestd.model.source import FetchState, OutcomeKind, Poll, SourceSpec
from digestd.model.trouble import Tally
from digestd.store import SqlStore, open_store
from tests.followers import Clock, KeepingChannel, add, at, let_follow, make_kitchen, options, start

NOW = at("2026-10-06T08:00")
REEFS = SourceSpec("Reefs", "https://reef.example/")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    """A history with three readers, and news for them."""
    opened = open_store(tmp_path / "history.sqlite")
    start(opened, "Reef Sound", now=at("2026-10-01T06:00"))
    for name in ("ana", "bo", "cy"):
        let_follow(opened, f"{name}@reef.example", "Reef Sound", now=at("2026-10-01T07:00"))
    news = [("2026-10-02", "A Reef at Dusk"), ("2026-10-02", "A Reef at Dawn")]
    add(opened, "Reef Sound", *news, now=at("2026-10-02T06:00"))
    yield opened
    opened.close()


def meters_of(store: SqlStore) -> Meters:
    """Return the meters of a history."""
    return Meters(
        lambda tally: Stock(look(store, [REEFS], now=NOW), store.troubles.tally(tally), 4096, {"A3": 2, "A5": 0})
    )


def figures(meters: Meters) -> dict[str, float]:
    """Return the samples shown, by their name and labels as they are printed."""
    found = {}
    for family in text_string_to_metric_families(meters.text().decode()):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


async def test_figures_are_those_of_the_history(store: SqlStore) -> None:
    """New papers, digests, mails by fate and the outbox by state are what the history holds, also after a new start."""

    def outcome(message: Message) -> Outcome | None:
        fates = {
            "bo@reef.example": Refused(Reply(550, "5.1.1 unknown"), suppress=True),
            "cy@reef.example": Uncertain("no"),
        }
        return fates.get(message.recipient)  # type: ignore[return-value] # both are outcomes

    meters = meters_of(store)
    before = figures(meters)
    make_due(make_kitchen(store), now=NOW)
    await deliver(store, meters.metered(KeepingChannel(outcome=outcome)), Clock(NOW), options())
    expected = {
        "digestd_store_up": 1,
        "digestd_papers_new_total": 2,
        "digestd_sightings_total{kind=baseline}": 3,
        "digestd_digests_total{result=mailed}": 3,
        "digestd_mails_total{result=accepted}": 1,
        "digestd_mails_total{result=refused}": 1,
        "digestd_mails_total{result=uncertain}": 1,
        "digestd_outbox_rows{state=accepted}": 1,
        "digestd_outbox_rows{state=failed}": 1,
        "digestd_outbox_rows{state=uncertain}": 1,
        "digestd_outbox_rows{state=ready}": 0,
        "digestd_audit_rule_findings{rule=A3}": 2,
        "digestd_database_bytes": 4096,
    }
    for found in (figures(meters), figures(meters_of(store))):
        assert expected == {name: found[name] for name in expected}
    assert (2, 0, 3) == (
        before["digestd_papers_new_total"],
        before["digestd_mails_total{result=accepted}"],
        figures(meters)["digestd_send_seconds_count"],
    )


async def test_no_figure_names_a_reader_or_a_paper(store: SqlStore) -> None:
    """Neither addresses nor titles nor the tokens of readers' feeds are in what is shown."""
    meters = meters_of(store)
    make_due(make_kitchen(store), now=NOW)
    await deliver(store, meters.metered(KeepingChannel()), Clock(NOW), options())
    meters.count_request("/feed/aB3_kJ8sdkjfhskdjfhskdjfhA.xml", 200)
    shown = meters.text().decode()
    assert [] == [word for word in ("@", "ana", "Dusk", "Reef Sound", "aB3_kJ8") if word in shown]


def test_sources_have_their_age_and_state(store: SqlStore) -> None:
    """For each source it is shown how long ago it was read well, and which state it is in."""
    store.sources.put_state(
        "Reefs", FetchState(location=REEFS.location, last_ok_at=NOW - timedelta(minutes=90)), now=NOW
    )
    store.sources.add_poll("Reefs", Poll(NOW, OutcomeKind.FAILED, why="the server answered 500"))
    store.troubles.put_sign(AUDITED, at=NOW, value=2)
    found = figures(meters_of(store))
    expected = {
        "digestd_source_good_age_seconds{source=Reefs}": 5400,
        "digestd_source_health{source=Reefs,state=broken}": 1,
        "digestd_source_health{source=Reefs,state=ok}": 0,
        "digestd_audited_timestamp_seconds": NOW.timestamp(),
        "digestd_audit_findings": 2,
    }
    assert expected == {name: found[name] for name in expected}


def test_what_happens_is_counted(store: SqlStore) -> None:
    """Documents by source and result, requests of feeds by format and status, other requests not at all."""
    meters = meters_of(store)
    for result in (None, None, FetchError("no")):
        meters.count_document(Collected("Reefs", "https://reef.example/", result))
    asked = [
        ("/feeds/reef-sound/rss.xml", 200),
        ("/feeds/reef-sound/rss.xml", 304),
        ("/feed/TOKEN.json", 404),
        ("/t/x", 200),
    ]
    for path, status in asked:
        meters.count_request(path, status)
    found = figures(meters)
    expected = {
        "digestd_documents_total{result=unchanged,source=Reefs}": 2,
        "digestd_documents_total{result=failed,source=Reefs}": 1,
        "digestd_feed_requests_total{format=rss,status=200}": 1,
        "digestd_feed_requests_total{format=rss,status=304}": 1,
        "digestd_feed_requests_total{format=json,status=404}": 1,
    }
    counted = ("digestd_documents_total", "digestd_feed_requests_total")
    assert expected == {name: value for name, value in found.items() if name.startswith(counted)}


def test_label_of_a_source_holds_no_secret() -> None:
    """A source without a name is shown by its address, less what is secret in it; two such stay two."""
    first, second = (source_label(f"https://reef.example/aB3_kJ8sdkjfhskdjfhskdjfh{end}") for end in "AB")
    assert ("Reefs", "https://reef.example/*** #") == (source_label("Reefs"), first[:-6])
    assert first != second


def test_history_that_cannot_be_read_is_a_figure() -> None:
    """Where the history does not answer, the figures say so and the rest is shown all the same."""

    def broken(_: Tally) -> Stock:
        raise StoreError("history x: disk I/O error")

    found = figures(Meters(broken))
    assert (0, True) == (found["digestd_store_up"], any(name.startswith("digestd_info") for name in found))


@pytest.mark.parametrize(
    ("method", "path", "status", "begin"),
    [
        ("GET", "/metrics", 200, b"# HELP"),
        ("HEAD", "/metrics", 200, b""),
        ("POST", "/metrics", 404, b"/metrics is"),
        ("GET", "/", 404, b"/m"),
    ],
)
async def test_only_the_figures_are_served(store: SqlStore, method: str, path: str, status: int, begin: bytes) -> None:
    """The second address shows the figures at their path, and nothing at any other or by another method."""
    sent: list[dict[str, object]] = []

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    await metrics_app(meters_of(store))({"type": "http", "method": method, "path": path}, None, send)
    body = sent[1]["body"]
    assert isinstance(body, bytes)
    assert (status, True) == (sent[0]["status"], body.startswith(begin) if begin else not body)
