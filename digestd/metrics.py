"""What is counted and measured, as Prometheus reads it. Floor 5. Entry points: :class:`Meters`, :func:`metrics_app`.

What the history knows is read from it at each look and is exact, also across restarts; what it does not keep (time spent,
requests, documents that changed nothing) is counted since the daemon began. No label holds an address or a title.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from digestd import __version__
from digestd.errors import StoreError
from digestd.flows.overview import AUDITED, WORKED, Overview, look
from digestd.flows.read_source import Collected
from digestd.logs import scrub
from digestd.model.delivery import Message, Outcome
from digestd.model.snapshot import SnapshotRecord
from digestd.model.source import HealthState
from digestd.model.trouble import Tally
from digestd.ports import Channel

if TYPE_CHECKING:
    from digestd.wiring import App

#: path's end -> label; what ends otherwise is no feed
FEEDS = {"rss.xml": "rss", ".xml": "rss", ".atom": "atom", "atom.xml": "atom", "feed.json": "json", ".json": "json"}


@dataclass(frozen=True, slots=True)
class Stock:
    """What the history says when it is asked."""

    overview: Overview
    tally: Tally
    database_bytes: int = 0
    findings: Mapping[str, int] = field(default_factory=dict)  #: rule ("A3") to findings of the last audit


class Meters:
    """All figures of one daemon, in a registry of their own.

    Args:
        take_stock: reads the history; given the tally before, so that only what was added is counted.
    """

    def __init__(self, take_stock: Callable[[Tally], Stock]) -> None:
        self.registry = registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        registry.register(_StockCollector(take_stock))
        Gauge("digestd_info", "Version that runs.", ["version"], registry=registry).labels(__version__).set(1)
        self.documents = Counter(
            "digestd_documents",
            "Documents of sources: read, unchanged or failed.",
            ["source", "result"],
            registry=registry,
        )
        self.jobs = Counter("digestd_job_runs", "Runs of the daemon's jobs.", ["job", "result"], registry=registry)
        self.feeds = Counter("digestd_feed_requests", "Requests of feeds.", ["format", "status"], registry=registry)
        self.sending = Histogram(
            "digestd_send_seconds",
            "Seconds to hand over a mail, refused ones too.",
            buckets=(0.005, 0.02, 0.1, 0.5, 2, 10, 60, 600),
            registry=registry,
        )
        self.stall = Histogram(
            "digestd_loop_stall_seconds",
            "Seconds that the loop was late for a wake-up.",
            buckets=(0.005, 0.02, 0.1, 0.5, 2, 10, 60),
            registry=registry,
        )
        self.beats = Counter("digestd_heartbeats", "Signs of life sent.", ["result"], registry=registry)

    def count_document(self, found: Collected) -> None:
        """Count what came of a document, or of asking for one."""
        match found.result:
            case SnapshotRecord(unchanged=False):
                result = "read"
            case None | SnapshotRecord():
                result = "unchanged"
            case _:
                result = "failed"
        self.documents.labels(source_label(found.source), result).inc()

    def count_request(self, path: str, status: int) -> None:
        """Count a request, if it was one of a feed; the path of a reader's own feed is a secret and no label."""
        if path.startswith(("/feed/", "/feeds/")):
            name = next((label for end, label in FEEDS.items() if path.endswith(end)), "other")
            self.feeds.labels(name, str(status)).inc()

    def metered(self, channel: Channel) -> Channel:
        """Return a channel whose hand-overs are timed."""
        return _MeteredChannel(channel, self.sending)

    def text(self) -> bytes:
        """Return all figures; reads the history."""
        return generate_latest(self.registry)


def source_label(name: str) -> str:
    """Return a source's name without what is secret in it: without a name it is an address, which may hold a token."""
    shown = scrub(name)
    return name if shown == name else f"{shown} #{hashlib.sha256(name.encode()).hexdigest()[:6]}"


def take_stock(app: App, tally: Tally, findings: Mapping[str, int]) -> Stock:
    """Return what the history says now."""
    files = (app.store_path, app.store_path.with_name(f"{app.store_path.name}-wal"))
    size = sum(file.stat().st_size for file in files if file.exists())
    return Stock(look(app.store, app.source_specs, now=app.now), app.store.troubles.tally(tally), size, findings)


class _MeteredChannel:
    """A channel with a watch."""

    def __init__(self, channel: Channel, seconds: Histogram) -> None:
        self._channel, self._seconds = channel, seconds

    async def send(self, message: Message, *, before_dot: Callable[[], Awaitable[bool]]) -> Outcome:
        """Hand over one message."""
        begin = time.perf_counter()
        try:
            return await self._channel.send(message, before_dot=before_dot)
        finally:
            self._seconds.observe(time.perf_counter() - begin)

    async def close(self) -> None:
        """Give back all connections."""
        await self._channel.close()


