"""`sealpipe mcp`: serve the tools of a local MCP server on stdin and stdout."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sealpipe.cli import render
from sealpipe.cli.command import (
    COMMON,
    Command,
    SettingsGroup,
    find_state_folder,
    make_session,
    options,
    run_config,
)
from sealpipe.cli.mcp_policy import policy as policy_group
from sealpipe.errors import NotConfiguredError

if TYPE_CHECKING:
    from sealpipe.async_client import AsyncClient
    from sealpipe.mcp.server import Setup


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
    try:
        import mcp.types  # noqa: F401 - whether it is installed
    except ImportError:
        from sealpipe.installation import format_command  # for an error only

        raise NotConfiguredError(
            "the MCP server needs a package that is not installed",
            remedy=format_command(["sealpipe[mcp]"]),
        ) from None
    import asyncio

    _end_on_hangup()
    if values["http"] is not None:
        asyncio.run(_serve_http(values))
        render.print_note("stopped")
        return
    from sealpipe.mcp.stdio import serve_stdio

    asyncio.run(serve_stdio(make_setup(values)))


def _end_on_hangup() -> None:
    """Let the end of the terminal end the server and its commands, as SIGTERM does."""
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        signal.signal(signal.SIGHUP, lambda *_: os.kill(os.getpid(), signal.SIGTERM))


async def _serve_http(values: dict[str, Any]) -> None:
    from sealpipe.mcp.http import serve_http
    from sealpipe.mcp.token_file import TOKEN_FILE, load_token
    from sealpipe.state.files import make_private_directory

    setup = make_setup(values)
    file = (
        Path(values["token_file"])
        if values["token_file"]
        else make_private_directory(setup.state) / TOKEN_FILE
    )
    token = load_token(file)

    def announce(url: str) -> None:
        render.print_note(f"sealpipe: serving on {url}; the token is in {render.escape(str(file))}")

    await serve_http(setup, values["http"], token, announce)


def make_setup(values: dict[str, Any]) -> Setup:
    """Make what a server is made of, from the options.

    The session is opened when a tool first needs it.
    """
    from sealpipe.cli.run_command import open_context
    from sealpipe.mcp import call_limit
    from sealpipe.mcp.audit import add_audit_log, report_call
    from sealpipe.mcp.server import Setup
    from sealpipe.mcp.tool_policy_file import load_policy

    policy = load_policy(Path(values["policy"]) if values["policy"] else None, os.environ)
    folder = find_state_folder(values, "mcp")
    context = open_context(values)
    # made here, and below: the calls' threads have no command whose options they could read
    context.registry()
    context = context._replace(policy_hooks=add_audit_log(context.policy_hooks, folder))
    clients: list[AsyncClient] = []

    def open_client(origin: tuple[tuple[str, str], ...]) -> AsyncClient:
        if not clients:
            from sealpipe.async_client import AsyncClient

            session = replace(make_session(values), policy_hooks=context.policy_hooks)
            session.registry()
            clients.append(AsyncClient.from_session(session))
        return clients[0].with_origin(*origin)

    async def close() -> None:
        while clients:
            await clients.pop().close()

    def report(*call: Any) -> None:
        for warning in report_call(context, *call):
            render.print_note(f"sealpipe: {render.escape(warning)}")

    take = partial(call_limit.take, folder)
    return Setup(policy, take, folder, open_client, run_config(), values, report, close)


mcp.add_command(policy_group)
