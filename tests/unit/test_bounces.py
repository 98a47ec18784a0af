"""Mail that comes back: kinds, codes, whose mail it was, and hostile reports."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from time import process_time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.bounces import MOST_BYTES, BounceReport, ReportKind, read_report
from digestd.tokens import Purpose, bounce_address, make_token, read_token

SECRET = bytes(range(32))
TOKEN = make_token(SECRET, Purpose.BOUNCE, "a1b2c3d4e5")
LEAVE = make_token(SECRET, Purpose.UNSUBSCRIBE, "a1b2c3d4e5")
RETURN_PATH = bounce_address("bounce@reef.example", TOKEN, "mia@kelp.example")
MESSAGE_ID = "<mzxw6ytboi4dcmrt@reef.example>"


def make_report(
    fields: str,
    *,
    about: str = "",
    note: str = "This is the mail system at host mx.kelp.example.",
    status_type: str = "message/delivery-status",
    original_type: str = "message/rfc822",
) -> bytes:
    """Return a delivery report with these fields of one recipient, in CRLF lines."""
    lines = f"""\
Return-Path: <>
From: MAILER-DAEMON@mx.kelp.example (Mail Delivery System)
To: {RETURN_PATH}
Subject: Undelivered Mail Returned to Sender
Auto-Submitted: auto-replied
MIME-Version: 1.0
Content-Type: multipart/report; report-type=delivery-status; boundary="B1"

--B1
Content-Type: text/plain; charset=us-ascii

{note}

--B1
Content-Type: {status_type}

Reporting-MTA: dns; mx.kelp.example
{about}Arrival-Date: Mon, 5 Oct 2026 07:30:12 +0000 (UTC)

Final-Recipient: rfc822; mia@kelp.example
{fields}

--B1
Content-Type: {original_type}

From: Reef News <news@reef.example>
Message-ID: {MESSAGE_ID}
Subject: 5 new papers

The news.
--B1--
"""
    return lines.replace("\n", "\r\n").encode()


def make_mail(headers: str, body: str) -> bytes:
    """Return a plain mail."""
    return f"{headers}\n\n{body}\n".replace("\n", "\r\n").encode()


def test_report_of_postfix_about_an_unknown_user_is_hard() -> None:
    """The usual report of a mailbox that does not exist is read whole: kind, code, words, and which mail it was."""
    fields = """\
