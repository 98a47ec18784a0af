"""LaTeX to Unicode: readable, and never worse than the source."""

from __future__ import annotations

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.parse.latex import join_fragments, to_unicode


@pytest.mark.parametrize(
    ("source", "readable"),
    [
        (r"wins 96.00\% of runs", "wins 96.00% of runs"),
        (r"Reefs \& Ropes, note \#5, a\_b, \$5, \{x\}", "Reefs & Ropes, note #5, a_b, $5, {x}"),
        (r"77\times faster", "77× faster"),
        (r"{\sim}1,000 dives and \sim40 ropes", "~1,000 dives and ~40 ropes"),
        ("τ^2-bench, 10^{-3}, R^2, 90^\\circ", "τ²-bench, 10⁻³, R², 90°"),
        (r"Explore \rightleftharpoons Execute", "Explore ⇌ Execute"),
        (r"a \textbf{s}elf-\textbf{re}peating \emph{shoal}", "a self-repeating shoal"),
        (r"\texttt{Kelp} \textsc{Noisy} \uline{W}rite \textit{x} \operatorname{sort}", "Kelp Noisy Write x sort"),
        (r"{\bf Kelp} and {\em reef}", "Kelp and reef"),
        ("11{,}400 hours", "11,400 hours"),
        (
            r"Jos\'e, M\"uller, na\"{\i}ve, Ji\v{r}\'{\i}, Erd\H{o}s, Fran\c cois",
            "José, Müller, naïve, Jiří, Erdős, François",
        ),
        (r"Stra\ss e, wei{\ss}, \O rsted, \L{}ukasz, \AA ngstr\"om", "Straße, weiß, Ørsted, Łukasz, Ångström"),
        (r"$\alpha^{2} \le 10^{-3}$", "α² ≤ 10⁻³"),
        (r"$x_i$, $x_{max}$, H$_2$O", "xᵢ, xₘₐₓ, H₂O"),
        (r"$\mathcal{O}(n \log n)$ in $\mathbb{R}^d$", "O(n log n) in ℝᵈ"),
        (r"$\frac{1}{2}$, $\frac{a+b}{2}$, $\sqrt{n}$, $\hat{y}$", "1/2, (a+b)/2, √n, ŷ"),
        (r"$k$-means, \(a+b\), $$x$$, $\sim$40", "k-means, a+b, x, ~40"),
        (r"$n^{\log q}$ and $w_{B}$", "n^(log q) and w_B"),
        (r"$\left( x \right)$ and $\text{max}_i$", "( x ) and maxᵢ"),
        ("reasoning--action, 3.2--6.7, this -- that", "reasoning–action, 3.2–6.7, this – that"),
        ("recipe---slow---works", "recipe—slow—works"),
        ("a ''hodgepodge'' of ``reefs'' and `ropes'", "a “hodgepodge” of “reefs” and ‘ropes’"),
        ("up to 1.7,pp more", "up to 1.7 pp more"),
        (r"\url{https://example.org/a\_b--c}", "https://example.org/a_b--c"),
        (r"\href{https://example.org}{our page}", "our page"),
        (r"\alpha{}beta, {G}lobal, Kelp{NET}", "αbeta, Global, KelpNET"),
        (r"x\textsuperscript{2} and y\textsubscript{1}", "x² and y₁"),
        (r"$90^\circ$, $\frac {1}{2}$, Mar\'\ia is not Mar\'\i a", r"90°, 1/2, Mar\'\ia is not Marí a"),
        (r"hyphen\-ation and thin\,space", "hyphenation and thin space"),
    ],
)
def test_to_unicode_makes_latex_readable(source: str, readable: str) -> None:
    """What LaTeX means is what the reader sees."""
    assert readable == to_unicode(source)


