"""Feeds of each shape, of our own making: what publishers and arXiv send, with invented papers."""

from __future__ import annotations

from datetime import UTC, datetime

SEEN = datetime(2026, 10, 21, 16, 0, tzinfo=UTC)

_SPACES = (
    'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:arxiv="http://arxiv.org/schemas/atom" '
    'xmlns:content="http://purl.org/rss/1.0/modules/content/" xmlns:prism="http://prismstandard.org/namespaces/basic/2.0/"'
)


def rss(*items: str, head: str = "") -> str:
    """Return an RSS 2.0 feed with these items."""
    body = "".join(f"<item>{item}</item>\n" for item in items)
    start = f'<?xml version="1.0" encoding="UTF-8"?>\n<rss version="2.0" {_SPACES}><channel><title>Kelp Weekly</title>'
    return f"{start}<link>https://kelp.example/</link>{head}\n{body}</channel></rss>\n"


def atom(*entries: str, head: str = "", attributes: str = "") -> str:
    """Return an Atom feed with these entries."""
    body = "".join(f"<entry>{entry}</entry>\n" for entry in entries)
    start = f'<?xml version="1.0" encoding="utf-8"?>\n<feed xmlns="http://www.w3.org/2005/Atom" {_SPACES} {attributes}>'
    return f"{start}<title>Kelp Notes</title><updated>2026-10-20T00:00:00Z</updated>{head}\n{body}</feed>\n"


def rdf(*items: str) -> str:
    """Return an RSS 1.0 feed with these items."""
    body = "".join(f'<item rdf:about="https://kelp.example/r/{at}">{item}</item>\n' for at, item in enumerate(items))
    spaces = f'xmlns="http://purl.org/rss/1.0/" xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" {_SPACES}'
    channel = '<channel rdf:about="https://kelp.example/"><title>Kelp Table</title><link>https://kelp.example/</link></channel>'
    return f'<?xml version="1.0"?>\n<rdf:RDF {spaces}>{channel}\n{body}</rdf:RDF>\n'


