"""Why a reader was told of a paper, or was not; and what exactly was sent."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path

import pytest

from digestd.errors import NotFoundError, StoreError
from digestd.filters import parse_rule
from digestd.flows.deliver import deliver
from digestd.flows.digest import make_due
from digestd.flows.replay import replay
from digestd.flows.subscribe import pause, unfollow
from digestd.flows.why import Explanation, explain, find_paper
from digestd.model.delivery import Refused, Reply, Suppression
from digestd.model.subscription import Filter
from digestd.store import SqlStore, open_store
from tests.followers import Clock, KeepingChannel, add, at, ingest, let_follow, make_kitchen, options, page, start

MONDAY = at("2026-09-28T05:00")
SLOT = at("2026-09-28T07:30")
DAY = timedelta(days=1)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqlStore]:
    """Two topics and a reader of one of them, whom nothing was told yet."""
    opened = open_store(tmp_path / "history.sqlite")
    start(opened, "Reef Sound", now=MONDAY)
    start(opened, "Kelp Forests", now=MONDAY)
    let_follow(opened, "ana@example.org", "Reef Sound", now=MONDAY, zone="Europe/Berlin")
    yield opened
    opened.close()


def why(store: SqlStore, title: str, address: str = "ana@example.org", *, now: object = SLOT) -> Explanation:
    """Explain the one paper of this title."""
    (paper,) = find_paper(store, title)
    return explain(store, paper, address, now=at(str(now)))


def told_words(explained: Explanation) -> list[str]:
    """Return what is said of tellings and of the lack of them, in order."""
    return [
        words for verdict in explained.verdicts for words in (*(told.words for told in verdict.told), *verdict.reasons)
    ]


def send(store: SqlStore, channel: KeepingChannel | None = None, *, now: object = SLOT) -> KeepingChannel:
    """Make what is due and hand it to a channel."""
    make_due(make_kitchen(store), now=at(str(now)))
    used = channel or KeepingChannel()
    asyncio.run(deliver(store, used, Clock(at(str(now))), options()))
    return used


# -- which paper is meant


@pytest.mark.parametrize(
    "text",
    [
        "2609.01234",
        "arXiv:2609.01234v2",
        "https://arxiv.org/abs/2609.01234v3",
        "10.1234/reef.77",
        "https://doi.org/10.1234/REEF.77",
        "https://papers.example.org/reef/77/?utm_source=mail",
        "Bell Buoys",
        "bell buoys!",
        "buoys",
    ],
)
def test_paper_is_found_by_any_of_its_names(store: SqlStore, text: str) -> None:
    """Number, DOI, link, title or words of it: each leads to the paper."""
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=MONDAY)
    (known,) = find_paper(store, "Bell Buoys")
    names = ("arxiv:2609.01234", "doi:10.1234/reef.77", "url:papers.example.org/reef/77")
    for name in names:
        args = {"name": name, "key": known.key}
        store.engine.query("INSERT INTO paper_name (name, paper_id) VALUES (:name, :key)", args)
    assert [known.key] == [found.key for found in find_paper(store, text)]
    assert [known.key] == [found.key for found in find_paper(store, known.public_id.upper())]


def test_words_that_fit_several_papers_name_them_all(store: SqlStore) -> None:
    """Ambiguous words are not decided in silence; a whole title is none of them."""
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), ("2026-09-27", "Bell Buoys at Night"), now=MONDAY)
    assert {"Bell Buoys", "Bell Buoys at Night"} == {known.paper.title for known in find_paper(store, "bell")}
    assert ["Bell Buoys"] == [known.paper.title for known in find_paper(store, "bell buoys")]
    assert [] == list(find_paper(store, "xylophones"))
    assert [] == list(find_paper(store, "?!"))


def test_name_of_a_merged_paper_leads_to_the_one_that_was_kept(store: SqlStore) -> None:
    """A public id that was given out stays good after two records turned out to be one."""
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), ("2026-09-27", "Cold Drums"), now=MONDAY)
    kept, gone = (find_paper(store, title)[0] for title in ("Bell Buoys", "Cold Drums"))
    args = {"kept": kept.key, "gone": gone.key}
    store.engine.query("UPDATE ledger SET dup_of = 1 WHERE paper_id = :gone", {"gone": gone.key})
    store.engine.query("UPDATE paper SET merged_into = :kept WHERE id = :gone", args)
    assert [kept.key] == [known.key for known in find_paper(store, gone.public_id)]


# -- what the reader was told


def test_paper_that_was_told_names_digest_section_and_mail(store: SqlStore) -> None:
    """The digest's day in the reader's zone, the section, the topic, and that the relay took the mail."""
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=MONDAY)
    send(store)
    explained = why(store, "Bell Buoys")
    assert [
        "told in the digest of Mon, Sep 28, 2026, as new, under Reef Sound; its mail was accepted at 09:30 on Mon, Sep 28"
    ] == told_words(explained)
    (seen,) = explained.seen
    assert ("reef-sound", "new", "published Sep 28, 2026, and not seen there before") == (
        seen.topic.slug,
        str(seen.row.kind),
        seen.why,
    )


def test_paper_that_is_not_told_yet_waits_for_a_slot(store: SqlStore) -> None:
    """What the next digest will tell names its day and hour, in the reader's zone."""
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=MONDAY)
    (words,) = told_words(why(store, "Bell Buoys", now=MONDAY))
    assert "Reef Sound: waits for the next slot, Mon, Sep 28 at 07:30, Europe/Berlin" == words
    ana = store.subscriptions.find_reader("ana@example.org")
    assert ana is not None
    pause(store, ana, date(2026, 10, 5), now=MONDAY)
    (words,) = told_words(why(store, "Bell Buoys", now=MONDAY))
    assert "Mon, Oct 5 at 07:30, Europe/Berlin (paused until Mon, Oct 5)" in words


