"""An endpoint of somebody's that takes webhooks, counts them, and answers what it is told to."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


@dataclass(frozen=True)
class Hook:
    """One message as it came in: path, headers in lower case, body."""

    path: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Receiver:
    """The endpoint, on loopback. `answers` gives a status (None: hang up without a word) for each message."""

    def __init__(self, answers: Callable[[Hook], int | None] = lambda _: 204) -> None:
        self.answers = answers
        self.headers: dict[str, str] = {}
        self.hooks: list[Hook] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            disable_nagle_algorithm = True
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                if len(body) < int(self.headers["content-length"]):
                    return  # whoever sends it is gone: no message
                hook = Hook(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
                outer.hooks.append(hook)
                status = outer.answers(hook)
                if status is None:
                    self.close_connection = True
                    return
                self.send_response(status)
                for name, value in outer.headers.items():
                    self.send_header(name, value)
                if status != 204:
                    self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                """Nothing on stderr."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    @property
    def target(self) -> str:
        """What follows `--send`."""
        return f"webhook:{self.url}"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/hooks/7"

    @property
    def secrets(self) -> list[str]:
        """The links and passcodes that came in, in order."""
        return [hook.json.get("link") or hook.json.get("passcode") for hook in self.hooks]

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
