"""Whatever a relay does, every message is told right: what was sent is kept, what was kept is sent or uncertain.

The faults are numbered S1 to S62; S50 to S60 (encryption and login) are in ``test_smtp_tls``. Each strikes one message, the
middle one of three over one connection, and a message of five megabytes; with PIPELINING and without.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.model.delivery import Deferred, Fenced, Message, Outcome, Refused, Reply, Sent, Uncertain
from digestd.send.settings import Deadlines, Limits, SmtpSettings, TlsMode
from digestd.send.smtp import SmtpChannel
from tests.builders import make_message
from tests.smtp_faults import FaultServer, Script

BIG = 5_000_000
PATIENT = Deadlines(connect_s=10, command_s=10, before_dot_s=20, dot_s=10, quit_s=10)
#: long enough for a busy machine: the messages around a fault must keep them too
HASTY = Deadlines(connect_s=1.3, command_s=1.3, before_dot_s=3, dot_s=1.3, quit_s=1)
SENT, LATER, NO, UNKNOWN = Sent, Deferred, Refused, Uncertain
SHAPES = ("one", "three", "big")

Kind = type[Sent] | type[Deferred] | type[Refused] | type[Uncertain]


@dataclass(frozen=True)
class Case:
    """One fault and what may become of the message that it strikes."""

    name: str
    place: str
    act: str
    allowed: tuple[Kind, ...]
    keep: bool = False
    waits: bool = False  #: only our own deadline ends it
    big: tuple[Kind, ...] = ()  #: allowed for a big message, where that can be said more exactly
    relay_fault: bool | None = None  #: of a Deferred
    first: Script | None = None  #: what must happen before
    idle: bool = False  #: looks like a server that closed an idle connection: tried over a fresh one, if there was one


CASES = (
    Case("S1", "banner", "421 4.3.2 busy+close", (LATER,), relay_fault=True),
    Case("S2", "banner", "554 5.7.1 go away+close", (LATER,), relay_fault=True),
    Case("S3", "banner", "hang", (LATER,), waits=True, relay_fault=True),
    Case("S4", "banner", "fin", (LATER,), relay_fault=True),
    Case("S5", "banner", "reset", (LATER,), relay_fault=True),
    Case("S6", "banner", "garbage", (LATER,), relay_fault=True),
    Case("S7", "ehlo", "421 4.3.2 busy+close", (LATER,), relay_fault=True),
    Case("S8", "ehlo", "554 5.7.1 no", (LATER,), relay_fault=True),
    Case("S9", "ehlo", "reset", (LATER,), relay_fault=True),
    Case("S9 hang", "ehlo", "hang", (LATER,), waits=True, relay_fault=True),
    Case("S9 fin", "ehlo", "fin", (LATER,), relay_fault=True),
    Case("S9 garbage", "ehlo", "garbage", (LATER,), relay_fault=True),
    Case("S9 endless", "ehlo", "endless", (LATER,), relay_fault=True),
    Case("S10", "mail", "421 4.3.2 bye+close", (LATER,), relay_fault=True, idle=True),
    Case("S11", "mail", "451 4.3.0 later", (LATER,), relay_fault=True),
    Case("S12", "mail", "452 4.3.1 full", (LATER,), relay_fault=True),
    Case("S13", "mail", "550 5.7.1 bad sender", (LATER,), relay_fault=True),
    Case("S14", "mail", "reset", (LATER,), relay_fault=True, idle=True),
    Case("S15", "mail", "hang", (LATER,), waits=True, relay_fault=True),
    Case("S15 garbage", "mail", "garbage", (LATER,), relay_fault=True),
    Case("S15 too large", "mail", "552 5.3.4 too large", (NO,)),
    Case("S16", "rcpt", "421 4.3.2 bye+close", (LATER,), relay_fault=False),
    Case("S17", "rcpt", "451 4.7.1 greylisted", (LATER,), relay_fault=False),
    Case("S18", "rcpt", "452 4.2.2 full", (LATER,), relay_fault=False),
    Case("S19", "rcpt", "550 5.1.1 no such user", (NO,)),
    Case("S19 policy", "rcpt", "550 5.7.1 not you", (NO,)),
    Case("S20", "rcpt", "reset", (LATER,), relay_fault=False),
    Case("S20 hang", "rcpt", "hang", (LATER,), waits=True, relay_fault=False),
    Case("S20 garbage", "rcpt", "garbage", (LATER,), relay_fault=False),
    Case("S21", "data", "451 4.3.0 later", (LATER,), relay_fault=False),
    Case("S22", "data", "554 5.5.1 no", (NO,)),
    Case("S23", "data", "421 4.3.2 bye+close", (LATER,), relay_fault=False),
    Case("S24", "data", "reset", (LATER,), relay_fault=False),
    Case("S25", "data", "hang", (LATER,), waits=True, relay_fault=False),
    Case("S25 odd", "data", "250 2.0.0 sure", (LATER,), relay_fault=False),
    Case("S26", "midbody", "reset", (LATER, UNKNOWN), big=(LATER,), relay_fault=False),
    Case("S27", "midbody", "hang", (LATER, UNKNOWN), waits=True, relay_fault=False),
    Case("S28", "midbody", "fin", (LATER, UNKNOWN), big=(LATER,), relay_fault=False),
    Case("S29", "midbody", "421 4.3.2 bye+close", (LATER, UNKNOWN), big=(LATER,), relay_fault=False),
    Case("S29 refused", "midbody", "552 5.3.4 too large+close", (NO, UNKNOWN), big=(NO,)),
    Case("S30", "end", "reset", (UNKNOWN,), keep=True),
    Case("S31", "end", "reset", (UNKNOWN,)),
    Case("S32", "end", "fin", (UNKNOWN,), keep=True),
    Case("S33", "end", "fin", (UNKNOWN,)),
    Case("S34", "end", "hang", (UNKNOWN,), keep=True, waits=True),
    Case("S35", "end", "hang", (UNKNOWN,), waits=True),
    Case("S36", "end", "250 2.0.0 kept+reset", (SENT, UNKNOWN), keep=True),
    Case("S37", "end", "251 2.1.5 forwarded", (SENT,), keep=True),
    Case("S38", "end", "421 4.3.2 bye+close", (LATER,), relay_fault=False),
    Case("S39", "end", "451 4.3.0 later", (LATER,), relay_fault=False),
    Case("S40", "end", "452 4.3.1 full", (LATER,), relay_fault=False),
    Case("S41", "end", "552 5.3.4 too large", (NO,)),
    Case("S42", "end", "554 5.7.1 spam", (NO,)),
    Case("S43", "end", "garbage", (UNKNOWN,), keep=True),
    Case("S43 not kept", "end", "garbage", (UNKNOWN,)),
    Case("S43 two codes", "end", "250-kept\r\n550 5.7.1 or not", (UNKNOWN,), keep=True),
    Case("S44", "end", "drip", (UNKNOWN,), keep=True, waits=True),
    Case("S44 endless", "end", "endless", (UNKNOWN,), keep=True),
    Case("S44 long line", "end", "longline", (UNKNOWN,), keep=True),
    Case("S45", "rset", "hang", (NO,), waits=True, first=Script("rcpt", "550 5.1.1 no such user")),
    Case("S46", "rset", "reset", (NO,), first=Script("rcpt", "550 5.1.1 no such user")),
    Case("S47", "rset", "500 5.5.2 what", (NO,), first=Script("rcpt", "550 5.1.1 no such user")),
    Case("S48", "quit", "hang", (SENT,), waits=True),
    Case("S49", "quit", "reset", (SENT,)),
    Case("S49 odd", "quit", "500 5.5.2 what", (SENT,)),
    Case("S61", "idle", "421 4.4.2 idle too long+close", (SENT,)),
    Case("S61 silent", "idle", "fin", (SENT,)),
    Case("S62", "end", "late", (UNKNOWN,), keep=True, waits=True),
    Case("S62 early", "mail", "late", (LATER,), waits=True, relay_fault=True),
)


def relay(server: FaultServer, deadlines: Deadlines = PATIENT, limits: Limits | None = None) -> SmtpChannel:
    """Return a channel to a server on loopback."""
    limits = limits or Limits(connections=1)
    return SmtpChannel(
        SmtpSettings("127.0.0.1", server.port, mode=TlsMode.NONE, helo_name="t", deadlines=deadlines, limits=limits)
    )


@dataclass
class Dot:
    """Stands for the outbox: counts how often it was asked."""

    answer: bool = True
    asked: int = 0

    async def __call__(self) -> bool:
        """Say whether the message may go out."""
        self.asked += 1
        await asyncio.sleep(0)
        return self.answer


async def send_all(channel: SmtpChannel, messages: Sequence[Message]) -> list[tuple[Outcome, Dot]]:
    """Send one after the other, each within twice its deadlines."""
    results = []
    for message in messages:
        dot = Dot()
        results.append((await channel.send(message, before_dot=dot), dot))
    return results


def check_truth(server: FaultServer, messages: Sequence[Message], results: Sequence[tuple[Outcome, Dot]]) -> None:
    """Hold the outcomes against what the server kept."""
    kept = Counter(kept.body for kept in server.kept)
    assert not kept - Counter(message.body for message in messages), "something else was kept"
    for message, (outcome, dot) in zip(messages, results, strict=True):
        count = kept[message.body]
        assert count <= 1
        assert dot.asked <= 1
        match outcome:
            case Sent():
                assert (1, 1) == (count, dot.asked)
            case Uncertain():
                assert 1 == dot.asked
            case _:
                assert 0 == count


async def run_case(case: Case, shape: str, *, pipelining: bool) -> None:
    """Strike one message and send others around it."""
    number = 1 if shape == "three" and case.place not in ("banner", "ehlo") else 0
    offers = ("SIZE 10000000", *(["PIPELINING"] if pipelining else ()))
    first = (replace(case.first, at=number),) if case.first else ()
    server = FaultServer((Script(case.place, case.act, case.keep, number), *first), offers)
    struck = make_message(number, size=BIG if shape == "big" else 600)
    messages = [make_message(n) for n in range(number)] + [struck, make_message(number + 1)]
    loop = asyncio.get_running_loop()
    async with server.running():
        channel = relay(server, HASTY if case.waits else PATIENT)
        began_at = loop.time()
        results = await send_all(channel, messages)
        await channel.close()
        took_s = loop.time() - began_at
    outcome = results[number][0]
    allowed = case.big if shape == "big" and case.big else case.allowed
    if shape == "three" and case.idle:
        allowed = (Sent,)
    assert isinstance(outcome, allowed), f"{outcome}, expected {allowed}"
    if isinstance(outcome, Deferred) and case.relay_fault is not None:
        assert case.relay_fault == outcome.relay_fault
    assert [Sent] * (len(messages) - 1) == [type(each) for n, (each, _) in enumerate(results) if n != number]
    check_truth(server, messages, results)
    assert took_s < 10, "a deadline was not kept"


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("pipelining", [True, False], ids=["pipelining", "plain"])
async def test_fault_gives_the_outcome_of_the_table(shape: str, pipelining: bool) -> None:
    """Each fault has the outcome that the table gives it, the server's own keeping agrees, and the next message arrives."""
    room = asyncio.Semaphore(6)
    failed = []

    async def run(case: Case) -> None:
        async with room:
            try:
                await run_case(case, shape, pipelining=pipelining)
            except AssertionError as error:
                failed.append(f"{case.name} {case.place} {case.act}: {error}")

    await asyncio.gather(*(run(case) for case in CASES))
    assert [] == failed


