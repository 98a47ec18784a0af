"""Settings and where they come from. Floor 5; the only module that reads the environment.

Entry point: :func:`load_settings`. Four layers, a later one wins: the TOML file, environment variables
``DIGESTD_SECTION__KEY``, credential files of the service manager (``$CREDENTIALS_DIRECTORY/mail__password``), and the
command line. ``Settings()`` alone is the defaults and reads nothing. Importing this module costs about 60 ms, so
commands that need no settings do not import it.
"""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from platformdirs import site_config_path, user_config_path, user_state_path
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    IPvAnyNetwork,
    SecretStr,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    NestedSecretsSettingsSource,
    SettingsConfigDict,
    SettingsError,
)

from digestd.config_findings import Layer, finding_lines, nearest_key, shown_value
from digestd.errors import ConfigError
from digestd.parse import PARSERS

_PREFIX = "DIGESTD_"
_FILE_NAME = "digestd.toml"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


def _plain_text(text: str) -> str:
    if _CONTROL.search(text):
        raise ValueError("text on one line, without control characters")
    return text


def _address(text: str) -> str:
    local, at, domain = _plain_text(text).rpartition("@")
    if not (local and at and domain) or " " in text:
        raise ValueError("an address like 'digest@example.org'")
    return text


def _web_address(text: str) -> str:
    if not re.match(r"https?://[^/\s]+", _plain_text(text)):
        raise ValueError("an address that begins with https:// or http://")
    return text


def _resolve(path: Path, info: ValidationInfo) -> Path:
    """Return the path as an absolute one; relative ones begin at the configuration file's folder."""
    folder: Path = (info.context or {}).get("folder") or Path.cwd()
    return folder / path.expanduser()


def _zone(text: str) -> str:
    try:
        ZoneInfo(_plain_text(text))
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ValueError("a time zone like 'Europe/Berlin'") from error
    return text


def _clock(text: str) -> str:
    if not re.fullmatch(r"([01]?\d|2[0-3]):[0-5]\d", text, re.ASCII):
        raise ValueError("a time of day like '07:30'")
    return text


def _holiday(text: str) -> str:
    day, _, _ = _plain_text(text).partition(" ")
    if not _is_day(day):
        raise ValueError("a day, with its name if wanted, like '2026-12-25 Christmas Day'")
    return text


def _is_day(text: str) -> bool:
    try:
        return date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


Text = Annotated[str, AfterValidator(_plain_text)]
Zone = Annotated[str, AfterValidator(_zone)]
Clock = Annotated[str, AfterValidator(_clock)]
Holiday = Annotated[str, AfterValidator(_holiday)]
WeekDay = Literal["mon", "tue", "wed", "thu", "fri", "sat", "sun"]
Address = Annotated[str, AfterValidator(_address)]
WebAddress = Annotated[str, AfterValidator(_web_address)]
FilePath = Annotated[Path, AfterValidator(_resolve)]


def _default_store() -> Path:
    """Return the history file of a service (``$STATE_DIRECTORY``) or of a user (XDG state folder)."""
    given = os.environ.get("STATE_DIRECTORY", "").split(":")[0]
    return (Path(given) if given else user_state_path("digestd")) / "digestd.sqlite"


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)


class StoreSettings(_Section):
    """The history file."""

    path: FilePath = Field(
        default_factory=_default_store, description="File of the history; without it, in the service's state folder."
    )
    floor_mb: int = Field(
        default=200,
        ge=0,
        le=1_000_000,
        description="Megabytes that must be free for new papers and digests; 0: no floor.",
    )
    ballast_mb: int = Field(
        default=16, ge=0, le=10_000, description="Megabytes kept to be given up when the disk is full; 0: none."
    )


