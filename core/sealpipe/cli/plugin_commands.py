"""Commands that plugins add by the hook `sealpipe_commands`: find them by name, and contain their failures."""

from __future__ import annotations

from typing import Any

import click

from sealpipe.cli import context, render
from sealpipe.errors import PluginError, SealpipeError
from sealpipe.registry import Registry

EXPECTED = (SealpipeError, click.UsageError, click.exceptions.Exit)
"""What a command may raise, whoever wrote it."""


def find_commands(registry: Registry) -> dict[str, Any]:
    """Find all plugin commands, by name. Looks up all entry points."""
    from sealpipe.cli.main import COMMANDS

    found = registry.commands(click.Group, lambda name: name in COMMANDS)
    return {name: each for name, each in found.items() if isinstance(each.command, click.Command)}


def find_command(name: str) -> click.Command | None:
    """Find one by name; None if there is none: then the broken plugins are printed."""
    registry = context.make_registry()
    found = find_commands(registry).get(name)
    if found is not None:
        known: click.Command = found.command
        return known
    print_problems(registry)
    return None


def print_problems(registry: Registry) -> None:
    """Print a line for each plugin that cannot be used, or only in part."""
    for name, problem in registry.problems.items():
        render.print_note(f"sealpipe: the plugin {render.escape(name)} {render.escape(problem)}")


def wrap_error(name: str, error: Exception) -> PluginError:
    """Wrap the error of a plugin command: in its author's words if meant for users, else by its type."""
    if isinstance(error, click.ClickException):
        return PluginError(render.escape(error.format_message()))
    return PluginError(
        f"the plugin command {name} raised an unexpected {type(error).__name__}",
        remedy="report it to the plugin's author; `sealpipe plugins` shows which plugin it is",
    )
