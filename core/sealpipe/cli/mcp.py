"""`sealpipe mcp`: serve the tools of a local MCP server on stdin and stdout."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from sealpipe.cli.command import COMMON, Command, SettingsGroup, find_state_folder, make_session, options, run_config
from sealpipe.errors import NotConfiguredError, PolicyError

if TYPE_CHECKING:
    from sealpipe.aio import AsyncClient
    from sealpipe.mcp.server import Setup
    from sealpipe.mcp.tools import Use


class _Group(SettingsGroup, Command):
    """A group that is a command, too: an unexpected argument is not echoed."""


@click.group(cls=_Group, invoke_without_command=True)
@options("mcp", common=COMMON)
@click.pass_context
def mcp(ctx: click.Context, /, **values: Any) -> None:
    """Serve a local MCP server on stdin and stdout: assistants ask for secrets and use them, and never see one.

    Started by an assistant's client, not by hand. Without a policy, an assistant may only check the set-up.
    """
    if ctx.invoked_subcommand is not None:
        return
    try:
        import mcp.types  # noqa: F401 - whether it is installed
    except ImportError:
        from sealpipe.installation import format_command  # for an error only

        raise NotConfiguredError(
            "the MCP server needs a package that is not installed", remedy=format_command(["sealpipe[mcp]"])
        ) from None
    import asyncio

    from sealpipe.mcp.server import serve_stdio

    asyncio.run(serve_stdio(make_setup(values)))


def make_setup(values: dict[str, Any]) -> Setup:
    """Make what a server is made of, from the options. The session is opened when a tool first needs it."""
    from sealpipe.mcp.server import Setup

    clients: list[AsyncClient] = []

    def open_client(origin: tuple[tuple[str, str], ...]) -> AsyncClient:
        if not clients:
            from sealpipe.aio import AsyncClient

            session = make_session(values)
            session.registry()  # made here: the calls' threads have no command whose options they could read
            clients.append(AsyncClient.from_session(session))
        return clients[0].with_origin(*origin)

    folder = find_state_folder(values, "mcp")
    return Setup(_DenyAll(), lambda _tool, _limit: None, folder, open_client, run_config(), values)


class _DenyAll:
    """The policy without a file."""

    def allows(self, tool: str) -> bool:
        return tool == "check"

    def check(self, use: Use) -> None:
        if not self.allows(use.tool):
            raise PolicyError(f"there is no policy that allows {use.tool}", remedy="write a policy")

    def confirms(self, tool: str) -> bool:
        return not self.allows(tool)

    def per_hour(self, tool: str) -> int:  # noqa: ARG002 - the protocol's
        return 60