@pytest.mark.parametrize("pipelining", [True, False], ids=["pipelining", "plain"])
async def test_three_messages_share_one_connection(pipelining: bool) -> None:
    """A connection is kept for the next message, after a refused one too."""
    offers = ("PIPELINING",) if pipelining else ()
    server = FaultServer((Script("rcpt", "550 5.1.1 no such user", at=1),), offers)
    async with server.running():
        channel = relay(server)
        results = await send_all(channel, [make_message(n) for n in range(3)])
        await channel.close()
    assert [Sent, Refused, Sent] == [type(outcome) for outcome, _ in results]
    assert (1, 1) == (server.connections, server.commands.count("RSET"))
    assert "QUIT" == server.commands[-1]


@pytest.mark.parametrize("act", ["550 5.1.1 no such user", "451 4.7.1 later"])
async def test_lone_dot_ends_data_without_recipient(act: str) -> None:
    """A server that says 354 without a recipient gets a lone dot, keeps nothing, and the connection lives on."""
    server = FaultServer((Script("rcpt", act),), eager_data=True)
    async with server.running():
        channel = relay(server)
        results = await send_all(channel, [make_message(0), make_message(1)])
        await channel.close()
    assert (Sent, 1, 1) == (type(results[1][0]), len(server.kept), server.connections)
    assert 0 == results[0][1].asked