class DigestSettings(_Section):
    """What a digest holds, where a subscription says nothing else."""

    name: Text = Field(
        default="Paper digest", min_length=1, description="Name of the digests, in subjects and on pages."
    )
    papers_per_topic: int = Field(
        default=12, ge=1, le=500, description="Papers shown in full per topic; the rest by title."
    )
    budget: int = Field(default=40, ge=1, le=1000, description="Papers shown in full per digest, over all topics.")
    welcome_papers: int = Field(default=10, ge=0, le=100, description="Latest papers in a reader's first digest.")
    tagged_shown: int = Field(default=5, ge=0, le=100, description="Older papers newly tagged that a digest shows.")
    language: Text = Field(
        default="en",
        pattern=r"^[A-Za-z]{2,3}(-[A-Za-z0-9]+)*$",
        description="Language tag of mails and feeds, like en or en-US.",
    )


class FeedsSettings(_Section):
    """Feeds that readers subscribe to."""

    authority: Text | None = Field(
        default=None,
        description="Domain of yours in the entries' permanent ids; never change it. Else: host of web.base_url.",
    )
    since: Text = Field(
        default="2026",
        pattern=r"^[0-9]{4}(-[0-9]{2}){0,2}$",
        description="A date on which that domain was yours, like 2026 or 2026-09-30; never change it.",
    )
    entries: int = Field(default=100, ge=1, le=1000, description="Newest papers in a feed.")
    archive_page: int = Field(default=100, ge=10, le=1000, description="Papers in a page of a feed's archive.")
    folder: FilePath | None = Field(
        default=None, description="Folder for feeds and pages as files; else beside the history."
    )


