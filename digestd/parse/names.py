"""Author strings to people and groups. Floor 1, pure.

Entry points: :func:`split_authors` for one string with all authors, :func:`join_authors` for one string an author.

Shapes met in feeds: ``Ana Lima, Bo Chen, and Chiara de Rossi`` | ``Orsini, M., van der Berg, L. E.`` |
``Lim, Wei; Farouk, Dina`` | ``Kerr, Siobhan`` | ``Li, Edward, Jr.`` | ``Ruth Cole (for the Deep Sea Consortium)`` |
``ATLAS Collaboration: G. Aad, B. Abbott`` | ``Ana Lima (1), Bo Chen (2) ((1) Reef Institute, (2) Tide Lab)`` |
``Orsini, Marta and Tanaka, Ren`` (BibTeX) | ``desk@papers.example (Ana Lima)`` | ``Ana Lima, Bo Chen et al.``
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from digestd.parse.charset import one_line

#: the longest author list of a paper, some 5,000 names, has half of that
MAX_TEXT = 200_000

_GROUP_NOUN = (
    r"collaborations?|consortium|consortia|group|team|network|initiative|investigators|committee|task\s*force|alliance|"
    r"collaborators|working\s+party|partnership|programme"
)
_GROUP = re.compile(
    rf"(?i)(?:\S+\s+){{1,14}}(?:{_GROUP_NOUN})|(?:{_GROUP_NOUN})(?:\s+\S+){{0,2}}|collaboration,?\s+the\s+.+"
)
_ON_BEHALF = re.compile(r"(?i)^(?:on\s+behalf\s+of|for|and|with|from)\s+(?:the\s+)?")
_ARTICLE = re.compile(r"(?i)^the\s+")
_TURNED_GROUP = re.compile(r"(?i)^(collaboration|consortium),\s+(?:the\s+)?([^,;:()]+)$")
_FOR_GROUP = re.compile(rf"(?i)[\s,;]+(?:on\s+behalf\s+of|for)\s+the\s+((?:\S+\s+){{1,14}}(?:{_GROUP_NOUN}))$")
_GROUP_FIRST = re.compile(rf"(?i)^([^:;,()]{{2,80}}\b(?:{_GROUP_NOUN}))\s*:\s*")
_SUFFIX = re.compile(r"(?i)^(?:(?P<kept>jr|sr|[2-4](?:nd|rd|th)|iii|iv)\.?|ii|v)$")
_DEGREE = re.compile(r"(?i)^(?:ph\.?\s?d|m\.?d|m\.?sc|b\.?sc|dr|prof|frs|esq|mph|r\.?n)\.?$")
_LETTER_BLOCK = re.compile(r"[A-Z]{1,3}")
_PARTICLES = frozenset(
    (
        *("van", "von", "der", "den", "de", "del", "della", "di", "da", "das", "dos", "du", "la", "le", "el", "al"),
        *("bin", "ibn", "ben", "ter", "ten", "zu", "zur", "af", "av", "'t"),
    )
)
_AND = re.compile(r"(?i)\s*,?\s+(?:and|&|und)\s+|\s*,?\s*&\s+")
_ET_AL = re.compile(r"(?i)[\s,;]*\b(?:et\.?\s+al\b\.?|and\s+others\b\.?)[\s,;]*$|[\s,;]*(?:\u2026|\.\.\.)\s*$")
_MORE = re.compile(r"[\s,;]*(?:\+\s?|and\s+)(\d{1,5})(?:\s+(?:more|others|other\s+authors)|\s*$)[\s.,;]*$")
_MAIL = re.compile(r"<?(?:mailto:)?[^\s<>()@,;]{1,64}@[^\s<>()@,;]{1,253}>?")
_RUN = re.compile(r"([,;])\s*[,;][\s,;]*")
_MARKS = " \t,;:*\u2020\u2021\u00a7\u00b6#^~"
_BY = re.compile(r"(?i)^(?:by|authors?\s*:|author\(s\)\s*:)\s+")


@dataclass(frozen=True, slots=True)
class Authors:
    """Who wrote a paper."""

    names: tuple[str, ...] = ()  #: people, given name first, in order, none twice
    group: str | None = None  #: a consortium or collaboration
    affiliations: tuple[str, ...] = ()  #: places that stood in brackets
    more: int = 0  #: the printed "+N"


def join_authors(parts: Iterable[str]) -> Authors:
    """Return the people and groups of strings that hold one author each; one that holds several is cut.

    Args:
        parts: displayed names, in order, may be empty.
    """
    found = [split_authors(part) for part in parts]
    names = dict.fromkeys(name for authors in found for name in authors.names)
    places = dict.fromkeys(place for authors in found for place in authors.affiliations)
    groups = dict.fromkeys(authors.group for authors in found if authors.group)
    return Authors(tuple(names), ", ".join(groups) or None, tuple(places), sum(authors.more for authors in found))


def split_authors(text: str) -> Authors:
    """Return the people and groups of one string.

    Args:
        text: plain text, no mark-up.

    Returns:
        Names with the given name first ("L. E. van der Berg"), suffixes kept ("Edward Li Jr."), degrees and mail
        addresses left out; no names where the text holds none.
    """
    line = _BY.sub("", " ".join(_MAIL.sub(" ", one_line(text[:MAX_TEXT])).split()))
    line = _RUN.sub(r"\1 ", line)  # a run of commas would cost the patterns below its square
    outside, brackets = _take_brackets(line)
    if not outside and len(brackets) == 1 and line != text:  # RSS 2.0: "desk@papers.example (Ana Lima)"
        outside, brackets = brackets[0], []
    groups, places = _read_brackets(brackets)
    behalf = _FOR_GROUP.search(outside)
    if behalf:
        groups.append(_group_name(behalf[1]))
        outside = outside[: behalf.start()]
    more = _MORE.search(outside)
    if more:
        outside = outside[: more.start()]
    outside = _ET_AL.sub("", outside)
    first = _GROUP_FIRST.match(outside)
    if first:
        groups.append(_group_name(first[1]))
        outside = outside[first.end() :]
    names: list[str] = []
    for name in [outside] if _TURNED_GROUP.match(outside) else _cut(outside):
        if _GROUP.fullmatch(name):
            groups.append(_group_name(name))
        elif any(character.isalpha() for character in name):
            names.append(name)
    group = ", ".join(dict.fromkeys(groups)) or None
    return Authors(tuple(dict.fromkeys(names)), group, tuple(dict.fromkeys(places)), int(more[1]) if more else 0)


def _take_brackets(line: str) -> tuple[str, list[str]]:
    """Return the text outside brackets, and what stood in them, outermost level; one never closed stays text.

    A nickname, "William (Bill) Smith", is no remark: its bracket is followed by the rest of the name, and stays.
    """
    if "(" not in line:
        return line, []
    outside: list[str] = []
    inside: list[str] = []
    depth, start, after = 0, 0, 0
    for at, character in enumerate(line):
        if character == "(":
            depth += 1
            if depth == 1:
                start = at
        elif character == ")" and depth:
            depth -= 1
            if depth:
                continue
            rest = line[at + 1 : at + 3].strip()
            nickname = rest[:1].isalpha() and line[start + 1 : at].isalpha() and not line.startswith(" and ", at + 1)
            if not nickname:
                outside.append(line[after:start])
                inside.append(line[start + 1 : at])
                after = at + 1
    outside.append(line[after:])
    return " ".join("".join(outside).replace(" ,", ",").split()), inside


def _read_brackets(brackets: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the groups and the places that stand in brackets; bare numbers point at places and are neither."""
    groups: list[str] = []
    places: list[str] = []
    for text in brackets:
        bare = _ON_BEHALF.sub("", text.strip())
        if _GROUP.fullmatch(bare):
            groups.append(_group_name(bare))
        elif "(" in text:
            places.extend(one_line(place).strip(" ,;") for place in re.split(r"\(\d{1,3}\)", text))
        elif re.search(r"[^\W\d_]{3}", text) and not re.fullmatch(r"[\d\s,]*(?:and[\d\s,]*)+", text):
            places.append(text.strip(" ,;"))
    return groups, [place for place in places if place]


