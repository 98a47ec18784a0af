"""Extractive summaries: one or two whole sentences of a paper's own abstract, picked by a program. Floor 1.

Entry point: ``summarise``. First the sentence that says what is proposed, then the one that says what came of it. The
words are the authors' own; only white space is touched, and a single sentence that is too long is cut at a word.
"""

from __future__ import annotations

import re

from digestd.phrases import cut_at_word, short_title

_LIMIT = 280
_AIM = 190
_LOOK = 200

# Words before a full stop that don't end a sentence, whatever follows.
_ABBREVIATIONS = frozenset(
    re.findall(
        r"[\w.]+",
        "e.g i.e cf vs viz fig figs eq eqs sec secs tab ref refs no nos resp dr mr mrs ms prof st jr sr dept univ vol pp "
        "ca thm eds",
    )
)
# Abbreviations that end a sentence where a capital follows: "et al. We show", "etc. Then"; "Fig. 3" never gets here.
_OPEN_ENDED = frozenset({"al", "et.al", "etc", "inc", "ltd", "co", "corp", "i.i.d", "w.r.t", "a.k.a", "approx"})
_OPENERS = re.compile(
    r"(We|Our|In|This|These|Those|The|It|To|However|Moreover|Furthermore|Here|Results|Experiments|Extensive|On|Across)\b"
)
_END = re.compile(r"[.!?\u3002]+[\"'\u201d\u2019)\]]*")
_WORD_BEFORE = re.compile(r"[\w.]+$")
_URL_TAIL = re.compile(r"(?:https?://|www\.|doi:)\S*$", re.IGNORECASE)

_PROPOSES = re.compile(
    r"\b(?:we|this (?:paper|work|article|report|study)|here,? we|authors?)\b[^.;:]{0,60}?"
    r"\b(?:propos|introduc|present|develop|design|build|built|releas|describ|formaliz|formalis|construct|"
    r"contribut|study|studies|investigat|examin|explor|evaluat|analy[sz]|ask|show that|argue|instantiat|"
    r"curate|create|establish|revisit|address|tackl|offer|report)\w*",
    re.IGNORECASE,
)
_STRONG = re.compile(
    r"\b(?:we|this (?:paper|work|article|report))\b[^.;:]{0,40}?\b(?:propos|introduc|present|develop|releas)\w*",
    re.IGNORECASE,
)
# "VHD-Play reverses this": a coined name as the subject, of use where nobody proposes anything.
_COINED = re.compile(r"(?!(?:LLM|AI|RL|GPU|API|MCP|GUI)s?\b)[A-Z][a-z0-9]*-?[A-Z][\w-]* [a-z]{3,}s\b")
_DETAIL = re.compile(
    r"^(?:we (?:further|also|additionally|then)|to (?:address|support|ensure|handle|facilitate|mitigate|enable)\b[^,]*,"
    r"|additionally|furthermore|moreover|in addition|besides|finally|specifically|first|second|third|then)\b",
    re.IGNORECASE,
)
_LEANS = re.compile(
    r"^(?:it|its|they|their|this|these|those|such|that|both|each|here|there|however|moreover|furthermore|additionally"
    r"|besides|yet|but|also|thus|therefore|hence|consequently|specifically|instead|then|in contrast|as a result"
    r"|for (?:example|instance)|first|second|third|finally|together|again|conversely|nevertheless|nonetheless)\b",
    re.IGNORECASE,
)
_RESULT = re.compile(
    r"\b(?:outperform|improv|surpass|exceed|achiev|state[- ]of[- ]the[- ]art|sota|gain|reduc|increas|boost|match|beat"
    r"|superior|better|higher|lower|faster|cheaper|demonstrat|reveal|raises?|lifts?|wins?|drops?|attain"
    r"|results? show|experiments? show|show(?:s|ed)? that|f[io]nd(?:s|ings?)? that|we find|we observe|yield)\w*",
    re.IGNORECASE,
)
_EVIDENCE = re.compile(
    r"\b(?:experiment|result|evaluat|benchmark|across|compared|baseline|trained|findings?)\w*", re.IGNORECASE
)
_FIGURE = re.compile(
    r"\d+(?:[.,]\d+)*\s*(?:%|\u00d7|x\b|points?\b|pp\b|percent)|\bfrom \d[\d.,]*%? to \d", re.IGNORECASE
)
_DIGIT = re.compile(r"(?<![\w-])\d")
_NUMBERED = re.compile(r"\(?(?:\d{1,2}|[ivx]{1,4}|[a-e])\)")
_AVAILABLE = re.compile(
    r"https?://|\b(?:code|data|dataset|models?|project page|resources?|implementation)\b[^.]{0,60}\b(?:available|released"
    r"|open[- ]?sourc|found at|can be found)\w*|\bwe (?:will )?(?:open-source|release) (?:our |the |all )?(?:code|data)",
    re.IGNORECASE,
)


