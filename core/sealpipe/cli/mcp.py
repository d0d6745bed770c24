"""`sealpipe mcp`: serve the tools of a local MCP server on stdin and stdout."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from sealpipe.async_client import AsyncClient
from sealpipe.cli import render
from sealpipe.cli.command import run_config
from sealpipe.cli.local import find_state_folder, open_context
from sealpipe.cli.opening import make_session
from sealpipe.event_loop import run_in_loop
from sealpipe.mcp import call_limit
from sealpipe.mcp.audit import add_audit_log, report_call
from sealpipe.mcp.server import Setup
from sealpipe.mcp.stdio import serve_stdio
from sealpipe.mcp.token_file import TOKEN_FILE, load_token
from sealpipe.mcp.tool_policy_file import load_policy
from sealpipe.state.files import make_private_directory


def mcp(**values: Any) -> None:
    """Run `sealpipe mcp`."""
    _end_on_hangup()
    if values["http"] is not None:
        asyncio.run(_serve_http(values))
        render.print_note("stopped")
        return

    run_in_loop(serve_stdio(make_setup(values)))


def _end_on_hangup() -> None:
    """Let the end of the terminal end the server and its commands, as SIGTERM does."""
    if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
        signal.signal(signal.SIGHUP, lambda *_: os.kill(os.getpid(), signal.SIGTERM))


async def _serve_http(values: dict[str, Any]) -> None:
    from sealpipe.mcp.http import serve_http  # a server of its own, which stdio does without

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

    policy = load_policy(Path(values["policy"]) if values["policy"] else None, os.environ)
    folder = find_state_folder(values, "mcp")
    context = open_context(values)
    # made here, and below: the calls' threads have no command whose options they could read
    context.registry()
    context = context._replace(policy_hooks=add_audit_log(context.policy_hooks, folder))
    clients: list[AsyncClient] = []

    def open_client(origin: tuple[tuple[str, str], ...]) -> AsyncClient:
        if not clients:
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
