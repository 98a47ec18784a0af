"""The audit: clean after honest work of every kind, and a finding for each thing that was taken away, added or bent."""

from __future__ import annotations

import asyncio
import json
import mailbox
import sqlite3
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from digestd.errors import FetchError
from digestd.filters import parse_rule
from digestd.flows.audit import audit, unaccounted, untold_changes
from digestd.flows.deliver import deliver
from digestd.flows.digest import make_due, make_now
from digestd.flows.kept_mail import count_message_ids
from digestd.flows.subscribe import unfollow
from digestd.model.audit import AuditReport, Cursor, ToldStretch
from digestd.model.delivery import Deferred, DeliveryState, Suppression, Uncertain
from digestd.model.subscription import Filter, First
from digestd.send.maildir import MaildirChannel
from digestd.store import SqlStore, open_store
from tests.followers import Clock, KeepingChannel, add, at, ingest, let_follow, make_kitchen, options, page, start

MONDAY = at("2026-09-28T05:00")
SLOT = at("2026-09-28T07:30")
DAY = timedelta(days=1)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    """A history in which much has happened: two topics, four readers, two mornings, mails in a Maildir."""
    opened = open_store(tmp_path / "history.sqlite")
    play(opened, tmp_path)
    yield opened
    opened.close()


def play(store: SqlStore, folder: Path) -> None:
    """Let two mornings go by."""
    start(store, "Reef Sound", now=MONDAY)
    start(store, "Kelp Forests", now=MONDAY)
    let_follow(store, "ana@example.org", "Reef Sound", "Kelp Forests", now=MONDAY, first=First("latest", 2))
    let_follow(store, "bo@example.org", "Reef Sound", now=MONDAY, schedule="weekly mon 07:30", zone="Europe/Berlin")
    let_follow(store, "cy@example.org", "Kelp Forests", now=MONDAY, schedule="each-snapshot")
    hide = Filter(exclude=(parse_rule("buoys"),))
    let_follow(store, "di@example.org", "Reef Sound", "Kelp Forests", now=MONDAY, hide=hide)
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys", "Kelp Forests"), ("2026-09-27", "Cold Drums"), now=MONDAY)
    make_due(make_kitchen(store), now=SLOT)
    send(store, folder)
    add(store, "Kelp Forests", ("2026-09-29", "Long Blades", "Reef Sound"), now=MONDAY + DAY)
    changed = page("Reef Sound", ("2026-09-28", "Bell Buoys", "Kelp Forests"), ("2026-09-27", "Cold Drums"))
    ingest(store, changed.replace("The outcome differs", "Nothing of it could be repeated, and all"), now=MONDAY + DAY)
    make_due(make_kitchen(store), now=SLOT + DAY)
    send(store, folder, now=SLOT + DAY)


def send(store: SqlStore, folder: Path, *, now: object = None) -> None:
    """Deliver into the Maildir."""
    asyncio.run(deliver(store, MaildirChannel(folder / "mail"), Clock(at(str(now or SLOT))), options()))


def tamper(store: SqlStore, *statements: str) -> None:
    """Change rows behind the store's back, with every guard of the database off."""
    with store.transaction():
        store.engine.query("DROP TRIGGER IF EXISTS ledger_append_only")
        for statement in statements:
            store.engine.query(statement)


def look(store: SqlStore) -> AuditReport:
    """Audit on the third morning."""
    return audit(store, now=SLOT + 2 * DAY)


def codes(report: AuditReport) -> set[str]:
    """Return the rules that are broken."""
    return {finding.code for finding in report.findings}


# -- honest work is clean


def test_audit_is_clean_after_two_mornings(store: SqlStore) -> None:
    """Welcome, filter, other schedules, a paper in two topics, a revision: all is accounted for."""
    report = look(store)
    assert [] == [str(finding) for finding in report.findings]
    assert report.clean
    assert {"A2", "A3", "A4", "A5", "A6", "A7", "A8", "A10"} == {check.code for check in report.checks}
    sample = next(check for check in report.checks if check.what.startswith("what was sent can be built"))
    assert store.outbox.counts()[DeliveryState.ACCEPTED] == sample.looked_at > 4


