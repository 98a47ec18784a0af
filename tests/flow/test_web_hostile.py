"""A stranger's text is text: in pages, mails and feeds, whatever it tries to be."""

from __future__ import annotations

import html as html_module
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import pytest
from lxml import etree

from digestd.flows.ingest import IngestOptions, ingest_document
from digestd.model.digest import Digest, DigestPaper, Headline, Links, Section, Trend
from digestd.model.paper import Paper
from digestd.model.snapshot import Document, Kind, Order, Page
from digestd.model.topic import Topic
from digestd.render.feed_content import digest_content
from digestd.render.mail import render_mail
from digestd.templating import build_environment
from tests.site import NOW, House, make_house, tree_of
from tests.vectors import SCHEMES, SHAPES, vectors

#: elements that our pages and mails are made of; "mark" are the hits of a search
PAGE_TAGS = {
    "html", "head", "meta", "title", "link", "body", "div", "a", "header", "nav", "ul", "li", "main", "h1", "h2", "h3", "h4",
    "p", "figure", "figcaption", "svg", "rect", "text", "line", "details", "summary", "table", "thead", "tbody", "tr", "th",
    "td", "section", "small", "b", "article", "time", "br", "footer", "form", "input", "label", "select", "option", "button",
    "mark", "textarea", "fieldset", "legend", "span",
}  # fmt: skip
MAIL_TAGS = PAGE_TAGS | {"style", "img", "o:officedocumentsettings", "o:pixelsperinch", "xml", "!--"}
FEED_TAGS = {"p", "br", "a", "em", "h3", "ul", "li", "div", "body", "html"}
_SCHEME = re.compile(r"(?i)^[\x00-\x20]*(javascript|vbscript|data|blob|feed):")


def faults(body: str, allowed: set[str]) -> list[str]:
    """Return what a browser could run in a document: elements of another kind, handlers, links that do more than lead."""
    found = []
    for element in tree_of(body).iter():
        if not isinstance(element.tag, str):
            continue
        if element.tag not in allowed:
            found.append(f"<{element.tag}>")
        for name, value in element.attrib.items():
            if name.lower().startswith("on") or name.lower() in {"srcdoc", "formaction", "xlink:href", "ping"}:
                found.append(f"{element.tag} {name}")
            if name.lower() in {"href", "src", "action"} and _SCHEME.match(value):
                found.append(f"{element.tag} {name}={value[:40]}")
    return found


def hostile_papers() -> list[Paper]:
    """Return papers with a hostile text in every field, each text in each field over all of them."""
    found = []
    texts = [text for text in vectors() if text.strip()]
    for number, text in enumerate(texts):
        other, third = texts[(number * 7 + 3) % len(texts)], texts[(number * 11 + 5) % len(texts)]
        found.append(
            Paper(
                title=f"N{number} {text}",
                abstract=f"We present {other} here. It {text} works well on all {third} sets.",
                authors=(f"Ana {third}", text),
                affiliations=(other, third),
                categories=(text[:30],),
                topics=("Reef Sound", other),
                links=(text, *SCHEMES[number % len(SCHEMES) :][:2]),
                published=(NOW - timedelta(days=number % 20)).date(),
            )
        )
    return found


def hostile_house(folder: Path) -> House:
    """Return a house whose papers, labels and topics are hostile."""
    found = make_house(folder)
    papers = hostile_papers()
    for topic, some in (("Reef Sound", papers), ("<svg/onload=alert(1)> \"'Topic", papers[:40])):
        for number, part in enumerate((some[:1], some)):
            page = Page(topic=topic, papers=tuple(part), order=Order.FEED, gloss="<script>alert(1)</script>")
            now = NOW - timedelta(days=1 - number)
            ingest_document(
                found.store,
                Document(f"{topic} {number}".encode(), fetched_at=now),
                IngestOptions(now=now),
                parse=lambda _document, _vocabulary, page=page: page,  # type: ignore[misc]  # a default has no type
            )
    found.publish()
    return found


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """Yield a hostile house."""
    found = hostile_house(tmp_path_factory.mktemp("hostile"))
    yield found
    found.store.close()


