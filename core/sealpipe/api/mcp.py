"""The hosted MCP endpoint: tools as operations, and JSON-RPC 2.0 in an HTTP response.

The response is an object or an event stream.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from sealpipe.api import responses
from sealpipe.api.operation import Operation, Resend, Response, is_success
from sealpipe.api.responses import escape_text
from sealpipe.errors import MissingScopeError, ProtocolError, ServiceError, ToolError, UsageError
from sealpipe.version import __version__


def read_events(stream: bytes) -> Iterator[bytes]:
    """Yield the data of each message, in order.

    Comments, empty events and other kinds of events are skipped.

    An event at the end of the stream counts only if its last line is complete.
    """
    lines = re.split(rb"\r\n|\n|\r", stream.removeprefix(b"\xef\xbb\xbf"))
    kind = b""
    data: list[bytes] = []
    for line in [*lines[:-1], b""]:
        if not line:
            if any(data) and kind in (b"", b"message"):
                yield b"\n".join(data)
            kind, data = b"", []
            continue
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            data.append(value)
        elif name == b"event":
            kind = value


def encode(message: Mapping[str, Any]) -> bytes:
    """Encode a message. Raises UsageError for a value that JSON cannot express."""
    try:
        return json.dumps(
            message, ensure_ascii=False, separators=(",", ":"), allow_nan=False
        ).encode()
    except (ValueError, TypeError, RecursionError):  # UnicodeEncodeError is a ValueError
        pass
    raise UsageError(
        "an argument of the tool cannot be written as JSON",
        remedy="give text, numbers, true, false, lists",
    )


def _is_stream(http_response: Response) -> bool:
    return (
        http_response.headers.get("content-type", "").partition(";")[0].strip().lower()
        == "text/event-stream"
    )


def find_response(http_response: Response, number: int) -> dict[str, Any] | None:
    """Return the message that responds to request `number`, if there is one.

    Other messages in a stream are skipped.
    """
    if not _is_stream(http_response):
        return _match_response(responses.parse_object(http_response), number)
    if http_response.flaw:
        raise ProtocolError(
            f"the service's response {http_response.flaw}", status=http_response.status
        )
    for data in read_events(http_response.body):
        with suppress(ProtocolError):  # other messages may have any form
            matched = _match_response(
                responses.parse_object(Response(http_response.status, {}, data)), number
            )
            if matched is not None:
                return matched
    return None


def _match_response(message: dict[str, Any], number: int) -> dict[str, Any] | None:
    is_response = message.get("jsonrpc") == "2.0" and "method" not in message
    message_id = message.get("id")
    is_match = (
        message_id == number and isinstance(message_id, int) and not isinstance(message_id, bool)
    )
    # An error that belongs to no known request has the id null, or none.
    is_unassigned = message_id is None and "error" in message
    return (
        message
        if is_response
        and (is_match or is_unassigned)
        and ("result" in message) != ("error" in message)
        else None
    )


def is_streamed(http_response: Response, number: int) -> bool:
    """Return whether a stream has the response to request `number`; what follows is ignored."""
    return _is_stream(http_response) and find_response(http_response, number) is not None


def is_error_response(http_response: Response, number: int) -> bool:
    """Return whether a failure comes with a JSON-RPC error, which says more than its status."""
    if not 400 <= http_response.status < 500 or http_response.status in (401, 403, 429):
        return False
    try:
        matched = find_response(http_response, number)
    except ProtocolError:
        return False
    return matched is not None and "error" in matched


def make_response_error(error: object, status: int) -> ServiceError:
    """Return the exception for the error of a JSON-RPC response."""
    members = error if isinstance(error, dict) else {}
    code, message = members.get("code"), members.get("message")
    if not isinstance(code, int) or isinstance(code, bool) or not isinstance(message, str):
        return ProtocolError(
            "the service's response has an error that is not a JSON-RPC error", status=status
        )
    return ToolError(
        f"the tool endpoint refused ({code}): {escape_text(message)}",
        status=status,
        error_code=code,
    )


T = TypeVar("T")

REVISIONS = ("2025-11-25", "2025-06-18", "2025-03-26")
"""Supported revisions of the protocol, newest first: we request the first, the service may choose
any.
"""

ACCEPT = "application/json, text/event-stream"

_SESSION_ID = re.compile(r"[\x21-\x7e]{1,1024}", re.ASCII)
_SCOPE = re.compile(r"\b(?:shares|requests|stats|webhooks|audit):(?:read|write|manage)\b")


@dataclass(frozen=True, slots=True)
class McpSession:
    """The state that every message after `initialize` carries.

    `number` is the id of the next request.
    """

    revision: str = ""
    session_id: str | None = field(default=None, repr=False)
    number: int = 1

    def headers(self) -> dict[str, str]:
        """Return the headers of a message."""
        headers = {"content-type": "application/json", "accept": ACCEPT}
        if self.revision:
            headers["mcp-protocol-version"] = self.revision
        if self.session_id is not None:
            headers["mcp-session-id"] = self.session_id
        return headers

    def advance(self) -> McpSession:
        """Return the session with the next request's id."""
        return replace(self, number=self.number + 1)


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool as the service lists it. `input_schema` is the JSON Schema of its arguments."""

    name: str
    title: str | None
    description: str | None
    input_schema: Mapping[str, Any]
    extra: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of a tool.

    `content` has its blocks as they came (`{"type": "text", "text": ...}` and others).
    """

    content: tuple[Mapping[str, Any], ...]
    structured: Mapping[str, Any] | None = None
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The text blocks, joined by newlines."""
        return "\n".join(block["text"] for block in self.content if is_text(block))


def is_text(block: Mapping[str, Any]) -> bool:
    """Return whether a block of a tool's result is text."""
    return block.get("type") == "text" and isinstance(block.get("text"), str)


