"""Atom by its grammar. Entry point: :func:`check_atom`."""

from __future__ import annotations

from collections import Counter
from functools import cache
from pathlib import Path

from lxml import etree

ATOM = "{http://www.w3.org/2005/Atom}"


@cache
def atom_grammar() -> etree.RelaxNG:
    """Return the grammar of atom.rng."""
    return etree.RelaxNG(etree.parse(Path(__file__).with_name("atom.rng")))


def check_atom(body: bytes) -> None:
    """Hold an Atom document against its grammar and what RFC 4287 says beyond it; AssertionError names a fault."""
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False)
    feed = etree.fromstring(body, parser)
    grammar = atom_grammar()
    assert grammar.validate(feed), str(grammar.error_log.last_error)
    entries = feed.findall(f"{ATOM}entry")
    # 4.1.1: without an author of its own, a feed needs one in each entry
    assert feed.find(f"{ATOM}author") is not None or all(one.find(f"{ATOM}author") is not None for one in entries)
    # 4.1.1, 4.1.2: one alternate a type and language
    for one in (feed, *entries):
        alternates = Counter(
            (link.get("type"), link.get("hreflang"))
            for link in one.findall(f"{ATOM}link")
            if link.get("rel", "alternate") == "alternate"
        )
        assert not alternates or max(alternates.values()) == 1, alternates
    # 4.1.2: an entry without words of its own has an address where they are
    for one in entries:
        links = [link for link in one.findall(f"{ATOM}link") if link.get("rel", "alternate") == "alternate"]
        assert links or one.find(f"{ATOM}content") is not None
    # 4.1.1: of two entries with one id the instants differ
    pairs = [(one.findtext(f"{ATOM}id"), one.findtext(f"{ATOM}updated")) for one in entries]
    assert len(pairs) == len(set(pairs))
