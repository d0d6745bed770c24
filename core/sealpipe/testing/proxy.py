"""A proxy between a plugin and its backend that loses, drops, refuses and holds requests."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from enum import Enum
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple
from urllib.parse import urlsplit

TIMEOUT = 60.0
"""Seconds that the backend may take for one request."""

# Of one connection, not of the request; `host` is the backend's own.
_HOPS = frozenset({"connection", "keep-alive", "transfer-encoding", "content-length", "host"})
_WITHOUT_BODY = (204, 304)


class Fault(Enum):
    """What happens to a request."""

    LOST = "it arrives and its response does not"
    DROPPED = "it does not arrive, and the connection ends"
    DENIED = "the response is 403, and the backend is not asked"
    REFUSED = "the response is 400 with the request in it, and the backend is not asked"


class Response(NamedTuple):
    """A response of the backend."""

    status: int
    headers: Mapping[str, str]
    body: bytes


def quote(status: int, head: str, body: bytes) -> Response:
    """Return a response that repeats a request, as the message of an error: as JSON APIs do."""
    text = f"{head}\n{body.decode(errors='replace')}"
    members = {"message": text, "error": {"message": text}, "errors": [text]}
    return Response(
        status,
        {"content-type": "application/json"},
        json.dumps(members, ensure_ascii=False).encode(),
    )


Action = Fault | Response | Callable[[], object] | None
"""A fault; a response in place of the backend's; what happens before the backend is asked."""


class FaultyProxy:
    """Pass requests to the backend at `address`, one after the other.

    Until `start`, all of them.
    """

    def __init__(self, address: str) -> None:
        self._address = address
        self._turn = threading.Lock()
        self.start()
        proxy = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def handle_one_request(self) -> None:
                self.raw_requestline = self.rfile.readline(65537)
                if not self.raw_requestline or not self.parse_request():
                    self.close_connection = True
                    return
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                response = proxy._answer(self.command, self.path, dict(self.headers), body)
                if response is None:
                    self.close_connection = True
                    return
                self.send_response_only(response.status)
                for name, value in response.headers.items():
                    self.send_header(name, value)
                if response.status not in _WITHOUT_BODY:
                    self.send_header("content-length", str(len(response.body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(response.body)

            def handle(self) -> None:
                with suppress(OSError):
                    super().handle()

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        """The proxy's address, without a path."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def start(
        self,
        plan: Callable[[int], Action] = lambda _: None,
        state: Callable[[], object] | None = None,
    ) -> None:
        """Count requests from 0 again.

        `plan` says by its number what happens to a request. `state` returns what the backend has:
        the requests that change it become `changes`.
        """
        self._plan, self._state = plan, state
        self.responses: list[Response | None] = []
        self.changes: list[int] = []

    @property
    def count(self) -> int:
        """How many requests there were since `start`."""
        return len(self.responses)

    def stop(self) -> None:
        """Stop the proxy."""
        self._server.shutdown()
        self._server.server_close()

    def _answer(
        self, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> Response | None:
        with self._turn:
            action = self._plan(self.count)
            self.responses.append(None)
            if callable(action):
                action()
            elif isinstance(action, Response):
                return action
            elif action is Fault.DROPPED:
                return None
            elif action is Fault.DENIED:
                return Response(403, {}, b"")
            elif action is Fault.REFUSED:
                return quote(400, f"{method} {target} {headers}", body)
            before = self._state and self._state()
            response = forward(self._address, method, target, headers, body)
            if self._state and self._state() != before:
                self.changes.append(self.count - 1)
            self.responses[-1] = response
            return None if action is Fault.LOST else response


def forward(
    address: str, method: str, target: str, headers: Mapping[str, str], body: bytes
) -> Response | None:
    """Send a request to the backend at `address`; return its response, None if there is none."""
    parts = urlsplit(address)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = kind(parts.hostname or "", parts.port, timeout=TIMEOUT)
    try:
        connection.request(
            method, parts.path.rstrip("/") + target, body or None, _without_hops(headers)
        )
        response = connection.getresponse()
        received = _without_hops(dict(response.getheaders()))
        return Response(response.status, received, response.read())
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()


def _without_hops(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name.lower() not in _HOPS}
