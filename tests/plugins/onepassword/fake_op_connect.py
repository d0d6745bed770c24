"""A fake of 1Password's Connect server: the reading part of its public interface, on a real socket.

Written from 1Password's published OpenAPI document (version 1.7.1): vaults, items, files, health; paths, filters,
members, statuses and messages are those. Its syncing, writing and activity are not there. Tests that read the same
fake by the vendor's own client hold it to what that client expects.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Json = Any
Answer = tuple[int, bytes, dict[str, str]]


def made_id(number: int, kind: str = "x") -> str:
    """An id as Connect has them: 26 small letters and digits."""
    return f"{kind}{number:025d}"


@dataclass
class FakeConnect:
    """The server's contents, and what it was asked."""

    url: str = ""
    vaults: dict[str, str] = field(default_factory=dict)
    """Name by id."""
    items: dict[str, Json] = field(default_factory=dict)
    """FullItem by id."""
    contents: dict[str, bytes] = field(default_factory=dict)
    """A file's bytes by its id."""
    tokens: dict[str, set[str]] = field(default_factory=dict)
    """The vaults that a token may see."""
    asked: list[str] = field(default_factory=list)
    instead: Callable[[str], Answer | None] = lambda _: None
    """A fault: what is answered in place of the truth, by path."""

    def vault(self, name: str, *tokens: str) -> str:
        """Make a vault that these tokens may see. Its id."""
        vault_id = made_id(len(self.vaults), "v")
        self.vaults[vault_id] = name
        for token in tokens:
            self.tokens.setdefault(token, set()).add(vault_id)
        return vault_id

    def item(self, vault_id: str, title: str, **members: Json) -> str:
        """Make an item. Its id."""
        item_id = made_id(len(self.items), "i")
        self.items[item_id] = {
            "id": item_id,
            "title": title,
            "vault": {"id": vault_id},
            "category": "LOGIN",
            "version": 1,
            **members,
        }
        return item_id

    def answer(self, target: str, authorization: str | None) -> Answer:
        """What a GET is answered with."""
        self.asked.append(target)
        path, query = urlsplit(target).path, parse_qs(urlsplit(target).query)
        fault = self.instead(target)
        if fault is not None:
            return fault
        if path == "/heartbeat":
            return 200, b".", {"content-type": "text/plain"}
        if path == "/health":
            return _json(200, {"name": "1Password Connect API", "version": "1.7.1", "dependencies": []})
        scope = self.tokens.get((authorization or "").removeprefix("Bearer "))
        if scope is None:
            return _error(401, "Invalid token signature")
        if path == "/v1/vaults":
            found = [{"id": i, "name": n, "type": "USER_CREATED"} for i, n in self.vaults.items() if i in scope]
            return _json(200, _filtered(found, "name", query))
        match = re.fullmatch(r"/v1/vaults/([^/]+)(?:/items(?:/([^/]+)(?:/files(?:/([^/]+)(/content)?)?)?)?)?", path)
        if match is None:
            return _error(404, "not found")
        return self._inside(path, match, scope, query)

    def _inside(self, path: str, match: re.Match[str], scope: set[str], query: dict[str, list[str]]) -> Answer:
        vault_id, item_id, file_id, content = match.groups()
        if vault_id not in self.vaults:
            return _error(404, f"vault {vault_id} not found")
        if vault_id not in scope:
            return _error(403, f"vault {vault_id} is not in scope")
        here = {i: item for i, item in self.items.items() if item["vault"]["id"] == vault_id}
        if path.endswith("/items"):
            short = ("id", "title", "vault", "category", "version")
            return _json(200, _filtered([{n: item[n] for n in short} for item in here.values()], "title", query))
        if item_id is None:
            return _json(200, {"id": vault_id, "name": self.vaults[vault_id], "type": "USER_CREATED"})
        if item_id not in here:
            return _error(404, f"item {item_id} not found")
        files = {each["id"]: each for each in here[item_id].get("files", [])}
        if path.endswith("/files"):
            return _json(200, list(files.values()))
        if file_id is None:
            return _json(200, here[item_id])
        if file_id not in files:
            return _error(404, f"file {file_id} not found")
        if content:
            return 200, self.contents[file_id], {"content-type": "application/octet-stream"}
        return _json(200, files[file_id])


def _filtered(found: list[Json], name: str, query: dict[str, list[str]]) -> list[Json]:
    asked = query.get("filter")
    if not asked:
        return found
    match = re.fullmatch(rf'{name} eq "(.*)"', asked[0])
    return [each for each in found if match and each[name] == match[1]]


def _json(status: int, value: Json) -> Answer:
    return status, json.dumps(value).encode(), {"content-type": "application/json"}


def _error(status: int, message: str) -> Answer:
    return _json(status, {"status": status, "message": message})


@contextmanager
def fake_connect(wrap: Callable[[Any], Any] = lambda socket: socket, scheme: str = "http") -> Iterator[FakeConnect]:
    """A running server; `wrap` puts TLS around its socket."""
    fake = FakeConnect()

    class Handler(BaseHTTPRequestHandler):
        disable_nagle_algorithm = True
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, body, headers = fake.answer(self.path, self.headers["authorization"])
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Says nothing."""

    class Server(ThreadingHTTPServer):
        def handle_error(self, *_: object) -> None:
            """A client that hangs up is no fault of ours."""

    server = Server(("127.0.0.1", 0), Handler)
    server.socket = wrap(server.socket)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    fake.url = f"{scheme}://localhost:{server.server_port}"
    try:
        yield fake
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
