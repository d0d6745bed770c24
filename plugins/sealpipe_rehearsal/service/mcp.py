"""POST /v1/mcp: the Model Context Protocol over streamable HTTP (specification: POST /v1/mcp; gaps: MCP).

Its transport, revisions 2025-03-26 to 2025-11-25. There are no sessions and no streams: each POST is answered with
one JSON object, so GET and DELETE on the path are 405. `mcp_messages` has the messages, `mcp_tools` the tools.
"""

from __future__ import annotations

from typing import Any, NoReturn

from . import mcp_messages
from .context import Call, Incoming
from .mcp_messages import BATCHING, INVALID_REQUEST, PARSE_ERROR, REFUSED, REVISIONS, error
from .responses import Answer, RefusalError, answer
from .rules import read_json

_JSON, _STREAM = "application/json", "text/event-stream"


def post(call: Call) -> Answer:
    """A message, or in the first revision a batch of them."""
    revision = _checked(call.incoming)
    message = _read(call.incoming.body)
    if isinstance(message, list) and revision == BATCHING:
        return _batch(call, message)
    response = mcp_messages.respond(call, message)
    if response is None:
        return Answer(202, b"")
    # What is no request at all has no id to answer to: then the status tells it, too.
    refused = response["id"] is None
    return answer(400 if refused else 200, response)


def not_offered(call: Call) -> Answer:  # noqa: ARG001  # a handler like the others
    """GET and DELETE: there is no stream to listen to, and no session to end."""
    return _refused(405, "only POST: there are no streams and no sessions here", (("allow", "POST"),)).answer


def _batch(call: Call, messages: list[Any]) -> Answer:
    if not messages:
        _refuse(400, INVALID_REQUEST, "a batch has at least one message")
    if any(isinstance(each, dict) and each.get("method") == "initialize" for each in messages):
        _refuse(400, INVALID_REQUEST, "initialize is no part of a batch")
    responses = [response for each in messages if (response := mcp_messages.respond(call, each)) is not None]
    return answer(200, responses) if responses else Answer(202, b"")


def _checked(incoming: Incoming) -> str:
    """The revision that a message is of, once its headers are what the protocol wants."""
    own = (None, f"http://{incoming.header('host')}") if incoming.names_loopback() else (None,)
    if incoming.header("origin") not in own:
        raise _refused(403, "this endpoint does not answer the pages of others")
    if _kind(incoming.header("content-type") or "") != _JSON:
        raise _refused(415, f"the content type of a message is {_JSON}")
    accepted = {_kind(part) for part in (incoming.header("accept") or "").split(",")}
    if not all(accepted & {kind, kind.partition("/")[0] + "/*", "*/*"} for kind in (_JSON, _STREAM)):
        raise _refused(406, f"a client accepts both {_JSON} and {_STREAM}")
    revision = incoming.header("mcp-protocol-version") or BATCHING  # what a message without the header counts as
    if revision not in REVISIONS:
        _refuse(400, INVALID_REQUEST, f"this revision of the protocol is not spoken here, but {', '.join(REVISIONS)}")
    return revision


def _read(body: bytes) -> Any:
    try:
        return read_json(body)
    except ValueError:
        _refuse(400, PARSE_ERROR, "the body is not JSON")


def _refuse(status: int, code: int, message: str) -> NoReturn:
    raise RefusalError(answer(status, error(None, code, message)))


def _refused(status: int, message: str, headers: tuple[tuple[str, str], ...] = ()) -> RefusalError:
    """For what HTTP itself has a status: the body is there for people."""
    told = answer(status, error(None, REFUSED, message))
    return RefusalError(Answer(told.status, told.body, headers))


def _kind(header: str) -> str:
    return header.partition(";")[0].strip().lower()
