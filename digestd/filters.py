"""Which papers a reader wants to see: rules written, checked, applied, and tried on the history. Floor 1, pure.

Entry points: :func:`parse_rule`, :func:`lint`, :func:`hidden_because`, :func:`apply_filter`, :func:`preview`.

A rule is ``field:value``; without a field it is a word or phrase of title and abstract:
``diffusion model``, ``author:Ana Lima``, ``category:cs.``, ``institution:MIT``, ``label:Tool Use``.
Words are whole words, case and accents folded; there are no patterns. What fits is decided as for the match rules of topics,
so that a filter and a topic never read the same words differently.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from digestd.errors import ConfigError
from digestd.identity import fold
from digestd.model.digest import NewsItem
from digestd.model.paper import Paper
from digestd.model.subscription import Filter, FilterRule
from digestd.model.topic import MatchRule
from digestd.phrases import count_noun
from digestd.topics import matches

#: longest value of a rule, and most rules of one side of a filter: a filter is written by a person
MOST_VALUE = 200
MOST_RULES = 100

_FIELD = re.compile(r"([A-Za-z]+):(?!\s)(.*)", re.DOTALL)
_ARCHIVE = re.compile(r"[a-z]+(?:-[a-z]+)?")
#: signs that mean something in patterns and nothing in words
_PATTERN = re.compile(r"\(\?|\\[bdswBDSW]|\.[*+?]|\[[^\]]*\][*+?]?|^\^|\$$|\||^/.*/[a-z]*$|\*")
_OPERATOR = re.compile(r"\b(?:AND|OR|NOT)\b")
#: words that almost every abstract has
_COMMON = frozenset("a an and are as at by can for from in is it of on or our that the this to we with".split())  # noqa: SIM905  # reads as a list
#: archives of arXiv that are divided: no paper has one of these as its category
#: Source: arXiv category taxonomy
_DIVIDED = frozenset({"cs", "econ", "eess", "math", "nlin", "physics", "q-bio", "q-fin", "stat"})


@dataclass(frozen=True, slots=True)
class HiddenBy:
    """Why a paper is hidden."""

    rule: FilterRule | None  #: the rule of ``exclude`` that fits it; None: rules of ``include`` stand, and none fits

    def __str__(self) -> str:
        return f"excluded by '{format_rule(self.rule)}'" if self.rule else "none of the rules to include fits"


@dataclass(frozen=True, slots=True)
class FilterPreview:
    """What a filter would have done to known papers."""

    would_hide: int
    of: int
    by_rule: tuple[tuple[HiddenBy, int], ...] = ()  #: papers for each reason, most first; their sum is ``would_hide``

    def __str__(self) -> str:
        return f"would have hidden {self.would_hide:,} of {self.of:,}"


def parse_rule(text: str) -> FilterRule:
    """Return the rule that a text says.

    Words with a colon inside are written "words:GPT:next"; one that a blank follows ("RL: a survey") needs no field.

    Raises:
        ConfigError: it is empty, too long, or its field is none.
    """
    found = _FIELD.fullmatch(text.strip())
    field, value = (found[1].casefold(), found[2]) if found else ("words", text)
    if field not in FIELDS:
        raise ConfigError(f"filter rule: expected one of {', '.join(FIELDS)} before the colon, found '{_shown(text)}'")
    value = " ".join(_unquoted(value).split())
    if field == "category":
        value = value.rstrip("* ")  # "cs.*" is what people write for "cs."
    if not value:
        raise ConfigError(
            f"filter rule: expected one like 'diffusion model' or 'author:Ana Lima', found '{_shown(text)}'"
        )
    if len(value) > MOST_VALUE:
        raise ConfigError(
            f"filter rule: expected at most {MOST_VALUE} characters, found {len(value)}: '{_shown(text)}'"
        )
    return FilterRule(field, value)


def format_rule(rule: FilterRule) -> str:
    """Return the text that :func:`parse_rule` reads."""
    if rule.field == "words" and not _FIELD.fullmatch(rule.value):
        return rule.value
    return f"{rule.field}:{rule.value}"


def fits(rule: FilterRule, paper: Paper) -> bool:
    """Return whether a rule fits a paper; a rule of an unknown field fits none."""
    check = FIELDS.get(rule.field)
    return check is not None and check(rule.value, paper)


def hides(wanted: Filter, paper: Paper) -> HiddenBy | None:
    """Return why a filter hides a paper, None if it lets it pass."""
    for rule in wanted.exclude:
        if fits(rule, paper):
            return HiddenBy(rule)
    if wanted.include and not any(fits(rule, paper) for rule in wanted.include):
        return HiddenBy(None)
    return None


def hidden_because(wanted: Filter, paper: Paper) -> str | None:
    """Return in words why a filter hides a paper, None if it lets it pass."""
    found = hides(wanted, paper)
    return None if found is None else str(found)


def apply_filter(
    wanted: Filter, items: Sequence[NewsItem]
) -> tuple[tuple[NewsItem, ...], tuple[tuple[NewsItem, HiddenBy], ...]]:
    """Return the sightings that pass, and those that are hidden with the reason; both in the order given."""
    judged = [(item, hides(wanted, item.known.paper)) for item in items]
    kept = tuple(item for item, why in judged if why is None)
    return kept, tuple((item, why) for item, why in judged if why is not None)


def preview(wanted: Filter, papers: Iterable[Paper]) -> FilterPreview:
    """Return what a filter would have done to papers of the history; its words are "would have hidden 7 of 54"."""
    reasons: Counter[HiddenBy] = Counter()
    total = 0
    for paper in papers:
        total += 1
        why = hides(wanted, paper)
        if why is not None:
            reasons[why] += 1
    return FilterPreview(reasons.total(), total, tuple(reasons.most_common()))


def lint(wanted: Filter) -> tuple[str, ...]:
    """Return warnings about a filter, in words; empty if there is nothing to say.

    Nothing is refused here: what a rule does is shown by :func:`preview`, and the reader decides.
    """
    found = [warning for side in (wanted.include, wanted.exclude) for rule in side for warning in _lint_rule(rule)]
    for name, side in (("include", wanted.include), ("exclude", wanted.exclude)):
        if len(side) > MOST_RULES:
            found.append(f"{count_noun(len(side), 'rule')} to {name}: more than {MOST_RULES}")
        same = Counter((rule.field, rule.value.casefold()) for rule in side)
        found += [f"'{_text(key, side)}' stands in {name} {number} times" for key, number in same.items() if number > 1]
    for rule in wanted.include:
        over = next((other for other in wanted.exclude if _covers(other, rule)), None)
        if over is not None and over == rule:
            found.append(f"'{format_rule(rule)}' is included and excluded: what it fits is hidden")
        elif over is not None:
            found.append(f"'{format_rule(rule)}' is included and all of it excluded by '{format_rule(over)}'")
    return tuple(dict.fromkeys(found))


def _lint_rule(rule: FilterRule) -> list[str]:
    said = f"'{format_rule(rule)}'"
    if rule.field not in FIELDS:
        return [f"{said} can never fit: there is no field '{rule.field}'"]
    if not fold(rule.value) and rule.field != "label":
        return [f"{said} can never fit: it has no letters or digits"]
    return _lint_signs(rule, said) + _LINTS.get(rule.field, _lint_nothing)(rule.value, said)


def _lint_signs(rule: FilterRule, said: str) -> list[str]:
    found: list[str] = []
    if _PATTERN.search(rule.value):
        found.append(f"{said} looks like a pattern: there are none, words are compared as they stand")
    if rule.field == "words" and _OPERATOR.search(rule.value):
        found.append(f"{said} looks like a search: AND, OR and NOT are words here, write one rule for each")
    return found


def _lint_words(value: str, said: str) -> list[str]:
    word = value.casefold()
    if word in _COMMON:
        return [f"{said} fits almost every paper"]
    return [f"{said} is a single letter: it fits wherever one stands alone"] if len(fold(word)) == 1 else []


def _lint_author(value: str, said: str) -> list[str]:
    if len(value.split()) == 1:
        return [f"{said} fits only people of one name: write the full name"]
    return []


def _lint_category(value: str, said: str) -> list[str]:
    if " " in value or "," in value:
        return [f"{said} can never fit: write one rule for each category"]
    if value.casefold() in _DIVIDED:
        return [f"{said} can never fit: write 'category:{value.casefold()}.' for all of {value.casefold()}"]
    archive = value.casefold().partition(".")[0]
    return [] if _ARCHIVE.fullmatch(archive) else [f"{said} is not like a category: 'cs.CL', 'cs.'"]


def _lint_nothing(value: str, said: str) -> list[str]:
    del value, said
    return []


_LINTS: dict[str, Callable[[str, str], list[str]]] = {
    "words": _lint_words,
    "author": _lint_author,
    "category": _lint_category,
}


def _covers(wide: FilterRule, narrow: FilterRule) -> bool:
    """Whether each paper that the narrow rule fits is sure to fit the wide one too."""
    if wide.field != narrow.field:
        return False
    if wide.field == "category":
        return _in_category(narrow.value, wide.value)
    if wide.field in {"words", "institution"}:
        return _has_words(narrow.value, wide.value)
    return fold(wide.value) == fold(narrow.value)


def _text(key: tuple[str, str], side: Sequence[FilterRule]) -> str:
    return next(format_rule(rule) for rule in side if (rule.field, rule.value.casefold()) == key)


def _unquoted(text: str) -> str:
    text = text.strip()
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == '"' else text


def _shown(text: str) -> str:
    shown = "".join(char if char.isprintable() else " " for char in text[:60])
    return shown + "\u2026" if len(text) > 60 else shown


# -- what fits


def _in_category(found: str, wanted: str) -> bool:
    found, wanted = found.casefold(), wanted.casefold()
    return found.startswith(wanted) if wanted.endswith(".") else found == wanted


def _has_words(text: str, wanted: str) -> bool:
    """Whether a text has the words, in this order and whole."""
    return matches(Paper(title=text), MatchRule(any_of=(wanted,)))


#: field -> whether its value fits a paper
FIELDS: dict[str, Callable[[str, Paper], bool]] = {
    "words": lambda value, paper: matches(paper, MatchRule(any_of=(value,))),
    "author": lambda value, paper: matches(paper, MatchRule(authors=(value,))),
    "institution": lambda value, paper: any(_has_words(text, value) for text in paper.affiliations),
    "category": lambda value, paper: any(_in_category(found, value) for found in paper.categories),
    "label": lambda value, paper: matches(paper, MatchRule(labels=(value,))),
}