@pytest.mark.parametrize(
    "text",
    [
        "100% of cases and ~13K dives, r=0.35, SFT->GRPO, I/O, R&D",
        "costs $5 and $6, or $5-$6, between $3 million and 4$ more, $5 or 6$ a day",
        "hip_kernel_lab and file_1 and x_{i}",
        "a set {a, b} and a placeholder {name}",
        r"C:\new\table and C:\to\in",
        r"the pattern \d+ or \w",
        r"\foo{bar}[baz]{qux} is ours",
        r"$e^{\foo}$ keeps its dollars",
        r"$\hat{ab}$ and $a{b$ and $\|x\?$",
        "$" + "{" * 30 + "x^2" + "}" * 30 + "$",
        "run it with --verbose",
        "https://example.org/a--b?x=``y''",
        "<!-- a comment -->, ----, i-- ",
        "it's the dog's and the dogs' bone",
        "'' and f''(x) = g''(x)",
        "2^n, x^y, ^_^",
        r"\textbf{open and \'",
        "$",
        "\\",
        "{",
        "}{",
        "^{",
        "",
    ],
)
def test_to_unicode_leaves_doubtful_text(text: str) -> None:
    """Money, identifiers, paths, options and macros not known stay as they stand."""
    assert text == to_unicode(text)


@given(st.text(alphabet=st.characters(exclude_characters="\\{}$^-`',", exclude_categories=["Cs"])))
@settings(max_examples=200)
def test_to_unicode_changes_no_plain_text(text: str) -> None:
    """A text without LaTeX comes back as it is."""
    assert text == to_unicode(text)


_PIECES = [
    "\\",
    "{",
    "}",
    "$",
    "^",
    "_",
    "q",
    "Q ",
    "1",
    "%",
    "'",
    '"',
    "`",
    "--",
    "~",
    ",",
    "(",
    ")",
    "\\alpha",
    "\\textbf",
    "\\frac{",
    "\\'",
]


@given(st.lists(st.sampled_from(_PIECES), max_size=60).map("".join))
@settings(max_examples=500)
def test_to_unicode_survives_any_mixture(text: str) -> None:
    """No sequence of macros, braces and dollars raises, and no letter is lost (q has no small form)."""
    assert text.count("q") == to_unicode(text).count("q")


@pytest.mark.parametrize(
    "hostile",
    [
        "{" * 200_000,
        "{" * 90_000 + "}" * 90_000,
        "\\textbf{" * 10_000 + "x" + "}" * 10_000,
        "\\frac" * 40_000,
        ("$" + "\\frac{" * 90 + "$ ") * 300,
        "$x " * 60_000,
        "$a_{" * 40_000,
        "^{" * 90_000,
        "\\'" * 90_000,
        "``" * 90_000,
        "\\alpha " * 700_000,
    ],
    ids=lambda text: text[:8],
)
def test_to_unicode_is_linear_on_hostile_text(hostile: str) -> None:
    """No text of 200,000 characters keeps the parser busy or breaks the stack."""
    start = time.process_time()
    to_unicode(hostile)
    assert time.process_time() - start < 5


@pytest.mark.parametrize(
    ("fragments", "joined"),
    [
        ([], ""),
        (["One paragraph."], "One paragraph."),
        (["wins", "96.00\\%", "of dives"], "wins 96.00\\% of dives"),
        (["a guided", "τ", "-Bench reef"], "a guided τ-Bench reef"),
        (["worlds (", "{\\sim}", "1,000 ropes)"], "worlds ({\\sim}1,000 ropes)"),
        (["(below", "-100", ") to as low as", "\\sim", "1%."], "(below -100) to as low as \\sim1%."),
        (["by 1.7", "\\times", "over"], "by 1.7\\times over"),
        (["by", "1.7", ",pp over"], "by 1.7,pp over"),
        (["cost", "48\\%", ", which"], "cost 48\\%, which"),
        (["reaches", "x", ". We then"], "reaches x. We then"),
        (["a non-", "τ", "rope"], "a non-τ rope"),
        (["uses", ".NET"], "uses .NET"),
    ],
)
def test_join_fragments_glues_what_belonged_together(fragments: list[str], joined: str) -> None:
    """Torn-out maths goes back into its sentence, with a blank where there was one."""
    assert joined == join_fragments(fragments)


@given(st.lists(st.text(min_size=1).filter(lambda text: bool(text.strip())), max_size=8))
@settings(max_examples=200)
def test_join_fragments_makes_up_blanks_only(fragments: list[str]) -> None:
    """No character of a fragment is lost or moved."""
    assert "".join("".join(fragments).split()) == "".join(join_fragments(fragments).split())
