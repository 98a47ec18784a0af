"""One item of a feed to a Paper. Floor 1, pure.

Entry point: :func:`read_item`. The text constructs (titles, summaries, contents) are feedparser's reading of the item;
what feedparser flattens (several identifiers, authors with places, arXiv's and publishers' own fields) is read from the
item's elements. Both come from strangers: every text leaves here folded and without markup, every link absolute.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from digestd.model.paper import Paper, PaperId
from digestd.parse.charset import one_line, unmangle
from digestd.parse.feed_arxiv import Dress, is_withdrawn, read_announce, undress_abstract, undress_title
from digestd.parse.feed_dates import FeedDate, read_date
from digestd.parse.feed_markup import markup_links, text_lines
from digestd.parse.feed_text import DressedText, undress_lines
from digestd.parse.feed_xml import field_name
from digestd.parse.latex import to_unicode
from digestd.parse.links import absolute_link, arxiv_number, doi_of, ids_of_doi, ids_of_link, normalise_url
from digestd.parse.names import Authors, join_authors, split_authors

MAX_LINKS = 50
MAX_CATEGORIES = 50
#: an abstract has 2,000 characters; a feed that gives whole articles is cut
MAX_ABSTRACT = 20_000
MAX_TITLE = 1_000

_BASE = "{http://www.w3.org/XML/1998/namespace}base"
#: best first: when it was published, then when the feed says it was dated, then when it last changed
_DATE_FIELDS = (
    *("published", "pubdate", "dcterms:issued", "dc:date", "prism:publicationdate", "prism:coverdate", "issued"),
    *("dcterms:created", "created", "updated", "dcterms:modified", "modified", "date"),
)
_PARSED_KEYS = ("published_parsed", "created_parsed", "updated_parsed")
_NAME_FIELDS = ("dc:creator", "dc:author", "creator", "authors", "prism:author", "itunes:author")
_ID_FIELDS = ("arxiv:doi", "prism:doi", "dc:identifier", "prism:identifier", "dcterms:identifier", "doi")
_ARXIV_CATEGORY = re.compile(r"[a-z]{2,8}(?:-[a-z]{2,4})?(?:\.[A-Za-z]{2}(?:-?[a-z-]*))?")


@dataclass(frozen=True, slots=True)
class FeedContext:
    """What an item takes from its feed."""

    dialect: str = "rss"  #: rss, rdf or feed (Atom)
    bases: tuple[str | None, ...] = ()  #: to resolve links against, innermost first
    host: str = ""  #: of the feed, without www; "" if unknown
    seen_at: datetime | None = None
    shared_guids: frozenset[str] = frozenset()  #: given to several items, so the name of none
    is_dblp: bool = False  #: titles hold authors and venue


@dataclass(frozen=True, slots=True)
class _Links:
    """The links of an item, absolute."""

    own: tuple[str, ...] = ()  #: to the paper itself, best first
    others: tuple[str, ...] = ()  #: related ones, and those in its text


@dataclass(slots=True)
class _Fields:
    """The elements of an item by name."""

    elements: dict[str, list[Any]] = field(default_factory=lambda: defaultdict(list))

    def texts(self, *names: str) -> list[str]:
        found = (" ".join(element.itertext()) for name in names for element in self.elements.get(name, ()))
        return [text for text in found if text.strip()]

    def first(self, *names: str) -> str | None:
        return next(iter(self.texts(*names)), None)


def read_item(item: Any, entry: Mapping[str, Any], context: FeedContext) -> Paper | None:
    """Return the paper of an item; None if it has neither title nor text.

    Args:
        item: the element of the well-formed tree.
        entry: feedparser's reading of the same item.
        context: what it takes from its feed.
    """
    fields = _Fields()
    for child in item:
        fields.elements[field_name(child)].append(child)
    title = _title_dress(fields, entry, context)
    text, content_markup = _read_text(fields, entry, context)
    body = undress_abstract(text.text)
    abstract_raw = body.text[:MAX_ABSTRACT].strip()
    abstract = one_line(to_unicode(abstract_raw)) if abstract_raw else ""
    warnings: list[str] = []
    title_raw = title.text or _first_words(abstract_raw)
    if not title_raw:
        return None
    if not title.text:
        warnings.append("no title, its first words stand for it")
    readable, dblp_authors = _split_dblp(title_raw) if context.is_dblp else (title_raw, None)
    links = _read_links(item, fields, content_markup, context)
    ids, version = _read_ids(fields, links, (title, body), context)
    announce = read_announce(fields.first("arxiv:announce_type")) or body.announce or title.announce
    authors = _read_authors(fields, text, dblp_authors)
    when = _read_date(fields, entry, context, announce, warnings)
    comment = one_line(fields.first("arxiv:comment") or "")
    return Paper(
        title=(one_line(to_unicode(readable)) or readable)[:MAX_TITLE].rstrip(),
        title_raw=title_raw[:MAX_TITLE].rstrip(),
        published=when.day,
        published_at=when.at,
        categories=_read_categories(fields, entry, title, is_arxiv=any(found.scheme == "arxiv" for found in ids)),
        abstract=abstract or None,
        abstract_raw=abstract_raw or None,
        authors=authors.names,
        authors_more=authors.more,
        group=authors.group,
        affiliations=authors.affiliations,
        links=tuple(dict.fromkeys((*links.own, *links.others)))[:MAX_LINKS],
        ids=ids,
        version=version,
        announce=announce,
        withdrawn=is_withdrawn(abstract) or is_withdrawn(comment) or is_withdrawn(title_raw),
        warnings=tuple(warnings),
    )


def _title_dress(fields: _Fields, entry: Mapping[str, Any], context: FeedContext) -> Dress:
    """Return the title; where a publisher prefixes it ("Tides, Vol. 9, Pages 120: ..."), Dublin Core has it bare."""
    explicit = fields.elements["title"][0].get("type") if fields.elements.get("title") else None
    is_markup = not (context.dialect == "feed" and explicit == "text")
    title = " ".join(text_lines(_value(entry, "title"), is_markup=is_markup))
    bare = " ".join(text_lines(fields.first("dc:title") or ""))
    if bare and (not title or (title != bare and title.endswith(bare) and title[: -len(bare)].rstrip().endswith(":"))):
        title = bare
    return undress_title(title)


def _value(entry: Mapping[str, Any], key: str) -> str:
    found = entry.get(key, "")
    return found if isinstance(found, str) else ""


def _first_words(text: str) -> str:
    words = text[:120].rsplit(" ", 1)[0] if len(text) > 120 else text
    return one_line(words)


def _read_text(fields: _Fields, entry: Mapping[str, Any], context: FeedContext) -> tuple[DressedText, list[str]]:
    """Return the abstract, the longest of the texts that an item has, and the markup of all of them."""
    markups = [_value(entry, "summary")]
    contents = entry.get("content", ())
    markups.extend(value for part in contents if isinstance(value := part.get("value"), str))
    markups.extend(fields.texts("media:description"))
    explicit = {child.get("type") for name in ("summary", "content") for child in fields.elements.get(name, ())}
    is_markup = not (context.dialect == "feed" and explicit == {"text"})
    found = [undress_lines(text_lines(markup, is_markup=is_markup)) for markup in markups if markup]
    best = max(found, key=lambda text: len(text.text), default=DressedText(""))
    byline = next((text.byline for text in found if text.byline), "")
    return DressedText(best.text, byline), markups


def _read_links(item: Any, fields: _Fields, markups: Sequence[str], context: FeedContext) -> _Links:
    """Return an item's links, resolved against its own base, then its feed's.

    Source: RFC 4287 4.2.7 (a link without rel is the alternate), RSS 2.0 "guid" (a permanent link unless it says no).
    """
    bases = (item.get(_BASE), *context.bases)
    own: list[str] = fields.texts("feedburner:origlink")
    related: list[str] = []
    for link in (*fields.elements.get("link", ()), *fields.elements.get("atom:link", ())):
        href, rel = link.get("href") or "".join(link.itertext()), (link.get("rel") or "alternate").lower()
        base = link.get(_BASE)
        if not href.strip():
            continue
        if rel == "alternate":
            own.append(absolute_link(href, base, *bases) or "")
        elif rel in ("related", "enclosure", "via"):
            related.append(absolute_link(href, base, *bases) or "")
    own.extend(
        "".join(guid.itertext())
        for guid in fields.elements.get("guid", ())
        if (guid.get("isPermaLink") or guid.get("ispermalink") or "true").lower() != "false"
    )
    own.extend(fields.texts("prism:url"))
    own.extend(value for key, value in item.attrib.items() if str(key).endswith("about"))
    own.extend(text for text in fields.texts("id") if not own and text.strip().lower().startswith(("http:", "https:")))
    content_bases = [
        child.get(_BASE)
        for name in ("content", "summary")
        for child in fields.elements.get(name, ())
        if child.get(_BASE)
    ]
    # a guid may be a bare name: resolved against the feed it would be a link that leads nowhere
    absolute_own = [absolute_link(link) or absolute_link(link, *bases) if _is_link(link) else None for link in own]
    mentioned = [absolute_link(link, *content_bases[:1], *bases) for markup in markups for link in markup_links(markup)]
    first = [link for link in dict.fromkeys(absolute_own) if link]
    return _Links(tuple(first), tuple(link for link in (*related, *mentioned) if link))


def _is_link(text: str) -> bool:
    return bool(re.match(r"\s*(?:https?:|/|\.|\?)", text, re.IGNORECASE)) or (
        "/" in text and not text.startswith("10.")
    )


def _read_ids(
    fields: _Fields, links: _Links, dresses: Iterable[Dress], context: FeedContext
) -> tuple[tuple[PaperId, ...], int | None]:
    """Return the ids that an item names, and the arXiv version."""
    found: dict[PaperId, None] = {}
    version: int | None = None
    guid = one_line(fields.first("guid", "id") or "")
    named = [_arxiv_of(guid), *map(_arxiv_of, links.own), *((dress.number, dress.version) for dress in dresses)]
    for number, at_version in named:
        if number:
            found[PaperId("arxiv", number)] = None
            version = version or at_version
    for text in fields.texts(*_ID_FIELDS):
        doi = doi_of(text)
        if doi:
            found.update(dict.fromkeys(ids_of_doi(doi)))
    for link in links.own:
        found.update(dict.fromkeys(ids_of_link(link)))
    for link in fields.elements.get("link", ()):
        if link.get("title") == "doi":
            found.update(dict.fromkeys(ids_of_link(link.get("href") or "")))
    if guid and guid not in context.shared_guids and not any(key.scheme == "arxiv" for key in found):
        doi = doi_of(guid) if guid.startswith(("10.", "doi:", "info:doi")) else None
        if doi:
            found.update(dict.fromkeys(ids_of_doi(doi)))
        elif context.host:
            found[PaperId("guid", f"{context.host}:{_comparable(guid)}")] = None
    return tuple(sorted(found, key=lambda key: (key.scheme != "arxiv", key.scheme != "doi"))), version


def _comparable(guid: str) -> str:
    """Return an entry's id without what a move from http to https changes; the fragment stays, it may be all there is."""
    bare, mark, fragment = guid.partition("#")
    return f"{normalise_url(bare) or bare}{mark}{fragment}"


