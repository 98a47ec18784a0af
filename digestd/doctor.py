"""What would keep digestd from its work, each with the mend. Floor 5. Entry point: :func:`examine`.

Nothing is sent. Asked are the mail relay of the settings, the DNS for the sender's records, and our own public address.
"""

from __future__ import annotations

import asyncio
import os
import platform
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from email.policy import SMTP
from pathlib import Path
from urllib.parse import urlsplit

from digestd.config import find_config
from digestd.errors import DigestdError, StoreError
from digestd.mail_dns import Offline, is_reserved, judge_domain
from digestd.wiring import App

#: bytes that a disk must have left
_LEAST_FREE = 500_000_000

#: commits a second below which a digest for many readers takes minutes
_LEAST_SYNCS = 50
_SYNCS = 20

#: no clock that is right shows a day before this
_RELEASED = datetime(2026, 11, 1, tzinfo=UTC)
#: how far the history may be ahead: another machine's clock, or one that was just set
_CLOCK_SLACK = timedelta(minutes=5)
_TIMESYNC = Path("/run/systemd/timesync")


@dataclass(frozen=True, slots=True)
class Examined:
    """One thing that was looked at."""

    what: str
    problem: str = ""  #: "" if it is well
    mend: str = ""
    note: str = ""  #: worth knowing, no fault: what could not be asked, what digestd works around


def examine(app: App, config: Path | None) -> list[Examined]:
    """Return what was looked at and what is wrong with it; an error in one look does not end the others.

    Args:
        app: whose settings were read already.
        config: the settings file as the person named it.
    """
    looks: dict[str, tuple[Callable[[], Iterator[Examined]], str]] = {
        "history": (lambda: _database(app), "'digestd restore FILE' puts a backup in its place"),
        "disk": (lambda: _disk(app.store_path.parent), "choose a folder that can be written for store.path"),
        "permissions": (lambda: _permissions(app, find_config(config)), ""),
        "mail": (lambda: _mail(app), "look at [mail] in the settings"),
        "dns": (lambda: _dns(app), "look at the dkim keys in [mail]"),
        "pages": (lambda: _pages(app), "look at [web] in the settings"),
        "clock": (lambda: _clock(app), ""),
        "versions": (_versions, ""),
        "templates": (lambda: _templates(app), "mend the file in templates.folder, or take it away"),
        "settings": (lambda: _settings(app), ""),
    }
    found: list[Examined] = []
    for what, (look, mend) in looks.items():
        try:
            problems = list(look())
        except (DigestdError, OSError) as error:
            problems = [Examined(what, str(error), mend)]
        found += problems or [Examined(what)]
    return found


def _database(app: App) -> Iterator[Examined]:
    if not app.store_path.exists():
        return  # it is made by the first command that writes
    database = app.store.accounts.database()
    for what, found, expected in database.faults:
        yield Examined(
            "history", f"{what}: expected {expected}, found {found}", "'digestd restore FILE' puts a backup in"
        )
    if not database.faults:
        yield Examined("history")
    for note in database.notes:
        yield Examined("versions", note=f"{note}; digestd does, and a newer SQLite needs it no more")


def _disk(folder: Path) -> Iterator[Examined]:
    folder = next(one for one in (folder, *folder.parents) if one.is_dir())
    free = shutil.disk_usage(folder).free
    if free < _LEAST_FREE:
        yield Examined("disk", f"{folder}: {free // 1_000_000:,} MB free", f"make room: {_LEAST_FREE // 1_000_000} MB")
    rate = _syncs_per_second(folder)
    if rate < _LEAST_SYNCS:
        yield Examined("disk", f"{folder}: {rate:.0f} fsync a second", "put the history on a faster disk")


def _syncs_per_second(folder: Path) -> float:
    """Return how often a second a small piece can be brought to the disk."""
    with tempfile.TemporaryFile(dir=folder) as file:
        begin = time.perf_counter()
        for _ in range(_SYNCS):
            file.write(b"\0" * 4096)
            file.flush()
            os.fsync(file.fileno())
        return _SYNCS / max(time.perf_counter() - begin, 1e-9)


def _permissions(app: App, config: Path | None) -> Iterator[Examined]:
    private = [app.store_path] if app.store_path.exists() else []
    if config is not None and app.settings.mail.password is not None:
        private.append(config)
    for path in private:
        mode = stat.S_IMODE(path.stat().st_mode)
        if mode & 0o007:
            yield Examined("permissions", f"{path}: everybody may read it ({mode:o})", f"chmod o-rwx {path}")


def _mail(app: App) -> Iterator[Examined]:
    mail = app.settings.mail
    if mail.channel == "smtp":
        problem = asyncio.run(app.try_relay())
        if problem:
            yield Examined(
                "mail", f"relay {mail.host} port {mail.relay_port}: {problem}", "look at [mail] in the settings"
            )
    elif mail.folder is not None and not os.access(
        mail.folder if mail.folder.exists() else mail.folder.parent, os.W_OK
    ):
        yield Examined("mail", f"{mail.folder}: cannot be written", "choose another mail.folder")
    if "." not in mail.from_address.rpartition("@")[2] and mail.channel == "smtp":
        yield Examined("mail", f"sender {mail.from_address} is no public address", "set mail.from_address")


