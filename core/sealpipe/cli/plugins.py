"""`sealpipe plugins`."""

from __future__ import annotations

from typing import Any

import click

from sealpipe.cli import context, render
from sealpipe.cli.options import OFFLINE, Command, options


@click.command(cls=Command)
@options("plugins", common=OFFLINE)
def plugins(**values: Any) -> None:
    """List installed plugins: built-in ones, and those of other distributions.

    Imports no backend and makes no connection; test one with `sealpipe doctor NAME`.
    """
    from sealpipe.cli import plugin_commands

    registry = context.make_registry()
    rows = [_members(each) for each in registry.listing()]
    rows += [_command(name, each) for name, each in sorted(plugin_commands.find_commands(registry).items())]
    if values["output"] == "json":
        problems = [{"plugin": name, "problem": problem} for name, problem in registry.problems.items()]
        render.print_json({"plugins": rows, "problems": problems})
        return
    width = max(len(row["name"]) for row in rows)
    lines = [line for row in rows for line in _lines(row, width, details=values["all"])]
    lines += _common() if values["all"] else []
    render.print_lines(map(render.escape, lines))
    plugin_commands.print_problems(registry)


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
