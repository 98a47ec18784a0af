"""A digest as mail: text and HTML of at most 90 KB as sent, with the pictures of its charts. Floor 1.

Entry point: ``render_mail``. What differs between readers of the same digest (their links, the line that says why they
get it) only passes through, so that a digest can be rendered once with placeholders (mime.placeholder) in their place.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import replace
from typing import TypeAlias

import jinja2

from digestd import phrases
from digestd.model.delivery import MailParts, Picture
from digestd.model.digest import Digest, DigestPaper, Links, Section
from digestd.render import spark
from digestd.render.mail_view import NAMED, WEEKS, chart_id, mail_view
from digestd.render.mime import clean_text, quoted_printable

#: what templates are looked up in; the name under which the flows pass it on
Templates: TypeAlias = jinja2.Environment

SIZE_LIMIT = 90_000  #: octets of HTML as sent; Gmail clips near 102 KB and hides the unsubscribe link
_NAMED_OFFLINE = 60  #: short titles of papers over the budget, where there is no page to show them


def render_mail(digest: Digest, links: Links, templates: Templates, *, pictures: bool = True) -> MailParts:
    """Return a digest as mail.

    Where the HTML would be clipped, summaries go first, from the end, then papers, which become "more" of their topic.

    Args:
        digest: what is told.
        links: addresses to use; those that are None are left out.
        templates: environment with ``mail/digest.html.j2`` and ``mail/digest.txt.j2``.
        pictures: False draws charts as block characters instead of pictures.

    Raises:
        RenderError: a template failed.
    """
    html_template = templates.get_template("mail/digest.html.j2")

    def html_of(shown: Digest, named: int = _NAMED_OFFLINE) -> str:
        view = mail_view(shown, links, pictures=pictures, named=named)
        return clean_text(html_template.render(mail=view))

    def fits(html: str) -> bool:
        return len(quoted_printable(html)) <= SIZE_LIMIT

    shown, named, html = digest, _NAMED_OFFLINE, html_of(digest)
    if not fits(html):
        shown = cut(digest, bisect_left(range(cuts(digest)), True, key=lambda steps: fits(html_of(cut(digest, steps)))))
        html = html_of(shown)
    if not fits(html):  # all papers are mere titles, and there are hundreds
        named = NAMED
        html = html_of(shown, named)
    if not fits(html):  # dozens of topics
        shown = _without_charts(shown)
        html = html_of(shown, named)
    view = mail_view(shown, links, pictures=pictures, named=named)
    text = clean_text(templates.get_template("mail/digest.txt.j2").render(mail=view))
    text = re.sub(r"\n{4,}", "\n\n\n", text.replace(phrases.NBSP, " "))
    text = re.sub("^>", " >", text, flags=re.MULTILINE)  # a line like this reads as a quote
    drawn = _pictures(shown) if pictures else ()
    return MailParts(view.subject, text, html, view.preheader, drawn, digest.language)


def cuts(digest: Digest) -> int:
    """Return how many steps ``cut`` has: one for each summary and one for each paper of a section."""
    return len(_summarised(digest)) + sum(len(section.papers) for section in digest.sections)


def cut(digest: Digest, steps: int) -> Digest:
    """Return a shorter digest with the same papers.

    Args:
        digest: as composed.
        steps: how much shorter; each step drops the last summary, when there are none left the last paper of the
            section that shows most moves to what is only named.
    """
    summarised = _summarised(digest)
    dropped = set(summarised[len(summarised) - min(steps, len(summarised)) :])

    def plain(item: DigestPaper, place: tuple[str, int, int]) -> DigestPaper:
        return replace(item, summary="") if place in dropped else item

    sections = tuple(
        replace(section, papers=tuple(plain(item, ("section", at, row)) for row, item in enumerate(section.papers)))
        for at, section in enumerate(digest.sections)
    )
    tagged = tuple(replace(item, paper=plain(item.paper, ("tagged", 0, at))) for at, item in enumerate(digest.tagged))
    for _ in range(steps - len(summarised)):
        sections = _move_one(sections)
    return replace(digest, sections=sections, tagged=tagged)


def _summarised(digest: Digest) -> list[tuple[str, int, int]]:
    """Return the places of all summaries in the order of the mail."""
    places = [
        ("section", at, row)
        for at, section in enumerate(digest.sections)
        for row, item in enumerate(section.papers)
        if item.summary
    ]
    return places + [("tagged", 0, at) for at, item in enumerate(digest.tagged) if item.paper.summary]


def _move_one(sections: tuple[Section, ...]) -> tuple[Section, ...]:
    """Return the sections with the last paper of the fullest one moved to its rest."""
    most = max(range(len(sections)), key=lambda at: len(sections[at].papers))
    full = sections[most]
    if not full.papers:
        return sections
    moved = replace(full, papers=full.papers[:-1], rest=(full.papers[-1], *full.rest))
    return (*sections[:most], moved, *sections[most + 1 :])


def _without_charts(digest: Digest) -> Digest:
    """Return the digest with its weekly series left out."""
    sections = (replace(section, momentum=replace(section.momentum, weekly=())) for section in digest.sections)
    return replace(digest, sections=tuple(sections))


def _pictures(digest: Digest) -> tuple[Picture, ...]:
    """Return the pictures of all charts, each once."""
    found: dict[str, Picture] = {}
    for section in digest.sections:
        momentum = section.momentum
        if momentum.weekly and momentum.weekly_from is not None:
            drawn = spark.png(momentum.weekly[-WEEKS:], partial=momentum.partial)
            found.setdefault(chart_id(momentum), Picture(chart_id(momentum), drawn, f"{section.topic.slug}.png"))
    return tuple(found.values())
