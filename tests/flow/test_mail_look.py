"""What readers see of a digest by mail, from the real templates."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path

import jinja2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from digestd.model.delivery import MailParts
from digestd.model.digest import Digest, Links, Section, TaggedPaper
from digestd.model.topic import Topic
from digestd.render.mail import SIZE_LIMIT, cut, cuts, render_mail
from digestd.render.mime import MailHeaders, build_message, placeholder, quoted_printable
from digestd.templating import build_environment
from tests.look.sample import BASE, LINKS, NO_LINKS, large_digest, sample_digest, sample_paper

GOLDEN = Path(__file__).resolve().parents[1] / "golden"
VOID = {"meta", "br", "img", "link", "hr", "input"}


class Page(HTMLParser):
    """A page read with a stack of its own: unclosed or crossed tags are noted, texts and attributes kept."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.stack: list[str] = []
        self.faults: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(html)
        self.close()
        self.faults += [f"<{tag}> never closed" for tag in self.stack]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag and open it."""
        self.tags.append((tag, dict(attrs)))
        if len(attrs) != len(dict(attrs)):
            self.faults.append(f"<{tag}> has an attribute twice")
        if tag not in VOID:
            self.stack.append(tag)
            self.texts.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        """Close the innermost tag; another one is a fault."""
        if not self.stack or self.stack[-1] != tag:
            self.faults.append(f"</{tag}> where {self.stack[-1:]} is open")
        else:
            self.stack.pop()

    def handle_data(self, data: str) -> None:
        """Add to the text of all open tags."""
        for tag in set(self.stack):
            self.texts[tag][-1] += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        """Return the attributes of all tags of this name."""
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def templates() -> jinja2.Environment:
    """The environment of the program."""
    return build_environment()


def words(html: str) -> str:
    """Return the text of a page, white space folded."""
    return " ".join("".join(Page(html).texts["body"]).split())


def with_title(title: str, *, url: str | None = f"{BASE}/p/0001") -> Digest:
    """Return the sample digest, its first paper with this title and link."""
    digest = sample_digest()
    first = digest.sections[0].papers[0]
    changed = replace(first, paper=replace(first.paper, title=title), url=url)
    section = replace(digest.sections[0], papers=(changed, *digest.sections[0].papers[1:]))
    return replace(digest, sections=(section, *digest.sections[1:]))


@pytest.mark.parametrize("pictures", [True, False])
@pytest.mark.parametrize("charts", [True, False])
@pytest.mark.parametrize("linked", [True, False])
def test_html_is_valid(templates: jinja2.Environment, pictures: bool, charts: bool, linked: bool) -> None:
    """Every tag is closed in order, pictures have alt and size, headings nest, language and roles are set."""
    links = LINKS if linked else NO_LINKS
    page = Page(render_mail(sample_digest(charts=charts, linked=linked), links, templates, pictures=pictures).html)
    assert page.faults == []
    assert page.named("html")[0]["lang"] == "en"
    assert [tag for tag, _ in page.tags if tag in ("h1", "h2")] == ["h1"] + ["h2"] * 6
    assert all(image.get("alt") and image.get("width") and image.get("height") for image in page.named("img"))
    assert len(page.named("img")) == (6 if pictures and charts else 0)
    data_tables = [table for table in page.named("table") if table.get("role") != "presentation"]
    assert len(data_tables) == 1
    assert {cell["scope"] for cell in page.named("th")} == {"col", "row"}


def test_html_pictures_are_those_of_the_mail(templates: jinja2.Environment) -> None:
    """Each chart is shown twice from one attached picture; nothing is fetched from anywhere."""
    mail = render_mail(sample_digest(), LINKS, templates)
    shown = [image["src"] for image in Page(mail.html).named("img")]
    assert sorted({f"cid:{picture.cid}" for picture in mail.pictures} | set()) == sorted(set(filter(None, shown)))
    assert len(shown) == 2 * len(mail.pictures) == 6
    assert "url(" not in mail.html


def test_same_series_is_attached_once(templates: jinja2.Environment) -> None:
    """Two topics with the same weeks share one picture."""
    digest = sample_digest()
    same = replace(digest.sections[1], momentum=digest.sections[0].momentum)
    mail = render_mail(replace(digest, sections=(digest.sections[0], same)), LINKS, templates)
    assert len(mail.pictures) == 1


@pytest.mark.parametrize(
    "title",
    [
        "A < B & \"C\" > 'D'",
        "<script>alert(1)</script>",
        "{{ 7 * 7 }} {% raw %}",
        "&amp; is not &",
        "</h3></a><b>",
        "–" * 30,
    ],
)
def test_title_is_escaped_once(templates: jinja2.Environment, title: str) -> None:
    """A title is read as it was written, in HTML and in text."""
    mail = render_mail(with_title(title), LINKS, templates)
    page = Page(mail.html)
    assert page.faults == []
    assert page.texts["h3"][0].strip() == title
    assert title in mail.text
    assert "script" not in page.texts


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "data:text/html,x", None, "/p/1", 'https://x.example/"onclick="a']
)
def test_unsafe_links_are_no_links(templates: jinja2.Environment, url: str | None) -> None:
    """A title whose link is unsafe or missing is plain text; a quote in a link does not end its attribute."""
    mail = render_mail(with_title("Plain Title", url=url), LINKS, templates)
    targets = [link["href"] for link in Page(mail.html).named("a")]
    assert all(target is not None and target.startswith("https://") for target in targets)
    assert all("onclick" not in attributes for _, attributes in Page(mail.html).tags)
    assert "Plain Title" in mail.text


@given(st.text(max_size=60), st.text(max_size=60), st.text(max_size=200))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_gives_a_valid_mail(templates: jinja2.Environment, title: str, topic: str, summary: str) -> None:
    """Whatever the source writes, the HTML stays in order and the message can be built."""
    digest = with_title(title)
    first = replace(digest.sections[0].papers[0], summary=summary, also_in=(topic,))
    section = replace(digest.sections[0], topic=Topic("x", topic), papers=(first,))
    mail = render_mail(replace(digest, name=topic, sections=(section,)), LINKS, templates)
    assert Page(mail.html).faults == []
    headers = MailHeaders("d@x.example", "a@x.example", datetime(2026, 9, 30, tzinfo=UTC), "<1@x.example>", "k", topic)
    assert build_message(mail, headers).isascii()


def test_text_lines_are_at_most_72_columns(templates: jinja2.Environment) -> None:
    """The text part fits an 80 column screen; it holds no line that reads as a quotation."""
    mail = render_mail(with_title("> " + "Long Words of a Title That Goes On " * 4), LINKS, templates)
    assert [line for line in mail.text.splitlines() if len(line) > 72 and "://" not in line] == []
    assert not re.search("^>", mail.text, re.MULTILINE)
    assert "\u00a0" not in mail.text
    assert "\n-- \n" in mail.text
    assert "\n\n\n\n" not in mail.text


def test_headline_counts_and_coverage_are_told(templates: jinja2.Environment) -> None:
    """Each topic says how it moves, how many papers are new, shown, hidden, and what was seen of the listing."""
    mail = render_mail(sample_digest(), LINKS, templates)
    for told in (
        "7 new papers in 3 topics",
        "54 papers in four weeks, up 145%",
        "0.5% of all new papers · 5 new, 4 shown, 2 hidden by your filters",
        "Complete since Sep 3",
        "Cooling: 27 papers in four weeks, down 37%",
        "3 new, 1 of them above",
        "Nothing seen between Jun 6 and Sep 11",
        "No new papers, quiet",
        "More days than usual, after your pause since Sep 2.",
        "That is all for Sep 23–29. The next digest comes on Wednesday, Oct 7.",
        "Also in Kelp and Coral Growth",
        "Now in Kelp and Coral Growth",
        "Revised since we told you",
        "Withdrawn",
        "Summaries are sentences picked from the abstracts.",
    ):
        assert told in words(mail.html)


def test_without_charts_nothing_speaks_of_them(templates: jinja2.Environment) -> None:
    """Where no weekly series is known there is no chart, no column and no key: bars are never invented."""
    mail = render_mail(sample_digest(charts=False), LINKS, templates)
    assert mail.pictures == ()
    assert not re.search("weeks</th>|Charts:|▁|▃", mail.html + mail.text)
    assert "Charts: papers a week, the last four weeks in red, the unfinished week hollow." in words(
        render_mail(sample_digest(), LINKS, templates).html
    )


def test_series_without_its_dates_is_no_chart(templates: jinja2.Environment) -> None:
    """Bars whose weeks are not known are left out."""
    digest = sample_digest()
    section = replace(digest.sections[0], momentum=replace(digest.sections[0].momentum, weekly_from=None))
    mail = render_mail(replace(digest, sections=(section,)), LINKS, templates)
    assert mail.pictures == ()


def test_charts_as_text(templates: jinja2.Environment) -> None:
    """With pictures off the bars are characters, and the key does not speak of red."""
    mail = render_mail(sample_digest(), LINKS, templates, pictures=False)
    assert mail.pictures == ()
    assert "▂▃▂▃ ▂▃▃▃ ▅▇▆▃" in mail.html
    assert "in red" not in mail.html


def test_finished_weeks_have_no_hollow_bar_in_the_key(templates: jinja2.Environment) -> None:
    """The key speaks of the unfinished week only where one is shown."""
    digest = sample_digest()
    section = replace(digest.sections[0], momentum=replace(digest.sections[0].momentum, partial=False))
    mail = render_mail(replace(digest, sections=(section,)), LINKS, templates)
    assert "the last four weeks in red. Sent by" in words(mail.html)


def test_without_web_address_links_are_left_out(templates: jinja2.Environment) -> None:
    """A service without a base URL prints no dead link and promises nothing online."""
    mail = render_mail(sample_digest(linked=False), NO_LINKS, templates)
    assert Page(mail.html).named("a") == []
    assert "online" not in mail.html + mail.text
    assert "Unsubscribe" not in mail.html + mail.text
    assert "1 more Low-Power Listening" in words(mail.html)
    assert "1 more:\n\n- Low-Power Listening: Two Years of Reef Recordings on One Battery\n" in mail.text


def test_own_links_of_papers_without_web_address(templates: jinja2.Environment) -> None:
    """Without pages of ours titles still lead to the papers themselves."""
    digest = sample_digest(linked=False)
    first = replace(digest.sections[0].papers[0], url="https://arxiv.org/abs/2609.00001")
    over = replace(digest.sections[0].rest[0], url="https://arxiv.org/abs/2609.00002")
    section = replace(digest.sections[0], papers=(first,), rest=(over,))
    mail = render_mail(replace(digest, sections=(section,), tagged=(), revised=(), withdrawn=()), NO_LINKS, templates)
    targets = [link["href"] for link in Page(mail.html).named("a")]
    assert targets == ["https://arxiv.org/abs/2609.00001", "https://arxiv.org/abs/2609.00002"]
    assert "\n  https://arxiv.org/abs/2609.00002\n" in mail.text


def test_long_link_stands_alone(templates: jinja2.Environment) -> None:
    """A link that does not fit beside the category has a line of its own, unbroken."""
    url = "https://papers.example.org/" + "long/" * 12
    mail = render_mail(with_title("Plain Title", url=url), LINKS, templates)
    assert f"    physics.ao-ph\n    {url}\n" in mail.text


def test_day_is_said_once(templates: jinja2.Environment) -> None:
    """Papers of one day stand under one date."""
    mail = render_mail(sample_digest(), LINKS, templates)
    assert mail.text.count("Tue, Sep 29 ---") == 1
    assert words(mail.html).count("Sep 29 Tue") == 1


def test_welcome_does_not_call_old_papers_new(templates: jinja2.Environment) -> None:
    """A first digest tells what stands there to begin with."""
    mail = render_mail(replace(sample_digest(), welcome=True, catch_up=""), LINKS, templates)
    assert "Your first digest: 7 papers in 3 topics" in words(mail.html)
    assert "5 to begin with, 4 shown" in words(mail.html)
    assert "5 new" not in mail.html + mail.text


def test_no_topics_no_summaries(templates: jinja2.Environment) -> None:
    """A digest of mere revisions has no table, and no word on summaries that are not there."""
    digest = replace(sample_digest(), sections=(), tagged=(), next_line="", catch_up="", why_line="")
    mail = render_mail(digest, LINKS, templates)
    assert Page(mail.html).faults == []
    assert Page(mail.html).named("th") == []
    assert "Summaries" not in mail.html + mail.text
    assert "That is all for Sep 23–29.\n" in mail.text


def test_topic_without_figures(templates: jinja2.Environment) -> None:
    """A topic of which no momentum is known says nothing of change."""
    digest = sample_digest()
    blank = replace(digest.sections[0].headline, text="", short="", note="")
    section = Section(Topic("x", "Unmeasured"), blank, papers=(sample_paper(2),))
    mail = render_mail(replace(digest, sections=(section,)), LINKS, templates)
    assert Page(mail.html).faults == []
    assert "1 new" in words(mail.html)
    assert re.search(r"  Unmeasured +1 new +–\n", mail.text)


def test_newly_tagged_over_the_budget_are_named(templates: jinja2.Environment) -> None:
    """Older papers over the budget are named, in both parts."""
    digest = replace(
        sample_digest(linked=False), tagged_rest=(TaggedPaper(Topic("x", "X"), sample_paper(4, linked=False)),)
    )
    mail = render_mail(digest, NO_LINKS, templates)
    assert words(mail.html).count("1 more Low-Power Listening") == 2
    assert mail.text.count("1 more:\n\n- Low-Power Listening") == 2
    paged = render_mail(digest, replace(LINKS, more=f"{BASE}/d/1"), templates)
    assert paged.text.count(f"1 more online: Low-Power Listening.\n{BASE}/d/1\n") == 2


@pytest.mark.parametrize("linked", [True, False])
def test_forty_long_papers_stay_under_the_limit(templates: jinja2.Environment, linked: bool) -> None:
    """Forty papers of three topics are not clipped, and none is lost."""
    digest = large_digest(40, linked=linked)
    mail = render_mail(digest, LINKS if linked else NO_LINKS, templates)
    assert len(quoted_printable(mail.html)) <= SIZE_LIMIT
    assert Page(mail.html).faults == []
    assert [number for number in range(40) if f"Study {number:03}" not in mail.text] == []


def test_too_many_papers_lose_summaries_first(templates: jinja2.Environment) -> None:
    """What is too long loses summaries from the end and keeps all its papers."""
    digest = large_digest(76)
    mail = render_mail(digest, LINKS, templates)
    assert SIZE_LIMIT - 2_000 < len(quoted_printable(mail.html)) <= SIZE_LIMIT
    titles = Page(mail.html).texts["h3"]
    assert len(titles) == 76
    after = [text for text in mail.text.split("\nStudy ")[1:] if "Measured again on another coast" in text]
    assert 0 < len(after) < 76
    assert [text[:3] for text in after] == [f"{number:03}" for number in range(len(after))]


def test_far_too_many_papers_become_names(templates: jinja2.Environment) -> None:
    """Hundreds of papers fit too: those that do not are named in the text part, each once."""
    digest = large_digest(600, linked=False)
    mail = render_mail(digest, NO_LINKS, templates)
    assert len(quoted_printable(mail.html)) <= SIZE_LIMIT
    assert [number for number in range(600) if mail.text.count(f"Study {number:03}:") != 1] == []
    assert "more, named in the text part of this mail" in words(mail.html)


@pytest.mark.parametrize(("topics", "charts"), [(24, True), (34, False)])
def test_very_many_topics_name_fewer_papers(templates: jinja2.Environment, topics: int, charts: bool) -> None:
    """Where even the names are too many, six a topic are named in the HTML, all in the text; then charts go."""
    base = large_digest(60, linked=False)
    items = [item for section in base.sections for item in section.papers]
    rest = tuple(replace(item, paper=replace(item.paper, title=item.paper.title.replace(":", ""))) for item in items)
    sections = tuple(
        replace(base.sections[2], topic=Topic(f"t{number}", f"Topic {number}"), papers=(), rest=rest)
        for number in range(topics)
    )
    mail = render_mail(replace(base, sections=sections), NO_LINKS, templates)
    assert len(quoted_printable(mail.html)) <= SIZE_LIMIT
    assert words(mail.html).count("and 54 more, named in the text part of this mail") == topics
    assert mail.text.count("\n- Study 059 On the Long") == topics
    assert bool(mail.pictures) == charts


@given(st.integers(0, 40))
@settings(max_examples=20, deadline=None)
def test_cut_keeps_every_paper_in_order(steps: int) -> None:
    """Cutting loses no paper, changes no order within a topic, and each step cuts one thing."""
    digest = large_digest(12)
    shorter = cut(digest, steps)
    for before, after in zip(digest.sections, shorter.sections, strict=True):
        assert [item.key for item in before.papers] == [item.key for item in (*after.papers, *after.rest)]
    summaries = sum(bool(item.summary) for section in shorter.sections for item in section.papers)
    papers = sum(len(section.papers) for section in shorter.sections)
    assert cuts(digest) == 24
    assert (summaries, papers) == (max(0, 12 - steps), min(12, max(0, 24 - steps)))


def test_personal_parts_can_be_filled_in_later(templates: jinja2.Environment) -> None:
    """A digest rendered with placeholders has each in both parts, as a link where it is one."""
    codes = {name: placeholder(name, "run") for name in ("preferences", "unsubscribe", "feed", "address")}
    links = Links(preferences=codes["preferences"], unsubscribe=codes["unsubscribe"], feed=codes["feed"])
    digest = replace(sample_digest(), why_line=f"You get this mail because {codes['address']} follows three topics.")
    mail = render_mail(digest, links, templates)
    assert [mail.html.count(code) for code in codes.values()] == [1, 1, 1, 1]
    assert [mail.text.count(code) for code in codes.values()] == [1, 1, 1, 1]
    assert f'href="{codes["unsubscribe"]}"' in mail.html


@pytest.mark.parametrize(
    ("name", "digest", "links"),
    [("mail-full", sample_digest(), LINKS), ("mail-bare", sample_digest(charts=False, linked=False), NO_LINKS)],
)
def test_golden_mail(
    templates: jinja2.Environment, request: pytest.FixtureRequest, name: str, digest: Digest, links: Links
) -> None:
    """The rendered mail is the one that was looked at; ``--update-golden`` writes it anew, to be read as a diff."""
    mail = render_mail(digest, links, templates)
    for suffix, text in ((".html", mail.html), (".txt", mail.text), (".subject", _subject(mail))):
        golden = GOLDEN / (name + suffix)
        if request.config.getoption("--update-golden", default=False):
            golden.write_text(text, encoding="utf-8")
        assert golden.read_text(encoding="utf-8") == text


def _subject(mail: MailParts) -> str:
    """Return what a reader sees in the list of mails."""
    return f"{mail.subject}\n{mail.preheader}\n"
