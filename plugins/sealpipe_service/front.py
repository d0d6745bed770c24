"""Who calls: the peer of the connection, or whom the proxy before the service names.

Without TLS of our own nobody but a proxy that was named, or a program of this machine, is answered.
"""

from __future__ import annotations

from collections.abc import Sequence

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .addresses import find_caller, read_networks
from .early import answer_early
from .responses import HEADERS


class Front:
    """An application behind proxies of these networks.

    The peers of a `socket` of this machine (one with a path) are proxies, too.
    """

    def __init__(self, application: ASGIApp, proxies: Sequence[str], *, has_tls: bool) -> None:
        self._application = application
        self._proxies = read_networks(proxies)
        self._has_tls = has_tls

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            caller = find_caller(scope, self._proxies)
            if not (self._has_tls or caller.is_proxy or caller.is_here):
                refusal = PlainTextResponse("use https\n", 403, dict(HEADERS))
                await answer_early(refusal, receive, send)
                return
            scope = {**scope, "client": (str(caller.address), 0)}
        await self._application(scope, receive, _secured(send) if self._has_tls else send)


def _secured(send: Send) -> Send:
    """Tell browsers to come by https alone, as whoever has a certificate does."""

    async def send_secured(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], _HSTS]}
        await send(message)

    return send_secured


_HSTS = (b"strict-transport-security", b"max-age=31536000")