def split_sentences(text: str) -> tuple[str, ...]:
    """Return the sentences of a text in order, none empty.

    A full stop ends a sentence unless it belongs to an abbreviation, an initial, a decimal, a name ("Qwen3.5-9B") or
    an address. Where the blank after it is missing ("makespan.Second") it ends one if a lower-case word stands before
    and a capitalised word behind. Joined again with blanks the sentences are the text, white space folded.

    Args:
        text: readable text, any white space; may be empty.
    """
    text = " ".join(text.split())
    sentences: list[str] = []
    start = 0
    for match in _END.finditer(text):
        end = match.end()
        if end < len(text) and _ends_sentence(text, start, match):
            sentences.append(text[start:end].strip())
            start = end
    sentences.append(text[start:].strip())
    return tuple(sentence for sentence in sentences if sentence)


def _ends_sentence(text: str, start: int, match: re.Match[str]) -> bool:
    """Return whether the full stop, question or exclamation mark ends the sentence that began at ``start``."""
    # A short look back and ahead, so that a long text without sentences costs no more than its length.
    before = text[max(start, match.start() - _LOOK) : match.start()]
    mark, after = match.group(), text[match.end() : match.end() + _LOOK]
    if "\u3002" in mark:
        return True
    spaced = after.startswith(" ")
    if not spaced:
        # A missing blank: only between a plain word and a capitalised word, outside addresses and names with dots.
        word = _WORD_BEFORE.search(before)
        glued = re.match(r"[A-Z][a-z]*[ ,']", after) or re.match(r"[A-Z][a-z]{3,}", after)
        return bool(
            mark == "."
            and glued
            and word
            and re.fullmatch(r"[a-z]{3,}|\d+%", word.group())
            and not _URL_TAIL.search(before)
        )
    following = after.lstrip()
    if re.match(r"[a-z]", following) and not re.match(r"[a-z]+[A-Z0-9]|[a-z]{1,3}-[A-Z]", following):
        return False  # "e.g. this", "vs. that", "et al. find": a sentence begins with a capital
    if mark[0] != ".":
        return not before.endswith("(")
    if mark.startswith("..."):
        return True
    word = _WORD_BEFORE.search(before)
    if word is None:
        return True
    return _word_ends(word.group().lower().strip("."), word.group(), following)


def _word_ends(folded: str, word: str, following: str) -> bool:
    """Return whether a word with a full stop ends a sentence, given what follows it."""
    if folded in _OPEN_ENDED:
        return bool(_OPENERS.match(following))
    if folded in _ABBREVIATIONS:
        return False if folded != "no" else not following[:1].isdigit()
    if re.fullmatch(r"(?:[A-Za-z]\.)*[A-Z]", word):
        # An initial, "J. Smith"; but "plan B. We show" ends.
        return bool(_OPENERS.match(following))
    return True