Original-Recipient: rfc822;mia@kelp.example
Action: failed
Status: 5.1.1
Remote-MTA: dns; mx2.kelp.example
Diagnostic-Code: smtp; 550 5.1.1 <mia@kelp.example>: Recipient address
    rejected: User unknown in virtual mailbox table"""
    report = read_report(make_report(fields, about="Original-Envelope-Id: QQ17\n"), [RETURN_PATH])
    expected = BounceReport(
        ReportKind.HARD,
        TOKEN,
        "5.1.1",
        "550 5.1.1 <mia@kelp.example>: Recipient address rejected: User unknown in virtual mailbox table",
        MESSAGE_ID,
        "QQ17",
        "mia@kelp.example",
    )
    assert expected == report


def test_token_of_a_report_proves_whose_mail_it_was() -> None:
    """The token that a report carries is the one that was sent out, and says who is meant."""
    report = read_report(make_report("Action: failed\nStatus: 5.1.1"))
    assert report is not None
    found = read_token({"1": SECRET}, report.token or "", Purpose.BOUNCE, datetime(2026, 10, 5, tzinfo=UTC))
    assert found is not None
    assert "a1b2c3d4e5" == found.subject


@pytest.mark.parametrize(
    ("fields", "kind", "status", "policy"),
    [
        ("Action: failed\nStatus: 5.1.1", ReportKind.HARD, "5.1.1", False),
        ("Action: Failed (fatal)\nStatus: 5.1.10 (null MX)", ReportKind.HARD, "5.1.10", False),
        ("Action: error\nStatus: 5.1.2", ReportKind.HARD, "5.1.2", False),
        ("Action: failed\nStatus: 5.2.1", ReportKind.HARD, "5.2.1", False),
        ("Action: failed\nStatus: 5.2.2", ReportKind.SOFT, "5.2.2", False),  # a full mailbox
        ("Action: failed\nStatus: 4.4.1", ReportKind.SOFT, "4.4.1", False),  # given up after days
        ("Action: failed\nStatus: 5.7.1", ReportKind.SOFT, "5.7.1", True),
        ("Action: failed\nStatus: 5.7.1\nDiagnostic-Code: smtp; 550 user unknown", ReportKind.SOFT, "5.7.1", True),
        ("Action: failed\nStatus: 5.0.0\nDiagnostic-Code: smtp; 550 5.1.1 gone", ReportKind.HARD, "5.1.1", False),
        ("Action: failed\nStatus: 5.0.0\nDiagnostic-Code: smtp; 550 No such user", ReportKind.HARD, "5.0.0", False),
        ("Action: failed\nStatus: 5.0.0\nDiagnostic-Code: smtp; 550 refused", ReportKind.SOFT, "5.0.0", False),
        ("Action: failed", ReportKind.SOFT, "", False),
        ("Action: delayed\nStatus: 4.4.1", ReportKind.DELAYED, "4.4.1", False),
    ],
)
def test_report_kind_follows_action_and_code(fields: str, kind: ReportKind, status: str, *, policy: bool) -> None:
    """One hard bounce ends all mail, so only a code or words that leave no doubt make one."""
    report = read_report(make_report(fields), [RETURN_PATH])
    assert report is not None
    assert (kind, status, policy) == (report.kind, report.status, report.policy)


@pytest.mark.parametrize("action", ["delivered", "relayed", "expanded", ""])
def test_report_of_success_is_none(action: str) -> None:
    """A report that the mail went through says nothing against the reader."""
    assert read_report(make_report(f"Action: {action}\nStatus: 2.0.0"), [RETURN_PATH]) is None


def test_report_beyond_ascii_is_read() -> None:
    """Servers that speak SMTPUTF8 write their reports as another type, which counts the same."""
    raw = make_report(
        "Action: failed\nStatus: 5.1.1",
        status_type="message/global-delivery-status",
        original_type="message/global-headers",
    )
    report = read_report(raw, [RETURN_PATH])
    assert report is not None
    assert (ReportKind.HARD, "5.1.1", MESSAGE_ID) == (report.kind, report.status, report.message_id)


def test_report_that_returns_headers_only_names_the_mail() -> None:
    """With RET=HDRS a report returns the header alone; our Message-ID stands in it."""
    report = read_report(make_report("Action: failed\nStatus: 5.1.1", original_type="text/rfc822-headers"))
    assert report is not None
    assert MESSAGE_ID == report.message_id


def test_report_of_exchange_is_read() -> None:
    """Exchange says why in German or whatever, and the status in the fields."""
    note = "Die Nachricht konnte nicht zugestellt werden an mia@kelp.example"
    fields = """\
Action: failed
Status: 5.1.10
Diagnostic-Code: smtp;550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient mia@kelp.example not found by SMTP address lookup
X-Display-Name: Mia"""
    report = read_report(make_report(fields, note=note), [RETURN_PATH])
    assert report is not None
    assert (ReportKind.HARD, "5.1.10") == (report.kind, report.status)
    assert report.diagnostic.startswith("550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient")


QMAIL = f"""\
Hi. This is the qmail-send program at mx.kelp.example.
I'm afraid I wasn't able to deliver your message to the following addresses.
This is a permanent error; I've given up. Sorry it didn't work out.

