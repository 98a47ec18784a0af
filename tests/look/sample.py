"""An invented digest with everything that a mail can show; for tests, golden files and screenshots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, time

from digestd.headline import headline
from digestd.model.digest import Digest, DigestPaper, Links, Momentum, RevisedPaper, Section, TaggedPaper
from digestd.model.paper import Paper, Revision
from digestd.model.snapshot import Kind
from digestd.model.topic import Topic

BASE = "https://digest.example.org"
LINKS = Links(
    online=f"{BASE}/d/2026-09-30",
    preferences=f"{BASE}/preferences/k7Qx",
    unsubscribe=f"{BASE}/unsubscribe/k7Qx",
    feed=f"{BASE}/feed/k7Qx.xml",
)
NO_LINKS = Links()

#: key, day of September, category, title, authors, more, affiliations, more, labels, summary
_ROWS: tuple[tuple[int, int, str, str, str, int, str, int, str, str], ...] = (
    (
        1, 29, "physics.ao-ph", "ReefEar: Counting Snapping Shrimp by Ear in Murky Lagoons",
        "Ana Lima; Tomas Okafor; Mei Hoshino", 4, "University of the Outer Isles; Harbor Institute of Sound", 2,
        "Reef Sound; Passive Acoustics; Animal Counting; Shallow Water Propagation",
        "A single cheap recorder hears each snap and its echo, and the pair gives the distance. Counts agree with "
        "divers within nine percent on twelve lagoons.",
    ),
    (
        2, 29, "q-bio.PE", "Night Shift: Who Calls First When the Moon Is Down?",
        "Jun Arakawa; Britt Solheim", 0, "Department of Marine Life, School of Water, Northern Fjord University", 0,
        "Reef Sound; Fish Choruses", "On moonless nights toadfish open the chorus forty minutes earlier.",
    ),
    (
        3, 28, "cs.SD", "A Deaf Spot Below the Thermocline & What to Do About It",
        "Piotr Wysocki; Lin Qiao; Sara Ben-David", 11, "", 0, "Reef Sound; Underwater Microphones",
        "Warm water on top bends sound away from recorders on the floor. Hanging one recorder at mid-depth wins back "
        "most of the calls, at no more cost.",
    ),
    (
        4, 28, "eess.AS", "Low-Power Listening: Two Years of Reef Recordings on One Battery",
        "Olu Adeyemi", 0, "Tidewater Laboratories, Inc.", 0, "Reef Sound; Passive Acoustics",
        "The recorder sleeps until a cheap filter hears something alive. It kept 97% of the calls and used 3% of "
        "the energy.",
    ),
    (
        5, 24, "q-bio.QM", "From Crackle to Cover: Estimating Live Coral from Ambient Noise",
        "Grace Mbeki; Ivo Petrov; Noor Rahman", 2, "Coral Academy", 0, "Reef Sound; Kelp and Coral Growth",
        "A healthy reef is louder and higher. From ten minutes of noise the share of living coral is estimated to "
        "within six points.",
    ),
    (
        6, 24, "q-bio.PE", "Kelp Clocks: Growth Rings in Holdfasts", "Ines Faria; Karl Voss", 1,
        "University of the Outer Isles", 0, "Kelp and Coral Growth; Dating Methods",
        "Rings in the holdfast follow the upwelling season, not the year. Counting both gives ages that agree with "
        "forty years of aerial photographs.",
    ),
    (
        7, 23, "physics.geo-ph", "Holdfast: A Light Anchor for Drifting Nurseries", "Yara Haddad; Ben Oyelaran", 0,
        "", 0, "Kelp and Coral Growth", "Woven basalt holds as well as steel at a fifth of the weight.",
    ),
    (
        8, 15, "cs.SD", "Whistles or Wind? A Listening Test with Experts", "Md Sami; Eva Lind; Theo Brandt", 0,
        "Harbor Institute of Sound", 0, "Passive Acoustics",
        "Experts disagree on one call in five, and wind explains half of it.",
    ),
    (
        9, 14, "q-bio.QM", "Slow Growers: Fifty Corals over Fifty Years", "Hana Sato", 6, "Coral Academy", 0,
        "Dating Methods", "Half of the colonies grew less than a hand's width.",
    ),
)  # fmt: skip


def sample_paper(key: int, *, linked: bool = True, also_in: tuple[str, ...] = ()) -> DigestPaper:
    """Return one of the invented papers, 1 to 9."""
    _, day, category, title, authors, more, places, places_more, labels, summary = _ROWS[key - 1]
    published = date(2026, 9, day)

    def split(text: str) -> tuple[str, ...]:
        return tuple(part for part in text.split("; ") if part)

    paper = Paper(
        title=title,
        published=published,
        categories=(category,),
        authors=split(authors),
        authors_more=more,
        affiliations=split(places),
        affiliations_more=places_more,
        topics=split(labels),
    )
    return DigestPaper(
        key=key,
        paper=paper,
        kind=Kind.NEW,
        effective_at=datetime.combine(published, time(), UTC),
        summary=summary,
        url=f"{BASE}/p/{key:04x}" if linked else None,
        also_in=also_in,
    )


def sample_momentum(weekly: Sequence[int], *, p_value: float, charts: bool = True) -> Momentum:
    """Return the momentum of twelve weeks as a source states it."""
    current, previous = sum(weekly[8:]), sum(weekly[4:8])
    return Momentum(
        current=current,
        previous=previous,
        change_percent=round(100 * (current - previous) / previous),
        share_percent=0.5,
        source="stated",
        weekly=tuple(weekly) if charts else (),
        weekly_from=date(2026, 7, 13),
        partial=True,
        p_value=p_value,
    )


def sample_digest(*, charts: bool = True, linked: bool = True) -> Digest:
    """Return a digest of three topics: one rising, one cooling, one quiet; older, revised and withdrawn papers.

    Args:
        charts: whether the weekly series are known.
        linked: whether papers and topics have links.
    """
    reef, kelp, ice = (
        Topic("reef-sound", "Reef Sound"),
        Topic("kelp", "Kelp and Coral Growth"),
        Topic("ice", "Ice Cores"),
    )
    rising = sample_momentum((3, 5, 4, 6, 4, 7, 5, 6, 13, 18, 16, 7), p_value=0.0003, charts=charts)
    cooling = sample_momentum((9, 11, 10, 12, 13, 11, 10, 9, 9, 8, 9, 1), p_value=0.05, charts=charts)
    quiet = sample_momentum((1, 0, 2, 1, 0, 1, 1, 0, 1, 2, 0, 0), p_value=1.0, charts=charts)

    def page(topic: Topic) -> str | None:
        return f"{BASE}/t/{topic.slug}" if linked else None

    sections = (
        Section(
            topic=reef,
            headline=headline(rising, 5),
            momentum=rising,
            papers=(
                *(sample_paper(key, linked=linked) for key in (1, 2, 3)),
                sample_paper(5, linked=linked, also_in=(kelp.name,)),
            ),
            rest=(sample_paper(4, linked=linked),),
            hidden=2,
            coverage_line="complete since Sep 3",
            url=page(reef),
        ),
        Section(
            topic=kelp,
            headline=headline(cooling, 3),
            momentum=cooling,
            papers=(sample_paper(6, linked=linked), sample_paper(7, linked=linked)),
            above=1,
            coverage_line="nothing seen between Jun 6 and Sep 11",
            url=page(kelp),
        ),
        Section(topic=ice, headline=headline(quiet, 0, date(2026, 9, 14)), momentum=quiet, url=page(ice)),
    )
    revised = sample_paper(8, linked=linked)
    return Digest(
        name="Reef Papers Weekly",
        since=date(2026, 9, 23),
        until=date(2026, 9, 29),
        sections=sections,
        tagged=(TaggedPaper(kelp, sample_paper(9, linked=linked)),),
        revised=(
            RevisedPaper(revised, Revision(8, (("title", "Whistles or Wind", "Whistles or Wind?"),)), "New title."),
        ),
        withdrawn=(
            RevisedPaper(
                replace(sample_paper(4, linked=linked), key=10), Revision(10, ()), "Withdrawn by the authors on Sep 29."
            ),
        ),
        catch_up="after your pause since Sep 2",
        next_line="The next digest comes on Wednesday, Oct 7.",
        why_line="You get this mail because ada@example.edu follows three topics here, weekly on Wednesdays.",
    )


def large_digest(papers: int = 40, *, linked: bool = True, summary_length: int = 280) -> Digest:
    """Return a digest of three topics with this many papers, each as long as papers get."""
    base = sample_digest(linked=linked)
    sentence = "Measured again on another coast, the effect is smaller — yet it is there, and it grows. "
    items = []
    for number in range(papers):
        item = sample_paper(1, linked=linked)
        title = f"Study {number:03}: On the Long and Winding Acoustics of Reefs That Nobody Has Visited Since the Storm"
        items.append(
            replace(
                item,
                key=1000 + number,
                paper=replace(item.paper, title=title),
                summary=(sentence * 9)[:summary_length].strip(),
                url=f"{BASE}/p/{number:04x}" if linked else None,
            )
        )
    third = -(-papers // 3)
    parts = (items[:third], items[third : 2 * third], items[2 * third :])
    sections = tuple(
        replace(section, papers=tuple(part), rest=(), above=0)
        for section, part in zip(base.sections, parts, strict=True)
    )
    return replace(base, sections=sections, tagged=(), revised=(), withdrawn=())
