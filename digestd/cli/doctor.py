"""``digestd doctor``: what is wrong, and the mend. Floor 5."""

from __future__ import annotations

import click

from digestd.cli.common import Shared, fold, json_option, say_json, shared_options


@click.command("doctor")
@json_option
@shared_options
def command(shared: Shared, as_json: bool) -> int:
    """Look for what would keep digestd from its work, and say the mend.

    Looks at history, disk, permissions, mail relay (login, nothing is sent), DNS records of the sender, the public address,
    clock, versions with known faults, templates and settings. Exit status 1 if anything is wrong.
    """
    from digestd.doctor import examine

    with shared.app() as app:
        found = examine(app, shared.config)
    wrong = [one for one in found if one.problem]
    if as_json:
        rows = [
            {"what": one.what, "problem": one.problem or None, "mend": one.mend or None, "note": one.note or None}
            for one in found
        ]
        say_json({"well": not wrong, "examined": rows})
    else:
        for one in found:
            fold(f"! {one.what}: {one.problem}" if one.problem else f"  {one.what}: {one.note or 'well'}")
            if one.mend:
                fold(f"    {one.mend}")
    return 1 if wrong else 0
