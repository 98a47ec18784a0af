"""Links: made absolute, made comparable, and read for the ids that stand in them. Floor 1, pure.

Entry points: :func:`absolute_link`, :func:`normalise_url`, :func:`ids_of_link`, :func:`arxiv_number`, :func:`doi_of`.
A link is text from a stranger: only http and https pass, and nothing here raises.
"""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import SplitResult, parse_qsl, quote, unquote, urljoin, urlsplit

from digestd.model.paper import PaperId

#: longer links are no paper's address, and cost time to take apart
MAX_URL = 4096

_WEB = ("http", "https")
#: parameters that say where a reader came from, never which page it is; the last line is publishers' marks of feeds
_TRACKING = frozenset(
    (
        *("fbclid", "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "msclkid", "twclid", "yclid", "igshid", "mkt_tok"),
        *("mc_cid", "mc_eid", "_hsenc", "_hsmi", "_ga", "ref", "ref_src", "ref_url", "referrer", "referer", "cmpid"),
        *("rss", "af", "dgcid", "wt.mc_id", "wt_mc", "ocid", "ncid"),
    )
)
_TRACKING_PREFIXES = ("utm_", "pk_", "mtm_", "hsa_")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
#: RFC 3986 2.2 and 2.3, and "%" of what is encoded already
_PATH_SAFE = "/:@!$&'()*+,;=~-._%"
_QUERY_SAFE = "/:@!$'()*,;~-._?%"
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
_BARE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")
_UNRESERVED = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")

_NEW_ARXIV = r"\d{2}(?:0[1-9]|1[0-2])\.\d{4,5}"
_OLD_ARXIV = r"[a-z]{2,8}(?:-[a-z]{2,4})?(?:\.[A-Za-z]{2})?/\d{2}(?:0[1-9]|1[0-2])\d{3}"
_ARXIV = re.compile(rf"(?P<number>{_NEW_ARXIV}|{_OLD_ARXIV})(?:v(?P<version>[1-9]\d{{0,2}}))?(?![\d])", re.ASCII)
_ARXIV_PATH = re.compile(r"^/(?:abs|pdf|html|format|ps|src|e-print|tb|overview|papers)/(.+)$")
_ARXIV_HOSTS = ("arxiv.org", "alphaxiv.org", "ar5iv.org", "huggingface.co", "hf.co")
_DOI = re.compile(r"10\.\d{4,9}(?:\.\d+)*/[^\s\"<>\\^`{|}?#]{1,300}", re.ASCII)
_DOI_END = ".,;:)]}'"
_PREPRINT_VERSION = re.compile(r"v\d{1,3}(?:\.[a-z][a-z0-9.+-]*)?(?:/.*)?$")
_PREPRINT_HOSTS = ("biorxiv.org", "medrxiv.org")
_LANDING_TAIL = re.compile(r"(?:/(?:full|abstract|pdf|html|meta|fulltext)|\.(?:full|abstract))?(?:[./]pdf)?$")
_NATURE = re.compile(r"^/articles/(s\d{5}-\d{3}-\d{4,6}-[0-9a-z])(?:\.pdf)?/?$")
_S2_HASH = re.compile(r"(?:^|/)([0-9a-f]{40})(?:/|$)")
_OPENALEX = re.compile(r"^/(?:works/)?(w\d+)/?$", re.IGNORECASE)


def _split(url: str) -> SplitResult | None:
    """Take a web link apart; None if it is none, or can't be."""
    if len(url) > MAX_URL:
        return None
    try:
        parts = urlsplit(url.strip())
        if parts.scheme.lower() not in _WEB or not parts.hostname:
            return None
        _ = parts.port  # raises where the port is no number
    except ValueError:
        return None
    return parts


def absolute_link(link: str, *bases: str | None) -> str | None:
    """Return the link as an absolute http or https address.

    Args:
        link: as the source has it, white space around it allowed.
        *bases: addresses to resolve a relative link against, innermost first; each may itself be relative to the next
            (an ``xml:base`` within another), None is passed over.

    Returns:
        The address with everything encoded that does not belong in one; None where the link is empty, relative to
        nothing, not a web address (``javascript:``, ``data:``, ``mailto:``), or hides control or direction marks.

    Source: RFC 3986 5.1 (base URIs), RFC 4287 2 (xml:base).
    """
    found = link.strip()
    if not found or len(found) > MAX_URL:
        return None
    for base in bases:
        if _split(found) is not None:
            break
        if base and len(base) <= MAX_URL:
            try:
                found = urljoin(base.strip(), found)
            except ValueError:
                return None
    # urlsplit takes line breaks and tabs out by itself, as browsers do; anything else that can't be seen is a trick
    found = re.sub(r"[\t\r\n]", "", found)
    if _CONTROL.search(found) or "\\" in found:
        return None
    parts = _split(found)
    if parts is None:
        return None
    path = quote(_BARE_PERCENT.sub("%25", parts.path), safe=_PATH_SAFE)
    query = quote(_BARE_PERCENT.sub("%25", parts.query), safe=_QUERY_SAFE + "&=+[]")
    fragment = quote(_BARE_PERCENT.sub("%25", parts.fragment), safe=_QUERY_SAFE + "&=+")
    host = quote(parts.netloc, safe=":@[]-._~%") if parts.netloc.isascii() else parts.netloc
    if re.search(r"[\s\"'<>%]", host):
        return None
    return SplitResult(parts.scheme.lower(), host, path, query, fragment).geturl()


def normalise_url(url: str) -> str | None:
    """Return the link as text that is equal for links that lead to the same page.

    Scheme, ``www.``, default port, user, trailing slash, fragment and tracking parameters are left out; the host is in
    lower case and its A-label form; percent-encoding is uniform; parameters are in the order of their names. A
    fragment that is a route (``#!/paper/1``, ``#/paper/1``) stays, for it alone names the page.

    Returns:
        ``papers.example/reef/1?x=1``, without a scheme; None if it is not a web address.

    Source: RFC 3986 6.2 (which differences mean nothing); DESIGN "Identity".
    """
    parts = _split(url)
    if parts is None:
        return None
    host = _normalise_host(parts.hostname or "")
    if not host:
        return None
    port = parts.port
    where = host if port in (None, 80, 443) else f"{host}:{port}"
    path = _normalise_escapes(_dotless(parts.path), _PATH_SAFE).rstrip("/")
    query = _normalise_query(parts.query)
    route = parts.fragment if parts.fragment.startswith(("!", "/")) else ""
    return where + path + (f"?{query}" if query else "") + (f"#{quote(route, safe=_QUERY_SAFE)}" if route else "")


def _normalise_host(host: str) -> str:
    """Return the host in lower case, as A-labels, without a final dot or a leading ``www.``."""
    lowered = host.strip().rstrip(".").lower()
    if len(lowered) > 253 or re.search(r"[\s\"<>\\^`{|}]", lowered) or _CONTROL.search(lowered):
        return ""
    try:
        ascii_host = lowered if lowered.isascii() else lowered.encode("idna").decode("ascii")
    except UnicodeError:
        ascii_host = lowered
    bare = ascii_host.removeprefix("www.")
    found = bare if "." in bare else ascii_host
    return f"[{found}]" if ":" in found else found


def _normalise_escapes(text: str, safe: str) -> str:
    """Return the text with escapes in upper case where they are needed, and none where they aren't."""

    def plain(match: re.Match[str]) -> str:
        character = chr(int(match[1], 16))
        return character if character in _UNRESERVED else match[0].upper()

    encoded = quote(_BARE_PERCENT.sub("%25", text), safe=safe, errors="replace")
    return _ESCAPE.sub(plain, encoded)


def _dotless(path: str) -> str:
    """Return the path without ``.`` and ``..`` segments (RFC 3986 5.2.4)."""
    if "/." not in path:
        return path
    kept: list[str] = []
    for segment in path.split("/"):
        if segment == "..":
            if len(kept) > 1:
                kept.pop()
        elif segment != ".":
            kept.append(segment)
    return "/".join(kept)


def _normalise_query(query: str) -> str:
    """Return the parameters that name the page, by name; those of one name in their own order."""
    try:
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=200, errors="replace")
    except ValueError:
        return _normalise_escapes(query, _QUERY_SAFE + "&=+")
    kept = [(name, value) for name, value in pairs if not _is_tracking(name.lower())]
    kept.sort(key=lambda pair: pair[0])
    return "&".join(_encode_pair(name, value) for name, value in kept)


