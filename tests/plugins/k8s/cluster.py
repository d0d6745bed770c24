"""A Kubernetes API server in this process: kmock's emulator, and before it what it has not: logins and rights."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

from support.parts import missing

TOKEN = "made-up-token-6b1f"


class Cluster:
    """A front that lets a token pass; `refusals` are answered in kmock's place, by the end of the path."""

    def __init__(self, url: str, tls: ssl.SSLContext | None = None) -> None:
        self._kmock = httpx.Client(base_url=url, trust_env=False)
        self.paths: list[str] = []
        self.namespaces = {"prod"}
        self.token: str | None = TOKEN
        self.refusals: dict[str, tuple[int, Mapping[str, str]]] = {}
        self.allowed = True
        cluster = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.reply(*cluster.answer(self.path, self.headers.get("authorization")))

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
                status, headers, body = cluster.answer(self.path, self.headers.get("authorization"), asked)
                self.reply(status, headers, body)

            def reply(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self._server.server_port}"
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()

    def answer(self, path: str, login: str | None, asked: Any = None) -> tuple[int, Mapping[str, str], bytes]:
        """As the API server would."""
        self.paths.append(path)
        if self.token is not None and login != f"Bearer {self.token}":
            return 401, {}, b'{"kind": "Status", "code": 401}'
        for end, (status, headers) in self.refusals.items():
            if path.endswith(end):
                return status, headers, json.dumps({"kind": "Status", "code": status}).encode()
        if asked is not None:  # a review of our own rights
            return 201, {}, json.dumps({**asked, "status": {"allowed": self.allowed}}).encode()
        start, _, space = path.rpartition("/")
        if start == "/api/v1/namespaces":  # kmock knows none
            return 200 if space in self.namespaces else 404, {}, b'{"kind": "Namespace"}'
        found = self._kmock.get(path)
        return found.status_code, {"content-type": "application/json"}, found.content

    def secret(self, space: str, name: str, values: Mapping[str, bytes] | None, **more: Any) -> None:
        """Make one."""
        data = None if values is None else {key: base64.b64encode(value).decode() for key, value in values.items()}
        body = {"kind": "Secret", "metadata": {"name": name, "namespace": space}, "type": "Opaque", "data": data}
        self.namespaces.add(space)
        path = f"/api/v1/namespaces/{space}/secrets"
        assert self._kmock.post(path, json={**body, **more}).is_success

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()
        self._kmock.close()


@contextmanager
def emulator() -> Iterator[str]:
    """kmock, on a socket: its address."""
    try:
        import kmock
    except ImportError:
        missing("kmock is not installed")
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    handler = kmock.KubernetesEmulator()
    server = kmock.Server(handler)

    async def start() -> str:
        await handler.__aenter__()
        await server.__aenter__()
        return str(server.url)

    async def stop() -> None:
        await server.__aexit__(None, None, None)
        await handler.__aexit__(None, None, None)

    try:
        yield asyncio.run_coroutine_threadsafe(start(), loop).result(30)
    finally:
        asyncio.run_coroutine_threadsafe(stop(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
