"""The account: stats, tools, capabilities, and who opened what."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from sealpipe.flows import Flow, call
from sealpipe.flows.session import Session

if TYPE_CHECKING:  # who shares needs none of these: they are imported where they are called
    from sealpipe.api.account import AccessLog, Capabilities, Stats
    from sealpipe.api.mcp import Tool, ToolResult
    from sealpipe.flows.lookup import LogPageWalk


def get_stats(session: Session) -> Flow[Stats]:
    """How many shares there are, and how often they were viewed in 14 days (specification: GET /v1/stats)."""
    from sealpipe.api import account

    return call(account.get_stats(), session.start_budget())


def list_tools(session: Session) -> Flow[tuple[Tool, ...]]:
    """The tools of the hosted MCP endpoint (specification: POST /v1/mcp)."""
    from sealpipe.flows import tools

    return tools.list_tools(session)


def call_tool(session: Session, name: str, arguments: Mapping[str, Any] | None = None) -> Flow[ToolResult]:
    """Call a tool of the hosted MCP endpoint, once. `arguments` are JSON values, as its `input_schema` says.

    Raises MissingScopeError where the key lacks the tool's scope, ToolError where the tool fails or is none, and
    OutcomeUnknownError where no answer came: a tool may change something, so a call is never repeated.
    """
    from sealpipe.flows import tools

    return tools.call_tool(session, name, arguments or {})


def get_capabilities(session: Session) -> Flow[Capabilities | None]:
    """What the key and the plan can do; None where the service does not offer to tell."""
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
    """A page of a share's access log (scope `audit:read`); None where the service offers none.

    `limit` is at most 100, `cursor` the `next_cursor` of the page before. Raises NotFoundError.
    """
    from sealpipe.api import account

    page = account.get_access_log(short_code, limit=limit, cursor=cursor, since=since, until=until)
    return call(page, session.start_budget())


def iter_share_log(
    session: Session, short_code: str, *, since: datetime | None = None, until: datetime | None = None
) -> LogPageWalk:
    """Every entry of a share's access log, page by page; none where the service offers no log."""
    from sealpipe.flows.lookup import LogPageWalk

    def fetch(cursor: str | None) -> Flow[AccessLog | None]:
        return share_log(session, short_code, limit=100, cursor=cursor, since=since, until=until)

    return LogPageWalk(fetch)
