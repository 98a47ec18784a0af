"""What a digest says of itself: which days, why it comes, when the next one does. Floor 1, pure."""

from __future__ import annotations

from datetime import date, timedelta

from digestd.model.subscription import EachSnapshot, Slot, Subscription
from digestd.phrases import count_noun, full_day, number_word, weekday_day
from digestd.schedule import find_zone, in_words, next_slot


def slot_day(slot: Slot) -> date:
    """Return the local day of a slot."""
    return date.fromisoformat(slot.label[:10])


def digest_period(subscription: Subscription, slot: Slot) -> tuple[date, date]:
    """Return the first and last day of a digest's news: from the day of the one before to the day before this one."""
    before = subscription.high_water_at or subscription.created_at
    day = slot_day(slot)
    since = before.astimezone(find_zone(subscription.zone)).date() if before is not None else day - timedelta(days=1)
    since = min(since, day)
    return since, max(since, day - timedelta(days=1))


def next_line(subscription: Subscription, slot: Slot) -> str:
    """Return when the next digest comes: "The next digest comes on Wednesday, Oct 7."; "" if that is not known."""
    following = next_slot(subscription.schedule, subscription.zone, slot.due_at)
    if following is None:
        return ""
    day = slot_day(following)
    if day == slot_day(slot):
        return f"The next digest comes at {following.label[11:]}."
    return f"The next digest comes on {full_day(day)}."


def why_line(subscription: Subscription) -> str:
    """Return why a reader gets this mail."""
    count = len(subscription.topics)
    topics = "one topic" if count == 1 else f"{number_word(count)} topics"
    return f"You get this mail because you follow {topics} here, {in_words(subscription.schedule, subscription.zone)}."


def catch_up_line(subscription: Subscription, coalesced: int) -> str:
    """Return why a digest covers more than its own period; "" if it does not."""
    if coalesced < 1 or isinstance(subscription.schedule, EachSnapshot):
        return ""
    if subscription.paused_until is not None:
        return f"after your pause until {weekday_day(subscription.paused_until)}"
    return f"because {count_noun(coalesced, 'earlier digest')} could not be made in time"