def test_slot_that_is_late_is_said_to_be_due(store: SqlStore) -> None:
    """A digest that nobody made yet is not passed off as one of the future."""
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=MONDAY)
    (words,) = told_words(why(store, "Bell Buoys", now=SLOT))
    assert words.endswith("Europe/Berlin, which is due")


def test_mail_that_failed_says_why(store: SqlStore) -> None:
    """A paper in a digest whose mail was refused was not read; the relay's words are there, and the suppression."""
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=MONDAY)
    send(store, KeepingChannel(outcome=lambda _: Refused(Reply(550, "5.1.1 no such user"), suppress=True)))
    explained = why(store, "Bell Buoys")
    (words,) = told_words(explained)
    assert words.endswith("its mail failed at 09:30 on Mon, Sep 28: refused (550 5.1.1 no such user)")
    assert ["bounced"] == [one.reason for one in explained.suppressions]


def test_mail_to_a_suppressed_address_was_not_sent(store: SqlStore) -> None:
    """A digest made for one who had left is on record as not sent."""
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=MONDAY)
    store.outbox.suppress(Suppression("ana@example.org", "all", "complained", MONDAY))
    send(store)
    (words,) = told_words(why(store, "Bell Buoys"))
    assert "its mail was not sent: suppressed before it was made" in words


def test_paper_hidden_by_a_filter_names_the_rule(store: SqlStore) -> None:
    """Before the digest it says what will be, after it what was."""
    hide = Filter(exclude=(parse_rule("buoys"),))
    let_follow(store, "bo@example.org", "Reef Sound", now=MONDAY, hide=hide)
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=MONDAY)
    assert ["Reef Sound: will be passed over: excluded by 'buoys'"] == told_words(
        why(store, "Bell Buoys", "bo@example.org")
    )
    send(store)
    assert ["Reef Sound: passed over in the digest of Mon, Sep 28: hidden, excluded by 'buoys'"] == told_words(
        why(store, "Bell Buoys", "bo@example.org")
    )


def test_paper_of_the_baseline_is_told_to_nobody(store: SqlStore) -> None:
    """What the first page of a topic showed was there before."""
    explained = why(store, "Reef Sound Note 1")
    assert ["Reef Sound: not told: it was there before the topic was watched"] == told_words(explained)
    assert ["it was there when the topic was first seen"] == [seen.why for seen in explained.seen]


