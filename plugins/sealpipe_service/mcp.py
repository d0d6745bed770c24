"""POST /v1/mcp: the Model Context Protocol over streamable HTTP.

Specification: POST /v1/mcp; gaps: MCP.

Supports revisions 2025-03-26 to 2025-11-25. There are no sessions and no streams: each POST gets
one JSON object, and GET and DELETE get 405. `mcp_messages` has the messages, `mcp_tools` the tools.
"""

from __future__ import annotations

from typing import Any, NoReturn

from . import mcp_messages
from .context import Call, HttpRequest, Service
from .json_bodies import MEDIA_TYPE, media_type, read_json, require_json
from .mcp_messages import BATCH_REVISION, INVALID_REQUEST, PARSE_ERROR, REFUSED, REVISIONS, error
from .responses import RefusalError, Response, json_response

_ACCEPTED = (MEDIA_TYPE, "text/event-stream")
MOST_OF_BATCH = 20
"""A batch is one call of the key's rate."""


def post(call: Call) -> Response:
    """POST /v1/mcp: a message; in the oldest revision also a batch."""
    revision = _check_headers(call.service, call.http_request)
    message = _read(call.http_request.body)
    if isinstance(message, list) and revision == BATCH_REVISION:
        return _batch(call, message)
    response = mcp_messages.respond(call, message)
    if response is None:
        return Response(202, b"")
    # an invalid message has no id to respond to, so the status is 400
    has_no_id = response["id"] is None
    return json_response(400 if has_no_id else 200, response)


def method_not_allowed(call: Call) -> Response:  # noqa: ARG001  # signature of all handlers
    """Refuse GET and DELETE: there are no streams and no sessions."""
    return _http_error(
        405, "only POST: there are no streams and no sessions here", (("allow", "POST"),)
    ).response


def _batch(call: Call, messages: list[Any]) -> Response:
    if not messages:
        _refuse(400, INVALID_REQUEST, "a batch must have at least one message")
    if len(messages) > MOST_OF_BATCH:
        _refuse(400, INVALID_REQUEST, f"a batch must have at most {MOST_OF_BATCH} messages")
    if any(isinstance(each, dict) and each.get("method") == "initialize" for each in messages):
        _refuse(400, INVALID_REQUEST, "initialize must not be in a batch")
    responses = [
        response for each in messages if (response := mcp_messages.respond(call, each)) is not None
    ]
    return json_response(200, responses) if responses else Response(202, b"")


def _check_headers(service: Service, http_request: HttpRequest) -> str:
    """Check the headers that the protocol requires; return the message's revision."""
    if http_request.header("origin") not in (None, service.find_origin(http_request)):
        raise _http_error(403, "this endpoint refuses requests from other web pages")
    require_json(http_request.header("content-type"))
    accept = http_request.header("accept")
    accepted = {media_type(part) for part in ("*/*" if accept is None else accept).split(",")}
    if not all(accepted & {kind, kind.partition("/")[0] + "/*", "*/*"} for kind in _ACCEPTED):
        raise _http_error(406, f"a client must accept both {' and '.join(_ACCEPTED)}")
    # the protocol's default.
    revision = http_request.header("mcp-protocol-version") or BATCH_REVISION
    if revision not in REVISIONS:
        _refuse(
            400,
            INVALID_REQUEST,
            f"unsupported revision of the protocol; use one of {', '.join(REVISIONS)}",
        )
    return revision


def _read(body: bytes) -> Any:
    try:
        return read_json(body)
    except ValueError:
        _refuse(400, PARSE_ERROR, "the body is not JSON")


def _refuse(status: int, code: int, message: str) -> NoReturn:
    raise RefusalError(json_response(status, error(None, code, message)))


def _http_error(
    status: int, message: str, headers: tuple[tuple[str, str], ...] = ()
) -> RefusalError:
    """Return a refusal with an HTTP status and a readable body."""
    response = json_response(status, error(None, REFUSED, message))
    return RefusalError(Response(response.status, response.body, headers))
