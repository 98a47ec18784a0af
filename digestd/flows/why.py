"""Why a reader was told of a paper, or was not. Floor 4. Entry points: :func:`find_paper`, :func:`explain`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from digestd.errors import NotFoundError
from digestd.filters import hidden_because
from digestd.flows.preview import TOLD
from digestd.identity import title_print
from digestd.model.audit import Passing, SeenWhere, Telling
from digestd.model.delivery import Delivery, DeliveryState, Suppression
from digestd.model.paper import KnownPaper
from digestd.model.snapshot import Kind, LedgerRow
from digestd.model.subscription import EachSnapshot, Reader, Subscription, SubscriptionState
from digestd.model.topic import Topic
from digestd.parse.links import arxiv_number, doi_of, ids_of_doi, ids_of_link, normalise_url
from digestd.phrases import full_day, weekday_day
from digestd.ports import Store
from digestd.schedule import find_zone, in_words

#: papers that are named where words fit several
MOST_CANDIDATES = 10

_SECTIONS = {
    "new": "as new",
    "rest": "as new, over the budget: by title",
    "tagged": "as newly tagged",
    "tagged_rest": "as newly tagged, over the budget: by title",
    "revised": "as revised",
    "withdrawn": "as withdrawn",
}


@dataclass(frozen=True, slots=True)
class Seen:
    """A sighting, in words."""

    row: LedgerRow
    topic: Topic
    where: SeenWhere
    why: str


@dataclass(frozen=True, slots=True)
class Told:
    """A telling, with what became of its mail."""

    telling: Telling
    topic: Topic | None
    delivery: Delivery | None
    words: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one subscription was told of a paper, or why not."""

    subscription: Subscription
    told: tuple[Told, ...]
    reasons: tuple[str, ...]  #: why not, one for each sighting in a followed topic, or one for all


@dataclass(frozen=True, slots=True)
class Explanation:
    """All that is known of one paper and one reader."""

    paper: KnownPaper
    seen: tuple[Seen, ...]
    reader: Reader
    verdicts: tuple[Verdict, ...]
    suppressions: tuple[Suppression, ...] = ()


def find_paper(store: Store, text: str) -> Sequence[KnownPaper]:
    """Return the papers that a text names: one if it is a name, several if words of a title fit several; none may be.

    Args:
        store: the history.
        text: public id, arXiv number with or without version, DOI, link, or words.
    """
    text = text.strip()
    keys = store.accounts.find_papers([text.casefold(), *_names(text)])
    if keys:
        return [known for key in keys if (known := _known(store, key)) is not None]
    found = store.history.search(text, limit=200)
    exact = [known for known in found if title_print(known.paper.title) == title_print(text)]
    return exact or found


def _names(text: str) -> list[str]:
    """Return what a text may be as the name of a paper."""
    names: list[str] = []
    number, _ = arxiv_number(text)
    if number is not None:
        names.append(f"arxiv:{number}")
    doi = doi_of(text)
    if doi is not None:
        names += [f"doi:{doi}", *map(str, ids_of_doi(doi))]
    names += map(str, ids_of_link(text))
    link = normalise_url(text)
    if link is not None:
        names.append(f"url:{link}")
    return names


def _known(store: Store, key: int) -> KnownPaper | None:
    rows = store.history.rows_of(key)
    return rows[0].known if rows else None


def explain(store: Store, paper: KnownPaper, address: str, *, now: datetime) -> Explanation:
    """Return what is known of a paper, and what a reader was told of it.

    Raises:
        NotFoundError: there is no such reader, or one who never followed anything.
    """
    reader = store.subscriptions.find_reader(address)
    if reader is None or reader.key is None:
        raise NotFoundError(f"reader '{address}': expected a reader of the history, found none")
    subscriptions = store.subscriptions.subscriptions(reader=reader.key)
    current = [one for one in subscriptions if one.state is not SubscriptionState.ENDED] or list(subscriptions[-1:])
    if not current:
        raise NotFoundError(f"reader '{address}': expected a subscription, found none")
    topics = {topic.slug: topic for topic in store.history.topics()}
    where = {place.position: place for place in store.accounts.seen_where(paper.key)}
    seen = tuple(
        Seen(row, topics[row.topic], where[row.position], _why_kind(row, topics, where[row.position]))
        for row in store.history.rows_of(paper.key)
    )
    # a reader who left and came back was told under the subscription that is ended
    past = [one for one in subscriptions if one not in current and store.accounts.tellings(one.key or 0, paper.key)]
    return Explanation(
        paper=paper,
        seen=seen,
        reader=reader,
        verdicts=tuple(_verdict(store, one, seen, topics, now) for one in [*past, *current]),
        suppressions=tuple(store.outbox.suppressions(reader.canonical)),
    )


# -- the sighting


def _why_kind(row: LedgerRow, topics: dict[str, Topic], where: SeenWhere) -> str:
    """Return why a sighting has its kind."""
    published = row.known.paper.published
    when = f"published {full_day(published)}" if published else "without a date"
    match row.kind:
        case Kind.BASELINE if where.source is None:
            words = "it was known when the topic was first followed"
        case Kind.BASELINE:
            words = "it was there when the topic was first seen"
        case Kind.NEW:
            words = f"{when}, and not seen there before"
        case Kind.NEWLY_TAGGED:
            words = f"{when}; it was not there when its days were seen, so it came to the topic late"
        case Kind.BACKFILL:
            words = f"{when}, from before the topic's start, on an older page that came later"
    if row.via == "page":
        return words
    page = topics.get(where.page_topic or "")
    how = "by its label" if row.via == "label" else "by the topic's rule"
    return f"{words}; {how}{f', on a page of {page.name}' if page is not None else ''}"