class _StockCollector(Collector):
    """Asks the history at each look; where it cannot answer, that is the figure."""

    def __init__(self, take_stock: Callable[[Tally], Stock]) -> None:
        self._take_stock, self._lock, self._tally = take_stock, threading.Lock(), Tally()

    def collect(self) -> Iterable[Metric]:
        """Yield the figures of now."""
        up = GaugeMetricFamily("digestd_store_up", "Whether the history can be read.")
        with self._lock:
            try:
                stock = self._take_stock(self._tally)
            except StoreError:
                up.add_metric([], 0)
                return [up]
            self._tally = stock.tally
        up.add_metric([], 1)
        return [up, *_counters(stock), *_gauges(stock)]

    def describe(self) -> Iterable[Metric]:
        """Yield nothing: the history is not asked before somebody looks."""
        return []


def _counters(stock: Stock) -> Iterable[Metric]:
    tally = stock.tally
    outcomes = {"accepted": "sent"}
    yield _counter(
        "digestd_papers_new", "Sightings that followers are told as new.", {"": tally.sightings.get("new", 0)}
    )
    yield _counter("digestd_sightings", "Rows of the ledger by kind.", tally.sightings, "kind")
    yield _counter("digestd_digests", "Digests made: mailed, or silent with nothing to tell.", tally.digests, "result")
    mails = {name: tally.attempts.get(outcomes.get(name, name), 0) for name in ("accepted", "refused", "uncertain")}
    yield _counter("digestd_mails", "Hand-overs by what the relay said at the end.", mails, "result")
    yield _counter("digestd_attempts", "What moved deliveries, by outcome.", tally.attempts, "outcome")


def _gauges(stock: Stock) -> Iterable[Metric]:
    overview = stock.overview
    outbox = {str(state): count for state, count in overview.outbox.items()}
    yield _gauge("digestd_outbox_rows", "Deliveries by state.", outbox, "state")
    ages = {
        source_label(one.spec.name): (overview.now - one.fetched.last_ok_at).total_seconds()
        for one in overview.sources
        if one.fetched.last_ok_at is not None
    }
    yield _gauge("digestd_source_good_age_seconds", "Seconds since a source was read well.", ages, "source")
    health = GaugeMetricFamily("digestd_source_health", "1 for the state a source is in.", labels=["source", "state"])
    for one in overview.sources:
        for state in HealthState:
            health.add_metric([source_label(one.spec.name), str(state)], state is one.health.state)
    yield health
    signs = {name: sign.at.timestamp() for name, sign in overview.signs.items()}
    for name, words in ((WORKED, "when all work went well last"), (AUDITED, "when the last audit ended")):
        if name in signs:
            yield _gauge(f"digestd_{name}_timestamp_seconds", f"Unix time {words}.", {"": signs[name]})
    if AUDITED in overview.signs:
        yield _gauge("digestd_audit_findings", "Findings of the last audit.", {"": overview.signs[AUDITED].value})
    yield _gauge("digestd_audit_rule_findings", "Findings of the last audit by rule.", stock.findings, "rule")
    yield _gauge("digestd_troubles", "Troubles that stand.", {"": len(overview.troubles)})
    yield _gauge("digestd_database_bytes", "Bytes of the history and its log.", {"": stock.database_bytes})


def _counter(name: str, words: str, values: Mapping[str, float], label: str = "") -> CounterMetricFamily:
    family = CounterMetricFamily(name, words, labels=[label] if label else [])
    for key, value in values.items():
        family.add_metric([key] if label else [], value)
    return family


def _gauge(name: str, words: str, values: Mapping[str, float], label: str = "") -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, words, labels=[label] if label else [])
    for key, value in values.items():
        family.add_metric([key] if label else [], value)
    return family


def metrics_app(meters: Meters) -> Callable[[Any, Any, Any], Awaitable[None]]:
    """Return the web application that shows the figures at ``/metrics``, and nothing else."""

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        del receive
        if scope["type"] != "http":
            return
        status, kind, body = 404, b"text/plain; charset=utf-8", b"/metrics is what there is\n"
        if scope["path"] == "/metrics" and scope["method"] in ("GET", "HEAD"):
            # in a thread: the history is read, and a large one takes its time
            status, kind, body = 200, CONTENT_TYPE_LATEST.encode(), await asyncio.to_thread(meters.text)
        headers = [
            (b"content-type", kind),
            (b"content-length", str(len(body)).encode()),
            (b"cache-control", b"no-store"),
        ]
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})

    return answer


class CountedApp:
    """The web application that answers now: a reload puts another one in its place."""

    app: Callable[[Any, Any, Any], Awaitable[None]]

    def __init__(self, meters: Meters) -> None:
        self._meters = meters

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request, and count it if it is one of a feed."""

        async def counted(message: Any) -> None:
            if message["type"] == "http.response.start":
                self._meters.count_request(scope["path"], message["status"])
            await send(message)

        await self.app(scope, receive, counted)
