"""Links: made absolute, made comparable, read for ids."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from digestd.model.paper import PaperId
from digestd.parse.links import absolute_link, arxiv_number, doi_of, ids_of_doi, ids_of_link, normalise_url


@pytest.mark.parametrize(
    "url",
    [
        "http://papers.example/reef/1?x=1",
        "https://papers.example/reef/1?x=1",
        "HTTPS://WWW.Papers.Example:443/reef/1/?utm_source=rss&x=1&utm_medium=feed",
        "http://papers.example.:80/reef/./a/../1?x=1&fbclid=abc&ref=home#top",
        "https://reader@papers.example/r%65ef/1?x=1&gclid=&rss=1",
        "  https://papers.example/reef/1/?x=1\n",
    ],
)
def test_normalise_url_of_one_page(url: str) -> None:
    """Links to one page that differ in dress only are equal."""
    assert normalise_url(url) == "papers.example/reef/1?x=1"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://papers.example", "papers.example"),
        ("https://papers.example/", "papers.example"),
        ("https://papers.example:8080/a", "papers.example:8080/a"),
        ("https://papers.example/a?b=2&a=1&b=1", "papers.example/a?a=1&b=2&b=1"),
        ("https://papers.example/a?flag", "papers.example/a?flag"),
        ("https://papers.example/a%2fb", "papers.example/a%2Fb"),
        ("https://papers.example/ŁÓdź", "papers.example/%C5%81%C3%93d%C5%BA"),
        ("https://papers.example/%c5%81%c3%93d%c5%ba", "papers.example/%C5%81%C3%93d%C5%BA"),
        ("https://papers.example/50%", "papers.example/50%25"),
        ("https://bücher.example/x", "xn--bcher-kva.example/x"),
        ("https://XN--BCHER-KVA.example/x", "xn--bcher-kva.example/x"),
        ("https://www.example/x", "www.example/x"),
        ("https://papers.example/app#!/reef/1", "papers.example/app#!/reef/1"),
        ("https://papers.example/a//b", "papers.example/a//b"),
        ("https://[2001:db8::1]/x", "[2001:db8::1]/x"),
        pytest.param(
            "https://a.example/?" + "&".join("x=1" for _ in range(300)),
            "a.example?" + "&".join(["x=1"] * 300),
            id="long",
        ),
    ],
)
def test_normalise_url_of_other_shapes(url: str, expected: str) -> None:
    """What names the page stays, what does not goes."""
    assert expected == normalise_url(url)


@pytest.mark.parametrize(
    "url",
    [
        *("", "reef/1", "/reef/1", "javascript:alert(1)", "mailto:a@b.example", "data:text/html,x", "https://"),
        *("https:///x", "http://[::1", "http://a:port/", "http://a b.example/"),
        pytest.param("https://papers.example/" + "a" * 5000, id="too long"),
    ],
)
def test_normalise_url_of_no_web_address(url: str) -> None:
    """What is no web address is None, never an exception."""
    assert normalise_url(url) is None


@given(st.text(max_size=60))
@settings(max_examples=300, deadline=None)
def test_normalise_url_is_stable(text: str) -> None:
    """Normalising twice gives what once gives, and nothing raises."""
    once = normalise_url("https://papers.example/" + text)
    assert once is not None or len(text) > 4000 or "\\" in text or not text.isprintable() or "[" in text or "]" in text
    if once is not None:
        assert once == normalise_url("https://" + once)


@given(st.text(max_size=80))
@settings(max_examples=300, deadline=None)
def test_links_never_raise(text: str) -> None:
    """Any text at all is answered, and an answer is a web address."""
    for link in (text, "https://" + text, "//" + text):
        found = absolute_link(link, text, "https://papers.example/feed")
        assert found is None or found.startswith(("http://", "https://"))
        normalise_url(link)
        ids_of_link(link)
    doi_of(text)
    arxiv_number(text)


@pytest.mark.parametrize(
    ("link", "bases", "expected"),
    [
        ("https://papers.example/a b", (), "https://papers.example/a%20b"),
        ("reports/12", ("https://harbour.example/feeds/",), "https://harbour.example/feeds/reports/12"),
        ("/reports/12", ("https://harbour.example/feeds/r.rss",), "https://harbour.example/reports/12"),
        ("//cdn.harbour.example/x", ("https://harbour.example/",), "https://cdn.harbour.example/x"),
        ("tides", ("2026/10/", "/notes/", "https://lagoon.example/feed"), "https://lagoon.example/notes/2026/10/tides"),
        ("x", (None, "https://lagoon.example/a/"), "https://lagoon.example/a/x"),
        ("\n https://papers.example/x \n", (), "https://papers.example/x"),
        ("https://papers.example/?q=50%&x=a%20b", (), "https://papers.example/?q=50%25&x=a%20b"),
        ('https://papers.example/"><b>', (), "https://papers.example/%22%3E%3Cb%3E"),
        ("x", (), None),
        ("", ("https://papers.example/",), None),
        ("javascript:alert(1)", ("https://papers.example/",), None),
        (" java\nscript:alert(1)", ("https://papers.example/",), None),
        ("data:text/html,x", ("https://papers.example/",), None),
        ("file:///etc/passwd", ("https://papers.example/",), None),
        ("https://papers.example/\u202egpj", (), None),
        ("https://papers.example\\@evil.example/", (), None),
        ('https://papers.example"onclick=x/', (), None),
    ],
)
def test_absolute_link(link: str, bases: tuple[str | None, ...], expected: str | None) -> None:
    """A link is resolved against the innermost base; only web addresses pass."""
    assert expected == absolute_link(link, *bases)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("oai:arXiv.org:2203.01250v3", ("2203.01250", 3)),
        ("arXiv:0808.1234v2", ("0808.1234", 2)),
        ("hep-th/9901001v1", ("hep-th/9901001", 1)),
        ("math.GT/0309136", ("math/0309136", None)),
        ("0704.0001", ("0704.0001", None)),
        ("2101.00001.pdf", ("2101.00001", None)),
        ("2113.00001", (None, None)),
        ("2101.0001", (None, None)),
        ("0808.05394", (None, None)),
        ("1234567", (None, None)),
        ("", (None, None)),
    ],
)
def test_arxiv_number(text: str, expected: tuple[str | None, int | None]) -> None:
    """Number and version part; what can't be a number is none."""
    assert expected == arxiv_number(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("doi:10.1000/ABC.1", "10.1000/abc.1"),
        ("https://doi.org/10.1000%2Fabc", "10.1000/abc"),
        ("Journal of Reefs (10.1000/abc).", "10.1000/abc"),
        ("10.1016/0022-1(85)90001-2", "10.1016/0022-1(85)90001-2"),
        ("see 10.5 times", None),
        ("10.1000/", None),
    ],
)
def test_doi_of(text: str, expected: str | None) -> None:
    """A DOI is found in any dress and put in lower case."""
    assert expected == doi_of(text)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://arxiv.org/abs/2101.00001v2", ("arxiv:2101.00001",)),
        ("https://www.arxiv.org/pdf/2101.00001v12.pdf", ("arxiv:2101.00001",)),
        ("https://export.arxiv.org/html/2101.00001", ("arxiv:2101.00001",)),
        ("https://arxiv.org/abs/math.GT/0309136v1", ("arxiv:math/0309136",)),
        ("https://huggingface.co/papers/2101.00001", ("arxiv:2101.00001",)),
        ("https://arxiv.org/list/cs.SD/recent", ()),
        ("https://notarxiv.org/abs/2101.00001", ()),
        ("https://dx.doi.org/10.1000/XYZ", ("doi:10.1000/xyz",)),
        ("https://doi.org/10.48550/arXiv.2101.00001", ("arxiv:2101.00001", "doi:10.48550/arxiv.2101.00001")),
        ("https://www.biorxiv.org/content/10.1101/2026.09.01.123456v2?rss=1", ("doi:10.1101/2026.09.01.123456",)),
        ("http://medrxiv.org/content/10.1101/2026.09.01.123456v1.full.pdf", ("doi:10.1101/2026.09.01.123456",)),
        ("https://dl.acm.org/doi/abs/10.1145/1234567.7654321?af=R", ("doi:10.1145/1234567.7654321",)),
        ("https://link.springer.com/article/10.1007/s00000-026-1-2", ("doi:10.1007/s00000-026-1-2",)),
        ("https://journals.plos.org/plosone/article?id=10.1371/journal.pone.1", ("doi:10.1371/journal.pone.1",)),
        ("https://www.nature.com/articles/s41586-026-00001-x", ("doi:10.1038/s41586-026-00001-x",)),
        ("https://www.frontiersin.example/articles/10.3389/freef.1/full", ("doi:10.3389/freef.1",)),
        ("https://openreview.net/forum?id=aB_c-1&noteId=zz", ("openreview:aB_c-1",)),
        ("https://www.semanticscholar.org/paper/Reefs/" + "0a" * 20, ("s2:" + "0a" * 20,)),
        ("https://openalex.org/W123", ("openalex:W123",)),
        ("https://papers.example/1", ()),
        ("javascript:10.1000/1", ()),
        pytest.param("https://openreview.net/forum?id=a" + "&x=1" * 300, (), id="long query"),
        ("https://doi.org/10.48550/arXiv.kelp", ("doi:10.48550/arxiv.kelp",)),
    ],
)
def test_ids_of_link(url: str, expected: tuple[str, ...]) -> None:
    """The ids in a link are found, in the form in which they are compared."""
    assert expected == tuple(sorted(str(paper_id) for paper_id in ids_of_link(url)))


def test_ids_of_doi_given_by_arxiv() -> None:
    """A DOI of arXiv's own is the arXiv number too."""
    expected = (PaperId("doi", "10.48550/arxiv.2101.00001"), PaperId("arxiv", "2101.00001"))
    assert expected == ids_of_doi("10.48550/arXiv.2101.00001")
