"""What stands before the application of a server: who is answered at all, and how often.

Without TLS of our own nobody but a proxy that was named, or a program of this machine, is answered.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, MutableMapping, Sequence

from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .addresses import find_caller, name_stranger, read_networks
from .app import STRANGER, TOLD
from .early import answer_early
from .flood import Accepted, Flood
from .responses import HEADERS, as_json, make_refusal
from .routes import split_path


class Front:
    """An application behind proxies of these networks.

    The peers of a `socket` of this machine (one with a path) are proxies, too.
    """

    def __init__(self, application: ASGIApp, proxies: Sequence[str], *, has_tls: bool) -> None:
        self._application = application
        self._proxies = read_networks(proxies)
        self._has_tls = has_tls
        self._outside, self._refused = (Flood(time.monotonic) for _ in range(2))
        self._accepted = Accepted()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        send = _secured(send) if self._has_tls else send
        caller = find_caller(scope, self._proxies)
        told: MutableMapping[str, str] = scope.get(TOLD, {})
        if not (self._has_tls or caller.is_proxy or caller.is_here):
            told["reason"] = "no-tls"
            refusal = PlainTextResponse("use https\n", 403, dict(HEADERS))
            await answer_early(refusal, receive, send)
            return
        stranger = name_stranger(caller.address, self._proxies)
        if stranger is not None:
            credential = _find_credential(scope)
            if wait := self._find_wait(stranger, credential):
                told["reason"] = "too-many"
                await answer_early(_ask_to_wait(wait, credential), receive, send)
                return

            def count(status: int) -> None:
                self._count(stranger, credential, status, told)

            send = _noting(send, count)
        known = {TOLD: told, STRANGER: stranger, "client": (str(caller.address), 0)}
        await self._application({**scope, **known}, receive, send)

    def _find_wait(self, stranger: str, credential: bytes | None) -> int:
        if credential is None:
            return self._outside.find_wait(stranger)
        return 0 if credential in self._accepted else self._refused.find_wait(stranger)

    def _count(
        self, stranger: str, credential: bytes | None, status: int, told: Mapping[str, str]
    ) -> None:
        if credential is None:
            self._outside.spend(stranger, is_miss=status in (403, 404))
        elif told.get("reason") in _REFUSALS:
            self._accepted.discard(credential)
            self._refused.spend(stranger, is_miss=True)
        elif "key" in told:
            self._accepted.add(credential)


_REFUSALS = ("no_authorization", "not_usable")
"""Of a credential."""
_TOO_MANY = as_json({"reason": "too-many", "message": "too many requests: try again later"})
_TOO_MANY_CALLS = make_refusal("rate_limited").body


def _find_credential(scope: Scope) -> bytes | None:
    """Return the credential of a call of the API, which may be empty; None of another request.

    A key has a rate there; who has none that is accepted is counted by address.
    """
    if split_path(scope["raw_path"])[:1] != ("v1",):
        return None
    return next((value for name, value in scope["headers"] if name == b"authorization"), b"")


def _ask_to_wait(seconds: int, credential: bytes | None) -> Response:
    body = _TOO_MANY if credential is None else _TOO_MANY_CALLS
    headers = {**HEADERS, "retry-after": str(seconds)}
    return Response(body, 429, headers, media_type="application/json")


def _noting(send: Send, note: Callable[[int], None]) -> Send:
    """Send, and note the status first."""

    async def send_noted(message: Message) -> None:
        if message["type"] == "http.response.start":
            note(message["status"])
        await send(message)

    return send_noted


def _secured(send: Send) -> Send:
    """Tell browsers to come by https alone, as whoever has a certificate does."""

    async def send_secured(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message["headers"], _HSTS]}
        await send(message)

    return send_secured


_HSTS = (b"strict-transport-security", b"max-age=31536000")