def summarise(
    abstract: str | None, title: str = "", *, limit: int = _LIMIT, aim: int = _AIM, sentences: int = 2
) -> str:
    """Return one or two whole sentences of an abstract, in its own order.

    Args:
        abstract: readable abstract; None or blank gives "".
        title: the paper's title; a sentence that says what its short name is counts as saying what is proposed.
        limit: characters at most; a single sentence that is longer is cut at a word with an ellipsis.
        aim: characters that are enough: a second sentence is taken only if it brings the total near to this.
        sentences: at most so many; older papers are given one.

    Returns:
        Text in one line, never longer than ``limit``.
    """
    found = split_sentences(abstract or "")
    if not found:
        return ""
    name = _short_name(title)
    scores = [_proposal_score(sentence, place, len(found), name) for place, sentence in enumerate(found)]
    first = max(range(len(found)), key=lambda place: (scores[place], -place))
    if len(found[first]) > limit:
        shorter = [place for place in range(len(found)) if len(found[place]) <= limit and scores[place] >= 3]
        first = max(shorter, key=lambda place: (scores[place], -place)) if shorter else first
    picked = [first]
    if sentences > 1 and len(found[first]) < limit:
        second = _second(found, first, limit=limit, aim=aim)
        picked = sorted([first, second]) if second is not None else picked
    return cut_at_word(" ".join(found[place] for place in picked), limit)


def _short_name(title: str) -> str:
    """Return the name before the title's colon if it is one or two words, else ""."""
    name = short_title(title) if ":" in title else ""
    return name if name and len(name.split()) <= 2 else ""


def _proposal_score(sentence: str, place: int, total: int, name: str) -> float:
    """Return how well a sentence says what is proposed."""
    score = 0.0
    if _STRONG.search(sentence):
        score += 5
    elif _PROPOSES.search(sentence):
        score += 3
    if name and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", sentence, re.IGNORECASE):
        score += 1
        if re.search(
            rf"(?<!\w){re.escape(name)}(?:\s*\([^)]{0, 80}\))?,? (?:is|are|a|an|the|that|which)\b", sentence, re.I
        ):
            score += 3
    if _COINED.match(sentence):
        score += 1.5
    if _DETAIL.search(sentence):
        score -= 2.5
    if _AVAILABLE.search(sentence):
        score -= 6
    if _LEANS.search(sentence) and not re.match(r"this (?:paper|work|article|report|study)\b", sentence, re.IGNORECASE):
        score -= 1.5
    if sentence.endswith("?"):
        score -= 1
    if _NUMBERED.match(sentence):
        score -= 3
    if not 40 <= len(sentence) <= _LIMIT:
        score -= 1.5
    return score - place / max(total, 1)


def _result_score(sentence: str, place: int, total: int) -> float:
    """Return how well a sentence says what came of it."""
    score = 2.0 if _RESULT.search(sentence) else 0.0
    if _FIGURE.search(sentence):
        score += 2.5
    elif _DIGIT.search(sentence):
        score += 0.5
    if _EVIDENCE.search(sentence):
        score += 1
    if _AVAILABLE.search(sentence):
        score -= 6
    if _LEANS.search(sentence) or _DETAIL.search(sentence):
        score -= 1
    if _NUMBERED.match(sentence):
        score -= 3
    elif "(1)" in sentence and "(2)" not in sentence:
        score -= 1.5  # the list goes on in the sentences behind
    if len(sentence) < 40:
        score -= 2
    return score + place / max(total, 1)


def _second(found: tuple[str, ...], first: int, *, limit: int, aim: int) -> int | None:
    """Return the place of the sentence to stand beside the first one; None if none fits or says a result."""
    best: tuple[float, int] | None = None
    for place, sentence in enumerate(found):
        total = len(found[first]) + 1 + len(sentence)
        if place == first or total > limit or not (_RESULT.search(sentence) or _FIGURE.search(sentence)):
            continue
        score = _result_score(sentence, place, len(found)) - abs(total - aim) / 60
        if place < first:
            score -= 3
        if best is None or score > best[0]:
            best = (score, place)
    return best[1] if best is not None and best[0] > 0.5 else None