def _is_tracking(name: str) -> bool:
    return name in _TRACKING or name.startswith(_TRACKING_PREFIXES)


def _encode_pair(name: str, value: str) -> str:
    safe = "/:@!$'()*,;~-._?"
    encoded = quote(name, safe=safe, errors="replace")
    return f"{encoded}={quote(value, safe=safe, errors='replace')}" if value else encoded


def arxiv_number(text: str) -> tuple[str | None, int | None]:
    """Return the arXiv number without its version, and the version.

    Args:
        text: an id in any dress (``oai:arXiv.org:2203.01250v3``, ``arXiv:hep-th/9901001``), or the tail of a link.

    Returns:
        ``("2203.01250", 3)``; the number is text, for its zeros count, and of an old one the subject class is left
        out (``math.GT/0309136`` is ``math/0309136``); (None, None) if there is none at the start or after a colon.

    Source: https://info.arxiv.org/help/arxiv_identifier.html
    """
    tail = text.strip().rpartition(":")[2]
    match = _ARXIV.match(tail)
    if match is None:
        return None, None
    number = match["number"]
    version = int(match["version"]) if match["version"] else None
    if "/" in number:
        archive, _, digits = number.partition("/")
        return f"{archive.partition('.')[0]}/{digits}", version
    # until the end of 2014 four digits followed the point, since then five; anything else was cut or is a price
    if len(number.partition(".")[2]) != (5 if "1501" <= number[:4] < "9100" else 4):
        return None, None
    return number, version


