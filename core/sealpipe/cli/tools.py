"""`sealpipe tools list | call`: the hosted MCP endpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from sealpipe.cli import context, render
from sealpipe.cli.options import CodeCommand, Command, SettingsGroup, options
from sealpipe.errors import UsageError
from sealpipe.secret import Secret

if TYPE_CHECKING:
    from sealpipe.api.mcp import Tool, ToolResult


_SECRET_TOOLS = {"rotate_webhook_secret": "the webhook's new secret"}
"""Tools whose result holds a secret, and which (specification: POST /v1/mcp)."""

_MIN_MASK_LENGTH = 16
"""Characters of a text that may be such a secret: masking shorter words would hide half of the log."""


@click.group(cls=SettingsGroup)
def tools() -> None:
    """List and call the tools of the hosted MCP endpoint."""


@tools.command("list", cls=Command)
@options("", common=context.COMMON)
def list_(**values: Any) -> None:
    """List the service's tools: name, tab, description. --output json includes their arguments."""
    with context.open_client(values) as client:
        tools_listed = client.list_tools()
    if values["output"] == "json":
        render.print_json({"tools": [_to_members(tool) for tool in tools_listed]})
    else:
        render.print_lines(map(_format_line, tools_listed))


@tools.command(cls=CodeCommand)
@click.argument("name")
@options("tools", common=context.COMMON)
def call(name: str, **values: Any) -> None:
    """Call a tool exactly once, without retries. Pass its arguments by reference, as the tool's schema describes them:

    sealpipe tools call list_shares --param limit=text:5
    """
    from sealpipe.cli import disclosure
    from sealpipe.flows.tools import call_with_references

    secret = _SECRET_TOOLS.get(name)
    leave = disclosure.plan_disclosure(
        secret or "", "call it outside of CI", printing=values["print"], elsewhere=secret is None
    )
    params = values["param"]
    if len({param for param, _ in params}) < len(params):
        raise UsageError("--param sets an argument twice", remedy="set each argument once")
    with context.open_client(values) as client:
        result = client.run(call_with_references(client.session, name, params))
        if secret is None:
            _print_masked(name, result, values)
        else:
            leave.write(
                client.session.registry,
                _find_texts(_describe_result(result)),
                lambda: _print_masked(name, result, values),
            )


def _print_masked(name: str, result: ToolResult, values: dict[str, Any]) -> None:
    if values["output"] == "json":
        render.print_json({"tool": name, "result": _describe_result(result)})
    else:
        _print_result(result)


def _find_texts(value: object) -> Iterator[Secret]:
    """Every text in a result, and each of its words: a secret may stand among others."""
    if isinstance(value, str):
        yield from (Secret(text) for text in dict.fromkeys([value, *value.split()]) if len(text) >= _MIN_MASK_LENGTH)
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _find_texts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _find_texts(each)


def _to_members(tool: Tool) -> dict[str, Any]:
    members = {"name": tool.name, "title": tool.title, "description": tool.description}
    return {**tool.extra, **members, "inputSchema": tool.input_schema}


def _format_line(tool: Tool) -> str:
    description = (tool.description or tool.title or "").strip().partition("\n")[0]
    return f"{render.escape(tool.name)}\t{render.escape(description)}"


def _describe_result(result: ToolResult) -> dict[str, Any]:
    structured = {} if result.structured is None else {"structuredContent": result.structured}
    return {**result.extra, "content": list(result.content), **structured}


def _print_result(result: ToolResult) -> None:
    from sealpipe.api.mcp import is_text

    if result.text:
        render.print_lines(map(render.escape, result.text.removesuffix("\n").split("\n")))
    elif result.structured is not None:
        render.print_lines([render.escape(result.structured)])
    secrets = sum(not is_text(block) for block in result.content)
    if secrets:
        render.print_note(f"{render.count(secrets, 'part')} of the result not shown as text: use --output json")
