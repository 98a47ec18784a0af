"""Extractive summaries: whole sentences of the abstract, in its order, within the limit."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.summary import split_sentences, summarise
from tests.shared import shared_path

CONTEXT = "Coral reefs crackle at night, and the crackle carries news about their health."
PROPOSAL = "We present ReefEar, a self-supervised encoder trained on hydrophone audio."
DETAIL = "To support long recordings, we further introduce a windowed pooling layer."
RESULT = "On three reefs, ReefEar improves detection of bleaching by 12.5% over spectral baselines."
CODE = "Code and recordings are available at https://reef.example/ear."
ABSTRACT = f"{CONTEXT} {PROPOSAL} {DETAIL} {RESULT} {CODE}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One ends. Two ends! Three ends? Four", ["One ends.", "Two ends!", "Three ends?", "Four"]),
        (
            "Many animals, e.g. Eels and i.e. Fish, hum. We listen.",
            ["Many animals, e.g. Eels and i.e. Fish, hum.", "We listen."],
        ),
        (
            "Lima et al. Found it first. See Fig. 3 and Eq. 2. Done.",
            ["Lima et al. Found it first.", "See Fig. 3 and Eq. 2.", "Done."],
        ),
        ("We follow Lima et al. We then improve it.", ["We follow Lima et al.", "We then improve it."]),
        ("It gains 3.5 points. It is v2.0 now.", ["It gains 3.5 points.", "It is v2.0 now."]),
        ("We tune Kelp3.5-9B on it. It works.", ["We tune Kelp3.5-9B on it.", "It works."]),
        ("Code is at https://reef.example/a.html. Data too.", ["Code is at https://reef.example/a.html.", "Data too."]),
        ("See https://reef.example/index.Html for it.", ["See https://reef.example/index.Html for it."]),
        ("We cut the makespan.Second, we cut cost.", ["We cut the makespan.", "Second, we cut cost."]),
        ("It runs on Node.js and ASP.Net today.", ["It runs on Node.js and ASP.Net today."]),
        (
            "As J. Smith and A. B. Lima say, eels hum. They do.",
            ["As J. Smith and A. B. Lima say, eels hum.", "They do."],
        ),
        ("There is no plan B. We go on.", ["There is no plan B.", "We go on."]),
        ("Sound vs. Light is old. Is it?", ["Sound vs. Light is old.", "Is it?"]),
        ("They ask \u201cwhy?\u201d Nobody knows.", ["They ask \u201cwhy?\u201d", "Nobody knows."]),
        ("They say (it hums.) Nobody knows.", ["They say (it hums.)", "Nobody knows."]),
        ("It is best (really!) of all. Yes.", ["It is best (really!) of all.", "Yes."]),
        ("We call it a reef. iNet hears it.", ["We call it a reef.", "iNet hears it."]),
        ("It goes on... Then it ends.", ["It goes on...", "Then it ends."]),
        (
            "\u6d77\u306f\u9752\u3044\u3002\u9b5a\u304c\u3044\u308b\u3002",
            ["\u6d77\u306f\u9752\u3044\u3002", "\u9b5a\u304c\u3044\u308b\u3002"],
        ),
        (
            "There were 3 eels, no. 4 was ill. No. It was well.",
            ["There were 3 eels, no. 4 was ill.", "No.", "It was well."],
        ),
        ("  \n ", []),
    ],
)
def test_split_sentences(text: str, expected: list[str]) -> None:
    """A full stop in an abbreviation, initial, number, name or address ends nothing; a missing blank is seen."""
    assert expected == list(split_sentences(text))


@given(st.text(st.sampled_from("aAbB.!?) (1,\n\u3002"), max_size=60))
@settings(max_examples=300, deadline=None)
def test_split_sentences_loses_nothing(text: str) -> None:
    """All sentences together are the text, but for white space."""
    assert "".join(text.split()) == "".join("".join(split_sentences(text)).split())


def test_summarise_tells_the_proposal_and_its_result() -> None:
    """First what is proposed, then what came of it; context, details and addresses are left out."""
    assert f"{PROPOSAL} {RESULT}" == summarise(ABSTRACT, "ReefEar: Listening to Coral")


def test_summarise_one_sentence() -> None:
    """Older papers are told in the sentence that says what is proposed."""
    assert PROPOSAL == summarise(ABSTRACT, sentences=1)


def test_summarise_keeps_the_order_of_the_text() -> None:
    """A result that stands in front stays in front."""
    assert f"{RESULT} {PROPOSAL}" == summarise(f"{RESULT} {PROPOSAL}")


def test_summarise_prefers_the_short_name_of_the_title() -> None:
    """The sentence that says what the title's name is tells more than one that examines something."""
    made = summarise(
        "We examine the hum of eels in deep water for many years. EelNet is a small detector for humming animals at sea.",
        "EelNet: Small Detectors",
        sentences=1,
    )
    assert "EelNet is a small detector for humming animals at sea." == made