class WebSettings(_Section):
    """The built-in web server."""

    base_url: WebAddress | None = Field(
        default=None, description="Public address of the pages, without which mails carry no links to them."
    )
    serve: bool = Field(default=True, description="Whether the daemon serves the pages and feeds itself.")
    host: Text = Field(default="127.0.0.1", description="Address to listen on.")
    port: int = Field(default=8080, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")
    proxies: tuple[IPvAnyNetwork, ...] = Field(
        default=(), description="Networks of proxies in front, whose word on a client's address is believed."
    )
    operator: Text | None = Field(default=None, description="Who runs this, one line at the foot of every page.")

    @field_validator("base_url")
    @classmethod
    def _without_slash(cls, value: str | None) -> str | None:
        return value.rstrip("/") if value else value


class LabelsSettings(_Section):
    """Names of labels, by which tag lines are cut."""

    file: FilePath | None = Field(
        default=None, description="File of label names, one a line; else the list that comes along."
    )


class MatchSettings(_Section):
    """Which papers of a feed belong to a topic; words and phrases are compared by whole words in title and abstract."""

    any_of: tuple[Text, ...] = Field(default=(), description="Words or phrases, of which one must occur.")
    all_of: tuple[Text, ...] = Field(default=(), description="Words or phrases that must all occur.")
    none_of: tuple[Text, ...] = Field(default=(), description="Words or phrases that must not occur.")
    categories: tuple[Text, ...] = Field(
        default=(), description="Categories, of which one must stand; 'cs.' means all of cs."
    )
    authors: tuple[Text, ...] = Field(default=(), description="Authors, of whom one must stand.")
    labels: tuple[Text, ...] = Field(default=(), description="Labels, of which one must stand.")


class TopicSettings(_Section):
    """A topic that is known before its first page arrives, or that is fed by a rule."""

    name: Text = Field(min_length=1, description="Name as it is shown.")
    gloss: Text | None = Field(default=None, description="What the name stands for: 'LLM: Large Language Model'.")
    match: MatchSettings | None = Field(default=None, description="Rule by which papers of feeds belong to the topic.")


class SourceSettings(_Section):
    """Where snapshots come from: a watched folder or an address."""

    kind: Literal["folder", "url"] = Field(description="folder (on this machine) or url.")
    name: Text = Field(default="", description="Name in status and logs; else the path or address.")
    path: FilePath | None = Field(default=None, description="Folder that snapshots are put into (kind folder).")
    url: WebAddress | None = Field(default=None, description="Address of a listing, feed or JSON snapshot (kind url).")
    topic: Text | None = Field(default=None, description="Topic of its papers, where the source itself names none.")
    order: Literal["auto", "listing", "feed"] = Field(
        default="auto",
        description="What its order says: listing (newest first, without holes), feed (nothing) or auto.",
    )
    format: str = Field(default="auto", description="Format of its documents; auto looks at each.")
    rules: FilePath | None = Field(default=None, description="File of CSS selectors, for pages of other sites.")
    page_template: WebAddress | None = Field(default=None, description="Address of older pages, with {page} in it.")
    max_pages: int = Field(
        default=5, ge=1, le=100, description="Pages of a listing read at one look (needs page_template)."
    )
    interval_s: int = Field(default=3600, ge=1800, le=604800, description="Seconds between two looks at the address.")
    daily: bool = Field(default=False, description="Whether something new is due on each working day.")
    zone: Zone = Field(default="UTC", description="Time zone in which its days are counted.")
    due_by: Clock = Field(default="02:00", description="Time of day until which a working day's batch is out.")
    rest_days: tuple[WeekDay, ...] = Field(
        default=("sat", "sun"), description="Days of the week on which nothing new is due."
    )
    holidays: tuple[Holiday, ...] = Field(
        default=(), description="Other days on which nothing new is due, each with its name if wanted."
    )
    allow_private: bool = Field(default=False, description="Whether the address may lead into a private network.")

    @field_validator("format")
    @classmethod
    def _known_format(cls, value: str) -> str:
        if value not in ("auto", *PARSERS):
            raise ValueError(f"one of {', '.join(('auto', *PARSERS))}")
        return value

    @model_validator(mode="after")
    def _place_of_its_kind(self) -> Self:
        if self.kind == "folder" and (self.path is None or self.url is not None):
            raise ValueError("a path and no url, because kind is 'folder'")
        if self.kind == "url" and (self.url is None or self.path is not None):
            raise ValueError("a url and no path, because kind is 'url'")
        if self.page_template is not None and "{page}" not in self.page_template:
            raise ValueError("{page} in page_template")
        return self

    @property
    def label(self) -> str:
        """The name, or the path or address in its place."""
        return self.name or self.url or str(self.path)


class SubscriberSettings(_Section):
    """A reader who is declared here, for people who keep everything in files; the command 'digestd follow' is the other way."""

    address: Text = Field(description="Address, with a name if wanted.")
    topics: tuple[Text, ...] = Field(min_length=1, description="Topics in the reader's order.")
    schedule: Text = Field(
        default="weekly mon 07:30",
        description="When: daily 07:30, weekly mon,thu 07:30, monthly 1 07:30, cron 30 7 * * 1 or each-snapshot.",
    )
    zone: Text = Field(default="UTC", description="Time zone of these times.")
    first: Text = Field(
        default="latest:10", description="What the first digest holds: none, latest:10 or since:2026-09-01."
    )
    format: Literal["html", "text"] = Field(
        default="html", description="Form of the mail: html (with a text part) or text."
    )
    include: tuple[Text, ...] = Field(
        default=(),
        description="Only papers that fit one of these rules, like 'author:Ana Lima', 'category:cs.' or 'diffusion model'.",
    )
    exclude: tuple[Text, ...] = Field(default=(), description="No papers that fit one of these rules.")
    budget: int | None = Field(
        default=None, ge=1, le=1000, description="Papers shown in full in a digest; else as in [digest]."
    )
    all_quiet: bool = Field(default=False, description="Whether a short mail comes when there is nothing new.")
    alert: bool = Field(default=False, description="Whether a mail comes when a topic starts to rise or to cool.")


class ChannelSettings(_Section):
    """A channel beside mail, which readers can be: the reader 'channel:team' is the channel named team."""

    name: Text = Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,39}$", description="Name of the channel, in small letters.")
    kind: Literal["webhook", "apprise"] = Field(
        default="webhook",
        description="webhook (signed JSON to an address of yours) or apprise (Slack, Matrix, ntfy, ...).",
    )
    url: SecretStr | None = Field(
        default=None, description="Where to: https://..., or an address of apprise; it may hold a secret."
    )
    url_file: FilePath | None = Field(
        default=None, description="File with that address in its place, to keep it out of this one."
    )
    secret: SecretStr | None = Field(
        default=None, description="Secret that a webhook's messages are signed with, of at least 16 characters."
    )
    secret_file: FilePath | None = Field(default=None, description="File with that secret in its place.")
    idempotent: bool = Field(
        default=False, description="Whether the receiver takes each Idempotency-Key once, so that doubt is sent again."
    )
    timeout_s: float = Field(default=60, gt=0, le=600, description="Seconds until a message must have been answered.")

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if self.url is None and self.url_file is None:
            raise ValueError("url or url_file, found neither")
        if self.secret is not None and len(self.secret.get_secret_value()) < 16:
            raise ValueError("a secret of at least 16 characters")
        return self


