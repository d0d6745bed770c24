"""`sealpipe mcp policy`: options and help."""

from __future__ import annotations

from typing import Any

import click

from sealpipe.cli.command import Command, SettingsGroup, options


@click.group(cls=SettingsGroup)
def policy() -> None:
    """Write a policy for assistants, and try what it allows."""


@policy.command(cls=Command)
@options("mcp", only=("policy",), common=("output",))
def init(**values: Any) -> None:
    """Write a commented policy file that allows nothing yet. Never overwrites a file.

    Without --policy, it is mcp.toml in the folder of the config file, where `sealpipe mcp` finds
    it.
    """
    from sealpipe.cli import mcp_policy

    mcp_policy.init(**values)


@policy.command(cls=Command)
@click.argument("tool", metavar="TOOL")
@click.argument("arguments", metavar="ARGUMENTS")
@options("mcp", only=("policy",), common=("state_dir", "output"))
def test(*, tool: str, arguments: str, **values: Any) -> None:
    """Show what the policy says to a call of TOOL with ARGUMENTS. Calls nothing and counts nothing.

    ARGUMENTS is the JSON that an assistant would send, @FILE, or - for standard input. A call that
    is refused exits with 2 and the reason that the assistant would get.
    """
    from sealpipe.cli import mcp_policy

    mcp_policy.test(tool=tool, arguments=arguments, **values)