def _arxiv_of(name: str) -> tuple[str | None, int | None]:
    """Return arXiv number and version of an entry's id or link: ``oai:arXiv.org:…``, ``http://arxiv.org/abs/…``."""
    if re.match(r"(?i)\s*(?:oai:)?arxiv(?:\.org)?:", name):
        return arxiv_number(name)
    if any(key.scheme == "arxiv" for key in ids_of_link(name)):
        return arxiv_number(re.sub(r"(?i)^\s*https?://[^/]+/[a-z-]+/", "", name))
    return None, None


def _read_authors(fields: _Fields, text: DressedText, from_title: Authors | None) -> Authors:
    """Return who wrote it: one element an author, or one for all, or the by-line of the text."""
    people: list[str] = []
    places: dict[str, None] = {}
    for author in fields.elements.get("author", ()):
        names = [child for child in author if field_name(child) in ("name", "atom:name")]
        people.extend("".join(name.itertext()) for name in names)
        if not names:
            people.append(" ".join(author.itertext()))
        for child in author:
            if field_name(child).endswith(":affiliation"):
                places[one_line("".join(child.itertext()))] = None
    people.extend(person for name in _NAME_FIELDS for person in fields.texts(name) if person not in people)
    plain = [one_line(to_unicode(unmangle(" ".join(text_lines(person))))) for person in people]
    plain = [person for person in plain if person]
    found = split_authors(plain[0]) if len(plain) == 1 else join_authors(plain)
    cut_short = any(re.search(r"\bet\.? al\b", person) for person in plain)
    if text.byline and (cut_short or not found.names):
        found = split_authors(text.byline)
    if from_title is not None and not found.names:
        found = from_title
    affiliations = tuple(place for place in dict.fromkeys((*places, *found.affiliations)) if place)
    return Authors(found.names, found.group, affiliations, found.more)


