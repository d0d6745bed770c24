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
    rows = [_members(each) for each in registry.listing()]
    rows += [_command(name, each) for name, each in sorted(plugins.find_commands(registry).items())]
    if values["output"] == "json":
        problems = [{"plugin": name, "problem": problem} for name, problem in registry.problems.items()]
        render.print_json({"plugins": rows, "problems": problems})
        return
    width = max(len(row["name"]) for row in rows)
    lines = [line for row in rows for line in _lines(row, width, details=values["all"])]
    lines += _common() if values["all"] else []
    render.print_lines(map(render.escape, lines))
    plugins.print_problems(registry)


def _members(each: Any) -> dict[str, Any]:
    from sealpipe.doctor.plugins import missing_requirements
    from sealpipe.registry.calls import install_command

    info, lacking = each.info, missing_requirements(each.info.needs)
    return {
        "kind": each.kind,
        "name": info.name,
        "summary": info.summary,
        "from": f"{each.origin} {each.version}".strip() or "built in",
        "plugin": each.plugin or None,
        "needs": list(info.needs),
        "missing": lacking,
        "install": install_command(info) if lacking else None,
        "params": dict(getattr(info, "params", {})),
        "capabilities": list(info.capabilities),
        "format": getattr(info, "format", "") or None,
    }


def _command(name: str, each: Any) -> dict[str, Any]:
    return {
        "kind": "command",
        "name": name,
        "summary": each.command.get_short_help_str(),
        "from": f"{each.origin} {each.version}".strip(),
        "plugin": each.plugin,
        "needs": [],
        "missing": [],
        "install": None,
        "params": {},
        "capabilities": [],
        "format": None,
    }


def _lines(row: dict[str, Any], width: int, *, details: bool) -> list[str]:
    flaw = f"  (not installed: {', '.join(row['missing'])}; {row['install']})" if row["missing"] else ""
    lines = [f"{row['kind']:<7}  {row['name']:<{width}}  {row['from']}  {row['summary']}{flaw}"]
    if details:
        lines += [f"    of the plugin {row['plugin']}"] if row["plugin"] else []
        lines += [f"    needs {need}" for need in row["needs"]]
        lines += [f"    reads its documents as {row['format']}"] if row["format"] else []
        lines += [f"    ?{name}=  {text}" for name, text in row["params"].items()]
    return lines


def _common() -> list[str]:
    from sealpipe.reference import PARAMETERS

    return ["every source", *(f"    ?{name}=  {text}" for name, text in PARAMETERS.items())]


EXPECTED = (SealpipeError, click.UsageError, click.exceptions.Exit)
"""What a command may raise, whoever wrote it."""


def find_commands(registry: Registry) -> dict[str, Any]:
    """Find all plugin commands, by name. Looks up all entry points."""
    from sealpipe.cli import COMMANDS

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
