"""The ASGI application.

Reads a request to its end, finds the handler for its path, and runs it in a thread: handlers block
(the store, `Service.reach`), and a second call can arrive while a first one is in flight.

Whoever runs the service may stand before all of it: see `Around`.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import TypeVar

from starlette.applications import Starlette
from starlette.datastructures import QueryParams
from starlette.requests import ClientDisconnect
from starlette.responses import Response as StarletteResponse
from starlette.types import Receive, Scope, Send

from . import gateway, pages, request_link, routes, share_link
from .clock import parse_rfc3339
from .context import HttpRequest, Service
from .database.access import UnavailableError
from .early import answer_early
from .responses import GATEWAY, HEADERS, Response, json_response
from .sweeping import Sweeper

_logger = logging.getLogger(__name__)

TOLD = "sealpipe.told"
"""Where whoever serves has the connection's `HttpRequest.told`, in ASGI's scope."""
STRANGER = "sealpipe.stranger"
"""Where it has `HttpRequest.stranger`."""

Answer = Callable[[HttpRequest], Awaitable[StarletteResponse]]
"""How the service answers a request."""
Around = Callable[[HttpRequest, Scope, Answer], Awaitable[StarletteResponse | None]]
"""Answers each request in the service's place, whose own answer it may ask for; None if it has
handled the connection itself.
"""


async def answer_plainly(
    http_request: HttpRequest,
    scope: Scope,  # noqa: ARG001
    answer: Answer,
) -> StarletteResponse:
    """The service answers, and nobody stands before it."""
    return await answer(http_request)


def build(service: Service, around: Around = answer_plainly) -> Starlette:
    """Return the service as an ASGI application.

    A server that runs its lifespan needs nothing else to let time pass: see `sweeping`.
    """

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        sweeper = Sweeper(service)
        sweeper.start()
        try:
            yield
        finally:
            await asyncio.to_thread(sweeper.stop)
            await asyncio.to_thread(service.deliverer.stop)

    application = Starlette(lifespan=lifespan)
    # Set as the router's default: a catch-all route would not match paths with an encoded line
    # break.
    application.router.default = _Application(service, around)
    return application


class _Application:
    """The ASGI application for every path and method."""

    def __init__(self, service: Service, around: Around) -> None:
        self._service = service
        self._around = around
        self._held = 0
        """Bytes of all bodies that are read or handled."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        http_request = _to_http_request(scope)
        body = _Body(receive, http_request)
        try:
            await self._serve(http_request, body, scope, receive, send)
        except ClientDisconnect:
            return
        finally:
            self._held -= body.held

    async def _serve(
        self, http_request: HttpRequest, body: _Body, scope: Scope, receive: Receive, send: Send
    ) -> None:
        content = await self._read(body, http_request)
        if content is None:
            self._held -= body.held
            body.held = 0
            refused = self._guard(http_request, self._refuse_sender(http_request, body))
            refusal = self._finish(await refused)
            await answer_early(refusal, receive, send, more_body=body.has_more)
            return
        response = await self._around(replace(http_request, body=content), scope, self._answer)
        if response is not None:
            await self._finish(response)(scope, receive, send)

    def _finish(self, response: StarletteResponse) -> StarletteResponse:
        response.raw_headers.append((b"date", _format_date(int(self._service.clock.timestamp()))))
        return response

    async def _read(self, body: _Body, http_request: HttpRequest) -> bytes | None:
        """Return the body; None as soon as it is known that it is not wanted.

        Anybody may send a short one, and who is admitted a long one. A rehearsal takes all, and
        tells what came.
        """
        service = self._service
        if body.is_announced and not service.is_rehearsal and not _may_send(service, http_request):
            return None
        limit = service.max_body if service.is_rehearsal else SHORT_BODY
        size, chunks = body.announced, list[bytes]()
        while True:
            if limit < size <= service.max_body and await self._is_expected(http_request):
                limit = service.max_body
            body.finds_no_room = size > SHORT_BODY and self._held > MOST_HELD
            if size > limit or body.finds_no_room:
                return None
            if not body.has_more:
                return b"".join(chunks)
            chunks.append(await body.read())
            self._held += len(chunks[-1])
            body.held += len(chunks[-1])
            size = max(size, body.held)

    async def _answer(self, http_request: HttpRequest) -> StarletteResponse:
        return await self._guard(http_request, self._find_answer(http_request))

    async def _guard(
        self, http_request: HttpRequest, answer: Awaitable[StarletteResponse]
    ) -> StarletteResponse:
        try:
            return await answer
        except UnavailableError as error:
            self._service.log.count("database_errors")
            _logger.warning("%s", error)
            return _reply(http_request, GATEWAY["unavailable"])

    async def _is_expected(self, http_request: HttpRequest) -> bool:
        """Return whether somebody who was admitted may send a long body here."""
        try:
            return await asyncio.to_thread(_expects_long, self._service, http_request)
        except UnavailableError:
            return False

    async def _refuse_sender(self, http_request: HttpRequest, body: _Body) -> StarletteResponse:
        """Return why a body is not wanted: its sender, or its length; or that it is not now."""
        refusal = _refuse_origin(self._service, http_request)
        if refusal is None and find_handler(http_request) is gateway.handle:
            refusal = await asyncio.to_thread(gateway.refuse_caller, self._service, http_request)
        is_short_of_room = body.finds_no_room and body.announced <= self._service.max_body
        too_much = GATEWAY["unavailable" if is_short_of_room else "too_long"]
        return _reply(http_request, refusal or too_much)

    async def _find_answer(self, http_request: HttpRequest) -> StarletteResponse:
        service = self._service
        if probe := PROBES.get(http_request.segments):  # whoever asks knows an address of ours only
            return await run_handler(probe, service, http_request)
        if refusal := _refuse_origin(service, http_request):
            return _reply(http_request, refusal)
        if page := pages.find_file(http_request.method, http_request.segments):
            end = await asyncio.to_thread(_find_end, service, http_request.segments)
            shown = pages.Shown(service.tag, service.field_types, service.is_rehearsal, end)
            return pages.page(page, shown)
        return await run_handler(find_handler(http_request), service, http_request)


