"""`sealpipe tools list | call`: the hosted MCP endpoint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sealpipe.cli import context, output
from sealpipe.cli.options import OPAQUE, Command, Family, options
from sealpipe.errors import UsageError

if TYPE_CHECKING:
    from sealpipe.api.mcp import Tool, ToolResult
    from sealpipe.client.sync import Client


@click.group(cls=Family)
def tools() -> None:
    """List and call the tools of the hosted MCP endpoint."""


@tools.command("list", cls=Command)
@options("", common=context.COMMON)
def list_(**values: Any) -> None:
    """The tools that the service offers: name, tab, what it does. JSON has the arguments that they take, too."""
    with _client(values) as client:
        offered = client.list_tools()
    if values["output"] == "json":
        output.json_result({"tools": [_members(tool) for tool in offered]})
    else:
        output.result("".join(f"{_line(tool)}\n" for tool in offered))


@tools.command(cls=Command, context_settings=OPAQUE)
@click.argument("name")
@options("tools", common=context.COMMON)
def call(name: str, **values: Any) -> None:
    """Call a tool, once. Its arguments are named by reference, as the tool's schema wants them:

    sealpipe tools call list_shares --param limit=text:5
    """
    from sealpipe.flows.tools import call_with_references

    params = values["param"]
    if len({param for param, _ in params}) < len(params):
        raise UsageError("--param gives an argument twice", remedy="give every argument once")
    with _client(values) as client:
        result = client.run(call_with_references(client.session, name, params))
    if values["output"] == "json":
        output.json_result({"tool": name, "result": _result_members(result)})
    else:
        _print(result)


def _client(values: dict[str, Any]) -> Client:
    from sealpipe.client.sync import Client

    return Client.of_session(context.session(values))


def _members(tool: Tool) -> dict[str, Any]:
    told = {"name": tool.name, "title": tool.title, "description": tool.description}
    return {**tool.extra, **told, "inputSchema": tool.input_schema}


def _line(tool: Tool) -> str:
    about = (tool.description or tool.title or "").strip().partition("\n")[0]
    return output.harmless(f"{output.printable(tool.name)}\t{output.printable(about)}")


def _result_members(result: ToolResult) -> dict[str, Any]:
    structured = {} if result.structured is None else {"structuredContent": result.structured}
    return {**result.extra, "content": list(result.content), **structured}


def _print(result: ToolResult) -> None:
    from sealpipe.api.mcp import is_text

    if result.text:
        lines = result.text.removesuffix("\n").split("\n")
        output.result("".join(f"{output.harmless(output.printable(line))}\n" for line in lines))
    elif result.structured is not None:
        output.result(f"{output.harmless(output.printable(result.structured))}\n")
    hidden = sum(not is_text(block) for block in result.content)
    if hidden:
        output.note(f"{hidden} part(s) of the answer are no text; --output json has them")