def test_audit_is_clean_where_a_reader_came_before_the_first_page(tmp_path: Path) -> None:
    """A reader who follows a topic before any page of it is read gets the welcome that was asked for, which is no fault."""
    store = open_store(tmp_path / "history.sqlite")
    let_follow(store, "ana@example.org", "Reef Sound", now=MONDAY, first=First("latest", 2))
    start(store, "Reef Sound", now=MONDAY)
    make_due(make_kitchen(store), now=SLOT)
    (welcome,) = store.accounts.stretches([1])[1]
    report = look(store)
    store.close()
    assert (2, []) == (len(welcome.papers), [str(finding) for finding in report.findings])


def test_audit_of_an_empty_history_is_clean(tmp_path: Path) -> None:
    """A history in which nothing has happened is in order."""
    store = open_store(tmp_path / "empty.sqlite")
    assert audit(store, now=MONDAY, kept=Counter()).clean
    store.close()


def test_audit_is_clean_after_changes_of_mind(store: SqlStore) -> None:
    """Topics dropped and taken up again, a digest by hand, a reader who leaves: nothing is missed, nothing is foreign."""
    ana = store.subscriptions.find_reader("ana@example.org")
    cy = store.subscriptions.find_reader("cy@example.org")
    assert ana is not None
    assert cy is not None
    now = SLOT + DAY
    unfollow(store, ana, ["Reef Sound"], now=now)
    add(store, "Reef Sound", ("2026-09-29", "Dull Horns"), now=now)
    let_follow(store, "ana@example.org", "Reef Sound", "Kelp Forests", now=now)
    unfollow(store, cy, [], now=now)
    add(store, "Reef Sound", ("2026-09-30", "Evening Choirs"), ("2026-09-29", "Dull Horns"), now=now)
    (subscription,) = store.subscriptions.subscriptions(reader=ana.key)
    make_now(make_kitchen(store), subscription, now=now + timedelta(hours=1))
    make_due(make_kitchen(store), now=SLOT + 2 * DAY)
    assert [] == [str(finding) for finding in look(store).findings]


def test_audit_is_clean_after_a_filter_hides_what_was_told(store: SqlStore) -> None:
    """A paper told under one topic, met in another one behind a new filter, is passed over as told before."""
    hide = Filter(exclude=(parse_rule("long blades"),))
    let_follow(
        store, "cy@example.org", "Kelp Forests", "Tide Gauges", now=SLOT + DAY, schedule="each-snapshot", hide=hide
    )
    start(store, "Tide Gauges", now=SLOT + DAY)
    news = page("Tide Gauges", ("2026-09-29", "Long Blades"), ("2026-09-20", "Tide Gauges Note 0"))
    ingest(store, news, now=SLOT + DAY)
    make_due(make_kitchen(store), now=SLOT + DAY + timedelta(hours=1))
    assert [] == [str(finding) for finding in look(store).findings]


def test_audit_is_clean_after_a_change_is_taken_back(store: SqlStore) -> None:
    """A revision that was undone before the next digest is passed over, and that is on record."""
    (known,) = (row.known for row in store.history.papers("reef-sound") if row.known.paper.title == "Bell Buoys")
    for before, after in (("first words", "other words"), ("other words", "first words")):
        (row,) = store.engine.query(
            """INSERT INTO ledger (kind, paper_id, via, seen_at) VALUES ('revision', :paper, 'page', '2026-09-29')
            RETURNING position""",
            {"paper": known.key},
        )
        sql = "INSERT INTO revision (position, changes, told) VALUES (:position, :changes, 1)"
        store.engine.query(sql, {"position": row["position"], "changes": json.dumps([["abstract", before, after]])})
    make_due(make_kitchen(store), now=SLOT + 2 * DAY)
    ana = next(one for one in store.subscriptions.subscriptions() if one.reader.address == "ana@example.org")
    assert ana.key is not None
    (newest, *_) = store.subscriptions.digests(ana.key)
    assert ((row["position"], "changed back"),) == store.subscriptions.digest(newest.key).passed_over
    assert not newest.mailed
    assert [] == [str(finding) for finding in look(store).findings]


