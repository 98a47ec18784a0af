"""One subscription's digest: what it is composed from, how it is rendered, and the rows it becomes. Floor 4.

Entry point: :class:`DigestMaker`. A digest is composed and rendered once for all subscriptions that want the same; what is
personal (links with tokens) is put in when the mail is built.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, time
from urllib.parse import quote

from digestd.compose import compose_digest
from digestd.digest_words import catch_up_line, digest_period, next_line, why_line
from digestd.filters import hidden_because
from digestd.flows.preview import TOLD, topic_news
from digestd.headline import subject
from digestd.model.delivery import DigestRecord, Envelope, ToldItem
from digestd.model.digest import Digest, DigestOptions, DigestRequest, Links, NewsItem, RevisionNews, TopicNews
from digestd.model.paper import KnownPaper, Revision
from digestd.model.snapshot import LedgerRow
from digestd.model.subscription import Reader, Slot, Subscription
from digestd.model.topic import Topic
from digestd.ports import Store
from digestd.render.mail import Templates, render_mail
from digestd.render.mime import MailHeaders, Skeleton, message_id, placeholder, skeleton_of
from digestd.render.outgoing import Sign, build_mail, pack_content, personal_fields
from digestd.schedule import find_zone
from digestd.tokens import bounce_address, make_token, tagged_address

_NOBODY = Reader("", "")

#: sub-stream of the Feedback-ID header, 5 to 15 characters
_STREAM = "digestd01"


@dataclass(frozen=True, slots=True)
class MailIdentity:
    """As whom mail is sent, and where its links lead."""

    name: str  #: of the digests
    sender: str  #: address
    sender_name: str
    reply_to: str | None = None
    bounce: str | None = (
        None  #: "bounce@digest.example.org"; None: bounces go to the sender, where nobody reads them for us
    )
    unsubscribe: str | None = None  #: "unsubscribe@digest.example.org"; None: no mail is read for it
    base_url: str | None = None
    sign: Sign | None = None  #: makes DKIM signatures; None: the relay does

    @property
    def domain(self) -> str:
        """The domain of message ids and lists."""
        return self.sender.rpartition("@")[2]


@dataclass(frozen=True, slots=True)
class Made:
    """One subscription's digest, not yet written."""

    subscription: Subscription
    slot: Slot
    request: DigestRequest
    group: str  #: the same for all that get the same content
    digest: Digest | None
    skeleton: Skeleton | None
    passed_over: tuple[tuple[int, str], ...] = ()  #: (ledger position, why)
    revised_at: tuple[tuple[int, int], ...] = ()  #: (paper, position of its newest revision) of those that may be told
    items: tuple[ToldItem, ...] = ()  #: what it tells; the very same tuple for all that are told the same

    @property
    def key(self) -> str:
        """Name of the digest, unique for ever."""
        return f"{self.subscription.public_id}|{self.slot.label}"