def doi_of(text: str) -> str | None:
    """Return the DOI in the text, lower case; None if there is none.

    Args:
        text: ``doi:10.1000/XYZ``, ``https://doi.org/10.1000%2Fxyz``, a bare DOI, or a sentence with one.

    Source: DOI handbook 2.2 (a name), 2.4 (case means nothing).
    """
    match = _DOI.search(unquote(text[:MAX_URL]))
    if match is None:
        return None
    found = match[0].rstrip(_DOI_END) if match[0].count("(") <= match[0].count(")") - 1 else match[0].rstrip(".,;:'")
    return found.lower() if found.partition("/")[2] else None


@lru_cache(maxsize=16384)
def ids_of_link(url: str) -> tuple[PaperId, ...]:
    """Return the ids that a link names, none twice; () if it names none.

    arXiv numbers come without version, DOIs in lower case and, of preprint servers, without version; a DOI that arXiv
    gives out (``10.48550/arxiv.…``) names the arXiv number as well.
    """
    parts = _split(url)
    if parts is None:
        return ()
    host = _normalise_host(parts.hostname or "")
    path = unquote(parts.path)
    found: list[PaperId] = []
    if _is_host(host, *_ARXIV_HOSTS):
        match = _ARXIV_PATH.match(path)
        number = arxiv_number(match[1])[0] if match else None
        if number:
            found.append(PaperId("arxiv", number))
        return tuple(found)
    if _is_host(host, "openreview.net"):
        found.extend(PaperId("openreview", value) for value in _parameter(parts.query, "id")[:1])
    elif _is_host(host, "semanticscholar.org"):
        found.extend(PaperId("s2", value) for value in _S2_HASH.findall(path.lower())[:1])
    elif _is_host(host, "openalex.org"):
        work = _OPENALEX.match(path)
        found.extend([PaperId("openalex", work[1].upper())] if work else [])
    doi = _doi_of_parts(host, path, parts.query)
    if doi:
        found.extend(ids_of_doi(doi))
    return tuple(dict.fromkeys(found))


def ids_of_doi(doi: str) -> tuple[PaperId, ...]:
    """Return the id of a DOI, and of the arXiv number in it where arXiv gave it out."""
    lowered = doi.lower()
    found = [PaperId("doi", lowered)]
    if lowered.startswith("10.48550/arxiv."):
        number, version = arxiv_number(lowered.removeprefix("10.48550/arxiv."))
        if number and version is None:
            found.append(PaperId("arxiv", number))
    return tuple(found)


def _is_host(host: str, *names: str) -> bool:
    return any(host == name or host.endswith(f".{name}") for name in names)


def _parameter(query: str, name: str) -> list[str]:
    try:
        pairs = parse_qsl(query, max_num_fields=200, errors="replace")
    except ValueError:
        return []
    return [value.strip() for key, value in pairs if key == name and re.fullmatch(r"[\w./()-]{1,200}", value.strip())]


def _doi_of_parts(host: str, path: str, query: str) -> str | None:
    """Return the DOI that a publisher's link carries, without the landing page's own tail (``/full``, ``.pdf``)."""
    if _is_host(host, "nature.com"):
        match = _NATURE.match(path)
        return f"10.1038/{match[1]}" if match else None
    if _is_host(host, "plos.org"):
        return next((doi for value in _parameter(query, "id") if (doi := doi_of(value))), None)
    doi = doi_of(path)
    if doi is None or _is_host(host, "doi.org"):
        return doi
    if _is_host(host, *_PREPRINT_HOSTS):
        doi = _PREPRINT_VERSION.sub("", doi)
    return _LANDING_TAIL.sub("", doi) or None