def test_audit_writes_nothing(store: SqlStore, tmp_path: Path) -> None:
    """An audit leaves the history as it was, and goes on beside a writer that holds it."""
    before = dump(tmp_path)
    other = sqlite3.connect(tmp_path / "history.sqlite", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    assert look(store).clean
    other.execute("ROLLBACK")
    other.close()
    assert before == dump(tmp_path)


def dump(folder: Path) -> list[str]:
    """Return all that a history holds."""
    with sqlite3.connect(folder / "history.sqlite") as conn:
        rows = [line for line in conn.iterdump() if "paper_fts" not in line]
    conn.close()
    return rows


# -- what is bent is found

BENT = {
    "a sighting taken away": (
        "A2",
        "PRAGMA defer_foreign_keys=ON",
        "DELETE FROM ledger WHERE kind = 'baseline' AND position = (SELECT MIN(position) FROM ledger)",
    ),
    "a topic's number": ("A2", "UPDATE topic SET known = known + 1 WHERE slug = 'reef-sound'"),
    "a day's number": ("A2", "UPDATE topic_day SET papers = papers - 1 WHERE day = '2026-09-28'"),
    "a double that is none": ("A2", "UPDATE ledger SET dup_of = 1 WHERE position = (SELECT MAX(position) FROM ledger)"),
    "an item taken away": (
        "A3",
        "DELETE FROM told_item WHERE id = (SELECT MAX(id) FROM told_item WHERE section = 'new')",
    ),
    "a revision not told": ("A3", "DELETE FROM told_item WHERE once = 'revision'"),
    "a reason taken away": ("A3", "DELETE FROM passed_over"),
    "an item of another topic": ("A3", "UPDATE told_item SET topic_id = 3 - topic_id WHERE section = 'new'"),
    "an item of another paper": (
        "A3",
        "UPDATE told_item SET paper_id = 1 WHERE id = (SELECT MAX(id) FROM told_item WHERE section = 'new')",
    ),
    "a baseline told": (
        "A3",
        "UPDATE ledger SET kind = 'baseline' WHERE position IN (SELECT position FROM told_item WHERE section = 'new')",
    ),
    "a row passed over and told": (
        "A3",
        "INSERT INTO passed_over SELECT digest_id, position, 'hidden' FROM told_item WHERE once = 'paper'",
    ),
    "a cursor moved back": ("A3", "UPDATE subscription SET told_upto = told_upto - 1"),
    "a cursor beyond the ledger": ("A3", "UPDATE subscription SET told_upto = 9999"),
    "two stretches over each other": (
        "A3",
        "UPDATE digest SET after_position = 0 WHERE id = (SELECT MAX(id) FROM digest)",
    ),
    "a mail taken away": (
        "A4",
        "DELETE FROM attempt WHERE outbox_id = 1",
        "DELETE FROM outbox WHERE id = 1",
    ),
    "a slot taken away": ("A4", "DELETE FROM slot WHERE digest_key IS NOT NULL"),
    "a covering slot that is not there": ("A4", "UPDATE slot SET coalesced_into = '2026-01-01T07:30'"),
    "a slot of the future": ("A4", "UPDATE slot SET due_at = '2027-01-01T00:00:00.000000Z'"),
    "a reader never due": ("A4", "UPDATE subscription SET next_due_at = NULL"),
    "a digest taken for a note": ("A4", "UPDATE digest SET mailed = 0 WHERE id = 1"),
    "a state that is none": ("A5", "UPDATE outbox SET state = 'claimed' WHERE id = 1"),
    "an answer that is no yes": ("A6", "UPDATE outbox SET reply_code = 450 WHERE id = 1"),
    "an accepted mail without a hash": ("A6", "UPDATE outbox SET sha256 = NULL WHERE id = 1"),
    "other bytes": ("A6", "UPDATE outbox SET other_bytes = 1 WHERE id = 1"),
    "other words in the mail": ("A6", "UPDATE outbox SET fields = replace(fields, 'Reef Papers', 'Weed Papers')"),
    "damaged content": ("A6", "UPDATE content SET body = x'00'"),
    "a suppression before a mail": (
        "A7",
        "INSERT INTO suppression (address, scope, reason, at, evidence) "
        "VALUES ('ana@example.org', 'all', 'bounced', '2026-09-28T07:00:00.000000Z', '')",
    ),
    "an uncertain mail without its flag": (
        "A8",
        "UPDATE attempt SET outcome = 'uncertain' WHERE id = 1",
    ),
    "a flag without a reason": ("A8", "UPDATE outbox SET flagged = 1 WHERE id = 1"),
    "a mail accepted twice": (
        "A8",
        "INSERT INTO attempt SELECT NULL, outbox_id, number, outcome, owner, dot_at, ended_at, reply_code, reply_text, why, "
        "sha256 FROM attempt WHERE id = 1",
    ),
}


@pytest.mark.parametrize("what", BENT)
def test_audit_finds_what_was_bent(store: SqlStore, what: str) -> None:
    """Whatever row is taken away, added or changed, the rule that it breaks is named with the thing in one line."""
    code, *statements = BENT[what]
    if "PRAGMA" in statements[0]:
        store.engine.query("PRAGMA foreign_keys=OFF")
        statements = statements[1:]
    tamper(store, *statements)
    report = look(store)
    assert code in codes(report), [str(finding) for finding in report.findings]
    assert not report.clean
    assert all("\n" not in str(finding) and ": expected " in str(finding) for finding in report.findings)


def test_audit_finds_rows_that_point_nowhere(store: SqlStore) -> None:
    """What SQLite itself finds wrong is a finding too."""
    store.engine.query("PRAGMA foreign_keys=OFF")
    tamper(store, "UPDATE follow SET topic_id = 77 WHERE place = 0")
    assert "A10" in codes(look(store))


def test_audit_finds_a_setting_that_promises_nothing(store: SqlStore) -> None:
    """A connection that does not wait for the disk is a finding."""
    store.engine.query("PRAGMA synchronous=OFF")
    assert ["A10 PRAGMA synchronous: expected 2 (FULL), found 0"] == [str(finding) for finding in look(store).findings]


def test_audit_names_the_first_findings_and_counts_all(store: SqlStore) -> None:
    """A flood of findings of one rule is cut in what is listed, never in the count."""
    tamper(
        store,
        "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 250) "
        "INSERT INTO slot SELECT 1, 'x' || i, '2026-09-28T07:30:00.000000Z', 'nothing', NULL FROM n",
    )
    check = next(check for check in look(store).checks if check.what.startswith("a slot names"))
    assert (100, 250) == (len(check.findings), check.total)


# -- the outbox's doubts


def test_uncertain_mails_are_counted_not_hidden(store: SqlStore) -> None:
    """A mail that may have been taken is a number and a note; that is no finding."""
    add(store, "Reef Sound", ("2026-09-30", "Evening Choirs"), now=SLOT + DAY)
    make_due(make_kitchen(store), now=SLOT + 2 * DAY)

    async def lose(_: object) -> Uncertain:
        return Uncertain("the line went dead")

    channel = KeepingChannel(at_dot=lose)
    asyncio.run(deliver(store, channel, Clock(SLOT + 2 * DAY), options(on_uncertain="hold")))
    report = look(store)
    assert [] == [str(finding) for finding in report.findings]
    assert 0 < report.doubt.opened == report.doubt.held
    assert any("duplicates are possible" in note for note in report.notes)


def test_mail_accepted_by_hand_needs_no_reply(store: SqlStore) -> None:
    """What a person settled after a look into the relay's log is accepted on that word."""
    add(store, "Reef Sound", ("2026-09-30", "Evening Choirs"), now=SLOT + DAY)
    make_due(make_kitchen(store), now=SLOT + 2 * DAY)
    channel = KeepingChannel(outcome=lambda _: Deferred("not now"))
    asyncio.run(deliver(store, channel, Clock(SLOT + 2 * DAY), options()))
    for row in store.outbox.deliveries(state=DeliveryState.READY):
        store.outbox.set_state(row.key, DeliveryState.ACCEPTED, why="by hand", now=SLOT + 2 * DAY)
    assert [] == [str(finding) for finding in look(store).findings]


def test_mail_sent_while_the_reader_left_is_within_grace(store: SqlStore) -> None:
    """A suppression that was asked for while a mail went out, and stood a moment later, is no fault."""
    store.outbox.suppress(Suppression("ana@example.org", "all", "bounced", SLOT + DAY - timedelta(seconds=5)))
    assert "A7" not in codes(look(store)), [str(finding) for finding in look(store).findings]


def test_audit_says_how_long_mail_has_waited(store: SqlStore) -> None:
    """The oldest mail that is ready is told."""
    add(store, "Reef Sound", ("2026-09-30", "Evening Choirs"), now=SLOT + DAY)
    make_due(make_kitchen(store), now=SLOT + 2 * DAY)
    report = audit(store, now=SLOT + 5 * DAY)
    assert "the oldest delivery that is ready has been due for 3 days" in report.notes


# -- against what was kept


def against(store: SqlStore, path: Path) -> AuditReport:
    """Audit against a folder or file of mails."""
    kept, unnamed = count_message_ids(path)
    return audit(store, now=SLOT + 2 * DAY, kept=kept, unnamed=unnamed)


def test_maildir_and_outbox_agree(store: SqlStore, tmp_path: Path) -> None:
    """All that was accepted is kept, nothing else is, and nothing twice."""
    report = against(store, tmp_path / "mail")
    assert [] == [str(finding) for finding in report.findings]
    assert report.kept is not None
    assert (store.outbox.counts()[DeliveryState.ACCEPTED], 0, 0) == (
        report.kept.mails,
        report.kept.unnamed,
        report.kept.doubled,
    )


def test_mail_that_was_not_kept_is_found(store: SqlStore, tmp_path: Path) -> None:
    """An accepted mail that the relay does not have is lost."""
    sorted((tmp_path / "mail" / "new").iterdir())[0].unlink()
    (finding,) = against(store, tmp_path / "mail").findings
    assert ("A11", "not kept") == (finding.code, finding.found)


def test_mail_that_was_never_sent_is_found(store: SqlStore, tmp_path: Path) -> None:
    """A mail that we know nothing of, and one that we think failed, are both findings."""
    (tmp_path / "mail" / "new" / "stray").write_bytes(b"Message-ID: <stray@example.org>\r\n\r\nhello\r\n")
    (tmp_path / "mail" / "new" / "bare").write_bytes(b"Subject: no name\r\n\r\nhello\r\n")
    tamper(store, "UPDATE outbox SET state = 'failed' WHERE id = 1")
    report = against(store, tmp_path / "mail")
    assert ["kept, and here failed", "kept, and not in the outbox"] == [finding.found for finding in report.findings]
    assert report.kept is not None
    assert 1 == report.kept.unnamed


def test_mail_kept_twice_must_be_flagged(store: SqlStore, tmp_path: Path) -> None:
    """A double of a mail that was uncertain once is accounted for; any other is a finding."""
    first = sorted((tmp_path / "mail" / "new").iterdir())[0]
    (first.parent / "again").write_bytes(first.read_bytes())
    (finding,) = against(store, tmp_path / "mail").findings
    assert "kept 2 times, never uncertain" == finding.found
    key = finding.thing.split()[1]
    tamper(
        store,
        f"UPDATE outbox SET flagged = 1, resent = 1 WHERE id = {key}",
        "INSERT INTO attempt (outbox_id, number, outcome, dot_at, ended_at, why) "
        f"SELECT id, 1, 'uncertain', created_at, created_at, '' FROM outbox WHERE id = {key}",
    )
    assert against(store, tmp_path / "mail").clean


def test_mbox_is_read_mail_by_mail(store: SqlStore, tmp_path: Path) -> None:
    """A sink's one file says the same as a folder, also with lines in it that begin like a new mail."""
    box = mailbox.mbox(tmp_path / "sink")
    for file in sorted((tmp_path / "mail" / "new").iterdir()):
        box.add(file.read_bytes() + b"\r\n\r\nFrom here on it is quiet.\r\n")
    box.flush()
    box.close()
    report = against(store, tmp_path / "sink")
    assert [] == [str(finding) for finding in report.findings]


def test_single_mail_is_a_file_too(tmp_path: Path) -> None:
    """A file that is one mail counts as that, folded header and all."""
    (tmp_path / "one.eml").write_bytes(
        b"Subject: a\r\nMessage-Id:\r\n <one@example.org>\r\n\r\nMessage-ID: <no@example.org>\r\n"
    )
    assert (Counter({"<one@example.org>": 1}), 0) == count_message_ids(tmp_path / "one.eml")


def test_missing_sink_is_an_error(tmp_path: Path) -> None:
    """A path that is not there is said, not taken for an empty one."""
    with pytest.raises(FetchError, match="expected a Maildir"):
        count_message_ids(tmp_path / "nothing")


# -- the accounting itself


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_every_sighting_left_out_is_found(data: st.DataObject) -> None:
    """Whatever digests cut a ledger into stretches: a sighting is missing if and only if no digest accounts for it."""
    head = data.draw(st.integers(1, 30))
    papers = data.draw(st.lists(st.integers(1, 8), min_size=head, max_size=head))
    cuts = sorted(data.draw(st.sets(st.integers(1, head), max_size=5)) | {head})
    begun = data.draw(st.integers(0, head))
    left_out = data.draw(st.sets(st.integers(1, head)))
    told: list[ToldStretch] = []
    for after, upto in zip([0, *cuts], cuts, strict=False):
        kept = frozenset(position for position in range(after + 1, upto + 1) if position not in left_out)
        told.append(ToldStretch(f"d{upto}", after, upto, positions=kept))
    news = {"t": (list(range(1, head + 1)), papers)}
    cursor = Cursor(1, "abc", head, (("t", begun),))
    expected = [("t", position) for position in sorted(left_out) if position > begun]
    assert expected == list(unaccounted(cursor, told, news))


def test_paper_told_under_another_topic_accounts_for_both_sightings() -> None:
    """One telling in the same digest accounts for a paper's sightings in all topics; one in another digest does not."""
    told = [
        ToldStretch("d1", 0, 4, frozenset({3}), frozenset({7})),
        ToldStretch("d2", 4, 9, frozenset({5}), frozenset({8})),
    ]
    news = {"a": ([3], [7]), "b": ([4, 6], [7, 7])}
    cursor = Cursor(1, "abc", 9, (("a", 0), ("b", 0)))
    assert [("b", 6)] == list(unaccounted(cursor, told, news))


def test_change_is_due_only_after_its_paper_was_told() -> None:
    """A change before or with the first telling is no news; one after it must be told, once for a whole stretch."""
    told = [
        ToldStretch("d1", 0, 4, frozenset({2}), frozenset({7})),
        ToldStretch("d2", 4, 9, frozenset({8}), frozenset()),
        ToldStretch("d3", 9, 12, frozenset(), frozenset()),
    ]
    cursor = Cursor(1, "abc", 12, ())
    assert [11] == list(untold_changes(cursor, told, {7: [3, 6, 8, 11, 13], 9: [5]}))


def test_a_first_digest_may_tell_a_baseline_that_came_after_its_reader(tmp_path: Path) -> None:
    """Somebody who follows a topic before its first page was read, and asks for the latest papers, gets them: no finding."""
    store = open_store(tmp_path / "early.sqlite")
    let_follow(store, "ana@example.org", "Reef Sound", now=MONDAY, first=First("latest", 2))
    ingest(store, page("Tide Gauges", ("2026-09-20", "Low Water", "Reef Sound")), now=MONDAY)
    start(store, "Reef Sound", now=MONDAY)
    assert [True] == [
        one.made is not None and one.made.digest is not None for one in make_due(make_kitchen(store), now=SLOT)
    ]
    assert audit(store, now=SLOT).clean
    store.close()
