"""Ways out for messages. Floor 3; ``CHANNELS`` names them, each keeps the contract of ``ports.Channel``."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from digestd.errors import ConfigError
from digestd.ports import Channel
from digestd.send.settings import ChannelSettings

# The adapters are imported when a channel is opened: a command that writes files needs no SMTP client in memory.


def _smtp(settings: ChannelSettings) -> Channel:
    from digestd.send.smtp import SmtpChannel

    return SmtpChannel(settings.smtp)


def _lmtp(settings: ChannelSettings) -> Channel:
    from digestd.send.lmtp import LmtpChannel

    return LmtpChannel(settings.lmtp)


def _sendmail(settings: ChannelSettings) -> Channel:
    from digestd.send.sendmail import SendmailChannel

    return SendmailChannel(settings.sendmail)


def _maildir(settings: ChannelSettings) -> Channel:
    from digestd.send.maildir import MaildirChannel

    if settings.folder is None:
        raise ConfigError("mail folder: expected a folder for channel maildir, found none")
    return MaildirChannel(settings.folder)


def _eml(settings: ChannelSettings) -> Channel:
    from digestd.send.eml_folder import EmlFolderChannel

    if settings.folder is None:
        raise ConfigError("mail folder: expected a folder for channel eml, found none")
    return EmlFolderChannel(settings.folder)


def _webhook(settings: ChannelSettings) -> Channel:
    from digestd.send.webhook import WebhookChannel

    if settings.webhook is None:
        raise ConfigError("mail.channel: expected a way for mail, found webhook, which belongs under [[channels]]")
    return WebhookChannel(settings.webhook)


def _apprise(settings: ChannelSettings) -> Channel:
    from digestd.send.apprise import AppriseChannel

    if settings.apprise is None:
        raise ConfigError("mail.channel: expected a way for mail, found apprise, which belongs under [[channels]]")
    return AppriseChannel(settings.apprise)


#: Name of a channel to what opens it.
CHANNELS: Mapping[str, Callable[[ChannelSettings], Channel]] = {
    "smtp": _smtp,
    "lmtp": _lmtp,
    "sendmail": _sendmail,
    "maildir": _maildir,
    "eml": _eml,
    "webhook": _webhook,
    "apprise": _apprise,
}
