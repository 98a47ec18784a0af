"""Which links a document may hold. Floor 1."""

from __future__ import annotations

from urllib.parse import urlsplit

from digestd.render.mime import is_placeholder

_SCHEMES = frozenset({"http", "https", "cid", "mailto"})


def safe_url(url: object) -> str:
    """Return a link as it is, or "" if following it could do more than show a page.

    Args:
        url: an absolute http, https, cid or mailto URL, a placeholder of one, or None for no link.
    """
    text = "" if url is None else str(url).strip()
    if is_placeholder(text):
        return text
    try:
        scheme = urlsplit(text).scheme
    except ValueError:  # "http://[": not a URL at all
        return ""
    clean = text.isprintable() and " " not in text
    return text if clean and scheme in _SCHEMES else ""