class DigestMaker:
    """Makes digests up to the ledger's present head; common work is done once in its life."""

    def __init__(
        self,
        store: Store,
        identity: MailIdentity,
        options: DigestOptions,
        templates: Templates,
        *,
        now: datetime,
    ) -> None:
        self._store, self._identity, self._options = store, identity, options
        self._templates, self._now = templates, now
        self.head = store.history.head()
        self._topics: dict[str, Topic] = {}
        self._rows: dict[tuple[str, int], Sequence[LedgerRow]] = {}
        self._news: dict[str, TopicNews] = {}
        self._revisions: dict[int, Sequence[tuple[int, KnownPaper, Revision]]] = {}
        self._rendered: dict[str, tuple[Digest | None, Skeleton | None]] = {}
        self._dishes: dict[tuple[Subscription, Slot, int, frozenset[int]], Made] = {}
        self._hidden_keys: dict[str, str] = {}
        self._contents: dict[str, str] = {}
        self._secrets: dict[str, bytes] = {}

    def make(self, subscription: Subscription, slot: Slot, *, coalesced: int = 0) -> Made:
        """Return a subscription's digest for a slot; nothing is written.

        Args:
            subscription: stored.
            slot: the time that it is made for.
            coalesced: earlier slots that it covers too.
        """
        (made,) = self.make_all([(subscription, slot, coalesced)])
        return made

    def make_all(self, orders: Sequence[tuple[Subscription, Slot, int]]) -> list[Made]:
        """Return digests as :meth:`make` does, of many (subscription, slot, coalesced)."""
        nameless = [(without_person(subscription, slot), subscription.key or 0) for subscription, slot, _ in orders]
        told = self._told(nameless)
        return [
            replace(self._dish((wish, slot, coalesced, told[key])), subscription=subscription)
            for (wish, key), (subscription, slot, coalesced) in zip(nameless, orders, strict=True)
        ]

    def _told(self, wishes: Sequence[tuple[Subscription, int]]) -> dict[int, frozenset[int]]:
        """Return what subscriptions were told of what may be in their digests, asked once for all with the same wish."""
        same: dict[Subscription, list[int]] = {}
        for wish, key in wishes:
            same.setdefault(wish, []).append(key)
        by_papers: dict[tuple[int, ...], list[int]] = {}
        for wish, keys in same.items():
            by_papers.setdefault(self._papers_of(wish), []).extend(keys)
        told: dict[int, frozenset[int]] = {}
        for papers, keys in by_papers.items():
            told |= self._store.subscriptions.told_of(keys, papers)
        return told

    def _papers_of(self, wish: Subscription) -> tuple[int, ...]:
        keys = {row.known.key for found in self._sightings(wish).values() for row in found}
        return tuple(sorted(keys | {known.key for _, known, _ in self._revisions_after(wish.told_upto)}))

    def _dish(self, order: tuple[Subscription, Slot, int, frozenset[int]]) -> Made:
        """Return the digest of all who wish the same and were told the same, made once."""
        if order not in self._dishes:
            self._dishes[order] = self._cook(*order)
        return self._dishes[order]

    def _cook(self, wish: Subscription, slot: Slot, coalesced: int, told: frozenset[int]) -> Made:
        request, passed = self._request(wish, slot, coalesced, told)
        group = self._group(request, wish.preferences.format)
        if group not in self._rendered:
            self._rendered[group] = self._render(request, group, wish.preferences.format)
        digest, skeleton = self._rendered[group]
        revised = {known.key: position for position, known, _ in self._revisions_after(wish.told_upto)}
        shown = {one.paper.key for one in (*digest.revised, *digest.withdrawn)} if digest is not None else set()
        passed += [
            (position, "changed back") for key, position in revised.items() if key in request.told and key not in shown
        ]
        made = Made(
            wish,
            slot,
            request,
            group,
            digest,
            skeleton,
            passed_over=tuple(dict(passed).items()),
            revised_at=tuple((key, position) for key, position in revised.items() if key in request.told),
        )
        return replace(made, items=told_items(made)) if digest is not None else made

    def write(self, made: Made) -> None:
        """Write a digest, its items and its outbox row into the open transaction."""
        self.write_all([made])

    def write_all(self, made: Sequence[Made]) -> None:
        """Write digests as :meth:`write` does; those with nothing to tell and nothing to account for leave no trace."""
        kept = [one for one in made if one.digest is not None or one.passed_over]
        if not kept:
            return
        subjects = {one.group: subject(one.digest) for one in kept if one.digest is not None}
        self._store.subscriptions.record_digests([self._record(one, subjects) for one in kept])
        envelopes = []
        for one in kept:
            if one.skeleton is None:
                continue
            if one.group not in self._contents:
                packed = pack_content(one.skeleton)
                self._contents[one.group] = self._store.outbox.put_content(packed, now=self._now)
            envelopes.append(self.envelope(one, self._contents[one.group]))
        if envelopes:
            self._store.outbox.enqueue(envelopes, now=self._now)

    def _record(self, made: Made, subjects: Mapping[str, str]) -> DigestRecord:
        assert made.subscription.key is not None
        return DigestRecord(
            key=made.key,
            subscription=made.subscription.key,
            after=made.subscription.told_upto,
            upto=self.head,
            since=made.request.since.isoformat(),
            until=made.request.until.isoformat(),
            subject=subjects[made.group] if made.digest is not None else "",
            made_at=self._now,
            items=made.items,
            passed_over=made.passed_over,
            mailed=made.digest is not None,
        )

    def mail(self, made: Made) -> bytes:
        """Return the mail of a digest as it would be sent, b"" where there is nothing to tell."""
        return b"" if made.skeleton is None else build_mail(self.envelope(made, "").fields, made.skeleton)

    # -- what it is composed from

    def _sightings(self, subscription: Subscription) -> dict[str, Sequence[LedgerRow]]:
        """Return the sightings of each topic that may be told."""
        welcome = _is_welcome(subscription)
        return {
            slug: self._rows_after(slug, 0 if welcome else self._told_upto(subscription, slug))
            for slug in subscription.topics
        }

    def _request(
        self, subscription: Subscription, slot: Slot, coalesced: int, told: frozenset[int]
    ) -> tuple[DigestRequest, list[tuple[int, str]]]:
        rows = self._sightings(subscription)
        revisions = self._revisions_after(subscription.told_upto)
        passed: list[tuple[int, str]] = []
        news = []
        for slug, found in rows.items():
            kept, hidden = self._filtered(subscription, found, told)
            after = self._told_upto(subscription, slug)
            passed += [(row.position, why) for row, why in hidden if row.position > after]
            news.append(
                replace(
                    self._topic_news(slug),
                    items=tuple(
                        NewsItem(row.position, row.kind, row.known, row.cross_listed, since_follow=row.position > after)
                        for row in kept
                    ),
                    hidden=len(hidden),
                )
            )
            passed += [
                (row.position, "told before" if row.known.key in told else "only a replacement")
                for row in found  # those that a filter hides too: told before, they are not counted as hidden
                if row.kind in TOLD and row.position > after and (row.known.key in told or not row.known.counted)
            ]
        since, until = digest_period(subscription, slot)
        request = DigestRequest(
            name=self._identity.name,
            since=since,
            until=until,
            topics=tuple(news),
            revisions=tuple(RevisionNews(known, change) for _, known, change in revisions if known.key in told),
            told=told,
            options=self._options_for(subscription, welcome=_is_welcome(subscription), coalesced=coalesced),
            upto=self.head,
            next_line=next_line(subscription, slot),
            why_line=why_line(subscription),
        )
        return request, passed

    def _told_upto(self, subscription: Subscription, slug: str) -> int:
        return max(subscription.told_upto, subscription.followed_after(slug))

    def _filtered(
        self, subscription: Subscription, rows: Sequence[LedgerRow], told: frozenset[int]
    ) -> tuple[list[LedgerRow], list[tuple[LedgerRow, str]]]:
        """Return the sightings that a reader's filter lets pass, and what would be news but is hidden, with the reason."""
        wanted = subscription.preferences.filter
        if not wanted.include and not wanted.exclude:
            return list(rows), []
        kept: list[LedgerRow] = []
        hidden: list[tuple[LedgerRow, str]] = []
        for row in rows:
            why = hidden_because(wanted, row.known.paper)
            if why is None:
                kept.append(row)
            elif row.kind in TOLD and row.known.key not in told:
                hidden.append((row, why))
        return kept, hidden

    def _options_for(self, subscription: Subscription, *, welcome: bool, coalesced: int) -> DigestOptions:
        wanted, first = subscription.preferences, subscription.preferences.first
        return replace(
            self._options,
            budget=wanted.budget or self._options.budget,
            all_quiet=wanted.all_quiet,
            welcome=welcome,
            welcome_latest=first.latest if welcome and first.kind == "latest" else None,
            welcome_since=first.since if welcome and first.kind == "since" else None,
            catch_up=catch_up_line(subscription, coalesced),
        )

    def topic(self, slug: str) -> Topic:
        """Return a topic, looked up once."""
        if slug not in self._topics:
            self._topics[slug] = self._store.history.topic(slug)
        return self._topics[slug]

    def _rows_after(self, slug: str, after: int) -> Sequence[LedgerRow]:
        if (slug, after) not in self._rows:
            self._rows[slug, after] = self._store.history.sightings(slug, after, self.head)
        return self._rows[slug, after]

    def _revisions_after(self, after: int) -> Sequence[tuple[int, KnownPaper, Revision]]:
        if after not in self._revisions:
            self._revisions[after] = self._store.history.revisions(after, self.head)
        return self._revisions[after]

    def _topic_news(self, slug: str) -> TopicNews:
        if slug not in self._news:
            news = topic_news(self._store.history, self.topic(slug), (), self._now)
            page = f"{self._identity.base_url}/t/{slug}" if self._identity.base_url else None
            self._news[slug] = replace(news, url=page)
        return self._news[slug]

    # -- how it is rendered

    def _group(self, request: DigestRequest, form: str) -> str:
        """Return a name for all that a mail's content depends on; what hangs on the ledger alone is in the positions."""
        topics = [
            (news.topic.slug, tuple(item.position for item in news.items), news.hidden) for news in request.topics
        ]
        revisions = [(news.known.key, news.revision.changes) for news in request.revisions]
        told = sorted(request.told)
        parts = (form, topics, revisions, told, request.options, request.since, request.until, request.next_line)
        text = repr((*parts, request.why_line, self.head, self._now.date()))
        return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()

    def _render(self, request: DigestRequest, group: str, form: str) -> tuple[Digest | None, Skeleton | None]:
        digest = compose_digest(request)
        if digest is None:
            return None, None
        parts = render_mail(digest, self._links(group), self._templates)
        if form == "text":
            parts = replace(parts, html="", pictures=())
        return digest, skeleton_of(parts, self._hidden_key(group))

    def _hidden_key(self, group: str) -> str:
        """Return a key that no text from outside can know, so that no title can hold a placeholder or boundary."""
        if group not in self._hidden_keys:
            self._hidden_keys[group] = hmac.new(self._secret("render"), group.encode(), hashlib.sha256).hexdigest()
        return self._hidden_keys[group]

    def _links(self, group: str) -> Links:
        if self._identity.base_url is None:
            return Links()
        key = self._hidden_key(group)
        online = placeholder("online", key)
        return Links(
            online=online,
            preferences=placeholder("preferences", key),
            unsubscribe=placeholder("unsubscribe", key),
            feed=placeholder("feed", key),
            more=online,
        )

    # -- the outbox row

    def envelope(self, made: Made, content: str) -> Envelope:
        """Return the outbox row of a digest; ``content`` is the hash of its stored bodies."""
        identity, subscription, reader = self._identity, made.subscription, made.subscription.reader
        assert reader.key is not None
        leave = self._token("unsubscribe", subscription)
        url = f"{identity.base_url}/unsubscribe/{leave}" if identity.base_url else None
        sender = identity.sender
        if identity.bounce is not None:
            sender = bounce_address(identity.bounce, self._token("bounce", subscription), reader.envelope)
        headers = MailHeaders(
            sender=identity.sender,
            sender_name=identity.sender_name,
            recipient=reader.envelope,
            recipient_name=reader.name,
            reply_to=identity.reply_to,
            date=made.slot.due_at,
            message_id=message_id(self._secret("instance").hex(), "digest", made.key, str(reader.key), identity.domain),
            key=self._hidden_key(made.group),
            list_id=f"{subscription.public_id}.{identity.domain}",
            list_name=identity.name,
            unsubscribe_url=url,
            unsubscribe_mailto=tagged_address(identity.unsubscribe, leave) if identity.unsubscribe else None,
            archived_at=self._online(subscription, made.slot),
            feedback_id=f"{subscription.public_id}:digest:mail:{_STREAM}",
        )
        return Envelope(
            kind="digest",
            digest_key=made.key,
            reader=reader.key,
            recipient=reader.envelope,
            sender=sender,
            message_id=headers.message_id,
            fields=personal_fields(headers, self._values(made, url), skeleton=made.skeleton, sign=identity.sign),
            content=content,
            next_at=self._now,
            smtputf8=reader.smtputf8,
            scope=subscription.public_id,
        )

    def _values(self, made: Made, unsubscribe_url: str | None) -> dict[str, str]:
        base, key = self._identity.base_url, self._hidden_key(made.group)
        if base is None or unsubscribe_url is None:
            return {}
        return {
            placeholder("unsubscribe", key): unsubscribe_url,
            placeholder("preferences", key): f"{base}/preferences/{self._token('preferences', made.subscription)}",
            placeholder("feed", key): f"{base}/feed/{self._token('feed', made.subscription)}.xml",
            placeholder("online", key): self._online(made.subscription, made.slot) or "",
        }

    def _online(self, subscription: Subscription, slot: Slot) -> str | None:
        base = self._identity.base_url
        return f"{base}/d/{self._token('feed', subscription)}/{quote(slot.label, safe=':~')}" if base else None

    def _secret(self, name: str) -> bytes:
        if name not in self._secrets:
            self._secrets[name] = self._store.secret(name)
        return self._secrets[name]

    def _token(self, purpose: str, subscription: Subscription) -> str:
        return make_token(self._secret("tokens"), purpose, subscription.public_id)


