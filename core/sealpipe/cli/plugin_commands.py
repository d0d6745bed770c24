"""The commands that plugins add to `sealpipe`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sealpipe.cli import render
from sealpipe.cli.command import make_registry
from sealpipe.cli.commands import COMMANDS
from sealpipe.errors import PluginError, SealpipeError

if TYPE_CHECKING:
    from sealpipe.registry import Registry

EXPECTED = (SealpipeError, click.UsageError, click.exceptions.Exit)
"""Exceptions that any command may raise, even one of a plugin."""


def find_commands(registry: Registry) -> dict[str, Any]:
    """Find all plugin commands, by name. Looks up all entry points."""
    from sealpipe.registry.commands import collect_commands

    commands = collect_commands(registry.catalog, click.Group, lambda name: name in COMMANDS)
    return {
        name: each for name, each in commands.items() if isinstance(each.command, click.Command)
    }


def find_command(name: str) -> click.Command | None:
    """Find a plugin command by name.

    If there is none, print the plugins that failed to load, and return None.
    """
    registry = make_registry()
    plugin_command = find_commands(registry).get(name)
    if plugin_command is not None:
        known: click.Command = plugin_command.command
        return known
    print_problems(registry)
    return None


def print_problems(registry: Registry) -> None:
    """Print a line for each plugin that failed to load, at least in part."""
    for name, problem in registry.catalog.problems.items():
        render.print_note(f"sealpipe: the plugin {render.escape(name)} {render.escape(problem)}")


def wrap_error(name: str, error: Exception) -> PluginError:
    """Wrap an error of a plugin command.

    With its message if that is meant for users, otherwise with its type.
    """
    if isinstance(error, click.ClickException):
        return PluginError(render.escape(error.format_message()))
    return PluginError(
        f"the plugin command {name} raised an unexpected {type(error).__name__}",
        remedy="report it to the plugin's author; `sealpipe plugins` shows which plugin it is",
    )