def initialize() -> Operation[McpSession]:
    """The first request. Its result is the session: the caller must check its revision."""
    params = {
        "protocolVersion": REVISIONS[0],
        "capabilities": {},
        "clientInfo": {"name": "sealpipe", "version": __version__},
    }
    return _make_operation("initialize", params, McpSession(), Resend.READ, _decode_session)


def confirm_initialized(session: McpSession) -> Operation[None]:
    """The notification that ends the handshake. It has no result."""
    return Operation(
        "reach the tools",
        "POST",
        "/mcp",
        Resend.READ,
        lambda _: None,
        body=encode({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        headers=session.headers(),
    )


def list_page(
    session: McpSession, cursor: str | None
) -> Operation[tuple[tuple[Tool, ...], str | None]]:
    """tools/list: a page of tools, and the cursor of the next one."""
    return _make_operation(
        "tools/list",
        {} if cursor is None else {"cursor": cursor},
        session,
        Resend.READ,
        _decode_tools,
    )


def call(session: McpSession, name: str, arguments: Mapping[str, Any]) -> Operation[ToolResult]:
    """tools/call. Never sent twice: a tool may change something."""

    def read(members: dict[str, Any], _: Response) -> ToolResult:
        return _decode_result(members, name)

    return _make_operation(
        "tools/call",
        {"name": name, "arguments": dict(arguments)},
        session,
        Resend.NEVER,
        read,
        if_unknown="look whether the tool did its work before you call it again: it is never sent "
        "twice",
    )


_OPERATION_NAMES = {
    "initialize": "reach the tools",
    "tools/list": "list the tools",
    "tools/call": "call the tool",
}


def _make_operation(
    method: str,
    params: Mapping[str, Any],
    session: McpSession,
    resend: Resend,
    read: Callable[[dict[str, Any], Response], T],
    if_unknown: str | None = None,
) -> Operation[T]:
    def decode(http_response: Response) -> T:
        response = find_response(http_response, session.number)
        if response is None:
            raise ProtocolError(
                "the service's response has no result for our request", status=http_response.status
            )
        if "error" in response:
            raise make_response_error(response["error"], http_response.status)
        return read(responses.read_object(response, "result"), http_response)

    return Operation(
        _OPERATION_NAMES[method],
        "POST",
        "/mcp",
        resend,
        decode,
        body=encode(
            {"jsonrpc": "2.0", "id": session.number, "method": method, "params": dict(params)}
        ),
        headers=session.headers(),
        is_settled=lambda http_response: (
            is_success(http_response) or is_error_response(http_response, session.number)
        ),
        is_complete=lambda http_response: is_streamed(http_response, session.number),
        if_unknown=if_unknown,
    )


def _decode_session(members: dict[str, Any], http_response: Response) -> McpSession:
    revision = responses.read_text(members, "protocolVersion")
    if revision is None:
        raise ProtocolError(
            "the service's response names no revision of the Model Context Protocol"
        )
    session_id = http_response.headers.get("mcp-session-id")
    if session_id is not None and not _SESSION_ID.fullmatch(session_id):
        raise ProtocolError("the service's response has an invalid session id")
    return McpSession(revision, session_id, number=2)


def _decode_tools(members: dict[str, Any], _: Response) -> tuple[tuple[Tool, ...], str | None]:
    if "tools" not in members:
        raise ProtocolError("the service's response has no tools")
    return tuple(map(_decode_tool, responses.read_rows(members, "tools"))), responses.read_text(
        members, "nextCursor"
    ) or None


def _decode_tool(row: dict[str, Any]) -> Tool:
    name = responses.read_text(row, "name")
    if not name:
        raise ProtocolError("the service's response has a tool without a name")
    known = ("name", "title", "description", "inputSchema")
    return Tool(
        name,
        responses.read_text(row, "title"),
        responses.read_text(row, "description"),
        responses.read_object(row, "inputSchema"),
        responses.select_unknown(row, *known),
    )


def _decode_result(members: dict[str, Any], name: str) -> ToolResult:
    known = ("content", "structuredContent", "isError")
    structured = (
        responses.read_object(members, "structuredContent")
        if "structuredContent" in members
        else None
    )
    result = ToolResult(
        tuple(responses.read_rows(members, "content")),
        structured,
        responses.select_unknown(members, *known),
    )
    if responses.read_bool(members, "isError"):
        raise _make_tool_error(name, result.text)
    return result


def _make_tool_error(name: str, text: str) -> ServiceError:
    """Return a tool's own error.

    Its text names a missing scope, with the tool (specification: POST /v1/mcp).
    """
    message = f"the tool {escape_text(name, 100)} failed" + (
        f": {escape_text(text)}" if text else ""
    )
    scope = _SCOPE.search(text)
    if scope is not None and name in text:
        return MissingScopeError(
            message, remedy=f"create an API key with the scope {scope[0]}, and revoke this one"
        )
    return ToolError(message)
