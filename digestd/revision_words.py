"""What changed on a paper that was told before, in one line. Floor 1.

Entry points: ``merge_revisions``, ``revision_line``.
"""

from __future__ import annotations

from collections.abc import Sequence

from digestd.model.paper import Revision
from digestd.phrases import cut_at_word
from digestd.summary import split_sentences

_LINE_LIMIT = 200


def merge_revisions(revisions: Sequence[Revision]) -> Revision | None:
    """Return the revisions of one paper as one: each field's first text before and its last text after.

    Changes that are only spelling are left out, and so is a field that went back to what it was.

    Args:
        revisions: of one paper, in ledger order.

    Returns:
        None where nothing remains to be told.
    """
    first: dict[str, str] = {}
    last: dict[str, str] = {}
    for revision in revisions:
        if not revision.told:
            continue
        for name, before, after in revision.changes:
            first.setdefault(name, before)
            last[name] = after
    changes = tuple(
        (name, first[name], last[name]) for name in first if name == "withdrawn" or first[name] != last[name]
    )
    return Revision(revisions[0].key, changes) if changes else None


def is_withdrawal(revision: Revision) -> bool:
    """Return whether the paper was withdrawn."""
    return any(name == "withdrawn" for name, _, _ in revision.changes)


def revision_line(revision: Revision) -> str:
    """Return what changed: "New title, before: “…”.", "The abstract now says: “…”", the reason of a withdrawal."""
    changed = {name: (before, after) for name, before, after in revision.changes}
    if "withdrawn" in changed:
        reason = split_sentences(changed["withdrawn"][1])[:1]
        return cut_at_word(f"Withdrawn: “{reason[0]}”", _LINE_LIMIT) if reason else "Withdrawn."
    parts: list[str] = []
    if "title" in changed:
        parts.append(f"New title, before: “{changed['title'][0]}”.")
    if "abstract" in changed:
        parts.append(_abstract_line(*changed["abstract"]))
    return " ".join(parts) or "Changed."


def _abstract_line(before: str, after: str) -> str:
    """Return the first sentence that is new in an abstract, or that sentences went."""
    if not before:
        return "An abstract was added."
    old = {sentence.casefold() for sentence in split_sentences(before)}
    added = [sentence for sentence in split_sentences(after) if sentence.casefold() not in old]
    if not added:
        return "The abstract was shortened."
    return f"The abstract now says: “{cut_at_word(added[0], _LINE_LIMIT)}”"
