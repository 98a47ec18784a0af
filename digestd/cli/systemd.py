"""``digestd systemd``: units for the service manager. Floor 5."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from digestd.cli.common import Shared, say, shared_options

#: where the unit that comes along looks for the program
PACKAGED = "/usr/bin/digestd"

#: what ProtectHome= keeps from a service, of the folders that programs stand in (systemd.exec(5))
HIDDEN = ("home", "root")


@click.group("systemd")
@shared_options
def command(shared: Shared) -> None:
    """Print units for the service manager."""
    del shared


@command.command("print")
@click.option("--socket", "is_socket", is_flag=True, help="The socket of the pages in place of the service.")
@shared_options
def show(shared: Shared, is_socket: bool) -> None:
    """Print the unit that runs this installation.

    \b
    Try:  digestd systemd print | sudo tee /etc/systemd/system/digestd.service
    """  # noqa: D301 # click reads this sign as: leave the lines below as they stand
    from digestd.wiring import data_folder

    del shared
    folder = data_folder(".", "units")
    if is_socket:
        say((folder / "digestd.socket").read_text(encoding="utf-8").rstrip("\n"))
        return
    program = program_of(Path(sys.executable))
    say(unit_for(program, (folder / "digestd.service").read_text(encoding="utf-8")).rstrip("\n"))
    if Path(program.split()[0]).parts[1] in HIDDEN:
        click.echo(
            f"digestd: the unit's sandbox hides home folders, and with them {program.split()[0]}: install digestd"
            " where all can read it",
            err=True,
        )


def program_of(python: Path) -> str:
    """Return how this installation is called: the program beside the interpreter, else the interpreter with the module."""
    beside = python.parent / "digestd"
    return str(beside) if beside.is_file() else f"{python} -m digestd"


def unit_for(program: str, unit: str) -> str:
    """Return a unit that calls this program."""
    return unit.replace(PACKAGED, program)
