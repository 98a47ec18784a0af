"""``digestd audit``: is everything accounted for, exactly once? Floor 5."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from digestd.cli.common import Shared, json_option, say, say_json, shared_options

if TYPE_CHECKING:
    from digestd.model.audit import AuditReport


@click.command("audit")
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Hold the outbox against what was kept: a Maildir, a folder of mails or an mbox file.",
)
@json_option
@shared_options
def command(shared: Shared, against: Path | None, as_json: bool) -> int:
    """Check that every sighting, digest and mail is accounted for, exactly once.

    Nothing is written, and it may run at any time: files in done/ and quarantine/ of the watched folders, papers, slots,
    digests, mails. Exit status 1 if anything is not as it must be.
    """
    from digestd.flows.audit import audit
    from digestd.flows.kept_mail import count_message_ids

    with shared.app() as app:
        kept, unnamed = count_message_ids(against) if against is not None else (None, 0)
        report = audit(app.store, now=app.now, kept=kept, unnamed=unnamed, shelves=app.file_shelves())
    if as_json:
        say_json(report_json(report))
    else:
        _tell(report)
    return 0 if report.clean else 1


def _tell(report: AuditReport) -> None:
    for check in report.checks:
        for finding in check.findings:
            say(str(finding))
        if check.total > len(check.findings):
            say(f"{check.code} {check.total - len(check.findings)} more: {check.what}")
    for note in report.notes:
        click.echo(f"note: {note}", err=True)
    if report.kept is not None:
        kept = report.kept
        click.echo(f"kept: {kept.mails} mails, {kept.doubled} of them more than once, {kept.unnamed} unnamed", err=True)
    total = sum(check.total for check in report.checks)
    say(f"{len(report.checks)} rules, {total} findings" if total else f"{len(report.checks)} rules hold")


def report_json(report: AuditReport) -> dict[str, object]:
    """Return a report as ``digestd audit --json`` prints it; all keys are always there."""
    kept, doubt = report.kept, report.doubt
    return {
        "clean": report.clean,
        "checks": [
            {"code": check.code, "what": check.what, "looked_at": check.looked_at, "findings": check.total}
            for check in report.checks
        ],
        "findings": [
            {"code": one.code, "thing": one.thing, "found": one.found, "expected": one.expected}
            for one in report.findings
        ],
        "uncertain": {
            "opened": doubt.opened,
            "resent": doubt.resent,
            "held": doubt.held,
            "resolved": doubt.resolved,
        },
        "kept": None if kept is None else {"mails": kept.mails, "unnamed": kept.unnamed, "doubled": kept.doubled},
        "notes": list(report.notes),
    }
