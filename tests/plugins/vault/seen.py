"""A front before OpenBao that notes what is asked, hands it on, or does something else; and reading as a run does."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from references.running import run
from sealpipe.errors import PluginError
from sealpipe.flows.resolve import Cache, resolve
from sealpipe.reference import parse, parse_field
from sealpipe.registry import Registry
from sealpipe.wire.fields import Field

Handler = Callable[[BaseHTTPRequestHandler], bool]


class Front:
    """`asked` are method and target of each request, in order; `instead` may answer in place of the server behind."""

    def __init__(self, port: int) -> None:
        self.asked: list[tuple[str, str]] = []
        self.headers: list[dict[str, str]] = []
        self.instead: Handler = lambda _: False
        front = self

        class Handle(BaseHTTPRequestHandler):
            disable_nagle_algorithm = True
            protocol_version = "HTTP/1.1"

            def do(self) -> None:
                front.asked.append((self.command, self.path))
                front.headers.append(dict(self.headers.items()))
                if not front.instead(self):
                    front._hand_on(self, port)

            do_GET = do_POST = do_PUT = do_PATCH = do_CONNECT = do  # noqa: N815 - their names

            def log_message(self, *_: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handle)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def addr(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _hand_on(self, request: BaseHTTPRequestHandler, port: int) -> None:
        answer(request, *passed(request, port))


def passed(request: BaseHTTPRequestHandler, port: int) -> tuple[int, bytes]:
    """What the server behind answers to a request."""
    body = request.rfile.read(int(request.headers.get("Content-Length", 0)))
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        line.request(request.command, request.path, body or None, dict(request.headers.items()))
        behind = line.getresponse()
        return behind.status, behind.read()
    finally:
        line.close()


def cut(request: BaseHTTPRequestHandler) -> bool:
    """End the connection without an answer; True, for `instead`."""
    request.close_connection = True
    return True


def answer(request: BaseHTTPRequestHandler, status: int, content: bytes = b"", **headers: str) -> bool:
    """Answer a request; True, for `instead`."""
    request.send_response(status)
    for name, value in {"Content-Length": str(len(content)), **headers}.items():
        request.send_header(name.replace("_", "-"), value)
    request.end_headers()
    request.wfile.write(content)
    return True


def read(registry: Registry, *texts: str, cache: Cache | None = None) -> list[Field]:
    """The fields of some references."""
    fields: list[Field] = run(resolve([parse_field(text) for text in texts], lambda: registry, cache))
    return fields


def values(registry: Registry, *texts: str) -> list[str]:
    """Their values, opened."""
    return [field.value if isinstance(field.value, str) else field.value.reveal() for field in read(registry, *texts)]


def error(registry: Registry, text: str) -> PluginError:
    """What a reference's document ends with; asked once, even where it could be tried again."""
    locator = registry.locate(parse(text))
    found = registry.fetch({locator.name: [locator]})[locator]
    assert isinstance(found, PluginError), found
    return found
