"""The tools of the hosted MCP endpoint (specification: POST /v1/mcp)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from sealpipe import actions, policy
from sealpipe.api import mcp
from sealpipe.api.mcp import McpSession, Tool, ToolResult
from sealpipe.api.responses import escape_text
from sealpipe.budget import Budget, call
from sealpipe.errors import ProtocolError, Remedy, ServiceError, UsageError
from sealpipe.plugin import OutgoingAction
from sealpipe.reference import Reference
from sealpipe.secret import Secret
from sealpipe.session import Session
from sealpipe.sources.resolve import Cache, resolve_value

T = TypeVar("T")
Exchange = Callable[[McpSession, Budget], T]

MAX_PAGES = 100
"""Maximum number of pages of tools: an endless list must not keep us busy for ever."""


def list_tools(session: Session) -> tuple[Tool, ...]:
    """List the tools. See `Client.list_tools`."""

    def exchange(mcp_session: McpSession, budget: Budget) -> tuple[Tool, ...]:
        tools, _ = _list_all(mcp_session, budget)
        return tools

    return _run_in_session(session, exchange)


def call_tool(session: Session, name: str, arguments: Mapping[str, Any]) -> ToolResult:
    """Call a tool once. See `Client.call_tool`."""
    body = mcp.call(McpSession(), name, arguments).body or b""
    session.gate.check("the call of the tool", body)  # before the handshake
    plan = describe_tool_call(session, name, [None] if arguments else [])

    def work(session: Session) -> ToolResult:
        return _run_in_session(
            session,
            lambda mcp_session, budget: call(mcp.call(mcp_session, name, arguments), budget),
        )

    return policy.run_under_policy(session, plan, work)


def describe_tool_call(
    session: Session, name: str, arguments: Iterable[Reference | None]
) -> OutgoingAction:
    """Describe a call of a tool; an argument that is not a reference is a literal."""
    return OutgoingAction(
        "tool",
        sources=actions.identify_sources(session, arguments),
        tools=(name,),
        service=session.base_url,
    )


def call_with_references(
    session: Session, name: str, params: Sequence[tuple[str, Reference]]
) -> ToolResult:
    """Call a tool with the values of references, each converted to the type in the tool's schema.

    References are read before anything is sent; one that is optional and missing is left out.
    """
    session.check_clear(name, *(param for param, _ in params))
    plan = describe_tool_call(session, name, [ref for _, ref in params])
    return policy.run_under_policy(
        session, plan, lambda cleared: _call_with_references(cleared, name, params)
    )


def _call_with_references(
    session: Session, name: str, params: Sequence[tuple[str, Reference]]
) -> ToolResult:
    cache: Cache = {}
    values: dict[str, Secret] = {}
    for param, ref in params:
        value = resolve_value(ref, session.registry, cache)
        if value is not None:
            values[param] = value
    session.check_clear(*(value.reveal() for value in values.values()))

    def exchange(mcp_session: McpSession, budget: Budget) -> ToolResult:
        tools: tuple[Tool, ...] = ()
        if values:
            tools, mcp_session = _list_all(mcp_session, budget)
        # A tool that is not listed is called anyway: the service's error explains what is wrong.
        schema = next((tool.input_schema for tool in tools if tool.name == name), {})
        return call(mcp.call(mcp_session, name, convert_arguments(values, schema)), budget)

    return _run_in_session(session, exchange)


def _run_in_session(session: Session, exchange: Exchange[T]) -> T:
    budget = session.start_budget()
    mcp_session = _open_session(budget)
    try:
        return exchange(mcp_session, budget)
    except ServiceError as error:
        if error.status != 404 or mcp_session.session_id is None:
            raise
    # The service has ended our session without doing anything: try once more, in a new session.
    return exchange(_open_session(budget), budget)


def _open_session(budget: Budget) -> McpSession:
    try:
        mcp_session = call(mcp.initialize(), budget)
    except ProtocolError as error:
        if error.status != 404:
            raise
        raise error.copy_with(
            remedy="the service may offer no tools here; else check that the base URL is its API's"
        ) from error.__cause__
    if mcp_session.revision not in mcp.REVISIONS:
        raise ProtocolError(
            f"the service uses revision {escape_text(mcp_session.revision, 40)} of the "
            "Model Context Protocol; "
            f"sealpipe supports {', '.join(mcp.REVISIONS)}",
            remedy="a newer sealpipe may support it",
        )
    call(mcp.confirm_initialized(mcp_session), budget)
    return mcp_session


def _list_all(mcp_session: McpSession, budget: Budget) -> tuple[tuple[Tool, ...], McpSession]:
    """Return every tool, and the MCP session after the last page."""
    tools: list[Tool] = []
    cursor: str | None = None
    cursors: set[str | None] = set()
    while len(cursors) < MAX_PAGES:
        cursors.add(cursor)
        page, cursor = call(mcp.list_page(mcp_session, cursor), budget)
        mcp_session = mcp_session.advance()
        tools += page
        if cursor is None or cursor in cursors:  # a repeated page ends the list, as in every list
            return tuple(tools), mcp_session
    raise ProtocolError(
        "the service's list of tools does not end", remedy="you can still call the tool by its name"
    )


_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,17})", re.ASCII)
_NUMBER = re.compile(
    r"-?(?:0|[1-9][0-9]{0,17})(?:\.[0-9]{1,30})?(?:[eE][+-]?[0-9]{1,2})?", re.ASCII
)


def convert_arguments(values: Mapping[str, Secret], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a tool. A value whose type the schema does not give stays text.

    UsageError names the argument that has the wrong type, never its value.
    """
    properties = schema.get("properties")
    definitions = properties if isinstance(properties, Mapping) else {}
    return {
        name: _convert(name, value.reveal(), definitions.get(name))
        for name, value in values.items()
    }


def _convert(name: str, text: str, schema: object) -> Any:
    types = schema.get("type") if isinstance(schema, Mapping) else None
    kinds = types if isinstance(types, list) else [types]
    readers = [_READERS[kind] for kind in kinds if isinstance(kind, str) and kind in _READERS]
    if "string" in kinds or not readers:
        return text
    for _, read in readers:
        value = read(text)
        if value is not None:
            return value
    raise UsageError(
        f"the argument {escape_text(name, 100)} is not {' or '.join(what for what, _ in readers)}",
        remedy=Remedy(
            "see `sealpipe tools list --output json` for the tool's arguments",
            python="see client.list_tools() for the tool's arguments",
        ),
    )


def _parse_integer(text: str) -> int | None:
    return int(text) if _INTEGER.fullmatch(text) else None


def _parse_number(text: str) -> Any:
    return json.loads(text) if _NUMBER.fullmatch(text) else None


def _make_json_parser(kind: type) -> Callable[[str], Any]:
    def read(text: str) -> Any:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, kind) else None

    return read


_READERS: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "integer": ("a whole number", _parse_integer),
    "number": ("a number", _parse_number),
    "boolean": ("true or false", {"true": True, "false": False}.get),
    "array": ("a list in JSON", _make_json_parser(list)),
    "object": ("an object in JSON", _make_json_parser(dict)),
}
