"""Watches the requests of a server: each gets an id, is counted, and has a line of the log once it
is answered.
"""

from __future__ import annotations

import logging
import re
import secrets
import time
from collections.abc import Callable, MutableMapping, Sequence

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from . import routes
from .addresses import find_caller, read_networks
from .app import TOLD
from .meters import NONE, STATUSES, Meters

HEADER = b"x-request-id"
_LAST = (b"connection", b"close")
_SANE = re.compile(rb"[A-Za-z0-9._:=+/-]{1,64}")

_logger = logging.getLogger(__name__)


class Watch:
    """An application whose requests are logged and counted.

    A proxy of these networks names its request in X-Request-ID, and the answer names each. Once the
    service stops, an answer is its connection's last. An address is told only with
    `tells_addresses`.
    """

    def __init__(
        self,
        application: ASGIApp,
        proxies: Sequence[str],
        meters: Meters,
        is_stopping: Callable[[], bool] = lambda: False,
        *,
        tells_addresses: bool = False,
    ) -> None:
        self._application = application
        self._proxies = read_networks(proxies)
        self._meters = meters
        self._is_stopping = is_stopping
        self._tells_addresses = tells_addresses

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        begun = time.monotonic()
        caller = find_caller(scope, self._proxies)
        request_id = (caller.is_proxy and _find_id(scope)) or secrets.token_hex(8).encode()
        told: MutableMapping[str, str] = {}
        status, size = None, 0

        async def send_named(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
                last = [_LAST] if self._is_stopping() else []
                message = {**message, "headers": [*message["headers"], (HEADER, request_id), *last]}
            else:
                size += len(message.get("body", b""))
            await send(message)

        self._meters.add("requests_in_progress")
        try:
            await self._application({**scope, TOLD: told}, receive, send_named)
        finally:
            seconds = time.monotonic() - begun
            method = routes.name_method(scope["method"])
            route = routes.name_route(routes.split_path(scope["raw_path"]))
            self._meters.add("requests_in_progress", by=-1)
            self._meters.add("requests", route, method, name_status(status))
            self._meters.observe("request_duration_seconds", seconds, route)
            _logger.info(
                "request",
                extra={
                    "told": {
                        "request_id": request_id.decode("ascii"),
                        "method": method,
                        "route": route,
                        "status": status,
                        "milliseconds": round(seconds * 1000, 1),
                        "bytes": size,
                        **told,
                        **({"address": str(caller.address)} if self._tells_addresses else {}),
                    }
                },
            )


def name_status(status: int | None) -> str:
    """Return a status as metrics have it."""
    text = NONE if status is None else str(status)
    return text if text in STATUSES else routes.OTHER


def _find_id(scope: Scope) -> bytes | None:
    """Return the id that a proxy gave a request, if it is short and plain."""
    named = [value for name, value in scope["headers"] if name == HEADER]
    return named[0] if len(named) == 1 and _SANE.fullmatch(named[0]) else None
