"""Where templates are found, what they may do, how they fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from digestd import templating
from digestd.errors import RenderError
from digestd.templating import build_environment, escapes, templates_folder, wrap


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mail/digest.html.j2", True),
        ("feed/rss.xml.j2", True),
        ("page.html", True),
        (None, True),
        ("mail/digest.txt.j2", False),
        ("robots.txt", False),
    ],
)
def test_escapes_all_but_text(name: str | None, expected: bool) -> None:
    """Everything escapes but text; the .j2 suffix hides nothing."""
    assert escapes(name) == expected


def test_own_templates_are_found_wherever_one_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working directory does not matter."""
    monkeypatch.chdir(tmp_path)
    assert (templates_folder() / "mail" / "digest.html.j2").is_file()


def test_templates_inside_the_package_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wheel has the templates in the package, a checkout beside it; without both the error names the places."""
    package = tmp_path / "site" / "digestd"
    package.mkdir(parents=True)
    monkeypatch.setattr(templating, "__file__", str(package / "templating.py"))
    with pytest.raises(
        RenderError, match=r"no folder of templates, looked at .*site/digestd/templates and .*site/templates"
    ):
        templates_folder()
    (tmp_path / "site" / "templates").mkdir()
    assert templates_folder() == tmp_path / "site" / "templates"
    (package / "templates").mkdir()
    assert templates_folder() == package / "templates"


def test_override_goes_first_and_ours_fill_in(tmp_path: Path) -> None:
    """A reader's own template replaces ours of the same name; the others stay."""
    (tmp_path / "mail").mkdir()
    (tmp_path / "mail" / "digest.txt.j2").write_text("Own: {{ mail.name }}", encoding="utf-8")
    environment = build_environment(tmp_path)
    assert environment.get_template("mail/digest.txt.j2").render(mail={"name": "A & B"}) == "Own: A & B"
    assert environment.get_template("mail/digest.html.j2").name == "mail/digest.html.j2"


def test_faults_of_templates_are_render_errors_with_their_name(tmp_path: Path) -> None:
    """A missing template, a syntax error, a missing name: each names the template."""
    (tmp_path / "broken.html.j2").write_text("line one\n{% if %}", encoding="utf-8")
    (tmp_path / "typo.html.j2").write_text("{{ mail.nmae }}", encoding="utf-8")
    environment = build_environment(tmp_path)
    with pytest.raises(RenderError, match=r"template none\.html\.j2: not found"):
        environment.get_template("none.html.j2")
    with pytest.raises(RenderError, match=r"template broken\.html\.j2: line 2"):
        environment.get_template("broken.html.j2")
    with pytest.raises(RenderError, match=r"template typo\.html\.j2: .*nmae") as caught:
        environment.get_template("typo.html.j2").render(mail={"name": "x"})
    assert caught.value.template == "typo.html.j2"


def test_html_is_escaped_and_links_are_filtered(tmp_path: Path) -> None:
    """What templates print is escaped, and the link filter is there."""
    (tmp_path / "a.html.j2").write_text('<a href="{{ url|safe_url }}">{{ text }}</a>', encoding="utf-8")
    page = build_environment(tmp_path).get_template("a.html.j2")
    assert page.render(url="javascript:x", text="<b>") == '<a href="">&lt;b&gt;</a>'


def test_wrap_at_72_columns_never_breaks_words() -> None:
    """Lines have 72 columns; links and hyphens are kept whole, the first line may be set in otherwise."""
    link = "https://example.org/" + "a" * 80
    assert wrap("a " * 40).splitlines() == [("a " * 36).strip(), "a a a a"]
    assert wrap(f"see {link} there", "  ", "- ").splitlines() == ["- see", f"  {link}", "  there"]
