"""What would keep digestd from its work, each with the mend. Floor 5. Entry point: :func:`examine`.

Nothing is sent. The only machine that is asked is the mail relay of the settings.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from digestd.config import find_config
from digestd.errors import DigestdError
from digestd.wiring import App

#: bytes that a disk must have left
_LEAST_FREE = 500_000_000

#: commits a second below which a digest for many readers takes minutes
_LEAST_SYNCS = 50
_SYNCS = 20


@dataclass(frozen=True, slots=True)
class Examined:
    """One thing that was looked at."""

    what: str
    problem: str = ""  #: "" if it is well
    mend: str = ""


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
    for what, found, expected in app.store.accounts.database().faults:
        yield Examined(
            "history", f"{what}: expected {expected}, found {found}", "'digestd restore FILE' puts a backup in"
        )


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
