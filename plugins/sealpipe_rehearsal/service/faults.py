"""Every fault there is, by name: ONE table for the plan's parser, the control door, the docs and the tests.

A fault is a function of an `Exchange` and its parameters. It gives the answer that is sent in good order, on a
connection that goes on; or None, where it has seen to the connection itself. Whether the request is carried out
before it is the plan's to say (`after_commit`), but for those faults that spoil the service's own answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from starlette.responses import Response

from . import fault_checks as checks
from . import fault_connections as connections
from . import fault_responses as responses
from .fault_exchange import Exchange
from .fault_plan import FaultRow

REDIRECT_TARGET = "http://localhost:1/v1"


@dataclass(frozen=True)
class Parameter:
    """What a fault can be told. Without a `default` it must be."""

    check: checks.Check
    help: str
    default: object = ...


@dataclass(frozen=True)
class Fault:
    """A row of the table. `spoils`: it needs the service's own answer, so that it always comes after the commit."""

    run: Callable[..., Awaitable[Response | None]]
    help: str
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    changes_response: bool = False


async def apply(row: FaultRow, exchange: Exchange) -> Response | None:
    """Let a row of a plan happen to a request."""
    if row.after_commit:
        await exchange.response()
    return await FAULTS[row.fault].run(exchange, **row.parameters)


_TEXT = Parameter(checks.text, "text to send", "")
_BYTES = Parameter(checks.base64_text, "bytes to send in its place", "")
_HEADERS = Parameter(checks.headers, "headers", {})
_EVERY = Parameter(checks.seconds, "seconds between two bytes", 0.2)
_STATUS = Parameter(checks.status, "HTTP status")

FAULTS: Mapping[str, Fault] = {
    "pass": Fault(
        connections.no_fault, "Nothing goes wrong: one that passes, in a plan that tells request after request."
    ),
    "reset": Fault(connections.reset, "The connection is cut with an RST."),
    "close": Fault(connections.close, "The connection ends without an answer."),
    "refuse": Fault(
        connections.refuse,
        "The connection is cut, and new ones are refused for a while; the control door's, too.",
        {"seconds": Parameter(checks.seconds, "for how long", 1)},
    ),
    "hang": Fault(connections.hang, "Not a byte comes back."),
    "delay": Fault(
        connections.delay,
        "Time passes, then all goes on as usual.",
        {"seconds": Parameter(checks.seconds, "for how long")},
    ),
    "garbage": Fault(
        connections.garbage,
        "Bytes that are not HTTP, then the end.",
        {"text": Parameter(checks.text, "text to send", "SSH-2.0-OpenSSH_9.2\r\n"), "base64": _BYTES},
    ),
    "interim": Fault(connections.interim, "102 and 103 before the real answer."),
    "drip-head": Fault(connections.drip_head, "A head without an end, byte by byte.", {"every": _EVERY}),
    "drip-body": Fault(connections.drip_body, "A body that does not end, byte by byte.", {"every": _EVERY}),
    "endless": Fault(connections.endless, "A body without an end, as fast as it goes."),
    "half-head": Fault(responses.half_head, "Half of the answer's head, then the end.", changes_response=True),
    "half-body": Fault(responses.half_body, "The head and half of the body, then the end.", changes_response=True),
    "bad-json": Fault(responses.bad_json, "Half of the JSON, with a length that fits it.", changes_response=True),
    "empty-body": Fault(responses.empty_body, "The status, and no body.", changes_response=True),
    "body": Fault(
        responses.body, "The status with another body.", {"text": _TEXT, "base64": _BYTES}, changes_response=True
    ),
    "oversize": Fault(
        responses.oversize,
        "The right JSON behind many blanks.",
        {"size": Parameter(checks.size, "bytes of the body", 2 * 1024 * 1024)},
        changes_response=True,
    ),
    "members": Fault(
        responses.members,
        "The JSON object with other members.",
        {
            "change": Parameter(checks.table, "members to set", {}),
            "drop": Parameter(checks.texts, "members to leave out", []),
        },
        changes_response=True,
    ),
    "gzip": Fault(responses.gzipped, "The right answer in an encoding that nobody asked for.", changes_response=True),
    "answer": Fault(
        responses.replace_response,
        "Another answer.",
        {"status": _STATUS, "text": _TEXT, "base64": _BYTES, "headers": _HEADERS},
    ),
    "html": Fault(
        responses.html, "A proxy's page.", {"status": Parameter(checks.status, "HTTP status", 502), "headers": _HEADERS}
    ),
    "fail": Fault(responses.fail, "The service could not do it: 500/42 or 500/11, where it has that to say."),
    "error": Fault(
        responses.error,
        "A refusal in the service's envelope: 500/42, 500/11, 409/106, 409/105 ...",
        {
            "status": _STATUS,
            "code": Parameter(checks.code, "error_code"),
            "message": Parameter(checks.text, "prose", "as the fault plan wants it"),
            "data": Parameter(checks.table, "additional_data", {}),
            "headers": _HEADERS,
        },
    ),
    "rate-limit": Fault(
        responses.rate_limit,
        "429/107.",
        {"retry_after": Parameter(checks.retry_after, "Retry-After, sense or not; without it, no such header", None)},
    ),
    "unauthorized": Fault(responses.unauthorized, "The gateway's 401."),
    "redirect": Fault(
        responses.redirect,
        "Another address.",
        {
            "status": Parameter(checks.number(300, 399), "HTTP status", 307),
            "location": Parameter(checks.header_value, "where to", REDIRECT_TARGET),
        },
    ),
}
