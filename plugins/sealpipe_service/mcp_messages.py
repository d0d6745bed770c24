"""Messages of the Model Context Protocol: JSON-RPC 2.0, and the methods of a server with tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from . import mcp_tools
from .context import Call

REVISIONS = ("2025-11-25", "2025-06-18", "2025-03-26")
"""Supported revisions, newest first."""
BATCH_REVISION = REVISIONS[-1]
"""The revision with batches, and the default of a message that names none."""

PARSE_ERROR, INVALID_REQUEST, NO_METHOD, INVALID_PARAMS = -32700, -32600, -32601, -32602
REFUSED = -32000

Message = dict[str, Any]
Params = Mapping[str, Any]


class MessageError(Exception):  # caught and turned into a response
    """Ends a request with a JSON-RPC error."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


def error(message_id: object, code: int, message: str) -> Message:
    """Return an error response; the id is null if none could be read."""
    return {"jsonrpc": "2.0", "id": message_id, "error": {"code": code, "message": message}}


def respond(call: Call, message: object) -> Message | None:
    """Return the response to a message; None for notifications and for responses."""
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        return error(None, INVALID_REQUEST, "a message must be an object with jsonrpc 2.0")
    method, message_id = message.get("method"), message.get("id")
    if (
        "method" not in message
        and "id" in message
        and ("result" in message) != ("error" in message)
    ):
        return None
    if not isinstance(method, str):
        return error(None, INVALID_REQUEST, "a request must name its method")
    if "id" not in message:
        return None
    if not isinstance(message_id, str | int) or isinstance(message_id, bool):
        return error(None, INVALID_REQUEST, "the id of a request must be a string or an integer")
    try:
        return {
            "jsonrpc": "2.0",
            "id": message_id,
            "result": _result(call, method, message.get("params", {})),
        }
    except MessageError as wrong:
        return error(message_id, wrong.code, str(wrong))


def _result(call: Call, method: str, params: object) -> Params:
    handler = _METHODS.get(method)
    if handler is None:
        raise MessageError(NO_METHOD, f"unknown method {method}")
    if not isinstance(params, dict):
        raise MessageError(INVALID_PARAMS, "params must be an object")
    return handler(call, params)


def _initialize(call: Call, params: Params) -> Params:
    requested = params.get("protocolVersion")
    if not isinstance(requested, str) or not isinstance(params.get("clientInfo"), dict):
        raise MessageError(
            INVALID_PARAMS, "initialize takes protocolVersion, capabilities and clientInfo"
        )
    return {
        "protocolVersion": requested if requested in REVISIONS else REVISIONS[0],
        "capabilities": {"tools": {}},
        "serverInfo": {
            "name": f"{call.service.tag}-{call.service.kind}",
            "title": "Secret sharing, rehearsed" if call.service.is_rehearsal else "Secret sharing",
            "version": "1",
        },
        "instructions": (
            "No tool reads the contents of a share or a submission. Each tool needs a scope of "
            "the key."
        ),
    }


def _ping(call: Call, params: Params) -> Params:  # noqa: ARG001  # signature set by the table
    return {}


def _list_tools(call: Call, params: Params) -> Params:  # noqa: ARG001  # signature set by the table
    if params.get("cursor") is not None:
        raise MessageError(INVALID_PARAMS, "the tools have only one page: no cursor is valid")
    return {"tools": [tool.describe() for tool in mcp_tools.TOOLS]}


def _call_tool(call: Call, params: Params) -> Params:
    name, arguments = params.get("name"), params.get("arguments")
    tool = next((each for each in mcp_tools.TOOLS if each.name == name), None)
    if tool is None:
        raise MessageError(
            INVALID_PARAMS,
            f"unknown tool {name}" if isinstance(name, str) else "a call must name its tool",
        )
    if not isinstance(arguments, dict | None):
        raise MessageError(INVALID_PARAMS, "arguments must be an object")
    return mcp_tools.run(call, tool, arguments or {})


_METHODS: Mapping[str, Callable[[Call, Params], Params]] = {
    "initialize": _initialize,
    "ping": _ping,
    "tools/list": _list_tools,
    "tools/call": _call_tool,
}
