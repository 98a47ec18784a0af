"""``digestd why``: why a reader was told of a paper, or was not. Floor 5."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from digestd.cli.common import Shared, instant_text, json_option, say, say_json, shared_options

if TYPE_CHECKING:
    from digestd.flows.why import Explanation, Seen, Verdict
    from digestd.model.paper import KnownPaper


@click.command("why")
@click.argument("paper", metavar="PAPER")
@click.argument("address", metavar="ADDRESS")
@json_option
@shared_options
def command(shared: Shared, paper: str, address: str, as_json: bool) -> int:
    """Say when a paper was seen, as what, and what a reader was told of it, or why not.

    PAPER is its public id, arXiv number, DOI, link, or words of its title. Exit status 1 if it fits several papers, or none.
    """
    from digestd.errors import NotFoundError
    from digestd.flows.why import explain, find_paper

    with shared.app() as app:
        found = find_paper(app.store, paper)
        if not found:
            raise NotFoundError(f"paper '{paper}': expected a name or words of one that was seen, found none")
        if len(found) > 1:
            return _ambiguous(paper, found, as_json=as_json)
        explained = explain(app.store, found[0], address, now=app.now)
    if as_json:
        say_json(explanation_json(explained))
    else:
        _tell(explained)
    return 0


def _ambiguous(text: str, found: Sequence[KnownPaper], *, as_json: bool) -> int:
    from digestd.flows.why import MOST_CANDIDATES

    if as_json:
        say_json({"candidates": [{"public_id": one.public_id, "title": one.paper.title} for one in found]})
    else:
        for known in found[:MOST_CANDIDATES]:
            say(f"{known.public_id}  {known.effective_at:%Y-%m-%d}  {known.paper.title}")
    click.echo(f"digestd: paper '{text}': expected one paper, found {len(found)}; name it by its id", err=True)
    return 1


def _tell(explained: Explanation) -> None:
    from digestd.phrases import full_day

    paper = explained.paper
    say(f"{paper.paper.title}")
    say(f"  {paper.public_id}, first seen {full_day(paper.first_seen_at.date())}")
    for seen in explained.seen:
        where = f" ({seen.where.origin or seen.where.source})" if seen.where.source else ""
        say(
            f"  {seen.topic.name}: {str(seen.row.kind).replace('_', ' ')}, seen {full_day(seen.row.seen_at.date())}{where}"
        )
        say(f"    {seen.why}")
    for verdict in explained.verdicts:
        say(f"{explained.reader.address}")
        for told in verdict.told:
            say(f"  {told.words}")
        for reason in verdict.reasons:
            say(f"  {reason}")
    for one in explained.suppressions:
        scope = "to this address" if one.scope == "all" else "for one subscription"
        say(f"  nothing is sent {scope} since {full_day(one.at.date())}: {one.reason} {one.evidence}".rstrip())


def explanation_json(explained: Explanation) -> dict[str, object]:
    """Return an explanation as ``digestd why --json`` prints it; all keys are always there."""
    paper = explained.paper
    return {
        "paper": {
            "public_id": paper.public_id,
            "title": paper.paper.title,
            "published": paper.paper.published and paper.paper.published.isoformat(),
            "first_seen_at": instant_text(paper.first_seen_at),
            "counted": paper.counted,
        },
        "seen": [_seen_json(seen) for seen in explained.seen],
        "address": explained.reader.address,
        "subscriptions": [_verdict_json(verdict) for verdict in explained.verdicts],
        "suppressions": [
            {"scope": one.scope, "reason": one.reason, "at": instant_text(one.at), "evidence": one.evidence}
            for one in explained.suppressions
        ],
    }


def _seen_json(seen: Seen) -> dict[str, object]:
    return {
        "topic": seen.topic.slug,
        "topic_name": seen.topic.name,
        "kind": str(seen.row.kind),
        "via": seen.row.via,
        "position": seen.row.position,
        "seen_at": instant_text(seen.row.seen_at),
        "source": seen.where.source,
        "origin": seen.where.origin,
        "why": seen.why,
    }


def _verdict_json(verdict: Verdict) -> dict[str, object]:
    return {
        "subscription": verdict.subscription.public_id,
        "state": str(verdict.subscription.state),
        "told": [
            {
                "digest": told.telling.digest_key,
                "made_at": instant_text(told.telling.made_at),
                "section": told.telling.section,
                "topic": told.telling.topic,
                "delivery": told.delivery.key if told.delivery is not None else None,
                "mail": str(told.delivery.state) if told.delivery is not None else None,
                "words": told.words,
            }
            for told in verdict.told
        ],
        "reasons": list(verdict.reasons),
    }