async def test_recipient_taken_after_mail_refused_gets_nothing() -> None:
    """If a recipient seems to be taken although MAIL was refused, no dot is written: an empty message could arrive."""
    server = FaultServer((Script("mail", "451 4.3.0 later"), Script("rcpt", "250 2.1.5 ok")), eager_data=True)
    async with server.running():
        channel = relay(server)
        results = await send_all(channel, [make_message(0), make_message(1)])
        await channel.close()
    assert [Deferred, Sent] == [type(outcome) for outcome, _ in results]
    assert [make_message(1).body] == [kept.body for kept in server.kept]


async def test_fenced_message_is_not_handed_over() -> None:
    """If the row is no longer ours just before the dot, nothing is kept and the connection is gone."""
    server = FaultServer()
    async with server.running():
        channel = relay(server)
        dot = Dot(answer=False)
        assert Fenced() == await channel.send(make_message(0), before_dot=dot)
        assert Sent is type((await send_all(channel, [make_message(1)]))[0][0])
        await channel.close()
    assert ([make_message(1).body], 2, 1) == ([kept.body for kept in server.kept], server.connections, dot.asked)


async def test_error_of_before_dot_passes_and_nothing_is_kept() -> None:
    """An error of the outbox is not hidden behind an outcome; the message stays unsent."""

    async def broken() -> bool:
        raise RuntimeError("the disk is full")

    server = FaultServer()
    async with server.running():
        channel = relay(server)
        with pytest.raises(RuntimeError, match="the disk is full"):
            await channel.send(make_message(0), before_dot=broken)
        assert Sent is type((await send_all(channel, [make_message(1)]))[0][0])
        await channel.close()
    assert [make_message(1).body] == [kept.body for kept in server.kept]


