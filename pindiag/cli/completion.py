"""`pindiag completion`: the script that lets a shell complete pindiag's words."""

from __future__ import annotations

import click


@click.command("completion", short_help="Print the completion script for a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the script that completes subcommands, options and file names in SHELL.

    \b
    bash:  pindiag completion bash > ~/.local/share/bash-completion/completions/pindiag
    zsh:   pindiag completion zsh > "${fpath[1]}/_pindiag"
    fish:  pindiag completion fish > ~/.config/fish/completions/pindiag.fish
    """  # noqa: D301 - click wants the character itself
    from click.shell_completion import get_completion_class

    from pindiag.cli import console

    made = get_completion_class(shell)
    assert made is not None, "the choice names click's own"
    console.payload(made(context.find_root().command, {}, "pindiag", "_PINDIAG_COMPLETE").source())
