"""Calls about the account: statistics, tools, capabilities, and the access log of shares."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sealpipe.flows import Flow, call
from sealpipe.flows.session import Session

if TYPE_CHECKING:  # imported by the calls that need them
    from sealpipe.api.account import AccessLog, Capabilities, Stats
    from sealpipe.api.mcp import Tool, ToolResult
    from sealpipe.flows.lookup import LogPageWalk


def get_stats(session: Session) -> Flow[Stats]:
    """Get the number of shares, and their views on each of the last 14 days (specification: GET /v1/stats)."""
    from sealpipe.api import account

    return call(account.get_stats(), session.start_budget())


def list_tools(session: Session) -> Flow[tuple[Tool, ...]]:
    """List the tools of the hosted MCP endpoint (specification: POST /v1/mcp)."""
    from sealpipe.flows import tools

    return tools.list_tools(session)


def call_tool(session: Session, name: str, arguments: Mapping[str, Any] | None = None) -> Flow[ToolResult]:
    """Call a tool of the hosted MCP endpoint once. `arguments` are JSON values, as in its `input_schema`.

    Raises MissingScopeError if the key does not have the tool's scope, ToolError if the tool fails or does not exist,
    and OutcomeUnknownError if there is no response: a tool may change something, so a call is never repeated.
    """
    from sealpipe.flows import tools

    return tools.call_tool(session, name, arguments or {})


def get_capabilities(session: Session) -> Flow[Capabilities | None]:
    """Get the capabilities of the key and the plan; None if the service does not have this endpoint."""
    from sealpipe.api import account

    return call(account.get_capabilities(), session.start_budget())


def share_log(
    session: Session,
    short_code: str,
    *,
    limit: int | None = None,
    cursor: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Flow[AccessLog | None]:
    """Get a page of a share's access log (scope `audit:read`); None if the service does not have one.

    `limit` is at most 100, `cursor` the `next_cursor` of the previous page. Raises NotFoundError.
    """
    from sealpipe.api import account

    page = account.get_access_log(short_code, limit=limit, cursor=cursor, since=since, until=until)
    return call(page, session.start_budget())


def iter_share_log(
    session: Session, short_code: str, *, since: datetime | None = None, until: datetime | None = None
) -> LogPageWalk:
    """Iterate over a share's access log, page by page; yields nothing if the service does not have one."""
    from sealpipe.flows.lookup import LogPageWalk

    def fetch(cursor: str | None) -> Flow[AccessLog | None]:
        return share_log(session, short_code, limit=100, cursor=cursor, since=since, until=until)

    return LogPageWalk(fetch)
