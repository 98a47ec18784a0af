"""A turn of a topic as mail. Floor 1. Entry point: ``render_alert``.

As with digests, links that are a reader's own only pass through as placeholders.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from digestd import phrases
from digestd.headline import headline
from digestd.model.delivery import MailParts
from digestd.model.digest import Links, Trend
from digestd.model.turn import Alert
from digestd.render.links import safe_url
from digestd.render.mail import Templates
from digestd.render.mail_view import LinkView
from digestd.render.mime import clean_text
from digestd.turns import WORDS, turn_lines, turn_subject, turn_title

_WHY = "You get this mail because you asked to be told when a topic that you follow starts to rise or to cool."


@dataclass(frozen=True, slots=True)
class AlertView:
    """All that the two templates print."""

    name: str
    language: str
    subject: str
    preheader: str
    day: str  #: "Sep 30, 2026"
    topic: str
    url: str
    trend: str  #: rising or cooling
    rises: bool
    headline: str
    note: str
    lines: tuple[str, ...]  #: what it rests on, sentences
    coverage: str
    why: str
    links: tuple[LinkView, ...]


def render_alert(alert: Alert, links: Links, templates: Templates) -> MailParts:
    """Return an alert as mail, text and HTML, without pictures.

    Args:
        alert: what is told.
        links: a reader's own addresses; those that are None are left out.
        templates: environment with ``mail/alert.html.j2`` and ``mail/alert.txt.j2``.

    Raises:
        RenderError: a template failed.
    """
    view = _view(alert, links)
    html = clean_text(templates.get_template("mail/alert.html.j2").render(alert=view))
    text = clean_text(templates.get_template("mail/alert.txt.j2").render(alert=view)).replace(phrases.NBSP, " ")
    text = re.sub("^>", " >", re.sub(r"\n{4,}", "\n\n\n", text), flags=re.MULTILINE)
    return MailParts(view.subject, text, html, view.preheader, (), alert.language)


def _view(alert: Alert, links: Links) -> AlertView:
    topic, turn = alert.topic, alert.turn
    words = headline(turn.momentum)
    footer = (("Change topics or alerts", links.preferences), ("Unsubscribe", links.unsubscribe))
    return AlertView(
        name=alert.name,
        language=alert.language,
        subject=turn_subject(topic.name, turn),
        preheader=turn_title(topic.name, turn).replace(phrases.NBSP, " "),
        day=phrases.full_day(turn.as_of),
        topic=topic.name,
        url=safe_url(alert.url),
        trend=WORDS[turn.trend],
        rises=turn.trend is Trend.UP,
        headline=words.text,
        note=words.note,
        lines=turn_lines(turn),
        coverage=alert.coverage_line[:1].upper() + alert.coverage_line[1:],
        why=_WHY,
        links=tuple(LinkView(label, safe_url(url)) for label, url in footer if safe_url(url)),
    )
