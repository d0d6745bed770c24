"""The base of fakes of other people's HTTP interfaces: a real server on loopback that keeps what it
was asked.

What it does in place of its work is a `Reply`, or one of the faults below; None is its work after
all. `instead` holds some for the next requests, first come first served; `rule` decides it for each
request after those.
"""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qs, unquote, urlsplit

import httpx

PATIENCE = 10.0


@dataclass(frozen=True)
class Asked:
    """A request as it arrived. Header names are in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def parts(self) -> list[str]:
        """The path's segments, decoded."""
        return [unquote(part) for part in self.path.strip("/").split("/")]

    @property
    def query(self) -> dict[str, str]:
        return {name: values[-1] for name, values in parse_qs(urlsplit(self.target).query).items()}

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def members(self) -> dict[str, Any]:
        """The body, sent as JSON or as a form."""
        if "json" in self.headers.get("content-type", ""):
            return self.json  # type: ignore[no-any-return]
        return {name: values[-1] for name, values in parse_qs(self.body.decode()).items()}


@dataclass(frozen=True)
class Reply:
    """An answer. `body` that is neither text nor bytes is sent as JSON; bytes have no type but that
    of `headers`.

    An `endless` one is told no length, and its connection stays open until the fake ends.
    """

    status: int
    body: Any = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    endless: bool = False

    def encode(self) -> tuple[bytes, dict[str, str]]:
        """The body's bytes, and the headers, in lower case."""
        given = {name.lower(): value for name, value in self.headers.items()}
        if isinstance(self.body, bytes):
            return self.body, given
        if isinstance(self.body, str):
            return self.body.encode(), {"content-type": "text/plain; charset=utf-8", **given}
        return json.dumps(self.body).encode(), {
            "content-type": "application/json; charset=utf-8",
            **given,
        }


Fault = Callable[["FakeWeb", Asked], Reply | None]
Rule = Callable[[Asked], "Reply | Fault | None"]


def drop(_fake: FakeWeb, _asked: Asked) -> None:
    """Nothing is done, and nothing answered."""


def drop_after(fake: FakeWeb, asked: Asked) -> None:
    """It is done, and nothing answered."""
    fake.answer(asked)


def hang(fake: FakeWeb, _asked: Asked) -> None:
    """Nothing is answered for longer than anybody waits."""
    fake.ending.wait(PATIENCE)


def meanwhile(do: Callable[[], object], *, after: bool = False) -> Fault:
    """It is done; right before, or right after, somebody else does something."""

    def fault(fake: FakeWeb, asked: Asked) -> Reply:
        reply = fake.answer(asked) if after else None
        do()
        return reply or fake.answer(asked)

    return fault


def first(fits: Callable[[Any], bool], fault: Reply | Fault) -> Rule:
    """A rule for the first request that fits, and none after it."""
    left = [fault]
    return lambda asked: left.pop() if left and fits(asked) else None


class FakeWeb:
    """A server; `base_url` is where it is. With `tls` it speaks TLS."""

    host = "127.0.0.1"
    kind: type[Asked] = Asked

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.asked: list[Asked] = []
        self.instead: list[Reply | Fault | None] = []
        self.rule: Rule = lambda _: None
        self.ending = threading.Event()
        self._server = ThreadingHTTPServer(
            ("127.0.0.1", 0), type("Handler", (_Handler,), {"fake": self})
        )
        self._server.daemon_threads = True
        self._scheme = "http"
        if tls is not None:
            self._server.socket = tls.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
            self._scheme = "https"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.02,), daemon=True
        )

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def base_url(self) -> str:
        return f"{self._scheme}://{self.host}:{self.port}"

    @property
    def targets(self) -> list[str]:
        """What was asked for, in order."""
        return [asked.target for asked in self.asked]

    def answer(self, asked: Asked) -> Reply:
        """What the system itself would answer."""
        raise NotImplementedError

    def respond(self, asked: Asked) -> Reply | None:
        self.asked.append(asked)
        todo = self.instead.pop(0) if self.instead else self.rule(asked)
        if todo is None:
            return self.answer(asked)
        return todo if isinstance(todo, Reply) else todo(self, asked)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.ending.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(PATIENCE)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    fake: FakeWeb

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length)
        if len(body) < length:  # who sent it is gone: nothing was asked
            self.close_connection = True
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        reply = self.fake.respond(self.fake.kind(self.command, self.path, headers, body))
        if reply is None:
            self.close_connection = True
            return
        data, headers = reply.encode()
        self.send_response(reply.status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header(
            *(("connection", "close") if reply.endless else ("content-length", str(len(data))))
        )
        self.end_headers()
        self.wfile.write(data)
        if reply.endless:
            self.wfile.flush()
            self.fake.ending.wait(PATIENCE)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_CONNECT = _serve  # noqa: N815

    def handle(self) -> None:
        try:
            super().handle()
        except (OSError, ssl.SSLError):
            self.close_connection = True

    def log_message(self, *_: object) -> None:
        """Say nothing."""


_HOPS = ("accept-encoding", "connection", "content-length", "host")
_ANSWERED = ("content-type", "x-amzn-errortype")


class FrontDoor(FakeWeb):
    """What stands before a real server on plain HTTP: its work is to hand requests on."""

    def __init__(self, behind: str, **options: Any) -> None:
        super().__init__(**options)
        self.behind = httpx.Client(
            base_url=behind,
            trust_env=False,
            timeout=60,
            verify=False,  # noqa: S501 - it is plain
        )

    def answer(self, asked: Asked) -> Reply:
        passed = {name: value for name, value in asked.headers.items() if name not in _HOPS}
        found = self.behind.request(asked.method, asked.target, content=asked.body, headers=passed)
        headers = {name: found.headers[name] for name in _ANSWERED if name in found.headers}
        return Reply(found.status_code, found.content, headers)

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self.behind.close()


class Receiver(FakeWeb):
    """Somebody's endpoint for webhooks.

    `answers` gives a status (None: hang up without a word) for each message.
    """

    def __init__(
        self, answers: Callable[[Asked], int | None] = lambda _: 204, **options: Any
    ) -> None:
        super().__init__(**options)
        self.answers = answers
        self.headers: dict[str, str] = {}
        self._thread.start()

    def respond(self, asked: Asked) -> Reply | None:
        self.asked.append(asked)
        status = self.answers(asked)
        return None if status is None else Reply(status, headers=self.headers)

    @property
    def hooks(self) -> list[Asked]:
        """What came in."""
        return self.asked

    @property
    def url(self) -> str:
        return f"{self.base_url}/hooks/7"

    @property
    def target(self) -> str:
        """What follows `--send`."""
        return f"webhook:{self.url}"

    @property
    def secrets(self) -> list[str]:
        """The links and passcodes that came in, in order."""
        return [asked.json.get("link") or asked.json.get("passcode") for asked in self.asked]

    def stop(self) -> None:
        self.__exit__()

    def __enter__(self) -> Self:
        return self
