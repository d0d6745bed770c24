"""`sealpipe mcp`: options and help."""

from __future__ import annotations

from typing import Any

import click

from sealpipe.cli.command import COMMON, Command, SettingsGroup, options
from sealpipe.cli.usage.mcp_policy import policy as policy_group
from sealpipe.errors import NotConfiguredError
from sealpipe.installation import format_command


class _Group(SettingsGroup, Command):
    """A group that is a command, too: an unexpected argument is not echoed."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse options and variables.

        Before a command of the group, a wrong one of the server's is no error.
        """
        is_resilient = ctx.resilient_parsing
        ctx.resilient_parsing = is_resilient or (args[:1] != [] and args[0] in self.commands)
        try:
            return super().parse_args(ctx, args)
        finally:
            ctx.resilient_parsing = is_resilient


@click.group(cls=_Group, invoke_without_command=True)
@options("mcp", common=COMMON)
@click.pass_context
def mcp(ctx: click.Context, /, **values: Any) -> None:
    """Serve a local MCP server on stdin and stdout: assistants ask for secrets and use them, and
    never see one.

    Started by an assistant's client, not by hand. With --http, it serves clients of this machine
    that have the token, until it is stopped (Ctrl-C, SIGTERM). Without a policy, an assistant may
    only check the set-up.
    """
    if ctx.invoked_subcommand is not None:
        return
    _check_package()
    from sealpipe.cli import mcp

    mcp.mcp(**values)


def _check_package() -> None:
    """Raise NotConfiguredError if the package `mcp` is not installed."""
    try:
        import mcp.types  # noqa: F401 - whether it is installed
    except ImportError:
        raise NotConfiguredError(
            "the MCP server needs a package that is not installed",
            remedy=format_command(["sealpipe[mcp]"]),
        ) from None


mcp.add_command(policy_group)