@pytest.mark.parametrize(
    ("place", "kind"),
    [("banner", Deferred), ("mail", Deferred), ("rcpt", Deferred), ("data", Deferred), ("end", Uncertain)],
)
async def test_cancelled_call_counts_like_a_lost_connection(place: str, kind: type) -> None:
    """A cancelled call says what is known; the connection is never used again."""
    server = FaultServer((Script(place, "hang", keep=True),))
    async with server.running():
        channel = relay(server)
        task = asyncio.create_task(channel.send(make_message(0), before_dot=Dot()))
        await server.struck.wait()
        task.cancel()
        assert kind is type(await task)
        assert Sent is type((await send_all(channel, [make_message(1)]))[0][0])
        await channel.close()
    assert 2 == server.connections


async def test_cancelled_in_before_dot_is_known_unsent() -> None:
    """While the outbox writes, nothing has been handed over yet."""
    waiting = asyncio.Event()

    async def slow() -> bool:
        waiting.set()
        await asyncio.Event().wait()
        return True

    server = FaultServer()
    async with server.running():
        channel = relay(server)
        task = asyncio.create_task(channel.send(make_message(0), before_dot=slow))
        await waiting.wait()
        task.cancel()
        assert Deferred is type(await task)
        await channel.close()
    assert [] == server.kept


async def test_no_relay_is_a_fault_of_the_relay() -> None:
    """Nobody listens: the attempt does not count."""
    server = FaultServer()
    async with server.running():
        pass
    outcome = (await send_all(relay(server), [make_message()]))[0][0]
    assert Deferred("connect: connection lost", relay_fault=True) == outcome


async def test_body_that_nobody_reads_is_known_unsent() -> None:
    """A server that stops reading in the midst of a long body has not got it; the dot is never written."""
    server = FaultServer((Script("midbody", "hang"),), offers=())
    async with server.running():
        channel = relay(server, HASTY)
        outcome, dot = (await send_all(channel, [make_message(size=30_000_000)]))[0]
        await channel.close()
    assert (Deferred("body: no answer in time"), 0) == (outcome, dot.asked)


async def test_connections_are_recycled_and_idle_out() -> None:
    """A connection bears so many messages and so much idleness, then it takes leave."""
    server = FaultServer()
    async with server.running():
        channel = relay(server, limits=Limits(connections=1, per_connection=2, idle_s=0.05))
        await send_all(channel, [make_message(n) for n in range(5)])
        async with asyncio.timeout(5):
            await server.left(3)
        assert 3 == server.connections
        await channel.close()
        await channel.close()


async def test_connection_that_cannot_reset_is_not_used() -> None:
    """If a server will not forget the refused envelope, the next message takes another connection."""
    server = FaultServer((Script("rcpt", "550 5.1.1 no such user"), Script("rset", "500 5.5.2 what")))
    async with server.running():
        channel = relay(server)
        results = await send_all(channel, [make_message(0), make_message(1)])
        await channel.close()
    assert [Refused, Sent] == [type(outcome) for outcome, _ in results]
    assert 2 == server.connections


