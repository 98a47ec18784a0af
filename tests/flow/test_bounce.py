"""Mail that comes back: who is proved by the token, what follows is done once, everything else is ignored with a reason."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from digestd.addresses import parse_reader
from digestd.errors import FetchError
from digestd.flows.bounce import Effect, take_mail, take_maildir
from digestd.flows.confirm import VALID_FOR, Asked, Outcome, ask, confirm, forget_stale
from digestd.flows.deliver import deliver
from digestd.flows.digest import make_due
from digestd.model.delivery import DeliveryState
from digestd.model.subscription import Subscription, SubscriptionState, Weekly
from digestd.store import SqlStore, open_store
from digestd.tokens import Purpose, bounce_address, make_token, tagged_address
from tests.followers import LABELS, Clock, KeepingChannel, add, at, let_follow, make_kitchen, options, start

MONDAY = at("2026-09-28T05:00")
SLOT = at("2026-09-28T07:30")
DAY = timedelta(days=1)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    """A topic and a daily reader of it."""
    opened = open_store(tmp_path / "history.sqlite")
    start(opened, "Reef Sound", now=MONDAY)
    let_follow(opened, "ana@example.org", "Reef Sound", now=MONDAY)
    yield opened
    opened.close()


def ana(store: SqlStore) -> Subscription:
    """Return the reader's newest subscription."""
    return store.subscriptions.subscriptions()[-1]


def tell(store: SqlStore, day: int) -> str:
    """Let a digest be made and delivered on a day after the first Monday, and return its Message-ID."""
    now = MONDAY + day * DAY
    add(store, "Reef Sound", (f"{now:%Y-%m-%d}", f"Bell Buoys {chr(65 + day) * 3}"), now=now)
    make_due(make_kitchen(store), now=SLOT + day * DAY)
    asyncio.run(deliver(store, KeepingChannel(), Clock(SLOT + day * DAY), options()))
    return store.outbox.deliveries(limit=1)[0].message_id


def return_path(store: SqlStore, purpose: Purpose = Purpose.BOUNCE) -> str:
    """Return the address that the reader's bounces come to."""
    token = make_token(store.secret("tokens"), purpose, ana(store).public_id)
    return bounce_address("bounce@reef.example", token, "ana@example.org")


def report(store: SqlStore, status: str, *, action: str = "failed", about: str = "", to: str | None = None) -> bytes:
    """Return a delivery report; ``about`` is the Message-ID of the mail that it returns."""
    returned = f"--B1\nContent-Type: text/rfc822-headers\n\nMessage-ID: {about}\nSubject: news\n\n" if about else ""
    text = f"""\
Return-Path: <>
Delivered-To: {to or return_path(store)}
From: MAILER-DAEMON@mx.example.org
Subject: Undelivered
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary="B1"

--B1
Content-Type: text/plain

It did not work out.

--B1
Content-Type: message/delivery-status

Reporting-MTA: dns; mx.example.org

Final-Recipient: rfc822; ana@example.org
Action: {action}
Status: {status}

{returned}--B1--
"""
    return text.replace("\n", "\r\n").encode()


def complaint(store: SqlStore) -> bytes:
    """Return a feedback report whose token stands in what it returns."""
    text = f"""\
From: feedback@example.org
To: abuse@reef.example
MIME-Version: 1.0
Content-Type: multipart/report; report-type=feedback-report; boundary="B1"

--B1
Content-Type: message/feedback-report

Feedback-Type: abuse
User-Agent: Anybody/1
Version: 1
Original-Mail-From: <{return_path(store)}>

--B1--
"""
    return text.replace("\n", "\r\n").encode()


def leaving(store: SqlStore, token: str | None = None) -> bytes:
    """Return a mail to the address for unsubscriptions."""
    token = token or make_token(store.secret("tokens"), Purpose.UNSUBSCRIBE, ana(store).public_id)
    address = tagged_address("unsubscribe@reef.example", token)
    return f"From: ana@example.org\r\nTo: {address}\r\nSubject: unsubscribe\r\n\r\n\r\n".encode()


