from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from digestd.parse.markup import plain_text


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("Plain Words", "Plain Words"),
        ("Sound <i>in situ</i> &amp; noise", "Sound in situ & noise"),
        ("CO<sub>2</sub> and Ca<sup>2+</sup>", "CO₂ and Ca²⁺"),
        ("x<sub>max</sub>", "xmax"),
        ("<jats:title>Abstract</jats:title><jats:p>One.</jats:p><jats:p>Two.</jats:p>", "One. Two."),
        ("<p>One.<br/>Two</p>", "One. Two"),
        ('<span class="a">red</span> herring', "red herring"),
        ("<mml:math><mml:mi>x</mml:mi></mml:math> grows", "x grows"),
        ("&lt;i&gt;twice&lt;/i&gt; &amp;amp; more", "twice & more"),
        # no mark-up at all
        ("where x < y and y > z", "where x < y and y > z"),
        ("R&D at AT&T, &c and &notit", "R&D at AT&T, &c and &notit"),
        ("the <think> token", "the <think> token"),
        ("a<b>c", "ac"),
        ("if p <a and q> b", "if p <a and q> b"),
    ],
)
def test_plain_text_takes_out_known_tags_only(markup: str, text: str) -> None:
    """Tags known by name go, entities are read, and signs for less and greater stay."""
    assert text == plain_text(markup)


@given(st.text(alphabet='<>/&;aipsubjt:= "', max_size=40))
def test_plain_text_never_gains(markup: str) -> None:
    """The text is one line and never longer than the mark-up."""
    text = plain_text(markup)
    assert text == " ".join(text.split())
    assert len(text) <= len(markup)


@pytest.mark.parametrize("token", ["<", "<p ", "<a =", "&", "&amp;", "<sub>", "<jats:"])
def test_plain_text_of_a_long_line_of_openings_ends(token: str) -> None:
    """A line of a hundred thousand openings is read in a moment."""
    assert isinstance(plain_text(token * 100_000), str)