class ListingSettings(_Section):
    """How listings behave."""

    late_days: int = Field(default=7, ge=0, le=60, description="Days in which a listing still fills in late.")
    tagged_days: int = Field(
        default=30, ge=1, le=3650, description="Days before a topic's start from which a feed's paper is old."
    )


class ArxivSettings(_Section):
    """What arXiv feeds announce."""

    cross_lists: bool = Field(default=True, description="Whether papers cross-listed from other categories are told.")


class FoldersSettings(_Section):
    """Watched folders."""

    done: Literal["move", "keep"] = Field(
        default="move", description="What happens to a file that was read: move (to the folder done) or keep."
    )


class FetchSettings(_Section):
    """How addresses are read."""

    contact_url: WebAddress | None = Field(
        default=None, description="Page on which other sites can read who asks; else web.base_url."
    )
    deadline_s: float = Field(default=60, gt=0, le=600, description="Seconds until a document must be complete.")
    max_bytes: int = Field(default=5_000_000, ge=10_000, le=200_000_000, description="Bytes that a document may have.")
    allow_networks: tuple[IPvAnyNetwork, ...] = Field(
        default=(), description="Private networks that may be asked, like '10.1.0.0/16'."
    )
    host_interval_s: float = Field(default=3, ge=0, le=3600, description="Seconds between two questions to one host.")
    isolate: bool = Field(
        default=True, description="Whether documents of sources are read in a process that can be stopped."
    )


