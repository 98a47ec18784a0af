"""A paper's names, and which known paper it is. Floor 1, pure.

Entry points: :func:`paper_ids` (all names of a page's paper) and :func:`match_paper` (which known paper it is, if any).

Listing pages carry no id, link or version, so a paper is found by the strongest evidence there is: an id that a registry
gave (arXiv, DOI, ...), then a link or a feed's own id if the rest does not contradict it, then title and first author,
then, as the last step and reported as such, a nearly equal title by the same people.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b

from rapidfuzz import fuzz

from digestd.model.paper import KnownPaper, Paper, PaperId
from digestd.parse.links import ids_of_link, normalise_url

#: ids that a registry gives to one work; everything else may be reused, renamed or copied
STRONG_SCHEMES = frozenset({"arxiv", "doi", "openalex", "s2", "openreview"})

#: DOI prefixes of preprint servers: a preprint's DOI beside a journal's is one work under two names
PREPRINT_DOIS = ("10.48550/", "10.1101/", "10.21203/", "10.20944/", "10.26434/", "10.31234/", "10.2139/", "10.36227/")

#: at least this similar in title (percent) for the last step; 90 real titles: the nearest different pair scores 67
FUZZY_RATIO = 92

#: title prints shorter than this ("editorial", "erratum") say little: date or abstract must agree as well
SHORT_PRINT = 16

#: a title alone, without authors on one side, must be at least this long to be a name
LONE_TITLE_PRINT = 24

#: nearly equal titles count only above this where no two abstracts speak for them
LONE_FUZZY_RATIO = 95

#: an abstract of at least this many characters is one paper's own
LONG_ABSTRACT = 200

#: sources date a paper by its submission or its announcement, which a long week-end holds apart
DATE_SLACK_DAYS = 5

ROMAN = frozenset({"i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x"})
COUNTED = frozenset({"one", "two", "three", "four", "five", "first", "second", "third", "fourth", "fifth"})

#: letters that no normal form takes apart
_LETTERS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"})
_NOT_WORD = re.compile(r"[^a-z0-9]+")
_NOT_ALNUM = re.compile(r"[\W_]+")
_GENERATION = frozenset({"jr", "sr", *ROMAN})
_PART_BREAK = re.compile(r"[\s:/\u2010-\u2015-]+")
_PREPRINT_VERSION = re.compile(r"[./]?v\d+$")


def fold(text: str) -> str:
    """Return letters and digits only: compatibility forms, case, accents, punctuation, dashes and spacing folded."""
    if text.isascii():
        return _NOT_WORD.sub("", text.lower())
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold()).translate(_LETTERS)
    return _NOT_ALNUM.sub("", plain)


@lru_cache(maxsize=4096)
def title_print(title: str) -> str:
    """Return the form of a title by which it is found again.

    A title without letters or digits keeps its signs, so that "???" is not the same as "!!!".
    """
    return fold(title) or " ".join(title.casefold().split())


def author_key(name: str) -> str:
    """Return surname and first initial, "yang.x" for "Xiao-Wen Yang", "X. Yang" and "Yang, Xiaowen" alike.

    Of a surname of several words the last one stands, so that "de la Cruz, Ana" is "Ana de la Cruz". "" for a name without
    letters. A single word is its own key.
    """
    surname, given = _surname_and_given(name)
    return _key(surname, given)


@lru_cache(maxsize=16384)
def author_keys(name: str) -> frozenset[str]:
    """Return the keys of a name in both orders: family names come first in many of the world's names.

    A hyphenated surname stands whole and by its last part.
    """
    surname, given = _surname_and_given(name)
    keys = {_key(surname, given), _key(surname.rpartition("-")[2], given)}
    words = name.split()
    if len(words) > 1 and "," not in name:
        keys.add(_key(words[0], words[1]))
    return frozenset(keys - {""})


def _surname_and_given(name: str) -> tuple[str, str]:
    surname, comma, given = name.partition(",")
    if comma:
        family = _without_generation(surname.split())
        first = [word for word in given.replace(",", " ").split() if fold(word) not in {"jr", "sr"}]
        return (family[-1] if family else ""), " ".join(first)
    words = _without_generation(name.split())
    return (words[-1], " ".join(words[:-1])) if words else ("", "")


def _without_generation(words: list[str]) -> list[str]:
    while len(words) > 1 and fold(words[-1]) in _GENERATION:
        words = words[:-1]
    return words


def _key(surname: str, given: str) -> str:
    last, first = fold(surname), fold(given)
    if not last:
        return first
    return f"{last}.{first[0]}" if first else last


def first_author(paper: Paper) -> str:
    """Return the name that stands first: a person, else the group, else ""."""
    return paper.authors[0] if paper.authors else (paper.group or "")


def text_hash(text: str) -> int:
    """Return 63 bits of a text's hash, for an integer index."""
    return int.from_bytes(blake2b(text.encode("utf-8", "replace"), digest_size=8).digest(), "big") >> 1


