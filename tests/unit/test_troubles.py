"""When the operator is told: once, again after a day, when it is over, and never in a flood."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from digestd.model.trouble import KnownTrouble, Trouble
from digestd.troubles import BETWEEN_MAILS, MOST_MAILS, REMIND_AFTER, Look, after_look, may_mail

NOW = datetime(2026, 10, 5, 8, tzinfo=UTC)
BROKEN = Trouble("source Reefs", "broken: the server answered 500")
RELAY = Trouble("relay", "535 authentication failed", is_mail=True)


def look(
    known: tuple[KnownTrouble, ...],
    *found: Trouble,
    after: timedelta = timedelta(0),
    sure: bool = True,
    tell: bool = True,
) -> Look:
    """Return what a look comes to."""
    return after_look(known, found, is_sure=lambda _: sure, now=NOW + after, may_tell=tell)


def names(part: tuple[KnownTrouble, ...]) -> list[str]:
    """Return the names of troubles."""
    return [one.trouble.name for one in part]


def test_trouble_is_told_once_then_each_day_then_as_over() -> None:
    """A trouble is told when it begins, not at the next look, again after a day, and when it is over."""
    first = look((), BROKEN)
    assert (["source Reefs"], (KnownTrouble(BROKEN, NOW, NOW),)) == (names(first.begun), first.kept)
    second = look(first.kept, BROKEN, after=REMIND_AFTER - timedelta(seconds=1))
    assert (False, first.kept) == (second.needs_mail, second.kept)
    third = look(second.kept, BROKEN, after=REMIND_AFTER)
    assert (["source Reefs"], NOW) == (names(third.lasting), third.kept[0].since)
    fourth = look(third.kept, after=REMIND_AFTER + timedelta(hours=1))
    assert (["source Reefs"], ()) == (names(fourth.mended), fourth.kept)


def test_trouble_is_not_over_before_somebody_looked() -> None:
    """After a start, what the process cannot know yet stays as it was."""
    first = look((), BROKEN)
    assert (False, first.kept) == ((second := look(first.kept, sure=False)).needs_mail, second.kept)


def test_trouble_that_comes_and_goes_between_two_mails_is_not_told() -> None:
    """What began and ended while no mail could go tells nobody anything."""
    held = look((), BROKEN, tell=False)
    assert (False, (KnownTrouble(BROKEN, NOW),)) == (held.needs_mail, held.kept)
    assert Look() == look(held.kept)


def test_end_that_could_not_be_told_waits_and_is_taken_back() -> None:
    """An end waits for the next mail; if the trouble is back by then, there is nothing to tell."""
    told = look((), BROKEN).kept
    held = look(told, after=timedelta(minutes=1), tell=False)
    assert (False, NOW + timedelta(minutes=1)) == (held.needs_mail, held.kept[0].mended_at)
    back = look(held.kept, BROKEN, after=timedelta(minutes=2))
    assert (False, told) == (back.needs_mail, back.kept)
    over = look(held.kept, after=timedelta(minutes=20))
    assert (["source Reefs"], NOW + timedelta(minutes=1)) == (names(over.mended), over.mended[0].mended_at)


def test_broken_mail_is_not_told_by_mail_until_it_is_mended() -> None:
    """That mail does not go out is no mail; that it goes out again is one."""
    first = look((), RELAY, tell=False)
    assert (["relay"], False) == (names(first.begun), first.needs_mail)
    assert (["relay"], True) == (names((over := look(first.kept)).mended), over.needs_mail)


@given(
    st.lists(st.tuples(st.sampled_from([(), (BROKEN,), (RELAY,), (BROKEN, RELAY)]), st.integers(1, 600)), max_size=60)
)
def test_operator_gets_few_mails_whatever_flaps(looks: list[tuple[tuple[Trouble, ...], int]]) -> None:
    """No two mails within a quarter of an hour, no more than two dozen in a day, and each trouble told in turn."""
    known: tuple[KnownTrouble, ...] = ()
    now, mails, standing = NOW, list[datetime](), set[str]()
    for found, minutes in looks:
        now += timedelta(minutes=minutes)
        recent = [at for at in mails if at > now - timedelta(days=1)]
        one = after_look(known, found, is_sure=lambda _: True, now=now, may_tell=may_mail(recent, now))
        known = one.kept
        begun, lasting, mended = one.mailed
        assert (set(), True) == (standing & set(names(begun)), set(names(lasting)) <= standing)
        standing |= set(names(begun))
        assert set(names(mended)) <= standing | {"relay"}
        standing -= set(names(mended))
        if one.needs_mail:
            assert all(at + BETWEEN_MAILS <= now for at in recent)
            mails.append(now)
            assert len(recent) < MOST_MAILS
    assert {one.trouble.name for one in known if one.told_at and not one.trouble.is_mail} == standing
