"""`sealpipe plugins`."""

from __future__ import annotations

from typing import Any

import click

from sealpipe.cli import output
from sealpipe.cli.options import OFFLINE, Command, options


@click.command(cls=Command)
@options("plugins", common=OFFLINE)
def plugins(**values: Any) -> None:
    """The plugins that there are: built-in ones, and those of installed distributions.

    Looks them up, but imports no backend and calls nobody; `sealpipe doctor NAME` tries one.
    """
    from sealpipe.registry import Registry

    registry = Registry()
    rows = [_members(info, origin) for info, origin in registry.listing()]
    if values["output"] == "json":
        problems = [{"plugin": name, "problem": problem} for name, problem in registry.problems.items()]
        output.json_result({"plugins": rows, "problems": problems})
        return
    width = max(len(row["name"]) for row in rows)
    lines = [line for row in rows for line in _lines(row, width, details=values["all"])]
    lines += _common() if values["all"] else []
    output.result("".join(f"{output.printable(line)}\n" for line in lines))
    for name, problem in registry.problems.items():
        output.note(f"sealpipe: the plugin {output.printable(name)} {output.printable(problem)}")


def _members(info: Any, origin: str) -> dict[str, Any]:
    from sealpipe.doctor.installed import missing

    return {
        "kind": "source",
        "name": info.name,
        "summary": info.summary,
        "from": origin or "built in",
        "needs": list(info.needs),
        "missing": missing(info.needs),
        "params": dict(info.params),
        "capabilities": list(info.capabilities),
        "format": info.format or None,
    }


def _lines(row: dict[str, Any], width: int, *, details: bool) -> list[str]:
    flaw = f"  (not installed: {', '.join(row['missing'])})" if row["missing"] else ""
    lines = [f"{row['kind']}  {row['name']:<{width}}  {row['from']}  {row['summary']}{flaw}"]
    if details:
        lines += [f"    needs {need}" for need in row["needs"]]
        lines += [f"    reads its documents as {row['format']}"] if row["format"] else []
        lines += [f"    ?{name}=  {text}" for name, text in row["params"].items()]
    return lines


def _common() -> list[str]:
    from sealpipe.reference import PARAMETERS

    return ["every source", *(f"    ?{name}=  {text}" for name, text in PARAMETERS.items())]
