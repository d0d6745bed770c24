"""The control API, which only the rehearsal has: outside /v1, on loopback, closed to web pages."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Mapping

from sealpipe_service import openapi
from sealpipe_service.clock import format_rfc3339
from sealpipe_service.context import HttpRequest
from sealpipe_service.credentials import EXTENDED_SCOPES, SCOPES
from sealpipe_service.json_bodies import Rule, read_object
from sealpipe_service.responses import RefusalError, Response, json_response

from . import account_control, webhook_control
from .control_client import SERVICE_NAME
from .fault_parser import FaultPlanError, parse_plan
from .rehearsed import RehearsedService


def seconds(value: object) -> str | None:
    """Check the seconds by which to advance the clock; it cannot go back."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return (
        None
        if number and 0 <= float(str(value)) <= 1e9
        else "must be a number of seconds from 0 to 1e9"
    )


def handle(service: RehearsedService, http_request: HttpRequest) -> Response:
    """Handle a call of the control API."""
    path = http_request.segments[1:]
    for (method, pattern), handler in _ROUTES.items():
        if method == http_request.method and len(pattern) == len(path):
            pairs = list(zip(pattern, path, strict=True))
            if all(want in ("*", got) for want, got in pairs):
                names = [got for want, got in pairs if want == "*"]
                try:
                    return handler(service, http_request, *names)
                except RefusalError as refused:
                    return refused.response
    return json_response(404, {"message": "the control API has no such route"})


def show_service(service: RehearsedService, http_request: HttpRequest) -> Response:  # noqa: ARG001
    """GET /rehearsal"""
    now = format_rfc3339(service.clock.now())
    scopes = EXTENDED_SCOPES if service.extended else SCOPES
    body = {"service": SERVICE_NAME, "service_tag": service.tag, "now": now, "user_id": os.getuid()}
    return json_response(200, body | {"extended": service.extended, "scopes": list(scopes)})


def read_openapi(service: RehearsedService, http_request: HttpRequest) -> Response:  # noqa: ARG001
    """GET /rehearsal/openapi.json: /v1 as an OpenAPI 3.1 document."""
    return json_response(200, openapi.document(extended=service.extended))


def advance_clock(service: RehearsedService, http_request: HttpRequest) -> Response:
    """POST /rehearsal/clock"""
    rules = {"advance_seconds": Rule(seconds, required=True)}
    try:
        service.clock.advance(account_control.read_members(rules, http_request)["advance_seconds"])
    except OverflowError as error:
        return json_response(400, {"message": str(error)})
    return json_response(200, {"now": format_rfc3339(service.clock.now())})


def reset(service: RehearsedService, http_request: HttpRequest) -> Response:  # noqa: ARG001
    """POST /rehearsal/reset: delete all data and reset the clock."""
    service.database.clear()
    service.log.clear()
    service.custody_digests.clear()
    service.clock.reset()
    service.failing.clear()
    service.faults.set([])
    return json_response(200, {"reset": True})


def read_faults(service: RehearsedService, http_request: HttpRequest) -> Response:  # noqa: ARG001
    """GET /rehearsal/faults: the plan's rows, with the requests `applied` and `left`."""
    return json_response(
        200, {"faults": [progress.as_json() for progress in service.faults.progress()]}
    )


def set_faults(service: RehearsedService, http_request: HttpRequest) -> Response:
    """PUT and POST /rehearsal/faults: replace the plan, or add to it."""
    members = read_object(http_request.body)
    try:
        if list(members) != ["faults"]:
            raise FaultPlanError("the body must be an object with `faults` only")
        rows = parse_plan(members["faults"])
    except FaultPlanError as error:
        return json_response(400, {"message": str(error), "fault": error.number})
    (service.faults.set if http_request.method == "PUT" else service.faults.add)(rows)
    return read_faults(service, http_request)


def clear_faults(service: RehearsedService, http_request: HttpRequest) -> Response:
    """DELETE /rehearsal/faults"""
    service.faults.set([])
    return read_faults(service, http_request)


def read_log(service: RehearsedService, http_request: HttpRequest) -> Response:  # noqa: ARG001
    """GET /rehearsal/log"""
    return json_response(
        200,
        {
            "requests": [
                {
                    "at": format_rfc3339(request.at),
                    "method": request.method,
                    "target": request.target,
                    "headers": [list(pair) for pair in request.headers],
                    "body_base64": base64.b64encode(request.body).decode("ascii"),
                    "fault": request.fault,
                }
                for request in service.log.requests()
            ],
            "events": [
                {
                    "at": format_rfc3339(event.at),
                    "account": event.account,
                    "payload": dict(event.payload),
                }
                for event in service.log.events()
            ],
            "notes": [
                {
                    "at": format_rfc3339(note.at),
                    "what": note.what,
                    "about": note.about,
                    "message": note.message,
                }
                for note in service.log.notes()
            ],
        },
    )


_ROUTES: Mapping[tuple[str, tuple[str, ...]], Callable[..., Response]] = {
    ("GET", ()): show_service,
    ("GET", ("openapi.json",)): read_openapi,
    ("POST", ("keys",)): account_control.create_key,
    ("GET", ("keys",)): account_control.list_keys,
    ("POST", ("keys", "*", "revoke")): account_control.revoke_key,
    ("POST", ("keys", "*", "custody")): account_control.register_custody,
    ("POST", ("keys", "*", "grant")): account_control.grant_custody,
    ("POST", ("accounts", "*")): account_control.set_account,
    ("GET", ("webhooks",)): webhook_control.list_all,
    ("POST", ("webhooks",)): webhook_control.add,
    ("GET", ("webhooks", "deliveries")): webhook_control.deliveries,
    ("DELETE", ("webhooks", "*")): webhook_control.remove,
    ("POST", ("webhooks", "*", "rotate")): webhook_control.rotate,
    ("POST", ("clock",)): advance_clock,
    ("POST", ("reset",)): reset,
    ("GET", ("log",)): read_log,
    ("GET", ("faults",)): read_faults,
    ("PUT", ("faults",)): set_faults,
    ("POST", ("faults",)): set_faults,
    ("DELETE", ("faults",)): clear_faults,
}
