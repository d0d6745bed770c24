"""The generated part of docs/reference/assistant-tools.md: the tools of `sealpipe mcp`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from sealpipe.mcp.tools import Tool, load_tools
from unit.docs.generator.markdown import code, table, wrap

TOOL_ERRORS = {
    "request_secret": "exit code 14 (the sink or the channel cannot be used: nothing was created), "
    "`DeliveryError` (the request exists, and its link was not sent), `OutcomeUnknownError` (it "
    "may exist: `list` finds out)",
    "wait_for_submission": "`NotFoundError` (this server made no such request)",
    "collect_secret": "`NotFoundError`, `PendingError` (there is no submission yet), "
    "`NoSubmissionError` (it expired without one), `UnreadableSubmissionError`, exit code 14 (the "
    "sink failed: nothing is lost, and the call can be repeated)",
    "share_secret": "exit code 14 (a source or the channel cannot be used: nothing was sent), "
    "`DeliveryError` (the share exists, and its link was not sent or may have arrived; `detail` "
    "has its short code and the `sealpipe resume` for a person; the same call sends what was "
    "certainly not sent), `OutcomeUnknownError` (the same call finds out)",
    "run_with_secrets": "`UsageError` (there is no such program, a loader or a shell obeys the "
    "variable, or a secret has less than 4 characters and could not be redacted), exit code 14 (a "
    "source cannot be read); nothing was started",
    "status": "`NotFoundError` (this server did not make it)",
    "expire": "`NotFoundError` (this server did not make it), `UsageError` (the request has a "
    "submission), `OutcomeUnknownError` (the call can be repeated: it sends no second DELETE)",
}
"""Errors of a tool that not every tool has."""


def tools() -> str:
    """Return each tool with its arguments, its answer and its errors."""
    return "".join(map(_tool, load_tools().values()))


def _tool(tool: Tool[Any, Any]) -> str:
    text = f"\n## {tool.name}\n\n{wrap(tool.description)}\n"
    for title, schema in (("argument", tool.schema), ("answer", tool.output)):
        if rows := [*_members(schema)]:
            text += f"\n{table((title, 'type', 'meaning'), rows)}"
    return text + (
        f"\n{wrap(f'Errors: {TOOL_ERRORS[tool.name]}.')}\n" if tool.name in TOOL_ERRORS else ""
    )


def _members(schema: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield name, type and meaning of each member; of lists of objects, theirs too."""
    for name, member in schema.get("properties", {}).items():
        is_needed = name in schema["required"] and not prefix
        shown = f"**`{prefix}{name}`**" if is_needed else f"`{prefix}{name}`"
        yield shown, _type(member), member.get("description", "")
        if member.get("type") == "array":
            yield from _members(member["items"], f"{name}[].")


def _type(member: Mapping[str, Any]) -> str:
    kinds = member["type"] if isinstance(member["type"], list) else [member["type"]]
    if "enum" in member:
        return ", ".join(map(code, member["enum"]))
    if "untrusted" in member.get("properties", {}):
        return "untrusted"
    limits = [f"{member.get(low, 0)} to {member[high]}" for low, high in _LIMITS if high in member]
    return f"{' or '.join(kinds)}{f', {limits[0]}' if limits else ''}"


_LIMITS = (("minimum", "maximum"), ("minItems", "maxItems"))
