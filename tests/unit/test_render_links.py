"""Which links a document may hold."""

from __future__ import annotations

import pytest

from digestd.render.links import safe_url
from digestd.render.mime import placeholder


@pytest.mark.parametrize(
    "url",
    [
        "https://papers.example.org/p/1?a=b&c=d#e",
        "http://papers.example.org/",
        "cid:weeks-1@digestd",
        "mailto:ada@example.org",
        placeholder("unsubscribe", "key"),
    ],
)
def test_safe_url_keeps(url: str) -> None:
    """Web links, pictures of the mail, addresses and placeholders stay as they are."""
    assert safe_url(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "java\nscript:alert(1)",
        " \x01javascript:alert(1)",
        "data:text/html,<script>",
        "vbscript:x",
        "file:///etc/passwd",
        "//evil.example",
        "/relative",
        "papers.example.org",
        "https://a.example/ b",
        "https://a.example/\u202eb",
        "http://[",
        "",
        None,
    ],
)
def test_safe_url_drops(url: str | None) -> None:
    """Anything that could do more than show a page is no link."""
    assert safe_url(url) == ""
