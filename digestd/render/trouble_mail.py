"""What is not well, as mail to the operator: text alone. Floor 1. Entry point: :func:`render_troubles`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from digestd import phrases
from digestd.model.delivery import MailParts
from digestd.model.trouble import KnownTrouble
from digestd.render.mail import Templates
from digestd.render.mime import clean_text
from digestd.troubles import Look

#: of a trouble's words, which may hold what a server answered
_MOST_WHY = 400
#: troubles of a kind that are named, the others are counted: a mail stays one that is read
MOST_NAMED = 20


@dataclass(frozen=True, slots=True)
class TroubleLine:
    """One trouble in the mail."""

    name: str
    why: str
    since: str  #: "2026-09-30 06:00 UTC"
    until: str = ""  #: of a mended one


@dataclass(frozen=True, slots=True)
class TroubleMail:
    """What the mail says."""

    name: str  #: of the digests
    begun: tuple[TroubleLine, ...]
    lasting: tuple[TroubleLine, ...]
    mended: tuple[TroubleLine, ...]
    totals: tuple[int, int, int]  #: how many there are of each, those without room too
    language: str = "en"

    @property
    def unnamed(self) -> int:
        """How many there was no room for."""
        return sum(self.totals) - len(self.begun) - len(self.lasting) - len(self.mended)

    @property
    def subject(self) -> str:
        """What is told, shortest first: "Reef news: source Reefs"."""
        parts = []
        told = (("", self.begun), ("still: ", self.lasting), ("mended: ", self.mended))
        for (words, lines), total in zip(told, self.totals, strict=True):
            if lines:
                more = f" and {total - 1} more" if total > 1 else ""
                parts.append(f"{words}{phrases.cut_at_word(lines[0].name, 40)}{more}")
        return f"[digestd] {'; '.join(parts)}"


def trouble_mail(look: Look, *, name: str, language: str) -> TroubleMail:
    """Return what a look is told in."""
    begun, lasting, mended = look.mailed
    totals = len(begun), len(lasting), len(mended)
    return TroubleMail(name, _lines(begun), _lines(lasting), _lines(mended), totals, language)


def render_troubles(mail: TroubleMail, templates: Templates) -> MailParts:
    """Return the mail, text alone.

    Args:
        mail: what it says.
        templates: environment with ``mail/trouble.txt.j2``.

    Raises:
        RenderError: the template failed.
    """
    text = clean_text(templates.get_template("mail/trouble.txt.j2").render(mail=mail)).replace(phrases.NBSP, " ")
    text = re.sub("^>", " >", re.sub(r"\n{4,}", "\n\n\n", text), flags=re.MULTILINE)
    return MailParts(mail.subject, text, "", language=mail.language)


def _lines(troubles: Sequence[KnownTrouble]) -> tuple[TroubleLine, ...]:
    return tuple(
        TroubleLine(
            one.trouble.name,
            phrases.cut_at_word(" ".join(one.trouble.why.split()), _MOST_WHY),
            f"{one.since:%Y-%m-%d %H:%M} UTC",
            f"{one.mended_at:%Y-%m-%d %H:%M} UTC" if one.mended_at else "",
        )
        for one in troubles[:MOST_NAMED]
    )