def reasons(store: SqlStore) -> list[tuple[str, str]]:
    """Return (scope, reason) of what stops the reader's mail."""
    return [(one.scope, one.reason) for one in store.outbox.suppressions("ana@example.org")]


def bounces(store: SqlStore) -> int:
    """Return how many reports are on record."""
    return int(store.engine.query("SELECT COUNT(*) AS total FROM bounce")[0]["total"])


def test_hard_bounce_stops_all_mail(store: SqlStore) -> None:
    """One report that there is no such mailbox is enough, and what waits is not sent."""
    about = tell(store, 0)
    taken = take_mail(store, report(store, "5.1.1", about=about), now=SLOT)
    assert (Effect.SUPPRESSED, ana(store).public_id) == (
        taken.effect,
        taken.subscription and taken.subscription.public_id,
    )
    assert f"{ana(store).public_id}|2026-09-28T07:30" == taken.digest_key
    assert [("all", "bounced")] == reasons(store)
    tell(store, 1)
    assert 1 == store.outbox.counts()[DeliveryState.SUPPRESSED]


def test_complaint_stops_all_mail(store: SqlStore) -> None:
    """A reader who called it spam gets nothing more."""
    assert Effect.SUPPRESSED is take_mail(store, complaint(store), now=SLOT).effect
    assert [("all", "complained")] == reasons(store)


def test_same_report_twice_changes_nothing(store: SqlStore) -> None:
    """A Maildir read again, or a report delivered twice, is one report, with and without the mail's Message-ID."""
    for body in (report(store, "5.2.2", about=tell(store, 0)), report(store, "5.2.2"), complaint(store)):
        before = bounces(store)
        first, second = (take_mail(store, body, now=SLOT + number * DAY) for number in (0, 1))
        assert Effect.IGNORED is not first.effect
        assert (Effect.IGNORED, "it was reported before") == (second.effect, second.reason)
        assert before + 1 == bounces(store)


def test_old_report_does_not_undo_a_fresh_start(store: SqlStore) -> None:
    """A reader who was let in again is not shut out by the same report, read once more."""
    body = report(store, "5.1.1", about=tell(store, 0))
    take_mail(store, body, now=SLOT)
    assert store.outbox.lift("ana@example.org", "all", now=SLOT + DAY)
    assert Effect.IGNORED is take_mail(store, body, now=SLOT + DAY).effect
    assert [] == reasons(store)


def test_five_passing_failures_in_a_row_stop_all_mail(store: SqlStore) -> None:
    """Four full mailboxes count, the fifth is the end."""
    effects = [
        take_mail(store, report(store, "5.2.2", about=tell(store, day)), now=SLOT + day * DAY).effect
        for day in range(5)
    ]
    assert [Effect.COUNTED] * 4 + [Effect.SUPPRESSED] == effects
    assert [("all", "bounced")] == reasons(store)


def test_delivered_mail_between_failures_keeps_a_reader(store: SqlStore) -> None:
    """A digest between them that did not come back shows a mailbox that is read."""
    for day in range(6):
        about = tell(store, day)
        if day != 2:
            take_mail(store, report(store, "5.2.2", about=about), now=SLOT + day * DAY)
    assert [] == reasons(store)


def test_failures_far_apart_keep_a_reader(store: SqlStore) -> None:
    """Five failures in half a year are no dead mailbox."""
    for number in range(5):
        body = report(store, "5.2.2", about=f"<{number}@elsewhere.example>")
        assert Effect.COUNTED is take_mail(store, body, now=SLOT + number * 31 * DAY).effect
    assert [] == reasons(store)


