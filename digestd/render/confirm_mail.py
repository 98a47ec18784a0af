"""The mail that asks an address whether it wants digests. Floor 1. Entry point: :func:`render_confirm`.

A stranger may have caused it, so it holds nothing that a stranger wrote: our names of topics, our words for a schedule,
and the address that it goes to.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from digestd import phrases
from digestd.model.delivery import MailParts
from digestd.render.mail import Templates
from digestd.render.mime import clean_text

#: names of topics that the subject has room for
_MOST_NAME = 40


@dataclass(frozen=True, slots=True)
class ConfirmMail:
    """What the mail says."""

    name: str  #: of the digests
    topics: tuple[str, ...]  #: names
    schedule: str  #: in words: "Mondays at 07:30, UTC"
    hours: int  #: how long its link works
    language: str = "en"

    @property
    def subject(self) -> str:
        """What it asks."""
        return f"Confirm: {phrases.cut_at_word(_joined(self.topics), _MOST_NAME)} by mail"


def render_confirm(mail: ConfirmMail, *, link: str, address: str, templates: Templates) -> MailParts:
    """Return the mail as text and HTML.

    Args:
        mail: what it says.
        link: to the page that asks for the click, or a placeholder of it.
        address: that it goes to, or a placeholder of it.
        templates: environment with ``mail/confirm.html.j2`` and ``mail/confirm.txt.j2``.

    Raises:
        RenderError: a template failed.
    """
    values = {"mail": mail, "wanted": _joined(mail.topics), "link": link, "address": address}
    html = clean_text(templates.get_template("mail/confirm.html.j2").render(**values))
    text = clean_text(templates.get_template("mail/confirm.txt.j2").render(**values)).replace(phrases.NBSP, " ")
    return MailParts(mail.subject, re.sub("^>", " >", text, flags=re.MULTILINE), html, language=mail.language)


def _joined(names: Sequence[str]) -> str:
    return phrases.join_words(names)