def test_paper_from_before_the_reader_came(store: SqlStore) -> None:
    """A reader who comes later is told from then on."""
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=MONDAY)
    let_follow(store, "bo@example.org", "Reef Sound", now=MONDAY)
    assert ["Reef Sound: not told: it was seen before the reader followed the topic"] == told_words(
        why(store, "Bell Buoys", "bo@example.org")
    )


def test_paper_of_a_topic_that_is_not_followed(store: SqlStore) -> None:
    """Topics in which a paper was seen are named to those who follow none of them."""
    add(store, "Kelp Forests", ("2026-09-28", "Long Blades"), now=MONDAY)
    assert ["the reader follows no topic in which it is seen (Kelp Forests)"] == told_words(why(store, "Long Blades"))


def test_paper_of_an_older_page_is_backfill(store: SqlStore) -> None:
    """An older page that comes later is known and told to nobody."""
    ingest(store, page("Reef Sound", ("2026-07-02", "Old Shoals"), ("2026-07-01", "Old Sands")), now=MONDAY)
    explained = why(store, "Old Shoals")
    assert ["backfill"] == [str(seen.row.kind) for seen in explained.seen]
    assert ["Reef Sound: not told: it is older than the topic's start"] == told_words(explained)


def test_reader_who_left_and_came_back_has_both_stories(store: SqlStore) -> None:
    """What the ended subscription was told is not forgotten."""
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=MONDAY)
    send(store)
    ana = store.subscriptions.find_reader("ana@example.org")
    assert ana is not None
    unfollow(store, ana, [], now=SLOT)
    assert 1 == len(told_words(why(store, "Bell Buoys")))
    let_follow(store, "ana@example.org", "Reef Sound", now=SLOT + DAY)
    past, present = told_words(why(store, "Bell Buoys"))
    assert past.startswith("told in the digest of Mon, Sep 28")
    assert "Reef Sound: not told: it was seen before the reader followed the topic" == present
    (ended,) = told_words(why(store, "Reef Sound Note 1"))[:1]
    assert "Reef Sound: not told: it was there before the topic was watched" == ended


def test_unknown_reader_is_an_error(store: SqlStore) -> None:
    """Nothing is explained to nobody."""
    with pytest.raises(NotFoundError, match=r"no-one@example\.org"):
        why(store, "Reef Sound Note 1", "no-one@example.org")


# -- what was sent


def test_replay_is_what_was_sent(store: SqlStore) -> None:
    """The mail built again has the bytes that the channel was given, text and HTML too."""
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=MONDAY)
    (message,) = send(store).kept
    (row,) = store.outbox.deliveries()
    for name in (row.digest_key, str(row.key)):
        found = replay(store, name)
        assert message.body == found.body
        assert found.same
        assert hashlib.sha256(message.body).hexdigest() == found.sha256
    assert "Bell Buoys" in (found.part("plain") or "")
    assert "<html" in (found.part("html") or "")


def test_replay_of_what_was_not_sent_says_so(store: SqlStore) -> None:
    """A mail that waits can be read, and is not passed off as sent."""
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=MONDAY)
    make_due(make_kitchen(store), now=SLOT)
    assert replay(store, "1").same is None


def test_replay_sees_other_bytes(store: SqlStore) -> None:
    """A row that was changed since does not pass for what was sent."""
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=MONDAY)
    send(store)
    store.engine.query("UPDATE outbox SET fields = replace(fields, 'Reef Papers', 'Weed Papers')")
    assert replay(store, "1").same is False
    store.engine.query("UPDATE content SET body = x'00'")
    with pytest.raises(StoreError, match="damaged"):
        replay(store, "1")


def test_replay_of_a_digest_without_mail(store: SqlStore) -> None:
    """A digest that had nothing to tell is on record, and says so; one that never was is not found."""
    hide = Filter(exclude=(parse_rule("buoys"),))
    bo = let_follow(store, "bo@example.org", "Reef Sound", now=MONDAY, hide=hide).subscription
    add(store, "Reef Sound", ("2026-09-28", "Bell Buoys"), now=MONDAY)
    make_due(make_kitchen(store), now=SLOT)
    with pytest.raises(NotFoundError, match="nothing to tell: it passed over 1 of"):
        replay(store, f"{bo.public_id}|2026-09-28T07:30")
    with pytest.raises(NotFoundError):
        replay(store, "nothing|2026-09-28T07:30")