async def test_connection_at_work_takes_leave_after_close() -> None:
    """A connection that is at work when the channel is closed finishes its message and leaves."""
    working, go_on = asyncio.Event(), asyncio.Event()

    async def slow() -> bool:
        working.set()
        await go_on.wait()
        return True

    server = FaultServer()
    async with server.running():
        channel = relay(server)
        task = asyncio.create_task(channel.send(make_message(), before_dot=slow))
        await working.wait()
        await channel.close()
        go_on.set()
        assert Sent is type(await task)
        async with asyncio.timeout(5):
            await server.left(1)


async def test_connections_are_bounded_and_never_shared() -> None:
    """Forty messages at once use as many connections as allowed, and each is kept once."""
    server = FaultServer(delay_s=0.001)
    messages = [make_message(n) for n in range(40)]
    async with server.running():
        channel = relay(server, limits=Limits(connections=4))
        results = await asyncio.gather(*(send_all(channel, [message]) for message in messages))
        await channel.close()
    check_truth(server, messages, [each[0] for each in results])
    assert (40, 4) == (len(server.kept), server.most_at_once)


async def test_messages_to_one_domain_are_bounded() -> None:
    """Ten messages to one domain go one at a time, others pass them."""
    server = FaultServer(delay_s=0.002)
    messages = [make_message(n, recipient=f"r{n}@Example.NET") for n in range(10)]
    async with server.running():
        channel = relay(server, limits=Limits(connections=5, per_domain=1))
        await asyncio.gather(*(send_all(channel, [message]) for message in messages))
        assert 1 == server.most_at_once
        other = make_message(11, recipient="ana@example.com")
        await asyncio.gather(*(send_all(channel, [message]) for message in (*messages[:2], other)))
        assert 2 == server.most_at_once
        await channel.close()
    assert 13 == len(server.kept)


async def test_messages_are_spread_over_the_minute() -> None:
    """A rate of 1200 a minute leaves 50 ms between two messages."""
    server = FaultServer()
    async with server.running():
        channel = relay(server, limits=Limits(connections=5, per_minute=1200))
        began_at = asyncio.get_running_loop().time()
        await asyncio.gather(*(send_all(channel, [make_message(n)]) for n in range(5)))
        assert asyncio.get_running_loop().time() - began_at >= 0.2
        await channel.close()


async def test_envelope_says_what_is_offered() -> None:
    """SIZE, DSN and SMTPUTF8 are used where they are offered, and only there."""
    message = make_message(recipient="jos+e=x@example.net", envelope_id="7|2026=1")
    rare = make_message(2, recipient="josé@example.net")
    rich, poor = FaultServer(), FaultServer(offers=())
    async with rich.running(), poor.running():
        for server in (rich, poor):
            channel = relay(server)
            results = await send_all(channel, [message, rare])
            await channel.close()
    size = len(message.body)
    assert f"MAIL FROM:<digest@example.org> SIZE={size} RET=HDRS ENVID=7|2026+3D1" == rich.kept[0].mail
    want = "RCPT TO:<jos+e=x@example.net> NOTIFY=FAILURE,DELAY ORCPT=rfc822;jos+2Be+3Dx@example.net"
    assert want == rich.kept[0].rcpt
    assert f"MAIL FROM:<digest@example.org> SIZE={len(rare.body)} SMTPUTF8 RET=HDRS" == rich.kept[1].mail
    assert ("josé@example.net", "RCPT TO:<josé@example.net> NOTIFY=FAILURE,DELAY") == (
        rich.kept[1].recipient,
        rich.kept[1].rcpt,
    )
    assert ["MAIL FROM:<digest@example.org>"] == [kept.mail for kept in poor.kept]
    refused = results[1][0]
    assert isinstance(refused, Refused)
    assert (553, "5.6.7", False) == (refused.reply.code, refused.reply.enhanced, refused.suppress)


async def test_size_is_checked_before_mail() -> None:
    """A message that the relay would not take is known unsendable without troubling it."""
    server = FaultServer(offers=("SIZE 1000",))
    async with server.running():
        channel = relay(server)
        outcome = (await send_all(channel, [make_message(size=2000)]))[0][0]
        await channel.close()
    assert isinstance(outcome, Refused)
    assert (552, "5.3.4") == (outcome.reply.code, outcome.reply.enhanced)
    assert not [command for command in server.commands if command.startswith("MAIL")]


