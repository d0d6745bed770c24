"""`sealpipe plugins`."""

from __future__ import annotations

from typing import Any

from sealpipe.cli import render
from sealpipe.cli.local import make_registry
from sealpipe.cli.plugin_commands import find_commands, print_problems
from sealpipe.doctor.plugins import find_missing_requirements
from sealpipe.reference import PARAMETERS
from sealpipe.registry.safe_calls import format_install_command


def plugins(**values: Any) -> None:
    """Run `sealpipe plugins`."""
    registry = make_registry()
    rows = [_describe_plugin(each) for each in registry.catalog.list_plugins()]
    rows += [
        _describe_command(name, each) for name, each in sorted(find_commands(registry).items())
    ]
    if values["output"] == "json":
        problems = [
            {"plugin": name, "problem": problem}
            for name, problem in registry.catalog.problems.items()
        ]
        render.print_json({"plugins": rows, "problems": problems})
        return
    width = max(len(row["name"]) for row in rows)
    lines = [line for row in rows for line in _format_plugin(row, width, details=values["all"])]
    lines += _list_common_parameters() if values["all"] else []
    render.print_lines(map(render.escape, lines))
    print_problems(registry)


def _describe_plugin(plugin: Any) -> dict[str, Any]:
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


def _format_plugin(row: dict[str, Any], width: int, *, details: bool) -> list[str]:
    flaw = (
        f"  (not installed: {', '.join(row['missing'])}; {row['install']})"
        if row["missing"]
        else ""
    )
    lines = [f"{row['kind']:<7}  {row['name']:<{width}}  {row['from']}  {row['summary']}{flaw}"]
    if details:
        lines += [f"    of the plugin {row['plugin']}"] if row["plugin"] else []
        lines += [f"    needs {need}" for need in row["needs"]]
        lines += [f"    reads its documents as {row['format']}"] if row["format"] else []
        lines += [f"    ?{name}=  {text}" for name, text in row["params"].items()]
    return lines


def _list_common_parameters() -> list[str]:
    return ["every source", *(f"    ?{name}=  {text}" for name, text in PARAMETERS.items())]