def test_mail_to_the_unsubscribe_address_ends_the_subscription(store: SqlStore) -> None:
    """The reader leaves; a second such mail finds nothing to do, and a later subscription is untouched by it."""
    body = leaving(store)
    assert Effect.LEFT is take_mail(store, body, now=SLOT).effect
    assert SubscriptionState.ENDED is ana(store).state
    assert [(ana(store).public_id, "unsubscribed")] == reasons(store)
    let_follow(store, "ana@example.org", "Reef Sound", now=SLOT + DAY)
    assert "the subscription was ended before" == take_mail(store, body, now=SLOT + DAY).reason
    assert SubscriptionState.ACTIVE is ana(store).state


def test_delays_replies_and_policy_change_nothing(store: SqlStore) -> None:
    """What says nothing about the reader is ignored, each with its reason."""
    vacation = (
        f"From: ana@example.org\r\nDelivered-To: {return_path(store)}\r\nAuto-Submitted: auto-replied\r\n\r\nAway."
    )
    for body, reason in (
        (report(store, "4.4.1", action="delayed"), "the mail is delayed only"),
        (report(store, "5.7.1"), "refused for what we are, which says nothing about the reader: 5.7.1"),
        (vacation.encode(), "it is an automatic reply"),
        (b"Subject: hello\r\n\r\nhello\r\n", "it is no report of a mail of ours"),
        (b"", "it is no report of a mail of ours"),
        (bytes(range(256)), "it is no report of a mail of ours"),
    ):
        taken = take_mail(store, body, now=SLOT)
        assert (Effect.IGNORED, reason) == (taken.effect, taken.reason.strip())
    assert [] == reasons(store)
    assert 0 == bounces(store)


def test_report_without_a_genuine_token_changes_nothing(store: SqlStore) -> None:
    """Reports are easily forged: no token, a bent one, one of another purpose, one of a stranger are nothing."""
    token = make_token(store.secret("tokens"), Purpose.BOUNCE, ana(store).public_id)
    bent = token[:-1] + ("a" if token[-1] != "a" else "b")
    for address, reason in (
        ("bounce@reef.example", "its address carries no token"),
        (f"bounce+{bent}@reef.example", "its token is not one of ours for this purpose (bounce)"),
        (return_path(store, Purpose.UNSUBSCRIBE), "its token is not one of ours for this purpose (bounce)"),
        (
            tagged_address("bounce@reef.example", make_token(store.secret("tokens"), Purpose.BOUNCE, "nobody")),
            "its subscription is not in this history",
        ),
    ):
        taken = take_mail(store, report(store, "5.1.1", to=address), now=SLOT)
        assert (Effect.IGNORED, reason) == (taken.effect, taken.reason)
    assert Effect.IGNORED is take_mail(store, leaving(store, token), now=SLOT).effect
    assert [] == reasons(store)
    assert SubscriptionState.ACTIVE is ana(store).state


def wish(store: SqlStore, now: datetime = MONDAY) -> tuple[str, str]:
    """Let a stranger ask for digests; return the wish's public id and where the bounces of its mail go."""
    topic = store.history.find_topic("Reef Sound")
    assert topic is not None
    assert ask(make_kitchen(store), Asked(parse_reader("bo@example.net"), topic, Weekly((2,))), now=now)
    public_id = store.outbox.deliveries(limit=1)[0].digest_key.partition("|")[2]
    token = make_token(store.secret("tokens"), Purpose.BOUNCE, public_id, scope="confirm")
    return public_id, bounce_address("bounce@reef.example", token, "bo@example.net")


def test_mail_to_confirm_that_came_back_stops_all_mail(store: SqlStore) -> None:
    """An address that a stranger mistyped gets nothing more, its link makes no subscription, and a second report is nothing."""
    public_id, address = wish(store)
    body = report(store, "5.1.1", to=address)
    assert Effect.SUPPRESSED is take_mail(store, body, now=SLOT).effect
    assert [("all", "bounced")] == [(one.scope, one.reason) for one in store.outbox.suppressions("bo@example.net")]
    assert "it was reported before" == take_mail(store, body, now=SLOT).reason
    assert Outcome.BLOCKED is confirm(store, public_id, LABELS, now=SLOT).outcome
    assert [] == reasons(store)


