"""Addresses of readers: read, checked, and written as SMTP takes them. Floor 1, pure.

Entry points: :func:`parse_reader` (one) and :func:`parse_recipients` (a file with one a line).

Libraries that are lenient with addresses rewrite them without a word: of two addresses the first is taken, of
``alice@x)bob@evil`` a part. Here anything but one plain address is refused, so that the address on the wire is the one that
was stored.
"""

from __future__ import annotations

import re
import unicodedata

from email_validator import EmailNotValidError, ValidatedEmail, validate_email

from digestd.errors import ConfigError
from digestd.model.subscription import Reader

#: longest text that is looked at: 254 octets of address and a name
#: Source: RFC 5321 4.5.3.1.3
MOST_TEXT = 600

#: octets before the @-sign
#: Source: RFC 5321 4.5.3.1.1
MOST_LOCAL = 64

#: domain of readers that are channels of the settings, a name that can never be anybody's mail domain (RFC 2606 2)
CHANNEL_DOMAIN = "channel.invalid"

_CHANNEL = re.compile(r"channel:([a-z0-9][a-z0-9_-]{0,39})")
_MOST_NAME = 100
_EXAMPLE = "one address like 'ana@example.org'"
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
#: signs that part addresses, comments and groups where they stand outside of quotes (RFC 5322 3.2.3)
_SPECIALS = frozenset('()<>[]:;@\\,"')
#: last parts of names that are only known near by (RFC 6761, RFC 6762)
_LOCAL_DOMAINS = frozenset({"localhost", "local"})
#: unseen characters that scripts need inside of words: zero width joiner and non-joiner
_JOINERS = "\u200c\u200d"


def parse_reader(text: str, *, line: int | None = None, allow_local: bool = False) -> Reader:
    """Return the reader that a text names: ``ana@example.org`` or ``"Núñez, Ana" <ana@example.org>``.

    The domain is lower-cased, what stands before the @-sign is kept as written. No name server is asked.

    Args:
        text: one address, with or without a displayed name.
        line: 1-based line of the file that it stands on, for the error.
        allow_local: whether hosts of this machine, its net and of tests will do: ``ana@localhost``, ``ana@mail.test``; and
            channels of the settings: ``channel:team`` is the reader ``team@channel.invalid``.

    Raises:
        ConfigError: it is not one plain address; several addresses, comments, groups, routes, quoted local parts and
            control characters are none.

    Source: RFC 5321 4.1.2, RFC 5322 3.4, RFC 6531 3.3.
    """
    where = "address" if line is None else f"line {line}"
    problem = _odd_text(text)
    if problem:
        raise _refused(where, text, problem)
    if allow_local and (channel := _CHANNEL.fullmatch(text.strip(" \t"))):
        text = f"{channel[1]}@{CHANNEL_DOMAIN}"
    name, address = _split_name(text.strip(" \t"), where)
    problem = _odd_address(address)
    if problem:
        raise _refused(where, text, problem)
    try:
        found = _validate(address, allow_local=allow_local)
    except EmailNotValidError as error:
        raise _refused(where, text, str(error).rstrip(".")) from error
    local = unicodedata.normalize("NFC", address.rpartition("@")[0])  # RFC 6532 3.1: one spelling of one mailbox
    if len(local.encode()) > MOST_LOCAL:
        raise _refused(where, text, f"more than {MOST_LOCAL} octets before the @-sign")
    return Reader(
        address=f"{local}@{found.domain}",
        envelope=f"{local}@{found.ascii_domain}",
        name=clean_name(name),
        smtputf8=not local.isascii(),
    )


def parse_recipients(text: str, *, allow_local: bool = False) -> tuple[list[Reader], list[str]]:
    """Return the readers that a file names, one a line, and what is wrong with the other lines.

    Empty lines and lines that begin with ``#`` are passed over. An address that stands there twice is taken once, and the
    second line is a problem, because one of the two is probably a slip.

    Args:
        text: the file.
        allow_local: as in :func:`parse_reader`.

    Returns:
        Readers in the order of their lines; problems in words, each with its line.
    """
    readers: list[Reader] = []
    problems: list[str] = []
    lines: dict[str, int] = {}
    # only line feeds end lines, as in editors; str.splitlines knows eight more signs, and would miscount
    for number, raw in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        written = raw.removesuffix("\r").strip(" \t")
        if not written or written.startswith("#"):
            continue
        try:
            reader = parse_reader(written, line=number, allow_local=allow_local)
        except ConfigError as error:
            problems.append(str(error))
            continue
        earlier = lines.setdefault(reader.canonical, number)
        if earlier != number:
            problems.append(
                f"line {number}: expected each address once, found '{_shown(written)}' on line {earlier} too"
            )
            continue
        readers.append(reader)
    return readers, problems