def _read_date(
    fields: _Fields, entry: Mapping[str, Any], context: FeedContext, announce: str | None, warnings: list[str]
) -> FeedDate:
    """Return when the paper was published.

    A replacement is dated by its announcement, which says nothing about when the paper was published.
    """
    if announce in ("replace", "replace-cross"):
        return FeedDate()
    fallback = next((_instant(entry[key]) for key in _PARSED_KEYS if key in entry), None)
    faults: list[str] = []
    for name in _DATE_FIELDS:
        for text in fields.texts(name):
            when = read_date(text, context.seen_at, fallback=fallback)
            if when.day is not None:
                warnings.extend(faults)
                return when
            faults.append(when.fault)
    warnings.extend(faults or ["no date"])
    return FeedDate()


def _instant(parsed: object) -> datetime | None:
    """Return feedparser's reading of a date, UTC; None if it made none that exists ("0000-00-00" has the year -1)."""
    if not isinstance(parsed, tuple):
        return None
    try:
        year, month, day, hour, minute, second = parsed[:6]
        return datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC)
    except (ValueError, TypeError, OverflowError):
        return None


def _read_categories(fields: _Fields, entry: Mapping[str, Any], title: Dress, *, is_arxiv: bool) -> tuple[str, ...]:
    """Return the categories, primary first; of arXiv's papers only arXiv's own, for the API mixes in MSC and ACM classes."""
    primary = [element.get("term") or "" for element in fields.elements.get("arxiv:primary_category", ())]
    tags = entry.get("tags", ())
    terms = [term for tag in tags if isinstance(term := tag.get("term"), str)]
    found = dict.fromkeys(one_line(term)[:200] for term in (*primary, title.category or "", *terms))
    kept = [term for term in found if term and (not is_arxiv or _ARXIV_CATEGORY.fullmatch(term))]
    return tuple(kept[:MAX_CATEGORIES])


_DBLP_TITLE = re.compile(
    r"^(?P<authors>[^:]{3,5000}): (?P<title>.{3,600}?(?:[?!]|[^\W\d]{4}\.|\d\.)) (?P<venue>[A-Z].{2,200})$"
)


def _split_dblp(title: str) -> tuple[str, Authors | None]:
    """Return the bare title of dblp's "Authors: Title. Venue 4 (2026)", and the authors."""
    match = _DBLP_TITLE.match(title)
    if match is None or not re.search(r"\(\d{4}\)|\babs/|\d{4}", match["venue"]):
        return title, None
    return match["title"].removesuffix("."), split_authors(match["authors"])
