"""Commands of plugins: looked up by name."""

from __future__ import annotations

from typing import Any

import click

from sealpipe.cli import render
from sealpipe.cli.commands import COMMANDS
from sealpipe.cli.local import make_registry
from sealpipe.registry import Registry
from sealpipe.registry.commands import collect_commands


def find_commands(registry: Registry) -> dict[str, Any]:
    """Find all plugin commands, by name. Looks up all entry points."""

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
