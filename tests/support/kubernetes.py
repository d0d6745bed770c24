"""A Kubernetes API server in this process: kmock's emulator, and before it what it lacks: logins, rights and rules.

kmock stores whatever it is given. The API refuses (API conventions, "Concurrency Control and Consistency"; Secrets,
"Immutable Secrets", "Types of Secret", and the limit of 1 MiB): a second one of a name (409), a patch that names
another resourceVersion than the current one (409), a change of an immutable Secret's data (422), a key that is none,
more than 1 MiB of values, or a typed Secret without its keys (422).
"""

from __future__ import annotations

import asyncio
import base64
import json
import re
import ssl
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx

from support.parts import missing

REQUIRED = {"kubernetes.io/tls": {"tls.crt", "tls.key"}, "kubernetes.io/ssh-auth": {"ssh-privatekey"}}
LARGEST = 1024 * 1024


def refusal(method: str, there: Any, asked: Any) -> int:
    """The status that the API refuses with; 0 where it does not."""
    if method == "POST":
        return 409 if there is not None else _invalid(asked)
    if there is None:
        return 404
    wanted = asked.get("metadata", {}).get("resourceVersion")
    if wanted is not None and wanted != there["metadata"].get("resourceVersion"):
        return 409
    after = patched(there, asked)
    if there.get("immutable") and after.get("data") != there.get("data"):
        return 422
    return _invalid(after)


def patched(there: Any, patch: Any) -> Any:
    """RFC 7396."""
    if not isinstance(patch, dict):
        return patch
    found = dict(there) if isinstance(there, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = patched(found.get(key), value)
    return found


def stamped(asked: Any, there: Any) -> Any:
    """What is written, with the next resourceVersion."""
    number = int(there["metadata"].get("resourceVersion", "1")) + 1 if there is not None else 1
    return {**asked, "metadata": {**asked.get("metadata", {}), "resourceVersion": str(number)}}


def _invalid(secret: Any) -> int:
    data = secret.get("data") or {}
    size = sum(len(base64.b64decode(value, validate=True)) for value in data.values())
    named = all(re.fullmatch(r"[-._a-zA-Z0-9]{1,253}", key) and not re.match(r"\.$|\.\.", key) for key in data)
    annotations = secret["metadata"].get("annotations") or {}
    noted = sum(len(key) + len(value) for key, value in annotations.items())
    whole = REQUIRED.get(secret.get("type", ""), set()) <= data.keys()
    return 0 if named and whole and size <= LARGEST and noted <= 256 * 1024 else 422


TOKEN = "made-up-token-6b1f"


class Cluster:
    """A front that lets a token pass; `refusals` are answered in kmock's place, by the end of the path."""

    def __init__(self, url: str, tls: ssl.SSLContext | None = None) -> None:
        self._kmock = httpx.Client(base_url=url, trust_env=False, verify=False)  # noqa: S501 - it is plain
        self.paths: list[str] = []
        self.namespaces = {"prod"}
        self.token: str | None = TOKEN
        self.refusals: dict[str, tuple[int, Mapping[str, str]]] = {}
        self.refused: Callable[[str, str], int | None] = lambda _method, _path: None
        """A status in place of the server's, by method and path; 0 ends the connection without an answer."""
        self.lost: Callable[[str, str], bool] = lambda _method, _path: False
        """Whether an answer gets lost on its way."""
        self.asked: list[tuple[str, Any]] = []
        """Method and body of what wanted to write."""
        self._writing = threading.Lock()
        self.allowed = True
        cluster = self

        class Handler(BaseHTTPRequestHandler):
            disable_nagle_algorithm = True
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.reply(*cluster.answer(self.path, self.headers.get("authorization")))

            def do_POST(self) -> None:
                length = int(self.headers["content-length"])
                body = self.rfile.read(length)
                if len(body) < length:  # who sent it is gone
                    self.close_connection = True
                    return
                asked = json.loads(body)
                if self.command == "PATCH":
                    assert self.headers["content-type"] == "application/merge-patch+json"
                login = self.headers.get("authorization")
                self.reply(*cluster.answer(self.path, login, asked, self.command))

            do_PATCH = do_POST  # noqa: N815 - its name

            def reply(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
                if status == 0 or cluster.lost(self.command, self.path):
                    self.close_connection = True
                    return
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

    def answer(
        self, path: str, login: str | None, asked: Any = None, method: str = "GET"
    ) -> tuple[int, Mapping[str, str], bytes]:
        """As the API server would."""
        self.paths.append(path)
        if self.token is not None and login != f"Bearer {self.token}":
            return 401, {}, b'{"kind": "Status", "code": 401}'
        for end, (status, headers) in self.refusals.items():
            if path.endswith(end):
                return status, headers, json.dumps({"kind": "Status", "code": status}).encode()
        told = self.refused(method, path)
        if told is not None:
            return told, {}, json.dumps({"kind": "Status", "code": told}).encode()
        if asked is not None and "/secrets" in path:
            with self._writing:
                return self._write(method, path, asked)
        if asked is not None:  # a review of our own rights
            return 201, {}, json.dumps({**asked, "status": {"allowed": self.allowed}}).encode()
        start, _, space = path.rpartition("/")
        if start == "/api/v1/namespaces":  # kmock knows none
            return 200 if space in self.namespaces else 404, {}, b'{"kind": "Namespace"}'
        found = self._kmock.get(path)
        return found.status_code, {"content-type": "application/json"}, found.content

    def _write(self, method: str, path: str, asked: Any) -> tuple[int, Mapping[str, str], bytes]:
        self.asked.append((method, asked))
        whole = path if method == "PATCH" else f"{path}/{asked['metadata']['name']}"
        found = self._kmock.get(whole)
        there = found.json() if found.is_success else None
        space = path.split("/")[4]
        problem = refusal(method, there, asked) if space in self.namespaces else 404
        if problem:
            return problem, {}, json.dumps({"kind": "Status", "code": problem}).encode()
        send = self._kmock.post if method == "POST" else self._kmock.patch
        done = send(path, json=stamped(asked, there))
        assert done.is_success
        return (201 if method == "POST" else 200), {"content-type": "application/json"}, self._kmock.get(whole).content

    def read(self, space: str, name: str) -> Any:
        """One, as it is stored."""
        found = self._kmock.get(f"/api/v1/namespaces/{space}/secrets/{name}")
        if found.status_code == 404:
            raise LookupError(name)
        return found.json()

    def change(self, space: str, name: str, patch: Mapping[str, Any]) -> None:
        """As somebody else changes it."""
        there = self.read(space, name)
        path = f"/api/v1/namespaces/{space}/secrets/{name}"
        assert self._kmock.patch(path, json=stamped({"metadata": {}, **patch}, there)).is_success

    def delete(self, space: str, name: str) -> None:
        """As somebody else deletes it."""
        assert self._kmock.delete(f"/api/v1/namespaces/{space}/secrets/{name}").is_success

    def secret(self, space: str, name: str, values: Mapping[str, bytes] | None, **more: Any) -> None:
        """Make one."""
        data = None if values is None else {key: base64.b64encode(value).decode() for key, value in values.items()}
        meta = {"name": name, "namespace": space, "resourceVersion": "1"}
        body = {"kind": "Secret", "metadata": meta, "type": "Opaque"}
        if data is not None:
            body["data"] = data
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
