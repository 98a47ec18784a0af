"""What the DNS must say for mail to arrive, and what is said where it does not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from digestd.mail_dns import Offline, is_reserved, judge_domain

WELL: Mapping[tuple[str, str], Sequence[str]] = {
    ("digest.reef.org", "TXT"): ("v=spf1 mx -all", "google-site-verification=x"),
    ("s1._domainkey.digest.reef.org", "TXT"): ("v=DKIM1; k=rsa; p=MIIBIjAN",),
    ("_dmarc.reef.org", "TXT"): ("v=DMARC1; p=none; rua=mailto:d@reef.org",),
    ("mail.reef.org", "A"): ("192.0.2.7",),
    ("192.0.2.7", "PTR"): ("mail.reef.org",),
}

#: of our key; whether it signs what a record verifies is another's to find
KEYS = {"s1": lambda record: "MIIBIjAN" in record}


def judged(changed: Mapping[tuple[str, str], Sequence[str]] | None = None, *, host: str = "mail.reef.org") -> list[str]:
    """Return the problems of a domain whose records are well but for these."""
    records = {**WELL, **(changed or {})}
    found = judge_domain("digest.reef.org", host, KEYS, lambda name, kind: records.get((name, kind), ()))
    assert all(one.mend for one in found)
    return [one.problem for one in found]


def test_domain_that_is_well_has_no_problem() -> None:
    """SPF, a key, a policy of the domain above and a reverse name that leads back are all it takes."""
    assert [] == judged()


@pytest.mark.parametrize(
    ("name", "kind", "records", "problem"),
    [
        ("digest.reef.org", "TXT", ("something=else",), "digest.reef.org: no SPF record"),
        (
            "digest.reef.org",
            "TXT",
            ("v=spf1 -all", "v=spf1 mx ~all"),
            "digest.reef.org: 2 SPF records, of which receivers believe none",
        ),
        ("digest.reef.org", "TXT", ("v=spf1 mx +all",), "digest.reef.org: SPF lets everybody send"),
        ("digest.reef.org", "TXT", ("v=spf1 all",), "digest.reef.org: SPF lets everybody send"),
        ("digest.reef.org", "TXT", ("v=spf10 mx -all",), "digest.reef.org: no SPF record"),
        ("s1._domainkey.digest.reef.org", "TXT", (), "s1._domainkey.digest.reef.org: no DKIM key"),
        (
            "s1._domainkey.digest.reef.org",
            "TXT",
            ("v=DKIM1; p=",),
            "s1._domainkey.digest.reef.org: a DKIM record without a key, which says that the key was withdrawn",
        ),
        (
            "s1._domainkey.digest.reef.org",
            "TXT",
            ("v=DKIM1; p=MIIBOther",),
            "s1._domainkey.digest.reef.org: not the key that signs",
        ),
        ("_dmarc.reef.org", "TXT", (), "digest.reef.org: no DMARC record"),
        ("_dmarc.reef.org", "TXT", ("v=DMARC1; rua=mailto:x@y.org",), "_dmarc.reef.org: a DMARC record without a policy"),
        ("_dmarc.digest.reef.org", "TXT", ("v=DMARC1; p=x",), "_dmarc.digest.reef.org: a DMARC record without a policy"),
        ("mail.reef.org", "A", (), "relay mail.reef.org: no such name"),
        ("192.0.2.7", "PTR", (), "relay mail.reef.org at 192.0.2.7: it has no name (PTR)"),
        (
            "192.0.2.7",
            "PTR",
            ("host7.provider.net",),
            "relay mail.reef.org at 192.0.2.7: its names host7.provider.net do not lead back to it",
        ),
    ],
)  # fmt: skip
def test_record_that_is_wrong_is_named(name: str, kind: str, records: Sequence[str], problem: str) -> None:
    """Each record that receivers want and do not find as it must be is one problem with its mend."""
    assert [problem] == judged({(name, kind): records})


def test_softfail_and_redirect_do_not_let_everybody_send() -> None:
    """Neither ~all nor a redirect to another record nor a name that ends in all is a way in for everybody."""
    for text in ("v=spf1 mx ~all", "v=spf1 redirect=_spf.reef.org", "v=spf1 include:spf.install.org ?all"):
        assert [] == judged({("digest.reef.org", "TXT"): (text,)})


def test_domain_that_nobody_knows_is_said_once() -> None:
    """Where the DNS knows nothing at all of a domain, that is the problem, not each record."""
    found = judge_domain("digest.reef.org", "", KEYS, lambda *_: ())
    assert ["digest.reef.org: the DNS that was asked knows nothing of it"] == [one.problem for one in found]


def test_offline_is_no_problem_of_the_domain() -> None:
    """The first question that nobody answers ends the look."""
    asked: list[str] = []

    def nobody(name: str, kind: str) -> None:
        asked.append(f"{name} {kind}")

    with pytest.raises(Offline):
        judge_domain("digest.reef.org", "mail.reef.org", KEYS, nobody)
    assert ["digest.reef.org TXT"] == asked


@pytest.mark.parametrize(
    ("domain", "reserved"),
    [
        ("example.org", True),
        ("digest.Example.org.", True),
        ("reef.example", True),
        ("x.test", True),
        ("localhost", True),
        ("reef.org", False),
        ("myexample.org", False),
        ("example.org.uk", False),
        ("contest", False),
    ],
)
def test_domains_of_nobody(domain: str, *, reserved: bool) -> None:
    """Domains for examples and tests are known as such, others that only look like them are not."""
    assert reserved == is_reserved(domain)
