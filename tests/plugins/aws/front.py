"""A server before moto: it notes every call, and answers some of them in moto's place, as AWS would."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple, Self

import httpx


class Asked(NamedTuple):
    """A call: what for, signed by whom, and its parameters."""

    operation: str
    signer: str
    body: str

    @property
    def parameters(self) -> dict[str, Any]:
        """Its JSON."""
        found: dict[str, Any] = json.loads(self.body)
        return found


class Refusal(NamedTuple):
    """An error as AWS answers it; with the status 0 a line that ends without an answer."""

    status: int
    code: str
    message: str = ""
    headers: Mapping[str, str] = {}

    def json(self) -> bytes:
        """As services answer that speak JSON."""
        return json.dumps({"__type": self.code, "message": self.message}).encode()

    def xml(self) -> bytes:
        """As STS answers."""
        error = f"<Type>Sender</Type><Code>{self.code}</Code><Message>{self.message}</Message>"
        return f"<ErrorResponse><Error>{error}</Error><RequestId>1</RequestId></ErrorResponse>".encode()


_HOPS = ("accept-encoding", "connection", "content-length", "host")
Answer = Callable[[Asked], Refusal | None]


class Front:
    """`answer` says what is refused; what it lets pass goes to moto. Of what `lost` says, the answer gets lost;
    `passed` is called after each that moto has answered."""

    def __init__(self, url: str, tls: ssl.SSLContext | None = None) -> None:
        self.asked: list[Asked] = []
        self.answer: Answer = lambda _: None
        self.lost: Callable[[Asked], bool] = lambda _: False
        self.passed: Callable[[Asked], None] = lambda _: None
        self.behind = httpx.Client(base_url=url, trust_env=False, timeout=60, verify=False)  # noqa: S501 - it is plain
        front = self

        class Handler(BaseHTTPRequestHandler):
            disable_nagle_algorithm = True
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("content-length") or 0))
                asked = _asked(self.headers, body.decode())
                front.asked.append(asked)
                refusal = front.answer(asked)
                if refusal is not None and refusal.status == 0:
                    self.close_connection = True
                    return
                if refusal is not None:
                    forms = "x-amz-target" not in self.headers
                    self.reply(refusal.status, {}, refusal.xml() if forms else refusal.json(), refusal.headers)
                    return
                passed = {name: value for name, value in self.headers.items() if name.lower() not in _HOPS}
                answer = front.behind.post(self.path, content=body, headers=passed)
                front.passed(asked)
                if front.lost(asked):
                    self.close_connection = True
                    return
                self.reply(answer.status_code, answer.headers, answer.content, {})

            def reply(self, status: int, headers: Any, body: bytes, more: Mapping[str, str]) -> None:
                self.send_response(status)
                for name in ("content-type", "x-amzn-errortype"):
                    if headers.get(name):
                        self.send_header(name, headers[name])
                for name, value in more.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        scheme = "http" if tls is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self._server.server_port}"

    @property
    def operations(self) -> list[str]:
        """What was asked for, in order."""
        return [asked.operation for asked in self.asked]

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self.behind.close()


def _asked(headers: Any, body: str) -> Asked:
    target = headers.get("x-amz-target", "").rpartition(".")[2]
    if not target:  # STS speaks forms
        target = dict(part.partition("=")[::2] for part in body.split("&")).get("Action", "")
    signer = headers.get("authorization", "").partition("Credential=")[2].partition("/")[0]
    return Asked(target, signer, body)