@lru_cache(1)
def _format_date(second: int) -> bytes:
    return formatdate(second, usegmt=True).encode()


S = TypeVar("S", bound=Service)
PathHandler = Callable[[S, HttpRequest], Response]


async def run_handler(
    handler: PathHandler[S], service: S, http_request: HttpRequest
) -> StarletteResponse:
    """Run a handler in a thread. A bug in it is 500, and does not stop the service.

    Raises UnavailableError.
    """
    try:
        response = await asyncio.to_thread(handler, service, http_request)
    except UnavailableError:
        raise
    except Exception:
        method = routes.name_method(http_request.method)
        _logger.exception("%s %s failed", method, routes.name_route(http_request.segments))
        response = GATEWAY["broken"]
    return _reply(http_request, response)


def _reply(http_request: HttpRequest, response: Response) -> StarletteResponse:
    """Return a response as it is sent, and tell the log why a call is refused."""
    if response.reason is not None:
        http_request.told["reason"] = response.reason
    return to_starlette(response)


def _live(service: Service, http_request: HttpRequest) -> Response:  # noqa: ARG001
    """GET /healthz: the process answers."""
    return json_response(200, {"status": "ok"})


def _ready(service: Service, http_request: HttpRequest) -> Response:  # noqa: ARG001
    """GET /readyz: its database answers, too, and it is not about to stop."""
    if service.is_stopping:
        return json_response(503, {"status": "the service stops"})
    try:
        service.store.now()
    except Exception as error:  # noqa: BLE001  # whatever the driver raises
        service.log.count("database_errors")
        _logger.warning("the database does not answer: %s", type(error).__name__)
        return json_response(503, {"status": "the database does not answer"})
    return json_response(200, {"status": "ok"})


PROBES: Mapping[tuple[str, ...], PathHandler[Service]] = {("healthz",): _live, ("readyz",): _ready}
"""What whoever watches over the service asks."""


def find_handler(http_request: HttpRequest) -> PathHandler[Service]:
    """Return a path's handler."""
    match http_request.segments:
        case ("v1", *_):
            return gateway.handle
        case ("links", "shares", *_):
            return _handle_share_link
        case ("links", "requests", *_):
            return _handle_request_link
    return _handle_unknown_path


def _handle_share_link(service: Service, http_request: HttpRequest) -> Response:
    match http_request.method, http_request.segments[2:]:
        case "GET", (code,):
            return share_link.show_state(service, code)
        case "POST", (code, "open"):
            return share_link.open_share(service, code, http_request)
    return GATEWAY["no_route"]


def _handle_request_link(service: Service, http_request: HttpRequest) -> Response:
    match http_request.method, http_request.segments[2:]:
        case "GET", (code,):
            return request_link.show_state(service, code)
        case "POST", (code, "open"):
            return request_link.open_form(service, code, http_request)
        case "POST", (code, "submit"):
            return request_link.submit(service, code, http_request)
        case "GET", (code, "submissions"):
            return request_link.list_submissions(service, code)
    return GATEWAY["no_route"]


