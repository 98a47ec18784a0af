"""Any HTML page as a list of papers, by rules that its user wrote. Floor 1, pure.

Entry points: :func:`load_rules` for the rule file, :func:`parse_with_rules` for pages. A rule file is TOML; each value
is a CSS selector, with ``@name`` behind it where an attribute holds the value:

    order = "feed"
    item = "article.paper"
    title = "h3"
    link = "h3 a@href"
    date = "time@datetime"
    authors = ".authors li"

All selectors but ``topic``, ``total`` and ``momentum`` look within one item.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime
from typing import cast

from cssselect import SelectorError
from lxml import etree
from lxml.cssselect import CSSSelector

from digestd.errors import ConfigError, ParseError
from digestd.model.paper import Paper
from digestd.model.snapshot import Document, Order, Page
from digestd.model.topic import Vocabulary
from digestd.parse.apipage import read_text, with_ids
from digestd.parse.charset import one_line
from digestd.parse.fields import read_date_line, read_number, split_affiliations, split_authors, split_more
from digestd.parse.html_tree import base_of, line_of, page_title, read_tree, text_content
from digestd.parse.jsontext import date_of, instant_of, is_plausible, links_of
from digestd.parse.momentum_line import read_momentum

_ATTRIBUTE = re.compile(r"@([A-Za-z_][\w:.-]*)\s*$")
_NUMBER = re.compile(r"\d[\d,.\u2019' ]*")
_MAX_NAMED = 10


@dataclass(frozen=True, slots=True)
class PageRules:
    """Where a page has its papers; each but the last three is a selector, "" where the page has no such thing."""

    item: str  #: one element a paper
    title: str
    link: str = ""
    date: str = ""
    abstract: str = ""
    authors: str = ""
    affiliations: str = ""
    labels: str = ""
    category: str = ""
    topic: str = ""
    total: str = ""
    momentum: str = ""
    date_format: str = ""  #: of strptime, "%d.%m.%Y"; "": ISO or as listings print it
    author_separator: str = ""  #: between names within one element; "": commas, or semicolons where there are any
    order: Order = Order.LISTING


_KEYS = tuple(one.name for one in fields(PageRules))
_SELECTORS = tuple(key for key in _KEYS if key not in ("date_format", "author_separator", "order"))


def load_rules(text: str) -> PageRules:
    """Return the rules of a rule file.

    Raises:
        ConfigError: it is no TOML, a key is unknown (names the nearest known one) or missing, or a value is no selector.
    """
    try:
        table = tomllib.loads(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"page rules: expected TOML, found {one_line(str(error))[:200]}") from error
    for key, value in table.items():
        if key not in _KEYS:
            near = difflib.get_close_matches(key, _KEYS, n=1, cutoff=0.5)
            hint = f"the nearest known one is {near[0]}" if near else f"known ones are {', '.join(_KEYS)}"
            raise ConfigError(f"page rules: found unknown key {key[:60]!r}, {hint}")
        if not isinstance(value, str) or not value.strip():
            raise ConfigError(f"page rules: {key}: expected a text that is not empty, found {value!r:.60}")
    for key in ("item", "title"):
        if key not in table:
            raise ConfigError(f"page rules: expected key {key}, found only {', '.join(table) or 'none'}")
    order = table.pop("order", Order.LISTING.value)
    if order not in list(Order):
        raise ConfigError(f"page rules: order: expected one of {', '.join(Order)}, found {order[:60]!r}")
    rules = PageRules(**table, order=Order(order))
    for key in _SELECTORS:
        _compile(key, getattr(rules, key))
    if rules.item and _ATTRIBUTE.search(rules.item):
        raise ConfigError(f"page rules: item: expected a selector of elements, found {rules.item!r}")
    return rules


@dataclass(frozen=True, slots=True)
class _Rule:
    """One selector, ready to be asked."""

    selector: CSSSelector | None  #: None: the item itself
    attribute: str  #: "" for the text

    def select(self, element: etree._Element) -> list[etree._Element]:
        """Return the elements that the selector finds within one."""
        return [element] if self.selector is None else cast("list[etree._Element]", self.selector(element))

    def texts(self, element: etree._Element) -> list[str]:
        """Return what the selector finds within an element, folded, the empty ones left out."""
        found = self.select(element)
        texts = (one_line(one.get(self.attribute) or "") if self.attribute else text_content(one) for one in found)
        return [text for text in texts if text]

    def text(self, element: etree._Element) -> str:
        """Return the first of them, "" if there is none."""
        return next(iter(self.texts(element)), "")


def _compile(key: str, selector: str) -> _Rule | None:
    """Return the rule of a selector; None for an empty one."""
    if not selector:
        return None
    attribute = _ATTRIBUTE.search(selector)
    css = (selector[: attribute.start()] if attribute else selector).strip()
    try:
        chosen = CSSSelector(css, translator="html") if css else None
        if chosen is not None:
            chosen(etree.Element("html"))  # a namespace that nobody declared is found out only by use
    except (SelectorError, etree.XPathError) as error:
        found = f"page rules: {key}: expected a CSS selector, found {selector[:120]!r} ({one_line(str(error))[:120]})"
        raise ConfigError(found) from error
    return _Rule(chosen, attribute[1] if attribute else "")


def parse_with_rules(document: Document, rules: PageRules, vocabulary: Vocabulary) -> Page:  # noqa: ARG001  # as parse_html
    """Return the page that the rules find in an HTML document.

    Args:
        document: at most 5 MB.
        rules: as loaded.
        vocabulary: not needed, labels stand apart.

    Returns:
        The page; an item without a title is left out with a warning, and an ordered page is then incomplete.

    Raises:
        ParseError: no element is an item, or none of them has a title; names the rule, and the page by its title.
    """
    root, text = read_tree(document)
    bases = base_of(root, text, document.origin)
    compiled = {key: rule for key in _SELECTORS if (rule := _compile(key, getattr(rules, key)))}
    items = compiled["item"].select(root)
    called = f"on the page titled {page_title(root)!r}"
    if not items:
        raise ParseError(f"expected papers at item {rules.item!r}, found none {called}", origin=document.origin)
    papers: list[Paper] = []
    skipped: list[str] = []
    for number, element in enumerate(items, start=1):
        paper = _read_item(element, compiled, rules, (bases, document.fetched_at))
        if paper is None:
            skipped.append(f"item {number}, line {line_of(element)}")
        else:
            papers.append(paper)
    if not papers:
        raise ParseError(
            f"expected a title at {rules.title!r}, found none in {len(items)} items {called}", origin=document.origin
        )
    named = "; ".join(skipped[:_MAX_NAMED])
    total = _NUMBER.search(_text(compiled, "total", root))
    return Page(
        topic=_text(compiled, "topic", root) or None,
        papers=tuple(papers),
        order=rules.order,
        title=page_title(root) or None,
        origin=document.origin,
        momentum=read_momentum(_text(compiled, "momentum", root)),
        total_papers=read_number(total[0].strip(" ,.'\u2019")) if total else None,
        incomplete=bool(skipped) and rules.order is Order.LISTING,
        format="rules",
        warnings=(f"papers left out: {len(skipped)} of {len(items)} have no title ({named})",) if skipped else (),
    )


def _text(compiled: dict[str, _Rule], key: str, element: etree._Element) -> str:
    rule = compiled.get(key)
    return rule.text(element) if rule else ""


def _texts(compiled: dict[str, _Rule], key: str, element: etree._Element) -> list[str]:
    rule = compiled.get(key)
    return rule.texts(element) if rule else []


def _read_item(
    element: etree._Element,
    compiled: dict[str, _Rule],
    rules: PageRules,
    page: tuple[tuple[str, ...], datetime | None],
) -> Paper | None:
    """Return the paper of one item; None if it has no title."""
    bases, seen_at = page
    title = read_text(_text(compiled, "title", element))
    if title is None:
        return None
    abstract = read_text(" ".join(_texts(compiled, "abstract", element)))
    printed = _text(compiled, "date", element)
    published = _read_date(printed, rules.date_format, seen_at)
    authors, authors_more = _read_authors(_texts(compiled, "authors", element), rules.author_separator)
    affiliations, affiliations_more = split_affiliations(" · ".join(_texts(compiled, "affiliations", element)))
    labels = [split_more(label) for label in _texts(compiled, "labels", element)]
    paper = Paper(
        title=title.readable,
        title_raw=title.raw,
        published=published,
        published_at=instant_of(printed, seen_at)
        if published and len(printed) > 10 and not rules.date_format
        else None,
        categories=tuple(_texts(compiled, "category", element)),
        abstract=abstract.readable if abstract else None,
        abstract_raw=abstract.raw if abstract else None,
        authors=authors,
        authors_more=authors_more,
        affiliations=affiliations,
        affiliations_more=affiliations_more,
        topics=tuple(name for name, _ in labels if name),
        topics_more=sum(more for _, more in labels),
        links=links_of(_texts(compiled, "link", element), *bases),
        warnings=(f"date: found {printed[:60]!r}, left out",) if printed and published is None else (),
    )
    return with_ids(paper)


def _read_date(printed: str, date_format: str, seen_at: datetime | None) -> date | None:
    """Return the date of an item; None if it has none that can be read, or one in the far future."""
    if not printed:
        return None
    if date_format:
        try:
            found: date | None = datetime.strptime(printed, date_format).date()  # noqa: DTZ007  # a day, of no zone
        except ValueError:
            return None
    else:
        line = read_date_line(printed)
        found = date_of(printed, seen_at) or (line.published if line else None)
    return found if found and is_plausible(found, seen_at) else None


def _read_authors(texts: Sequence[str], separator: str) -> tuple[tuple[str, ...], int]:
    """Return the names in these texts, and the printed "+N".

    Args:
        texts: one a name, or a single one with all names.
        separator: between the names of a single one; "" reads them as listings print them.
    """
    names: list[str] = []
    more = 0
    for text in texts:
        row, number = split_more(text)
        more += number
        if separator:
            names.extend(name for part in row.split(separator) if (name := part.strip()))
        elif len(texts) == 1:
            names.extend(split_authors(row)[0])
        elif row.strip(" ,;"):
            names.append(row.strip(" ,;"))
    return tuple(names), more
