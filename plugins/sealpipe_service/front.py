"""What stands before the application of a server: who is answered at all, and how often.

Without TLS of our own nobody but a proxy that was named, or a program of this machine, is answered.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from starlette.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .addresses import find_caller, name_stranger, read_networks
from .app import TOLD
from .early import answer_early
from .flood import Flood
from .responses import HEADERS


class Front:
    """An application behind proxies of these networks.

    The peers of a `socket` of this machine (one with a path) are proxies, too.
    """

    def __init__(self, application: ASGIApp, proxies: Sequence[str], *, has_tls: bool) -> None:
        self._application = application
        self._proxies = read_networks(proxies)
        self._has_tls = has_tls
        self._flood = Flood(time.monotonic)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        send = _secured(send) if self._has_tls else send
        caller = find_caller(scope, self._proxies)
        if not (self._has_tls or caller.is_proxy or caller.is_here):
            scope.get(TOLD, {})["reason"] = "no-tls"
            refusal = PlainTextResponse("use https\n", 403, dict(HEADERS))
            await answer_early(refusal, receive, send)
            return
        stranger = name_stranger(caller.address, self._proxies)
        if stranger is not None and not scope["raw_path"].startswith(_API):
            if wait := self._flood.find_wait(stranger):
                scope.get(TOLD, {})["reason"] = _TOO_MANY["reason"]
                headers = {**HEADERS, "retry-after": str(wait)}
                await answer_early(JSONResponse(_TOO_MANY, 429, headers), receive, send)
                return
            send = self._counted(send, stranger)
        await self._application({**scope, "client": (str(caller.address), 0)}, receive, send)

    def _counted(self, send: Send, stranger: str) -> Send:
        async def send_counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._flood.spend(stranger, is_miss=message["status"] in (403, 404))
            await send(message)

        return send_counted


_API = b"/v1/"
"""There a key has a rate, and nothing that is short enough to be guessed."""
_TOO_MANY = {"reason": "too-many", "message": "too many requests: try again later"}


def _secured(send: Send) -> Send:
    """Tell browsers to come by https alone, as whoever has a certificate does."""

    async def send_secured(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], _HSTS]}
        await send(message)

    return send_secured


_HSTS = (b"strict-transport-security", b"max-age=31536000")