def _find_end(service: Service, segments: tuple[str, ...]) -> datetime | None:
    """Return when what a page's link leads to ends, if it is still open.

    The page's script asks the same.
    """
    match segments:
        case ("s", "r", code):
            shown = request_link.show_state(service, code)
        case ("s", code):
            shown = share_link.show_state(service, code)
        case _:
            return None
    end = json.loads(shown.body).get("expired_at") if shown.status == HTTPStatus.OK else None
    return parse_rfc3339(end) if end else None


def _handle_unknown_path(service: Service, http_request: HttpRequest) -> Response:  # noqa: ARG001
    return GATEWAY["no_route"]


_OTHER_HOST = "the service has another host name"
_OTHER_PAGE = "this part of the service refuses requests from other web pages"
_NAMES = {_OTHER_HOST: "other-host", _OTHER_PAGE: "other-page"}
"""What the log calls them."""


def _refuse_origin(service: Service, http_request: HttpRequest) -> Response | None:
    if find_handler(http_request) is not gateway.handle:
        message = reject_reason(service, http_request)
        return _refuse(403, message) if message else None
    if service.public_url is not None and service.find_origin(http_request) is None:
        return _refuse(421, _OTHER_HOST)
    return None


def _refuse(status: int, message: str) -> Response:
    return replace(json_response(status, {"message": message}), reason=_NAMES[message])


def reject_reason(
    service: Service, http_request: HttpRequest, *, from_own_page: bool = True
) -> str | None:
    """Return why a request may not use the routes outside /v1.

    Another web page sent it, or its host name is foreign.

    Any web page can make a browser on this machine send requests to loopback, and any name can
    resolve to it (DNS rebinding). /v1 needs no such check: it requires a credential.
    """
    own = service.find_origin(http_request)
    if own is None:
        return _OTHER_HOST
    origin = http_request.header("origin")
    if origin is not None and not (from_own_page and origin == own):
        return _OTHER_PAGE
    return None


SHORT_BODY = 64 * 1024
"""What anybody may send: what is longer is taken only from those who were admitted."""
MOST_HELD = 256 * 1024 * 1024
"""What all bodies of a process may have of its memory: what is long then waits for its next try."""


def _may_send(service: Service, http_request: HttpRequest) -> bool:
    """Return whether a request shows what looks like a credential, where one is wanted."""
    is_api = find_handler(http_request) is gateway.handle
    return not (is_api and gateway.refuse_at_sight(service, http_request))


def _expects_long(service: Service, http_request: HttpRequest) -> bool:
    match http_request.segments:
        case ("v1", *_):
            return gateway.refuse_caller(service, http_request) is None
        case ("links", "requests", code, "submit"):
            return service.store.request_at_link(code)[0] is not None
    return False


class _Body:
    """The body of a request as it comes: how long it is said to be, and how much is in memory."""

    def __init__(self, receive: Receive, http_request: HttpRequest) -> None:
        self._receive = receive
        told = http_request.header("content-length") or ""
        self.announced = int(told) if told.isdecimal() else 0
        self.is_announced = bool(self.announced or http_request.header("transfer-encoding"))
        self.held = 0
        self.finds_no_room = False
        self.has_more = True

    async def read(self) -> bytes:
        """Return the next part. Raises ClientDisconnect."""
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        part: bytes = message.get("body", b"")
        self.has_more = message.get("more_body", False)
        return part


def _to_http_request(scope: Scope) -> HttpRequest:
    """Return a request whose body is still to be read."""
    path, query = scope["raw_path"], scope["query_string"]
    target: str = (path + b"?" + query if query else path).decode("latin-1")
    return HttpRequest(
        method=scope["method"],
        segments=routes.split_path(path),
        query=dict(QueryParams(query)) if query else {},
        headers=tuple(
            (name.decode("latin-1").lower(), value.decode("latin-1"))
            for name, value in scope["headers"]
        ),
        body=b"",
        address=scope["client"][0] if scope["client"] else "",
        stranger=scope.get(STRANGER),
        target=pages.redact_key(target),
        told=scope.get(TOLD, {}),
    )


def to_starlette(response: Response) -> StarletteResponse:
    """Return a handler's response as one of Starlette."""
    media_type = "application/json" if response.body else None
    return StarletteResponse(
        response.body, response.status, {**HEADERS, **dict(response.headers)}, media_type=media_type
    )