def _dns(app: App) -> Iterator[Examined]:
    """Yield what the DNS must say for mail to arrive and does not."""
    mail = app.settings.mail
    domain = mail.from_address.rpartition("@")[2]
    if mail.channel not in ("smtp", "lmtp", "sendmail") or "." not in domain:
        return
    if is_reserved(domain):
        yield Examined("dns", note=f"{domain} is a domain for examples, of which the DNS knows nothing")
        return
    host = "" if mail.host in ("localhost", "127.0.0.1", "::1") or mail.channel != "smtp" else mail.host
    keys = app.published_keys()
    try:
        found = judge_domain(domain, host, keys, app.look_up)
    except Offline as offline:
        note = f"could not be asked for {offline}; without a network, or without the extra dkim, nothing is known of it"
        yield Examined("dns", note=note)
        return
    yield from (Examined("dns", one.problem, one.mend) for one in found)
    if not keys:
        note = f"{domain}: digestd does not sign; whether the relay does, and with which key, a mail to yourself shows"
        yield Examined("dns", note=note)


def _pages(app: App) -> Iterator[Examined]:
    """Yield whether the links of mails lead anywhere."""
    web = app.settings.web
    if web.base_url is None:
        return  # the settings are told of it
    host = urlsplit(web.base_url).hostname or ""
    if host != "localhost" and is_reserved(host):
        yield Examined("pages", note=f"{web.base_url} is an address for examples")
        return
    url = f"{web.base_url}/healthz" if web.serve else f"{web.base_url}/"
    problem = asyncio.run(app.try_url(url, private=True))
    if problem:
        mend = f"start 'digestd run', or have the server in front lead to {web.host} port {web.port}"
        yield Examined("pages", f"{url}: {problem}", mend)


def _clock(app: App) -> Iterator[Examined]:
    """Yield whether the clock is behind what happened already, or is still being set."""
    mend = "set the clock, and let systemd-timesyncd or chrony keep it"
    if app.now < _RELEASED:
        yield Examined("clock", f"it shows {app.now:%Y-%m-%d}, a day before this release was made", mend)
    latest = _latest(app)
    if latest is not None and latest > app.now + _CLOCK_SLACK:
        problem = f"it shows {app.now:%Y-%m-%d %H:%M} UTC, and the history has seen {latest:%Y-%m-%d %H:%M}"
        yield Examined("clock", problem, mend)
    if _TIMESYNC.is_dir() and not (_TIMESYNC / "synchronized").exists():
        yield Examined("clock", note="systemd-timesyncd has not set it yet")


def _latest(app: App) -> datetime | None:
    """Return when something happened last by the history; None if it says nothing: what is wrong with it is said elsewhere."""
    if not app.store_path.exists():
        return None
    try:
        instants = [sign.at for sign in app.store.troubles.signs().values()]
        instants += [one.at for spec in app.source_specs for one in app.store.sources.polls(spec.name)[-1:]]
    except StoreError:
        return None
    return max(instants, default=None)


def _versions() -> Iterator[Examined]:
    """Yield the known faults of this Python that digestd works around; those of SQLite come with the history."""
    if breaks_headers():
        note = (
            f"Python {platform.python_version()} turns encoded line breaks of a header into real ones (CVE-2024-6923); "
            "digestd writes its headers without it, a newer Python is better all the same"
        )
        yield Examined("versions", note=note)


def breaks_headers() -> bool:
    """Return whether this Python lets an encoded word add a header, found by trying.

    By its number it cannot be told: distributions mended older ones.
    """
    mail = EmailMessage()
    mail["Subject"] = "=?utf-8?q?a=0D=0ABcc:_e@example.org?="
    try:
        return b"\nBcc:" in mail.as_bytes(policy=SMTP)
    except ValueError:  # a mended one refuses to write it
        return False


def _templates(app: App) -> Iterator[Examined]:
    for name in app.templates.list_templates():
        if name.endswith(".j2"):
            try:
                app.templates.get_template(name)
            except Exception as error:  # a template of one's own can fail in any way
                yield Examined("templates", f"{name}: {error}", "mend the file in templates.folder, or take it away")


def _settings(app: App) -> Iterator[Examined]:
    settings = app.settings
    if settings.web.base_url is None:
        yield Examined("settings", "mails carry no links to unsubscribe or to the pages", "set web.base_url")
        if settings.feeds.authority is None:
            yield Examined(
                "settings", "entries of feeds have ids of nobody", "set feeds.authority, and never change it"
            )
    if not settings.sources:
        yield Examined("settings", "no source is watched", "add [[sources]], or use 'digestd ingest'")
