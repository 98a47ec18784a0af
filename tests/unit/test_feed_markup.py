"""Markup in feeds becomes lines of text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.parse.feed_markup import markup_links, text_lines
from digestd.parse.feed_text import DressedText, undress_lines


@pytest.mark.parametrize(
    ("markup", "lines"),
    [
        ("<h3>Abstract</h3><p>CO<sub>2</sub> rises.</p>", ["Abstract", "CO₂ rises."]),
        ("10<sup>-3</sup> m, x<sup>th</sup>", ["10⁻³ m, xth"]),
        ("p < 0.05, a<b and c>d", ["p < 0.05, a<b and c>d"]),
        ("a &lt;b&gt; c", ["a <b> c"]),
        ("&amp;lt;", ["&lt;"]),
        ("AT&TIMES &notanentity;", ["AT&TIMES &notanentity;"]),
        ("one<br/>two<BR>three", ["one", "two", "three"]),
        ("<script>alert(1)</script>kelp<style>p{}</style>", ["kelp"]),
        ("kelp<script>never closed", ["kelp"]),
        ("kelp<!-- hidden -->weed", ["kelpweed"]),
        ("<jats:p>Kelp <jats:italic>sways</jats:italic>.</jats:p>", ["Kelp sways."]),
        ('<mml:math><mml:mi>x</mml:mi></mml:math> is <a href="https://kelp.example/">x</a>', ["x is x"]),
        ("  two\n lines ", ["two lines"]),
        ("", []),
    ],
)
def test_text_lines(markup: str, lines: list[str]) -> None:
    """Tags known by name go, blocks are lines, entities are read once, the rest means itself."""
    assert lines == text_lines(markup)


def test_text_lines_of_declared_text() -> None:
    """Declared text keeps its entities, unless tags show that it is markup."""
    assert ["a &amp; b"] == text_lines("a &amp; b", is_markup=False)
    assert ["a & b"] == text_lines("<i>a</i> &amp; b", is_markup=False)


def test_markup_links() -> None:
    """Addresses of links and pictures, entities read, in order, none twice."""
    markup = (
        """<a href="/a?x=1&amp;y=2">a</a><img src='b.png'><a href=c>c</a><a href="/a?x=1&amp;y=2">a</a><a href="">"""
    )
    assert ["/a?x=1&y=2", "b.png", "c"] == markup_links(markup)


@given(st.text(alphabet="<>/ab p&;!-'\"=sub\n", max_size=80))
@settings(max_examples=300, deadline=None)
def test_text_lines_of_anything(markup: str) -> None:
    """Any text gives folded lines, none empty."""
    for line in text_lines(markup):
        assert line
        assert line == " ".join(line.split())
    markup_links(markup)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["Abstract", "Kelp sways."], DressedText("Kelp sways.")),
        (["Abstract: Kelp sways."], DressedText("Kelp sways.")),
        (["by Ida Moss, Tor Vik", "Kelp sways."], DressedText("Kelp sways.", "Ida Moss, Tor Vik")),
        (["by chance kelp sways."], DressedText("by chance kelp sways.")),
        (["Kelps, Volume 4, Issue 3, Page 1-24, May 2026."], DressedText("")),
        (["Kelps, Published online: 20 October 2026; doi:10.5555/x", "Kelp sways."], DressedText("Kelp sways.")),
        (["Publication date: May 2026", "Source: Kelps", "Author(s): Ida Moss"], DressedText("", "Ida Moss")),
        (
            ["Kelps, Vol. 9, Pages 12: Blades", "Kelps doi: 10.5555/k9", "Authors: Ida Moss", "Kelp."],
            DressedText("Kelp.", "Ida Moss"),
        ),
        ([], DressedText("")),
    ],
)
def test_undress_lines(lines: list[str], expected: DressedText) -> None:
    """Headings, citations and by-lines before an abstract are no part of it."""
    assert expected == undress_lines(lines)