def test_pages_hold_no_markup_of_strangers(house: House) -> None:
    """All pages of all papers, lists, labels and searches are made of our own elements only."""
    pages = 0
    addresses = ["/", "/digests"]
    for topic in house.store.history.topics():
        address: str | None = f"/t/{topic.slug}"
        while address:
            body = house.client.get(address).text
            assert [] == faults(body, PAGE_TAGS), address
            tree = tree_of(body)
            addresses += tree.xpath("//article/h4/a/@href")
            found = tree.xpath("//p[@class='more']/a/@href")
            address, pages = (found[0] if found else None), pages + 1
        addresses += tree_of(house.client.get(f"/t/{topic.slug}").text).xpath("//nav[@class='filter']//a/@href")[:20]
    addresses += [f"/search?q={quote(text)}&author={quote(text[:50])}" for text in list(vectors())[:80]]
    addresses += [f"/t/reef-sound?tag={quote(text)}&before={quote(text)}" for text in SHAPES]
    for address in dict.fromkeys(addresses):
        answer = house.client.get(address)
        assert answer.status_code in {200, 404, 414}, address
        assert [] == faults(answer.text, PAGE_TAGS), address
        pages += 1
    assert pages > 350


def test_feeds_hold_no_markup_of_strangers(house: House) -> None:
    """The content of feed entries is p, br, a, em, h3, ul, li; titles are text; links are http."""
    entries = 0
    for name in house.services.shelf.names():
        stored = house.services.shelf.get(name)
        assert stored is not None
        if name.endswith(".json"):
            for item in json.loads(stored.body)["items"]:
                assert [] == faults(f"<div>{item['content_html']}</div>", FEED_TAGS), name
                assert re.match(r"https?://", item.get("url", "https://")), name
                entries += 1
        elif name.endswith("atom.xml"):
            tree = etree.fromstring(stored.body)
            for content in tree.iter("{http://www.w3.org/2005/Atom}content"):
                assert [] == faults(f"<div>{content.text}</div>", FEED_TAGS), name
            links = [str(link.get("href")) for link in tree.iter("{http://www.w3.org/2005/Atom}link")]
            assert [] == [link for link in links if not re.match(r"https?://", link)], name
        elif name.endswith("rss.xml"):
            tree = etree.fromstring(stored.body)
            for content in tree.iter("{http://purl.org/rss/1.0/modules/content/}encoded"):
                assert [] == faults(f"<div>{content.text}</div>", FEED_TAGS), name
            assert [] == [one.text for one in tree.iter("link") if not re.match(r"https?://", one.text or "")], name
    assert entries >= 200


def test_mail_holds_no_markup_of_strangers() -> None:
    """A digest of hostile papers is a mail of our own elements only, its links http or nothing."""
    templates = build_environment()
    papers = hostile_papers()
    for first in range(0, len(papers), 30):
        shown = tuple(
            DigestPaper(
                number, paper, Kind.NEW, datetime(2026, 9, 29, tzinfo=UTC), paper.abstract or "", url=paper.links[0]
            )
            for number, paper in enumerate(papers[first : first + 30])
        )
        name = papers[first].title
        topic = Topic("reef", name, gloss=name)
        section = Section(topic, Headline(Trend.UP, name, "+1%", note=name), papers=shown, url=papers[first].links[0])
        digest = Digest(name, NOW.date(), NOW.date(), (section,))
        parts = render_mail(digest, Links(), templates)
        bare = re.sub(r"(?s)<!--.*?-->", "", parts.html)
        assert [] == faults(bare, MAIL_TAGS)
        assert "\n" not in parts.subject
        content = digest_content(digest, name)
        assert [] == faults(f"<div>{content.html}</div>", FEED_TAGS)


def test_faults_are_seen() -> None:
    """The look for faults itself finds each kind of them."""
    for body in (
        "<p><script>x</script></p>", "<p onclick=x>y</p>", "<p><a href=' JavaScript:x'>y</a></p>", "<p><iframe></iframe></p>"
    ):  # fmt: skip
        assert faults(body, PAGE_TAGS), body
    assert [] == faults(f"<p>{html_module.escape(SHAPES[0])}</p>", PAGE_TAGS)
