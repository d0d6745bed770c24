"""Every fault by name: ONE table for the plan's parser, the control API, the docs and the tests.

A fault is a function of an `Exchange` and its parameters. It returns a response to send, or None if
it has handled the connection itself. The plan's `after_commit` decides whether the request is
processed first; faults that change the service's own response always process it.
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
    """A parameter of a fault. Without a `default` it is required."""

    check: checks.Check
    help: str
    default: object = ...


@dataclass(frozen=True)
class Fault:
    """A row of the table.

    With `changes_response`, it needs the service's own response, so it follows the commit.
    """

    run: Callable[..., Awaitable[Response | None]]
    help: str
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    changes_response: bool = False


async def apply(row: FaultRow, exchange: Exchange) -> Response | None:
    """Inject a row's fault into a request."""
    if row.after_commit:
        await exchange.response()
    return await FAULTS[row.fault].run(exchange, **row.parameters)


_TEXT = Parameter(checks.text, "text to send", "")
_BYTES = Parameter(checks.base64_text, "bytes to send instead", "")
_HEADERS = Parameter(checks.headers, "headers", {})
_EVERY = Parameter(checks.seconds, "seconds between two bytes", 0.2)
_STATUS = Parameter(checks.status, "HTTP status")

FAULTS: Mapping[str, Fault] = {
    "pass": Fault(connections.no_fault, "Nothing goes wrong; for plans that list every request."),
    "reset": Fault(connections.reset, "The connection is reset (RST)."),
    "close": Fault(connections.close, "The connection is closed without a response."),
    "refuse": Fault(
        connections.refuse,
        (
            "The connection is reset, and new ones are refused for a while, including those to "
            "the control API."
        ),
        {"seconds": Parameter(checks.seconds, "for how long", 1)},
    ),
    "hang": Fault(connections.hang, "Nothing is sent."),
    "delay": Fault(
        connections.delay,
        "The response is delayed.",
        {"seconds": Parameter(checks.seconds, "for how long")},
    ),
    "garbage": Fault(
        connections.garbage,
        "Bytes that are not HTTP, then the connection is closed.",
        {
            "text": Parameter(checks.text, "text to send", "SSH-2.0-OpenSSH_9.2\r\n"),
            "base64": _BYTES,
        },
    ),
    "interim": Fault(connections.interim, "102 and 103 before the real response."),
    "drip-head": Fault(connections.drip_head, "An endless head, byte by byte.", {"every": _EVERY}),
    "drip-body": Fault(connections.drip_body, "An endless body, byte by byte.", {"every": _EVERY}),
    "endless": Fault(connections.endless, "An endless body at full speed."),
    "half-head": Fault(
        responses.half_head,
        "Half of the response's head, then the connection is closed.",
        changes_response=True,
    ),
    "half-body": Fault(
        responses.half_body,
        "The head and half of the body, then the connection is closed.",
        changes_response=True,
    ),
    "bad-json": Fault(
        responses.bad_json,
        "Half of the JSON, with a matching Content-Length.",
        changes_response=True,
    ),
    "empty-body": Fault(responses.empty_body, "The status without a body.", changes_response=True),
    "body": Fault(
        responses.body,
        "The status with a different body.",
        {"text": _TEXT, "base64": _BYTES},
        changes_response=True,
    ),
    "oversize": Fault(
        responses.oversize,
        "The right JSON after many blanks.",
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
    "gzip": Fault(
        responses.gzipped,
        "The right response, compressed although the client did not ask for it.",
        changes_response=True,
    ),
    "answer": Fault(
        responses.replace_response,
        "Another response.",
        {"status": _STATUS, "text": _TEXT, "base64": _BYTES, "headers": _HEADERS},
    ),
    "html": Fault(
        responses.html,
        "A proxy's error page.",
        {"status": Parameter(checks.status, "HTTP status", 502), "headers": _HEADERS},
    ),
    "fail": Fault(
        responses.fail,
        "The service fails: 500/42 or 500/11, where the specification has that error.",
    ),
    "error": Fault(
        responses.error,
        "A refusal in the service's envelope: 500/42, 500/11, 409/106, 409/105 ...",
        {
            "status": _STATUS,
            "code": Parameter(checks.code, "error_code"),
            "message": Parameter(checks.text, "prose", "injected by the fault plan"),
            "data": Parameter(checks.table, "additional_data", {}),
            "headers": _HEADERS,
        },
    ),
    "rate-limit": Fault(
        responses.rate_limit,
        "429/107.",
        {
            "retry_after": Parameter(
                checks.retry_after, "Retry-After, valid or not; without it, no such header", None
            )
        },
    ),
    "unauthorized": Fault(responses.unauthorized, "The gateway's 401."),
    "redirect": Fault(
        responses.redirect,
        "A redirect.",
        {
            "status": Parameter(checks.number(300, 399), "HTTP status", 307),
            "location": Parameter(checks.header_value, "where to", REDIRECT_TARGET),
        },
    ),
}