async def test_long_reply_text_is_printable_and_short() -> None:
    """What a relay answers is kept without what could hurt a terminal."""
    server = FaultServer((Script("end", "554-5.7.1 \x1b[31mspam\r\n554 5.7.1 " + "z" * 600),))
    async with server.running():
        channel = relay(server)
        outcome = (await send_all(channel, [make_message()]))[0][0]
        await channel.close()
    assert isinstance(outcome, Refused)
    assert Reply(554, f"5.7.1  [31mspam 5.7.1 {'z' * 378}") == outcome.reply
    assert outcome.policy


addresses = st.text(st.characters(codec="utf-8"), max_size=20) | st.builds(
    "{}@{}".format,
    st.text("ab.+=-'é<>\r\n\0 \",@", min_size=1, max_size=8),
    st.text("xyz.-é>\n ", min_size=1, max_size=8),
)


@given(st.lists(addresses, min_size=1, max_size=12))
@settings(max_examples=40, deadline=None)
def test_address_on_the_wire_is_the_one_stored(recipients: list[str]) -> None:
    """An address goes out exactly as it is stored, or not at all; no command of its own can hide in it."""

    async def run() -> None:
        server = FaultServer()
        messages = [make_message(n, recipient=recipient) for n, recipient in enumerate(recipients)]
        async with server.running():
            channel = relay(server)
            results = await send_all(channel, messages)
            await channel.close()
        sent = [
            message.recipient
            for message, (outcome, _) in zip(messages, results, strict=True)
            if isinstance(outcome, Sent)
        ]
        assert sent == [kept.recipient for kept in server.kept]
        assert len(sent) == sum(command.startswith("RCPT ") for command in server.commands)
        assert all(isinstance(outcome, Sent | Refused) for outcome, _ in results)

    asyncio.run(run())


@given(st.lists(st.sampled_from((b".", b"\r", b"\n", b"\r\n", b"a", b"\0", b"QUIT")), max_size=30))
@settings(max_examples=60, deadline=None)
def test_body_is_kept_as_it_is_or_refused(parts: list[bytes]) -> None:
    """Bodies arrive octet for octet, dots and all; those with bare line ends are refused."""
    body = b"Subject: x\r\n\r\n" + b"".join(parts) + b"\r\n"

    async def run() -> None:
        server = FaultServer()
        async with server.running():
            channel = relay(server)
            results = await send_all(channel, [make_message(body=body), make_message(2)])
            await channel.close()
        clean = (
            b"\0" not in body and b"\r" not in body.replace(b"\r\n", b"") and b"\n" not in body.replace(b"\r\n", b"")
        )
        assert [Sent if clean else Refused, Sent] == [type(outcome) for outcome, _ in results]
        assert ([body] if clean else []) + [make_message(2).body] == [kept.body for kept in server.kept]

    asyncio.run(run())


scripts = st.builds(
    Script,
    st.sampled_from(("banner", "ehlo", "mail", "rcpt", "data", "midbody", "end", "rset", "idle")),
    st.sampled_from(
        ("421 bye+close", "451 later", "550 no", "554 5.7.1 no", "reset", "fin", "garbage", "hang", "250 ok", "354 go")
    ),
    st.booleans(),
    st.integers(0, 5),
)


def _honest(fault: Script) -> Script:
    """Return a fault of a server that has a message if it says 250, has it not if it says 4xx or 5xx, and answers once."""
    if fault.place == "midbody" and fault.act[0].isdigit():
        return replace(
            fault, act="451 later+close" if fault.act[0] in "23" else fault.act.removesuffix("+close") + "+close"
        )
    says_nothing = fault.act in ("reset", "fin", "garbage", "hang", "354 go")
    return fault if says_nothing else replace(fault, keep=fault.act.startswith("250"))


@given(st.lists(scripts, max_size=4), st.booleans(), st.booleans())
@settings(max_examples=40, deadline=None)
def test_random_misbehaviour_loses_and_doubles_nothing(faults: list[Script], pipelining: bool, eager: bool) -> None:
    """Whatever a server does in whatever order, outcomes and its own keeping agree."""
    honest = tuple(_honest(fault) for fault in faults)
    messages = [make_message(n) for n in range(4)]

    async def run() -> None:
        server = FaultServer(honest, ("PIPELINING",) if pipelining else (), eager_data=eager)
        quick = Deadlines(connect_s=0.15, command_s=0.15, before_dot_s=0.5, dot_s=0.15, quit_s=0.1)
        async with server.running():
            channel = relay(server, quick)
            results = await send_all(channel, messages)
            await channel.close()
        check_truth(server, messages, results)

    asyncio.run(run())
