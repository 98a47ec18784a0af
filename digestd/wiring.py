"""Puts the parts together. Floor 5; the only module that names adapter classes and the only one that looks at the clock.

Entry point: :class:`App`, which makes each part when it is first asked for: ``digestd --help`` opens no database.
"""

from __future__ import annotations

import asyncio
import logging
import random
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from functools import cached_property, partial
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from digestd.errors import ConfigError

if TYPE_CHECKING:  # each costs start-up time that commands without it do not pay
    import jinja2

    from digestd.config import ChannelSettings as NamedChannelSettings
    from digestd.config import Settings, SourceSettings
    from digestd.flows.audit import Shelf as FileShelf
    from digestd.flows.collect import CollectOptions, Report
    from digestd.flows.deliver import DeliverOptions
    from digestd.flows.digest import Kitchen
    from digestd.flows.ingest import IngestOptions, Parse
    from digestd.flows.keeping import Tidied
    from digestd.flows.publish import PublishOptions, WriteFiles
    from digestd.flows.read_source import Watched
    from digestd.flows.subscribe import Wish
    from digestd.model.digest import DigestOptions
    from digestd.model.keeping import Backup, Restored
    from digestd.model.snapshot import Document, Page
    from digestd.model.source import Calendar, SourceSpec
    from digestd.model.subscription import Reader, Subscription
    from digestd.model.topic import Topic, Vocabulary
    from digestd.ports import Channel, Clock, Mailbox, Source
    from digestd.render.outgoing import Sign
    from digestd.send.dkim import DkimKey
    from digestd.send.settings import ChannelSettings
    from digestd.store import SqlStore
    from digestd.store.room import Room
    from digestd.watch.child import ChildParser
    from digestd.watch.client import WebClient
    from digestd.web.app import Application
    from digestd.web.server import WebServer
    from digestd.web.services import WebServices
    from digestd.web.shelf import Shelf

log = logging.getLogger(__name__)

#: authority of feed ids where the operator has named none: a name that can never be anybody's (RFC 2606 2)
NO_AUTHORITY = "digestd.invalid"


class SystemClock:
    """The time of day."""

    def now(self) -> datetime:
        """Return the present instant, UTC."""
        return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class _StillClock:
    """A clock that stands, for runs to repeat."""

    instant: datetime

    def now(self) -> datetime:
        """Return the instant."""
        return self.instant


@dataclass(frozen=True, slots=True)
class Choices:
    """What the command line says."""

    db: str | None = None
    config: Path | None = None
    now: datetime | None = None
    overrides: Mapping[str, Any] | None = None


def data_folder(name: str, packaged: str) -> Path:
    """Return a folder that comes along: in the package of a wheel, beside it in a checkout.

    Raises:
        ConfigError: it is in neither place.
    """
    package = Path(str(files("digestd")))
    for folder in (package / packaged, package.parent / name):
        if folder.is_dir():
            return folder
    raise ConfigError(f"folder {name}: expected it in {package / packaged} or {package.parent / name}, found neither")


