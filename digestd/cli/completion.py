"""``digestd completion``: what a shell needs to complete commands and options. Floor 5."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from digestd.cli.common import Shared, say, shared_options


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@shared_options
def command(shared: Shared, shell: str) -> None:
    """Print the completion script of a shell.

    \b
    bash:  digestd completion bash
             > ~/.local/share/bash-completion/completions/digestd
    zsh:   digestd completion zsh > "${fpath[1]}/_digestd"
    fish:  digestd completion fish > ~/.config/fish/completions/digestd.fish
    """  # noqa: D301 # click reads this sign as: leave the lines below as they stand
    from digestd.cli import cli

    del shared
    kind = get_completion_class(shell)
    assert kind is not None, "click knows these shells"
    # not .source(): for bash that starts the shell to ask for its version
    script = kind(cli, {}, "digestd", "_DIGESTD_COMPLETE")
    say((script.source_template % script.source_vars()).strip())
