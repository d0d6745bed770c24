"""`sealpipe plugins`."""

from __future__ import annotations

from typing import Any

import click

from sealpipe.cli import context, render
from sealpipe.cli.options import OFFLINE, Command, options
from sealpipe.errors import PluginError, SealpipeError
from sealpipe.registry import Registry


@click.command(cls=Command)
@options("plugins", common=OFFLINE)
def plugins(**values: Any) -> None:
    """List installed plugins: built-in ones, and those of other distributions.

    Imports no backend and makes no connection; test one with `sealpipe doctor NAME`.
    """
    from sealpipe.cli import plugins

    registry = context.make_registry()
    rows = [_to_members(each) for each in registry.list_plugins()]
    rows += [_describe_command(name, each) for name, each in sorted(plugins.find_commands(registry).items())]
    if values["output"] == "json":
        problems = [{"plugin": name, "problem": problem} for name, problem in registry.problems.items()]
        render.print_json({"plugins": rows, "problems": problems})
        return
    width = max(len(row["name"]) for row in rows)
    lines = [line for row in rows for line in _format_lines(row, width, details=values["all"])]
    lines += _list_common_parameters() if values["all"] else []
    render.print_lines(map(render.escape, lines))
    plugins.print_problems(registry)


def _to_members(plugin: Any) -> dict[str, Any]:
    from sealpipe.doctor.plugins import find_missing_requirements
    from sealpipe.registry.calls import format_install_command

    info, missing = plugin.info, find_missing_requirements(plugin.info.needs)
    return {
        "kind": plugin.kind,
        "name": info.name,
        "summary": info.summary,
        "from": f"{plugin.origin} {plugin.version}".strip() or "built in",
        "plugin": plugin.plugin or None,
        "needs": list(info.needs),
        "missing": missing,
        "install": format_install_command(info) if missing else None,
        "params": dict(getattr(info, "params", {})),
        "capabilities": list(info.capabilities),
        "format": getattr(info, "format", "") or None,
    }


def _describe_command(name: str, command: Any) -> dict[str, Any]:
    return {
        "kind": "command",
        "name": name,
        "summary": command.command.get_short_help_str(),
        "from": f"{command.origin} {command.version}".strip(),
        "plugin": command.plugin,
        "needs": [],
        "missing": [],
        "install": None,
        "params": {},
        "capabilities": [],
        "format": None,
    }


def _format_lines(row: dict[str, Any], width: int, *, details: bool) -> list[str]:
    flaw = f"  (not installed: {', '.join(row['missing'])}; {row['install']})" if row["missing"] else ""
    lines = [f"{row['kind']:<7}  {row['name']:<{width}}  {row['from']}  {row['summary']}{flaw}"]
    if details:
        lines += [f"    of the plugin {row['plugin']}"] if row["plugin"] else []
        lines += [f"    needs {need}" for need in row["needs"]]
        lines += [f"    reads its documents as {row['format']}"] if row["format"] else []
        lines += [f"    ?{name}=  {text}" for name, text in row["params"].items()]
    return lines


def _list_common_parameters() -> list[str]:
    from sealpipe.reference import PARAMETERS

    return ["every source", *(f"    ?{name}=  {text}" for name, text in PARAMETERS.items())]


EXPECTED = (SealpipeError, click.UsageError, click.exceptions.Exit)
"""What a command may raise, whoever wrote it."""


def find_commands(registry: Registry) -> dict[str, Any]:
    """Find all plugin commands, by name. Looks up all entry points."""
    from sealpipe.cli import COMMANDS

    commands = registry.list_commands(click.Group, lambda name: name in COMMANDS)
    return {name: each for name, each in commands.items() if isinstance(each.command, click.Command)}


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