def title_id(title: str, author: str) -> PaperId:
    """Return the name that title and first author make."""
    print_and_author = f"{title_print(title)}|{author_key(author)}"
    return PaperId("title", blake2b(print_and_author.encode("utf-8", "replace"), digest_size=12).hexdigest())


def paper_ids(paper: Paper) -> tuple[PaperId, ...]:
    """Return all names of a page's paper: the source's own, those in its link, the link, title and first author.

    Only the first link is the paper's own; further links stand in its text.
    """
    ids = dict.fromkeys(paper.ids)
    for link in paper.links[:1]:
        ids.update(dict.fromkeys(ids_of_link(link)))
        canonical = normalise_url(link)
        if canonical:
            ids[PaperId("url", canonical)] = None
    ids[title_id(paper.title, first_author(paper))] = None
    return tuple(ids)


def text_print(paper: Paper) -> int:
    """Return the hash of title and abstract as a reader reads them: changes of spelling signs alone do not change it."""
    return text_hash(f"{title_print(paper.title)}|{fold(paper.abstract or '')}")


@dataclass(frozen=True, slots=True)
class Match:
    """Which known papers a page's paper is."""

    keys: tuple[int, ...] = ()  #: lowest first; more than one: they turn out to be one paper
    fuzzy: int | None = None  #: similarity in percent where only the last step found it

    @property
    def key(self) -> int | None:
        """The paper that stays, None for a paper unseen until now."""
        return self.keys[0] if self.keys else None


def match_paper(
    paper: Paper, ids: Iterable[PaperId], candidates: Sequence[KnownPaper], *, similar: bool = True
) -> Match:
    """Return which of the candidates a paper is.

    Args:
        paper: as the page shows it.
        ids: all its names, from :func:`paper_ids`.
        candidates: known papers that share a name, a title print or the first author with it; may be empty.
        similar: whether a nearly equal title by the same people may decide where nothing better does.
    """
    names = frozenset(ids)
    certain = [known for known in candidates if _is_same(paper, names, known)]
    if certain or not similar:
        return Match(_agreeing(names, certain))
    scored = [(_similarity(paper, names, known), known.key) for known in candidates]
    best = max(scored, key=lambda pair: (pair[0], -pair[1]), default=(0, 0))
    return Match((best[1],), fuzzy=best[0]) if best[0] >= FUZZY_RATIO else Match()


def _agreeing(names: frozenset[PaperId], certain: Sequence[KnownPaper]) -> tuple[int, ...]:
    """Return the keys that can be one paper: two that a registry tells apart are never made one by a third.

    Those that share a registry's id with the paper come before those that share a link or a title.
    """
    kept: list[KnownPaper] = []
    for known in sorted(certain, key=lambda known: (not shares_strong(names, known.ids), known.key)):
        if not any(contradicts(known.ids, other.ids) for other in kept):
            kept.append(known)
    return tuple(sorted(known.key for known in kept))


def shares_strong(names: Iterable[PaperId], others: Iterable[PaperId]) -> bool:
    """Return whether a registry gave both one id."""
    return any(name.scheme in STRONG_SCHEMES for name in frozenset(names).intersection(others))


def _is_same(paper: Paper, names: frozenset[PaperId], known: KnownPaper) -> bool:
    if shares_strong(names, known.ids):
        return True
    if contradicts(names, known.ids):
        return False
    shared = {name.scheme for name in names.intersection(known.ids)}
    if "title" in shared and _is_telling(paper, known.paper):
        return True  # under the title that it bears now, or one that it bore before
    if shared & {"url", "guid"}:
        return is_plausible(paper, known.paper)
    return _has_same_title(paper, known.paper)


def contradicts(names: Iterable[PaperId], others: Iterable[PaperId]) -> bool:
    """Return whether a registry tells two papers apart: other arXiv numbers, or other DOIs of the same registrant's kind.

    A preprint's DOI beside a journal's, or beside that of another preprint server, is one work under two names.
    """
    ours, theirs = _registered(names), _registered(others)
    return any(values.isdisjoint(theirs[registry]) for registry, values in ours.items() if registry in theirs)