def _group_name(text: str) -> str:
    """Return a group's name as it is shown: "Collaboration, The Tide" is "Tide Collaboration"."""
    bare = _ARTICLE.sub("", _ON_BEHALF.sub("", text.strip(_MARKS)))
    turned = _TURNED_GROUP.match(bare)
    return f"{turned[2]} {turned[1]}" if turned else bare


def _cut(text: str) -> list[str]:
    """Return the authors of a string without brackets."""
    if re.search(r"[;|\u3001]", text):
        return [
            name for part in re.split(r"[;|\u3001]", text) if (name := _unturn(_split_commas(_AND.sub(", ", part))))
        ]
    ands = [part for part in _AND.split(text) if part.strip(_MARKS)]
    if len(ands) > 1 and all(_is_turned(part) for part in ands):
        return [_unturn(_split_commas(part)) for part in ands]
    return _read_commas(_split_commas(", ".join(ands)))


def _split_commas(text: str) -> list[str]:
    """Return what stands between commas, marks of footnotes and degrees left out."""
    parts = (part.strip(_MARKS) for part in text.replace("\uff0c", ",").split(","))
    return [part for part in parts if part and not _DEGREE.match(part)]


def _is_turned(part: str) -> bool:
    """Whether it is one name, surname first: "Orsini, Marta"."""
    found = _split_commas(part)
    return len(found) == 2 and _is_surname(found[0]) and not _SUFFIX.match(found[1])