# -- the reader


def _verdict(
    store: Store, subscription: Subscription, seen: Sequence[Seen], topics: dict[str, Topic], now: datetime
) -> Verdict:
    assert subscription.key is not None
    tellings = store.accounts.tellings(subscription.key, seen[0].row.known.key) if seen else ()
    told = tuple(_told(store, telling, topics, subscription) for telling in tellings)
    followed = [one for one in seen if one.row.topic in subscription.topics]
    passed = {
        passing.position: passing
        for passing in store.accounts.passings(subscription.key, [one.row.position for one in followed])
    }
    if told and any(one.telling.section not in ("revised", "withdrawn") for one in told):
        return Verdict(subscription, told, ())
    if subscription.state is SubscriptionState.ENDED:
        return Verdict(subscription, told, ("the subscription is ended",))
    if subscription.state is SubscriptionState.PENDING:
        return Verdict(subscription, told, ("the reader has not confirmed yet",))
    reasons = [
        f"{one.topic.name}: {_why_not(one.row, passed.get(one.row.position), subscription, now)}" for one in followed
    ]
    if not followed:
        names = ", ".join(one.topic.name for one in seen)
        reasons = [f"the reader follows no topic in which it is seen ({names})"]
    return Verdict(subscription, told, tuple(reasons))


def _told(store: Store, telling: Telling, topics: dict[str, Topic], subscription: Subscription) -> Told:
    rows = store.outbox.deliveries(digest_key=telling.digest_key, limit=1)
    delivery = rows[0] if rows else None
    topic = topics.get(telling.topic or "")
    local = telling.made_at.astimezone(find_zone(subscription.zone))
    under = f", under {topic.name}" if topic is not None else ""
    words = (
        f"told in the digest of {weekday_day(local.date())}, {local.year}, {_SECTIONS[telling.section]}{under}; "
        f"{mail_words(delivery, subscription)}"
    )
    return Told(telling, topic, delivery, words)


def mail_words(delivery: Delivery | None, subscription: Subscription) -> str:
    """Return what became of a digest's mail."""
    if delivery is None:
        return "it has no mail"
    why = f": {delivery.why}" if delivery.why else ""
    at = delivery.settled_at or delivery.next_at
    local = at.astimezone(find_zone(subscription.zone)) if at is not None else None
    when = f" at {local:%H:%M} on {weekday_day(local.date())}" if local is not None else ""
    match delivery.state:
        case DeliveryState.READY:
            return f"its mail waits and is due{when}{why}"
        case DeliveryState.CLAIMED:
            return "its mail is being sent"
        case DeliveryState.ACCEPTED:
            twice = ", perhaps twice" if delivery.flagged else ""
            return f"its mail was accepted{when}{twice}"
        case DeliveryState.FAILED:
            reply = f" ({delivery.reply.code} {delivery.reply.text})" if delivery.reply is not None else ""
            return f"its mail failed{when}{why}{reply}"
        case DeliveryState.SUPPRESSED:
            return f"its mail was not sent{why}"
        case DeliveryState.UNCERTAIN:
            return f"its mail may have been taken{when}{why}"
        case DeliveryState.POISON:
            return f"its mail cannot be sent{why}"


def _why_not(row: LedgerRow, passing: Passing | None, subscription: Subscription, now: datetime) -> str:
    """Return why a sighting in a followed topic was not told."""
    if passing is not None:
        local = passing.made_at.astimezone(find_zone(subscription.zone))
        words = f"hidden, {passing.why}" if passing.why not in _PASSED else passing.why
        return f"passed over in the digest of {weekday_day(local.date())}: {words}"
    if row.kind is Kind.BASELINE:
        return "not told: it was there before the topic was watched"
    if row.kind is Kind.BACKFILL:
        return "not told: it is older than the topic's start"
    if row.position <= subscription.followed_after(row.topic):
        return "not told: it was seen before the reader followed the topic"
    if row.position > subscription.told_upto and row.kind in TOLD:
        hidden = hidden_because(subscription.preferences.filter, row.known.paper)
        if hidden is not None:
            return f"will be passed over: {hidden}"
        return "only a replacement: not told" if not row.known.counted else f"waits for {_next(subscription, now)}"
    return "not accounted for: this is a fault, 'digestd audit' shows it"


#: what a digest says of rows that no filter hid
_PASSED = frozenset({"told before", "only a replacement", "changed back"})


def _next(subscription: Subscription, now: datetime) -> str:
    """Return when a subscription is told next."""
    paused = ""
    if subscription.paused_until is not None:
        paused = f" (paused until {weekday_day(subscription.paused_until)})"
    if isinstance(subscription.schedule, EachSnapshot):
        return f"the next run of 'digestd digest'{paused}"
    if subscription.next_due_at is None:
        return f"a slot that never comes ({in_words(subscription.schedule, subscription.zone)}){paused}"
    local = subscription.next_due_at.astimezone(find_zone(subscription.zone))
    late = ", which is due" if subscription.next_due_at <= now else ""
    return f"the next slot, {weekday_day(local.date())} at {local:%H:%M}, {subscription.zone}{late}{paused}"
