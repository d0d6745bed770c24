"""The application of a rehearsal: the control API, the log and faults stand before the service."""

from __future__ import annotations

from dataclasses import replace

from starlette.applications import Starlette
from starlette.responses import Response
from starlette.types import Scope

from sealpipe_service import app
from sealpipe_service.context import HttpRequest
from sealpipe_service.responses import json_response

from . import control, faults
from .fault_exchange import CONNECTION_KEY, Exchange
from .fault_plan import FaultRow
from .log import LoggedRequest
from .log_redaction import redact_custody_part, redact_request
from .rehearsed import RehearsedService


def build(service: RehearsedService) -> Starlette:
    """Return the service as an ASGI application."""

    async def around(
        http_request: HttpRequest, scope: Scope, answer: app.Answer
    ) -> Response | None:
        if is_control(http_request):
            return await _control(service, http_request)
        fault = (
            service.faults.next_fault(http_request.method, http_request.segments[1:])
            if http_request.segments[:1] == ("v1",)  # faults affect nothing else
            else None
        )
        entry = _log_entry(service, http_request, fault)
        service.log.add_request(entry)
        http_request = replace(http_request, target=entry.target)
        if fault is None:
            return await answer(http_request)
        exchange = Exchange(
            scope["state"][CONNECTION_KEY], lambda: answer(http_request), service.next_call_fails
        )
        return await faults.apply(fault, exchange)

    return app.build(service, around)


def is_control(http_request: HttpRequest) -> bool:
    """Return whether a request is for the control API, which is not logged."""
    match http_request.segments:
        case ("rehearsal", *_):
            return True
    return False


async def _control(service: RehearsedService, http_request: HttpRequest) -> Response:
    if reason := app.reject_reason(service, http_request, from_own_page=False):
        return app.to_starlette(json_response(403, {"message": reason}))
    return await app.run_handler(control.handle, service, http_request)


def _log_entry(
    service: RehearsedService, http_request: HttpRequest, fault: FaultRow | None
) -> LoggedRequest:
    headers = tuple(
        (name, redact_custody_part(value) if name == "authorization" else value)
        for name, value in http_request.headers
    )
    target, headers, body = redact_request(
        http_request.target, headers, http_request.body, service.custody_digests
    )
    applied = None if fault is None else str(fault)
    return LoggedRequest(service.clock.now(), http_request.method, target, headers, body, applied)
