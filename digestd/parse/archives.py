"""The shape of arXiv categories. Floor 1, pure.

Entry point: :func:`is_category`.
"""

from __future__ import annotations

import re

#: archives that are categories by themselves, without a dot
#: Source: arXiv category taxonomy
_UNDIVIDED = frozenset(
    "gr-qc hep-ex hep-lat hep-ph hep-th math-ph nucl-ex nucl-th quant-ph".split()  # noqa: SIM905  # reads as a list
)
_DIVIDED = frozenset(
    "astro-ph cond-mat cs econ eess math nlin physics q-bio q-fin stat".split()  # noqa: SIM905  # reads as a list
)
_CLASS = re.compile(r"[A-Z]{2}|[a-z]{2,5}(?:-[a-z]{1,4}){0,2}")


def is_category(text: str) -> bool:
    """Return whether this is an arXiv category of today ("cs.AI", "quant-ph", "cond-mat.mtrl-sci")."""
    archive, dot, kind = text.partition(".")
    if not dot:
        return archive in _UNDIVIDED or archive in ("astro-ph", "cond-mat")
    return archive in _DIVIDED and _CLASS.fullmatch(kind) is not None
