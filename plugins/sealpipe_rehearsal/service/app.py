"""One ASGI application: reads a request to its end, finds its door, and runs the handler in a thread.

Handlers block (SQLite, and whatever `Service.at` does); a thread each is what lets a second call arrive
while a first one is in flight.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from email.utils import format_datetime
from urllib.parse import unquote

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from . import control, faults, gateway, pages, request_link, share_link
from .context import Incoming, Service
from .credentials import without_custody_part
from .fault_exchange import LINE, Exchange
from .fault_plan import Row
from .log import Seen
from .responses import GATEWAY, Answer, answer

_logger = logging.getLogger(__name__)


def build(service: Service) -> Starlette:
    """The service as an ASGI application."""
    application = Starlette()
    # Every path and method is ours: a route for all of them would leave out paths with an encoded line break.
    application.router.default = _Endpoint(service)
    return application


class _Endpoint:
    """Every path and method, as an ASGI application."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        try:
            body = await _read(request, self._service.max_body)
        except ClientDisconnect:
            return
        reply: Response | None
        if body is None:
            reply = _response(GATEWAY["too_long"])
            reply.headers["connection"] = "close"
        else:
            reply = await self._answer(_incoming(request, body), request)
        if reply is not None:  # else a fault has seen to the connection
            reply.headers["date"] = format_datetime(self._service.clock.now(), usegmt=True)
            await reply(scope, receive, send)

    async def _answer(self, incoming: Incoming, request: Request) -> Response | None:
        door, private = _door(incoming)
        target = pages.without_key(_target(request))
        fault = self._service.faults.take(incoming.method, incoming.segments[1:]) if _is_api(incoming) else None
        if not private:
            self._service.log.request(_seen(self._service, incoming, target, fault))
        if door is not gateway.handle and (reason := _from_outside(incoming, own_page=not private)):
            return _response(answer(403, {"message": reason}))
        if page := pages.find(incoming.method, incoming.segments):
            return pages.page(page, self._service.tag)
        if fault is not None:
            line = request.scope["state"][LINE]
            exchange = Exchange(line, lambda: self._carried_out(door, incoming, target), self._service.made_to_fail)
            return await faults.apply(fault, exchange)
        return await self._carried_out(door, incoming, target)

    async def _carried_out(self, door: Door, incoming: Incoming, target: str) -> Response:
        try:
            return _response(await asyncio.to_thread(door, self._service, incoming))
        except Exception:  # whatever broke one call must not break the service
            _logger.exception("%s %s broke", incoming.method, target.partition("?")[0])
            return _response(GATEWAY["broken"])


Door = Callable[[Service, Incoming], Answer]


def _door(incoming: Incoming) -> tuple[Door, bool]:
    """Who answers a path, and whether it is the private control door, which is not in the log."""
    match incoming.segments:
        case ("v1", *_):
            return gateway.handle, False
        case ("rehearsal", "shares", *_):
            return _recipient, False
        case ("rehearsal", "requests", *_):
            return _submitter, False
        case ("rehearsal", *_):
            return control.handle, True
    return _nothing, False


def _is_api(incoming: Incoming) -> bool:
    """Whether a request is for /v1: faults happen to nothing else."""
    return incoming.segments[:1] == ("v1",)


def _recipient(service: Service, incoming: Incoming) -> Answer:
    match incoming.method, incoming.segments[2:]:
        case "GET", (code,):
            return share_link.look(service, code)
        case "POST", (code, "open"):
            return share_link.open_share(service, code, incoming)
    return GATEWAY["no_route"]


def _submitter(service: Service, incoming: Incoming) -> Answer:
    match incoming.method, incoming.segments[2:]:
        case "GET", (code,):
            return request_link.look(service, code)
        case "POST", (code, "open"):
            return request_link.open_form(service, code, incoming)
        case "POST", (code, "submit"):
            return request_link.submit(service, code, incoming)
        case "GET", (code, "submissions"):
            return request_link.list_submissions(service, code)
    return GATEWAY["no_route"]


def _nothing(service: Service, incoming: Incoming) -> Answer:  # noqa: ARG001  # a door like the others
    return GATEWAY["no_route"]


def _from_outside(incoming: Incoming, *, own_page: bool) -> str | None:
    """Why a request may not use what is outside /v1: it comes from a web page, or under a foreign name.

    A page elsewhere can make a browser on this machine send requests to loopback, and a foreign name can be
    made to resolve to it. /v1 needs neither check: there a credential stands before everything.
    """
    if not incoming.names_loopback():
        return "this part of the rehearsal answers on loopback only"
    origin = incoming.header("origin")
    if origin is not None and not (own_page and origin == f"http://{incoming.header('host')}"):
        return "this part of the rehearsal does not answer web pages"
    return None


async def _read(request: Request, limit: int) -> bytes | None:
    """The body; None where it is longer than the limit."""
    chunks = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            return None
        chunks.append(chunk)
    return b"".join(chunks)


def _target(request: Request) -> str:
    raw: bytes = request.scope["raw_path"]
    query: bytes = request.scope["query_string"]
    return (raw + b"?" + query if query else raw).decode("latin-1")


def _incoming(request: Request, body: bytes) -> Incoming:
    # Split first, then decode: an encoded slash belongs to a short code and separates nothing.
    segments = bytes(request.scope["raw_path"]).decode("latin-1").split("/")[1:]
    return Incoming(
        method=request.method,
        segments=tuple(unquote(segment) for segment in segments),
        query=dict(request.query_params),
        headers=tuple((name.lower(), value) for name, value in request.headers.items()),
        body=body,
        address=request.client.host if request.client else "",
    )


def _seen(service: Service, incoming: Incoming, target: str, fault: Row | None) -> Seen:
    headers = tuple(
        (name, without_custody_part(value) if name == "authorization" else value) for name, value in incoming.headers
    )
    applied = None if fault is None else str(fault)
    return Seen(service.clock.now(), incoming.method, target, headers, incoming.body, applied)


def _response(reply: Answer) -> Response:
    kind = "application/json" if reply.body else None
    return Response(reply.body, reply.status, dict(reply.headers), media_type=kind)