class MailSettings(_Section):
    """How mail leaves."""

    channel: Text = Field(default="smtp", description="The way mail leaves, smtp if to a relay.")
    from_name: Text | None = Field(default=None, description="Name of the sender; else the digest's name.")
    from_address: Address = Field(default="digestd@localhost", description="Address of the sender.")
    reply_to: Address | None = Field(default=None, description="Address for answers; else the sender's.")
    mode: Literal["starttls", "implicit", "none"] = Field(
        default="starttls",
        description="How the connection is encrypted: starttls, implicit (TLS from the first byte) or none.",
    )
    host: Text = Field(default="localhost", min_length=1, description="Mail relay.")
    port: int | None = Field(
        default=None, ge=1, le=65535, description="Port of the relay; else 587, 465 or 25, by mode."
    )
    username: Text | None = Field(default=None, description="Name to log in with; without it there is no login.")
    password: SecretStr | None = Field(default=None, description="Password; better as the credential mail__password.")
    ca_file: FilePath | None = Field(
        default=None, description="Certificates to trust, for a relay with one of its own."
    )
    connections: int = Field(default=10, ge=1, le=50, description="Connections to the relay at the same time.")
    timeout_s: float = Field(
        default=60, gt=0, le=600, description="Seconds until the relay must have answered a command."
    )
    folder: FilePath | None = Field(default=None, description="Folder of channels that write files.")
    bounce_address: Address | None = Field(
        default=None, description="Address that bounces go to, with a token in each; it must reach 'digestd bounce'."
    )
    unsubscribe_address: Address | None = Field(
        default=None, description="Address at which a mail ends a subscription; it must reach 'digestd bounce'."
    )
    dkim_selector: Text | None = Field(
        default=None, description="Name of the RSA key in DNS, where the relay does not sign; needs the extra dkim."
    )
    dkim_key: FilePath | None = Field(default=None, description="File of that private RSA key, PEM.")
    dkim_second_selector: Text | None = Field(
        default=None, description="Name of an Ed25519 key in DNS, for a second signature."
    )
    dkim_second_key: FilePath | None = Field(default=None, description="File of that private key, PEM or base64.")
    on_uncertain: Literal["resend", "hold"] = Field(
        default="resend", description="What becomes of a mail that may have been sent: resend (once) or hold."
    )

    @model_validator(mode="after")
    def _whole_keys(self) -> Self:
        if (self.dkim_selector is None) != (self.dkim_key is None):
            raise ValueError("dkim_selector and dkim_key, both or neither")
        if (self.dkim_second_selector is None) != (self.dkim_second_key is None):
            raise ValueError("dkim_second_selector and dkim_second_key, both or neither")
        return self

    @model_validator(mode="after")
    def _no_open_password(self) -> Self:
        if self.mode == "none" and self.password is not None and self.host not in ("localhost", "127.0.0.1", "::1"):
            raise ValueError(
                "mode 'starttls' or 'implicit', because a password is set and the relay is another machine"
            )
        return self

    @property
    def relay_port(self) -> int:
        """The port, or the usual one of the mode."""
        return self.port or {"starttls": 587, "implicit": 465, "none": 25}[self.mode]


class BouncesSettings(_Section):
    """Where mail that came back is read by 'digestd bounce --imap'; needs the extra imap."""

    imap_host: Text | None = Field(default=None, min_length=1, description="Mail server; without it there is none.")
    imap_port: int | None = Field(
        default=None, ge=1, le=65535, description="Port of the server; else 993, or 143 without encryption."
    )
    imap_mode: Literal["implicit", "none"] = Field(
        default="implicit", description="How the connection is encrypted: implicit (TLS from the first byte) or none."
    )
    imap_ca_file: FilePath | None = Field(
        default=None, description="Certificates to trust, for a server with one of its own."
    )
    imap_username: Text | None = Field(default=None, description="Name to log in with.")
    imap_password: SecretStr | None = Field(
        default=None, description="Password; better as the credential bounces__imap_password."
    )
    imap_folder: Text = Field(default="INBOX", min_length=1, description="Folder that mail that came back is put into.")

    @model_validator(mode="after")
    def _no_open_password(self) -> Self:
        if self.imap_mode == "none" and self.imap_host not in (None, "localhost", "127.0.0.1", "::1"):
            raise ValueError("imap_mode 'implicit', because the server is another machine")
        return self


class TemplatesSettings(_Section):
    """Templates of your own."""

    folder: FilePath | None = Field(default=None, description="Folder whose files replace templates of the same name.")


