"""The parts of Shelf that the plugin uses, on a local port."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote

TOKEN = "shelf-token-0f3a"
PRIVATE = "private"


class Handler(BaseHTTPRequestHandler):
    server: ShelfService

    def do_GET(self) -> None:
        name = unquote(self.path.removeprefix("/things/"))
        if self.headers["authorization"] != f"Bearer {TOKEN}":
            self.respond(401, b"no")
        elif self.path == "/whoami":
            self.respond(200, b"you")
        elif name == PRIVATE:
            self.respond(403, b"no")
        elif name not in self.server.things:
            self.respond(404, b"no")
        else:
            self.respond(200, *self.server.things[name], **self.server.labels.get(name, {}))

    def do_PUT(self) -> None:
        name = unquote(self.path.removeprefix("/things/"))
        content = self.rfile.read(int(self.headers["content-length"]))
        with self.server.lock:
            before = self.server.labels.get(name, {}).get("etag", "none")
            if self.headers["if-match"] != before:
                self.respond(412, b"no")
                return
            self.server.things[name] = content, "application/json"
            version = str(int(before) + 1 if before.isdecimal() else 1)
            self.server.labels[name] = {"etag": version, "x-label": self.headers["x-label"]}
        self.respond(204, b"")

    def do_POST(self) -> None:
        note = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.notes.append((self.path.removeprefix("/notes/"), note["text"]))
        self.respond(201, str(len(self.server.notes)).encode())

    def respond(self, status: int, body: bytes, kind: str = "text/plain", **more: str) -> None:
        self.send_response(status)
        for name, value in more.items():
            self.send_header(name, value)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


class ShelfService(ThreadingHTTPServer):
    """The items on the shelf, and the notes: (person, text)."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.things: dict[str, tuple[bytes, str]] = {}
        self.labels: dict[str, dict[str, str]] = {}
        self.notes: list[tuple[str, str]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def put(self, content: bytes | Mapping[str, bytes]) -> str:
        """Put an item on the shelf and return its name."""
        name = f"thing/{len(self.things)}"
        if isinstance(content, bytes):
            self.things[name] = content, "application/octet-stream"
        else:
            text = json.dumps({key: value.decode() for key, value in content.items()})
            self.things[name] = text.encode(), "application/json"
        return name

    def read(self, name: str) -> dict[str, bytes]:
        """Return the values of an item by key."""
        return {key: value.encode() for key, value in json.loads(self.things[name][0]).items()}

    def change(self, name: str, key: str, value: str) -> None:
        """Change a value of an item, as its owner does; the label stays."""
        with self.lock:
            values = json.loads(self.things[name][0]) | {key: value}
            self.things[name] = json.dumps(values).encode(), "application/json"
            self.labels[name]["etag"] = str(int(self.labels[name]["etag"]) + 1)


@contextmanager
def start() -> Iterator[ShelfService]:
    """Serve until the end of the block."""
    with ShelfService() as service:
        threading.Thread(target=service.serve_forever, args=(0.01,), daemon=True).start()
        yield service
        service.shutdown()
