"""`sealpipe mcp policy`: write a policy for assistants, and try it."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, Final

from sealpipe.cli import render
from sealpipe.cli.local import find_state_folder
from sealpipe.errors import SettingError, UsageError
from sealpipe.mcp.call_limit import count_left
from sealpipe.mcp.tool_policy import Policy
from sealpipe.mcp.tool_policy_file import find_policy_file, load_policy, write_example
from sealpipe.mcp.tools import Use, load_tools

_MAX_SIZE: Final = 1024 * 1024
_FORM: Final = """write them as JSON: '{"code": "AbC123"}', @FILE, or - for standard input"""


def init(**values: Any) -> None:
    """Run `sealpipe mcp policy init`."""
    path = Path(values["policy"]).absolute() if values["policy"] else find_policy_file(os.environ)
    if path is None:
        raise SettingError(
            "there is no folder for config files: HOME is not set", remedy="give --policy FILE"
        )
    write_example(path, os.environ)
    render.print_note(
        f"wrote {render.escape(str(path))}: it allows nothing yet; edit it, then start the "
        "server again"
    )
    if values["output"] == "json":
        render.print_json({"policy": str(path)})


def test(*, tool: str, arguments: str, **values: Any) -> None:
    """Run `sealpipe mcp policy test`."""
    rules: Policy = load_policy(Path(values["policy"]) if values["policy"] else None, os.environ)
    if not rules.allows(tool):
        rules.check(Use(tool))
    found = load_tools().get(tool)
    if found is None:
        raise UsageError(
            "there is no such tool", remedy="see the list of tools in the how-to for assistants"
        )
    given = _read_arguments(arguments)
    rules.check(found.describe(found.read(given)))
    left = count_left(find_state_folder(values, "mcp"), tool, rules.per_hour(tool))
    confirms = rules.confirms(tool)
    if values["output"] == "json":
        render.print_json(
            {"tool": tool, "allowed": True, "confirmation": confirms, "left_this_hour": left}
        )
        return
    confirmation = "a person must confirm it" if confirms else "without confirmation"
    calls = (
        "any number of calls"
        if left is None
        else f"{left} of {render.count(rules.per_hour(tool) or 0, 'call')}"
    )
    render.print_lines([f"{tool} is allowed: {confirmation}, {calls} left in this hour"])


def _read_arguments(text: str) -> dict[str, Any]:
    """Read the arguments of a call. The errors quote nothing of them."""
    try:
        if text == "-":
            content = sys.stdin.buffer.read(_MAX_SIZE + 1)
        elif text.startswith("@"):
            with Path(text[1:]).open("rb") as file:
                content = file.read(_MAX_SIZE + 1)
        else:
            content = text.encode(errors="surrogateescape")
    except OSError as error:
        raise UsageError(
            f"the file of the arguments cannot be read: {error.strerror}", remedy=_FORM
        ) from None
    try:
        members = json.loads(content) if len(content) <= _MAX_SIZE else None
    except (ValueError, RecursionError):
        members = None
    if not isinstance(members, dict):
        raise UsageError("the arguments are not a JSON object of at most 1 MiB", remedy=_FORM)
    return members
