"""A paper's names, and which known paper it is. Floor 1, pure.

Entry points: :func:`paper_ids` (all names of a page's paper) and :func:`match_paper` (which known paper it is, if any).

Listing pages carry no id, link or version, so a paper is found by the strongest evidence there is: an id that a registry
gave (arXiv, DOI, ...), then a link or a feed's own id if the rest does not contradict it, then title and first author,
then, as the last step and reported as such, a nearly equal title by the same people.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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

ROMAN = frozenset({"i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x"})


def fold(text: str) -> str:
    """Return letters and digits only: compatibility forms, case, accents, punctuation, dashes and spacing folded."""
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    return "".join(char for char in plain if char.isalnum())


def title_print(title: str) -> str:
    """Return the form of a title by which it is found again.

    A title without letters or digits keeps its signs, so that "???" is not the same as "!!!".
    """
    return fold(title) or " ".join(title.casefold().split())


def author_key(name: str) -> str:
    """Return surname and first initial, "yang.x" for "Xiao-Wen Yang", "X. Yang" and "Yang, Xiaowen" alike.

    "" for a name without letters. A single word is its own key.
    """
    surname, comma, given = name.partition(",")
    if not comma:
        words = name.split()
        while len(words) > 1 and fold(words[-1]) in {"jr", "sr", *ROMAN}:
            words.pop()
        surname, given = (words[-1], " ".join(words[:-1])) if words else ("", "")
    last, first = fold(surname), fold(given)
    if not last:
        return first
    return f"{last}.{first[0]}" if first else last


def author_keys(name: str) -> frozenset[str]:
    """Return the keys of a name in both orders: family names come first in many of the world's names."""
    keys = {author_key(name)}
    words = name.replace(",", " ").split()
    if len(words) > 1:
        keys.add(author_key(" ".join([*words[1:], words[0]])))
    return frozenset(keys - {""})


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
    certain = {known.key for known in candidates if _is_same(paper, names, known)}
    if certain or not similar:
        return Match(tuple(sorted(certain)))
    scored = [(_similarity(paper, names, known), known.key) for known in candidates]
    best = max(scored, key=lambda pair: (pair[0], -pair[1]), default=(0, 0))
    return Match((best[1],), fuzzy=best[0]) if best[0] >= FUZZY_RATIO else Match()


def _is_same(paper: Paper, names: frozenset[PaperId], known: KnownPaper) -> bool:
    shared = names.intersection(known.ids)
    if any(name.scheme in STRONG_SCHEMES for name in shared):
        return True
    if _contradicts(names, known.ids):
        return False
    if any(name.scheme in {"url", "guid"} for name in shared):
        return _is_plausible(paper, known.paper)
    return _has_same_title(paper, known.paper)


def _contradicts(names: Iterable[PaperId], others: Iterable[PaperId]) -> bool:
    """Whether a registry names the two differently: other arXiv numbers, or other DOIs of the same kind."""
    for scheme in ("arxiv", "openreview"):
        ours = {name.value for name in names if name.scheme == scheme}
        theirs = {name.value for name in others if name.scheme == scheme}
        if ours and theirs and not ours & theirs:
            return True
    for preprint in (True, False):
        ours, theirs = _dois(names, preprint=preprint), _dois(others, preprint=preprint)
        if ours and theirs and not ours & theirs:
            return True
    return False


def _dois(names: Iterable[PaperId], *, preprint: bool) -> set[str]:
    dois = {name.value for name in names if name.scheme == "doi"}
    return {doi for doi in dois if doi.startswith(PREPRINT_DOIS) == preprint}


def _is_plausible(paper: Paper, known: Paper) -> bool:
    """Whether two papers under one link or feed id can be one: a reused "latest.html" shares nothing but the link."""
    if title_print(paper.title) == title_print(known.title):
        return True
    ours = {key for name in paper.authors for key in author_keys(name)}
    theirs = {key for name in known.authors for key in author_keys(name)}
    if ours & theirs:
        return True
    if paper.abstract and known.abstract and fold(paper.abstract) == fold(known.abstract):
        return True
    similar: float = fuzz.ratio(fold(paper.title), fold(known.title))
    return similar >= (60 if not (ours and theirs) else 80)


def _has_same_title(paper: Paper, known: Paper) -> bool:
    print_ = title_print(paper.title)
    if print_ != title_print(known.title):
        return False
    ours, theirs = first_author(paper), first_author(known)
    if not ours or not theirs:
        return len(print_) >= LONE_TITLE_PRINT
    if not author_keys(ours) & author_keys(theirs):
        return False
    return len(print_) >= SHORT_PRINT or _agree_beside_title(paper, known)


def _agree_beside_title(paper: Paper, known: Paper) -> bool:
    if paper.published is not None and known.published is not None and paper.published != known.published:
        return False
    if paper.abstract and known.abstract:
        return fold(paper.abstract) == fold(known.abstract)
    return True


def _similarity(paper: Paper, names: frozenset[PaperId], known: KnownPaper) -> int:
    """Return how similar two titles are in percent, 0 where anything speaks against one paper.

    The same people must stand first, ids and numbers in the title must not differ ("Part I" and "Part II"), abstracts
    must be nearly equal where both are known, dates within a week.
    """
    other = known.paper
    ours, theirs = first_author(paper), first_author(other)
    if not ours or not theirs or not author_keys(ours) & author_keys(theirs):
        return 0
    if _contradicts(names, known.ids) or _numbers(paper.title) != _numbers(other.title):
        return 0
    if paper.published and other.published and abs((paper.published - other.published).days) > 7:
        return 0
    same_abstract = False
    if paper.abstract and other.abstract:
        alike = fuzz.ratio(fold(paper.abstract)[:2000], fold(other.abstract)[:2000])
        if alike < 80:
            return 0
        same_abstract = alike >= 98 and len(paper.abstract) >= 200
    ratio = int(fuzz.ratio(title_print(paper.title), title_print(other.title)))
    # a renamed paper whose abstract did not change is the same paper, however new the title
    return max(ratio, FUZZY_RATIO) if same_abstract else ratio


def _numbers(title: str) -> list[str]:
    words = [fold(word) for word in title.replace("-", " ").replace(":", " ").split()]
    return [word for word in words if word in ROMAN or any(char.isdigit() for char in word)]