def _is_surname(text: str) -> bool:
    """Whether it is one word, or particles and one word: "van der Berg"."""
    words = text.split()
    return bool(words) and all(word.lower() in _PARTICLES for word in words[:-1])


def _is_initials(text: str) -> bool:
    """Whether it is initials: "L. E.", "J.-P.", "JB"."""
    letters = re.split(r"[\s.\-\u2010]+", text.strip(". "))
    return (len(letters) <= 4 and all(len(letter) == 1 and letter.isupper() for letter in letters)) or bool(
        _LETTER_BLOCK.fullmatch(text)
    )


def _unturn(parts: Sequence[str]) -> str:
    """Return one name of its parts between commas, given name first, a suffix last."""
    suffixes = [part for part in parts if _SUFFIX.match(part)]
    names = [part for part in parts if not _SUFFIX.match(part)]
    if not names:
        return ""
    if _GROUP.fullmatch(", ".join(names)):
        return ", ".join(names)
    return " ".join([*names[1:], names[0], *suffixes])


def _read_commas(parts: Sequence[str]) -> list[str]:
    """Return the names in a list with nothing but commas: in which order, only the list as a whole can tell."""
    people = [part for part in parts if not _SUFFIX.match(part) and not _GROUP.fullmatch(part)]
    turned = _all_turned(people)
    names: list[str] = []
    at = 0
    while at < len(parts):
        part = parts[at]
        following = parts[at + 1] if at + 1 < len(parts) else ""
        is_group = bool(_GROUP.fullmatch(part))
        if _SUFFIX.match(part) and names:
            names[-1] = f"{names[-1]} {part}"
        elif following and not is_group and (turned or (_is_initials(following) and not _is_initials(part))):
            if _SUFFIX.match(following) and at + 2 < len(parts) and _is_surname(part):  # "Li, Jr., Edward"
                names.append(f"{parts[at + 2]} {part} {following}")
                at += 2
            elif _SUFFIX.match(following) or _GROUP.fullmatch(following):
                names.append(part)
                at -= 1
            else:
                names.append(f"{following} {part}")
            at += 1
        else:
            names.append(part)
        at += 1
    return names


def _all_turned(people: Sequence[str]) -> bool:
    """Whether a list is "Kerr, Siobhan" or "Kerr, Siobhan, Patil, Raj": surnames, each followed by given names."""
    if not people or len(people) % 2:
        return False
    if len(people) == 2:
        return _is_surname(people[0]) and not _is_initials(people[0])
    return all(_is_surname(part) and not _is_initials(part) for part in people[::2]) and all(
        len(part.split()) == 1 or _is_initials(part.split()[-1]) for part in people[1::2]
    )
