"""`sealpipe completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from sealpipe.cli import render
from sealpipe.cli.options import Command


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print a shell completion script.

    For bash, add `eval "$(sealpipe completion bash)"` to ~/.bashrc.
    """
    from sealpipe.cli import cli

    kind = get_completion_class(shell)
    if kind is None:  # click knows the three
        raise click.UsageError(f"no completion for {shell}")
    render.print_result(kind(cli, {}, "sealpipe", "_SEALPIPE_COMPLETE").source())