def _registered(names: Iterable[PaperId]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for name in names:
        if name.scheme in {"arxiv", "openreview"}:
            found[name.scheme].add(name.value)
        elif name.scheme == "doi":
            server = next((prefix for prefix in PREPRINT_DOIS if name.value.startswith(prefix)), None)
            found[server or "journal"].add(_PREPRINT_VERSION.sub("", name.value) if server else name.value)
    return found


def is_plausible(paper: Paper, known: Paper) -> bool:
    """Return whether two papers under one link or feed id can be one.

    A reused "latest.html" shares little but the link, and often the people and most of the title: "Report 12", "Report 13".
    """
    if title_print(paper.title) == title_print(known.title):
        return True
    abstracts = _abstracts_alike(paper, known)
    if abstracts == 100:
        return True
    if _numbers(paper.title) != _numbers(known.title):
        return False
    ours = {key for name in paper.authors for key in author_keys(name)}
    theirs = {key for name in known.authors for key in author_keys(name)}
    if ours & theirs:
        # unrelated English texts, letter by letter, are about half alike
        return abstracts is None or abstracts >= 65
    similar: float = fuzz.ratio(fold(paper.title), fold(known.title))
    return similar >= (70 if not (ours and theirs) else 80)


def _abstracts_alike(paper: Paper, known: Paper) -> float | None:
    """Return how alike two abstracts are in percent, 100 only for equal ones; None where one is missing."""
    ours, theirs = fold(paper.abstract or "")[:2000], fold(known.abstract or "")[:2000]
    if not ours or not theirs:
        return None
    return 100.0 if ours == theirs else min(99.0, float(fuzz.ratio(ours, theirs)))


def _has_same_title(paper: Paper, known: Paper) -> bool:
    print_ = title_print(paper.title)
    if print_ != title_print(known.title):
        return False
    ours, theirs = first_author(paper), first_author(known)
    if bool(ours) != bool(theirs):
        return len(print_) >= LONE_TITLE_PRINT or (_abstracts_alike(paper, known) or 0) >= 80
    if ours and not author_keys(ours) & author_keys(theirs):
        # a list of authors in another order, or a group's name in their place, under the same long abstract
        own = len(print_) >= SHORT_PRINT and len(paper.abstract or "") >= LONG_ABSTRACT
        return own and _abstracts_alike(paper, known) == 100
    return _is_telling(paper, known)


def _is_telling(paper: Paper, known: Paper) -> bool:
    """Whether a title is long enough to be a name with its author, or something beside it agrees."""
    return len(title_print(paper.title)) >= SHORT_PRINT or _agree_beside_title(paper, known)


def _agree_beside_title(paper: Paper, known: Paper) -> bool:
    """Return whether abstracts, or where one is missing dates, agree; where there is nothing to compare they do."""
    alike = _abstracts_alike(paper, known)
    if alike is None:
        return _same_day(paper, known, days=DATE_SLACK_DAYS)
    return alike >= 80 or (paper.published is not None and paper.published == known.published)


def _same_day(paper: Paper, known: Paper, *, days: int) -> bool:
    if paper.published is None or known.published is None:
        return True
    return abs((paper.published - known.published).days) <= days


def _similarity(paper: Paper, names: frozenset[PaperId], known: KnownPaper) -> int:
    """Return how similar two titles are in percent, 0 where anything speaks against one paper.

    The same people must stand first, ids and numbers in the title must not differ ("Part I" and "Part II"), abstracts
    must be nearly equal where both are known, dates within a week.
    """
    other = known.paper
    ours, theirs = first_author(paper), first_author(other)
    if not ours or not theirs or not author_keys(ours) & author_keys(theirs):
        return 0
    if contradicts(names, known.ids) or _numbers(paper.title) != _numbers(other.title):
        return 0
    if not _same_day(paper, other, days=7):
        return 0
    ratio = int(fuzz.ratio(title_print(paper.title), title_print(other.title)))
    alike = _abstracts_alike(paper, other)
    if alike is None:
        return ratio if ratio >= LONE_FUZZY_RATIO and _differ_in_spelling(paper.title, other.title) else 0
    if alike < 80:
        return 0
    # a renamed paper whose abstract did not change is the same paper, however new the title
    same_abstract = alike >= 98 and len(paper.abstract or "") >= LONG_ABSTRACT
    return max(ratio, FUZZY_RATIO) if same_abstract else ratio


def _differ_in_spelling(one: str, other: str) -> bool:
    """Whether two titles have the same words but for letters: "Shrimps" for "Shrimp", never "without" for "with"."""
    words, others = ([fold(word) for word in _PART_BREAK.split(title)] for title in (one, other))
    return len(words) == len(others) and all(fuzz.ratio(a, b) >= 75 for a, b in zip(words, others, strict=True))


@lru_cache(maxsize=4096)
def _numbers(title: str) -> list[str]:
    """Return what counts parts: numbers, Roman ones and single letters too ("Part I", "Part B", "Part Two")."""
    words = [fold(word) for word in _PART_BREAK.split(title)]
    return [
        word
        for word in words
        if word in ROMAN or word in COUNTED or any(char.isdigit() for char in word) or (len(word) == 1 and word != "a")
    ]