def test_complaint_about_a_mail_to_confirm_stops_all_mail(store: SqlStore) -> None:
    """Who never asked and says so is left alone."""
    _, address = wish(store)
    body = complaint(store).replace(return_path(store).encode(), address.encode())
    assert Effect.SUPPRESSED is take_mail(store, body, now=SLOT).effect
    assert [("all", "complained")] == [(one.scope, one.reason) for one in store.outbox.suppressions("bo@example.net")]


def test_passing_failure_of_a_mail_to_confirm_counts_once(store: SqlStore) -> None:
    """A full mailbox counts as for digests, once for one mail, and the wish can be confirmed still."""
    public_id, address = wish(store)
    about = store.outbox.deliveries(limit=1)[0].message_id
    effects = [
        take_mail(store, report(store, "5.2.2", about=named, to=address), now=SLOT).effect for named in (about, "")
    ]
    assert [Effect.COUNTED, Effect.IGNORED] == effects
    assert 1 == bounces(store)
    assert Outcome.DONE is confirm(store, public_id, LABELS, now=SLOT).outcome


def test_report_about_a_forgotten_wish_changes_nothing(store: SqlStore) -> None:
    """A wish that ran out is gone with its address, and a report about it finds nobody; nor does a token without its scope."""
    public_id, address = wish(store)
    bare = make_token(store.secret("tokens"), Purpose.BOUNCE, public_id)
    unscoped = report(store, "5.1.1", to=f"bounce+{bare}@reef.example")
    assert "its subscription is not in this history" == take_mail(store, unscoped, now=SLOT).reason
    assert 1 == forget_stale(store, now=MONDAY + VALID_FOR)
    late = take_mail(store, report(store, "5.1.1", to=address), now=SLOT + 3 * DAY)
    assert (Effect.IGNORED, "its wish is not in this history, or no longer") == (late.effect, late.reason)
    assert 0 == bounces(store)


def test_envelope_recipient_counts_more_than_the_header(store: SqlStore) -> None:
    """What the mail server says is taken, whatever the header names."""
    body = report(store, "5.1.1", to="someone@reef.example")
    assert Effect.SUPPRESSED is take_mail(store, body, [return_path(store)], now=SLOT).effect


def test_maildir_is_taken_once(store: SqlStore, tmp_path: Path) -> None:
    """Mails in new and unseen ones in cur are taken and marked as seen; a second look finds none."""
    for name in ("new", "cur", "tmp"):
        (tmp_path / "box" / name).mkdir(parents=True)
    (tmp_path / "box" / "new" / "1.a").write_bytes(report(store, "5.2.2", about=tell(store, 0)))
    (tmp_path / "box" / "cur" / "2.b:2,F").write_bytes(leaving(store))
    (tmp_path / "box" / "cur" / "3.c:2,S").write_bytes(complaint(store))
    (tmp_path / "box" / "new" / "4.d").symlink_to(tmp_path / "history.sqlite")
    (tmp_path / "box" / "new" / ".hidden").write_bytes(complaint(store))
    taken = [(file.name, one.effect) for file, one in take_maildir(store, tmp_path / "box", Clock(SLOT))]
    assert [("1.a", Effect.COUNTED), ("2.b:2,F", Effect.LEFT)] == taken
    assert ["1.a:2,S", "2.b:2,FS", "3.c:2,S"] == sorted(file.name for file in (tmp_path / "box" / "cur").iterdir())
    assert [] == list(take_maildir(store, tmp_path / "box", Clock(SLOT)))


def test_folder_that_is_no_maildir_is_an_error(store: SqlStore, tmp_path: Path) -> None:
    """A wrong path is said, not taken for an empty box."""
    with pytest.raises(FetchError, match="expected a Maildir"):
        list(take_maildir(store, tmp_path / "nothing", Clock(datetime.fromisoformat("2026-09-28T07:30+00:00"))))
