"""The commands for the account.

`sealpipe stats`, and `sealpipe tools list | call` for the hosted MCP endpoint.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from sealpipe.api.account import Stats
from sealpipe.api.mcp import Tool, ToolResult, is_text
from sealpipe.cli import disclosure, render
from sealpipe.cli.opening import open_client
from sealpipe.errors import UsageError
from sealpipe.secret import Secret
from sealpipe.tools import call_with_references

_SECRET_TOOLS = {"rotate_webhook_secret": "the webhook's new secret"}
"""Tools whose result contains a secret, with a name for it (specification: POST /v1/mcp)."""

_MIN_MASK_LENGTH = 16
"""Minimum length of a text that may be such a secret: masking shorter words would hide half of the
log.
"""


def stats(**values: Any) -> None:
    """Run `sealpipe stats`."""
    with open_client(values) as client:
        figures = client.get_stats()
    if values["output"] == "json":
        render.print_json(_describe_stats(figures))
    elif sys.stdout is not None and sys.stdout.isatty():
        block = "█" if (sys.stdout.encoding or "").lower().startswith("utf") else "#"
        render.print_result(draw_chart(figures, shutil.get_terminal_size().columns, block))
    else:
        render.print_result("".join(f"{day}\t{views}\n" for day, views in _list_rows(figures)))
        render.print_note(_format_totals(figures))


def draw_chart(figures: Stats, columns: int, block: str) -> str:
    """Draw a bar for each day, scaled to `columns`, with the totals below. Ends with a newline."""
    rows = _list_rows(figures)
    digits = max((len(views) for _, views in rows), default=0)
    highest = max((max(0, views or 0) for _, views in figures.daily_views), default=0)
    width = max(1, min(columns, 100) - len("2026-01-01  ") - digits - 2)
    lines = []
    for (day, shown), (_, views) in zip(rows, figures.daily_views, strict=True):
        # every day with views gets a bar
        length = max(1, width * views // highest) if views and views > 0 else 0
        lines.append(f"{day}  {shown:>{digits}} {block * length}".rstrip())
    return "\n".join([*lines, *([""] if lines else []), _format_totals(figures)]) + "\n"


def _list_rows(figures: Stats) -> list[tuple[str, str]]:
    return [(_format_count(day), _format_count(views)) for day, views in figures.daily_views]


def _format_totals(figures: Stats) -> str:
    active, expired, views = map(
        _format_count, (figures.active, figures.expired, figures.total_viewed)
    )
    return f"{active} active, {expired} expired, {views} views in total"


def _format_count(value: object) -> str:
    return "-" if value is None else str(value)


def _describe_stats(figures: Stats) -> dict[str, Any]:
    days = [
        {"date": None if day is None else str(day), "count": views}
        for day, views in figures.daily_views
    ]
    shares = {
        "active": figures.active,
        "expired": figures.expired,
        "total_viewed": figures.total_viewed,
    }
    return {"shares": shares, "daily_views": days}


def list_tools(**values: Any) -> None:
    """Run `sealpipe tools list`."""
    with open_client(values) as client:
        tools_listed = client.list_tools()
    if values["output"] == "json":
        render.print_json({"tools": [_describe_tool(tool) for tool in tools_listed]})
    else:
        render.print_lines(map(_format_tool, tools_listed))


def call(name: str, **values: Any) -> None:
    """Run `sealpipe tools call`."""
    secret = _SECRET_TOOLS.get(name)
    leave = disclosure.plan_disclosure(
        secret or "", "call it outside of CI", printing=values["print"], elsewhere=secret is None
    )
    params = values["param"]
    if len({param for param, _ in params}) < len(params):
        raise UsageError("--param sets an argument twice", remedy="set each argument once")
    with open_client(values) as client:
        result = call_with_references(client.session, name, params)
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
    """Yield every text in a result, and each of its words: one of them may be the secret."""
    if isinstance(value, str):
        yield from (
            Secret(text)
            for text in dict.fromkeys([value, *value.split()])
            if len(text) >= _MIN_MASK_LENGTH
        )
    elif isinstance(value, Mapping):
        for each in value.values():
            yield from _find_texts(each)
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _find_texts(each)


def _describe_tool(tool: Tool) -> dict[str, Any]:
    members = {"name": tool.name, "title": tool.title, "description": tool.description}
    return {**tool.extra, **members, "inputSchema": tool.input_schema}


def _format_tool(tool: Tool) -> str:
    description = (tool.description or tool.title or "").strip().partition("\n")[0]
    return f"{render.escape(tool.name)}\t{render.escape(description)}"


def _describe_result(result: ToolResult) -> dict[str, Any]:
    structured = {} if result.structured is None else {"structuredContent": result.structured}
    return {**result.extra, "content": list(result.content), **structured}


def _print_result(result: ToolResult) -> None:
    if result.text:
        render.print_lines(map(render.escape, result.text.removesuffix("\n").split("\n")))
    elif result.structured is not None:
        render.print_lines([render.escape(result.structured)])
    secrets = sum(not is_text(block) for block in result.content)
    if secrets:
        render.print_note(
            f"{render.count(secrets, 'part')} of the result not shown as text: use --output json"
        )
