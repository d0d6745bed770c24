"""A server that is in trouble: it answers every request in one wrong way."""

from __future__ import annotations

import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PATIENCE = 1.0
"""Seconds that `context.network` waits for a server that is silent, and its deadline for one that drips."""
DRIP = 0.1
"""Seconds between two bytes: far below any timeout of a single read."""


class Trouble:
    """`how` is a status such as `503`, `closed` (the connection ends without an answer), `silent` (it stays, and
    nothing comes) or `dripping` (an answer comes, a byte now and then, and never ends). `received` counts."""

    retry_after = 7.0

    def __init__(self, how: str) -> None:
        self.received = 0
        self._over = threading.Event()
        trouble = self

        class Handler(BaseHTTPRequestHandler):
            def handle_one_request(self) -> None:
                self.raw_requestline = self.rfile.readline(65537)
                if not self.raw_requestline or not self.parse_request():
                    self.close_connection = True
                    return
                self.rfile.read(int(self.headers.get("content-length") or 0))
                trouble.received += 1
                self.close_connection = True
                if how == "silent":
                    trouble._over.wait()
                elif how == "dripping":
                    self.drip()
                elif how != "closed":
                    self.send_response(int(how))
                    self.send_header("retry-after", str(int(trouble.retry_after)))
                    self.send_header("content-length", "0")
                    self.end_headers()

            def drip(self) -> None:
                self.wfile.write(b"HTTP/1.1 200 OK\r\nx-drip: ")
                with suppress(OSError):
                    while not trouble._over.wait(DRIP):
                        self.wfile.write(b"a")

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self) -> str:
        """Its address, without a path."""
        return f"http://127.0.0.1:{self._server.server_port}"

    def stop(self) -> None:
        """End it."""
        self._over.set()
        self._server.shutdown()
        self._server.server_close()