def channel_name(address: str) -> str | None:
    """Return the channel of the settings that an address stands for, None if it is an address for mail."""
    local, _, domain = address.rpartition("@")
    return local if domain.lower() == CHANNEL_DOMAIN else None


def clean_name(name: str) -> str:
    """Return a displayed name on one line, without control characters and signs that turn the direction of writing."""
    kept = (
        " " if char.isspace() else char
        for char in unicodedata.normalize("NFC", name)
        if char.isspace() or char in _JOINERS or unicodedata.category(char)[0] != "C"
    )
    return " ".join("".join(kept).split())[:_MOST_NAME].rstrip()


def _refused(where: str, text: str, why: str) -> ConfigError:
    return ConfigError(f"{where}: expected {_EXAMPLE}, found '{_shown(text)}' ({_shown(why, 200)})")


def _shown(text: str, limit: int = 80) -> str:
    """Return a text that can stand in a message and on a terminal, whatever it holds."""
    shown = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text[:limit])
    return shown + "\u2026" if len(text) > limit else shown


def _odd_text(text: str) -> str:
    """Return what forbids a text before anything is taken apart, "" if nothing does."""
    if not text.strip():
        return "it is empty"
    if len(text) > MOST_TEXT:
        return f"longer than {MOST_TEXT} characters"
    odd = next((char for char in text if _is_control(char)), None)
    return f"it has the control character U+{ord(odd):04X}" if odd else ""


def _is_control(char: str) -> bool:
    """Whether a character breaks lines or acts unseen: C0, C1, formats, surrogates; a tab is a blank."""
    category = unicodedata.category(char)
    return category in {"Cc", "Cs", "Zl", "Zp"} and char != "\t"


def _split_name(text: str, where: str) -> tuple[str, str]:
    """Return (displayed name, address); the name is "" where there is none.

    Raises:
        ConfigError: the name is such that others would read more than one address.
    """
    if not text.endswith(">"):
        return "", text
    head, bracket, address = text[:-1].rpartition("<")
    written = head.strip(" \t")
    quoted = _QUOTED.fullmatch(written)
    if not bracket or (quoted is None and set(written) & _SPECIALS):
        raise _refused(where, text, "a name with signs in it must stand in quotes, and only one address may follow")
    return (re.sub(r"\\(.)", r"\1", quoted[1]) if quoted else written), address


def _odd_address(address: str) -> str:
    """Return why an address is none of ours although the standard may allow it, "" if nothing speaks against it."""
    if "," in address or ";" in address:
        return "more than one address"
    if any(char.isspace() for char in address):
        return "it has blanks in it"
    if address.startswith("@") or ":" in address:
        return "a route or a scheme"
    if address.startswith("-"):
        return "it begins like an option of a program"
    if '"' in address or "\\" in address:
        return "quoted before the @-sign"
    if "@" in address and set("%!") & set(address.rpartition("@")[0]):
        return "a route through another host"  # "user%there@here", "there!user@here": relays take them apart
    if address.count("@") > 1:
        return "more than one @-sign"
    if set(unicodedata.normalize("NFKC", address.rpartition("@")[0])) & (_SPECIALS | {" "}):
        return "a sign that looks like another one"  # a wide @ or comma, which some programs make narrow
    return ""


def _validate(address: str, *, allow_local: bool) -> ValidatedEmail:
    """Return what the library makes of an address.

    Raises:
        EmailNotValidError: it is none.
    """
    domain = address.rpartition("@")[2].lower()
    local = allow_local and (domain == CHANNEL_DOMAIN or domain.rpartition(".")[2] in _LOCAL_DOMAINS)
    found = validate_email(
        f"{address}.test"
        if local
        else address,  # the library knows no way to allow these; all else is checked the same
        check_deliverability=False,
        test_environment=allow_local,
        globally_deliverable=not allow_local,
        strict=True,
    )
    if local:
        found.domain, found.ascii_domain = found.domain.removesuffix(".test"), found.ascii_domain.removesuffix(".test")
    return found