def _is_welcome(subscription: Subscription) -> bool:
    return not subscription.welcomed and subscription.preferences.first.kind != "none"


def without_person(subscription: Subscription, slot: Slot) -> Subscription:
    """Return a subscription without what says whose it is: those that are equal then, and were told the same, get the same.

    Args:
        subscription: stored.
        slot: the time that its digest is made for; of the time before only the day that its news begins is left.
    """
    since, _ = digest_period(subscription, slot)
    begin = datetime.combine(since, time(12), find_zone(subscription.zone))
    return replace(
        subscription,
        reader=_NOBODY,
        key=None,
        public_id="",
        high_water_at=None,
        next_due_at=None,
        declared=False,
        created_at=begin,
    )


def told_items(made: Made) -> tuple[ToldItem, ...]:
    """Return what a digest tells, by paper and ledger position."""
    digest = made.digest
    assert digest is not None
    positions = {
        (news.topic.slug, item.known.key): item.position for news in made.request.topics for item in news.items
    }
    items = [
        ToldItem(paper.key, section.topic.slug, name, positions[section.topic.slug, paper.key])
        for section in digest.sections
        for name, papers in (("new", section.papers), ("rest", section.rest))
        for paper in papers
    ]
    items += [
        ToldItem(tagged.paper.key, tagged.topic.slug, name, positions[tagged.topic.slug, tagged.paper.key])
        for name, found in (("tagged", digest.tagged), ("tagged_rest", digest.tagged_rest))
        for tagged in found
    ]
    revised_at = dict(made.revised_at)
    items += [
        ToldItem(changed.paper.key, None, name, revised_at[changed.paper.key])
        for name, found_changes in (("revised", digest.revised), ("withdrawn", digest.withdrawn))
        for changed in found_changes
    ]
    return tuple(items)