<mia@kelp.example>:
Sorry, no mailbox here by that name. (#5.1.1)

--- Below this line is a copy of the message.

Return-Path: <{RETURN_PATH}>
From: Reef News <news@reef.example>
Subject: 9.9.9 new papers on user unknown
"""


def test_report_of_qmail_is_read() -> None:
    """A report in plain words is read too, and the mail that it returns does not count as its words."""
    headers = f"Return-Path: <>\nFrom: MAILER-DAEMON@mx.kelp.example\nTo: {RETURN_PATH}\nSubject: failure notice"
    report = read_report(make_mail(headers, QMAIL), [RETURN_PATH])
    assert report is not None
    assert (ReportKind.HARD, TOKEN, "5.1.1", "mia@kelp.example") == (
        report.kind,
        report.token,
        report.status,
        report.recipient,
    )
    assert report.diagnostic == "<mia@kelp.example>: Sorry, no mailbox here by that name. (#5.1.1)"


def test_answer_that_quotes_a_report_is_none() -> None:
    """A person who answers and quotes a report does not lose the digests by it."""
    headers = f"Return-Path: <mia@kelp.example>\nFrom: mia@kelp.example\nTo: {RETURN_PATH}\nSubject: Re: failure"
    assert read_report(make_mail(headers, QMAIL), [RETURN_PATH]) is None


def make_complaint(kind: str, *, sender: str = RETURN_PATH) -> bytes:
    """Return a complaint as mail providers send it (RFC 5965)."""
    return f"""\
From: <abuse@provider.example>
To: <fbl@reef.example>
Subject: FW: 5 new papers
MIME-Version: 1.0
Content-Type: multipart/report; report-type=feedback-report; boundary="B2"

--B2
Content-Type: text/plain

This is an email abuse report.
--B2
Content-Type: message/feedback-report

Feedback-Type: {kind}
User-Agent: Provider/1
Version: 1
Original-Mail-From: <{sender}>
Original-Rcpt-To: <mia@kelp.example>
Original-Envelope-Id: QQ17

--B2
Content-Type: message/rfc822

Return-Path: <{RETURN_PATH}>
From: Reef News <news@reef.example>
Message-ID: {MESSAGE_ID}
Subject: 5 new papers

The news.
--B2--
""".encode()


@pytest.mark.parametrize("kind", ["abuse", "fraud", "virus", "opt-out", "other"])
@pytest.mark.parametrize("sender", [RETURN_PATH, "redacted@provider.example"])
def test_complaint_is_found_by_the_returned_mail(kind: str, sender: str) -> None:
    """A complaint comes to an address without a token; the envelope sender of the mail it returns has it."""
    expected = BounceReport(ReportKind.COMPLAINT, TOKEN, "", kind, MESSAGE_ID, "QQ17", "mia@kelp.example")
    assert expected == read_report(make_complaint(kind, sender=sender), ["fbl@reef.example"])


@pytest.mark.parametrize("kind", ["not-spam", "auth-failure", "dmarc"])
def test_feedback_that_is_no_complaint_is_none(kind: str) -> None:
    """A reader who takes a mail out of the spam folder must not lose the next."""
    assert read_report(make_complaint(kind), ["fbl@reef.example"]) is None


@pytest.mark.parametrize(
    "header",
    [
        "Auto-Submitted: auto-replied",
        "Auto-Submitted: auto-replied (vacation)",
        "X-Autoreply: yes",
        "Precedence: auto_reply",
    ],
)
@pytest.mark.parametrize("address", [RETURN_PATH, f"unsubscribe+{LEAVE}@reef.example"])
def test_vacation_note_is_an_automatic_reply(header: str, address: str) -> None:
    """A vacation note neither counts as a bounce nor ends a subscription, whichever address it came to."""
    raw = make_mail(f"From: mia@kelp.example\nTo: {address}\n{header}\nSubject: Away", "I am away until Monday.")
    report = read_report(raw, [address])
    assert report is not None
    assert ReportKind.AUTO_REPLY == report.kind


@pytest.mark.parametrize(
    "address", [f"unsubscribe+{LEAVE}@reef.example", f"<Unsubscribe+{LEAVE.upper()}@Reef.Example>"]
)
@pytest.mark.parametrize("body", ["", "unsubscribe", "Please remove me.\n\n> 5 new papers"])
def test_mail_to_the_leave_address_unsubscribes(address: str, body: str) -> None:
    """A mail to the address in List-Unsubscribe asks to leave, whatever it says, also after relays folded its case."""
    raw = make_mail("From: mia@kelp.example\nSubject: unsubscribe", body)
    assert BounceReport(ReportKind.UNSUBSCRIBE, LEAVE) == read_report(raw, [address])


def test_mail_to_the_leave_address_without_a_token_has_none() -> None:
    """A mail to the leave address with a broken token is named as such, and has nothing to act on."""
    report = read_report(make_mail("From: mia@kelp.example", ""), ["unsubscribe+abc@reef.example"])
    assert BounceReport(ReportKind.UNSUBSCRIBE) == report


@pytest.mark.parametrize("header", ["Delivered-To", "X-Original-To", "Envelope-To", "To", "Cc"])
def test_address_is_taken_from_the_header_where_the_envelope_is_unknown(header: str) -> None:
    """A mail piped in without its envelope is found by what the delivering program wrote into its header."""
    raw = make_mail(f"{header}: team@reef.example, unsubscribe+{LEAVE}@reef.example", "")
    assert BounceReport(ReportKind.UNSUBSCRIBE, LEAVE) == read_report(raw)


def test_report_to_an_address_without_a_token_has_none() -> None:
    """A forged report to the bare address names a reader and has no token: there is nothing to act on."""
    raw = make_report("Action: failed\nStatus: 5.1.1").replace(RETURN_PATH.encode(), b"bounce@reef.example")
    report = read_report(raw, ["bounce@reef.example"])
    assert report is not None
    assert report.token is None


@pytest.mark.parametrize("raw", [b"", b"\r\n", b"Hello", b"From: mia@kelp.example\r\n\r\nNice papers!\r\n"])
def test_mail_that_is_no_report_is_none(raw: bytes) -> None:
    """A person's mail is left to people."""
    assert read_report(raw, [RETURN_PATH]) is None


def test_words_of_a_report_are_printable_and_short() -> None:
    """What a strange server says can be printed on a terminal and kept in a row."""
    fields = "Action: failed\nStatus: 5.1.1\nDiagnostic-Code: smtp; \x1b[31m\u202e" + "very " * 200
    report = read_report(make_report(fields), [RETURN_PATH])
    assert report is not None
    assert report.diagnostic.startswith("[31m")
    assert report.diagnostic.isprintable()
    assert len(report.diagnostic) <= 200


def test_report_in_front_of_a_huge_mail_is_read() -> None:
    """The report is read although the returned mail behind it is larger than what is looked at."""
    raw = make_report("Action: failed\nStatus: 5.1.1").replace(b"The news.", b"news " * MOST_BYTES)
    report = read_report(raw, [RETURN_PATH])
    assert report is not None
    assert (ReportKind.HARD, MESSAGE_ID) == (report.kind, report.message_id)


def bombs() -> Sequence[tuple[str, bytes]]:
    """Return mails that are expensive to naive readers."""
    nested = b"".join(b'Content-Type: multipart/mixed; boundary="%d"\r\n\r\n--%d\r\n' % (n, n) for n in range(3000))
    return [
        ("nested parts", nested),
        ("nested mails", b"Content-Type: message/rfc822\r\n\r\n" * 5000),
        ("many parts", b'Content-Type: multipart/mixed; boundary="x"\r\n\r\n' + b"--x\r\n\r\na\r\n" * 20_000),
        ("many blocks", make_report("\n\n".join(["Action: failed\nStatus: 5.1.1"] * 5000))),
        ("long field", make_report("Action: failed\nDiagnostic-Code: " + "5.1.1." * 30_000)),
        ("many fields", b"To: a@b.example\r\n" * 15_000),
        ("encoded words", b"Content-Type: =?utf-8?q?" + b"=?=" * 50_000 + b"\r\n\r\n"),
        ("parameters", b"Content-Type: multipart/report;" + b" a*0=b;" * 30_000 + b"\r\n\r\n"),
        ("brackets", b"From: x\r\n\r\nHi. This is the\r\n\r\n" + b"<" * 200_000),
        ("dashes", b"From: x\r\n\r\n" + b"- " * 120_000),
        ("commas", b"To: " + b"+," * 100_000 + b"\r\n\r\n"),
        ("tokens", b"To: " + b"+" + b"a" * 200_000 + b"\r\n\r\n"),
        ("blank lines", b"From: x\r\n\r\n" + b"\r\n" * 120_000),
    ]


@pytest.mark.parametrize(("name", "raw"), bombs(), ids=[name for name, _ in bombs()])
def test_bomb_is_read_in_bounded_time(name: str, raw: bytes) -> None:
    """No mail of a stranger holds up the reading of the next."""
    began = process_time()
    read_report(raw)
    assert process_time() - began < 15


PIECES = st.sampled_from(
    [
        b'Content-Type: multipart/report; boundary="x"\r\n',
        b"Content-Type: message/delivery-status\r\n",
        b"Content-Type: message/global-delivery-status\r\n",
        b"Content-Type: message/feedback-report\r\n",
        b"Content-Type: message/rfc822\r\n",
        b'Content-Type: text/plain; charset="nonsense"\r\n',
        b"Content-Transfer-Encoding: base64\r\n",
        b"Auto-Submitted: auto-replied\r\n",
        b"Action: failed\r\nStatus: 5.1.1\r\nFinal-Recipient: rfc822;\xff\xfe\r\n",
        b"Feedback-Type: abuse\r\n",
        b"--x\r\n",
        b"--x--\r\n",
        b"\r\n",
        b"Hi. This is the qmail\r\n\r\n<\xff>:\r\n",
        b"=?utf-8?q?=0D=0A?=",
        f"To: {RETURN_PATH}\r\n".encode(),
    ]
)


@given(st.lists(PIECES | st.binary(max_size=40), max_size=30), st.lists(st.text(max_size=80), max_size=3))
@settings(max_examples=1500, deadline=None)
def test_reading_never_raises(pieces: list[bytes], addressed_to: list[str]) -> None:
    """Whatever a mail holds, reading it ends with a report or with none, and its words are printable."""
    report = read_report(b"".join(pieces), addressed_to)
    if report is not None:
        words = (report.status, report.diagnostic, report.message_id, report.envelope_id, report.recipient)
        assert all(word.isprintable() and len(word) <= 200 for word in words)
        assert report.token is None or re.fullmatch(r"[a-z0-9_-]+", report.token)


@given(st.data())
@settings(max_examples=300, deadline=None)
def test_report_with_flipped_bytes_never_raises(data: st.DataObject) -> None:
    """A damaged report is read as far as it goes."""
    raw = bytearray(data.draw(st.sampled_from([make_report("Action: failed\nStatus: 5.1.1"), make_complaint("abuse")])))
    for at in data.draw(st.lists(st.integers(0, len(raw) - 1), max_size=20)):
        raw[at] = data.draw(st.integers(0, 255))
    report = read_report(bytes(raw))
    assert report is None or isinstance(report.kind, ReportKind)


def test_report_of_several_recipients_says_the_worst() -> None:
    """Of several recipients in one report the worst counts, and one who got the mail counts not at all."""
    fields = (
        "Action: delivered\nStatus: 2.0.0\n\nFinal-Recipient: rfc822; b@kelp.example\nAction: delayed\nStatus: 4.2.0"
    )
    report = read_report(
        make_report(fields + "\n\nFinal-Recipient: rfc822; c@kelp.example\nAction: failed\nStatus: 5.1.1")
    )
    assert report is not None
    assert (ReportKind.HARD, "c@kelp.example") == (report.kind, report.recipient)


def test_report_in_prose_of_an_html_mail_has_no_words() -> None:
    """A report without a plain text is still a report where a server's own header says so."""
    headers = f"Return-Path: <>\nTo: {RETURN_PATH}\nX-Failed-Recipients: mia@kelp.example\nContent-Type: text/html"
    report = read_report(make_mail(headers, "<p>no</p>"), [RETURN_PATH])
    assert BounceReport(ReportKind.SOFT, TOKEN, recipient="mia@kelp.example") == report
