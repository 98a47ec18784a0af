"""Which other topics does a paper belong to? Floor 1, pure.

Entry points: :func:`other_topics` (labels and match rules) and :func:`make_slug`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache

from digestd.identity import author_keys, fold
from digestd.model.paper import Paper
from digestd.model.topic import MatchRule, Topic

_WORD = re.compile(r"\w+")


def make_slug(name: str, taken: Iterable[str] = ()) -> str:
    """Return a short ASCII name for addresses: "LLM Agent Training" gives "llm-agent-training".

    A name without Latin letters or digits gives "topic"; a taken slug gets a number.
    """
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode().casefold()
    slug = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:60].strip("-") or "topic"
    used, number, found = set(taken), 2, slug
    while found in used:
        found, number = f"{slug}-{number}", number + 1
    return found


def name_key(name: str) -> str:
    """Return a topic's or label's name as it is compared: case, accents, signs and spacing folded; C++ is not C."""
    return fold(name.replace("+", " plus ").replace("#", " sharp ")) or name.strip().casefold()


def other_topics(papers: Sequence[Paper], topics: Sequence[Topic], own: str) -> list[tuple[int, str, str]]:
    """Return (index of the paper, slug, "label" or "rule") of every topic besides its page's own that a paper belongs to.

    Args:
        papers: of one page.
        topics: all that can be followed.
        own: slug of the page's own topic.
    """
    by_name = {name_key(topic.name): topic.slug for topic in topics if topic.slug != own}
    ruled = [topic for topic in topics if topic.rule is not None and topic.slug != own]
    found: list[tuple[int, str, str]] = []
    for index, paper in enumerate(papers):
        slugs = dict.fromkeys(by_name[key] for key in map(name_key, paper.topics) if key in by_name)
        found += [(index, slug, "label") for slug in slugs]
        for topic in ruled:
            if topic.slug not in slugs and topic.rule is not None and matches(paper, topic.rule):
                found.append((index, topic.slug, "rule"))
    return found


def matches(paper: Paper, rule: MatchRule) -> bool:
    """Return whether a paper fulfils a match rule; a rule that asks for nothing matches nothing."""
    if not (rule.any_of or rule.all_of or rule.categories or rule.authors or rule.labels):
        return False
    text = f"{_words(paper.title)}|{_words(paper.abstract or '')}"  # no phrase reaches from one into the other
    if rule.any_of and not any(_holds(text, phrase) for phrase in rule.any_of):
        return False
    if not all(_holds(text, phrase) for phrase in rule.all_of) or any(_holds(text, phrase) for phrase in rule.none_of):
        return False
    if rule.categories and not any(
        _in_category(found, wanted) for found in paper.categories for wanted in rule.categories
    ):
        return False
    if rule.authors and not _same_people(paper.authors, rule.authors):
        return False
    return not rule.labels or not {*map(name_key, paper.topics)}.isdisjoint(map(name_key, rule.labels))


@lru_cache(maxsize=4096)
def _words(text: str) -> str:
    """Return the words of a text, folded, with single blanks around each."""
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    return f" {' '.join(_WORD.findall(''.join(c for c in plain if not unicodedata.combining(c))))} "


def _holds(text: str, phrase: str) -> bool:
    wanted = _words(phrase)
    return wanted.strip() != "" and wanted in text


def _in_category(found: str, wanted: str) -> bool:
    return found.startswith(wanted) if wanted.endswith(".") else found == wanted


def _same_people(authors: Sequence[str], wanted: Sequence[str]) -> bool:
    return any(is_same_person(one, two) for one in authors for two in wanted)


def is_same_person(one: str, two: str) -> bool:
    """Return whether two displayed names can be one person's.

    Full names must agree in full, in either order ("Yang Xiaowen", "Xiao-Wen Yang", "Yang, Xiaowen"); only where one side has
    nothing but initials do initials decide.
    """
    if _folded_words(one) == _folded_words(two):
        return True
    if not author_keys(one) & author_keys(two):
        return False
    return any(
        family == other_family and _given_agree(given, other_given)
        for family, given in _orders(one)
        for other_family, other_given in _orders(two)
    )


def _folded_words(name: str) -> list[str]:
    return sorted(filter(None, map(fold, name.replace(",", " ").split())))


def _orders(name: str) -> list[tuple[str, tuple[str, ...]]]:
    """Return (family name, given names) in both readings of a name."""
    family, comma, given = name.partition(",")
    if comma:
        return [(fold(family), _words_of(given))]
    words = _words_of(name)
    return [(words[-1], words[:-1]), (words[0], words[1:])] if words else []


def _words_of(name: str) -> tuple[str, ...]:
    return tuple(filter(None, map(fold, name.replace(".", " ").split())))


def _given_agree(one: tuple[str, ...], two: tuple[str, ...]) -> bool:
    if not one or not two:
        return one == two
    if "".join(one) == "".join(two):
        return True
    # "M." stands for "Marta", and "Marta" for "Marta L."; "Xi" does not stand for "Xin"
    pairs = list(zip(one, two, strict=False))
    return all(a == b or (1 in (len(a), len(b)) and a[:1] == b[:1]) for a, b in pairs)