class OperatorSettings(_Section):
    """Who is told when something is not well; never a reader."""

    to: tuple[Address, ...] = Field(default=(), description="Addresses that are told; none: it is only logged.")
    patience_s: int = Field(
        default=21_600,
        ge=60,
        le=2_592_000,
        description="Seconds that a source may be broken or stale until they are told.",
    )
    heartbeat_url: SecretStr | None = Field(
        default=None, description="Address that is asked each minute as long as all goes well (a dead-man switch)."
    )

    @field_validator("heartbeat_url")
    @classmethod
    def _is_web_address(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None:
            _web_address(value.get_secret_value())
        return value


class KeepSettings(_Section):
    """How long what is kept for a time; papers, and what was told to whom, are kept for ever."""

    mail_days: int = Field(
        default=180,
        ge=7,
        le=36_500,
        description="Days after which the text of a sent mail is forgotten; that it was sent never is.",
    )
    compact_hour: int = Field(
        default=3,
        ge=-1,
        le=23,
        description="Hour (UTC) in which a file with much empty room is written anew; -1: never.",
    )


class MetricsSettings(_Section):
    """Figures for Prometheus, at /metrics of an address of their own."""

    serve: bool = Field(default=True, description="Whether the daemon shows them.")
    host: Text = Field(default="127.0.0.1", description="Address to listen on; keep it from strangers.")
    port: int = Field(default=9477, ge=0, le=65535, description="Port to listen on; 0 takes a free one.")


class LogSettings(_Section):
    """What is written to standard error."""

    level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="From which level on: debug, info, warning or error."
    )
    format: Literal["auto", "text", "json", "journal"] = Field(
        default="auto", description="text, json (one object a line), journal, or auto (the journal under systemd)."
    )


class Settings(_Section):
    """All settings; without arguments, the defaults."""

    store: StoreSettings = Field(default_factory=StoreSettings)
    digest: DigestSettings = DigestSettings()
    feeds: FeedsSettings = FeedsSettings()
    web: WebSettings = WebSettings()
    labels: LabelsSettings = LabelsSettings()
    listing: ListingSettings = ListingSettings()
    arxiv: ArxivSettings = ArxivSettings()
    folders: FoldersSettings = FoldersSettings()
    fetch: FetchSettings = FetchSettings()
    mail: MailSettings = MailSettings()
    bounces: BouncesSettings = BouncesSettings()
    templates: TemplatesSettings = TemplatesSettings()
    operator: OperatorSettings = OperatorSettings()
    keep: KeepSettings = KeepSettings()
    metrics: MetricsSettings = MetricsSettings()
    log: LogSettings = LogSettings()
    topics: tuple[TopicSettings, ...] = ()
    sources: tuple[SourceSettings, ...] = ()
    subscribers: tuple[SubscriberSettings, ...] = ()
    channels: tuple[ChannelSettings, ...] = ()

    @field_validator("topics", "sources", "channels")
    @classmethod
    def _different_names(cls, rows: tuple[Any, ...]) -> tuple[Any, ...]:
        names = [(row.label if isinstance(row, SourceSettings) else row.name).casefold() for row in rows]
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise ValueError(f"different names, {shown_value(twice[0])} stands twice")
        return rows

    @model_validator(mode="after")
    def _known_channels(self) -> Self:
        known = {channel.name for channel in self.channels}
        for one in self.subscribers:
            name = one.address.removeprefix("channel:")
            if name != one.address and name not in known:
                raise ValueError(f"a channel of [[channels]] for each subscriber, found {shown_value(one.address)}")
        return self


class _Outside(Settings, BaseSettings):
    """The same fields, as the readers of environment and credentials want them; never made."""

    model_config = SettingsConfigDict(env_prefix=_PREFIX, env_nested_delimiter="__", env_ignore_empty=True)


def load_settings(path: Path | None = None, overrides: Mapping[str, Any] | None = None) -> Settings:
    """Return the settings of all layers.

    Args:
        path: the configuration file as named by the user, who is told if it is missing; None looks at
            ``DIGESTD_CONFIG``, the service's, the user's and the machine's configuration folders.
        overrides: values of the command line, nested like the file: ``{"store": {"path": ...}}``.

    Raises:
        ConfigError: a file that was named is missing or cannot be read, a key is unknown, a value is wrong; one line
            for each finding, never with a secret in it.
    """
    file = find_config(path)
    layers: list[Layer] = []
    if file is not None:
        layers.append((str(file), _read_toml(file)))
    layers += [("environment", _read_environment()), ("credentials", _read_credentials())]
    layers.append(("command line", overrides or {}))
    merged: dict[str, Any] = {}
    for _, values in layers:
        merged = _merge(merged, values)
    try:
        return Settings.model_validate(merged, context={"folder": file.parent.absolute() if file else None})
    except ValidationError as error:
        lines = finding_lines(error, Settings, layers)
        raise ConfigError("\n".join(lines)) from None  # the foreign error's text holds what was found, secrets too


