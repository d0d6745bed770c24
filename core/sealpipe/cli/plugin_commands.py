"""Commands that third-party plugins add by the hook `sealpipe_commands`: found by name, kept apart when they fail."""

from __future__ import annotations

from typing import Any

import click

from sealpipe.cli import context, render
from sealpipe.errors import PluginError, SealpipeError
from sealpipe.registry import Registry

EXPECTED = (SealpipeError, click.UsageError, click.exceptions.Exit)
"""What a command may end with, whoever wrote it."""


def find_commands(registry: Registry) -> dict[str, Any]:
    """All of them by name, each a `registry.commands.Foreign`. Looks up all entry points."""
    from sealpipe.cli.main import COMMANDS

    found = registry.commands(click.Group, lambda name: name in COMMANDS)
    return {name: each for name, each in found.items() if isinstance(each.command, click.Command)}


def find_command(name: str) -> click.Command | None:
    """The one of that name; None where there is none, and then the plugins that are broken are told."""
    registry = context.make_registry()
    found = find_commands(registry).get(name)
    if found is not None:
        known: click.Command = found.command
        return known
    print_problems(registry)
    return None


def print_problems(registry: Registry) -> None:
    """A line for each plugin that cannot be used, or only in part."""
    for name, problem in registry.problems.items():
        render.print_note(f"sealpipe: the plugin {render.escape(name)} {render.escape(problem)}")


def wrap_error(name: str, error: Exception) -> PluginError:
    """How a command that is not ours has failed: in its author's words where they meant it so, else by its type."""
    if isinstance(error, click.ClickException):
        return PluginError(render.escape(error.format_message()))
    return PluginError(
        f"the command {name} failed in a way it should not ({type(error).__name__})",
        remedy="`sealpipe plugins` says whose it is: ask its author",
    )