class App:
    """One run of digestd."""

    def __init__(self, choices: Choices) -> None:
        self._choices = choices
        self._clock = SystemClock()
        # a folder tells finished files from others by what it looked like before
        self._folders: dict[SourceSpec, Source] = {}

    @property
    def now(self) -> datetime:
        """The present instant; that of ``--now``, standing still, where it was given."""
        return self.clock.now()

    def stand_at(self, instant: datetime) -> None:
        """Take an instant for now from here on."""
        self._choices = replace(self._choices, now=instant)

    @cached_property
    def store_path(self) -> Path:
        """The file of the history."""
        return Path(self._choices.db or self.settings.store.path)

    @cached_property
    def settings(self) -> Settings:
        """All settings."""
        from digestd.config import load_settings

        return load_settings(self._choices.config, self._choices.overrides or {})

    @cached_property
    def room(self) -> Room:
        """The room on the disk of the history."""
        from digestd.store.room import Room

        settings = self.settings.store
        return Room(self.store_path, floor=settings.floor_mb * 1_000_000, ballast=settings.ballast_mb * 1_000_000)

    @cached_property
    def store(self) -> SqlStore:
        """The history, opened and migrated, the topics of the settings in it."""
        from digestd.flows.follow import sync_topics
        from digestd.store import open_store

        self.room.before_opening()
        store = open_store(self._choices.db or self.settings.store.path)
        sync_topics(store, self.topics, self.vocabulary, now=self.now)
        if self.settings.subscribers:
            from digestd.flows.subscribe import reconcile

            for note in reconcile(store, self.wishes, self.vocabulary, now=self.now):
                log.warning("%s", note)
        return store

    @cached_property
    def topics(self) -> Sequence[Topic]:
        """The topics that the settings declare; their slugs are made when they are first stored."""
        from digestd.model.topic import MatchRule, Topic

        return [
            Topic(
                slug="",
                name=topic.name,
                gloss=topic.gloss,
                rule=MatchRule(**topic.match.model_dump()) if topic.match is not None else None,
            )
            for topic in self.settings.topics
        ]

    @cached_property
    def wishes(self) -> Sequence[Wish]:
        """The readers that the settings declare."""
        from digestd.addresses import parse_reader
        from digestd.filters import parse_rule
        from digestd.flows.subscribe import Wish
        from digestd.model.subscription import Filter, Preferences
        from digestd.schedule import parse_first, parse_schedule

        return [
            Wish(
                reader=parse_reader(one.address, allow_local=True),
                topics=one.topics,
                schedule=parse_schedule(one.schedule),
                zone=one.zone,
                preferences=Preferences(
                    format=one.format,
                    budget=one.budget,
                    all_quiet=one.all_quiet,
                    alert=one.alert,
                    first=parse_first(one.first),
                    filter=Filter(tuple(map(parse_rule, one.include)), tuple(map(parse_rule, one.exclude))),
                ),
                declared=True,
            )
            for one in self.settings.subscribers
        ]

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Labels of the settings' file, else of the list that comes along."""
        return self.read_vocabulary(self.settings.labels.file or data_folder("config", "config_files") / "labels.txt")

    def read_vocabulary(self, file: Path) -> Vocabulary:
        """Return the labels of a file; ConfigError if it cannot be read."""
        from digestd.parse.labels import load_vocabulary

        return load_vocabulary(_read_text(file, "labels"))

    def parser(self, *, format_name: str | None = None, rules: Path | None = None) -> Parse:
        """Return what turns a document into a page, by the format and rule file named, if any."""
        from digestd.parse import PARSERS, parse_document

        if rules is not None:
            from digestd.parse.rules import load_rules, parse_with_rules

            page_rules = load_rules(_read_text(rules, "rules"))
            return lambda document, vocabulary: parse_with_rules(document, page_rules, vocabulary)
        if format_name is not None and format_name not in PARSERS:
            raise ConfigError(f"format: expected one of {', '.join(PARSERS)}, found '{format_name}'")
        return lambda document, vocabulary: parse_document(document, vocabulary, format_name=format_name)

    def page_reader(
        self, *, format_name: str | None, labels: Path | None, no_labels: bool, rules: Path | None
    ) -> Callable[[Document], Page]:
        """Return what shows a document's page without a history."""
        from digestd.model.topic import Vocabulary

        parse = self.parser(format_name=format_name, rules=rules)
        vocabulary = Vocabulary() if no_labels else (self.read_vocabulary(labels) if labels else self.vocabulary)
        return lambda document: parse(document, vocabulary)

    def read_documents(
        self, path: Path, *, origin: str | None = None, fetched_at: datetime | None = None
    ) -> Iterator[Document]:
        """Yield the documents of a file, unpacked; of standard input for the path "-".

        Raises:
            FetchError: it cannot be read, is no regular file or is too large.
        """
        from digestd.parse.jsonl import documents_of
        from digestd.watch.named import read_named

        document = read_named(path, max_bytes=self.settings.fetch.max_bytes, now=fetched_at or self.now)
        yield from documents_of(replace(document, origin=origin or str(path)))

    def read_file(self, path: Path) -> bytes:
        """Return a file that a person named, unpacked, standard input for "-"; FetchError if it cannot be read."""
        from digestd.watch.named import read_named

        return read_named(path, max_bytes=self.settings.fetch.max_bytes, now=self.now).body

    @cached_property
    def templates(self) -> jinja2.Environment:
        """The environment that mails and pages are rendered with."""
        from digestd.templating import build_environment

        return build_environment(self.settings.templates.folder)

    def ingest_options(self, **given: Any) -> IngestOptions:
        """Return the options of the settings, with what the command line says put in."""
        from digestd.diff import DiffRules
        from digestd.flows.ingest import IngestOptions

        settings = self.settings
        rules = DiffRules(
            late_days=settings.listing.late_days,
            tagged_days=settings.listing.tagged_days,
            cross_lists=settings.arxiv.cross_lists,
        )
        options = IngestOptions(now=self.now, vocabulary=self.vocabulary, rules=rules)
        return replace(options, **{name: value for name, value in given.items() if value is not None})

    @property
    def sources(self) -> Sequence[SourceSettings]:
        """The sources that the settings declare, then the imported feeds that are none of them."""
        from digestd.config import SourceSettings
        from digestd.outlines import feeds_of

        declared = self.settings.sources
        known = {name.casefold() for source in declared for name in (source.label, source.url or "")}
        topics = self.store.feed_list.topics()
        imported = [
            SourceSettings(kind="url", url=url, topic=topics[url] if topics[url] != url else None)
            for url in (feed.url for feed in feeds_of(self.store.feed_list.read()))
            if url.casefold() not in known
        ]
        return (*declared, *imported)

    @property
    def source_specs(self) -> Sequence[SourceSpec]:
        """All sources, as they are fetched."""
        return [self._spec(source) for source in self.sources]

    def _spec(self, source: SourceSettings) -> SourceSpec:
        from digestd.model.source import SourceSpec

        return SourceSpec(
            name=source.label,
            location=source.url or str(source.path),
            kind="folder" if source.kind == "folder" else "http",
            topic=source.topic,
            interval_s=source.interval_s,
            max_bytes=self.settings.fetch.max_bytes,
            deadline_s=self.settings.fetch.deadline_s,
            page_url=source.page_template,
            max_pages=source.max_pages,
            daily=source.daily,
            calendar=_calendar(source),
            done=self.settings.folders.done,
        )

    @asynccontextmanager
    async def watched(self, names: Sequence[str] = ()) -> AsyncIterator[Sequence[Watched]]:
        """Yield all sources, or those named, ready to be asked; connections are closed afterwards.

        Raises:
            ConfigError: there is no source of this name.
        """
        from digestd.watch.client import WebClient
        from digestd.watch.guard import PRIVATE

        sources = self.sources
        known = [source.label for source in sources]
        for name in names:
            if name not in known:
                raise ConfigError(
                    f"source '{name}': expected one of {', '.join(known) or 'none'}, found no such source"
                )
        chosen = [source for source in sources if not names or source.label in names]
        fetch = self.settings.fetch
        contact = fetch.contact_url or self.settings.web.base_url or "https://digestd.invalid/"
        async with AsyncExitStack() as stack:
            clients: dict[bool, WebClient] = {}
            # a folder needs none, and making one reads all certificates of the machine
            for private in sorted({source.allow_private for source in chosen if source.kind != "folder"}):
                client = WebClient(
                    contact_url=contact,
                    allow_networks=(*fetch.allow_networks, *(PRIVATE if private else ())),
                    host_gap_s=fetch.host_interval_s,
                )
                clients[private] = await stack.enter_async_context(client)
            child = stack.enter_context(self._child()) if fetch.isolate else None
            yield [
                self._watched(source, self._source(self._spec(source), clients.get(source.allow_private)), child)
                for source in chosen
            ]

    def _source(self, spec: SourceSpec, client: WebClient | None) -> Source:
        """Return a source; of a folder always the same one, as long as its settings are the same, and without a client."""
        from digestd.watch import SOURCES

        if spec.kind != "folder":
            return SOURCES[spec.kind](spec, client)
        if spec not in self._folders:
            self._folders[spec] = SOURCES[spec.kind](spec, client)
        return self._folders[spec]

    def file_shelves(self) -> list[FileShelf]:
        """Return where the watched folders put their files away."""
        from digestd.flows.audit import Shelf
        from digestd.watch.shelf import hash_file, shelved

        return [
            Shelf(source.label, partial(shelved, source.path), hash_file, moves=self.settings.folders.done == "move")
            for source in self.settings.sources
            if source.kind == "folder" and source.path is not None
        ]

    def folder_changes(self, folder: Path) -> AsyncIterator[None]:
        """Yield whenever a watched folder is worth a look; FetchError if it cannot be watched."""
        from digestd.watch.folder import watch

        return watch(folder)

    @contextmanager
    def _child(self) -> Iterator[ChildParser]:
        """Give the child in which documents are read, ended afterwards; it starts with the first document."""
        from digestd.watch.child import ChildParser

        child = ChildParser()
        try:
            yield child
        finally:
            child.close()

    def _watched(self, settings: SourceSettings, source: Source, child: ChildParser | None) -> Watched:
        """Return a source with how its documents are read, in a child if there is one."""
        from digestd.flows.read_source import Watched
        from digestd.model.snapshot import Order

        format_name = None if settings.format == "auto" else settings.format
        rules = _read_text(settings.rules, "rules") if settings.rules is not None else ""
        parse = self.parser(format_name=format_name, rules=settings.rules)
        if child is not None:  # what is wrong with the rules has been said by now
            parse = child.parser(format_name=format_name, rules=rules)
        return Watched(
            source=source,
            options=self.ingest_options(
                topic=settings.topic,
                order=None if settings.order == "auto" else Order(settings.order),
                address=settings.url,
            ),
            parse=parse,
            reading=f"{settings.format}|{rules}",
        )

    def collect_options(self, report: Report, *, ignore_due: bool = False) -> CollectOptions:
        """Return how sources are asked now."""
        from digestd.flows.collect import CollectOptions

        # waiting times are spread by chance, which need not be secret
        draw = random.Random().random  # noqa: S311
        return CollectOptions(now=self.now, draw=draw, ignore_due=ignore_due, report=report)

    @property
    def operators(self) -> Sequence[Reader]:
        """Who is told what is not well."""
        from digestd.addresses import parse_reader

        return [parse_reader(address, allow_local=True) for address in self.settings.operator.to]

    async def beat(self) -> str:
        """Send a sign of life, if one is wanted; return what went wrong, "" for nothing."""
        url = self.settings.operator.heartbeat_url
        return "" if url is None else await self.try_url(url.get_secret_value())

    async def try_url(self, url: str, *, private: bool = False) -> str:
        """Ask for an address, in a private network only if that is allowed; return what went wrong, "" for nothing."""
        from digestd.watch.ask import ask
        from digestd.watch.client import WebClient
        from digestd.watch.guard import PRIVATE

        fetch = self.settings.fetch
        contact = fetch.contact_url or self.settings.web.base_url or "https://digestd.invalid/"
        allowed = (*fetch.allow_networks, *(PRIVATE if private else ()))
        async with WebClient(contact_url=contact, allow_networks=allowed) as client:
            return await ask(client, url)

    def look_up(self, name: str, kind: str) -> Sequence[str] | None:
        """Return the DNS records of a name, () for none; None where nobody can be asked, for want of the extra, too."""
        from digestd.send.dns import look_up

        return look_up(name, kind)

    @cached_property
    def digest_options(self) -> DigestOptions:
        """How much goes into a digest."""
        from digestd.model.digest import DigestOptions

        digest = self.settings.digest
        return DigestOptions(papers_per_topic=digest.papers_per_topic, budget=digest.budget, language=digest.language)

    @property
    def clock(self) -> Clock:
        """The time of day; that of ``--now``, standing still, where it was given."""
        return _StillClock(self._choices.now) if self._choices.now is not None else self._clock

    @cached_property
    def kitchen(self) -> Kitchen:
        """All that digests are made with."""
        from digestd.flows.digest import Kitchen
        from digestd.flows.make_digest import MailIdentity

        mail = self.settings.mail
        identity = MailIdentity(
            name=self.settings.digest.name,
            sender=mail.from_address,
            sender_name=mail.from_name or self.settings.digest.name,
            reply_to=mail.reply_to,
            bounce=mail.bounce_address,
            unsubscribe=mail.unsubscribe_address,
            base_url=self.settings.web.base_url,
            sign=self._signer(),
        )
        return Kitchen(self.store, identity, self.digest_options, self.templates)

    @property
    def dkim_keys(self) -> Sequence[DkimKey]:
        """The keys that sign mails; ConfigError if a file cannot be read."""
        from digestd.send.dkim import DkimKey, KeyKind

        mail = self.settings.mail
        named = (
            (KeyKind.RSA, mail.dkim_selector, mail.dkim_key),
            (KeyKind.ED25519, mail.dkim_second_selector, mail.dkim_second_key),
        )
        domain = mail.from_address.rpartition("@")[2]
        return [
            DkimKey(domain, selector or "", kind, _read_text(file, "dkim key").encode())
            for kind, selector, file in named
            if file is not None
        ]

    def published_keys(self) -> Mapping[str, Callable[[str], bool]]:
        """Return, by selector, what says whether a record of the DNS is that of the key that signs."""
        from digestd.send.dkim import is_published

        return {key.selector: partial(is_published, key) for key in self.dkim_keys}

    def _signer(self) -> Sign | None:
        """Return what signs mails, None where no key is set; ConfigError if a key cannot be used."""
        if self.settings.mail.dkim_key is None and self.settings.mail.dkim_second_key is None:
            return None
        from digestd.send.dkim import check_key, sign_message

        keys = self.dkim_keys
        for key in keys:
            check_key(key)
        return lambda body: sign_message(body, keys).removesuffix(body)

    @asynccontextmanager
    async def sending(self) -> AsyncIterator[Channel]:
        """Yield the way that mail leaves, closed afterwards, as the only process that sends from this history.

        A sender takes what another process holds for left behind by a dead one, so there must never be two.

        Raises:
            StoreBusyError: another process sends.
            MovedError: the history was at work on another machine, of which this may be a copy.
        """
        from digestd.flows.home import check_home
        from digestd.store.writer import sole_process

        await asyncio.to_thread(check_home, self.store, self.machine)

        with sole_process(self.store_path, "sender", what="expected no other process that sends, found one"):
            channel = self.channel()
            try:
                yield channel
            finally:
                await channel.close()

    def channel(self) -> Channel:
        """Return the way that mail leaves; inside a running event loop only."""
        from digestd.send import CHANNELS

        mail = self.settings.mail
        if mail.channel not in CHANNELS:
            raise ConfigError(f"mail.channel: expected one of {', '.join(CHANNELS)}, found '{mail.channel}'")
        channel = CHANNELS[mail.channel](self.channel_settings)
        if not self.settings.channels:
            return channel
        from digestd.send.routed import RoutedChannel

        return RoutedChannel(channel, {one.name: self._named_channel(one) for one in self.settings.channels})

    def _named_channel(self, wanted: NamedChannelSettings) -> Channel:
        """Return a channel of the settings that a reader can be; ConfigError if it cannot be used."""
        from digestd.send import CHANNELS
        from digestd.send.settings import AppriseSettings, ChannelSettings, WebhookSettings, is_loopback
        from digestd.send.webhook import secret_bytes
        from digestd.watch.guard import LOOPBACK
        from digestd.watch.post import GuardedPost

        url = _secret_of(wanted.url.get_secret_value() if wanted.url else None, wanted.url_file)
        secret = _secret_of(wanted.secret.get_secret_value() if wanted.secret else None, wanted.secret_file)
        try:
            if wanted.kind == "apprise":
                return CHANNELS["apprise"](ChannelSettings(apprise=AppriseSettings(url, wanted.timeout_s)))
            is_here = is_loopback(urlsplit(url).hostname or "")
            post = GuardedPost(
                allow_networks=(*self.settings.fetch.allow_networks, *(LOOPBACK if is_here else ())),
                limit_s=wanted.timeout_s,
                now=self.clock.now,
            )
            webhook = WebhookSettings(
                url=url,
                post=post,
                now=self.clock.now,
                secret=secret_bytes(secret),
                idempotent=wanted.idempotent,
                deadline_s=wanted.timeout_s,
            )
            return CHANNELS["webhook"](ChannelSettings(webhook=webhook))
        except ConfigError as error:
            raise ConfigError(f"channels: {wanted.name}: {error}") from None
        except ValueError:
            raise ConfigError(
                f"channels: {wanted.name}: expected base64 after whsec_ or an address, found neither"
            ) from None

    def check_channel(self, reader: Reader) -> None:
        """Say nothing of a reader that mail or the settings reach; ConfigError for a channel that they do not name."""
        from digestd.addresses import channel_name

        name, known = channel_name(reader.address), [one.name for one in self.settings.channels]
        if name is not None and name not in known:
            raise ConfigError(
                f"channel: expected one of {', '.join(known) or 'none'} (see [[channels]]), found '{name}'"
            )

    @cached_property
    def channel_settings(self) -> ChannelSettings:
        """What the channels need to know."""
        from digestd.send.settings import ChannelSettings, Deadlines, Limits, LmtpSettings, SmtpSettings, TlsMode

        mail = self.settings.mail
        deadlines, limits = Deadlines(command_s=mail.timeout_s), Limits(connections=mail.connections)
        if mail.channel == "lmtp":
            lmtp = LmtpSettings(host=mail.host, deadlines=deadlines, limits=limits)
            lmtp = replace(lmtp, port=mail.port) if mail.port is not None else lmtp
            return ChannelSettings(lmtp=lmtp, folder=mail.folder)
        if mail.channel != "smtp":
            return ChannelSettings(folder=mail.folder)
        smtp = SmtpSettings(
            host=mail.host,
            port=mail.port,
            mode=TlsMode(mail.mode),
            username=mail.username,
            password=mail.password.get_secret_value() if mail.password is not None else "",
            ca_file=mail.ca_file,
            helo_name=mail.from_address.rpartition("@")[2],
            deadlines=deadlines,
            limits=limits,
        )
        return ChannelSettings(smtp=smtp, folder=mail.folder)

    @cached_property
    def deliver_options(self) -> DeliverOptions:
        """How deliveries are made."""
        import random
        import uuid

        from digestd.flows.deliver import DeliverOptions

        mail = self.settings.mail
        return DeliverOptions(
            owner=uuid.uuid4().hex,
            workers=mail.connections,
            on_uncertain=mail.on_uncertain,
            draw=random.random,
            can_record=self.room.can_record,
        )

    def subscriptions_of(self, address: str) -> list[Subscription]:
        """Return a reader's active subscriptions; NotFoundError if there is none."""
        from digestd.errors import NotFoundError

        reader = self.store.subscriptions.find_reader(address)
        found = (
            self.store.subscriptions.subscriptions(reader=reader.key, active_only=True) if reader is not None else ()
        )
        if not found:
            raise NotFoundError(f"reader '{address}': expected a subscription, found none")
        return list(found)

    @cached_property
    def publish_options(self) -> PublishOptions:
        """What all feeds share."""
        from digestd.flows.publish import PublishOptions
        from digestd.model.feed import FeedSite

        settings = self.settings
        host = urlsplit(settings.web.base_url or "").hostname
        site = FeedSite(
            name=settings.digest.name,
            authority=settings.feeds.authority or host or NO_AUTHORITY,
            since=str(settings.feeds.since),
            language=settings.digest.language,
        )
        return PublishOptions(
            site=site,
            entries=settings.feeds.entries,
            archive_page=settings.feeds.archive_page,
            base_url=settings.web.base_url,
        )

    @cached_property
    def shelf(self) -> Shelf:
        """The public feeds that the web server has in memory."""
        from digestd.web.shelf import Shelf

        return Shelf()

    def web_services(self) -> WebServices:
        """Return all that requests are answered with; mail is offered only where links can be mailed."""
        from digestd.model.pages import Site
        from digestd.web.services import WebServices

        settings = self.settings
        base_url = settings.web.base_url or ""
        site = Site(
            name=settings.digest.name,
            base_url=base_url,
            operator=settings.web.operator or "",
            mail=bool(base_url),
            language=settings.digest.language,
        )
        return WebServices(
            store=self.store,
            site=site,
            templates=self.templates,
            clock=self.clock,
            publish=self.publish_options,
            shelf=self.shelf,
            secrets={"1": self.store.secret("tokens")},
            kitchen=self.kitchen if base_url else None,
            vocabulary=lambda: self.vocabulary,
            proxies=settings.web.proxies,
        )

    def web_server(
        self, host: str | None = None, port: int | None = None, *, application: Application | None = None
    ) -> WebServer:
        """Return a web server, listening but not yet answering: of the pages, if not of another application.

        The pages are served where the service manager listens, if it does, else where the settings say.

        Raises:
            ConfigError: the address is taken, or not of this machine.
        """
        from digestd.config import FIRST_PASSED, passed_sockets
        from digestd.web.server import WebServer, listen, take_over

        web = self.settings.web
        is_passed = host is None and port is None and passed_sockets() > 0
        host, port = web.host if host is None else host, web.port if port is None else port
        try:
            socket = take_over(FIRST_PASSED) if is_passed else listen(host, port)
        except OSError as error:
            raise ConfigError(f"web: listening on {host} port {port}: {error.strerror or error}") from error
        return WebServer(application or self.web_app(), [socket])

    def web_app(self) -> Application:
        """Return the web application."""
        from digestd.web.app import create_app

        return create_app(self.web_services())

    async def try_relay(self) -> str:
        """Connect to the relay, encrypt and log in, send nothing; return what went wrong, "" for nothing."""
        from digestd.model.delivery import Deferred
        from digestd.send.smtp_connect import open_session

        session = await open_session(self.channel_settings.smtp)
        if isinstance(session, Deferred):
            return session.why
        await session.bye()
        return ""

    def bounce_mailbox(self) -> AbstractContextManager[Mailbox]:
        """Return the mailbox that mail comes back to, opened on entering; ConfigError if none is set."""
        from digestd.watch.imap import ImapSettings, open_mailbox

        wanted = self.settings.bounces
        if wanted.imap_host is None or wanted.imap_username is None or wanted.imap_password is None:
            raise ConfigError("bounces: expected imap_host, imap_username and imap_password, found not all of them")
        encrypted = wanted.imap_mode != "none"
        settings = ImapSettings(
            host=wanted.imap_host,
            port=wanted.imap_port or (993 if encrypted else 143),
            username=wanted.imap_username,
            password=wanted.imap_password.get_secret_value(),
            folder=wanted.imap_folder,
            encrypted=encrypted,
            ca_file=wanted.imap_ca_file,
        )
        return open_mailbox(settings)

    def back_up(self, goal: Path) -> Backup:
        """Copy the history into a file, while others may write; as it stands, without migrating it."""
        from digestd.store.backup import back_up

        return back_up(self.store_path, goal)

    def tidy(self) -> Tidied:
        """Forget what is kept for a time only."""
        from digestd.flows.keeping import tidy

        return tidy(self.store, now=self.now, mail_for=self.mail_for)

    @property
    def mail_for(self) -> timedelta:
        """How long the text of sent mails is kept."""
        return timedelta(days=self.settings.keep.mail_days)

    def compact(self) -> int:
        """Write the history's file anew if much of it holds nothing, and return the bytes that were freed."""
        from digestd.flows.keeping import is_worth_compacting

        size, empty = self.store.slack()
        if not is_worth_compacting(size, empty) or self.room.free() < self.room.floor + 2 * size:
            return 0
        self.store.compact()
        return size - self.store.slack()[0]

    def export_lines(self) -> Iterator[str]:
        """Yield the lines of everything, of one state of the history."""
        from digestd.store.dump import dump

        self.store.close()  # brought to this release's tables
        return dump(self.store_path)

    def export(self, file: Path) -> int:
        """Write everything into a file, and return how many lines; StoreError if it cannot be written."""
        from digestd.store.backup import write_whole

        return write_whole(file, self.export_lines())

    def import_history(self, file: Path, *, hold: bool) -> Restored:
        """Make the history of an export, "-" of standard input.

        Raises:
            StoreError: there is a history, or the export is not good; nothing is left of it then.
        """
        from digestd.errors import FetchError
        from digestd.store.backup import make_history
        from digestd.store.dump import load

        def fill(draft: Path) -> dict[str, int]:
            if str(file) == "-":
                return load(sys.stdin.buffer, draft)
            try:
                with file.open("rb") as lines:
                    return load(lines, draft)
            except OSError as error:
                raise FetchError(f"{file}: cannot be read: {error.strerror}") from error

        self.store_path.parent.mkdir(parents=True, exist_ok=True)
        return make_history(self.store_path, fill=fill, prepare=partial(self._prepare, hold=hold))

    def _prepare(self, copy: Path, *, hold: bool) -> int:
        """Bring a copy of a history to this release's tables and to this machine, and return how many deliveries are held."""
        from digestd.flows.home import adopt
        from digestd.flows.keeping import hold_deliveries
        from digestd.store import open_store

        store = open_store(copy, copies=False)  # which may fail; nothing is put in place then
        try:
            if self.machine is not None and store.home() is not None:  # who does this says by that where it is at work
                adopt(store, self.machine)
            return hold_deliveries(store, now=self.now) if hold else 0
        finally:
            store.close()

    @property
    def machine(self) -> str | None:
        """What names this machine, by machine-id(5); None where nothing does, as in many containers."""
        for path in (Path("/etc/machine-id"), Path("/var/lib/dbus/machine-id")):
            try:
                found = path.read_text(encoding="ascii").strip()
            except (OSError, ValueError):
                continue
            if found and found != "uninitialized":
                return found
        return None

    def adopt(self, *, hold: bool) -> tuple[int, bool]:
        """Make this machine the history's own; return how many deliveries were held, and whether it was another's."""
        from digestd.flows.home import adopt
        from digestd.flows.keeping import ADOPTED, hold_deliveries
        from digestd.store.writer import sole_process

        with sole_process(self.store_path, "sender", what="expected no other process that sends, found one"):
            held = hold_deliveries(self.store, now=self.now, why=ADOPTED) if hold else 0
            return held, adopt(self.store, self.machine)

    def restore(self, backup: Path, *, hold: bool) -> Restored:
        """Put a backup in place of the history, as the only process at work on it.

        Raises:
            StoreError: a daemon works on the history, or the backup is not good.
            StoreBusyError: another process sends, or has the history open.
        """
        from digestd.daemon import lock_history
        from digestd.store.backup import give_locks, restore
        from digestd.store.writer import sole_process

        path = self.store_path
        with (
            lock_history(path),
            sole_process(path, "sender", what="expected no other process that sends, found one"),
        ):
            restored = restore(path, backup, prepare=partial(self._prepare, hold=hold))
            give_locks(path)
        return restored

    def write_file(self, path: Path, body: bytes) -> None:
        """Write one file, replaced whole; ChannelError if it cannot be."""
        self.file_writer(path.parent)({path.name: body})

    def file_writer(self, folder: Path) -> WriteFiles:
        """Return what puts files into a folder, each replaced whole."""
        from digestd.send.files import write_files

        return lambda documents: write_files(folder, documents)

    def close(self) -> None:
        """Close what was opened."""
        opened = self.__dict__.get("store")
        if opened is not None:
            opened.close()


def _calendar(source: SourceSettings) -> Calendar:
    """Return when a source rests."""
    from digestd.model.source import Calendar
    from digestd.schedule import DAYS, find_zone, parse_time

    named = [day.partition(" ") for day in source.holidays]
    return Calendar(
        zone=find_zone(source.zone),
        due_by=parse_time(source.due_by),
        rest_days=frozenset(DAYS.index(day) for day in source.rest_days),
        holidays={date.fromisoformat(day): name.strip() for day, _, name in named},
    )


def _secret_of(given: str | None, file: Path | None) -> str:
    """Return a secret as given, or what its file holds; "" for neither."""
    return _read_text(file, "secret").strip() if file is not None else given or ""


def _read_text(file: Path, what: str) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{what} {file}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{what} {file}: expected UTF-8 text, found byte {error.object[error.start]:#04x}") from None