def find_config(path: Path | None = None) -> Path | None:
    """Return the configuration file to read, None if there is none.

    Raises:
        ConfigError: the file that was named, here or by ``DIGESTD_CONFIG``, is not there.
    """
    named = path or (Path(value) if (value := os.environ.get("DIGESTD_CONFIG")) else None)
    if named is not None:
        if not named.is_file():
            raise ConfigError(
                f"{named}: expected a configuration file, found {'a folder' if named.is_dir() else 'nothing'}"
            )
        return named
    service = os.environ.get("CONFIGURATION_DIRECTORY", "").split(":")[0]
    folders = [Path(service)] if service else []
    folders += [user_config_path("digestd"), site_config_path("digestd"), Path("/etc/digestd")]
    return next((file for folder in folders if (file := folder / _FILE_NAME).is_file()), None)


def journal_stream() -> str | None:
    """Return what the service manager says the journal is, None outside of one."""
    return os.environ.get("JOURNAL_STREAM") or None


def _read_toml(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file}: expected UTF-8 text, found byte {error.object[error.start]:#04x}") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file}: expected TOML, found: {str(error)[:1].lower()}{str(error)[1:]}") from None


def _read_environment() -> dict[str, Any]:
    """Return the values of ``DIGESTD_SECTION__KEY``; a section that does not exist is an error, not silence."""
    for name in os.environ:
        section = name.removeprefix(_PREFIX).partition("__")[0].lower()
        if name.startswith(_PREFIX) and "__" in name and section not in Settings.model_fields:
            raise ConfigError(
                f"environment: {name}: unknown section {section}{nearest_key(section, Settings.model_fields)}"
            )
    try:
        return EnvSettingsSource(_Outside)()
    except SettingsError as error:
        field = re.search(r'"(\w+)"', str(error))
        name = f"{_PREFIX}{field[1].upper()}" if field else _PREFIX
        raise ConfigError(f"environment: {name}: expected JSON") from None


def _read_credentials() -> dict[str, Any]:
    folder = os.environ.get("CREDENTIALS_DIRECTORY")
    if not folder:
        return {}
    try:
        return NestedSecretsSettingsSource(_Outside, folder, "ok", secrets_prefix="")()  # type: ignore[arg-type]  # the class is allowed
    except (OSError, SettingsError) as error:
        raise ConfigError(f"credentials: {folder} cannot be read") from error


def _merge(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return both, ``over`` winning key by key; lists are replaced as a whole."""
    merged = dict(under)
    for key, value in over.items():
        below = merged.get(key)
        merged[key] = _merge(below, value) if isinstance(value, Mapping) and isinstance(below, Mapping) else value
    return merged


def notify_socket() -> str | None:
    """Return the socket at which the service manager listens (sd_notify(3)); None if there is no such manager."""
    return os.environ.get("NOTIFY_SOCKET") or None


#: number of the first file that a service manager hands over (sd_listen_fds(3))
FIRST_PASSED = 3


def passed_sockets() -> int:
    """Return how many listening sockets the service manager handed to this process, from file 3 on (sd_listen_fds(3))."""
    given = os.environ.get("LISTEN_FDS", "")
    return int(given) if given.isdigit() and os.environ.get("LISTEN_PID") == str(os.getpid()) else 0


def watchdog_seconds() -> float | None:
    """Return how often the service manager wants to hear from us at the least (sd_watchdog_enabled(3)); None: never."""
    given = os.environ.get("WATCHDOG_USEC", "")
    wanted_of = os.environ.get("WATCHDOG_PID", "")
    if not given.isdigit() or (wanted_of and wanted_of != str(os.getpid())):
        return None
    return int(given) / 1_000_000