ARXIV_NEW = rss(
    *(
        f"<title>Kelp Paper {number}: $O(n^2)$ Fronds</title><link>https://arxiv.org/abs/2610.8000{number}</link>"
        f'<guid isPermaLink="false">oai:arXiv.org:2610.8000{number}v{number}</guid>'
        "<pubDate>Tue, 20 Oct 2026 00:00:00 -0400</pubDate><dc:creator>Ida Moss, Tor Vik</dc:creator>"
        f"<category>eess.AS</category><category>cs.SD</category><arxiv:announce_type>{kind}</arxiv:announce_type>"
        f"<description>arXiv:2610.8000{number}v{number} Announce Type: {kind} \nAbstract: Fronds sway, {number} of them."
        "</description>"
        for number, kind in enumerate(("new", "cross", "replace", "replace-cross"), start=1)
    ),
    head="<lastBuildDate>Wed, 21 Oct 2026 04:00:02 +0000</lastBuildDate><ttl>60</ttl>",
)
ARXIV_OLD = rdf(
    "<title>Fronds at Rest. (arXiv:2305.80001v1 [cs.SD])</title><link>http://arxiv.org/abs/2305.80001</link>"
    "<description>&lt;p&gt;We rest, for $2&amp;lt;n&amp;lt;4$ fronds.\n&lt;/p&gt;</description>"
    '<dc:creator> &lt;a href="http://arxiv.org/a/m"&gt;Ida Moss&lt;/a&gt; (TIDE Collaboration), '
    '&lt;a href="http://arxiv.org/a/v"&gt;Tor Vik&lt;/a&gt;</dc:creator>',
    "<title>Do Fronds Rest?. (arXiv:hep-th/9901001v4 [hep-th] UPDATED)</title><link>http://arxiv.org/abs/hep-th/9901001</link>",
    "<title>Fronds and Foam. (arXiv:2305.80003v1 [math.AP] CROSS LISTED)</title><link>http://arxiv.org/abs/2305.80003</link>",
)
ARXIV_API = atom(
    "<id>http://arxiv.org/abs/2610.80007v2</id><title>Fronds\n  on Request</title><published>2026-10-18T10:00:00Z</published>"
    "<updated>2026-10-20T10:00:00Z</updated><summary>  We fetch fronds. </summary>"
    "<author><name>Ida Moss</name><arxiv:affiliation>Tide Lab</arxiv:affiliation></author><author><name>Tor Vik</name></author>"
    "<arxiv:comment>This paper has been withdrawn by the authors</arxiv:comment>"
    '<arxiv:primary_category term="cs.SD"/><category term="eess.AS"/><category term="cs.SD"/><category term="68T05, 94A12"/>'
    "<arxiv:doi>10.5555/KELP.7</arxiv:doi>"
    '<link href="https://arxiv.org/abs/2610.80007v2" rel="alternate" type="text/html"/>'
    '<link href="https://arxiv.org/pdf/2610.80007v2" rel="related" type="application/pdf" title="pdf"/>'
)
API_ERROR = atom(
    "<id>http://arxiv.org/api/errors#incorrect_id_format_for_kelp</id><title>Error</title>"
    "<summary>incorrect id format for kelp</summary><author><name>arXiv api core</name></author>"
)
BIORXIV = rdf(
    "<title><![CDATA[\nHolding fast\n]]></title>"
    "<link>\nhttp://biorxiv.org/cgi/content/short/2026.10.19.123456v1?rss=1\n</link>"
    "<description><![CDATA[Holdfasts hold.]]></description>"
    "<dc:creator><![CDATA[ Moss, I., van der Zee, L. E., The Shelf Group ]]>"
    "</dc:creator><dc:date>2026-10-19</dc:date><dc:identifier>doi:10.1101/2026.10.19.123456</dc:identifier>"
    "<dc:identifier>hwp:master-id:kelp;1</dc:identifier><dc:title>Holding fast</dc:title>"
)
MDPI = rdf(
    "<title>Kelps, Vol. 9, Pages 12: Blades in Light</title><link>https://mdpi.example/1/9/12</link><description>Blades [...]"
    "</description><content:encoded>Abstract</content:encoded><dc:title>Blades in Light</dc:title>"
    "<dc:creator>Ida Moss</dc:creator>"
    "<dc:creator>Tor Vik</dc:creator><dc:date>2026-10-18</dc:date><prism:doi>10.5555/kelps9010012</prism:doi>"
)
ACM = rdf(
    "<title>Scheduling Fronds</title><link>https://dl.example/doi/abs/10.5555/11.22?af=R</link>"
    "<description>Transactions on Kelp, "
    '&lt;a href="/toc"&gt;Volume 4, Issue 3&lt;/a&gt;, Page 1-24, September 2026. &lt;br/&gt;We schedule.</description>'
    "<dc:date>2026-10-19T07:00:00Z</dc:date><dc:creator>Ida Moss</dc:creator>"
)
PLOS = atom(
    "<title>Gut feeling: &lt;i&gt;Laminaria&lt;/i&gt; at CO&lt;sub&gt;2&lt;/sub&gt; peaks</title><id>10.5555/okj.0000012</id>"
    '<link rel="alternate" href="https://openkelp.example/article?id=10.5555/okj.0000012"/>'
    "<author><name>Ida Moss et al.</name></author>"
    "<published>2026-10-20T14:00:00Z</published>"
    '<content type="html">&lt;p&gt;by Ida Moss, Tor Vik, Ken Arai&lt;/p&gt;\n\nKelp has guts too.</content>'
)
IEEE = rss(
    "<title>Beams Through Kelp</title><link>https://xplore.example/document/2</link><description>We form beams.</description>"
    "<pubDate>MON, 19 OCT 2026 09:17:10 -0400</pubDate><authors>Ida Moss;Tor Vik;</authors>"
)
SPRINGER = rss(
    "<title>A note on quiet kelp</title><link>https://link.example/10.5555/s999-026-0001-1</link><pubDate>2026-10-18</pubDate>"
    "<description><![CDATA[<h3>Abstract</h3><p>Quiet kelp is quiet.</p>]]></description>"
)
DBLP = rss(
    "<title>Ida Moss, Tor Vik: How Many Fronds Are Enough? Stat. Kelp Lett. 4 (2026)</title><link>https://doi.org/10.5555/SKL.4</link>"
    '<guid isPermaLink="false">journals/skl/MossV26</guid>'
).replace("Kelp Weekly", "dblp: Ida Moss")

SHAPES = {
    "arxiv new": ARXIV_NEW,
    "arxiv old": ARXIV_OLD,
    "arxiv api": ARXIV_API,
    "biorxiv": BIORXIV,
    "mdpi": MDPI,
    "acm": ACM,
    "plos": PLOS,
    "ieee": IEEE,
    "springer": SPRINGER,
    "dblp": DBLP,
}