def test_summarise_takes_a_coined_name_where_nobody_proposes() -> None:
    """Without any "we propose" the sentence whose subject is a coined name says what the paper is about."""
    made = summarise(
        "Eels hum in deep water during most of the winter nights. HumNet locates each of them by two cheap microphones.",
        sentences=1,
    )
    assert "HumNet locates each of them by two cheap microphones." == made


def test_summarise_prefers_a_proposal_that_fits() -> None:
    """A proposal that would have to be cut gives way to one that need not be."""
    long = f"We propose a listening method {'with one more part ' * 20}at last."
    assert DETAIL not in summarise(f"{long} {PROPOSAL}", sentences=1)
    assert PROPOSAL == summarise(f"{long} {PROPOSAL}", sentences=1)


def test_summarise_cuts_a_single_long_sentence() -> None:
    """One sentence over the limit is cut at a word with an ellipsis."""
    made = summarise(f"We propose a method {'with parts ' * 40}at last.")
    assert 260 < len(made) <= 280
    assert made.endswith(("with\u2026", "parts\u2026"))


def test_summarise_adds_no_sentence_that_says_no_result() -> None:
    """A second sentence has to say what came of it; context is no filler."""
    assert PROPOSAL == summarise(f"{CONTEXT} {PROPOSAL}")


@pytest.mark.parametrize(
    "extra",
    [
        "(2) Reefs improve by 30% over three winters of listening.",
        "Our results show that: (1) reefs improve by 30% a year.",
    ],
)
def test_summarise_leaves_pieces_of_lists(extra: str) -> None:
    """An item of a numbered list makes no sense alone, so the plain result is taken."""
    assert f"{PROPOSAL} {RESULT}" == summarise(f"{PROPOSAL} {RESULT} {extra}")


@pytest.mark.parametrize("abstract", [None, "", " \n "])
def test_summarise_nothing(abstract: str | None) -> None:
    """No abstract gives no summary, never an invented one."""
    assert "" == summarise(abstract, "ReefEar: Listening")


@pytest.mark.parametrize(
    "abstract",
    [
        "(1) We propose eels. (2) Can eels hum? They do, and it is a very fine hum of 30% in all of the winter.",
        "Fine. Yes. No! Maybe?",
        "We propose it",
    ],
)
def test_summarise_odd_abstracts(abstract: str) -> None:
    """Whatever an abstract is like, sentences of its own come out."""
    made = summarise(abstract)
    assert made
    assert made.split(". ")[0].rstrip(".") in abstract


SENTENCES = st.lists(
    st.sampled_from([CONTEXT, PROPOSAL, DETAIL, RESULT, CODE, "Eels hum.", "But why?", "w " * 200 + "end."]), max_size=8
)


@given(SENTENCES, st.integers(1, 3))
@settings(max_examples=200, deadline=None)
def test_summarise_is_made_of_whole_sentences(parts: list[str], count: int) -> None:
    """Each sentence of a summary is one of the abstract, in order, within the limit; only a single one may be cut."""
    text = " ".join(parts)
    made = summarise(text, sentences=count)
    assert len(made) <= 280
    own, told = list(split_sentences(text)), list(split_sentences(made))
    assert len(told) <= 2
    if not made.endswith("\u2026"):
        places = [own.index(sentence) for sentence in told]
        assert all(sentence in own for sentence in told)
        assert len(places) < 2 or told[1] in own[own.index(told[0]) + 1 :] or told[0] in own[: places[1]]
    else:
        assert any(sentence.startswith(made[:-1].rstrip()) for sentence in own)


def test_summarise_takes_no_second_sentence_that_does_not_fit() -> None:
    """Two sentences over the limit are one: nothing is cut that can stay whole."""
    long = f"We present ReefEar, an encoder {'of hums and clicks ' * 10}at sea."
    assert len(long) + 1 + len(RESULT) > 280
    assert long == summarise(f"{long} {RESULT}")


@pytest.mark.parametrize(
    "other",
    [
        "To reduce cost, we further improve it by 90% over every baseline.",
        "It improves by 90% at sea.",
        "All of the 40 models that improve by 90% are available at https://reef.example/ear now.",
        "In the end there is also an improvement for 3 eels.",
    ],
)
def test_summarise_prefers_the_main_result(other: str) -> None:
    """Details, stumps, addresses and results without a measure give way to the measured one."""
    assert f"{PROPOSAL} {RESULT}" == summarise(f"{PROPOSAL} {RESULT} {other}")


def test_summarise_does_not_take_an_address_for_a_proposal() -> None:
    """Where only the code is presented, the first plain sentence stands."""
    assert CONTEXT == summarise(f"{CONTEXT} {CODE}", sentences=1)


def test_summaries_of_real_pages() -> None:
    """Every abstract of the real pages gives one or two of its own sentences within the limit."""
    for path in sorted(shared_path("truth").glob("*.json")):
        for paper in json.loads(path.read_text())["papers"]:
            made = summarise(paper["abstract_unicode"], paper["title_unicode"])
            assert 60 < len(made) <= 280
            own = " ".join(paper["abstract_unicode"].split())
            assert all(sentence.removesuffix("\u2026") in own for sentence in split_sentences(made))
